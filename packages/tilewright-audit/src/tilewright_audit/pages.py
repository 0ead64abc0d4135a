# SPDX-License-Identifier: Apache-2.0
"""Compare the pages of a report with the model, and the tables of a database with the run in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.findings import Severity
from tilewright.memory import CoreCoord, TensorSpec

from .buffers import BufferCheck, CheckedBuffer, SpecReader, list_live
from .database import DatabaseRun, Operation, Row
from .findings import AuditFinding
from .graph_report import Integers, PageBatch, ReportNode, as_integer
from .run import Call

_MAX_PAGES = 2**40  # of a tensor whose pages are compared; addresses of more do not fit any memory
_MANY = 4  # one wrong page in this many means other shards


@dataclass
class _PageTally:
    """The recorded pages of one buffer."""

    checked: CheckedBuffer
    spec: TensorSpec
    seen: list[Integers] = field(default_factory=list)  # pages that were listed: sorted parts, each half as long
    count: int = 0
    wrong: int = 0
    first: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # kind: finding, recorded, expected
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
    """Compares batches of pages with the model and keeps a tally of each buffer.

    >>> list(PageCheck().findings([]))
    []
    """

    def __init__(self) -> None:
        self.pages = 0
        self._tallies: dict[int, _PageTally] = {}
        self._unknown: dict[int, int] = {}

    def add(self, batch: PageBatch, checked: CheckedBuffer | None) -> None:
        """Compare the pages of a `batch`, which belong to the buffer `checked`; None if it is not in the graph.

        >>> PageCheck().add(PageBatch.of([], None), None)
        """
        self.pages += len(batch)
        if checked is None:
            address = int(batch.column("address")[0]) if len(batch) else -1
            self._unknown[address] = self._unknown.get(address, 0) + len(batch)
            return
        if checked.spec is None or checked.spec.num_pages > _MAX_PAGES:
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
        self, tally: _PageTally, kind: str, wrong: NDArray[np.bool_], batch: PageBatch, places: tuple[Integers, ...]
    ) -> None:
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
        """Yield the errors in the pages that were added; the buffers `expected` should have had some.

        >>> list(PageCheck().findings([]))
        []
        """
        for tally in self._tallies.values():
            yield from self._tally_findings(tally)
        for checked in expected:
            spec = checked.spec
            if spec is None or checked.buffer.number in self._tallies or not spec.num_pages:
                continue
            message, count = f"no page is listed, the model has {spec.num_pages}", spec.num_pages
            yield _page_finding(checked, "page missing", message, "0", str(count), _ALL_LISTED, count)
        for address, count in self._unknown.items():
            message = f"{count} pages are listed for a buffer at {address} that nothing in the graph allocates"
            note = _unknown_note(message, "pages belong to an allocation", address, count)
            yield replace(note, expected=0)

    def _tally_findings(self, tally: _PageTally) -> Iterator[AuditFinding]:
        checked, spec = tally.checked, tally.spec
        listed = np.sort(np.concatenate(tally.seen)) if tally.seen else np.zeros(0, np.int64)
        if len(listed) < spec.num_pages:
            gaps = np.flatnonzero(listed != np.arange(len(listed)))
            page = int(gaps[0]) if len(gaps) else len(listed)
            x, y, address = place_pages(spec, checked.buffer.address, np.array([page]))
            place = f"({x[0]}, {y[0]}) {address[0]}"
            message, count = f"page {page} is not listed, the model says {place}", spec.num_pages - len(listed)
            yield _page_finding(checked, "page missing", message, "", place, _ALL_LISTED, count)
        reason = "the model places pages by the spec of the tensor"
        for kind, (message, recorded, model) in tally.first.items():
            yield _page_finding(checked, kind, message, recorded, model, reason, tally.totals[kind])
        if spec.memory.is_sharded and tally.wrong * _MANY > max(_MANY, tally.count):
            message = f"{tally.wrong} of {tally.count} pages are not where {spec.memory} puts them"
            reason = "this many wrong pages mean other shards, or another order of the cores"
            yield _page_finding(checked, "shard shape", message, str(tally.wrong), "0", reason)


_ALL_LISTED = "every page of a buffer in L1 is listed while it is allocated"


def _unknown_note(message: str, reason: str, address: int, recorded: int | None) -> AuditFinding:
    remedy = "capture from the start of the program, so that the graph has all allocations"
    note = AuditFinding("buffer unknown", message, Severity.NOTE, reason, remedy)
    return replace(note, address=address, recorded=recorded)


def _page_finding(
    checked: CheckedBuffer, kind: str, message: str, recorded: str, expected: str, reason: str, count: int = 1
) -> AuditFinding:
    remedy = "look at the kernel that writes this page, and at the order of its cores"
    return checked.finding(kind, f"{checked.buffer}: {message}", recorded, expected, reason, remedy, count=count)


def place_pages(spec: TensorSpec, base: int, pages: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the column and row of the core, and the address, of some `pages` of a buffer at address `base`.

    Only requested pages are computed: a report may claim a tensor of any size.

    >>> spec = TensorSpec((64, 64), "bfloat16", "tile", memory="l1", chip="wormhole_n150")
    >>> [column.tolist() for column in place_pages(spec, 1497088, np.array([0, 3]))]
    [[1, 2], [4, 2], [1497088, 1497088]]
    """
    paging = spec.paging
    if not paging.num_pages:
        nowhere = np.full(len(pages), -1, np.int64)
        return nowhere, nowhere, nowhere
    slots = np.asarray(paging.page_to_slot(np.asarray(paging.pad_to_shards(pages))), np.int64)
    shard, inside = np.divmod(slots, paging.shard_pages)
    if paging.in_runs:
        position, turn = np.divmod(shard, paging.shards_per_core)
    else:
        turn, position = np.divmod(shard, len(paging.cores))
    cores = np.array(paging.cores, np.int64)
    address = base + (turn * paging.shard_pages + inside) * spec.aligned_page_bytes
    return cores[position, 0], cores[position, 1], address


