# SPDX-License-Identifier: Apache-2.0
"""Tensors allocated and freed in order, as plain values: random ones, and what our allocator answers."""

import random

from tilewright.errors import TilewrightError
from tilewright.memory import Allocator, CoreRangeSet, MemoryConfig, NdShardSpec, ShardSpec, TensorSpec


def question(seed, count=14):
    """Return steps: tensors, which always fit, or {"free": number of a step}."""
    pick = random.Random(seed)
    steps, live = [], []
    for number in range(count):
        if live and pick.random() < 0.2:
            steps.append({"free": live.pop(pick.randrange(len(live)))})
            continue
        kind = pick.choice(["HEIGHT", "HEIGHT", "WIDTH", "BLOCK", "ND", "INTERLEAVED"])
        modes = {"ND": ["lockstep", "range_lockstep"], "INTERLEAVED": ["lockstep"]}
        tiled = pick.random() < 0.4
        unit = (32, 32) if tiled else (1, 16)
        wide, high = pick.randint(1, 4), pick.randint(1, 3)
        x, y = pick.randint(0, 3), pick.randint(0, 3)
        grid = [[x, y, x + wide - 1, y + high - 1]]
        if kind in ("HEIGHT", "ND") and pick.random() < 0.3:
            grid.append([x, y + high, x, y + high])
        shard = [unit[0] * pick.randint(1, 3), unit[1] * pick.randint(1, 3)]
        orientation = pick.choice(["ROW_MAJOR", "COL_MAJOR"])
        across, down = (wide, high) if orientation == "ROW_MAJOR" else (high, wide)
        used = pick.randint(1, wide * high)
        counts = {"HEIGHT": (used, 1), "WIDTH": (1, used), "BLOCK": (pick.randint(1, down), pick.randint(1, across))}
        rows, columns = counts.get(kind, (pick.randint(1, 3), pick.randint(1, 4)))
        steps.append(
            {
                "shape": [shard[0] * rows * (30 if kind == "INTERLEAVED" else 1), shard[1] * columns],
                "dtype": pick.choice(["bfloat16", "bfloat8_b" if tiled else "uint8"]),
                "tiled": tiled,
                "kind": kind,
                "grid": grid,
                "shard": shard,
                "orientation": orientation,
                "mode": pick.choice(modes.get(kind, ["lockstep", "range_lockstep", "per_core", "per_core"])),
            }
        )
        live.append(number)
    return steps


def spec_of(step):
    """Return the tensor of a step."""
    cores = CoreRangeSet([((a, b), (c, d)) for a, b, c, d in step["grid"]])
    memory = MemoryConfig("interleaved", "l1")
    if step["kind"] == "ND":
        shards = NdShardSpec(step["shard"], cores, step["orientation"])
        memory = MemoryConfig("nd_sharded", "l1", nd_shard_spec=shards, allocation=step["mode"])
    elif step["kind"] != "INTERLEAVED":
        shards = ShardSpec(cores, step["shard"], step["orientation"])
        memory = MemoryConfig(f"{step['kind']}_sharded", "l1", shards, allocation=step["mode"])
    layout = "tile" if step["tiled"] else "row_major"
    return TensorSpec(step["shape"], step["dtype"], layout, memory=memory, chip="wormhole_n150")


def answers(steps):
    """Return the address of each tensor, or [x, y, address] for each core in order; None for a refusal."""
    allocator = Allocator("wormhole_n150", hybrid=True)
    blocks, found = [], []
    for step in steps:
        block = None
        if "free" in step:
            allocator.free(blocks[step["free"]])
        else:
            try:
                block = allocator.allocate(spec_of(step))
            except TilewrightError:
                blocks.append(None)
                found.append(None)
                continue
        blocks.append(block)
        found.append(block and (sorted([*core, at] for core, at in block.shard_addresses) or block.address))
    return found
