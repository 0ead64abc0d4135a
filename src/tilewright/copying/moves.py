# SPDX-License-Identifier: Apache-2.0
"""The moves that users ask for by name: tilize, untilize, relayout, copy. Each is one plan."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..errors import FormatError, LayoutError
from ..formats import BlockFormat, ScalarFormat, format_of
from ..layout import Layout, LayoutLike, with_logical_shape
from ..layout.layout import make_layout
from ..layout.tuples import ceil_div
from .buffers import native_format, placement_of
from .device_array import admitted, empty_like, released
from .engine import execute
from .placement import Placement
from .plan import plan_copy

Array = np.ndarray[Any, Any]
Pair = tuple[int, int]


@lru_cache(maxsize=512)
def tiled_layout(
    shape: tuple[int, ...], tile: Pair = (32, 32), face: Pair | None = (16, 16), transpose: bool = False
) -> Layout:
    """Return the layout of a tensor stored tile by tile, padded to whole tiles, with the padding known.

    Matrices follow each other, tiles are row-major in a matrix, faces row-major in a tile, elements row-major in a
    face; transposed tiles swap both inside a tile. `face=None` gives plain tiles.

    >>> print(tiled_layout((4, 8), tile=(2, 2), face=None))
    ((2,1,2),(2,1,4)):((2,4,16),(1,4,4))
    """
    outer, rows, columns = _folded(shape)
    height, width = tile
    # a tile is never smaller than its faces: 8 x 32 tiles have faces of 8 x 16; without faces it is one face
    high, wide = (min(face[0], height), min(face[1], width)) if face else tile
    if height % high or width % wide:
        raise LayoutError(f"faces of {high} x {wide} do not divide a tile of {height} x {width}; use face=None")
    down, across = ceil_div(rows, height), ceil_div(columns, width)
    area = height * width
    in_row, in_column = (
        ((1, high * wide), (high, height * wide)) if transpose else ((wide, high * width), (1, high * wide))
    )
    matrix = ((high, height // high, down), (wide, width // wide, across))
    steps = ((*in_row, across * area), (*in_column, area))
    count = down * across * area
    outer_steps = tuple([prod(outer[k + 1 :]) * count for k in range(len(outer))])
    layout: Layout = with_logical_shape(make_layout((*outer, *matrix), (*outer_steps, *steps)), (*outer, rows, columns))
    return layout


def _folded(shape: tuple[int, ...]) -> tuple[tuple[int, ...], int, int]:
    if len(shape) < 2:
        return (), 1, shape[0] if shape else 1
    return shape[:-2], shape[-2], shape[-1]


def _two_dimensional(array: Any) -> Any:
    return array.reshape(1, -1) if array.ndim < 2 else array


def _tiled_placement(
    shape: tuple[int, ...], tile: Any, face: Any, transpose: bool, element: ScalarFormat | BlockFormat, fill: Any
) -> Placement:
    tile = tile if isinstance(tile, tuple) else _pair(tile, "tile")
    face = face if isinstance(face, tuple) or face is None else _pair(face, "face")
    if type(fill) is int:  # the zeros 0.0 and -0.0, say, are equal but not alike
        return _cached_tiled_placement(shape, tile, face, bool(transpose), element, fill)
    return _cached_tiled_placement.__wrapped__(shape, tile, face, bool(transpose), element, fill)


@lru_cache(maxsize=512)
def _cached_tiled_placement(
    shape: tuple[int, ...], tile: Any, face: Any, transpose: bool, element: ScalarFormat | BlockFormat, fill: Any
) -> Placement:
    size = _pair(tile, "tile")
    layout = tiled_layout(shape, size, None if face is None else _pair(face, "face"), transpose)
    return Placement(layout, element, fill, size[0] * size[1] if isinstance(element, BlockFormat) else 0)


def _pair(value: Any, what: str) -> Pair:
    pair = tuple(int(n) for n in value) if isinstance(value, (tuple, list)) else ()
    if len(pair) != 2 or min(pair) < 1:
        raise LayoutError(f"{what} must be (height, width), both at least 1, got {value!r}")
    return (pair[0], pair[1])


def tilize(
    array: Any,
    tile: Any = (32, 32),
    face: Any = (16, 16),
    transpose: bool = False,
    dtype: Any = None,
    pad_value: Any = 0,
    out: Any = None,
    threads: int | None = None,
    engine: str | None = None,
) -> Any:
    """Return the physical elements of an array stored tile by tile: a flat array, of bytes for block formats.

    Any rank: outer dimensions fold, and every matrix is padded to whole tiles with `pad_value`. `dtype` converts on
    the way. `out` is filled instead of a new array, and may be a memory map. The result lives where the array lives:
    an array of torch, CuPy, JAX or PyOpenCL in the memory of a device gives another one there.

    >>> tilize(np.arange(32, dtype=np.uint8).reshape(4, 8), tile=(2, 2), face=None)[:8].tolist()
    [0, 1, 8, 9, 2, 3, 10, 11]
    >>> tilize(np.ones((30, 40), dtype=np.float32), dtype="bfloat8_b").nbytes  # two tiles of 1088 bytes
    2176
    """
    array = _whole_steps(_two_dimensional(admitted(array)))
    source = placement_of(array)
    element = source.format if dtype is None else format_of(dtype)
    target = _tiled_placement(array.shape, tile, face, transpose, element, pad_value)
    count = target.places if array.size else 0
    data = _result(out, target, count, array)
    if array.size:
        execute(plan_copy(source, target), array, data, threads, engine)
    return released(data)


def untilize(
    data: Any,
    shape: Any,
    tile: Any = (32, 32),
    face: Any = (16, 16),
    transpose: bool = False,
    dtype: Any = None,
    out_dtype: Any = None,
    out: Any = None,
    threads: int | None = None,
    engine: str | None = None,
) -> Any:
    """Return the logical array of this shape from its physical elements: the inverse of `tilize`.

    `dtype` is the format of the data, needed for block formats, whose data are bytes; they become float32. `out_dtype`
    converts on the way.

    >>> flat = tilize(np.arange(32, dtype=np.uint8).reshape(4, 8), tile=(2, 2), face=None)
    >>> untilize(flat, (4, 8), tile=(2, 2), face=None)[1].tolist()
    [8, 9, 10, 11, 12, 13, 14, 15]
    """
    data = admitted(data)
    shape = tuple(int(n) for n in shape) if isinstance(shape, (tuple, list)) else (int(shape),)
    if not data.flags.c_contiguous:
        raise LayoutError(f"physical data must be contiguous, got strides {data.strides}; use np.ascontiguousarray")
    element = native_format(data) if dtype is None else format_of(dtype)
    if isinstance(element, ScalarFormat):
        native_format(data)
    source = _tiled_placement(shape, tile, face, transpose, element, 0)
    have = data.nbytes
    need = source.nbytes if prod(shape) else 0
    if have < need:
        raise FormatError(
            f"{have} bytes of {element.name} are too few for shape {shape} in tiles of {tile}: it takes {need}"
        )
    default = "float32" if isinstance(element, BlockFormat) else element
    result_format = format_of(default if out_dtype is None else out_dtype)
    if not isinstance(result_format, ScalarFormat):
        raise FormatError(f"a logical array holds a scalar format, not {result_format.name}; tilize packs blocks")
    result = empty_like(data, shape, result_format) if out is None else admitted(out)
    if tuple(result.shape) != shape:
        raise LayoutError(f"out has shape {result.shape}, but the result has shape {shape}")
    if out_dtype is not None and result.dtype != result_format.dtype:
        raise FormatError(
            f"out holds {result.dtype}, but out_dtype asks for {result_format.name}; leave one of them out"
        )
    if prod(shape):
        view = _two_dimensional(result)
        execute(plan_copy(source, placement_of(view)), data.reshape(-1), view, threads, engine)
    return released(result)


def relayout(
    array: Any,
    source: LayoutLike,
    target: LayoutLike,
    out: Any = None,
    dtype: Any = None,
    pad_value: Any = None,
    threads: int | None = None,
    engine: str | None = None,
    crop: bool = False,
) -> Any:
    """Return a flat array with the elements moved from one layout of flat memory to another.

    Both layouts hold data of one shape, unless that is asked for: with a `pad_value` the target may have more, which
    gets that value, and with `crop` less. Padding that the target has beside its data gets the value too, or 0.

    >>> from tilewright import row_major, col_major
    >>> relayout(np.arange(6), row_major(2, 3), col_major(2, 3)).tolist()
    [0, 3, 1, 4, 2, 5]
    """
    array = admitted(array)
    if not array.flags.c_contiguous:
        raise LayoutError(
            f"relayout reads flat memory, got an array with strides {array.strides}; use np.ascontiguousarray"
        )
    flat = array.reshape(-1)
    before = Placement(source, native_format(flat))
    after = Placement(
        target, before.format if dtype is None else format_of(dtype), 0 if pad_value is None else pad_value
    )
    data = _result(out, after, int(target.cosize), flat)
    execute(plan_copy(before, after, crop=crop, pad=pad_value is not None), flat, data, threads, engine)
    return released(data)


def copy(source: Any, target: Any, threads: int | None = None, engine: str | None = None) -> Any:
    """Return target after the elements of source, of the same shape, were copied and converted into it.

    Either may be in the memory of a device.

    >>> copy(np.arange(6, dtype=np.float32).reshape(2, 3).T, np.empty((3, 2), dtype=np.int16)).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    before, after = admitted(source), admitted(target)
    if before.shape != after.shape:
        raise LayoutError(f"cannot copy shape {before.shape} to shape {after.shape}; they must be equal")
    if before.size:
        before, after = (array if array.ndim else array.reshape(1) for array in (before, after))
        execute(plan_copy(placement_of(before), placement_of(after)), before, after, threads, engine)
    return target


