# SPDX-License-Identifier: Apache-2.0
"""Random meshes in both dialects: mappers, composers, topologies, texts, bytes, and files read both ways."""

import contextlib
import itertools
import sys
import types
from math import prod

import numpy as np
import pytest
import ttnn as theirs
from hypothesis import given
from hypothesis import strategies as st

import tilewright.ttnn as ours

from ...cases import examples
from ..questions import BLOCKS, SCALARS, both, values_for

LARGEST = 8  # rows and columns of the mock cluster
small_meshes = st.tuples(st.integers(1, 4), st.integers(1, 4)) | st.sampled_from([(1, 8), (8, 1), (2, 4), (8, 4)])


@pytest.fixture(scope="module")
def system():
    """Return a mesh of each dialect that all others are cut from."""
    real = theirs.open_mesh_device(theirs.MeshShape(LARGEST, LARGEST))
    yield {theirs: real, ours: ours.open_mesh_device(ours.MeshShape(LARGEST, LARGEST))}
    theirs.close_mesh_device(real)


def submesh(system, dialect, shape):
    """Return the mesh of a shape, made once: the real one keeps all that were ever made."""
    key = (dialect, tuple(shape))
    if key not in system:
        system[key] = system[dialect].create_submesh(dialect.MeshShape(*shape))
    return system[key]


def placement(dialect, cut):
    return dialect.PlacementReplicate() if cut is None else dialect.PlacementShard(cut)


def topology_of(tensor):
    topology = tensor.tensor_topology()
    return (
        list(topology.distribution_shape()),
        [repr(each) for each in topology.placements()],
        [list(at) for at in topology.mesh_coords()],
    )


def pages_of(tensor, dialect, devices):
    """Return the bytes of each device's part."""
    if dialect is ours:
        return [np.asarray(tensor.parts.by_device[tuple(at)].pages).tobytes() for at in devices]
    buffer = tensor.host_buffer()
    return [np.from_dlpack(buffer.get_shard(theirs.MeshCoordinate(*at))).tobytes() for at in devices]


def described(tensor, dialect):
    topology = topology_of(tensor)
    return {
        "shape": list(tensor.shape),
        "padded": list(tensor.padded_shape),
        "dtype": tensor.dtype.name,
        "layout": tensor.layout.name,
        "topology": topology,
        "parts": len(dialect.get_device_tensors(tensor)),
        "pages": pages_of(tensor, dialect, topology[2]),
    }


@st.composite
def mappings(draw):
    """Return a mesh, how it is asked to cut, and a tensor that often fits, and sometimes does not."""
    mesh = draw(small_meshes)
    kind = draw(st.sampled_from(["replicate", "line", "grid", "grid", "grid", "override"]))
    distribution = tuple(mesh)
    if kind in ("replicate", "line"):
        distribution = (prod(mesh),)
    elif kind == "override":
        distribution = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    rank = draw(st.integers(1, 4))
    cuts = [None if kind == "replicate" else draw(st.none() | st.integers(-rank, rank - 1)) for _ in distribution]
    if kind == "line" and cuts == [None]:
        cuts = [draw(st.integers(-rank, rank - 1))]
    shape = [draw(st.integers(1, 5 if axis < rank - 2 else 40)) for axis in range(rank)]
    for count, cut in zip(distribution, cuts, strict=True):
        if cut is not None and draw(st.integers(0, 9)):  # now and then it cannot be cut evenly
            shape[cut] *= count
    offset = [draw(st.integers(0, 2)) for _ in mesh] if kind == "override" and draw(st.booleans()) else None
    return mesh, kind, distribution, cuts, shape, offset


def mapper_for(dialect, system, mesh, kind, distribution, cuts, offset):
    device = submesh(system, dialect, mesh)
    if kind == "replicate":
        return dialect.replicate_tensor_to_mesh_mapper(device)
    if kind == "line":
        return dialect.ShardTensorToMesh(device, cuts[0])
    if kind == "grid":
        return dialect.ShardTensor2dMesh(device, mesh, tuple(cuts))
    options = {} if offset is None else {"mesh_offset_override": dialect.MeshCoordinate(*offset)}
    config = dialect.MeshMapperConfig(
        [placement(dialect, cut) for cut in cuts], dialect.MeshShape(list(distribution)), **options
    )
    return dialect.create_mesh_mapper(dialect.MeshShape(*mesh) if offset is None else device, config)


