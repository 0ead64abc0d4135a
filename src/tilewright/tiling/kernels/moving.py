# SPDX-License-Identifier: Apache-2.0
"""Imports and exports of tiles in C: between the memory of a device and the local memory of a work-group.

OpenCL copies the rows that are inside with `async_work_group_copy`, and threads fill in what lies around them. In CUDA
each thread starts copies of up to 16 bytes with `cp.async`, which land while another tile is computed.
"""

from __future__ import annotations

from ...copying.codegen.c_language import indent
from ...copying.codegen.kernel import vector_type
from .operand import Operand

# Every import and export has an event, also one that has nothing to copy: its event is that of a byte nobody looks at.
OPENCL_WORDS = """\
#pragma OPENCL FP_CONTRACT OFF
#define THREADS ((u32)get_local_size(0))
#define GROUPS ((u32)get_num_groups(0))
"""

CUDA_WORDS = """\
#define THREADS blockDim.x
#define GROUPS gridDim.x
#if __CUDA_ARCH__ >= 800
INLINE u32 shared_place(const void *place) { return (u32)__cvta_generic_to_shared(place); }
INLINE u64 global_place(const void *place) { return (u64)__cvta_generic_to_global(place); }
#define COPY_ASYNC(cache, bytes, to, from) \\
    asm volatile("cp.async." cache ".shared.global [%0], [%1], %2;" \\
                 :: "r"(shared_place(to)), "l"(global_place(from)), "n"(bytes) : "memory")
#define COPY_ASYNC_4(to, from) COPY_ASYNC("ca", 4, to, from)
#define COPY_ASYNC_8(to, from) COPY_ASYNC("ca", 8, to, from)
#define COPY_ASYNC_16(to, from) COPY_ASYNC("cg", 16, to, from)
#define STARTED asm volatile("cp.async.commit_group;" ::: "memory")
#define ARRIVED(waiting) asm volatile("cp.async.wait_group %0;" :: "n"(waiting) : "memory")
#else  // devices that copy through registers
#define COPY_ASYNC_4(to, from) (*(u32 *)(to) = *(const u32 *)(from))
#define COPY_ASYNC_8(to, from) (*(v8 *)(to) = *(const v8 *)(from))
#define COPY_ASYNC_16(to, from) (*(v16 *)(to) = *(const v16 *)(from))
#define STARTED
#define ARRIVED(waiting)
#endif
"""

# Where position x of an axis of n elements is read, as in numpy.pad.
_NEAR = {
    "edge": ["return x < 0 ? 0 : x < n ? x : n - 1;"],
    "wrap": ["const {index} phase = x % n;", "return phase < 0 ? phase + n : phase;"],
    "symmetric": [
        "const {index} phase = x % (2 * n), up = phase < 0 ? phase + 2 * n : phase;",
        "return up < n ? up : 2 * n - 1 - up;",
    ],
    "reflect": [
        "if (n == 1) return 0;",
        "const {index} phase = x % (2 * n - 2), up = phase < 0 ? phase + 2 * n - 2 : phase;",
        "return up < n ? up : 2 * n - 2 - up;",
    ],
}


def element(operand: Operand) -> list[str]:
    """Return the function that gives any element of an input, also one that lies outside: then what is around."""
    name, raw, rank = operand.name, operand.raw, operand.rank
    xs = [f"x{k}" for k in range(rank)]
    head = f"INLINE {raw} {name}_element(GLOBAL const u8 *memory, {', '.join(f'{operand.index} {x}' for x in xs)}) {{"
    load = f"return *(GLOBAL const {raw} *)(memory + ({operand.place(xs)}));"
    if not operand.reaches_out:
        return [head, f"    {load}", "}"]
    if isinstance(operand.fill, str):
        near = f"INLINE {operand.index} {name}_near({operand.index} x, {operand.index} n) {{"
        turned = [f"    x{k} = {name}_near(x{k}, {n});" for k, n in enumerate(operand.tiler.space)]
        found = indent([line.format(index=operand.index) for line in _NEAR[operand.fill]])
        return [near, *found, "}", head, *turned, f"    {load}", "}"]
    value = f"({raw})0x{int.from_bytes(operand.fill or b'', 'little'):x}"
    return [head, f"    if ({operand.inside(xs)}) {load}", f"    return {value};", "}"]


def imported(operand: Operand, dialect: str) -> list[str]:
    """Return the functions that import a tile of an input into a room."""
    return [*element(operand), *(_import_rows(operand) if dialect == "opencl" else _import_pieces(operand))]


def exported(operand: Operand, dialect: str) -> list[str]:
    """Return the function that exports a tile of an output from a room, less what lies outside."""
    return _export_rows(operand) if dialect == "opencl" else _export_pieces(operand)


