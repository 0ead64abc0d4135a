# SPDX-License-Identifier: Apache-2.0
"""The methods of Mojo's `TileTensor` that take parameters in brackets, with Mojo's names for them.

Mojo's module `layout.tile_tensor`: `TileTensor` with all of Mojo's members, `LayoutTensor` and iterators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from ..._dialect import unwrap
from ..._lazy import companion_name
from ...errors import CoordinateError, LayoutError
from ...layout import Layout as NativeLayout
from ...layout import as_integer, make_layout
from ...tensor import (
    DistributeBrackets,
    Extents,
    LocatedDistributeBrackets,
    LocatedTileBrackets,
    LocatedView,
    ReshapeBrackets,
    SliceBrackets,
    SliceEntries,
    SplitBrackets,
    TileBrackets,
    VectorizeBrackets,
    element_texts,
    format_matrices,
    format_tensor,
    join_texts,
    pair_layout,
    slice_leaves,
    tile,
    tile_with_offset,
)
from ..brackets import ParametrizedMeta, brackets
from ..builtins import ImplicitlyCopyable, Movable, RegisterPassable, TrivialRegisterPassable
from ..memory import AddressSpace, label_store, tensor_on_stack
from ..simd import DType
from .coord import RuntimeInt
from .tensor_memory import ElementwiseTensor, MemoryTensor, only_one
from .tensor_type import TensorType, TypeMember, type_name, type_of
from .thread_shares import checked_options, distribute_elements, thread_arguments
from .tile_layout import TRIVIAL_MEMBERS, make_dynamic_layout

Viewed = TypeVar("Viewed", bound=ElementwiseTensor)


class TileTensorBrackets(TileBrackets[Viewed]):
    """`t.tile[4, 8](1, 0)`; nested layouts are tiled by leaves, as in Mojo."""

    __slots__ = ()

    def __getitem__(self, shape: Extents) -> partial[Viewed]:
        extents, options = _split_stride_layout(shape)
        return partial(_tile, self._tensor, extents, **options)

    def __call__(self, shape: Any, coords: Any = None, *, coordinates: Any = None, stride_layout: Any = None) -> Viewed:
        """Return the tile of a `shape` that is known only at run time, at `coords`, which Mojo calls `coordinates`."""
        return super().__call__(shape, *_one_of(self.method, (coords,), coordinates), stride_layout=stride_layout)


class _LocatedTileBrackets(LocatedTileBrackets[Viewed]):
    """`t.tile_with_offset[4, 8](1, 0)`; as `tile`, strides that are known may come last in brackets."""

    __slots__ = ()

    def __getitem__(self, shape: Extents) -> partial[LocatedView[Viewed]]:
        extents, options = _split_stride_layout(shape)
        return partial(_tile_with_offset, self._tensor, extents, **options)

    def __call__(
        self, shape: Any, coords: Any = None, *, coordinates: Any = None, stride_layout: Any = None
    ) -> LocatedView[Viewed]:
        """Return (tile, corner, offset) for a `shape` that is known only at run time, at `coords`."""
        return super().__call__(shape, *_one_of(self.method, (coords,), coordinates), stride_layout=stride_layout)


def _split_stride_layout(parameters: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (extents, options) of brackets; a layout after the extents is `stride_layout`."""
    values = parameters if isinstance(parameters, tuple) else (parameters,)
    if values and isinstance(values[-1], NativeLayout):
        return values[:-1], {"stride_layout": values[-1]}
    return values, {}


