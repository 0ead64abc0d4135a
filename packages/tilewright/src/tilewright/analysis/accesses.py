# SPDX-License-Identifier: Apache-2.0
"""Accesses to memory: which elements each thread touches, and with which instructions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import lcm, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..copying import Array
from ..errors import LayoutError
from ..layout import ComposedLayout, Layout, LayoutLike, Linear, as_integer, chunks, product_each
from ..tensor import View

Access: TypeAlias = "LayoutLike | View | ArrayLike"  # the offsets that each thread touches
Threads: TypeAlias = "Access | Linear"  # the elements that each thread touches
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
    """The way threads access memory: a load or a store, or the loads and stores of whole matrices.

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
        match = _INSTRUCTION.fullmatch(str(name))
        is_matrix = match is not None and match["matrix"] is not None
        if match is None or (match["rows"] and not is_matrix) or (match["vector"] and (is_matrix or not match["bits"])):
            raise LayoutError(
                f"unknown instruction {name!r}; use ld, st, ldmatrix.x1, .x2, .x4 or stmatrix.x1, .x2, .x4 or a"
                " load or store as PTX spells it, such as ld.shared.v4.f32"
            )
        is_store = match["verb"] == "st"
        if is_matrix:
            return cls(is_store, int(match["rows"] or 1))
        stated = int(match["bits"]) * int(match["vector"] or 1) // 8 if match["bits"] else None
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
            stated = "" if vector is None else f" in vectors of {vector}"
            raise LayoutError(
                f"{caller}: the instruction moves {self.bytes_per_thread} bytes per thread, which does not agree with"
                f" elements of {itemsize} bytes{stated}; leave out what the instruction states"
            )
        return self.bytes_per_thread // itemsize


@dataclass(frozen=True)
class WarpAccess:
    """One instruction of one warp: the first byte that each thread touches, the active threads, and the bytes of each.

    `first` is the number of its first thread.

    >>> access = WarpAccess(np.arange(32) * 4, np.ones(32, bool), 4)
    >>> access.bytes_per_thread
    4
    """

    addresses: Array
    active: Array
    bytes_per_thread: int
    first: int = 0