@dataclass(frozen=True, slots=True)
class ListedBuffer:
    """A buffer in the list of a call: its address, memory and bytes per bank, in pages that are not aligned.

    >>> ListedBuffer.of({"address": 1497088, "buffer_type": 1, "max_size_per_bank": 2048}).end
    1499136
    """

    address: int
    memory: int
    size: int | None
    layout: int | None
    device: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ListedBuffer | None:
        """Return the buffer of a `row`, or None if it has no address.

        >>> ListedBuffer.of({}) is None
        True
        """
        address, memory = as_integer(row.get("address")), as_integer(row.get("buffer_type"))
        if address is None or memory is None:
            return None
        others = [as_integer(row.get(name)) for name in ("max_size_per_bank", "buffer_layout", "device_id")]
        return cls(address, memory, *others)

    @property
    def end(self) -> int:
        """The address after the last byte.

        >>> ListedBuffer(1024, 1, 64, 0, 0).end
        1088
        """
        return self.address + (self.size or 0)


def check_call(
    call: Call, rows: Sequence[Mapping[str, Any]], checked: Sequence[CheckedBuffer]
) -> Iterator[AuditFinding]:
    """Yield the errors in the `rows` that a report lists as allocated at the end of a `call`, where `checked` are.

    >>> list(check_call(Call(4, "ttnn.add", 0, 9), [], []))
    []
    """
    listed = [buffer for buffer in map(ListedBuffer.of, rows) if buffer is not None]
    live = {(one.buffer.memory.value, one.buffer.address): one for one in checked if one.buffer.is_placed}
    yield from _find_overlaps(call, listed)
    unknown = []
    for buffer in listed:
        one = live.pop((buffer.memory, buffer.address), None)
        if one is not None and one.spec is not None:
            yield from _check_listed(call, buffer, one, one.spec)
        elif one is None and buffer.address:
            unknown.append(buffer)
    missing = [
        one
        for one in live.values()
        if one.buffer.allocation is not None and one.spec is not None and one.spec.num_pages
    ]
    for buffer in unknown:
        if missing:
            message = f"a buffer is listed at {buffer.address}, where nothing is allocated then"
            yield _list_finding(call, "tensor elsewhere", message, buffer.address, None, buffer.address)
        else:  # it was there before the capture
            where = f"a buffer at {buffer.address} in memory {buffer.memory}"
            reason = "it was allocated before the capture, or in a call that is not in it"
            yield _unknown_note(
                f"{where} is listed that the graph does not allocate", reason, buffer.address, buffer.size
            )
    for one in missing:
        message, address = f"{one.buffer} is allocated then, but not listed", one.buffer.address
        yield _list_finding(call, "buffer missing", message, None, address, address, one.label)


