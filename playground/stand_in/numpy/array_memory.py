# SPDX-License-Identifier: Apache-2.0
"""`ArrayMemory`: elements of one type in memory, with a shape and strides; views share the memory.

Memory is a view of bytes, or for Python objects a list with one entry for every 8 "bytes".
"""

from __future__ import annotations

import ctypes
from array import array as packed_array
from collections.abc import Sequence
from math import prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from .array_strides import check_size, list_positions, row_major_strides, split_strides
from .nested_values import flatten_values
from .number_types import OBJECT, as_shape, dtype

if TYPE_CHECKING:
    from typing import Self


_READ_ONLY: WeakValueDictionary[int, memoryview] = WeakValueDictionary()
"""Read-only memories by the address that they have for the library: ctypes does not tell their real one."""


def find_memory(buffer: Any) -> memoryview:
    """Return the memory of a buffer; the address of a ctypes array may be the one given to read-only memory."""
    if isinstance(buffer, ctypes.Array):
        address, nbytes = ctypes.addressof(buffer), ctypes.sizeof(buffer)
        for start, memory in list(_READ_ONLY.items()):
            if start <= address and address + nbytes <= start + memory.nbytes:
                return memory[address - start : address - start + nbytes]
    return memoryview(buffer)


class Flags:
    """Whether an array is contiguous, and may be written to."""

    __slots__ = ("_owner",)

    def __init__(self, owner: ArrayMemory) -> None:
        self._owner = owner

    @property
    def c_contiguous(self) -> bool:
        """Return whether elements follow each other, the last dimension fastest."""
        return self._owner.is_contiguous

    @property
    def f_contiguous(self) -> bool:
        """Return whether elements follow each other, the first dimension fastest."""
        return self._owner.transpose().is_contiguous

    contiguous = c_contiguous

    @property
    def writeable(self) -> bool:
        """Return whether elements may be changed."""
        return self._owner.writeable

    @writeable.setter
    def writeable(self, value: bool) -> None:
        self._owner.writeable = value

    def __getitem__(self, name: str) -> bool:
        return bool(getattr(self, name.lower()))


