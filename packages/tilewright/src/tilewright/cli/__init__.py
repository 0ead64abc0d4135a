# SPDX-License-Identifier: Apache-2.0
"""The command line: one module per verb, imported when the verb is called; and the helpers that verbs share."""

from .console import Answer, CommandError, Console, ExitCode, describe_error, save_picture, table_width
from .move_arguments import parse_move
from .options import CHIP, FILE, FOLDER, NO_CHIP, SpecOptions, describe_assumptions, list_assumptions
from .program import main, program, refuse_options, verb

__all__ = [
    "CHIP", "FILE", "FOLDER", "NO_CHIP", "Answer", "CommandError", "Console", "ExitCode", "SpecOptions",
    "describe_assumptions", "describe_error", "list_assumptions", "main", "parse_move", "program", "refuse_options",
    "save_picture", "table_width", "verb",
]  # fmt: skip
