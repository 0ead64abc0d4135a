# SPDX-License-Identifier: Apache-2.0
"""`LayoutTensor`, its types and its views."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import nan
from operator import iadd, imul, isub, itruediv
from typing import Any

from tilewright._dialect import unwrap
from tilewright.errors import LayoutError
from tilewright.layout import Layout as NativeLayout
from tilewright.layout import as_integer, as_tuple, coalesce, compose
from tilewright.mojo import (
    AddressSpace,
    DType,
    Index,
    IndexList,
    MojoValue,
    Origin,
    SIMDType,
    brackets,
    tensor_on_stack,
)
from tilewright.mojo.layout import RuntimeInt, TileTensor
from tilewright.tensor import element_texts

from ..collections import Optional
from ..library.threads import Fill
from .int_tuple import UNKNOWN_VALUE, product
from .layout import Layout, to_native, zipped_divide
from .memory_copies import copy_valid, mark_in_flight
from .nested_integers import as_int_tree
from .runtime_layout import RuntimeLayout, RuntimeLayoutType, clipped_layout


@dataclass(frozen=True, slots=True, repr=False)
class LayoutTensorType:
    """The type of a tensor, with None for open parameters. It makes tensors, and `isinstance` checks them.

    >>> from tilewright.mojo.layout import LayoutTensor
    >>> kind = LayoutTensor["float32", Layout.row_major(2, 3)]
    >>> kind.rank, kind.shape[0](), isinstance(kind.stack_allocation(), kind)
    (2, 2, True)
    """

    kind: type[LayoutTensor]
    dtype: DType | None = None
    layout: Any = None
    origin: Origin | None = None
    address_space: AddressSpace | None = None
    element_layout: Any = None
    masked: bool = False

    @classmethod
    def of_parameters(
        cls,
        kind: type[LayoutTensor],
        dtype: Any = None,
        layout: object = None,
        origin: object = None,
        *,
        address_space: object = None,
        element_layout: object = None,
        masked: object = False,
        **_: Any,
    ) -> LayoutTensorType:
        """Return `kind[dtype, layout, origin, address_space=...]`; alignment and the types of indices have no effect.

        >>> from tilewright.mojo.layout import LayoutTensor
        >>> LayoutTensorType.of_parameters(LayoutTensor, "float32").dtype
        DType.float32
        """
        return cls(
            kind,
            None if _is_open(dtype) else DType.of(dtype),
            None if _is_open(layout) else layout,
            origin if isinstance(origin, Origin) else None,
            None if _is_open(address_space) else AddressSpace(address_space),
            None if _is_open(element_layout) else element_layout,
            bool(masked) if masked is not ... else False,
        )

    def with_parameters(self, *parameters: Any, **named: Any) -> LayoutTensorType:
        """Return the type with its open parameters filled in."""
        return LayoutTensorType.of_parameters(self.kind, *parameters, **named)

    # It makes tensors.

    def __call__(
        self, storage: Any = None, runtime_layout: object = None, *_: Any, ptr: Any = None, **__: Any
    ) -> LayoutTensor:
        """Return a tensor of this type over `storage`, with a layout at run time where this one leaves numbers open."""
        memory = ptr if storage is None else storage
        if isinstance(memory, self.kind):
            return memory
        if self.layout is None:
            tensor = self.kind(memory, runtime_layout)
        elif isinstance(runtime_layout, RuntimeLayout) and isinstance(self.layout, Layout):
            tensor = self._clip(memory, runtime_layout)
        else:
            tensor = self.kind(memory, self.layout)
        if self.dtype is not None and tensor.dtype != self.dtype:
            raise LayoutError(f"{self!r} cannot be a view of {tensor.dtype}; use LayoutTensor[{tensor.dtype!r}, ...]")
        if self.element_layout is not None and product(_legacy(self.element_layout).shape) > 1:
            tensor = _with_elements(tensor, _legacy(self.element_layout))
        if self.origin is not None and not self.origin.mut and tensor.mut:
            tensor = tensor.as_immut()
        return tensor

    def _clip(self, memory: object, runtime: RuntimeLayout) -> Any:
        """Return the tensor with the numbers of run time; extents below the known ones clip it."""
        known, now = self.layout.shape, runtime.shape
        is_clipped = known.all_known() and known != now.int_tree
        if not is_clipped:
            return self.kind(memory, to_native(self.layout, runtime.shape, runtime.stride))
        steps = to_native(Layout(self.layout.shape, self.layout.stride), now, runtime.stride)
        return self.kind(memory, NativeLayout(now.int_tree, steps.stride))

    @brackets
    def stack_allocation(self, parameters: tuple[Any, ...], *, address_space: object = None, **_: Any) -> LayoutTensor:
        """Return a tensor over new memory: `LayoutTensor[...].stack_allocation[stack_alignment=16]()`."""
        if self.dtype is None or self.layout is None:
            raise LayoutError("a tensor on the stack needs a number type and a layout: LayoutTensor[dtype, layout]")
        layout = _legacy(self.layout)
        block = None if self.element_layout is None else _legacy(self.element_layout)
        count = layout.cosize() + (block.cosize() - 1 if block is not None else 0)
        space = AddressSpace(address_space) if address_space is not None else self.address_space
        kind = replace(self, origin=None)
        return tensor_on_stack(self.dtype, count, space or AddressSpace.GENERIC, kind, kind)

    # Facts at compile time.

    @property
    def rank(self) -> int:
        """The number of modes."""
        return _legacy(self.layout).rank()

    @property
    def element_size(self) -> int:
        """The number of scalars of an element."""
        return 1 if self.element_layout is None else product(_legacy(self.element_layout).shape)

    @property
    def element_type(self) -> SIMDType | None:
        """The type of an element."""
        return None if self.dtype is None else SIMDType(self.dtype, self.element_size)

    ElementType = element_type

    @property
    def shape(self) -> ModeNumbers:
        """The extents that are known, to be called: `T.shape[0]()`."""
        return ModeNumbers([StaticCount(product(part)) for part in _legacy(self.layout).shape])

    @property
    def stride(self) -> ModeNumbers:
        """The strides that are known, to be called: `T.stride[0]()`."""
        strides = _legacy(self.layout).stride
        return ModeNumbers([StaticCount((part if part.is_value() else part[0]).value()) for part in strides])

    @property
    def RuntimeLayoutType(self) -> RuntimeLayoutType:  # noqa: N802  (Mojo's name)
        """The type of the layout at run time."""
        return RuntimeLayoutType(_legacy(self.layout))

    @property
    def device_type(self) -> LayoutTensorType:
        """The type in a kernel: the same."""
        return self

    def __instancecheck__(self, value: Any) -> bool:
        return (
            isinstance(value, self.kind)
            and self.dtype in (None, value.dtype)
            and (self.layout is None or value.layout == _legacy(self.layout))
            and self.address_space in (None, value.address_space)
        )

    def __repr__(self) -> str:
        dtype = "_" if self.dtype is None else repr(self.dtype)
        return f"{self.kind.__name__}[{dtype}, {'_' if self.layout is None else self.layout}]"


def _is_open(parameter: object) -> bool:
    return parameter is None or parameter is ...


def _legacy(layout: Any) -> Layout:
    return layout if isinstance(layout, Layout) else Layout.wrap(layout)


def _with_elements(tensor: Any, block: Layout) -> Any:
    """Return the tensor whose elements are blocks of scalars; the layout has the first scalar of each."""
    pair = tensor._pair
    extents: list[Any]
    steps: list[Any]
    extents, steps = block.native.flat_modes()
    rank = len(pair.shape[0])
    if len(extents) != rank:  # in the last mode
        extents, steps = [1] * (rank - 1) + [tuple(extents)], [0] * (rank - 1) + [tuple(steps)]
    view = tensor._view(NativeLayout((pair.shape[0], tuple(extents)), (pair.stride[0], tuple(steps))), tensor._offset)
    view._check_bounds()
    return view


def format_valid(tensor: Any) -> str:
    """Return the valid elements as Mojo prints them: two modes as rows, else in a line, the first index fastest.

    >>> from tilewright.mojo.layout import Layout, LayoutTensor
    >>> format_valid(LayoutTensor(list(range(6)), Layout.row_major(2, 3)))
    '0 1 2 \\n3 4 5 '
    """
    if tensor.size == 0:
        return ""
    if (tensor.rank, tensor.flat_rank) != (2, 2) and isinstance(tensor._pair, NativeLayout) and not tensor.is_ragged:
        merged = tensor.coalesce()
        tensor = merged if merged.rank == 2 else tensor
    texts = element_texts(tensor)
    texts = texts[tuple([slice(0, n) for n in tensor._valid_extents()])]
    if texts.ndim == 2 and tensor.flat_rank == 2:
        return "\n".join("".join(f"{text} " for text in row) for row in texts)
    return " ".join(texts.reshape(-1, order="F"))


class StaticCount(int):
    """An extent or stride of a mode; a call gives its compile-time value: `tensor.shape[0]()`.

    >>> StaticCount(4)(), StaticCount(4).known
    (4, 4)
    """

    known: int

    def __new__(cls, value: int, known: int | None = None) -> StaticCount:
        result = super().__new__(cls, value)
        result.known = int(value) if known is None else known
        return result

    def __call__(self) -> int:
        return self.known


class ModeNumbers(tuple[StaticCount, ...]):
    """The extents, or strides, of the modes: `tensor.shape[0]()` at compile time, `tensor.stride(0)` at run time.

    >>> ModeNumbers([StaticCount(4)])(0)
    4
    """

    __slots__ = ()

    def __call__(self, idx: object) -> int:
        return int(self[as_integer(idx, "a mode")])

    def with_parameters(self, *k: Any, idx: Any = None) -> StaticCount:
        """Return the number of a mode, to be called: `tensor.shape[0]()`.

        >>> ModeNumbers([StaticCount(4)]).with_parameters(0)()
        4
        """
        count: StaticCount = self[(*k, idx)[0]]
        return count


class _DerivedType:
    """A type that Mojo derives from a tensor, such as `tensor.TileType[2, 2]`: here any `LayoutTensor`."""

    def with_parameters(self, *_: Any, **__: Any) -> type[LayoutTensor]:
        """Return the class of such tensors."""
        return LayoutTensor

    __getitem__ = with_parameters


def _on_a_copy(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method that applies an operation in place to a copy of its tensor."""
    return lambda tensor, other: operation(tensor._stack_copy(), other)


