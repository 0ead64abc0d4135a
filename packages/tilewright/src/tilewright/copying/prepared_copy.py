# SPDX-License-Identifier: Apache-2.0
"""`run_copy`: copies by name, prepared for arrays of the same signature and options.

The first call plans, validates and selects an engine. If both arrays are NumPy's, or of one library in the memory of
one CUDA device, the next one only looks up a function of two addresses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np

from ..formats import ScalarFormat
from .array_library import LIBRARIES, ArrayLibrary
from .codegen import MAX_BATCH, WIDEST, supports_formats
from .cuda_engine import CudaBackend, CudaRunner, run_batch
from .device_array import DeviceArray
from .engine import (
    DEVICE_ENGINES,
    Runner,
    as_operand,
    execute,
    find_device_array,
    make_runner,
    resolve_engine,
    resolve_threads,
)
from .host_memory import Buffer, address_of, aligned_empty
from .plan import Plan

MAX_CALLS = 1024
# The variables that choose defaults are looked up at every call: the dictionary of the environment takes a tenth of the
# time of os.environ itself, which checks and decodes.
_environment: Any = getattr(os.environ, "_data", os.environ)
_ENGINE, _THREADS = [
    os.environ.encodekey(name) if _environment is not os.environ else name
    for name in ("TILEWRIGHT_ENGINE", "TILEWRIGHT_THREADS")
]


@dataclass(frozen=True, slots=True)
class CopyJob:
    """What a copy by name does: its plan, or None if there is nothing to copy, and shape and format of its result."""

    plan: Plan | None
    shape: tuple[int, ...]
    element: ScalarFormat


Planner = Callable[..., CopyJob]


def run_copy(
    planner: Planner, array: Any, out: Any, options: tuple[Any, ...], threads: int | None, engine: str | None
) -> Any:
    """Return the result of a copy, as an array of the library of `array`.

    Args:
        planner: returns the `CopyJob` of two operands (the second may be None) and the options; it may depend only on
            their shapes, strides and formats.
        array: the source.
        out: the target, or None for a new array.
        options: further arguments of the planner.
        threads, engine: those of `execute`.

    >>> from tilewright.copying.operations import plan_pack
    >>> run_copy(plan_pack, np.ones(1024, np.float32), None, ("bfloat8_b", 1024), None, None).nbytes
    1088
    """
    library = LIBRARIES[type(array)]
    if library is None:
        array = as_operand(array)
        library = LIBRARIES[type(array)]
    if out is not None and type(out) is not type(array):
        out = as_operand(out)
    key, call = None, None
    if library is not None and (out is None or type(out) is type(array)):
        try:
            target_signature = None if out is None else library.signature(out)
            environment = (_environment.get(_ENGINE), _environment.get(_THREADS))
            key = (planner, library.signature(array), target_signature, options, threads, engine, environment)
            call = _calls.get(key)
        except (AttributeError, RuntimeError, TypeError):  # a tensor without strides, or options without a hash
            key = None
    result = None if call is None else call.run(array, out)
    if result is None:
        result = _run_and_prepare(planner, array, out, options, threads, engine, key)
    return result.backend.unwrap(result) if isinstance(result, DeviceArray) else result


def run_copies(
    planner: Planner, arrays: Sequence[Any], options: tuple[Any, ...], threads: int | None, engine: str | None
) -> list[Any]:
    """Return the results of a copy of several arrays; on a CUDA device, neighbours of one signature share launches.

    The results of a launch are parts of one allocation. The arguments are those of `run_copy`.

    >>> from tilewright.copying.operations import plan_pack
    >>> [packed.nbytes for packed in run_copies(plan_pack, [np.ones(1024)] * 2, ("bfloat8_b", 1024), None, None)]
    [1088, 1088]
    """
    results: list[Any] = []
    for first in range(0, len(arrays), MAX_BATCH):
        batch = arrays[first : first + MAX_BATCH]
        made = _run_batch(planner, batch, options, engine) if len(batch) > 1 else None
        results += made or [run_copy(planner, array, None, options, threads, engine) for array in batch]
    return results


def _run_batch(
    planner: Planner, arrays: Sequence[Any], options: tuple[Any, ...], engine: str | None
) -> list[Any] | None:
    """Return the results of a batch of equal arrays on a CUDA device, or None if it is not one."""
    library, source = LIBRARIES[type(arrays[0])], find_device_array(arrays[0])
    if library is None or source is None or any(type(array) is not type(arrays[0]) for array in arrays):
        return None
    signature = library.signature(arrays[0])
    if any(library.signature(array) != signature for array in arrays):
        return None
    job = planner(source, None, *options)
    if job.plan is None or not _can_prepare(job.plan, source, source, engine):
        return None
    block = library.allocator(arrays[0], (len(arrays), *job.shape), job.element)()
    low, start, step = _lowest_offset(source), library.address(block), prod(job.shape) * job.element.itemsize
    sources = [library.address(array) + low for array in arrays]
    run_batch(job.plan, source.backend, sources, [start + k * step for k in range(len(arrays))])
    return list(block)


def _run_and_prepare(
    planner: Planner,
    array: Any,
    out: Any,
    options: tuple[Any, ...],
    threads: int | None,
    engine: str | None,
    key: Hashable,
) -> Any:
    """Return the result of a copy that is planned and validated; prepare the next one with the same key, if any."""
    source, given = as_operand(array), None if out is None else as_operand(out)
    job = planner(source, given, *options)
    target = _empty_like(source, job) if given is None else given
    if job.plan is not None:
        execute(job.plan, source, target, threads, engine)
        library = LIBRARIES[type(array)]
        if key is not None and library is not None and _can_prepare(job.plan, source, target, engine):
            if len(_calls) >= MAX_CALLS:
                _calls.clear()
            _calls[key] = _PreparedCall(job, library, (array, out), (source, target), threads, engine)
    return target if tuple(target.shape) == job.shape else target.reshape(job.shape)


def _empty_like(array: Any, job: CopyJob) -> Any:
    """Return an uninitialised array for a result in the same memory, host or device, as `array`."""
    if isinstance(array, DeviceArray):
        return array.backend.empty(job.shape, job.element)
    return aligned_empty(job.shape, job.element.dtype)


def _can_prepare(plan: Plan, source: Any, target: Any, engine: str | None) -> bool:
    """Return whether the copy is a function of two addresses, in host memory or on one CUDA device."""
    name = resolve_engine(engine)
    if isinstance(source, np.ndarray) and isinstance(target, np.ndarray):
        return name not in DEVICE_ENGINES
    backends = [getattr(operand, "backend", None) for operand in (source, target)]
    return (
        isinstance(backends[0], CudaBackend)
        and backends[0] == backends[1]
        and not plan.stages
        and supports_formats(plan)
    )


class _PreparedCall:
    """A copy from any array of one signature into a new array, or into any of another signature."""

    __slots__ = (
        "_allocate",
        "_backend",
        "_engine",
        "_job",
        "_library",
        "_lows",
        "_mask",
        "_plan",
        "_runners",
        "_threads",
    )

    def __init__(
        self,
        job: CopyJob,
        library: ArrayLibrary,
        arrays: tuple[Any, Any],
        operands: tuple[Any, Any],
        threads: int | None,
        engine: str | None,
    ) -> None:
        assert job.plan is not None
        self._job, self._plan, self._library = job, job.plan, library
        self._allocate = None if arrays[1] is not None else library.allocator(arrays[0], job.shape, job.element)
        self._lows = [_lowest_offset(operand) for operand in operands]
        self._backend: CudaBackend | None = getattr(operands[1], "backend", None)
        self._mask = 0 if self._backend is None else WIDEST - 1  # kernels depend on the alignment of addresses
        self._engine, self._threads = resolve_engine(engine), resolve_threads(threads)
        self._runners: dict[tuple[int, int], Runner] = {}

    def run(self, array: Any, out: Any) -> Any:
        """Return the result, or None if the memory of `out` has to be examined first."""
        library, (source_low, target_low) = self._library, self._lows
        source = library.address(array) + source_low
        if self._allocate is not None:
            out = self._allocate()
            target = library.address(out) + target_low
        else:
            target = library.address(out) + target_low
            overlap = source < target + self._plan.target.nbytes and target < source + self._plan.source.nbytes
            if overlap or not library.is_writeable(out):
                return None
            if tuple(out.shape) != self._job.shape:
                out = out.reshape(self._job.shape)
        alignment = (source & self._mask, target & self._mask)
        runner = self._runners.get(alignment)
        if runner is None:
            runner = self._runners[alignment] = self._make_runner(source, target)
        runner(source, target)
        return out

    def _make_runner(self, source: int, target: int) -> Runner:
        if self._backend is None:
            return make_runner(self._plan, self._threads, self._engine)
        return CudaRunner(self._plan, self._backend, (gcd(WIDEST, source), gcd(WIDEST, target)))


def _lowest_offset(operand: Any) -> int:
    """Return the bytes from the first element of an array to its lowest one: negative if strides are."""
    if isinstance(operand, DeviceArray):
        return operand.span[0] - operand.start
    return Buffer.of(operand).address - address_of(operand)


_calls: dict[Hashable, _PreparedCall] = {}
