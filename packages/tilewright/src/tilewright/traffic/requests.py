# SPDX-License-Identifier: Apache-2.0
"""`Requests`: the reads and writes of a kernel with its barriers, in the order in which each RISC issues them.

A data mover of a core (a RISC) issues requests on one of the two networks and waits for them at barriers. All requests
of all RISCs are one table of arrays; `RequestLists` shows it as lists, run by run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from ..memory import CoreCoord
from ..memory.paging import Integers
from .chains import Booleans, run_lengths
from .noc import NOC_NAMES, Endpoint, NocMap

RISC_NAMES = ("NCRISC", "BRISC")
BARRIER = "barrier"
RequestRun: TypeAlias = "tuple[Endpoint, int, int] | tuple[str, int]"  # (endpoint, bytes, count), ("barrier", count)


class Risc(NamedTuple):
    """A data mover: its `core`, its name (`risc`), and the network that it uses (`noc`).

    >>> mover = Risc(CoreCoord(0, 0), "NCRISC", "NOC_0")
    >>> mover.noc
    'NOC_0'
    """

    core: CoreCoord
    risc: str
    noc: str


@dataclass(frozen=True, eq=False)
class Requests:
    """The requests of all RISCs of a kernel.

    Of each RISC: the number of its `core` in the map `noc_map`, its name and network (`risc`, `noc`: 0 or 1), whether
    it writes (`writes`), and the barriers that it waits at without any request (`idle_barriers`). Of each request, RISC
    by RISC and in order: its RISC (`owner`), the endpoint it reads from or writes to (`remote`), both addresses, its
    size, and the number of `barriers` after it.

    >>> noc = NocMap.of("n150")
    >>> one = np.array([0])
    >>> requests = Requests(noc, one, one, one, one > 0, one, one, one + 64, one, one, one + 2048, one + 1)
    >>> requests.reads[CoreCoord(0, 0), "NCRISC", "NOC_0"]
    ((0, 2048, 1), ('barrier', 1))
    """

    noc_map: NocMap
    core: Integers
    risc: Integers
    noc: Integers
    writes: Booleans
    idle_barriers: Integers
    owner: Integers
    remote: Integers
    remote_address: Integers
    local_address: Integers
    nbytes: Integers
    barriers: Integers

    def __len__(self) -> int:
        return len(self.owner)

    @cached_property
    def position(self) -> Integers:
        """Return the position of each request in the list of its RISC.

        >>> noc = NocMap.of("n150")
        >>> Requests.none(noc).position.tolist()
        []
        """
        starts = np.searchsorted(self.owner, np.arange(len(self.core)))
        return np.arange(len(self), dtype=np.int64) - starts[self.owner]

    @cached_property
    def counts(self) -> Integers:
        """Return the number of requests of each RISC.

        >>> Requests.none(NocMap.of("n150")).counts.tolist()
        []
        """
        return np.bincount(self.owner, minlength=len(self.core))

    @cached_property
    def barrier_counts(self) -> Integers:
        """Return the number of barriers of each RISC.

        >>> Requests.none(NocMap.of("n150")).barrier_counts.tolist()
        []
        """
        waits = np.bincount(self.owner, weights=self.barriers, minlength=len(self.core)).astype(np.int64)
        return waits + self.idle_barriers

    @classmethod
    def none(cls, noc_map: NocMap) -> Requests:
        """Return the requests of a kernel that issues none, on the network of `noc_map`.

        >>> len(Requests.none(NocMap.of("n150")))
        0
        """
        empty = np.zeros(0, dtype=np.int64)
        return cls(noc_map, empty, empty, empty, empty > 0, empty, *[empty] * 6)

    @classmethod
    def join(cls, parts: list[Requests]) -> Requests:
        """Return the requests of several kernels, `parts`, that run at the same time.

        >>> len(Requests.join([Requests.none(NocMap.of("n150"))] * 2))
        0
        """
        first = np.cumsum([0, *[len(part.core) for part in parts]])
        owners = [part.owner + start for part, start in zip(parts, first, strict=False)]
        names = ("core", "risc", "noc", "writes", "idle_barriers")
        each = ("remote", "remote_address", "local_address", "nbytes", "barriers")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in (*names, *each)}
        return cls(noc_map=parts[0].noc_map, owner=np.concatenate(owners), **joined)

    @cached_property
    def traffic(self) -> dict[tuple[Endpoint, Endpoint], int]:
        """Return the bytes of each pair (to, from) of endpoints.

        >>> Requests.none(NocMap.of("n150")).traffic
        {}
        """
        own = self.core[self.owner]
        writes = self.writes[self.owner]
        to, origin = np.where(writes, self.remote, own), np.where(writes, own, self.remote)
        return sum_pairs(self.noc_map, to, origin, self.nbytes)

    @cached_property
    def reads(self) -> RequestLists:
        """Return the reads and barriers of each RISC that reads, in order.

        >>> dict(Requests.none(NocMap.of("n150")).reads)
        {}
        """
        return RequestLists(self, writes=False)

    @cached_property
    def written(self) -> RequestLists:
        """Return the writes and barriers of each RISC that writes, in order.

        >>> dict(Requests.none(NocMap.of("n150")).written)
        {}
        """
        return RequestLists(self, writes=True)


class RequestLists(Mapping[Risc, tuple[RequestRun, ...]]):
    """The requests of each RISC as runs: (endpoint, bytes of one request, count in a row) or ("barrier", count).

    >>> len(RequestLists(Requests.none(NocMap.of("n150")), writes=False))
    0
    """

    def __init__(self, requests: Requests, writes: bool) -> None:
        self._requests = requests
        endpoints = requests.noc_map.endpoints
        self._numbers = {
            Risc(CoreCoord(*endpoints[core]), RISC_NAMES[risc], NOC_NAMES[noc]): number
            for number, (core, risc, noc, is_write) in enumerate(
                zip(
                    requests.core.tolist(),
                    requests.risc.tolist(),
                    requests.noc.tolist(),
                    requests.writes.tolist(),
                    strict=True,
                )
            )
            if is_write == writes
        }

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Risc]:
        return iter(self._numbers)

    def __getitem__(self, risc: tuple[CoreCoord | tuple[int, int], str, str]) -> tuple[RequestRun, ...]:
        core, name, noc = risc
        number = self._numbers[Risc(CoreCoord.of(core), name, noc)]
        requests = self._requests
        first, last = np.searchsorted(requests.owner, [number, number + 1])
        idle = int(requests.idle_barriers[number])
        runs: list[RequestRun] = [(BARRIER, idle)] if idle else []
        if first == last:
            return tuple(runs)
        remote, nbytes, barriers = (part[first:last] for part in (requests.remote, requests.nbytes, requests.barriers))
        lengths = run_lengths((remote[1:] == remote[:-1]) & (nbytes[1:] == nbytes[:-1]) & (barriers[:-1] == 0))
        starts = np.flatnonzero(np.append(True, lengths[:-1] == 1))
        endpoints = requests.noc_map.endpoints
        ends = starts + lengths[starts] - 1
        parts = (remote[starts], nbytes[starts], lengths[starts], barriers[ends])
        for place, size, count, waits in zip(*[part.tolist() for part in parts], strict=True):
            runs.append((endpoints[place], size, count))
            if waits:
                runs.append((BARRIER, waits))
        return tuple(runs)

    def __repr__(self) -> str:
        return f"<{len(self)} lists, {len(self._requests)} requests>"


def sum_pairs(
    noc_map: NocMap, to: Integers, origin: Integers, nbytes: Integers
) -> dict[tuple[Endpoint, Endpoint], int]:
    """Return the bytes of each pair (to, from) of endpoints, core by core and bank by bank.

    >>> sum_pairs(NocMap.of("n150"), np.array([0, 0]), np.array([64, 64]), np.array([8, 8]))
    {(CoreCoord(x=0, y=0), 0): 16}
    """
    total = len(noc_map.endpoints)
    sums = np.bincount(to * total + origin, weights=nbytes, minlength=0)  # exact below 2^53 bytes
    pairs = np.flatnonzero(sums)
    ends = np.divmod(pairs, total)
    endpoints, traffic = noc_map.endpoints, dict[tuple[Endpoint, Endpoint], int]()
    for one, other, size in zip(*[part.tolist() for part in (*ends, sums[pairs])], strict=True):
        pair = endpoints[one], endpoints[other]
        traffic[pair] = traffic.get(pair, 0) + int(size)
    return traffic
