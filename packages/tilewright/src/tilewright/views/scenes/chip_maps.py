# SPDX-License-Identifier: Apache-2.0
"""The chip as a map: cores and DRAM banks at their places on the network, with the bytes that go between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ..._text import format_bytes
from ...errors import MemoryConfigError
from ...traffic import Endpoint, NocMap, ReshardPlan, ReshardStep
from ..color_scales import BYTES
from ..scene import Field, Flow, Grid

_NAMED = 6  # cores in a list of those with the same number of bytes


def place_name(endpoint: Endpoint) -> str:
    """Return the name of a core or DRAM bank in words.

    >>> place_name(3)
    'DRAM 3'
    """
    return f"DRAM {endpoint}" if isinstance(endpoint, int) else f"({endpoint.x}, {endpoint.y})"


def chip_cells(noc_map: NocMap) -> tuple[dict[Endpoint, int], tuple[int, int], bool]:
    """Return the cell of each endpoint, the rows and columns, and whether they are the nodes of the network.

    If the network is not known, cores are at their coordinates, and DRAM banks in rows below them.

    >>> cells, size, known = chip_cells(NocMap.of("n150"))
    >>> cells[0], size, known
    (110, (12, 10), True)
    """
    try:
        width, height = noc_map.size
        positions = noc_map.positions
        if positions.size and positions.min() >= 0:
            numbers = (positions[:, 1] * width + positions[:, 0]).tolist()
            return dict(zip(noc_map.endpoints, numbers, strict=True)), (height, width), True
    except MemoryConfigError:
        pass
    cores = [
        each for each in noc_map.endpoints if not isinstance(each, int)
    ]  # some only store, beyond the compute grid
    across, down = max(core.x for core in cores) + 1, max(core.y for core in cores) + 1
    cells: dict[Endpoint, int] = {}
    for endpoint in noc_map.endpoints:
        cells[endpoint] = down * across + endpoint if isinstance(endpoint, int) else endpoint.y * across + endpoint.x
    return cells, (max(cells.values(), default=0) // across + 1, across), False


@dataclass(frozen=True, slots=True)
class ChipMap:
    """The places of a chip and the bytes of each pair (to, from) of endpoints.

    >>> from tilewright import TensorSpec, height_sharded, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
    >>> ChipMap.of(plan, plan.steps).largest_flows()[0]
    ('DRAM 0', '(0, 0)', 2048)
    """

    noc_map: NocMap
    traffic: dict[tuple[Endpoint, Endpoint], int]
    cells: dict[Endpoint, int]
    size: tuple[int, int]
    known: bool

    @classmethod
    def of(cls, plan: ReshardPlan, steps: Sequence[ReshardStep]) -> ChipMap:
        """Return the map of what `steps` of a `plan` move: as they go, also through cores and banks in between.

        >>> from tilewright import TensorSpec, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory("l1"))
        >>> ChipMap.of(plan, plan.steps).known
        True
        """
        traffic: dict[tuple[Endpoint, Endpoint], int] = {}
        for step in steps:
            for pair, size in step.requests.traffic.items():
                traffic[pair] = traffic.get(pair, 0) + size
        return cls(plan.noc_map, traffic, *chip_cells(plan.noc_map))

    def largest_flows(self) -> list[tuple[str, str, int]]:
        """Return the flows between different places as (from, to, bytes), the largest first.

        >>> ChipMap(NocMap.of("n150"), {(0, 1): 8}, *chip_cells(NocMap.of("n150"))).largest_flows()
        [('DRAM 1', 'DRAM 0', 8)]
        """
        flows = [
            (place_name(origin), place_name(to), size) for (to, origin), size in self.traffic.items() if to != origin
        ]
        return sorted(flows, key=lambda flow: -flow[2])

    def panels(self) -> tuple[Grid, Grid, Grid]:
        """Return the flows, the bytes that arrive, and the bytes that leave, as grids.

        >>> arrive = ChipMap(NocMap.of("n150"), {(0, 1): 8}, *chip_cells(NocMap.of("n150"))).panels()[1]
        >>> [value for value in arrive.field("in").values if value]
        [8]
        """
        rows, columns = self.size
        count = rows * columns
        place: list[Any] = [None] * count
        for endpoint, cell in self.cells.items():
            name = f"D{endpoint}" if isinstance(endpoint, int) else f"{endpoint.x},{endpoint.y}"
            place[cell] = name if place[cell] is None else f"{place[cell]} {name}"
        arriving, leaving, staying = ([0] * count for _ in range(3))
        gets: dict[int, list[tuple[int, str]]] = {}
        gives: dict[int, list[tuple[int, str]]] = {}
        flows: dict[tuple[int, int], int] = {}
        for (to, origin), size in self.traffic.items():
            source, target = self.cells[origin], self.cells[to]
            if to == origin:
                staying[target] += size
                continue
            arriving[target] += size
            leaving[source] += size
            gets.setdefault(target, []).append((size, place_name(origin)))
            gives.setdefault(source, []).append((size, place_name(to)))
            flows[source, target] = flows.get((source, target), 0) + size
        roles = [_role(*numbers) for numbers in zip(arriving, leaving, staying, strict=True)]
        fields = (
            Field("place", tuple(place)),
            Field("role", tuple(roles)),
            *[
                Field(name, tuple(size or None for size in sizes), "heat", BYTES)
                for name, sizes in (("in", arriving), ("out", leaving), ("stays", staying))
            ],
            Field("gets", tuple(_list_places(gets.get(cell, ()), "from") for cell in range(count))),
            Field("gives", tuple(_list_places(gives.get(cell, ()), "to") for cell in range(count))),
        )
        common: dict[str, Any] = {
            "row_axis": "y",
            "column_axis": "x",
            "link": tuple(None if name is None else cell for cell, name in enumerate(place)),
        }
        arrows = tuple(Flow(*pair, size) for pair, size in flows.items())
        return (
            Grid(rows, columns, fields, "flows", "role", "place", flows=arrows, **common),
            Grid(rows, columns, fields, "bytes that arrive", "in", "in", **common),
            Grid(rows, columns, fields, "bytes that leave", "out", "out", **common),
        )


def _role(arriving: int, leaving: int, staying: int) -> str | None:
    """Return what a place does, or None if nothing goes through it."""
    if arriving and leaving:
        return "sends and receives"
    return "receives" if arriving else "sends" if leaving else "keeps its own" if staying else None


def _list_places(parts: Iterable[tuple[int, str]], word: str) -> str | None:
    """Return how many bytes go from or to which places, the most first; None if there are none."""
    found = []
    for size, group in groupby(sorted(parts, key=lambda part: -part[0]), key=lambda part: part[0]):
        names = [name for _, name in group]
        more = f" and {len(names) - _NAMED} others" if len(names) > _NAMED else ""
        each = " each" if len(names) > 1 else ""
        found.append(f"{format_bytes(size)}{each} {word} {', '.join(names[:_NAMED])}{more}")
    return "; ".join([*found[:_NAMED], *(["..."] if len(found) > _NAMED else [])]) or None
