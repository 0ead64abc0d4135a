# SPDX-License-Identifier: Apache-2.0
"""`diff`: two tensors, files or directories compared in logical space, a slab at a time, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from math import inf, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import LayoutError, TilewrightError
from ..formats import BlockFormat
from ..layout.boxes import Box
from ..memory import PageLayout, TensorSpec
from .error_map import ErrorMap
from .findings import Counts, findings, in_short
from .moments import Moments
from .operands import Operand, matched, operands_of
from .result import Comparison, Difference, TensorComparison, Tolerance
from .slabs import pieces, slabs
from .ulps import coarser, settled, ulps_apart

Floats = NDArray[np.float64]
DEFAULT_MEMORY = 64 << 20
_BYTES_PER_ELEMENT = 128  # of all that is held of a slab at once
_TILE = (32, 32)
_CHIP = "wormhole_n150"  # which core holds a shard does not depend on the chip; some chip has to be asked


def diff(
    a: Any,
    b: Any,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    ulp: float | None = None,
    pcc: float | None = None,
    tensors: Any = None,
    transpose: bool = False,
    memory: int = DEFAULT_MEMORY,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Return how two files, directories, arrays or mappings of arrays differ, in logical space.

    Number formats and layouts may differ: values are compared. `atol`, `rtol`, `ulp` and `pcc` say what is still the
    same. `tensors` are names or patterns to compare. `transpose` says that B has its last two dimensions swapped.
    `memory` bounds what is held at once; `progress` is told (elements done, elements in all).

    >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    >>> found = diff(x, 2 * x)
    >>> found.same, found.tensors[0].pcc
    (False, 1.0)
    >>> print(found.tensors[0].findings[0])
    B is 2 x A, which is 100 % of the squared error; PCC is the same for any factor
    """
    tolerance = Tolerance(atol, rtol, ulp, pcc)
    ones, others = operands_of(a), operands_of(b)
    if len(ones) == len(others) == 1:  # what they are called does not matter
        others = {next(iter(ones)): next(iter(others.values()))}
    wanted = _chosen(list(dict.fromkeys([*ones, *others])), tensors)
    both = [name for name in wanted if name in ones and name in others]
    total = sum([prod(ones[name].shape) for name in both])
    done = 0
    found = []
    for name in both:
        work = _Work(name, ones[name], others[name], tolerance, transpose, memory)
        for step in work.run():
            done += step
            if progress is not None:
                progress(done, total)
        found.append(work.result())
    return Comparison(
        _called(a, "A"),
        _called(b, "B"),
        tolerance,
        tuple(found),
        tuple([name for name in wanted if name not in others]),
        tuple([name for name in wanted if name not in ones]),
    )


def _called(thing: Any, otherwise: str) -> str:
    return os.fspath(thing) if isinstance(thing, (str, os.PathLike)) else otherwise


def _chosen(names: list[str], patterns: Any) -> list[str]:
    if patterns is None:
        return names
    asked = [patterns] if isinstance(patterns, str) else list(patterns)
    found = []
    for pattern in asked:
        hits = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not hits:
            raise LayoutError(f"no tensor is called {pattern!r}; there are {len(names)}, such as {names[0]!r}")
        found += hits
    return list(dict.fromkeys(found))


class _Piece(NamedTuple):
    """A piece of both sides: as read, as doubles, how far apart, which are not equal, and whether all are finite."""

    a: Any
    b: Any
    one: Floats
    other: Floats
    apart: Floats
    unequal: NDArray[np.bool_]
    usual: bool


