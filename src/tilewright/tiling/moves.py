# SPDX-License-Identifier: Apache-2.0
"""A transfer as a few copy plans: the box that is data, and the boxes that a fill supplies.

Every byte that moves is moved by a plan of `tilewright.copying`. Tiles of one shape differ only in where they start, so
the plan of a shape is made once and run at many addresses.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from ..copying import Placement, plan_copy
from ..copying.footprints import Footprint, dense
from ..copying.prepared import Runner, prepared
from ..errors import TransferError
from ..formats import format_of
from ..layout import Layout, compose
from ..layout.box import Box
from .fills import check_fill, outside_boxes, read_box, repeated_boxes
from .tensors import ExternalTensor, InternalTensor, _Tensor

Steps = tuple[int, ...]

LARGE_TARGET = 8 << 20
"""Bytes from which a target does not stay in the caches, so that what is written to it should go past them."""

_WORDS = {size: f"uint{8 * size}" for size in (1, 2, 4, 8)}


class Move:
    """One plan, ready to run, with the addresses it goes from and to; it keeps alive what is at those addresses.

    >>> Move(lambda source, target: print(source, "to", target), 64, 128)()
    64 to 128
    """

    __slots__ = ("kept", "run", "source", "target")

    def __init__(self, run: Runner, source: int, target: int, kept: Any = None) -> None:
        self.run, self.source, self.target, self.kept = run, source, target, kept

    def __call__(self) -> None:
        self.run(self.source, self.target)


class Moves(tuple[Move, ...]):
    """The moves of one transfer, carried out one after another when it is called.

    >>> Moves([Move(lambda source, target: print(source, "to", target), 64, 128)])()
    64 to 128
    """

    __slots__ = ()

    def __call__(self) -> None:
        for move in self:
            move()


def import_moves(internal: InternalTensor, external: ExternalTensor, fill: Any = None) -> Moves:
    """Return the moves that fill an internal tensor from an external one, padding what lies outside.

    >>> whole, room = ExternalTensor(np.arange(6, dtype=np.int8)), InternalTensor(np.zeros(4, np.int8))
    >>> for move in import_moves(room, whole.sub(-1, 4), fill="edge"):
    ...     move()
    >>> room.array().tolist()
    [0, 0, 1, 2]
    """
    _check_pair(internal, external)
    if internal.const:
        raise TransferError(f"cannot import into {internal!r}, which is const")
    _check_room(internal)
    tile, whole = external.window, external.whole
    inside = tile.within(whole)
    if inside == tile:
        return Moves([_move(external, tile, internal, internal.window)])
    if fill is None:
        raise TransferError(
            f"tile {tile} reaches outside its tensor of shape {whole}, and an import without a fill stays inside;"
            " give a fill, such as fill=0 or fill='edge'"
        )
    chosen = check_fill(fill, internal.dtype)
    if isinstance(chosen, str):
        return Moves(_repeating(internal, external, chosen))
    outside = outside_boxes(tile, inside)
    moves = [filled(internal, _local(box, tile, internal.window), chosen) for box in outside]
    if not inside.empty:
        moves.append(_move(external, inside, internal, _local(inside, tile, internal.window)))
    return Moves(moves)


def export_moves(internal: InternalTensor, external: ExternalTensor, clip: bool = False) -> Moves:
    """Return the moves that write an internal tensor to an external one; clip leaves out what lies outside it.

    >>> whole, room = ExternalTensor(np.zeros(6, np.int8)), InternalTensor(np.arange(1, 5, dtype=np.int8))
    >>> export_moves(room, whole.sub(-1, 4), clip=True)()
    >>> whole.array().tolist()
    [2, 3, 4, 0, 0, 0]
    """
    _check_pair(internal, external)
    if external.const:
        raise TransferError(f"cannot export to {external!r}, which is const")
    _check_room(internal)
    tile = external.window
    inside = tile.within(external.whole)
    if inside != tile and not clip:
        raise TransferError(
            f"tile {tile} reaches outside its tensor of shape {external.whole}, and an export stays inside;"
            " clip=True writes the part that is inside"
        )
    if inside.empty:
        return Moves()
    return Moves([_move(internal, _local(inside, tile, internal.window), external, inside)])


def straight_move(source: ExternalTensor, target: ExternalTensor, threads: int = 1) -> Move:
    """Return the move from one external tensor to another, of one shape and type, on several native threads.

    >>> a, b = np.arange(6), np.zeros(6, int)
    >>> straight_move(ExternalTensor(a).sub(1, 3), ExternalTensor(b).sub(0, 3))()
    >>> b.tolist()
    [1, 2, 3, 0, 0, 0]
    """
    _check_pair(source, target)
    if target.const:
        raise TransferError(f"cannot copy to {target!r}, which is const")
    if source.dtype != target.dtype or source.strides is None or target.strides is None:
        return _move(source, source.window, target, target.window)
    source.check_reach(source.window)
    target.check_reach(target.window)
    start = source.address + source._byte_offset(source.window)
    end = target.address + target._byte_offset(target.window)
    size, steps = source.dtype.itemsize, (source.strides, target.strides)
    word = gcd(size, 8, start, end, *steps[0], *steps[1])
    large = target.memory.nbytes >= LARGE_TARGET
    run, below, under = carrier(source.shape, *steps, size, word, large, threads)
    return Move(run, start + below, end + under, (source.memory, target.memory))


def _check_pair(internal: _Tensor, external: _Tensor) -> None:
    if internal.shape != external.shape:
        raise TransferError(
            f"internal shape {internal.shape} and external shape {external.shape} differ; a transfer needs equal"
            " shapes: take a sub-tensor of one of them"
        )


def _check_room(internal: InternalTensor) -> None:
    if internal.window.within(internal.whole) != internal.window:
        raise TransferError(f"window {internal.window} leaves its internal tensor of shape {internal.whole}")


def _check_apart(source: _Tensor, box: Box, target: _Tensor, room: Box) -> None:
    """Raise if a move would write where it reads."""
    if box.empty or not source.memory.overlaps(target.memory):
        return
    if _footprint(source, box).meets(_footprint(target, room)):
        raise TransferError(
            f"the source and the target of tile {box} share memory, and the move would read what it has written;"
            " give the internal tensor memory of its own"
        )


def _footprint(tensor: _Tensor, box: Box) -> Footprint:
    if tensor.strides is not None:
        return Footprint(tensor.address + tensor._byte_offset(box), box.shape, tensor.strides, tensor.dtype.itemsize)
    low, high = tensor.reach(box)
    return dense(tensor.memory.address + low, high - low)


def _local(box: Box, tile: Box, window: Box) -> Box:
    """Return where a box of an external tile lies in the internal tensor."""
    start = [a - b + c for a, b, c in zip(box.offset, tile.offset, window.offset, strict=True)]
    return Box(tuple(start), box.shape)


def _move(source: _Tensor, box: Box, target: _Tensor, room: Box) -> Move:
    """Return the move of a box of one tensor to a box of another."""
    source.check_reach(box)
    target.check_reach(room)
    _check_apart(source, box, target, room)
    before, after = source.strides, target.strides
    if before is None or after is None:
        return _move_through_layouts(source, box, target, room)
    start = source.address + source._byte_offset(box)
    end = target.address + target._byte_offset(room)
    kept = (source.memory, target.memory)
    return _strided(box.shape, before, source.dtype, start, after, target.dtype, end, kept)


def _strided(
    shape: Steps,
    before: Steps,
    source_type: np.dtype[Any],
    source: int,
    after: Steps,
    target_type: np.dtype[Any],
    target: int,
    kept: Any,
) -> Move:
    if 0 in shape:
        return Move(_nothing, source, target)
    if source_type is target_type or source_type == target_type:
        size = source_type.itemsize
        word = gcd(size, 8, *before, *after, source, target)
        run, below, under = carrier(shape, before, after, size, word)
    else:
        run, below, under = _converter(shape, before, source_type, after, target_type)
    return Move(run, source + below, target + under, kept)


def _nothing(source: int, target: int) -> None:
    """Do nothing: the move of no elements."""


@lru_cache(maxsize=4096)
def carrier(
    shape: Steps, before: Steps, after: Steps, size: int, word: int, streaming: bool = False, threads: int = 1
) -> tuple[Runner, int, int]:
    """Return the runner that moves elements as words, and how far below its start each side goes."""
    count = size // word
    extents, sides = (shape, (before, after))
    if count > 1:
        extents, sides = (*shape, count), ((*before, word), (*after, word))
    return _planned(extents, sides, (_WORDS[word], _WORDS[word]), (word, word), streaming, threads)


@lru_cache(maxsize=4096)
def _converter(
    shape: Steps, before: Steps, source: np.dtype[Any], after: Steps, target: np.dtype[Any]
) -> tuple[Runner, int, int]:
    """Return the runner that converts elements, and how far below its start each side goes."""
    for dtype, steps in ((source, before), (target, after)):
        if not dtype.isnative or any(step % dtype.itemsize for step in steps):
            raise TransferError(
                f"cannot convert {source} to {target} on the way: both need this machine's byte order and whole steps;"
                " import with the external type and convert in the compute"
            )
    formats = (format_of(source), format_of(target))
    return _planned(shape, (before, after), formats, (source.itemsize, target.itemsize))


def _planned(
    shape: Steps, sides: Any, formats: Any, sizes: Any, streaming: bool = False, threads: int = 1
) -> tuple[Runner, int, int]:
    places, lows = [], []
    for steps, element, size in zip(sides, formats, sizes, strict=True):
        low = sum([(n - 1) * step for n, step in zip(shape, steps, strict=True) if step < 0])
        lows.append(low)
        layout = Layout(shape, tuple([step // size for step in steps]))
        places.append(Placement(layout + -low // size if low else layout, element))
    return prepared(plan_copy(places[0], places[1]), threads, streaming=streaming), lows[0], lows[1]


def _move_through_layouts(source: _Tensor, box: Box, target: _Tensor, room: Box) -> Move:
    """Return the move between tensors of which at least one is not simply strided, such as one stored in tiles."""
    places = []
    for tensor, part in ((source, box), (target, room)):
        windows = tuple([Layout(n) + start for start, n in zip(part.offset, part.shape, strict=True)])
        places.append(Placement(compose(tensor.layout, windows), format_of(tensor.dtype)))
    addresses = [side.memory.address + side.offset * side.dtype.itemsize for side in (source, target)]
    return Move(prepared(plan_copy(places[0], places[1])), addresses[0], addresses[1], (source.memory, target.memory))


def filled(internal: InternalTensor, box: Box, value: np.ndarray[Any, Any]) -> Move:
    """Return the move that repeats one element over a box: a copy whose source never advances."""
    internal.check_reach(box)
    if internal.strides is None:
        raise TransferError(f"cannot fill {internal!r}: only a strided internal tensor can be padded")
    target = internal.address + internal._byte_offset(box)
    stand = (0,) * len(box.shape)
    dtype = internal.dtype
    kept = (value, internal.memory)
    return _strided(box.shape, stand, dtype, value.ctypes.data, internal.strides, dtype, target, kept)


def _repeating(internal: InternalTensor, external: ExternalTensor, fill: str) -> list[Move]:
    """Return the moves that repeat the space itself: strided copies that may stand still or go backwards."""
    before, after = external.strides, internal.strides
    if before is None or after is None:
        raise TransferError(f"fill {fill!r} needs strided tensors on both sides; use a constant")
    internal.check_reach(internal.window)
    moves = []
    for box in repeated_boxes(external.window, external.whole, fill):
        steps = tuple([part.step * step for part, step in zip(box, before, strict=True)])
        source = external.address + sum([part.source * step for part, step in zip(box, before, strict=True)])
        external.check_reach(read_box(box))
        room = Box(
            tuple([part.start + start for part, start in zip(box, internal.window.offset, strict=True)]),
            tuple([part.length for part in box]),
        )
        target = internal.address + internal._byte_offset(room)
        kept = (external.memory, internal.memory)
        moves.append(_strided(room.shape, steps, external.dtype, source, after, internal.dtype, target, kept))
    return moves
