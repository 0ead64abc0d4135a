# SPDX-License-Identifier: Apache-2.0
"""The CUDA engine: runs plans as generated kernels, compiled by NVRTC through CuPy.

Work is enqueued on the current stream of the caller's library. Kernels are cached in memory by plan, and on disk by
program, architecture, driver and compiler.
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
from ..formats import float32
from .codegen import WIDEST, Tuning, generate_program, supports_formats
from .device_array import DeviceArray
from .kernel_cache import Launch, PlanCache, launch_table_bytes, load_or_compile, remove_entry
from .plan import Plan, step_operands

NAME = "cuda"
# CUDA's numbers of device attributes: shared memory per block, shared memory per multiprocessor, multiprocessors
_ATTRIBUTES = (97, 81, 16)
# Results must be exact: no fused approximations, no flushing of subnormals.
NVRTC_OPTIONS = ("--std=c++17", "--ftz=false", "--prec-div=true", "--fmad=false")
_FAST_COMPILE_OPTIONS = ("-w", "--minimal")  # from NVRTC 12.9 on
_INSTALL = "pip install 'tilewright[cuda]', with a driver for an NVIDIA device"

_launches: PlanCache[list[Launch]] = PlanCache(launch_table_bytes)


@cache
def unavailable_reason() -> str | None:
    """Return why CUDA cannot be used and what to do about it, or None if it can.

    >>> reason = unavailable_reason()
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
    """Return whether there is a device and it supports the formats of a plan.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> can_run(plan_copy(Placement(Layout(32), "int8"), Placement(Layout(32), "mxfp4", tile_elements=32)))
    False
    """
    return supports_formats(plan) and unavailable_reason() is None


def default_backend() -> Any:
    """Return the backend for host data: the current CUDA device, with arrays of CuPy."""
    problem = unavailable_reason()
    if problem:
        raise DeviceError(f"the cuda engine cannot run: {problem}")
    from .cuda_arrays import CudaBackend

    return CudaBackend(int(import_module("cupy").cuda.runtime.getDevice()), "cupy")


def run_plan(plan: Plan, source: DeviceArray, target: DeviceArray, tuning: Tuning | None = None) -> None:
    """Enqueue a plan on the current stream of the target's library; the host does not wait for it."""
    problem = unavailable_reason()
    if problem:
        raise DeviceError(f"the cuda engine cannot run: {problem}")
    if source.backend.device != target.backend.device:
        raise TransferError(
            f"the source is on CUDA device {source.backend.device} and the target on {target.backend.device};"
            " copy the source to the target's device first"
        )
    addresses = [array.memory + array.span[0] for array in (source, target)]
    low, high = (gcd(WIDEST, address) for address in addresses)
    for array, address, aligned in zip((source, target), addresses, (low, high), strict=True):
        if aligned < min(WIDEST, array.itemsize):
            raise TransferError(f"address {address:#x} is not aligned to {array.format.name}; copy the array first")
    device = target.backend.device
    with translate_errors(device), target.backend.current_stream():
        key = (device, low, high, tuning)
        launches = _launches.get(plan, key, lambda: _compile_plan(plan, device, (low, high), tuning))
        steps = step_operands(plan, source, target, lambda count: target.backend.empty((count,), float32))
        for launch in launches:
            kernel = launch.kernel
            _, *operands = steps[kernel.step]
            starts = [np.uint64(array.memory + array.span[0]) for array in operands]
            arguments = (*starts, *launch.tables, *launch.scalars)
            launch.function((kernel.groups,), (kernel.threads,), arguments, shared_mem=kernel.large_shared)


