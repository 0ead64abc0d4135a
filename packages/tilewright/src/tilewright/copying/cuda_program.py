# SPDX-License-Identifier: Apache-2.0
"""Plans compiled for a CUDA device by NVRTC through CuPy, and their launches.

A launch is prepared once: a call fills in two addresses and hands the kernel to the driver. Kernels are cached in
memory by plan, and on disk by program, architecture, driver and compiler.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from importlib import import_module
from threading import Lock
from typing import Any, TypeVar

from ..errors import DeviceError
from .codegen import MAX_BATCH, Kernel, Tuning, generate_program
from .kernel_cache import PlanCache, load_or_compile, remove_entry
from .plan import Plan

# Results must be exact: no fused approximations, no flushing of subnormals.
NVRTC_OPTIONS = ("--std=c++17", "--ftz=false", "--prec-div=true", "--fmad=false")
_FAST_COMPILE_OPTIONS = ("-w", "--minimal")  # from NVRTC 12.9 on


class KernelLaunch:
    """A kernel compiled for a device, with its launch size and all arguments but the two addresses.

    A call enqueues it. The driver copies the arguments before it returns, so one block of them serves all calls; a
    lock keeps two threads from filling it in at once.
    """

    __slots__ = ("_addresses", "_arguments", "_keep_alive", "_launch", "_lock", "_sizes", "kernel", "table_bytes")

    def __init__(self, kernel: Kernel, function: Any, tables: Sequence[Any]) -> None:
        self._launch = import_module("cupy").cuda.driver.launchKernel
        self.kernel = kernel
        self.table_bytes = sum([int(table.nbytes) for table in tables])
        self._sizes = (function.ptr, kernel.groups, 1, 1, kernel.threads, 1, 1, kernel.large_shared)
        self._addresses = (ctypes.c_uint64 * 2)()
        pointers = [ctypes.c_uint64(int(table.data.ptr)) for table in tables]
        start = ctypes.addressof(self._addresses)
        places = [start, start + 8, *[ctypes.addressof(value) for value in pointers]]
        block = (ctypes.c_void_p * len(places))(*places)
        self._arguments = ctypes.addressof(block)
        self._keep_alive = (function, tables, pointers, block)
        self._lock = Lock()

    def __call__(self, source: int, target: int, stream: int) -> None:
        with self._lock:
            self._addresses[0] = source
            self._addresses[1] = target
            self._launch(*self._sizes, stream, self._arguments, 0)

    def bind(self, source: int, target: int) -> Callable[[int], None]:
        """Return a function that enqueues the kernel with these addresses on a stream, without filling them in."""
        own = KernelLaunch(self.kernel, *self._keep_alive[:2])
        own._addresses[0], own._addresses[1] = source, target
        launch, arguments = partial(own._launch, *own._sizes), own._arguments

        def enqueue(stream: int, _owner: KernelLaunch = own) -> None:  # which keeps the arguments alive
            launch(stream, arguments, 0)

        return enqueue


class BatchLaunch:
    """A batched kernel compiled for a device: a call enqueues it for several tensors."""

    __slots__ = ("_arguments", "_function", "_launch", "kernel", "table_bytes")

    def __init__(self, kernel: Kernel, function: Any, tables: Sequence[Any]) -> None:
        self._launch = import_module("cupy").cuda.driver.launchKernel
        self.kernel, self._function = kernel, function
        self.table_bytes = sum([int(table.nbytes) for table in tables])
        self._arguments = [ctypes.c_uint64(int(table.data.ptr)) for table in tables]

    def __call__(self, sources: Sequence[int], targets: Sequence[int], stream: int) -> None:
        none = [0] * (MAX_BATCH - len(sources))
        addresses = (ctypes.c_uint64 * (2 * MAX_BATCH))(*sources, *none, *targets, *none)
        places = [ctypes.addressof(argument) for argument in (addresses, *self._arguments)]
        block = (ctypes.c_void_p * len(places))(*places)
        groups, threads = self.kernel.groups * len(sources), self.kernel.threads
        shape = (groups, 1, 1, threads, 1, 1, self.kernel.large_shared)
        self._launch(self._function.ptr, *shape, stream, ctypes.addressof(block), 0)


CompiledPlan = tuple[KernelLaunch, ...]
AnyLaunch = TypeVar("AnyLaunch", KernelLaunch, BatchLaunch)


def _table_bytes(launches: tuple[KernelLaunch, ...] | tuple[BatchLaunch, ...]) -> int:
    return sum([launch.table_bytes for launch in launches])


_compiled: PlanCache[CompiledPlan] = PlanCache(_table_bytes)
_compiled_batches: PlanCache[tuple[BatchLaunch, ...]] = PlanCache(_table_bytes)


def compile_plan(plan: Plan, device: int, aligned: tuple[int, int], tuning: Tuning | None = None) -> CompiledPlan:
    """Return the launches of a plan on a device, which must be the current one, for two alignments in bytes."""
    key = (device, aligned, tuning)
    return _compiled.get(plan, key, lambda: _compile_kernels(plan, device, aligned, tuning, KernelLaunch))


def compile_batch(plan: Plan, device: int, aligned: tuple[int, int]) -> tuple[BatchLaunch, ...]:
    """Return the launches of a plan for several tensors of the same placements."""
    key = (device, aligned)
    return _compiled_batches.get(plan, key, lambda: _compile_kernels(plan, device, aligned, None, BatchLaunch))


def _compile_kernels(
    plan: Plan, device: int, aligned: tuple[int, int], tuning: Tuning | None, kind: Callable[..., AnyLaunch]
) -> tuple[AnyLaunch, ...]:
    cupy: Any = import_module("cupy")
    program = generate_program(plan, "cuda", aligned, tuning, batched=kind is BatchLaunch)
    module = load_module(program.text, device)
    launches = []
    for kernel in program.kernels:
        function = get_function(module, kernel.name, kernel.large_shared)
        launches.append(kind(kernel, function, [cupy.asarray(table) for table in kernel.tables]))
    return tuple(launches)


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
