# SPDX-License-Identifier: Apache-2.0
"""Mojo's `LayoutTensorIter`: tensors of one layout that step through memory, or tiles along an axis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any, ClassVar

from tilewright.errors import LayoutError
from tilewright.layout import as_integer, leaves
from tilewright.mojo import DType, ParametrizedMeta, Pointer, brackets

from .layout import Layout
from .layout_tensor_view import LayoutTensor, LayoutTensorType
from .runtime_layout import RuntimeLayout


class LayoutTensorIter(metaclass=ParametrizedMeta):
    """Tensors of one layout over memory from a pointer on, `stride` scalars apart, up to `bound`.

    A circular one starts again at the bound. `it[]` is `it.get()`; `it += k` steps on, `it.next(k)` is an iterator
    that is further on.

    >>> from tilewright.mojo.layout import Layout
    >>> from tilewright.mojo import Span
    >>> it = LayoutTensorIter["int64", Layout.row_major(2, 2)](Span([*range(8)]).unsafe_ptr(), 8)
    >>> it += 1
    >>> it.get().to_numpy().tolist()
    [[4, 5], [6, 7]]
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("dtype", "layout", "origin")

    def __init__(
        self,
        ptr: Pointer,
        bound: Any,
        runtime_layout: Any = None,
        *,
        stride: Any = None,
        offset: Any = 0,
        dimension_bound: Any = 0,
        idx: Any = 0,
        layout: Any = None,
        circular: bool = False,
        dtype: Any = None,
        axis: Any = None,
        masked: bool = False,
        **_: Any,
    ) -> None:
        self.ptr = ptr
        self.layout = layout if layout is not None else runtime_layout.layout
        self.runtime_layout = runtime_layout
        self.bound = int(bound)
        self.stride = self._size() if stride is None else int(stride)
        self.offset = int(offset)
        self.circular = bool(circular)
        self.axis, self.masked = axis, bool(masked)
        if self.bound < 1 or self.stride == 0:
            raise LayoutError(f"an iterator needs a bound and a stride of at least 1, got {bound} and {self.stride}")

    def _size(self) -> int:
        """Return the number of elements of a tensor, from the layout at run time where the other leaves it open."""
        is_known = self.layout.shape.all_known() if isinstance(self.layout, Layout) else True
        if not is_known and self.runtime_layout is None:
            raise LayoutError(f"the layout {self.layout} leaves extents open; give a RuntimeLayout with their numbers")
        return int(self.layout.size() if is_known else self.runtime_layout.size())

    @classmethod
    def _with_parameters(cls, dtype: object = None, layout: object = None, *_: Any, **named: Any) -> Any:
        """Return the constructor of iterators of a type.

        >>> from tilewright.mojo.layout import Layout
        >>> LayoutTensorIter.with_parameters("int8", Layout(2), circular=True).keywords["circular"]
        True
        """
        options = {name: value for name, value in named.items() if name in ("circular", "axis", "masked")}
        return partial(cls, layout=layout, dtype=dtype, **options)

    @property
    def dtype(self) -> DType:
        """The number type.

        >>> from tilewright.mojo.layout import Layout
        >>> from tilewright.mojo import Span
        >>> LayoutTensorIter["int64", Layout(2)](Span([1, 2]).unsafe_ptr(), 2).dtype
        DType.int
        """
        return self.ptr.dtype

    def _kind(self) -> LayoutTensorType:
        return LayoutTensorType(LayoutTensor, self.ptr.dtype, self.layout)

    def get(self) -> LayoutTensor:
        """Return the current tensor.

        >>> from tilewright.mojo.layout import Layout
        >>> from tilewright.mojo import Span
        >>> print(LayoutTensorIter["int64", Layout(2)](Span([1, 2]).unsafe_ptr(), 2).get())
        1 2
        """
        if self.runtime_layout is None:
            return LayoutTensor(self.ptr + self.offset, self.layout)
        return self._kind()(self.ptr + self.offset, self.runtime_layout)

    get_subscript = get

    def _moved(self, count: Any) -> int:
        offset = self.offset + int(as_integer(count, "a number of steps")) * self.stride
        return offset % self.bound if self.circular else offset

    def __iadd__(self, count: Any) -> LayoutTensorIter:
        self.offset = self._moved(count)
        return self

    def next(self, count: object = 1) -> LayoutTensorIter:
        """Return an iterator that is `count` steps further on.

        >>> from tilewright.mojo.layout import Layout
        >>> from tilewright.mojo import Span
        >>> LayoutTensorIter["int64", Layout(2)](Span([*range(8)]).unsafe_ptr(), 8).next(3).offset
        6
        """
        return self._copy(offset=self._moved(count))

    next_unsafe = next  # noqa: A003  (Mojo's names)

    def _incr(self) -> None:
        self.offset = self._moved(1)

    def __copy__(self) -> LayoutTensorIter:
        return self._copy()

    def _copy(self, **changes: Any) -> LayoutTensorIter:
        result = object.__new__(type(self))
        result.__dict__.update(self.__dict__)
        result.__dict__.update(changes)
        return result

    def __iter__(self) -> Iterator[Any]:
        current = self._copy()
        while current.circular or current.offset < current.bound:
            yield current.get()
            current += 1

    @brackets
    def reshape(self, parameters: tuple[Any, ...], *, dst_layout: object = None) -> LayoutTensorIter:
        """Return an iterator over tensors of another layout of the same size: `it.reshape[layout]()`.

        >>> from tilewright.mojo.layout import Layout
        >>> from tilewright.mojo import Span
        >>> it = LayoutTensorIter["int64", Layout.row_major(2, 3)](Span([*range(12)]).unsafe_ptr(), 12)
        >>> print(it.reshape[Layout.row_major(3, 2)]().get().layout)
        ((3, 2):(2, 1))
        """
        layout = (*parameters, dst_layout)[0]
        if layout.size() != self._size():
            raise LayoutError(f"{layout} has {layout.size()} elements, but {self.layout} has {self._size()}")
        return self._copy(layout=layout, runtime_layout=None)

    @brackets
    def bitcast(self, parameters: tuple[Any, ...], *, new_type: object = None, **_: Any) -> LayoutTensorIter:
        """Return an iterator over the same bytes as numbers of another type: `it.bitcast[DType.uint32]()`.

        >>> from tilewright.mojo.layout import Layout
        >>> from tilewright.mojo import Span
        >>> LayoutTensorIter["int64", Layout(2)](Span([1, 2]).unsafe_ptr(), 2).bitcast["uint64"]().dtype
        DType.uint64
        """
        return self._copy(ptr=self.ptr.bitcast[DType.of((*parameters, new_type)[0])]())


