# SPDX-License-Identifier: Apache-2.0
"""The cache of `as_tensor`: files with ttnn's names, taken as they are, and refused where ttnn would use wrong ones."""

import functools
import re

import numpy as np
import pytest

import tilewright as tw
from tilewright import ttnn

VALUES = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
QUARTERS = ttnn.create_sharded_memory_config((64, 64), ttnn.CoreGrid(x=2, y=2), ttnn.ShardStrategy.BLOCK)
OPTIONS = {
    "None_layout_ROW_MAJOR": {},
    "BFLOAT16_layout_ROW_MAJOR": {"dtype": ttnn.bfloat16},
    "None_layout_TILE": {"layout": ttnn.TILE_LAYOUT, "memory_config": QUARTERS},
    "BFLOAT8_B_layout_TILE": {"dtype": ttnn.bfloat8_b, "layout": ttnn.TILE_LAYOUT},
}


def state(path):
    return path.stat().st_mtime_ns, path.read_bytes()


def test_files_have_the_names_of_ttnn_and_are_taken_as_they_are(tmp_path):
    for name, option in OPTIONS.items():
        fresh = ttnn.as_tensor(VALUES, **option)
        first = ttnn.as_tensor(VALUES, cache_file_name=tmp_path / "deep" / "w", **option)
        path = tmp_path / "deep" / f"w_dtype_{name}.tensorbin"
        before = state(path)
        # neither other values nor a preprocess is looked at
        again = ttnn.as_tensor(np.zeros_like(VALUES), cache_file_name=tmp_path / "deep" / "w", **option)
        skipped = ttnn.as_tensor(VALUES, cache_file_name=tmp_path / "deep" / "w", preprocess=pytest.fail, **option)
        without = ttnn.as_tensor(None, cache_file_name=str(tmp_path / "deep" / "w"), **option)
        for cached in (first, again, skipped, without):
            assert cached.spec == fresh.spec
            np.testing.assert_array_equal(
                cached.native.pages, np.asarray(fresh.native.pages).reshape(-1).view(np.uint8)
            )
        assert state(path) == before
    assert len(list((tmp_path / "deep").iterdir())) == len(OPTIONS)


def test_preprocess_is_called_where_nothing_is_cached(tmp_path):
    twice = ttnn.as_tensor(VALUES, cache_file_name=tmp_path / "w", preprocess=lambda x: 2 * x)
    assert twice.to_list() == (2 * VALUES).tolist()


def test_the_wrong_file_is_refused_and_kept(tmp_path):
    """Each of these is loaded, or written over, by ttnn."""
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 2))
    tile = {"dtype": ttnn.bfloat8_b, "layout": ttnn.TILE_LAYOUT}
    halves = ttnn.ShardTensor2dMesh(mesh, (1, 2), (None, 1))
    eighths = ttnn.ShardTensorToMesh(ttnn.open_mesh_device(ttnn.MeshShape(1, 8)), 1)
    seven, twelve = (
        ttnn.create_dram_sharded_mem_config(64, 64, ttnn.Device(chip)) for chip in ("blackhole_p100", "wormhole_n150")
    )
    wide = np.zeros((64, 256), np.float32)
    cases = {
        "shape [64, 64], expected [64, 256]": (tile, wide, tile),
        "a mesh of [1, 1], expected [1, 2]": (tile, VALUES, tile | {"mesh_mapper": halves}),
        "a mesh of [1, 8], expected [1, 2]": (tile | {"mesh_mapper": eighths}, wide, tile | {"mesh_mapper": halves}),
        "a mesh of [1, 2], expected [1, 1]": (tile | {"mesh_mapper": halves}, VALUES, tile),
        "placements [None, 1], expected [None, 0]": (
            tile | {"mesh_mapper": halves},
            VALUES,
            tile | {"mesh_mapper": ttnn.ShardTensor2dMesh(mesh, (1, 2), (None, 0))},
        ),
        "memory width sharded in DRAM, shards of 64 x 32 on 7 banks, expected": (
            tile | {"memory_config": seven},
            VALUES,
            tile | {"memory_config": twelve},
        ),
        "dtype int32, expected float32": ({}, VALUES, {}),
    }
    for k, (message, (first, values, second)) in enumerate(cases.items()):
        stored = VALUES.astype(np.int32) if "int32" in message else wide if "8]" in message else VALUES
        ttnn.as_tensor(stored, cache_file_name=tmp_path / str(k) / "w", **first)
        (path,) = (tmp_path / str(k)).iterdir()
        before = state(path)
        pattern = re.escape(f"{path.name} holds {message}") + ".*delete the file"
        with pytest.raises(tw.FileFormatError, match=pattern):
            ttnn.as_tensor(values, cache_file_name=tmp_path / str(k) / "w", **second)
        assert state(path) == before, message


