# SPDX-License-Identifier: Apache-2.0
"""Meshes of devices, and tensors on them: as recorded from ttnn 0.81.1, and what the simulation adds."""

import copy
import json
import lzma

import numpy as np
import pytest

import tilewright as tw
from tilewright import ttnn

from ..memory.golden import FOLDER
from .mesh_questions import COUNT, answer

RECORDS = json.loads(lzma.decompress((FOLDER / "meshes.json.xz").read_bytes()))


def test_recorded_meshes():
    """Mappers, topologies, bytes of each part, and composers, cuts that are refused among them."""

    def pages(tensor, at):
        return np.asarray(tensor.parts.by_device[tuple(at)].pages).tobytes()

    refused = 0
    for record in RECORDS:
        mine = answer(ttnn, record["question"], ttnn.MeshShape, pages, (tw.LayoutError,))
        assert mine == record["answer"], record["question"]
        refused += mine["whole"] is None
    assert len(RECORDS) == COUNT
    assert 20 < refused < 200


@pytest.fixture
def mesh():
    """Return a mesh of 2 x 4 devices."""
    with ttnn.create_mesh_device(ttnn.MeshShape(2, 4)) as opened:
        yield opened


VALUES = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)


def test_shapes_and_coordinates_are_tuples_with_the_names_of_ttnn():
    shape, at = ttnn.MeshShape(2, 4), ttnn.MeshCoordinate([1, 2])
    assert (repr(shape), repr(at)) == ("MeshShape([2, 4])", "MeshCoordinate([1, 2])")
    assert (shape, tuple(shape), shape.mesh_size(), shape.dims(), at[1]) == ((2, 4), (2, 4), 8, 2, 2)
    configs = (ttnn.MeshMapperConfig(None, 1, shape), ttnn.MeshComposerConfig([0, 1]))
    for value in (shape, at, ttnn.PlacementShard(1), ttnn.PlacementReplicate(), *configs):
        assert copy.deepcopy(value) == value
        assert hash(copy.deepcopy(value)) == hash(value)
    assert configs[0] == ttnn.MeshMapperConfig([ttnn.PlacementReplicate(), ttnn.PlacementShard(1)], (2, 4))
    assert configs[0] != ttnn.MeshMapperConfig(None, 1)
    for wrong in ([], [-1, 2], [1.5]):
        with pytest.raises((tw.LayoutError, TypeError), match="MeshShape"):
            ttnn.MeshShape(wrong)


def test_each_device_has_its_own_memory(mesh):
    tensor = ttnn.from_torch(VALUES, device=mesh, mesh_mapper=ttnn.ShardTensor2dMesh(mesh, (2, 4), (0, 1)))
    other = ttnn.zeros((32, 32), device=mesh)
    assert tensor.buffer_address() < other.buffer_address()
    for at, part in zip(tensor.device_coords(), ttnn.get_device_tensors(tensor), strict=True):
        window = VALUES[32 * at[0] :, 32 * at[1] :][:32, :32]
        assert part.to_list() == window.tolist()
        device = mesh.get_device(at)
        assert [block.address for block in device.memory_view("dram").allocations] == [
            tensor.buffer_address(),
            other.buffer_address(),
        ]
        assert len([page for page in ttnn.get_buffer_pages(mesh) if page.device_id == device.id()]) == 64
    tensor.deallocate()
    assert not tensor.is_allocated()
    assert ttnn.get_memory_view(mesh, ttnn.BufferType.DRAM).block_table[0]["allocated"] == "no"


def test_operations_change_every_part(mesh):
    tensor = ttnn.from_torch(VALUES, mesh_mapper=ttnn.ShardTensorToMesh(mesh, dim=1))
    composer = ttnn.ConcatMeshToTensor(mesh, dim=1)
    for there in (tensor, tensor.to(mesh)):
        for changed, expected in [
            (ttnn.to_layout(there, ttnn.TILE_LAYOUT), VALUES),
            (ttnn.typecast(there, ttnn.int32), VALUES.astype(np.int32)),
            (ttnn.reshape(there, (32, 32)), None),
            (there[:5], VALUES[:5]),
            (ttnn.slice(there, [2, 0], [9, 16]), VALUES[2:9]),
            (ttnn.pad(there, [(0, 3), (0, 0)], 7), np.concatenate([VALUES, np.full((3, 128), 7, np.float32)])),
            (ttnn.concat([there, there], 0), np.concatenate([VALUES, VALUES])),
            (ttnn.tilize_with_val_padding(there, (64, 32), 0.0), VALUES),
            (ttnn.squeeze(ttnn.unsqueeze_to_4D(there)), VALUES),
        ]:
            assert changed.tensor_topology() == tensor.tensor_topology()
            assert (changed.device() is mesh) == (there.device() is mesh)
            if expected is not None:
                np.testing.assert_array_equal(ttnn.to_torch(changed, mesh_composer=composer), expected)
    half = ttnn.reciprocal(ttnn.from_torch(np.full((8, 4), 2, np.float32), mesh_mapper=ttnn.ShardTensorToMesh(mesh, 0)))
    assert set(ttnn.to_numpy(half, mesh_composer=ttnn.ConcatMeshToTensor(mesh, 0)).flat) == {0.5}


