# SPDX-License-Identifier: Apache-2.0
"""The OpenCL engine: plans as generated kernels, on any device that PyOpenCL finds.

Kernels are kept in memory by plan, and on disk by program, device and driver.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import DeviceError, FormatError, TransferError
from ..formats import format_of
from . import kernel_cache
from .codegen import DEFAULTS, Tuning, generate, knows_formats
from .codegen.kernel import WIDEST
from .compiled import CompiledPlans, Launch, table_bytes
from .device_array import DeviceArray
from .plan import Plan
from .slabs import ends_of

# On a processor a work-group is a loop, and unrolling only makes it longer to compile.
_ON_PROCESSORS = Tuning(threads=64, in_flight=16, shared=8192, unroll=False)
# PoCL's vectorizer (3.0, on LLVM 14) gives wrong results for some kernels that are right without it; and since a
# processor has the native engine for speed, its kernels are only compiled, not optimized: also five times as fast.
_PLAIN_CODE = "Portable Computing Language"
_INSTALL = "pip install 'tilewright[opencl]', and a driver for your device or 'pyopencl[pocl]' for the processor"


_compiled: CompiledPlans[list[Launch]] = CompiledPlans(table_bytes)


def why_not() -> str | None:
    """Return why there is no OpenCL here and what to do about it, or None if there is.

    >>> reason = why_not()
    >>> reason is None or "OpenCL" in reason
    True
    """
    return _found()[1]


@cache
def _found() -> tuple[Any, str | None]:
    """Return the queue of the first device, or the reason that there is none."""
    try:
        cl: Any = import_module("pyopencl")
    except ImportError as problem:
        return None, f"OpenCL needs PyOpenCL ({problem}); {_INSTALL}"
    try:
        context = cl.create_some_context(interactive=False)
    except (cl.Error, RuntimeError) as problem:
        return None, f"OpenCL found no device ({problem}); {_INSTALL}"
    from .opencl_arrays import queue_of

    return queue_of(context), None


def can_run(plan: Plan) -> bool:
    """Return whether there is a device and it knows the formats of a plan.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> can_run(plan_copy(Placement(Layout(32), "int8"), Placement(Layout(32), "mxfp4", tile_elements=32)))
    False
    """
    return knows_formats(plan) and why_not() is None


def home() -> Any:
    """Return where host data goes: the first device, or the one that PYOPENCL_CTX names."""
    queue, problem = _found()
    if problem:
        raise DeviceError(f"the opencl engine cannot run: {problem}")
    from .opencl_arrays import OpenCLHome

    return OpenCLHome(queue)


def run(plan: Plan, source: DeviceArray, target: DeviceArray, tuning: Tuning | None = None) -> None:
    """Enqueue a plan on the queue of the target; the host does not wait for it."""
    cl: Any = import_module("pyopencl")
    queue = target.home.queue
    starts = [array.span[0] for array in (source, target)]
    low, high = (int(np.gcd(WIDEST, start)) for start in starts)
    for array, aligned in ((source, low), (target, high)):
        if aligned < min(WIDEST, array.itemsize):
            raise TransferError(f"memory at byte {array.span[0]} of a buffer is not aligned to {array.format.name}")
    key = ("opencl", queue.context.int_ptr, queue.device.int_ptr, low, high, tuning)
    launches = _compiled.get(plan, key, lambda: _built(cl, plan, queue, (low, high), tuning))
    try:
        ends = ends_of(plan, source, target, lambda count: target.home.empty((count,), format_of("float32")))
        for launch in launches:
            kernel, shape = launch.kernel, launch.shape
            _, read, written = ends[shape.step]
            begin = [np.uint64(array.span[0]) for array in (read, written)]
            arguments = [read.memory, written.memory, *begin, *launch.tables, *launch.scalars]
            for k, argument in enumerate(arguments):
                kernel.set_arg(k, argument)
            cl.enqueue_nd_range_kernel(queue, kernel, (shape.groups * shape.threads,), (shape.threads,))
    except cl.Error as problem:
        raise DeviceError(f"{queue.device.name} could not run the plan: {problem}; use engine='native'") from problem


def launch(kernel: Any, home: Any, arrays: Sequence[DeviceArray], groups: int | None) -> None:
    """Enqueue the kernel of a pipeline with its operands; the host does not wait for it."""
    cl: Any = import_module("pyopencl")
    queue, shape = home.queue, kernel.launch_shape
    device = queue.device
    need, doubles = kernel.local_bytes, "f64" in kernel.source
    if doubles and not device.double_fp_config:
        raise FormatError(f"{device.name} has no float64; use float32, or run the pipeline on the host")
    if need > device.local_mem_size or shape.threads > device.max_work_group_size:
        raise TransferError(
            f"the kernel takes {need} bytes of local memory and {shape.threads} threads, {device.name} has"
            f" {device.local_mem_size} and {device.max_work_group_size}; use smaller tiles, fewer threads, or"
            " scheme='duplex'"
        )
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR

    def make() -> tuple[Any, list[Any]]:
        built = cl.Kernel(compiled(cl, queue.context, device, kernel.source), shape.name)
        return built, [cl.Buffer(queue.context, flags, hostbuf=table) for table in kernel.tables()]

    try:
        program, tables = kernel.built((queue.context.int_ptr, device.int_ptr), make)
    except cl.Error as problem:
        raise TransferError(f"{device.name} could not compile the kernel, is its compute C?\n{problem}") from None
    starts = kernel.starts(arrays)
    places = [each for array, start in zip(arrays, starts, strict=True) for each in (array.memory, np.uint64(start))]
    try:
        for k, argument in enumerate([*places, *tables]):
            program.set_arg(k, argument)
        count = min(kernel.pipeline.tiles, groups or 4 * device.max_compute_units)
        cl.enqueue_nd_range_kernel(queue, program, (count * shape.threads,), (shape.threads,))
    except cl.Error as problem:
        raise DeviceError(f"{device.name} could not run the kernel: {problem}") from problem


def _built(cl: Any, plan: Plan, queue: Any, aligned: tuple[int, int], tuning: Tuning | None) -> list[Launch]:
    device = queue.device
    doubles = format_of("float64") in (plan.source.format, plan.target.format)
    if doubles and not device.double_fp_config:
        raise FormatError(f"{device.name} has no float64; use engine='native', or convert to float32 first")
    program = generate(plan, "opencl", aligned, tuning or _tunings(cl, device))
    try:
        built = compiled(cl, queue.context, device, program.text)
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


def _tunings(cl: Any, device: Any) -> dict[str, Tuning]:
    """Return how kernels are cut for a device: as for a large one, within its limits."""
    chosen = dict.fromkeys(DEFAULTS, _ON_PROCESSORS) if device.type & cl.device_type.CPU else DEFAULTS
    threads, shared = device.max_work_group_size // 2, device.local_mem_size // 2
    return {
        kind: replace(each, threads=min(each.threads, threads), shared=min(each.shared, shared))
        for kind, each in chosen.items()
    }


def compiled(cl: Any, context: Any, device: Any, text: str) -> Any:
    """Return a built program, from the kernels on disk or from its text."""
    options = ["-cl-opt-disable"] if device.platform.name == _PLAIN_CODE else []
    facts = ["opencl", *_identity(device), cl.VERSION_TEXT, *options, text]

    def from_text() -> Any:
        return cl.Program(context, text).build(options=options, devices=[device], cache_dir=False)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)  # remarks of the driver's compiler
        binary = kernel_cache.kept(facts, lambda: _binary(from_text(), device))
        try:
            return cl.Program(context, [device], [binary]).build(options=options, devices=[device])
        except cl.Error:  # the driver does not take back what it gave
            kernel_cache.forget(facts)
            return from_text()


def _identity(device: Any) -> list[str]:
    return [str(each) for each in (device.platform.name, device.platform.version, device.name, device.driver_version)]


def _binary(program: Any, device: Any) -> bytes:
    devices = [each.int_ptr for each in program.get_info(import_module("pyopencl").program_info.DEVICES)]
    return bytes(program.get_info(import_module("pyopencl").program_info.BINARIES)[devices.index(device.int_ptr)])