def test_a_name_that_lies_about_the_type_is_refused(tmp_path):
    ttnn.as_tensor(VALUES, ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, cache_file_name=tmp_path / "w")
    (tmp_path / "w_dtype_BFLOAT8_B_layout_TILE.tensorbin").rename(tmp_path / "w_dtype_BFLOAT4_B_layout_TILE.tensorbin")
    with pytest.raises(tw.FileFormatError, match="holds dtype bfloat8_b, expected bfloat4_b"):
        ttnn.as_tensor(VALUES, ttnn.bfloat4_b, layout=ttnn.TILE_LAYOUT, cache_file_name=tmp_path / "w")


def test_a_damaged_file_is_refused_and_kept(tmp_path):
    ttnn.as_tensor(VALUES, cache_file_name=tmp_path / "w")
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for damaged in (b"damaged", whole[:100], whole[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(tw.FileFormatError, match=r"cannot be used: .*delete the file"):
            ttnn.as_tensor(VALUES, cache_file_name=tmp_path / "w")
        assert path.read_bytes() == damaged


def test_a_cache_is_used_without_a_tensor(tmp_path):
    option = {"dtype": ttnn.bfloat8_b, "layout": ttnn.TILE_LAYOUT, "cache_file_name": tmp_path / "w"}
    with pytest.raises(FileNotFoundError):
        ttnn.as_tensor(None, **option)
    with pytest.raises(tw.FileFormatError, match="neither a tensor nor a cache_file_name"):
        ttnn.as_tensor(None)


def test_without_a_tensor_any_memory_and_mesh_will_do_unless_one_is_asked_for(tmp_path):
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 2))
    halves = ttnn.ShardTensorToMesh(mesh, 1)
    option = {"dtype": ttnn.bfloat8_b, "layout": ttnn.TILE_LAYOUT, "cache_file_name": tmp_path / "w"}
    config = ttnn.create_dram_sharded_mem_config(64, 32, mesh)
    made = ttnn.as_tensor(VALUES, memory_config=config, mesh_mapper=halves, **option)
    assert ttnn.as_tensor(None, **option).spec == made.spec
    thirds = ttnn.ShardTensorToMesh(ttnn.open_mesh_device(ttnn.MeshShape(1, 3)), 1)
    for asked, message in [
        ({"memory_config": ttnn.DRAM_MEMORY_CONFIG}, "holds memory width sharded"),
        ({"mesh_mapper": thirds}, r"a mesh of \[1, 2\], expected \[1, 3\]"),
        ({"mesh_mapper": ttnn.ReplicateTensorToMesh(mesh)}, r"a mesh of \[1, 2\], expected \[1, 1\]"),
    ]:
        with pytest.raises(tw.FileFormatError, match=message):
            ttnn.as_tensor(None, **asked, **option)


def test_a_device_needs_a_memory_config():
    with ttnn.manage_device() as device, pytest.raises(tw.MemoryConfigError, match="needs a memory_config"):
        ttnn.as_tensor(VALUES, device=device)


def test_replicas_are_cached_once_for_any_mesh(tmp_path):
    """The mapper by name is dropped before writing, as in ttnn; the other one is not."""
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(2, 2))
    option = {"device": mesh, "memory_config": ttnn.DRAM_MEMORY_CONFIG}
    tensor = ttnn.as_tensor(
        VALUES, cache_file_name=tmp_path / "once", mesh_mapper=ttnn.ReplicateTensorToMesh(mesh), **option
    )
    assert tensor.tensor_topology().distribution_shape() == (4,)
    assert tw.read_tensorbin(tmp_path / "once_dtype_None_layout_ROW_MAJOR.tensorbin").mesh_shape == (1, 1)
    mapper = ttnn.replicate_tensor_to_mesh_mapper(mesh)
    ttnn.as_tensor(VALUES, cache_file_name=tmp_path / "mesh", mesh_mapper=mapper, **option)
    path = tmp_path / "mesh_dtype_None_layout_ROW_MAJOR.tensorbin"
    assert tw.read_tensorbin(path).mesh_shape == (2, 2)
    assert path.stat().st_size < 2 * VALUES.nbytes  # the four replicas are stored once
    other = ttnn.open_mesh_device(ttnn.MeshShape(1, 3))
    mapper = ttnn.ReplicateTensorToMesh(other)
    again = ttnn.as_tensor(
        None, cache_file_name=tmp_path / "once", mesh_mapper=mapper, device=other, memory_config=ttnn.DRAM_MEMORY_CONFIG
    )
    assert [part.to_list() for part in ttnn.get_device_tensors(again)] == [VALUES.tolist()] * 3


