# SPDX-License-Identifier: Apache-2.0
"""`TransferRuns`: the bytes of a reshard as strided runs between pairs of endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..memory.paging import Integers
from .chains import Booleans, follow, run_lengths
from .noc import Endpoint, NocMap
from .page_moves import PageMoves

_ADDRESS_BITS = 36


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
        >>> from tilewright.traffic.page_moves import page_moves
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
        """Return the bytes of all runs.

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
