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
from ..builtins import Index
from .coord import is_dynamic
from .thread_shares import checked_options, distribute_elements, thread_arguments
from .tile_tensor_brackets import Kind, TileTensorBrackets


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


class LayoutTileBrackets(TileTensorBrackets[Kind]):
    """`t.tile[2, 2](1, 0)`; see `LayoutTensor.tile`.

    >>> from tilewright.mojo.layout import Layout, LayoutTensor
    >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).tile[3, 2](0, 1).masked
    False
    """

    __slots__ = ()

    def __getitem__(self, shape: Any) -> partial[Kind]:
        return partial(_keep_mask, self._tensor, super().__getitem__(shape))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return the tile of a shape that is known only at run time."""
        return _keep_mask(self._tensor, super().__call__, *arguments, **options)


def _keep_mask(tensor: Any, make: Any, *arguments: Any, **options: Any) -> Any:
    """Return a view of a tensor, masked if the tensor is, or if the view does not divide its extents."""
    view = make(*arguments, **options)
    extents = zip(tensor._extents, view._extents, strict=False) if view.rank == tensor.rank else ()
    is_known = not any(map(is_dynamic, tensor._extents))
    view._masked = tensor.masked or not is_known or any(n % size for n, size in extents if size)
    return view


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
    if isinstance(pair, CoreLayout) and not pair.guards and pair.shape[1]:
        steps = tuple([0 if n == 1 else d for n, d in zip(pair.shape[1], pair.stride[1], strict=True)])
        view = view._view(make_layout(pair.shape, (pair.stride[0], steps)), view._offset)
    view._masked = tensor.masked
    return view


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

    def with_parameters(self, *parameters: Any, **named: Any) -> Any:
        """Return the method with its brackets filled."""
        return partial(self, *parameters, **named)

    def __call__(self, *arguments: Any, thread_id: Any = None, threads_layout: Any = None, **options: Any) -> Any:
        """Return the elements of one thread."""
        values = thread_arguments(self.method, arguments, thread_id, threads_layout)
        view: Any = distribute_elements(self._tensor, values, **checked_options(self.method, options))[0]
        view._masked = self._tensor.masked
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

    def __call__(
        self, *arguments: Any, thread_id: Any = None, threads_layout: Any = None, **options: Any
    ) -> LocatedView[Any]:
        """Return (view, thread coordinates, offset)."""
        values = thread_arguments(self.method, arguments, thread_id, threads_layout)
        view, coords, offset = distribute_elements(self._tensor, values, **checked_options(self.method, options))
        view._masked = self._tensor.masked
        return view, Index(*coords), offset  # type: ignore[return-value]
