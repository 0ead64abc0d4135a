# SPDX-License-Identifier: Apache-2.0
"""Pointers, arrays and spans over one flat store of scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import CoordinateError, FormatError, LayoutError
from ..formats import ScalarFormat
from ..layout import as_integer
from ..tensor import Storage, Store, as_array, flat_scalars, kernel_memory
from .brackets import MojoValue, ParametrizedMeta, brackets
from .builtins import MemoryType, Origin, format_value
from .scalar_memory import (
    Cells,
    allocate,
    check_memory,
    element_type,
    number_type_of,
    read_scalar,
    read_vector,
    require_numbers,
    scalar_of,
    write_scalar,
    write_vector,
)
from .simd import SIMD, DType, SIMDType, as_number


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


class MemoryWindow(metaclass=ParametrizedMeta):
    """Elements of one flat memory from an offset on: the base of pointers, arrays, lists, spans and buffers.

    >>> window = Pointer(Store.of([10, 11, 12]), 1)
    >>> window.dtype, window.mut, window.get_subscript(unsafe_offset=1)
    (DType.int64, True, Int64(12))
    """

    __slots__ = ()
    memory: Any  # a Store, or Cells
    offset: int

    @property
    def dtype(self) -> DType:
        """The number type of the elements.

        >>> Pointer(Store.of([10, 11]), 1).dtype
        DType.int64
        """
        return DType.of(require_numbers(self.memory, "dtype").format)

    @property
    def T(self) -> MojoValue:  # noqa: N802  (Mojo's name)
        """The type of the elements.

        >>> Pointer(Store.of([10, 11]), 1).T
        SIMD[DType.int64, 1]
        """
        return element_type(self.memory)

    type = ElementType = T

    @property
    def mut(self) -> bool:
        """Whether the memory can be written.

        >>> Pointer(Store.of(b"ab"), 1).mut
        False
        """
        return not self.memory.readonly

    def __getitem__(self, k: Any) -> Any:
        raise NotImplementedError

    def __setitem__(self, k: Any, value: Any) -> None:
        raise NotImplementedError

    def get_subscript(self, *position: Any, unsafe_offset: object = 0, **_: Any) -> MojoValue:
        """Return an element, the first one if none is named: `p[]`, `p[k]` or `p[unsafe_offset=k]`.

        >>> Pointer(Store.of([10, 11, 12]), 1).get_subscript()
        Int64(11)
        """
        return self[position[0] if position else unsafe_offset]

    def set_subscript(self, value: object, *position: Any, unsafe_offset: object = 0, **_: Any) -> None:
        """Write `value` to an element, the first one if none is named: `p[] = x` or `p[unsafe_offset=k] = x`.

        >>> Pointer(Store.of([10, 11, 12]), 1).set_subscript(7, unsafe_offset=1)
        """
        self[position[0] if position else unsafe_offset] = value


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Pointer(MemoryWindow):
    """An element of memory: `offset` elements after the start of its store. Every access is checked.

    >>> pointer = Pointer(Store.of([10, 11, 12]), 1)
    >>> pointer[0], pointer[1], (pointer + 1).offset
    (Int64(11), Int64(12), 2)
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("type", "origin", "address_space")

    memory: Any
    offset: int

    def __post_init__(self) -> None:
        check_memory(self.memory, self.offset)

    @classmethod
    def _with_parameters(cls, *parameters: Any, **named: Any) -> MemoryType:
        """Return `UnsafePointer[type, origin]`; mutability, origin and address space have no effect on a host.

        >>> UnsafePointer.with_parameters("float32", mut=True)
        UnsafePointer[DType.float32]
        """
        return MemoryType.of(cls, (*parameters, named.get("type"), named.get("T"))[0])

    @property
    def storage(self) -> object:
        """The object that holds the memory.

        >>> Pointer(Store.of([10, 11]), 1).storage
        [10, 11]
        """
        return self.memory.origin

    @property
    def origin(self) -> Origin:
        """The origin of the pointer.

        >>> Pointer(Store.of([10, 11]), 1).origin
        Origin(mut=True)
        """
        return Origin(self.mut, self.storage)

    @property
    def address_space(self) -> AddressSpace:
        """The address space of the memory: a label.

        >>> Pointer(Store.of([10, 11]), 1).address_space
        <AddressSpace.GENERIC: 0>
        """
        return getattr(self.memory, "address_space", AddressSpace.GENERIC)

    @property
    def address(self) -> int:
        """The byte address.

        >>> pointer = Pointer(Store.of(bytearray(16), "float32"), 0)
        >>> (pointer + 1).address - pointer.address
        4
        """
        if isinstance(self.memory, Cells):
            return id(self.memory.data) + 8 * self.offset
        return self.memory.address(self.offset)  # type: ignore[no-any-return]

    # Elements.

    def __getitem__(self, k: object) -> Any:
        return read_scalar(self.memory, self.offset + (k if k.__class__ is int else as_integer(k, "an offset")))

    def __setitem__(self, k: object, value: object) -> None:
        place = self.offset + (k if k.__class__ is int else as_integer(k, "an offset"))
        if value.__class__ is SIMD and value.size > 1:
            write_vector(self.memory, place, value)
        else:
            write_scalar(self.memory, place, value)

    @brackets
    def load(
        self, parameters: tuple[Any, ...], offset: object = 0, *, width: int | None = None, **_: Any
    ) -> MojoValue:  # alignment, volatile and the like are hints
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

        It has the attributes of the memory: `p.store.data`, `p.store.size`.

        >>> pointer = Pointer(Store.of([10, 11, 12]), 0)
        >>> pointer.store(1, SIMD(5, 6))
        >>> pointer[2], pointer.store.size
        (Int64(6), 3)
        """
        return StoreMethod(_store, self)

    unsafe_store = store

    # Arithmetic.

    def __add__(self, count: object) -> Pointer:
        """Return a pointer `count` elements further on."""
        return Pointer(self.memory, self.offset + int(as_integer(count, "a pointer step")))

    __radd__ = unsafe_offset = __add__

    def __sub__(self, other: object) -> Any:
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
    def bitcast(self, parameters: tuple[Any, ...], *, T: object = None) -> Pointer:  # noqa: N803  (Mojo's name)
        """Return a pointer to the same bytes as numbers of another type: `p.bitcast[UInt32]()`.

        >>> Pointer(Store.of(np.ones(2, np.float32)), 1).bitcast["uint8"]().offset
        4
        """
        kind = (*parameters, T)[0]
        new = kind.dtype if isinstance(kind, SIMDType) else DType.of(kind)  # vectors are loaded by their width
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
    def address_space_cast(self, parameters: tuple[Any, ...], *, address_space: object = None) -> Pointer:
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

    def write(self, value: object) -> None:
        """Write `value` to the element it points to.

        >>> Pointer(Store.of([1]), 0).write(7)
        """
        self[0] = value

    init_pointee_copy = init_pointee_move = unsafe_write = write

    def take_pointee(self) -> MojoValue:
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
        kind = self.memory.kind if self.memory.format is None else DType.of(self.memory.format)
        return f"<UnsafePointer to scalar {self.offset} of {self.memory.size} x {kind}>"

    def __str__(self) -> str:
        return hex(self.address)


class StoreMethod(brackets[None]):
    """The method `store` of a pointer, with the attributes of its memory.

    >>> StoreMethod(_store, Pointer(Store.of([1, 2]), 0)).data.tolist()
    [1, 2]
    """

    def __getattr__(self, name: str) -> Any:
        (pointer,) = self._owner
        return getattr(pointer.memory, name)


def _store(
    pointer: Pointer, parameters: tuple[Any, ...], *offset_and_value: Any, width: int | None = None, **_: Any
) -> None:
    count = parameters[0] if parameters else width
    *offset, value = offset_and_value
    place = pointer.offset + as_integer(offset[0] if offset else 0, "an offset")
    write_vector(pointer.memory, place, value, None if count is None else int(count))


UnsafePointer = Pointer
Elements = TypeVar("Elements", bound="MemoryArray")


def _count_elements(*, count: object = 1, **_: Any) -> Any:
    return count


@brackets
def alloc(parameters: tuple[Any, ...], count: object = 1, **named: Any) -> Pointer:
    """Return a pointer to new memory for `count` elements: `alloc[Float32](16)`.

    Their type is the first of the `parameters` in brackets, or `named` there, `type` or `T`.

    >>> alloc["float32"](4)[3]
    Float32(0.0)
    """
    kind = (*parameters, named.get("type"), named.get("T"))[0]
    make = getattr(count, "make", None)  # `alloc[Float32]({count = 16})`
    size = int(as_integer(count if make is None else make(_count_elements), "the number of elements"))
    if size < 0:
        raise LayoutError(f"the number of elements must not be negative, got {size}")
    return Pointer(allocate(kind, size), 0)


def _point_to(value: object) -> Pointer:
    """Return a pointer to a value."""
    if isinstance(value, (SIMD, int, float)):
        raise FormatError("a pointer to a local number is not possible here; put it into memory of alloc[T](1)")
    return Pointer(Cells([value], type(value)), 0)


class MemoryArray(MemoryWindow):
    """Elements of memory, from `offset` on: the base of arrays, lists, spans and buffers.

    >>> MemoryArray(Store.of([5, 6, 7]), 1, 2)[1]
    Int64(7)
    """

    __slots__ = ("_size", "memory", "offset")

    def __init__(self, memory: Any, offset: int, size: int) -> None:
        check_memory(memory, offset)
        self.memory, self.offset, self._size = memory, offset, size

    @classmethod
    def _over(cls: type[Elements], memory: Any, offset: int, size: int) -> Elements:
        """Return an array over memory that is there."""
        array = object.__new__(cls)
        MemoryArray.__init__(array, memory, offset, size)
        return array

    def _hold(self, kind: MemoryType, values: Iterable[Any]) -> None:
        """Hold new memory with some values, of the type in brackets, or of the first value."""
        items = list(values)
        element = kind.element if kind.element is not None else kind.dtype
        if element is None:
            element = _type_of_item(items[0]) if items else object
        memory = allocate(element, len(items))
        if memory.format is None:
            memory.data[:] = items
        else:
            dtype = DType.of(memory.format)
            memory.host[...] = np.array([as_number(dtype, item) for item in items], dtype.dtype)
        MemoryArray.__init__(self, memory, 0, len(items))

    def _copied(self: Elements) -> Elements:
        """Return an array with the same elements in new memory."""
        memory = self.memory
        part = memory.data[self.offset : self.offset + self._size]
        if memory.format is None:
            return self._over(Cells(list(part), memory.kind), 0, self._size)
        copied = allocate(DType.of(memory.format), self._size)
        copied.host[...] = part
        return self._over(copied, 0, self._size)

    @property
    def origin(self) -> Origin:
        """The origin of the memory.

        >>> MemoryArray(Store.of([5, 6]), 0, 2).origin
        Origin(mut=True)
        """
        return Origin(not self.memory.readonly, self)

    @property
    def array(self) -> npt.NDArray[Any]:
        """The numbers as a flat array of NumPy that shares the memory.

        >>> MemoryArray(Store.of([5, 6, 7]), 1, 2).array.tolist()
        [6, 7]
        """
        numbers: npt.NDArray[Any] = require_numbers(self.memory, "array").host
        return numbers[self.offset : self.offset + self._size]

    def unsafe_ptr(self) -> Pointer:
        """Return a pointer to the first element.

        >>> MemoryArray(Store.of([5, 6, 7]), 1, 2).unsafe_ptr()[0]
        Int64(6)
        """
        return Pointer(self.memory, self.offset)

    # Elements.

    def __len__(self) -> int:
        return self._size

    def _place(self, k: object) -> int:
        index = k if k.__class__ is int else int(as_integer(k, "an index"))
        if not 0 <= index < self._size:
            raise CoordinateError(f"index {index} is outside {self._size} elements")
        return self.offset + index

    def __getitem__(self, k: object) -> Any:
        if isinstance(k, slice):
            return self._part(k)
        return read_scalar(self.memory, self._place(k))

    def _part(self, part: slice) -> Any:
        begin, end, step = part.indices(self._size)
        if step != 1:
            raise LayoutError(f"a span takes consecutive elements, got the step {step}")
        return Span._over(self.memory, self.offset + begin, max(0, end - begin))

    def __setitem__(self, k: object, value: object) -> None:
        write_scalar(self.memory, self._place(k), value)

    unsafe_get = __getitem__

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(self._size))

    def __contains__(self, value: object) -> bool:
        return any(element == value for element in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (MemoryArray, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self._size > 0

    def fill(self: Elements, value: object) -> Elements:
        """Write `value` to every element; return the array.

        >>> print(MemoryArray(Store.of([5, 6]), 0, 2).fill(1))
        [1, 1]
        """
        memory = self.memory
        if memory.format is None or memory.readonly or kernel_memory.get() is not None:  # which is told of each write
            for k in range(self._size):
                self[k] = value
        elif self._size:
            memory.host[self.offset : self.offset + self._size] = scalar_of(value, memory.format)
        return self

    def __str__(self) -> str:
        return f"[{', '.join(map(format_value, self))}]"

    def __repr__(self) -> str:
        if self.memory.format is None:
            return f"<{type(self).__name__} of {self._size} objects>"
        return f"<{type(self).__name__} of {self._size} x {self.memory.format.name}>"


def _type_of_item(item: object) -> Any:
    if isinstance(item, SIMD):
        return item.dtype if item.size == 1 else SIMD
    return type(item) if isinstance(item, (int, float, bool)) else object


class InlineArray(MemoryArray):
    """`InlineArray[Float32, 16](uninitialized=True)`, `(fill=0)`, or the values themselves; else zeros.

    >>> print(InlineArray["float32", 4](fill=1.5), InlineArray["int8", 2](1, 2))
    [1.5, 1.5, 1.5, 1.5] [1, 2]
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ("T", "size")
    takes_lists: ClassVar[bool] = True

    def __init__(self, *values: Any, fill: object = None, uninitialized: bool = False) -> None:
        self._hold(MemoryType(InlineArray, None), _unpack(values))

    @classmethod
    def _with_parameters(cls, *parameters: Any, size: object = None, T: object = None) -> MemoryType:  # noqa: N803
        """Return the type `InlineArray[T, size]`.

        >>> InlineArray.with_parameters("int8", size=3)
        InlineArray[DType.int8, 3]
        """
        element, count = (*parameters, *[value for value in (T, size) if value is not None], None, None)[:2]
        is_open = count is None or count is ...
        return MemoryType.of(cls, element, None if is_open else int(as_integer(count, "the size of an array")))

    @classmethod
    def _of_type(
        cls, kind: MemoryType, *values: Any, fill: object = None, uninitialized: bool = False, **_: Any
    ) -> InlineArray:
        values = _unpack(values)
        if kind.size is not None and len(values) not in (0, kind.size):
            raise CoordinateError(f"expected {kind.size} values for an array of {kind.size} scalars, got {len(values)}")
        if values:
            array = object.__new__(cls)
            array._hold(kind, values)
        else:
            array = cls._over(allocate(kind.dtype or kind.element, kind.size or 0), 0, kind.size or 0)
        if fill is not None:
            array.fill(fill if kind.dtype is None else as_number(kind.dtype, fill))
        return array

    @property
    def size(self) -> int:
        """The number of elements.

        >>> InlineArray["int8", 3](fill=0).size
        3
        """
        return self._size

    length = size

    __copy__ = copy = MemoryArray._copied


