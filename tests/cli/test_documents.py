# SPDX-License-Identifier: Apache-2.0
"""Every example of docs/cli.md and the README is executed, in order; the table of statuses is the program's."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.cli import exit_codes
from tilewright.cli.verbs import VERBS
from tilewright.files import write_sample_model

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(document):
    """Return (command, expected status, expected text) of every example."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", document, re.MULTILINE | re.DOTALL):
        for command, rest in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            status = re.search(r"^\[exit (\d+)\]\n", rest, re.MULTILINE)
            text = rest if status is None else rest.replace(status[0], "")
            found.append((command, int(status[1]) if status else 0, text))
    return found


def words_of(command):
    """Return the words of a command line, with what is in double quotes as one."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', command)]


def executed(document, run):
    """Return the verbs that were called, after comparing what every example says with what it is said to say."""
    seen = set()
    for command, status, expected in examples(document):
        name, *arguments = words_of(command)
        if name == "python":
            out = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout
        else:
            assert name == "tilewright"
            seen.add(arguments[0])
            out = run(*arguments, status=status).out
        matches = doctest.OutputChecker().check_output(expected, out, FLAGS)
        assert matches or (status and not expected), f"$ {command}\n{out}"
    return seen


def test_every_example_says_what_it_is_said_to_say(run):
    verbs = {"convert", "verify", "inspect", "diff", "explain", "fit", "show", "stream", "bench", "doctor"}
    assert executed(DOCUMENT, run) >= verbs


def test_the_readme_does_too(run):
    write_sample_model("model.safetensors")  # the fixture has made a folder of its own the current one
    assert executed(README, run) == {"convert", "verify", "diff", "explain"}


def test_the_table_of_statuses_is_the_programs():
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", DOCUMENT, re.MULTILINE))
    assert {int(status): meaning for status, meaning in rows.items()} == exit_codes.MEANINGS


@pytest.mark.parametrize("name", [name for name in VERBS if name not in ("show", "explore")])
def test_every_verb_is_described(name):
    assert re.search(rf"^## .*\b{name}\b|tilewright {name} bash", DOCUMENT, re.MULTILINE)
