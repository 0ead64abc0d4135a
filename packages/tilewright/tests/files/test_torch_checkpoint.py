# SPDX-License-Identifier: Apache-2.0
"""PyTorch checkpoints: recorded files of torch, containers, views, and files that try to do harm."""

import hashlib
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files import open_tensors
from tilewright.files.torch_checkpoint import TORCH_TYPES

from .test_damaged_files import read_all
from .torch_samples import dictionary, integer, integers, legacy, name, pickle, tensor, text, zipped

GOLDEN = Path(__file__).parent.parent / "golden" / "quantised" / "pickles"
RECORDED = json.loads((GOLDEN / "pickles.json").read_text())
VALUES = np.arange(6, dtype="<f4")
STORAGES = {"0": VALUES.tobytes()}


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: case["file"])
def test_recorded_files_of_torch(case):
    tensors = open_tensors(GOLDEN / case["file"])
    assert tensors.kind == "torch"
    assert list(tensors) == [each["name"] for each in case["tensors"]]
    for each in case["tensors"]:
        found = tensors[each["name"]]
        assert (found.shape, found.kind) == (tuple(each["shape"]), each["dtype"])
        data = found.raw if found.format is None else found.read()
        assert hashlib.sha256(data.tobytes()).hexdigest() == each["bytes_sha256"], each["name"]


@pytest.mark.parametrize("case", RECORDED["refuse"], ids=lambda case: case["file"])
def test_harmful_files_are_refused(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tw.FileFormatError):
        open_tensors(GOLDEN / case["file"])
    assert not os.listdir(tmp_path)


def test_guards():
    assert len(RECORDED["cases"]) == 8
    assert len(RECORDED["refuse"]) == 5


@pytest.mark.parametrize("file", ["views.pth", "legacy_views.bin", "nested.pt", "dtypes.pt"])
def test_checkpoints_are_converted(file, tmp_path):
    source = open_tensors(GOLDEN / file)
    numbers = [key for key, each in source.items() if each.format is not None and each.size]
    tw.convert({key: source[key] for key in numbers}, tmp_path / "out", layout="row_major")
    assert tw.verify(tmp_path / "out", {key: source[key] for key in numbers})
    for key, found in open_tensors(tmp_path / "out").items():
        if found.format == source[key].format:
            np.testing.assert_array_equal(found.read(), source[key].read(), err_msg=key)


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("make", [zipped, legacy])
def test_views_and_ties(make, tmp_path):
    value = dictionary(
        {
            "w": tensor("0", (2, 3), (3, 1)),
            "tied": tensor("0", (2, 3), (3, 1)),
            "t": tensor("0", (3, 2), (1, 3)),
            "row": tensor("0", (3,), (1,), 3),
            "repeated": tensor("0", (4, 2), (0, 1)),
            "overlap": tensor("0", (3, 3), (1, 1)),
        }
    )
    found = open_tensors(write(tmp_path / "m.ckpt", make(value, STORAGES)))
    matrix = VALUES.reshape(2, 3)
    np.testing.assert_array_equal(found["tied"].read(), matrix)
    np.testing.assert_array_equal(found["t"].read(), matrix.T)
    np.testing.assert_array_equal(found["row"].read(), matrix[1])
    np.testing.assert_array_equal(found["repeated"].read(), np.tile(VALUES[:2], (4, 1)))
    np.testing.assert_array_equal(found["overlap"].read(), [[0, 1, 2], [1, 2, 3], [2, 3, 4]])
    assert found["w"].byte_range == found["tied"].byte_range


def test_big_endian_files(tmp_path):
    value, storages = dictionary({"w": tensor("0", (2, 2), (3, 1))}), {"0": VALUES.astype(">f4").tobytes()}
    for data in (zipped(value, storages, byteorder="big"), legacy(value, storages, is_little=False)):
        found = open_tensors(write(tmp_path / "m.pt", data))
        assert found["w"].read().tolist() == [[0, 1], [3, 4]]
    with pytest.raises(tw.FileFormatError, match="byteorder"):
        open_tensors(write(tmp_path / "m.pt", zipped(value, storages, byteorder="middle")))


def test_any_prefix_and_members_between(tmp_path):
    value = dictionary({"w": tensor("0", (6,), (1,))})
    for prefix in ("", "a/b/", "data.pkl/"):
        assert list(open_tensors(write(tmp_path / "m.pt", zipped(value, STORAGES, prefix)))) == ["w"]


