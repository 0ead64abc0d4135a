# SPDX-License-Identifier: Apache-2.0
"""Tensorbin files: those that ttnn wrote, and those that we write."""

import io
import json
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files import Tensorbin, Topology, parse_tensorbin, read_tensorbin, tensorbin, write_tensorbin
from tilewright.files.tensorbin import TensorbinHeader, write_tensorbin_to
from tilewright.memory import TensorSpec, to_bytes

from ..cases import examples
from ..memory.strategies import specs

FOLDER = Path(__file__).parent.parent / "golden" / "ttnn"
RECORDED = json.loads((FOLDER / "tensorbin.json").read_text(encoding="utf-8"))


def written(held):
    file = io.BytesIO()
    write_tensorbin_to(file, held)
    return file.getvalue()


def alike(one, other):
    assert one.spec == other.spec
    assert (one.mesh_shape, one.topology) == (other.mesh_shape, other.topology)
    assert one.shards.keys() == other.shards.keys()
    for device in one.shards:
        np.testing.assert_array_equal(one.pages(device), other.pages(device))


def corners(cores):
    return [[*each.start, *each.end] for each in cores]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: Path(case["file"]).stem)
def test_files_of_ttnn_are_read(case):
    held = read_tensorbin(FOLDER / case["file"])
    spec, config = held.spec, case["memory_config"]
    assert spec.shape == case["shape"]
    assert list(spec.padded_shape) == case["padded_shape"]
    assert (spec.dtype.name, spec.page_layout.name) == (case["data_type"], case["layout"])
    assert list(spec.tile.shape) == case.get("tile", [32, 32])
    assert spec.tile.transpose == case.get("transpose_tile", False)
    assert (spec.memory.memory_layout.name, spec.memory.buffer_type.name) == (
        config["memory_layout"],
        config["buffer_type"],
    )
    assert spec.memory.made_with_nd == config["created_with_nd_shard_spec"]
    for form, found in (("shard_spec", spec.memory.shard_spec), ("nd_shard_spec", spec.memory.nd_shard_spec)):
        assert (config.get(form) is None) == (found is None)
    assert list(held.mesh_shape) == case["mesh_shape"]
    assert [list(at) for at in held.topology.coordinates] == case["topology"]["mesh_coords"]
    np.testing.assert_array_equal(held.array().astype(np.float64), np.array(case["values"]))


@pytest.mark.parametrize("path", sorted((FOLDER / "tensorbin").glob("*.tensorbin")), ids=lambda path: path.stem)
def test_writing_what_was_read_gives_the_same_content(path, tmp_path):
    held = read_tensorbin(path)
    write_tensorbin(tmp_path / "again.tensorbin", held)
    alike(read_tensorbin(tmp_path / "again.tensorbin"), held)
    assert [each.name for each in tmp_path.iterdir()] == ["again.tensorbin"]


def test_meshes_of_ttnn_are_read():
    # written by ttnn 0.81.1: from_host_shards of four parts that differ, and of one part three times
    different = read_tensorbin(FOLDER / "tensorbin" / "mesh_2x2.tensorbin")
    part = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(different.array((1, 0)), part + 200)
    np.testing.assert_array_equal(different.array(), np.concatenate([part + 100 * k for k in range(4)]))
    same = read_tensorbin(FOLDER / "tensorbin" / "mesh_1x3_same.tensorbin")
    assert same.pages((0, 0)).ctypes.data == same.pages((0, 2)).ctypes.data
    assert len(written(same)) < 2 * same.spec.nbytes  # the part is stored once


@given(specs(), st.integers(0, 2**32 - 1))
def test_every_spec_survives_a_file(spec, seed):
    spec = spec.with_chip(None)
    values = np.random.default_rng(seed).integers(0, 100, spec.shape.logical).astype(np.float32)
    held = Tensorbin(spec, to_bytes(values, spec))
    data = written(held)
    header = int.from_bytes(data[:8], "little")
    assert (8 + header) % 64 == 0
    assert len(data) == 8 + header + spec.nbytes
    alike(parse_tensorbin(data), held)


@pytest.mark.parametrize("alignment", [(24, 6, 9), (2, 16), (64,)])
def test_alignment_survives_a_file(alignment):
    spec = TensorSpec((3, 5, 7), "int32", alignment=alignment)
    held = Tensorbin(spec, to_bytes(np.arange(105).reshape(3, 5, 7), spec))
    again = parse_tensorbin(written(held))
    assert again.spec.alignment == alignment
    alike(again, held)


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from([None, 0, 1])), min_size=1, max_size=3))
def test_meshes_are_gathered(dimensions):
    distribution = tuple(count for count, _ in dimensions)
    placements = tuple(cut for _, cut in dimensions)
    devices = [tuple(map(int, at)) for at in np.ndindex(*distribution)]
    topology = Topology(distribution, placements, tuple(devices))
    whole = np.arange(np.prod(topology.global_shape((2, 3)))).reshape(topology.global_shape((2, 3)))
    spec = TensorSpec((2, 3), "int32")
    parts = {at: to_bytes(whole[topology.device_window(k, (2, 3))], spec) for k, at in enumerate(devices)}
    data = written(Tensorbin(spec, parts, distribution, topology))
    held = parse_tensorbin(data)
    np.testing.assert_array_equal(held.array(), whole)
    # replicas are stored once, as ttnn does
    stored = prod(count for count, cut in dimensions if cut is not None)
    assert (len(data) - (64 * (stored - 1) + spec.nbytes)) % 64 == 0  # a header, and nothing else
    assert len({part.ctypes.data for part in held.shards.values()}) == stored


