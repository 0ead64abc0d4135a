# SPDX-License-Identifier: Apache-2.0
"""`PageMoves`: where every page of a tensor is before a reshard and after it, as arrays.

Tiles, and rows of the same width, move as whole pages. Rows that are cut into pages of different widths move in pieces:
a row is cut wherever one of the two cuts it. The runtime moves units of the greatest common divisor of both widths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._integers import round_up
from ..errors import MemoryConfigError
from ..memory import AllocationMode, CoreCoord, Integers, TensorSpec
from .noc import NOC_NAMES, Endpoint, NocMap

_ADDRESS_BITS = 36  # of a key that sorts by endpoint, then by address; a bank has at most 2^33 bytes


@dataclass(frozen=True, slots=True, eq=False)
class PageMoves:
    """One entry for each page or piece of a page: `nbytes` from an endpoint and address to another.

    Endpoints are the numbers of a `NocMap`.

    >>> from tilewright import height_sharded
    >>> tiles = TensorSpec((64, 32), page_layout="tile", chip="n150")
    >>> moves = page_moves(tiles, tiles.with_memory(height_sharded((2, 1))))
    >>> len(moves), moves.nbytes.tolist()
    (2, [2048, 2048])
    """

    source: Integers
    source_address: Integers
    target: Integers
    target_address: Integers
    nbytes: Integers
    page: Integers  # of the target

    def __len__(self) -> int:
        return len(self.source)

    def take(self, order: Integers) -> PageMoves:
        """Return the entries in another `order`, or some of them.

        >>> tiles = TensorSpec((64, 32), page_layout="tile", chip="n150")
        >>> page_moves(tiles, tiles.with_memory("l1")).take(np.array([1])).page.tolist()
        [1]
        """
        return PageMoves(*[getattr(self, name)[order] for name in PageMoves.__slots__])

    @classmethod
    def join(cls, parts: Sequence[PageMoves]) -> PageMoves:
        """Return the entries of all `parts`.

        >>> tiles = TensorSpec((64, 32), page_layout="tile", chip="n150")
        >>> moves = page_moves(tiles, tiles.with_memory("l1"))
        >>> PageMoves.join([moves, moves]).page.tolist()
        [0, 1, 0, 1]
        """
        return cls(*[np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__])

    def by_target(self) -> PageMoves:
        """Return the entries target by target, in the order of their addresses there.

        >>> tiles = TensorSpec((64, 32), page_layout="tile", memory="l1", chip="n150")
        >>> page_moves(tiles, tiles.with_memory("dram")).by_target().target.tolist()
        [64, 65]
        """
        return self.take(_order_of(self.target, self.target_address))

    def by_source(self) -> PageMoves:
        """Return the entries source by source, in the order of their addresses there.

        >>> tiles = TensorSpec((64, 32), page_layout="tile", memory="l1", chip="n150")
        >>> page_moves(tiles, tiles.with_memory("dram")).by_source().page.tolist()
        [0, 1]
        """
        return self.take(_order_of(self.source, self.source_address))


def _order_of(endpoint: Integers, address: Integers) -> Integers:
    return np.argsort((endpoint << _ADDRESS_BITS) + address, kind="stable")


def validate_pair(source: TensorSpec, target: TensorSpec) -> None:
    """Raise unless `source` and `target` are the same pages of the same tensor on the same chip.

    >>> validate_pair(TensorSpec((4, 4), chip="n150"), TensorSpec((4, 8), chip="n150"))
    Traceback (most recent call last):
        ...
    tilewright.errors.MemoryConfigError: source has shape (4, 4), target has shape (4, 8): they must be equal, since a \
