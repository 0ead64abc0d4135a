# SPDX-License-Identifier: Apache-2.0
"""Nine kinds of damage to a database, at places of each table where it can be made."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

SHAPES = re.compile(r'((?:"shard_shape":| shape=)\[)([\d, ]+)\]')


def database_damages(path: Path, copy: Path) -> Iterator[tuple[str, str]]:
    """Yield (kind, place) of every damage to the database at `path`, with the damaged one at `copy` meanwhile."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as whole:
        for kind, place, statement, values in _statements(whole):
            copy.write_bytes(path.read_bytes())
            with closing(sqlite3.connect(copy)) as damaged:
                damaged.execute(statement, values)
                damaged.commit()
            yield kind, place


def _statements(whole: sqlite3.Connection) -> Iterator[tuple[str, str, str, tuple]]:
    chunks = [row[0] for row in whole.execute("select rowid from buffer_chunks")]
    for row in dict.fromkeys(chunks[:: max(1, len(chunks) // 4)] + chunks[-1:]):
        for name, kind, change in (
            ("chunk_address", "page address", 16), ("core_x", "page core", 1), ("core_y", "page core", 3),
            ("num_pages", "page missing", -1), ("page_size", "page size", 32), ("chunk_size", "size", 64),
        ):  # fmt: skip
            change_text = f"update buffer_chunks set {name} = {name} + {change} where rowid = ?"
            yield kind, f"chunk {row} {name}", change_text, (row,)
        yield "page missing", f"chunk {row}", "delete from buffer_chunks where rowid = ?", (row,)
    buffers = whole.execute("select rowid, operation_id, address, buffer_type from buffers").fetchall()
    for row, operation, address, memory in buffers:
        text = "update buffers set max_size_per_bank = max_size_per_bank + 32 where rowid = ?"
        yield "bytes per bank", f"buffer row {row}", text, (row,)
        for _, other, target, same in [each for each in buffers if each[0] != row]:
            if (other, same) == (operation, memory) and address not in (target, target + 32):
                text = "update buffers set address = ? where rowid = ?"
                yield "overlap", f"buffer row {row} at {address} as {target}", text, (target, row)
                yield "overlap", f"buffer row {row} at {address} as {target + 32}", text, (target + 32, row)
                break
    for row, config in whole.execute("select rowid, memory_config from tensors where address is not null").fetchall():
        text = "update tensors set address = address + 4096 where rowid = ?"
        yield "tensor elsewhere", f"tensor row {row}", text, (row,)
        first = SHAPES.search(config)
        if first is not None:
            extents = [int(n) for n in first[2].split(",")]
            changed = ", ".join(map(str, [*extents[:-1], extents[-1] * 2]))
            for count in (0, 1):
                damaged = SHAPES.sub(rf"\g<1>{changed}]", config, count)
                text = "update tensors set memory_config = ? where rowid = ?"
                yield "shard shape", f"tensor row {row} {extents} as [{changed}] {count}", text, (damaged, row)
