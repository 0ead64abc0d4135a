# SPDX-License-Identifier: Apache-2.0
"""`ReportDatabase`: the SQLite database that `ttnn-visualizer` shows, read without changing it.

Schemas 3.x differ in tables and columns, so a row has the columns that are there. A database is a program as well:
views, virtual tables and functions in it are never run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from .._files import as_path
from ..errors import FileFormatError
from .source import FilePath, SourceFile

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
    """A database of a run: its metadata, and the columns of its tables.

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
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema_version(self) -> str:
        """Return the version of the schema, or nothing if the database does not say.

        >>> ReportDatabase(SourceFile(__file__), {}, {"schema_version": "3.5"}).schema_version
        '3.5'
        """
        return self.metadata.get("schema_version", "")

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
                yield dict(zip(columns, values, strict=True))


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
    if file.size < len(MAGIC) or file.read(0, len(MAGIC)) != MAGIC:
        raise FileFormatError(f"{path} is not a database: it does not begin with 'SQLite format 3'")
    with _open_database(file) as connection:
        tables = {name: _list_columns(connection, name, file) for name in _list_tables(connection)}
    missing = [name for name in NEEDED_TABLES if name not in tables]
    if missing:
        raise FileFormatError(f"{path} is not a database of a run: it has no table {', '.join(missing)}")
    database = ReportDatabase(file, tables)
    pairs = [(row.get("key"), row.get("value")) for row in database.read_rows("report_metadata")]
    metadata = {key: str(value) for key, value in pairs if isinstance(key, str)}
    return ReportDatabase(file, tables, metadata)


def _list_tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of ordinary tables; views and virtual tables would run what the database says."""
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
            connection.text_factory = _decode_text
            for setting in ("trusted_schema = off", "query_only = on", "cell_size_check = on"):
                connection.execute(f"pragma {setting}")
            if hasattr(connection, "setlimit"):  # since Python 3.11
                connection.setlimit(_LENGTH_LIMIT, _MAX_TEXT_BYTES)
            connection.set_authorizer(_authorize)
            yield connection
    except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as problem:  # names, too, may be damaged
        raise FileFormatError(f"{file.path} is not a readable database: {problem}") from None


def _authorize(action: int, *_: Any) -> int:
    return _ALLOW if action in _ALLOWED_ACTIONS else _DENY


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _quote_name(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
