# SPDX-License-Identifier: Apache-2.0
"""Layouts as text of other systems: XLA, MLIR, TVM, Triton, AIE; each writes what it can, or says why it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from ..errors import LayoutError
from ..layout import Layout
from ..layout.layout_like import LayoutLike
from ..layout.linear import Linear
from ..layout.tuples import as_tuple, leaves
from .aie import AccessPattern
from .index_maps import IndexMap, Term
from .mlir_maps import StridedMemref, write_index_expressions
from .triton_texts import TritonEncoding, TritonType
from .tvm import write_index_map
from .xla import XlaShape


class StridedPart(NamedTuple):
    """A leaf of a mode: `extent` values of (coordinate // `divisor`), `stride` elements apart."""

    mode: int
    divisor: int
    extent: int
    stride: int


def _strided_parts(layout: LayoutLike, notation: str) -> list[StridedPart]:
    """Return the leaves of a strided layout; raise if it is something else."""
    if not isinstance(layout, Layout) or layout.axes or layout.is_replicated:
        raise LayoutError(f"{layout} is not a strided layout of plain offsets, which is all that {notation} can say")
    parts = []
    for k, (shape, stride) in enumerate(zip(as_tuple(layout.shape), as_tuple(layout.stride), strict=True)):
        divisor = 1
        for extent, step in zip(leaves(shape), leaves(stride), strict=True):
            parts.append(StridedPart(k, divisor, int(extent), int(step)))
            divisor *= int(extent)
    return parts


def _logical_extents(layout: Any) -> tuple[int, ...]:
    return tuple([int(extent) for extent in as_tuple(layout.logical_shape)])


def write_xla(layout: LayoutLike, dtype: str = "f32") -> str:
    """Return a layout as XLA's shape, with tiles where its modes are nested.

    >>> write_xla(Layout(((8, 2), (128, 3)), ((128, 3072), (1, 1024))), "f32")
    'f32[16,384]{1,0:T(8,128)}'
    """
    parts = [part for part in _strided_parts(layout, "XLA") if part.extent != 1]
    offset = getattr(layout, "offset", 0)
    if offset:
        raise LayoutError(f"{layout} begins at {offset}; XLA's shapes begin at 0")
    shape = _logical_extents(layout)
    ordered = sorted(parts, key=lambda part: part.stride, reverse=True)
    expected = 1
    for part in reversed(ordered):
        if part.stride != expected:
            raise LayoutError(f"{layout} has gaps or overlaps at stride {part.stride}, where XLA has {expected}")
        expected *= part.extent
    order = list(dict.fromkeys([part.mode for part in ordered]))
    order = [*[k for k in range(len(shape)) if k not in order], *order]
    for tiles in _candidate_tiles(ordered, order):
        candidate = XlaShape(dtype, shape, tuple(reversed(order)), tiles)
        if candidate.padded_size == expected and _means_the_same(candidate.layout, layout, shape):
            return str(candidate)
    raise LayoutError(f"{layout} is not made of tiles within tiles of its last dimensions, as XLA's layouts are")


def _candidate_tiles(ordered: Sequence[StridedPart], order: Sequence[int]) -> list[tuple[tuple[int, ...], ...]]:
    """Return tiles that may give parts in this order: none, one, or one within another."""
    inner: dict[int, list[int]] = {k: [] for k in order}
    for part in reversed(ordered):
        inner[part.mode].append(part.extent)
    depth = max([len(extents) for extents in inner.values()], default=1) - 1
    if depth < 1:
        return [()]
    tiles: list[tuple[int, ...]] = []
    for level in range(depth):
        blocked = [k for k in order if len(inner[k]) > depth - level]
        first = order.index(blocked[0])
        tile = []
        for k in order[first:]:
            extents = inner[k]
            held = extents[: max(0, len(extents) - 1 - level)] if len(extents) > 1 else []
            tile.append(prod(held) if held else 1)
        tiles.append(tuple(tile))
    return [tuple(tiles)]


def _means_the_same(first: Any, second: Any, shape: Sequence[int]) -> bool:
    """Return whether two layouts agree on a shape: at its corners and steps, which decide for nested strides."""
    points = [tuple([0] * len(shape))]
    for k, extent in enumerate(shape):
        steps = {1 << bit for bit in range(extent.bit_length())} | {extent - 1, extent // 2, extent // 3}
        points += [
            tuple([step if axis == k else 0 for axis in range(len(shape))]) for step in steps if 0 < step < extent
        ]
    points.append(tuple([extent - 1 for extent in shape]))
    return all(int(first(*point)) == int(second(*point)) for point in points) and _agree_everywhere(
        first, second, shape
    )


def _agree_everywhere(first: Any, second: Any, shape: Sequence[int]) -> bool:
    """Return whether two layouts agree along every dimension; sums of strides then agree everywhere."""
    for k, extent in enumerate(shape):
        for step in range(min(extent, 1 << 16)):
            point = [step if axis == k else 0 for axis in range(len(shape))]
            if int(first(*point)) != int(second(*point)):
                return False
    return True


def write_memref(layout: LayoutLike, dtype: str = "f32") -> str:
    """Return a layout as a memref: with strides, or with an affine map where modes are nested.

    >>> write_memref(Layout((4, 8), (64, 1)) + 5)
    'memref<4x8xf32, strided<[64, 1], offset: 5>>'
    >>> write_memref(Layout(((2, 2), 4), ((1, 8), 2)))
    'memref<4x4xf32, affine_map<(d0, d1) -> (d0 mod 2 + d0 floordiv 2 * 8 + d1 * 2)>>'
    """
    parts = _strided_parts(layout, "a memref")
    shape, offset = _logical_extents(layout), int(getattr(layout, "offset", 0))
    if len(parts) == len(shape):
        return str(StridedMemref(shape, dtype, tuple([part.stride for part in parts]), offset))
    return str(StridedMemref(shape, dtype, index_map=_index_map(layout, "d")))


def _index_map(layout: LayoutLike, prefix: str) -> IndexMap:
    """Return a strided layout as a map with one result: the sum of its parts."""
    parts, rank = _strided_parts(layout, "an affine map"), len(as_tuple(layout.shape))
    names = tuple([f"{prefix}{k}" for k in range(rank)])
    total: Term | None = None
    for part in parts:
        if not part.stride or part.extent == 1:
            continue
        is_last = part == [other for other in parts if other.mode == part.mode][-1]
        term = Term.input(names[part.mode])
        term = term // part.divisor if part.divisor > 1 else term
        term = term if is_last else term.combine("mod", Term.number(part.extent))
        term = term.combine("*", Term.number(part.stride)) if part.stride != 1 else term
        total = term if total is None else total + term
    offset = int(getattr(layout, "offset", 0))
    if offset or total is None:
        total = Term.number(offset) if total is None else total + Term.number(offset)
    return IndexMap(names, (total,))


def write_affine_map(layout: LayoutLike) -> str:
    """Return a strided layout as MLIR's affine map.

    >>> write_affine_map(Layout((4, 8), (8, 1)))
    'affine_map<(d0, d1) -> (d0 * 8 + d1)>'
    """
    return write_index_expressions(_index_map(layout, "d"))


def write_index_lambda(layout: LayoutLike) -> str:
    """Return a compact layout as TVM's index map: its parts from the outermost to the innermost.

    >>> write_index_lambda(Layout(((2, 2), 4), ((1, 8), 2)))
    'lambda i0, i1: [i0 // 2, i1, i0 % 2]'
    """
    parts = [part for part in _strided_parts(layout, "TVM's index map") if part.extent != 1]
    names = tuple([f"i{k}" for k in range(len(as_tuple(layout.shape)))])
    ordered, expected = sorted(parts, key=lambda part: part.stride, reverse=True), 1
    for part in reversed(ordered):
        if part.stride != expected:
            raise LayoutError(f"{layout} has gaps or overlaps at stride {part.stride}; TVM's mapped arrays are compact")
        expected *= part.extent
    terms = []
    for part in ordered:
        term = Term.input(names[part.mode])
        term = term // part.divisor if part.divisor > 1 else term
        is_last = part.divisor == max(other.divisor for other in parts if other.mode == part.mode)
        terms.append(term if is_last else term.combine("mod", Term.number(part.extent)))
    return write_index_map(IndexMap(names, tuple(terms or [Term.number(0)])))


def write_triton(linear: Any, dtype: str = "f16", shape: Sequence[int] | None = None) -> str:
    """Return a linear map to dimensions as a tensor type with Triton's `#ttg.linear` or `#ttg.shared_linear`.

    >>> write_triton(Linear({"register": [(1,)], "lane": [(2,)], "warp": [], "block": []}, {"dim0": 4}))
    'tensor<4xf16, #ttg.linear<{register = [[1]], lane = [[2]], warp = [], block = []}>>'
    """
    if not isinstance(linear, Linear):
        raise LayoutError(
            f"Triton's encodings are maps to elements; expected a Linear from register, lane, warp, got {linear}"
        )
    extents = tuple(linear.outputs.values()) if shape is None else tuple(shape)
    bases = {name: [list(image) for image in images] for name, images in linear.bases.items()}
    if set(bases) <= {"register", "lane", "warp", "block"}:
        fields = {name: bases.get(name, []) for name in ("register", "lane", "warp", "block")}
        return str(TritonType(extents, dtype, TritonEncoding("linear", fields)))
    if set(bases) <= {"offset", "block"}:
        encoding = TritonEncoding("shared_linear", {"offset": bases["offset"]}, {"alignment": 16})
        return str(TritonType(extents, dtype, encoding, True, "#ttg.shared_memory, mutable"))
    raise LayoutError(f"Triton's axes are register, lane, warp and block, or offset and block, got {list(bases)}")


def write_access_pattern(layout: LayoutLike, shape: Sequence[int] | None = None) -> str:
    """Return a strided layout as AIE's access pattern over a tensor of a `shape`, by default a flat one.

    >>> write_access_pattern(Layout((3, 2), (4, 1)), (9, 4))
    'TensorAccessPattern((9, 4), 0, sizes=[3, 2], strides=[4, 1])'
    """
    parts = _strided_parts(layout, "an access pattern")
    ordered = [part for k in range(len(as_tuple(layout.shape))) for part in reversed([p for p in parts if p.mode == k])]
    offset = int(getattr(layout, "offset", 0))
    size = offset + sum((part.extent - 1) * part.stride for part in ordered) + 1
    tensor = (size,) if shape is None else tuple(shape)
    return str(AccessPattern(tensor, offset, tuple([p.extent for p in ordered]), tuple([p.stride for p in ordered])))
