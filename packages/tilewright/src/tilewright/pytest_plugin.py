# SPDX-License-Identifier: Apache-2.0
"""`pytest --tilewright`: recipes, rules and texts of layouts in files are tests, as `tilewright check` checks them.

pytest loads this module at every start, so nothing else is loaded until there is a file to check.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .checks import CheckedText


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option, and the patterns of files, to the `parser` of pytest."""
    group = parser.getgroup("tilewright")
    group.addoption("--tilewright", action="store_true", help="check recipes, rules and layouts in files")
    patterns = "patterns of files that pytest --tilewright checks, such as *.layouts and recipes/*.toml"
    parser.addini("tilewright_files", patterns, "args", ["*.layouts"])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for the file at `file_path` if it is to be checked; it belongs to `parent`."""
    config = parent.config
    if config.getoption("--tilewright") and any(map(file_path.match, config.getini("tilewright_files"))):
        return CheckedFile.from_parent(parent, path=file_path)
    return None


class CheckedFile(pytest.File):
    """A file with recipes, rules or layouts: each is a test."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the tests."""
        from .checks import check_file

        for checked in check_file(self.path):
            line = checked.place.removeprefix(str(self.path)).strip(":")
            yield CheckedItem.from_parent(self, name=f"line {line}" if line else checked.text, checked=checked)


class CheckedItem(pytest.Item):
    """The test of one recipe, of rules, or of one layout."""

    def __init__(self, *, checked: CheckedText, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]  # pytest's own
        self.checked = checked

    def runtest(self) -> None:
        """Fail if there is a problem."""
        if self.checked.problem is not None:
            pytest.fail(f"{self.checked}\n  {self.checked.text}", pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return where the text is, as the heading of a failure."""
        return self.path, None, f"{self.path.name}: {self.name}"
