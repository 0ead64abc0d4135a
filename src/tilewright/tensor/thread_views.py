# SPDX-License-Identifier: Apache-2.0
"""The elements of one thread, as a view: `t.distribute[threads](thread_id)`."""

from __future__ import annotations

import warnings
from functools import partial
from math import prod
from typing import Any, TypeAlias

from ..errors import CoordinateError, LayoutError
from ..layout import Layout, Swizzle
from ..layout.tuples import ceil_div
from ..layout.validation import as_integer
from .tile_views import Brackets, Kind, LocatedView
from .view_layouts import Cut, cut_modes

Threads: TypeAlias = "Layout | tuple[Layout, Swizzle | None]"


class DistributeBrackets(Brackets[Kind]):
    """`t.distribute[threads](thread_id)` are the elements of one thread; see `TileTensor.distribute`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).distribute[tw.row_major(2, 4)](5).shape
    (3, 2)
    """

    __slots__ = ()

    def __getitem__(self, threads: Threads) -> partial[Kind]:
        return partial(distribute, self._tensor, threads)

    def __call__(
        self,
        threads: Threads,
        thread_id: int,
        *,
        swizzle: Swizzle | None = None,
        wrap: bool = False,
        ragged: str = "warn",
    ) -> Kind:
        """Return the elements of thread `thread_id` of a layout that is known only at run time."""
        return distribute(self._tensor, threads, thread_id, swizzle=swizzle, wrap=wrap, ragged=ragged)


class LocatedDistributeBrackets(Brackets[Kind]):
    """`t.distribute_with_offset[threads](thread_id)` is (view, thread coordinates, offset).

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).distribute_with_offset[tw.row_major(2, 4)](5)[1:]
    ((1, 1), 9)
    """

    __slots__ = ()

    def __getitem__(self, threads: Threads) -> partial[LocatedView[Kind]]:
        return partial(distribute_with_offset, self._tensor, threads)

    def __call__(
        self,
        threads: Threads,
        thread_id: int,
        *,
        swizzle: Swizzle | None = None,
        wrap: bool = False,
        ragged: str = "warn",
    ) -> LocatedView[Kind]:
        """Return (view, thread coordinates, offset) for a layout that is known only at run time."""
        return distribute_with_offset(self._tensor, threads, thread_id, swizzle=swizzle, wrap=wrap, ragged=ragged)


def distribute(
    tensor: Kind,
    threads: Threads,
    thread_id: int,
    *,
    swizzle: Swizzle | None = None,
    wrap: bool = False,
    ragged: str = "warn",
) -> Kind:
    """Return the elements of one thread: thread k of a mode has every n-th element from k on.

    `threads` is a layout from coordinates to thread ids. A `swizzle`, here or after the layout in brackets, moves the
    start of the view. Elements that do not divide among the threads are dropped with a warning; `ragged="floor"` drops
    them silently, `"cover"` rounds up and guards, `"error"` raises. `wrap=True` takes thread ids modulo the number of
    threads.

    >>> import tilewright as tw
    >>> distribute(tw.TileTensor(list(range(48)), tw.row_major(6, 8)), tw.col_major(2, 2), 1).layout
    Layout((3, 4), (16, 2))
    """
    return _locate_elements(tensor, threads, thread_id, swizzle, wrap, ragged)[0]


def distribute_with_offset(
    tensor: Kind,
    threads: Threads,
    thread_id: int,
    *,
    swizzle: Swizzle | None = None,
    wrap: bool = False,
    ragged: str = "warn",
) -> LocatedView[Kind]:
    """Return (view, thread coordinates, offset): as `distribute`, with the thread's position and where it starts.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(32)), tw.row_major(2, 16))
    >>> distribute_with_offset(t, (tw.row_major(2, 8), tw.Swizzle(2, 0, 3)), 10)[1:]
    ((1, 2), 16)
    """
    return _locate_elements(tensor, threads, thread_id, swizzle, wrap, ragged)


