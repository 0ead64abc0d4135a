# SPDX-License-Identifier: Apache-2.0
"""`TileKernel`: a pipeline as one kernel of a device."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from time import perf_counter
from typing import Any, TypeVar

from ..copying import DEVICE_ENGINES, DeviceArray, load_engine
from ..copying.codegen import WIDEST
from ..errors import DeviceError, FormatError, TransferError
from ..formats import format_of
from ..layout import Box
from .endpoints import DeviceEndpoint, Endpoint, MemoryEndpoint
from .kernel_operand import MAX_LISTED_TILES, KernelOperand
from .kernel_program import COMPUTE_UNITS, KernelProgram, compute_statements
from .pipeline_spec import PipelineSpec
from .tile_copies import validate_fill
from .tiler import Tiler
from .trace import PipelineReport

SCHEME_BUFFERS = {"duplex": 1, "double": 2}
MAX_TILES = 2**31 - 1

Built = TypeVar("Built")


class TileKernel:
    """One kernel that imports, computes and exports the tiles of a pipeline, made by `Pipeline.kernel`.

    A work-group takes every n-th tile. It imports into local memory asynchronously, computes there, and exports; with
    "double" or "buffered" buffering the next tiles are imported meanwhile. `source` is the program; it can be read
    without a device. The `pipeline` is that of `Pipeline.kernel`, and so are `compute`, `engine`, `each`, `functions`
    and `threads`.

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
        pipeline: PipelineSpec,
        compute: Any,
        engine: str | None = None,
        each: str = "element",
        functions: str = "",
        threads: int = 256,
    ) -> None:
        if engine is None:  # that of an operand's memory, or any device that OpenCL finds
            ends = [endpoint for endpoint, _ in (*pipeline.sources, *pipeline.targets)]
            engine = next((end.array.backend.engine for end in ends if isinstance(end, DeviceEndpoint)), "opencl")
        if engine not in DEVICE_ENGINES:
            raise TransferError(f"expected engine {' or '.join(map(repr, DEVICE_ENGINES))}, got {engine!r}")
        if each not in COMPUTE_UNITS:
            raise TransferError(f"expected each={' or '.join(map(repr, COMPUTE_UNITS))}, got {each!r}")
        if not 1 <= threads <= 1024:
            raise TransferError(f"expected 1 to 1024 threads, got {threads}")
        self.pipeline, self.engine = pipeline, engine
        self._operands: list[tuple[Endpoint, Tiler, Any]] = [
            *[(endpoint, item.tiler, item.fill) for endpoint, item in pipeline.sources],
            *[(endpoint, item.tiler, None) for endpoint, item in pipeline.targets],
        ]
        self._validate_pipeline(pipeline)
        count = len(pipeline.inputs)
        operands = [
            _make_operand(f"in{k}" if k < count else f"out{k - count}", *operand)
            for k, operand in enumerate(self._operands)
        ]
        inputs, outputs = tuple(operands[:count]), tuple(operands[count:])
        buffers = SCHEME_BUFFERS.get(pipeline.scheme, pipeline.depth)
        statements = compute_statements(compute, outputs)
        self._program = KernelProgram(engine, inputs, outputs, statements, each, functions, buffers, threads)
        self.launch_shape = self._program.kernel()
        self._builds: dict[Any, Any] = {}
        self.source = self._program.text()

    def _validate_pipeline(self, pipeline: PipelineSpec) -> None:
        """Raise if a pipeline needs what a kernel cannot do."""
        if pipeline.scheme not in (*SCHEME_BUFFERS, "buffered"):
            raise TransferError(
                f"a kernel cannot use scheme {pipeline.scheme!r}; use 'double', 'duplex', or 'buffered' with a depth"
            )
        if not pipeline.outputs:
            raise TransferError("a kernel needs at least one output; give the pipeline an Output")
        if pipeline.tiles > MAX_TILES:
            raise TransferError(f"a kernel can have {MAX_TILES} tiles, got {pipeline.tiles}; use larger tiles")
        for item in pipeline.outputs:
            if any(n > 1 and shared for n, shared in zip(item.tiler.grid, item.tiler.overlap, strict=True)):
                raise TransferError(
                    f"output tiles of {item.tiler} overlap, so work-groups would write the same elements in any order;"
                    " use overlap=0"
                )
        for endpoint, tiler, _ in self._operands:
            if 0 in endpoint.shape and tiler.count:
                raise TransferError(f"a kernel cannot read an array of shape {endpoint.shape}, which has no memory")

    @property
    def local_bytes(self) -> int:
        """Return the local memory of one work-group.

        >>> import numpy as np
        >>> from tilewright.tiling import Output, Pipeline, Tiler
        >>> Pipeline([], [Output(np.zeros(12), Tiler((12,), (4,)))]).kernel("x0", engine="cuda").local_bytes
        32
        """
        return sum(nbytes for _, nbytes in self.launch_shape.shared)

    def run(self, groups: int | None = None) -> PipelineReport:
        """Run the kernel on all tiles, and return a report.

        Operands on the host are copied to the device and back. With all operands on the device the kernel is enqueued
        and not waited for. `groups` is the number of work-groups that share the tiles.

        >>> import numpy as np
        >>> from tilewright.copying import opencl_engine
        >>> from tilewright.tiling import Output, Pipeline, Tiler
        >>> kernel = Pipeline([], [Output(np.zeros(12), Tiler((12,), (5,)))]).kernel("x0", engine="opencl")
        >>> bool(opencl_engine.unavailable_reason()) or kernel.run().tiles == 3
        True
        """
        started = perf_counter()
        device_driver = load_engine(self.engine)
        problem = device_driver.unavailable_reason()
        if problem:
            raise DeviceError(f"the kernel cannot run: {problem}; Pipeline.run computes on the host")
        count = len(self._program.inputs)
        if self.pipeline.tiles:
            backend = self._device_backend(device_driver)
            arrays = [_copy_to_device(backend, endpoint) for endpoint, _, _ in self._operands]
            device_driver.launch_tile_kernel(self, backend, arrays, groups)
            for (endpoint, _, _), array in list(zip(self._operands, arrays, strict=True))[count:]:
                if isinstance(endpoint, MemoryEndpoint):
                    backend.download(array, endpoint.tensor.memory.bytes)
        nbytes = [tiler.volume * endpoint.dtype.itemsize for endpoint, tiler, _ in self._operands]
        seconds = perf_counter() - started
        return PipelineReport(self.pipeline.tiles, seconds, sum(nbytes[:count]), sum(nbytes[count:]), self.local_bytes)

    def _device_backend(self, device_driver: Any) -> Any:
        """Return the device and queue of the operands, or the driver's default."""
        backends = [end.array.backend for end, _, _ in self._operands if isinstance(end, DeviceEndpoint)]
        for backend in backends:
            if backend.engine != self.engine:
                raise TransferError(
                    f"an operand is in {backend.engine} memory, but the kernel is for {self.engine}; make it with"
                    f" engine={backend.engine!r}"
                )
        return backends[-1] if backends else device_driver.default_backend()

    def coordinate_tables(self) -> list[Any]:
        """Return the tables of tile coordinates that the program takes after the memories."""
        return [operand.coordinates() for operand in self._program.operands if operand.is_listed]

    def element_offsets(self, arrays: list[DeviceArray]) -> list[int]:
        """Return the byte offset of element 0 of each operand in its device memory, one of `arrays`."""
        offsets = []
        for (endpoint, _, _), array in zip(self._operands, arrays, strict=True):
            tensor = endpoint.tensor if isinstance(endpoint, MemoryEndpoint) else None
            offsets.append(array.start + (0 if tensor is None else tensor.address - tensor.memory.address))
        return offsets

    def build_once(self, key: Any, build: Callable[[], Built]) -> Built:
        """Return what `build` makes from the program, built once per `key`."""
        if key not in self._builds:
            self._builds[key] = build()
        result: Built = self._builds[key]
        return result

    def __repr__(self) -> str:
        return (
            f"<TileKernel of {self.pipeline.tiles} tiles for {self.engine}, {self.launch_shape.threads} threads,"
            f" {self.local_bytes} bytes of local memory>"
        )


