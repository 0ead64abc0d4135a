# SPDX-License-Identifier: Apache-2.0
"""Kernels that load, convert and store without a stop in between: wide copies, fills, and moves through tables."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ...formats import BlockFormat
from ..reference import fill_value
from .axes import Axis, Digit, Growth, combinations
from .kernel import WIDEST, Job, Kernel, Table, alignment, constant, elements_type, table_alignment, vector
from .text import declared, decoded, guard, index_of, loop, offset, when


def run_axis(job: Job) -> int | None:
    """Return the axis along which elements are neighbours on both sides, or on the one side of a fill."""
    for k, axis in enumerate(job.axes):
        near = job.nest.operation == "fill" or axis.steps[0] == job.sizes[0]
        if near and axis.steps[1] == job.sizes[1]:
            return k
    return None


def vector_length(job: Job, tables: tuple[Table, ...]) -> int:
    """Return how many elements along the run one thread can move at once, before any look at its length."""
    run = run_axis(job)
    if run is None:
        return 1
    loose = table_alignment(tables) if tables else [0, 0]
    lengths = []
    for side, size in enumerate(job.sizes):
        if side == 0 and job.nest.operation == "fill":
            continue
        steps = [axis.steps[side] or 0 for k, axis in enumerate(job.axes) if k != run]
        start = (job.nest.source_offset, job.nest.target_offset)[side]
        lengths.append(alignment(job.aligned[side], start, loose[side], *steps) // size)
    return max(1, min(*lengths, WIDEST // max(job.sizes)) if len(lengths) > 1 else lengths[0])


def pieces(job: Job) -> list[Job]:
    """Return the job in pieces of which each moves whole vectors: most of it, and what is left at the end of a run."""
    run, length = run_axis(job), vector_length(job, job.tables() or ())
    if run is None or length == 1:
        return [job]
    extent = job.nest.extents[run]
    whole = extent - extent % length
    if whole in (0, extent):
        return [job]
    before, after = job.nest.source[run], job.nest.target[run]
    extents = [(*job.nest.extents[:run], n, *job.nest.extents[run + 1 :]) for n in (whole, extent - whole)]
    tail = replace(
        job.nest,
        extents=extents[1],
        source_offset=job.nest.source_offset + whole * before,
        target_offset=job.nest.target_offset + whole * after,
    )
    return [
        replace(job, nest=replace(job.nest, extents=extents[0])),
        replace(job, nest=tail, name=f"{job.name}_tail"),
    ]


def direct(job: Job) -> tuple[Kernel, set[str]]:
    """Return the kernel of a copy or a fill, and the definitions that it needs."""
    nest, (before, after) = job.nest, job.sizes
    tables = job.tables() or ()
    run = run_axis(job)
    length = 1 if run is None else gcd(vector_length(job, tables), nest.extents[run])
    axes = [
        Axis(axis.extent // length, tuple([(step or 0) * length for step in axis.steps])) if k == run else axis
        for k, axis in enumerate(job.axes)
    ]
    if nest.tabulated is not None:
        axes.append(Axis(nest.tabulated.count, (None, None)))
    filling = nest.operation == "fill"
    threads, repeats, groups = _dealt(job, axes, length * max(job.sizes), filling)
    lines, in_group = declared("group", groups, "g")
    more, in_thread = declared("thread", threads, "t")
    in_repeat = decoded("r", repeats)
    everything = [*in_group, *in_thread, *in_repeat]
    body = [*lines, *more]
    looked_up = f"[{index_of(everything, len(axes) - 1)}]" if nest.tabulated else ""

    def place(side: int) -> list[str]:
        name, to = ("source", "from") if side == 0 else ("target", "to")
        kind = "GLOBAL const u8 *" if side == 0 else "GLOBAL u8 *"
        start = (nest.source_offset, nest.target_offset)[side]
        return [
            f"{kind}{to} = {name} + ({offset(in_group, axes, side, start)});",
            f"{to} += {offset(in_thread, axes, side)};",
        ]

    def at(side: int) -> str:
        base = f"{('from', 'to')[side]} + ({offset(in_repeat, axes, side)})"
        return base + (f" + {('source', 'target')[side]}_table{looked_up}" if looked_up else "")

    condition = guard(everything, axes)
    count = combinations(repeats)
    into = vector(length * after)
    needs: set[str] = set()
    body += place(1)
    if filling:
        # between the sections of block formats there are zeros, whatever the padding
        blocks = job.plan.target.format.has_blocks
        value = constant(length * after, b"\0" if blocks else fill_value(job.plan).tobytes())
        body += loop("r", count, when(condition, [f"STORE({into}, {at(1)}, {value});"]))
    else:
        body += place(0)
        out_of = vector(length * before)
        body.append(f"{out_of} moved[{count}];")
        body += loop("r", count, when(condition, [f"moved[r] = LOAD({out_of}, {at(0)});"]))
        store, needs = _stored(job, length, at(1))
        body += loop("r", count, when(condition, store))
    what = "fill" if filling else "copy"
    note = f"{what} {nest.elements} elements, {length} at a time, {count} times a thread"
    group_size = combinations(threads)
    return Kernel(job.name, note, tuple(body), combinations(groups), group_size, tables), needs


def _stored(job: Job, length: int, place: str) -> tuple[list[str], set[str]]:
    """Return the statements that convert and store what was loaded."""
    before, after = job.sizes
    into = vector(length * after)
    if job.plan.source.format == job.plan.target.format:
        return [f"STORE({into}, {place}, moved[r]);"], set()
    (first, one), (second, two) = elements_type(length, before), elements_type(length, after)
    return [
        f"{first} x;",
        f"{second} y;",
        "x.all = moved[r];",
        *loop("k", length, ["y.each[k] = converted(x.each[k]);"]),
        f"STORE({into}, {place}, y.all);",
    ], {one, two}


def _dealt(job: Job, axes: list[Axis], width: int, filling: bool) -> tuple[list[Digit], list[Digit], list[Digit]]:
    """Return the digits of threads, of repeats and of work-groups."""
    growth = Growth(axes, order=(1,) if filling else (0, 1), lean=job.tuning.lean, large_first=job.tuning.large_first)
    threads = growth.take(job.tuning.threads)
    waiting = 1
    for left in growth.left:
        waiting *= left
    most = max(1, min(job.tuning.in_flight // width, 16))
    repeats = growth.take(min(most, waiting // job.tuning.groups)) if waiting > job.tuning.groups else []
    groups = growth.take(job.tuning.cluster)
    return threads, repeats, [*groups, *growth.rest()]
