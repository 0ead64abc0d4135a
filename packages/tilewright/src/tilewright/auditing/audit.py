# SPDX-License-Identifier: Apache-2.0
"""`audit`: a report of a real run, compiler IR, a NoC trace or text of a log, against the model."""

from __future__ import annotations

import os
from pathlib import Path

from .._files import as_path
from ..errors import FileFormatError
from ..files import FilePath
from ..memory import Chip, ChipLike
from .against import compare_with_run
from .audit_report import AuditReport
from .input_kind import find_input_kind
from .ir_audit import audit_ir
from .run_audit import audit_database, audit_graph
from .text_audit import audit_text, audit_text_file
from .trace_audit import audit_trace

DATABASE_NAME = "db.sqlite"
_SIGNS = "({[<\n"  # in a text that is no path


def audit(path: FilePath, chip: ChipLike | None = None, against: FilePath | None = None) -> AuditReport:
    """Return what a file from real life says that the model does not; and of a run, its use of L1 over time.

    Args:
        path: a graph report of ttnn (JSON), a database of ttnn-visualizer or its folder, IR of tt-mlir, a NoC trace, a
            log with values that ttnn printed, or such a text itself. The content decides, not the name.
        chip: the chip; by default that of the devices in a report, and none for IR and text.
        against: the other side: of IR, a report of its run; of a report, the IR it was compiled from.

    >>> import tempfile
    >>> graph = '[{"counter": 0, "node_type": "capture_start"}, {"counter": 1, "node_type": "capture_end"}]'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = Path(folder, "report.json")
    ...     _ = report.write_text(graph)
    ...     print(audit(report, "wormhole_n150"))
    report.json: clean
      graph report, wormhole_n150 (8 x 8 cores, fast dispatch, 12 DRAM banks)
      compared: 0 calls, 0 buffers, 0 pages, 0 addresses, 0 of them as predicted
    L1: not used
    """
    known = None if chip is None else Chip.of(chip)
    if isinstance(path, str) and _is_text(path):
        if against is not None:
            raise FileFormatError("a text has nothing to be compared with a run; pass IR and a report")
        return audit_text(path, known)
    place = _find_file(path)
    kind = find_input_kind(place)
    if against is not None:
        other = _find_file(against)
        other_kind = find_input_kind(other)
        runs = {"graph report": audit_graph, "database": audit_database}
        if kind == "IR" and other_kind in runs:
            return compare_with_run(place, other, other_kind, known)
        if other_kind == "IR" and kind in runs:
            return compare_with_run(other, place, kind, known)
        raise FileFormatError(
            f"expected IR of tt-mlir and a report of its run to compare, got {kind} {place.name} and {other_kind}"
            f" {other.name}"
        )
    if kind == "graph report":
        return audit_graph(place, known)
    if kind == "database":
        return audit_database(place, known)
    if kind == "IR":
        return audit_ir(place, known)
    return audit_trace(place, known) if kind == "NoC trace" else audit_text_file(place, known)


def _is_text(path: str) -> bool:
    """Return whether a string is a text to audit rather than the path of a file."""
    return any(sign in path for sign in _SIGNS) and not os.path.exists(path)


def _find_file(path: FilePath) -> Path:
    place = as_path(path)
    return place / DATABASE_NAME if place.is_dir() else place
