# SPDX-License-Identifier: Apache-2.0
"""The CUDA engine: plans as generated kernels, compiled by NVRTC through CuPy.

Work is put on the stream that the caller's library uses at that moment, and nothing waits for it. Kernels are kept in
memory by plan, and on disk by program, architecture, driver and compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import import_module
from math import gcd
from typing import Any

import numpy as np

from ..errors import DeviceError, TransferError
from ..formats import format_of
from . import cuda_compiler
from .codegen import Tuning, generate, knows_formats
from .codegen.kernel import WIDEST
from .compiled import CompiledPlans, Launch, table_bytes
from .device_array import DeviceArray
from .plan import Plan
from .slabs import ends_of

# CUDA's numbers of what is asked: shared memory that a block can have, and a multiprocessor, and how many there are.
_FACTS = (97, 81, 16)
_INSTALL = "pip install 'tilewright[cuda]', with a driver for an NVIDIA device"


_compiled: CompiledPlans[list[Launch]] = CompiledPlans(table_bytes)


@cache
def why_not() -> str | None:
    """Return why there is no CUDA here and what to do about it, or None if there is.

    >>> reason = why_not()
    >>> reason is None or "CUDA" in reason
    True
    """
    try:
        cupy: Any = import_module("cupy")
    except ImportError as problem:
        return f"CUDA needs CuPy ({problem}); {_INSTALL}"
    try:
        if cupy.cuda.runtime.getDeviceCount() < 1:
            return f"CUDA found no device; {_INSTALL}"
    except cupy.cuda.runtime.CUDARuntimeError as problem:
        return f"CUDA found no device ({problem}); {_INSTALL}"
    return None


def can_run(plan: Plan) -> bool:
    """Return whether there is a device and it knows the formats of a plan.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> can_run(plan_copy(Placement(Layout(32), "int8"), Placement(Layout(32), "mxfp4", tile_elements=32)))
    False
    """
    return knows_formats(plan) and why_not() is None


def home() -> Any:
    """Return where host data goes: the current CUDA device, in arrays of CuPy."""
    problem = why_not()
    if problem:
        raise DeviceError(f"the cuda engine cannot run: {problem}")
    from .cuda_arrays import CudaHome

    return CudaHome(int(import_module("cupy").cuda.runtime.getDevice()), "cupy")


def run(plan: Plan, source: DeviceArray, target: DeviceArray, tuning: Tuning | None = None) -> None:
    """Put a plan on the current stream of the target's library; the host does not wait for it."""
    problem = why_not()
    if problem:
        raise DeviceError(f"the cuda engine cannot run: {problem}")
    if source.home.device != target.home.device:
        raise TransferError(
            f"the source is on CUDA device {source.home.device} and the target on {target.home.device};"
            " copy the source to the target's device first"
        )
    places = [array.memory + array.span[0] for array in (source, target)]
    low, high = (gcd(WIDEST, place) for place in places)
    for array, place, aligned in zip((source, target), places, (low, high), strict=True):
        if aligned < min(WIDEST, array.itemsize):
            raise TransferError(f"memory at {place:#x} is not aligned to {array.format.name}")
    device = target.home.device
    with reported(device), target.home.on_stream():
        launches = _compiled.get(plan, (device, low, high, tuning), lambda: _built(plan, device, (low, high), tuning))
        ends = ends_of(plan, source, target, lambda count: target.home.empty((count,), format_of("float32")))
        for launch in launches:
            shape = launch.shape
            _, *memory = ends[shape.step]
            given = (*[np.uint64(array.memory + array.span[0]) for array in memory], *launch.tables, *launch.scalars)
            launch.kernel((shape.groups,), (shape.threads,), given, shared_mem=shape.large_shared)


def launch(kernel: Any, home: Any, arrays: Sequence[DeviceArray], groups: int | None) -> None:
    """Put the kernel of a pipeline on the current stream with its operands; the host does not wait for it."""
    cupy: Any = import_module("cupy")
    device, shape = home.device, kernel.launch_shape
    most, on_each, processors = (cupy.cuda.runtime.deviceGetAttribute(fact, device) for fact in _FACTS)
    if kernel.local_bytes > most:
        raise TransferError(
            f"the kernel takes {kernel.local_bytes} bytes of shared memory, CUDA device {device} has {most}; use"
            " smaller tiles, or scheme='duplex'"
        )
    if any(array.home.device != device for array in arrays):
        raise TransferError("the operands are on several CUDA devices; copy them to one first")

    def make() -> tuple[Any, list[Any]]:
        program = function_of(loaded(kernel.source, device), shape.name, shape.large_shared)
        return program, [cupy.asarray(table) for table in kernel.tables()]

    with reported(device), home.on_stream():
        program, tables = kernel.built(device, make)
        resident = min(2048 // shape.threads, on_each // (kernel.local_bytes + 1024))
        count = min(kernel.pipeline.tiles, groups or max(1, resident) * processors)
        places = [np.uint64(array.memory + start) for array, start in zip(arrays, kernel.starts(arrays), strict=True)]
        program((count,), (shape.threads,), (*places, *tables), shared_mem=shape.large_shared)


@contextmanager
def reported(device: int) -> Iterator[None]:
    """Turn what goes wrong on a device into an error that says what to do."""
    cupy: Any = import_module("cupy")
    try:
        yield
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as problem:
        raise DeviceError(
            f"CUDA device {device} failed: {problem}; after such an error the process often has to be started anew"
        ) from problem
    except Exception as problem:
        if "OutOfMemory" not in type(problem).__name__:  # CuPy's and torch's have no ancestor in common
            raise
        raise DeviceError(
            f"CUDA device {device} has no room left ({problem}); free arrays, or move less at once"
        ) from problem


def _built(plan: Plan, device: int, aligned: tuple[int, int], tuning: Tuning | None) -> list[Launch]:
    cupy: Any = import_module("cupy")
    program = generate(plan, "cuda", aligned, tuning)
    module = loaded(program.text, device)
    return [
        Launch(
            function_of(module, kernel.name, kernel.large_shared),
            kernel,
            [cupy.asarray(table) for table in kernel.tables],
            kernel.scalars,
        )
        for kernel in program.kernels
    ]


def function_of(module: Any, name: str, shared: int = 0) -> Any:
    """Return a kernel of a module, allowed so many bytes of shared memory beyond what it declares."""
    found = module.get_function(name)
    if shared:
        driver: Any = import_module("cupy").cuda.driver
        driver.funcSetAttribute(found.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
    return found


@lru_cache(maxsize=256)  # plans that differ in extents alone may have one program
def loaded(text: str, device: int) -> Any:
    """Return a program as a module of the device, which has to be the current one."""
    cupy: Any = import_module("cupy")
    architecture, driver = _identity(device)
    module = cupy.cuda.function.Module()
    try:
        module.load(cuda_compiler.machine_code(text, architecture, driver))
    except cupy.cuda.driver.CUDADriverError:  # a driver that does not take what was compiled for it
        cuda_compiler.forget(text, architecture, driver)
        module = cupy.cuda.function.Module()
        module.load(cuda_compiler.compiled(text, architecture))
    return module


@cache
def _identity(device: int) -> tuple[str, str]:
    """Return the architecture of a device, such as "90", and the version of its driver."""
    runtime = import_module("cupy").cuda.runtime
    return str(import_module("cupy").cuda.Device(device).compute_capability), str(runtime.driverGetVersion())