class _Work:
    """The comparison of one pair of tensors, slab by slab."""

    def __init__(self, name: str, a: Operand, b: Operand, tolerance: Tolerance, transpose: bool, memory: int) -> None:
        self.name, self.a, self.b, self.tolerance, self.memory = name, a, b, tolerance, memory
        self.count = prod(a.shape)
        self.problem = ""
        self.moments = Moments()
        self.unequal = self.different = self.nonzero = self.zeroed = self.flipped = self.not_finite = 0
        self.max_relative = self.max_ulp = self.max_abs = 0.0
        self.first: tuple[int, float, float] | None = None
        self.worst: tuple[int, float, float] | None = None
        try:
            self.b = matched(a, b, transpose)
            if a.format is None or b.format is None:
                raise LayoutError("one of them has elements of a type without a number format here")
            self.unit = coarser(a.format, b.format)
        except TilewrightError as problem:
            self.problem = str(problem)
        self.map = ErrorMap(a.shape, self._tile())

    def _tile(self) -> tuple[int, int]:
        for each in (self.b, self.a):
            if each.spec is not None and each.spec.page_layout is PageLayout.TILE:
                return each.spec.tile.shape
        return _TILE

    def run(self) -> Iterator[int]:
        """Yield the elements of every slab, after comparing them."""
        if self.problem:
            yield self.count
            return
        most = max(1, self.memory // _BYTES_PER_ELEMENT)
        for box in slabs(self.a.shape, most, self._tile()):
            self._compare(box)
            yield prod(box.shape)

    def _compare(self, box: Box) -> None:
        start = int(np.ravel_multi_index(box.offset, self.a.shape)) if box.offset else 0
        a, b = self.a.read(box).reshape(-1), self.b.read(box).reshape(-1)
        steps: Floats | None = None
        for part in pieces(start, a.size, self.map.width):
            piece = self._take_in(a[part], b[part])
            if not piece.unequal.any():
                continue
            if steps is None and isinstance(self.unit, BlockFormat):
                steps = self._steps(box)
            self._look_at(start + part.start, piece, None if steps is None else steps[part])
            self.map.add(start + part.start, piece.apart)

    def _take_in(self, a: Any, b: Any) -> _Piece:
        """Return a piece of both sides with what is known about it, after adding it to the sums."""
        one, other = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            apart = np.abs(one - other)
        finite = np.isfinite(apart)  # nor is the distance of two infinities
        usual = bool(finite.all())
        if not usual:
            finite = np.isfinite(one) & np.isfinite(other)
            apart = settled(apart, one, other)
        whole = a.dtype.kind in "iu" and b.dtype.kind in "iu"
        unequal = (a != b) if whole else apart != 0.0  # integers may be too long for a double
        self.moments.add(one if usual else one[finite], other if usual else other[finite])
        self.nonzero += int(np.count_nonzero(one))
        if not usual:
            self.not_finite += int(np.count_nonzero(~finite & unequal))
        return _Piece(a, b, one, other, apart, unequal, usual)

    def _look_at(self, start: int, piece: _Piece, steps: Floats | None) -> None:
        """Take in a piece that has unequal elements, of which the first is number `start`."""
        one, other, apart, unequal = piece.one, piece.other, piece.apart, piece.unequal
        ulps = ulps_apart(piece.a, piece.b, self.unit, steps, piece.usual)
        with np.errstate(all="ignore"):
            relative = apart / np.abs(one)
            relative[one == 0.0] = 0.0
        largest = float(relative.max())
        self.max_relative = max(self.max_relative, inf if np.isnan(largest) else largest)
        self.max_ulp = max(self.max_ulp, float(ulps.max()))
        self.unequal += int(np.count_nonzero(unequal))
        self.zeroed += int(np.count_nonzero((other == 0.0) & (one != 0.0)))
        self.flipped += int(np.count_nonzero(one * np.sign(other) < 0.0))
        worst = int(np.argmax(apart)) if apart.any() else int(np.argmax(unequal))
        if self.worst is None or apart[worst] > self.max_abs:
            self.max_abs = float(apart[worst])
            self.worst = (start + worst, _number(piece.a[worst]), _number(piece.b[worst]))
        beyond = self._beyond(one, apart, ulps) & unequal
        hits = int(np.count_nonzero(beyond))
        self.different += hits
        if self.first is None and hits:
            k = int(np.argmax(beyond))
            self.first = (start + k, _number(piece.a[k]), _number(piece.b[k]))

    def _steps(self, box: Box) -> Floats | None:
        found = [each.steps(box) for each in (self.a, self.b)]
        known = [each.reshape(-1) for each in found if each is not None]
        return None if not known else known[0] if len(known) == 1 else np.maximum(known[0], known[1])

    def _beyond(self, one: Floats, apart: Floats, ulps: Floats) -> NDArray[np.bool_]:
        limit = self.tolerance
        found: NDArray[np.bool_] = np.ones(apart.shape, np.bool_)
        if limit.atol or limit.rtol:
            with np.errstate(all="ignore"):
                found &= ~(apart <= limit.atol + limit.rtol * np.abs(one))
        if limit.ulp is not None:
            found &= ~(ulps <= limit.ulp)
        return found

    def result(self) -> TensorComparison:
        """Return what was found."""
        a, b = self.a, self.b
        format_a, format_b = (str(each.format) if each.format is not None else "unknown" for each in (a, b))
        if self.problem:
            return TensorComparison(self.name, a.shape, format_a, format_b, same=False, problem=self.problem)
        total = self.moments.total()
        counts = Counts(self.count, self.nonzero, self.zeroed, self.flipped, self.not_finite, self.max_abs)
        found = findings(self.moments, counts) if self.unequal else []
        rms_a = sqrt(total.variance_a + total.mean_a**2)
        rms = sqrt(total.squared_error)
        relative = (rms / rms_a if rms_a else inf) if rms else 0.0
        correlated = self.tolerance.pcc is None or not self.unequal or (total.pcc or 0.0) >= self.tolerance.pcc
        return TensorComparison(
            self.name,
            a.shape,
            format_a,
            format_b,
            same=not self.different and correlated,
            count=self.count,
            unequal=self.unequal,
            different=self.different,
            max_abs=self.max_abs,
            max_relative=self.max_relative,
            max_ulp=self.max_ulp,
            ulp_format=str(self.unit),
            rms_error=rms,
            relative_rms=relative,
            pcc=total.pcc,
            factor=total.slope,
            offset=total.offset,
            pcc_in_words=in_short(total.pcc, relative, found) if self.unequal else "",
            findings=tuple(found),
            first=self._difference(self.first),
            worst=self._difference(self.worst),
            map_block=self.map.block,
            error_map=self.map.cells,
        )

    def _difference(self, found: tuple[int, float, float] | None) -> Difference | None:
        if found is None:
            return None
        at, one, other = found
        coordinate = tuple([int(c) for c in np.unravel_index(at, self.a.shape)]) if self.a.shape else ()
        for each in (self.b, self.a):
            if each.spec is not None:
                return Difference(coordinate, one, other, *_lives(each.spec, coordinate))
        return Difference(coordinate, one, other)


def _number(value: Any) -> float:
    """Return an element as a Python number: an int if it is one, since it may be too long for a float."""
    return int(value) if value.dtype.kind in "iu" else float(value)


def _lives(spec: TensorSpec, coordinate: tuple[int, ...]) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Return the tile and the core of an element; no core for interleaved pages of a chip that is not known."""
    try:
        where = (spec if spec.chip is not None else spec.with_chip(_CHIP)).where(*coordinate, base=0)
    except TilewrightError:  # a grid that no chip has
        return None, None
    shown = spec.memory.is_sharded or (spec.chip is not None and spec.memory.buffer_type.is_l1)
    return where.tile, (where.core.x, where.core.y) if shown else None
