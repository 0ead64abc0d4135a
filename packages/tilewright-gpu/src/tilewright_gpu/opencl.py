# SPDX-License-Identifier: Apache-2.0
"""The OpenCL engine: runs plans as generated kernels on arrays and buffers of PyOpenCL, on any device that it finds.

Kernels are cached in memory by plan, and on disk by program, device and driver.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.copying import DeviceArray, DeviceEngine, Plan, PlanCache, packed_strides
from tilewright.errors import DeviceError, FormatError, TransferError
from tilewright.formats import ScalarFormat, float64, scalar_format_of, uint8

from .backend import KernelBackend
from .codegen import DEFAULTS, Kernel, Tuning, generate_program
from .kernel_cache import load_or_compile, remove_entry

# On a CPU a work-group is a loop, and unrolling only takes longer to compile.
_CPU_TUNING = Tuning(threads=64, in_flight=16, shared=8192, unroll=False)
# PoCL's vectorizer (3.0, on LLVM 14) miscompiles some kernels, so its kernels are not optimized, which also compiles
# five times as fast; for speed, CPUs have the native engine.
_UNOPTIMIZED_PLATFORM = "Portable Computing Language"
_INSTALL = "pip install 'tilewright[opencl]', and a driver for your device or 'pyopencl[pocl]' for the processor"

_queues: dict[Any, Any] = {}  # the default queue of each context


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel compiled for a device, and its tables in buffers."""

    function: Any  # PyOpenCL's
    kernel: Kernel
    tables: list[Any]


_launches: PlanCache[list[Launch]] = PlanCache(
    lambda launches: sum([table.size for launch in launches for table in launch.tables])
)


class OpenCLEngine(DeviceEngine):
    """The engine of OpenCL devices.

    >>> reason = OpenCLEngine().unavailable_reason()
    >>> reason is None or "OpenCL" in reason
    True
    """

    name = "opencl"

    def unavailable_reason(self) -> str | None:
        """Return why OpenCL cannot be used and what to do about it, or None if it can."""
        return _find_queue()[1]

    def default_backend(self) -> OpenCLBackend:
        """Return the backend for host data: the first device, or the one that PYOPENCL_CTX names."""
        queue, problem = _find_queue()
        if problem:
            raise self.unavailable_error()
        return OpenCLBackend(queue)

    def find_array(self, array: object) -> DeviceArray | None:
        """Return a PyOpenCL array or buffer as a device array, or None for anything else."""
        if isinstance(array, import_module("pyopencl.array").Array):
            element = scalar_format_of(array.dtype)
            backend = OpenCLBackend(array.queue or default_queue(array.context))
            start, shape, strides = int(array.offset), tuple(map(int, array.shape)), tuple(map(int, array.strides))
            return DeviceArray(backend, array.base_data, start, shape, strides, element, array)
        if isinstance(array, import_module("pyopencl").Buffer):
            backend = OpenCLBackend(default_queue(array.context), plain=True)
            return DeviceArray(backend, array, 0, (int(array.size),), (1,), uint8, array)
        return None

    def code(self, plan: Plan) -> str:
        """Return the source text of a plan in OpenCL C."""
        return generate_program(plan, "opencl").text


@cache
def _find_queue() -> tuple[Any, str | None]:
    """Return the queue of the first device, or None and the reason why there is none."""
    try:
        cl: Any = import_module("pyopencl")
    except ImportError as problem:
        return None, f"OpenCL needs PyOpenCL ({problem}); {_INSTALL}"
    try:
        context = cl.create_some_context(interactive=False)
    except (cl.Error, RuntimeError) as problem:
        return None, f"OpenCL found no device ({problem}); {_INSTALL}"
    return default_queue(context), None


