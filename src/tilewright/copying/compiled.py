# SPDX-License-Identifier: Apache-2.0
"""Compiled plans in memory: what an engine has made of a plan, for as long as it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .plan import Plan

if TYPE_CHECKING:
    from .codegen import Kernel

Made = TypeVar("Made")
MOST = 256
MOST_BYTES = 256 << 20  # of tables: those of a scattered layout can be as large as the tensor


class CompiledPlans(Generic[Made]):
    """What was made of plans, found by the plan itself, which is quicker than by all that it says.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8"))
    >>> kept = CompiledPlans()
    >>> kept.get(plan, "device 0", lambda: "made"), kept.get(plan, "device 0", lambda: "made again")
    ('made', 'made')
    """

    def __init__(self, table_bytes: Callable[[Made], int] = lambda _: 0) -> None:
        self._found: dict[tuple[int, Any], tuple[Plan, Made]] = {}
        self._table_bytes, self._held = table_bytes, 0

    def get(self, plan: Plan, key: Any, make: Callable[[], Made]) -> Made:
        """Return what was made of a plan under a key, or make it now."""
        found = self._found.get((id(plan), key))
        if found is None or found[0] is not plan:
            made = make()
            held = self._table_bytes(made)
            if len(self._found) >= MOST or self._held + held > MOST_BYTES:
                self._found.clear()
                self._held = 0
            self._held += held
            found = self._found[id(plan), key] = (plan, made)
        return found[1]


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel built for a device, with all that it is launched with beside the two ends of the copy.

    >>> from dataclasses import fields
    >>> [each.name for each in fields(Launch)]
    ['kernel', 'shape', 'tables', 'scalars']
    """

    kernel: Any
    shape: Kernel
    tables: list[Any]
    scalars: list[Any]


def table_bytes(launches: list[Launch]) -> int:
    """Return the bytes of the tables that launches hold in the memory of their device.

    >>> table_bytes([])
    0
    """
    return sum(int(getattr(table, "nbytes", 0) or table.size) for launch in launches for table in launch.tables)
