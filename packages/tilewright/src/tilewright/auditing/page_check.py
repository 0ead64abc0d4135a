# SPDX-License-Identifier: Apache-2.0
"""The pages of a report against the model: the core and address of each, its size, and whether all are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..files import PageBatch
from ..memory import Integers, TensorSpec
from ..severity import Severity
from .buffer_check import CheckedBuffer
from .finding import AuditFinding
from .run import Run

_MOST_PAGES = 2**40  # of a tensor whose pages are compared; addresses of more do not fit any memory
_MANY = 4  # one in so many wrong pages means that the shards are others


@dataclass
class _PageTally:
    """What was seen of the pages of one buffer."""

    checked: CheckedBuffer
    spec: TensorSpec
    seen: list[Integers] = field(default_factory=list)  # pages that were listed: sorted parts, each half as long
    count: int = 0
    wrong: int = 0
    first: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # kind: what was found, recorded, expected
    totals: dict[str, int] = field(default_factory=dict)

    def add_pages(self, pages: Integers) -> NDArray[np.bool_]:
        """Remember sorted `pages`, each once, and return which of them were listed before.

        Parts are joined when they are about as long, so that a report in many small pieces takes no longer.
        """
        before = np.zeros(len(pages), np.bool_)
        for part in self.seen:
            places = np.minimum(np.searchsorted(part, pages), len(part) - 1)
            before |= part[places] == pages
        new = pages[~before]
        if len(new):
            self.seen.append(new)
        while len(self.seen) > 1 and 2 * len(self.seen[-1]) > len(self.seen[-2]):
            last = self.seen.pop()
            self.seen[-1] = np.sort(np.concatenate([self.seen[-1], last]))
        return before


class PageCheck:
    """Compares batches of pages with the model and remembers what was seen of each buffer.

    >>> from .run import build_run
    >>> check = PageCheck(build_run([]))
    >>> list(check.findings([]))
    []
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.pages = 0
        self._tallies: dict[int, _PageTally] = {}
        self._unknown: dict[int, int] = {}

    def add(self, batch: PageBatch, checked: CheckedBuffer | None) -> None:
        """Compare the pages of a `batch`, which belong to the buffer `checked`; None if it is not in the graph.

        >>> from .run import build_run
        >>> PageCheck(build_run([])).add(PageBatch.of([], None), None)
        """
        self.pages += len(batch)
        if checked is None:
            address = int(batch.column("address")[0]) if len(batch) else -1
            self._unknown[address] = self._unknown.get(address, 0) + len(batch)
            return
        if checked.spec is None or checked.spec.num_pages > _MOST_PAGES:
            return
        tally = self._tallies.get(checked.buffer.number)
        if tally is None:
            tally = _PageTally(checked, self._choose_spec(checked, checked.spec, batch))
            self._tallies[checked.buffer.number] = tally
        self._compare(tally, batch)

    def _choose_spec(self, checked: CheckedBuffer, spec: TensorSpec, batch: PageBatch) -> TensorSpec:
        """Return the spec of a buffer; of several tiles with the same facts, the first that pages agree with."""
        agreeing = []
        for candidate in (spec, *checked.alike) if checked.alike else ():
            probe = _PageTally(checked, candidate)
            self._compare(probe, batch)
            if not probe.totals:
                agreeing.append(candidate)
        complete = [candidate for candidate in agreeing if candidate.num_pages == len(batch)]
        return next(iter([*complete, *agreeing]), spec)

    def _compare(self, tally: _PageTally, batch: PageBatch) -> None:
        spec = tally.spec
        index = batch.column("page_index")
        inside = (index >= 0) & (index < spec.num_pages)
        places = place_pages(spec, tally.checked.buffer.address, np.where(inside, index, 0))
        recorded = [batch.column(name) for name in ("core_x", "core_y", "page_address")]
        other_core = inside & ((recorded[0] != places[0]) | (recorded[1] != places[1]))
        other_address = inside & (recorded[2] != places[2])
        again = np.ones(len(index), np.bool_)
        listed, firsts = np.unique(np.where(inside, index, -1), return_index=True)
        pages, firsts = listed[listed >= 0], firsts[listed >= 0]
        again[firsts] = tally.add_pages(pages)
        tally.count += len(batch)
        tally.wrong += int(np.count_nonzero(other_core | other_address))
        self._record(tally, "page core", other_core, batch, places)
        self._record(tally, "page address", other_address, batch, places)
        self._record(tally, "page size", batch.column("page_size") != spec.page_bytes, batch, places)
        self._record(tally, "page unknown", ~inside, batch, places)
        self._record(tally, "page twice", inside & again, batch, places)

    def _record(
        self, tally: _PageTally, kind: str, wrong: NDArray[np.bool_], batch: PageBatch,
        places: tuple[Integers, Integers, Integers],
    ) -> None:  # fmt: skip
        count = int(np.count_nonzero(wrong))
        if not count:
            return
        tally.totals[kind] = tally.totals.get(kind, 0) + count
        if kind in tally.first:
            return
        k = int(np.argmax(wrong))
        page = int(batch.column("page_index")[k])
        x, y, address = (int(batch.column(name)[k]) for name in ("core_x", "core_y", "page_address"))
        here = f"({x}, {y}) {address}"
        model = f"({places[0][k]}, {places[1][k]}) {places[2][k]}"
        message = f"page {page} is at {here}, the model says {model}"
        if kind == "page size":
            here, model = str(int(batch.column("page_size")[k])), str(tally.spec.page_bytes)
            message = f"page {page} has {here} bytes, the model says {model}"
        elif kind == "page unknown":
            model = f"0 to {tally.spec.num_pages - 1}"
            message = f"page {page} at {here} does not exist, the model has pages {model}"
        elif kind == "page twice":
            message = f"page {page} is listed twice, again at {here}"
        tally.first[kind] = message, here, model

    def findings(self, expected: Iterable[CheckedBuffer]) -> Iterator[AuditFinding]:
        """Yield what is wrong with the pages that were added; the buffers `expected` should have had some.

        >>> from .run import build_run
        >>> list(PageCheck(build_run([])).findings([]))
        []
        """
        for tally in self._tallies.values():
            yield from self._tally_findings(tally)
        for checked in expected:
            spec = checked.spec
            if spec is None or checked.buffer.number in self._tallies or not spec.num_pages:
                continue
            yield self._make_finding(
                checked, "page missing", f"no page is listed, the model has {spec.num_pages}", "0", str(spec.num_pages),
                "every page of a buffer in L1 is listed while it is allocated", spec.num_pages,
            )  # fmt: skip
        for address, count in self._unknown.items():
            yield AuditFinding(
                "buffer unknown",
                f"{count} pages are listed for a buffer at {address} that nothing in the graph allocates",
                Severity.NOTE,
                address=address,
                recorded=count,
                expected=0,
                reason="pages belong to an allocation",
                remedy="capture from the start of the program, so that the graph has all allocations",
            )

    def _tally_findings(self, tally: _PageTally) -> Iterator[AuditFinding]:
        checked, spec = tally.checked, tally.spec
        listed = np.sort(np.concatenate(tally.seen)) if tally.seen else np.zeros(0, np.int64)
        if len(listed) < spec.num_pages:
            gaps = np.flatnonzero(listed != np.arange(len(listed)))
            page = int(gaps[0]) if len(gaps) else len(listed)
            x, y, address = place_pages(spec, checked.buffer.address, np.array([page]))
            place = f"({x[0]}, {y[0]}) {address[0]}"
            yield self._make_finding(
                checked, "page missing", f"page {page} is not listed, the model says {place}", "", place,
                "every page of a buffer in L1 is listed while it is allocated", spec.num_pages - len(listed),
            )  # fmt: skip
        for kind, (message, recorded, model) in tally.first.items():
            yield self._make_finding(
                checked, kind, message, recorded, model, "the model places pages by the spec of the tensor",
                tally.totals[kind],
            )  # fmt: skip
        if spec.memory.is_sharded and tally.wrong * _MANY > max(_MANY, tally.count):
            yield self._make_finding(
                checked, "shard shape",
                f"{tally.wrong} of {tally.count} pages are not where {spec.memory} puts them",
                str(tally.wrong), "0", "so many wrong pages mean other shards, or another order of the cores", 1,
            )  # fmt: skip

    def _make_finding(
        self, checked: CheckedBuffer, kind: str, message: str, recorded: str, expected: str, reason: str, count: int
    ) -> AuditFinding:
        buffer = checked.buffer
        return AuditFinding(
            kind,
            f"{buffer}: {message}",
            Severity.ERROR,
            buffer.number,
            self.run.name_call(buffer.start),
            buffer.address,
            checked.label,
            recorded,
            expected,
            reason,
            "look at the kernel that writes this page, and at the order of its cores",
            count,
        )


def place_pages(spec: TensorSpec, base: int, pages: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the column and row of the core, and the address, of some `pages` of a buffer at address `base`.

    Only what is asked for is computed: a report may claim a tensor of any size.

    >>> spec = TensorSpec((64, 64), "bfloat16", "tile", memory="l1", chip="wormhole_n150")
    >>> [column.tolist() for column in place_pages(spec, 1497088, np.array([0, 3]))]
    [[1, 2], [4, 2], [1497088, 1497088]]
    """
    paging = spec.paging
    if not paging.num_pages:
        nowhere = np.full(len(pages), -1, np.int64)
        return nowhere, nowhere, nowhere
    slots = np.asarray(paging.cut(paging.widen(pages)), np.int64)
    shard, inside = np.divmod(slots, paging.shard_pages)
    if paging.in_runs:
        position, turn = np.divmod(shard, paging.shards_per_core)
    else:
        turn, position = np.divmod(shard, len(paging.cores))
    cores = np.array(paging.cores, np.int64)
    address = base + (turn * paging.shard_pages + inside) * spec.aligned_page_bytes
    return cores[position, 0], cores[position, 1], address