Array = InlineArray


def _unpack(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return values that were passed one by one, or as one list."""
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple, MemoryArray)) else values


class Span(MemoryArray):
    """A view of the elements of `storage`, an array, a list, a buffer or another span; or of `length` ones at `ptr`.

    >>> span = Span([0, 1, 2, 3])
    >>> len(span), span[3], span[1:3][0]
    (4, 3, 1)
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ("T", "origin")
    takes_lists: ClassVar[bool] = True

    def __init__(self, storage: Any = None, *, ptr: Pointer | None = None, length: Any = None, **_: Any) -> None:
        if isinstance(storage, Pointer) or ptr is not None:
            source = storage if isinstance(storage, Pointer) else ptr
            assert source is not None
            super().__init__(source.memory, source.offset, int(as_integer(length, "the length of a span")))
            if not 0 <= self.offset <= self.offset + self._size <= self.memory.size:
                raise CoordinateError(f"a span of {self._size} elements exceeds {self.memory.size} of its memory")
        elif isinstance(storage, MemoryArray):
            super().__init__(storage.memory, storage.offset, len(storage))
        elif isinstance(storage, (list, tuple)):
            self._hold(MemoryType(Span, None), storage)
        else:
            super().__init__(*_share(storage))

    @classmethod
    def _with_parameters(cls, *parameters: Any, T: object = None, **_: Any) -> MemoryType:  # noqa: N803
        """Return the type `Span[T, origin]`.

        >>> Span.with_parameters("int8", origin=None)
        Span[DType.int8]
        """
        return MemoryType.of(cls, (*parameters, T)[0])

    def copy_from(self, other: Any) -> None:
        """Copy the elements of an `other` span of the same length.

        >>> span = Span([0, 0])
        >>> span.copy_from(Span([0, 1]))
        >>> print(span)
        [0, 1]
        """
        if len(other) != len(self):
            raise LayoutError(f"cannot copy {len(other)} elements to {len(self)}")
        for k, value in enumerate(list(other)):
            self[k] = value

    def as_immutable(self) -> Span:
        """Return the same span, read-only.

        >>> Span([1, 2]).as_immutable().origin
        Origin(mut=False)
        """
        memory = require_numbers(self.memory, "as_immutable").with_fields(readonly=True)
        return Span._over(memory, self.offset, self._size)

    get_immutable = as_imm = as_immutable


def _share(storage: Storage) -> tuple[Store, int, int]:
    """Return (store, start, size) of an object that exports its memory."""
    store = Store.of(flat_scalars(as_array(storage)))
    return store.with_fields(origin=storage), 0, store.size


Made = TypeVar("Made")


def allocate_on_stack(element: Any, count: int, space: AddressSpace = AddressSpace.GENERIC) -> Any:
    """Return memory for `count` elements of a type: inside a kernel, memory of a block (SHARED) or of a thread.

    Inside a kernel scalars have no values until they are written; on the host they are zeros.

    >>> allocate_on_stack("float32", 4).size
    4
    """
    if count < 0:
        raise LayoutError(f"the number of elements must not be negative, got {count}")
    stack, dtype = kernel_memory.get(), number_type_of(element)
    if dtype is None:
        return allocate(element, count)
    if stack is not None:
        store = stack.allocate_stack("shared" if space is AddressSpace.SHARED else "local", count, dtype)
    else:
        store = allocate(element, count)
    return label_store(store, space)


def tensor_on_stack(
    element: ScalarFormat, count: int, space: AddressSpace, layout: object, make: Callable[[Pointer], Made]
) -> Made:
    """Return `make(pointer)`, a tensor over new memory of `count` scalars; in shared memory one for a block.

    `layout` is what the tensors that different calls make of the same memory differ in.

    >>> from tilewright.formats import format_of
    >>> from tilewright.mojo.layout import TileTensor, row_major
    >>> tile = row_major[2, 2]()
    >>> tensor_on_stack(format_of("int8"), 4, AddressSpace.LOCAL, tile, lambda p: TileTensor(p, tile)).shape
    (2, 2)
    """
    store, stack = allocate_on_stack(element, count, space), kernel_memory.get()
    if space is not AddressSpace.SHARED or stack is None:
        return make(Pointer(store, 0))
    tensor: Made = stack.share_tensor(store, layout, lambda: make(Pointer(store, 0)))
    return tensor
