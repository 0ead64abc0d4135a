# SPDX-License-Identifier: Apache-2.0
"""C code for imports and exports of tiles, between device memory and the local memory of a work-group.

In OpenCL `async_work_group_copy` copies the rows inside the space, and threads fill the padding. In CUDA each thread
starts copies of up to 16 bytes with `cp.async`, which complete while another tile is computed.
"""

from __future__ import annotations

from ..copying.codegen.c_language import indent
from ..copying.codegen.kernel import vector_type
from .kernel_operand import KernelOperand

# Every import and export needs an event; one without rows to copy gets that of a copied spare byte.
OPENCL_MACROS = """\
#pragma OPENCL FP_CONTRACT OFF
#define THREADS ((u32)get_local_size(0))
#define GROUPS ((u32)get_num_groups(0))
"""

CUDA_MACROS = """\
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

# The index that position x of an axis of n elements is read from, as in numpy.pad.
_PAD_INDEX_CODE = {
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


def element_code(operand: KernelOperand) -> list[str]:
    """Return the function that reads an element of an input, or its padding outside the space."""
    name, raw, rank = operand.name, operand.bits_type, operand.rank
    xs = [f"x{k}" for k in range(rank)]
    head = (
        f"INLINE {raw} {name}_element(GLOBAL const u8 *memory, {', '.join(f'{operand.index_type} {x}' for x in xs)}) {{"
    )
    load = f"return *(GLOBAL const {raw} *)(memory + ({operand.byte_offset(xs)}));"
    if not operand.exceeds_space:
        return [head, f"    {load}", "}"]
    if isinstance(operand.fill, str):
        near = f"INLINE {operand.index_type} {name}_near({operand.index_type} x, {operand.index_type} n) {{"
        turned = [f"    x{k} = {name}_near(x{k}, {n});" for k, n in enumerate(operand.tiler.space)]
        found = indent([line.format(index=operand.index_type) for line in _PAD_INDEX_CODE[operand.fill]])
        return [near, *found, "}", head, *turned, f"    {load}", "}"]
    value = f"({raw})0x{int.from_bytes(operand.fill or b'', 'little'):x}"
    return [head, f"    if ({operand.inside_condition(xs)}) {load}", f"    return {value};", "}"]


def import_code(operand: KernelOperand, dialect: str) -> list[str]:
    """Return the functions that import a tile of an input."""
    return [*element_code(operand), *(_import_rows(operand) if dialect == "opencl" else _import_vectors(operand))]


def export_code(operand: KernelOperand, dialect: str) -> list[str]:
    """Return the function that exports the part of a tile that lies inside the space."""
    return _export_rows(operand) if dialect == "opencl" else _export_vectors(operand)


def _row_loops(operand: KernelOperand, copy: str) -> list[str]:
    """Return loops over the rows of a tile inside the space, with one copy per row, or a dummy copy for none."""
    rank, index = operand.rank, operand.index_type
    lines = []
    for k, n in enumerate(operand.tiler.space):
        end = f"box.at{k} + ({index})box.n{k}"
        lines.append(f"const {index} low{k} = box.at{k} > 0 ? box.at{k} : 0, high{k} = {end} < {n} ? {end} : {n};")
    last = rank - 1
    body = [copy]
    for k in reversed(range(last)):
        body = [f"for ({index} x{k} = low{k}; x{k} < high{k}; ++x{k}) {{", *indent(body), "}"]
    some = " && ".join(f"low{k} < high{k}" for k in range(rank))
    nothing = "event = async_work_group_copy((LOCAL u8 *)spare, (GLOBAL const u8 *)memory, 1, event);"
    return [*lines, f"if ({some}) {{", *indent(body), "} else {", f"    {nothing}", "}"]


def _row_copy(operand: KernelOperand, exporting: bool) -> str:
    """Return the copy of one row, contiguous or strided."""
    last = operand.rank - 1
    xs = [*[f"x{k}" for k in range(last)], f"low{last}"]
    slot = operand.buffer_index([f"(u32)({x} - box.at{k})" for k, x in enumerate(xs)])
    const = "" if exporting else "const "
    far = f"(GLOBAL {const}{operand.bits_type} *)(memory + ({operand.byte_offset(xs)}))"
    near, count = f"buffer + ({slot})", f"(size_t)(high{last} - low{last})"
    ends = (far, near) if exporting else (near, far)
    if operand.is_dense:
        return f"event = async_work_group_copy({', '.join(ends)}, {count}, event);"
    step = operand.strides[-1] // operand.size
    return f"event = async_work_group_strided_copy({', '.join(ends)}, {count}, {step}, event);"


def _has_row_copies(operand: KernelOperand) -> bool:
    return operand.strides[-1] > 0


def _thread_loop(operand: KernelOperand, body: list[str], width: int = 1) -> list[str]:
    """Return a loop in which threads share the elements of a tile, or vectors of `width` elements."""
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
    locations = ", ".join(f"x{k} = box.at{k} + ({operand.index_type})i{k}" for k in range(operand.rank))
    head = [f"const u32 {named};", f"const {operand.index_type} {locations};"]
    return [f"for (u32 q = THREAD; q < {total}u; q += THREADS) {{", *indent([*head, *body]), "}"]


def _variables(operand: KernelOperand, letter: str) -> list[str]:
    return [f"{letter}{k}" for k in range(operand.rank)]


def _inside_tile_conditions(operand: KernelOperand, axes: int) -> list[str]:
    """Return the C conditions that indices are inside a tile, for axes with a smaller last tile."""
    sizes = [(k, extent, rest) for k, (_, _, extent, _, rest) in enumerate(operand.tiler.axes) if k < axes]
    return [f"i{k} < box.n{k}" for k, extent, rest in sizes if rest != extent]


def _import_rows(operand: KernelOperand) -> list[str]:
    name, raw, rank = operand.name, operand.bits_type, operand.rank
    head = (
        f"INLINE event_t {name}_import(LOCAL {raw} *buffer, GLOBAL const u8 *memory, const {name}_box_t box,"
        " LOCAL v16 *spare, event_t event) {"
    )
    here, xs = operand.buffer_index(_variables(operand, "i")), _variables(operand, "x")
    put = f"buffer[{here}] = {name}_element(memory, {', '.join(xs)});"
    if not _has_row_copies(operand):
        inside = " && ".join(_inside_tile_conditions(operand, rank))
        body = (
            [put]
            if operand.fill is not None or not operand.exceeds_space
            else [f"if ({operand.inside_condition(xs)}) {put}"]
        )
        filling = [f"if ({inside}) {{", *indent(body), "}"] if inside else body
        nothing = "return async_work_group_copy((LOCAL u8 *)spare, memory, 1, event);"
        return [head, *indent([*_thread_loop(operand, filling), nothing]), "}"]
    body = _row_loops(operand, _row_copy(operand, exporting=False))
    if operand.exceeds_space and operand.fill is not None:
        leaves = " || ".join(
            f"box.at{k} < 0 || box.at{k} + ({operand.index_type})box.n{k} > {n}"
            for k, n in enumerate(operand.tiler.space)
        )
        conditions = [*_inside_tile_conditions(operand, rank), f"!({operand.inside_condition(xs)})"]
        around = _thread_loop(operand, [f"if ({' && '.join(conditions)}) {put}"])
        body += [f"if ({leaves}) {{  // threads write the padding", *indent(around), "}"]
    return [head, *indent([*body, "return event;"]), "}"]


def _export_rows(operand: KernelOperand) -> list[str]:
    name, raw = operand.name, operand.bits_type
    head = (
        f"INLINE event_t {name}_export(LOCAL const {raw} *buffer, GLOBAL u8 *memory, const {name}_box_t box,"
        " LOCAL v16 *spare, event_t event) {"
    )
    if _has_row_copies(operand):
        body = [*_row_loops(operand, _row_copy(operand, exporting=True)), "return event;"]
        return [head, *indent(body), "}"]
    nothing = "return async_work_group_copy((LOCAL u8 *)spare, (GLOBAL const u8 *)memory, 1, event);"
    return [head, *indent([*_thread_loop(operand, _store_element(operand)), nothing]), "}"]


def _store_element(operand: KernelOperand) -> list[str]:
    """Return the statements that store one element, if it is in the tile and in the space."""
    xs = _variables(operand, "x")
    conditions = _inside_tile_conditions(operand, operand.rank) + (
        [operand.inside_condition(xs)] if operand.exceeds_space else []
    )
    slot = operand.buffer_index(_variables(operand, "i"))
    store = f"*(GLOBAL {operand.bits_type} *)(memory + ({operand.byte_offset(xs)})) = buffer[{slot}];"
    return [f"if ({' && '.join(conditions)}) {store}" if conditions else store]


def _import_vectors(operand: KernelOperand) -> list[str]:
    name, raw, piece = operand.name, operand.bits_type, operand.vector_bytes
    width = max(1, piece // operand.size)
    xs, slot = _variables(operand, "x"), operand.buffer_index(_variables(operand, "i"))
    to, start = f"buffer + ({slot})", f"memory + ({operand.byte_offset(xs)})"
    head = f"INLINE void {name}_import({raw} *buffer, const u8 *memory, const {name}_box_t box) {{"
    kind = vector_type(piece)
    copy = f"COPY_ASYNC_{piece}({to}, {start});"
    if piece < 4:  # too narrow for asynchronous copies
        copy = f"*({kind} *)({to}) = *(const {kind} *)({start});"
    return [
        head,
        *indent(_thread_loop(operand, _vector_or_elements(operand, width, copy, importing=True), width)),
        "}",
    ]


def _vector_or_elements(operand: KernelOperand, width: int, copy: str, importing: bool) -> list[str]:
    """Return the statements for one vector: a copy if it is inside, otherwise element by element."""
    last = operand.rank - 1
    conditions = _inside_tile_conditions(operand, last)
    _, _, extent, _, rest = operand.tiler.axes[last]
    edge = [
        *([f"i{last} + {width}u <= box.n{last}"] if rest != extent or extent % width else []),
        *([operand.inside_condition(_variables(operand, "x"))] if operand.exceeds_space else []),
        *([f"x{last} + {width} <= {operand.tiler.space[last]}"] if operand.exceeds_space and width > 1 else []),
    ]
    if not edge:
        body = [copy]
    else:
        xs = [*_variables(operand, "x")[:-1], f"x{last} + ({operand.index_type})e"]
        indices = [*_variables(operand, "i")[:-1], f"i{last} + e"]
        slot = operand.buffer_index(indices)
        if importing:
            one = f"buffer[{slot}] = {operand.name}_element(memory, {', '.join(xs)});"
        else:
            one = f"*(GLOBAL {operand.bits_type} *)(memory + ({operand.byte_offset(xs)})) = buffer[{slot}];"
        needed = [f"i{last} + e < box.n{last}"]
        if operand.exceeds_space and (not importing or operand.fill is None):
            needed.append(operand.inside_condition([*xs[:-1], f"({xs[-1]})"]))
        singly = [f"for (u32 e = 0; e < {width}u; ++e) {{", f"    if ({' && '.join(needed)}) {one}", "}"]
        body = [f"if ({' && '.join(edge)}) {{", f"    {copy}", "} else {", *indent(singly), "}"]
    return [f"if ({' && '.join(conditions)}) {{", *indent(body), "}"] if conditions else body


def _export_vectors(operand: KernelOperand) -> list[str]:
    name, raw, piece = operand.name, operand.bits_type, operand.vector_bytes
    width = max(1, piece // operand.size)
    kind = vector_type(piece)
    xs, slot = _variables(operand, "x"), operand.buffer_index(_variables(operand, "i"))
    head = f"INLINE void {name}_export(const {raw} *buffer, u8 *memory, const {name}_box_t box) {{"
    copy = f"*({kind} *)(memory + ({operand.byte_offset(xs)})) = *(const {kind} *)(buffer + ({slot}));"
    return [
        head,
        *indent(_thread_loop(operand, _vector_or_elements(operand, width, copy, importing=False), width)),
        "}",
    ]
