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

from ..errors import DeviceError, FormatError, TransferError
from ..formats import ScalarFormat, float32, float64, scalar_format_of, uint8
from .codegen import DEFAULTS, Kernel, Tuning, generate_program
from .devices import Backend, DeviceArray, PlanCache, load_or_compile, packed_strides, remove_entry
from .placement import Array
from .plan import Plan, step_operands

NAME = "opencl"
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


def unavailable_reason() -> str | None:
    """Return why OpenCL cannot be used and what to do about it, or None if it can.

    >>> reason = unavailable_reason()
    >>> reason is None or "OpenCL" in reason
    True
    """
    return _find_queue()[1]


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


def default_backend() -> OpenCLBackend:
    """Return the backend for host data: the first device, or the one that PYOPENCL_CTX names."""
    queue, problem = _find_queue()
    if problem:
        raise DeviceError(f"the opencl engine cannot run: {problem}")
    return OpenCLBackend(queue)


def run_plan(plan: Plan, source: DeviceArray, target: DeviceArray, tuning: Tuning | None = None) -> None:
    """Enqueue a plan on the queue of the target; the host does not wait for it."""
    cl: Any = import_module("pyopencl")
    queue = target.backend.queue
    aligned = (source.alignment, target.alignment)
    key = ("opencl", queue.context.int_ptr, queue.device.int_ptr, aligned, tuning)
    launches = _launches.get(plan, key, lambda: _compile_plan(cl, plan, queue, aligned, tuning))
    try:
        steps = step_operands(plan, source, target, lambda count: target.backend.empty((count,), float32))
        for launch in launches:
            kernel = launch.kernel
            _, read, written = steps[kernel.step]
            begins = [np.uint64(array.span[0]) for array in (read, written)]
            arguments = [read.memory, written.memory, *begins, *launch.tables]
            for k, argument in enumerate(arguments):
                launch.function.set_arg(k, argument)
            cl.enqueue_nd_range_kernel(queue, launch.function, (kernel.groups * kernel.threads,), (kernel.threads,))
    except cl.Error as problem:
        raise DeviceError(f"{queue.device.name} could not run the plan: {problem}; use engine='native'") from problem


def launch_tile_kernel(kernel: Any, backend: OpenCLBackend, arrays: Sequence[DeviceArray], groups: int | None) -> None:
    """Enqueue the kernel of a pipeline with its operands; the host does not wait for it."""
    cl: Any = import_module("pyopencl")
    queue, shape = backend.queue, kernel.launch_shape
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
    try:
        for k, argument in enumerate([*chain.from_iterable(operands), *tables]):
            program.set_arg(k, argument)
        count = min(kernel.pipeline.tiles, groups or 4 * device.max_compute_units)
        cl.enqueue_nd_range_kernel(queue, program, (count * shape.threads,), (shape.threads,))
    except cl.Error as problem:
        raise DeviceError(f"{device.name} could not run the kernel: {problem}") from problem


def _compile_plan(cl: Any, plan: Plan, queue: Any, aligned: tuple[int, int], tuning: Tuning | None) -> list[Launch]:
    device = queue.device
    doubles = float64 in (plan.source.format, plan.target.format)
    if doubles and not device.double_fp_config:
        raise FormatError(f"{device.name} has no float64; use engine='native', or convert to float32 first")
    program = generate_program(plan, "opencl", aligned, tuning or _device_tunings(cl, device))
    try:
        built = build_program(cl, queue.context, device, program.text)
        return [
            Launch(cl.Kernel(built, kernel.name), kernel, _upload_tables(cl, queue.context, kernel.tables))
            for kernel in program.kernels
        ]
    except cl.Error as problem:
        raise DeviceError(f"{device.name} could not compile the plan: {problem}; use engine='native'") from problem


def _upload_tables(cl: Any, context: Any, tables: Sequence[Array]) -> list[Any]:
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    return [cl.Buffer(context, flags, hostbuf=table) for table in tables]


def _device_tunings(cl: Any, device: Any) -> dict[str, Tuning]:
    """Return the tuning of each kind of kernel, within the limits of a device."""
    chosen = dict.fromkeys(DEFAULTS, _CPU_TUNING) if device.type & cl.device_type.CPU else DEFAULTS
    threads, shared = device.max_work_group_size // 2, device.local_mem_size // 2
    return {
        kind: replace(tuning, threads=min(tuning.threads, threads), shared=min(tuning.shared, shared))
        for kind, tuning in chosen.items()
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


@contextmanager
def translate_errors(device: Any, action: str) -> Iterator[None]:
    """Turn errors of PyOpenCL into a DeviceError with a remedy."""
    try:
        yield
    except import_module("pyopencl").Error as problem:
        raise DeviceError(
            f"{device.name} could not {action}: {problem}; if its context is lost, restart the process, or use"
            " engine='native' with host arrays"
        ) from problem


@dataclass(frozen=True)
class OpenCLBackend(Backend):
    """A command queue of PyOpenCL; `plain` allocates buffers instead of arrays."""

    queue: Any
    plain: bool = False

    engine = "opencl"

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

    def _download(self, array: DeviceArray, data: Array) -> None:
        with translate_errors(self.queue.device, "copy memory to the host"):
            cl: Any = import_module("pyopencl")
            cl.enqueue_copy(self.queue, data, array.memory, src_offset=array.start, is_blocking=True)

    def _upload(self, data: Array, array: DeviceArray) -> None:
        with translate_errors(self.queue.device, "copy memory from the host"):
            cl: Any = import_module("pyopencl")
            cl.enqueue_copy(self.queue, array.memory, data, dst_offset=array.start, is_blocking=True)

    def synchronize(self) -> None:
        """Wait until all work on the queue is done."""
        with translate_errors(self.queue.device, "finish its queue"):
            self.queue.finish()


def find_opencl_array(array: object) -> DeviceArray | None:
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
