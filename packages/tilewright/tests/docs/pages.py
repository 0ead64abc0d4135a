# SPDX-License-Identifier: Apache-2.0
"""The pages that people read, and the blocks in them that can be run."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[4]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "packages" / "tilewright"
FENCE = re.compile(r"^```(?P<language>\w*)(?P<words>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')

# What a reader could run is one of the first two, or a file that they use; text is something to look at.
LANGUAGES = {"python", "console", "toml", "json", "text"}


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file it is to be saved as if it has a title, its text and its line."""

    language: str
    file: str | None
    text: str
    line: int


def page_paths() -> list[Path]:
    """Return the README and every page of docs/."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def page_name(path: Path) -> str:
    """Return a page's path inside the repository."""
    return path.relative_to(ROOT).as_posix()


def blocks_of(path: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = path.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        title = TITLE.search(fence["words"])
        line = text.count("\n", 0, fence.start("text")) + 1
        found.append(Block(fence["language"], title and title[1], fence["text"], line))
    return found


@dataclass(frozen=True)
class Row:
    """One row of a table: its line on the page, and its cells by the heading of their column."""

    line: int
    cells: dict[str, str]


def rows_of(path: Path) -> list[Row]:
    """Return the rows of all tables of a page."""
    found: list[Row] = []
    heading: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.startswith("|") else []
        if not cells:
            heading = []
        elif not heading:
            heading = cells
        elif set(line) - set("|-: "):
            found.append(Row(number, dict(zip(heading, cells, strict=True))))
    return found