class LayoutTensor(TileTensor):
    """A tensor with Mojo's older layouts; its tiles at ragged edges are masked, and print their valid part.

    >>> t = LayoutTensor(list(range(12)), Layout.row_major(3, 4))
    >>> print(t.layout, t.masked, t.tile[2, 2](1, 0).masked)
    ((3, 4):(4, 1)) False True
    >>> print(t.tile[2, 2](1, 0).runtime_layout)
    ((1, 2):(4, 1))
    """

    __slots__ = ("_masked",)
    _masked: bool  # by its type; unset is the same as not
    __bracketed__ = ("dtype", "layout", "origin")
    tiles_logically = True
    TileType = DistributeType = SplitElementType = SliceType = SliceType1D = SliceType2D = _DerivedType()
    ReshapeType = CompositionType = TiledIteratorType = StaticSplitType = DynamicSplitType = _DerivedType()

    def __init__(self, storage: object, layout: object = None, **options: Any) -> None:
        super().__init__(storage, None if layout is None else unwrap(layout), **options)

    @classmethod
    def _with_parameters(cls, *parameters: Any, **named: Any) -> LayoutTensorType:
        """Return the type `LayoutTensor[dtype, layout, origin, ...]`.

        >>> LayoutTensor.with_parameters("float32", Layout.row_major(2, 2)).stack_allocation().fill(0).size()
        4
        """
        return LayoutTensorType.of_parameters(cls, *parameters, **named)

    def parametrized_type(self) -> LayoutTensorType:  # type: ignore[override]
        """Return the type of this tensor.

        >>> LayoutTensor([1, 2], Layout(2)).parametrized_type().rank
        1
        """
        return LayoutTensorType(
            type(self),
            self.dtype,
            self.layout,
            self.origin,
            self.address_space,
            self.element_layout if self.element_size > 1 else None,
            self.masked,
        )

    # Layouts.

    @property
    def layout(self) -> Layout:
        """The layout as it is known at compile time.

        >>> print(LayoutTensor([1, 2], Layout(2)).layout)
        ((2):(1))
        """
        layout = self._mode_layout
        return Layout.wrap(layout) if isinstance(layout, NativeLayout) else layout

    @property
    def element_layout(self) -> Layout:
        """The layout of the scalars within an element.

        >>> print(LayoutTensor([1, 2, 3, 4], Layout.row_major(2, 2)).vectorize[1, 2]().element_layout)
        ((1, 2):(0, 1))
        """
        if self.element_size == 1:
            return Layout(1, 1)
        return Layout.wrap(super().element_layout)

    @property
    def runtime_layout(self) -> RuntimeLayout:
        """The layout at run time, with the extents of the valid part.

        >>> print(LayoutTensor(list(range(12)), Layout.row_major(3, 4)).tile[2, 2](1, 0).runtime_layout)
        ((1, 2):(4, 1))
        """
        return clipped_layout(self.layout, self._mode_layout, self._valid_extents())

    def _valid_extents(self) -> tuple[int, ...]:
        if self.is_ragged:
            with suppress(LayoutError):  # the valid elements are not a box
                return self.valid_shape
        return tuple([int(n) for n in self._extents])

    @property
    def runtime_element_layout(self) -> RuntimeLayout:
        """The layout of the scalars within an element.

        >>> print(LayoutTensor([1, 2], Layout(2)).runtime_element_layout)
        (1:1)
        """
        layout = self.element_layout
        if self.element_size == 1:
            return RuntimeLayout(layout.shape, layout.stride)
        now = super().element_layout
        return RuntimeLayout._of(layout, as_int_tree(now.shape), as_int_tree(now.stride))

    @property
    def masked(self) -> bool:
        """Whether accesses are checked, since part of the full shape may be masked off.

        It is known of the type: of all tiles whose sizes do not divide the extents, or whose extents are not known.

        >>> t = LayoutTensor(list(range(12)), Layout.row_major(3, 4))
        >>> t.masked, t.tile[2, 2](0, 0).masked, t.tile[1, 2](0, 0).masked
        (False, True, False)
        """
        return getattr(self, "_masked", False) or self.is_ragged

    def _arrange(self, block: Any) -> Any:
        return block if _lists_rows(self._pair) else block.T

    @property
    def element_type(self) -> SIMDType:
        """The type of an element.

        >>> LayoutTensor([1, 2], Layout(2)).element_type
        SIMD[DType.int64, 1]
        """
        return SIMDType(self.dtype, self.element_size)

    @property
    def shape(self) -> ModeNumbers:
        """The extent of each mode; a call gives its compile-time value: `t.shape[0]()`.

        >>> LayoutTensor([1, 2], Layout(2)).shape[0]()
        2
        """
        return ModeNumbers([StaticCount(n, _known(n)) for n in self._extents])

    @property
    def stride(self) -> ModeNumbers:
        """The stride of each mode: `t.stride[0]()`, `t.stride(0)`; for a nested mode, the stride of its first leaf.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).stride(0)
        4
        """
        steps = [_first_leaf(step) for step in self.strides]
        return ModeNumbers([StaticCount(step, _known(step)) for step in steps])

    @brackets
    def dim(self, parameters: tuple[Any, ...], *index: Any, idx: object = None) -> int:
        """Return the extent of a mode at run time, of its valid part: `t.dim[0]()` or `t.dim(0)`.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).tile[2, 2](1, 0).dim(0)
        1
        """
        k = self._check_mode((*parameters, *index, idx)[0])
        return self._valid_extents()[k] if self.is_ragged else int(self._extents[k])

    @property
    def size(self) -> StaticCount:
        """The number of elements: `t.size()`; of the valid part.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).size()
        12
        """
        return StaticCount(super().size)

    def get_shape(self) -> IndexList:
        """Return the extents at run time.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).get_shape()
        (3, 4)
        """
        return Index(*self._valid_extents())

    def get_stride(self) -> IndexList:
        """Return the strides at run time.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).get_stride()
        (4, 1)
        """
        return Index(*self.stride)

    # Elements.

    @brackets
    def load(  # type: ignore[override]
        self, parameters: tuple[Any, ...], *index: Any, m: Any = None, n: Any = None, coords: Any = None, **options: Any
    ) -> MojoValue:
        """Return the element at an index, or scalars from there on: `t.load[4](1, 0)`, `t.load[4](m=1, n=0)`.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).load[2](m=1, n=0)
        SIMD[DType.int64, 2](4, 5)
        """
        return super().load.with_parameters(*parameters, **options)(*_named_index(index, m, n, coords))

    @brackets
    def store(  # type: ignore[override]
        self,
        parameters: tuple[Any, ...],
        *index_and_value: Any,
        m: Any = None,
        n: Any = None,
        coords: Any = None,
        val: Any = None,
        **options: Any,
    ) -> None:
        """Write the element at an index, or a vector from there on: `t.store[4](1, 0, x)`, by name `m`, `n`, `val`.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).store(m=1, n=0, val=7)
        """
        *index, value = index_and_value if val is None else (*index_and_value, val)
        super().store.with_parameters(*parameters, **options)(*_named_index(tuple(index), m, n, coords), value)

    def prefetch(self, *index: Any, m: object = None, n: object = None, coords: object = None) -> None:
        """Check an index, which may be named, `m` and `n` or `coords`; a host needs no hint.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).prefetch(m=1, n=0)
        """
        super().prefetch(*_named_index(index, m, n, coords))

    def load_scalar(self, *index: Any) -> MojoValue:
        """Return the first scalar of an element.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).load_scalar(1, 2)
        Int64(6)
        """
        return self.ptr_at_offset(*_unpack(index))[0]

    def __getitem__(self, coord: Any, *items: Any) -> Any:
        return super().__getitem__(coord if isinstance(coord, (int, slice)) else _unpack(coord), *items)

    def __setitem__(self, coord: object, *items: Any, value: object = None) -> None:  # type: ignore[override]
        key = coord if isinstance(coord, (int, slice)) else _unpack(coord)
        super().__setitem__(key, *items, *([] if value is None else [value]))

    @brackets
    def aligned_load(self, parameters: tuple[Any, ...], *index: Any, width: object = 1, **named: Any) -> MojoValue:
        """Return `width` scalars from an element on, `t.aligned_load[4](1, 0)`, by name `m` and `n` or `coords`.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).aligned_load[2](1, 0)
        SIMD[DType.int64, 2](4, 5)
        """
        return self.load[(*parameters, width)[0]](*_unpack(index), **named)

    @brackets
    def aligned_store(self, parameters: tuple[Any, ...], *index: Any, width: object = 1, **named: Any) -> None:
        """Write `width` scalars from an element on, `t.aligned_store[4](1, 0, x)`, by name `m`, `n` and `val`.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).aligned_store[2](1, 0, [7, 8])
        """
        self.store[(*parameters, width)[0]](*index, **named)

    # Views.

    @brackets
    def tile(self, parameters: tuple[Any, ...], *arguments: Any, **options: Any) -> LayoutTensor:  # type: ignore[override]
        """Return a tile: `t.tile[2, 2](1, 0)`; if sizes do not divide, all tiles are masked.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).tile[2, 2](1, 0).dim(0)
        1
        """
        view = super().tile.with_parameters(*parameters)(*arguments, **options)
        extents = zip(self._extents, view._extents, strict=False)
        is_known = not any(isinstance(n, RuntimeInt) for n in self._extents)
        return self._keep_mask(view, not is_known or any(n % size for n, size in extents if size))

    def _keep_mask(self, view: Any, is_ragged: bool = False) -> LayoutTensor:
        """Return a view of this tensor, masked if the tensor is, or the view does not divide it."""
        view._masked = self.masked or is_ragged
        return view  # type: ignore[no-any-return]

    @brackets
    def distribute(self, parameters: tuple[Any, ...], *arguments: Any, **options: Any) -> LayoutTensor:  # type: ignore[override]
        """Return the elements of one thread: `t.distribute[threads, axis=0](thread_id)`; threads may be nested.

        >>> from tilewright.mojo.layout import IntTuple
        >>> t = LayoutTensor(list(range(32)), Layout.row_major(4, 8))
        >>> t.distribute[Layout.row_major(2, 4)](5).layout == Layout(IntTuple(2, 2), IntTuple(16, 4))
        True
        """
        return self._keep_mask(super().distribute.with_parameters(*parameters)(*arguments, **options))

    @brackets
    def distribute_with_offset(  # type: ignore[override]
        self, parameters: tuple[Any, ...], *arguments: Any, **options: Any
    ) -> tuple[LayoutTensor, IndexList, int]:
        """Return (view, thread coordinates, offset): as `distribute`, with where the thread is and where it starts.

        >>> t = LayoutTensor(list(range(32)), Layout.row_major(4, 8))
        >>> t.distribute_with_offset[Layout.row_major(2, 4)](5)[1:]
        ((1, 1), 9)
        """
        located = super().distribute_with_offset.with_parameters(*parameters)(*arguments, **options)
        return self._keep_mask(located[0]), Index(*located[1]), located[2]

    @brackets
    def vectorize(self, parameters: tuple[Any, ...], **options: Any) -> LayoutTensor:  # type: ignore[override]
        """Return blocks of elements as single elements, `t.vectorize[1, 4]()`; an extent of 1 has no stride in them.

        >>> print(LayoutTensor(list(range(12)), Layout.row_major(3, 4)).vectorize[1, 4]().element_layout)
        ((1, 4):(0, 1))
        """
        view = super().vectorize.with_parameters(*parameters)(**options)
        pair = view._pair
        if isinstance(pair, NativeLayout) and not pair.guards and pair.shape[1]:
            steps = tuple([0 if n == 1 else d for n, d in zip(pair.shape[1], pair.stride[1], strict=True)])
            view = view._view(NativeLayout(pair.shape, (pair.stride[0], steps)), view._offset)
        return self._keep_mask(view)

    @brackets
    def slice(self, parameters: tuple[Any, ...], *offsets: Any, slice_indices: object = None) -> LayoutTensor:  # type: ignore[override]
        """Return a part: `t.slice[1:3, 2:5]()`; `slice_indices` are the modes of the ranges, the rest are `offsets`.

        >>> t = LayoutTensor(list(range(24)), Layout.row_major(2, 3, 4))
        >>> t.slice.with_parameters(slice(0, 2), slice(0, 2), slice_indices=(0, 2))((1,)).to_numpy().tolist()
        [[4, 5], [16, 17]]
        """
        if slice_indices is None:
            pairs = offsets[0] if len(offsets) == 1 and isinstance(offsets[0], list) else offsets
            return super().slice(*(parameters or pairs))
        modes = [int(k) for k in (slice_indices if isinstance(slice_indices, (tuple, list)) else (slice_indices,))]
        fixed = iter([int(k) for k in _unpack(offsets)])
        ranges = dict(zip(modes, parameters, strict=True))
        entries: list[Any] = [ranges[k] if k in ranges else next(fixed) for k in range(self.rank)]
        return super().slice(*entries)

    slice_1d = slice  # noqa: A003  (Mojo's names)

    def compose(self, layout: Any) -> LayoutTensor:
        """Return the elements that `layout` selects: element i of the result is element layout(i) of this tensor.

        >>> t = LayoutTensor(list(range(12)), Layout.row_major(3, 4))
        >>> t.compose(Layout.col_major(2, 2)).to_numpy().tolist()
        [[0, 8], [4, 1]]
        """
        if self.element_size != 1:
            raise LayoutError("cannot compose a vectorized tensor; compose it before vectorize")
        by_mode = isinstance(layout, (list, tuple))
        selection = tuple([unwrap(part) for part in layout]) if by_mode else unwrap(layout)
        return super().reshape(compose(self._native_layout, selection), allow_resize=True)

    @brackets
    def composition(self, parameters: tuple[Any, ...], *layouts: Any, **named: Any) -> LayoutTensor:
        """Return the elements that a layout selects: `t.composition[layout]()`.

        >>> t = LayoutTensor(list(range(12)), Layout.row_major(3, 4))
        >>> t.composition[Layout.col_major(2, 2)]().to_numpy().tolist()
        [[0, 8], [4, 1]]
        """
        return self.compose((*parameters, *named.values(), *layouts)[0])

    @brackets
    def reshape(self, parameters: tuple[Any, ...], *layouts: Any, dst_layout: object = None) -> LayoutTensor:  # type: ignore[override]
        """Return the same memory under another layout: `t.reshape[Layout.row_major(4, 3)]()`.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).reshape[Layout.row_major(4, 3)]().shape
        (4, 3)
        """
        values = (*layouts, *parameters) if dst_layout is None else (*layouts, dst_layout)
        if all(isinstance(value, (int, RuntimeInt)) for value in values):
            return super().reshape(*values)
        target = values[0] if isinstance(values[0], RuntimeLayout) else values[-1]
        if isinstance(target, (tuple, list)):
            return super().reshape(target)
        return super().reshape(unwrap(target), allow_resize=True)

    def flatten(self) -> LayoutTensor:
        """Return the tensor with one mode, over the same memory.

        >>> LayoutTensor(list(range(12)), Layout.row_major(3, 4)).flatten().shape
        (12,)
        """
        count = RuntimeInt(self.size) if any(isinstance(n, RuntimeInt) for n in self._extents) else int(self.size)
        return super().reshape(NativeLayout((count,), (1,)), allow_resize=True)

    def coalesce(self) -> LayoutTensor:
        """Return the tensor with the modes merged that continue each other.

        >>> LayoutTensor(list(range(12)), Layout.col_major(3, 4)).coalesce().shape
        (12,)
        """
        if not isinstance(self._pair, NativeLayout):
            raise LayoutError(f"cannot merge the modes of {self.layout}, which has no strides")
        layout, (shape, stride) = coalesce(self._native_layout), self._pair._parts()[:2]
        modes = ((as_tuple(layout.shape), shape[1]), (as_tuple(layout.stride), stride[1]))
        return self._view(NativeLayout(*modes), self._offset)

    @brackets
    def tiled_iterator(self, parameters: tuple[Any, ...], *coords: Any, axis: Any = 0, **_: Any) -> Any:
        """Return an iterator over tiles along an axis, from `coords` on: `t.tiled_iterator[2, 2, axis=1](0, 0)`.

        >>> t = LayoutTensor(list(range(16)), Layout.row_major(4, 4))
        >>> [tile.offset for tile in t.tiled_iterator.with_parameters(2, 2, axis=1)(0, 0)]
        [0, 2]
        """
        return LayoutTensor.tile_iterator(self, parameters, tuple([int(c) for c in _unpack(coords)]), int(axis))

    tile_iterator: Any  # set where iterators are defined

    # Contents.

    def copy_from(
        self, source: Any = None, order: str | None = None, fill: Any = None, *, other: object = None
    ) -> LayoutTensor:
        """Copy the elements of `source`, `other` in Mojo, of the same number: by elements, the first index fastest.

        >>> t = LayoutTensor([0] * 4, Layout.row_major(2, 2))
        >>> t.copy_from(LayoutTensor([1, 2, 3, 4], Layout.col_major(2, 2))).to_numpy().tolist()
        [[1, 3], [2, 4]]
        """
        source = other if source is None else source
        if order is None and isinstance(source, TileTensor) and self._needs_linear_order(source):
            return self._copy_linear(source)
        return super().copy_from(source, order, fill)

    def _needs_linear_order(self, source: TileTensor) -> bool:
        same = tuple(self._extents) == tuple(source._extents) and self._vector_extents == source._vector_extents
        if self.element_size > 1 and isinstance(source, LayoutTensor):  # Mojo copies vectors, scalar by scalar
            same = same and _lists_rows(self._pair) == _lists_rows(source._pair)
        return not same and not self.is_ragged and not source.is_ragged

    def _copy_linear(self, source: TileTensor) -> LayoutTensor:
        """Copy element i of the source to element i, and scalar j of each to scalar j."""
        if source.size != self.size or source.element_size != self.element_size:
            raise LayoutError(
                f"copy_from needs as many elements, of the same size: expected {self.size} of {self.element_size}"
                f" scalars, got {source.size} of {source.element_size}"
            )
        # as (elements, scalars of one): two modes of scalars, on both sides
        ours, theirs = (tensor._view(_two_modes(tensor._pair), tensor._offset) for tensor in (self, source))
        TileTensor.copy_from(ours, theirs)
        return self

    @brackets
    def copy_from_async(
        self,
        parameters: tuple[Any, ...],
        src: TileTensor,
        src_idx_bound: object = None,
        base_offset: object = 0,
        *,
        is_masked: bool = False,
        swizzle: object = None,
        fill: object = Fill.NONE,
        eviction_policy: object = None,
    ) -> LayoutTensor:
        """Copy the elements of `src`; in a kernel, wait for the copy before they are read. Return the tensor.

        With `is_masked`, what is masked in `src`, or lies `src_idx_bound` scalars or more after its first one, is
        skipped, or becomes what `fill` tells. `base_offset` belongs to a swizzle, which is refused; `eviction_policy`
        is a hint.

        >>> edge = LayoutTensor(list(range(12)), Layout.row_major(3, 4)).tile[2, 2](1, 0)
        >>> tile = LayoutTensor([5] * 4, Layout.row_major(2, 2))
        >>> tile.copy_from_async.with_parameters(is_masked=True)(edge).to_numpy().tolist()
        [[8, 9], [5, 5]]
        """
        is_masked, swizzle, fill = (*parameters, *(is_masked, swizzle, fill)[len(parameters) :])[:3]
        if swizzle is not None:
            raise LayoutError("copy_from_async with a swizzle is not supported; distribute the target with the swizzle")
        if is_masked:
            if Fill(fill) is not Fill.NONE:
                self.fill(0 if Fill(fill) is Fill.ZERO else nan)
            copy_valid(self, src, None if not src_idx_bound else int(as_integer(src_idx_bound, "src_idx_bound")))
        else:
            self.copy_from(src)
        mark_in_flight(self)
        return self

    def copy_from_masked(self, source: TileTensor, fill: Any = 0) -> LayoutTensor:
        """Copy the valid elements of `source` into this tensor and `fill` into the rest; return the tensor.

        >>> edge = LayoutTensor(list(range(12)), Layout.row_major(3, 4)).tile[2, 2](1, 0)
        >>> LayoutTensor([9] * 4, Layout.row_major(2, 2)).copy_from_masked(edge).to_numpy().tolist()
        [[8, 9], [0, 0]]
        """
        super().copy_from(source, fill=fill)
        return self

    def to_tile_tensor(self) -> TileTensor:
        """Return the same view as a `TileTensor`.

        >>> type(LayoutTensor([1, 2], Layout(2)).to_tile_tensor()).__name__
        'TileTensor'
        """
        return self._as_class(TileTensor)

    @brackets
    def stack_allocation(self, parameters: tuple[Any, ...], **_: Any) -> LayoutTensor:
        """Return a new tensor of the same type: `type_of(t).stack_allocation()`.

        >>> LayoutTensor([1, 2], Layout(2)).stack_allocation().size()
        2
        """
        made: LayoutTensor = self.parametrized_type().stack_allocation()
        return made

    def __str__(self) -> str:
        return format_valid(self)

    mojo_text = __str__

    # Arithmetic that makes a new tensor: a vector is combined with the rows of a matrix, along its first mode.

    __add__, __sub__, __mul__, __truediv__ = map(_on_a_copy, (iadd, isub, imul, itruediv))

    def _stack_copy(self) -> LayoutTensor:
        copied: LayoutTensor = self.parametrized_type().stack_allocation()
        return copied.copy_from(self)

    def __exp__(self) -> LayoutTensor:
        result: LayoutTensor = self._stack_copy().exp()
        return result


