# SPDX-License-Identifier: Apache-2.0
"""Kernels that load, convert and store directly: wide copies, fills, and copies with tables."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ..placement import fill_value
from .c_language import (
    conditional,
    declare_digits,
    digit_expressions,
    guard_expression,
    index_expression,
    offset_expression,
    unrolled_loop,
)
from .kernel import (
    WIDEST,
    Kernel,
    KernelJob,
    Table,
    common_alignment,
    elements_type,
    table_alignment,
    vector_constant,
    vector_type,
)
from .thread_mapping import BoxGrowth, Digit, LoopAxis, digit_combinations


def run_axis(job: KernelJob) -> int | None:
    """Return the axis along which elements are contiguous on both sides (of a fill: in the target), or None."""
    for k, axis in enumerate(job.axes):
        near = job.nest.operation == "fill" or axis.steps[0] == job.sizes[0]
        if near and axis.steps[1] == job.sizes[1]:
            return k
    return None


def vector_length(job: KernelJob, tables: tuple[Table, ...]) -> int:
    """Return the number of elements that one thread can copy at once, whatever the length of the run."""
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
        lengths.append(common_alignment(job.aligned[side], start, loose[side], *steps) // size)
    return max(1, min(*lengths, WIDEST // max(job.sizes)) if len(lengths) > 1 else lengths[0])


def split_job(job: KernelJob) -> list[KernelJob]:
    """Return the job in parts that copy whole vectors: most of it, and the rest at the end of each run."""
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


def make_copy_kernel(job: KernelJob) -> tuple[Kernel, set[str]]:
    """Return the kernel of a copy or a fill, and the type definitions that it needs."""
    nest, (before, after) = job.nest, job.sizes
    tables = job.tables() or ()
    run = run_axis(job)
    length = 1 if run is None else gcd(vector_length(job, tables), nest.extents[run])
    axes = [
        LoopAxis(axis.extent // length, tuple([(step or 0) * length for step in axis.steps])) if k == run else axis
        for k, axis in enumerate(job.axes)
    ]
    if nest.tabulated is not None:
        axes.append(LoopAxis(nest.tabulated.count, (None, None)))
    filling = nest.operation == "fill"
    threads, repeats, groups = _distribute(job, axes, length * max(job.sizes), filling)
    lines, in_group = declare_digits("group", groups, "g")
    more, in_thread = declare_digits("thread", threads, "t")
    in_repeat = digit_expressions("r", repeats)
    everything = [*in_group, *in_thread, *in_repeat]
    body = [*lines, *more]
    table_index = f"[{index_expression(everything, len(axes) - 1)}]" if nest.tabulated else ""

    def place(side: int) -> list[str]:
        name, to = ("source", "from") if side == 0 else ("target", "to")
        kind = "GLOBAL const u8 *" if side == 0 else "GLOBAL u8 *"
        start = (nest.source_offset, nest.target_offset)[side]
        return [
            f"{kind}{to} = {name} + ({offset_expression(in_group, axes, side, start)});",
            f"{to} += {offset_expression(in_thread, axes, side)};",
        ]

    def at(side: int) -> str:
        base = f"{('from', 'to')[side]} + ({offset_expression(in_repeat, axes, side)})"
        return base + (f" + {('source', 'target')[side]}_table{table_index}" if table_index else "")

    condition = guard_expression(everything, axes)
    count = digit_combinations(repeats)
    into = vector_type(length * after)
    needs: set[str] = set()
    body += place(1)
    if filling:
        # the gap between the sections of a block format is zero, whatever the padding value
        blocks = job.target.format.has_blocks
        value = vector_constant(length * after, b"\0" if blocks else fill_value(job.source, job.target).tobytes())
        body += unrolled_loop("r", count, conditional(condition, [f"STORE({into}, {at(1)}, {value});"]))
    else:
        body += place(0)
        out_of = vector_type(length * before)
        body.append(f"{out_of} moved[{count}];")
        body += unrolled_loop("r", count, conditional(condition, [f"moved[r] = LOAD({out_of}, {at(0)});"]))
        store, needs = _store_statements(job, length, at(1))
        body += unrolled_loop("r", count, conditional(condition, store))
    what = "fill" if filling else "copy"
    note = f"{what} {nest.elements} elements, {length} at a time, {count} times per thread"
    group_size = digit_combinations(threads)
    return Kernel(job.name, note, tuple(body), digit_combinations(groups), group_size, tables), needs


def _store_statements(job: KernelJob, length: int, place: str) -> tuple[list[str], set[str]]:
    """Return the statements that convert and store the loaded elements, and the definitions they need."""
    before, after = job.sizes
    into = vector_type(length * after)
    if job.source.format == job.target.format:
        return [f"STORE({into}, {place}, moved[r]);"], set()
    (first, one), (second, two) = elements_type(length, before), elements_type(length, after)
    return [
        f"{first} x;",
        f"{second} y;",
        "x.all = moved[r];",
        *unrolled_loop("k", length, ["y.each[k] = converted(x.each[k]);"]),
        f"STORE({into}, {place}, y.all);",
    ], {one, two}


def _distribute(
    job: KernelJob, axes: list[LoopAxis], width: int, filling: bool
) -> tuple[list[Digit], list[Digit], list[Digit]]:
    """Return the digits of threads, repeats and work-groups."""
    growth = BoxGrowth(
        axes, order=(1,) if filling else (0, 1), lean=job.tuning.lean, large_first=job.tuning.large_first
    )
    threads = growth.take(job.tuning.threads)
    waiting = 1
    for left in growth.left:
        waiting *= left
    most = max(1, min(job.tuning.in_flight // width, 16))
    repeats = growth.take(min(most, waiting // job.tuning.groups)) if waiting > job.tuning.groups else []
    groups = growth.take(job.tuning.cluster)
    return threads, repeats, [*groups, *growth.rest()]
