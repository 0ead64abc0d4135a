# SPDX-License-Identifier: Apache-2.0
"""Kernels that pack blocks and unpack them.

If the elements of a block are contiguous, a few threads share it, each with one vector of elements, and agree on
the exponent by exchanging registers; elsewhere one thread has the whole block. Packed tiles are put together in
shared memory, so that codes and scales leave in wide vectors; unpacked elements are stored as they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from ..placement import fill_value
from .c_arithmetic import raw_type
from .c_language import (
    LITERALS,
    Arguments,
    Literals,
    NamedDigit,
    conditional,
    declare_digits,
    digit_expressions,
    guard_expression,
    indent,
    offset_expression,
    shared_loop,
    unrolled_loop,
)
from .kernel import EDGE_THREADS, Kernel, KernelJob, common_alignment, vector_type
from .thread_mapping import BoxGrowth, Digit, LoopAxis, digit_combinations

WARP = 32


@dataclass(frozen=True, slots=True)
class _ThreadShare:
    """What one thread processes of a block: `elements` in vectors of `vector`; `threads` threads share a block."""

    elements: int
    vector: int
    threads: int
    contiguous: bool

    @classmethod
    def of(cls, job: KernelJob, side: int, alone: bool) -> _ThreadShare:
        nest, size = job.nest, job.sizes[side]
        block = len(nest.element_offsets)
        whole = nest.element_offsets == tuple([k * size for k in range(block)]) and nest.data_mask == (1 << block) - 1
        if not whole:
            return cls(block, 1, 1, False)
        start = (nest.source_offset, nest.target_offset)[side]
        width = common_alignment(job.aligned[side], start, *(nest.source, nest.target)[side])
        length = max(1, width // size)
        elements = block if alone else max(length, 4)
        return cls(elements, length, block // elements, True)


def bytes_type(count: int) -> tuple[str, str]:
    """Return name and definition of a union of `count` bytes, vectors and integers of any width.

    >>> bytes_type(4)
    ('bytes4', 'typedef union { u8 u8s[4]; u16 u16s[2]; u32 u32s[1]; } bytes4;\\n')
    """
    widths = [width for width in (1, 2, 4, 8, 16) if count % width == 0]
    members = [f"{vector_type(width)} {vector_type(width)}s[{count // width}];" for width in widths]
    if count % 8 == 0:
        members.append(f"u64 u64s[{count // 8}];")
    return f"bytes{count}", f"typedef union {{ {' '.join(members)} }} bytes{count};\n"


def make_pack_kernel(job: KernelJob) -> tuple[Kernel, set[str]]:
    """Return the kernel that packs blocks, and the type definitions that it needs."""
    nest, element, size = job.nest, job.block_format, job.sizes[0]
    share = _ThreadShare.of(job, 0, alone=not job.dialect.shuffles)
    code_bytes = element.block * element.bits // 8
    runs = (element.block * size * share.contiguous, code_bytes, 1)
    growth = BoxGrowth(job.axes, order=(0, 1), runs=runs, lean=job.tuning.lean)
    times = max(1, job.tuning.in_flight // (share.elements * size))
    if prod(nest.extents) * share.threads < job.tuning.threads * job.tuning.groups * times:
        times = 1
    # separate digits for threads and repeats: repeats are constants once the loop is unrolled
    dealt, repeated = growth.take(max(1, job.tuning.threads // share.threads)), growth.take(times)
    box = list(growth.taken)
    count, repeats = prod(box), digit_combinations(repeated)
    holding = digit_combinations(dealt) * share.threads
    threads = -(-holding // WARP) * WARP
    groups = [*growth.take(job.tuning.cluster), *growth.rest()]
    axes = job.axes

    large = digit_combinations(groups) * threads >= EDGE_THREADS
    numbers = Arguments() if job.tuning.as_arguments and large else LITERALS
    lines, in_group = declare_digits("group", groups, "g", numbers)
    more, in_thread = declare_digits(f"thread / {share.threads}u" if share.threads > 1 else "thread", dealt, "t")
    in_repeat = digit_expressions("r", repeated)
    inside = [*in_thread, *in_repeat]
    body = [*lines, *more]
    elements, first = bytes_type(share.elements * size)
    made, second = bytes_type(share.elements * element.bits // 8)
    # a work-group that is entirely outside returns; otherwise its threads check their own digits
    alone = [digit for digit in in_group if box[digit.digit.axis] == 1]
    outside = guard_expression(alone, axes, numbers)
    body += [f"if (!({outside})) return;"] if outside else []
    checked = [digit for digit in in_group if digit not in alone]
    ragged = guard_expression([*checked, *inside], axes, numbers)
    if holding < threads:
        ragged = " && ".join(filter(None, [f"thread < {holding}u", ragged]))
    if nest.data_mask:
        start = offset_expression(in_group, axes, 0, nest.source_offset, numbers)
        own = offset_expression(in_thread, axes, 0, numbers=numbers)
        body.append(f"GLOBAL const u8 *from = source + ({start}) + ({own});")
        body.append(f"{elements} moved[{repeats}];")
        there = offset_expression(in_repeat, axes, 0, numbers=numbers)
        load = [f"GLOBAL const u8 *at = from + ({there});", *_load_statements(job, share, size)]
        # threads exchange registers, so all of them need a value
        clear = (
            unrolled_loop("k", share.elements * size // 4, ["moved[r].u32s[k] = 0u;"])
            if ragged and share.threads > 1
            else []
        )
        body += unrolled_loop("r", repeats, [*clear, *conditional(ragged, load)])

    order = [k for k in growth.sides[1].order if box[k] > 1]
    slot = _slot_expression(inside, order, box)
    raw = raw_type(size)
    value = f"moved[r].{raw}s[k]"
    value = value if job.source.format.name == "float32" else f"converted({value})"
    element_values = [f"u32 x[{share.elements}];"]
    if share.contiguous:
        element_values += unrolled_loop("k", share.elements, [f"x[k] = {value};"])
    else:
        padding = f"{int.from_bytes(fill_value(job.source, job.target).tobytes(), 'little'):#x}u"
        for k in range(element.block):
            element_values.append(f"x[{k}] = {value.replace('[k]', f'[{k}]') if nest.data_mask >> k & 1 else padding};")
    four = raw_type(element.bits // 2)  # holds four codes
    codes_of_four = "four_codes(x[4u * k], x[4u * k + 1u], x[4u * k + 2u], x[4u * k + 3u], shared)"
    compute = [
        *element_values,
        "u32 largest = magnitude(x[0]);",
        *unrolled_loop("k", share.elements - 1, ["largest = larger(largest, magnitude(x[k + 1u]));"]),
    ]
    step = 1
    while step < share.threads:
        compute.append(f"largest = larger(largest, across(largest, {step}u));")
        step *= 2
    compute += [
        "const u32 shared = largest >> 23;",
        f"{made} y;",
        *unrolled_loop("k", share.elements // 4, [f"y.{four}s[k] = ({four})dense({codes_of_four});"]),
    ]
    width = share.elements * element.bits // 8
    into = f"slot * {code_bytes // width}u" + (f" + thread % {share.threads}u" if share.threads > 1 else "")
    keep = [
        f"const u32 slot = {slot};",
        f"((LOCAL {vector_type(width)} *)codes)[{into}] = y.{vector_type(width)}s[0];",
        *conditional(
            f"thread % {share.threads}u == 0u" if share.threads > 1 else "",
            ["((LOCAL u8 *)scales)[slot] = (u8)shared;"],
        ),
    ]
    together = conditional(ragged, [*compute, *keep]) if share.threads == 1 else [*compute, *conditional(ragged, keep)]
    body += unrolled_loop("r", repeats, together)
    body.append("BARRIER;")
    body += _flush_statements(job, in_group, checked, order, box, "codes", 1, code_bytes, threads, numbers)
    body += _flush_statements(job, in_group, checked, order, box, "scales", 2, 1, threads, numbers)
    arguments = tuple(numbers.values) if isinstance(numbers, Arguments) else ()
    total = "" if arguments else f" {prod(nest.extents)}"
    note = f"pack{total} blocks, {count} per tile, {share.threads} threads per block"
    shared = (("codes", count * code_bytes), ("scales", count))
    made_of = Kernel(job.name, note, tuple(body), digit_combinations(groups), threads, (), shared, arguments)
    return made_of, {first, second}


def _load_statements(job: KernelJob, share: _ThreadShare, size: int) -> list[str]:
    """Return the statements that load the elements of one thread."""
    if not share.contiguous:
        present = [k for k in range(len(job.nest.element_offsets)) if job.nest.data_mask >> k & 1]
        raw = raw_type(size)
        return [f"moved[r].{raw}s[{k}] = LOAD({raw}, at + {job.nest.element_offsets[k]});" for k in present]
    width = share.vector * size
    start = f"thread % {share.threads}u * {share.elements * size}u" if share.threads > 1 else "0u"
    load = f"moved[r].{vector_type(width)}s[k] = LOAD({vector_type(width)}, at + ({start} + k * {width}u));"
    return unrolled_loop("k", share.elements // share.vector, [load])


def _slot_expression(inside: Sequence[NamedDigit], order: Sequence[int], box: Sequence[int]) -> str:
    """Return the expression of the position of a block in target order."""
    below, weight = 1, {}
    for axis in order:
        weight[axis] = below
        below *= box[axis]
    texts = [f"({digit.name}) * {weight[digit.digit.axis] * digit.digit.radix}u" for digit in inside]
    return " + ".join(texts) or "0u"


def _flush_statements(
    job: KernelJob,
    in_group: Sequence[NamedDigit],
    checked: Sequence[NamedDigit],
    order: Sequence[int],
    box: Sequence[int],
    name: str,
    side: int,
    unit: int,
    threads: int,
    numbers: Literals,
) -> list[str]:
    """Return the statements that store an array in shared memory with `unit` bytes per block, in the widest vectors."""
    axes: list[LoopAxis] = job.axes
    start = job.nest.target_offset if side == 1 else job.nest.scale_offset
    run, inner = unit, 0
    for axis in order:
        if axes[axis].steps[side] != run or axes[axis].extent % box[axis]:
            break
        run *= box[axis]
        inner += 1
    outer = [Digit(axis, box[axis], 1) for axis in order[inner:]]
    steps = [axes[digit.axis].steps[side] or 0 for digit in outer]
    steps += [(axes[digit.digit.axis].steps[side] or 0) * digit.digit.radix for digit in in_group]
    width = gcd(common_alignment(job.aligned[1], start, *steps), run)
    vectors = run // width
    total = vectors * digit_combinations(outer)
    named = digit_expressions("at" if vectors == 1 else f"at / {vectors}u", outer)
    place = offset_expression(named, axes, side, numbers=numbers)
    if vectors > 1:
        place += f" + (i32)(at % {vectors}u) * {width}"
    kind = vector_type(width)
    store = [f"STORE({kind}, to + ({place}), ((LOCAL {kind} *){name})[at]);"]
    condition = guard_expression([*checked, *named], axes, numbers)
    place_of_group = offset_expression(in_group, axes, side, start, numbers)
    return [
        "{",
        *indent([f"GLOBAL u8 *to = target + ({place_of_group});", *shared_loop("r", total, threads, condition, store)]),
        "}",
    ]


def make_unpack_kernel(job: KernelJob) -> tuple[Kernel, set[str]]:
    """Return the kernel that unpacks blocks, and the type definitions that it needs."""
    nest, element, size = job.nest, job.block_format, job.sizes[1]
    share = _ThreadShare.of(job, 1, alone=False)
    code_bytes = element.block * element.bits // 8
    axes = job.axes
    runs = (code_bytes, element.block * size * share.contiguous)
    growth = BoxGrowth(axes, order=(0, 1), runs=runs, lean=job.tuning.lean)
    in_block = [Digit(len(axes), share.threads, 1)] if share.threads > 1 else []
    all_axes = [*axes, LoopAxis(share.threads, (share.elements * element.bits // 8, share.elements * size, 0))]
    threads = [*in_block, *growth.take(max(1, job.tuning.threads // share.threads))]
    waiting = prod(growth.left)
    most = max(1, job.tuning.in_flight // (share.elements * size))
    repeats = growth.take(min(most, waiting // job.tuning.groups)) if waiting > job.tuning.groups else []
    groups = [*growth.take(job.tuning.cluster), *growth.rest()]
    lines, in_group = declare_digits("group", groups, "g")
    more, in_thread = declare_digits("thread", threads, "t")
    in_repeat = digit_expressions("r", repeats)
    condition = guard_expression([*in_group, *in_thread, *in_repeat], all_axes)
    count = digit_combinations(repeats)

    width = share.elements * element.bits // 8
    piece = gcd(common_alignment(job.aligned[0], nest.source_offset, *nest.source), width)
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
        place = offset_expression(in_group, all_axes, side, start)
        body.append(f"{kind}{name} = {base} + ({place}) + ({offset_expression(in_thread, all_axes, side)});")
    body += [f"{packed} x[{count}];", f"u32 shared[{count}];"]
    load = [
        f"shared[r] = LOAD(u8, scale + ({offset_expression(in_repeat, all_axes, 2)}));",
        f"GLOBAL const u8 *at = from + ({offset_expression(in_repeat, all_axes, 0)});",
        *unrolled_loop(
            "k", width // piece, [f"x[r].{vector_type(piece)}s[k] = LOAD({vector_type(piece)}, at + k * {piece}u);"]
        ),
    ]
    body += unrolled_loop("r", count, conditional(condition, load))
    unit = raw_type(element.bits // 2)
    made = "value_of(four, k, shared[r])"
    made = made if job.target.format.name == "float32" else f"converted({made})"
    make = [
        f"{values} y;",
        *unrolled_loop(
            "j",
            share.elements // 4,
            [f"const u32 four = sparse(x[r].{unit}s[j]);", *unrolled_loop("k", 4, [f"y.{raw}s[4u * j + k] = {made};"])],
        ),
        f"GLOBAL u8 *at = to + ({offset_expression(in_repeat, all_axes, 1)});",
    ]
    if share.contiguous:
        wide = share.vector * size
        kind = vector_type(wide)
        make += unrolled_loop("k", share.elements // share.vector, [f"STORE({kind}, at + k * {wide}u, y.{kind}s[k]);"])
    else:
        make += [
            f"STORE({raw}, at + {start}, y.{raw}s[{k}]);"
            for k, start in enumerate(nest.element_offsets)
            if nest.data_mask >> k & 1
        ]
    body += unrolled_loop("r", count, conditional(condition, make))
    note = f"unpack {prod(nest.extents)} blocks, {share.threads} threads per block, {count} blocks per thread"
    group_size = digit_combinations(threads)
    return Kernel(job.name, note, tuple(body), digit_combinations(groups), group_size), {first, second}
