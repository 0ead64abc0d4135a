# SPDX-License-Identifier: Apache-2.0
"""`run_copy`: copies by name, prepared for arrays of the same signature and options.

The first call plans, validates and selects an engine. If both arrays are NumPy's, or of one library in the memory of
one CUDA device, the next one only looks up a function of two addresses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from ..formats import ScalarFormat
from .array_library import ArrayLibrary, find_library
from .codegen import WIDEST, supports_formats
from .cuda_engine import CudaBackend, CudaRunner
from .device_array import DeviceArray
from .engine import DEVICE_ENGINES, Runner, as_operand, execute, make_runner, resolve_engine, resolve_threads
from .host_memory import Buffer, aligned_empty
from .plan import Plan

MAX_CALLS = 1024
# bytes are looked up in half the time of text, which has to be encoded
_environment: Any = os.environb if os.supports_bytes_environ else os.environ
_VARIABLES: Any = ("TILEWRIGHT_ENGINE", "TILEWRIGHT_THREADS")
_ENGINE, _THREADS = [name.encode() for name in _VARIABLES] if os.supports_bytes_environ else _VARIABLES


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
    library, key = find_library(type(array)), None
    if library is not None and (out is None or type(out) is type(array)):
        try:
            target_signature = None if out is None else library.signature(out)
            environment = (_environment.get(_ENGINE), _environment.get(_THREADS))
            key = (planner, library.signature(array), target_signature, options, threads, engine, environment)
            call = _calls.get(key)
        except (AttributeError, RuntimeError, TypeError):  # a tensor without strides, or options without a hash
            key = call = None
        if call is not None:
            result = call.run(array, out)
            if result is not None:
                return result
    source, given = as_operand(array), None if out is None else as_operand(out)
    job = planner(source, given, *options)
    target = _empty_like(source, job) if given is None else given
    if job.plan is not None:
        execute(job.plan, source, target, threads, engine)
        if key is not None and library is not None and _can_prepare(job.plan, source, target, engine):
            if len(_calls) >= MAX_CALLS:
                _calls.clear()
            _calls[key] = _PreparedCall(job, library, (array, out), (source, target), threads, engine)
    shaped = target if tuple(target.shape) == job.shape else target.reshape(job.shape)
    return shaped.backend.unwrap(shaped) if isinstance(shaped, DeviceArray) else shaped


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
    return Buffer.of(operand).address - int(operand.__array_interface__["data"][0])


_calls: dict[Hashable, _PreparedCall] = {}
