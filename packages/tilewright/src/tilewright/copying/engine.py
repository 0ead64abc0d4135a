# SPDX-License-Identifier: Apache-2.0
"""`execute`: runs a plan on the engine that is asked for, that the environment names, or the fastest that supports it.

If a device has no code for a format, engine "auto" copies the data through the host instead, with a warning.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from math import prod
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from ..errors import DeviceError, FormatError, TilewrightError, TransferError
from ..formats import uint8
from . import cuda_engine, native_engine, native_library, opencl_engine, reference_engine
from .device_array import Array, Backend, DeviceArray
from .dlpack import as_host_array
from .host_memory import Buffer, footprint_of, overlap_error
from .plan import Plan, step_operands

DEVICE_ENGINES = ("opencl", "cuda")
ENGINES = ("auto", "native", "reference", *DEVICE_ENGINES)
Runner: TypeAlias = Callable[[int, int], None]
Operand: TypeAlias = "Array | DeviceArray"

_warned: set[str] = set()


def execute(plan: Plan, source: Any, target: Any, threads: int | None = None, engine: str | None = None) -> None:
    """Run a `plan` on the memory of two arrays, `source` and `target`, in host or device memory.

    `engine` is "native", "reference", "opencl", "cuda" or "auto": the device that holds an array, otherwise native if
    it supports the plan. The default is the environment variable TILEWRIGHT_ENGINE, or "auto". `threads` on the host
    default to TILEWRIGHT_THREADS, or to all cores. Work on a device is enqueued, and only waited for if an array is in
    host memory.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "int8"), Placement(col_major(2, 3), "int8"))
    >>> copied = np.zeros(6, dtype=np.int8)
    >>> execute(plan, np.arange(6, dtype=np.int8), copied)
    >>> copied.tolist()
    [0, 3, 1, 4, 2, 5]
    """
    name = resolve_engine(engine)
    count = resolve_threads(threads)
    read, written = find_device_array(source) or source, find_device_array(target) or target
    backend = common_backend(read, written)
    if backend is None and name not in DEVICE_ENGINES:
        _run_on_host(plan, source, target, count, name)
        return
    if backend is not None and name not in ("auto", backend.engine):
        raise TransferError(
            f"an array in {backend.engine} memory cannot be copied by engine={name!r}; use engine='auto', or copy it to"
            " the host first"
        )
    validate_operands(plan, read, written)
    engine_module = load_engine(name if backend is None else backend.engine)
    try:
        _run_on_device(plan, read, written, engine_module, backend or engine_module.default_backend())
    except FormatError as problem:
        if name != "auto":
            raise TransferError(f"the {engine_module.NAME} engine cannot run this plan: {problem}") from None
        _run_through_host(plan, read, written, count)
        _warn_once(str(problem), str(problem))
    except DeviceError as problem:
        if name != "auto":
            raise
        try:
            _run_through_host(plan, read, written, count)
        except TilewrightError:
            raise problem from None  # the device does not even return its memory
        _warn_once(engine_module.NAME, str(problem))


def find_device_array(array: Any) -> DeviceArray | None:
    """Return an array in device memory as a `DeviceArray`, or None for any other array.

    >>> find_device_array(np.zeros(3)) is None
    True
    """
    if isinstance(array, np.ndarray):
        return None
    if isinstance(array, DeviceArray):
        return array
    memory = getattr(array, "device_memory", None)  # our own buffers
    if memory is not None:
        return memory.array if isinstance(memory.array, DeviceArray) else None
    if "pyopencl" in sys.modules and (opencl_array := opencl_engine.find_opencl_array(array)) is not None:
        return opencl_array
    return cuda_engine.find_cuda_array(array)


def as_operand(array: Any) -> Any:
    """Return an array in device memory as a `DeviceArray`, any other as a NumPy array, sharing memory if possible.

    >>> as_operand([1, 2]).tolist()
    [1, 2]
    """
    if isinstance(array, (np.ndarray, DeviceArray)):
        return array
    return find_device_array(array) or as_host_array(array)


def load_engine(name: str) -> ModuleType:
    """Return the module of a device engine, "opencl" or "cuda"; its `unavailable_reason()` says whether it can run.

    >>> reason = load_engine("opencl").unavailable_reason()
    >>> reason is None or "OpenCL" in reason
    True
    """
    return {"opencl": opencl_engine, "cuda": cuda_engine}[name]


def select_host_engine(plan: Plan, engine: str | None = None) -> str:
    """Return the engine that runs a plan on host memory: "native" or "reference".

    The name of a device engine, which the environment may give for everything, counts as "auto".

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> select_host_engine(plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8")), "reference")
    'reference'
    """
    name = resolve_engine(engine)
    if name in ("auto", *DEVICE_ENGINES):
        return "native" if native_engine.can_run(plan) else "reference"
    if name == "native" and not native_engine.can_run(plan):
        formats = f"{plan.source.format.name} to {plan.target.format.name}"
        reason = native_library.unavailable_reason() or f"it does not support {formats}"
        raise TransferError(f"the native engine cannot run this plan: {reason}; use engine='auto'")
    return name


def make_runner(plan: Plan, threads: int = 1, engine: str | None = None, streaming: bool = False) -> Runner:
    """Return a function that runs a plan from a source address to a target address, without any checks.

    The caller guarantees that both sides have the memory that the plan accesses, that the target is writeable, and that
    they do not overlap. `engine` and `threads` are those of `execute`. With `streaming`, stores bypass the caches: for
    a target that is larger than the caches although the plan is not.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> copy_two = make_runner(plan_copy(Placement(Layout(2), "int16"), Placement(Layout(2), "int16")))
    >>> a, b = np.arange(6, dtype=np.int16), np.zeros(6, dtype=np.int16)
    >>> copy_two(a.ctypes.data + 4, b.ctypes.data)
    >>> b.tolist()
    [2, 3, 0, 0, 0, 0]
    """
    is_native = select_host_engine(plan, engine) == "native"
    if is_native and not plan.stages:
        return native_engine.NativeRunner(plan, threads, streaming)
    read_bytes, written_bytes = plan.source.nbytes, plan.target.nbytes

    def run_steps(source: int, target: int) -> None:
        read, written = Buffer(source, read_bytes, None, False), Buffer(target, written_bytes, None, True)
        _run_steps(plan, read, written, threads, is_native)

    return run_steps


def resolve_engine(engine: str | None) -> str:
    """Return the name of the engine to use: the argument, the environment's, or "auto".

    >>> resolve_engine("native")
    'native'
    """
    name = engine or os.environ.get("TILEWRIGHT_ENGINE") or "auto"
    if name not in ENGINES:
        raise TransferError(f"unknown engine {name!r}; use one of {', '.join(ENGINES)}")
    return name


def resolve_threads(threads: int | None) -> int:
    """Return the number of threads to use: the argument, the environment's, or 0 for all cores.

    >>> resolve_threads(2)
    2
    """
    value = os.environ.get("TILEWRIGHT_THREADS") or "0" if threads is None else threads
    name = "TILEWRIGHT_THREADS" if threads is None else "threads"
    try:
        count = int(value)
    except ValueError:
        count = -1
    if count < 0:
        raise TransferError(f"{name} must be a positive number, or 0 for all cores, got {value!r}")
    return count


def common_backend(source: Operand, target: Operand) -> Backend | None:
    """Return the backend of the device arrays among the operands, or None if both are in host memory.

    >>> common_backend(np.zeros(2), np.zeros(2)) is None
    True
    """
    backends = [operand.backend for operand in (source, target) if isinstance(operand, DeviceArray)]
    if len(backends) == 2 and backends[0].engine != backends[1].engine:
        raise TransferError(
            f"the source is in {backends[0].engine} memory and the target in {backends[1].engine} memory; copy one of"
            " them to the host first"
        )
    return backends[0] if backends else None


def validate_operands(plan: Plan, source: Operand, target: Operand) -> tuple[Buffer, Buffer]:
    """Return the memory of two operands; raise if a plan cannot run on it.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8"))
    >>> [buffer.nbytes for buffer in validate_operands(plan, np.zeros(4, np.int8), np.zeros(4, np.int8))]
    [4, 4]
    """
    read, written = _buffer_of(source), _buffer_of(target)
    _validate_memory(plan, read, written, _are_in_same_memory(source, target))
    return read, written


def _validate_memory(plan: Plan, source: Buffer, target: Buffer, same_memory: bool = True) -> None:
    """Raise if the memory of two operands, on host or device, is too small, read-only, or overlaps.

    `same_memory` says that the addresses of both are in the same memory, so that they can overlap.
    """
    if not target.writeable:
        raise TransferError("the target is read-only; pass a writeable array as out")
    for name, buffer, place in (("source", source, plan.source), ("target", target, plan.target)):
        if buffer.nbytes < place.nbytes:
            raise TransferError(
                f"the {name} has {buffer.nbytes} bytes, but layout {place.layout} of {place.format.name} needs"
                f" {place.nbytes}"
            )
    if same_memory and source.overlaps(target):
        read, written = footprint_of(plan.source, source.address), footprint_of(plan.target, target.address)
        if read.overlaps(written):
            raise overlap_error()


def _are_in_same_memory(source: Operand, target: Operand) -> bool:
    """Return whether the addresses of two operands can be compared."""
    if isinstance(source, DeviceArray) and isinstance(target, DeviceArray):
        # addresses are integers in CUDA; an OpenCL buffer is a memory of its own
        return isinstance(source.memory, int) or bool(source.memory == target.memory)
    return not isinstance(source, DeviceArray) and not isinstance(target, DeviceArray)


def _buffer_of(operand: Operand) -> Buffer:
    return operand.buffer if isinstance(operand, DeviceArray) else Buffer.of(operand)


def _run_on_host(plan: Plan, source: Array, target: Array, threads: int, engine: str) -> None:
    read, written = Buffer.of(source), Buffer.of(target)
    _validate_memory(plan, read, written)
    _run_steps(plan, read, written, threads, select_host_engine(plan, engine) == "native")


def _run_steps(plan: Plan, read: Buffer, written: Buffer, threads: int, is_native: bool) -> None:
    for step, step_read, step_written in step_operands(plan, read, written, _allocate_scratch):
        if is_native:
            native_engine.run_plan(step, step_read.address, step_written.address, threads)
        else:
            reference_engine.run_plan(step, step_read.bytes, step_written.bytes)


def _allocate_scratch(count: int) -> Buffer:
    return Buffer.of(np.empty(count, dtype=np.float32))


def _run_on_device(plan: Plan, source: Operand, target: Operand, engine_module: Any, backend: Backend) -> None:
    """Run a plan on a device; host arrays are uploaded first and downloaded afterwards."""
    read = source if isinstance(source, DeviceArray) else _upload(source, backend)
    if isinstance(target, DeviceArray):
        engine_module.run_plan(plan, read, target)
        return
    memory = Buffer.of(target)
    # bytes that the plan does not write must come back unchanged
    written = backend.empty((memory.nbytes,), uint8) if _overwrites_target(plan, memory) else _upload(target, backend)
    engine_module.run_plan(plan, read, written)
    backend.download(written, memory.bytes)


def _upload(array: Array, backend: Backend) -> DeviceArray:
    """Return a copy of the memory of a host array on the device."""
    memory = Buffer.of(array)
    uploaded = backend.empty((memory.nbytes,), uint8)
    backend.upload(memory.bytes, uploaded)
    return uploaded


def _overwrites_target(plan: Plan, memory: Buffer) -> bool:
    """Return whether a plan writes every byte of its target."""
    return not plan.packs and prod(plan.target.extents) * plan.target.itemsize == memory.nbytes


def _run_through_host(plan: Plan, source: Operand, target: Operand, threads: int) -> None:
    """Run a plan on the host; device arrays are downloaded first and uploaded afterwards."""
    read, written = (
        _download(operand) if isinstance(operand, DeviceArray) else operand for operand in (source, target)
    )
    _run_on_host(plan, read, written, threads, "auto")
    if isinstance(target, DeviceArray):
        target.backend.upload(written, target.as_bytes())


def _download(array: DeviceArray) -> Array:
    """Return a copy of the memory of a device array on the host."""
    flat = array.as_bytes()
    data = np.empty(flat.size, dtype=np.uint8)
    array.backend.download(flat, data)
    return data


def _warn_once(topic: str, reason: str) -> None:
    """Warn, once per topic, that data is copied through the host."""
    if topic not in _warned:
        _warned.add(topic)
        warnings.warn(f"copying through the host: {reason}", RuntimeWarning, stacklevel=4)