def access_offsets(
    memory: Access, threads: Threads | None, caller: str, active: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return the offsets of an access, one row per thread, and which of them are data of `active` threads.

    `memory` is a layout; `threads` maps threads and their values to its coordinates, which are counted colexicographic,
    or one by one: on the axes E0, E1 and so on, or as a linear map from lanes, warps and registers does. Without
    `threads`, `memory` is a layout whose first mode counts threads, a tensor (its offsets, not its values), or a table
    of offsets.

    >>> from tilewright import Layout
    >>> access_offsets(Layout((4, 8), (8, 1)), Layout((4, 2), (1, 4)), "this")[0].tolist()
    [[0, 1], [8, 9], [16, 17], [24, 25]]
    """
    if isinstance(threads, (int, np.integer)):
        raise LayoutError(f"{caller}: expected a layout of threads, such as Layout({threads}), got {threads}")
    offsets, touched = _offsets_of(memory if threads is None else _count_elements(memory, threads, caller), caller)
    if active is not None:
        touched = touched & _active_threads(active, len(offsets), caller)[:, None]
    if threads is not None:
        offsets, touched = _find_elements(memory, offsets, touched, caller)
    low, high = (int(offsets.min()), int(offsets.max())) if offsets.size else (0, 0)
    if min(low, -high) <= -_MAX_OFFSET:
        raise LayoutError(f"{caller}: offsets from {low} to {high} are too large for addresses of 64 bits")
    return offsets, touched


def _count_elements(memory: Access, threads: Threads, caller: str) -> Access:
    """Return the elements of `memory` that threads touch as numbers, if they are given as coordinates."""
    extents = product_each(memory.layout.shape if isinstance(memory, View) else getattr(memory, "shape", ()))
    if isinstance(threads, Linear):
        table = _register_table(threads, caller)
        if tuple(threads.outputs.values()) != extents:
            raise LayoutError(f"{caller}: the threads' map is to {threads.outputs}, got memory of extents {extents}")
        coordinates = list(table.values())
    elif (
        isinstance(threads, (Layout, ComposedLayout))
        and threads.axes
        and {*threads.axes} <= {f"E{k}" for k in range(len(extents))}
    ):
        parts = [threads.project(f"E{k}") if f"E{k}" in threads.axes else None for k in range(len(extents))]
        tables = [0 if part is None else _layout_offsets(part, caller)[0] for part in parts]
        coordinates = [np.asarray(part) for part in tables]
        for part, extent in zip(coordinates, extents, strict=True):
            if part.min() < 0 or part.max() >= extent:
                raise LayoutError(
                    f"{caller}: {threads} leaves the extents {extents} of the memory; make the threads fit"
                )
    else:
        return threads
    return sum(part * prod(extents[:k]) for k, part in enumerate(coordinates))


def _register_table(threads: Linear, caller: str) -> dict[str, Array]:
    """Return the coordinates that a map from registers, lanes and warps gives, one row per thread."""
    sizes = {name: threads.inputs.get(name, 1) for name in ("lane", "warp", "register", "block")}
    if not {*threads.inputs} <= {*sizes} or sizes["block"] > 1:
        inputs = ", ".join([f"{name} ({size})" for name, size in threads.inputs.items()])
        raise LayoutError(
            f"{caller}: threads are a map of registers, lanes and warps of one block, got one of {inputs}"
        )
    if (count := prod(sizes.values())) > MAX_OFFSETS:
        raise LayoutError(f"{caller}: the threads have {count} elements; an access has at most {MAX_OFFSETS}")
    number = np.arange(sizes["lane"] * sizes["warp"])[:, None]
    parts = {"lane": number % sizes["lane"], "warp": number // sizes["lane"], "block": np.zeros_like(number)}
    parts["register"] = np.arange(sizes["register"])[None]
    table = threads(**{name: parts[name] for name in threads.inputs})
    return {name: np.broadcast_to(values, (len(number), sizes["register"])) for name, values in table.items()}


def _active_threads(active: ArrayLike, count: int, caller: str) -> Array:
    mask = np.asarray(active).reshape(-1)
    if len(mask) != count or not (mask.dtype == bool or (mask.dtype.kind in "iu" and set(mask) <= {0, 1})):
        raise LayoutError(f"{caller}: active must have one True or False for each of {count} threads")
    return mask.astype(bool)


def _find_elements(memory: Access, index: Array, touched: Array, caller: str) -> tuple[Array, Array]:
    """Return where `memory` has the elements of each `index`, and which of them are touched and not padding."""
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
    offsets = np.broadcast_to(_integer_offsets(layout, index), index.shape)
    return _with_vectors(memory, offsets, touched & np.asarray(layout.valid(index)))


def _with_vectors(access: Access, offsets: Array, touched: Array) -> tuple[Array, Array]:
    """Return the offsets of all elements of a tensor: from its own offset on, and those inside each vector."""
    if not isinstance(access, View):
        return offsets, touched
    inside = access.element_layout
    vector = np.asarray(inside(np.arange(inside.size, dtype=np.int64))).reshape(-1)
    offsets = (offsets[..., None] + int(access.offset) + vector).reshape(len(offsets), -1)
    return offsets, np.repeat(touched, vector.size, axis=1)


def _offsets_of(access: Access, caller: str) -> tuple[Array, Array]:
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
    offsets = _integer_offsets(layout, *grid)
    flat = (shape[0] if shape else 1, prod(shape[1:]))
    touched = np.asarray(layout.valid(*grid))
    return np.broadcast_to(offsets, shape).reshape(flat), np.broadcast_to(touched, shape).reshape(flat)


def _integer_offsets(layout: LayoutLike, *coord: Array) -> Array:
    if layout.axes:
        raise LayoutError(f"{layout} maps to named axes; choose one with .project(axis)")
    return np.asarray(layout(*coord))


def warp_accesses(
    offsets: Array, touched: Array, itemsize: int, warp: int, vector: int | None, instruction: Instruction, caller: str
) -> Iterator[WarpAccess]:
    """Yield the instructions of each warp of `warp` threads.

    An instruction accesses at most 16 bytes per thread, of consecutive elements aligned to that size; all threads of a
    warp use the same width: `vector` elements, by default as many as possible. A matrix instruction takes the first
    element of each thread as the first of a row of 16 bytes.

    >>> rows = np.arange(32)[:, None] * 8 + np.arange(8)
    >>> [a.bytes_per_thread for a in warp_accesses(rows, rows >= 0, 4, 32, None, Instruction(), "this")]
    [16, 16]
    """
    for start in range(0, len(offsets), warp):
        rows, active = offsets[start : start + warp], touched[start : start + warp]
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


def validate_itemsize(itemsize: int | None, access: object, caller: str) -> tuple[int, str]:
    """Return the bytes of an element (`itemsize`, the tensor `access` decides, or 4), and the assumption.

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


# The places that a layout uses: where they lie, the gaps between them, and which of them elements share.

MAX_ELEMENTS = 1 << 20
"""The most elements of a layout whose places are listed."""


@dataclass(frozen=True, slots=True)
class FootprintReport:
    """The places that the `elements` of a layout use.

    `runs` are the intervals of consecutive places, (first, last) each; `sharing` counts the places with each number of
    elements, as (elements, places) pairs; `shared` are the places with more than one.

    >>> report = FootprintReport(6, ((0, 1), (4, 4)), ((1, 1), (3, 1)), (4,))
    >>> print(report, report.gaps)
    6 elements in 3 places from 0 to 4, 2 holes, up to 3 elements in a place (2,)
    """

    elements: int
    runs: tuple[tuple[int, int], ...]
    sharing: tuple[tuple[int, int], ...]
    shared: tuple[int, ...]

    @property
    def places(self) -> int:
        """The number of different places in use."""
        return sum([last - first + 1 for first, last in self.runs])

    @property
    def span(self) -> int:
        """The number of places from the lowest to the highest one."""
        return self.runs[-1][1] - self.runs[0][0] + 1 if self.runs else 0

    @property
    def gaps(self) -> tuple[int, ...]:
        """The number of free places between each run and the next."""
        return tuple([after[0] - before[1] - 1 for before, after in zip(self.runs, self.runs[1:], strict=False)])

    @property
    def holes(self) -> int:
        """The number of free places between the lowest and the highest one."""
        return self.span - self.places

    @property
    def most_shared(self) -> int:
        """The largest number of elements in one place: 1 if none is shared."""
        return max([ways for ways, _ in self.sharing], default=0)

    def __str__(self) -> str:
        if not self.runs:
            return "no elements"
        where = f"{self.elements} elements in {self.places} places from {self.runs[0][0]} to {self.runs[-1][1]}"
        sharing = f", up to {self.most_shared} elements in a place" if self.shared else ""
        return f"{where}, {self.holes} holes{sharing}"


def footprint(layout: LayoutLike | View) -> FootprintReport:
    """Return which places a `layout`, or a tensor, uses; padding uses none.

    >>> from tilewright import Layout
    >>> print(footprint(Layout((4, 2), (2, 16))))
    8 elements in 8 places from 0 to 22, 15 holes
    >>> footprint(Layout((4, 2), (2, 16))).gaps
    (1, 1, 1, 9, 1, 1, 1)
    """
    offsets, valid = index_offsets(layout, "footprint")
    used, counts = np.unique(offsets[valid], return_counts=True)
    starts = np.flatnonzero(np.diff(used, prepend=used[:1] - 2) != 1)
    ends = np.append(starts[1:], len(used)) - 1
    ways, numbers = np.unique(counts, return_counts=True)
    return FootprintReport(
        int(counts.sum()),
        tuple(zip(used[starts].tolist(), used[ends].tolist(), strict=True)) if used.size else (),
        tuple(zip(ways.tolist(), numbers.tolist(), strict=True)),
        tuple(used[counts > 1].tolist()),
    )


def index_offsets(layout: LayoutLike | View, caller: str) -> tuple[Array, Array]:
    """Return the place of each index of a `layout`, or of a tensor's, and whether it is data; `caller` is for errors.

    >>> from tilewright import Layout
    >>> index_offsets(Layout((2, 2), (2, 1)), "this")[0].tolist()
    [0, 2, 1, 3]
    """
    function, base = (layout.layout, int(layout.offset)) if isinstance(layout, View) else (layout, 0)
    if not isinstance(function, LayoutLike):
        raise LayoutError(f"{caller}: expected a layout or a tensor, got {type(layout).__name__}")
    if function.size > MAX_ELEMENTS:
        raise LayoutError(f"{caller}: {function} has {function.size} elements; at most {MAX_ELEMENTS} are listed")
    if function.axes or function.is_replicated:
        raise LayoutError(f"{caller}: {function} has copies or maps to named axes; choose one with .project(axis)")
    parts = [(np.asarray(offsets), valid) for _, offsets, valid in chunks(function)]
    if not parts:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    return np.concatenate([offsets for offsets, _ in parts]) + base, np.concatenate([valid for _, valid in parts])


@dataclass(frozen=True, slots=True)
class ThreadStrides:
    """The steps from each thread to the next: `steps` has a row for each value of a thread.

    >>> strides = ThreadStrides(((1, 1, 1), (1, 5, 1)))
    >>> print(strides, strides.constant)
    steps of 1, 5 between neighbouring threads (1, None)
    """

    steps: tuple[tuple[int, ...], ...]

    @property
    def constant(self) -> tuple[int | None, ...]:
        """The stride between all neighbours, for each value; None if they differ or there is one thread."""
        return tuple([row[0] if len(set(row)) == 1 else None for row in self.steps])

    @property
    def distinct(self) -> tuple[int, ...]:
        """The different steps, smallest first."""
        return tuple(sorted({step for row in self.steps for step in row}))

    @property
    def is_uniform(self) -> bool:
        """Whether there is at most one step."""
        return len(self.distinct) < 2

    def __str__(self) -> str:
        if not self.distinct:
            return "one thread"
        steps = ", ".join(map(str, self.distinct))
        return f"{'a step' if self.is_uniform else 'steps'} of {steps} between neighbouring threads"


def thread_strides(memory: Access, threads: Access | None = None) -> ThreadStrides:
    """Return how far apart, in elements, neighbouring threads access memory; 0 means that they access the same.

    `memory` and `threads` are as for `bank_conflicts`: layouts, a tensor, or a table of offsets.

    >>> from tilewright import Layout
    >>> print(thread_strides(Layout((8, 2), (4, 1))))
    a step of 4 between neighbouring threads
    """
    offsets, touched = access_offsets(memory, threads, "thread_strides")
    if not touched.all():
        raise LayoutError("thread_strides: some elements are padding, which is not accessed; leave them out")
    return ThreadStrides(tuple([tuple(row) for row in np.diff(offsets, axis=0).T.tolist()]))


# Layouts whose places are consecutive, as permutations of their indices.

_MAX_SHOWN = 8  # cycles, and elements of a cycle, that text shows


@dataclass(frozen=True, slots=True)
class Permutation:
    """A permutation as its `cycles`: each leads from an index to its place, and from there on, until it closes.

    A cycle begins with its smallest index, and cycles are in the order of these. `start` is the place of index 0 of the
    permutation, which is not 0 if strides are negative or the layout has an offset.

    >>> swap = Permutation(((0,), (1, 2), (3,)))
    >>> print(swap, swap.parity)
    (1 2), 2 fixed points, order 2 -1
    """

    cycles: tuple[tuple[int, ...], ...]
    start: int = 0

    @property
    def size(self) -> int:
        """The number of permuted indices."""
        return sum(map(len, self.cycles))

    @property
    def fixed_points(self) -> tuple[int, ...]:
        """The indices that stay where they are."""
        return tuple([cycle[0] for cycle in self.cycles if len(cycle) == 1])

    @property
    def order(self) -> int:
        """The number of applications of the permutation that gives the identity."""
        return lcm(*map(len, self.cycles))

    @property
    def parity(self) -> int:
        """The sign: 1 for an even permutation, one that takes an even number of swaps, and -1 for an odd one."""
        return -1 if (self.size - len(self.cycles)) % 2 else 1

    def __str__(self) -> str:
        moved = [cycle for cycle in self.cycles if len(cycle) > 1]
        text = "".join([_format_cycle(cycle) for cycle in moved[:_MAX_SHOWN]]) or "identity"
        more = f" and {len(moved) - _MAX_SHOWN} more cycles" if len(moved) > _MAX_SHOWN else ""
        fixed = len(self.fixed_points)
        return f"{text}{more}, {fixed} fixed point{'s' * (fixed != 1)}, order {self.order}"


def _format_cycle(cycle: tuple[int, ...]) -> str:
    return f"({' '.join(map(str, cycle[:_MAX_SHOWN]))}{' ...' * (len(cycle) > _MAX_SHOWN)})"


def permutation(layout: LayoutLike) -> Permutation:
    """Return the permutation of indices that a `layout` with consecutive places is; places count from the lowest.

    >>> from tilewright import Layout
    >>> print(permutation(Layout((2, 2), (2, 1))))  # a transpose
    (1 2), 2 fixed points, order 2
    >>> permutation(Layout(4, -1)).cycles
    ((0, 3), (1, 2))
    """
    offsets, valid = index_offsets(layout, "permutation")
    if not valid.all():
        raise LayoutError(f"permutation of {layout}: it is padded; permute the data first, then pad")
    start = int(offsets.min()) if offsets.size else 0
    if len(np.unique(offsets)) != offsets.size:
        raise LayoutError(f"permutation of {layout}: it is not injective, some indices share a place")
    if offsets.size and int(offsets.max()) - start != offsets.size - 1:
        raise LayoutError(f"permutation of {layout}: its places are not a dense interval; there are gaps between them")
    return Permutation(_cycles((offsets - start).tolist()), start)


def _cycles(images: list[int]) -> tuple[tuple[int, ...], ...]:
    cycles = []
    seen = bytearray(len(images))
    for first in range(len(images)):
        if not seen[first]:
            cycle, index = [], first
            while not seen[index]:
                seen[index] = 1
                cycle.append(index)
                index = images[index]
            cycles.append(tuple(cycle))
    return tuple(cycles)


# Coalescing: how many sectors of global memory an access transfers.


@dataclass(frozen=True, slots=True)
class CoalescingReport:
    """The sectors that an access to global memory transfers.

    >>> CoalescingReport(sectors=32, ideal=4, lines=32, used=128, moved=1024).efficiency
    0.125
    """

    sectors: int
    ideal: int
    lines: int
    used: int
    moved: int
    instructions: int = 1
    assumption: str = field(default="", repr=False, compare=False)  # about elements whose size nobody stated

    @property
    def efficiency(self) -> float:
        """The share of the transferred bytes that threads asked for.

        >>> CoalescingReport(4, 4, 1, 128, 128).efficiency
        1.0
        """
        return self.used / self.moved if self.moved else 1.0

    def __str__(self) -> str:
        text = f"{self.sectors} sectors ({self.efficiency:.0%} of the bytes are used)"
        return f"{text}, {self.assumption}" if self.assumption else text


def coalescing(
    memory: Access,
    threads: Access | None = None,
    *,
    itemsize: int | None = None,
    vector: int | None = None,
    base: int = 0,
    sector: int = 32,
    line: int = 128,
    warp: int = 32,
    active: ArrayLike | None = None,
) -> CoalescingReport:
    """Return the sectors that an access to global memory transfers.

    `memory`, `threads`, `itemsize`, `vector` and `active` are as for `bank_conflicts`; `base` is the byte address of
    offset 0, which decides which vectors are aligned. Sectors have `sector` bytes, in lines of `line`, and `warp`
    threads access memory together. Instructions do not share sectors.

    >>> from tilewright import Layout
    >>> print(coalescing(Layout(32)))
    4 sectors (100% of the bytes are used), assuming elements of 4 bytes
    >>> print(coalescing(Layout(32, 32), itemsize=4))
    32 sectors (12% of the bytes are used)
    """
    size, assumption = validate_itemsize(itemsize, memory, "coalescing")
    offsets, touched = access_offsets(memory, threads, "coalescing", active)
    if min(as_integer(sector, "sector"), as_integer(line, "line"), as_integer(warp, "warp")) < 1 or not offsets.size:
        raise LayoutError(
            f"coalescing needs offsets and positive sizes, got {offsets.size} offsets, sector={sector!r}, line={line!r}"
        )
    if as_integer(base, "base") % size or not 0 <= base < MAX_ADDRESS:
        raise LayoutError(f"coalescing: base must be an address that is a multiple of the itemsize {size}, got {base}")
    total = np.zeros(5, dtype=np.int64)
    width = validate_vector(vector, "coalescing")
    for access in warp_accesses(offsets + base // size, touched, size, warp, width, Instruction(), "coalescing"):
        wanted = np.unique(access.addresses[access.active][:, None] + np.arange(access.bytes_per_thread))
        sectors = len(np.unique(wanted // sector))
        total += (sectors, -(-len(wanted) // sector), len(np.unique(wanted // line)), len(wanted), 1)
    sectors, ideal, lines, used, count = total.tolist()
    return CoalescingReport(sectors, ideal, lines, used, sectors * sector, count, assumption)


# How elements are spread: contiguous runs, the share of padding, and balance over cores or banks.

_CHUNK = 1 << 20  # coordinates evaluated at a time


@dataclass(frozen=True, slots=True)
class RunReport:
    """The lengths of contiguous runs, in elements.

    >>> print(RunReport(4, 8, 8, 8.0))
    4 runs of 8
    """

    runs: int
    shortest: int
    longest: int
    mean: float

    def __str__(self) -> str:
        if self.shortest == self.longest:
            return f"{self.runs} run{'s' * (self.runs != 1)} of {self.longest}"
        return f"{self.runs} runs of {self.shortest} to {self.longest}, {self.mean:.3g} on average"


def contiguous_runs(offsets: Access, valid: ArrayLike | None = None) -> RunReport:
    """Return the runs of consecutive offsets, in row-major order; padding ends a run.

    `offsets` are integers, a layout or a `TileTensor`; `valid` marks the integers that are not padding.

    >>> from tilewright import row_major, col_major
    >>> print(contiguous_runs(row_major(4, 8).offsets()), contiguous_runs(col_major(4, 8).offsets()), sep=", ")
    1 run of 32, 32 runs of 1
    """
    flat, touched = (table.reshape(-1) for table in access_offsets(offsets, None, "contiguous_runs"))
    data = touched if valid is None else np.asarray(valid, dtype=bool).reshape(-1)
    if data.shape != flat.shape:
        raise LayoutError(f"contiguous_runs: valid has {data.size} entries for {flat.size} offsets; give one for each")
    if not data.any():
        return RunReport(0, 0, 0, 0.0)
    starts = data.copy()
    starts[1:] &= ~(data[:-1] & (np.diff(flat) == 1))
    number = np.cumsum(starts)[data]
    lengths = np.bincount(number)[1:]
    return RunReport(len(lengths), int(lengths.min()), int(lengths.max()), float(lengths.mean()))


def padding_share(layout: LayoutLike) -> float:
    """Return the share of the coordinates of a `layout` that are padding.

    >>> from tilewright import row_major, with_logical_shape
    >>> padding_share(with_logical_shape(row_major(64, 96), (60, 90)))
    0.12109375
    """
    size = int(layout.size)
    if not size:
        return 0.0
    if isinstance(layout, Layout):
        try:
            return 1 - prod(layout.logical_shape) / size
        except LayoutError:
            pass  # padded across modes: count
    data = 0
    for start in range(0, size, _CHUNK):
        index = np.arange(start, min(size, start + _CHUNK), dtype=np.int64)
        data += int(np.count_nonzero(np.broadcast_to(layout.valid(index), index.shape)))
    return 1 - data / size


@dataclass(frozen=True, slots=True)
class BalanceReport:
    """The distribution of amounts, such as bytes, over cores or banks.

    >>> print(BalanceReport(8, 0, 2048, 1536.0, 2))
    1536 on average, 0 to 2048, 2 of 8 idle
    """

    count: int
    least: int
    most: int
    mean: float
    idle: int

    @property
    def imbalance(self) -> float:
        """The largest amount divided by the mean: 1 is even.

        >>> BalanceReport(4, 0, 100, 50.0, 2).imbalance
        2.0
        """
        return self.most / self.mean if self.mean else 1.0

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.most} on each of {self.count}"
        idle = f", {self.idle} of {self.count} idle" if self.idle else ""
        mean = f"{self.mean:g}" if self.mean < 1000 else f"{self.mean:.0f}"
        return f"{mean} on average, {self.least} to {self.most}{idle}"


def balance(amounts: Iterable[int]) -> BalanceReport:
    """Return how evenly `amounts`, such as the bytes of every core, are spread.

    >>> balance([2048, 2048, 1024, 0]).imbalance
    1.6
    """
    if isinstance(amounts, (LayoutLike, View)):
        raise LayoutError(f"expected amounts, such as the bytes per core, got {amounts!r}")
    values = [int(amount) for amount in amounts]
    if not values:
        raise LayoutError("expected at least one amount, such as the bytes per core, got none")
    return BalanceReport(len(values), min(values), max(values), sum(values) / len(values), values.count(0))