def _check_listed(call: Call, buffer: ListedBuffer, one: CheckedBuffer, spec: TensorSpec) -> Iterator[AuditFinding]:
    """Yield the facts of a list that differ from a spec; lists count pages without their alignment."""
    size = -(-spec.bytes_per_bank // spec.aligned_page_bytes) * spec.page_bytes
    if buffer.size not in (None, size):
        message = f"{one.buffer} is listed with {buffer.size} bytes per bank, the model says {size}"
        yield _list_finding(call, "bytes per bank", message, buffer.size, size, buffer.address, one.label)
    layout = spec.memory.memory_layout
    if not spec.memory.made_with_nd and buffer.layout not in (None, layout.value):
        says = f"the tensor says {layout.value} ({layout})"
        message = f"{one.buffer} is listed with memory layout {buffer.layout}, {says}"
        yield _list_finding(call, "shard shape", message, buffer.layout, layout.value, buffer.address, one.label)


def _find_overlaps(call: Call, listed: Sequence[ListedBuffer]) -> Iterator[AuditFinding]:
    """Yield the buffers of a list that overlap the one before them."""
    before: dict[tuple[bool, int | None], ListedBuffer] = {}
    for buffer in sorted(listed, key=lambda row: (row.address, row.end)):
        if not buffer.address:
            continue
        place = buffer.memory in (1, 3), buffer.device
        first = before.get(place)
        if first is not None and first.end > buffer.address:
            both = f"the buffers listed at {first.address} (to {first.end}) and at {buffer.address} (to {buffer.end})"
            yield _list_finding(call, "overlap", f"{both} overlap", buffer.address, first.end, buffer.address)
        if first is None or buffer.end > first.end:
            before[place] = buffer


def _list_finding(
    call: Call, kind: str, message: str, recorded: int | None, expected: int | None, address: int, tensor: str = ""
) -> AuditFinding:
    reason = "the list of a call has the buffers that the graph has allocated and not freed by then"
    remedy = "compare the list with the allocations of the graph: one of them was changed"
    where = f"at the end of {call.name} (node {call.number})"
    finding = AuditFinding(kind, f"{where}, {message}", reason=reason, remedy=remedy, node=call.number, call=call.name)
    return replace(finding, address=address, tensor=tensor, recorded=recorded, expected=expected)


_MAX_LISTED_PAGES = 1 << 22  # of a buffer whose pieces are compared


@dataclass(frozen=True, slots=True)
class Chunk:
    """All of a buffer on one core: from its first page to the end of its last.

    >>> Chunk(CoreCoord(0, 0), 1484800, 6144, 2048, 2).pages
    2
    """

    core: CoreCoord
    address: int
    size: int
    page_size: int
    pages: int


def model_chunks(spec: TensorSpec, base: int) -> dict[CoreCoord, Chunk]:
    """Return the piece on each core of a buffer for `spec` at address `base`.

    >>> from tilewright import block_sharded
    >>> spec = TensorSpec((100, 90), "bfloat16", "tile", memory=block_sharded((2, 2), (64, 64)), chip="wormhole_n150")
    >>> [(chunk.size, chunk.pages) for chunk in model_chunks(spec, 1484800).values()]
    [(8192, 4), (6144, 2), (8192, 4), (6144, 2)]
    """
    table = spec.pages(base)
    codes = table.core_y * 65536 + table.core_x
    chunks = {}
    for code in dict.fromkeys(codes.tolist()):
        addresses = table.address[codes == code]
        core, first = CoreCoord(code % 65536, code // 65536), int(addresses.min())
        size = int(addresses.max()) + spec.page_bytes - first
        chunks[core] = Chunk(core, first, size, spec.page_bytes, len(addresses))
    return chunks


def check_database(
    database: DatabaseRun, checked: Sequence[CheckedBuffer], reader: SpecReader
) -> Iterator[AuditFinding]:
    """Yield the errors in the tables of a `database`, whose buffers are `checked`."""
    check = _DatabaseCheck(database, checked, reader)
    yield from check.check_tensors()
    yield from check.check_buffers()
    yield from check.check_chunks()
    yield from check.check_pages()


class _DatabaseCheck:
    """Compares the tables of a database with its run."""

    def __init__(self, database: DatabaseRun, checked: Sequence[CheckedBuffer], reader: SpecReader) -> None:
        self.database, self.run, self.checked, self.reader = database, database.run, checked, reader
        calls = {call.number: call for call in self.run.calls}
        self.calls = {
            operation.number: calls[operation.node] for operation in database.operations if operation.node in calls
        }
        self.live = list_live(self.run, checked)
        self.users: dict[int, list[Operation]] = {}  # the operations that each tensor is an input or output of
        for operation in database.operations:
            for number in dict.fromkeys(operation.tensors):
                self.users.setdefault(number, []).append(operation)
        self.owners: dict[int, CheckedBuffer] = {}
        for one in checked:
            for node in one.buffer.tensors:
                mentioned = node.integer("tensor_id")
                if mentioned is not None:
                    self.owners.setdefault(mentioned, one)

    def check_tensors(self) -> Iterator[AuditFinding]:
        """Yield tensors that are not where their buffers are, or that have other shards."""
        places: dict[tuple[int, int], CheckedBuffer] = {}
        for one in self.checked:
            places.setdefault((one.buffer.memory.value, one.buffer.address), one)
        devices: dict[int | None, list[int | None]] = {}
        for row in self.database.database.read_rows("device_tensors"):
            devices.setdefault(as_integer(row.get("tensor_id")), []).append(as_integer(row.get("address")))
        check = BufferCheck(self.run, self.reader)
        for number, row in self.database.tensors.items():
            memory, address = as_integer(row.get("buffer_type")), as_integer(row.get("address"))
            if memory is None or address is None:
                continue
            for other in devices.get(number, ()):
                if other is not None and other != address:
                    message = f"tensor {number} is at {address} in the table tensors, and at {other} in device_tensors"
                    yield _elsewhere_finding(message, other, address, address)
            owner = self.owners.get(number) or self._find_owner(number, memory, address, places)
            if owner is None:
                if address:
                    message = f"tensor {number} is at {address} in memory {memory}, where no buffer is when it is used"
                    yield _elsewhere_finding(message, address, None, address)
                continue
            values = {name: value for name, value in row.items() if value is not None}
            node = ReportNode(owner.buffer.number, "tensor", values)
            yield from check.check_tensor(owner, node)

    def _find_owner(
        self, number: int, memory: int, address: int, places: dict[tuple[int, int], CheckedBuffer]
    ) -> CheckedBuffer | None:
        """Return the buffer of a tensor that no graph mentions: the one at its address when it is used."""
        used = self.users.get(number, [])
        for operation in used:
            mentioned = {node.integer("address") for node in operation.graph} - {None}
            if number in operation.outputs and mentioned and address not in mentioned:
                return None  # a result is somewhere in the graph of its operation
            for one in self._live_before_and_after(operation):
                if (one.buffer.memory.value, one.buffer.address) == (memory, address):
                    return one
        return None if used else places.get((memory, address))

    def check_buffers(self) -> Iterator[AuditFinding]:
        """Yield the errors in the lists of buffers after each operation."""
        for operation in self.database.operations:
            call = self.calls.get(operation.number)
            if call is not None:
                yield from check_call(call, operation.buffers, self.live[call.number])

    def _read_by_operation(self, table: str) -> Iterator[tuple[Operation, dict[int, list[Row]]]]:
        """Yield operations with their rows of a large table, by the address of the buffer."""
        by_number = {operation.number: operation for operation in self.database.operations}
        rows = self.database.database.read_rows(table, ("operation_id",))
        for number, group in groupby(rows, lambda row: as_integer(row.get("operation_id"))):
            by_address: dict[int, list[Row]] = {}
            for row in group:
                address = as_integer(row.get("address"))
                if address is not None:
                    by_address.setdefault(address, []).append(row)
            if number is not None and number in by_number:
                yield by_number[number], by_address

    def check_chunks(self) -> Iterator[AuditFinding]:
        """Yield the errors in the pieces of buffers on each core."""
        models: dict[int, dict[CoreCoord, Chunk]] = {}
        seen: set[int] = set()
        for operation, by_address in self._read_by_operation("buffer_chunks"):
            seen.add(operation.number)
            yield from self._check_operation(operation, by_address, models)
        for operation in self.database.operations if seen else ():
            if operation.number not in seen:  # all pieces of its buffers are missing
                yield from self._check_operation(operation, {}, models)

    def _check_operation(
        self, operation: Operation, by_address: dict[int, list[Row]], models: dict[int, dict[CoreCoord, Chunk]]
    ) -> Iterator[AuditFinding]:
        """Yield the errors in the pieces after an operation."""
        call = self.calls.get(operation.number)
        if call is None:
            return
        for one in self._live_in_l1(operation):
            spec, number = one.spec, one.buffer.number
            rows = by_address.pop(one.buffer.address, [])
            if spec is None or spec.num_pages > _MAX_LISTED_PAGES:
                continue
            if number not in models:
                models[number] = model_chunks(spec, one.buffer.address)
            yield from self._compare_chunks(call, one, models[number], rows)
        for address, rows in by_address.items():
            pieces = f"{len(rows)} pieces of a buffer are listed at {address}, where nothing is allocated then"
            message = f"after {call.name} (node {call.number}), {pieces}"
            yield _elsewhere_finding(message, address, None, address)

    def _live_before_and_after(self, operation: Operation) -> Iterator[CheckedBuffer]:
        """Yield the buffers that are allocated when an operation ends, and when the one before it does."""
        call = self.calls.get(operation.number)
        if call is None:
            return
        yield from self.live[call.number]
        before = self.run.call_at(call.start - 1)
        if before is not None:
            yield from self.live[before.number]

    def _live_in_l1(self, operation: Operation) -> list[CheckedBuffer]:
        call = self.calls.get(operation.number)
        live = [] if call is None else self.live[call.number]
        return [one for one in live if one.buffer.memory.is_l1 and one.buffer.is_placed]

    def _compare_chunks(
        self, call: Call, one: CheckedBuffer, model: dict[CoreCoord, Chunk], rows: list[Row]
    ) -> Iterator[AuditFinding]:
        where = f"after {call.name} (node {call.number}), {one.buffer}"
        missing = dict(model)
        unknown: list[CoreCoord] = []
        for row in rows:
            x, y = as_integer(row.get("core_x")), as_integer(row.get("core_y"))
            core = CoreCoord(-1 if x is None else x, -1 if y is None else y)
            chunk = missing.pop(core, None)
            if chunk is None:
                unknown.append(core)
                continue
            gap = 0 if one.spec is None else one.spec.aligned_page_bytes - one.spec.page_bytes
            fields = {
                "chunk_address": ("page address", (chunk.address,)),
                "num_pages": ("page missing", (chunk.pages,)),
                # the writer of a database may count the last page with its gap
                "page_size": ("page size", (chunk.page_size, one.spec.aligned_page_bytes if one.spec else 0)),
                "chunk_size": ("size", (chunk.size, chunk.size + gap)),
            }
            for name, (kind, expected) in fields.items():
                recorded = as_integer(row.get(name))
                if recorded is not None and recorded not in expected:
                    message = f"{where}: {name} on core {core} is {recorded}, the model says {expected[0]}"
                    yield _chunk_finding(one, call, kind, message, recorded, expected[0])
        for core in unknown:
            instead = next(iter(missing), None)
            model_text = "no piece there" if instead is None else f"a piece on {instead}"
            message = f"{where}: a piece is on core {core}, the model says {model_text}"
            yield _chunk_finding(one, call, "page core", message, str(core), None if instead is None else str(instead))
            if instead is not None:
                del missing[instead]
        if missing:
            core, chunk = next(iter(missing.items()))
            message = f"{where}: {chunk.pages} pages on core {core} are not listed"
            yield _chunk_finding(one, call, "page missing", message, 0, chunk.pages, len(missing))

    def check_pages(self) -> Iterator[AuditFinding]:
        """Yield the errors in pages, which databases had before they had pieces."""
        for operation, by_address in self._read_by_operation("buffer_pages"):
            check = PageCheck()
            expected = []
            for one in self._live_in_l1(operation):
                rows = by_address.get(one.buffer.address)
                if rows is not None:
                    expected.append(one)
                    check.add(_as_batch(rows, one), one)
            yield from check.findings(expected)


def _chunk_finding(
    one: CheckedBuffer,
    call: Call,
    kind: str,
    message: str,
    recorded: int | str,
    expected: int | str | None,
    count: int = 1,
) -> AuditFinding:
    reason = "a piece goes from the first page on a core to the end of the last"
    remedy = "look at the order of the cores of this tensor, and at its shard shape"
    return one.finding(kind, message, recorded, expected, reason, remedy, call=call.name, count=count)


def _elsewhere_finding(message: str, recorded: int, expected: int | None, address: int) -> AuditFinding:
    remedy = "compare the tables of the database: one of them was changed"
    finding = AuditFinding("tensor elsewhere", message, reason="a tensor begins where its buffer begins", remedy=remedy)
    return replace(finding, address=address, recorded=recorded, expected=expected)


def _as_batch(rows: list[Row], one: CheckedBuffer) -> PageBatch:
    """Return rows of pages as a batch, with the size of a page without its gap."""
    batch = PageBatch.of([dict(row) for row in rows], one.buffer.number)
    spec = one.spec
    if spec is None:
        return batch
    sizes = batch.column("page_size")
    columns = {**batch.columns, "page_size": np.where(sizes == spec.aligned_page_bytes, spec.page_bytes, sizes)}
    return PageBatch(batch.owner, columns)
