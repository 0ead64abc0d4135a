# SPDX-License-Identifier: Apache-2.0
"""The methods of Mojo's `LayoutTensor` that take parameters in brackets, and its text."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...layout import Layout as CoreLayout
from ...layout.layout import make_layout
from ...tensor.shape_views import VectorizeBrackets, vectorize
from ...tensor.tensor_text import element_texts
from ...tensor.tile_views import DistributeBrackets, LocatedDistributeBrackets, LocatedView
from ..index_list import Index
from .thread_shares import distribute_elements


def format_valid(tensor: Any) -> str:
    """Return the valid elements as Mojo prints them: two modes as rows, else in a line, the first index fastest.

    >>> from tilewright.mojo.layout import Layout, LayoutTensor
    >>> format_valid(LayoutTensor(list(range(6)), Layout.row_major(2, 3)))
    '0 1 2 \\n3 4 5 '
    """
    if tensor.size == 0:
        return ""
    if (tensor.rank, tensor.flat_rank) != (2, 2) and isinstance(tensor._pair, CoreLayout) and not tensor.is_ragged:
        merged = tensor.coalesce()
        tensor = merged if merged.rank == 2 else tensor
    texts = element_texts(tensor)
    texts = texts[tuple([slice(0, n) for n in tensor._valid_extents()])]
    if texts.ndim == 2 and tensor.flat_rank == 2:
        return "\n".join("".join(f"{text} " for text in row) for row in texts)
    return " ".join(texts.reshape(-1, order="F"))


class LayoutVectorizeBrackets(VectorizeBrackets[Any]):
    """`t.vectorize[1, 4]()`; see `LayoutTensor.vectorize`. A block of one element along a mode has no stride there.

    >>> from tilewright.mojo.layout import Layout, LayoutTensor
    >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).vectorize[1, 4]().element_size
    4
    """

    __slots__ = ()

    def __getitem__(self, block: Any) -> partial[Any]:
        return partial(_vectorize, self._tensor, block if isinstance(block, tuple) else (block,))

    def __call__(self, *, simd_bytes: int = 64) -> Any:
        """Return vectors along the last mode, as long as `simd_bytes` holds scalars."""
        width = max(1, simd_bytes // self._tensor._store.format.itemsize)
        return _vectorize(self._tensor, (*[1] * (self._tensor.rank - 1), width))


def _vectorize(tensor: Any, block: tuple[Any, ...]) -> Any:
    view = vectorize(tensor, block)
    pair = view._pair
    if not isinstance(pair, CoreLayout) or pair.guards or not pair.shape[1]:
        return view
    steps = tuple([0 if n == 1 else d for n, d in zip(pair.shape[1], pair.stride[1], strict=True)])
    return view._view(make_layout(pair.shape, (pair.stride[0], steps)), view._offset)


class LayoutDistributeBrackets(DistributeBrackets[Any]):
    """`t.distribute[threads, axis=0, swizzle=s](thread_id)`; see `LayoutTensor.distribute`.

    >>> from tilewright.mojo.layout import Layout, LayoutTensor
    >>> t = LayoutTensor(list(range(32)), Layout.row_major(4, 8))
    >>> t.distribute[Layout.row_major(2, 4)](5).offset
    9
    """

    __slots__ = ()

    def __getitem__(self, threads: Any) -> partial[Any]:
        return partial(self, *(threads if isinstance(threads, tuple) else (threads,)))

    def with_parameters(self, *parameters: Any, threads_layout: Any = None, **named: Any) -> Any:
        """Return the method with its brackets filled."""
        values = parameters if threads_layout is None else (threads_layout, *parameters)
        return partial(self, *values, **named)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return the elements of one thread."""
        view: Any = distribute_elements(self._tensor, arguments, **options)[0]
        return view


class LocatedLayoutDistributeBrackets(LocatedDistributeBrackets[Any]):
    """`t.distribute_with_offset[threads](thread_id)`; see `LayoutTensor.distribute_with_offset`.

    >>> from tilewright.mojo.layout import Layout, LayoutTensor
    >>> LayoutTensor(list(range(32)), Layout.row_major(4, 8)).distribute_with_offset[Layout.row_major(2, 4)](5)[2]
    9
    """

    __slots__ = ()

    def __getitem__(self, threads: Any) -> partial[LocatedView[Any]]:
        return partial(self, *(threads if isinstance(threads, tuple) else (threads,)))

    with_parameters = LayoutDistributeBrackets.with_parameters

    def __call__(self, *arguments: Any, **options: Any) -> LocatedView[Any]:
        """Return (view, thread coordinates, offset)."""
        view, coords, offset = distribute_elements(self._tensor, arguments, **options)
        return view, Index(*coords), offset  # type: ignore[return-value]