class ArrayMemory:
    """An array without operators: `memory` from byte `start` on, with a shape, strides in bytes and a dtype."""

    __slots__ = ("__weakref__", "_cells", "base", "dtype", "memory", "shape", "start", "strides", "writeable")

    def __init__(
        self, shape: Any, dtype_: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None, **named: Any
    ) -> None:
        self.dtype = dtype(named.get("dtype", dtype_))
        self.shape = as_shape(shape)
        self.strides = row_major_strides(self.shape, self.dtype.itemsize) if strides is None else tuple(strides)
        self.start = offset
        self.base = buffer
        self._cells: Any = None
        self.writeable = True
        if buffer is None:
            nbytes = prod(self.shape) * self.dtype.itemsize
            self.memory: Any = [None] * (nbytes // 8) if self.dtype is OBJECT else memoryview(bytearray(nbytes))
        elif isinstance(buffer, ArrayMemory):
            self.memory, self.writeable = buffer.memory, buffer.writeable
            self.start += buffer.start
        else:
            view = memoryview(buffer)
            self.memory = view.cast("B") if view.nbytes else memoryview(b"")
            self.writeable = not view.readonly

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def as_view(self, shape: Sequence[int], strides: Sequence[int], start: int, kind: dtype | None = None) -> Self:
        """Return a view of the same memory."""
        view = self.__new__(self.__class__)
        view.memory, view.start, view.writeable = self.memory, start, self.writeable
        view.shape, view.strides, view.dtype = tuple(shape), tuple(strides), kind or self.dtype
        view._cells = None
        view.base = self if self.base is None else self.base
        return view

    # What it is.

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements."""
        return self.size * int(self.dtype.itemsize)

    @property
    def flags(self) -> Flags:
        """Return whether it is contiguous, and may be written to."""
        return Flags(self)

    def setflags(self, write: bool) -> None:
        """Allow or forbid to change elements."""
        self.writeable = write

    @property
    def is_contiguous(self) -> bool:
        """Return whether elements follow each other, the last dimension fastest."""
        expected: int = self.dtype.itemsize
        for extent, step in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent == 0:
                return True
            if extent != 1:
                if step != expected:
                    return False
                expected *= extent
        return True

    @property
    def address(self) -> int:
        """Return the address of the first element."""
        if self.dtype is OBJECT or not len(self.memory):
            return id(self.memory)
        if self.memory.readonly:
            _READ_ONLY[id(self.memory)] = self.memory
            return id(self.memory) + self.start
        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory)) + self.start

    @property
    def ctypes(self) -> SimpleNamespace:
        """Return the address of the first element, as `.data`."""
        return SimpleNamespace(data=self.address, data_as=lambda kind: ctypes.cast(self.address, kind))

    @property
    def data(self) -> memoryview:
        """Return the memory of contiguous elements."""
        return self.bytes_view()

    def bytes_view(self) -> memoryview:
        """Return the bytes of contiguous elements, shared."""
        if not self.is_contiguous:
            raise BufferError("the elements of this array are not contiguous; copy it first")
        return self.memory[self.start : self.start + self.nbytes]  # type: ignore[no-any-return]

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __buffer__(self, flags: int) -> memoryview:
        view = self.bytes_view()
        return view if self.writeable else view.toreadonly()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "data": (self.address, not self.writeable),
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "version": 3,
        }

    # Elements.

    def place_unit(self) -> int:
        """Return the bytes that places are counted in: those of an element, or 0 if elements are not cells of memory.

        They are not if a stride is not a multiple of their size, or if memory does not hold them as Python would.
        """
        kind, size = self.dtype, self.dtype.itemsize
        if not kind.isnative or (kind.kind == "V" and kind.code is None):
            return 0
        if any(step % size for extent, step in zip(self.shape, self.strides, strict=True) if extent > 1):
            return 0
        return size

    def cells(self) -> Any:
        """Return the memory as a sequence of elements, or of their codes, whose places are multiples of the unit."""
        if self.dtype is OBJECT:
            return self.memory
        size, skipped = self.dtype.itemsize, self.start % self.dtype.itemsize
        usable = (len(self.memory) - skipped) // size * size
        return self.memory[skipped : skipped + usable].cast(self.dtype.packing)

    def read_places(self, places: list[int], unit: int) -> list[Any]:
        """Return the elements at places in units of bytes, as Python's numbers."""
        kind, size = self.dtype, self.dtype.itemsize
        if not places:
            return []
        if not unit:
            return kind.unpack(b"".join([self.memory[at : at + size] for at in places]))
        found = list(map(self.cells().__getitem__, places))
        return found if kind.code is None else kind.code.decode_all(found)

    def write_places(self, places: list[int], unit: int, values: list[Any]) -> None:
        """Set the elements at places in units of bytes."""
        if not self.writeable:
            raise ValueError("assignment destination is read-only")
        kind, size = self.dtype, self.dtype.itemsize
        if not places:
            return
        if kind is OBJECT:
            cells, codes = self.memory, values
        elif unit:
            cells, codes = self.cells(), memoryview(kind.pack(values)).cast(kind.packing).tolist()
        else:
            raw = kind.pack(values)
            for k, at in enumerate(places):
                self.memory[at : at + size] = raw[k * size : (k + 1) * size]
            return
        for at, code in zip(places, codes, strict=True):
            cells[at] = code

    def places(self, unit: int) -> list[int]:
        """Return the places of all elements in units of bytes, in row-major order."""
        if unit <= 1:
            return list_positions(self.shape, self.strides, self.start)
        return list_positions(self.shape, [step // unit for step in self.strides], self.start // unit)

    def values(self) -> list[Any]:
        """Return all elements as Python's numbers, in row-major order."""
        check_size(self.size)
        if self.dtype is not OBJECT and self.is_contiguous:
            return self.dtype.unpack(self.memory[self.start : self.start + self.nbytes])
        unit = self.place_unit()
        return self.read_places(self.places(unit), unit)

    def write_values(self, values: list[Any]) -> None:
        """Set all elements, in row-major order."""
        if self.writeable and self.dtype is not OBJECT and self.is_contiguous:
            raw = self.dtype.pack(values)
            self.memory[self.start : self.start + len(raw)] = raw
            return
        unit = self.place_unit()
        self.write_places(self.places(unit), unit, values)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python's numbers."""
        flat: Any = self.values()
        if not self.shape:
            return flat[0]
        for k in range(len(self.shape) - 1, 0, -1):
            extent = self.shape[k]
            flat = [flat[at * extent : (at + 1) * extent] for at in range(prod(self.shape[:k]))]
        return flat

    def tobytes(self, order: str = "C") -> bytes:
        """Return the bytes of the elements in row-major order."""
        if self.is_contiguous:
            return bytes(self.memory[self.start : self.start + self.nbytes])
        return self.dtype.pack(self.values())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @property
    def flat(self) -> Any:
        """Return the elements one after the other."""
        return self.reshape(-1)

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError("the truth value of an array with more than one element is ambiguous; use any() or all()")
        return bool(self.values()[0]) if self.size else False

    def __repr__(self) -> str:
        kind = "" if self.dtype.name in ("int64", "float64", "bool") else f", dtype={self.dtype}"
        return f"array({self.tolist()}{kind})"

    def __str__(self) -> str:
        return str(self.tolist()).replace(",", "")

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def __reduce__(self) -> Any:
        return self.__class__.from_values, (self.values(), self.dtype, self.shape)

    # Other arrays with the same elements.

    def copy(self, order: str = "C") -> Self:
        """Return a copy with memory of its own."""
        if self.dtype is OBJECT:
            return self.from_values(self.values(), OBJECT, self.shape)
        return self.from_bytes(bytearray(self.tobytes()), self.dtype, self.shape)

    def astype(self, kind: Any, order: str = "K", copy: bool = True, **options: Any) -> Self:
        """Return the elements in another type."""
        target = dtype(kind)
        if target == self.dtype:
            return self.copy() if copy else self
        return self.from_values(self.values(), target, self.shape)

    def view(self, kind: Any = None) -> Self:
        """Return the same bytes as elements of another type."""
        if kind is None or kind is ArrayMemory:
            return self.as_view(self.shape, self.strides, self.start)
        target = dtype(kind)
        old, new = self.dtype.itemsize, target.itemsize
        if old == new:
            return self.as_view(self.shape, self.strides, self.start, target)
        if not self.shape or (self.shape[-1] != 1 and self.strides[-1] != old) or self.shape[-1] * old % new:
            raise ValueError("the last axis must be contiguous, and a multiple of the new size, to change the dtype")
        shape = (*self.shape[:-1], self.shape[-1] * old // new)
        return self.as_view(shape, (*self.strides[:-1], new), self.start, target)

    def reshape(self, *shape: Any, order: str = "C") -> Self:
        """Return the elements in another shape, as a view if the strides allow it."""
        wanted = as_shape(shape[0] if len(shape) == 1 else shape)
        if -1 in wanted:
            known = prod([extent for extent in wanted if extent != -1])
            missing = self.size // known if known else 0
            wanted = tuple([missing if extent == -1 else extent for extent in wanted])
        if prod(wanted) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {wanted}")
        if order == "F":
            return self.transpose().reshape(tuple(reversed(wanted))).transpose()
        if wanted == self.shape:
            return self.as_view(self.shape, self.strides, self.start)
        strides = split_strides(self.shape, self.strides, wanted, self.itemsize)
        source = self if strides is not None else self.copy()
        return source.as_view(wanted, strides or row_major_strides(wanted, self.itemsize), source.start)

    def ravel(self, order: str = "C") -> Self:
        """Return the elements in one dimension."""
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> Self:
        """Return a copy of the elements in one dimension."""
        return self.copy().reshape(-1) if order == "C" else self.transpose().copy().reshape(-1)

    def transpose(self, *axes: Any) -> Self:
        """Return a view with the dimensions in another order; reversed if none is given."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = range(self.ndim)[::-1] if not axes or order is None else [axis % self.ndim for axis in order]
        return self.as_view([self.shape[k] for k in order], [self.strides[k] for k in order], self.start)

    @property
    def T(self) -> Self:  # noqa: N802  (NumPy's name)
        """Return a view with the dimensions reversed."""
        return self.transpose()

    def swapaxes(self, a: int, b: int) -> Self:
        """Return a view with two dimensions exchanged."""
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.transpose(order)

    def byteswap(self) -> Self:
        """Return the elements with their bytes reversed."""
        return self.from_bytes(bytearray(self.tobytes()), self.dtype.newbyteorder("S"), self.shape).astype(self.dtype)

    # New arrays of the class.

    @classmethod
    def from_bytes(cls, memory: Any, kind: dtype, shape: Sequence[int]) -> Self:
        """Return an array over bytes that nobody else has."""
        result = cls.__new__(cls)
        result.memory, result.start, result.writeable = memoryview(memory), 0, True
        result.shape, result.dtype = tuple(shape), kind
        result.strides = row_major_strides(shape, kind.itemsize)
        result.base = result._cells = None
        return result

    @classmethod
    def from_values(cls, values: list[Any], kind: dtype, shape: Sequence[int]) -> Self:
        """Return an array of values in row-major order."""
        if kind is OBJECT:
            result = cls(shape, OBJECT)
            result.memory[:] = values
            return result
        return cls.from_bytes(bytearray(kind.pack(values)), kind, shape)

    @classmethod
    def of(cls, value: Any, kind: Any = None) -> Self:
        """Return a value as an array: an array or a buffer shares its memory, numbers in lists are copied."""
        wanted = None if kind is None else dtype(kind)
        if isinstance(value, cls):
            return value if wanted is None or wanted == value.dtype else value.astype(wanted)
        if isinstance(value, memoryview | packed_array):
            view = memoryview(value)
            shared = cls(view.shape, dtype(view.format.lstrip("@<=")), view)
            return shared if wanted is None else cls.of(shared, wanted)
        interface = getattr(value, "__array_interface__", None)
        if interface is not None:
            shared = cls.from_interface(interface)
            shared.base = value
            return cls.of(shared, wanted)
        if hasattr(value, "__array__"):
            return cls.of(value.__array__(), wanted)
        values, found, shape = flatten_values(value)
        return cls.from_values(values, wanted or found, shape)

    @classmethod
    def from_interface(cls, interface: dict[str, Any]) -> Self:
        """Return an array over the memory that an object exports by `__array_interface__`."""
        address, is_readonly = interface["data"]
        shape, kind = interface["shape"], dtype(interface["typestr"])
        strides = interface.get("strides") or row_major_strides(shape, kind.itemsize)
        reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
        low = sum([step for step in reach if step < 0])
        nbytes = sum([step for step in reach if step > 0]) - low + kind.itemsize if 0 not in shape else 0
        memory = (ctypes.c_uint8 * nbytes).from_address(address + low) if nbytes else bytearray()
        result = cls(shape, kind, memory, -low, strides)
        result.writeable = not is_readonly
        return result

    def scalar_or_self(self) -> Any:
        """Return the array, or if it has no dimensions its only element."""
        return self if self.shape else self.dtype.wrap(self.values()[0])
