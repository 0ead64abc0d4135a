# SPDX-License-Identifier: Apache-2.0
"""A plan on a device: checks, host arrays carried there and back, and the way out.

Where a device has no code for a format, `auto` moves the data through the host instead, and says so once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..errors import DeviceError, FormatError, TilewrightError, TransferError
from ..formats import ScalarFormat, format_of
from .buffers import Buffer
from .device_array import DeviceArray
from .footprints import footprint_of, shared_memory
from .plan import Plan

_said: set[str] = set()


def run_on_device(
    plan: Plan, source: Any, target: Any, driver: Any, home: Any, on_host: Callable[[Plan, Any, Any], None], auto: bool
) -> None:
    """Carry out a plan whose source and target are device arrays of one home, or arrays of the host."""
    for what, array, place in (("source", source, plan.source), ("target", target, plan.target)):
        have = array.span[1] if isinstance(array, DeviceArray) else Buffer.of(array).nbytes
        if have < place.nbytes:
            need = f"its layout {place.layout} of {place.format.name} reaches {place.nbytes}"
            raise TransferError(f"the {what} has {have} bytes, but {need}; give it that many")
    if not target.flags.writeable:
        raise TransferError("cannot write to a read-only target; pass a writeable array as out")
    _check_apart(plan, source, target)
    try:
        _run(plan, source, target, driver, home)
    except FormatError as problem:
        if not auto:
            raise TransferError(f"the {driver.__name__.rpartition('.')[2]} cannot run this plan: {problem}") from None
        _through_host(plan, source, target, on_host)
        _note(str(problem), str(problem))
    except DeviceError as problem:
        if not auto:
            raise
        try:
            _through_host(plan, source, target, on_host)
        except TilewrightError:
            raise problem from None  # a device that does not even give its memory back
        _note(driver.__name__, str(problem))


def _check_apart(plan: Plan, source: Any, target: Any) -> None:
    if isinstance(source, DeviceArray) and isinstance(target, DeviceArray):
        if source.home.engine != target.home.engine:
            raise TransferError(
                f"the source is in the memory of {source.home.engine} and the target in that of {target.home.engine};"
                " copy one of them to the host first"
            )
        # addresses are integers in CUDA; an OpenCL buffer is a memory of its own
        anywhere = isinstance(source.memory, int)
        first, second = (end.span[0] + (end.memory if anywhere else 0) for end in (source, target))
        same = anywhere or source.memory == target.memory
        if same and footprint_of(plan.source, first).meets(footprint_of(plan.target, second)):
            raise shared_memory()


def _run(plan: Plan, source: Any, target: Any, driver: Any, home: Any) -> None:
    there = source if isinstance(source, DeviceArray) else _carried(source, home)
    room = target
    if not isinstance(target, DeviceArray):
        # what a plan leaves alone has to come back as it was
        room = _room(target, home) if _writes_everything(plan, target) else _carried(target, home)
    driver.run(plan, there, room)
    if not isinstance(target, DeviceArray):
        home.download(room, Buffer.of(target).bytes)


def _carried(array: Any, home: Any) -> DeviceArray:
    """Return the memory of a host array on the device."""
    room = _room(array, home)
    home.upload(Buffer.of(array).bytes, room)
    return room


def _room(array: Any, home: Any) -> DeviceArray:
    found: DeviceArray = home.empty((Buffer.of(array).nbytes,), format_of("uint8"))
    return found


def _writes_everything(plan: Plan, target: Any) -> bool:
    nbytes = Buffer.of(target).nbytes
    if not plan.target.format.has_blocks:
        return prod(plan.target.extents) * plan.target.itemsize == nbytes
    return False


def _through_host(plan: Plan, source: Any, target: Any, on_host: Callable[[Plan, Any, Any], None]) -> None:
    """Carry out a plan on the host with arrays of a device."""
    before, after = (_fetched(array) if isinstance(array, DeviceArray) else array for array in (source, target))
    on_host(plan, before, after)
    if isinstance(target, DeviceArray):
        target.home.upload(after, _as_bytes(target))


def _fetched(array: DeviceArray) -> Any:
    flat = _as_bytes(array)
    data = np.empty(flat.size, dtype=np.uint8)
    array.home.download(flat, data)
    return data


def _as_bytes(array: DeviceArray) -> DeviceArray:
    """Return the span of a device array as plain bytes."""
    start, nbytes = array.span
    element = format_of("uint8")
    assert not element.has_blocks
    return DeviceArray(array.home, array.memory, start, (nbytes,), (1,), element, array.owner)


def _note(what: str, reason: str) -> None:
    """Say once for each thing why data goes through the host."""
    if what not in _said:
        _said.add(what)
        warnings.warn(f"going through the host: {reason}", RuntimeWarning, stacklevel=5)
