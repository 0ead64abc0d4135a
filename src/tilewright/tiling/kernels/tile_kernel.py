# SPDX-License-Identifier: Apache-2.0
"""`TileKernel`: a pipeline whose compute is C source, as one kernel of an OpenCL or CUDA device."""

from __future__ import annotations

from math import gcd
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ...copying.codegen.kernel import WIDEST
from ...copying.device_array import DeviceArray
from ...copying.drivers import DEVICE_ENGINES, driver
from ...errors import DeviceError, FormatError, TransferError
from ...formats import ScalarFormat, format_of
from ...layout.box import Box
from ..fills import check_fill
from ..ports import DevicePort, MemoryPort, Port
from ..tiler import Tiler
from .computing import EACH, statements
from .operand import MOST_LISTED, Operand
from .source import KernelSource

if TYPE_CHECKING:
    from ..pipeline import Pipeline, Report

ROOMS = {"duplex": 1, "double": 2}
MOST_TILES = 2**31 - 1
THREADS = 256


class TileKernel:
    """One kernel that imports, computes and exports the tiles of a pipeline, made by `Pipeline.kernel`.

    A work-group takes every n-th tile. It imports into local memory asynchronously, computes there, and exports; with
    "double" or "buffered" buffering the next tiles arrive meanwhile. `source` is the program; it can be read where
    there is no device.

    >>> import numpy as np
    >>> from tilewright.tiling import Input, Output, Pipeline, Tiler
    >>> a, b, tiler = np.arange(12, dtype=np.float32), np.zeros(12, np.float32), Tiler((12,), (5,))
    >>> kernel = Pipeline([Input(a, tiler)], [Output(b, tiler)]).kernel("2 * in0 + 1", engine="cuda")
    >>> kernel
    <TileKernel of 3 tiles for cuda, 256 threads, 96 bytes of local memory>
    >>> "cp.async" in kernel.source
    True
    """

    def __init__(
        self,
        pipeline: Pipeline,
        compute: Any,
        engine: str | None = None,
        each: str = "element",
        functions: str = "",
        threads: int = THREADS,
    ) -> None:
        if engine is None:  # where an operand is, or any device that OpenCL finds
            ports = [port for port, _ in (*pipeline.reading(), *pipeline.writing())]
            engine = next((port.array.home.engine for port in ports if isinstance(port, DevicePort)), "opencl")
        if engine not in DEVICE_ENGINES:
            raise TransferError(f"kernels run on {' or '.join(DEVICE_ENGINES)}, not on {engine!r}")
        if each not in EACH:
            raise TransferError(f"a compute runs for each {' or '.join(map(repr, EACH))}, not {each!r}")
        if not 1 <= threads <= 1024:
            raise TransferError(f"a work-group has 1 to 1024 threads, not {threads}")
        self.pipeline, self.engine = pipeline, engine
        self._ends = [
            *[(port, item.tiler, item.fill) for port, item in pipeline.reading()],
            *[(port, item.tiler, None) for port, item in pipeline.writing()],
        ]
        self._check(pipeline)
        count = len(pipeline.inputs)
        operands = [
            _operand(f"in{k}" if k < count else f"out{k - count}", port, tiler, fill)
            for k, (port, tiler, fill) in enumerate(self._ends)
        ]
        inputs, outputs = tuple(operands[:count]), tuple(operands[count:])
        rooms = ROOMS.get(pipeline.scheme, pipeline.depth)
        self._parts = KernelSource(
            engine, inputs, outputs, statements(compute, outputs), each, functions, rooms, threads
        )
        self._shape = self._parts.kernel()
        self._built: dict[Any, Any] = {}
        self.source = self._parts.text()

    def _check(self, pipeline: Pipeline) -> None:
        """Raise if a pipeline asks for what a kernel cannot do."""
        if pipeline.scheme not in (*ROOMS, "buffered"):
            raise TransferError(
                f"a kernel has no {pipeline.scheme} buffering; use 'double', 'duplex', or 'buffered' with a depth"
            )
        if not pipeline.outputs:
            raise TransferError("a kernel without an output would compute for nobody; give the pipeline an Output")
        if pipeline.tiles > MOST_TILES:
            raise TransferError(f"a kernel counts up to {MOST_TILES} tiles, not {pipeline.tiles}; use larger ones")
        for item in pipeline.outputs:
            if any(n > 1 and shared for n, shared in zip(item.tiler.grid, item.tiler.overlap, strict=True)):
                raise TransferError(
                    f"tiles of {item.tiler} overlap, and work-groups would write the same elements in any order; cut"
                    " the output into tiles that do not"
                )
        for port, tiler, _ in self._ends:
            if 0 in port.shape and tiler.count:
                raise TransferError(f"an array of shape {port.shape} has no memory that a kernel could look at")

    @property
    def local_bytes(self) -> int:
        """Return the local memory that one work-group takes.

        >>> import numpy as np
        >>> from tilewright.tiling import Output, Pipeline, Tiler
        >>> Pipeline([], [Output(np.zeros(12), Tiler((12,), (4,)))]).kernel("x0", engine="cuda").local_bytes
        32
        """
        return sum(nbytes for _, nbytes in self._shape.shared)

    def run(self, groups: int | None = None) -> Report:
        """Return what was done when every tile went through the kernel.

        Operands of the host are carried to the device and back. With all operands on the device the work is enqueued
        there, and not waited for. `groups` is how many work-groups share the tiles.

        >>> import numpy as np
        >>> from tilewright.copying import opencl_engine
        >>> from tilewright.tiling import Output, Pipeline, Tiler
        >>> kernel = Pipeline([], [Output(np.zeros(12), Tiler((12,), (5,)))]).kernel("x0", engine="opencl")
        >>> bool(opencl_engine.why_not()) or kernel.run().tiles == 3
        True
        """
        from ..pipeline import Report

        started = perf_counter()
        there = driver(self.engine)
        problem = there.why_not()
        if problem:
            raise DeviceError(f"the kernel cannot run: {problem}; Pipeline.run computes on the host")
        count = len(self._parts.inputs)
        if self.pipeline.tiles:
            home = self._home(there)
            arrays = [_on(home, port) for port, _, _ in self._ends]
            there.launch(self, home, arrays, groups)
            for (port, _, _), array in list(zip(self._ends, arrays, strict=True))[count:]:
                if isinstance(port, MemoryPort):
                    home.download(array, port.tensor.memory.bytes)
        moved = [tiler.volume * port.dtype.itemsize for port, tiler, _ in self._ends]
        return Report(
            self.pipeline.tiles, perf_counter() - started, sum(moved[:count]), sum(moved[count:]), self.local_bytes
        )

    def _home(self, there: Any) -> Any:
        homes = [port.array.home for port, _, _ in self._ends if isinstance(port, DevicePort)]
        for home in homes:
            if home.engine != self.engine:
                raise TransferError(
                    f"an operand is in the memory of {home.engine}, but the kernel is one of {self.engine}; make it"
                    f" with engine={home.engine!r}"
                )
        return homes[-1] if homes else there.home()

    @property
    def launch_shape(self) -> Any:
        """Return what a launch has to know: the name, the threads, and the memory of a work-group."""
        return self._shape

    def tables(self) -> list[Any]:
        """Return the lists of tile coordinates that the program takes after the memories."""
        return [operand.coordinates() for operand in self._parts.operands if operand.listed]

    def starts(self, arrays: list[DeviceArray]) -> list[int]:
        """Return where element 0 of each operand is, in bytes from the start of its memory."""
        found = []
        for (port, _, _), array in zip(self._ends, arrays, strict=True):
            tensor = port.tensor if isinstance(port, MemoryPort) else None
            found.append(array.start + (0 if tensor is None else tensor.address - tensor.memory.address))
        return found

    def built(self, key: Any, make: Any) -> Any:
        """Return what a driver made of the program for a device, made once."""
        if key not in self._built:
            self._built[key] = make()
        return self._built[key]

    def __repr__(self) -> str:
        return (
            f"<TileKernel of {self.pipeline.tiles} tiles for {self.engine}, {self._shape.threads} threads,"
            f" {self.local_bytes} bytes of local memory>"
        )


