# SPDX-License-Identifier: Apache-2.0
"""The load of the links of both networks, as maps of the nodes that they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...traffic import Flows, Link, NocMap, Requests, ReshardPlan, ReshardStep, link_load
from ..color_scales import BYTES
from ..scene import Field, Grid

_DIRECTIONS = (
    ("NOC_0", "+x", "to the right"),
    ("NOC_0", "+y", "downwards"),
    ("NOC_1", "-x", "to the left"),
    ("NOC_1", "-y", "upwards"),
)


@dataclass(frozen=True, slots=True)
class LinkMap:
    """The bytes that cross each link of a network, the busiest first.

    >>> LinkMap(NocMap.of("n150"), {Link("NOC_0", 3, 1, "+x"): 64}).panels()[0].cell(1, 3).attributes["bytes"]
    64
    """

    noc_map: NocMap
    loads: dict[Link, int]

    @classmethod
    def of(cls, plan: ReshardPlan, steps: Sequence[ReshardStep]) -> LinkMap:
        """Return the load of the links over some `steps` of a `plan`.

        >>> from tilewright import TensorSpec, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory("l1"))
        >>> LinkMap.of(plan, plan.steps).loads == plan.links
        True
        """
        if tuple(steps) == plan.steps:
            return cls(plan.noc_map, plan.links)
        load = link_load(plan.noc_map, Flows.of(Requests.join([step.requests for step in steps])))
        pairs = sorted(zip(load.nbytes.tolist(), load.number.tolist(), strict=True), key=lambda pair: -pair[0])
        return cls(plan.noc_map, {plan.noc_map.link(number): size for size, number in pairs})

    def panels(self) -> tuple[Grid, ...]:
        """Return a grid for each direction of each network that carries something; a cell is the link that leaves it.

        >>> LinkMap(NocMap.of("n150"), {Link("NOC_1", 3, 1, "-y"): 64}).panels()[1].title
        'NOC_1 -y, upwards'
        """
        width, height = self.noc_map.size
        most = max(self.loads.values(), default=1)
        names: list[Any] = [None] * (width * height)
        for endpoint, (x, y) in zip(self.noc_map.endpoints, self.noc_map.positions.tolist(), strict=True):
            if min(x, y) >= 0:
                names[y * width + x] = f"D{endpoint}" if isinstance(endpoint, int) else f"{endpoint.x},{endpoint.y}"
        grids = []
        for noc, direction, words in _DIRECTIONS:
            if not any(link.noc == noc for link in self.loads):
                continue
            sizes: list[Any] = [None] * (width * height)
            for link, size in self.loads.items():
                if (link.noc, link.direction) == (noc, direction):
                    sizes[link.y * width + link.x] = size
            fields = (
                Field("place", tuple(names)),
                Field(
                    "share",
                    tuple(None if size is None else round(100 * size / most) for size in sizes),
                    "heat",
                    "{:>3}",
                ),
                Field("bytes", tuple(sizes), "heat", BYTES),
            )
            common: dict[str, Any] = {"row_axis": "y", "column_axis": "x", "link": tuple(range(width * height))}
            grids.append(Grid(height, width, fields, f"{noc} {direction}, {words}", "share", "share", **common))
        return tuple(grids)
