# SPDX-License-Identifier: Apache-2.0
"""Steps, the leaves of strides, and what they add up to over the extents of a shape."""

from __future__ import annotations

from typing import Any, TypeAlias

from .axes import Place
from .integers import as_integer

Step: TypeAlias = "int | Place"


def check_step(step: Any, what: str) -> Any:
    """Return a step, an integer or a `Place`, if it is one.

    >>> check_step(5, "offset")
    5
    """
    return step if isinstance(step, Place) else as_integer(step, what)


def along(step: Any, name: str) -> Any:
    """Return the part of a step that lies along the named axis; the plain part for the empty name.

    >>> along(Place(bank=2), "bank"), along(5, "bank"), along(5, "")
    (2, 0, 5)
    """
    if isinstance(step, Place):
        return step.along(name)
    return 0 if name else step


def span(extents: list[int], steps: list[Any], offset: Any) -> tuple[Any, Any]:
    """Return the lowest and highest value of offset + sum(coordinate * step).

    >>> span([4, 8], [-1, 4], 0)
    (-3, 28)
    """
    low = high = offset
    for extent, step in zip(extents, steps, strict=True):
        reach = (extent - 1) * step
        if reach > 0:
            high = high + reach
        else:
            low = low + reach
    return low, high


def merge_modes(extents: list[int], channels: list[list[Any]]) -> tuple[list[int], list[list[Any]]]:
    """Return modes with neighbours merged wherever every channel of strides runs on; units vanish, one mode remains.

    >>> merge_modes([2, 1, 6], [[1, 7, 2]])
    ([12], [[1]])
    """
    out: list[int] = []
    if len(channels) == 1:
        steps: list[Any] = []
        for extent, step in zip(extents, channels[0], strict=True):
            if extent == 1:
                continue
            if out and out[-1] * steps[-1] == step:
                out[-1] = out[-1] * extent
            else:
                out.append(extent)
                steps.append(step)
        return (out, [steps]) if out else ([1], [[0]])
    kept: list[list[Any]] = [[] for _ in channels]
    for k, extent in enumerate(extents):
        if extent == 1:
            continue
        if out and all(line[-1] * out[-1] == channel[k] for line, channel in zip(kept, channels, strict=True)):
            out[-1] = out[-1] * extent
        else:
            out.append(extent)
            for line, channel in zip(kept, channels, strict=True):
                line.append(channel[k])
    return (out, kept) if out else ([1], [[0] for _ in channels])