def _rows(operand: Operand, copy: str) -> list[str]:
    """Return loops over the rows of a tile that are inside the space, each with one copy, and a dummy for none."""
    rank, index = operand.rank, operand.index
    lines = []
    for k, n in enumerate(operand.tiler.space):
        end = f"box.at{k} + ({index})box.n{k}"
        lines.append(f"const {index} low{k} = box.at{k} > 0 ? box.at{k} : 0, high{k} = {end} < {n} ? {end} : {n};")
    last = rank - 1
    body = [copy]
    for k in reversed(range(last)):
        body = [f"for ({index} x{k} = low{k}; x{k} < high{k}; ++x{k}) {{", *indent(body), "}"]
    some = " && ".join(f"low{k} < high{k}" for k in range(rank))
    nothing = "under_way = async_work_group_copy((LOCAL u8 *)spare, (GLOBAL const u8 *)memory, 1, under_way);"
    return [*lines, f"if ({some}) {{", *indent(body), "} else {", f"    {nothing}", "}"]


def _row_copy(operand: Operand, exporting: bool) -> str:
    """Return the copy of one row: of neighbours, by strides, or by hand where strides are not positive."""
    last = operand.rank - 1
    xs = [*[f"x{k}" for k in range(last)], f"low{last}"]
    slot = operand.slot([f"(u32)({x} - box.at{k})" for k, x in enumerate(xs)])
    const = "" if exporting else "const "
    far = f"(GLOBAL {const}{operand.raw} *)(memory + ({operand.place(xs)}))"
    near, count = f"room + ({slot})", f"(size_t)(high{last} - low{last})"
    ends = (far, near) if exporting else (near, far)
    if operand.is_dense:
        return f"under_way = async_work_group_copy({', '.join(ends)}, {count}, under_way);"
    step = operand.strides[-1] // operand.size
    return f"under_way = async_work_group_strided_copy({', '.join(ends)}, {count}, {step}, under_way);"


def _can_copy_rows(operand: Operand) -> bool:
    return operand.strides[-1] > 0


