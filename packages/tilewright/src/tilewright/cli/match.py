# SPDX-License-Identifier: Apache-2.0
"""`tilewright match`: which tensors of one checkpoint are made of which of another; rules or a recipe from that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from .._files import as_path
from .._text import count_of
from .console import Answer, ExitCode, Progress, check_output_path, table_width, wrap_lines
from .options import FILE, MACHINE
from .program import refuse_options, verb

if TYPE_CHECKING:
    from ..conversion import MatchReport, RecipeByExample

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")  # that tells like tensors apart
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
    status = ExitCode.OK if inferred.reproduced else ExitCode.NO
    return Answer(lambda: _format_recipe(inferred, recipe), inferred.to_json() | {"path": recipe}, status)


def _match(a: str, b: str, out: str | None) -> Answer:
    from ..conversion import match

    with Progress("matching", "tensors") as progress:
        report = match(a, b, progress.update)
    if out is not None:
        as_path(out).write_text(report.rules() + "\n", encoding="utf-8")
    status = ExitCode.NO if report.unmatched else ExitCode.OK
    return Answer(lambda: _format_report(report, out), report.to_json() | {"rules": out}, status)


def _format_report(report: MatchReport, out: str | None) -> str:
    heading, *lines = str(report).split("\n")
    like: dict[str, list[str]] = {}
    for line in lines:
        like.setdefault(_NUMBER.sub("*", line), []).append(line)
    shown = [own[0] if len(own) == 1 else f"{line}  ({len(own)} tensors)" for line, own in like.items()]
    more = [f"... and {len(shown) - _MAX_LINES} more; --json lists all"] if len(shown) > _MAX_LINES else []
    wrote = [] if out is None else [f"wrote {out}; run it with tilewright convert A OUT --rules {out}"]
    first = click.style(heading, fg="red" if report.unmatched else "green", bold=True)
    return _wrap([first, *shown[:_MAX_LINES], *more, *wrote])


def _format_recipe(recipe: RecipeByExample, path: str) -> str:
    heading, *lines = str(recipe).split("\n")
    first = click.style(heading, fg="green" if recipe.reproduced else "red", bold=True)
    count = count_of(len(recipe.ambiguous), "number")
    listed = (
        [f"{count} could be other expressions, too; an example of other sizes decides:"] if recipe.ambiguous else []
    )
    numbers = {f"ambiguous: {choice}" for choice in recipe.ambiguous}
    plain = [line for line in lines if line not in numbers]
    listed += [f"  {choice}" for choice in recipe.ambiguous]
    return _wrap(
        [
            first,
            *plain,
            *listed,
            f"wrote {path}; run it with tilewright prepare SOURCE OUT --for {recipe.machine} --recipe {path}",
        ]
    )


def _wrap(lines: list[Any]) -> str:
    text, width = "\n".join(lines), table_width()
    return text if width is None else wrap_lines(text, width)
