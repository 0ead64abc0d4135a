# SPDX-License-Identifier: Apache-2.0
"""`inspect`: the facts of files from their headers, and tiles decoded."""

import json

import numpy as np
import pytest

import tilewright as tw
from tilewright.cli.console import to_json
from tilewright.files import Tensorbin, write_tensorbin

VALUES = np.random.default_rng(3).standard_normal((3, 100, 70)).astype(np.float32)


def stored(path, values, dtype, **placed):
    spec = tw.TensorSpec(values.shape, dtype, **placed)
    write_tensorbin(path, Tensorbin(spec, tw.to_bytes(values, spec)))
    return spec


def test_facts_are_those_of_the_spec(tmp_path):
    spec = stored(tmp_path / "w.tensorbin", VALUES, "bfloat8_b", memory=tw.height_sharded((4, 2)))
    np.save(tmp_path / "b.npy", np.zeros(7, np.int16))
    found = tw.inspect(tmp_path)
    facts = found.facts("w")
    assert (facts.shape, facts.format, facts.nbytes) == (VALUES.shape, "bfloat8_b", spec.nbytes)
    assert (facts.spec, facts.padding_bytes) == (spec, spec.padding_bytes)
    assert found.facts("b").placed == "rows"
    data = json.loads(to_json(found.to_json()))
    assert data["nbytes"] == found.nbytes == spec.nbytes + 14
    assert {each["name"]: each["format"] for each in data["tensors"]} == {"b": "int16", "w": "bfloat8_b"}
    assert all(len(line) <= 80 for line in str(found).splitlines() if str(tmp_path) not in line)
    with pytest.raises(tw.LayoutError, match="no tensor 'v'"):
        found.facts("v")


@pytest.mark.parametrize("tile", [tw.Tile(), tw.Tile((16, 32)), tw.Tile((32, 32), transpose=True)], ids=str)
@pytest.mark.parametrize("dtype", ["bfloat8_b", "bfloat16"])
def test_tiles_hold_the_values_and_the_exponents(tmp_path, tile, dtype):
    spec = stored(tmp_path / "w.tensorbin", VALUES, dtype, layout="tile", tile=tile)
    expected = tw.from_bytes(tw.to_bytes(VALUES, spec), spec).astype(np.float64)
    found = tw.inspect(tmp_path / "w.tensorbin")
    down = -(-100 // tile.height)
    for row in (0, down - 1, down, 3 * down - 1):
        reading = found.tile("w", row, 2)
        matrix, top = row // down, row % down * tile.height
        assert reading.start == (matrix, top, 64)
        part = expected[matrix, top : top + tile.height, 64:]
        assert np.array_equal(reading.values[: part.shape[0], : part.shape[1]], part)
        assert reading.valid.sum() == part.size
        if dtype == "bfloat8_b":
            line = reading.exponents[0, :6] if not tile.transpose else reading.exponents[: part.shape[0], 0]
            block = part[0] if not tile.transpose else part[:16, 0]
            assert line[0] == np.floor(np.log2(np.abs(block).max()))
        assert all(len(text) <= 80 for text in str(reading).splitlines())


def test_a_vector_and_rows_have_windows(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(100))
    reading = tw.inspect(tmp_path / "x.npy").tile("x", 0, 3)
    assert (reading.start, reading.values[0, 0], reading.valid.sum()) == ((96,), 96.0, 4)
    with pytest.raises(tw.LayoutError, match="1 x 4 tiles of 32 x 32; there is no tile"):
        tw.inspect(tmp_path / "x.npy").tile("x", 0, 4)


def test_exponents_of_transposed_tiles_stand_above_their_columns(tmp_path):
    stored(tmp_path / "w.tensorbin", VALUES, "bfloat8_b", tile=tw.Tile((32, 32), transpose=True))
    lines = str(tw.inspect(tmp_path).tile("w", 0, 0)).splitlines()
    assert lines[3].startswith("face 0")
    assert lines[4].split()[0] == "exp"
    assert "face 2: rows 0 to 15, columns 16 to 31" in lines  # faces are stored down the columns, too


def test_pictures(tmp_path):
    stored(tmp_path / "w.tensorbin", VALUES, "bfloat8_b")
    found = tw.inspect(tmp_path)
    for thing in (found, found.tile("w", 0, 0)):
        thing.show(tmp_path / "x.svg")
        assert thing._repr_html_().startswith("<div")
    assert "Inspection of" in repr(found)
    assert "TileReading 'w'" in repr(found.tile("w", 0, 0))


def test_only_headers_are_read(tmp_path, monkeypatch):
    from tilewright.files.source_file import SourceFile

    stored(tmp_path / "w.tensorbin", np.zeros((512, 512), np.float32), "float32", layout="tile")
    np.save(tmp_path / "x.npy", np.zeros((512, 512)))
    taken = []
    read = SourceFile.read_runs  # all reading goes through it

    def counted(file, runs, out):
        taken.append(len(out))
        read(file, runs, out)

    monkeypatch.setattr(SourceFile, "read_runs", counted)
    assert len(tw.inspect(tmp_path).tensors) == 2
    assert 0 < sum(taken) < 100_000  # of three million bytes
