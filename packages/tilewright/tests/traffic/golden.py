# SPDX-License-Identifier: Apache-2.0
"""The recorded kernels and choices of the runtime, as specs."""

import json
import re
from pathlib import Path

from tilewright import CoreRange, CoreRangeSet, MemoryConfig, NdShardSpec, ShardSpec, TensorSpec

FOLDER = Path(__file__).parent.parent / "golden"
_RANGE = re.compile(r'"start":\{"x":(\d+),"y":(\d+)\},"end":\{"x":(\d+),"y":(\d+)\}')


def recorded(name):
    """Return the content of one file."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def spec_of(description, chip="wormhole_n150"):
    """Return the spec of a recorded tensor."""
    memory = description["memory"]
    if memory["layout"] == "interleaved":
        config = MemoryConfig("interleaved", memory["buffer"])
    else:
        cores = CoreRangeSet([CoreRange(*memory["grid"])])
        shards = ShardSpec(cores, memory["shard_shape"], memory["orientation"])
        config = MemoryConfig(memory["layout"], memory["buffer"], shards)
    shape, dtype, layout, tile = (description[key] for key in ("shape", "dtype", "layout", "tile"))
    return TensorSpec(shape, dtype, layout, tile, config, chip)


def memory_of(text):
    """Return the memory config that the runtime printed."""
    layout = re.search(r"TensorMemoryLayout::(\w+)", text)[1].lower()
    buffer = re.search(r"BufferType::(\w+)", text)[1].lower()
    if layout == "interleaved":
        return MemoryConfig(layout, buffer)
    cores = CoreRangeSet([CoreRange((x0, y0), (x1, y1)) for x0, y0, x1, y1 in _numbers(_RANGE.findall(text))])
    orientation = re.search(r"ShardOrientation::(\w+)", text)[1].lower()
    if "created_with_nd_shard_spec=1" in text:
        shape = json.loads(re.search(r'"shard_shape":(\[[^\]]*\])', text)[1])
        strategy = re.search(r"ShardDistributionStrategy::(\w+)", text)[1].lower()
        return MemoryConfig(layout, buffer, nd_shard_spec=NdShardSpec(shape, cores, orientation, strategy))
    shape = json.loads(re.search(r"shape=(\[[^\]]*\])", text)[1])
    return MemoryConfig(layout, buffer, ShardSpec(cores, shape, orientation))


def cores_of(text):
    """Return the cores of a printed set of ranges."""
    ranges = _numbers(re.findall(r"\[(\d+)-(\d+) - (\d+)-(\d+)\]", text))
    return {(x, y) for x0, y0, x1, y1 in ranges for x in range(x0, x1 + 1) for y in range(y0, y1 + 1)}


def _numbers(rows):
    return [tuple(map(int, row)) for row in rows]


def sequences(reads):
    """Return the reads of a plan in the form of the recording: by core, then by RISC."""
    found = {}
    for risc, runs in reads.items():
        lists = found.setdefault(f"{risc.core.x},{risc.core.y}", {})
        lists[risc.risc] = [[list(part) if isinstance(part, tuple) else part for part in run] for run in runs]
    return found
