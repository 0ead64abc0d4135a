# SPDX-License-Identifier: Apache-2.0
"""Tensors that a mesh of devices shares: which device holds what, in memory, in files, and in what is said of them."""

import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright import views
from tilewright.files import Mesh, Tensorbin, Topology
from tilewright.memory.mesh import format_devices


@st.composite
def meshes(draw):
    """Return a mesh, and the shape of the tensor that its devices share."""
    shape = draw(st.sampled_from([(1, 2), (2, 2), (2, 4), (1, 8), (3, 1), (2, 1)]))
    cuts = draw(st.one_of(st.none(), st.integers(-2, 1), st.tuples(*[st.sampled_from([None, 0, 1, -1])] * 2)))
    base = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    devices = shape[0] * shape[1]
    return Mesh.dividing(tuple(n * devices * devices for n in base), shape, cuts)


@given(meshes(), st.data())
@settings(max_examples=40)
def test_every_element_is_where_the_mesh_says(mesh, data):
    at = tuple(data.draw(st.integers(0, n - 1)) for n in mesh.global_shape)
    devices, inside = mesh.locate(at)
    assert all(0 <= c < n for c, n in zip(inside, mesh.part_shape, strict=True))
    for device in product(*map(range, mesh.shape)):
        window = mesh.window_of(device)
        holds = all(a <= c < b for a, c, b in zip(window.offset, at, window.end, strict=True))
        assert holds == (device in devices), (mesh, at, device)
        if holds:
            assert tuple(a + c for a, c in zip(window.offset, inside, strict=True)) == at
    assert sum(map(len, mesh.windows().values())) == mesh.shape[0] * mesh.shape[1]
    assert sum(box.size for box in mesh.windows()) == np.prod(mesh.global_shape)


@given(meshes(), st.sampled_from(["bfloat16", "bfloat8_b", "uint8"]))
@settings(max_examples=15)
def test_a_file_of_a_mesh_is_read_whole_and_by_device(mesh, dtype):
    if np.prod(mesh.global_shape) > 1 << 18:
        return
    values = np.random.default_rng(0).integers(0, 100, mesh.global_shape).astype(np.float32)
    values = values.astype(np.uint8) if dtype == "uint8" else values
    cuts = mesh.topology.placements
    cut = None if mesh.topology == Topology.replicated(mesh.topology.coordinates) else list(cuts)
    cut = cut[0] if cut is not None and len(mesh.topology.distribution) == 1 else cut
    with tempfile.TemporaryDirectory() as folder:
        tw.convert({"x": values}, f"{folder}/out", dtype=dtype, mesh=mesh.shape, cut=cut)
        stored = tw.open_tensors(f"{folder}/out")["x"]
        assert stored.mesh == mesh
        whole = stored.read()
        assert whole.shape == mesh.global_shape
        size = Path(folder, "out", "x.tensorbin").stat().st_size
        assert len(mesh.windows()) * stored.spec.nbytes <= size < (len(mesh.windows()) + 1) * stored.spec.nbytes + 4096
        again = tw.read_tensorbin(f"{folder}/out/x.tensorbin")
        for number, device in enumerate(product(*map(range, mesh.shape))):
            part = whole[mesh.window_of(device).slices]
            assert np.array_equal(stored.on_device(device).read(), part)
            assert np.array_equal(stored.on_device(number).read(), part)
            assert np.array_equal(again.array(number), part)


def four_devices(folder):
    """Write a tensor that four devices share, two replicas of two parts, and a bias that all of them hold."""
    rng = np.random.default_rng(1)
    arrays = {"w": rng.standard_normal((64, 96)).astype(np.float32), "b": np.arange(96, dtype=np.float32)}
    rules = {"w": {"mesh": [2, 2], "cut": [None, 1], "dtype": "bfloat8_b"}, "b": {"mesh": [2, 2]}}
    tw.convert(arrays, folder / "out", rules=rules)
    return folder / "out", arrays


def test_devices_are_named_by_coordinate_or_number():
    mesh = Mesh.dividing((64, 96), (2, 4), (None, 1))
    assert mesh.coordinate_of(6) == mesh.coordinate_of([1, 2]) == (1, 2)
    for wrong in (8, -1, (2, 0), (0,), (0, 0, 0)):
        with pytest.raises(tw.LayoutError, match=r"not on a mesh of 2 x 4 devices; use \(0, 0\) to \(1, 3\)"):
            mesh.coordinate_of(wrong)
    partial = Mesh((1, 4), Topology((2,), (0,), ((0, 0), (0, 1))), (32, 64))
    with pytest.raises(tw.LayoutError, match=r"device \(0, 3\) holds no part; these do: \(0, 0\), \(0, 1\)"):
        partial.window_of(3)
    assert format_devices([(0, k) for k in range(9)]).endswith("(0, 7) and 1 other")
    assert mesh.summary == "2x4, 4 along 1"
    assert str(Mesh.dividing((64, 96), (1, 2), (None, 1))) == "1 x 2 devices, 2 along dimension 1; each holds 64 x 48"


