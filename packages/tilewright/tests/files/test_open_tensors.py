# SPDX-License-Identifier: Apache-2.0
"""Tensors of files of every kind, through one interface."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files import Tensorbin, Topology, open_tensors, write_tensorbin
from tilewright.files.safetensors import SafetensorsEntry, encode_header
from tilewright.files.spec_json import spec_to_json
from tilewright.memory import TensorSpec, from_bytes, to_bytes

from ..cases import examples
from ..memory.strategies import specs
from .samples import KINDS, arrays, safetensors_bytes, same_bits, write_safetensors
from .test_boxes import boxes_of

NUMPY_KINDS = tuple(dtype for dtype in KINDS.values() if np.dtype(dtype).kind in "biuf" and np.dtype(dtype).num < 24)


def check_tensor(found, array, data):
    """Assert that a stored tensor is this array, whole and in a random box."""
    assert found.shape == array.shape
    same_bits(found.read(), array)
    box = data.draw(boxes_of(array.shape))
    same_bits(found.read(box), array[box.slices])


@examples(60)
@given(st.dictionaries(st.text("abcé ", max_size=5), arrays(), max_size=4), st.data())
def test_safetensors(held, data):
    with tempfile.TemporaryDirectory() as folder:
        path = write_safetensors(Path(folder, "m.safetensors"), held, metadata={"format": "pt"})
        found = open_tensors(path)
        assert set(found) == set(held)
        assert found.metadata == {"format": "pt"}
        for name, array in held.items():
            check_tensor(found[name], array, data)
            assert found[name].raw.tobytes() == array.tobytes()
            assert found[name].format == tw.format_of(array.dtype)


def test_kinds_without_a_format_still_have_bytes(tmp_path):
    def as_fp4(listed):
        listed["x"] |= {"dtype": "F4", "shape": [2, 3]}

    path = write_safetensors(tmp_path / "m.safetensors", {"x": np.array([1, 2, 3], np.uint8)}, header=as_fp4)
    found = open_tensors(path)["x"]
    assert (found.kind, found.format, found.raw.tolist()) == ("F4", None, [1, 2, 3])
    with pytest.raises(tw.FormatError, match="F4"):
        found.read()


@examples(60)
@given(arrays(NUMPY_KINDS), st.booleans(), st.booleans(), st.data())
def test_npy(array, fortran, big_endian, data):
    stored = array.astype(array.dtype.newbyteorder(">")) if big_endian else array
    stored = np.array(stored, order="F") if fortran else stored
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "a%2Fb.npy"), stored)
        found = open_tensors(Path(folder, "a%2Fb.npy"))
        assert list(found) == ["a/b"]
        check_tensor(found["a/b"], array, data)


@examples(60)
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), arrays(NUMPY_KINDS), min_size=1), st.booleans(), st.data()
)
def test_npz(held, compressed, data):
    with tempfile.TemporaryDirectory() as folder:
        (np.savez_compressed if compressed else np.savez)(Path(folder, "x.npz"), **held)
        found = open_tensors(Path(folder, "x.npz"))
        assert set(found) == set(held)
        for name, array in held.items():
            check_tensor(found[name], array, data)


@examples(60)
@given(specs(), st.data())
def test_tensorbin_and_tiled_safetensors(spec, data):
    values = (np.arange(int(np.prod(spec.shape.logical))) % 200).astype(np.float32).reshape(spec.shape.logical)
    pages = to_bytes(values, spec)
    values = from_bytes(pages, spec)
    ours = {"tilewright": json.dumps({"tensors": {"x": {"spec": spec_to_json(spec)}}})}
    with tempfile.TemporaryDirectory() as folder:
        write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(spec, pages))
        Path(folder, "x.safetensors").write_bytes(
            encode_header([SafetensorsEntry("x", "U8", (spec.nbytes,), 0, spec.nbytes)], ours) + pages.tobytes()
        )
        for name in ("x.tensorbin", "x.safetensors"):
            found = open_tensors(Path(folder, name))["x"]
            check_tensor(found, values, data)
            assert found.raw.tobytes() == pages.tobytes()
        assert found.spec == spec


@examples(60)
@given(st.integers(1, 3), st.integers(1, 3), st.data())
def test_a_tensorbin_of_a_mesh_is_the_whole_tensor(down, across, data):
    spec = TensorSpec((5, 40), "uint16", "tile")
    devices = [(y, x) for y in range(down) for x in range(across)]
    whole = np.arange(5 * down * 40 * across, dtype=np.uint16).reshape(5 * down, 40 * across)
    topology = Topology((down, across), (0, 1), tuple(devices))
    parts = {at: to_bytes(whole[topology.device_window(k, (5, 40))], spec) for k, at in enumerate(devices)}
    with tempfile.TemporaryDirectory() as folder:
        write_tensorbin(Path(folder, "x.tensorbin"), Tensorbin(spec, parts, (down, across), topology))
        check_tensor(open_tensors(Path(folder, "x.tensorbin"))["x"], whole, data)


def sharded(folder, homes):
    """Write a sharded checkpoint: for each file the arrays in it."""
    for name, held in homes.items():
        write_safetensors(folder / name, held)
    weight_map = {tensor: name for name, held in homes.items() for tensor in held}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": weight_map}))
    return index


def test_sharded_checkpoints(tmp_path):
    a, b, c = np.arange(3), np.ones((2, 2), np.float32), np.zeros(4, np.uint8)
    index = sharded(tmp_path, {"model-1.safetensors": {"a": a, "b": b}, "model-2.safetensors": {"c": c}})
    write_safetensors(tmp_path / "other.safetensors", {"a": b})  # not of this checkpoint
    for path in (index, tmp_path):
        found = open_tensors(path)
        assert (found.kind, list(found)) == ("sharded safetensors", ["a", "b", "c"])
        for name, array in (("a", a), ("b", b), ("c", c)):
            same_bits(found[name].read(), array)
    assert [path.name for path in found.files] == ["model-1.safetensors", "model-2.safetensors"]


@pytest.mark.parametrize(
    "home", ["../m.safetensors", "/m.safetensors", "sub/m.safetensors", "..", "", "m.bin", "gone.safetensors"]
)
def test_an_index_that_leads_elsewhere_is_refused(tmp_path, home):
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    for place in (tmp_path, folder / "sub"):
        write_safetensors(place / "m.safetensors", {"a": np.arange(3)})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": home}}))
    with pytest.raises(tw.FileFormatError):
        open_tensors(folder)


def test_links_out_of_a_directory_are_refused(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    outside = write_safetensors(tmp_path / "m.safetensors", {"a": np.arange(3)})
    (folder / "m.safetensors").symlink_to(outside)
    with pytest.raises(tw.FileFormatError, match=r"link .* --follow-links \(in Python, follow_symlinks=True\)"):
        open_tensors(folder)
    assert list(open_tensors(folder, follow_symlinks=True)) == ["a"]
    assert list(open_tensors(folder / "m.safetensors")) == ["a"]  # the user named it


def test_links_inside_a_directory_are_followed(tmp_path):
    write_safetensors(tmp_path / "blob", {"a": np.arange(3)})
    (tmp_path / "m.safetensors").symlink_to("blob")
    assert list(open_tensors(tmp_path)) == ["a"]


@pytest.mark.parametrize("length", [240, 5000])
def test_an_index_of_names_that_no_file_can_have_is_refused(tmp_path, length):
    """Which the system says before anything is looked for; found by make fuzz-files."""
    home = "m" * length + ".safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": home}}))
    with pytest.raises(tw.FileFormatError) as caught:
        open_tensors(tmp_path)
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


def test_links_that_lead_in_a_circle_are_refused(tmp_path):
    (tmp_path / "m.safetensors").symlink_to("n.safetensors")
    (tmp_path / "n.safetensors").symlink_to("m.safetensors")
    with pytest.raises(tw.FileFormatError, match=r"m\.safetensors.*Too many levels"):
        open_tensors(tmp_path)


def test_links_to_nothing_are_no_files_and_those_that_lead_out_are_refused_first(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "m.safetensors").symlink_to("gone")
    with pytest.raises(FileNotFoundError):
        open_tensors(folder)
    (folder / "n.safetensors").symlink_to(tmp_path / "gone")
    with pytest.raises(tw.FileFormatError, match="points outside of the directory"):
        open_tensors(folder)


def test_a_directory_of_files(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    np.savez(tmp_path / "y.npz", y=np.arange(4))
    (tmp_path / ".hidden.npy").write_bytes(b"")
    (tmp_path / "readme.txt").write_text("no tensor")
    assert {name: each.shape for name, each in open_tensors(tmp_path).items()} == {"x": (3,), "y": (4,)}
    np.savez(tmp_path / "z.npz", x=np.arange(4))
    with pytest.raises(tw.FileFormatError, match="twice"):
        open_tensors(tmp_path)


def test_what_is_no_file_of_tensors(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_tensors(tmp_path / "gone.safetensors")
    with pytest.raises(FileNotFoundError):
        open_tensors(tmp_path / "gone.txt")
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(tw.FileFormatError, match="suffix"):
        open_tensors(tmp_path / "x.txt")
    with pytest.raises(tw.FileFormatError, match="no tensor files"):
        open_tensors(tmp_path)
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(tw.FileFormatError, match="regular"):
        open_tensors(tmp_path / "pipe.npy")


def test_a_file_that_changes_is_noticed(tmp_path):
    path = write_safetensors(tmp_path / "m.safetensors", {"a": np.arange(3)})
    found = open_tensors(path)
    path.write_bytes(safetensors_bytes({"a": np.arange(30)})[:100])
    with pytest.raises(tw.FileFormatError, match="changed"):
        found["a"].read()


def test_a_missing_name_is_named(tmp_path):
    path = write_safetensors(tmp_path / "m.safetensors", {"encoder.weight": np.arange(3)})
    with pytest.raises(KeyError, match=r"did you mean 'encoder\.weight'"):
        open_tensors(path)["encoder.weights"]


def test_fields_of_a_header_that_nobody_knows_are_refused(tmp_path):
    header = b'{"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4], "scale": 2}}'
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"abcd")
    with pytest.raises(tw.FileFormatError, match="'x' has unknown keys 'scale'"):
        tw.open_tensors(path)
