# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `buffer`, removed in 26.3: `NDBuffer`, memory with a shape, and the dimensions of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, SupportsIndex, TypeAlias

from numpy.typing import ArrayLike, NDArray

from tilewright.errors import LayoutError
from tilewright.formats import ScalarFormat
from tilewright.layout import as_integer
from tilewright.mojo import DType, Pointer, Span
from tilewright.mojo.layout import ComptimeInt, RuntimeInt, row_major
from tilewright.mojo.layout import MixedLayout as Layout

Memory: TypeAlias = "ArrayLike | bytearray | Pointer"  # that a buffer can have


class Dim:
    """A dimension: `Dim(4)` is known at compile time, `Dim()` is not.

    >>> Dim(4), Dim()
    (Dim(4), Dim())
    """

    def __init__(self, value: SupportsIndex | None = None) -> None:
        self.value = None if value is None else as_integer(value, "a dimension")

    def __repr__(self) -> str:
        return f"Dim({'' if self.value is None else self.value})"


class DimList:
    """The dimensions of a buffer: integers are known at compile time, `Dim()` is not.

    >>> DimList(3, Dim())
    DimList(3, Dim())
    """

    def __init__(self, *dims: SupportsIndex | Dim) -> None:
        self.dims = tuple([dim if isinstance(dim, Dim) else Dim(dim) for dim in dims])

    def __repr__(self) -> str:
        return f"DimList({', '.join(repr(dim) if dim.value is None else str(dim.value) for dim in self.dims)})"


class NDBuffer:
    """Memory with a shape, `NDBuffer[dtype, rank, origin, shape](storage, dynamic_shape)`; `TileTensor` takes it.

    `shape` is a `DimList`; without one, the extents are known at run time, from `dynamic_shape`. Strides are
    row-major.

    >>> from tilewright.mojo.layout import TileTensor
    >>> TileTensor(NDBuffer["float64", 2, None, DimList(Dim(), 4)]([0.0] * 12, (3, 4))).layout
    Layout((Idx(3), 4), (4, 1))
    """

    def __init__(
        self, dtype: ScalarFormat, dims: tuple[Dim, ...], storage: Memory, extents: Sequence[SupportsIndex]
    ) -> None:
        numbers = [as_integer(extent, "an extent") for extent in extents]
        if len(numbers) != len(dims):
            raise LayoutError(f"a buffer of rank {len(dims)} needs {len(dims)} extents, got {tuple(numbers)}")
        for dim, extent in zip(dims, numbers, strict=True):
            if dim.value not in (None, extent):
                raise LayoutError(f"the shape says {dim.value} at compile time, but {extent} at run time")
        self.span = Span(storage, length=prod(numbers)) if isinstance(storage, Pointer) else Span(storage)
        if DType.of(self.span.array.dtype) != dtype:
            raise LayoutError(f"a buffer of {dtype} cannot hold {self.span!r}; convert it first")
        pairs = zip(dims, numbers, strict=True)
        shape = [RuntimeInt(extent) if dim.value is None else ComptimeInt(extent) for dim, extent in pairs]
        self.layout: Layout = row_major(*shape)

    def __class_getitem__(cls, parameters: tuple[Any, ...]) -> Callable[..., NDBuffer]:
        dtype, rank, *rest = parameters
        element, count = DType.of(dtype), as_integer(rank, "the rank of a buffer")
        known = [part for part in rest if isinstance(part, DimList)]
        dims = known[0].dims if known else (Dim(),) * count
        if len(dims) != count:
            raise LayoutError(f"{known[0]!r} has {len(dims)} dimensions, but the buffer has rank {count}")

        def create(storage: Memory, dynamic_shape: Sequence[SupportsIndex] | None = None) -> NDBuffer:
            if dynamic_shape is None and None in [dim.value for dim in dims]:
                raise LayoutError("a buffer with dimensions that are not known at compile time needs its shape")
            extents = [dim.value for dim in dims] if dynamic_shape is None else dynamic_shape
            return cls(element, dims, storage, extents)  # type: ignore[arg-type]

        return create

    @property
    def array(self) -> NDArray[Any]:
        """The memory as a flat array.

        >>> NDBuffer["uint8", 1](bytearray(2), (2,)).array.tolist()
        [0, 0]
        """
        return self.span.array

    def __repr__(self) -> str:
        return f"<NDBuffer of {DType.of(self.array.dtype).name} with layout {self.layout}>"