def test_replicas_share_memory_on_the_host(mesh):
    tensor = ttnn.from_torch(VALUES, ttnn.bfloat8_b, mesh_mapper=ttnn.ReplicateTensorToMesh(mesh))
    for each in (tensor, ttnn.to_layout(tensor, ttnn.TILE_LAYOUT), ttnn.transpose(tensor, 0, 1)):
        assert len({id(part) for part in each.parts.by_device.values()}) == 1
        assert len(each.parts.by_device) == 8


def test_a_tensor_on_a_mesh_is_not_an_array(mesh):
    """Nothing takes the part of one device for the tensor."""
    for mapper in (ttnn.ShardTensorToMesh(mesh, dim=0), ttnn.ReplicateTensorToMesh(mesh)):
        tensor = ttnn.from_torch(VALUES, mesh_mapper=mapper)
        for use in (
            ttnn.to_torch,
            ttnn.to_numpy,
            np.asarray,
            len,
            lambda x: x.to_list(),
            lambda x: tw.diff(x, x),
            lambda x: ttnn.to_device(x, ttnn.Device("wormhole_n150")),
        ):
            with pytest.raises(tw.LayoutError, match=r"distributed over 8 devices of MeshShape\(\[2, 4\]\)"):
                use(tensor)


def test_a_tensor_on_a_mesh_is_drawn_as_the_mesh(mesh, capsys):
    tensor = ttnn.from_torch(
        VALUES, layout=ttnn.TILE_LAYOUT, mesh_mapper=ttnn.ShardTensor2dMesh(mesh, (2, 4), (None, 1))
    )
    tensor.show()
    text = capsys.readouterr().out
    assert "2 x 4" in text
    assert "64 x 128, 64 x 32 on each device" in text
    assert "part 3" in tensor._repr_html_()
    ttnn.ShardTensorToMesh(mesh, 0).divide((64, 128)).show()
    assert "8 x 128 on each device" in capsys.readouterr().out


def test_parts_are_printed_one_after_the_other(mesh):
    tensor = ttnn.from_torch(np.arange(8, dtype=np.int32)[:, None], mesh_mapper=ttnn.ShardTensorToMesh(mesh, dim=0))
    assert str(tensor).count("ttnn.Tensor(") == 8
    assert "MeshCoordinate" not in str(tensor)
    lines = str(tensor.to(mesh)).splitlines()
    assert lines[2] == "device_id: 1, MeshCoordinate([0, 1])"
    assert lines[3].startswith("ttnn.Tensor([[    1]], shape=Shape([1, 1])")


def test_a_mesh_takes_what_fits_and_refuses_the_rest(mesh):
    whole = ttnn.from_torch(VALUES)
    placed = ttnn.to_device(whole, mesh)
    assert placed.tensor_topology().distribution_shape() == (8,)
    assert ttnn.from_device(placed).tensor_topology() == placed.tensor_topology()
    line = ttnn.create_mesh_mapper(ttnn.MeshShape(1, 8), ttnn.MeshMapperConfig(None, 1))
    with pytest.raises(tw.LayoutError, match=r"its device \(0, 4\) is outside MeshShape\(\[2, 4\]\)"):
        ttnn.from_torch(VALUES, mesh_mapper=line).to(mesh)


def test_host_shards_and_device_tensors(mesh):
    shards = [ttnn.from_torch(VALUES + k) for k in range(8)]
    tensor = ttnn.from_host_shards(shards, mesh.shape)
    assert [part.to_list()[0][0] for part in ttnn.get_device_tensors(tensor)] == list(range(8))
    assert ttnn.aggregate_as_tensor(shards).device_coords()[7] == (0, 7)
    parts = ttnn.get_device_tensors(tensor.to(mesh))
    assert [part.device_coords() for part in parts] == [[at] for at in mesh.shape.coordinates()]
    combined = ttnn.combine_device_tensors(tensors=parts)
    assert ttnn.to_numpy(combined, mesh_composer=ttnn.ConcatMeshToTensor(mesh, 0)).shape == (512, 128)
    for call, message in [
        (lambda: ttnn.from_host_shards(shards[:3], mesh.shape), "needs 8 tensors, got 3"),
        (lambda: ttnn.from_host_shards([*shards[:7], parts[0]], mesh.shape), "on the host"),
        (lambda: ttnn.from_host_shards([*shards[:7], ttnn.from_torch(VALUES[:3])], mesh.shape), "one spec"),
        (lambda: ttnn.combine_device_tensors([]), "at least one"),
        (lambda: ttnn.combine_device_tensors([parts[0], parts[0]]), r"two of the tensors are on MeshCoordinate"),
        (lambda: ttnn.combine_device_tensors(shards), "on the devices of one mesh"),
        (lambda: ttnn.distribute_tensor(parts[0], ttnn.ShardTensorToMesh(mesh, 0)), "on the host"),
    ]:
        with pytest.raises(tw.LayoutError, match=message):
            call()


