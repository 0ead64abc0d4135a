# SPDX-License-Identifier: Apache-2.0
"""`NocMap`: the network on chip: where cores and DRAM banks are on it, and the links on the way between two of them.

There are two networks, tori of the same nodes. Data on NOC_0 go right to the column, then down to the row; data on
NOC_1 go up to the row, then left to the column. A link is one of the two that leave a node of a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from ..errors import MemoryConfigError
from ..memory import BufferType, Chip, ChipLike, CoreCoord, Integers

Endpoint: TypeAlias = CoreCoord | int  # a core, or the number of a DRAM bank

NOC_NAMES = ("NOC_0", "NOC_1")
_DIRECTIONS = (("+x", "+y"), ("-x", "-y"))


class Link(NamedTuple):
    """A link of the network: the `noc`, the position (`x`, `y`) of the node it leaves, and its `direction`.

    >>> print(Link("NOC_0", 3, 1, "+x"))
    NOC_0 (3, 1) +x
    """

    noc: str
    x: int
    y: int
    direction: str

    def __str__(self) -> str:
        return f"{self.noc} ({self.x}, {self.y}) {self.direction}"


@dataclass(frozen=True)
class NocMap:
    """The network on chip of a `chip`. Its endpoints are numbered: the L1 of cores row by row, then the DRAM banks.

    >>> noc = NocMap.of("wormhole_n150")
    >>> noc.position((4, 0)), noc.position(0)
    ((6, 1), (0, 11))
    """

    chip: Chip

    @classmethod
    def of(cls, chip: ChipLike) -> NocMap:
        """Return the network of a `chip` or of the chip with that name.

        >>> NocMap.of("p150").size
        (17, 12)
        """
        return _cached_map(Chip.of(chip))

    @cached_property
    def size(self) -> tuple[int, int]:
        """The columns and rows of the network.

        >>> NocMap.of("wormhole_n150").size
        (10, 12)
        """
        if len(self.chip.noc_size) != 2:
            raise MemoryConfigError(
                f"the routes of {self.chip.name} are not known; describe its network in [noc] of its"
                " .toml file: size, columns and rows"
            )
        return self.chip.noc_size[0], self.chip.noc_size[1]

    @cached_property
    def num_l1(self) -> int:
        """The number of endpoints in L1, which is the number of the first DRAM bank.

        >>> NocMap.of("wormhole_n150").num_l1
        64
        """
        return self.chip.banks(BufferType.L1)

    @cached_property
    def l1_banks(self) -> Integers:
        """The L1 bank of each endpoint that has one.

        >>> NocMap.of("wormhole_n150").l1_banks[:2].tolist()
        [34, 63]
        """
        cores = self.chip.l1_cores
        order = sorted(range(len(cores)), key=lambda bank: (cores[bank].y, cores[bank].x, bank))
        return np.array(order, dtype=np.int64)

    def numbers(self, banks: Integers, buffer: BufferType) -> Integers:
        """Return the numbers of the endpoints that are `banks` of the memory `buffer`.

        >>> NocMap.of("wormhole_n150").numbers(np.array([63, 34]), BufferType.L1).tolist()
        [1, 0]
        """
        return self._l1_numbers[banks] if buffer.is_l1 else banks + self.num_l1

    def banks(self, numbers: Integers) -> Integers:
        """Return the banks, of L1 or of DRAM, of the endpoints with these `numbers`.

        >>> NocMap.of("wormhole_n150").banks(np.array([0, 64])).tolist()
        [34, 0]
        """
        return np.append(self.l1_banks, np.arange(self.chip.dram_banks))[numbers]

    @cached_property
    def _l1_numbers(self) -> Integers:
        return np.argsort(self.l1_banks)

    @cached_property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints: the core of each L1 bank, and the number of each DRAM bank.

        >>> endpoints = NocMap.of("wormhole_n150").endpoints
        >>> endpoints[1], endpoints[64]
        (CoreCoord(x=1, y=0), 0)
        """
        return (*[self.chip.l1_cores[bank] for bank in self.l1_banks.tolist()], *range(self.chip.dram_banks))

    @cached_property
    def cores(self) -> Integers:
        """X and y of the core of each endpoint, as rows of an array; a DRAM bank has x = bank and y = 0.

        >>> NocMap.of("wormhole_n150").cores[[1, 64 + 5]].tolist()
        [[1, 0], [5, 0]]
        """
        cores = [*self.endpoints[: self.num_l1], *self.chip.bank_cores(BufferType.DRAM)]
        return np.array(cores, dtype=np.int64)

    @cached_property
    def number_of(self) -> dict[Endpoint, int]:
        """The number of each endpoint; of a core with several banks, the first.

        >>> NocMap.of("wormhole_n150").number_of[CoreCoord(0, 1)]
        8
        """
        return {endpoint: number for number, endpoint in reversed(list(enumerate(self.endpoints)))}

    @cached_property
    def positions(self) -> Integers:
        """X and y of each endpoint on NOC 0 and on NOC 1, which may use other ports of a bank; -1 if it is not known.

        >>> NocMap.of("p150").positions[:, 110].tolist()
        [[0, 11], [0, 1]]
        """
        width, height = self.size
        chip = self.chip
        unknown = np.full(max(width, height), -1, dtype=np.int64)
        columns = np.concatenate([np.array(chip.noc_columns, dtype=np.int64), unknown])
        rows = np.concatenate([np.array(chip.noc_rows, dtype=np.int64), unknown])
        l1 = self.cores[: self.num_l1]
        workers = np.stack([columns[l1[:, 0]], rows[l1[:, 1]]], axis=1)
        banks = np.full((2, chip.dram_banks, 2), -1, dtype=np.int64)
        if len(chip.noc_dram) == chip.dram_banks:
            banks[:] = [[ports[self.port(bank, noc)] for bank, ports in enumerate(chip.noc_dram)] for noc in (0, 1)]
        return np.concatenate([np.stack([workers, workers]), banks], axis=1)

    def port(self, bank: int, noc: int) -> int:
        """Return the port of a DRAM `bank` that network `noc` (0 or 1) uses.

        >>> [NocMap.of("p150").port(0, noc) for noc in (0, 1)]
        [2, 1]
        """
        return self.chip.dram_ports[noc][bank] if self.chip.dram_ports else 0

    @cached_property
    def places(self) -> dict[tuple[int, int], Endpoint]:
        """The endpoint at each position on the network, with all ports of the DRAM banks.

        >>> NocMap.of("p150").places[0, 1], NocMap.of("p150").places[1, 2]
        (0, CoreCoord(x=0, y=0))
        """
        cores = zip(self.endpoints[: self.num_l1], self.positions[0].tolist(), strict=False)
        found: dict[tuple[int, int], Endpoint] = {(x, y): core for core, (x, y) in cores if min(x, y) >= 0}
        return found | {port: bank for bank, ports in enumerate(self.chip.noc_dram) for port in ports}

    def position(self, endpoint: Endpoint | tuple[int, int], noc: int = 0) -> tuple[int, int]:
        """Return the position on network `noc` of an `endpoint`: a core (x, y), or the number of a DRAM bank.

        >>> NocMap.of("p150").position((7, 0))
        (10, 2)
        """
        key = endpoint if isinstance(endpoint, int) else CoreCoord.of(endpoint)
        if key not in self.number_of:
            across, down = self.chip.compute_grid
            raise MemoryConfigError(
                f"{self.chip.name} has cores (0, 0) to ({across - 1}, {down - 1}) and DRAM banks 0 to"
                f" {self.chip.dram_banks - 1}, got {endpoint}"
            )
        x, y = self.positions[noc, self.number_of[key]].tolist()
        if min(x, y) < 0:
            raise MemoryConfigError(f"where {endpoint} of {self.chip.name} is on the network is not known")
        return x, y

    @property
    def num_links(self) -> int:
        """The number of links of both networks.

        >>> NocMap.of("wormhole_n150").num_links
        480
        """
        return 4 * self.size[0] * self.size[1]

    def link(self, number: int) -> Link:
        """Return the link with a `number`.

        >>> NocMap.of("wormhole_n150").link(2 * (1 * 10 + 3))
        Link(noc='NOC_0', x=3, y=1, direction='+x')
        """
        width, height = self.size
        node, axis = divmod(int(number), 2)
        row, x = divmod(node, width)
        noc, y = divmod(row, height)
        return Link(NOC_NAMES[noc], x, y, _DIRECTIONS[noc][axis])

    def route(self, noc: int, source: Endpoint | tuple[int, int], target: Endpoint | tuple[int, int]) -> list[Link]:
        """Return the links that data pass on network `noc` (0 or 1) from `source` to `target`, in order.

        >>> [str(link) for link in NocMap.of("wormhole_n150").route(0, (0, 0), (1, 1))]
        ['NOC_0 (1, 1) +x', 'NOC_0 (2, 1) +y']
        >>> [str(link) for link in NocMap.of("wormhole_n150").route(1, (1, 1), (0, 0))]
        ['NOC_1 (2, 2) -y', 'NOC_1 (2, 1) -x']
        """
        ends = np.array([self.position(source, noc), self.position(target, noc)], dtype=np.int64)
        _, links = self._links_between(np.array([noc]), ends[:1], ends[1:])
        return [self.link(number) for number in links.tolist()]

    def links_between(self, noc: Integers, source: Integers, target: Integers) -> tuple[Integers, Integers]:
        """Return the links on the way of each of many flows: the numbers of the flow and of the link.

        `noc` has 0 or 1 for each flow, `source` and `target` have the numbers of endpoints.

        >>> noc = NocMap.of("wormhole_n150")
        >>> flow, link = noc.links_between(np.array([0]), np.array([64]), np.array([64 + 1]))
        >>> [str(noc.link(number)) for number in link]
        ['NOC_0 (0, 11) +y', 'NOC_0 (0, 0) +y']
        """
        ends = self.positions[noc, source], self.positions[noc, target]
        for name, positions in zip((source, target), ends, strict=True):
            if positions.size and positions.min() < 0:
                first = self.endpoints[int(name[np.flatnonzero(positions.min(axis=1) < 0)[0]])]
                raise MemoryConfigError(f"where {first} of {self.chip.name} is on the network is not known")
        return self._links_between(noc, *ends)

    def _links_between(self, noc: Integers, source: Integers, target: Integers) -> tuple[Integers, Integers]:
        """Return the same for flows between positions."""
        width, height = self.size
        sign = 1 - 2 * noc
        along_x = ((target[:, 0] - source[:, 0]) * sign) % width
        along_y = ((target[:, 1] - source[:, 1]) * sign) % height
        flow, step = _count_up(along_x + along_y)
        first = np.where(noc == 0, along_x, along_y)[flow]  # hops along the first axis
        is_first, later = step < first, step - first
        on_x = is_first == (noc[flow] == 0)
        hops = np.where(is_first, step, later) * sign[flow]
        # along the first axis the other coordinate is the source's, along the second the target's
        x = np.where(on_x, source[flow, 0] + hops, np.where(is_first, source[flow, 0], target[flow, 0])) % width
        y = np.where(on_x, np.where(is_first, source[flow, 1], target[flow, 1]), source[flow, 1] + hops) % height
        return flow, ((noc[flow] * height + y) * width + x) * 2 + np.where(on_x, 0, 1)


def _count_up(lengths: Integers) -> tuple[Integers, Integers]:
    """Return for each number n of `lengths` n entries: its position in `lengths`, and 0 to n - 1."""
    owner = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    starts = np.cumsum(lengths) - lengths
    return owner, np.arange(len(owner), dtype=np.int64) - starts[owner]


@lru_cache(maxsize=64)
def _cached_map(chip: Chip) -> NocMap:
    return NocMap(chip)
