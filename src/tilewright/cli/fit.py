# SPDX-License-Identifier: Apache-2.0
"""`tilewright fit`: whether tensors fit a chip together, why not, and what would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import exit_codes
from .console import Answer, wrapped
from .spec_options import SpecOptions, spec_options
from .values import SHAPE, SIZE
from .verb import verb

if TYPE_CHECKING:
    from ..memory import Fit


@verb("fit")
@click.argument("tensors", nargs=-1, required=True, metavar="SHAPE[:NAME=VALUE]...")
@click.option("--cb", type=SIZE, multiple=True, metavar="SIZE", help="Circular buffer of each core; repeat for more.")
@click.option("--l1-small", type=SIZE, default=0, metavar="SIZE", help="L1 kept for small buffers.")
@click.option("--trace-region", type=SIZE, default=0, metavar="SIZE", help="DRAM kept for traces.")
@spec_options
def command(
    tensors: tuple[str, ...], cb: tuple[int, ...], l1_small: int, trace_region: int, options: SpecOptions
) -> Answer:
    """Say whether tensors fit a chip together with circular buffers; if not, why, and what would.

    Tensors are allocated in order. Settings after a shape are for that tensor alone, and are named like the options:

    \b
    tilewright fit 2048x2048 --dtype float32 --layout tile --shard height
    tilewright fit 4096x4096:buffer=l1 1x4096:dtype=float32 --layout tile \\
        --cb 256KiB

    The exit status is 0 if all fits, and 1 if it does not.
    """
    from ..memory import fit

    requests = [_request(text, options) for text in tensors]
    found = fit(requests, options.machine(), list(cb), l1_small, trace_region)
    return Answer(lambda: _in_colour(found), _data(found), exit_codes.OK if found else exit_codes.NO)


def _request(text: str, options: SpecOptions) -> dict[str, Any]:
    """Return the arguments of the spec of one tensor; an illegal one is a request, too."""
    shape, colon, settings = text.partition(":")
    own = options.changed(settings) if colon else options
    return own.arguments(SHAPE.convert(shape, None, None))


def _in_colour(found: Fit) -> str:
    first, *rest = wrapped(str(found)).splitlines()
    return "\n".join([click.style(first, fg="green" if found else "red", bold=True), *rest])


def _data(found: Fit) -> dict[str, Any]:
    return {
        "fits": found.fits,
        "chip": found.chip.name,
        "tensors": [
            {
                "tensor": None if each.spec is None else str(each.spec),
                "bytes_per_bank": each.bytes_per_bank,
                "banks": each.banks,
                "padding_bytes": each.padding_bytes,
                "address": each.address,
                "problems": list(each.problems),
                "warnings": list(each.warnings),
            }
            for each in found.tensors
        ],
        "memories": list(found.memories),
        "circular_buffer_bytes": found.circular_buffer_bytes,
        "problems": list(found.problems),
        "alternatives": [
            {
                "change": each.change,
                "tensor": str(each.spec),
                "bytes_per_bank": each.bytes_per_bank,
            }
            for each in found.alternatives
        ],
    }
