# SPDX-License-Identifier: Apache-2.0
"""The statements of the five original documents, each with the test that shows it.

A test carries `@shows(row, lines, statement)` for every statement that it shows. A statement that does not hold as the
document writes it has `differs=`: what is right, and why. `docs/conformance.md` is written from these marks by
`python -m tests.conformance.statements`, and `test_table.py` fails if it is stale, or if a statement has no test.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., object])
PAGE = Path(__file__).parents[4] / "docs" / "conformance.md"
_INTRODUCTION = """\
Here you can look up any statement of the five documents that tilewright is based on, and the test that shows it. The
documents are two pages and the `ttnn.Tensor` reference of Tenstorrent, the reference of Mojo's `TileTensor`, and the
page on physical tensors of Khronos' OpenCL Tensor and Tile Library.

They make {total} statements. {literal} of them hold as written, with the rule of translation that each dictionary
states at its start. For the others, a document is wrong, out of date or not valid Python, or tilewright differs on
purpose. The last column and the dictionary then tell what is right.

The figures of the documents are in [the conformance figures](conformance-figures.md). Tests are in
`tests/conformance/`. This page is generated from them by `python -m tests.conformance.statements`, and a test fails if
it is out of date."""


@dataclass(frozen=True)
class Document:
    """A original document: `letter` begins its row numbers, and `dictionary` is the page its readers look at."""

    letter: str
    title: str
    module: str
    dictionary: str
    rows: int
    unused: frozenset[int] = frozenset()

    @property
    def row_names(self) -> list[str]:
        return [f"{self.letter}{n}" for n in range(1, self.rows + 1) if n not in self.unused]


DOCUMENTS = (
    Document("T", "Tilized data layout (Tenstorrent)", "test_tilized_layout", "ttnn", 27),
    Document("M", "Tensor and memory layouts (Tenstorrent)", "test_memory_layouts", "ttnn", 66),
    Document("J", "TileTensor (Mojo)", "test_tile_tensor", "mojo", 153),
    Document("N", "ttnn.Tensor (Tenstorrent)", "test_ttnn_tensor", "ttnn", 96, frozenset({90})),
    Document("L", "Physical tensors (Khronos OpenCL TTL)", "test_physical_tensors", "ttl", 58),
)


@dataclass(frozen=True)
class Statement:
    """One statement of a document, on its `lines`, and the test that shows it."""

    row: str
    lines: str
    text: str
    differs: str
    test: str

    @property
    def number(self) -> int:
        return int(self.row[1:])


STATEMENTS: dict[str, list[Statement]] = {}  # by row


def shows(row: str, lines: str, text: str, *, differs: str = "") -> Callable[[Test], Test]:
    """Mark a test as the one that shows a statement of an original document.

    Args:
        row: number of the statement, such as "M41".
        lines: its lines in the document.
        text: the statement, in short.
        differs: what is right instead and why, if the statement is wrong, dated, or not Python.
    """

    def mark(test: Test) -> Test:
        name = f"{test.__module__.rpartition('.')[2]}.py::{test.__name__}"
        STATEMENTS.setdefault(row, []).append(Statement(row, lines, text, differs, name))
        return test

    return mark


def read_statements() -> dict[str, list[Statement]]:
    """Return the statements of all documents by row, after importing their tests."""
    for document in DOCUMENTS:
        import_module(f"tests.conformance.{document.module}")
    return STATEMENTS


def write_page() -> str:
    """Return the text of `docs/conformance.md`."""
    found = {row: marked[0] for row, marked in read_statements().items()}
    counts = [
        (document, len(rows), sum(not found[row].differs for row in rows))
        for document in DOCUMENTS
        for rows in [[row for row in document.row_names if row in found]]
    ]
    total, literal = (sum(count[k] for count in counts) for k in (1, 2))
    lines = [
        "# Conformance",
        "",
        _INTRODUCTION.format(total=total, literal=literal),
        "",
        "| document | statements | as written | differ | dictionary |",
        "|---|---|---|---|---|",
        *(
            f"| [{document.title}](#{_anchor(document.title)}) | {rows} | {held} | {rows - held} "
            f"| [{document.dictionary}](dictionaries/{document.dictionary}.md) |"
            for document, rows, held in counts
        ),
        f"| all | {total} | {literal} | {total - literal} | |",
    ]
    for document in DOCUMENTS:
        lines += [
            "",
            f"## {document.title}",
            "",
            "| row | lines | statement | test | holds, or what differs |",
            "|---|---|---|---|---|",
        ]
        for row in document.row_names:
            if row in found:
                s = found[row]
                lines.append(f"| {s.row} | {s.lines} | {_cell(s.text)} | `{s.test}` | {_cell(s.differs or 'holds')} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return a text for a cell of a table: bars end no cell, and brackets before parentheses are no link."""
    return text.replace("|", "\\|").replace("](", "&#93;(")


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower().replace(".", "")).strip("-")


if __name__ == "__main__":
    # Imported by its name, so that the tests mark the same registry.
    PAGE.write_text(import_module("tests.conformance.statements").write_page(), encoding="utf-8")
