# SPDX-License-Identifier: Apache-2.0
"""`TileKernel`: a pipeline as one kernel of a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from tilewright.copying import WIDEST, DeviceArray, DeviceEngine, load_engine
from tilewright.errors import DeviceError, FormatError, TransferError
from tilewright.formats import ScalarFormat, format_of, uint8
from tilewright.layout import Box
from tilewright.tiling import (
    DeviceEndpoint,
    Endpoint,
    Fill,
    MemoryEndpoint,
    Pipeline,
    PipelineReport,
    Tiler,
    validate_fill,
)

from .backend import KernelBackend
from .codegen import (
    Digit,
    Kernel,
    c_dialect,
    conditional,
    digit_expressions,
    indent,
    needs_double,
    raw_type,
    read_header,
    reader_functions,
    shared_arrays,
    vector_type,
    writer_functions,
)

# `KernelOperand`: an operand of a device kernel, and the C code that imports and exports its tiles.

INT_MAX = 2**31 - 1
MAX_LISTED_TILES = 1 << 24  # tiles of orders that need a table of coordinates


@dataclass(frozen=True)
class KernelOperand:
    """An operand: its name in the kernel, its tiler, byte strides, element format, fill and alignment.

    `fill` is a name such as "edge", the bytes of one element, or None; `alignment` divides the address of element 0.

    >>> from tilewright.formats import float32
    >>> operand = KernelOperand("in0", Tiler((10, 7), (4, 3)), (28, 4), float32, None, 16)
    >>> operand.pitches, operand.buffer_bytes, operand.vector_bytes
    ((4, 1), 64, 4)
    """

    name: str
    tiler: Tiler
    strides: tuple[int, ...]
    format: ScalarFormat
    fill: str | bytes | None
    alignment: int

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.tiler.rank

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return self.format.itemsize

    @property
    def bits_type(self) -> str:
        """The C type of an element's bits."""
        return raw_type(self.size)

    @property
    def pitches(self) -> tuple[int, ...]:
        """The strides in local memory, in elements; rows start at multiples of a vector."""
        extents = self.tiler.largest_tile
        result, stride = [1], 1
        for axis in range(self.rank - 1, 0, -1):
            stride *= extents[axis]
            if axis == self.rank - 1:
                stride = -(-stride * self.size // WIDEST) * WIDEST // self.size
            result.append(stride)
        return tuple(result[::-1])

    @property
    def buffer_bytes(self) -> int:
        """The bytes that a tile takes in local memory."""
        count = self.pitches[0] * self.tiler.largest_tile[0]
        return -(-count * self.size // WIDEST) * WIDEST

    @property
    def is_dense(self) -> bool:
        """Whether the last axis is contiguous."""
        return self.strides[-1] == self.size

    @property
    def vector_bytes(self) -> int:
        """The widest vector, up to 16 bytes, that is always aligned in memory and in the buffer."""
        if not self.is_dense:
            return self.size
        stride, before = self.tiler.axes[-1][:2]
        return gcd(WIDEST, self.alignment, *self.strides[:-1], stride * self.size, before * self.size)

    @property
    def is_listed(self) -> bool:
        """Whether tile coordinates come from a table, since their order is not arithmetic."""
        return self.tiler.order not in ("row_major", "col_major")

    def coordinates(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Return the table of grid coordinates of all tiles."""
        tiles = [self.tiler.coords(k) for k in range(self.tiler.count)]
        return np.ascontiguousarray(np.array(tiles, dtype=np.int32).reshape(-1))

    @property
    def index_type(self) -> str:
        """The C type of coordinates in the space: 64 bits only where needed."""
        reach = max([n + sum(pair) for n, pair in zip(self.tiler.space, self.tiler.augmentation, strict=True)])
        return "i32" if reach + max(self.tiler.tile) <= INT_MAX else "i64"

    def box_code(self) -> list[str]:
        """Return the C type of a tile's box, and the function that computes it from the tile number."""
        tiler, name, rank = self.tiler, self.name, self.rank
        where, extents = (", ".join(f"{letter}{k}" for k in range(rank)) for letter in ("at", "n"))
        table = f", GLOBAL const i32 *{name}_tiles" if self.is_listed else ""
        lines = [
            f"typedef struct {{ {self.index_type} {where}; u32 {extents}; }} {name}_box_t;",
            f"INLINE {name}_box_t {name}_find(const u32 tile{table}) {{",
            f"    {name}_box_t box;",
        ]
        for axis, coordinate in enumerate(self._coordinates("tile")):
            stride, first, whole, last, rest = tiler.axes[axis]
            extent = f"{whole}u" if rest == whole else f"c{axis} == {last}u ? {rest}u : {whole}u"
            lines.append(f"    const u32 c{axis} = {coordinate};")
            lines.append(f"    box.at{axis} = ({self.index_type})c{axis} * {stride} + {first};")
            lines.append(f"    box.n{axis} = {extent};")
        return [*lines, "    return box;", "}"]

    def _coordinates(self, tile: str) -> list[str]:
        """Return the grid coordinates of a tile as C expressions of its number."""
        grid, rank = self.tiler.grid, self.rank
        if self.is_listed:
            return [f"{self.name}_tiles[{tile} * {rank}u + {axis}u]" for axis in range(rank)]
        axes = list(range(rank))
        if self.tiler.order == "col_major" and rank > 1:
            axes[-2:] = [rank - 1, rank - 2]
        digits = digit_expressions(tile, [Digit(axis, grid[axis], 1) for axis in reversed(axes)])
        return [digit.name for digit in sorted(digits, key=lambda digit: digit.digit.axis)]

    def find_call(self, tile: str) -> str:
        """Return the C call that computes the box of a tile."""
        return f"{self.name}_find({tile}{f', {self.name}_tiles' if self.is_listed else ''})"

    def byte_offset(self, coordinates: list[str]) -> str:
        """Return the C expression of the byte offset of the element at coordinates of the space."""
        terms = [f"(i64)({x}) * {stride}" for x, stride in zip(coordinates, self.strides, strict=True) if stride]
        return " + ".join(terms) or "0"

    def buffer_index(self, indices: list[str]) -> str:
        """Return the C expression of the index of an element in its buffer."""
        terms = [f"({i}) * {pitch}u" if pitch > 1 else f"({i})" for i, pitch in zip(indices, self.pitches, strict=True)]
        return " + ".join(terms)

    def inside_condition(self, coordinates: list[str]) -> str:
        """Return the C condition that coordinates lie in the space."""
        return " && ".join([f"{x} >= 0 && {x} < {n}" for x, n in zip(coordinates, self.tiler.space, strict=True)])

    @property
    def exceeds_space(self) -> bool:
        """Whether tiles extend beyond the space."""
        return any(before or after for before, after in self.tiler.augmentation)

    def describe(self) -> str:
        """Return a description of the operand for a comment."""
        shape, tile = (" x ".join(map(str, extents)) for extents in (self.tiler.space, self.tiler.largest_tile))
        around = "" if not self.exceeds_space or self.fill is None else f", {_describe_fill(self.fill)} around"
        return f"{self.name}: {self.format.name} of {shape}, {self.tiler.count} tiles of {tile}{around}"


def _describe_fill(fill: str | bytes) -> str:
    return fill if isinstance(fill, str) else f"0x{int.from_bytes(fill, 'little'):x}"


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
        result = indent([line.format(index=operand.index_type) for line in _PAD_INDEX_CODE[operand.fill]])
        return [near, *result, "}", head, *turned, f"    {load}", "}"]
    value = f"({raw})0x{int.from_bytes(operand.fill or b'', 'little'):x}"
    return [head, f"    if ({operand.inside_condition(xs)}) {load}", f"    return {value};", "}"]


def import_code(operand: KernelOperand, dialect: str) -> list[str]:
    """Return the functions that import a tile of an input."""
    function = _import_rows(operand) if dialect == "opencl" else _vector_function(operand, importing=True)
    return [*element_code(operand), *function]


def export_code(operand: KernelOperand, dialect: str) -> list[str]:
    """Return the function that exports the part of a tile that lies inside the space."""
    return _export_rows(operand) if dialect == "opencl" else _vector_function(operand, importing=False)


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
    stride = operand.strides[-1] // operand.size
    return f"event = async_work_group_strided_copy({', '.join(ends)}, {count}, {stride}, event);"


def _has_row_copies(operand: KernelOperand) -> bool:
    return operand.strides[-1] > 0


def thread_loop(operand: KernelOperand, body: list[str], width: int = 1, box: str = "box") -> list[str]:
    """Return a loop in which threads share the elements of a tile, or vectors of `width` elements.

    `box` is the name of the variable with the tile's box.
    """
    extents = list(operand.tiler.largest_tile)
    extents[-1] = -(-extents[-1] // width)
    digits = digit_expressions("q", [Digit(k, extents[k], 1) for k in reversed(range(operand.rank))])
    indices = [digit.name for digit in reversed(digits)]
    if width > 1:
        indices[-1] = f"({indices[-1]}) * {width}u"
    named = ", ".join(f"i{k} = {text}" for k, text in enumerate(indices))
    locations = ", ".join(f"x{k} = {box}.at{k} + ({operand.index_type})i{k}" for k in range(operand.rank))
    head = [f"const u32 {named};", f"const {operand.index_type} {locations};"]
    return [f"for (u32 q = THREAD; q < {prod(extents)}u; q += THREADS) {{", *indent([*head, *body]), "}"]


def index_names(operand: KernelOperand, letter: str = "i") -> list[str]:
    """Return the C names of an element's indices: `i` in its tile, or `x` in the space."""
    return [f"{letter}{k}" for k in range(operand.rank)]


def inside_tile_conditions(operand: KernelOperand, axes: int, box: str = "box") -> list[str]:
    """Return the C conditions that indices are inside a tile, for each of the first axes with a smaller last tile."""
    sizes = [(k, extent, rest) for k, (_, _, extent, _, rest) in enumerate(operand.tiler.axes[:axes])]
    return [f"i{k} < {box}.n{k}" for k, extent, rest in sizes if rest != extent]


def _import_rows(operand: KernelOperand) -> list[str]:
    name, raw, rank = operand.name, operand.bits_type, operand.rank
    head = (
        f"INLINE event_t {name}_import(LOCAL {raw} *buffer, GLOBAL const u8 *memory, const {name}_box_t box,"
        " LOCAL v16 *spare, event_t event) {"
    )
    here, xs = operand.buffer_index(index_names(operand)), index_names(operand, "x")
    put = f"buffer[{here}] = {name}_element(memory, {', '.join(xs)});"
    if not _has_row_copies(operand):
        inside = " && ".join(inside_tile_conditions(operand, rank))
        body = (
            [put]
            if operand.fill is not None or not operand.exceeds_space
            else [f"if ({operand.inside_condition(xs)}) {put}"]
        )
        filling = conditional(inside, body)
        nothing = "return async_work_group_copy((LOCAL u8 *)spare, memory, 1, event);"
        return [head, *indent([*thread_loop(operand, filling), nothing]), "}"]
    body = _row_loops(operand, _row_copy(operand, exporting=False))
    if operand.exceeds_space and operand.fill is not None:
        leaves = " || ".join(
            f"box.at{k} < 0 || box.at{k} + ({operand.index_type})box.n{k} > {n}"
            for k, n in enumerate(operand.tiler.space)
        )
        conditions = [*inside_tile_conditions(operand, rank), f"!({operand.inside_condition(xs)})"]
        around = thread_loop(operand, [f"if ({' && '.join(conditions)}) {put}"])
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
    return [head, *indent([*thread_loop(operand, _store_element(operand)), nothing]), "}"]


def _store_element(operand: KernelOperand) -> list[str]:
    """Return the statements that store one element, if it is in the tile and in the space."""
    xs = index_names(operand, "x")
    conditions = inside_tile_conditions(operand, operand.rank) + (
        [operand.inside_condition(xs)] if operand.exceeds_space else []
    )
    slot = operand.buffer_index(index_names(operand))
    store = f"*(GLOBAL {operand.bits_type} *)(memory + ({operand.byte_offset(xs)})) = buffer[{slot}];"
    return [f"if ({' && '.join(conditions)}) {store}" if conditions else store]


def _vector_function(operand: KernelOperand, importing: bool) -> list[str]:
    """Return the function with which CUDA threads import or export a tile, one vector at a time."""
    name, raw, piece = operand.name, operand.bits_type, operand.vector_bytes
    width, c_type = max(1, piece // operand.size), vector_type(piece)
    slot = f"buffer + ({operand.buffer_index(index_names(operand))})"
    address = f"memory + ({operand.byte_offset(index_names(operand, 'x'))})"
    if importing:
        head = f"INLINE void {name}_import({raw} *buffer, const u8 *memory, const {name}_box_t box) {{"
        copy = f"COPY_ASYNC_{piece}({slot}, {address});"
        if piece < 4:  # too narrow for asynchronous copies
            copy = f"*({c_type} *)({slot}) = *(const {c_type} *)({address});"
    else:
        head = f"INLINE void {name}_export(const {raw} *buffer, u8 *memory, const {name}_box_t box) {{"
        copy = f"*({c_type} *)({address}) = *(const {c_type} *)({slot});"
    return [head, *indent(thread_loop(operand, _vector_or_elements(operand, width, copy, importing), width)), "}"]


def _vector_or_elements(operand: KernelOperand, width: int, copy: str, importing: bool) -> list[str]:
    """Return the statements for one vector: a copy if it is inside, otherwise element by element."""
    last = operand.rank - 1
    conditions = inside_tile_conditions(operand, last)
    _, _, extent, _, rest = operand.tiler.axes[last]
    edge = [
        *([f"i{last} + {width}u <= box.n{last}"] if rest != extent or extent % width else []),
        *([operand.inside_condition(index_names(operand, "x"))] if operand.exceeds_space else []),
        *([f"x{last} + {width} <= {operand.tiler.space[last]}"] if operand.exceeds_space and width > 1 else []),
    ]
    if not edge:
        body = [copy]
    else:
        xs = [*index_names(operand, "x")[:-1], f"x{last} + ({operand.index_type})e"]
        indices = [*index_names(operand)[:-1], f"i{last} + e"]
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
    return conditional(" && ".join(conditions), body)


# `KernelProgram`: the C source of a pipeline kernel, in which work-groups import the next tiles while they compute.

ENGINES = ("opencl", "cuda")
COMPUTE_UNITS = ("element", "tile")


def compute_statements(compute: object, outputs: Sequence[KernelOperand]) -> str:
    """Return a compute as C statements; it may be statements, an expression, or one expression per output.

    >>> from tilewright.tiling import Tiler
    >>> from tilewright.formats import float32
    >>> compute_statements("2 * in0", [KernelOperand("out0", Tiler((4,), (2,)), (4,), float32, None, 16)])
    'out0 = 2 * in0;'
    """
    if isinstance(compute, str):
        if ";" in compute:
            return compute.strip("\n")
        compute = [compute]
    if isinstance(compute, Mapping):
        missing = [operand.name for operand in outputs if operand.name not in compute]
        if missing or len(compute) != len(outputs):
            raise TransferError(
                f"the compute has expressions for {', '.join(map(str, compute))}, but the outputs are"
                f" {', '.join(operand.name for operand in outputs)}; give one expression per output"
            )
        compute = [compute[operand.name] for operand in outputs]
    if not isinstance(compute, Sequence) or not all(isinstance(text, str) and text.strip() for text in compute):
        raise TransferError(
            f"expected C statements or an expression such as '2 * in0', got {compute!r}; Python functions run on the"
            " host, with Pipeline.run"
        )
    if len(compute) != len(outputs):
        raise TransferError(
            f"the compute has {len(compute)} expressions, but the pipeline has {len(outputs)} outputs; give one"
            " expression per output, or statements that assign to out0, out1, ..."
        )
    return "\n".join(f"{output.name} = {text.strip()};" for output, text in zip(outputs, compute, strict=True))


def element_accessors(inputs: Sequence[KernelOperand], outputs: Sequence[KernelOperand]) -> list[str]:
    """Return the functions that convert elements to and from numbers, and macros that name elements."""
    functions: dict[str, None] = {}  # an ordered set
    names = []
    for operand in (*inputs, *outputs):
        indices = ", ".join(index_names(operand))
        element = f"{operand.name}_buffer[{operand.buffer_index(index_names(operand))}]"
        if operand in inputs:
            functions |= dict.fromkeys(reader_functions(f"{operand.name}_value", operand.format)[1])
            names.append(f"#define {operand.name}({indices}) {operand.name}_value({element})")
        else:
            functions |= dict.fromkeys(writer_functions(f"{operand.name}_code", operand.format)[1])
            names.append(f"#define set_{operand.name}(value, {indices}) ({element} = {operand.name}_code(value))")
    return [*[text.rstrip("\n") for text in functions], *names]


def compute_function(
    body: str, each: str, inputs: Sequence[KernelOperand], outputs: Sequence[KernelOperand]
) -> list[str]:
    """Return the function that computes a tile."""
    arguments = [f"LOCAL const {operand.bits_type} *{operand.name}_buffer" for operand in inputs]
    arguments += [f"LOCAL {operand.bits_type} *{operand.name}_buffer" for operand in outputs]
    arguments += [f"const {operand.name}_box_t {operand.name}_box" for operand in (*inputs, *outputs)]
    head = f"INLINE void compute(const u32 tile, {', '.join(arguments)}) {{"
    own = body.splitlines()
    if each == "tile":
        return [head, *indent(own), "}"]
    for operand in outputs:
        validate_matching_tiles(operand, outputs[0], "a compute per element stores one element of each output")
    used = [operand for operand in inputs if re.search(rf"\b{operand.name}\b(?!\s*\()", body)]
    for operand in used:
        validate_matching_tiles(
            operand, outputs[0], f"{operand.name} is the element at the same index of its tile", larger=True
        )
    first, box = outputs[0], f"{outputs[0].name}_box"
    indices = ", ".join(index_names(first))
    inner = [
        f"const {reader_functions('', operand.format)[0]} {operand.name} = {operand.name}({indices});"
        for operand in used
    ]
    inner += [f"{writer_functions('', operand.format)[0]} {operand.name};" for operand in outputs]
    inner += ["{", *indent(own), "}"]
    inner += [f"set_{operand.name}({operand.name}, {indices});" for operand in outputs]
    inside = " && ".join(inside_tile_conditions(first, first.rank, box))
    return [head, *indent(thread_loop(first, conditional(inside, inner), box=box)), "}"]


def validate_matching_tiles(operand: KernelOperand, first: KernelOperand, why: str, larger: bool = False) -> None:
    """Raise unless the tiles of an operand have the same shapes as the tiles of `first`, or with `larger` contain them.

    >>> from tilewright.tiling import Tiler
    >>> from tilewright.formats import float32
    >>> first = KernelOperand("out0", Tiler((4,), (2,)), (4,), float32, None, 16)
    >>> validate_matching_tiles(first, first, "they are the same")
    """
    mine, other = operand.tiler, first.tiler
    pairs = list(zip(mine.axes, other.axes, strict=False))
    sizes = [(a, b) for (_, _, *one), (_, _, *two) in pairs for a, b in ((one[0], two[0]), (one[2], two[2]))]
    fits = all(a >= b if larger else a == b for a, b in sizes)
    if mine.grid != other.grid or mine.order != other.order or not fits:
        raise TransferError(
            f"{why}, but the tiles of {operand.name} ({mine}) and of {first.name} ({other}) differ; name elements by"
            f" index, as in {operand.name}(0, 0), or compute whole tiles with each='tile'"
        )


NAME = "tw_pipeline"


@dataclass(frozen=True)
class KernelProgram:
    """A pipeline as C source: its operands, its compute, the buffers per operand, and the threads of a work-group.

    >>> from tilewright.tiling import Tiler
    >>> from tilewright.formats import float32
    >>> tiler = Tiler((10,), (4,))
    >>> ends = [KernelOperand(name, tiler, (4,), float32, None, 16) for name in ("in0", "out0")]
    >>> source = KernelProgram("opencl", (ends[0],), (ends[1],), "out0 = 2 * in0;", "element", "", 2, 64)
    >>> source.kernel().shared
    (('in0_buffers', 32), ('out0_buffers', 32), ('spare', 16))
    >>> "async_work_group_copy" in source.text()
    True
    """

    dialect: str
    inputs: tuple[KernelOperand, ...]
    outputs: tuple[KernelOperand, ...]
    body: str
    each: str
    functions: str
    buffers: int
    threads: int

    @property
    def operands(self) -> tuple[KernelOperand, ...]:
        """The inputs, then the outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def _is_opencl(self) -> bool:
        return self.dialect == "opencl"

    def kernel(self) -> Kernel:
        """Return the launch parameters: the name, the threads, and the memory of a work-group."""
        # stores of CUDA are synchronous, so one output buffer is enough
        leaving = self.buffers if self._is_opencl else 1
        shared = [(f"{operand.name}_buffers", self.buffers * operand.buffer_bytes) for operand in self.inputs]
        shared += [(f"{operand.name}_buffers", leaving * operand.buffer_bytes) for operand in self.outputs]
        if self._is_opencl:
            shared.append(("spare", 16))
        return Kernel(NAME, self._header_comment(), (), 0, self.threads, (), tuple(shared))

    def _header_comment(self) -> str:
        buffers = "1 buffer" if self.buffers == 1 else f"{self.buffers} buffers"
        return "\n".join([*[operand.describe() for operand in self.operands], f"{buffers} per input"])

    def text(self) -> str:
        """Return the source."""
        words = c_dialect(self.dialect)
        lines = [words.prelude]
        if needs_double(*[operand.format for operand in self.operands]):
            lines.append(words.doubles)
        lines += [read_header(f"{self.dialect}_{part}") for part in ("pipeline", "async")]
        for operand in self.operands:
            lines += [f"// {operand.describe()}", *operand.box_code()]
            moving = import_code if operand in self.inputs else export_code
            lines += [*moving(operand, self.dialect), ""]
        lines += [*element_accessors(self.inputs, self.outputs), *self.functions.splitlines(), ""]
        lines += [
            *compute_function(self.body, self.each, self.inputs, self.outputs),
            "",
            *self._import_tile_function(),
            "",
        ]
        return "\n".join([*lines, *self._kernel_function(), ""])

    def _memory_parameters(self, operands: Sequence[KernelOperand], starts: bool) -> list[str]:
        result = []
        for operand in operands:
            result.append(f"GLOBAL {'const ' if operand in self.inputs else ''}u8 *{operand.name}_memory")
            if starts:
                result.append(f"const u64 {operand.name}_start")
        return result + [f"GLOBAL const i32 *{operand.name}_tiles" for operand in operands if operand.is_listed]

    def _import_tile_function(self) -> list[str]:
        """Return the function that imports a tile of every input."""
        arguments = ["const u32 tile", *self._memory_parameters(self.inputs, starts=False)]
        arguments += [f"LOCAL {operand.bits_type} *{operand.name}_buffer" for operand in self.inputs]
        result, assigned, passed, end = "void", "", "", []
        if self._is_opencl:
            arguments += ["LOCAL v16 *spare", "event_t event"]
            result, assigned, passed, end = "event_t", "event = ", ", spare, event", ["return event;"]
        calls = [
            f"{assigned}{operand.name}_import({operand.name}_buffer, {operand.name}_memory,"
            f" {operand.find_call('tile')}{passed});"
            for operand in self.inputs
        ]
        return [f"INLINE {result} import_tile({', '.join(arguments)}) {{", *indent([*calls, *end]), "}"]

    def _buffer_pointer(self, operand: KernelOperand, number: str) -> str:
        start = f"(LOCAL {operand.bits_type} *){operand.name}_buffers"
        count = operand.buffer_bytes // operand.size
        return f"{start} + ({number}) * {count}u" if number else start

    def _import_call(self, tile: str, buffer: str) -> str:
        """Return the statement that starts to import a tile."""
        arguments = [tile, *[f"{operand.name}_memory" for operand in self.inputs]]
        arguments += [f"{operand.name}_tiles" for operand in self.inputs if operand.is_listed]
        arguments += [self._buffer_pointer(operand, buffer) for operand in self.inputs]
        if not self._is_opencl:
            return f"import_tile({', '.join(arguments)});"
        return f"arriving[{buffer}] = import_tile({', '.join([*arguments, 'spare', '0'])});"

    def _kernel_function(self) -> list[str]:
        kernel, buffers, opencl = self.kernel(), self.buffers, self._is_opencl
        ahead = max(1, buffers - 1)
        tiles = self.operands[0].tiler.count
        arguments = self._memory_parameters(self.operands, starts=opencl)
        notes = [f"// {line}" for line in kernel.note.splitlines()]
        head = f"KERNEL({self.threads}) {NAME}({', '.join(arguments)}) {{"
        start = shared_arrays(kernel, dynamic=not opencl and bool(kernel.large_shared))
        if opencl:
            start += [f"{operand.name}_memory += {operand.name}_start;" for operand in self.operands]
            start += [f"event_t arriving[{buffers}], leaving[{buffers}];"]
            first = f"(GLOBAL const u8 *){self.operands[0].name}_memory"
            for k in range(buffers):  # every buffer starts free, with the event of a dummy copy
                spare = f"async_work_group_copy((LOCAL u8 *)spare, {first}, 1, 0)"
                start.append(f"leaving[{k}] = {spare};")
        start_next = "STARTED;" if not opencl and self.inputs else ""
        if self.inputs:
            for k in range(ahead):
                tile = "GROUP" if k == 0 else f"GROUP + {k}u * GROUPS"
                start.append(f"if ({tile} < {tiles}u) {{ {self._import_call(tile, str(k))} }}")
                start += [start_next] if start_next else []
        body = [f"const u32 buffer = {'turn % ' + str(buffers) + 'u' if buffers > 1 else '0u'};"]
        next_tile = f"tile + {ahead}u * GROUPS" if ahead > 1 else "tile + GROUPS"
        later = f"(turn + {ahead}u) % {buffers}u" if buffers > 1 else "0u"
        next_one = [f"const u32 next = {next_tile};", f"if (next < {tiles}u) {{ {self._import_call('next', later)} }}"]
        next_one = [*next_one, *([start_next] if start_next else [])] if self.inputs else []
        if buffers > 1:
            body += next_one
        if self.inputs:
            body.append(
                "wait_group_events(1, &arriving[buffer]);" if opencl else f"ARRIVED({ahead if buffers > 1 else 0});"
            )
        if opencl:
            body.append("wait_group_events(1, &leaving[buffer]);")
        body += [
            "BARRIER;",
            *[
                f"const {operand.name}_box_t {operand.name}_box = {operand.find_call('tile')};"
                for operand in self.operands
            ],
        ]
        for operand in self.outputs:
            pointer = self._buffer_pointer(operand, "buffer" if opencl else "")
            body.append(f"LOCAL {operand.bits_type} *{operand.name}_buffer = {pointer};")
        pointers = [f"({self._buffer_pointer(operand, 'buffer')})" for operand in self.inputs] + [
            f"{operand.name}_buffer" for operand in self.outputs
        ]
        pointers += [f"{operand.name}_box" for operand in self.operands]
        body += [f"compute(tile, {', '.join(pointers)});", "BARRIER;"]
        if buffers == 1:
            body += next_one
        for k, operand in enumerate(self.outputs):
            call = f"{operand.name}_export({operand.name}_buffer, {operand.name}_memory, {operand.name}_box"
            body.append(
                f"leaving[buffer] = {call}, spare, {'leaving[buffer]' if k else '0'});" if opencl else f"{call});"
            )
        loop = f"for (u32 tile = GROUP, turn = 0; tile < {tiles}u; tile += GROUPS, ++turn) {{"
        end = [f"wait_group_events({buffers}, leaving);"] if opencl else []
        return [*notes, head, *indent([*start, loop, *indent(body), "}", *end]), "}"]


SCHEME_BUFFERS = {"duplex": 1, "double": 2}
MAX_TILES = 2**31 - 1

Built = TypeVar("Built")


class TileKernel:
    """One kernel that imports, computes and exports the tiles of a pipeline, made by `Pipeline.kernel`.

    A work-group takes every n-th tile. It imports into local memory asynchronously, computes there, and exports; with
    "double" or "buffered" buffering the next tiles are imported meanwhile. `source` is the program; it can be read
    without a device. The `pipeline` is as in `Pipeline.kernel`, and so are `compute`, `engine`, `each`, `functions`
    and `threads`.

    >>> import numpy as np
    >>> from tilewright.tiling import Input, Output, Pipeline, Tiler
    >>> a, b, tiler = np.arange(12, dtype=np.float32), np.zeros(12, np.float32), Tiler((12,), (5,))
    >>> kernel = Pipeline([Input(a, tiler)], [Output(b, tiler)]).kernel("2 * in0 + 1", engine="cuda")
    >>> kernel
    <TileKernel of 3 tiles for cuda, 256 threads, 96 bytes of local memory>
    >>> "cp.async" in kernel.source
    True
    """

    def __init__(
        self,
        pipeline: Pipeline,
        compute: object,
        engine: str | None = None,
        each: str = "element",
        functions: str = "",
        threads: int = 256,
    ) -> None:
        if engine is None:  # the engine of an operand's memory, or any device that OpenCL finds
            ends = [endpoint for endpoint, _ in (*pipeline.sources, *pipeline.targets)]
            engine = next((end.array.backend.engine for end in ends if isinstance(end, DeviceEndpoint)), "opencl")
        if engine not in ENGINES:
            raise TransferError(f"expected engine {' or '.join(map(repr, ENGINES))}, got {engine!r}")
        if each not in COMPUTE_UNITS:
            raise TransferError(f"expected each={' or '.join(map(repr, COMPUTE_UNITS))}, got {each!r}")
        if not 1 <= threads <= 1024:
            raise TransferError(f"expected 1 to 1024 threads, got {threads}")
        self.pipeline, self.engine = pipeline, engine
        self._operands: list[tuple[Endpoint, Tiler, Any]] = [
            *[(endpoint, item.tiler, item.fill) for endpoint, item in pipeline.sources],
            *[(endpoint, item.tiler, None) for endpoint, item in pipeline.targets],
        ]
        self._validate_pipeline(pipeline)
        count = len(pipeline.inputs)
        operands = [
            _make_operand(f"in{k}" if k < count else f"out{k - count}", *operand)
            for k, operand in enumerate(self._operands)
        ]
        inputs, outputs = tuple(operands[:count]), tuple(operands[count:])
        buffers = SCHEME_BUFFERS.get(pipeline.scheme, pipeline.depth)
        statements = compute_statements(compute, outputs)
        self._program = KernelProgram(engine, inputs, outputs, statements, each, functions, buffers, threads)
        self.launch_shape = self._program.kernel()
        self._builds: dict[Any, Any] = {}
        self.source = self._program.text()

    def _validate_pipeline(self, pipeline: Pipeline) -> None:
        """Raise if a pipeline needs features that a kernel lacks."""
        if pipeline.scheme not in (*SCHEME_BUFFERS, "buffered"):
            raise TransferError(
                f"a kernel cannot use scheme {pipeline.scheme!r}; use 'double', 'duplex', or 'buffered' with a depth"
            )
        if not pipeline.outputs:
            raise TransferError("a kernel needs at least one output; give the pipeline an Output")
        if pipeline.tiles > MAX_TILES:
            raise TransferError(f"a kernel can have {MAX_TILES} tiles, got {pipeline.tiles}; use larger tiles")
        for item in pipeline.outputs:
            if any(n > 1 and shared for n, shared in zip(item.tiler.grid, item.tiler.overlap, strict=True)):
                raise TransferError(
                    f"output tiles of {item.tiler} overlap, so work-groups would write the same elements in any order;"
                    " use overlap=0"
                )
        for endpoint, tiler, _ in self._operands:
            if 0 in endpoint.shape and tiler.count:
                raise TransferError(f"a kernel cannot read an array of shape {endpoint.shape}, which has no memory")

    @property
    def local_bytes(self) -> int:
        """The local memory of one work-group.

        >>> import numpy as np
        >>> from tilewright.tiling import Output, Pipeline, Tiler
        >>> Pipeline([], [Output(np.zeros(12), Tiler((12,), (4,)))]).kernel("x0", engine="cuda").local_bytes
        32
        """
        return sum(nbytes for _, nbytes in self.launch_shape.shared)

    def run(self, groups: int | None = None) -> PipelineReport:
        """Run the kernel on all tiles, and return a report.

        Operands on the host are copied to the device and back. With all operands on the device the kernel is enqueued
        and not waited for. `groups` is the number of work-groups that share the tiles.

        >>> import numpy as np
        >>> from tilewright.copying import load_engine
        >>> from tilewright.tiling import Output, Pipeline, Tiler
        >>> kernel = Pipeline([], [Output(np.zeros(12), Tiler((12,), (5,)))]).kernel("x0", engine="opencl")
        >>> bool(load_engine("opencl").unavailable_reason()) or kernel.run().tiles == 3
        True
        """
        started = perf_counter()
        engine = load_engine(self.engine)
        problem = engine.unavailable_reason()
        if problem:
            raise DeviceError(f"the kernel cannot run: {problem}; Pipeline.run computes on the host")
        count = len(self._program.inputs)
        if self.pipeline.tiles:
            backend = self._device_backend(engine)
            arrays = [_copy_to_device(backend, endpoint) for endpoint, _, _ in self._operands]
            backend.launch_pipeline(self, arrays, groups)
            for (endpoint, _, _), array in list(zip(self._operands, arrays, strict=True))[count:]:
                if isinstance(endpoint, MemoryEndpoint):
                    backend.download(array, endpoint.tensor.memory.bytes)
        nbytes = [tiler.volume * endpoint.dtype.itemsize for endpoint, tiler, _ in self._operands]
        seconds = perf_counter() - started
        return PipelineReport(self.pipeline.tiles, seconds, sum(nbytes[:count]), sum(nbytes[count:]), self.local_bytes)

    def _device_backend(self, engine: DeviceEngine) -> KernelBackend:
        """Return the device and queue of the operands, or the engine's default."""
        backends = [end.array.backend for end, _, _ in self._operands if isinstance(end, DeviceEndpoint)]
        for backend in backends:
            if backend.engine != self.engine:
                raise TransferError(
                    f"an operand is in {backend.engine} memory, but the kernel is for {self.engine}; make it with"
                    f" engine={backend.engine!r}"
                )
        if len({backend.memory_space() for backend in backends}) > 1:
            raise TransferError("the operands are on different devices; copy them to one device first")
        backend = backends[-1] if backends else engine.default_backend()
        assert isinstance(backend, KernelBackend)
        return backend

    def coordinate_tables(self) -> list[Any]:
        """Return the tables of tile coordinates that the program takes after the memories."""
        return [operand.coordinates() for operand in self._program.operands if operand.is_listed]

    def element_offsets(self, arrays: list[DeviceArray]) -> list[int]:
        """Return the byte offset of element 0 of each operand in its device memory, one of `arrays`."""
        offsets = []
        for (endpoint, _, _), array in zip(self._operands, arrays, strict=True):
            tensor = endpoint.tensor if isinstance(endpoint, MemoryEndpoint) else None
            offsets.append(array.start + (0 if tensor is None else tensor.address - tensor.memory.address))
        return offsets

    def build_once(self, key: Hashable, build: Callable[[], Built]) -> Built:
        """Return the result of `build` for the program, built once per `key`."""
        if key not in self._builds:
            self._builds[key] = build()
        result: Built = self._builds[key]
        return result

    def __repr__(self) -> str:
        return (
            f"<TileKernel of {self.pipeline.tiles} tiles for {self.engine}, {self.launch_shape.threads} threads,"
            f" {self.local_bytes} bytes of local memory>"
        )


def _make_operand(name: str, endpoint: Endpoint, tiler: Tiler, fill: Fill) -> KernelOperand:
    """Return an operand as the kernel sees it; raise if it is not a strided array of scalars in memory."""
    element = format_of(endpoint.dtype)
    if element.has_blocks:
        raise FormatError(f"{name} holds {endpoint.dtype}, which kernels do not support; use a scalar format")
    if isinstance(endpoint, DeviceEndpoint):
        array = endpoint.array
        strides, address = array.strides, array.start + (array.memory if isinstance(array.memory, int) else 0)
    elif isinstance(endpoint, MemoryEndpoint):
        tensor = endpoint.tensor
        space = Box((0,) * tiler.rank, tensor.space)
        if tensor.strides is None or tensor.window != space:
            raise TransferError(
                f"{name} has layout {tensor.layout} and window {tensor.window}, but kernels need entire strided"
                " tensors; copy it to an array first"
            )
        tensor.validate_bounds(space)
        strides, address = tensor.strides, tensor.address - tensor.memory.address
    else:
        raise TransferError(
            f"{name} is a {type(endpoint).__name__}, but kernels need arrays in memory; read it into one, or run the"
            " pipeline on the host"
        )
    if tiler.order not in ("row_major", "col_major") and tiler.count > MAX_LISTED_TILES:
        raise TransferError(
            f"{tiler.order} order supports at most {MAX_LISTED_TILES} tiles in a kernel, got {tiler.count}; use"
            " row_major"
        )
    strides = tuple([stride if n > 1 else element.itemsize for n, stride in zip(endpoint.shape, strides, strict=True)])
    padding = None if fill is None else validate_fill(fill, endpoint.dtype)
    fill_bytes = padding if padding is None or isinstance(padding, str) else padding.tobytes()
    alignment = gcd(WIDEST, address)
    if alignment % min(WIDEST, element.itemsize):
        raise TransferError(f"{name} starts at {address:#x}, which is not aligned to {element.name}; copy it first")
    return KernelOperand(name, tiler, strides, element, fill_bytes, alignment)


def _copy_to_device(backend: KernelBackend, endpoint: Endpoint) -> DeviceArray:
    """Return an operand in device memory; one on the host is uploaded."""
    if isinstance(endpoint, DeviceEndpoint):
        return endpoint.array
    assert isinstance(endpoint, MemoryEndpoint)
    data = endpoint.tensor.memory.bytes
    array = backend.empty((data.size,), uint8)
    backend.upload(data, array)
    return array
