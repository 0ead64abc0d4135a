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
    spec = stored(tmp_path / "w.tensorbin", VALUES, dtype, page_layout="tile", tile=tile)
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
    with pytest.raises(tw.LayoutError, match=r"does not exist: .* 1 x 4 windows of 32 x 32"):
        tw.inspect(tmp_path / "x.npy").tile("x", 0, 4)


def test_exponents_of_transposed_tiles_stand_above_their_columns(tmp_path):
    stored(tmp_path / "w.tensorbin", VALUES, "bfloat8_b", tile=tw.Tile((32, 32), transpose=True))
    lines = str(tw.inspect(tmp_path).tile("w", 0, 0)).splitlines()
    assert lines[3].startswith("face 0")
    assert lines[4].split()[0] == "exp"
    assert "face 2: rows 0 to 15, columns 16 to 31" in lines  # faces are stored down the columns, too


@pytest.mark.parametrize("kind", ["tensorbin", "safetensors", "banks", "npy"])
@pytest.mark.parametrize("dtype", ["bfloat8_b", "bfloat4_b", "float32"])
def test_an_element_is_where_it_is_said_to_be(tmp_path, kind, dtype):
    if kind == "npy" and dtype != "float32":
        pytest.skip(".npy files hold numbers one by one")
    np.savez(tmp_path / "m.npz", w=VALUES)
    out = tmp_path / ("out.safetensors" if kind == "safetensors" else "out")
    placed = {} if kind == "npy" else {"shard": "height", "grid": (4, 2), "chip": "wormhole_n150", "layout": "tile"}
    tw.convert(tmp_path / "m.npz", out, kind, dtype=dtype, **placed)
    found = tw.inspect(out)
    for at in [(0, 0, 0), (2, 99, 69), (1, 33, 17)]:
        reading = found.element("w", at)
        assert reading.value == found.file["w"].read()[at]
        stored = np.fromfile(reading.path, np.uint8)
        where = reading.explanation.where
        if dtype == "float32":
            assert stored[reading.offset : reading.offset + 4].view(np.float32)[0] == reading.value
        else:
            bits = tw.format_of(dtype).bits
            code = (stored[reading.offset] >> where.bit) & (2**bits - 1)
            step = 2.0 ** (int(stored[reading.scale_offset]) - 127 + 2 - bits)
            assert (code & (2 ** (bits - 1) - 1)) * step == abs(reading.value)
        assert str(reading).splitlines()[0] == f"value     {reading.value!r}"
        assert reading._repr_html_().startswith("<div")


def test_elements_of_fortran_and_big_endian_arrays_and_scalars(tmp_path):
    np.save(tmp_path / "f.npy", np.asfortranarray(np.arange(12.0).reshape(3, 4)))
    np.save(tmp_path / "b.npy", np.arange(12, dtype=">i2").reshape(3, 4))
    np.save(tmp_path / "s.npy", np.float32(7))
    found = tw.inspect(tmp_path)
    assert (found.element("f", (1, 2)).value, found.element("f", (1, 2)).offset) == (6.0, 128 + 8 * (2 * 3 + 1))
    assert (found.element("b", (1, 2)).value, found.element("b", (1, 2)).offset) == (6, 128 + 2 * 6)
    assert found.element("s", ()).value == 7
    with pytest.raises(tw.errors.CoordinateError):
        found.element("f", (3, 0))


def test_pictures(tmp_path):
    stored(tmp_path / "w.tensorbin", VALUES, "bfloat8_b")
    found = tw.inspect(tmp_path)
    for thing in (found, found.tile("w", 0, 0)):
        thing.show(tmp_path / "x.svg")
        assert thing._repr_html_().startswith("<div")
    assert "Inspection of" in repr(found)
    assert "DecodedTile 'w'" in repr(found.tile("w", 0, 0))


def test_only_headers_are_read(tmp_path, monkeypatch):
    from tilewright.files.source import SourceFile

    stored(tmp_path / "w.tensorbin", np.zeros((512, 512), np.float32), "float32", page_layout="tile")
    np.save(tmp_path / "x.npy", np.zeros((512, 512)))
    taken = []
    read = SourceFile.read_runs  # all reading goes through it

    def counted(file, runs, out):
        taken.append(len(out))
        read(file, runs, out)

    monkeypatch.setattr(SourceFile, "read_runs", counted)
    assert len(tw.inspect(tmp_path).tensors) == 2
    assert 0 < sum(taken) < 100_000  # of three million bytes
