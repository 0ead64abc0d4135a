# SPDX-License-Identifier: Apache-2.0
"""Functions that make arrays, and that join, split and rearrange them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from .array_class import ndarray
from .array_indices import broadcast_to as broadcast_array
from .array_memory import find_memory
from .array_strides import broadcast_shapes, check_size
from .number_types import INT64, as_shape, dtype, uint8
from .operators import UFUNCS
from .type_promotion import result_type


def array(value: Any, dtype: Any = None, copy: bool | None = True, ndmin: int = 0) -> ndarray:
    """Return a new array of numbers in nested lists, of an array or a buffer."""
    source = ndarray.of(value, dtype)
    is_shared = source is value or source.base is not None
    result = source.copy() if copy and is_shared else source
    return result.reshape((1,) * (ndmin - result.ndim) + result.shape) if result.ndim < ndmin else result


def asarray(value: Any, dtype: Any = None) -> ndarray:
    """Return a value as an array, without a copy where it is one."""
    return ndarray.of(value, dtype)


asanyarray = asarray


def getmaskarray(source: Any) -> ndarray:
    """Return which elements are masked: none, since there are no masked arrays here."""
    return zeros(ndarray.of(source).shape, bool)


def ascontiguousarray(value: Any, dtype: Any = None) -> ndarray:
    """Return a value as an array whose elements follow each other."""
    source = ndarray.of(value, dtype)
    source = source if source.is_contiguous else source.copy()
    return source if source.ndim else source.reshape(1)


def atleast_1d(value: Any) -> ndarray:
    """Return a value as an array of one dimension at least."""
    source = ndarray.of(value)
    return source if source.ndim else source.reshape(1)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> ndarray:
    """Return an array over the memory of a buffer."""
    kind = result_type(dtype)
    memory = buffer.bytes_view() if isinstance(buffer, ndarray) else find_memory(buffer)
    nbytes = memory.nbytes - offset if count < 0 else count * kind.itemsize
    if nbytes % kind.itemsize:
        raise ValueError("buffer size must be a multiple of element size")
    return ndarray(nbytes // kind.itemsize, kind, memory, offset)


def fromfile(file: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> ndarray:
    """Return an array of what a file holds from a byte on."""
    kind = result_type(dtype)
    with open(file, "rb") as stream:
        stream.seek(offset)
        return frombuffer(bytearray(stream.read(-1 if count < 0 else count * kind.itemsize)), kind)


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """Return a new array, here of zeros."""
    return ndarray(shape, dtype)


def full(shape: Any, value: Any, dtype: Any = None) -> ndarray:
    """Return a new array with one value."""
    result = ndarray(shape, ndarray.of(value).dtype if dtype is None else dtype)
    result[...] = value
    return result


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    """Return a new array of zeros."""
    result = ndarray(shape, dtype)
    if result.dtype.hasobject:
        result[...] = 0
    return result


def ones(shape: Any, dtype: Any = float) -> ndarray:
    """Return a new array of ones."""
    return full(shape, 1, dtype)


def zeros_like(source: Any, dtype: Any = None) -> ndarray:
    """Return zeros in the shape of another array."""
    other = ndarray.of(source)
    return zeros(other.shape, other.dtype if dtype is None else dtype)


def empty_like(source: Any, dtype: Any = None) -> ndarray:
    """Return an array in the shape of another."""
    return zeros_like(source, dtype)


def arange(*limits: Any, dtype: Any = None) -> ndarray:
    """Return numbers from a start up to a stop, by a step."""
    start, stop, step = (0, *limits, 1) if len(limits) == 1 else (*limits, 1)[:3]
    if all(isinstance(each, int) or hasattr(each, "__index__") for each in (start, stop, step)):
        check_size(len(range(start, stop, step)))
        values: list[Any] = list(range(start, stop, step))
        return ndarray.from_values(values, INT64 if dtype is None else result_type(dtype), (len(values),))
    count = max(0, int(-(-(stop - start) // step)))
    return ndarray.of([start + k * step for k in range(count)], float if dtype is None else dtype)


def linspace(start: float, stop: float, count: int = 50, dtype: Any = None) -> ndarray:
    """Return numbers at equal distances."""
    step = (stop - start) / (count - 1) if count > 1 else 0.0
    values = [start + k * step for k in range(count - 1)] + [float(stop)] * (count > 1) + [start] * (count == 1)
    return ndarray.from_values(values, result_type(float if dtype is None else dtype), (count,))


def indices(shape: Any, dtype: Any = int) -> ndarray:
    """Return the coordinates of every place of a shape."""
    extents = as_shape(shape)
    axes = [
        broadcast_array(arange(n, dtype=dtype).reshape([-1 if j == k else 1 for j in range(len(extents))]), extents)
        for k, n in enumerate(extents)
    ]
    return stack(axes) if axes else zeros((0,), dtype)


def ndindex(*shape: Any) -> Iterator[tuple[int, ...]]:
    """Return the coordinates of every place of a shape, one after the other."""
    extents = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    return itertools.product(*map(range, extents))


def ix_(*sequences: Any) -> tuple[ndarray, ...]:
    """Return arrays that together choose a grid."""
    tables = [ndarray.of(each) for each in sequences]
    tables = [each.nonzero()[0] if each.dtype.kind == "b" else each for each in tables]
    rank = len(tables)
    return tuple(each.reshape([-1 if j == k else 1 for j in range(rank)]) for k, each in enumerate(tables))


# Joining and splitting.


def concatenate(parts: Sequence[Any], axis: int | None = 0, dtype: Any = None) -> ndarray:
    """Return arrays joined along an axis."""
    arrays = [ndarray.of(each) for each in parts]
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        arrays, axis = [each.reshape(-1) for each in arrays], 0
    kind = result_type(*arrays) if dtype is None else result_type(dtype)
    rank = arrays[0].ndim
    axis %= rank
    rest = {(each.shape[:axis], each.shape[axis + 1 :]) for each in arrays}
    if len(rest) > 1:
        raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    if axis == 0:
        values = [value for each in arrays for value in each.values()]
        return ndarray.from_values(values, kind, (sum(len(each) for each in arrays), *arrays[0].shape[1:]))
    order = (axis, *[k for k in range(rank) if k != axis])
    joined = concatenate([each.transpose(order) for each in arrays], 0, kind)
    return joined.transpose([order.index(k) for k in range(rank)]).copy()


def stack(parts: Sequence[Any], axis: int = 0) -> ndarray:
    """Return arrays of one shape joined along a new axis."""
    arrays = [ndarray.of(each) for each in parts]
    axis %= arrays[0].ndim + 1
    return concatenate([each[(*[slice(None)] * axis, None)].copy() for each in arrays], axis)


def column_stack(parts: Sequence[Any]) -> ndarray:
    """Return arrays as the columns of a matrix."""
    arrays = [ndarray.of(each) for each in parts]
    return concatenate([each if each.ndim > 1 else each[:, None] for each in arrays], 1)


def append(source: Any, values: Any, axis: int | None = None) -> ndarray:
    """Return an array with values after it."""
    parts = [ndarray.of(source), ndarray.of(values)]
    return concatenate([each.reshape(-1) for each in parts] if axis is None else parts, axis or 0)


def insert(source: Any, place: Any, values: Any, axis: int | None = None) -> ndarray:
    """Return an array with values before some places of its first axis, or of all its elements."""
    table = ndarray.of(source)
    if axis is None:
        table = table.reshape(-1)
    elif axis % table.ndim:
        raise ValueError("values are inserted along the first axis here")
    places = ndarray.of(place).reshape(-1).values()
    added = ndarray.of(values)
    count = max(len(places), len(added) if added.ndim == table.ndim else 1)
    places *= count // len(places) if places else 1
    whole = concatenate([table, broadcast_array(added, (count, *table.shape[1:]))], dtype=table.dtype)
    # each row goes where it was; those to be inserted come before the row at their place
    keys = [(k, 1) for k in range(len(table))] + [(at, 0) for at in places]
    return whole[sorted(range(len(keys)), key=keys.__getitem__)]  # type: ignore[no-any-return]


def split(source: Any, sections: Any, axis: int = 0) -> list[Any]:
    """Return an array cut at places, or into a number of equal parts."""
    table = ndarray.of(source)
    length = table.shape[axis]
    cuts = (
        [k * (length // sections) for k in range(1, sections)]
        if isinstance(sections, int)
        else ndarray.of(sections, int).values()
    )
    ends = zip([0, *cuts], [*cuts, length], strict=True)
    return [table[(*[slice(None)] * axis, slice(a, b))] for a, b in ends]


def tile(source: Any, repeats: Any) -> ndarray:
    """Return an array repeated along each axis."""
    table, counts = ndarray.of(source), as_shape(repeats)
    rank = max(table.ndim, len(counts))
    table = table.reshape((1,) * (rank - table.ndim) + table.shape)
    for axis, count in enumerate((1,) * (rank - len(counts)) + counts):
        table = concatenate([table] * count, axis) if count else table[(*[slice(None)] * axis, slice(0, 0))]
    return table.copy()


def repeat(source: Any, repeats: Any, axis: int | None = None) -> Any:
    """Return each element several times."""
    return ndarray.of(source).repeat(repeats, axis)


def roll(source: Any, shift: int) -> ndarray:
    """Return elements moved to higher places, the last ones to the front."""
    table = ndarray.of(source)
    flat = table.reshape(-1)
    at = -shift % flat.size if flat.size else 0
    return concatenate([flat[at:], flat[:at]]).reshape(table.shape)


def pad(source: Any, widths: Any, constant_values: Any = 0, mode: str = "constant") -> ndarray:
    """Return an array with a border of a value."""
    table = ndarray.of(source)
    pairs = broadcast_array(ndarray.of(widths), (table.ndim, 2)).tolist()
    shape = [n + low + high for n, (low, high) in zip(table.shape, pairs, strict=True)]
    result = full(shape, constant_values, table.dtype)
    result[tuple(slice(low, low + n) for n, (low, _) in zip(table.shape, pairs, strict=True))] = table
    return result


def broadcast_to(source: Any, shape: Any) -> Any:
    """Return a view of an array in a shape in which it is repeated, which cannot be written to."""
    view = broadcast_array(ndarray.of(source), as_shape(shape))
    view = view.as_view(view.shape, view.strides, view.start)
    view.writeable = False
    return view


def broadcast_arrays(*sources: Any) -> list[Any]:
    """Return arrays in their common shape."""
    arrays = [ndarray.of(each) for each in sources]
    shape = broadcast_shapes(*[each.shape for each in arrays])
    return [broadcast_to(each, shape) for each in arrays]


def moveaxis(source: Any, axis: int, target: int) -> ndarray:
    """Return a view with a dimension moved to another place."""
    table = ndarray.of(source)
    order = [k for k in range(table.ndim) if k != axis % table.ndim]
    order.insert(target % table.ndim, axis % table.ndim)
    return table.transpose(order)


def as_strided(source: ndarray, shape: Any = None, strides: Any = None, writeable: bool = True) -> ndarray:
    """Return a view of memory with any shape and strides."""
    view = source.as_view(as_shape(shape), tuple(strides), source.start)
    view.writeable = writeable and source.writeable
    return view


def diff(source: Any, prepend: Any = None, append: Any = None, axis: int = -1) -> ndarray:
    """Return the differences of neighbours, with values in front and behind if they are given."""
    table = ndarray.of(source)
    if table.ndim != 1:
        before = (*[slice(None)] * (axis % table.ndim), slice(None, -1))
        after = (*[slice(None)] * (axis % table.ndim), slice(1, None))
        return UFUNCS["subtract"](table[after], table[before])  # type: ignore[no-any-return]
    edges = [None if edge is None else ndarray.of(edge).reshape(-1) for edge in (prepend, append)]
    parts = [each for each in (edges[0], table, edges[1]) if each is not None]
    whole = concatenate(parts) if len(parts) > 1 else table
    operate = UFUNCS["not_equal" if whole.dtype.kind == "b" else "subtract"]
    return operate(whole[1:], whole[:-1])  # type: ignore[no-any-return]


def ravel_multi_index(coordinates: Any, shape: Any, order: str = "C") -> Any:
    """Return the place of coordinates in row-major order, or with `order` "F" in column-major order."""
    total: Any = 0
    pairs = list(zip(coordinates, shape, strict=True))
    for coordinate, extent in pairs if order == "C" else reversed(pairs):
        total = total * extent + coordinate
    return total


def unravel_index(place: Any, shape: Any) -> tuple[Any, ...]:
    """Return the coordinates of places in row-major order."""
    columns = []
    rest: Any = ndarray.of(place) if not isinstance(place, int) else place
    for extent in reversed(as_shape(shape)):
        columns.append(rest % extent)
        rest = rest // extent
    return tuple(dtype(int).wrap(each) if isinstance(each, int) else each for each in reversed(columns))


def unpackbits(source: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> ndarray:
    """Return the bits of bytes along the last axis, or of all bytes."""
    table = ndarray.of(source)
    table = table.reshape(-1) if axis is None else table
    order = range(8) if bitorder == "little" else range(7, -1, -1)
    bits = [value >> k & 1 for value in table.values() for k in order]
    result = ndarray.from_values(bits, uint8._dtype, (*table.shape[:-1], table.shape[-1] * 8))
    return result if count is None else result[..., :count]


def packbits(source: Any, axis: int | None = None, bitorder: str = "big") -> ndarray:
    """Return bytes of bits along the last axis, or of all bits."""
    table = ndarray.of(source)
    table = table.reshape(-1) if axis is None else table
    missing = -table.shape[-1] % 8
    padded = pad(table.astype(uint8), [(0, 0)] * (table.ndim - 1) + [(0, missing)]) if missing else table
    order = range(8) if bitorder == "little" else range(7, -1, -1)
    values = padded.values()
    codes = [sum(bool(values[at + j]) << k for j, k in enumerate(order)) for at in range(0, len(values), 8)]
    return ndarray.from_values(codes, uint8._dtype, (*padded.shape[:-1], padded.shape[-1] // 8))


def errstate(**options: Any) -> Any:
    """Return a context in which nothing differs: there are no warnings here."""
    return nullcontext()


def vectorize(function: Any, otypes: Any = None) -> Any:
    """Return a function of numbers as one of arrays."""

    def apply(*values: Any) -> Any:
        arrays = broadcast_arrays(*values)
        results = [function(*each) for each in zip(*[part.values() for part in arrays], strict=True)]
        kind = result_type(*otypes) if otypes else ndarray.of(results).dtype
        return ndarray.from_values(results, kind, arrays[0].shape)

    return apply