def test_inspection_says_what_each_device_holds(tmp_path):
    out, _ = four_devices(tmp_path)
    found = tw.inspect(out)
    facts = found.facts("w")
    assert facts.shape == (64, 96)
    assert facts.spec.shape.logical == facts.mesh.part_shape == (64, 48)
    assert [part.devices for part in facts.parts] == [((0, 0), (1, 0)), ((0, 1), (1, 1))]
    assert facts.parts[0].byte_range[1] == facts.parts[1].byte_range[0]  # one payload per part, not per device
    assert "(0, 1), (1, 1)  [0:64, 48:96]" in str(facts)
    assert "2x2, 2 along 1" in str(found)
    assert "2x2, replicated" in str(found)
    assert facts.to_json()["parts"][1]["start"] == [0, 48]
    one = tw.inspect(out, device=(1, 1)).facts("w")
    assert (one.shape, one.mesh, one.byte_range) == ((64, 48), None, facts.parts[1].byte_range)
    with pytest.raises(tw.LayoutError, match="not on a mesh of 2 x 2"):
        tw.inspect(out, device=4)


def test_explanations_name_devices_and_bytes(tmp_path):
    out, _ = four_devices(tmp_path)
    stored = tw.open_tensors(out)["w"]
    found = tw.explain(stored, (33, 50))
    assert found.devices == ((0, 1), (1, 1))
    assert found.explanation.where.coordinate == (33, 2)
    steps = dict(found.steps())
    assert steps["element"] == "(33, 50) of [64, 96]"
    assert steps["devices"].startswith("(0, 1), (1, 1) of 2 x 2 devices")
    assert steps["part"] == "element (33, 2) of [64, 48]"
    assert found.value == stored.read()[33, 50]
    inside = tw.explain(stored, (33, 2), device=3)
    assert (inside.offset, inside.value) == (found.offset, found.value)
    spread = found.to_json()
    assert (spread["tensor_coordinate"], spread["devices"]) == ([33, 50], [[0, 1], [1, 1]])
    for device in ((0, 1), (1, 1)):
        with pytest.raises(tw.TilewrightError):
            tw.explain(stored, (33, 50), device=device)  # outside its part
    with pytest.raises(tw.MemoryConfigError, match="for tensors in files"):
        tw.explain(tw.TensorSpec((4, 4)), (0, 0), device=0)


def test_the_file_offset_of_an_element_is_that_of_its_byte(tmp_path):
    values = np.arange(64 * 96, dtype=np.uint8).reshape(64, 96)
    tw.convert({"x": values}, tmp_path / "out", mesh=[1, 2], cut=0, layout="row_major")
    stored = tw.open_tensors(tmp_path / "out")["x"]
    data = stored.path.read_bytes()
    for at in ((0, 0), (31, 95), (32, 0), (63, 17)):
        assert data[tw.explain(stored, at).offset] == values[at], at


def test_a_tensor_that_no_mesh_shares_refuses_devices(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 4)))
    opened = tw.open_tensors(tmp_path)
    for ask in (
        lambda: opened.on_device(0),
        lambda: opened["x"].on_device((0, 0)),
        lambda: tw.inspect(tmp_path, device=0),
    ):
        with pytest.raises(tw.LayoutError, match="leave out device"):
            ask()


def test_tensors_that_no_mesh_shares_are_the_same_on_every_device(tmp_path):
    tw.convert(
        {"w": np.zeros((64, 64), np.float32), "n": np.ones(64, np.float32)},
        tmp_path / "out",
        rules={"w": {"mesh": [1, 2], "cut": 1}},
    )
    held = tw.open_tensors(tmp_path / "out").on_device((0, 1))
    assert (held["w"].shape, held["n"].shape) == ((64, 32), (64,))


def test_a_difference_is_on_a_device(tmp_path):
    out, arrays = four_devices(tmp_path)
    assert tw.diff(arrays, tw.open_tensors(out), ulp=1).same
    changed = {**arrays, "w": arrays["w"].copy()}
    changed["w"][40, 70] += 10
    found = tw.diff(changed, tw.open_tensors(out), ulp=1)["w"]
    assert (found.worst.coordinate, found.worst.devices, found.worst.tile) == ((40, 70), ((0, 1), (1, 1)), (1, 0))
    assert "on devices (0, 1), (1, 1), in tile (1, 0)" in str(found.worst)
    assert tw.diff(changed, tw.open_tensors(out), ulp=1, device=(1, 0)).same
    there = tw.diff(changed, tw.open_tensors(out), ulp=1, device=(1, 1))["w"]
    assert (there.same, there.count, there.worst.coordinate) == (False, 64 * 48, (40, 22))
    np.savez(tmp_path / "m.npz", **arrays)
    assert tw.diff(tmp_path / "m.npz", out, ulp=1, device=3).same
    with pytest.raises(tw.LayoutError, match="no tensor is on a mesh"):
        tw.diff(arrays, arrays, device=0)


