# SPDX-License-Identifier: Apache-2.0
"""The CUDA engine: plans as generated kernels, compiled by NVRTC through CuPy.

Work is put on the stream that the caller's library uses at that moment, and nothing waits for it. Kernels are kept in
memory by plan, and on disk by CuPy, which keys them by their source, the architecture and the compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import FormatError, TransferError
from .codegen import Kernel, Tuning, check_formats, generate
from .codegen.kernel import WIDEST
from .compiled import CompiledPlans
from .device_array import DeviceArray
from .plan import Plan

# Exact bits matter: no fused approximations, no flushing of subnormals. All of these are the compiler's defaults.
OPTIONS = ("--std=c++17", "--ftz=false", "--prec-div=true")
_INSTALL = "pip install 'tilewright[cuda]', with a driver for an NVIDIA device"


@dataclass(frozen=True, slots=True)
class _Launch:
    kernel: Any
    shape: Kernel
    tables: list[Any]


_compiled: CompiledPlans[list[_Launch]] = CompiledPlans()


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
    >>> from tilewright.copy import Placement, plan_copy
    >>> can_run(plan_copy(Placement(Layout(32), "int8"), Placement(Layout(32), "mxfp4", tile_elements=32)))
    False
    """
    try:
        check_formats(plan)
    except FormatError:
        return False
    return why_not() is None


def home() -> Any:
    """Return where host data goes: the current CUDA device, in arrays of CuPy."""
    problem = why_not()
    if problem:
        raise TransferError(f"the cuda engine cannot run: {problem}")
    from .cuda_arrays import CudaHome

    return CudaHome(int(import_module("cupy").cuda.runtime.getDevice()), "cupy")


def run(plan: Plan, source: DeviceArray, target: DeviceArray, tuning: Tuning | None = None) -> None:
    """Put a plan on the current stream of the target's library; the host does not wait for it."""
    from .cuda_arrays import byte_view

    problem = why_not()
    if problem:
        raise TransferError(f"the cuda engine cannot run: {problem}")
    if source.home.device != target.home.device:
        raise TransferError(
            f"the source is on CUDA device {source.home.device} and the target on {target.home.device};"
            " copy the source to the target's device first"
        )
    cupy: Any = import_module("cupy")
    low, high = (int(np.gcd(WIDEST, array.memory + array.span[0])) for array in (source, target))
    for array, aligned in ((source, low), (target, high)):
        if aligned < array.itemsize:
            raise TransferError(f"memory at {array.memory + array.span[0]:#x} is not aligned to {array.format.name}")
    try:
        with target.home.on_stream():
            key = ("cuda", target.home.device, low, high, tuning)
            launches = _compiled.get(plan, key, lambda: _built(cupy, plan, (low, high), tuning))
            ends = (byte_view(source), byte_view(target))
            for launch in launches:
                launch.kernel((launch.shape.groups,), (launch.shape.threads,), (*ends, *launch.tables))
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as failure:
        raise TransferError(
            f"CUDA device {target.home.device} could not run the plan: {failure}; after such an error a process often"
            " has to be started anew"
        ) from failure


def _built(cupy: Any, plan: Plan, aligned: tuple[int, int], tuning: Tuning | None) -> list[_Launch]:
    program = generate(plan, "cuda", aligned, tuning)
    module = cupy.RawModule(code=program.text, options=OPTIONS, backend="nvrtc")
    return [
        _Launch(module.get_function(kernel.name), kernel, [cupy.asarray(table) for table in kernel.tables])
        for kernel in program.kernels
    ]