@examples(300, deadline=None)
@given(mappings(), st.sampled_from([*SCALARS, *BLOCKS]), st.booleans(), st.integers(0, 1 << 30))
def test_mappers(system, mapping, dtype, tiled, seed):
    mesh, kind, distribution, cuts, shape, offset = mapping
    values = values_for(tuple(shape), seed, dtype)
    layout = "TILE_LAYOUT" if tiled or dtype in BLOCKS else "ROW_MAJOR_LAYOUT"

    def ask(dialect):
        mapper = mapper_for(dialect, system, mesh, kind, distribution, cuts, offset)
        return described(
            dialect.Tensor(
                values,
                data_type=getattr(dialect, dtype),
                layout=getattr(dialect, layout),
                mesh_mapper=mapper,
            ),
            dialect,
        )

    mine, real = both(ask)
    assert mine == real, mapping


@examples(150, deadline=None)
@given(mappings(), st.sampled_from(["float32", "int32", "bfloat8_b"]), st.data())
def test_composers(system, mapping, dtype, data):
    mesh, kind, distribution, cuts, shape, offset = mapping
    values = values_for(tuple(shape), 1, dtype)
    way = data.draw(st.sampled_from(["line", "grid", "override"]))
    dims = data.draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=3, max_size=3))
    override = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))

    def ask(dialect):
        device = submesh(system, dialect, mesh)
        tensor = dialect.Tensor(
            values,
            data_type=getattr(dialect, dtype),
            mesh_mapper=mapper_for(dialect, system, mesh, kind, distribution, cuts, offset),
        )
        if way == "line":
            composer = dialect.ConcatMeshToTensor(device, dims[0])
        elif way == "grid":
            composer = dialect.ConcatMesh2dToTensor(device, mesh, tuple(dims[:2]))
        else:
            config = dialect.MeshComposerConfig(dims[: len(override)], dialect.MeshShape(override))
            composer = dialect.create_mesh_composer(device, config)
        whole = dialect.aggregate_tensor(tensor, composer)
        array = tensor.to_numpy(mesh_composer=composer)
        assert list(array.shape) == list(whole.shape)
        return described(whole, dialect), array.tolist()

    mine, real = both(ask)
    assert mine == real, (mapping, way, dims, override)


@examples(100, deadline=None)
@given(mappings(), st.sampled_from([*SCALARS, *BLOCKS]), st.booleans(), st.integers(0, 1 << 30))
def test_files_are_read_both_ways(system, tmp_path_factory, mapping, dtype, tiled, seed):
    mesh, kind, distribution, cuts, shape, offset = mapping
    folder = tmp_path_factory.mktemp("files")
    values = values_for(tuple(shape), seed, dtype)
    tiled = tiled or dtype in BLOCKS
    written = {}

    def write(dialect):
        tensor = dialect.Tensor(
            values,
            data_type=getattr(dialect, dtype),
            layout=dialect.TILE_LAYOUT if tiled else dialect.ROW_MAJOR_LAYOUT,
            mesh_mapper=mapper_for(dialect, system, mesh, kind, distribution, cuts, offset),
        )
        path = folder / f"{dialect.__name__}.tensorbin"
        dialect.dump_tensor(str(path), tensor)
        written[dialect] = path
        return described(tensor, dialect)

    mine, real = both(write)
    assert mine == real
    for dialect, path in itertools.product((ours, theirs), written.values()):
        assert described(dialect.load_tensor(str(path)), dialect) == real, (dialect.__name__, path.name)
    payloads = [path.read_bytes() for path in written.values()]
    payloads = [data[8 + int.from_bytes(data[:8], "little") :] for data in payloads]
    assert payloads[:1] == payloads[1:], "replicas are stored once, and parts are aligned to 64 bytes"


