# SPDX-License-Identifier: Apache-2.0
"""CuTe's `local_tile` and `local_partition`, of layouts and of tensors."""

from __future__ import annotations

from typing import Any

from ..layout import Layout as CoreLayout
from ..layout.tuples import as_tuple
from ..tensor import TileTensor
from .layout import make_identity_layout
from .tiling_algebra import zipped_divide


def make_tensor(storage: Any, layout: Any = None) -> TileTensor:
    """Return a view of `storage` through `layout`.

    >>> from tilewright import cute
    >>> int(make_tensor(list(range(8)), cute.Layout((2, 4), (4, 1)))[1, 2])
    6
    """
    return TileTensor(storage, layout)


def local_tile(tensor: Any, tiler: Any, coord: Any, proj: Any = None) -> Any:
    """Return the tile at `coord` of the grid of tiles of a tensor or layout.

    With `proj`, such as `(1, None, 1)`, only the entries of `tiler` and `coord` where it is not None are used. For a
    layout, None in `coord` keeps that mode of the grid.

    >>> from tilewright import cute
    >>> t = make_tensor(list(range(32)), cute.Layout((4, 8), (8, 1)))
    >>> local_tile(t, (2, 4), (1, 1)).to_numpy().tolist()
    [[20, 21, 22, 23], [28, 29, 30, 31]]
    >>> print(local_tile(cute.Layout((4, 8), (8, 1)), (2, 4), (1, None)))
    ((2,4),2):((8,1),4)
    """
    sizes, position = _project(tiler, proj), _project(coord, proj)
    if isinstance(tensor, CoreLayout):
        return zipped_divide(tensor, sizes)(None, position)
    return tensor.tile[sizes](*position)


def local_partition(tensor: TileTensor, threads: CoreLayout, index: int, proj: Any = None) -> TileTensor:
    """Return what thread `index` has of `tensor`: every n-th element of each mode, n being the extents of `threads`.

    With `proj`, only the modes of `threads` where it is not None are used.

    >>> from tilewright import cute
    >>> t = make_tensor(list(range(32)), cute.Layout((4, 8), (8, 1)))
    >>> local_partition(t, cute.Layout((2, 4), (4, 1)), 5).to_numpy().tolist()
    [[9, 13], [25, 29]]
    """
    if proj is not None:
        threads = CoreLayout(_project(threads.shape, proj), _project(threads.stride, proj))
    return tensor.distribute[threads](index)


def make_identity_tensor(shape: Any) -> Any:
    """Return the tensor whose elements are their own coordinates in `shape`: a layout over basis strides.

    >>> make_identity_tensor((4, 8))(2, 5)
    (2, 5)
    """
    return make_identity_layout(shape)


def inner_partition(tensor: Any, tiler: Any, coord: Any) -> Any:
    """Return the tile of extents `tiler` at `coord` of a `tensor` or layout, as `local_tile` does.

    >>> from tilewright import cute
    >>> print(inner_partition(cute.Layout((4, 8), (8, 1)), (2, 4), (1, 1)))
    ((2,4)):((8,1))
    """
    return local_tile(tensor, tiler, coord)


def outer_partition(layout: CoreLayout, tiler: Any, coord: Any) -> Any:
    """Return the grid of tiles of extents `tiler` of a layout, at one `coord` inside the tile: what one thread has.

    >>> from tilewright import cute
    >>> print(outer_partition(cute.Layout((4, 8), (8, 1)), (2, 4), (1, 1)))
    ((2,2)):((16,4))
    """
    return zipped_divide(layout, as_tuple(tiler))(as_tuple(coord), None)


def _project(entries: Any, proj: Any) -> tuple[Any, ...]:
    """Return the entries where `proj` is not None."""
    values = as_tuple(entries)
    return (
        values
        if proj is None
        else tuple([v for v, keep in zip(values, as_tuple(proj), strict=True) if keep is not None])
    )
