# SPDX-License-Identifier: Apache-2.0
"""NaN, infinities and numbers out of range are counted for each tensor, and reported by all that reads values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tests.cli.runner import invoke
from tilewright.conversion.source import compare_values, count_exceptional, has_exceptional
from tilewright.files import write_safetensors
from tilewright.files.manifest import read_manifest

SOURCES = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
}
TARGETS = ("float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2", "bfloat8_b", "bfloat8_a", "mxfp4", "nvfp4")


def count(array: Any, target: str | None = None) -> dict[str, int]:
    """Count with the casts of the library: what is finite in the source, but not in range of the target."""
    wide = array.astype(np.float64)
    nan, infinite = np.isnan(wide), np.isinf(wide)
    beyond = np.zeros(wide.shape, bool)
    known = None if target is None else tw.format_of(target)
    for at in np.ndindex(wide.shape) if known is not None and known.name != "nvfp4" else ():
        if np.isfinite(wide[at]) and known.has_blocks:
            beyond[at] = abs(wide[at]) > known.limits.highest
        elif np.isfinite(wide[at]):
            try:
                tw.formats.cast(wide[at], known, on_overflow="raise")
            except tw.FormatError:
                beyond[at] = True
    found = {"nan": nan, "infinite": infinite, "out_of_range": beyond}
    return {name: int(mask.sum()) for name, mask in found.items() if mask.any()}


@given(
    st.sampled_from(sorted(SOURCES)),
    st.sampled_from(TARGETS),
    st.lists(st.floats(width=64), min_size=1, max_size=40),
    st.booleans(),
)
def test_counts_are_those_of_each_element(source: str, target: str, numbers: list[float], repeated: bool) -> None:
    with np.errstate(all="ignore"):
        array = np.array(numbers * (50 if repeated else 1)).astype(SOURCES[source])
    wanted = count(array, target)
    found = count_exceptional(array, [tw.format_of(target)])
    assert found.exceptional == wanted
    assert compare_values(array, array, [tw.format_of(target)]).exceptional == wanted
    assert not wanted or has_exceptional(array, [tw.format_of(target)])


def spoil(array: Any, rng: np.random.Generator) -> Any:
    flat = array.reshape(-1)
    for value in (np.nan, np.inf, -np.inf, 3e38, -7e4, np.nan):
        with np.errstate(all="ignore"):
            flat[rng.integers(flat.size)] = value
    return array


@pytest.mark.parametrize("to", ["tensorbin", "safetensors", "banks", "npy"])
@pytest.mark.parametrize("dtype", ["bfloat8_b", "bfloat16", "float32", None])
@pytest.mark.parametrize("transpose", [False, True])
def test_converted_tensors(tmp_path: Path, to: str, dtype: str | None, transpose: bool) -> None:
    if to == "npy" and dtype == "bfloat8_b":
        pytest.skip(".npy files hold no blocks")
    rng = np.random.default_rng(3)
    arrays = {
        "a": spoil(rng.normal(size=(300, 200)).astype(np.float32), rng),
        "b": spoil(rng.normal(size=(3, 70, 50)).astype(ml_dtypes.bfloat16), rng),
        "c": spoil(rng.normal(size=(65, 31)), rng),
        "clean": rng.normal(size=(40, 60)).astype(np.float32),
    }
    write_safetensors(tmp_path / "m.safetensors", arrays)
    out = tmp_path / ("out.safetensors" if to == "safetensors" else "out")
    settings = {"chip": "n150"} if to == "banks" else {}
    report = tw.convert(
        tmp_path / "m.safetensors", out, to, dtype=dtype, transpose=transpose, memory=400_000, jobs=2, **settings
    )
    made = tw.open_tensors(out)
    wanted = {name: count(array, made[name].format.name) for name, array in arrays.items()}
    assert wanted["a"]
    assert wanted["clean"] == {}
    assert {name: each.exceptional for name, each in report.rounding.items()} == wanted
    assert [note.partition(":")[0] for note in report.notes if "NaN" in note] == ["a", "b", "c"]
    checked = tw.verify(out, tmp_path / "m.safetensors", memory=400_000)
    assert checked
    assert {each.name: each.exceptional for each in checked.verdicts} == wanted
    assert [note.partition(":")[0] for note in checked.notes] == ["a", "b", "c"]
    alone = {each.name: each.exceptional for each in tw.verify(out).verdicts}
    if to == "safetensors":  # the manifest in its header is laid out before values are seen
        assert alone == {name: count(made[name].read()) for name in arrays}
    else:
        assert alone == wanted
        entries = read_manifest(out / "tilewright.json").entries
        assert {name: dict(entry.exceptional) for name, entry in entries.items()} == wanted
    found = tw.diff(tmp_path / "m.safetensors", out)
    assert {each.name: each.exceptional_a for each in found} == wanted
    assert {each.name: each.exceptional_b for each in found} == {name: count(made[name].read()) for name in arrays}


def test_a_run_that_is_resumed_still_reports_them(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", w=np.full((32, 64), np.nan, np.float32), v=np.ones(3, np.float32))
    first = tw.convert(tmp_path / "m.npz", tmp_path / "out", dtype="bfloat16", part=(0, 2))
    other = tw.convert(tmp_path / "m.npz", tmp_path / "out", dtype="bfloat16", part=(1, 2))
    assert (first.notes or other.notes) == ("w: 2048 values are NaN",)
    again = tw.convert(tmp_path / "m.npz", tmp_path / "out", dtype="bfloat16", resume=True)
    assert again.converted == 0
    assert again.notes == ("w: 2048 values are NaN",)
    (tmp_path / "out" / "v.tensorbin").unlink()
    again = tw.convert(tmp_path / "m.npz", tmp_path / "out", dtype="bfloat16", resume=True)
    assert again.converted == 1
    assert dict(read_manifest(tmp_path / "out" / "tilewright.json").entries["w"].exceptional) == {"nan": 2048}


def test_integers_that_are_too_large_for_a_float(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1, -65520, 65519, 1 << 30], np.int32))
    report = tw.convert(tmp_path / "x.npy", tmp_path / "out", "npy", rules={"x": {"dtype": "float16"}})
    assert report.notes == ("x: 2 values are out of range of float16",)


def test_what_is_rounded_on_the_way(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[1e5] * 32] * 32, np.float32))
    rules = {"x": {"dtype": "bfloat8_b", "through": ["float16"]}}
    assert tw.convert(tmp_path / "x.npy", tmp_path / "out", rules=rules).rounding["x"].exceptional == {
        "out_of_range": 1024
    }


def test_words_and_json_of_the_commands(tmp_path: Path) -> None:
    for k in range(10):
        np.save(tmp_path / f"x{k}.npy", np.array([1.0, np.nan, 1e9], np.float32))
    source, out = str(tmp_path), str(tmp_path / "out")
    said = invoke("convert", source, out, "--to", "npy", "--dtype", "float16").output
    assert "note: x0: 1 value is NaN, 1 value is out of range of float16" in said
    assert "note: and 2 more tensors: 2 values are NaN, 2 values are out of range" in said
    answer = invoke("verify", out, *[str(path) for path in sorted(tmp_path.glob("*.npy"))])
    assert answer.exit_code == 0, answer.output
    assert "note: x0: 1 value is NaN, 1 value is out of range of float16" in answer.output
    report = json.loads(invoke("verify", out, "--json").output)
    assert report["verdicts"][0]["exceptional"] == {"nan": 1, "out_of_range": 1}
    answer = invoke("diff", str(tmp_path / "x0.npy"), str(tmp_path / "x1.npy"))
    assert answer.exit_code == 0
    assert "note: x0 in A: 1 value is NaN" in answer.output
    clean = tmp_path / "clean"
    clean.mkdir()
    np.save(clean / "y.npy", np.ones(3, np.float32))
    for words in (("convert", clean, clean / "o"), ("verify", clean / "o"), ("diff", clean / "y.npy", clean / "o")):
        assert "note" not in invoke(*map(str, words)).output


@pytest.mark.parametrize("dtype", ["bfloat8_b", "bfloat4_b", "mxfp4", "mxint8", "nvfp4"])
@pytest.mark.filterwarnings("error")
def test_a_tile_with_them_is_shown(tmp_path: Path, dtype: str) -> None:
    array = np.ones((32, 64), np.float32)
    array[0, 0], array[1, 0], array[2, 0] = np.nan, np.inf, -np.inf
    np.save(tmp_path / "x.npy", array)
    if dtype == "nvfp4":
        array[:3, 0] = 448 * 6
    tw.convert(tmp_path / "x.npy", tmp_path / "o.safetensors", dtype=dtype)
    tile = tw.inspect(tmp_path / "o.safetensors").tile("x", 0, 0)
    shown = {line.split()[1] for line in tile.text().splitlines() if line[:2].strip().isdigit()}
    assert "-1" not in shown
    assert ("128" in shown) == dtype.startswith("bfloat")
    json.loads(invoke("inspect", str(tmp_path / "o.safetensors"), "--tensor", "x", "--tile", "0,0", "--json").output)
