# SPDX-License-Identifier: Apache-2.0
"""The vectors recorded from the real library, through the C ABI."""

import json
from pathlib import Path

import numpy as np
import pytest

from ..cases import all_cases
from .abi import BLOCKS, COPY, F32, LIBRARY, PACK, SCALARS, UNPACK, nest, run

GOLDEN = Path(__file__).parent.parent / "golden" / "ttnn"

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no native library")


def items(name):
    return json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def vectors():
    return {name: np.load(GOLDEN / f"{name}.npz", allow_pickle=False) for name in ("bfp", "cast")}


@all_cases(("item", [i for i in items("bfp") if "shape" not in i]), groups=4, name=lambda i: i["id"])
def test_block_floats(item, vectors):
    kind = next(k for k, v in BLOCKS.items() if v == (item["bits"], item["exp"]))
    values = vectors["bfp"][item["input"]].astype(np.float32).reshape(-1)
    packed = vectors["bfp"][f"{item['id']}_packed"]
    unpacked = vectors["bfp"][f"{item['id']}_unpacked"].astype(np.float32).reshape(-1)
    blocks, codes = len(values) // 16, item["bits"] * 2
    lanes = [4 * i for i in range(16)]
    got = np.zeros_like(packed)
    assert run([nest(PACK, [(blocks, 64, codes, 1)], F32, kind, (0, 64, 0), lanes, 0xFFFF)], values, got) == 0
    assert np.array_equal(got, packed)
    back = np.zeros_like(unpacked)
    assert run([nest(UNPACK, [(blocks, codes, 64, 1)], kind, F32, (64, 0, 0), lanes, 0xFFFF)], packed, back) == 0
    assert np.array_equal(back.view(np.uint32), unpacked.view(np.uint32))


def test_casts_to_bfloat16_and_float8(vectors):
    v = vectors["cast"]
    for name, target in (("f32_to_bf16", 3), ("f32_to_fp8", 4)):
        source = next(v[k] for k in (f"{name}_in_bits", f"{name}_in") if k in v)
        expected = next(v[k] for k in (f"{name}_out_bits", f"{name}_out") if k in v)
        source = np.ascontiguousarray(source).reshape(-1)
        got = np.zeros(expected.size, f"u{SCALARS[target].itemsize}")
        modes = [(source.size, 4, SCALARS[target].itemsize)]
        assert run([nest(COPY, modes, F32, target)], source, got) == 0
        assert np.array_equal(got, expected.reshape(-1).view(got.dtype))


@all_cases(("item", [i for i in items("cast") if "src" in i]), groups=4, name=lambda i: i["id"])
def test_casts(item, vectors):
    names = {d.name: i for i, d in enumerate(SCALARS)}
    src, dst = names[item["src"]], names[item["dst"]]
    source = vectors["cast"][f"{item['id']}_in"].astype(SCALARS[src]).reshape(-1)
    expected = vectors["cast"][f"{item['id']}_out"].reshape(-1)
    got = np.zeros(expected.size, SCALARS[dst])
    modes = [(source.size, SCALARS[src].itemsize, SCALARS[dst].itemsize)]
    assert run([nest(COPY, modes, src, dst)], source, got) == 0
    assert np.array_equal(got.view(np.uint8), expected.astype(expected.dtype).view(np.uint8))
