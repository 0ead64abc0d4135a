# SPDX-License-Identifier: Apache-2.0
"""Arrays in files: opened to be sliced, written whole or not at all."""

import ml_dtypes
import numpy as np
import pytest

from tilewright import FileFormatError
from tilewright.files.array_file import create_array, open_array

VALUES = np.arange(60, dtype=np.float32).reshape(6, 10)


@pytest.mark.parametrize("suffix", [".npy", ".raw", ".bin", ".zarr"])
def test_what_is_written_can_be_opened(tmp_path, suffix):
    if suffix == ".zarr":
        pytest.importorskip("zarr")
    path = tmp_path / f"x{suffix}"
    for factor in (1, 2):  # the second one replaces the first
        with create_array(path, VALUES.shape, VALUES.dtype, (4, 4)) as made:
            made[...] = VALUES * factor
        assert np.array_equal(open_array(path, VALUES.shape, "float32")[2:4], VALUES[2:4] * factor)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".npy", ".raw", ".zarr"])
def test_a_failure_leaves_what_was_there(tmp_path, suffix):
    if suffix == ".zarr":
        pytest.importorskip("zarr")
    path = tmp_path / f"x{suffix}"
    with create_array(path, VALUES.shape, VALUES.dtype) as made:
        made[...] = VALUES
    failing = create_array(path, VALUES.shape, VALUES.dtype)
    failing.__enter__()[...] = 0
    assert not failing.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert np.array_equal(open_array(path, VALUES.shape, "float32")[...], VALUES)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_bfloat16_is_what_it_is_said_to_be(tmp_path):
    np.save(tmp_path / "x.npy", VALUES.astype(ml_dtypes.bfloat16))
    assert open_array(tmp_path / "x.npy", dtype="bfloat16")[1, 2] == 12
    with pytest.raises(FileFormatError, match="cannot reinterpret elements"):
        open_array(tmp_path / "x.npy", dtype="float32")


def test_empty_arrays(tmp_path):
    for name in ("x.npy", "x.raw"):
        with create_array(tmp_path / name, (0, 4), "int8"):
            pass
        assert open_array(tmp_path / name, (0, 4), "int8").shape == (0, 4)


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("x.txt", b"", {}, "unknown suffix '.*' for an array; use one of .npy"),
        ("x.raw", b"1234", {}, "holds raw bytes"),
        ("x.raw", b"1234", {"shape": (3,), "dtype": "int8"}, "takes 3 bytes, but the file has 4"),
        ("x.npy", b"garbage", {}, "x.npy: not an .npy file"),
        ("x.raw", b"1234", {"shape": (4,), "dtype": "bfloat8_b"}, "got block format"),
    ],
)
def test_files_that_are_none(tmp_path, name, content, options, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        open_array(tmp_path / name, **options)


def test_missing_files_and_wrong_names(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_array(tmp_path / "x.npy")
    with pytest.raises(FileFormatError, match="unknown suffix"), create_array(tmp_path / "x.txt", (1,), "int8"):
        pass
