# SPDX-License-Identifier: Apache-2.0
"""`check_file`: recipes, rules and texts of layouts in files, for `tilewright check` and for pytest."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ._files import as_path
from ._json import parse_toml
from .conversion import Recipe, Rules
from .errors import FileFormatError, TilewrightError
from .files import FilePath
from .layout import LayoutLike, functionally_equal
from .notation import ParsedText, parse

__all__ = ["CheckedText", "check_file"]

_MARK = re.compile(r"\btilewright:\s+(.*?)\s*(?:\*/|-->|\"\"\")?\s*$")
_OF_RECIPES = frozenset(("recipe", "model_types", "extends", "weights", "devices", "output"))  # and not of rules


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A recipe, rules or a text of a layout in a file: its `place`, the `text`, and the `problem`, if there is one.

    >>> checked = CheckedText("a.layouts:3", "(4,8):(8,1)")
    >>> print(checked)
    a.layouts:3: good
    """

    place: str
    text: str
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.problem or 'good'}"


def check_file(path: FilePath) -> list[CheckedText]:
    """Return the recipes, rules and layouts in a file, each checked.

    A .toml is a recipe, or rules. In a .layouts file every line is a layout, in any notation, and # starts a comment;
    in other files, a layout follows "tilewright:" in a line. Texts with ` == ` between them have to describe
    the same function.

    Args:
        path: the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.layouts").write_text("(4,8):(8,1) == bf16[4,8]{1,0}\\n(4,8):(8,1) == (4,8):(1,4)\\n")
    ...     [checked.problem for checked in check_file(f"{folder}/a.layouts")]
    [None, '(4,8):(8,1) and (4,8):(1,4) are different functions']
    """
    path = as_path(path)
    if path.suffix == ".toml":
        return [_check_table(path)]
    try:
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as problem:
        raise FileFormatError(f"{path} is not a text: {problem.reason} at byte {problem.start}") from None
    checked = []
    for number, line in enumerate(lines, start=1):
        mark = _MARK.search(line)
        text = line.strip() if path.suffix == ".layouts" else mark[1] if mark else ""
        if text and not text.startswith("#"):
            checked.append(CheckedText(f"{path}:{number}", text, _find_problem(text)))
    return checked


def _check_table(path: Path) -> CheckedText:
    kind, problem = "rules", None
    try:
        if _OF_RECIPES & parse_toml(path.read_bytes(), str(path)).keys():
            kind = "recipe"
            Recipe.load(path)
        else:
            Rules.of(path)
    except TilewrightError as found:
        problem = str(found).removeprefix(f"{path}: ")
    if problem is not None and kind == "recipe" and len(list(path.parent.glob("*.toml"))) > 1:
        with suppress(TilewrightError):  # it is one file of a recipe
            Recipe.load(path.parent)
            problem = None
    return CheckedText(str(path), kind, problem)


def _find_problem(text: str) -> str | None:
    """Return the problem of a line of texts, None if it has none."""
    try:
        first, *others = [_read_layout(part) for part in text.split(" == ")]
        for other in others:
            if first.size != other.size or not functionally_equal(first, other):
                return f"{first} and {other} are different functions"
    except TilewrightError as problem:
        return str(problem)
    return None


def _read_layout(text: str) -> LayoutLike:
    parsed = parse(text.strip())
    layout = parsed.memory_layout if isinstance(parsed, ParsedText) else parsed
    if not isinstance(layout, LayoutLike):
        raise FileFormatError(f"{text} is not a layout from coordinates to elements")
    return layout
