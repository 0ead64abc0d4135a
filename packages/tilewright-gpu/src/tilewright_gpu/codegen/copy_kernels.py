# SPDX-License-Identifier: Apache-2.0
"""Kernels that copy elements: directly (wide copies, fills, copies with tables), or transposed through shared memory.

In a transpose each thread loads a small square as vectors along the source, transposes it in registers, and stores
vectors along the target in shared memory; after a barrier, the tile is read from there and stored. All accesses are
vectors. The strides of the tile in shared memory are padded to avoid bank conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, prod

from tilewright.copying import fill_value

from .c_code import (
    BoxGrowth,
    Digit,
    LoopAxis,
    NamedDigit,
    conditional,
    declare_digits,
    digit_combinations,
    digit_expressions,
    guard_expression,
    index_expression,
    offset_expression,
    shared_loop,
    unrolled_loop,
)
from .kernel import (
    BANK_BYTES,
    BANKS,
    WARP,
    WIDEST,
    Kernel,
    KernelJob,
    Table,
    bank_passes,
    common_alignment,
    elements_type,
    least_conflicts,
    table_alignment,
    vector_constant,
    vector_type,
    xor_expression,
)

SHORT_RUN = 64  # bytes that are contiguous on both sides below which a stage in shared memory makes longer runs
MIN_ELEMENTS = 1024  # fewer elements are not worth a stage in shared memory


def run_axis(job: KernelJob) -> int | None:
    """Return the axis along which elements are contiguous on both sides (of a fill: in the target), or None."""
    for k, axis in enumerate(job.axes):
        near = job.nest.operation == "fill" or axis.strides[0] == job.sizes[0]
        if near and axis.strides[1] == job.sizes[1]:
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
        strides = [axis.strides[side] or 0 for k, axis in enumerate(job.axes) if k != run]
        start = (job.nest.source_offset, job.nest.target_offset)[side]
        lengths.append(common_alignment(job.aligned[side], start, loose[side], *strides) // size)
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
        LoopAxis(axis.extent // length, tuple([(stride or 0) * length for stride in axis.strides]))
        if k == run
        else axis
        for k, axis in enumerate(job.axes)
    ]
    if nest.tabulated is not None:
        axes.append(LoopAxis(nest.tabulated.count, (None, None)))
    filling = nest.operation == "fill"
    threads, repeats, groups = _distribute_work(job, axes, length * max(job.sizes), filling)
    lines, in_group = declare_digits("group", groups, "g")
    more, in_thread = declare_digits("thread", threads, "t")
    in_repeat = digit_expressions("r", repeats)
    everything = [*in_group, *in_thread, *in_repeat]
    body = [*lines, *more]
    entry = [f"const u32 entry = {index_expression(everything, len(axes) - 1)};"] if nest.tabulated else []
    computed = [xor_expression(table) for table in tables]
    if None in computed:
        computed = [f"{side}_table[entry]" for side in ("source", "target")]
    else:
        tables = ()  # a swizzle is quicker to compute than to look up

    def start_pointer(side: int) -> list[str]:
        name, to = ("source", "from") if side == 0 else ("target", "to")
        c_type = "GLOBAL const u8 *" if side == 0 else "GLOBAL u8 *"
        start = (nest.source_offset, nest.target_offset)[side]
        return [
            f"{c_type}{to} = {name} + ({offset_expression(in_group, axes, side, start)});",
            f"{to} += {offset_expression(in_thread, axes, side)};",
        ]

    def at(side: int) -> str:
        base = f"{('from', 'to')[side]} + ({offset_expression(in_repeat, axes, side)})"
        return base + (f" + {computed[side]}" if entry else "")

    condition = guard_expression(everything, axes)
    count = digit_combinations(repeats)
    into = vector_type(length * after)
    needs: set[str] = set()
    body += start_pointer(1)
    if filling:
        # the gap between the sections of a block format is zero, whatever the padding value
        blocks = job.target.format.has_blocks
        value = vector_constant(length * after, b"\0" if blocks else fill_value(job.source, job.target).tobytes())
        body += unrolled_loop("r", count, conditional(condition, [*entry, f"STORE({into}, {at(1)}, {value});"]))
    else:
        body += start_pointer(0)
        out_of = vector_type(length * before)
        body.append(f"{out_of} moved[{count}];")
        body += unrolled_loop("r", count, conditional(condition, [*entry, f"moved[r] = LOAD({out_of}, {at(0)});"]))
        store, needs = _store_statements(job, length, at(1))
        body += unrolled_loop("r", count, conditional(condition, [*entry, *store]))
    what = "fill" if filling else "copy"
    note = f"{what} {nest.elements} elements, {length} at a time, {count} times per thread"
    group_size = digit_combinations(threads)
    return Kernel(job.name, note, tuple(body), digit_combinations(groups), group_size, tables), needs


def _store_statements(job: KernelJob, length: int, address: str) -> tuple[list[str], set[str]]:
    """Return the statements that convert and store the loaded elements, and the definitions they need."""
    before, after = job.sizes
    into = vector_type(length * after)
    if job.source.format == job.target.format:
        return [f"STORE({into}, {address}, moved[r]);"], set()
    (first, one), (second, two) = elements_type(length, before), elements_type(length, after)
    return [
        f"{first} x;",
        f"{second} y;",
        "x.all = moved[r];",
        *unrolled_loop("k", length, ["y.each[k] = converted(x.each[k]);"]),
        f"STORE({into}, {address}, y.all);",
    ], {one, two}


def _distribute_work(
    job: KernelJob, axes: list[LoopAxis], width: int, filling: bool
) -> tuple[list[Digit], list[Digit], list[Digit]]:
    """Return the digits of threads, repeats and work-groups."""
    growth = BoxGrowth(axes, order=(1,) if filling else (0, 1), lean=job.tuning.lean)
    threads = growth.take(job.tuning.threads)
    waiting = prod(growth.left)
    most = max(1, min(job.tuning.in_flight // width, 16))
    repeats = growth.take(min(most, waiting // job.tuning.groups)) if waiting > job.tuning.groups else []
    groups = growth.take(job.tuning.cluster)
    return threads, repeats, [*groups, *growth.rest()]


def _has_good_run(job: KernelJob) -> bool:
    """Return whether elements that are contiguous on both sides make words, and are many or suit the threads."""
    run = run_axis(job)
    if run is None or vector_length(job, ()) * min(job.sizes) < BANK_BYTES:
        return False
    extent = job.nest.extents[run]
    return extent % 4 == 0 or extent * min(job.sizes) >= SHORT_RUN


def contiguous_axes(job: KernelJob) -> tuple[int, int] | None:
    """Return the axes along which source and target are contiguous, or None if a transpose is not possible."""
    if job.nest.operation != "copy" or job.nest.tabulated or job.nest.elements < MIN_ELEMENTS or _has_good_run(job):
        return None
    candidates = [
        next((k for k, axis in enumerate(job.axes) if axis.strides[side] == size and axis.extent > 1), None)
        for side, size in enumerate(job.sizes)
    ]
    first, second = candidates
    return None if first is None or second is None else (first, second)


def make_transpose_kernel(job: KernelJob) -> tuple[Kernel, set[str]]:
    """Return the kernel of a copy with source and target contiguous along different axes, and its type definitions."""
    both = contiguous_axes(job)
    assert both is not None
    near, far = both
    before, after = job.sizes
    wide, high = (vector_extent(job, side, axis) for side, axis in enumerate(both))
    lengths = {near: wide, far: high}
    axes = [
        LoopAxis(
            axis.extent // lengths.get(k, 1), tuple([(stride or 0) * lengths.get(k, 1) for stride in axis.strides])
        )
        for k, axis in enumerate(job.axes)
    ]
    growth = BoxGrowth(axes, order=(0, 1), runs=(before * wide, after * high), lean=job.tuning.lean)
    squares = max(1, min(16, job.tuning.in_flight // (high * wide * before)))
    capacity = job.tuning.shared * 7 // 8 // (wide * high * after)
    growth.take(min(job.tuning.threads * squares, capacity))
    box = [Digit(k, taken, 1) for k, taken in enumerate(growth.taken)]
    total = digit_combinations(box)
    per_thread = max(1, total // job.tuning.threads)
    threads = -(-total // per_thread)
    groups = [*growth.take(job.tuning.cluster), *growth.rest()]

    # the tile, in the order of the target: vectors along it, and the index inside a square in front of its own axis
    outwards = [k for k in growth.sides[1].order if box[k].count > 1 or k == near]
    inwards = [k for k in growth.sides[0].order if box[k].count > 1]
    inside = [(k, role) for k in outwards for role in (("square", "box") if k == near else ("box",))]
    dimensions = [
        TileDimension(wide, -1)
        if role == "square"
        else TileDimension(box[k].count, inwards.index(k) if k in inwards else len(inwards))
        for k, role in inside
    ]
    strides, size = padded_tile_strides(dimensions, high * after, 2 * job.tuning.shared)
    stride = dict(zip(inside, strides, strict=True))

    lines, in_group = declare_digits("group", groups, "g")
    c_type = vector_type(high * after)
    body = [
        *lines,
        f"LOCAL {c_type} *tile = (LOCAL {c_type} *)shared_tile;",
        f"source += {offset_expression(in_group, axes, 0, job.nest.source_offset)};",
        f"target += {offset_expression(in_group, axes, 1, job.nest.target_offset)};",
    ]
    from_type, first = elements_type(wide, before)
    to_type, second = elements_type(high, after)
    value = "x[k].each[j]"
    if job.source.format != job.target.format:
        value = f"converted({value})"

    # read squares in the order of the source
    square = [Digit(k, box[k].count, 1) for k in inwards]
    in_box = digit_expressions("at", square)
    up = axes[far].strides[0] or 0
    pitch = up // high
    load = [
        f"GLOBAL const u8 *from = source + ({offset_expression(in_box, axes, 0)});",
        f"{from_type} x[{high}];",
        *unrolled_loop("k", high, [f"x[k].all = LOAD({vector_type(wide * before)}, from + (i32)(k) * {pitch});"]),
        f"const u32 slot = {_slot_expression(in_box, stride, high * after)};",
        *unrolled_loop(
            "j",
            wide,
            [
                f"{to_type} y;",
                *unrolled_loop("k", high, [f"y.each[k] = {value};"]),
                f"tile[slot + j * {stride[(near, 'square')] // (high * after)}u] = y.all;",
            ],
        ),
    ]
    inside_all = guard_expression([*in_group, *in_box], axes)
    body += [*shared_loop("n", total, threads, inside_all, load), "BARRIER;"]

    # write vectors in the order of the target
    out = digit_expressions("at", [Digit(k, wide if role == "square" else box[k].count, 1) for k, role in inside])
    named = dict(zip(inside, out, strict=True))
    slot = " + ".join(
        f"({digit.name}) * {stride[key] // (high * after)}u" for key, digit in named.items() if digit.digit.count > 1
    )
    boxed = [digit for (_, role), digit in named.items() if role == "box"]
    across = (axes[near].strides[1] or 0) // wide
    to = offset_expression(boxed, axes, 1)
    if wide > 1:
        to += f" + (i32)({named[(near, 'square')].name}) * {across}"
    store = [f"STORE({vector_type(high * after)}, target + ({to}), tile[{slot or '0'}]);"]
    condition = guard_expression([*in_group, *boxed], axes)
    body += shared_loop("n", total * wide, threads, condition, store)

    shape = " x ".join(str(box[k].count * lengths.get(k, 1)) for k in reversed(outwards))
    note = f"copy {job.nest.elements} elements in tiles of {shape}, squares of {wide} x {high} transposed in registers"
    shared = (("shared_tile", size),)
    return Kernel(job.name, note, tuple(body), digit_combinations(groups), threads, (), shared), {first, second}


def _slot_expression(named: list[NamedDigit], stride: dict[tuple[int, str], int], width: int) -> str:
    texts = [f"({digit.name}) * {stride[(digit.digit.axis, 'box')] // width}u" for digit in named]
    return " + ".join(texts) or "0u"


def has_wide_vectors(job: KernelJob) -> bool:
    """Return whether both sides of a transpose can be accessed in vectors of at least half the widest."""
    both = contiguous_axes(job)
    assert both is not None
    return all(2 * vector_extent(job, side, axis) * job.sizes[side] >= WIDEST for side, axis in enumerate(both))


def vector_extent(job: KernelJob, side: int, axis: int) -> int:
    """Return the number of elements that are accessed at once along the contiguous axis of one side."""
    size = job.sizes[side]
    start = (job.nest.source_offset, job.nest.target_offset)[side]
    strides = [loop_axis.strides[side] or 0 for k, loop_axis in enumerate(job.axes) if k != axis]
    width = common_alignment(job.aligned[side], start, *strides)
    return max(1, gcd(width // size, WIDEST // size, job.axes[axis].extent))


@dataclass(frozen=True, slots=True)
class TileDimension:
    """A digit of the tile in shared memory: its count, and its position in the order of writes, -1 if it has none.

    >>> TileDimension(16, written=0).count
    16
    """

    count: int
    written: int


def padded_tile_strides(dimensions: Sequence[TileDimension], width: int, limit: int) -> tuple[list[int], int]:
    """Return the stride in bytes of digit digit of a tile of vectors of `width` bytes, and the bytes of the tile.

    Dimensions are in read order, fastest first. Of the paddings with the fewest bank conflicts, the smallest is chosen.

    >>> padded_tile_strides([TileDimension(16, 1), TileDimension(4, -1), TileDimension(16, 0)], 16, 32768)
    ([16, 256, 1040], 16640)
    """
    order = sorted([(dimension.written, k) for k, dimension in enumerate(dimensions)])
    written = [k for position, k in order if position >= 0]
    padded = [k for k in written if k][:2]

    def options() -> Iterator[tuple[int, int, list[int]]]:
        """Yield no padding, padding before the first digit that is written, then also before the next."""
        pads = range(max(1, min(BANKS * BANK_BYTES // width, 9)))
        for chosen in product(pads, repeat=len(padded)):
            before = dict(zip(padded, reversed(chosen), strict=True))
            strides, size = [], width
            for k, dimension in enumerate(dimensions):
                size += before.get(k, 0) * width
                strides.append(size)
                size *= dimension.count
            if size <= limit or not any(chosen):
                reading = [(dimension.count, stride) for dimension, stride in zip(dimensions, strides, strict=True)]
                writing = [reading[k] for k in written]
                yield _bank_conflicts(writing, width) + _bank_conflicts(reading, width), size, strides

    size, strides = least_conflicts(options())
    return strides, size


def _bank_conflicts(digits: Sequence[tuple[int, int]], width: int) -> int:
    """Return the number of bank conflicts of the first warp, whose threads count (count, stride) digits."""
    together = min(WARP, BANKS * BANK_BYTES // width)
    waits = 0
    for first in range(0, WARP, together):
        offsets = []
        for thread in range(first, first + together):
            rest, offset = thread, 0
            for count, stride in digits:
                rest, digit = divmod(rest, count)
                offset += digit * stride
            if rest:
                break
            offsets.append(offset)
        waits += bank_passes(offsets, width) - 1
    return waits
