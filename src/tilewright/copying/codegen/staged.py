# SPDX-License-Identifier: Apache-2.0
"""Kernels for moves between different orders: a tile is read in the order of the source, turned, and written in
that of the target.

Each thread loads a small square, vectors along the source, turns it in registers, and puts vectors along the target
into shared memory; after a barrier the tile is read from there vector by vector and stored. Both memories and the
shared one are only ever touched in vectors.
"""

from __future__ import annotations

from math import gcd

from .axes import Axis, Digit, Growth, combinations
from .banks import Dimension, padded_strides
from .direct import run_axis
from .kernel import WIDEST, Job, Kernel, alignment, elements_type, vector
from .text import Named, declared, decoded, guard, loop, offset, when

FEWEST = 1024  # elements for which it is worth it


def ends(job: Job) -> tuple[int, int] | None:
    """Return the axes along which source and target are contiguous, if they are two and the job is worth a stage."""
    if job.nest.operation != "copy" or job.nest.tabulated or run_axis(job) is not None or job.nest.elements < FEWEST:
        return None
    found = [
        next((k for k, axis in enumerate(job.axes) if axis.steps[side] == size and axis.extent > 1), None)
        for side, size in enumerate(job.sizes)
    ]
    first, second = found
    return None if first is None or second is None else (first, second)


def staged(job: Job) -> tuple[Kernel, set[str]]:
    """Return the kernel of a copy whose source and target are contiguous along different axes."""
    both = ends(job)
    assert both is not None
    near, far = both
    before, after = job.sizes
    wide, high = (_vector_length(job, side, axis) for side, axis in enumerate(both))
    lengths = {near: wide, far: high}
    axes = [
        Axis(axis.extent // lengths.get(k, 1), tuple([(step or 0) * lengths.get(k, 1) for step in axis.steps]))
        for k, axis in enumerate(job.axes)
    ]
    growth = Growth(
        axes, order=(0, 1), runs=(before * wide, after * high), lean=job.tuning.lean, large_first=job.tuning.large_first
    )
    squares = max(1, min(16, job.tuning.in_flight // (high * wide * before)))
    room = job.tuning.shared * 7 // 8 // (wide * high * after)
    growth.take(min(job.tuning.threads * squares, room))
    box = [Digit(k, taken, 1) for k, taken in enumerate(growth.taken)]
    total = combinations(box)
    per_thread = max(1, total // job.tuning.threads)
    threads = -(-total // per_thread)
    groups = [*growth.take(job.tuning.cluster), *growth.rest()]

    # the tile, in the order of the target: vectors along it, and the index inside a square in front of its own axis
    outwards = [k for k in growth.sides[1].order if box[k].count > 1 or k == near]
    inwards = [k for k in growth.sides[0].order if box[k].count > 1]
    inside = [(k, role) for k in outwards for role in (("square", "box") if k == near else ("box",))]
    dimensions = [
        Dimension(wide, -1)
        if role == "square"
        else Dimension(box[k].count, inwards.index(k) if k in inwards else len(inwards))
        for k, role in inside
    ]
    strides, size = padded_strides(dimensions, high * after, 2 * job.tuning.shared)
    stride = dict(zip(inside, strides, strict=True))

    lines, in_group = declared("group", groups, "g")
    kind = vector(high * after)
    body = [
        *lines,
        f"LOCAL {kind} *tile = (LOCAL {kind} *)shared_tile;",
        f"source += {offset(in_group, axes, 0, job.nest.source_offset)};",
        f"target += {offset(in_group, axes, 1, job.nest.target_offset)};",
    ]
    from_type, first = elements_type(wide, before)
    to_type, second = elements_type(high, after)
    value = "x[k].each[j]"
    if job.plan.source.format != job.plan.target.format:
        value = f"converted({value})"

    # read squares in the order of the source
    square = [Digit(k, box[k].count, 1) for k in inwards]
    in_box = decoded("at", square)
    up = axes[far].steps[0] or 0
    step = up // high
    load = [
        f"GLOBAL const u8 *from = source + ({offset(in_box, axes, 0)});",
        f"{from_type} x[{high}];",
        *loop("k", high, [f"x[k].all = LOAD({vector(wide * before)}, from + (i32)(k) * {step});"]),
        f"const u32 slot = {_slot(in_box, stride, high * after)};",
        *loop(
            "j",
            wide,
            [
                f"{to_type} y;",
                *loop("k", high, [f"y.each[k] = {value};"]),
                f"tile[slot + j * {stride[(near, 'square')] // (high * after)}u] = y.all;",
            ],
        ),
    ]
    inside_all = guard([*in_group, *in_box], axes)
    if total % threads:
        inside_all = " && ".join(filter(None, [f"at < {total}u", inside_all]))
    body += loop("n", -(-total // threads), [f"const u32 at = thread + n * {threads}u;", *when(inside_all, load)])
    body.append("BARRIER;")

    # write vectors in the order of the target
    out = decoded("at", [Digit(k, wide if role == "square" else box[k].count, 1) for k, role in inside])
    named = dict(zip(inside, out, strict=True))
    slot = " + ".join(
        f"({each.name}) * {stride[key] // (high * after)}u" for key, each in named.items() if each.digit.count > 1
    )
    boxed = [each for (_, role), each in named.items() if role == "box"]
    across = (axes[near].steps[1] or 0) // wide
    to = offset(boxed, axes, 1)
    if wide > 1:
        to += f" + (i32)({named[(near, 'square')].name}) * {across}"
    store = [f"STORE({vector(high * after)}, target + ({to}), tile[{slot or '0'}]);"]
    condition = guard([*in_group, *boxed], axes)
    vectors = total * wide
    if vectors % threads:
        condition = " && ".join(filter(None, [f"at < {vectors}u", condition]))
    body += loop("n", -(-vectors // threads), [f"const u32 at = thread + n * {threads}u;", *when(condition, store)])

    shape = " x ".join(str(box[k].count * lengths.get(k, 1)) for k in reversed(outwards))
    note = f"copy {job.nest.elements} elements in tiles of {shape}, squares of {wide} x {high} turned in registers"
    shared = (("shared_tile", size),)
    return Kernel(job.name, note, tuple(body), combinations(groups), threads, (), shared), {first, second}


def _slot(named: list[Named], stride: dict[tuple[int, str], int], width: int) -> str:
    texts = [f"({each.name}) * {stride[(each.digit.axis, 'box')] // width}u" for each in named]
    return " + ".join(texts) or "0u"


def _vector_length(job: Job, side: int, axis: int) -> int:
    """Return how many elements along the contiguous axis of one side are accessed at once."""
    size = job.sizes[side]
    start = (job.nest.source_offset, job.nest.target_offset)[side]
    steps = [each.steps[side] or 0 for k, each in enumerate(job.axes) if k != axis]
    width = alignment(job.aligned[side], start, *steps)
    return max(1, gcd(width // size, WIDEST // size, job.axes[axis].extent))