def test_meshes_are_cached_part_by_part(tmp_path):
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(2, 4))
    for name, mapper in {
        "line": ttnn.ShardTensorToMesh(mesh, -1),
        "grid": ttnn.ShardTensor2dMesh(mesh, (2, 4), (0, 1)),
        "columns": ttnn.ShardTensor2dMesh(mesh, (2, 4), (None, -1)),
    }.items():
        option = {"dtype": ttnn.bfloat8_b, "layout": ttnn.TILE_LAYOUT, "mesh_mapper": mapper}
        fresh = ttnn.from_torch(VALUES, **option)
        for tensor in (VALUES, None):
            cached = ttnn.as_tensor(
                tensor,
                cache_file_name=tmp_path / name,
                device=mesh,
                memory_config=ttnn.DRAM_MEMORY_CONFIG,
                **option,
            )
            assert cached.tensor_topology() == fresh.tensor_topology()
            assert cached.device() is mesh
            assert [part.to_list() for part in ttnn.get_device_tensors(cached)] == [
                part.to_list() for part in ttnn.get_device_tensors(fresh)
            ]


def test_a_prepared_cache_is_a_hit(tmp_path):
    """Asked for as models ask, with placeholders and without the checkpoint, on every machine that fits the sample."""
    tw.files.write_sample_llama(tmp_path / "Llama-3.2-1B-Instruct")
    for machine, columns in {"N150": 1, "N300": 2, "P100": 1}.items():
        chip = "blackhole_p100" if machine == "P100" else "wormhole_n300" if columns > 1 else "wormhole_n150"
        mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, columns), chip=chip)
        tw.prepare(tmp_path / "Llama-3.2-1B-Instruct", tmp_path / machine, machine)
        paths = sorted((tmp_path / machine).rglob("*.tensorbin"))
        before = {path: state(path) for path in paths}
        cache = paths[0].parent

        def ask(name, shape, dtype, mapper, weight=None, mesh=mesh, cache=cache):
            config = ttnn.create_dram_sharded_mem_config(*weight, mesh) if weight else ttnn.DRAM_MEMORY_CONFIG
            return ttnn.as_tensor(
                np.broadcast_to(np.float32(0), shape),  # a placeholder
                dtype=dtype,
                layout=ttnn.TILE_LAYOUT if weight else ttnn.ROW_MAJOR_LAYOUT,
                device=mesh,
                memory_config=config,
                mesh_mapper=mapper,
                cache_file_name=cache / name,
            )

        grid = functools.partial(ttnn.ShardTensor2dMesh, mesh, mesh.shape)
        base = "layers.0."
        tensors = [
            ask(
                base + "attention.wqkv_sharded_2d",
                (1, 1, 256, 512),
                ttnn.bfloat8_b,
                grid((2, 3)),
                (256, 512 // columns),
            ),
            ask(
                base + "attention.wo",
                (1, 1, 256, 256),
                ttnn.bfloat8_b,
                ttnn.ShardTensorToMesh(mesh, 2),
                (256 // columns, 256),
            ),
            ask(
                base + "feed_forward.w2_sharded",
                (1, 1, 512, 256),
                ttnn.bfloat8_b,
                grid((-1, -2)),
                (512 // columns, 256),
            ),
            ask(base + "attention_norm.weight", (1, 1, 8, 32), ttnn.bfloat16, ttnn.ReplicateTensorToMesh(mesh)),
            ask("tok_embeddings.weight", (1, 1, 1003, 256), ttnn.bfloat16, grid((None, 3))),
        ]
        assert all(tensor.to_numpy(ttnn.ConcatMeshToTensor(mesh, 0)).any() for tensor in tensors), machine
        for path in paths:  # and all of them, whatever they are
            prefix, dtype, layout = re.fullmatch(r"(.*)_dtype_(\w+)_layout_(\w+)\.tensorbin", path.name).groups()
            stored = tw.read_tensorbin(path)
            mapper = None
            if len(stored.topology.placements) == 2:
                mapper = grid(stored.topology.placements)
            elif stored.topology.placements != (None,):
                mapper = ttnn.ShardTensorToMesh(mesh, stored.topology.placements[0])
            placed = ttnn.as_tensor(
                None,
                ttnn.DataType[dtype],
                layout=ttnn.Layout[layout],
                device=mesh,
                memory_config=ttnn.MemoryConfig.wrap(stored.spec.memory),
                mesh_mapper=mapper,
                cache_file_name=path.parent / prefix,
            )
            assert placed.device() is mesh
        assert {path: state(path) for path in paths} == before
        with pytest.raises(tw.FileFormatError, match="expected"):  # another model's shape, by the same name
            ask(base + "attention_norm.weight", (1, 1, 16, 32), ttnn.bfloat16, ttnn.ReplicateTensorToMesh(mesh))
