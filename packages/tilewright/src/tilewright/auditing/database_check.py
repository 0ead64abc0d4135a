# SPDX-License-Identifier: Apache-2.0
"""The tables of a database against the run in it: tensors, buffers, and the pieces of buffers on each core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ..files import PageBatch, ReportNode, Row, as_integer
from ..memory import CoreCoord, TensorSpec
from ..severity import Severity
from .buffer_check import BufferCheck, CheckedBuffer, list_live
from .database_run import DatabaseRun, Operation
from .finding import AuditFinding
from .operation_check import check_call
from .page_check import PageCheck
from .run import Call
from .tensor_specs import SpecReader

_MOST_PAGES = 1 << 22  # of a buffer whose pieces are compared


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
    """Yield what is wrong in the tables of a `database`, whose buffers are `checked`.

    >>> check_database.__name__
    'check_database'
    """
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
        self.calls = {each.number: calls[each.node] for each in database.operations if each.node in calls}
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
                if other not in (None, address):
                    yield self._table_finding(
                        "tensor elsewhere", f"tensor {number} is at {address} in the table tensors, and at {other} in"
                        " device_tensors", other, address, address,
                    )  # fmt: skip
            owner = self.owners.get(number) or self._find_owner(number, memory, address, places)
            if owner is None:
                if address:
                    yield self._table_finding(
                        "tensor elsewhere", f"tensor {number} is at {address} in memory {memory}, where no buffer is"
                        " when it is used", address, None, address,
                    )  # fmt: skip
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
        """Yield what is wrong in the lists of buffers after each operation."""
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
                if address is not None and row.get("rank", self.database.rank) == self.database.rank:
                    by_address.setdefault(address, []).append(row)
            if number is not None and number in by_number:
                yield by_number[number], by_address

    def check_chunks(self) -> Iterator[AuditFinding]:
        """Yield what is wrong with the pieces of buffers on each core."""
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
        """Yield what is wrong with the pieces after an operation."""
        call = self.calls.get(operation.number)
        if call is None:
            return
        for one in self._live_in_l1(operation):
            spec, number = one.spec, one.buffer.number
            rows = by_address.pop(one.buffer.address, [])
            if spec is None or spec.num_pages > _MOST_PAGES:
                continue
            if number not in models:
                models[number] = model_chunks(spec, one.buffer.address)
            yield from self._compare_chunks(call, one, models[number], rows)
        for address, rows in by_address.items():
            yield self._table_finding(
                "tensor elsewhere", f"after {call.name} (node {call.number}), {len(rows)} pieces of a buffer are listed"
                f" at {address}, where nothing is allocated then", address, None, address,
            )  # fmt: skip

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
            fields = {
                "chunk_address": ("page address", (chunk.address,)),
                "num_pages": ("page missing", (chunk.pages,)),
                # the writer of a database may count the last page with its gap
                "page_size": ("page size", (chunk.page_size, one.spec.aligned_page_bytes if one.spec else 0)),
                "chunk_size": ("size", (chunk.size, chunk.size + _gap_of(one.spec))),
            }
            for name, (kind, expected) in fields.items():
                recorded = as_integer(row.get(name))
                if recorded is not None and recorded not in expected:
                    yield self._chunk_finding(
                        one, call, kind, f"{where}: {name} on core {core} is {recorded}, the model says {expected[0]}",
                        recorded, expected[0],
                    )  # fmt: skip
        for core in unknown:
            instead = next(iter(missing), None)
            model_text = "no piece there" if instead is None else f"a piece on {instead}"
            yield self._chunk_finding(
                one, call, "page core", f"{where}: a piece is on core {core}, the model says {model_text}", str(core),
                None if instead is None else str(instead),
            )  # fmt: skip
            if instead is not None:
                del missing[instead]
        if missing:
            core, chunk = next(iter(missing.items()))
            yield self._chunk_finding(
                one, call, "page missing", f"{where}: {chunk.pages} pages on core {core} are not listed", 0,
                chunk.pages, len(missing),
            )  # fmt: skip

    def check_pages(self) -> Iterator[AuditFinding]:
        """Yield what is wrong with pages, which databases had before they had pieces."""
        for operation, by_address in self._read_by_operation("buffer_pages"):
            check = PageCheck(self.run)
            expected = []
            for one in self._live_in_l1(operation):
                rows = by_address.get(one.buffer.address)
                if rows is not None:
                    expected.append(one)
                    check.add(_as_batch(rows, one), one)
            yield from check.findings(expected)

    def _chunk_finding(
        self, one: CheckedBuffer, call: Call, kind: str, message: str, recorded: int | str, expected: int | str | None,
        count: int = 1,
    ) -> AuditFinding:  # fmt: skip
        return AuditFinding(
            kind,
            message,
            Severity.ERROR,
            one.buffer.number,
            call.name,
            one.buffer.address,
            one.label,
            recorded,
            expected,
            "a piece goes from the first page on a core to the end of the last",
            "look at the order of the cores of this tensor, and at its shard shape",
            count,
        )

    def _table_finding(
        self, kind: str, message: str, recorded: int | None, expected: int | None, address: int | None
    ) -> AuditFinding:
        return AuditFinding(
            kind,
            message,
            Severity.ERROR,
            address=address,
            recorded=recorded,
            expected=expected,
            reason="a tensor begins where its buffer begins",
            remedy="compare the tables of the database: one of them was changed",
        )


def _gap_of(spec: TensorSpec | None) -> int:
    return 0 if spec is None else spec.aligned_page_bytes - spec.page_bytes


def _as_batch(rows: list[Row], one: CheckedBuffer) -> PageBatch:
    """Return rows of pages as a batch, with the size of a page without its gap."""
    batch = PageBatch.of([dict(row) for row in rows], one.buffer.number)
    spec = one.spec
    if spec is None:
        return batch
    sizes = batch.column("page_size")
    columns = {**batch.columns, "page_size": np.where(sizes == spec.aligned_page_bytes, spec.page_bytes, sizes)}
    return PageBatch(batch.owner, columns)