def _make_operand(name: str, endpoint: Endpoint, tiler: Tiler, fill: Any) -> KernelOperand:
    """Return an operand as the kernel sees it; raise if it is not a strided array of scalars in memory."""
    element = format_of(endpoint.dtype)
    if element.has_blocks:
        raise FormatError(f"{name} holds {endpoint.dtype}, which kernels do not support; use a scalar format")
    if isinstance(endpoint, DeviceEndpoint):
        array = endpoint.array
        strides, address = array.strides, array.start + (array.memory if isinstance(array.memory, int) else 0)
    elif isinstance(endpoint, MemoryEndpoint):
        tensor = endpoint.tensor
        space = Box((0,) * tiler.rank, tensor.space)
        if tensor.strides is None or tensor.window != space:
            raise TransferError(
                f"{name} has layout {tensor.layout} and window {tensor.window}, but kernels need entire strided"
                " tensors; copy it to an array first"
            )
        tensor.validate_bounds(space)
        strides, address = tensor.strides, tensor.address - tensor.memory.address
    else:
        raise TransferError(
            f"{name} is a {type(endpoint).__name__}, but kernels need arrays in memory; read it into one, or run the"
            " pipeline on the host"
        )
    if tiler.order not in ("row_major", "col_major") and tiler.count > MAX_LISTED_TILES:
        raise TransferError(
            f"{tiler.order} order supports at most {MAX_LISTED_TILES} tiles in a kernel, got {tiler.count}; use"
            " row_major"
        )
    steps = tuple([step if n > 1 else element.itemsize for n, step in zip(endpoint.shape, strides, strict=True)])
    padding = None if fill is None else validate_fill(fill, endpoint.dtype)
    fill_bytes = padding if padding is None or isinstance(padding, str) else padding.tobytes()
    alignment = gcd(WIDEST, address)
    if alignment % min(WIDEST, element.itemsize):
        raise TransferError(f"{name} starts at {address:#x}, which is not aligned to {element.name}; copy it first")
    return KernelOperand(name, tiler, steps, element, fill_bytes, alignment)


def _copy_to_device(backend: Any, endpoint: Endpoint) -> DeviceArray:
    """Return an operand in device memory; one on the host is uploaded."""
    if isinstance(endpoint, DeviceEndpoint):
        return endpoint.array
    assert isinstance(endpoint, MemoryEndpoint)
    data = endpoint.tensor.memory.bytes
    array: DeviceArray = backend.empty((data.size,), format_of("uint8"))
    backend.upload(data, array)
    return array
