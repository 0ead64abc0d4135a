# SPDX-License-Identifier: Apache-2.0
"""docs/cli.md shows every verb, and its table of statuses is the program's; tests/docs runs all of its examples."""

import re
from pathlib import Path

import pytest

from tilewright.cli.console import ExitCode
from tilewright.cli.program import VERBS

DOCUMENT = (Path(__file__).parents[4] / "docs" / "cli.md").read_text(encoding="utf-8")


def test_examples_call_the_verbs():
    called = set(re.findall(r"^\$ tilewright (\w+)", DOCUMENT, re.MULTILINE))
    assert called >= {"convert", "verify", "inspect", "diff", "explain", "fit", "show", "stream", "doctor"}


def test_the_table_of_statuses_is_the_programs():
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", DOCUMENT, re.MULTILINE))
    assert {int(status): meaning for status, meaning in rows.items()} == {int(code): code.meaning for code in ExitCode}


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_is_described(name):
    assert re.search(rf"^## .*\b{name}\b|tilewright {name} bash", DOCUMENT, re.MULTILINE)