def test_members_with_64_bit_sizes(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as archive:
        for key, data in {"data.pkl": pickle(dictionary({"w": tensor("0", (6,), (1,))})), "data/0": VALUES}.items():
            with archive.open(f"m/{key}", "w", force_zip64=True) as member:
                member.write(data)
    np.testing.assert_array_equal(open_tensors(tmp_path / "m.pt")["w"].read(), VALUES)


def test_two_members_of_one_name_are_refused(tmp_path):
    data = zipped(dictionary({"w": tensor("0", (6,), (1,))}), STORAGES).replace(b"model/data/0", b"model/data/x")
    twice = zipped(dictionary({"w": tensor("0", (6,), (1,))}), {"0": STORAGES["0"], "x": STORAGES["0"]})
    assert "w" in open_tensors(write(tmp_path / "m.pt", twice))
    for each, message in ((data, "missing"), (twice.replace(b"model/data/x", b"model/data/0"), "two members")):
        with pytest.raises(tw.FileFormatError, match=message):
            open_tensors(write(tmp_path / "m.pt", each))


def test_compressed_members_are_refused_with_the_remedy(tmp_path):
    data = zipped(dictionary({"w": tensor("0", (6,), (1,))}), STORAGES, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(tw.FileFormatError, match=r"compressed .* torch\.save"):
        open_tensors(write(tmp_path / "m.pt", data))


def test_nested_containers_have_dotted_names(tmp_path):
    leaf = tensor("0", (6,), (1,))
    inner = b"](" + leaf + b"N" + dictionary({"k": leaf}) + b"e"
    value = dictionary({"a": inner, "n": integer(3), "s": text("x"), "t": b"(" + leaf + b"t"})
    assert list(open_tensors(write(tmp_path / "m.pt", zipped(value, STORAGES)))) == ["a.0", "a.2.k", "t.0"]


LAUGHS = b"]q\x00" + b"".join([b"](h" + bytes([k]) + b"h" + bytes([k]) + b"eq" + bytes([k + 1]) for k in range(50)])
DEEP = b"(" * 100_000 + b"t" * 100_000
LONG = text("x" * 5000)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (name("os", "system") + b"(" + text("true") + b"tR", r"'os\.system'"),
        (text("os") + text("system") + b"\x93", r"'os\.system'"),
        (name("torch", "QInt8Storage"), r"'torch\.QInt8Storage'"),
        (name("torch._utils", "_rebuild_qtensor"), "_rebuild_qtensor"),
        (name("numpy.core.multiarray", "_reconstruct"), "_reconstruct"),
        (b"(" + text("x") + b"ios\nsystem\n", "opcode INST"),
        (b"(" + text("x") + b"o", "opcode OBJ"),
        (b"I1\n", "opcode INT"),
        (b"Pid\n", "opcode PERSID"),
        (b"\x82\x01", "opcode EXT1"),
        (b"})}\x92", "opcode NEWOBJ_EX"),
        (b"\xff", "opcode 0xFF"),
        (b"R", "empty stack"),
        (b"t", "mark"),
        (b"h\x05", "has not stored"),
        (b"K\x01K\x02a", "not a list"),
        (b"K\x01)R", "not a function"),
        (b"K\x01}b", "sets attributes"),
        (name("torch", "FloatStorage") + b")R", "not a function of a checkpoint"),
        (b"})K\x01s", "key"),
        (b"}(K\x01u", "key without a value"),
        (text("module") + b"Q", "not a storage"),
        (tensor("0", (2, 3), (3, 1), offset=1), "needs 28 bytes"),
        (tensor("0", (2, 3), (3,)), "1 strides"),
        (tensor("0", (2,), (-1,)), "expected an integer"),
        (tensor("0", (1 << 61, 3), (0, 1)), "implausible"),
        (tensor("0", (1 << 100,), (0,)), "expected an integer"),
        (tensor("0", (0, 1 << 61, 1 << 61), (0, 0, 0)), "implausible"),
        (tensor("0", (1,) * 65, (1,) * 65), "at most 64"),
        (tensor("0", (6,), (1,), count=1 << 70), "expected an integer"),
        (tensor("0", (7,), (1,), count=7), "truncated"),
        (tensor("1", (6,), (1,)), "missing|whose type no tensor states"),
        (tensor("0", (6,), (1,), metadata=dictionary({"conj": b"\x88"})), "conjugated"),
        (name("torch._tensor", "_rebuild_from_type_v2") + b"(" + name("torch", "Size") + DEEP + b"))tR", "expected"),
        (LAUGHS, "nested|more than"),
        (b"]q\x00h\x00a", "nested more than"),
        (b"}" + LONG + b"}s", "longer than"),
        (b"X\xff\xff\xff\xff", "needs [0-9]+ bytes, but only [0-9]+ follow"),
        (b"\x8d" + b"\xff" * 8, "needs [0-9]+ bytes, but only [0-9]+ follow"),
        (b"\x8b\xff\xff\xff\x7f", "integer of"),
        (b"X\x01\0\0\0\xff", "not UTF-8"),
        (b"c" + b"x" * 2000, "line of more than"),
        (b"", "ends before|empty stack"),
    ],
)
def test_pickles_that_are_refused(tmp_path, value, message):
    for make in (zipped, legacy):
        with pytest.raises(tw.FileFormatError, match=message):
            open_tensors(write(tmp_path / "m.pt", make(value, STORAGES)))


