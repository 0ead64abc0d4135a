# SPDX-License-Identifier: Apache-2.0
"""Traces of the network-on-chip: who read how many bytes from where, in order, and for how long."""

import json

import pytest

from tilewright import FileFormatError
from tilewright_audit.trace_audit import read_noc_trace


def make_event(kind, time, core=(1, 1), mover="NCRISC", **more):
    noc = "NOC_0" if mover == "NCRISC" else "NOC_1"
    return {"proc": mover, "noc": noc, "vc": -1, "sx": core[0], "sy": core[1], "type": kind, "timestamp": time, **more}


def make_read(time, source, size=2048, **more):
    return make_event("READ", time, dx=source[0], dy=source[1], num_bytes=size, **more)


EVENTS = [
    {"proc": "NCRISC", "zone": "NCRISC-KERNEL", "zone_phase": "begin", "sx": 1, "sy": 1, "timestamp": 1000},
    make_read(1190, (1, 1)),
    make_read(1320, (1, 1)),
    make_read(1450, (2, 1)),
    make_event("READ_BARRIER_START", 1500, dx=-1, dy=-1, num_bytes=0),
    make_event("READ_BARRIER_END", 1900, dx=-1, dy=-1, num_bytes=0),
    make_read(1200, (2, 1), 4096, mover="BRISC"),
    make_event("WRITE_", 1300, mover="BRISC", dx=3, dy=4, num_bytes=64),
    make_event("WRITE_MULTICAST", 1400, mover="BRISC", mcast_start_x=1, mcast_start_y=1, mcast_end_x=4, mcast_end_y=1,
               num_bytes=32),
    make_event("SEMAPHORE_INC", 1450, mover="BRISC", dx=3, dy=4),
    {"brand": "new"},
]  # fmt: skip


def test_sequences_traffic_and_cycles(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(EVENTS))
    trace = read_noc_trace(path)
    runs = [(run.kind, run.other, run.num_bytes, run.count) for run in trace.sequences[(1, 1), "NCRISC"]]
    assert runs == [("read", (1, 1), 2048, 2), ("read", (2, 1), 2048, 1), ("barrier", None, 0, 1)]
    assert trace.traffic == {((1, 1), (1, 1)): 4096, ((1, 1), (2, 1)): 6144}
    assert trace.written == {((1, 1), (3, 4)): 64}
    assert trace.sequences[(1, 1), "BRISC"][-1].box == ((1, 1), (4, 1))
    assert (trace.cycles, trace.skipped) == (710, 1)
    assert trace.types["READ"] == 4


@pytest.mark.parametrize("text", ["{}", "[1]", "[", "[] []"])
def test_what_is_no_trace_is_refused(tmp_path, text):
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(FileFormatError):
        read_noc_trace(path)