def _locate_elements(
    tensor: Kind, threads: Threads, thread_id: int, swizzle: Swizzle | None, wrap: bool, ragged: str
) -> LocatedView[Kind]:
    """Return (view, thread coordinates, offset) of the elements of one thread."""
    layout, swizzle = _validate_threads(tensor, threads, swizzle)
    coords = _thread_coordinates(layout, thread_id, wrap)
    cuts: list[Cut] = []
    divides = True
    for n, count, start in zip(tensor._extents, layout._shape, coords):  # noqa: B905  (equal lengths, on a hot path)
        share = n // count
        if n % count:
            divides = False
            share = ceil_div(n, count) if ragged == "cover" else share
        cuts.append((start, share, count))
    if ragged not in ("warn", "floor", "cover", "error"):
        raise LayoutError(f"expected ragged='warn', 'floor', 'cover' or 'error', got {ragged!r}")
    if not divides and ragged not in ("cover", "floor"):
        _report_dropped_elements(tensor, layout, ragged)
    pair, shift = cut_modes(tensor._pair, cuts)
    if swizzle is None:
        view = tensor._view(pair, tensor._offset + shift)
        return view, tuple(coords), view.offset - tensor.offset
    if not isinstance(pair, Layout):
        raise LayoutError(f"the elements of a thread of {tensor.layout} have no single start for a swizzle to move")
    size = tensor.element_size
    swizzled = int(swizzle(shift // size)) * size
    view = tensor._view(pair, tensor._offset + swizzled)
    view._check_bounds()
    return view, tuple(coords), swizzled


def _validate_threads(tensor: Kind, threads: Any, swizzle: Any) -> tuple[Layout, Swizzle | None]:
    """Return the thread layout and the swizzle, which may come together in brackets."""
    if isinstance(threads, tuple):
        if not 1 <= len(threads) <= 2:
            raise LayoutError("distribute takes a thread layout in brackets: t.distribute[row_major(4, 8)](thread_id)")
        threads, swizzle = (*threads, swizzle)[:2]
    if not isinstance(threads, Layout):
        raise TypeError(f"the thread layout must be a Layout, got {type(threads).__name__} {threads!r}")
    if swizzle is not None and not isinstance(swizzle, Swizzle):
        raise TypeError(f"the swizzle must be a Swizzle, got {type(swizzle).__name__} {swizzle!r}")
    shape = threads._shape
    fits = shape.__class__ is tuple and len(shape) == len(tensor._extents)
    for n in shape if fits else ():
        fits = fits and n.__class__ is not tuple
    if not fits:
        raise LayoutError(
            f"thread layout {threads} does not fit a tensor of shape {tensor.layout.shape}: it must be flat, with"
            f" {len(tensor._extents)} modes"
        )
    return threads, swizzle


def _thread_coordinates(threads: Layout, thread_id: Any, wrap: bool) -> list[int]:
    """Return the coordinates of a thread id."""
    thread = thread_id if thread_id.__class__ is int else int(as_integer(thread_id, "a thread id"))
    count = prod(threads._shape)
    if not 0 <= thread < count:
        if not wrap:
            raise CoordinateError(
                f"thread {thread} is outside the {count} threads of {threads}; wrap=True takes it modulo {count}"
            )
        thread %= count
    pairs = zip(threads._shape, threads._stride)  # noqa: B905  (equal lengths, on a hot path)
    return [int(thread // step % n) if step else 0 for n, step in pairs]


def _report_dropped_elements(tensor: Kind, threads: Layout, ragged: str) -> None:
    """Warn, or raise, that some elements belong to no thread."""
    modes = zip(tensor._extents, threads._shape, strict=True)
    dropped = [f"the last {n % m} of mode {k}" for k, (n, m) in enumerate(modes) if n % m]
    text = (
        f"a tensor of shape {tensor.layout.shape} does not divide among threads of shape {threads.shape}:"
        f" {' and '.join(dropped)} belong to no thread; ragged='cover' assigns them, 'floor' drops them silently"
    )
    if ragged == "error":
        raise LayoutError(text)
    warnings.warn(text, RuntimeWarning, stacklevel=4)  # the line that calls distribute