def _compile_plan(plan: Plan, queue: Any, aligned: tuple[int, int], tuning: Tuning | None) -> list[Launch]:
    cl: Any = import_module("pyopencl")
    device = queue.device
    if float64 in (plan.source.format, plan.target.format) and not device.double_fp_config:
        raise FormatError(f"{device.name} has no float64; use engine='native', or convert to float32 first")
    program = generate_program(plan, "opencl", aligned, tuning or _device_tunings(cl, device))
    built = build_program(cl, queue.context, device, program.text)
    return [
        Launch(cl.Kernel(built, kernel.name), kernel, _upload_tables(cl, queue.context, kernel.tables))
        for kernel in program.kernels
    ]


def _upload_tables(cl: Any, context: Any, tables: Sequence[NDArray[Any]]) -> list[Any]:
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    return [cl.Buffer(context, flags, hostbuf=table) for table in tables]


def _device_tunings(cl: Any, device: Any) -> dict[str, Tuning]:
    """Return the tuning of each family of kernels, within the limits of a device."""
    chosen = dict.fromkeys(DEFAULTS, _CPU_TUNING) if device.type & cl.device_type.CPU else DEFAULTS
    threads, shared = device.max_work_group_size // 2, device.local_mem_size // 2
    return {
        name: replace(tuning, threads=min(tuning.threads, threads), shared=min(tuning.shared, shared))
        for name, tuning in chosen.items()
    }


def build_program(cl: Any, context: Any, device: Any, text: str) -> Any:
    """Return a program built for a device, from the cache on disk or from its text."""
    options = ["-cl-opt-disable"] if device.platform.name == _UNOPTIMIZED_PLATFORM else []
    identity = (device.platform.name, device.platform.version, device.name, device.driver_version)
    facts = ["opencl", *map(str, identity), cl.VERSION_TEXT, *options, text]

    def build_from_text() -> Any:
        return cl.Program(context, text).build(options=options, devices=[device], cache_dir=False)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)  # messages of the driver's compiler
        binary = load_or_compile(facts, lambda: _program_binary(build_from_text(), device))
        try:
            return cl.Program(context, [device], [binary]).build(options=options, devices=[device])
        except cl.Error:  # the driver rejects the cached binary
            remove_entry(facts)
            return build_from_text()


def _program_binary(program: Any, device: Any) -> bytes:
    info = import_module("pyopencl").program_info
    devices = [entry.int_ptr for entry in program.get_info(info.DEVICES)]
    return bytes(program.get_info(info.BINARIES)[devices.index(device.int_ptr)])


def default_queue(context: object) -> Any:
    """Return the default queue of a context: always the same."""
    queue = _queues.get(context)
    if queue is None:
        # two threads must get the same queue, since commands of different queues are not ordered
        queue = _queues.setdefault(context, import_module("pyopencl").CommandQueue(context))
    return queue