def _operand(name: str, port: Port, tiler: Tiler, fill: Any) -> Operand:
    element = format_of(port.dtype)
    if not isinstance(element, ScalarFormat):
        raise FormatError(f"{name} holds {port.dtype}, which a kernel has no code for; use a scalar format")
    if isinstance(port, DevicePort):
        strides, place = port.array.strides, port.array.start + (port.array.memory if _is_address(port.array) else 0)
    elif isinstance(port, MemoryPort):
        tensor = port.tensor
        whole = Box((0,) * tiler.rank, tensor.whole)
        if tensor.strides is None or tensor.window != whole:
            raise TransferError(
                f"{name} has the layout {tensor.layout} seen through {tensor.window}, and a kernel takes whole tensors"
                " with one stride an axis; copy it to an array first"
            )
        tensor.check_reach(whole)
        strides, place = tensor.strides, tensor.address - tensor.memory.address
    else:
        raise TransferError(
            f"{name} is a {type(port).__name__}, whose tiles come from slices; a kernel takes arrays in memory: read it"
            " into one, or run the pipeline on the host"
        )
    if tiler.order not in ("row_major", "column_major") and tiler.count > MOST_LISTED:
        raise TransferError(f"{tiler.count} tiles in {tiler.order} order are too many to list; use row_major")
    steps = tuple([step if n > 1 else element.itemsize for n, step in zip(port.shape, strides, strict=True)])
    found = None if fill is None else check_fill(fill, port.dtype)
    chosen = found if found is None or isinstance(found, str) else found.tobytes()
    aligned = gcd(WIDEST, place)
    if aligned % min(WIDEST, element.itemsize):
        raise TransferError(f"{name} starts at {place:#x}, which is not aligned to {element.name}; copy it first")
    return Operand(name, tiler, steps, element, chosen, aligned)


def _is_address(array: DeviceArray) -> bool:
    return isinstance(array.memory, int)


def _on(home: Any, port: Port) -> DeviceArray:
    """Return an operand in the memory of a device, carried there if it is on the host."""
    if isinstance(port, DevicePort):
        return port.array
    assert isinstance(port, MemoryPort)
    data = port.tensor.memory.bytes
    array: DeviceArray = home.empty((data.size,), format_of("uint8"))
    home.upload(data, array)
    return array
