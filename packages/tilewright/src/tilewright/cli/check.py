# SPDX-License-Identifier: Apache-2.0
"""`tilewright check`: recipes, rules and texts of layouts in files, for pre-commit hooks and continuous integration."""

from __future__ import annotations

import click

from .._text import count_of
from .console import Answer, ExitCode
from .program import verb


@verb("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
def command(files: tuple[str, ...]) -> Answer:
    """Check recipes, rules and texts of layouts in files.

    A .toml is a recipe of prepare, or rules of convert. In a .layouts file every line is a layout in any notation, and
    # starts a comment; in other files, a layout is what follows "tilewright:" in a line, such as a comment. Texts with
    " == " between them have to describe the same function.

    \b
    tilewright check recipes/*.toml golden.layouts src/kernel.cu
    // tilewright: (8,(4,2)):(4,(1,32)) == f32[8,8]{1,0:T(8,4)}

    The exit status is 1 if there are problems.
    """
    from ..checks import check_file

    checked = [text for file in files for text in check_file(file)]
    wrong = [text for text in checked if text.problem is not None]
    counted = f"{count_of(len(checked), 'text')} in {count_of(len(files), 'file')}"
    last = f"{count_of(len(wrong), 'problem')} in {counted}" if wrong else f"good: {counted}"
    lines = [*map(str, wrong), click.style(last, fg="red" if wrong else "green", bold=True)]
    data = {"files": list(files), "good": not wrong, "texts": checked}
    return Answer("\n".join(lines), data, ExitCode.NO if wrong else ExitCode.OK)
