# SPDX-License-Identifier: Apache-2.0
"""Reports of any size in bounded memory: made on the fly, audited in a process of their own, which is measured."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from .damages import REPORTS

pytestmark = pytest.mark.slow

BASE = REPORTS / "wormhole_n150.reshard_chain.normal.json"
MEGABYTES = int(os.environ.get("TILEWRIGHT_REPORT_MEGABYTES", "48"))
LIMIT = 160  # MiB beyond what the library itself takes
PROGRAM = """
import resource, sys
import tilewright as tw
import tilewright_audit, tilewright.traffic
tw.audit(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = tw.audit(sys.argv[2])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(report.findings), report.counts["pages"], after - before)
"""


def write_large(path: Path, megabytes: int) -> int:
    """Write a report whose pages are repeated until it has that size; return the number of pages."""
    report = json.loads(BASE.read_text())
    pages = report.pop("buffer_pages_by_address")
    final = report.pop("buffer_pages", [])
    report.pop("per_operation_buffers", None)
    address, entries = next(iter(pages.items()))
    entry = json.dumps(entries[0])
    count = len(entries[0]["pages"])
    copies = megabytes * 1_000_000 // len(entry)
    with path.open("w") as file:
        file.write(json.dumps(report)[:-1])
        file.write(f', "buffer_pages": {json.dumps(final)}, "buffer_pages_by_address": {{')
        rest = {key: value for key, value in pages.items() if key != address}
        file.write(f"{json.dumps(address)}: [")
        for k in range(copies):
            file.write(f"{', ' if k else ''}{entry}")
        file.write("]" + "".join([f", {json.dumps(key)}: {json.dumps(value)}" for key, value in rest.items()]) + "}}")
    return copies * count


@pytest.mark.skipif(not hasattr(resource, "getrusage"), reason="memory is not measured here")
def test_a_large_report_takes_bounded_memory(tmp_path):
    path = tmp_path / "large.json"
    pages = write_large(path, MEGABYTES)
    assert path.stat().st_size > 0.9 * MEGABYTES * 1_000_000
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(BASE), str(path)], capture_output=True, text=True, check=True
    )
    findings, compared, kilobytes = map(int, done.stdout.split())
    assert compared >= pages
    assert findings <= 1  # that pages are listed several times, at most
    assert kilobytes < LIMIT * 1024, f"{kilobytes / 1024:.0f} MiB for a report of {MEGABYTES} MB"