class _ReshapeBrackets(ReshapeBrackets[Viewed]):
    """`t.reshape[2, 6]()` of a static layout; `t.reshape(layout)` takes any layout within the storage, as Mojo does."""

    __slots__ = ()

    def __getitem__(self, shape: Extents) -> partial[Viewed]:
        _require_static(self._tensor, "reshape[...]", "pass the shape at run time: t.reshape(Coord(Idx(2), Idx(6)))")
        return super().__getitem__(shape)

    def with_parameters(self, *parameters: Any, new_layout: object = None, **named: Any) -> Any:
        """Return the method with its brackets filled; the type of the layout follows from the layout."""
        return super().with_parameters(*parameters, **named)

    def __call__(self, *shape: Any, layout_val: Any = None, new_shape: Any = None, allow_resize: bool = True) -> Viewed:
        """Return the tensor under the layout `layout_val`, or in the shape `new_shape`; names may be left out."""
        values = [value for value in (layout_val, new_shape) if value is not None]
        if len(values) + bool(shape) != 1:
            raise TypeError("reshape takes a shape or a layout: t.reshape[2, 6](), or t.reshape(layout)")
        return super().__call__(*shape, *values, allow_resize=allow_resize)


class _SliceBrackets(SliceBrackets[Viewed]):
    """`t.slice[1:3, 2:5]()` of a static layout, or at run time `t.slice((1, 3), (2, 5))`."""

    __slots__ = ()

    def __getitem__(self, entries: SliceEntries) -> partial[Viewed]:
        _require_static(self._tensor, "slice[...]", "pass the ranges at run time: t.slice((1, 3), (2, 5))")
        return super().__getitem__(entries)

    def __call__(self, *ranges: Any) -> Viewed:
        """Return the part given by ranges known at run time; `All` and single indices keep static extents static."""
        is_known = bool(ranges) and all(isinstance(entry, (slice, int)) for entry in ranges)
        return slice_leaves(self._tensor, ranges, not is_known)


def _require_static(tensor: Any, caller: str, remedy: str) -> None:
    """Raise unless every extent and stride of a tensor is known at compile time, as Mojo demands."""
    if not tensor.all_dims_known:
        raise LayoutError(
            f"{caller} needs extents and strides that are known at compile time, but the layout is {tensor.layout!r};"
            f" {remedy}"
        )


def _one_of(method: str, arguments: tuple[Any, ...], named: object) -> tuple[Any, ...]:
    """Return the arguments of a method: those given without a name, or the one that Mojo's name gives."""
    arguments = tuple([value for value in arguments if value is not None])
    if (named is None) != bool(arguments):
        raise TypeError(f"{method} takes the coordinates of a tile once: t.{method}[2, 2](1, 0), or coordinates=(1, 0)")
    return arguments or (named,)


def _tile_with_offset(
    tensor: Viewed, shape: tuple[int, ...], *coords: Any, coordinates: object = None, stride_layout: Any = None
) -> LocatedView[Viewed]:
    """Return (tile, corner, offset), with the coordinates under the name that Mojo gives them."""
    position = _one_of("tile_with_offset", coords, coordinates)
    return tile_with_offset(tensor, shape, *position, stride_layout=stride_layout)


def _tile(
    tensor: Viewed, shape: tuple[int, ...], *coords: Any, coordinates: object = None, stride_layout: Any = None
) -> Viewed:
    """Return a tile; in a nested layout it steps through the first leaf of each mode and keeps the last, as in Mojo."""
    coords = _one_of("tile", coords, coordinates)
    layout = tensor._native_layout
    is_nested = tensor.flat_rank != tensor.rank and isinstance(tensor._pair, NativeLayout)
    if not is_nested or tensor.element_size != 1 or tensor.tiles_logically or not isinstance(layout, NativeLayout):
        return tile(tensor, shape, *coords, stride_layout=stride_layout)
    position = coords[0] if len(coords) == 1 and isinstance(coords[0], (tuple, list)) else coords
    shift, steps = 0, []
    if not len(shape) == len(position) == tensor.rank:
        raise LayoutError(
            f"a tile of {len(shape)} extents at {len(position)} coordinates does not fit a tensor of shape"
            f" {layout.shape}; give {tensor.rank} of each, one per mode"
        )
    shape = tuple([as_integer(n, "an extent") for n in shape])
    for k, (n, c) in enumerate(zip(shape, [as_integer(c, "a coordinate") for c in position], strict=True)):
        extents, strides = layout.mode(k).flat_modes()
        if not 0 <= c < extents[0] or not 0 < n <= extents[-1]:
            raise CoordinateError(
                f"mode {k} of {layout} has tiles 0 to {extents[0] - 1} of up to {extents[-1]} elements, got {c} of {n}"
            )
        shift += int(c * strides[0])
        steps.append(strides[-1])
    return tensor._view(pair_layout(make_layout(tuple(map(int, shape)), tuple(steps))), tensor._offset + shift)


