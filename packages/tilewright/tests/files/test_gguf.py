# SPDX-License-Identifier: Apache-2.0
"""GGUF files: the recorded ones, their metadata, several parts, and what is refused."""

import hashlib
import json
import pickle
import re
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files import inspect, open_tensors
from tilewright.formats.ggml import GGML_TYPES

from ..cases import all_cases
from ..cli.runner import invoke
from .gguf_files import gguf_bytes, text, write_gguf

GOLDEN = Path(__file__).parent.parent / "golden" / "quantised" / "gguf"
CASES = json.loads((GOLDEN / "gguf.json").read_text(encoding="utf-8"))["cases"]
REFUSED = json.loads((GOLDEN / "refuse.json").read_text(encoding="utf-8"))["cases"]
PLAIN = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(4, dtype=np.int8)}


def test_recorded_files_have_the_recorded_tensors():
    kinds = set()
    for case in CASES:
        opened = open_tensors(GOLDEN / case["file"])
        assert list(opened) == [each["name"] for each in case["tensors"]]
        for each in case["tensors"]:
            tensor, where = opened[each["name"]], f"{case['file']}: {each['name']}"
            assert (tensor.kind, list(tensor.shape)) == (each["type"], each["shape"]), where
            assert tensor.byte_range == (each["offset"], each["offset"] + each["nbytes"]), where
            kinds.add(tensor.kind)
            if "values" in each:
                assert tensor.read().reshape(-1).tolist() == each["values"], where
                continue
            assert hashlib.sha256(tensor.raw).hexdigest() == each["raw_sha256"], where
            values = tensor.read().astype(np.float32)
            for index, value in each["expect"]["samples"]:
                assert values.reshape(-1)[index] == value, f"{where}: element {index}"
            digest = hashlib.sha256(np.ascontiguousarray(values)).hexdigest()
            assert digest == each["expect"]["sha256"], where
    assert len(kinds) >= 24


def test_recorded_metadata_are_text():
    for case in CASES:
        expected = {key: value for key, value in case["kv"].items() if not key.startswith("GGUF.")}
        found = open_tensors(GOLDEN / case["file"]).metadata
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            if isinstance(value, str):
                assert found[key] == value
            else:
                assert key == "tiny.words" or np.allclose(json.loads(found[key]), value, rtol=1e-7), key
        assert json.loads(found["tiny.words"]) == expected["tiny.words"]


def test_recorded_broken_files_are_refused():
    assert len(REFUSED) == 6
    for case in REFUSED:
        with pytest.raises(tw.FileFormatError, match=re.escape(case["file"])):
            open_tensors(GOLDEN / case["file"])


@all_cases(("kind", [kind for kind in GGML_TYPES.values() if kind.unpack is not None]))
def test_boxes_of_blocks_are_parts_of_the_whole(kind, tmp_path):
    rng = np.random.default_rng(kind.number)
    shape = (2, 3, 3 * kind.elements)
    data = rng.integers(0, 256, (18, kind.nbytes), dtype=np.uint8)
    tensor = open_tensors(write_gguf(tmp_path / "x.gguf", {"w": (kind.number, shape, data.tobytes())}))["w"]
    whole = tensor.read()
    np.testing.assert_array_equal(whole, kind.decode(data).reshape(shape))
    for _ in range(10):
        ends = [sorted(rng.integers(0, n + 1, 2)) for n in shape]
        box = tuple([slice(int(a), int(b)) for a, b in ends])
        np.testing.assert_array_equal(tensor.read(box), whole[box], str(box))
    again = pickle.loads(pickle.dumps(tensor))  # noqa: S301
    np.testing.assert_array_equal(again.read(), whole)
    assert tensor.nbytes == data.nbytes
    assert (tensor.dtype, tensor.format_name) == (np.float32, kind.name)


def test_plain_types_are_dense_tensors(tmp_path):
    arrays = {
        name: np.arange(24).reshape(2, 3, 4).astype(name)
        for name in ("float32", "float16", "float64", "int8", "int16", "int32", "int64", ml_dtypes.bfloat16)
    }
    named = {str(np.dtype(name)): array for name, array in arrays.items()}
    for version in (2, 3):
        opened = open_tensors(
            write_gguf(tmp_path / "x.gguf", named, {"general.alignment": 64}, version=version, alignment=64)
        )
        for name, array in named.items():
            np.testing.assert_array_equal(opened[name].read(), array)
            np.testing.assert_array_equal(opened[name].read((slice(1, 2), slice(0, 3), slice(1, 3))), array[1:, :, 1:3])


def test_types_without_values_are_listed(tmp_path):
    for number, name in ((9, "Q8_1"), (15, "Q8_K"), (41, "Q1_0")):
        kind = GGML_TYPES[number]
        path = write_gguf(tmp_path / "x.gguf", {"w": (number, (kind.elements,), bytes(kind.nbytes))})
        assert name in str(inspect(path))
        with pytest.raises(tw.FormatError, match=name):
            open_tensors(path)["w"].read()


