# SPDX-License-Identifier: Apache-2.0
"""`execute`: run a plan on the requested engine, the environment's choice, or the fastest that supports it.

If a device has no code for a format, engine "auto" copies the data through the host instead, with a warning.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd, prod
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..errors import DeviceError, FormatError, TilewrightError, TransferError
from ..formats import ScalarFormat, block_format_of, cast, scalar_format_of, uint8
from ..plugins import list_plugins
from . import native
from .calls import ReadyCopy, environment
from .devices import (
    DEVICE_ENGINES,
    WIDEST,
    ArrayLibrary,
    Backend,
    DeviceArray,
    DeviceRunner,
    Operand,
    as_host_array,
    find_device_array,
    load_engine,
)
from .placement import (
    Array,
    Buffer,
    LoopNest,
    Placement,
    address_of,
    aligned_empty,
    aligned_memory,
    fill_value,
    footprint_of,
    overlap_error,
)
from .plan import Plan, stage_operands

# The reference engine: runs plans in NumPy. It is always available, and all other engines must match it.

Bytes: TypeAlias = NDArray[np.uint8]
CHUNK = 1 << 20  # elements converted at a time, which bounds the temporary arrays


def run_plan(plan: Plan, source: Bytes, target: Bytes) -> None:
    """Run a plan of one stage on the bytes of source and target.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "uint8"), Placement(col_major(2, 3), "uint8"))
    >>> moved = np.zeros(6, dtype=np.uint8)
    >>> run_plan(plan, np.arange(6, dtype=np.uint8), moved)
    >>> moved.tolist()
    [0, 3, 1, 4, 2, 5]
    """
    for nest in plan.nests:
        if nest.elements or nest.operation == "pack":
            for chunk in _split_into_chunks(nest):
                _OPERATIONS[chunk.operation](plan, chunk, source, target)


def _split_into_chunks(nest: LoopNest) -> Iterator[LoopNest]:
    """Yield the nest in chunks of its outermost loops, each with a bounded number of elements."""
    inner = prod(nest.extents[1:]) * len(nest.element_offsets)
    if not nest.extents or nest.extents[0] * inner <= CHUNK:
        yield nest
        return
    rows = max(1, CHUNK // inner)
    for start in range(0, nest.extents[0], rows):
        count = min(rows, nest.extents[0] - start)
        slab = replace(
            nest,
            extents=(count, *nest.extents[1:]),
            source_offset=nest.source_offset + start * nest.source[0],
            target_offset=nest.target_offset + start * nest.target[0],
            scale_offset=nest.scale_offset + (start * nest.scale[0] if nest.scale else 0),
        )
        if count * inner <= CHUNK:
            yield slab
        else:  # a single row is too long: split the next loop
            yield from _split_into_chunks(
                replace(
                    slab, extents=nest.extents[1:], source=nest.source[1:], target=nest.target[1:], scale=nest.scale[1:]
                )
            )


def _read(nest: LoopNest, source: Bytes, dtype: DTypeLike, offset: int = 0) -> Array:
    """Return the elements that a nest reads, `offset` bytes further."""
    return np.ndarray(nest.extents, dtype, source.data, nest.source_offset + offset, nest.source)


def _written(nest: LoopNest, target: Bytes, dtype: DTypeLike, offset: int = 0) -> Array:
    """Return the elements that a nest writes, `offset` bytes further, as a view."""
    return np.ndarray(nest.extents, dtype, target.data, nest.target_offset + offset, nest.target)


def _scales(nest: LoopNest, packed: Bytes) -> Array:
    """Return the scales of the blocks of a nest, as a view."""
    return np.ndarray(nest.extents, np.uint8, packed.data, nest.scale_offset, nest.scale)


def _run_copy(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    before, after = scalar_format_of(plan.source.format), scalar_format_of(plan.target.format)
    if nest.tabulated:
        offsets = _table_offsets(nest, plan.source, nest.source, nest.source_offset)
        target_offsets = _table_offsets(nest, plan.target, nest.target, nest.target_offset)
        for start in range(0, offsets.size, CHUNK):
            picked = _unaligned_elements(source, before)[offsets[start : start + CHUNK]]
            _unaligned_elements(target, after)[target_offsets[start : start + CHUNK]] = cast(picked, after)
        return
    _written(nest, target, after.dtype)[...] = cast(_read(nest, source, before.dtype), after)


def _run_fill(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    after = scalar_format_of(plan.target.format)
    value = fill_value(plan.source, plan.target)
    if nest.tabulated:
        target_offsets = _table_offsets(nest, plan.target, nest.target, nest.target_offset)
        _unaligned_elements(target, after)[target_offsets] = value
        return
    _written(nest, target, after.dtype)[...] = value


def _run_pack(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    before, blocks = scalar_format_of(plan.source.format), block_format_of(plan.target.format)
    values = np.empty((*nest.extents, blocks.block), dtype=np.float32)
    for element, offset in enumerate(nest.element_offsets):
        if nest.data_mask >> element & 1:
            values[..., element] = cast(_read(nest, source, before.dtype, offset), "float32")
        else:
            values[..., element] = fill_value(plan.source, plan.target)
    sections = blocks.sections(blocks.block)
    packed = blocks.pack(values, tile_elements=blocks.block).reshape(*nest.extents, sections.total)
    _scales(nest, target)[...] = packed[..., 0]
    for k in range(sections.data):
        _written(nest, target, np.uint8, k)[...] = packed[..., sections.data_offset + k]


def _run_unpack(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    blocks, after = block_format_of(plan.source.format), scalar_format_of(plan.target.format)
    sections = blocks.sections(blocks.block)
    packed = np.zeros((*nest.extents, sections.total), dtype=np.uint8)
    packed[..., 0] = _scales(nest, source)
    for k in range(sections.data):
        packed[..., sections.data_offset + k] = _read(nest, source, np.uint8, k)
    values = cast(blocks.unpack(packed.reshape(-1), tile_elements=blocks.block), after)
    values = values.reshape(*nest.extents, blocks.block)
    for element, offset in enumerate(nest.element_offsets):
        if nest.data_mask >> element & 1:
            _written(nest, target, after.dtype, offset)[...] = values[..., element]


def _run_clear(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    _written(nest, target, np.uint8)[...] = 0


_OPERATIONS = {"copy": _run_copy, "fill": _run_fill, "pack": _run_pack, "unpack": _run_unpack, "clear": _run_clear}


def _table_offsets(nest: LoopNest, placement: Placement, strides: Sequence[int], offset: int) -> NDArray[np.int64]:
    """Return the byte offset of every element of a nest with tabulated modes."""
    assert nest.tabulated is not None
    total = placement.table_offsets(nest.tabulated) * placement.itemsize + offset
    for n, stride in zip(nest.extents, strides, strict=True):
        total = (total[:, None] + np.arange(n, dtype=np.int64) * stride).reshape(-1)
    return total


def _unaligned_elements(data: Bytes, element: ScalarFormat) -> Array:
    """Return a view in which index i is the element that starts at byte i."""
    return np.ndarray((max(0, data.size - element.itemsize + 1),), element.dtype, data.data, 0, (1,))


HOST_ENGINES = ("auto", "native", "reference")
ENGINES = (*HOST_ENGINES, *DEVICE_ENGINES)
Runner: TypeAlias = Callable[[int, int], None]

_warned: set[str] = set()


def execute(plan: Plan, source: object, target: object, threads: int | None = None, engine: str | None = None) -> None:
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
    read, written = _memory_of(source), _memory_of(target)
    backend = common_backend(read, written)
    if backend is None and name in HOST_ENGINES:
        _run_on_host(plan, read, written, count, name)
        return
    if backend is not None and name not in ("auto", backend.engine):
        raise TransferError(
            f"an array in {backend.engine} memory cannot be copied by engine={name!r}; use engine='auto', or copy it to"
            " the host first"
        )
    validate_operands(plan, read, written)
    device = backend or load_engine(name).default_backend()
    try:
        _run_on_device(plan, read, written, device)
    except FormatError as problem:
        if name != "auto":
            raise TransferError(f"the {name} engine cannot run this plan: {problem}") from None
        _run_through_host(plan, read, written, count)
        _warn_once(str(problem), str(problem))
    except DeviceError as problem:
        if name != "auto":
            raise
        try:
            _run_through_host(plan, read, written, count)
        except TilewrightError:
            raise problem from None  # the device does not even return its memory
        _warn_once(device.engine, str(problem))


def _memory_of(array: Any) -> Operand:
    """Return an array in device memory as a `DeviceArray`, a NumPy array as it is."""
    operand: Operand = find_device_array(array) or array
    return operand


def as_operand(array: object) -> Operand:
    """Return an array in device memory as a `DeviceArray`, any other as a NumPy array, sharing memory if possible.

    >>> as_operand([1, 2]).tolist()
    [1, 2]
    """
    if isinstance(array, (np.ndarray, DeviceArray)):
        return array
    return find_device_array(array) or as_host_array(array)


def select_host_engine(plan: Plan, engine: str | None = None) -> str:
    """Return the engine that runs a plan on host memory: "native" or "reference".

    The name of a device engine, which the environment may give for everything, counts as "auto".

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> select_host_engine(plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8")), "reference")
    'reference'
    """
    name = resolve_engine(engine)
    if name == "auto" or name not in HOST_ENGINES:
        return "native" if native.can_run(plan) else "reference"
    if name == "native" and not native.can_run(plan):
        formats = f"{plan.source.format.name} to {plan.target.format.name}"
        reason = native.unavailable_reason() or f"it does not support {formats}"
        raise TransferError(f"the native engine cannot run this plan: {reason}; use engine='auto'")
    return name


def make_runner(plan: Plan, threads: int = 1, engine: str | None = None, streaming: bool = False) -> Runner:
    """Return a function that runs a plan from a source address to a target address, without any checks.

    The caller guarantees that both sides have the memory that the plan accesses, that the target is writeable, and that
    they do not overlap. `engine` and `threads` are as in `execute`. With `streaming`, stores bypass the caches: for
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
        return native.NativeRunner(plan, threads, streaming)
    read_bytes, written_bytes = plan.source.nbytes, plan.target.nbytes

    def run_stages(source: int, target: int) -> None:
        read, written = Buffer(source, read_bytes, None, False), Buffer(target, written_bytes, None, True)
        _run_steps(plan, read, written, threads, is_native)

    return run_stages


def resolve_engine(engine: str | None) -> str:
    """Return the name of the engine to use: the argument, the environment's, or "auto".

    >>> resolve_engine("native")
    'native'
    """
    name = engine or os.environ.get("TILEWRIGHT_ENGINE") or "auto"
    if name not in ENGINES and name not in list_plugins("engines"):
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
    spaces = [backend.memory_space() for backend in backends]
    if len(spaces) == 2 and spaces[0] != spaces[1]:
        raise TransferError(
            f"the source is on {backends[0].engine} device {spaces[0]} and the target on {spaces[1]}; copy the source"
            " to the target's device first"
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

    `same_memory` means that the addresses of both are in the same memory, so that they can overlap.
    """
    if not target.writeable:
        raise TransferError("the target is read-only; pass a writeable array as out")
    for name, buffer, placement in (("source", source, plan.source), ("target", target, plan.target)):
        if buffer.nbytes < placement.nbytes:
            raise TransferError(
                f"the {name} has {buffer.nbytes} bytes, but layout {placement.layout} of {placement.format.name} needs"
                f" {placement.nbytes}"
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


def _run_on_host(plan: Plan, source: Operand, target: Operand, threads: int, engine: str) -> None:
    read, written = _buffer_of(source), _buffer_of(target)
    _validate_memory(plan, read, written)
    _run_steps(plan, read, written, threads, select_host_engine(plan, engine) == "native")


def _run_steps(plan: Plan, read: Buffer, written: Buffer, threads: int, is_native: bool) -> None:
    def allocate(count: int) -> Buffer:
        return Buffer.of(np.empty(count, dtype=np.float32))

    for stage, stage_read, stage_written in stage_operands(plan, read, written, allocate):
        if is_native:
            native.run_plan(stage, stage_read.address, stage_written.address, threads)
        else:
            run_plan(stage, stage_read.bytes, stage_written.bytes)


def _run_on_device(plan: Plan, source: Operand, target: Operand, backend: Backend) -> None:
    """Run a plan on a device; host arrays are uploaded first and downloaded afterwards."""
    read = source if isinstance(source, DeviceArray) else _upload(source, backend)
    if isinstance(target, DeviceArray):
        target.backend.run_plan(plan, read, target)
        return
    memory = Buffer.of(target)
    # bytes that the plan does not write must come back unchanged
    writes_all = not plan.packs and prod(plan.target.extents) * plan.target.itemsize == memory.nbytes
    written = backend.empty((memory.nbytes,), uint8) if writes_all else _upload(target, backend)
    backend.run_plan(plan, read, written)
    backend.download(written, memory.bytes)


def _upload(array: Array, backend: Backend) -> DeviceArray:
    """Return a copy of the memory of a host array on the device."""
    memory = Buffer.of(array)
    uploaded = backend.empty((memory.nbytes,), uint8)
    backend.upload(memory.bytes, uploaded)
    return uploaded


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


# The arrays that a repeated copy knows by their type: of NumPy, of devices, and of the libraries that engines know.

_NUMPY = ArrayLibrary(
    signature=lambda array: (array.shape, array.strides, array.dtype),
    address=address_of,
    is_writeable=lambda array: bool(array.flags.writeable),
    allocator=lambda array, shape, element: partial(aligned_memory, shape, element.dtype),
)


def _device_allocator(
    array: DeviceArray, shape: tuple[int, ...], element: ScalarFormat
) -> Callable[[], tuple[DeviceArray, int]]:
    def allocate() -> tuple[DeviceArray, int]:
        new = array.backend.empty(shape, element)
        return new, new.memory + new.start

    return allocate


_DEVICE = ArrayLibrary(
    signature=lambda array: (array.shape, array.strides, array.format, array.backend),
    address=lambda array: int(array.memory + array.start),
    is_writeable=lambda array: bool(array.writeable),
    allocator=_device_allocator,
)

_libraries: dict[type, ArrayLibrary] = {np.ndarray: _NUMPY, DeviceArray: _DEVICE}


def _find_library(array: object) -> tuple[Any, ArrayLibrary | None]:
    """Return an array as one whose type has a library, which is found once per type; None for subclasses of NumPy's."""
    operand = as_operand(array)
    if isinstance(operand, DeviceArray):
        library = operand.backend.array_library(type(array))
        if library is not None:
            _libraries[type(array)] = library
            return array, library
    return operand, _libraries.get(type(operand))


# `run_copy`: copies by name, prepared for arrays of the same signature and options.

MAX_CALLS = 1024
MAX_BATCH = 32  # tensors of one launch: the device starts on them while the host examines the next ones


@dataclass(frozen=True, slots=True)
class CopyJob:
    """A copy by name: its plan, or None if there is nothing to copy, and shape and format of its result."""

    plan: Plan | None
    shape: tuple[int, ...]
    element: ScalarFormat


class CopyOperation(Protocol):
    """A copy by name with its options: a value that equal operations compare equal to."""

    def plan(self, source: Operand, target: Operand | None) -> CopyJob:
        """Return the copy, which depends only on the shapes, strides and formats of `source` and `target`.

        Without a target the result is a new array.
        """


def run_copy(
    operation: CopyOperation, array: object, out: object | None, threads: int | None, engine: str | None
) -> tuple[Any, ReadyCopy | None]:
    """Return the result of a copy, as an array of the library of `array`, and how to repeat it, if that is known.

    Args:
        operation: the copy.
        array: the source.
        out: the target, or None for a new array.
        threads, engine: as in `execute`.

    >>> from tilewright.copying.operations import Pack
    >>> run_copy(Pack("bfloat8_b", 1024), np.ones(1024, np.float32), None, None, None)[0].nbytes
    1088
    """
    library = _libraries.get(type(array))
    if library is None:
        array, library = _find_library(array)
    if out is not None and type(out) is not type(array):
        out = as_operand(out)
    key, call = None, None
    if library is not None and (out is None or type(out) is type(array)):
        try:
            target_signature = None if out is None else library.signature(out)
            signature, operation_class = library.signature(array), type(operation)
            key = (operation_class, operation, signature, target_signature, threads, engine, environment())
            call = _calls.get(key)
        except (AttributeError, RuntimeError, TypeError):  # a tensor without strides, or options without a hash
            key = None
    result, ready = None if call is None else call.run(array, out), None
    if result is None:
        result = _run_and_prepare(operation, array, out, threads, engine, key)
    elif call is not None:
        ready = call.ready
    return (result.backend.unwrap(result) if isinstance(result, DeviceArray) else result), ready


def run_copies(
    operation: CopyOperation, arrays: Sequence[object], threads: int | None, engine: str | None
) -> list[Any]:
    """Return the results of a copy of several arrays; on a device, neighbours of one signature may share launches.

    The results of a launch are parts of one allocation. The arguments are as in `run_copy`.

    >>> from tilewright.copying.operations import Pack
    >>> [packed.nbytes for packed in run_copies(Pack("bfloat8_b", 1024), [np.ones(1024)] * 2, None, None)]
    [1088, 1088]
    """
    results: list[Any] = []
    for first in range(0, len(arrays), MAX_BATCH):
        batch = arrays[first : first + MAX_BATCH]
        together = _run_batch(operation, batch, engine) if len(batch) > 1 else None
        results += together or [run_copy(operation, array, None, threads, engine)[0] for array in batch]
    return results


def _run_batch(operation: CopyOperation, arrays: Sequence[object], engine: str | None) -> list[Any] | None:
    """Return the results of a batch of equal arrays on a device that prepares plans, or None if it is not one."""
    source = find_device_array(arrays[0])
    library: ArrayLibrary | None = None if source is None else source.backend.array_library(type(arrays[0]))
    if source is None or library is None or any(type(array) is not type(arrays[0]) for array in arrays):
        return None
    signature = library.signature(arrays[0])
    if any(library.signature(array) != signature for array in arrays):
        return None
    job = operation.plan(source, None)
    if job.plan is None or not _can_prepare(job.plan, source, source, engine):
        return None
    block, start = library.allocator(arrays[0], (len(arrays), *job.shape), job.element)()
    low, size = _lowest_offset(source), prod(job.shape) * job.element.itemsize
    sources = [library.address(array) + low for array in arrays]
    source.backend.run_batch(job.plan, sources, [start + k * size for k in range(len(arrays))])
    return list(block)


def _run_and_prepare(
    operation: CopyOperation, array: object, out: object, threads: int | None, engine: str | None, key: Hashable
) -> Operand:
    """Return the result of a copy that is planned and validated; prepare the next one with the same key, if any."""
    source, target = as_operand(array), None if out is None else as_operand(out)
    job = operation.plan(source, target)
    if target is None and isinstance(source, DeviceArray):
        target = source.backend.empty(job.shape, job.element)
    elif target is None:
        target = aligned_empty(job.shape, job.element.dtype)
    if job.plan is not None:
        execute(job.plan, source, target, threads, engine)
        library = _libraries.get(type(array))
        is_known = source is array or isinstance(source, DeviceArray)  # not an array that was copied or shared
        if key is not None and library is not None and is_known and _can_prepare(job.plan, source, target, engine):
            if len(_calls) >= MAX_CALLS:
                _calls.clear()
            _calls[key] = _PreparedCall(job, library, (array, out), (source, target), threads, engine)
    return target if tuple(target.shape) == job.shape else target.reshape(job.shape)


def _can_prepare(plan: Plan, source: Operand, target: Operand, engine: str | None) -> bool:
    """Return whether the copy is a function of two addresses, in host memory or on one device."""
    name, backend = resolve_engine(engine), common_backend(source, target)
    if backend is None:
        return name in HOST_ENGINES
    on_device = isinstance(source, DeviceArray) and isinstance(target, DeviceArray)
    return on_device and name in ("auto", backend.engine) and backend.can_prepare(plan)


class _PreparedCall:
    """A copy from any array of one signature into a new array, or into any of another signature."""

    __slots__ = ("_allocate", "_backend", "_job", "_library", "_lows", "_mask", "_plan", "_runners", "_sizes", "ready")

    def __init__(
        self,
        job: CopyJob,
        library: ArrayLibrary,
        arrays: tuple[Any, Any],
        operands: tuple[Operand, Operand],
        threads: int | None,
        engine: str | None,
    ) -> None:
        assert job.plan is not None
        self._job, self._plan, self._library = job, job.plan, library
        self._allocate = None if arrays[1] is not None else library.allocator(arrays[0], job.shape, job.element)
        self._lows = [_lowest_offset(operand) for operand in operands]
        self._sizes = job.plan.source.nbytes, job.plan.target.nbytes
        self._backend: Backend | None = getattr(operands[1], "backend", None)
        self._mask = 0 if self._backend is None else WIDEST - 1  # kernels depend on the alignment of addresses
        self._runners: dict[tuple[int, int], Runner] = {}
        if self._backend is None:
            self._runners[0, 0] = make_runner(job.plan, resolve_threads(threads), resolve_engine(engine))
        self.ready = self._ready_copy(arrays[1])

    def _ready_copy(self, out: Any) -> ReadyCopy | None:
        """Return how to repeat the copy without Python, if it is a single run of the native library."""
        run, job, (read, written) = self._runners.get((0, 0)), self._job, self._sizes
        if not isinstance(run, native.NativeRunner) or self._library is not _NUMPY:
            return None
        dtype = None
        if out is None:
            dtype, written = job.element.dtype, prod(job.shape) * job.element.itemsize
        elif tuple(out.shape) != job.shape:
            return None
        low, target_low = self._lows
        return ReadyCopy(
            run.address, run.nests, run.count, run.threads, low, target_low, read, written, job.shape, dtype, run
        )

    def run(self, array: Any, out: Any) -> Any:
        """Return the result, or None if the memory of `out` has to be examined first."""
        library, (source_low, target_low) = self._library, self._lows
        source = library.address(array) + source_low
        if self._allocate is not None:
            out, target = self._allocate()
            target += target_low
        else:
            target = library.address(out) + target_low
            read, written = self._sizes
            overlap = source < target + written and target < source + read
            if overlap or not library.is_writeable(out):
                return None
            if tuple(out.shape) != self._job.shape:
                out = out.reshape(self._job.shape)
        alignment = (source & self._mask, target & self._mask)
        runner = self._runners.get(alignment)
        if runner is None:  # on a device
            assert self._backend is not None
            runner = self._backend.make_runner(self._plan, (gcd(WIDEST, source), gcd(WIDEST, target)))
            self._runners[alignment] = runner
        runner(source, target)
        return out


def _lowest_offset(operand: Operand) -> int:
    """Return the bytes from the first element of an array to its lowest one: negative if strides are."""
    if isinstance(operand, DeviceArray):
        return operand.span[0] - operand.start
    return Buffer.of(operand).address - address_of(operand)


_calls: dict[Hashable, _PreparedCall] = {}


# `BoundPlan`: a plan with the two arrays it copies between, checked once, to be run again and again.


class BoundPlan:
    """A function without arguments that runs a plan on the memory of two arrays.

    Whatever `execute` checks is checked here, once. The arrays must stay where they are: the bound plan keeps them
    alive, and reads and writes whatever they hold when it is called. On a CUDA device a call only enqueues kernels on
    the current stream, so it can be captured in a graph.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "int8"), Placement(col_major(2, 3), "int8"))
    >>> values, copied = np.arange(6, dtype=np.int8), np.zeros(6, dtype=np.int8)
    >>> run = plan.bind(values, copied)
    >>> run()
    >>> copied.tolist()
    [0, 3, 1, 4, 2, 5]
    >>> values += 10
    >>> run()
    >>> copied.tolist()
    [10, 13, 11, 14, 12, 15]
    """

    __slots__ = ("_run", "plan", "source", "target")

    def __init__(
        self, plan: Plan, source: object, target: object, threads: int | None = None, engine: str | None = None
    ) -> None:
        """Check that `plan` can run on the memory of `source` and `target`.

        Args:
            plan: the copy to run.
            source: an array in host or device memory.
            target: another one, writeable.
            threads: as in `execute`.
            engine: as in `execute`.
        """
        self.plan, self.source, self.target = plan, source, target
        self._run = _bind_plan(plan, source, target, threads, engine)

    def __call__(self) -> None:
        """Run the plan; on a device, enqueue it."""
        self._run()


def _bind_plan(
    plan: Plan, source: object, target: object, threads: int | None, engine: str | None
) -> Callable[[], None]:
    """Return a function that runs a plan on two arrays: without checks, but for copies through other memory."""
    name = resolve_engine(engine)
    read, written = _memory_of(source), _memory_of(target)
    can_prepare = _can_prepare(plan, read, written, name)
    read_memory, written_memory = validate_operands(plan, read, written)
    if not can_prepare:
        return partial(execute, plan, read, written, threads, engine)
    if isinstance(read, DeviceArray) and isinstance(written, DeviceArray):
        runner: DeviceRunner = written.backend.make_runner(plan, (read.alignment, written.alignment))
        return runner.bind(read_memory.address, written_memory.address)
    return partial(make_runner(plan, resolve_threads(threads), name), read_memory.address, written_memory.address)
