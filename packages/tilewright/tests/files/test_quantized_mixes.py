# SPDX-License-Identifier: Apache-2.0
"""Any mix of sections, types, shapes and configurations is read, the same in boxes as whole, or refused."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files import write_safetensors

TYPES = (
    np.uint8,
    np.int8,
    np.int32,
    np.int64,
    np.float32,
    np.float16,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
)
ENDINGS = (
    "",
    "_packed",
    "_scale",
    "_scale_inv",
    "_global_scale",
    "_scale_2",
    "_shape",
    "_zero_point",
    "_g_idx",
    "_qdata",
)
NAMES = (*[f"m.weight{end}" for end in ENDINGS], "w_blocks", "w_scales", "m.scale", "m.qweight", "m.qzeros", "m.SCB")
EXTENTS = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 16, 32, 33, 64])
VALUES = st.sampled_from(
    [None, 0, -1, 1, 2, 4, 8, 16, 32, "16x16", "ax2", [16, 16], [0, 1], [1], {}, 1.5, 10**30, True]
)
SCHEMES = st.dictionaries(st.sampled_from(["num_bits", "group_size", "block_structure", "weight_block_size"]), VALUES)


@st.composite
def checkpoints(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    arrays = {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True)):
        shape, dtype = draw(st.lists(EXTENTS, max_size=4)), draw(st.sampled_from(TYPES))
        arrays[name] = rng.integers(0, 120, shape).astype(np.float32).astype(dtype)
    config = {"quant_method": draw(st.sampled_from(["fp8", "mxfp4", None, 3])), **draw(SCHEMES)}
    config["config_groups"] = draw(st.one_of(VALUES, st.builds(lambda scheme: {"g": {"weights": scheme}}, SCHEMES)))
    return arrays, draw(st.sampled_from([None, [], {}, {"quantization_config": config}, {"text_config": config}]))


@given(checkpoints(), st.data())
def test_mixes_are_read_or_refused(checkpoint: tuple[dict[str, Any], Any], data: st.DataObject) -> None:
    arrays, config = checkpoint
    with tempfile.TemporaryDirectory() as folder:
        write_safetensors(Path(folder, "model.safetensors"), arrays)
        Path(folder, "config.json").write_text(json.dumps(config))
        tensors = tw.open_tensors(folder)
        assert str(tw.inspect(folder))
        for name, tensor in tensors.items():
            with contextlib.suppress(tw.TilewrightError):
                whole = tensor.read()
                assert whole.shape == tensor.shape, name
                if whole.size:
                    box = tuple([slice(data.draw(st.integers(0, n - 1)), n) for n in tensor.shape])
                    assert tensor.read(box).tobytes() == np.ascontiguousarray(whole[box]).tobytes(), (name, box)
        with contextlib.suppress(tw.TilewrightError):
            tw.convert(folder, Path(folder, "out"), dtype="bfloat8_b")