def test_metadata_of_every_type(tmp_path):
    metadata = {
        "bool": True,
        "text": "a\nb",
        "many": [f"token {k}" for k in range(5000)],
        "nested": [[1, 2], [3]],
        "none": [],
        "longest": ("u64", 2**64 - 1),
        "large": ("f64", 1e300),
        "nan": float("nan"),
        "numbers": list(range(2000)),
    }
    found = open_tensors(write_gguf(tmp_path / "x.gguf", PLAIN, metadata)).metadata
    assert found == {
        "bool": "true",
        "text": "a\nb",
        "many": "array of 5000 strings",
        "nested": "array of 2 arrays",
        "none": "[]",
        "longest": "18446744073709551615",
        "large": "1e+300",
        "nan": "nan",
        "numbers": "array of 2000 uint32s",
    }


def test_inspect_fits_narrow_and_wide_terminals(tmp_path):
    metadata = {"general.architecture": "llama", "tokenizer.chat_template": "{% for m in messages %}" * 40}
    path = write_gguf(tmp_path / "x.gguf", {"blk.0.attn_q.weight": np.zeros((2, 3), np.float32)}, metadata)
    for columns in (80, 200):
        lines = inspect(path).text(columns).splitlines()
        assert max(map(len, lines[1:])) <= columns
        assert "  general.architecture: llama" in lines
    assert "general.architecture: llama" in invoke("inspect", str(path)).output
    listed = json.loads(invoke("inspect", str(path), "--json").output)
    assert listed["kind"] == "gguf"
    assert listed["metadata"]["tokenizer.chat_template"] == metadata["tokenizer.chat_template"]


def test_metadata_cannot_send_commands_to_a_terminal(tmp_path):
    path = write_gguf(tmp_path / "x.gguf", PLAIN, {"a\x1b[31m": "b\x1b]0;c\x07\nd"})
    assert "  a\ufffd[31m: b\ufffd]0;c\ufffd d" in str(inspect(path)).splitlines()


def split_in(folder, parts=3, changes=None):
    for number in range(parts):
        own = {"split.no": ("u16", number), "split.count": ("u16", parts), "split.tensors.count": ("i32", parts)}
        shared = {"general.architecture": "llama"} if number == 0 else {}
        metadata = {**shared, **own, **(changes or {})}
        write_gguf(folder / f"m-{number + 1:05}-of-{parts:05}.gguf", {f"t{number}": PLAIN["a"] + number}, metadata)
    return folder


def test_parts_are_read_as_one(tmp_path):
    split_in(tmp_path)
    for path in (tmp_path, *sorted(tmp_path.iterdir())):
        opened = open_tensors(path)
        assert list(opened) == ["t0", "t1", "t2"]
        np.testing.assert_array_equal(opened["t2"].read(), PLAIN["a"] + 2)
        assert opened.metadata["general.architecture"] == "llama"
        assert opened.metadata["split.no"] == "0"
        assert len(opened.files) == 3


def remove(name):
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove("m-00002-of-00003.gguf"), "does not exist"),
        (lambda folder: split_in(folder, changes={"split.no": ("u16", 0)}), "says that it is part 1"),
        (lambda folder: split_in(folder, changes={"split.tensors.count": ("i32", 9)}), "hold 3 tensors"),
        (lambda folder: split_in(folder, changes={"split.count": "three"}), "expected a number"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message, tmp_path):
    change(split_in(tmp_path))
    with pytest.raises(tw.FileFormatError, match=message):
        open_tensors(tmp_path)


def test_a_part_without_its_name_is_refused(tmp_path):
    (split_in(tmp_path) / "m-00001-of-00003.gguf").rename(tmp_path / "other.gguf")
    with pytest.raises(tw.FileFormatError, match=r"model-00001-of-00003\.gguf"):
        open_tensors(tmp_path / "other.gguf")


def test_a_directory_has_one_model(tmp_path):
    write_gguf(tmp_path / "a-Q4_0.gguf", PLAIN)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert open_tensors(tmp_path).kind == "gguf"
    write_gguf(tmp_path / "a-Q8_0.gguf", PLAIN)
    with pytest.raises(tw.FileFormatError, match=r"2 GGUF models: a-Q4_0.gguf, a-Q8_0.gguf; give one"):
        open_tensors(tmp_path)
    np.save(tmp_path / "x.npy", PLAIN["b"])
    assert list(open_tensors(tmp_path)) == ["x"]


def header(tensors=0, pairs=0, rest=b"", version=3):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs) + rest


