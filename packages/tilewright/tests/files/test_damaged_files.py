# SPDX-License-Identifier: Apache-2.0
"""Files that are damaged, or made to do harm: a FileFormatError, and never anything else."""

import io
import json
import struct
import tempfile
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files import open_tensors

from .gguf_files import gguf_bytes
from .samples import safetensors_bytes, write_safetensors

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(4, dtype=np.uint8)}


def npy_bytes(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz_bytes(compressed):
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **ARRAYS)
    return file.getvalue()


ARRAYS_OF_GGUF = {"a": ARRAYS["a"], "b": ARRAYS["b"].astype(np.int8)}
WHOLE = {
    "m.safetensors": safetensors_bytes(ARRAYS, metadata={"format": "pt"}),
    "x.npy": npy_bytes(ARRAYS["a"]),
    "x.npz": npz_bytes(False),
    "y.npz": npz_bytes(True),
    "x.gguf": gguf_bytes(
        {**ARRAYS_OF_GGUF, "q": (12, (2, 256), bytes(288))},
        {"general.architecture": "llama", "words": ["a", "b"], "flag": True, "deep": [[1], [2, 3]], "n": ("i64", -1)},
    ),
    "t.safetensors": safetensors_bytes(
        {"a": np.zeros(1088, np.uint8)},
        metadata={
            "tilewright": json.dumps(
                {"tensors": {"a": {"spec": {"shape": [4, 8], "dtype": "bfloat8_b", "layout": "tile"}}}}
            )
        },
    ),
}


