# SPDX-License-Identifier: Apache-2.0
"""The page of environment variables has exactly those that the source reads."""

import re

from .pages import DOCS, PACKAGE, rows_of

READS = (
    r'environ(?:\.get|\.pop|\.setdefault)?[\[(]\s*"(\w+)"',  # Python
    r'std::getenv\("(\w+)"\)',  # C++
    r"environment\('(\w+)'\)",  # recipes
    r"if\.env\.(\w+)",  # the build
    r'"(TILEWRIGHT_\w+)"',  # wherever one of ours is named
)
BY_CLICK = "_TILEWRIGHT_COMPLETE"


def read_by_the_source() -> set[str]:
    files = [
        *PACKAGE.parent.glob("*/src/**/*.py"),
        *(PACKAGE / "src").rglob("*.toml"),
        *(PACKAGE / "native").rglob("*.cpp"),
        PACKAGE / "pyproject.toml",
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return {name for pattern in READS for name in re.findall(pattern, text) if name}


def test_the_page_lists_what_the_source_reads():
    listed = {name for row in rows_of(DOCS / "environment.md") for name in re.findall(r"\w+", row.cells["variable"])}
    assert len(listed) > 15
    assert listed | {BY_CLICK} == read_by_the_source() | {BY_CLICK}


def test_every_variable_has_a_meaning_and_a_default():
    for row in rows_of(DOCS / "environment.md"):
        assert all((row.cells["meaning"], row.cells["default"])), row.cells["variable"]
