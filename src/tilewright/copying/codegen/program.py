# SPDX-License-Identifier: Apache-2.0
"""A whole plan as one program: a kernel for each of its nests, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from ...errors import FormatError
from ...formats import BlockFormat, ScalarFormat, format_of
from .blocks import BLOCK_FLOATS, block_functions, pack, unpack
from .dialect import dialect_of
from .direct import direct, pieces
from .gathering import gathered, kernel_text
from .kernel import EDGE_THREADS, WIDEST, Job, Kernel, Tunings, by_kind
from .numbers import converter, needs_doubles
from .staged import ends, staged

if TYPE_CHECKING:
    from ..plan import Plan

WIDE = 4  # bytes of an element from which on a staged kernel is cut as a wide one


@dataclass(frozen=True, slots=True)
class Program:
    """Source text and the launches of its kernels, step after step.

    Those of one step of the plan may run in any order, since no two of them write one place.

    >>> Program("...", ()).kernels
    ()
    """

    text: str
    kernels: tuple[Kernel, ...]


def generate(plan: Plan, dialect: str, aligned: tuple[int, int] = (16, 16), tuning: Tunings = None) -> Program:
    """Return the program of a plan for memory whose addresses are multiples of `aligned`.

    >>> from tilewright import row_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(64, 64), "float32"), Placement(row_major(64, 64), "float32"))
    >>> [(kernel.name, kernel.groups, kernel.threads) for kernel in generate(plan, "cuda").kernels]
    [('tw_copy_0', 4, 256)]
    """
    check_formats(plan)
    tunings = by_kind(tuning)
    hints = tunings["direct"]
    words = dialect_of(dialect, hints.load, hints.store, hints.unroll)
    kernels: list[Kernel] = []
    definitions: set[str] = set()
    functions: dict[str, None] = {}  # in their order, each of them once
    numbers = count()  # no two kernels have one name, in whichever step they are
    for number, step in enumerate(plan.steps):
        made: list[Kernel] = []
        for nest in step.nests:
            for job in _jobs(
                Job(f"tw_{nest.operation}_{next(numbers)}", step, nest, words, _aligned(plan, step, aligned), hints)
            ):
                kind, make = _kind(job)
                kernel, needs = make(replace(job, tuning=tunings[kind]))
                made.append(replace(kernel, step=number))
                definitions |= needs
        kernels += gathered(made, EDGE_THREADS, len(kernels))
        functions |= dict.fromkeys(_functions(step))
    text = words.prelude
    if needs_doubles(plan.source.format, plan.target.format):
        text += words.doubles
    text += "".join(f"\n{each}" for each in functions) + "\n" * bool(definitions) + "".join(sorted(definitions))
    return Program("\n".join([text, *(kernel_text(kernel, words) for kernel in kernels)]), tuple(kernels))


def _aligned(plan: Plan, step: Plan, aligned: tuple[int, int]) -> tuple[int, int]:
    """Return the alignment of both ends of a step: scratch memory starts where the device likes it best."""
    if not plan.stages:
        return aligned
    return (WIDEST, aligned[1]) if step.packs else (aligned[0], WIDEST)


def check_formats(plan: Plan) -> None:
    """Raise if devices have no code for the formats of a plan.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> check_formats(plan_copy(Placement(Layout(4), "float32"), Placement(Layout(4), "bfloat16")))
    """
    for place in (plan.source, plan.target):
        if place.format.has_blocks and place.format.name not in BLOCK_FLOATS:
            raise FormatError(
                f"devices have no code for {place.format.name}; they know all scalar formats and"
                f" {', '.join(BLOCK_FLOATS)}; use engine='reference' on the host"
            )


def knows_formats(plan: Plan) -> bool:
    """Return whether devices have code for the formats of a plan.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> knows_formats(plan_copy(Placement(Layout(32), "int8"), Placement(Layout(32), "mxfp4", tile_elements=32)))
    False
    """
    try:
        check_formats(plan)
    except FormatError:
        return False
    return True


def _jobs(job: Job) -> Iterator[Job]:
    if job.nest.elements == 0 and job.nest.operation != "pack":
        return
    if job.nest.operation == "clear":
        job = replace(job, nest=replace(job.nest, operation="fill"))  # of blocks: zeros
    yield from pieces(job) if job.nest.operation in ("copy", "fill") else [job]


def _kind(job: Job) -> tuple[str, Callable[[Job], tuple[Kernel, set[str]]]]:
    """Return the kind of kernel that a job becomes, and what makes it."""
    if job.nest.operation == "pack":
        return "pack", pack
    if job.nest.operation == "unpack":
        return "unpack", unpack
    if not ends(job):
        return "direct", direct
    return ("wide" if max(job.sizes) >= WIDE else "staged"), staged


def _functions(plan: Plan) -> list[str]:
    """Return the functions that convert elements: to float32 on the way into blocks, from it on the way out."""
    source, target, found = plan.source.format, plan.target.format, []
    single = format_of("float32")
    assert not single.has_blocks
    if target.has_blocks and not source.has_blocks:
        found.append(block_functions(target, packing=True))
        target = single
    elif source.has_blocks and not target.has_blocks:
        found.append(block_functions(source, packing=False))
        source = single
    if not source.has_blocks and not target.has_blocks and source != target:
        found.append(converter("converted", source, target))
    return found
