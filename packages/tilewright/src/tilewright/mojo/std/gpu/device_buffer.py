# SPDX-License-Identifier: Apache-2.0
"""Buffers: memory of the device, which kernels and copies access, and memory of the host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from ....copying.device_array import DeviceArray
from ....copying.host_memory import aligned_empty
from ....errors import CoordinateError, LayoutError
from ....formats import ScalarFormat, fit_values
from ....layout.validation import as_integer
from ....tensor.store import DeviceMemory, Store
from ...brackets import brackets
from ...builtins import MemoryMeta, MemoryType, format_value, memory_type
from ...memory import Pointer, Span
from ...scalar_memory import zeroed
from ...simd import DType, as_dtype, as_vector, numbers_of, scalar_format

if TYPE_CHECKING:
    from .device_context import DeviceContext

_MOST_SHOWN = 1000  # elements of a buffer that are printed; of more, the first and the last three


class DeviceBuffer(metaclass=MemoryMeta):
    """Memory of a device, made by `DeviceContext.enqueue_create_buffer`.

    >>> from tilewright.mojo.std.gpu.host import DeviceContext
    >>> len(DeviceContext().enqueue_create_buffer["float32"](16))
    16
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("type",)

    def __init__(self, context: DeviceContext, element: ScalarFormat, size: int, array: Any = None) -> None:
        self._context = context
        self._element = element = scalar_format(element)
        home = context.home
        if array is None:
            array = zeroed(size, element.dtype) if home is None else home.empty((size,), element)
            self._written: bytearray | None = bytearray(array.nbytes) if home is None else None
        else:
            self._written = None
        self.device_memory = DeviceMemory(element, array)

    @classmethod
    def _with_parameters(cls, *parameters: Any, **named: Any) -> MemoryType:
        """Return the type `DeviceBuffer[dtype]`.

        >>> DeviceBuffer.with_parameters("float32")
        DeviceBuffer[DType.float32]
        """
        return memory_type(cls, (*parameters, *named.values()))

    @classmethod
    def _of_type(cls, kind: MemoryType, _: DeviceContext, pointer: Any, size: Any, **__: Any) -> DeviceBuffer:
        """Return `DeviceBuffer[dtype](ctx, pointer, size, owning=False)`: a buffer over memory of another."""
        owner = getattr(getattr(pointer, "memory", None), "origin", None)
        if not isinstance(owner, DeviceBuffer):
            raise LayoutError("a DeviceBuffer takes a pointer to memory of a device, such as buffer.unsafe_ptr()")
        return owner.create_sub_buffer[kind.dtype or owner.dtype](pointer.offset, size)

    @property
    def dtype(self) -> DType:
        """Return the number type.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> DeviceContext().enqueue_create_buffer["float32"](16).dtype
        DType.float32
        """
        return as_dtype(self._element)

    type = dtype

    @property
    def memory(self) -> Store:
        """Return the memory, which only kernels can access.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> DeviceContext().enqueue_create_buffer["float32"](16).memory.is_on_host
        False
        """
        return Store(self.device_memory, self._element, self, False)

    def context(self) -> DeviceContext:
        """Return the context that the buffer was made by.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> ctx = DeviceContext()
        >>> ctx.enqueue_create_buffer["int8"](1).context() is ctx
        True
        """
        return self._context

    def unsafe_ptr(self) -> Pointer:
        """Return a pointer to the first scalar, which only kernels can follow.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> DeviceContext().enqueue_create_buffer["int8"](1).unsafe_ptr().offset
        0
        """
        return Pointer(self.memory, 0)

    take_ptr = device_ptr = unsafe_ptr

    def __len__(self) -> int:
        return self.device_memory.size

    def __getitem__(self, k: Any) -> Any:
        return self.unsafe_ptr()[k]

    def __setitem__(self, k: Any, value: Any) -> None:
        self.unsafe_ptr()[k] = value

    @brackets
    def create_sub_buffer(self, parameters: tuple[Any, ...], offset: Any, size: Any, **_: Any) -> DeviceBuffer:
        """Return a part, `buffer.create_sub_buffer[dtype](offset, size)`: `size` scalars from `offset` on.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> len(DeviceContext().enqueue_create_buffer["int8"](8).create_sub_buffer["int8"](2, 4))
        4
        """
        array = self._host_array("create_sub_buffer")
        element = scalar_format(parameters[0]) if parameters else self._element
        view = array if element.dtype == array.dtype else array.view(element.dtype)
        first, count = int(as_integer(offset, "an offset")), int(as_integer(size, "a size"))
        if first < 0 or count < 0 or first + count > view.size:
            raise CoordinateError(f"scalars {first} to {first + count - 1} are outside a buffer of {view.size}")
        self._written = None  # the parts are not followed
        return DeviceBuffer(self._context, element, count, view[first : first + count])

    def _host_array(self, caller: str) -> Any:
        array = self.device_memory.array
        if isinstance(array, DeviceArray):
            raise LayoutError(f"{caller} works on the SIMT machine only, not on a real device; copy the buffer instead")
        return array

    def enqueue_fill(self, value: Any) -> DeviceBuffer:
        """Set every scalar to `value`; return the buffer.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> print(DeviceContext().enqueue_create_buffer["int8"](2).enqueue_fill(7))
        DeviceBuffer([7, 7])
        """
        number = numbers_of(value, self._element)
        array = self.device_memory.array
        if isinstance(array, DeviceArray):
            filled = aligned_empty(len(self), self._element.dtype)
            filled[...] = fit_values(number, self._element)
            self._context.enqueue_copy(self, filled)
        else:
            array[...] = fit_values(number, self._element)
            self._written = None
        return self

    fill = enqueue_fill

    def enqueue_copy_to(self, target: Any) -> None:
        """Copy this buffer to `target`.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> ctx = DeviceContext()
        >>> ctx.enqueue_create_buffer["int8"](2).enqueue_copy_to(ctx.enqueue_create_host_buffer["int8"](2))
        """
        self._context.enqueue_copy(target, self)

    def enqueue_copy_from(self, source: Any) -> None:
        """Copy `source` to this buffer.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> ctx = DeviceContext()
        >>> ctx.enqueue_create_buffer["int8"](2).enqueue_copy_from(ctx.enqueue_create_host_buffer["int8"](2))
        """
        self._context.enqueue_copy(self, source)

    @contextmanager
    def map_to_host(self) -> Iterator[HostBuffer]:
        """Give the host a buffer with the contents inside a `with` block, and copy it back at its end.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> buffer = DeviceContext().enqueue_create_buffer["int8"](2).enqueue_fill(1)
        >>> with buffer.map_to_host() as numbers:
        ...     numbers[0] = 5
        >>> print(buffer)
        DeviceBuffer([5, 1])
        """
        mapped = HostBuffer(self._context, self._element, len(self))
        self._context.enqueue_copy(mapped, self)
        yield mapped
        self._context.enqueue_copy(self, mapped)

    def __str__(self) -> str:
        host = HostBuffer(self._context, self._element, len(self))
        self._context.enqueue_copy(host, self)
        return f"DeviceBuffer({_numbers_text(host)})"

    def __repr__(self) -> str:
        return f"<DeviceBuffer of {len(self)} x {self._element.name}>"


