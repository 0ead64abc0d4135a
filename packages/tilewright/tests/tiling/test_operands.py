# SPDX-License-Identifier: Apache-2.0
"""What may be a source or a target: shapes, types and files are checked before anything is written."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import FileFormatError, LayoutError, TransferError
from tilewright.tiling import plan_tiles, stream


def copied(x, y):
    np.copyto(y, x)


class Sliced:
    """An object that slices, with what it says of itself."""

    def __init__(self, array, shape=None, dtype=None):
        self.array, self.shape, self.dtype = array, array.shape if shape is None else shape, dtype or array.dtype

    def __getitem__(self, box):
        return self.array[box]

    def __setitem__(self, box, value):
        self.array[box] = value


SHAPES = st.lists(st.integers(0, 12), min_size=1, max_size=3).map(tuple)


@given(SHAPES, SHAPES, st.integers(1, 5), st.booleans())
def test_shapes_are_equal_or_refused_before_anything_is_written(one, other, side, plans):
    """Only numbers of tiles were compared: (300, 400) went into (300, 390)."""
    source, target = np.ones(one), np.full(other, 7.0)
    run = (lambda *ends, **how: plan_tiles(*ends, **how).run(copied)) if plans else stream
    how = {"tile": (side,) * len(one)} if plans else {"tile": (side,) * len(one), "compute": copied}
    if one == other:
        run(source, target, **how)
        assert (target == 1).all()
        return
    with pytest.raises(LayoutError, match=r"source has shape .* target has shape .* must be equal"):
        run(source, target, **how)
    assert (target == 7).all()


def test_all_sources_have_one_shape():
    for run in (stream, plan_tiles):
        with pytest.raises(LayoutError, match=r"source has shape \(8,\), source has shape \(7,\)"):
            run([np.ones(8), np.ones(7)], np.ones(8), tile=(4,))


class Metres(np.ndarray):
    """An array with a unit, as astropy has."""


class Quantity:
    """An array with a unit, as pint has."""

    def __init__(self, array):
        self.magnitude, self.units, self.shape, self.dtype = array, "m", array.shape, array.dtype

    def __getitem__(self, box):
        return Quantity(self.magnitude[box])

    def __setitem__(self, box, value):
        self.magnitude[box] = value


MASKED = np.ma.masked_array(np.arange(8.0), [1, 0] * 4)

REFUSED = [
    (None, TransferError, r"with shape, dtype and slices, got None; give an array"),
    ([1, 2], TransferError, r"with shape, dtype and slices, got int"),
    (np.ndarray, TransferError, r"with shape, dtype and slices, got type"),
    (3.0, TransferError, r"with shape, dtype and slices, got float"),
    (np.array(3.0), LayoutError, r"has no axes.*reshape\(1\)"),
    (Sliced(np.zeros(3), shape=()), LayoutError, r"has no axes"),
    (np.zeros(8, object), LayoutError, r"Python objects"),
    (np.zeros(8, "V0"), LayoutError, r"have 0 bytes"),
    (MASKED, TransferError, r"MaskedArray, and its mask would be lost; pass array\.filled"),
    (np.zeros(8).view(Metres), TransferError, r"Metres, and its extra information would be lost; pass numpy\.asarray"),
    (Quantity(np.zeros(8)), TransferError, r"Quantity, and its units would be lost; pass array\.magnitude"),
    (Sliced(np.zeros(8), dtype="torch.float32"), TransferError, r"not a NumPy type"),
    (Sliced(np.zeros(8), shape=(0, 2**62)), LayoutError, r"product below 2\*\*62"),
    (Sliced(np.zeros(8), shape=(-1,)), LayoutError, r"extents must be positive"),
    (Sliced(np.zeros(8), shape=("a",)), LayoutError, r"got \('a',\)"),
]


def test_what_is_no_operand_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = np.full(8, 7.0)
    for operand, error, message in REFUSED:
        for ends, what in (((operand, plain), "source"), ((plain, operand), "target")):
            for run in (lambda *ends: stream(*ends, copied, tile=4), lambda *ends: plan_tiles(*ends, tile=4)):
                with pytest.raises(error, match=message) as caught:
                    run(*ends)
                assert what in str(caught.value), (operand, what)
    assert (plain == 7).all()
    assert not list(tmp_path.iterdir())


def test_masks_that_only_slices_show_are_refused():
    """Variables of netCDF4 are plain to look at, and give masked arrays."""
    target = np.zeros(8)
    thing = Sliced(MASKED)
    with pytest.raises(TransferError, match="import of tile 0 failed: the result of slicing Sliced is a MaskedArray"):
        stream(thing, target, copied, tile=4)
    with pytest.raises(TransferError, match="the result of slicing Sliced is a MaskedArray"):
        plan_tiles(thing, target, tile=4).run(copied, retries=0)


def test_shapes_without_elements_work(tmp_path):
    for shape in ((0,), (0, 5), (5, 0), (3, 0, 2)):
        tile = (2,) * len(shape)
        for compute in (copied, None):
            assert stream(np.zeros(shape), np.zeros(shape), compute, tile=tile).tiles == 0
        assert plan_tiles(np.zeros(shape), np.zeros(shape), tile).run(copied).tasks == 0
        np.save(tmp_path / "in.npy", np.zeros(shape))
        stream(tmp_path / "in.npy", tmp_path / "out.npy", copied, tile=tile)
        assert np.load(tmp_path / "out.npy").shape == shape
        assert plan_tiles(tmp_path / "in.npy", tmp_path / "out.npy", tile).run(copied).tasks == 0


# Files.


def damaged(path):
    """Yield names of files that are no arrays, each made at a path beside this one."""
    np.save(path, np.arange(64.0))
    good = path.read_bytes()
    start = good.index(b"{")
    for name, content in {
        "empty": b"",
        "text": b"not an array",
        "short header": good[:40],
        "truncated": good[:-8],
        "longer": good + b"\0",
        "no dictionary": good[:start] + b"(((((" + good[start + 5 :],
        "open bracket": good[:start] + b"[" * 50 + good[start + 50 :],
        "objects": good.replace(b"'<f8'", b"'|O' "),
        "records": good.replace(b"'<f8'", b"[('',"),
        "nothing": good.replace(b"'<f8'", b"'<V0'"),
        "negative": good.replace(b"(64,)", b"(-4,)"),
        "absurd": good.replace(b"(64,)", b"(9**9,)"),
        "huge": good.replace(b"(64,), }          ", b"(0, 4611686018427387904), }"[:18]),
        "version": good[:6] + b"\x09\x00" + good[8:],
    }.items():
        found = path.with_name(f"{name}.npy")
        found.write_bytes(content)
        yield found
    np.save(path.with_name("structure.npy"), np.zeros(4, [("a", "i4"), ("b", "f8")]))
    np.save(path.with_name("pickled.npy"), np.array([{}], object), allow_pickle=True)
    path.with_name("folder.npy").mkdir()
    os.mkfifo(path.with_name("pipe.npy"))
    yield from (path.with_name(f"{name}.npy") for name in ("structure", "pickled", "folder", "pipe"))


def test_npy_files_are_read_by_the_reader_that_believes_nothing(tmp_path):
    """A named pipe hung; damaged headers raised ValueError, TypeError, TokenError and ZeroDivisionError."""
    target = np.full(64, 7.0)
    np.save(tmp_path / "target.npy", target)
    for path in damaged(tmp_path / "good.npy"):
        for run in (
            lambda path=path: stream(path, target, copied),
            lambda path=path: plan_tiles(path, target, tile=8),
            lambda path=path: plan_tiles(np.ones(64), path, tile=8),
        ):
            with pytest.raises(FileFormatError) as caught:
                run()
            assert path.name in str(caught.value)
    for missing in (tmp_path / "none.npy", tmp_path / "good.npy" / "x.npy"):
        with pytest.raises(OSError, match=r"No such file|Not a directory"):
            stream(missing, target, copied)
    assert (target == 7).all()


def test_fortran_order_and_byte_order_of_files(tmp_path):
    values = np.arange(60.0).reshape(6, 10)
    for array in (np.asfortranarray(values), values.astype(">f4"), values.astype("<c8"), values > 7):
        np.save(tmp_path / "in.npy", array)
        stream(tmp_path / "in.npy", tmp_path / "out.npy", copied, tile=(4, 3))
        assert (np.load(tmp_path / "out.npy") == array).all()
        np.lib.format.open_memmap(tmp_path / "plan.npy", "w+", array.dtype, array.shape, fortran_order=True).flush()
        plan_tiles(tmp_path / "in.npy", tmp_path / "plan.npy", tile=(4, 3)).run(copied)
        assert (np.load(tmp_path / "plan.npy") == array).all()


def test_a_target_that_was_made_anew_is_noticed(tmp_path):
    """A target of another type got the bytes of the first: the plan remembered its dtype."""
    source = np.arange(12.0)

    def made(dtype, count=12):
        np.save(tmp_path / "t.npy", np.zeros(count, dtype))

    for change in (lambda: made("f4"), lambda: made("f8", 13), lambda: made("i8")):
        made("f8")
        plan = plan_tiles(source, tmp_path / "t.npy", tile=4)
        change()
        before = (tmp_path / "t.npy").read_bytes()
        with pytest.raises(TransferError, match="make the plan again"):
            plan.run(copied)
        assert (tmp_path / "t.npy").read_bytes() == before
    made("f8")
    mapped = np.load(tmp_path / "t.npy", mmap_mode="r+")
    plan = plan_tiles(source, mapped, tile=4)
    (tmp_path / "t.npy").rename(tmp_path / "old.npy")
    made("f8")
    with pytest.raises(TransferError, match="no longer the file that was mapped"):
        plan.run(copied)
    plan_tiles(source, mapped, tile=4).run(copied)  # by its map: the name leads elsewhere
    assert (np.load(tmp_path / "old.npy") == source).all()


def test_a_zarr_target_that_was_made_anew_is_noticed(tmp_path):
    zarr = pytest.importorskip("zarr")

    def made(**how):
        return zarr.open(str(tmp_path / "t.zarr"), mode="w", **{"shape": (12,), "chunks": (4,), "dtype": "f8"} | how)

    for how in ({"dtype": "f4"}, {"shape": (16,)}, {"chunks": (6,)}, {"fill_value": 3}):
        plan = plan_tiles(np.arange(12.0), made(), tile=4)
        made(**how)
        with pytest.raises(TransferError, match="make the plan again"):
            plan.run(copied)
    plan = plan_tiles(np.arange(12.0), made(), tile=4)
    plan.run(copied)
    assert (zarr.open(str(tmp_path / "t.zarr"))[...] == np.arange(12)).all()


def test_an_array_that_changed_its_shape_is_noticed():
    target = Sliced(np.zeros(12))
    plan = plan_tiles(np.arange(12.0), target, tile=4)
    target.array = np.zeros(6)
    target.shape = (6,)
    with pytest.raises(TransferError, match="make the plan again"):
        plan.run(copied)


@pytest.mark.parametrize("view", ["mapped", "np.asarray(mapped)", "mapped[:, ::-1]", "private", "'a.npy'"])
def test_a_file_truncated_under_its_map_is_an_error(tmp_path, view):
    """It was SIGBUS: the end of the process."""
    script = f"""
        import os
        import numpy as np
        import tilewright as tw
        from tilewright.tiling import plan_tiles
        np.save("a.npy", np.ones((64, 4096)))
        mapped, private = np.load("a.npy", mmap_mode="r"), np.load("a.npy", mmap_mode="c")

        def compute(x, y):
            os.truncate("a.npy", 5000)
            y[...] = x

        for run in (
            lambda: tw.stream({view}, np.zeros((64, 4096)), compute, tile=(4, 500), workers=0),
            lambda: tw.stream({view}, np.zeros((64, 4096)), compute, tile=(4, 500), workers=1),
            lambda: plan_tiles({view}, np.zeros((64, 4096)), tile=(4, 500)).run(compute),
        ):
            np.save("a.npy", np.ones((64, 4096)))
            try:
                run()
            except tw.TilewrightError as problem:
                print("truncated" in str(problem) or str(problem))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.split()) == (0, ["True"] * 3), done.stdout + done.stderr
