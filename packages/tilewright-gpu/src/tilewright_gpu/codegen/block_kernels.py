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

from tilewright.copying import fill_value
from tilewright.formats import BlockFormat, Format, PowerOfTwo, bfloat16, float32

from .c_code import (
    BoxGrowth,
    Digit,
    LoopAxis,
    NamedDigit,
    conditional,
    counts_specials,
    declare_digits,
    digit_combinations,
    digit_expressions,
    guard_expression,
    indent,
    offset_expression,
    raw_type,
    shared_loop,
    unrolled_loop,
)
from .kernel import WARP, WIDEST, Kernel, KernelJob, common_alignment, vector_type


@dataclass(frozen=True, slots=True)
class _ThreadShare:
    """One thread's part of a block: `elements` in vectors of `vector`; `threads` threads share a block.

    The elements of a block are contiguous in runs of `run`, `stride` bytes apart: one run, or a row of each face.
    """

    elements: int
    vector: int
    threads: int
    run: int
    stride: int

    @classmethod
    def of(cls, job: KernelJob, side: int, alone: bool) -> _ThreadShare:
        nest, size = job.nest, job.sizes[side]
        offsets = nest.element_offsets
        block = len(offsets)
        run = next((k for k in range(1, block) if offsets[k] != k * size), block)
        stride = offsets[run] if run < block else 0
        regular = offsets == tuple([k // run * stride + k % run * size for k in range(block)])
        if not regular or run % 4 or block % run or nest.data_mask != (1 << block) - 1:
            return cls(block, 1, 1, 1, 0)
        start = (nest.source_offset, nest.target_offset)[side]
        width = common_alignment(job.aligned[side], start, stride, *(nest.source, nest.target)[side])
        length = gcd(run, max(1, width // size))
        elements = block if alone else min(run, max(length, 4))
        return cls(elements, length, block // elements, run, stride)

    @property
    def contiguous(self) -> bool:
        """Whether the elements are accessed in vectors."""
        return self.run > 1

    def axes(self, size: int, code_bytes: int) -> list[LoopAxis]:
        """Return the axes of the threads of a block, in a run and over the runs, with strides in codes and elements."""
        per_run = max(1, self.run // self.elements)
        return [
            LoopAxis(per_run, (code_bytes, self.elements * size, 0)),
            LoopAxis(self.threads // per_run, (code_bytes * per_run, self.stride, 0)),
        ]

    def offset(self, index: str, size: int) -> str:
        """Return the offset in bytes of the vector `index` of a thread from its first one."""
        per_run = self.run // self.vector
        if self.elements <= self.run:
            return f"{index} * {self.vector * size}u"
        return f"(i32)({index} / {per_run}u) * {self.stride} + (i32)({index} % {per_run}u) * {self.vector * size}"


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
    # the scale of a small float takes several instructions, which threads that share a block would repeat
    share = _ThreadShare.of(job, 0, alone=not job.dialect.shuffles or not isinstance(element.scale, PowerOfTwo))
    code_bytes = element.block * element.bits // 8
    runs = (share.run * size * share.contiguous, code_bytes, 1)
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

    lines, in_group = declare_digits("group", groups, "g")
    more, in_thread = declare_digits(f"thread / {share.threads}u" if share.threads > 1 else "thread", dealt, "t")
    in_repeat = digit_expressions("r", repeated)
    inside = [*in_thread, *in_repeat]
    body = [*lines, *more]
    elements, first = bytes_type(share.elements * size)
    codes, second = bytes_type(share.elements * element.bits // 8)
    # a work-group that is entirely outside returns; otherwise its threads check their own digits
    alone = [digit for digit in in_group if box[digit.digit.axis] == 1]
    outside = guard_expression(alone, axes)
    body += [f"if (!({outside})) return;"] if outside else []
    checked = [digit for digit in in_group if digit not in alone]
    ragged = guard_expression([*checked, *inside], axes)
    if holding < threads:
        ragged = " && ".join(filter(None, [f"thread < {holding}u", ragged]))
    if nest.data_mask:
        start = offset_expression(in_group, axes, 0, nest.source_offset)
        own = offset_expression(in_thread, axes, 0)
        body.append(f"GLOBAL const u8 *from = source + ({start}) + ({own});")
        body.append(f"{elements} moved[{repeats}];")
        there = offset_expression(in_repeat, axes, 0)
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
    pairs = share.contiguous and job.source.format == bfloat16
    compute = [
        *([] if pairs else _element_values(job, share)),
        *_largest_magnitude(element, share, pairs),
        f"{codes} y;",
        *_code_statements(element.bits, share.elements, pairs),
    ]
    width = share.elements * element.bits // 8
    unit = gcd(width, WIDEST)
    into = f"slot * {code_bytes // unit}u" + (
        f" + thread % {share.threads}u * {width // unit}u" if share.threads > 1 else ""
    )
    keep = [
        f"const u32 slot = {slot};",
        *unrolled_loop(
            "k",
            width // unit,
            [f"((LOCAL {vector_type(unit)} *)codes)[{into} + k] = y.{vector_type(unit)}s[k];"],
        ),
        *conditional(
            f"thread % {share.threads}u == 0u" if share.threads > 1 else "",
            ["((LOCAL u8 *)scales)[slot] = (u8)shared;"],
        ),
    ]
    together = conditional(ragged, [*compute, *keep]) if share.threads == 1 else [*compute, *conditional(ragged, keep)]
    body += unrolled_loop("r", repeats, together)
    body.append("BARRIER;")
    body += _flush_statements(job, in_group, checked, order, box, "codes", 1, code_bytes, threads)
    body += _flush_statements(job, in_group, checked, order, box, "scales", 2, 1, threads)
    note = f"pack {prod(nest.extents)} blocks, {count} per tile, {share.threads} threads per block"
    shared = (("codes", count * code_bytes), ("scales", count))
    made_of = Kernel(job.name, note, tuple(body), digit_combinations(groups), threads, (), shared)
    return made_of, {first, second}


def _element_values(job: KernelJob, share: _ThreadShare) -> list[str]:
    """Return the statements that declare `x`, the elements of a thread as bits of float32; padding gets its value."""
    raw, nest = raw_type(job.sizes[0]), job.nest
    value = "{}" if job.source.format == float32 else "converted({})"
    if share.contiguous:
        load = [f"x[k] = {value.format(f'moved[r].{raw}s[k]')};"]
        return [f"u32 x[{share.elements}];", *unrolled_loop("k", share.elements, load)]
    padding = f"{int.from_bytes(fill_value(job.source, job.target).tobytes(), 'little'):#x}u"
    values = [
        value.format(f"moved[r].{raw}s[{k}]") if nest.data_mask >> k & 1 else padding
        for k in range(len(nest.element_offsets))
    ]
    return [f"u32 x[{share.elements}];", *[f"x[{k}] = {text};" for k, text in enumerate(values)]]


def _largest_magnitude(element: BlockFormat, share: _ThreadShare, pairs: bool) -> list[str]:
    """Return the statements that declare `shared`, the scale of a block, from the largest magnitude of its elements."""
    distances = [1 << k for k in range(share.threads.bit_length() - 1)]
    exchange = [f"largest = larger(largest, across(largest, {distance}u));" for distance in distances]
    if pairs:
        words, word = share.elements // 2, "moved[r].u32s[{}]"
        lines = [
            f"u32 both = {word.format(0)} & 0x7fff7fffu;",
            *unrolled_loop("k", words - 1, [f"both = larger_pairs(both, {word.format('k + 1u')} & 0x7fff7fffu);"]),
            "u32 largest = larger(low_half(both), high_half(both));",
        ]
        counts = [f"counted({half}({word.format('k')}))" for half in ("low_half", "high_half")]
    else:
        words = share.elements
        lines = [
            "u32 largest = x[0] & 0x7fffffffu;",
            *unrolled_loop("k", words - 1, ["largest = larger(largest, x[k + 1u] & 0x7fffffffu);"]),
        ]
        counts = ["counted(x[k])"]
    lines += exchange
    if not counts_specials(element):
        return [*lines, "const u32 shared = scale_of(largest);"]
    is_special = "any_thread(special)" if share.threads > 1 else "special"  # threads exchange registers all together
    recount = ["largest = 0u;", *unrolled_loop("k", words, [f"largest = larger(largest, {n});" for n in counts])]
    return [
        *lines,
        "const u32 special = largest >= 0x7f800000u;",
        *conditional(is_special, [*recount, *exchange]),
        "const u32 shared = scale_of(largest) | special << 8;",
    ]


def _code_statements(bits: int, elements: int, pairs: bool) -> list[str]:
    """Return the statements that put the codes of a thread into `y`, four at a time."""
    if pairs:
        codes = "four_codes_of_pairs(moved[r].u32s[2u * k], moved[r].u32s[2u * k + 1u], shared)"
    else:
        codes = "four_codes(x[4u * k], x[4u * k + 1u], x[4u * k + 2u], x[4u * k + 3u], shared)"
    if bits == 6:  # three bytes
        put = [f"const u32 w = dense({codes});"]
        put += [f"y.u8s[3u * k + {n}u] = (u8)(w >> {8 * n});" for n in range(3)]
    else:
        put = [f"y.{raw_type(bits // 2)}s[k] = ({raw_type(bits // 2)})dense({codes});"]
    return unrolled_loop("k", elements // 4, put)


def _load_statements(job: KernelJob, share: _ThreadShare, size: int) -> list[str]:
    """Return the statements that load the elements of one thread."""
    if not share.contiguous:
        present = [k for k in range(len(job.nest.element_offsets)) if job.nest.data_mask >> k & 1]
        raw = raw_type(size)
        return [f"moved[r].{raw}s[{k}] = LOAD({raw}, at + {job.nest.element_offsets[k]});" for k in present]
    width = share.vector * size
    digits = [Digit(k, axis.extent, 1) for k, axis in enumerate(share.axes(size, 0))]
    own = offset_expression(digit_expressions(f"thread % {share.threads}u", digits), share.axes(size, 0), 1)
    start = f"({own}) + " if share.threads > 1 else ""
    load = f"moved[r].{vector_type(width)}s[k] = LOAD({vector_type(width)}, at + ({start}{share.offset('k', size)}));"
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
) -> list[str]:
    """Return the statements that store an array in shared memory with `unit` bytes per block, in the widest vectors."""
    axes: list[LoopAxis] = job.axes
    start = job.nest.target_offset if side == 1 else job.nest.scale_offset
    run, inner = unit, 0
    for axis in order:
        if axes[axis].strides[side] != run or axes[axis].extent % box[axis]:
            break
        run *= box[axis]
        inner += 1
    outer = [Digit(axis, box[axis], 1) for axis in order[inner:]]
    strides = [axes[digit.axis].strides[side] or 0 for digit in outer]
    strides += [(axes[digit.digit.axis].strides[side] or 0) * digit.digit.radix for digit in in_group]
    width = gcd(common_alignment(job.aligned[1], start, *strides), run)
    vectors = run // width
    total = vectors * digit_combinations(outer)
    named = digit_expressions("at" if vectors == 1 else f"at / {vectors}u", outer)
    offset = offset_expression(named, axes, side)
    if vectors > 1:
        offset += f" + (i32)(at % {vectors}u) * {width}"
    c_type = vector_type(width)
    store = [f"STORE({c_type}, to + ({offset}), ((LOCAL {c_type} *){name})[at]);"]
    condition = guard_expression([*checked, *named], axes)
    place_of_group = offset_expression(in_group, axes, side, start)
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
    runs = (code_bytes, share.run * size * share.contiguous)
    growth = BoxGrowth(axes, order=(0, 1), runs=runs, lean=job.tuning.lean)
    all_axes = [*axes, *share.axes(size, share.elements * element.bits // 8)]
    in_block = [Digit(k, all_axes[k].extent, 1) for k in range(len(axes), len(all_axes)) if all_axes[k].extent > 1]
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
        c_type = "GLOBAL u8 *" if side == 1 else "GLOBAL const u8 *"
        offset = offset_expression(in_group, all_axes, side, start)
        body.append(f"{c_type}{name} = {base} + ({offset}) + ({offset_expression(in_thread, all_axes, side)});")
    body += [f"{packed} x[{count}];", f"u32 shared[{count}];"]
    load = [
        f"shared[r] = LOAD(u8, scale + ({offset_expression(in_repeat, all_axes, 2)}));",
        f"GLOBAL const u8 *at = from + ({offset_expression(in_repeat, all_axes, 0)});",
        *unrolled_loop(
            "k", width // piece, [f"x[r].{vector_type(piece)}s[k] = LOAD({vector_type(piece)}, at + k * {piece}u);"]
        ),
    ]
    body += unrolled_loop("r", count, conditional(condition, load))
    make = [
        f"{values} y;",
        *unrolled_loop("j", share.elements // 4, _value_statements(element.bits, job.target.format, raw)),
        f"GLOBAL u8 *at = to + ({offset_expression(in_repeat, all_axes, 1)});",
    ]
    if share.contiguous:
        wide = share.vector * size
        c_type = vector_type(wide)
        store = f"STORE({c_type}, at + ({share.offset('k', size)}), y.{c_type}s[k]);"
        make += unrolled_loop("k", share.elements // share.vector, [store])
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


def _value_statements(bits: int, target: Format, raw: str) -> list[str]:
    """Return the statements that put the values of the four codes `j` of a thread into `y`."""
    packed = f"x[r].{raw_type(bits // 2)}s[j]" if bits != 6 else ""
    if bits == 6:
        packed = " | ".join(f"(u32)x[r].u8s[3u * j + {n}u] << {8 * n}" for n in range(3))
    convert = "{}" if target == float32 else "converted({})"
    unusual = convert.format("value((four >> 8u * k) & 0xffu, shared[r])")
    usual = [f"y.{raw}s[4u * j + k] = {convert.format('usual_value(four, k, shared[r])')};"]
    count = 1
    if target == bfloat16:  # the upper halves of the float32 are exact
        count, value = 2, "usual_value(four, {}, shared[r])"
        usual = [f"y.u32s[2u * j + k] = high_halves({value.format('2u * k')}, {value.format('2u * k + 1u')});"]
    return [
        f"const u32 four = sparse({packed});",
        "if (usual_codes(four, shared[r])) {",
        *indent(unrolled_loop("k", 4 // count, usual)),
        "} else {",
        *indent(unrolled_loop("k", 4, [f"y.{raw}s[4u * j + k] = {unusual};"])),
        "}",
    ]
