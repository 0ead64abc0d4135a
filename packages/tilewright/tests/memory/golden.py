# SPDX-License-Identifier: Apache-2.0
"""The recorded vectors of ttnn about memory, and our values in the form in which they were recorded."""

import json
from pathlib import Path

import numpy as np

from tilewright.memory import Chip, CoreRangeSet, MemoryConfig, ShardSpec, TensorSpec, interleaved, nd_sharded

FOLDER = Path(__file__).parent.parent / "golden" / "ttnn"
CHIPS = {
    "dev_wormhole_N150_FD": Chip.named("wormhole_n150"),
    "dev_wormhole_N150_SD": Chip.named("wormhole_n150", dispatch="slow"),
    "dev_blackhole_P150_FD": Chip.named("blackhole_p150"),
    "dev_blackhole_P150_SD": Chip.named("blackhole_p150", dispatch="slow"),
}
KINDS = {"H": "height_sharded", "W": "width_sharded", "B": "block_sharded"}


def recorded(name):
    """Return the cases of one file."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def arrays(name):
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def core_ranges(corners):
    return CoreRangeSet([((x0, y0), (x1, y1)) for x0, y0, x1, y1 in corners])


def corners(cores):
    return [[*each.start, *each.end] for each in cores]


def as_recorded(config):
    """Return a memory config in the form of the recording."""
    matrix, general = config.shard_spec, config.nd_shard_spec
    return {
        "memory_layout": config.memory_layout.name,
        "buffer_type": config.buffer_type.name,
        "shard_spec": matrix
        and {
            "grid": corners(matrix.grid),
            "shape": list(matrix.shape),
            "orientation": matrix.orientation.name,
        },
        "nd_shard_spec": general
        and {
            "shard_shape": list(general.shape),
            "grid": corners(general.grid),
            "orientation": general.orientation.name,
            "strategy": general.distribution.name,
        },
    }


def buffer_spec(case, chip):
    """Return the spec of a recorded buffer."""
    config = case["mc"]
    if config is None:
        memory = interleaved(case["buf"])
    elif config["kind"] == "ND":
        cores = core_ranges(config["ranges"])
        memory = nd_sharded(config["shard_shape"], cores, config["ori"], config["strategy"], case["buf"])
    else:
        shards = ShardSpec(core_ranges(config["ranges"]), config["shard_shape"], config["ori"])
        memory = MemoryConfig(KINDS[config["kind"]], case["buf"], shards)
    return TensorSpec(case["shape"], case["dtype"], case["layout"], case["tile"], memory, chip)