def test_files_keep_the_mesh(mesh, tmp_path):
    tensor = ttnn.from_torch(VALUES, ttnn.bfloat16, mesh_mapper=ttnn.ShardTensor2dMesh(mesh, (2, 4), (None, 1)))
    path = tmp_path / "x.tensorbin"
    for there in (tensor, tensor.to(mesh)):
        ttnn.dump_tensor(path, there, mode=ttnn.DumpTensorMode.LOCAL)
        assert path.stat().st_size < 2 * VALUES.nbytes / 2  # the two rows of devices hold the same
        for loaded in (ttnn.load_tensor(path), ttnn.load_tensor(path, device=mesh)):
            assert loaded.tensor_topology() == tensor.tensor_topology()
            parts = zip(ttnn.get_device_tensors(loaded), ttnn.get_device_tensors(tensor), strict=True)
            assert all(mine.to_list() == theirs.to_list() for mine, theirs in parts)


def test_tensors_are_distributed_and_joined_in_their_format(mesh):
    whole = ttnn.from_torch(VALUES, ttnn.bfloat8_b, tile=ttnn.Tile((16, 32)))
    tensor = ttnn.distribute_tensor(whole, ttnn.ShardTensorToMesh(mesh, 0), mesh)
    assert (tensor.dtype, tensor.tile.tile_shape, tensor.shape) == (ttnn.bfloat8_b, [16, 32], (8, 128))
    back = ttnn.aggregate_tensor(tensor, ttnn.ConcatMeshToTensor(mesh, 0))
    assert back.spec == whole.spec
    np.testing.assert_array_equal(back.native.pages, whole.native.pages)


def test_a_single_part_is_the_whole_however_it_is_joined(mesh):
    """As the real ttnn answers: dimensions that repeat, or do not exist, do not matter when nothing is joined."""
    values = VALUES[:1, :2]
    tensor = ttnn.from_torch(values, mesh_mapper=ttnn.ShardTensorToMesh(mesh, 0))  # seven devices hold nothing
    for dims, shape in [((0, 0), (2, 4)), ((0, 1), (1, 2)), ((5, 7), (2, 2)), ((9,), (8,)), ((0, 1, 1), (2, 2, 2))]:
        composer = ttnn.create_mesh_composer(mesh, ttnn.MeshComposerConfig(dims, shape))
        np.testing.assert_array_equal(ttnn.to_torch(tensor, mesh_composer=composer), values, err_msg=f"{dims} {shape}")
    two = ttnn.from_torch(VALUES[:2, :2], mesh_mapper=ttnn.ShardTensorToMesh(mesh, 0))
    for dims, shape in [((0, 1), (2, 4)), ((2,), (8,))]:
        with pytest.raises(tw.LayoutError):
            ttnn.to_torch(two, mesh_composer=ttnn.create_mesh_composer(mesh, ttnn.MeshComposerConfig(dims, shape)))


def test_a_composer_of_devices_without_parts_gives_an_empty_tensor(mesh):
    config = ttnn.MeshMapperConfig(
        [ttnn.PlacementShard(0), ttnn.PlacementReplicate()], (1, 1), mesh_offset_override=(1, 1)
    )
    tensor = ttnn.from_torch(VALUES, mesh_mapper=ttnn.create_mesh_mapper(mesh, config))
    first_row = ttnn.create_mesh_composer(mesh, ttnn.MeshComposerConfig([0], (4,)))
    assert ttnn.to_torch(tensor, mesh_composer=first_row).shape == (0,)


def test_submeshes_share_devices(mesh):
    halves = mesh.create_submeshes(ttnn.MeshShape(2, 2))
    assert [half.get_device_ids() for half in halves] == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert mesh.get_submeshes() == halves
    ttnn.zeros((32, 32), device=halves[1])
    assert halves[1].get_device((0, 0)) is mesh.get_device((0, 2))
    for shape, offset in [((3, 1), None), ((1, 2), (1, 3)), ((1,), None)]:
        with pytest.raises(tw.LayoutError, match="does not fit"):
            mesh.create_submesh(shape, offset)
    with pytest.raises(tw.LayoutError, match="cannot be cut"):
        mesh.create_submeshes((2, 3))


