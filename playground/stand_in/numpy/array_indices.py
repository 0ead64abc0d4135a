# SPDX-License-Identifier: Apache-2.0
"""Indexing: integers, slices and new axes make views; arrays of integers or bools choose elements."""

from __future__ import annotations

from itertools import compress
from math import prod
from operator import index as as_index
from typing import Any, NamedTuple

from .array_memory import ArrayMemory
from .array_strides import broadcast_shapes, check_size, list_positions
from .number_types import INT64, bool_


class Dimension(NamedTuple):
    """A dimension of the result: an extent with a stride in bytes, or places in bytes that an index chose."""

    extent: int
    stride: int
    chosen: Any = None  # an array of integers


def get_elements(source: ArrayMemory, index: Any) -> Any:
    """Return the elements at an index: a view, a copy of what arrays choose, or one scalar."""
    if source.ndim == 1 and isinstance(index, ArrayMemory) and index.dtype.kind == "b" and index.ndim == 1:
        _check_mask(index.shape, source.shape)
        chosen = list(compress(source.values(), index.values()))
        return source.from_values(chosen, source.dtype, (len(chosen),))
    start, dimensions = _resolve(source, index)
    if all(each.chosen is None for each in dimensions):
        view = source.as_view([each.extent for each in dimensions], [each.stride for each in dimensions], start)
        return view.scalar_or_self() if not view.shape and not _has_ellipsis(index) else view
    unit = source.place_unit()
    places, shape = _chosen_places(start, dimensions, unit or 1)
    return source.from_values(source.read_places(places, unit), source.dtype, shape).scalar_or_self()


def set_elements(target: ArrayMemory, index: Any, value: Any) -> None:
    """Set the elements at an index to a value, or to those of an array, which is broadcast."""
    start, dimensions = _resolve(target, index)
    if all(each.chosen is None for each in dimensions):
        view = target.as_view([each.extent for each in dimensions], [each.stride for each in dimensions], start)
        view.write_values(_broadcast_values(target, value, view.shape))
        return
    unit = target.place_unit()
    places, shape = _chosen_places(start, dimensions, unit or 1)
    target.write_places(places, unit, _broadcast_values(target, value, shape))


def _broadcast_values(target: ArrayMemory, value: Any, shape: tuple[int, ...]) -> list[Any]:
    if isinstance(value, (int, float, bool_)) or (target.dtype.kind == "O" and not isinstance(value, ArrayMemory)):
        check_size(prod(shape))
        return [value] * prod(shape)
    values = target.of(value)
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values.reshape(values.shape[1:])
    return broadcast_to(values, shape).values()


def broadcast_to(source: ArrayMemory, shape: tuple[int, ...]) -> ArrayMemory:
    """Return a view of an array in a shape in which it is repeated."""
    if source.shape == shape:
        return source
    if len(shape) < source.ndim or broadcast_shapes(source.shape, shape) != tuple(shape):
        raise ValueError(f"could not broadcast input array from shape {source.shape} into shape {tuple(shape)}")
    missing = len(shape) - source.ndim
    strides = [
        0 if extent == 1 and wanted != 1 else step
        for extent, step, wanted in zip(source.shape, source.strides, shape[missing:], strict=True)
    ]
    return source.as_view(shape, [0] * missing + strides, source.start)


def nonzero(source: ArrayMemory) -> tuple[Any, ...]:
    """Return the coordinates of the elements that are not 0, one array per dimension."""
    places = [k for k, value in enumerate(source.values()) if value]
    columns = []
    for extent in reversed(source.shape):
        columns.append([place % extent for place in places])
        places = [place // extent for place in places]
    return tuple(source.from_values(column, INT64, (len(column),)) for column in reversed(columns))


def repeat_elements(source: ArrayMemory, repeats: Any, axis: int | None = None) -> Any:
    """Return each element, or each entry along an axis, several times."""
    if axis is None or not source.ndim:
        source, axis = source.reshape(-1), 0
    counts = source.of(repeats).values()
    if len(counts) == 1:
        counts *= source.shape[axis]
    if len(counts) != source.shape[axis]:
        raise ValueError(f"operands could not be broadcast together with shapes {source.shape} ({len(counts)},)")
    rows = [k for k, count in enumerate(counts) for _ in range(count)]
    where = source.from_values(rows, INT64, (len(rows),))
    return get_elements(source, (*[slice(None)] * (axis % source.ndim), where))


def _has_ellipsis(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, tuple) and any(each is Ellipsis for each in index))


