# SPDX-License-Identifier: Apache-2.0
"""The SQLite database of `ttnn-visualizer`, read without changing it, and the run in it.

Schemas 3.x differ in tables and columns, so a row has the columns that exist. A database can hold code: its views,
virtual tables and functions are never run. It has one graph per operation, each numbered from 0; calls that are not
operations are missing, so their allocations show only in the lists of buffers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from tilewright._files import as_path
from tilewright.errors import FileFormatError
from tilewright.files import FilePath, SourceFile
from tilewright.findings import Severity
from tilewright.notation import find_errors

from .findings import AuditFinding, scope_note
from .graph_report import ReportNode, as_integer, parse_graph
from .run import Run, build_run

if TYPE_CHECKING:
    import sqlite3

Row: TypeAlias = Mapping[str, Any]  # columns by name, as SQLite stores them
MAGIC = b"SQLite format 3\x00"
BUSY_SECONDS = 5.0
MAX_COLUMNS = 200
NEEDED_TABLES = ("operations", "tensors", "buffers")
_MAX_TEXT_BYTES = 1 << 27
_LENGTH_LIMIT = 0  # the number of SQLite's limit of texts
_ALLOW, _DENY = 0, 1
_ALLOWED_ACTIONS = (20, 21)  # SQLITE_READ and SQLITE_SELECT


@dataclass(frozen=True)
class ReportDatabase:
    """A database of a run: the columns of its tables.

    >>> import tempfile
    >>> import tilewright as tw
    >>> from tilewright.ttnn.visualizer_report import write_visualizer_report
    >>> allocator = tw.Allocator("wormhole_n150")
    >>> _ = allocator.allocate(tw.TensorSpec((512, 512), "bfloat16", "tile", memory="l1", chip="wormhole_n150"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_visualizer_report(allocator, folder, {0: "weights"})
    ...     database = read_report_database(report / "db.sqlite")
    ...     [row["name"] for row in database.read_rows("operations")]
    ['weights']
    """

    file: SourceFile
    tables: Mapping[str, tuple[str, ...]]
    rank: int | None = None  # whose rows are read; None for all

    def read_rows(self, table: str, order: tuple[str, ...] = ()) -> Iterator[Row]:
        """Yield the rows of a `table`, in the order of its columns `order`; nothing if there is no such table.

        >>> list(ReportDatabase(SourceFile(__file__), {}).read_rows("buffers"))
        []
        """
        columns = self.tables.get(table, ())
        if not columns:
            return
        names = ", ".join([_quote_name(column) for column in columns])
        by = ", ".join([_quote_name(column) for column in order if column in columns])
        query = f"select {names} from {_quote_name(table)}{f' order by {by}' if by else ''}"
        with _open_database(self.file) as connection:
            for values in connection.execute(query):
                row = dict(zip(columns, values, strict=True))
                if self.rank is None or row.get("rank", self.rank) == self.rank:
                    yield row


def is_database(path: FilePath) -> bool:
    """Return whether the file at `path` begins like an SQLite database.

    >>> is_database(__file__)
    False
    """
    with as_path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_report_database(path: FilePath) -> ReportDatabase:
    """Return the database of a run at `path`; its rows are read when they are asked for.

    >>> try:
    ...     read_report_database(__file__)
    ... except FileFormatError as problem:
    ...     print(str(problem).split(": ", 1)[1])
    it does not begin with 'SQLite format 3'
    """
    file = SourceFile(path)
    if not is_database(path):
        raise FileFormatError(f"{path} is not a database: it does not begin with 'SQLite format 3'")
    with _open_database(file) as connection:
        tables = {name: _list_columns(connection, name, file) for name in _list_tables(connection)}
    missing = [name for name in NEEDED_TABLES if name not in tables]
    if missing:
        raise FileFormatError(f"{path} is not a database of a run: it has no table {', '.join(missing)}")
    return ReportDatabase(file, tables)


def _list_tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of ordinary tables; reading a view or virtual table would run code of the database."""
    rows = connection.execute("select type, name, sql from sqlite_master").fetchall()
    return [
        name
        for kind, name, text in rows
        if kind == "table" and isinstance(name, str) and isinstance(text, str) and "virtual" not in text[:40].lower()
    ]


def _list_columns(connection: sqlite3.Connection, table: str, file: SourceFile) -> tuple[str, ...]:
    """Return the names of the columns of a table."""
    cursor = connection.execute(f"select * from {_quote_name(table)} limit 0")
    names = tuple([column[0] for column in cursor.description])
    if len(names) > MAX_COLUMNS:
        raise FileFormatError(f"{file.path}: table {table[:40]!r} has {len(names)} columns, more than {MAX_COLUMNS}")
    return names


@contextmanager
def _open_database(file: SourceFile) -> Iterator[sqlite3.Connection]:
    """Yield a connection that can only read, and that runs no code of the database."""
    import sqlite3  # some builds of Python lack it

    address = f"file:{quote(str(file.path.absolute()))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            for setting in ("trusted_schema = off", "query_only = on", "cell_size_check = on"):
                connection.execute(f"pragma {setting}")
            if hasattr(connection, "setlimit"):  # since Python 3.11
                connection.setlimit(_LENGTH_LIMIT, _MAX_TEXT_BYTES)
            connection.set_authorizer(lambda action, *_: _ALLOW if action in _ALLOWED_ACTIONS else _DENY)
            yield connection
    except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as problem:  # names may also be damaged
        raise FileFormatError(f"{file.path} is not a readable database: {problem}") from None


def _quote_name(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


_FIRST_ADDED = 10**12  # numbers of nodes that no graph has
_KNOWN_TABLES = frozenset((
    "buffer_chunks", "buffer_pages", "buffers", "captured_graph", "device_tensors", "devices", "edges", "errors",
    "execution_sub_devices", "global_tensor_comparison_records", "input_tensors", "local_tensor_comparison_records",
    "nodes", "operation_arguments", "operation_executions", "operations", "output_tensors", "report_metadata",
    "source_files", "stack_traces", "sub_device_managers", "sub_devices", "tensor_consumers", "tensor_lifetime",
    "tensor_producers", "tensors",
))  # fmt: skip
_COMPARISONS = ("local_tensor_comparison_records", "global_tensor_comparison_records")
_MAX_MESSAGE = 200  # characters of an error that are quoted
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
    page_sizes: dict[int, int] = field(default_factory=dict)  # by address, as most pages in L1 have it
    base: int | None = None  # number of its first node in the report that the database was made from

    @property
    def keys(self) -> list[Key]:
        """The memory and address of its buffers.

        >>> Operation(1, "ttnn.add", buffers=[{"address": 64, "buffer_type": 1}]).keys
        [(1, 64)]
        """
        pairs = [(as_integer(row.get("buffer_type")), as_integer(row.get("address"))) for row in self.buffers]
        return [(memory, address) for memory, address in pairs if memory is not None and address is not None]


@dataclass
class DatabaseRun:
    """A database with its run: devices, operations, and the rows of its tensors by number."""

    database: ReportDatabase
    operations: list[Operation]
    tensors: dict[int, Row]
    devices: tuple[Mapping[str, Any], ...]
    run: Run
    notes: list[AuditFinding]


def read_run(path: Path) -> DatabaseRun:
    """Return the run in the database at `path`.

    >>> import tempfile
    >>> import tilewright as tw
    >>> from tilewright.ttnn.visualizer_report import write_visualizer_report
    >>> allocator = tw.Allocator("wormhole_n150")
    >>> _ = allocator.allocate(tw.TensorSpec((512, 512), "bfloat16", "tile", memory="l1", chip="wormhole_n150"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [
    ...         buffer.address
    ...         for buffer in read_run(write_visualizer_report(allocator, folder) / "db.sqlite").run.buffers
    ...     ]
    [1490944]
    """
    database = read_report_database(path)
    notes: list[AuditFinding] = []
    database = replace(database, rank=_first_rank(database, notes))
    operations = _read_operations(database, notes)
    rows = [(as_integer(row.get("tensor_id")), row) for row in database.read_rows("tensors")]
    tensors = {number: row for number, row in rows if number is not None}
    nodes = _RunMerger(operations, tensors).merge()
    unknown = [name for name in database.tables if name not in _KNOWN_TABLES and any(database.read_rows(name))]
    if unknown:
        notes.append(scope_note(f"unknown tables of the database were not read: {', '.join(unknown)}"))
    devices = tuple(database.read_rows("devices"))
    return DatabaseRun(database, operations, tensors, devices, build_run(nodes), notes)


def find_failures(database: ReportDatabase) -> Iterator[AuditFinding]:
    """Yield the failures that the run itself recorded: errors, and tensors that differ from their golden tensors."""
    for row in database.read_rows("errors"):
        name, words = str(row.get("operation_name") or ""), " ".join(str(row.get("error_message") or "").split())
        message = f"{name} raised {row.get('error_type')}: {words[:_MAX_MESSAGE]}{'...' * (len(words) > _MAX_MESSAGE)}"
        why = next(iter(find_errors(words, is_message=True).errors), AuditFinding("", ""))
        place = as_integer(row.get("operation_id"))
        yield AuditFinding("failed call", message, Severity.ERROR, why.reason, why.remedy, call=name, recorded=place)
    for row in chain(*map(database.read_rows, _COMPARISONS)):
        if str(row.get("matches")).lower() in ("1", "true"):  # a number, or a text of Python or C++
            continue
        which = f"tensor {row.get('tensor_id')} differs from its golden tensor {row.get('golden_tensor_id')}"
        numbers = f"PCC {row.get('actual_pcc')}, expected {row.get('desired_pcc')}"
        yield AuditFinding("value", f"{which}: {numbers} (compared when the run was recorded)")


def _first_rank(database: ReportDatabase, notes: list[AuditFinding]) -> int:
    """Return the rank of the first process, and note that there are others."""
    ranks = {row.get("rank", 0) for row in database.read_rows("operations")}
    numbers = sorted([rank for rank in ranks if isinstance(rank, int)])
    if len(numbers) > 1:
        notes.append(scope_note(f"only rank {numbers[0]} of {len(numbers)} ranks was audited"))
    return numbers[0] if numbers else 0


def _read_operations(database: ReportDatabase, notes: list[AuditFinding]) -> list[Operation]:
    """Return the operations in order, with graphs, buffers and tensors."""
    operations: dict[int, Operation] = {}
    for row in database.read_rows("operations", ("operation_id",)):
        number = as_integer(row.get("operation_id"))
        if number is not None:
            operations.setdefault(number, Operation(number, str(row.get("name") or "")))

    def read(table: str) -> Iterator[tuple[Operation, Row]]:
        """Yield the rows of a table with the operation that they belong to."""
        for row in database.read_rows(table):
            number = as_integer(row.get("operation_id"))
            if number is not None and number in operations:
                yield operations[number], row

    for owner, row in read("captured_graph"):
        text = row.get("captured_graph")
        try:
            owner.graph = parse_graph(text, f"the graph of operation {owner.number}") if isinstance(text, str) else ()
        except FileFormatError as problem:
            notes.append(AuditFinding("not readable", str(problem), Severity.NOTE))
    for owner, row in read("buffers"):
        owner.buffers.append(row)
    # The page size of each buffer tells its tile; a graph has it, but there may be none.
    sizes: dict[tuple[int, int], Counter[int]] = {}
    for owner, row in chain(read("buffer_chunks"), read("buffer_pages")):
        address, size = as_integer(row.get("address")), as_integer(row.get("page_size"))
        if address is not None and size is not None:
            sizes.setdefault((owner.number, address), Counter())[size] += 1
    for (number, address), counts in sizes.items():
        operations[number].page_sizes[address] = counts.most_common(1)[0][0]
    for owner, row in read("nodes"):
        first = as_integer(row.get("unique_id"))
        if first is not None:
            owner.base = first if owner.base is None else min(first, owner.base)
    for table in ("input_tensors", "output_tensors"):
        for owner, row in read(table):
            tensor = as_integer(row.get("tensor_id"))
            if tensor is not None:
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

    def _add(self, kind: str, params: Mapping[str, Any], connections: tuple[int, ...] = ()) -> None:
        self.nodes.append(ReportNode(_FIRST_ADDED + len(self.nodes), kind, params, connections))

    def _add_operation(self, place: int) -> None:
        operation = self.operations[place]
        graph = [node for node in operation.graph if node.kind not in ("capture_start", "capture_end")]
        freed = {_key_of(node) for node in graph if node.kind == "buffer_deallocate"}
        allocated = {_key_of(node) for node in graph if node.kind == "buffer_allocate"}
        listed = dict.fromkeys(operation.keys)
        later = set(self.operations[place + 1].keys) if place + 1 < len(self.operations) else set()
        # A buffer that is gone, but was not freed in here, was freed outside of operations.
        all_known = listed.keys() <= self.live | allocated
        for key in sorted(self.live - freed):
            is_gone = key not in listed and (key not in later or not graph)
            is_replaced = key in allocated and all_known
            if key[1] and (is_gone or is_replaced):
                self._add("buffer_deallocate", {"buffer_type": key[0], "address": key[1]})
                self.live.discard(key)
        known = self.live | allocated
        first = len(self.nodes)
        if not graph:  # new tensors were made by the operation itself
            self._add("function_start", {"name": operation.name})
        for key in listed:
            if key not in known and key[1] and (key in later or key in self.places):
                self._allocate_unseen(operation, key)
                known.add(key)
        if graph:
            first = len(self.nodes)
            self._append_graph(graph, operation.base)
        else:
            self._add("function_end", {"name": operation.name})
        operation.node = self.nodes[first].number
        self.live = (self.live | allocated | known) - (freed - allocated)

    def _allocate_unseen(self, operation: Operation, key: Key) -> None:
        """Add an allocation that no graph has, with the tensor that is at its address."""
        row = self.places.get(key)
        buffer = _FIRST_ADDED + len(self.nodes)
        self._add("buffer", {"buffer_type": key[0]}, () if row is None else (buffer + 1,))
        if row is not None:
            self._add("tensor", {name: value for name, value in row.items() if value is not None})
        facts = {"buffer_type": key[0], "address": key[1], "page_size": operation.page_sizes.get(key[1])}
        self._add("buffer_allocate", facts, (buffer,))

    def _append_graph(self, graph: list[ReportNode], base: int | None) -> None:
        """Add the nodes of a graph with the numbers of the report, if the number of the first one is known.

        In a graph, numbers up to its own size are counted in it, and larger ones in the report.
        """
        start = _FIRST_ADDED + len(self.nodes) if base is None else base
        numbers = {node.number: start + place for place, node in enumerate(graph)}

        def translate(links: tuple[int, ...]) -> tuple[int, ...]:
            known = [numbers.get(link, -1 if base is None else link) for link in links]
            return tuple([link for link in known if link >= 0])

        for node in graph:
            params = {name: value for name, value in node.params.items() if name != "device_id"}
            connections, inputs = translate(node.connections), translate(node.inputs)
            number = numbers[node.number]
            self.nodes.append(replace(node, number=number, connections=connections, inputs=inputs, params=params))


def _key_of(node: ReportNode) -> Key:
    memory, address = node.integer("buffer_type"), node.integer("address")
    return (-1 if memory is None else memory, address or 0)