def launch_tile_kernel(kernel: Any, backend: Any, arrays: Sequence[DeviceArray], groups: int | None) -> None:
    """Enqueue the kernel of a pipeline on the current stream with its operands; the host does not wait for it."""
    cupy: Any = import_module("cupy")
    device, shape = backend.device, kernel.launch_shape
    per_block, per_processor, processors = (
        cupy.cuda.runtime.deviceGetAttribute(attribute, device) for attribute in _ATTRIBUTES
    )
    if kernel.local_bytes > per_block:
        raise TransferError(
            f"the kernel needs {kernel.local_bytes} bytes of shared memory, CUDA device {device} has {per_block}; use"
            " smaller tiles, or scheme='duplex'"
        )
    if any(array.backend.device != device for array in arrays):
        raise TransferError("the operands are on different CUDA devices; copy them to one device first")

    def make() -> tuple[Any, list[Any]]:
        program = get_function(load_module(kernel.source, device), shape.name, shape.large_shared)
        return program, [cupy.asarray(table) for table in kernel.coordinate_tables()]

    with translate_errors(device), backend.current_stream():
        program, tables = kernel.build_once(device, make)
        resident = min(2048 // shape.threads, per_processor // (kernel.local_bytes + 1024))
        count = min(kernel.pipeline.tiles, groups or max(1, resident) * processors)
        starts = [
            np.uint64(array.memory + start) for array, start in zip(arrays, kernel.element_offsets(arrays), strict=True)
        ]
        program((count,), (shape.threads,), (*starts, *tables), shared_mem=shape.large_shared)


@contextmanager
def translate_errors(device: int) -> Iterator[None]:
    """Turn errors of CuPy and torch into a DeviceError with a remedy."""
    cupy: Any = import_module("cupy")
    try:
        yield
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as problem:
        raise DeviceError(f"CUDA device {device} failed: {problem}; the process may have to be restarted") from problem
    except Exception as problem:
        if "OutOfMemory" not in type(problem).__name__:  # CuPy's and torch's have no common base class
            raise
        raise DeviceError(
            f"CUDA device {device} is out of memory ({problem}); free arrays, or copy less at once"
        ) from problem


def _compile_plan(plan: Plan, device: int, aligned: tuple[int, int], tuning: Tuning | None) -> list[Launch]:
    cupy: Any = import_module("cupy")
    program = generate_program(plan, "cuda", aligned, tuning)
    module = load_module(program.text, device)
    return [
        Launch(
            get_function(module, kernel.name, kernel.large_shared),
            kernel,
            [cupy.asarray(table) for table in kernel.tables],
            kernel.scalars,
        )
        for kernel in program.kernels
    ]


def get_function(module: Any, name: str, dynamic_shared: int = 0) -> Any:
    """Return a kernel of a module with a limit for the bytes of dynamic shared memory."""
    function = module.get_function(name)
    if dynamic_shared:
        driver: Any = import_module("cupy").cuda.driver
        driver.funcSetAttribute(function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic_shared)
    return function


@lru_cache(maxsize=256)  # plans that differ only in extents may have the same program
def load_module(text: str, device: int) -> Any:
    """Return a program as a module of the device, which must be the current one."""
    cupy: Any = import_module("cupy")
    architecture, driver = _device_identity(device)
    module = cupy.cuda.function.Module()
    facts = ["cuda", architecture, driver, _nvrtc_version(), *NVRTC_OPTIONS, text]
    try:
        module.load(load_or_compile(facts, lambda: compile_cubin(text, architecture)))
    except cupy.cuda.driver.CUDADriverError:  # the driver rejects the cached code
        remove_entry(facts)
        module = cupy.cuda.function.Module()
        module.load(compile_cubin(text, architecture))
    return module


def compile_cubin(text: str, architecture: str, options: Sequence[str] = NVRTC_OPTIONS) -> bytes:
    """Return the machine code of a program for an architecture such as "90"."""
    nvrtc: Any = import_module("cupy").cuda.nvrtc
    program = nvrtc.createProgram(text, "tilewright.cu", (), ())
    try:
        fast = _FAST_COMPILE_OPTIONS if nvrtc.getVersion() >= (12, 9) else ()
        nvrtc.compileProgram(program, (*options, *fast, f"-arch=sm_{architecture}"))
        return bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as problem:
        log = str(nvrtc.getProgramLog(program)).strip("\0 \n")
        raise DeviceError(f"{_nvrtc_version()} could not compile for sm_{architecture}: {problem}\n{log}") from problem
    finally:
        nvrtc.destroyProgram(program)


@cache
def _nvrtc_version() -> str:
    return f"NVRTC {'.'.join(map(str, import_module('cupy').cuda.nvrtc.getVersion()))}"


@cache
def _device_identity(device: int) -> tuple[str, str]:
    """Return the architecture of a device, such as "90", and the version of its driver."""
    runtime = import_module("cupy").cuda.runtime
    return str(import_module("cupy").cuda.Device(device).compute_capability), str(runtime.driverGetVersion())