def _check_mask(mask: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if mask != shape[: len(mask)]:
        raise IndexError(f"boolean index of shape {mask} did not match indexed array of shape {shape}")


def _resolve(source: ArrayMemory, index: Any) -> tuple[int, list[Dimension]]:
    """Return the byte where the result starts, and its dimensions."""
    entries: list[Any] = []
    for entry in index if isinstance(index, tuple) else (index,):
        if isinstance(entry, ArrayMemory) and not entry.shape:
            entry = entry.values()[0]
        if entry is None or entry is Ellipsis or isinstance(entry, slice):
            entries.append(entry)
        elif isinstance(entry, (bool, bool_)):
            entries.append(None if entry else False)
        elif isinstance(entry, (list, range, ArrayMemory)):
            table = source.of(entry)
            if table.dtype.kind == "b":
                seen = sum(map(_uses_dimension, entries))
                _check_mask(table.shape, source.shape[seen:] if Ellipsis not in map(_plain, entries) else table.shape)
                entries += nonzero(table)
            else:
                entries.append(table.astype(INT64) if not table.size else table)
        else:
            entries.append(as_index(entry))
    missing = source.ndim - sum(map(_uses_dimension, entries))
    if missing < 0:
        raise IndexError(f"too many indices for array: it has {source.ndim} dimensions")
    at = next((k for k, each in enumerate(entries) if each is Ellipsis), len(entries))
    entries[at : at + 1] = [slice(None)] * missing
    return _walk(source, entries)


def _uses_dimension(entry: Any) -> bool:
    return entry is not None and entry is not False and entry is not Ellipsis


def _plain(entry: Any) -> Any:
    return entry if entry is Ellipsis else None


def _walk(source: ArrayMemory, entries: list[Any]) -> tuple[int, list[Dimension]]:
    has_arrays = any(isinstance(each, ArrayMemory) for each in entries)
    start, axis = source.start, 0
    dimensions: list[Dimension] = []
    for entry in entries:
        if entry is None or entry is False:
            dimensions.append(Dimension(int(entry is None), 0))
            continue
        extent, stride = source.shape[axis], source.strides[axis]
        axis += 1
        if isinstance(entry, slice):
            first, stop, step = entry.indices(extent)
            dimensions.append(Dimension(len(range(first, stop, step)), stride * step))
            start += first * stride if extent else 0
        elif isinstance(entry, ArrayMemory):
            dimensions.append(Dimension(extent, stride, entry))
        else:
            if not -extent <= entry < extent:
                raise IndexError(f"index {entry} is out of bounds for axis {axis - 1} with size {extent}")
            if has_arrays:
                dimensions.append(Dimension(extent, stride, source.of(entry)))
            else:
                start += entry % extent * stride
    return start, dimensions


def _chosen_places(start: int, dimensions: list[Dimension], unit: int) -> tuple[list[int], tuple[int, ...]]:
    """Return the places, in units of bytes, of what arrays choose, and the shape of the result."""
    arrays = [k for k, each in enumerate(dimensions) if each.chosen is not None]
    at = arrays[0] if arrays[-1] - arrays[0] + 1 == len(arrays) else 0
    shape = broadcast_shapes(*[dimensions[k].chosen.shape for k in arrays])
    total: list[int] | None = None
    for k in arrays:
        extent, stride, chosen = dimensions[k]
        if chosen.dtype.kind not in "iu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        numbers = broadcast_to(chosen, shape).values()
        if numbers and not (-extent <= min(numbers) and max(numbers) < extent):
            wrong = next(number for number in numbers if not -extent <= number < extent)
            raise IndexError(f"index {wrong} is out of bounds for axis with size {extent}")
        step = stride // unit
        steps = [(number if number >= 0 else number + extent) * step for number in numbers]
        total = steps if total is None else [a + b for a, b in zip(total, steps, strict=True)]
    outer = [each for each in dimensions[:at] if each.chosen is None]
    inner = [each for each in dimensions[at:] if each.chosen is None]
    before = list_positions([d.extent for d in outer], [d.stride // unit for d in outer], start // unit)
    after = list_positions([d.extent for d in inner], [d.stride // unit for d in inner], 0)
    middle = total or []
    if len(after) == 1:
        places = [a + b for a in before for b in middle]
    else:
        places = [a + b + c for a in before for b in middle for c in after]
    return places, (*[d.extent for d in outer], *shape, *[d.extent for d in inner])
