# SPDX-License-Identifier: Apache-2.0
"""The command run within this process, whichever click is installed."""

import json
from functools import cache
from inspect import signature
from typing import Any

import click
from click.testing import CliRunner, Result

from tilewright.cli import program

from ..json_schema import find_problems

# Before click 8.2 the two streams were one unless configured otherwise.
_SEPARATE = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def invoke(*words: str, stdin: str | None = None) -> Result:
    """Return what the command says to some words and a standard input, and how it ends; JSON is as its schema says."""
    found = CliRunner(**_SEPARATE).invoke(program, list(words), input=stdin)
    verbs = [word for word in words if word in program.list_commands(click.Context(program))]
    if "--json" in words and verbs and "--help" not in words:
        for line in found.stdout.splitlines():
            check_answer(verbs[0], json.loads(line))
    return found


@cache
def read_schema(verb: str) -> dict[str, Any]:
    """Return the schema of a verb's answers."""
    return json.loads(CliRunner(**_SEPARATE).invoke(program, [verb, "--json-schema"]).stdout)


def check_answer(verb: str, answer: Any) -> None:
    """Fail if an answer of a verb is not as its schema says, or has keys that it does not know."""
    problems = list(find_problems(answer, read_schema(verb)))
    assert not problems, (
        f"{verb} --json: {problems[:3]}; a new key belongs into schemas/{verb}.json, and anything else is a new version"
    )
