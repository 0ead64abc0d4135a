# SPDX-License-Identifier: Apache-2.0
"""The shares of threads: which elements of a tensor are whose. None of them copies."""

from __future__ import annotations

import warnings
from math import prod
from typing import TYPE_CHECKING, Any

from ..errors import CoordinateError, LayoutError
from ..layout import Layout, Swizzle
from ..layout.integers import as_integer
from ..layout.tuples import ceil_div
from .cutting import Cut, cut

if TYPE_CHECKING:
    from .tile_tensor import TileTensor


def distribute(
    tensor: TileTensor,
    fixed: tuple[Any, ...],
    thread_id: int,
    *,
    swizzle: Swizzle | None = None,
    wrap: bool = False,
    ragged: str = "warn",
) -> TileTensor:
    """Return the elements of one thread: `t.distribute[thread_layout](thread_id)`.

    Thread k of a mode gets every n-th element from k on. A swizzle, in brackets or by name, moves the start of the
    share. What does not divide is dropped with a warning; `ragged="floor"` drops quietly, `"cover"` rounds up and
    guards, `"error"` raises. `wrap=True` takes thread ids modulo the number of threads.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(48)), tw.row_major(6, 8))
    >>> [t.distribute[tw.col_major(2, 2)](k).offset for k in range(4)]
    [0, 8, 1, 9]
    >>> t.distribute[tw.col_major(2, 2)](1).layout
    Layout((3, 4), (16, 2))
    """
    return _share(tensor, fixed, thread_id, swizzle, wrap, ragged)[0]


def distribute_with_offset(
    tensor: TileTensor,
    fixed: tuple[Any, ...],
    thread_id: int,
    *,
    swizzle: Swizzle | None = None,
    wrap: bool = False,
    ragged: str = "warn",
) -> tuple[TileTensor, tuple[int, ...], int]:
    """Return (share, thread coordinates, offset): as `distribute`, with where the thread is and where it starts.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(32)), tw.row_major(2, 16))
    >>> t.distribute_with_offset[tw.row_major(2, 8), tw.Swizzle(2, 0, 3)](10)[1:]
    ((1, 2), 16)
    """
    return _share(tensor, fixed, thread_id, swizzle, wrap, ragged)


def _share(
    tensor: TileTensor, fixed: tuple[Any, ...], thread_id: int, swizzle: Swizzle | None, wrap: bool, ragged: str
) -> tuple[TileTensor, tuple[int, ...], int]:
    threads, swizzle = _thread_arguments(tensor, fixed, swizzle)
    at = _thread_coordinates(threads, thread_id, wrap)
    extents = tensor._extents
    cuts: list[Cut] = []
    lost = False
    for n, count, start in zip(extents, threads._shape, at):  # noqa: B905  (of one length; this is a hot path)
        share = n // count
        if n % count:
            lost = True
            share = ceil_div(n, count) if ragged == "cover" else share
        cuts.append((start, share, count))
    if ragged not in ("warn", "floor", "cover", "error"):
        raise LayoutError(f"ragged={ragged!r}: use 'warn', 'floor', 'cover' or 'error'")
    if lost and ragged not in ("cover", "floor"):
        _report_lost(tensor, threads, ragged)
    whole, shift = cut(tensor._whole, cuts)
    if swizzle is None:
        found = tensor._view(whole, tensor._offset + shift)
        return found, tuple(at), found.offset - tensor.offset
    if not isinstance(whole, Layout):
        raise LayoutError(f"a share of {tensor.layout} has no single start that a swizzle could move")
    size = tensor.element_size
    moved = int(swizzle(shift // size)) * size
    found = tensor._view(whole, tensor._offset + moved)
    found._check_inside()
    return found, tuple(at), moved


def _thread_arguments(tensor: TileTensor, fixed: tuple[Any, ...], swizzle: Any) -> tuple[Layout, Swizzle | None]:
    if not 1 <= len(fixed) <= 2:
        raise LayoutError("distribute needs a thread layout in brackets: t.distribute[row_major[4, 8]()](thread_id)")
    threads = fixed[0]
    if not isinstance(threads, Layout):
        raise TypeError(f"a thread layout is a Layout, got {type(threads).__name__} {threads!r}")
    if len(fixed) == 2:
        swizzle = fixed[1]
    if swizzle is not None and not isinstance(swizzle, Swizzle):
        raise TypeError(f"a swizzle is a Swizzle, got {type(swizzle).__name__} {swizzle!r}")
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
    thread = thread_id if thread_id.__class__ is int else int(as_integer(thread_id, "a thread id"))
    count = prod(threads._shape)
    if not 0 <= thread < count:
        if not wrap:
            raise CoordinateError(
                f"thread {thread} is outside the {count} threads of {threads}; wrap=True takes it modulo {count}"
            )
        thread %= count
    pairs = zip(threads._shape, threads._stride)  # noqa: B905  (of one length; this is a hot path)
    return [int(thread // step % n) if step else 0 for n, step in pairs]


def _report_lost(tensor: TileTensor, threads: Layout, ragged: str) -> None:
    extents = tensor._extents
    lost = [
        f"the last {n % m} of mode {k}" for k, (n, m) in enumerate(zip(extents, threads._shape, strict=True)) if n % m
    ]
    text = (
        f"a tensor of shape {tensor.layout.shape} does not divide among threads of shape {threads.shape}:"
        f" {' and '.join(lost)} go to no thread; ragged='cover' gives them out, 'floor' drops them quietly"
    )
    if ragged == "error":
        raise LayoutError(text)
    warnings.warn(text, RuntimeWarning, stacklevel=4)  # the line that distributes
