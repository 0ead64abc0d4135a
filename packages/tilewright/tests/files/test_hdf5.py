# SPDX-License-Identifier: Apache-2.0
"""HDF5 files and Keras models: contiguous, chunked, in a zip file, damaged, and without h5py."""

import io
import pickle
import sys
import zipfile

import numpy as np
import pytest

import tilewright as tw
from tilewright.files import open_tensors

from .range_server import serve
from .test_damaged_files import read_all

h5py = pytest.importorskip("h5py")

MATRIX = np.arange(600, dtype=np.float32).reshape(20, 30)
NAMES = ["big", "bool", "chunked", "complex", "dense/kernel:0", "dense/packed", "empty", "scalar", "unwritten"]


def hdf5_bytes():
    file = io.BytesIO()
    with h5py.File(file, "w") as opened:
        opened["dense/kernel:0"] = MATRIX
        opened["big"] = MATRIX.astype(">f8")
        opened["bool"] = np.array([True, False])
        opened["complex"] = np.zeros(2, np.complex64)
        opened["scalar"] = np.int64(7)
        opened["empty"] = np.zeros((0, 3), np.int16)
        opened["text"] = "words"
        opened.create_dataset("chunked", data=MATRIX, chunks=(7, 4))
        opened.create_dataset("dense/packed", data=MATRIX.astype(np.float16), chunks=(5, 30), compression="gzip")
        opened.create_dataset("unwritten", (3, 4), np.uint8, fillvalue=9)
        opened["soft"] = h5py.SoftLink("/dense/packed")
        opened["outside"] = h5py.ExternalLink("/etc/passwd", "/x")
    return file.getvalue()


WHOLE = hdf5_bytes()


def check(found):
    assert (found.kind, sorted(found)) == ("hdf5", NAMES)
    for key in ("dense/kernel:0", "chunked", "big"):
        np.testing.assert_array_equal(found[key].read(), MATRIX)
        np.testing.assert_array_equal(found[key].read((slice(3, 9), slice(2, 5))), MATRIX[3:9, 2:5])
    np.testing.assert_array_equal(found["dense/packed"].read(), MATRIX.astype(np.float16))
    assert found["scalar"].read() == 7
    assert found["empty"].read().shape == (0, 3)
    assert found["unwritten"].read().tolist() == [[9] * 4] * 3
    assert found["bool"].read().tolist() == [True, False]
    assert found["complex"].format is None
    assert found["chunked"].raw.tobytes() == MATRIX.tobytes()


@pytest.mark.parametrize("name", ["x.h5", "x.hdf5", "x.bin", "x"])
def test_hdf5_files(tmp_path, name):
    (tmp_path / name).write_bytes(WHOLE)
    check(open_tensors(tmp_path / name))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("name", ["x.keras", "x.zip"])
def test_keras_models(tmp_path, method, name):
    with zipfile.ZipFile(tmp_path / name, "w", method) as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", WHOLE)
    found = open_tensors(tmp_path / name)
    check(found)
    again = pickle.loads(pickle.dumps([found["chunked"], found["dense/kernel:0"]]))  # noqa: S301
    for each in again:
        np.testing.assert_array_equal(each.read(), MATRIX)


def test_hdf5_files_are_converted(tmp_path):
    (tmp_path / "x.h5").write_bytes(WHOLE)
    found = open_tensors(tmp_path)
    chosen = {key: found[key] for key in ("chunked", "dense/packed", "dense/kernel:0")}
    tw.convert(chosen, tmp_path / "out", layout="tile")
    assert tw.verify(tmp_path / "out", chosen)
    for key, each in open_tensors(tmp_path / "out").items():
        np.testing.assert_array_equal(each.read(), MATRIX, err_msg=key)


def test_hdf5_files_behind_a_url(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serve() as server:
        server.files["/x.h5"] = WHOLE
        check(open_tensors(f"{server.url}/x.h5"))


def test_datasets_in_other_files_are_refused(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(8))
    with h5py.File(tmp_path / "x.h5", "w") as opened:
        opened.create_dataset("x", (8,), np.uint8, external=[(str(tmp_path / "secret"), 0, 8)])
    with pytest.raises(tw.FileFormatError, match="stored in other files"):
        open_tensors(tmp_path / "x.h5")
    layout = h5py.VirtualLayout((8,), np.uint8)
    layout[:] = h5py.VirtualSource(str(tmp_path / "y.h5"), "x", (8,))
    with h5py.File(tmp_path / "x.h5", "w") as opened:
        opened.create_virtual_dataset("x", layout)
    with pytest.raises(tw.FileFormatError, match="stored in other files"):
        open_tensors(tmp_path / "x.h5")


def test_implausible_datasets_are_refused(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as opened:
        opened.create_dataset("x", (1 << 50,), np.uint8, chunks=(1 << 20,))
    with pytest.raises(tw.FileFormatError, match="implausible"):
        open_tensors(tmp_path / "x.h5")


def test_files_that_end_early_are_refused():
    assert read_all("x.h5", WHOLE) is None
    for size in range(0, len(WHOLE), 997):
        assert "x.h5" in read_all("x.h5", WHOLE[:size])


def test_damaged_files_are_refused_or_read():
    rng = np.random.default_rng(0)
    for at in rng.integers(8, len(WHOLE), 60):
        read_all("x.h5", WHOLE[:at] + bytes([WHOLE[at] ^ 0xFF]) + WHOLE[at + 1 :])


def test_zip_files_without_weights_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.keras", "w") as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(tw.FileFormatError, match=r"not a Keras model"):
        open_tensors(tmp_path / "x.keras")


def test_without_h5py_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "x.h5").write_bytes(WHOLE)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'tilewright\[hdf5\]'"):
        open_tensors(tmp_path / "x.h5")