class TileIterator(LayoutTensorIter):
    """The tiles of a tensor along an axis; the last one may be masked.

    >>> from tilewright.mojo.layout import Layout
    >>> t = LayoutTensor(list(range(12)), Layout.row_major(3, 4))
    >>> [tile.offset for tile in TileIterator(t, (2, 2), (0, 0), 0)]
    [0, 8]
    """

    def __init__(self, tensor: LayoutTensor, sizes: tuple[int, ...], coords: tuple[int, ...], axis: int) -> None:
        self.tensor, self.sizes, self.coords, self.axis = tensor, sizes, coords, axis
        self.circular, self.ptr = False, tensor.ptr
        step = leaves(tensor.strides[axis])[0]
        self.bound, self.stride = int(tensor._extents[axis] * step), int(sizes[axis] * step)
        self.masked = tensor.tile[sizes](*[0] * len(sizes)).masked
        self._at = coords[axis]  # the coordinate of the current tile along the axis
        self._count = -(-int(tensor._extents[axis]) // int(sizes[axis]))

    def _size(self) -> int:
        return prod(map(int, self.sizes))

    @property
    def offset(self) -> int:  # type: ignore[override]
        """The distance of the current tile from the first one, in scalars.

        >>> from tilewright.mojo.layout import Layout
        >>> t = LayoutTensor(list(range(12)), Layout.row_major(3, 4))
        >>> TileIterator(t, (2, 2), (0, 0), 1).next().offset
        2
        """
        return int((self._at - self.coords[self.axis]) * self.stride)

    def __iadd__(self, count: object) -> LayoutTensorIter:
        self._at += int(as_integer(count, "a number of steps"))
        return self

    def _incr(self) -> None:
        self._at += 1

    def next(self, count: object = 1) -> LayoutTensorIter:
        """Return an iterator that is `count` steps further on.

        >>> from tilewright.mojo.layout import Layout
        >>> t = LayoutTensor(list(range(12)), Layout.row_major(3, 4))
        >>> TileIterator(t, (2, 2), (0, 0), 0).next().get().offset
        8
        """
        return self._copy(_at=self._at + int(as_integer(count, "a number of steps")))

    next_unsafe = next  # noqa: A003  (Mojo's names)

    def __iter__(self) -> Iterator[Any]:
        current = self._copy()
        while current._at < current._count:  # type: ignore[attr-defined]
            yield current.get()
            current += 1

    @property
    def layout(self) -> Any:
        """The layout of a tile.

        >>> from tilewright.mojo.layout import Layout
        >>> t = LayoutTensor(list(range(12)), Layout.row_major(3, 4))
        >>> print(TileIterator(t, (2, 2), (0, 0), 0).layout)
        ((2, 2):(4, 1))
        """
        return self.tensor.tile[self.sizes](*self.coords).layout

    @property
    def runtime_layout(self) -> RuntimeLayout:
        """The layout of the current tile, with the extents of its valid part.

        >>> from tilewright.mojo.layout import Layout
        >>> t = LayoutTensor(list(range(12)), Layout.row_major(3, 4))
        >>> print(TileIterator(t, (2, 2), (1, 0), 0).runtime_layout)
        ((1, 2):(4, 1))
        """
        layout: RuntimeLayout = self.get().runtime_layout
        return layout

    def get(self) -> LayoutTensor:
        """Return the current tile.

        >>> from tilewright.mojo.layout import Layout
        >>> TileIterator(LayoutTensor([1, 2], Layout(2)), (1,), (1,), 0).get().offset
        1
        """
        coords = tuple([self._at if k == self.axis else c for k, c in enumerate(self.coords)])
        return self.tensor.tile[self.sizes](*coords)

    get_subscript = get

    @brackets
    def reshape(self, parameters: tuple[Any, ...], *, dst_layout: Any = None) -> LayoutTensorIter:
        """Return an iterator over the same memory with another layout of the same size."""
        step, start = abs(self.stride), self.get()
        bound = step * (self._count - self._at)
        iterator = LayoutTensorIter(start.ptr, bound, layout=self.layout, stride=step)
        return iterator.reshape[(*parameters, dst_layout)[0]]()


LayoutTensor.tile_iterator = TileIterator
