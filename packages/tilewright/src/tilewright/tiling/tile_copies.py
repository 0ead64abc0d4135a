# SPDX-License-Identifier: Apache-2.0
"""The copies of a transfer: between external and internal tensors, with padding around them.

All bytes are copied by plans of `tilewright.copying`. Tiles of one shape differ only in their addresses, so the plan of
a shape is made once and run at many addresses.

Padding is a constant, or the space itself, repeated by `edge`, `reflect`, `symmetric` or `wrap`. Along one axis that is
a short list of segments, each of which reads the space forwards, backwards or at one element, so a box of segments is
an ordinary strided copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product as combinations
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from ..copying import Footprint, Placement, Runner, dense_footprint, make_runner, plan_copy, strided_range
from ..errors import FormatError, LayoutError, TransferError
from ..formats import Format, find_scalar_format, fit_values, format_of
from ..layout import Box, Layout, compose
from .transfer_tensors import ExternalTensor, InternalTensor, TransferTensor

Work = Callable[[], None]
"""A transfer that is ready to run."""

Steps = tuple[int, ...]
"""Extents or byte strides, one per axis."""

LARGE_TARGET = 8 << 20
"""Bytes from which a target exceeds the caches, so that non-temporal stores are faster."""

_WORD_FORMATS = {size: f"uint{8 * size}" for size in (1, 2, 4, 8)}

REPEATING_FILLS = ("edge", "reflect", "symmetric", "wrap")
_NAMED_VALUES = {"zero": 0, "nan": float("nan")}


class BoundCopy:
    """A compiled copy plan bound to its source and target addresses; `owners` keeps the memory there alive.

    >>> BoundCopy(lambda source, target: print(source, "to", target), 64, 128)()
    64 to 128
    """

    __slots__ = ("owners", "run", "source", "target")

    def __init__(self, run: Runner, source: int, target: int, owners: Any = None) -> None:
        self.run, self.source, self.target, self.owners = run, source, target, owners

    def __call__(self) -> None:
        self.run(self.source, self.target)


class CopyList(tuple[BoundCopy, ...]):
    """The copies of one transfer; a call runs them one after another.

    >>> CopyList([BoundCopy(lambda source, target: print(source, "to", target), 64, 128)])()
    64 to 128
    """

    __slots__ = ()

    def __call__(self) -> None:
        for copy in self:
            copy()


def import_copies(internal: InternalTensor, external: ExternalTensor, fill: Any = None) -> CopyList:
    """Return the copies that fill an internal tensor from an external one; `fill` pads what lies outside.

    >>> space, buffer = ExternalTensor(np.arange(6, dtype=np.int8)), InternalTensor(np.zeros(4, np.int8))
    >>> import_copies(buffer, space.sub(-1, 4), fill="edge")()
    >>> buffer.array().tolist()
    [0, 0, 1, 2]
    """
    _validate_equal_shapes(internal, external)
    if internal.const:
        raise TransferError(f"cannot import into {internal!r}, which is const")
    _validate_window(internal)
    tile, space = external.window, external.space
    inside = tile.within(space)
    if inside == tile:
        return CopyList([_copy_box(external, tile, internal, internal.window)])
    if fill is None:
        raise TransferError(
            f"tile {tile} extends outside its tensor of shape {space}; give a fill, such as fill=0 or fill='edge'"
        )
    padding = validate_fill(fill, internal.dtype)
    if isinstance(padding, str):
        return CopyList(_repeat_copies(internal, external, padding))
    outside = boxes_outside(tile, inside)
    copies = [fill_copy(internal, _to_internal(box, tile, internal.window), padding) for box in outside]
    if not inside.empty:
        copies.append(_copy_box(external, inside, internal, _to_internal(inside, tile, internal.window)))
    return CopyList(copies)


def export_copies(internal: InternalTensor, external: ExternalTensor, clip: bool = False) -> CopyList:
    """Return the copies that write an internal tensor to an external one; `clip` skips what lies outside it.

    >>> space, buffer = ExternalTensor(np.zeros(6, np.int8)), InternalTensor(np.arange(1, 5, dtype=np.int8))
    >>> export_copies(buffer, space.sub(-1, 4), clip=True)()
    >>> space.array().tolist()
    [2, 3, 4, 0, 0, 0]
    """
    _validate_equal_shapes(internal, external)
    if external.const:
        raise TransferError(f"cannot export to {external!r}, which is const")
    _validate_window(internal)
    tile = external.window
    inside = tile.within(external.space)
    if inside != tile and not clip:
        raise TransferError(
            f"tile {tile} extends outside its tensor of shape {external.space}; use clip=True to write only the part"
            " that is inside"
        )
    if inside.empty:
        return CopyList()
    return CopyList([_copy_box(internal, _to_internal(inside, tile, internal.window), external, inside)])


def direct_copy(source: ExternalTensor, target: ExternalTensor, threads: int = 1) -> BoundCopy:
    """Return the copy from one external tensor to another of the same shape, on `threads` native threads.

    >>> a, b = np.arange(6), np.zeros(6, int)
    >>> direct_copy(ExternalTensor(a).sub(1, 3), ExternalTensor(b).sub(0, 3))()
    >>> b.tolist()
    [1, 2, 3, 0, 0, 0]
    """
    _validate_equal_shapes(source, target)
    if target.const:
        raise TransferError(f"cannot copy to {target!r}, which is const")
    if source.dtype != target.dtype or source.strides is None or target.strides is None:
        return _copy_box(source, source.window, target, target.window)
    source.validate_bounds(source.window)
    target.validate_bounds(target.window)
    start, end = source.address_of(source.window), target.address_of(target.window)
    size, strides = source.dtype.itemsize, (source.strides, target.strides)
    word = gcd(size, 8, start, end, *strides[0], *strides[1])
    large = target.memory.nbytes >= LARGE_TARGET
    run, source_low, target_low = compile_word_copy(source.shape, *strides, size, word, large, threads)
    return BoundCopy(run, start + source_low, end + target_low, (source.memory, target.memory))


def fill_copy(internal: InternalTensor, box: Box, value: np.ndarray[Any, Any]) -> BoundCopy:
    """Return the copy that repeats one element over a box: its source has stride 0."""
    internal.validate_bounds(box)
    if internal.strides is None:
        raise TransferError(f"cannot pad {internal!r}, which is not strided")
    address, strides, dtype = internal.address_of(box), (0,) * len(box.shape), internal.dtype
    owners = (value, internal.memory)
    return _copy_strided(box.shape, strides, dtype, value.ctypes.data, internal.strides, dtype, address, owners)


def _validate_equal_shapes(internal: TransferTensor, external: TransferTensor) -> None:
    if internal.shape != external.shape:
        raise TransferError(
            f"internal tensor has shape {internal.shape}, external tensor has shape {external.shape}; they must be"
            " equal: take a sub-tensor of one of them"
        )


def _validate_window(internal: InternalTensor) -> None:
    if internal.window.within(internal.space) != internal.window:
        raise TransferError(f"window {internal.window} is outside its internal tensor of shape {internal.space}")


def _validate_no_overlap(source: TransferTensor, source_box: Box, target: TransferTensor, target_box: Box) -> None:
    if source_box.empty or not source.memory.overlaps(target.memory):
        return
    if _box_footprint(source, source_box).overlaps(_box_footprint(target, target_box)):
        raise TransferError(
            f"source and target of tile {source_box} overlap in memory; give the internal tensor its own memory"
        )


def _box_footprint(tensor: TransferTensor, box: Box) -> Footprint:
    if tensor.strides is not None:
        return Footprint(tensor.address_of(box), box.shape, tensor.strides, tensor.dtype.itemsize)
    low, high = tensor.byte_range(box)
    return dense_footprint(tensor.memory.address + low, high - low)


def _to_internal(box: Box, tile: Box, window: Box) -> Box:
    """Return the box of the internal tensor that a box of an external tile is copied to."""
    start = [a - b + c for a, b, c in zip(box.offset, tile.offset, window.offset, strict=True)]
    return Box(tuple(start), box.shape)


def _copy_box(source: TransferTensor, source_box: Box, target: TransferTensor, target_box: Box) -> BoundCopy:
    """Return the copy of a box of one tensor to a box of another."""
    source.validate_bounds(source_box)
    target.validate_bounds(target_box)
    _validate_no_overlap(source, source_box, target, target_box)
    if source.strides is None or target.strides is None:
        return _copy_through_layouts(source, source_box, target, target_box)
    start, end = source.address_of(source_box), target.address_of(target_box)
    owners = (source.memory, target.memory)
    return _copy_strided(
        source_box.shape, source.strides, source.dtype, start, target.strides, target.dtype, end, owners
    )


def _copy_strided(
    shape: Steps,
    source_strides: Steps,
    source_type: np.dtype[Any],
    source: int,
    target_strides: Steps,
    target_type: np.dtype[Any],
    target: int,
    owners: Any,
) -> BoundCopy:
    if 0 in shape:
        return BoundCopy(_copy_nothing, source, target)
    if source_type is target_type or source_type == target_type:
        size = source_type.itemsize
        word = gcd(size, 8, *source_strides, *target_strides, source, target)
        run, source_low, target_low = compile_word_copy(shape, source_strides, target_strides, size, word)
    else:
        run, source_low, target_low = _compile_conversion(
            shape, source_strides, source_type, target_strides, target_type
        )
    return BoundCopy(run, source + source_low, target + target_low, owners)


def _copy_nothing(source: int, target: int) -> None:
    """Copy no elements."""


@lru_cache(maxsize=4096)
def compile_word_copy(
    shape: Steps,
    source_strides: Steps,
    target_strides: Steps,
    size: int,
    word: int,
    streaming: bool = False,
    threads: int = 1,
) -> tuple[Runner, int, int]:
    """Return a copy of elements of `size` bytes as words, and the lowest byte offset of the source and target."""
    count = size // word
    extents, sides = shape, (source_strides, target_strides)
    if count > 1:
        extents, sides = (*shape, count), ((*source_strides, word), (*target_strides, word))
    formats = (format_of(_WORD_FORMATS[word]), format_of(_WORD_FORMATS[word]))
    return _compile_copy(extents, sides, formats, streaming, threads)


@lru_cache(maxsize=4096)
def _compile_conversion(
    shape: Steps, source_strides: Steps, source: np.dtype[Any], target_strides: Steps, target: np.dtype[Any]
) -> tuple[Runner, int, int]:
    """Return a copy that converts elements, and the lowest byte offset of the source and target."""
    for dtype, strides in ((source, source_strides), (target, target_strides)):
        if not dtype.isnative or any(stride % dtype.itemsize for stride in strides):
            raise TransferError(
                f"cannot convert {source} to {target} in a transfer: both need native byte order and strides of whole"
                " elements; import with the external type and convert in the compute"
            )
    return _compile_copy(shape, (source_strides, target_strides), (format_of(source), format_of(target)))


def _compile_copy(
    shape: Steps,
    strides: tuple[Steps, Steps],
    formats: tuple[Format, Format],
    streaming: bool = False,
    threads: int = 1,
) -> tuple[Runner, int, int]:
    placements, lows = [], []
    for steps, element in zip(strides, formats, strict=True):
        size = element.value_format.itemsize
        low, _ = strided_range(shape, steps, size)
        lows.append(low)
        layout = Layout(shape, tuple([step // size for step in steps]))
        placements.append(Placement(layout + -low // size if low else layout, element))
    return make_runner(plan_copy(placements[0], placements[1]), threads, streaming=streaming), lows[0], lows[1]


def _copy_through_layouts(
    source: TransferTensor, source_box: Box, target: TransferTensor, target_box: Box
) -> BoundCopy:
    """Return the copy between tensors of which at least one is not strided, such as one stored in tiles."""
    placements = []
    for tensor, box in ((source, source_box), (target, target_box)):
        windows = tuple([Layout(n) + start for start, n in zip(box.offset, box.shape, strict=True)])
        placements.append(Placement(compose(tensor.layout, windows), format_of(tensor.dtype)))
    addresses = [side.memory.address + side.offset * side.dtype.itemsize for side in (source, target)]
    run = make_runner(plan_copy(placements[0], placements[1]))
    return BoundCopy(run, addresses[0], addresses[1], (source.memory, target.memory))


def _repeat_copies(internal: InternalTensor, external: ExternalTensor, fill: str) -> list[BoundCopy]:
    """Return the copies that repeat the space around itself, with strides that may be zero or negative."""
    source_strides, target_strides = external.strides, internal.strides
    if source_strides is None or target_strides is None:
        raise TransferError(f"fill {fill!r} needs strided tensors; use a constant, such as fill=0")
    internal.validate_bounds(internal.window)
    copies = []
    for segments in repeated_boxes(external.window, external.space, fill):
        pairs = list(zip(segments, source_strides, strict=True))
        steps = tuple([part.step * stride for part, stride in pairs])
        source = external.address + sum([part.source * stride for part, stride in pairs])
        external.validate_bounds(source_box_of(segments))
        box = Box(
            tuple([part.start + start for part, start in zip(segments, internal.window.offset, strict=True)]),
            tuple([part.length for part in segments]),
        )
        owners = (external.memory, internal.memory)
        copies.append(
            _copy_strided(
                box.shape,
                steps,
                external.dtype,
                source,
                target_strides,
                internal.dtype,
                internal.address_of(box),
                owners,
            )
        )
    return copies


class Segment(NamedTuple):
    """A part of one axis of a tile: its start and length in the tile, and its start and step in the space."""

    start: int
    length: int
    source: int
    step: int


def axis_segments(offset: int, length: int, space: int, fill: str) -> list[Segment]:
    """Return how one axis of a tile, which leaves its space, is read from that space.

    `reflect` turns at the last element, `symmetric` behind it, as in `numpy.pad`.

    >>> axis_segments(-2, 6, 3, "edge")
    [Segment(start=0, length=2, source=0, step=0), Segment(start=2, length=3, source=0, step=1), \
Segment(start=5, length=1, source=2, step=0)]
    >>> axis_segments(-2, 5, 3, "wrap")
    [Segment(start=0, length=2, source=1, step=1), Segment(start=2, length=3, source=0, step=1)]
    """
    if space < 1:
        raise LayoutError(f"fill {fill!r} repeats the space, but the space is empty; use a constant, such as fill=0")
    segments = []
    position, end = offset, offset + length
    while position < end:
        source, step, stop = _segment_at(position, end, space, fill)
        segments.append(Segment(position - offset, min(stop, end) - position, source, step))
        position = stop
    return segments


def _segment_at(position: int, end: int, space: int, fill: str) -> tuple[int, int, int]:
    """Return where a position is read, the step from there, and the first position that another segment reads."""
    if 0 <= position < space:
        return position, 1, space
    if fill == "edge" or space == 1:
        return (0, 0, 0) if position < 0 else (space - 1, 0, end)
    period = space if fill == "wrap" else 2 * space - 2 if fill == "reflect" else 2 * space
    phase = position % period
    base = position - phase
    if phase < space:
        return phase, 1, base + space
    return (period - phase if fill == "reflect" else period - 1 - phase), -1, base + period


def repeated_boxes(tile: Box, space: tuple[int, ...], fill: str) -> list[tuple[Segment, ...]]:
    """Return the boxes of a tile that are one strided copy each, as one segment per axis.

    >>> len(repeated_boxes(Box((-1, -1), (4, 4)), (9, 9), "edge"))
    4
    """
    extents = zip(tile.offset, tile.shape, space, strict=True)
    return list(combinations(*[axis_segments(start, length, n, fill) for start, length, n in extents]))


def source_box_of(segments: tuple[Segment, ...]) -> Box:
    """Return the box of the space that some segments, one per axis, read.

    >>> source_box_of((Segment(start=0, length=3, source=4, step=-1),))
    Box(offset=(2,), shape=(3,))
    """
    ends = [(part.source, part.source + part.step * (part.length - 1)) for part in segments]
    return Box(tuple([min(end) for end in ends]), tuple([max(end) - min(end) + 1 for end in ends]))


def boxes_outside(tile: Box, inside: Box) -> list[Box]:
    """Return the part of a tile that is not in `inside`, as few boxes that do not overlap.

    >>> boxes_outside(Box((-1, 0), (4, 4)), Box((0, 0), (3, 4)))
    [Box(offset=(-1, 0), shape=(1, 4))]
    """
    if inside.empty:
        return [] if tile.empty else [tile]
    boxes = []
    low, high = list(tile.offset), list(tile.end)
    for axis, (first, last) in enumerate(zip(inside.offset, inside.end, strict=True)):
        for start, stop in ((low[axis], first), (last, high[axis])):
            if start < stop:
                offset = (*low[:axis], start, *low[axis + 1 :])
                end = (*high[:axis], stop, *high[axis + 1 :])
                boxes.append(Box(offset, tuple([b - a for a, b in zip(offset, end, strict=True)])))
        low[axis], high[axis] = first, last
    return boxes


def validate_fill(fill: Any, dtype: np.dtype[Any]) -> str | np.ndarray[Any, Any]:
    """Return the name of a repeating fill, or a constant fill as an array of one element of the type.

    >>> validate_fill("edge", np.dtype("int8")), validate_fill("zero", np.dtype("int8"))
    ('edge', array([0], dtype=int8))
    >>> validate_fill(2.5, np.dtype("float32"))
    array([2.5], dtype=float32)
    """
    if isinstance(fill, str):
        if fill in REPEATING_FILLS:
            return fill
        if fill not in _NAMED_VALUES:
            raise TransferError(f"unknown fill {fill!r}; use a value, zero, nan, {', '.join(REPEATING_FILLS)}")
        fill = _NAMED_VALUES[fill]
    if dtype.kind == "V" and dtype.names is None and isinstance(fill, int) and fill == 0:
        return np.zeros(1, dtype)
    element = find_scalar_format(dtype)
    try:
        value = np.empty(1, dtype)
        value[0] = fill if element is None else fit_values(fill, element)
    except FormatError as problem:
        raise TransferError(f"fill {problem}") from None
    except (TypeError, ValueError, OverflowError) as problem:
        raise TransferError(f"fill {fill!r} is not a value of {dtype}: {problem}") from None
    return value
