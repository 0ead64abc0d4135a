# SPDX-License-Identifier: Apache-2.0
"""NoC traces as a card records them, from the facts that are kept of recorded kernels."""

import json
from typing import Any

import tilewright as tw

from .damages import LIBRARY_GOLDEN

RECORDED = json.loads((LIBRARY_GOLDEN / "noc" / "reshards_public.json").read_text())
_COLUMNS, _ROWS = (1, 2, 3, 4, 6, 7, 8, 9), (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)
_BANKS = ((0, 11), (0, 1), (0, 5), (0, 7), (5, 1), (5, 11), (5, 2), (5, 9), (5, 8), (5, 3), (5, 5), (5, 7))

KERNELS = {each["name"]: each for key, value in RECORDED.items() if isinstance(value, list) for each in value}


def place(endpoint: Any) -> tuple[int, int]:
    """Return where a core or bank is on the network."""
    return _BANKS[endpoint] if isinstance(endpoint, int) else (_COLUMNS[endpoint[0]], _ROWS[endpoint[1]])


def spec_of(facts: dict[str, Any]) -> tw.TensorSpec:
    """Return the spec that recorded facts describe."""
    memory = facts["memory"]
    config: Any = "dram"
    if memory["layout"] != "interleaved":
        make = {
            "block_sharded": tw.block_sharded,
            "height_sharded": tw.height_sharded,
            "width_sharded": tw.width_sharded,
        }
        (x, y), (last_x, last_y) = memory["grid"]
        assert (x, y) == (0, 0)
        config = make[memory["layout"]]((last_x + 1, last_y + 1), tuple(memory["shard_shape"]))
    return tw.TensorSpec(tuple(facts["shape"]), facts["dtype"], "tile", memory=config, chip="wormhole_n150")


def events_of(kernel: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a recorded kernel."""
    events = []
    for name, movers in kernel["sequence"].items():
        x, y = place([int(part) for part in name.split(",")])
        for mover, runs in movers.items():
            noc = "NOC_0" if mover == "NCRISC" else "NOC_1"
            common = {"proc": mover, "noc": noc, "sx": x, "sy": y}
            time = 1000
            for run in runs:
                for _ in range(run[-1]):
                    time += 128
                    if run[0] == "barrier":
                        events.append(common | {"type": "READ_BARRIER_END", "timestamp": time})
                        continue
                    dx, dy = place(run[0])
                    read = {"type": "READ", "dx": dx, "dy": dy, "num_bytes": run[1], "timestamp": time}
                    events.append(common | read)
    return events
