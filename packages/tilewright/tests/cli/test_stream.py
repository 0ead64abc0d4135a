# SPDX-License-Identifier: Apache-2.0
"""`stream`: computes by name and of one's own, over files."""

import json

import numpy as np
import pytest

VALUES = np.random.default_rng(1).standard_normal((70, 90)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "in.npy", VALUES)
    VALUES.tofile(tmp_path / "in.raw")
    (tmp_path / "own_computes.py").write_text(
        "import numpy as np\n"
        "def twice(x, out, times=1):\n    out[...] = x * 2 * times\n"
        "def broken(x, out):\n    raise ValueError('no such luck')\n"
        "def lost(x, out):\n    return x + 1\n"
        "number = 3\n",
        encoding="utf-8",
    )
    return tmp_path


def neighbours(values):
    padded = np.pad(values, 1)
    return padded[1:-1, 1:-1] + padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]


def means(values):
    padded = np.pad(values, 1, mode="edge").astype(np.float64)
    return sum(padded[i : i + 70, j : j + 90] for i in range(3) for j in range(3)) / 9


@pytest.mark.parametrize(
    ("compute", "options", "expected"),
    [
        ("copy", [], VALUES),
        ("scale", ["--set", "factor=3"], VALUES * 3),
        ("shift", ["--set", "amount=-1.5"], VALUES - np.float32(1.5)),
        ("clip", ["--set", "low=-0.5", "--set", "high=0.5"], np.clip(VALUES, -0.5, 0.5)),
        ("absolute", [], np.abs(VALUES)),
        ("cross", [], neighbours(VALUES)),
        ("box", ["--pad", "edge"], means(VALUES)),
        ("own_computes:twice", ["--set", "times=2"], VALUES * 4),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_computes(run, folder, compute, options, expected):
    done = run("stream", compute, "in.npy", "out.npy", "--tile", "32x32", *options, "--json")
    assert (done.json["tiles"], done.json["shape"]) == (9, [70, 90])
    np.testing.assert_allclose(np.load(folder / "out.npy"), expected, rtol=1e-5, atol=1e-6)


def test_two_sources_and_types(run, folder):
    np.save(folder / "other.npy", VALUES[::-1].copy())
    run("stream", "subtract", "in.npy", "other.npy", "out.npy", "--out-dtype", "float64")
    assert np.array_equal(np.load(folder / "out.npy"), VALUES.astype(np.float64) - VALUES[::-1])
    assert "takes 2 source(s), got 1" in run("stream", "add", "in.npy", "x.npy", status=2).err


def test_raw_files_and_memory(run, folder):
    done = run("stream", "copy", "in.raw", "out.raw", "--shape", "70x90", "--dtype", "float32", "--memory", "16KiB")
    assert (folder / "out.raw").read_bytes() == (folder / "in.raw").read_bytes()
    assert "wrote out.raw" in done.out
    assert "holds raw bytes" in run("stream", "copy", "in.raw", "x.raw", status=3).err


def test_zarr(run, folder):
    pytest.importorskip("zarr")
    run("stream", "copy", "in.npy", "in.zarr", "--tile", "32x32")
    run("stream", "scale", "in.zarr", "out.npy", "--workers", "2")
    assert np.array_equal(np.load(folder / "out.npy"), VALUES * 2)
    assert "none.zarr" in run("stream", "copy", "none.zarr", "x.npy", status=3).err


def test_traces(run, folder):
    done = run("stream", "scale", "in.npy", "out.npy", "--tile", "32x32", "--trace", "run.json")
    assert "of the transfer time was hidden" in done.out
    assert (
        "does not exist; create it"
        in run("stream", "copy", "in.npy", "x.npy", "--trace", "nowhere/x.json", status=4).err
    )
    assert json.loads((folder / "run.json").read_text(encoding="utf-8"))["traceEvents"]


def test_targets_are_not_overwritten_unasked(run, folder):
    run("stream", "copy", "in.npy", "out.npy")
    assert "out.npy exists" in run("stream", "scale", "in.npy", "out.npy", status=4).err
    assert np.array_equal(np.load(folder / "out.npy"), VALUES)
    run("stream", "scale", "in.npy", "out.npy", "--force")
    assert np.array_equal(np.load(folder / "out.npy"), VALUES * 2)
    assert "does not exist; create it" in run("stream", "copy", "in.npy", "nowhere/out.npy", status=4).err


@pytest.mark.parametrize(
    "values",
    [
        np.arange(12, dtype=">f4").reshape(3, 4),
        np.arange(12).reshape(3, 4) * 1j,
        np.zeros((0, 4), np.float32),
        np.ones((3, 4), bool),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    ],
    ids=["big-endian", "complex", "empty", "bool", "Fortran"],
)
def test_arrays_of_every_kind(run, folder, values):
    np.save(folder / "odd.npy", values)
    run("stream", "copy", "odd.npy", "out.npy")
    found = np.load(folder / "out.npy")
    assert found.dtype == values.dtype
    assert np.array_equal(found, values)


def test_a_number_has_no_tiles(run, folder):
    np.save(folder / "number.npy", np.float32(3))
    assert "holds a scalar" in run("stream", "copy", "number.npy", "out.npy", status=3).err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["own_computes:broken"],
            "own_computes:broken failed on tiles of [70, 90], [70, 90]: ValueError: no such luck",
        ),
        (["own_computes:lost"], "which would be lost"),
        (["own_computes:none"], "has no attribute 'none'"),
        (["own_computes:number"], "is a int, which cannot be called"),
        (["no_such_module:f"], "no module 'no_such_module' in the current folder"),
        (["scale", "--set", "factor"], "write NAME=VALUE"),
        (["scale", "--set", "colour=1"], "unexpected keyword argument 'colour'"),
        (["copy", "--set", "factor=1"], "copy takes no --set"),
        (["scale", "--pad", "sideways"], "use a number, or one of edge"),
        (["scale", "--tile", "8"], "tile"),
        (["scale", "--memory", "16"], "the limit is 16"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_goes_wrong_is_said_and_leaves_nothing(run, folder, arguments, message):
    compute, *options = arguments
    before = sorted(folder.iterdir())
    done = run("stream", compute, "in.npy", "out.npy", *options, status=2)
    assert message in done.err
    assert sorted(each for each in folder.iterdir() if each.name != "__pycache__") == before


def test_options_without_effect_are_refused(run, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((8, 8), np.float32))
    for option in ("--shape 4x4", "--chunks 4x4", "--pad edge"):
        assert "has no effect" in run("stream", "copy", "a.npy", "b.npy", *option.split(), status=2).err
    repeated = ("--set", "factor=2", "--set", "factor=3")
    assert "factor is set twice" in run("stream", "scale", "a.npy", "b.npy", *repeated, status=2).err


def test_attributes_that_are_not_copied_are_named(run, tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(tmp_path / "a.zarr"), mode="w", shape=(8, 8), chunks=(4, 4), dtype="f4")
    array.attrs["scale_factor"] = 2.0
    done = run("stream", "copy", "a.zarr", "b.zarr", "--json")
    assert done.json["notes"] == ["the attributes of a.zarr are not copied: scale_factor"]
    assert "scale_factor" in done.err
