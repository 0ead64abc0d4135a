# SPDX-License-Identifier: Apache-2.0
"""`KernelOperand`: an operand of a device kernel, and the C code that imports and exports its tiles.

In OpenCL `async_work_group_copy` copies the rows inside the space, and threads fill the padding. In CUDA each thread
starts copies of up to 16 bytes with `cp.async`, which complete while another tile is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np

from ..copying.codegen import WIDEST, Digit, conditional, digit_expressions, indent, raw_type, vector_type
from ..formats import ScalarFormat
from .tiler import Tiler

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
        """Return the number of axes."""
        return self.tiler.rank

    @property
    def size(self) -> int:
        """Return the bytes of an element."""
        return self.format.itemsize

    @property
    def bits_type(self) -> str:
        """Return the C type of an element's bits."""
        return raw_type(self.size)

    @property
    def pitches(self) -> tuple[int, ...]:
        """Return the strides in local memory, in elements; rows start at multiples of a vector."""
        extents = self.tiler.largest_tile
        result, step = [1], 1
        for axis in range(self.rank - 1, 0, -1):
            step *= extents[axis]
            if axis == self.rank - 1:
                step = -(-step * self.size // WIDEST) * WIDEST // self.size
            result.append(step)
        return tuple(result[::-1])

    @property
    def buffer_bytes(self) -> int:
        """Return the bytes that a tile takes in local memory."""
        count = self.pitches[0] * self.tiler.largest_tile[0]
        return -(-count * self.size // WIDEST) * WIDEST

    @property
    def is_dense(self) -> bool:
        """Return whether the last axis is contiguous."""
        return self.strides[-1] == self.size

    @property
    def vector_bytes(self) -> int:
        """Return the widest vector, up to 16 bytes, that is always aligned in memory and in the buffer."""
        if not self.is_dense:
            return self.size
        step, before = self.tiler.axes[-1][:2]
        return gcd(WIDEST, self.alignment, *self.strides[:-1], step * self.size, before * self.size)

    @property
    def is_listed(self) -> bool:
        """Return whether tile coordinates come from a table, since their order is not arithmetic."""
        return self.tiler.order not in ("row_major", "col_major")

    def coordinates(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Return the table of grid coordinates of all tiles."""
        tiles = [self.tiler.coords(k) for k in range(self.tiler.count)]
        return np.ascontiguousarray(np.array(tiles, dtype=np.int32).reshape(-1))

    @property
    def index_type(self) -> str:
        """Return the C type of coordinates in the space: 64 bits only where needed."""
        reach = max([n + sum(pair) for n, pair in zip(self.tiler.space, self.tiler.augmentation, strict=True)])
        return "i32" if reach + max(self.tiler.tile) <= INT_MAX else "i64"

    def box_code(self) -> list[str]:
        """Return the C type of a tile's box, and the function that computes it from the tile number."""
        tiler, name, rank = self.tiler, self.name, self.rank
        where, extents = (", ".join(f"{each}{k}" for k in range(rank)) for each in ("at", "n"))
        table = f", GLOBAL const i32 *{name}_tiles" if self.is_listed else ""
        lines = [
            f"typedef struct {{ {self.index_type} {where}; u32 {extents}; }} {name}_box_t;",
            f"INLINE {name}_box_t {name}_find(const u32 tile{table}) {{",
            f"    {name}_box_t box;",
        ]
        for axis, coordinate in enumerate(self._coordinates("tile")):
            step, first, whole, last, rest = tiler.axes[axis]
            extent = f"{whole}u" if rest == whole else f"c{axis} == {last}u ? {rest}u : {whole}u"
            lines.append(f"    const u32 c{axis} = {coordinate};")
            lines.append(f"    box.at{axis} = ({self.index_type})c{axis} * {step} + {first};")
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
        terms = [f"(i64)({x}) * {step}" for x, step in zip(coordinates, self.strides, strict=True) if step]
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
        """Return whether tiles extend beyond the space."""
        return any(before or after for before, after in self.tiler.augmentation)

    def describe(self) -> str:
        """Return a description of the operand for a comment."""
        shape, tile = (" x ".join(map(str, each)) for each in (self.tiler.space, self.tiler.largest_tile))
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
    step = operand.strides[-1] // operand.size
    return f"event = async_work_group_strided_copy({', '.join(ends)}, {count}, {step}, event);"


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
    """Return the C conditions that indices are inside a tile, for those of the first axes with a smaller last tile."""
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
    width, kind = max(1, piece // operand.size), vector_type(piece)
    slot = f"buffer + ({operand.buffer_index(index_names(operand))})"
    place = f"memory + ({operand.byte_offset(index_names(operand, 'x'))})"
    if importing:
        head = f"INLINE void {name}_import({raw} *buffer, const u8 *memory, const {name}_box_t box) {{"
        copy = f"COPY_ASYNC_{piece}({slot}, {place});"
        if piece < 4:  # too narrow for asynchronous copies
            copy = f"*({kind} *)({slot}) = *(const {kind} *)({place});"
    else:
        head = f"INLINE void {name}_export(const {raw} *buffer, u8 *memory, const {name}_box_t box) {{"
        copy = f"*({kind} *)({place}) = *(const {kind} *)({slot});"
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
