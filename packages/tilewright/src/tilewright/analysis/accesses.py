# SPDX-License-Identifier: Apache-2.0
"""Accesses to memory: which elements each thread touches, and with which instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ..errors import LayoutError
from ..layout import LayoutLike, as_integer
from ..tensor import View

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
SIZES = (1, 2, 4, 8, 16)  # bytes that an instruction loads or stores per thread
MAX_BYTES = SIZES[-1]
MAX_OFFSETS = 1 << 26  # of one access, since all are in memory at a time
MAX_ADDRESS = 1 << 62  # so that sums fit into 64 bits
_MAX_OFFSET = MAX_ADDRESS // MAX_BYTES

_INSTRUCTION = re.compile(
    r"(?P<verb>ld|st)(?P<matrix>matrix)?((?:\.(?:shared|global|local)(?:::\w+)?|\.(?:sync|aligned|m8n8|m8n16|m16n16|trans"
    r"|weak|volatile|relaxed|acquire|release|cta|cluster|gpu|sys|nc|ca|cg|cs|cv|lu|wb|wt)|\.x(?P<rows>[124])"
    r"|\.v(?P<vector>[248])|\.[bfsu](?P<bits>8|16|32|64|128))*)"
)


@dataclass(frozen=True)
class Instruction:
    """How threads access memory: a load or a store, or the loads and stores of whole matrices.

    Of a matrix instruction, `rows` groups of eight threads name a row of 16 bytes each. `bytes_per_thread` are those
    that the name of a load or store states.

    >>> access = Instruction.of("ldmatrix.x4.trans")
    >>> access.is_store, access.rows
    (False, 4)
    """

    is_store: bool = False
    rows: int | None = None
    bytes_per_thread: int | None = None

    @classmethod
    def of(cls, name: str) -> Instruction:
        """Return the instruction of a `name` as PTX spells it: ld, st.shared.v4.f32, ldmatrix.x4.trans, stmatrix.

        >>> Instruction.of("st").is_store, Instruction.of("ld.shared.v4.f32").bytes_per_thread
        (True, 16)
        """
        found = _INSTRUCTION.fullmatch(str(name))
        is_matrix = found is not None and found["matrix"] is not None
        if found is None or (found["rows"] and not is_matrix) or (found["vector"] and (is_matrix or not found["bits"])):
            raise LayoutError(
                f"unknown instruction {name!r}; use ld, st, ldmatrix.x1, .x2, .x4 or stmatrix.x1, .x2, .x4 or a"
                " load or store as PTX spells it, such as ld.shared.v4.f32"
            )
        is_store = found["verb"] == "st"
        if is_matrix:
            return cls(is_store, int(found["rows"] or 1))
        stated = int(found["bits"]) * int(found["vector"] or 1) // 8 if found["bits"] else None
        if stated is not None and stated not in SIZES:
            raise LayoutError(
                f"{name} moves {stated} bytes per thread; an instruction moves {', '.join(map(str, SIZES))}"
            )
        return cls(is_store, None, stated)

    def vector_of(self, vector: int | None, itemsize: int, caller: str) -> int | None:
        """Return the elements of `itemsize` bytes that a thread moves: `vector`, or as many as the name states.

        >>> Instruction.of("ld.v4.f32").vector_of(None, 2, "this")
        8
        """
        if self.bytes_per_thread is None:
            return vector
        if self.bytes_per_thread % itemsize or vector not in (None, self.bytes_per_thread // itemsize):
            given = "" if vector is None else f" in vectors of {vector}"
            raise LayoutError(
                f"{caller}: the instruction moves {self.bytes_per_thread} bytes per thread, which does not agree with"
                f" elements of {itemsize} bytes{given}; leave out what the instruction states"
            )
        return self.bytes_per_thread // itemsize


@dataclass(frozen=True)
class WarpAccess:
    """One instruction of one warp: the first byte that each thread touches, which threads do, and how many bytes each.

    `first` is the number of its first thread.

    >>> access = WarpAccess(np.arange(32) * 4, np.ones(32, bool), 4)
    >>> access.bytes_per_thread
    4
    """

    addresses: Array
    active: Array
    bytes_per_thread: int
    first: int = 0


def access_offsets(memory: Any, threads: Any, caller: str, active: Any = None) -> tuple[Array, Array]:
    """Return the offsets of an access, one row per thread, and which of them are data of `active` threads.

    `memory` is a layout; `threads` maps threads and their values to its coordinates. Without `threads`, `memory` says
    all: a layout whose first mode counts threads, a tensor (its offsets, not its values), or a table of offsets.

    >>> from tilewright import Layout
    >>> access_offsets(Layout((4, 8), (8, 1)), Layout((4, 2), (1, 4)), "this")[0].tolist()
    [[0, 1], [8, 9], [16, 17], [24, 25]]
    """
    places, touched = _offsets_of(memory if threads is None else threads, caller)
    if active is not None:
        touched = touched & _active_threads(active, len(places), caller)[:, None]
    if threads is not None:
        places, touched = _find_elements(memory, places, touched, caller)
    low, high = (int(places.min()), int(places.max())) if places.size else (0, 0)
    if min(low, -high) <= -_MAX_OFFSET:
        raise LayoutError(f"{caller}: offsets from {low} to {high} are too large for addresses of 64 bits")
    return places, touched


def _active_threads(active: Any, count: int, caller: str) -> Array:
    mask = np.asarray(active).reshape(-1)
    if len(mask) != count or not (mask.dtype == bool or (mask.dtype.kind in "iu" and set(mask) <= {0, 1})):
        raise LayoutError(f"{caller}: active must have one True or False for each of {count} threads")
    return mask.astype(bool)


def _find_elements(memory: Any, index: Array, touched: Array, caller: str) -> tuple[Array, Array]:
    """Return where `memory` has the elements of each `index`, and which of them are touched and no padding."""
    layout = memory.layout if isinstance(memory, View) else memory
    if not isinstance(layout, LayoutLike):
        raise LayoutError(f"{caller}: with threads, memory must be a layout or a tensor, got {type(memory).__name__}")
    outside = touched & ((index < 0) | (index >= layout.size))
    if outside.any():
        thread = int(np.argmax(outside.any(axis=1)))
        element = int(index[thread][outside[thread]][0])
        raise LayoutError(
            f"{caller}: thread {thread} accesses element {element} of {layout}, which has {layout.size};"
            " make the threads fit, mark them as not active, or pad the memory"
        )
    index = np.where(touched, index, 0)
    places = np.broadcast_to(_plain_places(layout, index), index.shape)
    return _with_vectors(memory, places, touched & np.asarray(layout.valid(index)))


def _with_vectors(access: Any, places: Array, touched: Array) -> tuple[Array, Array]:
    """Return the offsets of all elements of a tensor: from its own offset on, and those inside each vector."""
    if not isinstance(access, View):
        return places, touched
    inside = access.element_layout
    vector = np.asarray(inside(np.arange(inside.size, dtype=np.int64))).reshape(-1)
    places = (places[..., None] + int(access.offset) + vector).reshape(len(places), -1)
    return places, np.repeat(touched, vector.size, axis=1)


def _offsets_of(access: Any, caller: str) -> tuple[Array, Array]:
    if isinstance(access, View):
        return _with_vectors(access, *_layout_offsets(access.layout, caller))
    if isinstance(access, LayoutLike):
        return _layout_offsets(access, caller)
    try:
        table = np.asanyarray(access)
    except ValueError:  # rows of different lengths
        table = np.empty(0, dtype=object)
    if table.dtype.kind not in "iu" and not _has_whole_numbers(table):
        raise LayoutError(
            f"{caller} takes the offsets of the elements that each thread touches: integers, a Layout or a TileTensor;"
            f" got {type(access).__name__} of {table.dtype}"
        )
    if table.dtype.kind == "u" and table.size and int(table.max()) >= _MAX_OFFSET:
        raise LayoutError(f"{caller}: offset {int(table.max())} is too large for addresses of 64 bits")
    rows = (len(table) if table.ndim else 1, -1) if table.size else (0, 0)
    touched = ~np.ma.getmaskarray(table).reshape(rows)
    return np.asarray(table).astype(np.int64).reshape(rows), touched


def _has_whole_numbers(table: Array) -> bool:
    return (
        table.dtype.kind == "f" and bool((np.abs(table) < _MAX_OFFSET).all()) and bool((table == np.round(table)).all())
    )


def _layout_offsets(layout: LayoutLike, caller: str) -> tuple[Array, Array]:
    """Return the offsets of a layout whose first mode counts threads, and which of them are not padding."""
    if layout.size > MAX_OFFSETS:
        raise LayoutError(f"{caller}: {layout} has {layout.size} elements; an access has at most {MAX_OFFSETS}")
    modes = [np.arange(layout.mode(k).size, dtype=np.int64) for k in range(int(layout.rank))]
    grid = np.ix_(*modes)
    shape = tuple(map(len, modes))
    places = _plain_places(layout, *grid)
    flat = (shape[0] if shape else 1, prod(shape[1:]))
    touched = np.asarray(layout.valid(*grid))
    return np.broadcast_to(places, shape).reshape(flat), np.broadcast_to(touched, shape).reshape(flat)


def _plain_places(layout: LayoutLike, *coord: Array) -> Array:
    if layout.axes:
        raise LayoutError(f"{layout} maps to named axes; choose one with .project(axis)")
    return np.asarray(layout(*coord))


def warp_accesses(
    places: Array, touched: Array, itemsize: int, warp: int, vector: int | None, instruction: Instruction, caller: str
) -> Iterator[WarpAccess]:
    """Yield the instructions of each warp of `warp` threads.

    An instruction accesses at most 16 bytes per thread, of consecutive elements aligned to that size; all threads of a
    warp use the same width: `vector` elements, by default as many as possible. A matrix instruction takes the first
    element of each thread as that of a row of 16 bytes.

    >>> rows = np.arange(32)[:, None] * 8 + np.arange(8)
    >>> [a.bytes_per_thread for a in warp_accesses(rows, rows >= 0, 4, 32, None, Instruction(), "this")]
    [16, 16]
    """
    for start in range(0, len(places), warp):
        rows, active = places[start : start + warp], touched[start : start + warp]
        if instruction.rows is not None:
            named = np.arange(len(rows)) < 8 * instruction.rows
            _require_aligned(rows[:, 0] * itemsize, active[:, 0] & named, 16, caller)
            yield WarpAccess(rows[:, 0] * itemsize, active[:, 0] & named, 16, start)
            continue
        column, count = 0, rows.shape[1]
        while column < count:
            if vector is None:
                wide = _widest(rows[:, column:], active[:, column:], itemsize)
            else:
                wide = vector
                _require_vectors(rows[:, column:], active[:, column:], vector, itemsize, caller)
            yield WarpAccess(rows[:, column] * itemsize, active[:, column], wide * itemsize, start)
            column += wide


def _widest(rows: Array, active: Array, itemsize: int) -> int:
    """Return how many elements, from the first column on, one instruction can access for every thread of a warp."""
    wide = 1
    while wide * 2 * itemsize <= MAX_BYTES and wide * 2 <= rows.shape[1]:
        if not _is_vector(rows, active, wide * 2):
            break
        wide *= 2
    return wide


def _is_vector(rows: Array, active: Array, wide: int) -> bool:
    used = rows[active[:, 0], :wide]
    alike = bool((active[:, :wide] == active[:, :1]).all())
    return alike and bool((used == used[:, :1] + np.arange(wide)).all()) and bool((used[:, 0] % wide == 0).all())


def _require_vectors(rows: Array, active: Array, vector: int, itemsize: int, caller: str) -> None:
    if vector * itemsize not in SIZES:
        raise LayoutError(
            f"{caller}: a vector of {vector} x {itemsize} bytes is not one that an instruction moves: {SIZES}"
        )
    if rows.shape[1] == 1 and vector > 1:  # the first element of each vector
        _require_aligned(rows[:, 0] * itemsize, active[:, 0], vector * itemsize, caller)
    elif rows.shape[1] < vector or not _is_vector(rows, active, vector):
        raise LayoutError(
            f"{caller}: the values of a thread are not vectors of {vector} consecutive elements, aligned to"
            f" {vector * itemsize} bytes; use a smaller vector, or none for the widest possible one"
        )


def _require_aligned(addresses: Array, active: Array, size: int, caller: str) -> None:
    wrong = active & (addresses % size != 0)
    if wrong.any():
        thread = int(np.argmax(wrong))
        raise LayoutError(f"{caller}: thread {thread} is at byte {int(addresses[thread])}, not a multiple of {size}")


def validate_itemsize(itemsize: int | None, access: Any, caller: str) -> tuple[int, str]:
    """Return the bytes of an element (`itemsize`, the tensor `access` decides, or 4), and what was assumed.

    >>> validate_itemsize(None, [0, 1], "this"), validate_itemsize(2, [0, 1], "this")
    ((4, 'assuming elements of 4 bytes'), (2, ''))
    """
    assumption = ""
    if itemsize is None and isinstance(access, View):
        itemsize = np.dtype(access.dtype).itemsize
    elif itemsize is None:
        itemsize, assumption = 4, "assuming elements of 4 bytes"
    if itemsize not in SIZES:
        raise LayoutError(f"{caller}: expected an itemsize of {', '.join(map(str, SIZES))} bytes, got {itemsize!r}")
    return int(itemsize), assumption


def validate_vector(vector: int | None, caller: str) -> int | None:
    """Return a vector width, or None.

    >>> validate_vector(4, "this")
    4
    """
    if vector is None:
        return None
    width = as_integer(vector, "vector")
    if width < 1:
        raise LayoutError(f"{caller}: a vector has at least 1 element, got {width}")
    return int(width)
