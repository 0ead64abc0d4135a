# SPDX-License-Identifier: Apache-2.0
"""`tilewright explain`: where an element lives, step by step, and what an address holds."""

from __future__ import annotations

from typing import Any

import click

from .console import Answer
from .spec_options import SpecOptions, spec_options
from .values import ADDRESS, COORDINATE, CORE, SHAPE
from .verb import verb


@verb("explain")
@click.argument("shape", type=SHAPE)
@click.option("--at", type=COORDINATE, metavar="I,J,K", help="The element to find.")
@click.option("--address", type=ADDRESS, metavar="BYTE", help="The other way: what lives at this address,")
@click.option("--core", type=CORE, metavar="X,Y", help="of this core,")
@click.option("--bank", type=click.IntRange(min=0), metavar="N", help="or of this bank.")
@click.option("--bit", type=click.IntRange(0, 7), default=0, help="Bit of that byte, for formats below 8 bits.")
@click.option("--base", type=ADDRESS, metavar="BYTE", help="Where the buffer starts. [as on an empty chip]")
@spec_options
def command(
    shape: tuple[int, ...],
    at: tuple[int, ...] | None,
    address: int | None,
    core: tuple[int, ...] | None,
    bank: int | None,
    bit: int,
    base: int | None,
    options: SpecOptions,
) -> Answer:
    """Say where an element of a tensor lives, from its coordinate to its byte; or what an address holds.

    \b
    tilewright explain 4x60x90 --dtype bfloat8_b --shard block --grid 8x8 \\
        --at 2,33,17
    tilewright explain 4x60x90 --dtype bfloat8_b --shard block --grid 8x8 \\
        --core 0,5 --address 1498385
    """
    from ..memory import explain, explain_address
    from ..memory.explanation import as_lines

    _check_question(at, address, core, bank)
    spec = options.spec(shape)
    facts: dict[str, Any] = {"tensor": str(spec), "shape": shape}
    heading = as_lines([("tensor", str(spec))])
    if at is not None:
        found = explain(spec, at, base)
        return Answer(lambda: f"{heading}\n{found}", {**facts, **found.to_json()})
    assert address is not None  # checked above
    place = bank if core is None else core
    resident = explain_address(spec, place, address, bit, base)
    place_name = f"bank {bank}" if core is None else f"core ({core[0]}, {core[1]})"
    lines = [("address", f"{address} ({address:#x}) of {place_name}"), ("holds", str(resident))]
    way = explain(spec, resident.coordinate, base) if resident.kind == "data" and resident.coordinate else None

    def text() -> str:
        return "\n".join([heading, as_lines(lines), *([str(way)] if way else [])])

    return Answer(text, {**facts, "address": address, "core": core, "bank": bank, **resident.to_json()})


def _check_question(at: Any, address: Any, core: Any, bank: Any) -> None:
    if (at is None) == (address is None):
        raise click.UsageError("ask for an element with --at I,J,K, or for an address with --address and --core X,Y")
    if at is not None and (core is not None or bank is not None):
        raise click.UsageError("--core and --bank belong to --address; leave them out with --at")
    if address is not None and (core is None) == (bank is None):
        raise click.UsageError("--address needs one of --core X,Y and --bank N")
