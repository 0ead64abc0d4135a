# SPDX-License-Identifier: Apache-2.0
"""The types of tensors, `TileTensor[dtype, LayoutType, origin]`, and the types that Mojo derives from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from ..._integers import ceil_div
from ...errors import FormatError, LayoutError
from ...layout import LayoutLike, as_integer, as_tuple
from ..brackets import TypeBrackets
from ..builtins import Origin, simd_width_of
from ..memory import AddressSpace
from ..simd import SIMD, DType, SIMDType
from .coord import ComptimeInt, RuntimeInt, integer_type
from .tile_layout import TRIVIAL_MEMBERS, Layout, RowMajorLayoutType, make_dynamic_layout, row_major, static_leaves


@dataclass(frozen=True, slots=True, repr=False)
class TensorType:
    """The type of a tensor, with None for open parameters. It makes tensors, and `isinstance` checks them.

    `layout` is a class, such as `Layout` or `RowMajorLayout`, or a layout: then extents and strides that are known at
    compile time must be equal, and the others must be known only at run time.

    >>> from tilewright.mojo import DType, MutAnyOrigin
    >>> from tilewright.mojo.layout import RowMajorLayout, TileTensor, row_major
    >>> kind = TileTensor[DType.int64, RowMajorLayout, MutAnyOrigin]
    >>> isinstance(kind(list(range(6)), row_major[2, 3]()), kind)
    True
    """

    kind: Any
    dtype: DType | None = None
    layout: Any = None
    origin: Origin | None = None
    address_space: AddressSpace | None = None
    linear_idx_type: DType | None = None
    element_size: int | None = None

    @classmethod
    def of_parameters(cls, kind: Any, parameters: Any) -> TensorType:
        """Return `kind[dtype, LayoutType, origin, ...]`; later entries may be left out.

        >>> from tilewright.mojo.layout import TileTensor
        >>> TensorType.of_parameters(TileTensor, "float32").dtype
        DType.float32
        """
        values: list[Any] = list(parameters) if isinstance(parameters, tuple) else [parameters]
        if len(values) > 6:
            raise TypeError(f"{kind.__name__} has six parameters, dtype to element_size, got {len(values)}")
        dtype, layout, origin, space, index_type, size = (values + [None] * 6)[:6]
        return cls(
            kind,
            None if dtype is None else DType.of(dtype),
            layout,
            _as_origin(origin),
            None if space is None else AddressSpace(space),
            None if index_type is None else DType.of(index_type),
            size,
        )

    @classmethod
    def of_names(
        cls,
        kind: Any,
        dtype: object = None,
        LayoutType: object = None,  # noqa: N803  (Mojo's name)
        origin: object = None,
        address_space: object = None,
        linear_idx_type: object = None,
        element_size: object = None,
        *more: Any,
        **others: Any,
    ) -> TensorType:
        """Return `kind[dtype, LayoutType, origin, address_space=...]`; mutability and storage follow from the memory.

        >>> from tilewright.mojo.layout import TileTensor
        >>> TensorType.of_names(TileTensor, "float32", address_space=AddressSpace.SHARED).address_space
        <AddressSpace.SHARED: 3>
        """
        unknown = [name for name in others if name not in ("mut", "Storage", "Engine")]
        if unknown:
            raise TypeError(f"{kind.__name__} has no parameter {', '.join(unknown)}; it has {', '.join(_PARAMETERS)}")
        values = (dtype, LayoutType, origin, address_space, linear_idx_type, element_size, *more)
        result = cls.of_parameters(kind, tuple([None if value is ... else value for value in values]))
        if result.linear_idx_type is None and isinstance(result.layout, Layout):
            return replace(result, linear_idx_type=result._default_index_type())
        return result

    def _default_index_type(self) -> DType:
        is_small = self.address_space in (AddressSpace.SHARED, AddressSpace.CONSTANT)
        if is_small or (self.layout.all_dims_known and self.layout.cosize < 2**31):
            return DType.int32
        return DType.int64

    def with_parameters(self, *parameters: Any, **named: Any) -> TensorType:
        """Return the type with its open parameters filled in."""
        return TensorType.of_names(self.kind, *parameters, **named)

    @property
    def rank(self) -> int:
        """The number of modes."""
        return int(self._layout_member("rank"))

    @property
    def LayoutType(self) -> Any:  # noqa: N802  (Mojo's name)
        """The type of the layout."""
        return self.layout

    @property
    def mut(self) -> bool:
        """Whether the origin of the type lets its tensors be written."""
        if self.origin is None:
            raise AttributeError("mut")  # which __getattr__ explains
        return self.origin.mut

    @property
    def is_row_major(self) -> bool:
        """Whether the layout is flat and has the strides of row-major order."""
        return True if isinstance(self.layout, RowMajorLayoutType) else bool(self._layout_member("is_row_major"))

    def get_type_name(self) -> str:
        """Return the name of the type; of a type that leaves nothing open, with its parameters, as a tensor does."""
        name, index_type = str(self.kind.__name__), self.linear_idx_type
        if self.dtype is None or self.origin is None or self.address_space is None or index_type is None:
            return name
        return type_name(name, self.origin.mut, self.dtype, self.element_size or 1, self.address_space, index_type)

    def _layout_member(self, name: str) -> Any:
        if not isinstance(self.layout, Layout):
            raise AttributeError(name)  # which __getattr__ explains
        return getattr(self.layout, name)

    def __call__(self, *memory_and_layout: Any, **named: Any) -> Any:
        """Return a tensor of this type over memory; raise if the memory or the layout are of another one.

        The arguments are as for `TileTensor`; an address space, a type of indices and an element size that the type
        leaves open may be among them.
        """
        for name in ("address_space", "linear_idx_type", "element_size"):
            if named.get(name) is None and getattr(self, name) is not None:
                named[name] = getattr(self, name)
        storage = memory_and_layout[0] if memory_and_layout else named.get("span")
        if self.dtype is not None and isinstance(storage, (list, tuple, bytes, bytearray)):
            named["dtype"] = self.dtype  # of bytes, or of numbers of Python
        tensor = self.kind(*memory_and_layout, **named)
        if self.origin is not None and not self.origin.mut and tensor.mut:
            tensor = tensor.as_immut()
        self._check(tensor)
        return tensor

    def _check(self, tensor: Any) -> None:
        """Raise unless a tensor is of this type."""
        if self.dtype is not None and tensor.dtype != self.dtype:
            raise FormatError(
                f"{self!r} cannot be a view of {tensor.dtype}: the storage must have the type in brackets; use"
                f" DType.{tensor.dtype}, or convert the storage"
            )
        if not matches_layout(self.layout, tensor.layout):
            raise LayoutError(f"{self!r} cannot have the layout {tensor.layout!r}: it is not of the type in brackets")
        if self.origin is not None and self.origin.mut and not tensor.mut:
            raise LayoutError(f"{self!r} is mutable, but the storage is read-only; use ImmutAnyOrigin")
        if not self.__instancecheck__(tensor):
            raise LayoutError(f"{self!r} is not the type of {tensor!r} in {tensor.address_space}")

    def __instancecheck__(self, value: object) -> bool:
        return (
            isinstance(value, self.kind)
            and self.dtype in (None, value.dtype)
            and matches_layout(self.layout, value.layout)
            and (self.origin is None or self.origin.mut == value.mut)
            and self.address_space in (None, value.address_space)
            and self.linear_idx_type in (None, value.linear_idx_type)
            and self.element_size in (None, value.element_size)
        )

    def __repr__(self) -> str:
        entries = [
            *[f"DType.{self.dtype}" if self.dtype else "_", _layout_name(self.layout)],
            *(["_"] if self.origin is None else [f"Origin[{self.origin.mut}]"]),
            *([] if self.address_space is None else [f"address_space={self.address_space}"]),
            *([] if self.element_size in (None, 1) else [f"element_size={self.element_size}"]),
        ]
        return f"{self.kind.__name__}[{', '.join(entries)}]"

    # What a layout tells at compile time.

    def __getattr__(self, name: str) -> Any:
        if name in _COMPTIME_MEMBERS and isinstance(self.layout, Layout):
            return getattr(self.layout, name)
        if name == "mut":
            raise AttributeError(f"{self!r} leaves mut open; add an origin, such as MutAnyOrigin")
        if name in _COMPTIME_MEMBERS:
            raise AttributeError(f"{self!r} leaves {name} open; add a layout, such as row_major[4, 4]()")
        if name == "Storage":
            return self.kind.Storage
        raise AttributeError(f"a type of tensors has no attribute {name!r}")

    @property
    def ElementType(self) -> type[SIMD] | SIMDType:  # noqa: N802  (Mojo's name)
        """The type of an element: `SIMD[dtype, element_size]`, or `SIMD` if the dtype is open.

        >>> from tilewright.mojo.layout import TileTensor, row_major
        >>> TileTensor["int8", row_major[2, 2]()].ElementType
        SIMD[DType.int8, 1]
        """
        return SIMD if self.dtype is None else SIMDType(self.dtype, self.element_size or 1)

    # Types derived from this one.

    @property
    def device_type(self) -> TensorType:
        """The type in a kernel: the same."""
        return self

    @property
    def GenericType(self) -> TensorType:  # noqa: N802
        """The type in the address space GENERIC."""
        return replace(self, address_space=AddressSpace.GENERIC)

    @property
    def AddressSpaceCastType(self) -> TypeBrackets[TensorType]:  # noqa: N802
        """The type in another address space: `AddressSpaceCastType[AddressSpace.SHARED]`."""
        return TypeBrackets(lambda address_space: replace(self, address_space=AddressSpace(address_space)))

    @property
    def OriginCastType(self) -> TypeBrackets[TensorType]:  # noqa: N802
        """The type with another origin: `OriginCastType[MutAnyOrigin]`."""
        return TypeBrackets(lambda origin: replace(self, origin=_as_origin(origin)))

    @property
    def ViewType(self) -> TypeBrackets[TensorType]:  # noqa: N802
        """The type with another layout: `ViewType[layout]`."""
        return TypeBrackets(lambda new_layout: self._with_layout(layout=new_layout))

    @property
    def DynamicType(self) -> TypeBrackets[TensorType]:  # noqa: N802
        """The type with every extent and stride known only at run time: `DynamicType[DType.int64]`."""

        def dynamic(dyn_dtype: object) -> TensorType:
            kind, layout = integer_type(dyn_dtype, "DynamicType[...]"), self.layout
            return self._with_layout(make_dynamic_layout(layout, kind) if isinstance(layout, Layout) else layout)

        return TypeBrackets(dynamic)

    @property
    def CoalescedType(self) -> TensorType:  # noqa: N802
        """The type of the tensor as one dimension."""
        is_open = not isinstance(self.layout, Layout)
        return self._with_layout(None if is_open else Layout((self.layout.product(),), (self.element_size or 1,)))

    @property
    def ReshapedType(self) -> TypeBrackets[TensorType]:  # noqa: N802
        """The type in another shape, in row-major order: `ReshapedType[Idx[2](), Idx(6)]`."""
        return TypeBrackets(lambda *shape: self._with_layout(row_major(*map(_as_static, shape))))

    @property
    def VectorizedType(self) -> TypeBrackets[TensorType]:  # noqa: N802
        """The type of vectors: `VectorizedType[1, 4]`."""

        def vectorized(*widths: int) -> TensorType:
            vectors = None
            if isinstance(self.layout, Layout):
                if len(widths) != self.layout.rank:
                    raise LayoutError(f"vectors of shape {widths} do not fit {self!r}; give {self.layout.rank} extents")
                pairs = list(zip(as_tuple(self.layout.shape), as_tuple(self.layout.stride), widths, strict=True))
                shape = tuple([ceil_div(n, width) for n, _, width in pairs])
                vectors = Layout(shape, tuple([d * width for _, d, width in pairs]))
            size = (self.element_size or 1) * prod(widths)
            return replace(self, layout=vectors, element_size=size)  # vectors keep the type of indices

        return TypeBrackets(vectorized)

    @property
    def SIMDVectorizedType(self) -> TensorType:  # noqa: N802
        """The type of vectors as long as a register, in the last dimension."""
        if self.dtype is None or not isinstance(self.layout, Layout):
            return replace(self, layout=None, element_size=None)
        return self.VectorizedType.with_parameters(*[1] * (self.layout.rank - 1), simd_width_of[self.dtype]())

    def _with_layout(self, layout: object) -> TensorType:
        result = replace(self, layout=layout, linear_idx_type=None)
        if self.linear_idx_type is None or not isinstance(layout, Layout):
            return result
        return replace(result, linear_idx_type=result._default_index_type())  # a view derives it again


def type_name(name: str, mut: bool, dtype: object, element_size: int, space: object, index_type: object) -> str:
    """Return the name of the type of a tensor with its parameters, as Mojo writes it.

    >>> type_name("TileTensor", True, "int8", 1, "AddressSpace.SHARED", "int32")[-58:]
    ' address_space=AddressSpace.SHARED, linear_idx_type=int32]'
    """
    engine = f"Engine=DefaultEngine[element_size={element_size}]"
    return f"{name}[mut={mut}, dtype={dtype}, {engine}, address_space={space}, linear_idx_type={index_type}]"


_PARAMETERS = ("mut", "dtype", "LayoutType", "origin", "address_space", "linear_idx_type", "element_size")
for _name in TRIVIAL_MEMBERS:
    setattr(TensorType, _name, True)
_COMPTIME_MEMBERS = frozenset(
    [
        *("rank", "flat_rank", "shape_known", "stride_known", "all_dims_known"),
        *("static_shape", "static_stride", "is_row_major"),
    ]
)


class TypeMember:
    """A type that Mojo derives from the type of a tensor: exact for a tensor, as open as the class for the class."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, tensor: object, kind: type) -> Any:
        return getattr(TensorType(kind) if tensor is None else type_of(tensor), self._name)


