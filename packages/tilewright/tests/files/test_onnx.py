# SPDX-License-Identifier: Apache-2.0
"""ONNX models, written here field by field: raw, typed and external data, and files that cannot be."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files import open_tensors
from tilewright.files.onnx import decode_varints

from .onnx_samples import MATRIX, SOUND, external, field, initializer, model, packed, varint
from .test_damaged_files import read_all

TYPED = {
    "int32": (6, 5, [-1, 7, 2**31 - 1]),
    "int8": (3, 5, [-128, 127, 0]),
    "uint16": (4, 5, [0, 65535, 3]),
    "bool": (9, 5, [0, 1, 1]),
    "int64": (7, 7, [-(2**63), 2**63 - 1, 5]),
    "uint32": (12, 11, [2**32 - 1, 0, 1]),
    "uint64": (13, 11, [2**64 - 1, 0, 1]),
}


def write(path, data):
    path.write_bytes(data)
    return path


def test_raw_and_float_data(tmp_path):
    data = MATRIX.tobytes()
    found = open_tensors(
        write(
            tmp_path / "m.onnx",
            model(
                initializer("raw", (2, 3), 1, 9, data),
                initializer("floats", (2, 3), 1, 4, data),
                initializer("doubles", (3,), 11, 10, np.arange(3.0).tobytes()),
                initializer("unpacked", (2,), 1, more=b"\x25\x00\x00\x80\x3f\x25\x00\x00\x00\x40"),
                initializer("scalar", (), 1, 9, data[:4]),
                initializer("empty", (0, 4), 1),
                initializer("text", (1,), 8, 6, b"x"),
                initializer("c64", (1,), 14, 9, bytes(8)),
                initializer("int4", (3,), 22, 9, b"\x21\x03"),
                initializer("typed int4", (3,), 22, 5, packed([0xF1, 3])),
            ),
        )
    )
    assert found.kind == "onnx"
    assert list(found) == ["raw", "floats", "doubles", "unpacked", "scalar", "empty", "c64", "int4", "typed int4"]
    np.testing.assert_array_equal(found["raw"].read(), MATRIX)
    np.testing.assert_array_equal(found["floats"].read(), MATRIX)
    assert found["doubles"].read().tolist() == [0, 1, 2]
    assert found["unpacked"].read().tolist() == [1, 2]
    assert found["scalar"].shape == ()
    assert found["typed int4"].raw.tobytes() == b"\xf1\x03"
    assert (found["int4"].format, found["int4"].raw.tobytes()) == (None, b"\x21\x03")


@pytest.mark.parametrize("name", TYPED)
def test_typed_integers(tmp_path, name):
    kind, number, values = TYPED[name]
    one_by_one = b"".join([varint(number << 3) + varint(n) for n in values])
    messages = [initializer("p", (3,), kind, number, packed(values)), initializer("u", (3,), kind, more=one_by_one)]
    found = open_tensors(write(tmp_path / "m.onnx", model(*messages)))
    for each in found.values():
        np.testing.assert_array_equal(each.read(), np.array(values, name))


@pytest.mark.parametrize(("kind", "dtype"), [(10, np.float16), (16, ml_dtypes.bfloat16), (17, ml_dtypes.float8_e4m3fn)])
def test_floats_in_integers(tmp_path, kind, dtype):
    values = np.array([1.5, -2, 0], dtype)
    bits = values.view(f"u{values.itemsize}")
    found = open_tensors(write(tmp_path / "m.onnx", model(initializer("w", (3,), kind, 5, packed(bits)))))
    assert found["w"].read().astype(float).tolist() == [1.5, -2, 0]
    tw.convert(found, tmp_path / "out", dtype="float32", layout="tile")
    assert tw.verify(tmp_path / "out", found)


def test_external_data(tmp_path):
    (tmp_path / "w.data").write_bytes(b"--" + MATRIX.tobytes())
    data = model(
        initializer("w", (2, 3), 1, more=external(location="w.data", offset=2, length=24)),
        initializer("v", (1,), 1, more=external(location="w.data", offset=22)),
    )
    found = open_tensors(write(tmp_path / "m.onnx", data))
    np.testing.assert_array_equal(found["w"].read(), MATRIX)
    assert found["w"].path.name == "w.data"
    assert found["v"].read().tolist() == [5]


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ("points outside", model(initializer("w", (1,), 1, more=external(location="../w.data")))),
        ("points outside", model(initializer("w", (1,), 1, more=external(location="/etc/passwd")))),
        ("does not exist", model(initializer("w", (1,), 1, more=external(location="none.data")))),
        ("which has 4", model(initializer("w", (1,), 1, more=external(location="w.data", offset=1, length=4)))),
        ("expected a number", model(initializer("w", (1,), 1, more=external(location="w.data", offset="-1")))),
        ("takes 24 bytes", model(initializer("w", (2, 3), 1, 9, bytes(20)))),
        ("takes 24 bytes", model(initializer("w", (2, 3), 1))),
        ("implausible", model(initializer("w", (-1,), 1, 9, b""))),
        ("implausible", model(initializer("w", (0, 1 << 40, 1 << 40), 1, 9, b""))),
        ("unknown data type 99", model(initializer("w", (1,), 99, 9, bytes(4)))),
        ("outside of int8", model(initializer("w", (1,), 3, 5, packed([128])))),
        ("outside of float16", model(initializer("w", (1,), 10, 5, packed([70000])))),
        ("ends within", model(initializer("w", (1,), 6, 5, b"\xff"))),
        ("more than 64 bits", model(initializer("w", (1,), 6, 5, b"\xff" * 10 + b"\x01"))),
        ("outside of int4", model(initializer("w", (1,), 22, 5, packed([256])))),
        ("more than 64 dimensions", model(initializer("w", [1] * 65, 1, 9, bytes(4)))),
        ("not packed", model(initializer("w", (1,), 6, more=b"\x28\x01" * 100_001))),
        ("segments", model(initializer("w", (1,), 1, 9, bytes(4), field(3, b"")))),
        ("sparse", model(field(15, b""))),
        ("not UTF-8", model(field(5, field(8, b"\xff")))),
        ("exists twice", model(initializer("w", (1,), 1, 9, bytes(4)), initializer("w", (1,), 1, 9, bytes(4)))),
        ("one graph", b""),
        ("one graph", model() + model()),
        ("wire type 3", b"\x0b"),
        ("field number 0", b"\x00\x00"),
        ("needs [0-9]+ bytes, but only [0-9]+ follow", b"\x3a\xff\x01"),
    ],
)
def test_models_that_are_refused(tmp_path, message, data):
    (tmp_path / "w.data").write_bytes(bytes(4))
    with pytest.raises(tw.FileFormatError, match=message):
        open_tensors(write(tmp_path / "m.onnx", data))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_packed_integers(values):
    assert decode_varints(packed(values), "x").tolist() == values


@pytest.mark.parametrize("value", [1, 300, 2**64 - 1])
def test_many_packed_integers(value):
    many = decode_varints(varint(value) * 600_000, "x")
    assert (len(many), set(many.tolist())) == (600_000, {value})


@given(st.data())
def test_damaged_models_are_refused_or_read(data):
    damaged = bytearray(SOUND)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    read_all("m.onnx", bytes(damaged))


def test_models_that_end_early_are_refused_or_read():
    assert read_all("m.onnx", SOUND) is None
    for size in range(len(SOUND) - 2):
        assert "m.onnx" in read_all("m.onnx", SOUND[:size])