@contextlib.contextmanager
def stand_in_torch():
    """Let the real one make tensors of NumPy's arrays: all that it wants of torch is a type."""
    sys.modules["torch"] = types.SimpleNamespace(Tensor=type("Tensor", (), {}), from_numpy=lambda array: array)
    try:
        yield
    finally:
        del sys.modules["torch"]


@examples(60, deadline=None)
@given(mappings(), st.sampled_from([*SCALARS, *BLOCKS]), st.booleans(), st.booleans())
def test_caches_are_taken_both_ways(system, tmp_path_factory, mapping, dtype, tiled, by_name):
    mesh, kind, distribution, cuts, shape, offset = mapping
    folder = tmp_path_factory.mktemp("cache")
    values = values_for(tuple(shape), 1, dtype)
    written = []

    def options(dialect):
        mapper = mapper_for(dialect, system, mesh, kind, distribution, cuts, offset)
        if by_name:  # whose file is for any mesh
            mapper = dialect.ReplicateTensorToMesh(submesh(system, dialect, mesh))
        layout = dialect.TILE_LAYOUT if tiled or dtype in BLOCKS else dialect.ROW_MAJOR_LAYOUT
        return {"dtype": getattr(dialect, dtype), "layout": layout, "mesh_mapper": mapper}

    def write(dialect):
        with stand_in_torch():
            made = dialect.as_tensor(values, cache_file_name=folder / dialect.__name__ / "w", **options(dialect))
        written.append(folder / dialect.__name__)
        return described(made, dialect), [path.name for path in written[-1].iterdir()]

    mine, real = both(write)
    assert mine == real, mapping
    for dialect, home in itertools.product((ours, theirs), written):
        (path,) = home.iterdir()
        before = path.stat().st_mtime_ns, path.read_bytes()
        taken = dialect.as_tensor(None, cache_file_name=home / "w", **options(dialect))
        assert described(taken, dialect) == real[0], (dialect.__name__, home.name)
        assert (path.stat().st_mtime_ns, path.read_bytes()) == before


@examples(60, deadline=None)
@given(mappings(), small_meshes)
def test_tensors_on_devices(system, mapping, target):
    mesh, kind, distribution, cuts, shape, offset = mapping
    values = values_for(tuple(shape), 1, "int32")

    def ask(dialect):
        tensor = dialect.Tensor(
            values,
            data_type=dialect.int32,
            mesh_mapper=mapper_for(dialect, system, mesh, kind, distribution, cuts, offset),
        )
        placed = dialect.to_device(tensor, submesh(system, dialect, target))
        back = dialect.from_device(placed)
        parts = dialect.get_device_tensors(placed)
        return [
            (list(each.shape), each.storage_type().name, topology_of(each), [list(at) for at in each.device_coords()])
            for each in (placed, *parts)
        ] + [(list(back.shape), topology_of(back), repr(placed.device()))]

    mine, real = both(ask)
    if mine is not None:
        mine = [tuple("HOST" if entry == "OWNED_HOST" else entry for entry in row) for row in mine]
    assert mine == real, (mapping, target)


@examples(60, deadline=None)
@given(small_meshes, st.integers(-1, 1))
def test_host_shards(mesh, off_by):
    count = prod(mesh) + off_by

    def ask(dialect):
        shards = [dialect.Tensor(np.full((3, 5), k, np.int32)) for k in range(count)]
        return described(dialect.from_host_shards(shards, dialect.MeshShape(*mesh)), dialect)

    mine, real = both(ask)
    assert mine == real


