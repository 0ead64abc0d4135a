# SPDX-License-Identifier: Apache-2.0
"""Copies by name: tilize, untilize, relayout, copy, pack and unpack. Each runs one plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..errors import FormatError, LayoutError
from ..formats import Format, FormatLike, Number, ScalarFormat, block_format_of, format_of, scalar_format_of
from ..layout import Layout, LayoutLike, Pair, as_integer, row_major, tiled_layout
from .calls import ReadyCopy, remember
from .devices import Operand
from .engine import CopyJob, CopyOperation, run_copies, run_copy
from .placement import Array, Placement, native_format, placement_of
from .plan import plan_copy

Size: TypeAlias = Sequence[int]  # (height, width)
Target = TypeVar("Target")


def _as_matrix(array: Operand) -> Operand:
    """Return an array with at least two dimensions."""
    return array.reshape(1, -1) if array.ndim < 2 else array


def _tiled_placement(
    shape: tuple[int, ...], tile: Size, face: Size | None, transpose: bool, element: Format, fill: Number
) -> Placement:
    """Return the placement of a tiled tensor."""
    size = _validate_pair(tile, "tile")
    layout = tiled_layout(shape, size, None if face is None else _validate_pair(face, "face"), bool(transpose))
    return Placement(layout, element, fill, size[0] * size[1])


def _validate_pair(value: Size, name: str) -> Pair:
    """Return a tile or face size as (height, width), or raise."""
    pair = tuple([as_integer(n, name) for n in value]) if isinstance(value, (tuple, list)) else ()
    if len(pair) != 2 or min(pair) < 1:
        raise LayoutError(f"{name} must be (height, width), both at least 1, got {value!r}")
    return (pair[0], pair[1])


def tilize(
    array: object,
    tile: Size = (32, 32),
    face: Size | None = (16, 16),
    transpose: bool = False,
    dtype: FormatLike | None = None,
    pad_value: Number = 0,
    out: object = None,
    threads: int | None = None,
    engine: str | None = None,
) -> Array:
    """Return an array in tiles: a flat array of physical elements, or of bytes for a block format.

    Args:
        array: an array of any rank; each matrix is padded to whole tiles. An array of torch, CuPy, JAX or PyOpenCL in
            device memory gives another one on the same device.
        tile: (height, width) of a tile.
        face: (height, width) of the faces of a tile, or None.
        transpose: store faces and elements column by column.
        dtype: the format of the result; the default is the array's.
        pad_value: the value of the padding.
        out: a contiguous array for the result, for example a memory map.
        threads: the number of threads on the host; the default is all cores.
        engine: see `execute`.

    >>> tilize(np.arange(32, dtype=np.uint8).reshape(4, 8), tile=(2, 2), face=None)[:8].tolist()
    [0, 1, 8, 9, 2, 3, 10, 11]
    >>> tilize(np.ones((30, 40), dtype=np.float32), dtype="bfloat8_b").nbytes  # two tiles of 1088 bytes
    2176
    """
    result: Array = _tilize(array, out, threads, engine, tile, face, transpose, dtype, pad_value)
    return result


@remember
def _tilize(
    array: object, out: object, threads: Any, engine: Any, tile: Any, face: Any, transpose: Any, dtype: Any, fill: Any
) -> tuple[Any, ReadyCopy | None]:
    operation = Tilize(tile, face, transpose, dtype, fill, _fill_text(fill))
    if isinstance(array, np.ndarray) and not array.flags.c_contiguous:
        whole = _with_element_strides(array)
        if whole is not array:
            return run_copy(operation, whole, out, threads, engine)[0], None
    return run_copy(operation, array, out, threads, engine)


def tilize_batch(
    arrays: Sequence[object],
    tile: Size = (32, 32),
    face: Size | None = (16, 16),
    transpose: bool = False,
    dtype: FormatLike | None = None,
    pad_value: Number = 0,
    threads: int | None = None,
    engine: str | None = None,
) -> list[Any]:
    """Return several arrays in tiles, such as the experts of a layer: `tilize` of each.

    Tensors of the same shape, strides and dtype on one CUDA device are copied 32 to a launch, which keeps the device
    busy where a single one is too small to; the results of a launch are parts of one allocation.

    Args:
        arrays: the arrays.
        tile, face, transpose, dtype, pad_value, threads, engine: as in `tilize`.

    >>> [tiles.nbytes for tiles in tilize_batch([np.ones((32, 32), np.float32)] * 3, dtype="bfloat8_b")]
    [1088, 1088, 1088]
    """
    return run_copies(Tilize(tile, face, transpose, dtype, pad_value, _fill_text(pad_value)), arrays, threads, engine)


class Tilize(NamedTuple):
    """The options of `tilize`."""

    tile: Size
    face: Size | None
    transpose: bool
    dtype: FormatLike | None
    fill: Number
    fill_text: str

    def plan(self, source: Operand, target: Operand | None) -> CopyJob:
        """Return the copy from `source` to `target`, or to a new array."""
        matrix = _as_matrix(source)
        before = placement_of(matrix)
        element = before.format if self.dtype is None else format_of(self.dtype)
        after = _tiled_placement(matrix.shape, self.tile, self.face, self.transpose, element, self.fill)
        return _flat_job(before, after, after.cosize if matrix.size else 0, target)


def _fill_text(fill: object) -> str:
    """Return a text that tells fills apart: 0, 0.0 and -0.0 are equal, but not the same."""
    return "" if type(fill) is int else repr(fill)


def _flat_job(
    source: Placement, target: Placement, count: int, out: Operand | None, crop: bool = False, pad: bool = False
) -> CopyJob:
    """Return the copy to a flat array of `count` elements; raise if `out` is not such an array."""
    element: ScalarFormat = target.format.storage_format
    size = target.nbytes if target.format.has_blocks and count else count
    if out is not None and (out.dtype != element.dtype or out.size != size or not out.flags.c_contiguous):
        raise LayoutError(f"out must be a contiguous array of {size} x {element.dtype}, got {out.size} x {out.dtype}")
    return CopyJob(plan_copy(source, target, crop=crop, pad=pad) if count else None, (size,), element)


def untilize(
    data: object,
    shape: int | tuple[int, ...] | list[int],
    tile: Size = (32, 32),
    face: Size | None = (16, 16),
    transpose: bool = False,
    dtype: FormatLike | None = None,
    out_dtype: FormatLike | None = None,
    out: object = None,
    threads: int | None = None,
    engine: str | None = None,
) -> Array:
    """Return the array of this `shape` from its physical elements: the inverse of `tilize`.

    Args:
        data: a contiguous array of physical elements, or of bytes for a block format.
        shape: the shape of the result.
        tile, face, transpose: as in `tilize`.
        dtype: the format of the data; needed for a block format.
        out_dtype: the format of the result; the default is the data's, or float32 for a block format.
        out: an array for the result.
        threads, engine: as in `tilize`.

    >>> flat = tilize(np.arange(32, dtype=np.uint8).reshape(4, 8), tile=(2, 2), face=None)
    >>> untilize(flat, (4, 8), tile=(2, 2), face=None)[1].tolist()
    [8, 9, 10, 11, 12, 13, 14, 15]
    """
    result: Array = _untilize(data, out, threads, engine, shape, tile, face, transpose, dtype, out_dtype)
    return result


def _untilize_to(shape: Any, *options: Any) -> CopyOperation:
    extents = tuple(int(n) for n in shape) if isinstance(shape, (tuple, list)) else (int(shape),)
    return Untilize(extents, *options)


class Untilize(NamedTuple):
    """The options of `untilize`."""

    shape: tuple[int, ...]
    tile: Size
    face: Size | None
    transpose: bool
    dtype: FormatLike | None
    out_dtype: FormatLike | None

    def plan(self, source: Operand, target: Operand | None) -> CopyJob:
        """Return the copy from `source` to `target`, or to a new array."""
        _validate_contiguous(source, "untilize")
        shape, count = self.shape, prod(self.shape)
        element = native_format(source.dtype) if self.dtype is None else format_of(self.dtype)
        if not element.has_blocks:
            native_format(source.dtype)
        before = _tiled_placement(shape, self.tile, self.face, self.transpose, element, 0)
        needed = before.nbytes if count else 0
        if source.nbytes != needed:
            raise FormatError(
                f"shape {shape} of {element.name} in tiles of {self.tile} needs {needed} bytes, but the data has"
                f" {source.nbytes}; check the shape, the tile and dtype=..., the format of the data"
            )
        result = element.value_format if self.out_dtype is None else scalar_format_of(self.out_dtype)
        if target is None:
            after = Placement(row_major(*shape) if len(shape) > 1 else row_major(1, *(shape or (1,))), result)
        else:
            if tuple(target.shape) != shape:
                raise LayoutError(f"out has shape {tuple(target.shape)}, but the result has shape {shape}")
            if self.out_dtype is not None and target.dtype != result.dtype:
                raise FormatError(
                    f"out has dtype {target.dtype}, but out_dtype is {result.name}; leave one of them out"
                )
            after = placement_of(_as_matrix(target))
        return CopyJob(plan_copy(before, after) if count else None, shape, result)


def relayout(
    array: object,
    source: LayoutLike,
    target: LayoutLike,
    out: object = None,
    dtype: FormatLike | None = None,
    pad_value: Number | None = None,
    threads: int | None = None,
    engine: str | None = None,
    crop: bool = False,
) -> Array:
    """Return a flat array with the elements of `array` copied from layout `source` to layout `target`.

    Args:
        array: a contiguous array, used as flat memory.
        source, target: layouts with data of the same shape.
        out: a contiguous array for the result.
        dtype: the format of the result.
        pad_value: the value of padding (default 0); if given, the target may also have more data than the source.
        threads, engine: as in `tilize`.
        crop: allow the target to have less data than the source.

    >>> from tilewright import row_major, col_major
    >>> relayout(np.arange(6), row_major(2, 3), col_major(2, 3)).tolist()
    [0, 3, 1, 4, 2, 5]
    """
    operation = Relayout(source, target, dtype, pad_value, _fill_text(pad_value), crop)
    result: Array = run_copy(operation, array, out, threads, engine)[0]
    return result


class Relayout(NamedTuple):
    """The options of `relayout`."""

    before: LayoutLike
    after: LayoutLike
    dtype: FormatLike | None
    fill: Number | None
    fill_text: str
    crop: bool

    def plan(self, source: Operand, target: Operand | None) -> CopyJob:
        """Return the copy from `source` to `target`, or to a new array."""
        _validate_contiguous(source, "relayout")
        before = Placement(self.before, native_format(source.dtype))
        element = before.format if self.dtype is None else format_of(self.dtype)
        after = Placement(self.after, element, 0 if self.fill is None else self.fill)
        pad = self.fill is not None
        job = _flat_job(before, after, after.cosize, target, self.crop, pad)
        return job if job.plan else replace(job, plan=plan_copy(before, after, crop=self.crop, pad=pad))


def copy(source: object, target: Target, threads: int | None = None, engine: str | None = None) -> Target:
    """Copy and convert the elements of `source` to `target`, an array of the same shape, and return `target`.

    Either may be in device memory. `threads` and `engine` are as in `tilize`.

    >>> copy(np.arange(6, dtype=np.float32).reshape(2, 3).T, np.empty((3, 2), dtype=np.int16)).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    if target is None:
        raise TypeError("copy needs an array as its target, got None; make one of the shape of the source")
    _copy(source, target, threads, engine)
    return target


