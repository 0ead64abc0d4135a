# SPDX-License-Identifier: Apache-2.0
"""Whole caches: every file that `prepare` writes is a hit for the real ttnn, on a mesh of the machine's shape."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.files import write_safetensors

from .mock_cluster import cluster_environment

DIM, HIDDEN, HEADS, WORDS = 1024, 1024, 8, 1003  # what 32 devices can share
# the board and the mesh of each machine
MACHINES = {
    "N150": ("n150", 1, 1),
    "N300": ("n150", 1, 2),
    "T3K": ("n150", 1, 8),
    "TG": ("n150", 8, 4),
    "P100": ("p100", 1, 1),
    "P150": ("p150", 1, 1),
    "P150x4": ("p150", 1, 4),
    "P150x8": ("p150", 1, 8),
}
FAMILIES = {
    "Llama-3.2-1B-Instruct": ("llama", ()),
    "Qwen2.5-0.5B": ("qwen2", ("q_proj.bias", "k_proj.bias", "v_proj.bias")),
    "Qwen3-0.6B": ("qwen3", ("q_norm.weight", "k_norm.weight")),
}


def write_checkpoint(folder, family, extras):
    """Write a small checkpoint of random values, with one layer."""
    rng = np.random.default_rng(7)
    size = DIM // HEADS
    config = {
        "model_type": family,
        "torch_dtype": "bfloat16",
        "hidden_size": DIM,
        "intermediate_size": HIDDEN,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "head_dim": size,
        "num_hidden_layers": 1,
        "vocab_size": WORDS,
        "tie_word_embeddings": False,
    }
    shapes = {"model.embed_tokens.weight": (WORDS, DIM), "lm_head.weight": (WORDS, DIM), "model.norm.weight": (DIM,)}
    layer = {f"self_attn.{name}_proj.weight": (DIM, DIM) for name in "qkvo"}
    layer |= {f"mlp.{name}_proj.weight": (HIDDEN, DIM) for name in ("gate", "up")}
    layer |= {"mlp.down_proj.weight": (DIM, HIDDEN)}
    layer |= {f"{name}_layernorm.weight": (DIM,) for name in ("input", "post_attention")}
    layer |= {f"self_attn.{name}": (DIM if "bias" in name else size,) for name in extras}
    shapes |= {f"model.layers.0.{name}": shape for name, shape in layer.items()}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    values = {name: rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for name, shape in shapes.items()}
    write_safetensors(folder / "model.safetensors", values)


def expected(path):
    """Return what a file holds, as `take_cache` prints it."""
    stored = tw.read_tensorbin(path)
    spec, topology = stored.spec, stored.topology
    shards = spec.memory.shard_spec
    return {
        "shape": list(spec.shape),
        "dtype": spec.dtype.name.upper(),
        "layout": spec.page_layout.name,
        "memory": [spec.memory.memory_layout.name, spec.memory.buffer_type.name],
        "shard": shards and [list(shards.shape), shards.grid.num_cores],
        "distribution": list(topology.distribution),
        "placements": list(topology.placements),
        "devices": [list(at) for at in topology.coordinates],
        "hashes": [hashlib.sha256(stored.shards[at]).hexdigest() for at in topology.coordinates],
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_a_prepared_cache_is_taken(machine, tmp_path):
    board, rows, columns = MACHINES[machine]
    environment = os.environ | cluster_environment(tmp_path, board, rows, columns)
    for name, (family, extras) in FAMILIES.items():
        write_checkpoint(tmp_path / name, family, extras)
        tw.prepare(tmp_path / name, tmp_path / "cache" / name, machine)
        files = sorted((tmp_path / "cache" / name).rglob("*.tensorbin"))
        assert len(files) > 10
        before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}
        script = Path(__file__).with_name("take_cache.py")
        command = [sys.executable, str(script), str(files[0].parent), str(rows), str(columns)]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert not run.returncode, run.stderr[-2000:]
        taken = json.loads(run.stdout.splitlines()[-1])
        assert set(taken) == {path.name for path in files}
        for path in files:
            mine = expected(path)
            assert taken[path.name]["host"] == mine, path.name
            del mine["hashes"]
            if rows * columns > 1 and len(mine["devices"]) == 1:  # a file for any mesh: all of it on every device
                mine["devices"] = [[row, column] for row in range(rows) for column in range(columns)]
                mine["distribution"] = [rows * columns]
            assert taken[path.name]["device"] == mine, path.name
            assert (path.stat().st_mtime_ns, path.read_bytes()) == before[path], f"{path.name} was written again"