def pack(
    values: Any,
    dtype: Any,
    tile_elements: int = 1024,
    out: Any = None,
    threads: int | None = None,
    engine: str | None = None,
) -> Any:
    """Return the bytes of a block format that hold values which are in physical order already.

    `tilize(..., dtype=...)` orders and packs in one pass. Values are a whole number of tiles of `tile_elements`; they
    may be of any scalar format, and in the memory of a device, where the result is then, too.

    >>> pack(np.ones(2048, dtype=np.float32), "bfloat8_b").nbytes
    2176
    """
    values = admitted(values)
    element = format_of(dtype)
    if not isinstance(element, BlockFormat):
        raise FormatError(f"{element.name} has no blocks to pack; relayout(..., dtype={element.name!r}) converts")
    if not values.flags.c_contiguous:
        raise LayoutError(f"pack reads flat memory, got strides {values.strides}; use np.ascontiguousarray")
    flat = values.reshape(-1)
    room = Layout(flat.size)
    target = Placement(room, element, tile_elements=tile_elements)
    data = _result(out, target, flat.size, flat)
    if flat.size:
        execute(plan_copy(Placement(room, native_format(flat)), target), flat, data, threads, engine)
    return released(data)


def unpack(
    data: Any,
    dtype: Any,
    tile_elements: int = 1024,
    out_dtype: Any = "float32",
    out: Any = None,
    threads: int | None = None,
    engine: str | None = None,
) -> Any:
    """Return the values that packed bytes hold, in physical order: the inverse of `pack`.

    >>> unpack(pack(np.full(1024, 1.5, dtype=np.float32), "bfloat4_b"), "bfloat4_b")[:2].tolist()
    [1.5, 1.5]
    """
    data, element = admitted(data), format_of(dtype)
    if not isinstance(element, BlockFormat):
        raise FormatError(f"{element.name} has no blocks to unpack; relayout(..., dtype=...) converts")
    if not data.flags.c_contiguous:
        raise LayoutError(f"unpack reads flat memory, got strides {data.strides}; use np.ascontiguousarray")
    size = element.bytes_per_tile(tile_elements)
    if data.nbytes % size:
        raise FormatError(
            f"{data.nbytes} bytes are no whole number of {element.name} tiles of {size}; give all of them"
        )
    room = Layout(data.nbytes // size * tile_elements)
    target = Placement(room, format_of(out_dtype))
    values = _result(out, target, room.size, data)
    if room.size:
        source = Placement(room, element, tile_elements=tile_elements)
        execute(plan_copy(source, target), data.reshape(-1), values, threads, engine)
    return released(values)


def _whole_steps(array: Any) -> Any:
    """Return the array itself, or a copy of it if its strides are not multiples of its elements."""
    if array.flags.c_contiguous:
        return array
    whole = all(step % array.itemsize == 0 for n, step in zip(array.shape, array.strides, strict=True) if n > 1)
    return array if whole else np.ascontiguousarray(array)


def _result(out: Any, target: Placement, count: int, like: Any) -> Any:
    """Return the array to fill: a new one where another lives, or out if it has the right size and type."""
    element, size = target.format, count
    if isinstance(element, BlockFormat):
        element, size = format_of("uint8"), target.nbytes if count else 0
    assert isinstance(element, ScalarFormat)
    if out is None:
        return empty_like(like, size, element)
    out, dtype = admitted(out), element.dtype
    if out.dtype != dtype or out.size != size or not out.flags.c_contiguous:
        raise LayoutError(f"out must be a contiguous array of {size} x {dtype}, got {out.size} x {out.dtype}")
    return out.reshape(-1)