class Copy(NamedTuple):
    """`copy` has no options."""

    def plan(self, source: Operand, target: Operand | None) -> CopyJob:
        """Return the copy from `source` to `target`."""
        assert target is not None
        if source.shape != target.shape:
            raise LayoutError(f"source has shape {source.shape}, target has shape {target.shape}: they must be equal")
        before, after = (placement_of(array if array.ndim else array.reshape(1)) for array in (source, target))
        plan = plan_copy(before, after) if source.size else None
        return CopyJob(plan, tuple(target.shape), scalar_format_of(target.dtype))


def pack(
    values: object,
    dtype: FormatLike,
    tile_elements: int = 1024,
    out: object = None,
    threads: int | None = None,
    engine: str | None = None,
) -> Array:
    """Return values that are in physical order already as the bytes of a block format.

    `tilize(..., dtype=...)` tiles and packs in one pass.

    Args:
        values: a contiguous array in any scalar format, in host or device memory: a whole number of tiles.
        dtype: the block format.
        tile_elements: the number of elements per tile.
        out: a contiguous array for the result.
        threads, engine: as in `tilize`.

    >>> pack(np.ones(2048, dtype=np.float32), "bfloat8_b").nbytes
    2176
    """
    result: Array = _pack(values, out, threads, engine, dtype, tile_elements)
    return result


