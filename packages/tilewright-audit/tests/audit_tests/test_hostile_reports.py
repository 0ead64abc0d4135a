# SPDX-License-Identifier: Apache-2.0
"""Reports, databases and traces that are damaged anywhere: an answer, or a FileFormatError, and never anything else."""

import json
import random
import re
import sqlite3
from contextlib import closing, suppress

import pytest

import tilewright as tw
from tilewright_audit.trace_audit import read_noc_trace

from .damages import INDEX, REPORTS

VALUES = [
    None, True, -1, 0, 1, 2**31, 2**62 - 1, 2**63, 2**70, 1.5, "", "64", "9" * 18, "\ud800", [], [1, "a"], {}, {"a": 1},
    "Shape([])", "Shape([0, 5])", "Shape([4294967295, 4294967295, 4294967295])", "DataType::FP8_E4M3", "Layout::TILE",
    "MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1)", "{[0-0 - 999-999]}",
    "buffer_allocate", "buffer_deallocate", "tensor", "function_end", "circular_buffer_allocate", 3, 5, 17,
]  # fmt: skip


def audit_any(path):
    """Audit a file; only a FileFormatError is an answer besides a report."""
    with suppress(tw.FileFormatError):
        report = tw.audit(path)
        assert str(report)
        json.dumps(report.to_json())


def members(value):
    """Return (container, key) of everything in a JSON value."""
    listed, left = [], [value]
    while left:
        container = left.pop()
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        for key, inner in pairs:
            listed.append((container, key))
            if isinstance(inner, dict | list):
                left.append(inner)
    return listed


def change_member(rng, container, key):
    with suppress(KeyError, IndexError):
        text = container[key] if isinstance(container[key], str) else ""
        if rng.random() < 0.15:
            del container[key]
        elif text and rng.random() < 0.3:
            container[key] = re.sub(
                r"\d+", lambda m: str(rng.choice([0, 31, 2**40])) if rng.random() < 0.2 else m[0], text
            )
        elif text and rng.random() < 0.4:
            place = rng.randrange(len(text))
            container[key] = text[:place] + rng.choice(["", "0", "[", "}"]) + text[place + 1 :]
        else:
            container[key] = rng.choice(VALUES)


def test_reports_with_any_values(tmp_path):
    rng, path = random.Random(24), tmp_path / "report.json"
    for _ in range(150):
        report = json.loads((REPORTS / rng.choice(INDEX)["file"]).read_text())
        places = members(report)
        for _ in range(rng.choice([1, 2, 5, 20])):
            change_member(rng, *rng.choice(places))
        path.write_text(json.dumps(report))
        audit_any(path)


def test_reports_with_any_bytes(tmp_path):
    rng, path = random.Random(25), tmp_path / "report.json"
    for _ in range(150):
        data = bytearray((REPORTS / rng.choice(INDEX)["file"]).read_bytes())
        for _ in range(rng.choice([1, 3, 30])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        audit_any(path)


def test_databases_with_any_bytes_and_values(tmp_path):
    rng, path = random.Random(26), tmp_path / "db.sqlite"
    wholes = sorted(REPORTS.glob("*.sqlite"))
    for step in range(80):
        data = bytearray(rng.choice(wholes).read_bytes())
        if step % 2:
            for _ in range(rng.choice([1, 3, 30, 300])):
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        if not step % 2:
            with closing(sqlite3.connect(path)) as database:
                tables = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
                table = rng.choice(tables)
                columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
                value = rng.choice([None, -1, 0, 2**62, -(2**63), 1.5, "x", b"\xff", "[" * 5000, '[{"counter": 0}]'])
                change = f"update {table} set {rng.choice(columns)} = ?", (value,)
                with suppress(sqlite3.IntegrityError):  # a value that only one row may have
                    database.execute(*(change if rng.random() < 0.6 else (f"drop table {table}",)))
                database.commit()
        audit_any(path)


def test_views_of_a_database_are_not_run(tmp_path):
    path = tmp_path / "db.sqlite"
    path.write_bytes((REPORTS / "wormhole_n150.late_free.db.sqlite").read_bytes())
    endless = "with recursive c(x) as (select 1 union all select x + 1 from c) select x as operation_id from c"
    with closing(sqlite3.connect(path)) as database:
        database.execute("alter table buffers rename to b")
        database.execute(f"create view buffers as {endless}")
        database.commit()
    with pytest.raises(tw.FileFormatError, match="no table buffers"):
        tw.audit(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "at byte 0"), (b"{}", "no array 'graph'"), (b'{"graph": 5}', "no array 'graph'"), (b"[1, 2]", "entries"),
        (b'{"graph": [', "at byte 11"), (b'{"graph": []} x', "at byte 14"), (b'{"graph": [], "graph": []}', "twice"),
        (b"\x89PNG", "not UTF-8"), (b"SQLite format 3\x00", "not a readable database"),
    ],
)  # fmt: skip
def test_what_is_no_report_is_refused_with_the_place(tmp_path, data, said):
    path = tmp_path / "report.json"
    path.write_bytes(data)
    with pytest.raises(tw.FileFormatError, match=said):
        tw.audit(path)


def test_traces_with_any_values(tmp_path):
    rng, path = random.Random(27), tmp_path / "trace.json"
    event = {"proc": "BRISC", "noc": "NOC_1", "vc": -1, "sx": 1, "sy": 1, "dx": 1, "dy": 2, "num_bytes": 64,
             "type": "READ", "timestamp": 9}  # fmt: skip
    for _ in range(200):
        events = [dict(event) for _ in range(4)]
        change_member(rng, *rng.choice(members(events)))
        path.write_text(json.dumps(events))
        with suppress(tw.FileFormatError):
            trace = read_noc_trace(path)
            assert trace.cycles is None
            assert trace.traffic is not None