def _each(operand: Operand, body: list[str], width: int = 1) -> list[str]:
    """Return a loop in which threads share the elements of a tile, or pieces of `width` of them."""
    extents = list(operand.tiler.largest)
    extents[-1] = -(-extents[-1] // width)
    total, below, indices = 1, 1, [""] * operand.rank
    for k in reversed(range(operand.rank)):
        text = "q" if below == 1 else f"q / {below}u"
        indices[k] = text if k == 0 else f"{text} % {extents[k]}u"
        below *= extents[k]
        total *= extents[k]
    if width > 1:
        indices[-1] = f"({indices[-1]}) * {width}u"
    named = ", ".join(f"i{k} = {text}" for k, text in enumerate(indices))
    places = ", ".join(f"x{k} = box.at{k} + ({operand.index})i{k}" for k in range(operand.rank))
    head = [f"const u32 {named};", f"const {operand.index} {places};"]
    return [f"for (u32 q = THREAD; q < {total}u; q += THREADS) {{", *indent([*head, *body]), "}"]


def _names(operand: Operand, letter: str) -> list[str]:
    return [f"{letter}{k}" for k in range(operand.rank)]


def _within_tile(operand: Operand, axes: int) -> list[str]:
    """Return the conditions that indices are inside a tile, on the axes where the last tile is smaller."""
    sizes = [(k, extent, rest) for k, (_, _, extent, _, rest) in enumerate(operand.tiler.axes) if k < axes]
    return [f"i{k} < box.n{k}" for k, extent, rest in sizes if rest != extent]


def _import_rows(operand: Operand) -> list[str]:
    name, raw, rank = operand.name, operand.raw, operand.rank
    head = (
        f"INLINE event_t {name}_import(LOCAL {raw} *room, GLOBAL const u8 *memory, const {name}_place box,"
        " LOCAL v16 *spare, event_t under_way) {"
    )
    here, xs = operand.slot(_names(operand, "i")), _names(operand, "x")
    put = f"room[{here}] = {name}_element(memory, {', '.join(xs)});"
    if not _can_copy_rows(operand):
        inside = " && ".join(_within_tile(operand, rank))
        body = [put] if operand.fill is not None or not operand.reaches_out else [f"if ({operand.inside(xs)}) {put}"]
        filling = [f"if ({inside}) {{", *indent(body), "}"] if inside else body
        nothing = "return async_work_group_copy((LOCAL u8 *)spare, memory, 1, under_way);"
        return [head, *indent([*_each(operand, filling), nothing]), "}"]
    body = _rows(operand, _row_copy(operand, exporting=False))
    if operand.reaches_out and operand.fill is not None:
        leaves = " || ".join(
            f"box.at{k} < 0 || box.at{k} + ({operand.index})box.n{k} > {n}" for k, n in enumerate(operand.tiler.space)
        )
        conditions = [*_within_tile(operand, rank), f"!({operand.inside(xs)})"]
        around = _each(operand, [f"if ({' && '.join(conditions)}) {put}"])
        body += [f"if ({leaves}) {{  // threads fill in what the rows leave out", *indent(around), "}"]
    return [head, *indent([*body, "return under_way;"]), "}"]


def _export_rows(operand: Operand) -> list[str]:
    name, raw = operand.name, operand.raw
    head = (
        f"INLINE event_t {name}_export(LOCAL const {raw} *room, GLOBAL u8 *memory, const {name}_place box,"
        " LOCAL v16 *spare, event_t under_way) {"
    )
    if _can_copy_rows(operand):
        body = [*_rows(operand, _row_copy(operand, exporting=True)), "return under_way;"]
        return [head, *indent(body), "}"]
    nothing = "return async_work_group_copy((LOCAL u8 *)spare, (GLOBAL const u8 *)memory, 1, under_way);"
    return [head, *indent([*_each(operand, _stored(operand)), nothing]), "}"]


def _stored(operand: Operand) -> list[str]:
    """Return the statements that store one element, if it is in the tile and in the space."""
    xs = _names(operand, "x")
    conditions = _within_tile(operand, operand.rank) + ([operand.inside(xs)] if operand.reaches_out else [])
    slot = operand.slot(_names(operand, "i"))
    store = f"*(GLOBAL {operand.raw} *)(memory + ({operand.place(xs)})) = room[{slot}];"
    return [f"if ({' && '.join(conditions)}) {store}" if conditions else store]


def _import_pieces(operand: Operand) -> list[str]:
    name, raw, piece = operand.name, operand.raw, operand.piece
    width = max(1, piece // operand.size)
    xs, slot = _names(operand, "x"), operand.slot(_names(operand, "i"))
    to, start = f"room + ({slot})", f"memory + ({operand.place(xs)})"
    head = f"INLINE void {name}_import({raw} *room, const u8 *memory, const {name}_place box) {{"
    kind = vector_type(piece)
    copy = f"COPY_ASYNC_{piece}({to}, {start});"
    if piece < 4:  # too narrow for asynchronous copies
        copy = f"*({kind} *)({to}) = *(const {kind} *)({start});"
    return [head, *indent(_each(operand, _piecewise(operand, width, copy, importing=True), width)), "}"]


def _piecewise(operand: Operand, width: int, copy: str, importing: bool) -> list[str]:
    """Return the statements for one piece: a copy if it is all inside, otherwise element by element."""
    last = operand.rank - 1
    conditions = _within_tile(operand, last)
    _, _, extent, _, rest = operand.tiler.axes[last]
    edge = [
        *([f"i{last} + {width}u <= box.n{last}"] if rest != extent or extent % width else []),
        *([operand.inside(_names(operand, "x"))] if operand.reaches_out else []),
        *([f"x{last} + {width} <= {operand.tiler.space[last]}"] if operand.reaches_out and width > 1 else []),
    ]
    if not edge:
        body = [copy]
    else:
        xs = [*_names(operand, "x")[:-1], f"x{last} + ({operand.index})e"]
        indices = [*_names(operand, "i")[:-1], f"i{last} + e"]
        slot = operand.slot(indices)
        if importing:
            one = f"room[{slot}] = {operand.name}_element(memory, {', '.join(xs)});"
        else:
            one = f"*(GLOBAL {operand.raw} *)(memory + ({operand.place(xs)})) = room[{slot}];"
        needed = [f"i{last} + e < box.n{last}"]
        if operand.reaches_out and (not importing or operand.fill is None):
            needed.append(operand.inside([*xs[:-1], f"({xs[-1]})"]))
        singly = [f"for (u32 e = 0; e < {width}u; ++e) {{", f"    if ({' && '.join(needed)}) {one}", "}"]
        body = [f"if ({' && '.join(edge)}) {{", f"    {copy}", "} else {", *indent(singly), "}"]
    return [f"if ({' && '.join(conditions)}) {{", *indent(body), "}"] if conditions else body


def _export_pieces(operand: Operand) -> list[str]:
    name, raw, piece = operand.name, operand.raw, operand.piece
    width = max(1, piece // operand.size)
    kind = vector_type(piece)
    xs, slot = _names(operand, "x"), operand.slot(_names(operand, "i"))
    head = f"INLINE void {name}_export(const {raw} *room, u8 *memory, const {name}_place box) {{"
    copy = f"*({kind} *)(memory + ({operand.place(xs)})) = *(const {kind} *)(room + ({slot}));"
    return [head, *indent(_each(operand, _piecewise(operand, width, copy, importing=False), width)), "}"]