def _named_index(index: tuple[Any, ...], m: object, n: object, coords: object) -> tuple[Any, ...]:
    """Return an index whose entries may have names, `m` and `n` or `coords`."""
    return (*index, *[entry for entry in (m, n, coords) if entry is not None])


def _known(number: Any) -> int:
    return UNKNOWN_VALUE if isinstance(number, RuntimeInt) else int(number)


def _first_leaf(step: object) -> Any:
    while isinstance(step, tuple):
        step = step[0]
    return step


def _unpack(index: object) -> tuple[Any, ...]:
    """Return an index as separate entries, from entries or one list of them."""
    entries = index if isinstance(index, tuple) else (index,)
    if len(entries) == 1 and not isinstance(entries[0], (int, slice)):
        tree = getattr(entries[0], "int_tree", entries[0])
        if isinstance(tree, (tuple, list)):
            return tuple(tree)
    return entries


def _lists_rows(pair: object) -> bool:
    """Return whether Mojo lists the scalars of an element last index fastest: where only that index has stride 1."""
    if not isinstance(pair, NativeLayout):
        return True
    steps = tuple(pair.stride[1])
    return len(steps) == 2 and steps[1] == 1 != steps[0]


def _two_modes(pair: Any) -> Any:
    """Return a pair layout of scalars with two modes: the elements, and the scalars of one in the order of Mojo."""
    (shape, block), (stride, steps) = pair.shape, pair.stride
    order = slice(None, None, -1) if _lists_rows(pair) else slice(None)
    block, steps = tuple(block[order]) or (1,), tuple(steps[order]) or (0,)
    return NativeLayout(((tuple(shape), block), ()), ((tuple(stride), steps), ()))