class Pack(NamedTuple):
    """The options of `pack`."""

    dtype: FormatLike
    tile_elements: int

    def plan(self, source: Operand, target: Operand | None) -> CopyJob:
        """Return the copy from `source` to `target`, or to a new array."""
        _validate_contiguous(source, "pack")
        layout = Layout(source.size)
        packed = Placement(layout, block_format_of(self.dtype), tile_elements=self.tile_elements)
        return _flat_job(Placement(layout, native_format(source.dtype)), packed, source.size, target)


def unpack(
    data: object,
    dtype: FormatLike,
    tile_elements: int = 1024,
    out_dtype: FormatLike = "float32",
    out: object = None,
    threads: int | None = None,
    engine: str | None = None,
) -> Array:
    """Return the values of packed bytes in physical order: the inverse of `pack`.

    Args:
        data: a contiguous array of bytes.
        dtype: the block format of the data.
        tile_elements: the number of elements per tile.
        out_dtype: the format of the values.
        out: a contiguous array for the values.
        threads, engine: as in `tilize`.

    >>> unpack(pack(np.full(1024, 1.5, dtype=np.float32), "bfloat4_b"), "bfloat4_b")[:2].tolist()
    [1.5, 1.5]
    """
    result: Array = _unpack(data, out, threads, engine, dtype, tile_elements, out_dtype)
    return result