reshard moves pages; convert first
    """
    for name, one, other in (
        ("shape", source.shape.logical, target.shape.logical),
        ("dtype", source.dtype, target.dtype),
        ("page layout", source.page_layout, target.page_layout),
        ("tile", source.tile, target.tile),
        ("padded outer shape", source.padded_shape[:-1], target.padded_shape[:-1]),
    ):
        if one != other:
            raise MemoryConfigError(
                f"source has {name} {one}, target has {name} {other}: they must be equal, since a reshard moves pages;"
                " convert first"
            )
    if source.is_tiled and source.padded_shape != target.padded_shape:
        raise MemoryConfigError(
            f"source has padded shape {source.padded_shape}, target {target.padded_shape}: they must be equal, since a"
            " reshard moves tiles; give both the same alignment"
        )
    if source.memory.allocation is AllocationMode.PER_CORE:
        raise MemoryConfigError(f"{source}: ttnn moves no tensor with an address on each core; move it over the host")
    if source.known_chip != target.known_chip:
        raise MemoryConfigError(
            f"source is on {source.known_chip}, target on {target.known_chip}: a reshard stays on one chip; use"
            " with_chip for one of them"
        )


def has_equal_pages(source: TensorSpec, target: TensorSpec) -> bool:
    """Return whether `source` and `target` have the same pages, with the same numbers.

    >>> from tilewright import width_sharded
    >>> rows = TensorSpec((4, 64), chip="n150")
    >>> has_equal_pages(rows, rows.with_memory(width_sharded((2, 1))))
    False
    """
    return source.page_shape == target.page_shape and source.physical_shape == target.physical_shape


def page_moves(
    source: TensorSpec, target: TensorSpec, source_base: int = 0, target_base: int = 0, cut: str | int = "pages"
) -> PageMoves:
    """Return where every page of `source` is, and where it is in `target`, for buffers at two base addresses.

    Rows with pages of different widths are `cut` at the edges of both ("pages"), or into units of the greatest common
    divisor of both widths ("units"). If it is a number, also at its multiples, and rows end with their data.

    >>> from tilewright import width_sharded
    >>> rows = TensorSpec((1, 7), "int32", memory=width_sharded((2, 1), (1, 4)), chip="n150")
    >>> page_moves(rows, rows.with_memory(width_sharded((3, 1), (1, 3)))).nbytes.tolist()
    [12, 4, 8, 4]
    """
    noc = NocMap.of(source.known_chip)
    if not min(source.num_pages, target.num_pages):
        return PageMoves(*[np.zeros(0, dtype=np.int64)] * len(PageMoves.__slots__))
    before, after = source.pages(source_base), target.pages(target_base)
    here = noc.numbers(before.bank, source.memory.buffer_type)
    there = noc.numbers(after.bank, target.memory.buffer_type)
    if isinstance(cut, str) and has_equal_pages(source, target):
        nbytes = np.full(len(before), source.page_bytes, dtype=np.int64)
        return PageMoves(here, before.address, there, after.address, nbytes, after.page)
    itemsize = source.dtype.storage_format.itemsize
    widths = source.page_bytes, target.page_bytes
    unit = gcd(*widths)
    data = (source.shape.logical[-1] if source.shape.logical else 1) * itemsize
    # whole units move, and with them a little of the padding of rows
    width = round_up(data, unit) if isinstance(cut, str) else data
    steps = (*widths, cut) if isinstance(cut, int) else (unit,) if cut == "units" else widths
    edges = np.unique(np.concatenate([np.array([width]), *[np.arange(0, width, step) for step in steps]]))
    starts, sizes = edges[:-1], np.diff(edges)
    rows = np.arange(source.physical_shape[0], dtype=np.int64)[:, None]
    ends: list[Integers] = []  # the endpoint and the address of each piece, of both sides
    sides = ((source, source.page_bytes, here, before), (target, target.page_bytes, there, after))
    for spec, page_width, endpoints, table in sides:
        across, byte = np.divmod(starts, page_width)
        page = (rows * (spec.physical_shape[1] // spec.page_shape[1]) + across).reshape(-1)
        ends += [endpoints[page], table.address[page] + np.tile(byte, len(rows))]
    nbytes = np.tile(sizes, len(rows)).astype(np.int64)
    return PageMoves(ends[0], ends[1], ends[2], ends[3], nbytes, page)  # the pages of the target come last


# Runs of boolean arrays, and the starts of runs that are cut greedily.

Booleans: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


def run_lengths(continues: Booleans) -> Integers:
    """Return for each entry how many entries there are from it on to the end of its run.

    `continues[k]` tells whether entry k + 1 belongs to the run of entry k; there is one entry more than these.

    >>> run_lengths(np.array([True, True, False, True])).tolist()
    [3, 2, 1, 2, 1]
    """
    ends = np.append(np.flatnonzero(~continues), len(continues))
    sizes = np.diff(ends, prepend=-1)
    return np.repeat(ends, sizes) - np.arange(len(continues) + 1, dtype=np.int64) + 1


def follow(following: Integers, starts: Integers) -> Integers:
    """Return all entries that are reached from `starts` by going from an entry k to `following[k]`, in order.

    An entry is followed by a later one, or by `len(following)`, which ends the chain; chains must not meet.

    >>> follow(np.array([2, 2, 3, 5, 5]), np.array([0])).tolist()
    [0, 2, 3]
    """
    count = len(following)
    jump = np.append(following, count)
    reached, frontier = starts, starts
    while frontier.size:  # twice as far each time
        frontier = jump[reached]
        frontier = frontier[frontier < count]
        reached = np.concatenate([reached, frontier])
        jump = jump[jump]
    return np.sort(reached)


# `Requests`: the reads and writes of a kernel with its barriers, in the order in which each RISC issues them.

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
        """The position of each request in the list of its RISC.

        >>> noc = NocMap.of("n150")
        >>> Requests.none(noc).position.tolist()
        []
        """
        starts = np.searchsorted(self.owner, np.arange(len(self.core)))
        return np.arange(len(self), dtype=np.int64) - starts[self.owner]

    @cached_property
    def counts(self) -> Integers:
        """The number of requests of each RISC.

        >>> Requests.none(NocMap.of("n150")).counts.tolist()
        []
        """
        return np.bincount(self.owner, minlength=len(self.core))

    @cached_property
    def barrier_counts(self) -> Integers:
        """The number of barriers of each RISC.

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
        of_risc = ("core", "risc", "noc", "writes", "idle_barriers")
        of_request = ("remote", "remote_address", "local_address", "nbytes", "barriers")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in (*of_risc, *of_request)}
        return cls(noc_map=parts[0].noc_map, owner=np.concatenate(owners), **joined)

    @cached_property
    def traffic(self) -> dict[tuple[Endpoint, Endpoint], int]:
        """The bytes of each pair (to, from) of endpoints.

        >>> Requests.none(NocMap.of("n150")).traffic
        {}
        """
        own = self.core[self.owner]
        writes = self.writes[self.owner]
        to, origin = np.where(writes, self.remote, own), np.where(writes, own, self.remote)
        return sum_pairs(self.noc_map, to, origin, self.nbytes)

    @cached_property
    def packets(self) -> dict[tuple[str, str, Endpoint, Endpoint], dict[int, int]]:
        """The packets by network, "read" or "write", from and to: {bytes: how many}.

        A request for more than a packet carries is several. The port of a DRAM bank is `noc_map.port(bank, noc)`.

        >>> noc = NocMap.of("n150")
        >>> one = np.array([0])
        >>> Requests(noc, one, one, one, one > 0, one, one, one + 64, one, one, one + 10000, one).packets
        {('NOC_0', 'read', 0, CoreCoord(x=0, y=0)): {8192: 1, 1808: 1}}
        """
        most, endpoints = self.noc_map.chip.packet_bytes, self.noc_map.endpoints
        rows = np.stack(
            [self.noc[self.owner], self.writes[self.owner], self.core[self.owner], self.remote, self.nbytes]
        )
        kinds, counts = np.unique(rows, axis=1, return_counts=True)
        found: dict[tuple[str, str, Endpoint, Endpoint], dict[int, int]] = {}
        for (noc, writes, core, remote, nbytes), count in zip(kinds.T.tolist(), counts.tolist(), strict=True):
            ends = (core, remote) if writes else (remote, core)
            flow = NOC_NAMES[noc], "write" if writes else "read", endpoints[ends[0]], endpoints[ends[1]]
            sizes = found.setdefault(flow, {})
            whole, rest = divmod(nbytes, most)
            for size, number in ((most, whole), (rest, 1)):
                if size and number:
                    sizes[size] = sizes.get(size, 0) + number * count
        return found

    @cached_property
    def reads(self) -> RequestLists:
        """The reads and barriers of each RISC that reads, in order.

        >>> dict(Requests.none(NocMap.of("n150")).reads)
        {}
        """
        return RequestLists(self, writes=False)

    @cached_property
    def written(self) -> RequestLists:
        """The writes and barriers of each RISC that writes, in order.

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
        columns = (requests.core, requests.risc, requests.noc, requests.writes)
        self._numbers = {
            Risc(CoreCoord(*endpoints[core]), RISC_NAMES[risc], NOC_NAMES[noc]): number
            for number, (core, risc, noc, is_write) in enumerate(zip(*[part.tolist() for part in columns], strict=True))
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
        for endpoint, size, count, waits in zip(*[part.tolist() for part in parts], strict=True):
            runs.append((endpoints[endpoint], size, count))
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


# `TransferRuns`: the bytes of a reshard as strided runs between pairs of endpoints.


@dataclass(frozen=True, slots=True)
class TransferRun:
    """A run: `count` pieces of `nbytes` each from a core or DRAM bank to another, each side with its stride.

    >>> TransferRun(0, 1048640, 2048, 5, 1048640, 2048, 2048, 4).count
    4
    """

    source: Endpoint
    source_address: int
    source_stride: int
    target: Endpoint
    target_address: int
    target_stride: int
    nbytes: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class TransferRuns:
    """The runs of a reshard, pair by pair, as arrays; endpoints are the numbers of `noc_map`.

    >>> from tilewright import TensorSpec, height_sharded, reshard
    >>> spec = TensorSpec((128, 32), page_layout="tile", memory=height_sharded((2, 1)), chip="n150")
    >>> for transfer in reshard(spec, spec.with_memory(height_sharded((4, 1)))).transfers:
    ...     print(transfer.source, "to", transfer.target, transfer.nbytes)
    (0, 0) to (0, 0) 2048
    (0, 0) to (1, 0) 2048
    (1, 0) to (2, 0) 2048
    (1, 0) to (3, 0) 2048
    """

    noc_map: NocMap
    source: Integers
    source_address: Integers
    source_stride: Integers
    target: Integers
    target_address: Integers
    target_stride: Integers
    nbytes: Integers
    count: Integers

    @classmethod
    def of(cls, moves: PageMoves, noc_map: NocMap) -> TransferRuns:
        """Return the runs of `moves` on `noc_map`: pieces that touch are one, equal pieces at equal distances a run.

        >>> from tilewright import TensorSpec
        >>> from tilewright.traffic.moves import page_moves
        >>> spec = TensorSpec((1024, 1024), page_layout="tile", chip="n150")
        >>> len(TransferRuns.of(page_moves(spec, spec.with_memory("l1")), NocMap.of("n150")))
        192
        """
        if not len(moves):
            return cls(noc_map, *[np.zeros(0, dtype=np.int64)] * 8)
        pair = moves.target * len(noc_map.endpoints) + moves.source
        entries = moves.take(np.argsort((pair << _ADDRESS_BITS) + moves.target_address, kind="stable"))
        joins = _same_pair(entries)
        joins &= np.diff(entries.source_address) == entries.nbytes[:-1]
        joins &= np.diff(entries.target_address) == entries.nbytes[:-1]
        starts = np.flatnonzero(np.append(True, ~joins))
        sizes = np.add.reduceat(entries.nbytes, starts)
        pieces = entries.take(starts)
        steps = np.stack([np.diff(pieces.source_address), np.diff(pieces.target_address)], axis=1)
        linked = _same_pair(pieces) & (sizes[1:] == sizes[:-1])
        alike = linked[1:] & linked[:-1] & (steps[1:] == steps[:-1]).all(axis=1)
        length = np.append(run_lengths(alike) if len(linked) else np.zeros(0, np.int64), 0)
        count = np.where(np.append(linked, False), length + 1, 1)
        first = follow(np.arange(len(pieces)) + count, np.zeros(1, dtype=np.int64))
        many = count[first] > 1
        step = np.append(steps, [[0, 0]], axis=0)[first]
        stride = np.where(many[:, None], step, sizes[first][:, None])
        run = pieces.take(first)
        return cls(
            noc_map, run.source, run.source_address, stride[:, 0], run.target, run.target_address, stride[:, 1],
            sizes[first], count[first],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[TransferRun]:
        endpoints = self.noc_map.endpoints
        for source, address, stride, target, *rest in zip(
            *[getattr(self, name).tolist() for name in self.__slots__[1:]], strict=True
        ):
            yield TransferRun(endpoints[source], address, stride, endpoints[target], *rest)

    @property
    def total_bytes(self) -> int:
        """The bytes of all runs.

        >>> TransferRuns(NocMap.of("n150"), *[np.array([8])] * 8).total_bytes
        64
        """
        return int((self.nbytes * self.count).sum())

    def pieces(self) -> PageMoves:
        """Return the pieces of all runs, one by one.

        >>> TransferRuns(NocMap.of("n150"), *[np.array([8])] * 8).pieces().source_address.tolist()
        [8, 16, 24, 32, 40, 48, 56, 64]
        """
        owner = np.repeat(np.arange(len(self)), self.count)
        step = np.arange(len(owner)) - np.repeat(np.cumsum(self.count) - self.count, self.count)
        return PageMoves(
            self.source[owner],
            self.source_address[owner] + step * self.source_stride[owner],
            self.target[owner],
            self.target_address[owner] + step * self.target_stride[owner],
            self.nbytes[owner],
            owner,
        )

    def __repr__(self) -> str:
        return f"<{len(self)} runs, {self.total_bytes} bytes>"


def _same_pair(entries: PageMoves) -> Booleans:
    """Return whether each entry and the next have the same source and target."""
    same: Booleans = (entries.source[1:] == entries.source[:-1]) & (entries.target[1:] == entries.target[:-1])
    return same
