# SPDX-License-Identifier: Apache-2.0
"""Circular buffers of programs that grow into tensors in L1, and what would fit instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..errors import TilewrightError
from ..memory import Chip, TensorSpec, fit
from ..severity import Severity
from .buffer_check import CheckedBuffer
from .finding import AuditFinding
from .run import LocalBuffer, Run
from .timeline import Integers, add_local, order_changes

_MOST_ADVICE = 4  # searches for a placement that fits


def find_clashes(
    run: Run, checked: Sequence[CheckedBuffer], chip: Chip, predicted: Mapping[int, int]
) -> Iterator[AuditFinding]:
    """Yield the programs whose circular buffers reach into tensors, once per call.

    A run that placed nothing is judged by the addresses `predicted` for its buffers by number.

    >>> from .run import build_run
    >>> list(find_clashes(build_run([]), [], Chip.named("wormhole_n150"), {}))
    []
    """
    tensors: dict[int, CheckedBuffer] = {}
    usage: Integers = np.zeros(chip.compute_grid, np.int64)  # of local buffers that were not placed
    reported: set[int] = set()
    for time, _, change, item in order_changes(run, checked):
        if isinstance(item, CheckedBuffer):
            if change > 0:
                tensors[item.buffer.number] = item
            else:
                tensors.pop(item.buffer.number, None)
            continue
        if item.in_tensor:
            continue
        if not item.address:
            add_local(usage, item, change)
        call = run.call_at(time)
        number = item.number if call is None else call.number
        if change < 0 or number in reported:
            continue
        top = item.address + item.size if item.address else chip.base("l1") + int(usage.max())
        lowest = _find_lowest(tensors, predicted)
        if lowest is not None and top > lowest[0]:
            reported.add(number)
            advice = _advise(tensors, chip, top) if len(reported) <= _MOST_ADVICE else ""
            yield _clash_finding(run, item, time, top, lowest, advice)


def _find_lowest(
    tensors: Mapping[int, CheckedBuffer], predicted: Mapping[int, int]
) -> tuple[int, CheckedBuffer] | None:
    """Return the lowest address of a tensor, and the tensor."""
    places = [(one.buffer.address or predicted.get(number, 0), number) for number, one in tensors.items()]
    placed = [place for place in places if place[0]]
    if not placed:
        return None
    address, number = min(placed)
    return address, tensors[number]


def _clash_finding(
    run: Run, local: LocalBuffer, time: int, top: int, lowest: tuple[int, CheckedBuffer], advice: str
) -> AuditFinding:
    address, one = lowest
    return AuditFinding(
        "clash",
        f"{local.kind}s of {run.name_call(time)} reach {top}, but {one.label or one.buffer} begins at {address}:"
        f" {top - address} bytes too many",
        Severity.ERROR,
        local.number,
        run.name_call(time),
        address,
        one.label,
        top,
        address,
        "buffers of programs grow up from the L1 base, tensors down from the end",
        advice or "make the buffers smaller, free tensors before the call, or move them out of L1",
    )


def _advise(tensors: Mapping[int, CheckedBuffer], chip: Chip, top: int) -> str:
    """Return the nearest change of the tensors in L1 that leaves enough memory, if there is one."""
    specs: list[TensorSpec] = [one.spec for one in tensors.values() if one.spec is not None]
    try:
        answer = fit(specs, chip, circular_buffers=top - chip.base("l1"))
    except TilewrightError:
        return ""
    if answer.fits:
        return "the tensors would fit if they were allocated in order from an empty device: free what is below them"
    return f"place it as {answer.alternatives[0]}" if answer.alternatives else ""
