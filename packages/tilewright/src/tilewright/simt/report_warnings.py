# SPDX-License-Identifier: Apache-2.0
"""Warnings about accesses that are right, but cost more than they need to."""

from __future__ import annotations

from collections.abc import Iterable

from ..findings import Severity
from .kernel_report import Defect, SiteCost

_WORTH_TELLING = 2.0  # times the ideal cost


def find_warnings(costs: Iterable[SiteCost]) -> tuple[Defect, ...]:
    """Return warnings about the lines whose accesses take at least twice the ideal cost.

    >>> from tilewright.simt.access_log import Site
    >>> cost = SiteCost("read", Site("k.py", 3, 9), "s", "shared", 32, 128, 1, 32, 1, 32)
    >>> print(find_warnings([cost])[0])
    warning: bank conflict: read of s at k.py:3:9: 32 wavefronts, ideal 1 (32-way)
      remedy: let neighbouring threads access neighbouring words; pad the rows of a
        tile by one element, or swizzle it
    """
    return tuple([_warn(cost) for cost in costs if cost.factor >= _WORTH_TELLING])


def _warn(cost: SiteCost) -> Defect:
    where = f"{cost.action} of {cost.memory} at {cost.site}"
    if cost.space == "shared":
        return Defect(
            "bank conflict",
            f"{where}: {cost.units} wavefronts, ideal {cost.ideal} ({cost.ways}-way)",
            remedy="let neighbouring threads access neighbouring words; pad the rows of a tile by one element, or"
            " swizzle it",
            severity=Severity.WARNING,
        )
    return Defect(
        "uncoalesced access",
        f"{where}: {cost.units} sectors of 32 bytes, ideal {cost.ideal} ({1 / cost.factor:.0%} of the bytes are used)",
        remedy="let neighbouring threads access neighbouring elements: thread_idx.x belongs to the last index",
        severity=Severity.WARNING,
    )
