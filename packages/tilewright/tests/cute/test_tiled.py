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


def test_threads_of_a_quad_pair_have_the_numbers_of_their_lanes():
    mma = cute.make_tiled_mma("SM70_8x8x4_F32F16F16F32_NT")
    parts = [mma.partition_C(cute.Layout((8, 8)), lane) for lane in (0, 1, 2, 3, 16, 17, 18, 19)]
    assert sorted(part(i) for part in parts for i in range(8)) == list(range(64))
    for thread in (4, 20, -1):
        with pytest.raises(LayoutError, match=f"thread {thread} is not one of 8"):
            mma.partition_C(cute.Layout((8, 8)), thread)


def test_atoms_that_do_not_fit_are_refused():
    name, vector = "SM80_16x8x16_F16F16F16F16_TN", "UniversalCopy<uint128_t>"
    assert cute.make_tiled_mma(name, (2, 2, 1)).tile_shape == (32, 16, 16)
    assert cute.make_tiled_mma(name, None, (16, 8, 32)).tile_shape == (16, 8, 32)
    threads = cute.Layout((16, 8))
    for make, reason in (
        (lambda: cute.make_tiled_mma(name, None, (17, 8, 16)), "along M must be an exact multiple of 16, got 17"),
        (lambda: cute.make_tiled_mma(name, (2, 1), (48, 8, 16)), "along M must be an exact multiple of 32, got 48"),
        (lambda: cute.make_tiled_mma(name, (1, 1, 1, 2)), "up to three modes"),
        (lambda: cute.make_tiled_mma(name).layout_tv("D"), "an operand is A, B or C"),
        (lambda: cute.make_tiled_copy(vector, 0, threads), "not a multiple of 0"),
        (lambda: cute.make_tiled_copy(vector, 16, threads), "needs 1 threads with 8 values"),
        (lambda: cute.make_tiled_copy("SM75_U32x4_LDSM_N", 16, 8, 8), "needs 32 threads with 8 values"),
        (
            lambda: cute.make_tiled_copy(vector, 16, threads, (1, 8)).partition_S(cute.Layout((64, 64)), 128),
            "not one of",
        ),
    ):
        with pytest.raises(LayoutError, match=reason):
            make()