def test_deep_values_are_refused_or_left_out(tmp_path):
    for value in (DEEP, dictionary({"x": DEEP}), b"}" + DEEP + b"K\x01s"):
        with pytest.raises(tw.FileFormatError):
            open_tensors(write(tmp_path / "m.pt", zipped(value, STORAGES)))
    assert not open_tensors(write(tmp_path / "m.pt", zipped(integers([1, 2]), STORAGES)))


SOUND = {
    "zip.pt": zipped(dictionary({"w": tensor("0", (2, 2), (3, 1))}), STORAGES),
    "legacy.pt": legacy(dictionary({"w": tensor("0", (2, 2), (3, 1))}), STORAGES),
    "protocol4.pt": (GOLDEN / "protocol4.pt").read_bytes(),
    "views.pth": (GOLDEN / "legacy_views.bin").read_bytes(),
}


@given(st.sampled_from(sorted(SOUND)), st.data())
def test_damaged_checkpoints_are_refused_or_read(key, data):
    damaged = bytearray(SOUND[key])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    read_all(key, bytes(damaged))


@pytest.mark.parametrize("key", SOUND)
def test_checkpoints_that_end_early_are_refused(key):
    whole = SOUND[key]
    assert read_all(key, whole) is None
    for size in range(0, len(whole), 5):
        assert key in read_all(key, whole[:size]), size


def write_index(folder, homes):
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": homes}))


def test_sharded_checkpoints(tmp_path):
    for k, key in enumerate("ab"):
        data = zipped(dictionary({key: tensor("0", (6,), (1,))}), STORAGES)
        (tmp_path / f"pytorch_model-0000{k + 1}-of-00002.bin").write_bytes(data)
    write_index(tmp_path, {key: f"pytorch_model-0000{k + 1}-of-00002.bin" for k, key in enumerate("ab")})
    found = open_tensors(tmp_path)
    assert (found.kind, list(found)) == ("sharded torch", ["a", "b"])
    write_index(tmp_path, {"a": "../x.bin"})
    with pytest.raises(tw.FileFormatError, match="points outside"):
        open_tensors(tmp_path)
    tw.files.write_safetensors(tmp_path / "model.safetensors", {"s": VALUES})
    assert list(open_tensors(tmp_path)) == ["s"]  # as transformers does


def test_an_index_that_names_itself_is_refused(tmp_path):
    write_index(tmp_path, {"a": "pytorch_model.bin.index.json"})
    with pytest.raises(tw.FileFormatError, match="a JSON text"):
        open_tensors(tmp_path)


def test_folders_with_a_model_of_transformers(tmp_path):
    shutil.copy(GOLDEN / "params.bin", tmp_path / "pytorch_model.bin")
    shutil.copy(GOLDEN / "refuse" / "os_system.pt", tmp_path / "training_args.bin")
    assert list(open_tensors(tmp_path)) == ["p", "q", "buf"]
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(tw.FileFormatError, match="training_args"):
        open_tensors(tmp_path)


def test_every_type_of_torch_has_a_size():
    assert all(size in (1, 2, 4, 8, 16) for size in TORCH_TYPES.values())
