# SPDX-License-Identifier: Apache-2.0
"""`diff`: the figures are NumPy's, whatever the memory, the formats and the layouts; and PCC is not believed."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ttnn
from tilewright.cli.console import to_json
from tilewright.files import Tensorbin, write_tensorbin

from ..cases import examples

RNG = np.random.default_rng(7)
WEIGHTS = RNG.standard_normal((3, 100, 150)).astype(np.float32)


def stored(folder, name, values, dtype, **placed):
    """Return the path of a tensorbin file of some values."""
    spec = tw.TensorSpec(values.shape, dtype, **placed)
    path = folder / f"{name}.tensorbin"
    write_tensorbin(path, Tensorbin(spec, tw.to_bytes(values, spec)))
    return path


def only(found):
    (tensor,) = found.tensors
    return tensor


@examples(40)
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple),
    seed=st.integers(0, 10**6),
    memory=st.integers(1, 1 << 20),
)
def test_the_figures_are_those_of_numpy_whatever_the_memory(shape, seed, memory):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    b = np.where(rng.random(shape) < 0.5, a, a + 0.1 * rng.standard_normal(shape))
    found = only(tw.diff(a, b, memory=memory))
    error = np.abs(a - b)
    assert found.unequal == np.count_nonzero(error)
    assert found.max_abs == error.max()
    assert found.rms_error == pytest.approx(np.sqrt((error**2).mean()), rel=1e-9, abs=1e-300)
    if found.unequal:
        assert found.first.coordinate == tuple(np.argwhere(error)[0])
        assert found.worst.coordinate == np.unravel_index(int(np.argmax(error)), shape)
        assert found.max_relative == pytest.approx((error / np.abs(a)).max())
    if a.size > 2:
        assert found.pcc == pytest.approx(np.corrcoef(a.ravel(), b.ravel())[0, 1], rel=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat8_b", "bfloat4_b", "bfloat16"])
def test_a_packed_file_is_within_a_step_of_its_source(tmp_path, dtype):
    np.save(tmp_path / "w.npy", WEIGHTS)
    path = stored(tmp_path, "w", WEIGHTS, dtype, page_layout="tile", memory=tw.height_sharded((4, 2)))
    exact = only(tw.diff(tmp_path / "w.npy", path, memory=1 << 20))
    assert not exact.same
    assert 0 <= exact.max_ulp <= 1
    assert exact.first.tile == (0, 0)
    assert exact.first.core == (0, 0)
    assert tw.diff(tmp_path / "w.npy", path, ulp=1).same


@pytest.mark.parametrize("dtype", ["bfloat8_b", "bfloat4_b", "bfloat16"])
def test_subnormals_are_within_a_step_since_packing_makes_them_zero(tmp_path, dtype):
    bits = np.random.default_rng(0).integers(1, 1 << 24, (64, 64)).astype(np.uint32)  # half of them subnormal
    tw.convert({"x": bits.view(np.float32)}, tmp_path / "out", dtype=dtype)
    found = tw.diff({"x": bits.view(np.float32)}, tmp_path / "out", ulp=1)
    assert found.same, found


def test_the_same_values_in_other_layouts_are_the_same(tmp_path):
    rows = stored(tmp_path, "rows", WEIGHTS, "float32")
    tiles = stored(tmp_path, "tiles", WEIGHTS, "float32", page_layout="tile", tile=(16, 32))
    turned = stored(tmp_path, "turned", WEIGHTS, "float32", page_layout="tile", tile=tw.Tile((32, 32), transpose=True))
    for other in (tiles, turned):
        assert tw.diff(rows, other, memory=1 << 18).same


def test_transposed_tiles_find_their_steps(tmp_path):
    path = stored(tmp_path, "turned", WEIGHTS, "bfloat8_b", tile=tw.Tile((32, 32), transpose=True))
    assert tw.diff(WEIGHTS, path, ulp=1).same


def test_the_core_of_the_first_difference_is_where_the_spec_says(tmp_path):
    values = WEIGHTS.copy()
    values[2, 70, 33] += 1
    spec = tw.TensorSpec(values.shape, "float32", "tile", memory=tw.block_sharded((4, 4)), chip="wormhole_n150")
    path = tmp_path / "x.tensorbin"
    write_tensorbin(path, Tensorbin(spec, tw.to_bytes(values, spec)))
    first = only(tw.diff(WEIGHTS, path)).first
    where = spec.where(2, 70, 33)
    assert (first.coordinate, first.tile, first.core) == ((2, 70, 33), where.tile, tuple(where.core))


def test_dimensions_of_one_do_not_matter_and_transposes_must_be_asked_for():
    assert tw.diff(WEIGHTS[0], WEIGHTS[:1]).same
    swapped = np.ascontiguousarray(WEIGHTS.swapaxes(1, 2))
    refused = only(tw.diff(WEIGHTS, swapped))
    assert "transpose=True" in refused.problem
    assert not refused.same
    assert tw.diff(WEIGHTS, swapped, transpose=True, memory=1 << 18).same
    square = WEIGHTS[0, :50, :50]
    assert tw.diff(square, square.T, transpose=True).same
    assert not tw.diff(square, square, transpose=True).same
    assert tw.diff(np.arange(3), np.arange(3), transpose=True).same


@examples(30)
@given(
    dtype=st.sampled_from(["bfloat8_b", "bfloat4_b", "bfloat16"]),
    rows=st.integers(1, 70),
    seed=st.integers(0, 10**6),
)
def test_a_tensor_in_memory_is_as_far_away_as_in_a_file(dtype, rows, seed):
    values = np.random.default_rng(seed).standard_normal((rows, 90)).astype(np.float32)
    spec = tw.TensorSpec((rows, 90), dtype, "tile")
    held = tw.Tensor.from_array(values, spec)
    with tempfile.TemporaryDirectory() as folder:
        path = stored(Path(folder), "x", values, dtype, page_layout="tile")
        far = [
            only(tw.diff(values, each)).max_ulp for each in (held, ttnn.Tensor.wrap(held), tw.open_tensors(path)["x"])
        ]
    assert far[0] == far[1] == far[2] <= 1
    assert tw.diff(values, held, ulp=1).same
    assert not tw.diff(values + np.float32(0.5), held, ulp=1).same


def test_a_tensor_in_memory_with_blocks_can_be_transposed_or_have_dimensions_of_one():
    values = np.random.default_rng(0).standard_normal((40, 70)).astype(np.float32)
    packed = tw.Tensor.from_array(values, tw.TensorSpec((40, 70), "bfloat8_b"))
    straight = tw.diff(values, packed).tensors[0]
    assert straight.unequal
    for other, transpose in ((values.T, True), (values[None], False)):
        found = tw.diff(other, packed, transpose=transpose).tensors[0]
        assert (found.unequal, found.max_abs) == (straight.unequal, straight.max_abs)


def test_tensors_are_matched_by_name():
    found = tw.diff(
        {"a": np.ones(3), "b": np.ones(2), "x": np.ones(1)}, {"a": np.ones(3), "c": np.ones(2), "x": np.ones(1)}
    )
    assert (found.only_a, found.only_b, found.same) == (("b",), ("c",), False)
    assert [each.name for each in found] == ["a", "x"]
    assert tw.diff({"a": np.ones(3), "b": np.ones(2)}, {"a": np.ones(3), "b": np.zeros(2)}, tensors="a*").same
    with pytest.raises(tw.LayoutError, match="no tensor matches 'z'"):
        tw.diff({"a": np.ones(3)}, {"a": np.ones(3)}, tensors=["z"])
    with pytest.raises(KeyError, match="no comparison of 'z'"):
        found["z"]


@pytest.mark.parametrize(
    ("tolerance", "same"),
    [
        ({}, False),
        ({"atol": 0.02}, True),
        ({"atol": 0.005}, False),
        ({"rtol": 0.02}, True),
        ({"ulp": 1e6}, True),
        ({"ulp": 2}, False),
        ({"atol": 0.02, "pcc": 0.99}, True),
        ({"atol": 0.02, "pcc": 0.9999999}, False),
    ],
)
def test_tolerances(tolerance, same):
    a = np.linspace(1, 2, 100, dtype=np.float32)
    b = a.copy()
    b[::7] += np.float32(0.01)
    assert tw.diff(a, b, **tolerance).same is same


def test_integers_too_long_for_a_double_are_told_apart():
    a = np.array([2**53, 2**53 + 1])
    found = only(tw.diff(a, a + np.array([0, 1])))
    assert (found.unequal, found.first.a, found.first.b) == (1, 2**53 + 1, 2**53 + 2)


def test_nan_is_equal_to_nan_and_far_from_the_rest():
    a = np.array([1.0, np.nan, np.inf, -0.0])
    assert tw.diff(a, a.copy()).same
    found = only(tw.diff(a, np.array([1.0, 2.0, np.inf, 0.0])))
    assert (found.unequal, found.max_abs, found.pcc) == (1, np.inf, pytest.approx(1.0))
    assert [each.kind for each in found.findings] == ["not_finite"]
    assert not tw.diff(a, np.array([1.0, 2.0, np.inf, 0.0]), atol=1e9, rtol=1e9).same


def test_nothing_and_scalars_can_be_compared():
    assert tw.diff(np.zeros((0, 4)), np.zeros((0, 4))).same
    assert not tw.diff(np.float32(1), np.float32(2)).same


def kinds(a, b):
    return {each.kind: each.value for each in only(tw.diff(a, b)).findings}


def test_what_pcc_hides_is_found():
    a = RNG.standard_normal((100, 100))
    assert kinds(a, 2 * a) == {"factor": pytest.approx(2.0)}
    assert kinds(np.abs(a), np.abs(a) + 3)["offset"] == pytest.approx(3.0)
    assert kinds(a, -a)["flipped"] == 1.0
    one = a.copy()
    one[5, 5] += 100
    assert kinds(a, one)["one_error"] == pytest.approx(1.0)
    lost = np.where(np.abs(a) < 0.1, 0.0, a)
    assert kinds(a, lost)["zeroed"] == pytest.approx(np.count_nonzero(np.abs(a) < 0.1) / a.size)
    large, other = a.copy(), RNG.standard_normal(a.shape)
    large[0, :3] = other[0, :3] = 1e6
    assert abs(kinds(large, other)["outliers"]) < 0.05
    assert "constant" in kinds(np.ones(5), np.arange(5.0))
    assert kinds(a, a + 1e-6 * RNG.standard_normal(a.shape)) == {}


def test_a_correlation_of_one_is_not_believed():
    a = RNG.standard_normal((50, 50))
    found = only(tw.diff(a, 2 * a))
    assert found.pcc == pytest.approx(1.0)
    assert found.relative_rms == pytest.approx(1.0)
    assert "would pass" in found.pcc_in_words
    assert "100 % of the values" in found.pcc_in_words


def test_progress_ends_at_the_end():
    seen = []
    tw.diff(
        {"a": WEIGHTS, "b": WEIGHTS}, {"a": WEIGHTS, "b": WEIGHTS}, memory=1 << 20, progress=lambda *n: seen.append(n)
    )
    assert seen == sorted(seen)
    assert seen[-1] == (2 * WEIGHTS.size, 2 * WEIGHTS.size)


def test_json_text_and_pictures(tmp_path):
    found = tw.diff({"a": WEIGHTS, "b": np.zeros(3)}, {"a": WEIGHTS * 1.1, "b": np.ones(4)})
    data = json.loads(to_json(found.to_json()))
    assert data["tensors"][0]["findings"][0]["kind"] == "factor"
    assert "DIFFERS" in str(found)
    assert "shapes [3] and [4] differ" in str(found)
    for thing in (found, found["a"], found["b"]):
        thing.show(tmp_path / "x.svg")
        thing.show(tmp_path / "x.html")
        assert thing._repr_html_().startswith("<div")
    assert repr(found) == "<Comparison of 2 tensors: different>"
    assert "unequal" in repr(found["a"])


def test_a_transposed_conversion_is_compared_with_its_source_in_the_same_coordinates(tmp_path):
    values = {
        "square": RNG.standard_normal((64, 64)).astype(np.float32),
        "wide": RNG.standard_normal((32, 96)).astype(np.float32),
        "cube": RNG.standard_normal((3, 40, 5)).astype(np.float32),
        "plain": RNG.standard_normal((64, 64)).astype(np.float32),
    }
    source = tmp_path / "m.npz"
    np.savez(source, **values)
    rules = {"square": {"transpose": True}, "wide": {"transpose": True}, "cube": {"transpose": [2, 0, 1]}}
    for out in (tmp_path / "tiles", tmp_path / "tiles.safetensors"):
        tw.convert(source, out, rules=rules)
        assert [tw.diff(a, b).same for a, b in ((source, out), (out, source), (out, out))] == [True] * 3, out
        orders = {each.name: each.order for each in tw.diff(source, out).tensors}
        assert orders == {"square": (1, 0), "wide": (1, 0), "cube": (2, 0, 1), "plain": None}
        plainly = tw.diff(source, out, transpose=False)
        assert [each.same for each in map(plainly.__getitem__, ("square", "wide", "cube", "plain"))] == [0, 0, 0, 1]
        assert "say so (transpose=True, or --transpose)" in plainly["wide"].problem
        assert str(plainly.a) == str(source), "JSON names the files"
    changed = tw.diff({"square": values["square"]}, {"square": tw.open_tensors(tmp_path / "tiles")["square"]})
    assert not changed.same, "arrays in memory have no manifest to go by"
    damaged = {**values, "cube": values["cube"].copy()}
    damaged["cube"][1, 2, 3] += 1
    np.savez(tmp_path / "n.npz", **damaged)
    found = tw.diff(tmp_path / "n.npz", tmp_path / "tiles")["cube"]
    assert found.first.coordinate == (1, 2, 3)
    assert "order (2, 0, 1)" in str(found)


def test_a_transpose_that_cannot_be_is_refused():
    (verdict,) = tw.diff(WEIGHTS, WEIGHTS, transpose=True).tensors
    assert "so B is not A transposed" in verdict.problem
