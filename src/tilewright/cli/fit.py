# SPDX-License-Identifier: Apache-2.0
"""`tilewright fit`: whether tensors fit a chip together, why not, and what would."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from . import exit_codes
from .console import Answer, wrapped
from .failures import Failure
from .spec_options import OF_THE_MACHINE, SpecOptions, given_options, spec_options
from .values import SHAPE, SIZE
from .verb import follow_links as links_option
from .verb import verb

if TYPE_CHECKING:
    from ..files.stored_tensor import StoredTensor
    from ..memory import Fit


@verb("fit")
@click.argument("tensors", nargs=-1, required=True, metavar="SHAPE[:NAME=VALUE]|FILE...")
@click.option("--cb", type=SIZE, multiple=True, metavar="SIZE", help="Circular buffer of each core; repeat for more.")
@click.option("--l1-small", type=SIZE, default=0, metavar="SIZE", help="L1 kept for small buffers.")
@click.option("--trace-region", type=SIZE, default=0, metavar="SIZE", help="DRAM kept for traces.")
@links_option
@spec_options
def command(
    tensors: tuple[str, ...],
    cb: tuple[int, ...],
    l1_small: int,
    trace_region: int,
    follow_links: bool,
    options: SpecOptions,
) -> Answer:
    """Say whether tensors fit a chip together with circular buffers; if not, why, and what would.

    Tensors are allocated in order. Settings after a shape are for that tensor alone, and are named like the options:

    \b
    tilewright fit 2048x2048 --dtype float32 --layout tile --shard height
    tilewright fit 4096x4096:buffer=l1 1x4096:dtype=float32 --layout tile \\
        --cb 256KiB
    tilewright fit converted/ --cb 256KiB

    All tensors of a file or directory are meant: placed as it says, or where it says nothing as the options do.
    The exit status is 0 if all fits, and 1 if it does not.
    """
    from ..memory import fit

    requests = [each for text in tensors for each in _requests(text, options, follow_links)]
    found = fit(requests, options.machine(), list(cb), l1_small, trace_region)
    return Answer(lambda: _in_colour(found), _data(found), exit_codes.OK if found else exit_codes.NO)


def _requests(text: str, options: SpecOptions, follow_links: bool) -> list[Any]:
    """Return the tensors that a text names: those of a file that is there, or one of a shape."""
    from pathlib import Path

    if not Path(text).exists():
        return [_request(text, options)]
    from ..files import open_tensors

    given = given_options(click.get_current_context())
    return [_stored(each, options, given) for each in open_tensors(text, follow_links).values()]


def _stored(tensor: StoredTensor, options: SpecOptions, given: frozenset[str]) -> Any:
    """Return a tensor of a file: placed as the file says, unless options say otherwise."""
    if tensor.spec is not None and not given - OF_THE_MACHINE:
        return tensor.spec
    if tensor.format is None and "dtype" not in given:
        raise Failure(
            f"{tensor.name} has elements of type {tensor.kind}, which has no number format here; give --dtype"
        )
    own = options if tensor.format is None or "dtype" in given else replace(options, dtype=tensor.format.name)
    return own.arguments(tensor.shape)


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