def test_replicas_hold_the_same_bytes():
    spec, devices = TensorSpec((2,), "uint8"), ((0, 0), (0, 1))
    with pytest.raises(tw.LayoutError, match=r"\(0, 0\) and \(0, 1\) hold different bytes; give a topology"):
        Tensorbin(spec, {(0, 0): b"ab", (0, 1): b"cd"}, (1, 2))
    assert Tensorbin(spec, {(0, 0): b"ab", (0, 1): b"ab"}, (1, 2)).array().tolist() == [97, 98]
    lying = Tensorbin(spec, {(0, 0): b"ab", (0, 1): b"cd"}, (1, 2), Topology((2,), (None,), devices))
    with pytest.raises(tw.LayoutError, match="are replicas but hold different bytes"):
        written(lying)


@examples(25)
@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from([None, 0, 1])), min_size=1, max_size=2), st.data())
def test_everyone_agrees_about_a_mesh(tmp_path_factory, dimensions, data):
    """inspect, explain and diff speak of the whole tensor, and of the part of a device as such."""
    folder = tmp_path_factory.mktemp("mesh")
    topology = Topology(*map(tuple, zip(*dimensions, strict=True)), tuple(np.ndindex(*(n for n, _ in dimensions))))
    spec = TensorSpec((5, 40), "int32", "tile")
    shape = topology.global_shape((5, 40))
    whole = np.arange(prod(shape), dtype=np.int32).reshape(shape)
    boxes = [topology.device_box(k, (5, 40)) for k in range(len(topology.coordinates))]
    parts = {at: to_bytes(whole[box.slices], spec) for at, box in zip(topology.coordinates, boxes, strict=True)}
    write_tensorbin(folder / "x.tensorbin", Tensorbin(spec, parts, topology.distribution, topology))
    np.save(folder / "x.npy", whole)

    found = tw.inspect(folder / "x.tensorbin")
    facts = found.facts("x")
    assert facts.shape == shape
    assert facts.spec == spec
    several = len(parts) > 1
    assert (facts.mesh is not None) == several
    if several:
        assert facts.mesh.topology == topology
        assert facts.mesh.part_shape == (5, 40)
        assert "devices" in str(facts)
        assert facts.to_json()["mesh"]["placements"] == list(topology.placements)
    at = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    reading = found.element("x", at)
    assert reading.value == whole[at]
    assert int.from_bytes((folder / "x.tensorbin").read_bytes()[reading.offset :][:4], "little") == whole[at]
    holders = [
        device
        for k, device in enumerate(topology.coordinates)
        if whole[topology.device_window(k, (5, 40))][reading.explanation.where.coordinate] == whole[at]
    ]
    assert list(reading.devices) == (holders if several else [])
    with pytest.raises(tw.errors.CoordinateError, match="outside shape"):
        found.element("x", shape)
    assert tw.diff(folder / "x.npy", folder / "x.tensorbin").same
    changed = whole.copy()
    changed[at] += 1
    np.save(folder / "x.npy", changed)
    assert not tw.diff(folder / "x.npy", folder / "x.tensorbin").same


def test_data_are_mapped_not_read(tmp_path):
    write_tensorbin(tmp_path / "x.tensorbin", Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    pages = read_tensorbin(tmp_path / "x.tensorbin").pages()
    assert not pages.flags.owndata
    assert not pages.flags.writeable


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.tensorbin"
    write_tensorbin(path, Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    before = path.read_bytes()
    for bad in (TensorSpec((4,), "float8_e4m3"), TensorSpec((0,), "uint8")):
        with pytest.raises((tw.FormatError, tw.LayoutError)):
            write_tensorbin(path, Tensorbin(bad, bytes(bad.nbytes)))
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_questions_that_have_no_answer():
    spec = TensorSpec((2,), "uint8")
    with pytest.raises(tw.LayoutError, match="4 contiguous bytes"):
        Tensorbin(TensorSpec((4,), "uint8"), b"abc")
    with pytest.raises(tw.LayoutError, match="outside the mesh"):
        Tensorbin(spec, {(0, 3): b"ab"})
    halves = Tensorbin(spec, {(0, 0): b"ab", (0, 1): b"cd"}, (1, 2), Topology((2,), (0,), ((0, 0), (0, 1))))
    with pytest.raises(tw.LayoutError, match="choose one of"):
        halves.pages()
    with pytest.raises(tw.LayoutError, match=r"device \(0, 2\) is not on a mesh of 1 x 2 devices"):
        halves.pages((0, 2))
    lost = Tensorbin(spec, {(0, 0): b"ab", (0, 1): b"cd"}, (1, 2), Topology((2,), (0,), ((0, 0),)))
    with pytest.raises(tw.LayoutError, match="2 parts, but there are 1 devices"):
        lost.array()
    with pytest.raises(tw.LayoutError, match="cuts dimension 5"):
        Topology((2,), (5,), ()).global_shape((2, 3))


def test_a_file_without_shards_is_refused(tmp_path):
    header = TensorbinHeader(TensorSpec((4,), "uint8"), (1, 1), {}, Topology.replicated([]))
    path = tmp_path / "x.tensorbin"
    path.write_bytes(tensorbin._encode_header_block(header))
    with pytest.raises(tw.FileFormatError, match="the file has no shards"):
        parse_tensorbin(path.read_bytes())
    with pytest.raises(tw.FileFormatError, match="the file has no shards"):
        tw.open_tensors(path)


def test_bytes_that_no_shard_holds_are_refused():
    data = written(Tensorbin(TensorSpec((4,), "uint8"), b"abcd"))
    with pytest.raises(tw.FileFormatError, match="the shards end at byte 4, but there are 8 bytes"):
        parse_tensorbin(data + b"more")