def test_a_crop_reads_as_the_box(tmp_path):
    values = np.asfortranarray(np.arange(60 * 70, dtype=np.int32).reshape(60, 70))
    np.save(tmp_path / "x.npy", values)
    box = tw.Box((3, 40), (20, 25))
    assert np.array_equal(tw.open_tensors(tmp_path)["x"].crop(box).read(), values[box.slices])
    tw.convert({"x": values}, tmp_path / "out")
    assert np.array_equal(tw.open_tensors(tmp_path / "out")["x"].crop(box).read((slice(2, 9),)), values[5:12, 40:65])


@pytest.mark.parametrize("dtype", ["bfloat8_b", "float32"])
def test_a_tensorbin_in_memory_is_compared_explained_and_drawn(tmp_path, dtype):
    values = np.random.default_rng(5).standard_normal((64, 96)).astype(np.float32)
    tw.convert({"x": values}, tmp_path / "out", dtype=dtype, mesh=[2, 2], cut=[None, 1])
    held = tw.read_tensorbin(tmp_path / "out" / "x.tensorbin")
    assert tw.diff(values, held, ulp=1).same
    assert tw.diff(values, held, ulp=1, device=3).same
    changed = values.copy()
    changed[40, 70] += 10
    assert tw.diff(changed, held, ulp=1).tensors[0].worst.devices == ((0, 1), (1, 1))
    found = tw.explain(held, (33, 50))
    stored = tw.explain(tw.open_tensors(tmp_path / "out")["x"], (33, 50))
    assert (found.devices, found.explanation.where.page) == (stored.devices, stored.explanation.where.page)
    assert found.to_json()["tensor_coordinate"] == [33, 50]
    assert tw.explain(held, (33, 2), device=(0, 1)).where == found.explanation.where
    with pytest.raises(tw.LayoutError, match="not on a mesh of 2 x 2"):
        tw.explain(held, (33, 2), device=4)
    with pytest.raises(tw.TilewrightError):
        tw.explain(held, (64, 0))
    assert tw.fit(held, "n150").mesh == (2, 2)
    for subject in (held, found):
        assert views.scene_of(subject).panels[0].title == "devices and their parts"
    assert views.scene_of(Tensorbin(held.spec, held.pages(0))).panels


def test_a_tensorbin_in_memory_names_its_devices():
    halves = Tensorbin(
        tw.TensorSpec((2,), "uint8"), {(0, 0): b"ab", (0, 1): b"cd"}, (1, 2), Topology((2,), (0,), ((0, 0), (0, 1)))
    )
    assert halves.mesh.global_shape == (4,)
    assert halves.array(1).tolist() == halves.array((0, 1)).tolist() == [99, 100]


@pytest.mark.parametrize(
    ("topology", "stored"),
    [
        (Topology.replicated(tuple(product(range(2), range(2)))), 1),
        (Topology((2, 2), (None, 1), tuple(product(range(2), range(2)))), 2),
        (Topology((2, 2), (0, 1), tuple(product(range(2), range(2)))), 4),
        (Topology((4,), (0,), tuple(product(range(2), range(2)))), 4),
    ],
)
def test_equal_parts_are_written_once(tmp_path, topology, stored):
    spec = tw.TensorSpec((32, 64), "bfloat8_b")
    mesh = Mesh((2, 2), topology, (32, 64))
    pages = {}
    for number, (_, devices) in enumerate(mesh.windows().items()):
        for device in devices:  # every device with bytes of its own, as a program may have them
            pages[device] = tw.to_bytes(np.full((32, 64), number, np.float32), spec).copy()
    tw.write_tensorbin(tmp_path / "x.tensorbin", Tensorbin(spec, pages, (2, 2), topology))
    data = (tmp_path / "x.tensorbin").read_bytes()
    assert len(data) - 8 - int.from_bytes(data[:8], "little") == stored * spec.nbytes
    again = tw.read_tensorbin(tmp_path / "x.tensorbin")
    assert all(bytes(again.pages(device)) == bytes(page) for device, page in pages.items())


def test_a_mesh_in_a_manifest_fits_its_spec():
    data = Mesh.dividing((64, 64), (1, 2), 1).to_json()
    assert Mesh.from_json(data, (64, 32)).shape == (1, 2)
    with pytest.raises(tw.FileFormatError, match=r"a part of the mesh has shape \[64, 64\], but its spec \[64, 32\]"):
        Mesh.from_json(data | {"part_shape": [64, 64]}, (64, 32))
    with pytest.raises(tw.FileFormatError, match="unknown keys 'colour'"):
        Mesh.from_json(data | {"colour": 3}, (64, 32))
