# SPDX-License-Identifier: Apache-2.0
"""Answers, as JSON: the addresses that the real ttnn gives, with its hybrid allocator, to the tensors asked for.

The allocator reads its mode once, so that this is a process of its own, with TT_METAL_ALLOCATOR_MODE_HYBRID=1. A
question is a list of steps: a tensor as plain values, or {"free": number of the step that allocated it}. An answer is
an address, [x, y, address] for every core, or None where ttnn refuses.
"""

import json
import sys

import ttnn


def config_of(step):
    if step["kind"] == "INTERLEAVED":
        return ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, ttnn.BufferType.L1)
    ranges = [ttnn.CoreRange(ttnn.CoreCoord(a, b), ttnn.CoreCoord(c, d)) for a, b, c, d in step["grid"]]
    grid, order = ttnn.CoreRangeSet(ranges), getattr(ttnn.ShardOrientation, step["orientation"])
    if step["kind"] == "ND":
        config = ttnn.MemoryConfig(ttnn.BufferType.L1, ttnn.NdShardSpec(step["shard"], grid, order))
    else:
        layout = getattr(ttnn.TensorMemoryLayout, f"{step['kind']}_SHARDED")
        config = ttnn.MemoryConfig(layout, ttnn.BufferType.L1, ttnn.ShardSpec(grid, step["shard"], order))
    if step["mode"] != "lockstep":
        getattr(config, f"experimental_set_{step['mode']}_allocation")(True)
    return config


def answer(steps):
    device = ttnn.open_device(device_id=0)
    tensors, answers = [], []
    for step in steps:
        if "free" in step:
            tensor, address = None, None
            ttnn.deallocate(tensors[step["free"]])
        else:
            layout = ttnn.TILE_LAYOUT if step["tiled"] else ttnn.ROW_MAJOR_LAYOUT
            dtype = getattr(ttnn, step["dtype"])
            try:
                shape = ttnn.Shape(step["shape"])
                tensor = ttnn.allocate_tensor_on_device(shape, dtype, layout, device, config_of(step))
            except RuntimeError:
                tensor, address = None, None
            else:
                address = address_of(tensor)
        tensors.append(tensor)
        answers.append(address)
    del tensors
    ttnn.close_device(device)
    return answers


def address_of(tensor):
    if not tensor.is_per_core_allocated():
        return tensor.buffer_address()
    (at,) = tensor.device_coords()
    grid = tensor.memory_config().shard_spec.grid
    cores = [
        (x, y)
        for part in grid.ranges()
        for y in range(part.start.y, part.end.y + 1)
        for x in range(part.start.x, part.end.x + 1)
    ]
    return [[x, y, tensor.experimental_per_core_buffer_address(at, ttnn.CoreCoord(x, y))] for x, y in cores]


if __name__ == "__main__":
    answers = [answer(steps) for steps in json.load(sys.stdin)]
    print("\n" + json.dumps(answers))