@dataclass(frozen=True)
class OpenCLBackend(KernelBackend):
    """A command queue of PyOpenCL; `plain` allocates buffers instead of arrays."""

    queue: Any
    plain: bool = False

    engine = "opencl"

    def memory_space(self) -> object:
        """Return the context: a device reads and writes all buffers of its context."""
        return self.queue.context

    @contextmanager
    def working(self, action: str) -> Iterator[None]:
        """Open a context in which errors of OpenCL become a DeviceError with a remedy."""
        try:
            yield
        except import_module("pyopencl").Error as problem:
            raise DeviceError(
                f"{self.queue.device.name} could not {action}: {problem}; if its context is lost, restart the process,"
                " or use engine='native' with host arrays"
            ) from problem

    def compile_plan(self, plan: Plan, aligned: tuple[int, int], tuning: Tuning | None = None) -> list[Launch]:
        """Return the launches of a plan for two alignments in bytes."""
        key = (self.queue.context.int_ptr, self.queue.device.int_ptr, aligned, tuning)
        with self.working("compile the plan"):
            return _launches.get(plan, key, lambda: _compile_plan(plan, self.queue, aligned, tuning))

    def enqueue(self, launch: Launch, source: DeviceArray, target: DeviceArray) -> None:
        """Enqueue a launch on the queue."""
        starts = [np.uint64(array.span[0]) for array in (source, target)]
        for k, argument in enumerate([source.memory, target.memory, *starts, *launch.tables]):
            launch.function.set_arg(k, argument)
        sizes = (launch.kernel.groups * launch.kernel.threads,), (launch.kernel.threads,)
        import_module("pyopencl").enqueue_nd_range_kernel(self.queue, launch.function, *sizes)

    def empty(self, shape: tuple[int, ...], element: ScalarFormat) -> DeviceArray:
        """Return a new array in this context."""
        cl: Any = import_module("pyopencl")
        strides = packed_strides(shape, element.itemsize)
        nbytes = max(1, prod(shape) * element.itemsize)
        try:
            if self.plain:
                buffer = cl.Buffer(self.queue.context, cl.mem_flags.READ_WRITE, size=nbytes)
                return DeviceArray(self, buffer, 0, shape, strides, element, buffer)
            array = import_module("pyopencl.array").empty(self.queue, shape, element.dtype)
        except (cl.Error, OverflowError, MemoryError) as problem:
            raise DeviceError(
                f"{self.queue.device.name} cannot allocate {nbytes} bytes ({problem}); free arrays or copy less at once"
            ) from problem
        return DeviceArray(self, array.base_data, array.offset, shape, strides, element, array)

    def launch_pipeline(self, kernel: Any, arrays: Sequence[DeviceArray], groups: int | None) -> None:
        """Enqueue the kernel of a pipeline with its operands; the host does not wait for it."""
        cl: Any = import_module("pyopencl")
        queue, shape = self.queue, kernel.launch_shape
        device = queue.device
        need, doubles = kernel.local_bytes, "f64" in kernel.source
        if doubles and not device.double_fp_config:
            raise FormatError(f"{device.name} has no float64; use float32, or run the pipeline on the host")
        if need > device.local_mem_size or shape.threads > device.max_work_group_size:
            raise TransferError(
                f"the kernel needs {need} bytes of local memory and {shape.threads} threads, {device.name} has"
                f" {device.local_mem_size} and {device.max_work_group_size}; use smaller tiles, fewer threads, or"
                " scheme='duplex'"
            )

        def make() -> tuple[Any, list[Any]]:
            built = cl.Kernel(build_program(cl, queue.context, device, kernel.source), shape.name)
            return built, _upload_tables(cl, queue.context, kernel.coordinate_tables())

        try:
            program, tables = kernel.build_once((queue.context.int_ptr, device.int_ptr), make)
        except cl.Error as problem:
            raise TransferError(
                f"{device.name} could not compile the kernel; its compute function must be C:\n{problem}"
            ) from None
        starts = kernel.element_offsets(arrays)
        operands = [(array.memory, np.uint64(start)) for array, start in zip(arrays, starts, strict=True)]
        with self.working("run the kernel"):
            for k, argument in enumerate([*chain.from_iterable(operands), *tables]):
                program.set_arg(k, argument)
            count = min(kernel.pipeline.tiles, groups or 4 * device.max_compute_units)
            cl.enqueue_nd_range_kernel(queue, program, (count * shape.threads,), (shape.threads,))

    def read_bytes(self, array: DeviceArray, data: NDArray[Any]) -> None:
        """Copy an array that is not empty to bytes of the host."""
        cl: Any = import_module("pyopencl")
        cl.enqueue_copy(self.queue, data, array.memory, src_offset=array.start, is_blocking=True)

    def write_bytes(self, data: NDArray[Any], array: DeviceArray) -> None:
        """Copy bytes of the host to an array that is not empty."""
        cl: Any = import_module("pyopencl")
        cl.enqueue_copy(self.queue, array.memory, data, dst_offset=array.start, is_blocking=True)

    def synchronize(self) -> None:
        """Wait until all work on the queue is done."""
        with self.working("finish its queue"):
            self.queue.finish()