@brackets
def stack_allocation_like(parameters: tuple[Any, ...], tensor: LayoutTensor, **named: Any) -> LayoutTensor:
    """`stack_allocation_like(t)`: a new tensor of the type of another.

    >>> stack_allocation_like(LayoutTensor([1, 2], Layout(2))).size()
    2
    """
    kind = tensor.parametrized_type()
    return kind.stack_allocation(address_space=named.get("target_address_space", tensor.address_space))


@brackets
def _compute_distribute_layout(parameters: tuple[Any, ...], **named: Any) -> Layout:
    layout, threads = (*parameters, *named.values())[:2]
    return zipped_divide(layout, threads)


class NullableTileTensor:
    """A tensor with an optional pointer; `value()` is the tensor, if there is one.

    >>> from tilewright.mojo.layout import row_major
    >>> nullable = NullableTileTensor(TileTensor([1, 2], row_major[2]()))
    >>> bool(nullable.ptr), nullable.dim(0), nullable.value()[1]
    (True, 2, Int64(2))
    """

    PtrType = Optional
    assignable_fields = ("ptr",)

    def __init__(self, tensor: Any = None, *, ptr: Any = None, layout: Any = None) -> None:
        self._tensor = tensor if tensor is not None or not ptr else TileTensor(ptr=Optional(ptr).value(), layout=layout)
        self.layout = layout if self._tensor is None else self._tensor.layout
        self.ptr = Optional(None if self._tensor is None else self._tensor.ptr)

    def value(self) -> TileTensor:
        """Return the tensor; raise if it has no memory.

        >>> from tilewright.mojo.layout import row_major
        >>> NullableTileTensor(TileTensor([1, 2], row_major[2]())).value().size
        2
        """
        self.ptr.value()
        return self._tensor

    @property
    def dim(self) -> brackets[int]:
        """Return the extent of a mode: `nullable.dim[0]()`, `nullable.dim(0)`.

        >>> from tilewright.mojo.layout import row_major
        >>> NullableTileTensor(TileTensor([1, 2], row_major[2]())).dim[0]()
        2
        """
        return self.value().dim

    def to_layout_tensor(self) -> TileTensor:
        """Return the tensor as a `LayoutTensor`.

        >>> from tilewright.mojo.layout import row_major
        >>> NullableTileTensor(TileTensor([1, 2], row_major[2]())).to_layout_tensor().size()
        2
        """
        return self.value().to_layout_tensor()

    def __bool__(self) -> bool:
        return bool(self.ptr)


def lt_to_tt(tensor: LayoutTensor) -> TileTensor:
    """Return a `LayoutTensor` as a `TileTensor` over the same memory.

    >>> from tilewright.mojo.layout import row_major, stack_allocation
    >>> lt_to_tt(stack_allocation["int8"](row_major[2, 2]()).to_layout_tensor()).layout
    Layout((2, 2), (2, 1))
    """
    return tensor.to_tile_tensor()