class HostBuffer(Span):
    """Memory of the host, made by `DeviceContext.enqueue_create_host_buffer`; indexed like a list.

    >>> from tilewright.mojo.std.gpu.host import DeviceContext
    >>> buffer = DeviceContext().enqueue_create_host_buffer["int32"](4)
    >>> buffer[3] = 7
    >>> int(buffer[3]), len(buffer)
    (7, 4)
    """

    __slots__ = ("_context",)
    __bracketed__: ClassVar[tuple[str, ...]] = ("type",)

    def __init__(self, context: DeviceContext, element: ScalarFormat, size: int) -> None:
        self._context = context
        super().__init__(zeroed(size, scalar_format(element).dtype))

    def context(self) -> DeviceContext:
        """Return the context that the buffer was made by.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> ctx = DeviceContext()
        >>> ctx.enqueue_create_host_buffer["int8"](1).context() is ctx
        True
        """
        return self._context

    def enqueue_fill(self, value: Any) -> HostBuffer:
        """Set every scalar to `value`; return the buffer.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> print(DeviceContext().enqueue_create_host_buffer["int8"](2).enqueue_fill(7))
        HostBuffer([7, 7])
        """
        self.array[...] = fit_values(numbers_of(value, self.memory.format), self.memory.format)
        return self

    def enqueue_copy_to(self, target: Any) -> None:
        """Copy this buffer to `target`.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> ctx = DeviceContext()
        >>> ctx.enqueue_create_host_buffer["int8"](2).enqueue_copy_to(ctx.enqueue_create_buffer["int8"](2))
        """
        self._context.enqueue_copy(target, self)

    def enqueue_copy_from(self, source: Any) -> None:
        """Copy `source` to this buffer.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> ctx = DeviceContext()
        >>> ctx.enqueue_create_host_buffer["int8"](2).enqueue_copy_from(ctx.enqueue_create_host_buffer["int8"](2))
        """
        self._context.enqueue_copy(self, source)

    def as_span(self) -> Span:
        """Return the scalars as a span.

        >>> from tilewright.mojo.std.gpu.host import DeviceContext
        >>> len(DeviceContext().enqueue_create_host_buffer["int8"](2).as_span())
        2
        """
        return Span(self)

    def __str__(self) -> str:
        return f"HostBuffer({_numbers_text(self)})"


def _numbers_text(buffer: HostBuffer) -> str:
    """Return the scalars as Mojo prints those of a buffer."""
    count = len(buffer)
    if count <= _MOST_SHOWN:
        return f"[{', '.join(map(format_value, as_vector(buffer.array)))}]" if count else "[]"
    first, last = ([format_value(buffer[k]) for k in part] for part in (range(3), range(count - 3, count)))
    return f"[{', '.join(first)}, ..., {', '.join(last)}]"
