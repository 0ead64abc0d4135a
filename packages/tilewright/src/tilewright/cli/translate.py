# SPDX-License-Identifier: Apache-2.0
"""`tilewright translate`: a layout in the text of one system, as the text of another."""

from __future__ import annotations

from typing import Any

import click

from .._lazy import late_function
from .._text import format_table
from ..errors import TilewrightError
from .console import Answer, ExitCode, table_width
from .options import SHAPE, NameType
from .program import refuse_options, verb
from .subjects import TEXT, read_text

LANGUAGES = ("cuda", "opencl", "triton", "python", "mlir")


_writable_notations = late_function("tilewright", "notation", "writable_notations")
READ = NameType("notation", late_function("tilewright", "notation", "notation_names"))
WRITTEN = NameType("notation to write", _writable_notations)


@verb("translate")
@click.argument("text", metavar="TEXT", type=TEXT)
@click.option("--to", "target", type=WRITTEN, metavar="NAME", help="Notation to write: cute, xla, mlir ... [all]")
@click.option("--from", "source", type=READ, metavar="NAME", help="Notation of TEXT. [detected]")
@click.option("--shape", type=SHAPE, help="The shape, for texts without one: oneDNN, TVM, Mosaic, tt-mlir.")
@click.option("--dtype", metavar="TYPE", help="Element type, as the target notation names it.")
@click.option("--code", "language", type=click.Choice(LANGUAGES), help="Write the index function in this language.")
def command(
    text: str,
    target: str | None,
    source: str | None,
    shape: tuple[int, ...] | None,
    dtype: str | None,
    language: str | None,
) -> Answer:
    """Translate the text of a layout: CuTe, XLA, oneDNN, Triton, MLIR, TVM, Mosaic or our own.

    TEXT is printed by the system, or taken from its source code; its form shows which system. It may be in a file,
    and "-" reads it from standard input.

    \b
    tilewright translate "(_4,_8):(_8,_1)"
    tilewright translate "bf16[8,128]{1,0:T(8,128)(2,1)}" --to cute
    tilewright translate nChw16c --shape 2x32x3x5 --to tvm
    tilewright translate "Sw<3,3,3> o _0 o (_8,_64):(_64,_1)" --code cuda

    Without --to, all notations that can express it are listed, and why the others cannot. With --to, the exit status
    is 1 if the notation cannot express it.
    """
    from ..notation import parse
    from ..notation.any_text import TYPED

    text = read_text(text)
    if language is not None:
        refuse_options(["target", "dtype"], "on the code of an index function")
    elif target is not None and target not in TYPED:
        refuse_options(["dtype"], f"on {target}, which has no element type")
    parsed = parse(text, shape, source)
    is_placement = getattr(parsed, "notation", "") in ("ttnn", "tt-mlir")
    layout: Any = parsed if is_placement and language is None else getattr(parsed, "layout", parsed)
    own = getattr(parsed, "notation", "layout")
    facts: dict[str, Any] = {"text": text, "notation": own, "layout": str(layout)}
    besides = getattr(parsed, "besides", [])
    if besides and (target != own or own == "cute"):
        facts["left_out"] = besides
        click.echo(f"note: only {own} has {', '.join(besides)}, which other notations leave out", err=True)
    if language is not None:
        code = getattr(parsed, "memory_layout", layout).code(language)
        return Answer(code, {**facts, "language": language, "code": code})
    # Triton's shared memory is a layout for all others.
    memory: Any = layout if is_placement else getattr(parsed, "memory_layout", layout)
    texts = {
        name: (str(parsed), "", True)
        if name == own != "cute" and not is_placement and dtype is None
        else _write(layout if name in ("tilewright", "triton") else memory, name, parsed, dtype)
        for name in ([target] if target else _writable_notations())
    }
    assumed = {name: TYPED[name] for name, (result, _, stated) in texts.items() if result is not None and not stated}
    note = _describe_assumption(assumed)
    if target is None:
        rows = [
            (name, f"no: {problem}" if result is None else result.replace("\n", "; "))
            for name, (result, problem, _) in texts.items()
        ]
        return Answer(
            lambda: "\n".join([*format_table([("notation", "text"), *rows], table_width()), *note]),
            {**facts, "texts": {name: result for name, (result, _, _) in texts.items()}, "assumed": assumed},
        )
    result, problem, _ = texts[target]
    if result is None:
        return Answer(
            lambda: f"{target} cannot say this: {problem}", {**facts, "to": target, "problem": problem}, ExitCode.NO
        )
    if note:
        click.echo(f"note: {note[0]}", err=True)  # the text alone goes to standard output
    return Answer(lambda: result, {**facts, "to": target, "result": result, "assumed": assumed})


def _write(layout: object, name: str, parsed: object, dtype: str | None) -> tuple[str | None, str, bool]:
    """Return a layout in a notation, or None and why it has no such text; and whether its element type is stated."""
    from ..notation import write
    from ..notation.any_text import TYPED, element_options

    try:
        options = {"dtype": dtype} if dtype is not None and name in TYPED else element_options(parsed, name)
        return write(layout, name, **options), "", bool(options) or name not in TYPED
    except TilewrightError as problem:
        return None, str(problem), True


def _describe_assumption(assumed: dict[str, str]) -> list[str]:
    """Return the sentence about element types that the text does not state."""
    if not assumed:
        return []
    types = ", ".join(f"{dtype} ({name})" for name, dtype in assumed.items())
    return [f"assumed element types, which the text does not state: {types}; give --dtype"]