def type_of(tensor: Any) -> TensorType:
    """Return the type of a tensor, with all its parameters.

    >>> from tilewright.mojo.layout import TileTensor, row_major
    >>> type_of(TileTensor([1, 2], row_major[2]()))
    TileTensor[DType.int64, Layout[(2):(1)], Origin[True], address_space=AddressSpace.GENERIC]
    """
    return TensorType(
        type(tensor),
        tensor.dtype,
        tensor.layout,
        Origin(tensor.mut),
        tensor.address_space,
        tensor.linear_idx_type,
        tensor.element_size,
    )


def matches_layout(pattern: Any, layout: Any) -> bool:
    """Return whether a layout is of a type: a class, or a layout with the same leaves known at compile time.

    >>> from tilewright.mojo.layout import Layout, row_major
    >>> matches_layout(row_major(4, 8), row_major(6, 2)), matches_layout(row_major[4, 8](), row_major[6, 2]())
    (True, False)
    """
    if pattern is None:
        return True
    if not isinstance(pattern, LayoutLike):
        return isinstance(layout, getattr(pattern, "_tile_layout_type", pattern))
    if not isinstance(pattern, Layout) or not isinstance(layout, Layout):
        return bool(pattern == layout)
    return bool(static_leaves(pattern) == static_leaves(layout))


def _as_static(extent: object) -> Any:
    """Return an extent in brackets: known at compile time, unless it is `Idx(n)`."""
    if isinstance(extent, type) and issubclass(extent, RuntimeInt):
        return extent(1)  # a type: any number of run time
    return extent if isinstance(extent, (RuntimeInt, tuple)) else ComptimeInt(as_integer(extent, "an extent"))


def _as_origin(origin: object) -> Origin | None:
    if origin is None or isinstance(origin, Origin):
        return origin
    raise TypeError(f"expected an origin, such as MutAnyOrigin or tensor.origin, got {origin!r}")


def _layout_name(layout: object) -> str:
    if layout is None:
        return "_"
    if isinstance(layout, Layout):
        return f"Layout[{format(layout, 'mojo')[1:-1]}]"
    return "RowMajorLayout" if isinstance(layout, RowMajorLayoutType) else getattr(layout, "__name__", str(layout))
