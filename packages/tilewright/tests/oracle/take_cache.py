# SPDX-License-Identifier: Apache-2.0
"""Take every file of a cache with the real ttnn, as a model does, and print what it found: FOLDER ROWS COLUMNS."""

import hashlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import ttnn

NAME = re.compile(r"(?P<prefix>.*)_dtype_(?P<dtype>\w+)_layout_(?P<layout>TILE|ROW_MAJOR)\.tensorbin")


def describe(tensor):
    """Return spec and topology of a tensor as plain values."""
    config, topology = tensor.memory_config(), tensor.tensor_topology()
    shards = config.shard_spec
    return {
        "shape": list(tensor.shape),
        "dtype": tensor.dtype.name,
        "layout": tensor.layout.name,
        "memory": [config.memory_layout.name, config.buffer_type.name],
        "shard": shards and [list(shards.shape), len(ttnn.corerange_to_cores(shards.grid))],
        "distribution": list(topology.distribution_shape()),
        "placements": [getattr(each, "dim", None) for each in topology.placements()],
        "devices": [list(at) for at in topology.mesh_coords()],
    }


def take(path, device):
    """Return what `load_tensor` finds in a file on the host, and what `as_tensor` puts on the devices."""
    name = NAME.fullmatch(path.name)
    host = ttnn.load_tensor(str(path))
    found = describe(host)
    buffer = host.host_buffer()
    pages = [np.from_dlpack(buffer.get_shard(ttnn.MeshCoordinate(*at))).tobytes() for at in found["devices"]]
    placed = ttnn.as_tensor(
        None,  # a miss would fail
        dtype=getattr(ttnn.DataType, name["dtype"]),
        layout=getattr(ttnn.Layout, name["layout"]),
        device=device,
        memory_config=host.memory_config(),
        cache_file_name=str(path.parent / name["prefix"]),
    )
    found["hashes"] = [hashlib.sha256(each).hexdigest() for each in pages]
    return {"host": found, "device": describe(placed)}


if __name__ == "__main__":
    folder, rows, columns = sys.argv[1:]
    device = ttnn.open_mesh_device(ttnn.MeshShape(int(rows), int(columns)))
    found = {path.name: take(path, device) for path in sorted(Path(folder).glob("*.tensorbin"))}
    ttnn.close_mesh_device(device)
    print(json.dumps(found))
