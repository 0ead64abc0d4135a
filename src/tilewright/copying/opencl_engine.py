# SPDX-License-Identifier: Apache-2.0
"""The OpenCL engine: runs plans as generated kernels, on any device that PyOpenCL finds.

Kernels are cached in memory by plan, and on disk by program, device and driver.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np

from ..errors import DeviceError, FormatError, TransferError
from ..formats import float32, float64
from .codegen import DEFAULTS, WIDEST, Tuning, generate_program, supports_formats
from .device_array import DeviceArray
from .kernel_cache import Launch, PlanCache, launch_table_bytes, load_or_compile, remove_entry
from .plan import Plan, step_operands

NAME = "opencl"
# On a CPU a work-group is a loop, and unrolling only takes longer to compile.
_CPU_TUNING = Tuning(threads=64, in_flight=16, shared=8192, unroll=False)
# PoCL's vectorizer (3.0, on LLVM 14) miscompiles some kernels, so its kernels are not optimized, which also compiles
# five times as fast; for speed, CPUs have the native engine.
_UNOPTIMIZED_PLATFORM = "Portable Computing Language"
_INSTALL = "pip install 'tilewright[opencl]', and a driver for your device or 'pyopencl[pocl]' for the processor"

_launches: PlanCache[list[Launch]] = PlanCache(launch_table_bytes)


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
    from .opencl_arrays import default_queue

    return default_queue(context), None


def can_run(plan: Plan) -> bool:
    """Return whether there is a device and it supports the formats of a plan.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> can_run(plan_copy(Placement(Layout(32), "int8"), Placement(Layout(32), "mxfp4", tile_elements=32)))
    False
    """
    return supports_formats(plan) and unavailable_reason() is None


def default_backend() -> Any:
    """Return the backend for host data: the first device, or the one that PYOPENCL_CTX names."""
    queue, problem = _find_queue()
    if problem:
        raise DeviceError(f"the opencl engine cannot run: {problem}")
    from .opencl_arrays import OpenCLBackend

    return OpenCLBackend(queue)


def run_plan(plan: Plan, source: DeviceArray, target: DeviceArray, tuning: Tuning | None = None) -> None:
    """Enqueue a plan on the queue of the target; the host does not wait for it."""
    cl: Any = import_module("pyopencl")
    queue = target.backend.queue
    starts = [array.span[0] for array in (source, target)]
    low, high = (int(np.gcd(WIDEST, start)) for start in starts)
    for array, aligned in ((source, low), (target, high)):
        if aligned < min(WIDEST, array.itemsize):
            raise TransferError(
                f"byte {array.span[0]} of a buffer is not aligned to {array.format.name}; copy the array first"
            )
    key = ("opencl", queue.context.int_ptr, queue.device.int_ptr, low, high, tuning)
    launches = _launches.get(plan, key, lambda: _compile_plan(cl, plan, queue, (low, high), tuning))
    try:
        steps = step_operands(plan, source, target, lambda count: target.backend.empty((count,), float32))
        for launch in launches:
            kernel = launch.kernel
            _, read, written = steps[kernel.step]
            begins = [np.uint64(array.span[0]) for array in (read, written)]
            arguments = [read.memory, written.memory, *begins, *launch.tables, *launch.scalars]
            for k, argument in enumerate(arguments):
                launch.function.set_arg(k, argument)
            cl.enqueue_nd_range_kernel(queue, launch.function, (kernel.groups * kernel.threads,), (kernel.threads,))
    except cl.Error as problem:
        raise DeviceError(f"{queue.device.name} could not run the plan: {problem}; use engine='native'") from problem


def launch_tile_kernel(kernel: Any, backend: Any, arrays: Sequence[DeviceArray], groups: int | None) -> None:
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
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR

    def make() -> tuple[Any, list[Any]]:
        built = cl.Kernel(build_program(cl, queue.context, device, kernel.source), shape.name)
        return built, [cl.Buffer(queue.context, flags, hostbuf=table) for table in kernel.coordinate_tables()]

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
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return [
            Launch(
                cl.Kernel(built, kernel.name),
                kernel,
                [cl.Buffer(queue.context, flags, hostbuf=table) for table in kernel.tables],
                kernel.scalars,
            )
            for kernel in program.kernels
        ]
    except cl.Error as problem:
        raise DeviceError(f"{device.name} could not compile the plan: {problem}; use engine='native'") from problem


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
    facts = ["opencl", *_device_identity(device), cl.VERSION_TEXT, *options, text]

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


def _device_identity(device: Any) -> list[str]:
    return [str(value) for value in (device.platform.name, device.platform.version, device.name, device.driver_version)]


def _program_binary(program: Any, device: Any) -> bytes:
    info = import_module("pyopencl").program_info
    devices = [entry.int_ptr for entry in program.get_info(info.DEVICES)]
    return bytes(program.get_info(info.BINARIES)[devices.index(device.int_ptr)])
