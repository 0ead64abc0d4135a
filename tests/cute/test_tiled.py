# SPDX-License-Identifier: Apache-2.0
"""Tiled instructions: each thread has what CuTe gives it, of layouts and of tensors."""

import json
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import Layout, LayoutError, cute

GOLDEN = Path(__file__).parent.parent / "golden" / "atoms" / "tiled.json"


def as_layout(value):
    return tw.parse(value) if isinstance(value, str) else value


def test_recorded_partitions():
    count = 0
    for case in json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]:
        if case["kind"] == "mma":
            orders = case["permutations"] and tuple(map(as_layout, case["permutations"]))
            tiled = cute.make_tiled_mma(case["atom"], tw.parse(case["layout"]), orders)
            assert list(tiled.tile_shape) == case["tile"]
            m, n, k = case["mnk"]
            targets = {"A": Layout((m, k)), "B": Layout((n, k)), "C": Layout((m, n))}
        else:
            tiled = cute.make_tiled_copy(
                case["atom"], case["bits"], tw.parse(case["threads"]), tw.parse(case["values"])
            )
            assert list(tiled.tiler) == case["tile"]
            targets = dict.fromkeys("SD", tw.parse(case["tensor"]))
        for thread, operand, offset, text in case["partitions"]:
            partition = getattr(tiled, f"partition_{operand}")(targets[operand], thread)
            expected = tw.parse(text) + offset
            index = np.arange(expected.size)
            assert np.array_equal(partition(index), expected(index)), (case["atom"], thread, operand)
            count += 1
    assert count > 100


def test_partitions_of_tensors_are_views():
    mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", Layout((2, 2, 1)))
    values = np.zeros((64, 32), np.float32)
    c = tw.TileTensor(values)
    for thread in range(mma.threads):
        mma.get_slice(thread).partition_C(c).fill(thread)
    assert len(np.unique(values)) == 128  # every thread, and nothing is left
    atom = tw.atoms["SM80_16x8x16_F32F16F16F32_TN"]
    for thread, value in [(0, 0), (5, 1), (31, 3)]:
        assert values[atom.element("C", thread, value)] == thread


def test_the_algebra_takes_tensors():
    t = tw.TileTensor(np.arange(64), tw.row_major(8, 8))
    tiles = cute.zipped_divide(t, (2, 4))
    assert tiles.layout == tw.zipped_divide(tw.row_major(8, 8), (2, 4))
    assert int(tiles[(1, 2), (1, 1)]) == int(t[3, 6])
    assert cute.composition(t, cute.Layout((4, 2), (2, 1))).to_numpy().tolist() == [
        [0, 8],
        [16, 24],
        [32, 40],
        [48, 56],
    ]


def test_what_is_refused():
    with pytest.raises(LayoutError, match="not a matrix instruction"):
        cute.make_tiled_mma("SM75_U32x4_LDSM_N")
    with pytest.raises(LayoutError, match="not a copy instruction"):
        cute.make_tiled_copy("SM80_8x8x4_F64F64F64F64_TN", 32, Layout((4, 8)))
    with pytest.raises(LayoutError, match="thread 32 is not one of 32"):
        cute.make_tiled_mma("SM80_8x8x4_F64F64F64F64_TN").partition_C(Layout((8, 8)), 32)
