# SPDX-License-Identifier: Apache-2.0
"""The words of the project: retired ones stay out of names, messages and documents, and no name means two things."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import parse_source

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "packages" / "tilewright"
SOURCES = PACKAGE / "src" / "tilewright"
COMPANIONS = sorted((ROOT / "packages").glob("tilewright-*/src"))
FILES = [path for root in (SOURCES, *COMPANIONS) for path in sorted(root.rglob("*.py"))]

RETIRED = {
    "room": "buffer, scratch, or package",
    "rooms": "packages",
    "house": "package",
    "door": "validation, or the public function",
    "doors": "dialects",
    "admit": "validate",
    "admitted": "validated",
    "admits": "validates",
    "admission": "validation",
    "kept": "cached, or stored",
    "told": "reported",
    "carry": "transfer",
    "carries": "transfers",
    "carried": "transferred",
    "journey": "walkthrough",
    "journeys": "walkthroughs",
    "workplace": "working directory",
    "stretch": "range, or run",
    "stretches": "ranges, or runs",
}
"""Retired words, and what to say instead."""

CARRY_FILES = ("layout/composition.py",)
"""Where a carry is that of an addition of digits."""

LANE_FILES = (
    "layout/axes.py",
    "layout/__init__.py",
    "__init__.py",
    "tilewright_gpu/",
    "analysis/",
    "mojo/",
    "tilewright_mojo/",
    "cute/",
    "notation/triton.py",
    "layout/linear.py",
)
"""Where a lane is a thread of a warp, or the named axis."""

ODD = (
    r"\bis no (?!longer\b|more\b|less\b)\w",
    r"\bthere is no \w+ (?:\{|')",
    r"\bleads? to\b",
    r"\bso many\b",
    r"\bwhoever\b",
    r"\bnothing to see\b",
    r"\bplaces? alike\b",
    r"\bfullest over average\b",
    r"\bunder way\b",
    r"\bone element a place\b",
    r"\b(?:bytes|pages|elements) a (?:bank|core|thread|page)\b",
)
"""Phrases that read as a translation."""

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROSE_KEEPS = {"kept", "told", "carry", "carries", "carried", "admits", "stretch"}
"""Ordinary English in running text, retired only as names and in messages."""


def words_of(name: str) -> list[str]:
    """Return the words that an identifier is made of: `_LaneBuffer` is lane and buffer."""
    return [word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", part)]


def short_path(path: Path) -> Path:
    """Return the path of a module inside the library, or below the sources of a companion."""
    root = next(root for root in (SOURCES, *COMPANIONS) if path.is_relative_to(root))
    return path.relative_to(root)


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a module defines: of functions, classes, parameters, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def is_about_lanes(path: Path) -> bool:
    return short_path(path).as_posix().startswith(LANE_FILES)


def test_identifiers_use_no_retired_words():
    wrong = []
    for path in FILES:
        retired = set(RETIRED) if is_about_lanes(path) else {*RETIRED, "lane", "lanes"}
        retired -= {"carry", "carries"} if short_path(path).as_posix() in CARRY_FILES else set()
        names = {*identifiers(parse_source(path)), path.stem}
        wrong += [f"{short_path(path)}: {name}" for name in sorted(names) if retired & set(words_of(name))]
    assert not wrong, f"{len(wrong)} names use retired words"


def test_messages_use_no_retired_words():
    lines = (PACKAGE / "tests" / "messages.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 700
    texts = [re.sub(r"\{[^{}]*\}", "{}", line) for line in lines if line.startswith("    ")]
    retired = re.compile(rf"\b(?:{'|'.join(RETIRED)})\b", re.IGNORECASE)
    odd = re.compile("|".join(ODD))
    wrong = [text.strip() for text in texts if retired.search(text) or odd.search(text)]
    assert not wrong


def test_sources_tests_and_examples_use_no_retired_words():
    retired = re.compile(rf"\b(?:{'|'.join(set(RETIRED) - PROSE_KEEPS)})\b", re.IGNORECASE)
    folders = [ROOT / name for name in ("packages", "bench", "examples", "docs/site", "tools")]
    files = [path for folder in folders for ending in ("py", "cpp", "h") for path in folder.rglob(f"*.{ending}")]
    assert len(files) > 400
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if retired.search(line)
    ]
    assert not wrong


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_documents_use_no_retired_words(page):
    retired = re.compile(rf"\b(?:{'|'.join(set(RETIRED) - PROSE_KEEPS)})\b", re.IGNORECASE)
    lines = page.read_text(encoding="utf-8").splitlines()
    assert not [f"{number}: {line}" for number, line in enumerate(lines, 1) if retired.search(line)]


DIALECTS = ("cute", "mojo", "tilewright_mojo", "ttnn", "ttl")


def test_a_class_name_means_one_thing():
    homes = defaultdict(list)
    for path in FILES:
        package = short_path(path).parts[0]
        for node in ast.walk(parse_source(path)):
            if isinstance(node, ast.ClassDef) and package not in DIALECTS:
                homes[node.name].append(short_path(path).as_posix())
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}
