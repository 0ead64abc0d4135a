# SPDX-License-Identifier: Apache-2.0
"""`tilewright match`: which tensors of one checkpoint are made of which of another; rules or a recipe from that."""

from __future__ import annotations

from typing import Any

import click

from .._files import as_path
from .._text import NUMBER_IN_NAME
from .console import Answer, ExitCode, Progress, check_output_path, table_width, wrap_lines
from .options import FILE, MACHINE
from .program import refuse_options, verb

_MAX_LINES = 60


@verb("match")
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option("-o", "--out", type=FILE, metavar="RULES", help="Write rules for convert --rules: a .toml file.")
@click.option("--recipe", type=FILE, metavar="FILE", help="Infer a recipe for prepare --recipe: a .toml file.")
@click.option(
    "--example",
    "examples",
    nargs=2,
    type=click.Path(),
    multiple=True,
    metavar="A B",
    help="With --recipe: another example.",
)
@click.option("--for", "machine", type=MACHINE, help="With --recipe: the machine. [from the files]")
def command(
    a: str, b: str, out: str | None, recipe: str | None, examples: tuple[tuple[str, str], ...], machine: str | None
) -> Answer:
    """Find which tensors of B are made of which tensors of A, whatever their names, and how.

    A and B are files or directories of tensors. Every match is proven on all elements: other orders, joins and slices,
    stacks, padding, repetition, an added constant, and formats that round. Tensors with equal contents are listed.

    \b
    tilewright match model/ converted/ -o rules.toml
    tilewright match Llama-1B/ cache/ --recipe llama.toml
    tilewright match Llama-1B/ cache/ --recipe llama.toml --example 3B/ cache-3B/

    With --recipe, A is a checkpoint with config.json, and B the cache that other software made of it: names, joins and
    numbers become a recipe for all models of the family. It is tested on the examples, byte for byte.
    The exit status is 0 if all of B is found (and reproduced), and 1 if it is not.
    """
    for path in (out, recipe):
        if path is not None:
            check_output_path(path)
    if recipe is None:
        refuse_options(["examples", "machine"], "without --recipe")
        return _match(a, b, out)
    refuse_options(["out"], "with --recipe")
    from ..conversion import infer_recipe

    inferred = infer_recipe([(a, b), *examples], machine)
    inferred.save(recipe)
    wrote = f"wrote {recipe}; run it with tilewright prepare SOURCE OUT --for {inferred.machine} --recipe {recipe}"
    return _answer(str(inferred), inferred.reproduced, inferred.to_json() | {"path": recipe}, wrote)


def _match(a: str, b: str, out: str | None) -> Answer:
    from ..conversion import match

    with Progress("matching", "tensors") as progress:
        report = match(a, b, progress.update)
    if out is not None:
        as_path(out).write_text(report.rules() + "\n", encoding="utf-8")
    wrote = "" if out is None else f"wrote {out}; run it with tilewright convert A OUT --rules {out}"
    return _answer(str(report), not report.unmatched, report.to_json() | {"rules": out}, wrote)


def _answer(report: str, is_good: bool, data: dict[str, Any], wrote: str) -> Answer:
    """Return an answer whose lines on like layers are printed as one."""
    heading, *lines = report.split("\n")
    like: dict[str, list[str]] = {}
    for line in lines:
        like.setdefault(NUMBER_IN_NAME.sub("*", line), []).append(line)
    shown = [own[0] if len(own) == 1 else f"{line}  ({len(own)} tensors)" for line, own in like.items()]
    more = [f"... and {len(shown) - _MAX_LINES} more; --json lists all"] if len(shown) > _MAX_LINES else []
    first = click.style(heading, fg="green" if is_good else "red", bold=True)
    text, width = "\n".join([first, *shown[:_MAX_LINES], *more, *([wrote] if wrote else [])]), table_width()
    return Answer(wrap_lines(text, width), data, ExitCode.OK if is_good else ExitCode.NO)
