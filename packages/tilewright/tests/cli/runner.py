# SPDX-License-Identifier: Apache-2.0
"""The command run within this process, whichever click is installed."""

from inspect import signature

from click.testing import CliRunner, Result

from tilewright.cli import program

# Before click 8.2 the two streams were one unless configured otherwise.
_SEPARATE = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def invoke(*words: str, stdin: str | None = None) -> Result:
    """Return what the command says to some words and a standard input, and how it ends."""
    return CliRunner(**_SEPARATE).invoke(program, list(words), input=stdin)