# In Python's errors about arguments
_tile.__qualname__, _tile_with_offset.__qualname__ = "TileTensor.tile", "TileTensor.tile_with_offset"


def _is_plain(threads: object) -> bool:
    return isinstance(threads, NativeLayout) and threads.depth <= 1


def _distribute_any(tensor: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    threads, *rest, thread_id = arguments
    if not tensor.tiles_logically and _is_plain(threads) and options.get("axis") is None:
        if len(rest) > 1:
            raise TypeError(f"distribute takes a thread layout and a swizzle in brackets, got {(threads, *rest)!r}")
        return LocatedDistributeBrackets(tensor)((unwrap(threads), *rest), thread_id, **options)
    ragged = options.pop("ragged", "cover" if tensor.tiles_logically else "floor")
    return distribute_elements(tensor, arguments, ragged=ragged, **options)


class _DistributeBrackets(DistributeBrackets[Viewed]):
    """`t.distribute[threads](thread_id)`, also of nested threads, and with named parameters."""

    __slots__ = ()

    def __getitem__(self, threads: object) -> partial[Viewed]:
        return partial(self, *(threads if type(threads) is tuple else (threads,)))

    def with_parameters(self, *parameters: Any, **named: Any) -> Any:
        return partial(self, *parameters, **named)

    def __call__(
        self,
        *arguments: Any,
        thread_id: object = None,
        thread_layout: object = None,
        threads_layout: object = None,
        **options: Any,
    ) -> Viewed:
        values = thread_arguments(self.method, arguments, thread_id, thread_layout, threads_layout)
        view: Viewed = _distribute_any(self._tensor, values, checked_options(self.method, options))[0]
        return view


class _LocatedDistributeBrackets(LocatedDistributeBrackets[Viewed]):
    """`t.distribute_with_offset[threads](thread_id)`, also of nested threads, and with named parameters."""

    __slots__ = ()

    def __getitem__(self, threads: object) -> partial[LocatedView[Viewed]]:
        return partial(self, *(threads if type(threads) is tuple else (threads,)))

    with_parameters = _DistributeBrackets.with_parameters

    def __call__(
        self,
        *arguments: Any,
        thread_id: object = None,
        thread_layout: object = None,
        threads_layout: object = None,
        **options: Any,
    ) -> LocatedView[Viewed]:
        values = thread_arguments(self.method, arguments, thread_id, thread_layout, threads_layout)
        located: LocatedView[Viewed] = _distribute_any(self._tensor, values, checked_options(self.method, options))
        return located


class _VectorizeBrackets(VectorizeBrackets[Viewed]):
    """`t.vectorize[1, 4]()`; the result keeps the index type."""

    __slots__ = ()

    def __getitem__(self, block: Extents) -> partial[Viewed]:
        return partial(_keep_index_type, self._tensor, super().__getitem__(block))

    def __call__(self, *, simd_bytes: int = 64) -> Viewed:
        view: Viewed = _keep_index_type(self._tensor, partial(super().__call__, simd_bytes=simd_bytes))
        return view


class _SplitBrackets(SplitBrackets[Viewed]):
    """`t.split[count, axis]()`; the results keep the index type."""

    __slots__ = ()

    def __getitem__(self, parameters: Extents) -> partial[Any]:
        return partial(self._split, parameters if isinstance(parameters, tuple) else (parameters,))

    def __call__(
        self, count: int, k: int | None = None, *, axis: int = 0, alignment: int = 1, idx: int | None = None
    ) -> Any:
        """Return part `k`, `idx` in Mojo, of `count` along `axis`, or all parts: `t.split[count=2, axis=1]()`.

        Each is a multiple of `alignment` long but for the last ones.
        """
        part = k if idx is None else idx
        return self._split((count, axis)) if part is None else self._split((axis, alignment), count, part)

    def _split(
        self,
        parameters: tuple[int, ...],
        *part: int,
        axis: int | None = None,
        split_alignment: int | None = None,
        count: int | None = None,
        idx: int | None = None,
    ) -> Any:
        part = (*part, *[number for number in (count, idx) if number is not None])
        everything = parameters if axis is None else (axis,) if part and not parameters else (*parameters, axis)
        everything = everything if split_alignment is None else (*everything, split_alignment)
        return _keep_index_type(self._tensor, super().__getitem__(everything), *part)


_SplitBrackets._split.__qualname__ = "TileTensor.split"  # in Python's errors about arguments


def _keep_index_type(tensor: Any, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a method, views of `tensor`, with its index type."""
    result = method(*arguments, **options)
    for view in result if isinstance(result, list) else [result]:
        view._index_type = tensor.linear_idx_type
    return result


Kind = TypeVar("Kind", bound="TileTensor")
OtherKind = TypeVar("OtherKind", bound="TileTensor")


class _TypeName:
    """`TileTensor.get_type_name()` names the class, `t.get_type_name()` the type of a view."""

    def __get__(self, tensor: TileTensor | None, kind: type) -> Callable[[], str]:
        def get_type_name() -> str:
            if tensor is None:
                return kind.__name__
            parameters = (tensor.mut, tensor.dtype, tensor.element_size, tensor.address_space, tensor.linear_idx_type)
            return type_name(kind.__name__, *parameters)

        get_type_name.__qualname__ = f"{kind.__name__}.get_type_name"
        return get_type_name


class TileTensor(ElementwiseTensor, metaclass=ParametrizedMeta):  # type: ignore[metaclass]
    """A `tilewright.TileTensor` with all members of Mojo's, and extents known at compile time or at run time.

    `address_space` is a label of the memory, `linear_idx_type` the integer format of offsets in a kernel.

    >>> from tilewright.mojo.layout import row_major
    >>> t = TileTensor(list(range(48)), row_major[6, 8]())
    >>> t.static_shape, t.dim[0](), t.slice((1, 3), (2, 5)).shape_known
    ((6, 8), 6, False)
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ("dtype", "LayoutType", "origin")
    Storage: ClassVar[Any]  # set where it is defined

    def to_layout_tensor(self) -> TileTensor:
        """Return the same view as a `LayoutTensor`.

        >>> from tilewright.mojo.layout import row_major
        >>> type(TileTensor(bytearray(4), row_major[2, 2]()).to_layout_tensor()).__name__
        'LayoutTensor'
        """
        older: type[TileTensor] = companion_name("tilewright.mojo.layout.LayoutTensor", "tilewright_mojo.older", "mojo")
        return self._as_class(older)

    def _as_class(self, kind: type[OtherKind]) -> OtherKind:
        """Return the same view as another class of tensor."""
        view = object.__new__(kind)
        view._store, view._pair, view._offset = self._store, self._pair, self._offset
        view._index_type = self._index_type
        return view

    @brackets
    def make_dynamic(self, parameters: tuple[Any, ...], *, dyn_dtype: object = None) -> TileTensor:
        """Return the same view with every extent and stride known only at run time: `t.make_dynamic[dtype]()`.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(12), row_major[3, 4]()).make_dynamic().layout
        Layout(Coord(Idx(3), Idx(4)), Coord(Idx(4), Idx(1)))
        """
        dtype = only_one("make_dynamic", "a number type", *(parameters or [dyn_dtype or DType.int64]))
        return self._view(make_dynamic_layout(self._pair, dtype), self._offset)

    @brackets
    def address_space_cast(self, parameters: tuple[Any, ...], *, target_address_space: object = None) -> TileTensor:
        """Return the same view labelled with another address space.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(48), row_major[6, 8]()).address_space_cast[AddressSpace.SHARED]().address_space
        <AddressSpace.SHARED: 3>
        """
        space = only_one("address_space_cast", "an address space", *parameters, target_address_space)
        view = self._view(self._pair, self._offset, label_store(self._store, AddressSpace(space)))
        view._index_type = self.linear_idx_type
        return view

    # Views.

    @property
    def tile(self: Kind) -> TileBrackets[Kind]:
        """Return a tile: `t.tile[shape](*coords)`; nested layouts are tiled by leaves, as in Mojo.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(48), row_major[6, 8]()).tile[2, 4](1, 0).offset
        16
        """
        return TileTensorBrackets(self)

    @property
    def vectorize(self: Kind) -> VectorizeBrackets[Kind]:
        """Return blocks of elements as single elements: `t.vectorize[1, 4]()`.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(48), row_major[6, 8]()).vectorize[1, 4]().shape
        (6, 2)
        """
        return _VectorizeBrackets(self)

    @property
    def tile_with_offset(self: Kind) -> LocatedTileBrackets[Kind]:
        """Return (tile, corner, offset): as `tile`, with the index of its first element and how far that is.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(48), row_major[6, 8]()).tile_with_offset[2, 4](1, 1)[1:]
        ((2, 4), 20)
        """
        return _LocatedTileBrackets(self)

    @property
    def reshape(self: Kind) -> ReshapeBrackets[Kind]:
        """Return another shape, `t.reshape[2, 6]()` or `t.reshape(Coord(...))`, or another layout.

        Brackets need a layout whose extents and strides are known at compile time. A layout may have another size; its
        offsets must lie within the storage.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(12), row_major[3, 4]()).reshape[2, 6]().layout
        Layout((2, 6), (6, 1))
        """
        return _ReshapeBrackets(self)

    @property
    def slice(self: Kind) -> SliceBrackets[Kind]:
        """Return a part: `t.slice[1:4, 2:7]()` of a static layout, or at run time `t.slice((1, 4), (2, 7))`.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(48), row_major[6, 8]()).slice[1:3, 2:5]().offset
        10
        """
        return _SliceBrackets(self)

    def coalesce(self: Kind) -> Kind:
        """Return the tensor with one mode; its layout must be static, and row-major without gaps.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(12), row_major[3, 4]()).coalesce().layout
        Layout((12,), (1,))
        """
        _require_static(self, "coalesce", "give it static extents, as in row_major[3, 4]()")
        return super().coalesce()

    @property
    def split(self: Kind) -> SplitBrackets[Kind]:
        """Return equal parts, `t.split[count, axis]()`, or one part, `t.split[axis, alignment](count, k)`.

        >>> from tilewright.mojo.layout import row_major
        >>> [part.shape for part in TileTensor(bytearray(48), row_major[6, 8]()).split[2]()]
        [(3, 8), (3, 8)]
        """
        return _SplitBrackets(self)

    @property
    def distribute(self: Kind) -> DistributeBrackets[Kind]:
        """Return the elements of one thread: `t.distribute[threads](thread_id)`; threads may be nested.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(48), row_major[6, 8]()).distribute[row_major[2, 4]()](5).offset
        9
        """
        return _DistributeBrackets(self)

    @property
    def distribute_with_offset(self: Kind) -> LocatedDistributeBrackets[Kind]:
        """Return (view, thread coordinates, offset): as `distribute`, with where the thread is and where it starts.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(48), row_major[6, 8]()).distribute_with_offset[row_major[2, 4]()](5)[1:]
        ((1, 1), 9)
        """
        return _LocatedDistributeBrackets(self)

    @property
    def _storage(self) -> Any:
        return self.ptr

    @brackets
    def _unsafe_storage_cast(self, parameters: tuple[Any, ...], **_: Any) -> Any:
        return self.ptr

    # Text and types.

    def convert_to_string(self) -> str:
        """Return Mojo's `String(t)`: rows in one line, and run-time extents flat, as Modular's tests have it.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor([1, 2, 3, 4], row_major[2, 2]()).convert_to_string()
        '[[1, 2], [3, 4]]'
        """
        if self.size and self.rank == 2 and not self.shape_known:
            return join_texts(element_texts(self).reshape(-1, order="F"))
        return format_rows(self)

    def write_to(self, w: object) -> None:
        """Write the text of the tensor to `w`, anything with a `write` method.

        >>> import sys
        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor([1, 2], row_major[2]()).write_to(sys.stdout)
        [1, 2]
        """
        if not hasattr(w, "write"):
            raise TypeError(f"write_to takes a writer, an object with a method write, got {type(w).__name__} {w!r}")
        w.write(str(self))

    def __format__(self, style: str) -> str:
        if style not in _STYLES:
            raise LayoutError(f"expected print style 'mojo', 'grid', 'pretty' or none, got {style!r}")
        return _STYLES[style](self)

    get_type_name: Any = _TypeName()

    # Types that Mojo derives from the type of a tensor; on the class they are as open as the class.
    ElementType: Any = TypeMember("ElementType")
    ViewType: Any = TypeMember("ViewType")
    AddressSpaceCastType: Any = TypeMember("AddressSpaceCastType")
    OriginCastType: Any = TypeMember("OriginCastType")
    GenericType: Any = TypeMember("GenericType")
    device_type: Any = TypeMember("device_type")
    DynamicType: Any = TypeMember("DynamicType")
    CoalescedType: Any = TypeMember("CoalescedType")
    ReshapedType: Any = TypeMember("ReshapedType")
    VectorizedType: Any = TypeMember("VectorizedType")
    SIMDVectorizedType: Any = TypeMember("SIMDVectorizedType")

    @classmethod
    def _with_parameters(cls, *parameters: Any, **named: Any) -> Any:
        return TensorType.of_names(cls, *parameters, **named)

    def parametrized_type(self) -> TensorType:
        """Return the type of this tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(4), row_major[2, 2]()).parametrized_type().rank
        2
        """
        return type_of(self)

    @property
    def LayoutType(self) -> Any:  # noqa: N802  (Mojo's names)
        """The type of the layout, which is the layout itself.

        >>> from tilewright.mojo.layout import row_major
        >>> TileTensor(bytearray(4), row_major[2, 2]()).LayoutType.static_shape
        (2, 2)
        """
        return self.layout


for _trait in (Movable, ImplicitlyCopyable, RegisterPassable, TrivialRegisterPassable):
    _trait.register(TileTensor)
for _name in TRIVIAL_MEMBERS:
    setattr(TileTensor, _name, True)
for _base in (MemoryTensor, ElementwiseTensor):  # Python's errors about arguments name the class that users know
    for _name, _member in vars(_base).items():
        _function = getattr(_member, "__wrapped__", _member)
        if isinstance(_function, FunctionType):
            _function.__qualname__ = f"TileTensor.{_function.__name__}"


def format_rows(tensor: TileTensor) -> str:
    """Return the text that Mojo prints: two plain modes as rows, everything else flat with the first index fastest.

    >>> from tilewright.mojo.layout import col_major, row_major
    >>> format_rows(TileTensor(list(range(6)), col_major[2, 3]()))
    '[[0, 2, 4], [1, 3, 5]]'
    """
    if tensor.size == 0:
        return ""
    texts = element_texts(tensor)
    if texts.ndim == 2 and tensor.flat_rank == 2:
        return join_texts([join_texts(row) for row in texts])
    return join_texts(texts.reshape(-1, order="F"))


_STYLES: dict[str, Callable[[Any], str]] = {"": format_tensor, "mojo": format_rows, "pretty": format_matrices}


@brackets
def stack_allocation(
    parameters: tuple[Any, ...],
    layout: Any,
    address_space: AddressSpace = AddressSpace.GENERIC,
    dtype: Any = None,
    **hints: Any,  # such as an alignment
) -> TileTensor:
    """`stack_allocation[dtype](layout)`: a tensor over new memory, as much as the layout needs.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> stack_allocation["float32"](row_major[4, 4]()).fill(0).shape
    (4, 4)
    """
    element = DType.of(parameters[0] if dtype is None else dtype)
    space = parameters[1] if len(parameters) > 1 else address_space
    count = int(layout.cosize)
    return tensor_on_stack(element, count, AddressSpace(space), layout, lambda pointer: TileTensor(pointer, layout))


def flatten_leading(tensor: TileTensor) -> TileTensor:
    """Return a tensor of rank 3 with its first two modes merged, where their strides allow it.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> flatten_leading(TileTensor(bytearray(24), row_major[2, 3, 4]())).layout
    Layout((Idx(6), 4), (4, 1))
    """
    layout = tensor._native_layout
    if not isinstance(layout, NativeLayout) or layout.rank != 3 or layout.depth != 1 or tensor.element_size != 1:
        raise LayoutError(f"flatten_leading needs three plain modes of scalars, got {layout}")
    (a, b, c), (d, e, f) = layout.shape, layout.stride
    if tensor.is_ragged or (a > 1 and d != b * e):
        raise LayoutError(f"cannot merge the first two modes of {layout}: stride {d} is not {b} * {e}")
    return tensor._view(pair_layout(make_layout((RuntimeInt(a * b), c), (e, f))), tensor._offset)


class TileTensorIter:
    """Views of one layout that step through the memory of a tensor: at `offset + k * stride`, up to `bound`.

    A `circular` iterator wraps around at `bound`.

    `it[]` of Mojo is `it.get()`; `it.next(k)` looks ahead and `it += k` moves on.

    >>> from tilewright.mojo.layout.tile_layout import row_major
    >>> ring = TileTensorIter(stack_allocation["int8"](row_major[30]()), row_major[2, 3](), 20, 6, circular=True)
    >>> [ring.next(k).offset for k in range(5)]
    [0, 6, 12, 18, 4]
    """

    def __init__(
        self, tensor: Any, layout: Any, bound: int, stride: int | None = None, offset: int = 0, circular: bool = False
    ) -> None:
        self._tensor = tensor if isinstance(tensor, TileTensor) else TileTensor(tensor)
        self._layout = layout
        self.bound = bound
        self.stride = int(layout.size) if stride is None else stride
        self.offset = offset
        self.circular = circular
        if bound < 1:
            raise LayoutError(f"the bound of an iterator must be at least 1, got {bound}")

    def _offset_of(self, k: int) -> int:
        """Return where the view k steps ahead starts."""
        offset = self.offset + k * self.stride
        if self.circular:
            return offset % self.bound
        if not 0 <= offset < self.bound:
            raise CoordinateError(f"the view at {offset} is past the bound {self.bound} of the iterator")
        return offset

    def get(self) -> TileTensor:
        """Return the current view.

        >>> from tilewright.mojo.layout.tile_layout import row_major
        >>> TileTensorIter(stack_allocation["int8"](row_major[8]()), row_major[2](), 8, offset=4).get().offset
        4
        """
        return self.next(0)

    def next(self, k: int = 1) -> TileTensor:
        """Return the view `k` steps ahead.

        >>> from tilewright.mojo.layout.tile_layout import row_major
        >>> TileTensorIter(stack_allocation["int8"](row_major[8]()), row_major[2](), 8).next(3).offset
        6
        """
        view = self._tensor._view(pair_layout(self._layout), self._tensor.offset + self._offset_of(k))
        view._check_bounds()
        return view

    def __iadd__(self, k: int) -> TileTensorIter:
        offset = self.offset + k * self.stride
        self.offset = offset % self.bound if self.circular else offset
        return self

    def __iter__(self) -> Iterator[TileTensor]:
        offset = self.offset
        while self.circular or offset < self.bound:
            yield self.next((offset - self.offset) // self.stride)
            offset += self.stride
