# SPDX-License-Identifier: Apache-2.0
"""The sample model is the same everywhere, and what is written as safetensors can be read."""

import hashlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given

import tilewright as tw
from tilewright.files import open_tensors, sample_model, write_safetensors, write_sample_model

from ..cases import examples
from .samples import ALL_KINDS, arrays, same_bits

DIGEST = "a5a4c06f50d58015dc627f912f918fa90be84ed416bf806b5ad76c1a9762fea2"


def test_its_bytes_are_always_the_same(tmp_path):
    write_sample_model(tmp_path / "model.safetensors")
    assert hashlib.sha256((tmp_path / "model.safetensors").read_bytes()).hexdigest() == DIGEST


def test_its_numbers_look_like_weights():
    weights = sample_model()["layers.1.mlp.down.weight"]
    usual = np.delete(weights, 211, axis=1)
    assert abs(float(usual.mean())) < 1e-3
    assert float(usual.std()) * np.sqrt(weights.shape[1]) == pytest.approx(1.0, abs=0.01)
    assert np.abs(weights).max() > 20 * usual.std()


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrays(ALL_KINDS))
def test_what_is_written_is_read(tmp_path, array):
    write_safetensors(tmp_path / "x.safetensors", {"a": array, "b": np.int8(3)}, {"note": "hello"})
    found = open_tensors(tmp_path / "x.safetensors")
    assert found.metadata == {"note": "hello"}
    same_bits(found["a"].read(), array)
    assert found["b"].read() == 3


def test_names_that_are_none(tmp_path):
    for name in ("__metadata__", "../out"):
        with pytest.raises(tw.FileFormatError):
            write_safetensors(tmp_path / "x.safetensors", {name: np.zeros(1)})
    with pytest.raises(tw.FormatError):
        write_safetensors(tmp_path / "x.safetensors", {"a": np.zeros(1, complex)})
    assert list(tmp_path.iterdir()) == []