def test_the_environment_names_the_system(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_MESH", "2x4")
    monkeypatch.setenv("TILEWRIGHT_CHIP", "blackhole_p150")
    assert ttnn.get_num_devices() == 8
    assert ttnn.get_device_ids() == list(range(8))
    with ttnn.create_mesh_device() as opened:
        assert (opened.shape, opened.arch(), opened.dram_grid_size().x) == ((2, 4), "blackhole", 8)
        ttnn.SetDefaultDevice(opened)
        assert ttnn.GetDefaultDevice() is opened
    assert ttnn.GetDefaultDevice() is None
    monkeypatch.setenv("TILEWRIGHT_MESH", "large")
    with pytest.raises(tw.LayoutError, match="2x4"):
        ttnn.open_mesh_device()


def test_cuts_that_do_not_fit_say_what_would(mesh):
    for call, message in [
        (
            lambda: ttnn.ShardTensorToMesh(mesh, 0).divide((9, 2)),
            r"cannot be cut into equal parts for 8 .* pad it to 16",
        ),
        (lambda: ttnn.ShardTensor2dMesh(mesh, (2, 4), (0, 1)).divide((8, 5)), "pad it to 8"),
        (lambda: ttnn.ShardTensor2dMesh(mesh, (2, 4), (0, -2)).divide((8, 8)), "must differ"),
        (lambda: ttnn.ShardTensorToMesh(mesh, 2).divide((8, 8)), "rank 2"),
        (lambda: ttnn.ShardTensor2dMesh(mesh, (4, 4), (0, 1)), "does not fit"),
        (lambda: ttnn.create_mesh_mapper(mesh, ttnn.MeshMapperConfig([ttnn.PlacementShard(0)])), "needs 2"),
        (lambda: ttnn.MeshMapperConfig(["shard"]), "expected PlacementShard"),
        (lambda: ttnn.ShardTensor2dMesh(mesh, (2, 4), (0, 1, 2)), "two dims"),
        (lambda: ttnn.open_mesh_device(ttnn.MeshShape(0, 2)), "at least one device"),
        (lambda: ttnn.aggregate_as_tensor([]), "got 0"),
        (lambda: ttnn.MeshComposerConfig(0), "for the columns"),
    ]:
        with pytest.raises(tw.LayoutError, match=message):
            call()
    with pytest.raises(TypeError, match="unexpected row_dim"):
        ttnn.MeshMapperConfig([ttnn.PlacementShard(0)], row_dim=1)
    for call, message in [
        (lambda: ttnn.ShardTensorToMesh(None, 0), "expected a mesh, such as"),
        (lambda: ttnn.create_mesh_mapper(mesh, None), "expected a config"),
        (lambda: ttnn.create_mesh_composer(mesh, None), "expected a config"),
        (lambda: ttnn.zeros((2, 2), device="gpu"), "expected a device, such as"),
    ]:
        with pytest.raises(tw.MemoryConfigError, match=message):
            call()


def test_the_memory_of_every_device_is_reported(mesh, capsys):
    ttnn.dump_device_memory_state(mesh)
    assert capsys.readouterr().out.count("device ") == 8


def test_a_device_is_a_mesh_of_one():
    with ttnn.manage_device() as device:
        assert (device.shape, device.get_device_ids()) == ((1, 1), [0])
        mapper = ttnn.ShardTensor2dMesh(device, device.shape, (0, 1))
        tensor = ttnn.from_torch(VALUES, device=device, mesh_mapper=mapper)
        assert tensor.tensor_topology().placements() == [ttnn.PlacementShard(0), ttnn.PlacementShard(1)]
        np.testing.assert_array_equal(ttnn.to_torch(tensor), VALUES)
        np.testing.assert_array_equal(ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMeshToTensor(device, 0)), VALUES)
        assert ttnn.from_torch(VALUES, mesh_mapper=ttnn.ReplicateTensorToMesh(device)).cpu(blocking=True).shape == (
            64,
            128,
        )


def test_weights_of_models_go_to_the_dram_banks():
    for chip, width in [("wormhole_n150", 512), ("blackhole_p150", 768), ("blackhole_p100", 896)]:
        with ttnn.create_mesh_device(ttnn.MeshShape(1, 2), chip=chip) as opened:
            config = ttnn.create_dram_sharded_mem_config(k=64, n=6144, mesh_device=opened)
            assert config.shard_spec.shape == [64, width]
            tensor = ttnn.as_tensor(
                np.ones((64, 2 * 6144), np.float32),
                ttnn.bfloat8_b,
                layout=ttnn.TILE_LAYOUT,
                device=opened,
                memory_config=config,
                mesh_mapper=ttnn.ShardTensor2dMesh(opened, (1, 2), (None, 1)),
            )
            assert (tensor.shape, tensor.memory_config().buffer_type) == ((64, 6144), ttnn.BufferType.DRAM)