def test_texts(system):
    values = np.arange(2 * 6, dtype=np.int32).reshape(2, 6)

    def texts(dialect):
        device = submesh(system, dialect, (2, 3))
        tensor = dialect.Tensor(values, mesh_mapper=dialect.ShardTensor2dMesh(device, (2, 3), (0, 1)))
        shape, config = dialect.MeshShape(2, 3), dialect.MeshMapperConfig
        return [
            repr(tensor),
            repr(shape),
            repr(dialect.MeshCoordinate(1, 2)),
            repr(dialect.PlacementShard(-1)),
            repr(dialect.PlacementReplicate()),
            repr(device),
            repr(config(None, 1)),
            repr(config(row_dim=0, col_dim=None)),
            repr(config([dialect.PlacementShard(0)], shape)),
            repr(dialect.MeshComposerConfig(0, 1)),
            repr(dialect.MeshComposerConfig([0], shape)),
        ]

    assert texts(ours) == texts(theirs)


def test_devices(system):
    def ask(dialect):
        whole = submesh(system, dialect, (2, 4))
        parts = whole.create_submeshes(dialect.MeshShape(1, 2))
        grids = [(str(each.compute_with_storage_grid_size()), str(each.dram_grid_size())) for each in (whole, *parts)]
        return grids, [(str(each), list(each.shape), each.get_num_devices()) for each in (whole, *parts)]

    assert ask(ours) == ask(theirs)


def test_memory_views():
    """In a device of its own: the blocks, and their sizes and addresses."""

    def ask(dialect):
        device = dialect.open_mesh_device(dialect.MeshShape(1, 2))
        tensors = [
            dialect.Tensor(np.ones((64, 64), np.float32)).to(device),
            dialect.Tensor(np.ones((32, 640), np.float32)).to(device, dialect.L1_MEMORY_CONFIG),
        ]
        views = []
        for kind in ("DRAM", "L1"):
            view = dialect.get_memory_view(device, getattr(dialect.BufferType, kind))
            blocks = sorted((int(row["address"]), int(row["size"]), row["allocated"]) for row in view.block_table)
            views.append(
                (
                    view.num_banks,
                    view.total_bytes_per_bank,
                    view.total_bytes_allocated_per_bank,
                    view.total_bytes_free_per_bank,
                    view.largest_contiguous_bytes_free_per_bank,
                    blocks,
                )
            )
        addresses = [tensor.buffer_address() for tensor in tensors]
        dialect.close_mesh_device(device)
        return addresses, views

    assert ask(ours) == ask(theirs)


CREATED = ("zeros", "ones", "full", "arange", "zeros_like", "ones_like", "full_like")


@examples(150, deadline=None)
@given(
    st.sampled_from(CREATED),
    st.sampled_from([*SCALARS, *BLOCKS]),
    st.booleans(),
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.integers(-3, 100) | st.sampled_from([0.5, -2.5, 3.0]),
)
def test_creation_on_the_host(name, dtype, tiled, shape, number):
    if dtype.startswith("uint"):
        number = abs(number)
    whole = int(number)

    def ask(dialect):
        options = {
            "dtype": getattr(dialect, dtype),
            "layout": dialect.TILE_LAYOUT if tiled or dtype in BLOCKS else dialect.ROW_MAJOR_LAYOUT,
        }
        make = getattr(dialect, name)
        if name == "arange":
            return described(make(0, whole, **options), dialect)
        filled = () if "full" not in name else (number,)
        like = dialect.Tensor(np.zeros(shape, np.int32)) if "like" in name else dialect.Shape(shape)
        return described(make(like, *filled, **options), dialect)

    mine, real = both(ask)
    assert mine == real


def test_shapes_of_views():
    def shapes(dialect):
        x = dialect.Tensor(np.ones((1, 3, 1, 5), np.float32))
        y = dialect.Tensor(np.ones((3, 5), np.float32), layout=dialect.TILE_LAYOUT)
        results = [dialect.squeeze(x, dim) for dim in (0, -2, 1, [0, 1, 2])] + [dialect.squeeze(x)]
        results += [dialect.unsqueeze(each, dim) for each in (x, y) for dim in (0, 2, -1, -3)]
        results += [dialect.unsqueeze_to_4D(y)]
        return [(list(each.shape), list(each.padded_shape)) for each in results]

    assert shapes(ours) == shapes(theirs)
