# SPDX-License-Identifier: Apache-2.0
"""Block formats in zarr: the codec is found by its name, stores the bytes of tilize, and refuses wrong options."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import FormatError, TilewrightError

zarr = pytest.importorskip("zarr", minversion="3.0")

FORMATS = ["bfloat8_b", "bfloat4_b", "bfloat2_b", "bfloat8_a", "mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "nvfp4"]


def codec(**options):
    return {"name": "tilewright.blocks", "configuration": options}


def make(store, values, serializer, chunks=(64, 32), **options):
    array = zarr.create_array(
        store,
        shape=values.shape,
        chunks=chunks,
        dtype=values.dtype,
        serializer=serializer,
        compressors=None,
        overwrite=True,
        **options,
    )
    array[...] = values
    return array


def test_stored_bytes_are_those_of_tilize(tmp_path):
    values = np.random.default_rng(0).standard_normal((100, 90), dtype=np.float32)
    for name in FORMATS:
        array = make(tmp_path / f"{name}.zarr", values, codec(format=name))
        whole = np.zeros((128, 96), np.float32)  # chunks at the edge are stored in full
        whole[:100, :90] = values
        for i in range(2):
            for j in range(3):
                chunk = whole[64 * i : 64 * i + 64, 32 * j : 32 * j + 32]
                packed = np.asarray(tw.tilize(chunk, dtype=name)).tobytes()
                assert (tmp_path / f"{name}.zarr/c/{i}/{j}").read_bytes() == packed, (name, i, j)
                decoded = tw.untilize(np.frombuffer(packed, np.uint8), (64, 32), dtype=name)
                part = array[64 * i : 64 * i + 64, 32 * j : 32 * j + 32]
                assert (part == decoded[: part.shape[0], : part.shape[1]]).all(), (name, i, j)


def test_a_fresh_process_finds_the_codec(tmp_path):
    values = np.random.default_rng(1).standard_normal((3, 40, 70), dtype=np.float32)
    array = make(tmp_path / "a.zarr", values, codec(format="bfloat8_b"), chunks=(2, 32, 64))
    script = "import sys, zarr; sys.stdout.buffer.write(zarr.open_array(sys.argv[1])[...].tobytes())"
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "a.zarr"], capture_output=True, check=True)
    assert done.stdout == array[...].tobytes()
    assert abs(array[...] - values).max() < 0.05
    stored = json.loads((tmp_path / "a.zarr/zarr.json").read_text())["codecs"]
    assert stored == [codec(format="bfloat8_b", tile=[32, 32], face=[16, 16], transpose=False)]


def test_shards_compressors_other_types_and_tiles(tmp_path):
    values = np.random.default_rng(2).standard_normal((128, 128), dtype=np.float32)
    plain = make(tmp_path / "plain.zarr", values, codec(format="bfloat4_b"))[...]
    sharded = make(tmp_path / "sharded.zarr", values, codec(format="bfloat4_b"), shards=(128, 64))
    assert (sharded[...] == plain).all()
    assert len(list((tmp_path / "sharded.zarr/c").rglob("*"))) == 3  # a folder and two shards
    packed = np.asarray(tw.tilize(values[:64, :32], dtype="bfloat4_b")).tobytes()
    assert packed in (tmp_path / "sharded.zarr/c/0/0").read_bytes()
    squeezed = zarr.create_array(
        tmp_path / "squeezed.zarr", shape=(128, 128), chunks=(64, 32), dtype="f4", serializer=codec(format="bfloat4_b")
    )
    squeezed[...] = values
    assert (squeezed[...] == plain).all()
    halves = make(tmp_path / "halves.zarr", values.astype(np.float16), codec(format="bfloat8_b"))
    assert halves[...].dtype == np.float16
    tall = make(tmp_path / "tall.zarr", values, codec(format="bfloat8_b", tile=[16, 32], face=None))
    expected = np.asarray(tw.tilize(values[:64, :32], tile=(16, 32), face=None, dtype="bfloat8_b")).tobytes()
    assert (tmp_path / "tall.zarr/c/0/0").read_bytes() == expected
    serializer = tall.serializer
    assert pickle.loads(pickle.dumps(serializer)) == serializer  # noqa: S301  (our own)


def test_streams_read_and_write_block_formats(tmp_path):
    values = np.random.default_rng(3).standard_normal((128, 128), dtype=np.float32)
    source = make(tmp_path / "in.zarr", values, codec(format="bfloat8_b"))
    target = make(tmp_path / "out.zarr", np.zeros_like(values), codec(format="bfloat8_b"))
    tw.stream(source, target, lambda x, y: np.multiply(x, 2, out=y))
    assert (target[...] == 2 * source[...]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "float32"}, "stores block formats, got float32"),
        ({"format": "bfloat9"}, "bfloat9"),
        ({"format": "bfloat8_b", "tiles": [32, 32]}, "no option 'tiles'; its options are format"),
        ({"format": "bfloat8_b", "tile": [32]}, r"expected tile as \[height, width\], got \[32\]"),
        ({"format": "bfloat8_b", "tile": [32.5, 32]}, r"expected tile as \[height, width\]"),
        ({"format": "bfloat8_b", "tile": [32, 7]}, "7"),
        ({"format": "bfloat8_b", "transpose": "yes"}, "expected transpose as true or false"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(TilewrightError, match=message):
        make({}, np.zeros((64, 64), np.float32), codec(**options))


def test_wrong_arrays_and_damaged_chunks_are_refused(tmp_path):
    with pytest.raises(FormatError, match="stores arrays of float32, float16, bfloat16, got int32"):
        make({}, np.zeros((64, 64), np.int32), codec(format="bfloat8_b"))
    with pytest.raises(FormatError, match="stores matrices in tiles"):
        make({}, np.zeros(64, np.float32), codec(format="bfloat8_b"), chunks=(64,))
    array = make(tmp_path / "a.zarr", np.ones((64, 32), np.float32), codec(format="bfloat8_b"))
    Path(tmp_path, "a.zarr/c/0/0").write_bytes(b"short")
    with pytest.raises(FormatError, match=r"takes 2176 bytes, got 5; it is damaged"):
        array[...]