def read_all(name, data):
    """Read every tensor of a file with these bytes; return what a FileFormatError says, or None if all is well."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        try:
            for each in open_tensors(path).values():
                if each.format is not None:
                    each.read()
                _ = each.raw
        except tw.FileFormatError as problem:
            return str(problem)
    return None


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_files_are_read(name):
    assert read_all(name, WHOLE[name]) is None


@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_files_that_end_early_are_refused(name, data):
    assert name in read_all(name, WHOLE[name][: data.draw(st.integers(0, len(WHOLE[name]) - 1))])


@pytest.mark.parametrize("name", WHOLE)
def test_files_that_end_at_any_byte_are_refused(name):
    whole = WHOLE[name]
    for size in {*range(min(len(whole), 400)), *range(len(whole) - 200, len(whole)), *range(400, len(whole), 7)}:
        assert name in read_all(name, whole[:size]), f"a file that ends at byte {size} of {len(whole)} was read"


@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_files_with_other_bytes_are_refused_or_read(name, data):
    damaged = bytearray(WHOLE[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    read_all(name, bytes(damaged))


@given(st.sampled_from(sorted(WHOLE)), st.binary(max_size=200))
def test_noise_is_refused(name, noise):
    assert name in read_all(name, noise)


NOTHING = b'{"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}'


def changed(**changes):
    def change(listed):
        listed["a"] |= changes

    return change


def renamed(name):
    def change(listed):
        listed[name] = listed.pop("a")

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(dtype="F33"), "dtype"),
        (changed(dtype=7), "dtype"),
        (changed(dtype="F64"), "takes 48 bytes"),
        (changed(shape=[2, 4]), "takes 32 bytes"),
        (changed(shape=[2.0, 3]), "expected an integer"),
        (changed(shape=[True, 6]), "expected an integer"),
        (changed(shape=[-2, -3]), "expected an integer"),
        (changed(shape=[2**70, 3]), "expected an integer"),
        (changed(shape="6"), "list"),
        (changed(shape=[1] * 65), "list"),
        (changed(shape=[2**62, 2**62, 2**62]), "takes"),
        (changed(dtype="F4", shape=[3]), r"takes 1\.5 bytes"),
        (changed(data_offsets=[0, 24, 25]), "start, end"),
        (changed(data_offsets=[24, 0]), "data_offsets span -24"),
        (changed(data_offsets=[-24, 0]), "expected an integer"),
        (changed(data_offsets=[4, 28]), "gap|overlaps"),
        (changed(data_offsets=[2**60, 2**60 + 24]), "gap"),
        (lambda listed: listed["b"].update(data_offsets=[20, 24]), "overlaps"),
        (lambda listed: listed.pop("b"), "follow the header"),
        (lambda listed: listed["a"].pop("shape"), "no shape"),
        (lambda listed: listed.update(a=[1]), "object"),
        (lambda listed: listed.update(__metadata__={"x": 1}), "string"),
        (lambda listed: listed.update(__metadata__=[]), "expected an object as __metadata__|expected a string"),
        (renamed("../../a"), "points outside"),
        (renamed("/a"), "points outside"),
        (renamed("a\0b"), "control"),
        (renamed("a\ud800"), "lone surrogate"),
        (lambda listed: listed.update(__metadata__={"tilewright": "{}"}), "no tensors"),
        (lambda listed: listed.update(__metadata__={"tilewright": '{"tensors": {"z": {}}}'}), "not in the file"),
        (lambda listed: listed.update(__metadata__={"tilewright": '{"tensors": {"a": {}}}'}), "spec"),
    ],
)
def test_headers_that_cannot_be(tmp_path, change, message):
    path = write_safetensors(tmp_path / "m.safetensors", ARRAYS, header=change)
    with pytest.raises(tw.FileFormatError, match=message):
        open_tensors(path)


@pytest.mark.parametrize(
    "header",
    [
        b'{"a": %s, "a": %s}' % (NOTHING, NOTHING),
        b'{"a": {"dtype": "U8", "dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}',
        b'{"\xff": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}',
        b" {}",
        b"[]",
        b"{",
        b"{}x",
        b'{"a": NaN}',
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": {"dtype": "U8", "shape": [' + b"9" * 10_000 + b'], "data_offsets": [0, 0]}}',
    ],
)
def test_texts_that_are_no_header(tmp_path, header):
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(tw.FileFormatError):
        open_tensors(path)


@pytest.mark.parametrize("size", [100_000_001, 2**63, 2**64 - 1])
def test_headers_that_are_too_large(tmp_path, size):
    path = tmp_path / "m.safetensors"
    path.write_bytes(size.to_bytes(8, "little") + b"{}")
    with pytest.raises(tw.FileFormatError, match="at most"):
        open_tensors(path)


def npy_with(header, version=1):
    text = header.encode() + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (0,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (0,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [0]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0,), 'more': 1}",
        "{'descr': 'zebra', 'fortran_order': False, 'shape': (0,)}",
        "{'descr': '|S0', 'fortran_order': False, 'shape': (0,)}",
        "__import__('os').getcwd()",
        "(" * 10_000,
        "",
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_npy_headers_that_cannot_be(tmp_path, header, version):
    (tmp_path / "x.npy").write_bytes(npy_with(header, version))
    with pytest.raises(tw.FileFormatError):
        open_tensors(tmp_path / "x.npy")


@pytest.mark.parametrize("shape", [(2**60, 0), (2**62, 4, 0), (0, 900719925474099311, 3)])
def test_empty_tensors_of_shapes_that_no_array_has(tmp_path, shape):
    """An extent of 0 takes no bytes, whatever the others are; found by the fuzzer."""
    header = f'{{"a": {{"dtype": "F32", "shape": {list(shape)}, "data_offsets": [0, 0]}}}}'.encode()
    files = {
        "x.npy": npy_with(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}"),
        "x.safetensors": len(header).to_bytes(8, "little") + header,
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(tw.FileFormatError, match="which is too large"):
            open_tensors(tmp_path / name)


def test_npz_with_strange_members(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("../../evil.npy", npy_bytes(np.arange(3)))
    with pytest.raises(tw.FileFormatError, match="points outside"):
        open_tensors(tmp_path / "x.npz")
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        archive.writestr("a.txt", b"text")
    with pytest.raises(tw.FileFormatError, match=r"not an \.npy"):
        open_tensors(tmp_path / "y.npz")
    with zipfile.ZipFile(tmp_path / "z.npz", "w") as archive:
        archive.writestr("a.npy", npy_bytes(np.arange(3)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.npy", npy_bytes(np.arange(3)))
    with pytest.raises(tw.FileFormatError, match="twice"):
        open_tensors(tmp_path / "z.npz")


def test_a_member_without_a_name(tmp_path):
    """Which the standard library stumbles over; found by make fuzz-files."""
    nameless = zipfile.ZipInfo("x")
    nameless.filename = ""
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr(nameless, npy_bytes(np.arange(3)))
    with pytest.raises(tw.FileFormatError):
        open_tensors(tmp_path / "x.npz")


def test_a_member_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    """A bomb: a small member that says it is small, and is not."""
    data = npz_bytes(True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo("a.npy").file_size
    more = io.BytesIO()
    with zipfile.ZipFile(more, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy_bytes(ARRAYS["a"]) + bytes(1 << 20))
    whole = more.getvalue()
    (tmp_path / "x.npz").write_bytes(whole.replace(struct.pack("<I", size + (1 << 20)), struct.pack("<I", size)))
    with pytest.raises(tw.FileFormatError):
        open_tensors(tmp_path / "x.npz")["a"].read()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_packed_in_any_way_are_read_or_refused(tmp_path, method):
    """Each way of packing has exceptions of its own for bytes that it did not write; found by make fuzz-files."""
    array = np.arange(40_000, dtype=np.float32)  # the header is unpacked when the file is opened, the rest when read
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.npy", npy_bytes(array))
    np.testing.assert_array_equal(open_tensors(path)["a"].read(), array)
    whole = path.read_bytes()
    rng = np.random.default_rng(method)
    for at in [*range(26, 60), *rng.integers(60, len(whole), 20)]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with suppress(tw.FileFormatError):
            open_tensors(path)["a"].read()
    for other in {0, 8, 12, 14, 99} - {method}:
        data = bytearray(whole)
        for start in (8, whole.rfind(b"PK\x01\x02") + 10):  # where both headers of the member say how it is packed
            data[start : start + 2] = struct.pack("<H", other)
        path.write_bytes(data)
        with pytest.raises(tw.FileFormatError):
            open_tensors(path)["a"].read()


def test_members_that_share_their_bytes_are_refused(tmp_path):
    """A bomb: every member quotes the header of the next and goes on into its data, so that all unpack the last one."""
    last = npy_bytes(np.zeros(1 << 16, np.uint8))
    first_header = npy_bytes(np.zeros(1, np.uint8))[:128].replace(b"(1,)", b"%(size)")
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = squeeze.compress(last) + squeeze.flush()

    def entry(name, packed_size, data):
        return struct.pack(
            "<HHHHHIIIHH", 20, 0, zipfile.ZIP_DEFLATED, 0, 33, zlib.crc32(data), packed_size, len(data), len(name), 0
        )

    inner = b"PK\3\4" + entry(b"b.npy", len(packed), last) + b"b.npy"
    size = str(len(inner) + len(last))
    quoted = first_header.replace(b"%(size)", f"({size},)".encode()).replace(b" " * (len(size) - 1) + b"\n", b"\n")
    data = quoted[:128] + inner + last
    block = b"\0" + struct.pack("<HH", 128 + len(inner), 0xFFFF ^ (128 + len(inner))) + quoted[:128] + inner
    outer = b"PK\3\4" + entry(b"a.npy", len(block) + len(packed), data) + b"a.npy"
    body = outer + block + packed
    at = {b"a.npy": (0, len(block) + len(packed), data), b"b.npy": (len(body) - len(packed) - 35, len(packed), last)}
    listed = b"".join(
        b"PK\1\2\x14\0" + entry(name, size, whole) + struct.pack("<HHHII", 0, 0, 0, 0, start) + name
        for name, (start, size, whole) in at.items()
    )
    path = tmp_path / "x.npz"
    path.write_bytes(body + listed + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 2, 2, len(listed), len(body), 0))
    with zipfile.ZipFile(path) as archive:
        assert [each.filename for each in archive.infolist()] == ["a.npy", "b.npy"]
    with pytest.raises(tw.FileFormatError, match=r"share|[Oo]verlap"):
        open_tensors(path)