def entry(name="w", shape=(32,), kind=0, offset=0):
    dims = struct.pack(f"<{len(shape)}Q", *shape[::-1])
    return text(name) + struct.pack("<I", len(shape)) + dims + struct.pack("<IQ", kind, offset)


def pair(key, kind, data):
    return text(key) + struct.pack("<I", kind) + data


def deep(levels):
    return b"".join([struct.pack("<IQ", 9, 1)] * levels) + struct.pack("<IQ", 4, 0)


HOSTILE = {
    "version 1": (header(version=1), "version 1 .*convert the model again"),
    "version 4": (header(version=4), "version 4"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "many pairs": (header(pairs=1 << 63), "needs .* bytes"),
    "key twice": (gguf_bytes(PLAIN, [("k", 1), ("k", 2)]), "exists twice"),
    "key not UTF-8": (gguf_bytes(PLAIN, [(b"\xff", 1)]), "not UTF-8"),
    "value not UTF-8": (gguf_bytes(PLAIN, [("k", b"\xc3")]), "not UTF-8"),
    "bool of 2": (header(pairs=1, rest=pair("k", 7, b"\2")), "bool"),
    "type of value": (header(pairs=1, rest=pair("k", 13, bytes(8))), "unknown type 13"),
    "type of items": (header(pairs=1, rest=pair("k", 9, struct.pack("<IQ", 77, 1) + bytes(8))), "unknown type 77"),
    "long array": (header(pairs=1, rest=pair("k", 9, struct.pack("<IQ", 4, 1 << 62))), "needs"),
    "long array of texts": (header(pairs=1, rest=pair("k", 9, struct.pack("<IQ", 8, 1 << 62))), "needs"),
    "deep array": (header(pairs=1, rest=pair("k", 9, deep(1000))), "nested"),
    "long text": (header(pairs=1, rest=pair("k", 8, struct.pack("<Q", (1 << 64) - 1))), "more than"),
    "alignment 48": (gguf_bytes(PLAIN, {"general.alignment": 48}), "power of two"),
    "alignment 0": (gguf_bytes(PLAIN, {"general.alignment": 0}), "power of two"),
    "alignment as text": (gguf_bytes(PLAIN, {"general.alignment": "32"}), "power of two"),
    "five dimensions": (header(1, rest=entry(shape=(1,) * 5) + bytes(64)), "5 dimensions"),
    "rank": (header(1, rest=text("w") + struct.pack("<I", 1 << 31) + bytes(64)), "dimensions"),
    "huge shape": (header(1, rest=entry(shape=((1 << 63),) * 4) + bytes(64)), "larger than"),
    "huge and empty": (header(1, rest=entry(shape=(1 << 63, 0)) + bytes(64)), "larger than"),
    "large shape": (header(1, rest=entry(shape=(1 << 20, 1 << 20)) + bytes(64)), "takes bytes"),
    "unaligned": (header(1, rest=entry(offset=4) + bytes(256)), "multiple of 32"),
    "far away": (header(1, rest=entry(offset=1 << 62) + bytes(256)), "takes bytes"),
    "half a block": (header(1, rest=entry(shape=(2, 48), kind=8) + bytes(256)), "multiples of 32"),
    "scalar block": (header(1, rest=entry(shape=(), kind=8) + bytes(256)), "multiples of 32"),
    "former type": (header(1, rest=entry(kind=31) + bytes(256)), "removed"),
    "overlap": (header(2, rest=entry() + entry("v", offset=96) + bytes(512)), "overlap"),
    "name twice": (gguf_bytes([("w", PLAIN["a"]), ("w", PLAIN["a"])]), "exists twice"),
    "name outside": (gguf_bytes({"../w": PLAIN["a"]}), "outside"),
}


def test_hostile_headers_are_refused_with_the_reason(tmp_path):
    for name, (data, message) in HOSTILE.items():
        path = tmp_path / "x.gguf"
        path.write_bytes(data)
        with pytest.raises(tw.FileFormatError, match=message):
            raise AssertionError(f"{name} was read: {open_tensors(path)}")


def test_offsets_of_elements(tmp_path):
    path = GOLDEN / "filled_k.gguf"
    tensor = next(each for each in open_tensors(path).values() if each.kind == "Q4_K")
    element = inspect(path).element(tensor.name, (1, 255))
    assert element.value == float(tensor.read()[1, 255])
    assert element.offset == tensor.byte_range[0] + 144


@given(st.binary(max_size=300))
def test_any_bytes_after_the_magic_are_refused_or_read(tmp_path_factory, noise):
    path = tmp_path_factory.getbasetemp() / "noise.gguf"
    path.write_bytes(b"GGUF\3\0\0\0" + noise)
    try:
        for each in open_tensors(path).values():
            if each.format is not None:
                each.read()
    except tw.FileFormatError:
        return
