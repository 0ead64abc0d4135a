# SPDX-License-Identifier: Apache-2.0
"""The run in a database: the graphs of its operations as one, completed by the lists of what was allocated.

A database has a graph per operation, numbered from 0 in each, and calls that are no operations are left out: what they
allocate and free shows only in the lists of buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import FileFormatError
from ..files.graph_report import ReportNode, as_integer, parse_graph
from ..files.report_database import ReportDatabase, Row, read_report_database
from .finding import Finding, Severity
from .run import Run, build_run

Key: TypeAlias = tuple[int, int]  # memory and address of a buffer


@dataclass
class Operation:
    """An operation of a database: its name, its graph, and the rows of the buffers when it ended.

    >>> Operation(1, "ttnn.add").keys
    []
    """

    number: int
    name: str
    graph: tuple[ReportNode, ...] = ()
    buffers: list[Row] = field(default_factory=list)
    tensors: list[int] = field(default_factory=list)  # inputs and outputs
    outputs: list[int] = field(default_factory=list)
    node: int = 0  # number of its first node in the run

    @property
    def keys(self) -> list[Key]:
        """Return the memory and address of its buffers.

        >>> Operation(1, "ttnn.add", buffers=[{"address": 64, "buffer_type": 1}]).keys
        [(1, 64)]
        """
        pairs = [(as_integer(row.get("buffer_type")), as_integer(row.get("address"))) for row in self.buffers]
        return [(memory, address) for memory, address in pairs if memory is not None and address is not None]


@dataclass
class DatabaseRun:
    """A database with its run: devices, operations, and the rows of its tensors by number.

    >>> DatabaseRun.__name__
    'DatabaseRun'
    """

    database: ReportDatabase
    operations: list[Operation]
    tensors: dict[int, Row]
    devices: tuple[Mapping[str, Any], ...]
    run: Run
    notes: list[Finding]


def read_run(path: Path) -> DatabaseRun:
    """Return the run in the database at `path`.

    >>> import tempfile
    >>> import tilewright as tw
    >>> from tilewright.ttnn.visualizer_report import write_visualizer_report
    >>> allocator = tw.Allocator("wormhole_n150")
    >>> _ = allocator.allocate(tw.TensorSpec((512, 512), "bfloat16", "tile", memory="l1", chip="wormhole_n150"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(*read_run(write_visualizer_report(allocator, folder) / "db.sqlite").run.buffers)
    buffer 3 at 1490944
    """
    database = read_report_database(path)
    notes: list[Finding] = []
    rank = _first_rank(database, notes)

    def read(table: str, *order: str) -> Iterator[Row]:
        for row in database.read_rows(table, order):
            if row.get("rank", rank) == rank:
                yield row

    operations = _read_operations(read, notes)
    tensors = {number: row for row in read("tensors") if (number := as_integer(row.get("tensor_id"))) is not None}
    devices = tuple(read("devices"))
    nodes = _RunMerger(operations, tensors).merge()
    return DatabaseRun(database, operations, tensors, devices, build_run(nodes), notes)


def _first_rank(database: ReportDatabase, notes: list[Finding]) -> Any:
    """Return the rank of the first process, and note that there are others."""
    ranks = {row.get("rank", 0) for row in database.read_rows("operations")}
    numbers = sorted([rank for rank in ranks if isinstance(rank, int)])
    if len(numbers) > 1:
        notes.append(
            Finding("scope", f"only rank {numbers[0]} of {len(numbers)} ranks was audited", Severity.NOTE)
        )  # fmt: skip
    return numbers[0] if numbers else 0


def _read_operations(read: Any, notes: list[Finding]) -> list[Operation]:
    """Return the operations in order, with graphs, buffers and tensors."""
    operations: dict[int, Operation] = {}
    for row in read("operations", "operation_id"):
        number = as_integer(row.get("operation_id"))
        if number is not None:
            operations.setdefault(number, Operation(number, str(row.get("name") or "")))
    for row in read("captured_graph"):
        owner, text = operations.get(as_integer(row.get("operation_id")) or -1), row.get("captured_graph")
        if owner is None or not isinstance(text, str):
            continue
        try:
            owner.graph = parse_graph(text, f"the graph of operation {owner.number}")
        except FileFormatError as problem:
            notes.append(Finding("not readable", str(problem), Severity.NOTE))
    for row in read("buffers"):
        owner = operations.get(as_integer(row.get("operation_id")) or -1)
        if owner is not None:
            owner.buffers.append(row)
    for table in ("input_tensors", "output_tensors"):
        for row in read(table):
            owner, tensor = operations.get(as_integer(row.get("operation_id")) or -1), as_integer(row.get("tensor_id"))
            if owner is not None and tensor is not None:
                owner.tensors.append(tensor)
                if table == "output_tensors":
                    owner.outputs.append(tensor)
    return [operations[number] for number in sorted(operations)]


class _RunMerger:
    """Joins the graphs of operations, and adds what only the lists of buffers show."""

    def __init__(self, operations: list[Operation], tensors: dict[int, Row]) -> None:
        self.operations, self.tensors = operations, tensors
        self.nodes: list[ReportNode] = []
        self.live: set[Key] = set()
        self.places = {
            (memory, address): row
            for row in tensors.values()
            if (memory := as_integer(row.get("buffer_type"))) is not None
            and (address := as_integer(row.get("address"))) is not None
        }

    def merge(self) -> list[ReportNode]:
        for place in range(len(self.operations)):
            self._add_operation(place)
        return self.nodes

    def _add(self, kind: str, params: Mapping[str, Any], connections: tuple[int, ...] = ()) -> int:
        number = len(self.nodes)
        self.nodes.append(ReportNode(number, kind, params, connections))
        return number

    def _add_operation(self, place: int) -> None:
        operation = self.operations[place]
        graph = [node for node in operation.graph if node.kind not in ("capture_start", "capture_end")]
        freed = {_key_of(node) for node in graph if node.kind == "buffer_deallocate"}
        allocated = {_key_of(node) for node in graph if node.kind == "buffer_allocate"}
        later = self.operations[place + 1].keys if place + 1 < len(self.operations) else []
        # What is gone, but was not freed in here, was freed in a call that is no operation.
        for key in sorted(self.live):
            if key not in operation.keys and key not in later and key not in freed:
                self._add("buffer_deallocate", {"buffer_type": key[0], "address": key[1]})
                self.live.discard(key)
        known = self.live | allocated
        for key in operation.keys:
            if key not in known and key[1] and (key in later or key in self.places):
                self._allocate_unseen(operation, key)
                known.add(key)
        operation.node = len(self.nodes)
        if not graph:
            self._add("function_start", {"name": operation.name})
            self._add("function_end", {"name": operation.name})
        self._append_graph(graph)
        self.live = (self.live | allocated | known) - (freed - allocated)

    def _allocate_unseen(self, operation: Operation, key: Key) -> None:
        """Add an allocation that no graph has, with the tensor that is at its address."""
        row = self.places.get(key)
        buffer = len(self.nodes)
        self._add("buffer", {"buffer_type": key[0]}, () if row is None else (buffer + 1,))
        if row is not None:
            self._add("tensor", {name: value for name, value in row.items() if value is not None})
        self._add("buffer_allocate", {"buffer_type": key[0], "address": key[1]}, (buffer,))

    def _append_graph(self, graph: list[ReportNode]) -> None:
        """Add the nodes of a graph; numbers beyond its own are those of later nodes in another count."""
        numbers = {node.number: len(self.nodes) + place for place, node in enumerate(graph)}
        for node in graph:
            # what is freed was allocated in another operation, whose count the connection is of
            links = () if node.kind == "buffer_deallocate" else node.connections
            connections = tuple([numbers[link] for link in links if link in numbers])
            inputs = tuple([numbers[link] for link in node.inputs if link in numbers])
            params = {name: value for name, value in node.params.items() if name != "device_id"}
            changed = replace(node, number=len(self.nodes), connections=connections, inputs=inputs, params=params)
            self.nodes.append(changed)


def _key_of(node: ReportNode) -> Key:
    memory, address = node.integer("buffer_type"), node.integer("address")
    return (-1 if memory is None else memory, address or 0)
