# SPDX-License-Identifier: Apache-2.0
"""Mojo's pointers: `UnsafePointer`, `alloc` and the address spaces. Unlike Mojo's, every access is checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from ..errors import FormatError, LayoutError
from ..layout import as_integer
from ..tensor import Store
from .brackets import Bracketed, brackets
from .builtins import Origin
from .dtype import DType, as_dtype
from .memory_type import MemoryMeta, MemoryType, memory_type
from .scalar_memory import (
    Cells,
    check_memory,
    element_type,
    new_memory,
    number_type_of,
    read_scalar,
    read_vector,
    require_numbers,
    write_scalar,
    write_vector,
    zeroed,
)
from .simd import SIMD, SIMDType, scalar_format

__all__ = ["AddressSpace", "Pointer", "UnsafePointer", "alloc"]


class AddressSpace(Enum):
    """The kind of memory that a pointer or tensor is in. On a host it is only a label.

    >>> print(AddressSpace.SHARED)
    AddressSpace.SHARED
    """

    GENERIC = 0
    GLOBAL = 1
    SHARED = 3
    CONSTANT = 4
    LOCAL = 5

    @classmethod
    def _missing_(cls, value: object) -> Any:
        raise LayoutError(f"expected an address space, such as AddressSpace.SHARED, got {value!r}")


@dataclass(frozen=True, slots=True, eq=False)
class LabelledStore(Store):
    """A store with the address space of its memory, and whether its pointers may come from anywhere.

    >>> LabelledStore.of([1, 2]).address_space
    <AddressSpace.GENERIC: 0>
    """

    address_space: AddressSpace = AddressSpace.GENERIC
    any_origin: bool = False


def label_store(store: Store, space: AddressSpace, any_origin: bool = False) -> LabelledStore:
    """Return a store of the same memory with an address space; `any_origin` forgets where its pointers come from.

    >>> label_store(Store.of([1, 2]), AddressSpace.SHARED).address_space
    <AddressSpace.SHARED: 3>
    """
    is_any = any_origin or (isinstance(store, LabelledStore) and store.any_origin)
    return LabelledStore(store.data, store.format, store.origin, store.readonly, AddressSpace(space), is_any)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Pointer(metaclass=MemoryMeta):
    """An element of memory: `offset` elements after the start of its store. Every access is checked.

    >>> pointer = Pointer(Store.of([10, 11, 12]), 1)
    >>> pointer[0], pointer[1], (pointer + 1).offset
    (Int64(11), Int64(12), 2)
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("type", "origin", "address_space")

    memory: Any  # a Store, or Cells
    offset: int

    def __post_init__(self) -> None:
        check_memory(self.memory, self.offset)

    @classmethod
    def _with_parameters(cls, *parameters: Any, **named: Any) -> MemoryType:
        """Return `UnsafePointer[type, origin]`; mutability, origin and address space have no effect on a host.

        >>> UnsafePointer.with_parameters("float32", mut=True)
        UnsafePointer[DType.float32]
        """
        return memory_type(cls, (*parameters, *[named[name] for name in ("type", "T") if name in named]))

    # What it points to.

    @property
    def dtype(self) -> DType:
        """Return the number type of the scalars.

        >>> Pointer(Store.of([10, 11]), 1).dtype
        DType.int64
        """
        return as_dtype(require_numbers(self.memory, "dtype").format)

    @property
    def type(self) -> Any:
        """Return the type of the elements.

        >>> Pointer(Store.of([10, 11]), 1).type
        SIMD[DType.int64, 1]
        """
        return element_type(self.memory)

    T = type  # noqa: A003  (Mojo's names)

    @property
    def storage(self) -> Any:
        """Return the object that holds the memory.

        >>> Pointer(Store.of([10, 11]), 1).storage
        [10, 11]
        """
        return self.memory.origin

    @property
    def mut(self) -> bool:
        """Return whether the memory can be written.

        >>> Pointer(Store.of(b"ab"), 1).mut
        False
        """
        return not self.memory.readonly

    @property
    def origin(self) -> Origin:
        """Return where the pointer comes from.

        >>> Pointer(Store.of([10, 11]), 1).origin
        Origin(mut=True)
        """
        return Origin(self.mut, self.storage)

    @property
    def address_space(self) -> AddressSpace:
        """Return the address space of the memory: a label.

        >>> Pointer(Store.of([10, 11]), 1).address_space
        <AddressSpace.GENERIC: 0>
        """
        return getattr(self.memory, "address_space", AddressSpace.GENERIC)

    @property
    def address(self) -> int:
        """Return the byte address.

        >>> pointer = Pointer(Store.of(bytearray(16), "float32"), 0)
        >>> (pointer + 1).address - pointer.address
        4
        """
        if isinstance(self.memory, Cells):
            return id(self.memory.data) + 8 * self.offset
        return self.memory.address(self.offset)  # type: ignore[no-any-return]

    # Elements.

    def __getitem__(self, k: Any) -> Any:
        return read_scalar(self.memory, self.offset + (k if k.__class__ is int else as_integer(k, "an offset")))

    def __setitem__(self, k: Any, value: Any) -> None:
        place = self.offset + (k if k.__class__ is int else as_integer(k, "an offset"))
        if value.__class__ is SIMD and value.size > 1:
            write_vector(self.memory, place, value)
        else:
            write_scalar(self.memory, place, value)

    def get_subscript(self, *position: Any, unsafe_offset: Any = 0) -> Any:
        """Return the element it points to, `p[]`, or one further on, by its `position` or `p[unsafe_offset=i]`.

        >>> Pointer(Store.of([10, 11, 12]), 1).get_subscript()
        Int64(11)
        """
        return self[position[0] if position else unsafe_offset]

    def set_subscript(self, value: Any, *position: Any, unsafe_offset: Any = 0) -> None:
        """Write `value` to the element it points to, `p[] = x`, or to one further on, by its `position`.

        >>> Pointer(Store.of([10, 11, 12]), 1).set_subscript(7, unsafe_offset=1)
        """
        self[position[0] if position else unsafe_offset] = value

    @brackets
    def load(
        self, parameters: tuple[Any, ...], offset: Any = 0, *, width: int | None = None, **_: Any
    ) -> Any:  # alignment, volatile and the like are hints
        """Return the scalar `offset` further on, or as many as the width in brackets: `p.load[width=4](i)`.

        >>> Pointer(Store.of([10, 11, 12]), 0).load[2](1)
        SIMD[DType.int64, 2](11, 12)
        """
        count = parameters[0] if parameters else width
        place = self.offset + as_integer(offset, "an offset")
        if count is None:
            return read_scalar(self.memory, place)
        return read_vector(require_numbers(self.memory, "load"), place, int(as_integer(count, "a width")))

    unsafe_load = load

    @property
    def store(self) -> StoreMethod:
        """Write a scalar or a vector: `p.store(x)`, or further on `p.store[width=4](i, x)`.

        Its attributes are those of the memory: `p.store.data`, `p.store.size`.

        >>> pointer = Pointer(Store.of([10, 11, 12]), 0)
        >>> pointer.store(1, SIMD(5, 6))
        >>> pointer[2], pointer.store.size
        (Int64(6), 3)
        """
        return StoreMethod(_store, self)

    unsafe_store = store

    # Arithmetic.

    def __add__(self, count: Any) -> Pointer:
        """Return a pointer `count` elements further on."""
        return Pointer(self.memory, self.offset + int(as_integer(count, "a pointer step")))

    __radd__ = unsafe_offset = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Pointer):
            self._require_same_memory(other)
            return self.offset - other.offset
        return self + -as_integer(other, "a pointer step")

    def _require_same_memory(self, other: Pointer) -> None:
        if other.memory.data is not self.memory.data:
            raise LayoutError("cannot compare or subtract pointers into different storage")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pointer) and self.memory.data is other.memory.data and self.offset == other.offset

    def __hash__(self) -> int:
        return hash((id(self.memory.data), self.offset))

    def __lt__(self, other: Pointer) -> bool:
        self._require_same_memory(other)
        return self.offset < other.offset

    def __bool__(self) -> bool:
        return bool(self.memory.size)

    def __int__(self) -> int:
        return self.address

    # Other views of the same memory.

    @brackets
    def bitcast(self, parameters: tuple[Any, ...], *, T: Any = None) -> Pointer:  # noqa: N803  (Mojo's name)
        """Return a pointer to the same bytes as numbers of another type: `p.bitcast[UInt32]()`.

        >>> Pointer(Store.of(np.ones(2, np.float32)), 1).bitcast["uint8"]().offset
        4
        """
        kind = (*parameters, T)[0]
        new = kind.dtype if isinstance(kind, SIMDType) else scalar_format(kind)  # vectors are loaded by their width
        store = require_numbers(self.memory, "bitcast")
        old = store.format.itemsize
        if self.offset * old % new.itemsize or store.data.nbytes % new.itemsize:
            raise LayoutError(
                f"cannot read scalar {self.offset} of {store.size} x {store.format.name} as {new}: its bytes are not"
                f" a multiple of {new.itemsize}"
            )
        return Pointer(
            store.with_fields(data=store.host.view(new.dtype), format=new), self.offset * old // new.itemsize
        )

    @brackets
    def address_space_cast(self, parameters: tuple[Any, ...], *, address_space: Any = None) -> Pointer:
        """Return the same pointer labelled with another address space.

        >>> Pointer(Store.of([1]), 0).address_space_cast[AddressSpace.SHARED]().address_space
        <AddressSpace.SHARED: 3>
        """
        space = AddressSpace((*parameters, address_space)[0])
        return Pointer(label_store(require_numbers(self.memory, "address_space_cast"), space), self.offset)

    @brackets
    def as_any_origin(self, parameters: tuple[Any, ...], **_: Any) -> Pointer:
        """Return the same pointer: origins are labels, and memory lives as long as someone points to it.

        >>> Pointer(Store.of([1]), 0).as_any_origin().offset
        0
        """
        return self

    as_unsafe_any_origin = unsafe_origin_cast = unsafe_mut_cast = origin_cast = mut_cast = as_any_origin
    as_unsafe_pointer = unsafe_leak = unsafe_value = value = as_any_origin

    def as_immutable(self) -> Pointer:
        """Return a pointer through which the memory cannot be written.

        >>> Pointer(Store.of([1]), 0).as_immutable().mut
        False
        """
        return Pointer(require_numbers(self.memory, "as_immutable").with_fields(readonly=True), self.offset)

    as_immut = as_imm = get_immutable = as_immutable

    # Life of objects.

    def free(self) -> None:
        """Do nothing: memory is freed when nobody points to it.

        >>> Pointer(Store.of([1]), 0).free()
        """

    unsafe_free = free

    def write(self, value: Any) -> None:
        """Write `value` to the element it points to.

        >>> Pointer(Store.of([1]), 0).write(7)
        """
        self[0] = value

    init_pointee_copy = init_pointee_move = unsafe_write = write

    def take_pointee(self) -> Any:
        """Return the element it points to.

        >>> Pointer(Store.of([1]), 0).take_pointee()
        Int64(1)
        """
        return self[0]

    def destroy_pointee(self) -> None:
        """Do nothing: objects go away by themselves.

        >>> Pointer(Store.of([1]), 0).destroy_pointee()
        """

    unsafe_deinit_pointee = destroy_pointee

    def __repr__(self) -> str:
        kind = self.memory.kind if self.memory.format is None else as_dtype(self.memory.format)
        return f"<UnsafePointer to scalar {self.offset} of {self.memory.size} x {kind}>"

    def __str__(self) -> str:
        return hex(self.address)