class Unpack(NamedTuple):
    """The options of `unpack`."""

    dtype: FormatLike
    tile_elements: int
    out_dtype: FormatLike

    def plan(self, source: Operand, target: Operand | None) -> CopyJob:
        """Return the copy from `source` to `target`, or to a new array."""
        _validate_contiguous(source, "unpack")
        element = block_format_of(self.dtype)
        size = element.bytes_per_tile(self.tile_elements)
        if source.nbytes % size:
            raise FormatError(f"{source.nbytes} bytes are not a whole number of {element.name} tiles of {size} bytes")
        layout = Layout(source.nbytes // size * self.tile_elements)
        packed = Placement(layout, element, tile_elements=self.tile_elements)
        return _flat_job(packed, Placement(layout, format_of(self.out_dtype)), layout.size, target)


def _validate_contiguous(operand: Operand, function: str) -> None:
    """Raise for `function` if an array is not contiguous."""
    if not operand.flags.c_contiguous:
        raise LayoutError(
            f"{function} needs a contiguous array, got strides {operand.strides}; use np.ascontiguousarray"
        )


def _remembered(operation: Callable[..., CopyOperation]) -> Callable[..., Any]:
    """Return a function of (array, out, threads, engine, option, ...) that runs the operation with these options."""
    return remember(
        lambda array, out, threads, engine, *options: run_copy(operation(*options), array, out, threads, engine)
    )


_copy, _untilize = _remembered(Copy), _remembered(_untilize_to)
_pack, _unpack = _remembered(Pack), _remembered(Unpack)


def _with_element_strides(array: Array) -> Array:
    """Return the array itself, or a copy if its strides are not multiples of the element size."""
    whole = all(stride % array.itemsize == 0 for n, stride in zip(array.shape, array.strides, strict=True) if n > 1)
    return array if whole else np.ascontiguousarray(array)
