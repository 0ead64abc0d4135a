# SPDX-License-Identifier: Apache-2.0
"""Kernels that pack blocks and unpack them.

Where the elements of a block are neighbours, a few threads share it, each with one vector of elements, and agree on
the exponent by exchanging registers; elsewhere one thread has the whole block. Packed tiles are put together in
shared memory, so that codes and scales leave in wide vectors; unpacked elements are stored as they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from ..reference import fill_value
from .axes import Axis, Digit, Growth, combinations
from .block_floats import BLOCK_FLOATS, block_functions
from .kernel import EDGE_THREADS, Job, Kernel, alignment, block_format, vector
from .numbers import raw_type
from .text import LITERALS, Arguments, Literals, Named, declared, decoded, guard, loop, offset, when

__all__ = ["BLOCK_FLOATS", "block_functions", "pack", "unpack"]

WARP = 32


@dataclass(frozen=True, slots=True)
class _Share:
    """What one thread has of a block: so many elements, in vectors of so many; and how many threads share a block."""

    elements: int
    vector: int
    threads: int
    contiguous: bool

    @classmethod
    def of(cls, job: Job, side: int, alone: bool) -> _Share:
        nest, size = job.nest, job.sizes[side]
        block = len(nest.element_offsets)
        whole = nest.element_offsets == tuple([k * size for k in range(block)]) and nest.data_mask == (1 << block) - 1
        if not whole:
            return cls(block, 1, 1, False)
        start = (nest.source_offset, nest.target_offset)[side]
        width = alignment(job.aligned[side], start, *(nest.source, nest.target)[side])
        length = max(1, width // size)
        elements = block if alone else max(length, 4)
        return cls(elements, length, block // elements, True)


def bytes_type(count: int) -> tuple[str, str]:
    """Return the name and definition of a type of so many bytes that can be seen as vectors and integers of any width.

    >>> bytes_type(4)
    ('bytes4', 'typedef union { u8 u8s[4]; u16 u16s[2]; u32 u32s[1]; } bytes4;\\n')
    """
    widths = [width for width in (1, 2, 4, 8, 16) if count % width == 0]
    members = [f"{vector(width)} {vector(width)}s[{count // width}];" for width in widths]
    if count % 8 == 0:
        members.append(f"u64 u64s[{count // 8}];")
    return f"bytes{count}", f"typedef union {{ {' '.join(members)} }} bytes{count};\n"


def pack(job: Job) -> tuple[Kernel, set[str]]:
    """Return the kernel that packs blocks, and the definitions that it needs."""
    nest, element, size = job.nest, block_format(job), job.sizes[0]
    share = _Share.of(job, 0, alone=not job.dialect.shuffles)
    code_bytes = element.block * element.bits // 8
    runs = (element.block * size * share.contiguous, code_bytes, 1)
    growth = Growth(job.axes, order=(0, 1), runs=runs, lean=job.tuning.lean)
    times = max(1, job.tuning.in_flight // (share.elements * size))
    if prod(nest.extents) * share.threads < job.tuning.threads * job.tuning.groups * times:
        times = 1
    # digits of their own for threads and for repeats: the latter are constants once the loop is unrolled
    dealt, repeated = growth.take(max(1, job.tuning.threads // share.threads)), growth.take(times)
    box = list(growth.taken)
    count, repeats = prod(box), combinations(repeated)
    holding = combinations(dealt) * share.threads
    threads = -(-holding // WARP) * WARP
    groups = [*growth.take(job.tuning.cluster), *growth.rest()]
    axes = job.axes

    large = combinations(groups) * threads >= EDGE_THREADS
    numbers = Arguments() if job.tuning.as_arguments and large else LITERALS
    lines, in_group = declared("group", groups, "g", numbers)
    more, in_thread = declared(f"thread / {share.threads}u" if share.threads > 1 else "thread", dealt, "t")
    in_repeat = decoded("r", repeated)
    inside = [*in_thread, *in_repeat]
    body = [*lines, *more]
    elements, first = bytes_type(share.elements * size)
    made, second = bytes_type(share.elements * element.bits // 8)
    # a work-group that is outside as a whole has nothing to do; what only some of its threads lack, they check
    alone = [each for each in in_group if box[each.digit.axis] == 1]
    outside = guard(alone, axes, numbers)
    body += [f"if (!({outside})) return;"] if outside else []
    checked = [each for each in in_group if each not in alone]
    ragged = guard([*checked, *inside], axes, numbers)
    if holding < threads:
        ragged = " && ".join(filter(None, [f"thread < {holding}u", ragged]))
    if nest.data_mask:
        start = offset(in_group, axes, 0, nest.source_offset, numbers)
        own = offset(in_thread, axes, 0, numbers=numbers)
        body.append(f"GLOBAL const u8 *from = source + ({start}) + ({own});")
        body.append(f"{elements} moved[{repeats}];")
        there = offset(in_repeat, axes, 0, numbers=numbers)
        load = [f"GLOBAL const u8 *at = from + ({there});", *_loads(job, share, size)]
        # neighbours exchange registers, so all of them need something in theirs
        clear = (
            loop("k", share.elements * size // 4, ["moved[r].u32s[k] = 0u;"]) if ragged and share.threads > 1 else []
        )
        body += loop("r", repeats, [*clear, *when(ragged, load)])

    order = [k for k in growth.sides[1].order if box[k] > 1]
    slot = _slot(inside, order, box)
    raw = raw_type(size)
    value = f"moved[r].{raw}s[k]"
    value = value if job.plan.source.format.name == "float32" else f"converted({value})"
    lane_values = [f"u32 x[{share.elements}];"]
    if share.contiguous:
        lane_values += loop("k", share.elements, [f"x[k] = {value};"])
    else:
        padding = f"{int.from_bytes(fill_value(job.plan).tobytes(), 'little'):#x}u"
        for k in range(element.block):
            lane_values.append(f"x[{k}] = {value.replace('[k]', f'[{k}]') if nest.data_mask >> k & 1 else padding};")
    four = raw_type(element.bits // 2)  # holds four codes
    codes_of_four = "four_codes(x[4u * k], x[4u * k + 1u], x[4u * k + 2u], x[4u * k + 3u], shared)"
    compute = [
        *lane_values,
        "u32 largest = magnitude(x[0]);",
        *loop("k", share.elements - 1, ["largest = larger(largest, magnitude(x[k + 1u]));"]),
    ]
    step = 1
    while step < share.threads:
        compute.append(f"largest = larger(largest, across(largest, {step}u));")
        step *= 2
    compute += [
        "const u32 shared = largest >> 23;",
        f"{made} y;",
        *loop("k", share.elements // 4, [f"y.{four}s[k] = ({four})dense({codes_of_four});"]),
    ]
    width = share.elements * element.bits // 8
    into = f"slot * {code_bytes // width}u" + (f" + thread % {share.threads}u" if share.threads > 1 else "")
    keep = [
        f"const u32 slot = {slot};",
        f"((LOCAL {vector(width)} *)codes)[{into}] = y.{vector(width)}s[0];",
        *when(
            f"thread % {share.threads}u == 0u" if share.threads > 1 else "",
            ["((LOCAL u8 *)scales)[slot] = (u8)shared;"],
        ),
    ]
    together = when(ragged, [*compute, *keep]) if share.threads == 1 else [*compute, *when(ragged, keep)]
    body += loop("r", repeats, together)
    body.append("BARRIER;")
    body += _flushed(job, in_group, checked, order, box, "codes", 1, code_bytes, threads, numbers)
    body += _flushed(job, in_group, checked, order, box, "scales", 2, 1, threads, numbers)
    arguments = tuple(numbers.values) if isinstance(numbers, Arguments) else ()
    total = "" if arguments else f" {prod(nest.extents)}"
    note = f"pack{total} blocks, {count} in a tile, {share.threads} threads a block"
    shared = (("codes", count * code_bytes), ("scales", count))
    made_of = Kernel(job.name, note, tuple(body), combinations(groups), threads, (), shared, arguments)
    return made_of, {first, second}


def _loads(job: Job, share: _Share, size: int) -> list[str]:
    """Return the statements that load the elements of a thread."""
    if not share.contiguous:
        lanes = [k for k in range(len(job.nest.element_offsets)) if job.nest.data_mask >> k & 1]
        raw = raw_type(size)
        return [f"moved[r].{raw}s[{k}] = LOAD({raw}, at + {job.nest.element_offsets[k]});" for k in lanes]
    width = share.vector * size
    start = f"thread % {share.threads}u * {share.elements * size}u" if share.threads > 1 else "0u"
    load = f"moved[r].{vector(width)}s[k] = LOAD({vector(width)}, at + ({start} + k * {width}u));"
    return loop("k", share.elements // share.vector, [load])


def _slot(inside: Sequence[Named], order: Sequence[int], box: Sequence[int]) -> str:
    """Return the number of a block in the order of the target."""
    below, weight = 1, {}
    for axis in order:
        weight[axis] = below
        below *= box[axis]
    texts = [f"({each.name}) * {weight[each.digit.axis] * each.digit.radix}u" for each in inside]
    return " + ".join(texts) or "0u"


def _flushed(
    job: Job,
    in_group: Sequence[Named],
    checked: Sequence[Named],
    order: Sequence[int],
    box: Sequence[int],
    name: str,
    side: int,
    unit: int,
    threads: int,
    numbers: Literals,
) -> list[str]:
    """Return the statements that store a staged array of `unit` bytes a block, in the widest vectors there are."""
    axes: list[Axis] = job.axes
    start = job.nest.target_offset if side == 1 else job.nest.scale_offset
    run, inner = unit, 0
    for axis in order:
        if axes[axis].steps[side] != run or axes[axis].extent % box[axis]:
            break
        run *= box[axis]
        inner += 1
    outer = [Digit(axis, box[axis], 1) for axis in order[inner:]]
    steps = [axes[each.axis].steps[side] or 0 for each in outer]
    steps += [(axes[each.digit.axis].steps[side] or 0) * each.digit.radix for each in in_group]
    width = gcd(alignment(job.aligned[1], start, *steps), run)
    vectors = run // width
    total = vectors * combinations(outer)
    named = decoded("at" if vectors == 1 else f"at / {vectors}u", outer)
    place = offset(named, axes, side, numbers=numbers)
    if vectors > 1:
        place += f" + (i32)(at % {vectors}u) * {width}"
    kind = vector(width)
    store = [f"STORE({kind}, to + ({place}), ((LOCAL {kind} *){name})[at]);"]
    condition = guard([*checked, *named], axes, numbers)
    if total % threads:
        condition = " && ".join(filter(None, [f"at < {total}u", condition]))
    return [
        "{",
        f"    GLOBAL u8 *to = target + ({offset(in_group, axes, side, start, numbers)});",
        *[
            f"    {line}"
            for line in loop(
                "r", -(-total // threads), [f"const u32 at = thread + r * {threads}u;", *when(condition, store)]
            )
        ],
        "}",
    ]


def unpack(job: Job) -> tuple[Kernel, set[str]]:
    """Return the kernel that unpacks blocks, and the definitions that it needs."""
    nest, element, size = job.nest, block_format(job), job.sizes[1]
    share = _Share.of(job, 1, alone=False)
    code_bytes = element.block * element.bits // 8
    axes = job.axes
    runs = (code_bytes, element.block * size * share.contiguous)
    growth = Growth(axes, order=(0, 1), runs=runs, lean=job.tuning.lean)
    lanes = [Digit(len(axes), share.threads, 1)] if share.threads > 1 else []
    every = [*axes, Axis(share.threads, (share.elements * element.bits // 8, share.elements * size, 0))]
    threads = [*lanes, *growth.take(max(1, job.tuning.threads // share.threads))]
    waiting = prod(growth.left)
    most = max(1, job.tuning.in_flight // (share.elements * size))
    repeats = growth.take(min(most, waiting // job.tuning.groups)) if waiting > job.tuning.groups else []
    groups = [*growth.take(job.tuning.cluster), *growth.rest()]
    lines, in_group = declared("group", groups, "g")
    more, in_thread = declared("thread", threads, "t")
    in_repeat = decoded("r", repeats)
    condition = guard([*in_group, *in_thread, *in_repeat], every)
    count = combinations(repeats)

    width = share.elements * element.bits // 8
    piece = gcd(alignment(job.aligned[0], nest.source_offset, *nest.source), width)
    packed, first = bytes_type(width)
    values, second = bytes_type(share.elements * size)
    raw = raw_type(size)
    body = [*lines, *more]
    for name, base, side, start in (
        ("from", "source", 0, nest.source_offset),
        ("scale", "source", 2, nest.scale_offset),
        ("to", "target", 1, nest.target_offset),
    ):
        kind = "GLOBAL u8 *" if side == 1 else "GLOBAL const u8 *"
        place = offset(in_group, every, side, start)
        body.append(f"{kind}{name} = {base} + ({place}) + ({offset(in_thread, every, side)});")
    body += [f"{packed} x[{count}];", f"u32 shared[{count}];"]
    load = [
        f"shared[r] = LOAD(u8, scale + ({offset(in_repeat, every, 2)}));",
        f"GLOBAL const u8 *at = from + ({offset(in_repeat, every, 0)});",
        *loop("k", width // piece, [f"x[r].{vector(piece)}s[k] = LOAD({vector(piece)}, at + k * {piece}u);"]),
    ]
    body += loop("r", count, when(condition, load))
    unit = raw_type(element.bits // 2)
    made = "value_of(four, k, shared[r])"
    made = made if job.plan.target.format.name == "float32" else f"converted({made})"
    make = [
        f"{values} y;",
        *loop(
            "j",
            share.elements // 4,
            [f"const u32 four = sparse(x[r].{unit}s[j]);", *loop("k", 4, [f"y.{raw}s[4u * j + k] = {made};"])],
        ),
        f"GLOBAL u8 *at = to + ({offset(in_repeat, every, 1)});",
    ]
    if share.contiguous:
        wide = share.vector * size
        kind = vector(wide)
        make += loop("k", share.elements // share.vector, [f"STORE({kind}, at + k * {wide}u, y.{kind}s[k]);"])
    else:
        make += [
            f"STORE({raw}, at + {lane}, y.{raw}s[{k}]);" for k, lane in enumerate(nest.element_offsets) if nest.data_mask >> k & 1
        ]
    body += loop("r", count, when(condition, make))
    note = f"unpack {prod(nest.extents)} blocks, {share.threads} threads a block, {count} times a thread"
    group_size = combinations(threads)
    return Kernel(job.name, note, tuple(body), combinations(groups), group_size), {first, second}