class StoreMethod(Bracketed[None]):
    """The method `store` of a pointer, with the attributes of its memory.

    >>> StoreMethod(_store, Pointer(Store.of([1, 2]), 0)).data.tolist()
    [1, 2]
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner.memory, name)


def _store(
    pointer: Pointer, parameters: tuple[Any, ...], *offset_and_value: Any, width: int | None = None, **_: Any
) -> None:
    count = parameters[0] if parameters else width
    *offset, value = offset_and_value
    place = pointer.offset + as_integer(offset[0] if offset else 0, "an offset")
    write_vector(pointer.memory, place, value, None if count is None else int(count))


UnsafePointer = Pointer


def _count_elements(*, count: Any = 1, **_: Any) -> Any:
    return count


def _alloc(_: Any, parameters: tuple[Any, ...], count: Any = 1, **named: Any) -> Pointer:
    kind = (*parameters, named.get("type"), named.get("T"))[0]
    make = getattr(count, "make", None)  # `alloc[Float32]({count = 16})`
    size = int(as_integer(count if make is None else make(_count_elements), "the number of elements"))
    if size < 0:
        raise LayoutError(f"the number of elements must not be negative, got {size}")
    return Pointer(allocate(kind, size), 0)


def allocate(kind: Any, count: int, space: AddressSpace = AddressSpace.GENERIC) -> Any:
    """Return new memory for `count` elements of a type, aligned to a cache line; its contents are zeros.

    >>> allocate("float32", 4).size
    4
    """
    dtype = number_type_of(kind)
    if dtype is None:
        return new_memory(kind, count)
    store = new_memory(dtype, count, zeroed(count, dtype.dtype))
    return store if space is AddressSpace.GENERIC else label_store(store, space)


class _Alloc(Bracketed[Pointer]):
    """`alloc[Float32](16)`: a pointer to new memory.

    >>> alloc["float32"](4)[3]
    Float32(0.0)
    """


alloc = _Alloc(_alloc)


def _point_to(value: Any) -> Pointer:
    """Return a pointer to a value."""
    if isinstance(value, (SIMD, int, float)):
        raise FormatError("a pointer to a local number is not possible here; put it into memory of alloc[T](1)")
    return Pointer(Cells([value], type(value)), 0)
