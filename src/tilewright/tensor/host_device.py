# SPDX-License-Identifier: Apache-2.0
"""Host and device buffers: memory that a host program allocates for itself and for a device.

A device keeps its memory out of the host's reach: only enqueued copies move data. It is a real one, through OpenCL or
CUDA, or by default memory of the host that keeps the same rules, so that the same program runs anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..copying import copy as copy_elements
from ..copying.device_array import DeviceArray
from ..copying.engine import DEVICE_ENGINES, load_engine
from ..copying.host_memory import aligned_empty
from ..errors import CoordinateError, LayoutError, TransferError
from ..formats import ScalarFormat, format_of
from ..layout.brackets import brackets
from ..layout.integers import as_integer


@dataclass(frozen=True, slots=True, eq=False)
class DeviceMemory:
    """Scalars that only a device can reach.

    >>> import numpy as np
    >>> DeviceMemory(format_of("float32"), np.zeros(4, dtype=np.float32)).size
    4
    """

    format: ScalarFormat
    kept: Any

    @property
    def size(self) -> int:
        """Return how many scalars there are.

        >>> import numpy as np
        >>> DeviceMemory(format_of("int8"), np.zeros(3, dtype=np.int8)).size
        3
        """
        return int(self.kept.size)

    def part(self, start: int, size: int) -> Any:
        """Return some of the scalars, as moves take them.

        >>> import numpy as np
        >>> DeviceMemory(format_of("int8"), np.arange(5, dtype=np.int8)).part(1, 2).tolist()
        [1, 2]
        """
        if not isinstance(self.kept, DeviceArray):
            return self.kept[start : start + size]
        step = self.format.itemsize
        return replace(self.kept, start=self.kept.start + start * step, shape=(size,), strides=(step,))

    def unreachable(self) -> LayoutError:
        """Return the error for a host that tries to read or write this memory.

        >>> import numpy as np
        >>> print(DeviceMemory(format_of("int8"), np.zeros(3, dtype=np.int8)).unreachable())
        device memory cannot be reached from the host; copy it with ctx.enqueue_copy(host_buffer, device_buffer) first
        """
        return LayoutError(
            "device memory cannot be reached from the host; copy it with ctx.enqueue_copy(host_buffer, device_buffer)"
            " first"
        )

    def __getitem__(self, _: Any) -> Any:
        raise self.unreachable()

    def __setitem__(self, _: Any, value: Any) -> None:
        raise self.unreachable()


class DeviceBuffer:
    """Memory of a device, made by `DeviceContext.enqueue_create_buffer`.

    >>> len(DeviceContext().enqueue_create_buffer["float32"](16))
    16
    """

    def __init__(self, context: DeviceContext, element: ScalarFormat, size: int) -> None:
        self.context = context
        home = context.home
        kept = aligned_empty(size, element.dtype) if home is None else home.empty((size,), element)
        self.device_memory = DeviceMemory(element, kept)

    def __len__(self) -> int:
        return self.device_memory.size

    def __getitem__(self, k: Any) -> Any:
        raise self.device_memory.unreachable()

    def __setitem__(self, k: Any, value: Any) -> None:
        raise self.device_memory.unreachable()

    def __repr__(self) -> str:
        return f"<DeviceBuffer of {len(self)} x {self.device_memory.format.name}>"


class HostBuffer:
    """Memory of the host, made by `DeviceContext.enqueue_create_host_buffer`; indexed like a list.

    >>> buffer = DeviceContext().enqueue_create_host_buffer["int32"](4)
    >>> buffer[3] = 7
    >>> int(buffer[3]), len(buffer)
    (7, 4)
    """

    def __init__(self, context: DeviceContext, element: ScalarFormat, size: int) -> None:
        self.context = context
        self.array = aligned_empty(size, element.dtype)
        self.array[...] = 0

    def __len__(self) -> int:
        return int(self.array.size)

    def _at(self, k: Any) -> int:
        at = as_integer(k, "an index")
        if not 0 <= at < len(self):
            raise CoordinateError(f"index {at} is outside a buffer of {len(self)} scalars")
        return at

    def __getitem__(self, k: Any) -> Any:
        return self.array[self._at(k)]

    def __setitem__(self, k: Any, value: Any) -> None:
        self.array[self._at(k)] = value

    def __repr__(self) -> str:
        return f"<HostBuffer of {len(self)} x {format_of(self.array.dtype).name}>"


def _create(kind: Any) -> Any:
    def create(context: DeviceContext, fixed: tuple[Any, ...], *size: Any) -> Any:
        """Return a new buffer: `ctx.enqueue_create_buffer[dtype](size)`.

        >>> DeviceContext().enqueue_create_host_buffer["int8"](2)
        <HostBuffer of 2 x int8>
        """
        if len(fixed) != 1 or len(size) != 1:
            raise TypeError("write ctx.enqueue_create_buffer[dtype](size)")
        element = format_of(fixed[0])
        count = as_integer(size[0], "the size of a buffer")
        if not isinstance(element, ScalarFormat) or count < 0:
            raise LayoutError(f"a buffer holds a nonnegative number of scalars, not {count} of {element.name}")
        return kind(context, element, count)

    return create


class DeviceContext:
    """A device with memory of its own and a queue of copies: "host", or a real one, "opencl" or "cuda".

    On a host the device is memory that only copies reach. Buffers of real devices are arguments of any move, such as
    `tilize` and `copy`.

    >>> ctx = DeviceContext()
    >>> host, device = ctx.enqueue_create_host_buffer["int32"](2), ctx.enqueue_create_buffer["int32"](2)
    >>> host[0] = 5
    >>> ctx.enqueue_copy(device, host)
    >>> back = ctx.enqueue_create_host_buffer["int32"](2)
    >>> ctx.enqueue_copy(back, device)
    >>> ctx.synchronize()
    >>> int(back[0])
    5
    """

    def __init__(self, device: str = "host") -> None:
        if device not in ("host", *DEVICE_ENGINES):
            raise TransferError(f"there is no device {device!r}; choose one of host, {', '.join(DEVICE_ENGINES)}")
        self.home = None if device == "host" else load_engine(device).default_backend()

    enqueue_create_buffer = brackets(_create(DeviceBuffer))
    enqueue_create_host_buffer = brackets(_create(HostBuffer))

    def enqueue_copy(self, target: Any, source: Any) -> None:
        """Copy one buffer to another of the same size and format, after all that was enqueued before.

        >>> import numpy as np
        >>> DeviceContext().enqueue_copy(np.zeros(2), np.ones(2))
        """
        into, out_of = (_memory(buffer) for buffer in (target, source))
        if into.size != out_of.size or into.dtype != out_of.dtype:
            raise LayoutError(
                f"cannot copy {out_of.size} x {out_of.dtype} to {into.size} x {into.dtype}; sizes and formats must be"
                " equal"
            )
        if isinstance(into, DeviceArray) and isinstance(out_of, DeviceArray):
            copy_elements(out_of, into)
        elif isinstance(into, DeviceArray):
            into.backend.upload(out_of, into)
        elif isinstance(out_of, DeviceArray):
            out_of.backend.download(out_of, into)
        else:
            into[...] = out_of

    def synchronize(self) -> None:
        """Wait until everything that was enqueued is done.

        >>> DeviceContext().synchronize()
        """
        if self.home is not None:
            self.home.synchronize()


def _memory(buffer: Any) -> Any:
    device = getattr(buffer, "device_memory", None)
    if device is not None:
        return device.kept
    return getattr(buffer, "array", buffer)
