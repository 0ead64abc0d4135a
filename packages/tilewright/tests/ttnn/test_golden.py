# SPDX-License-Identifier: Apache-2.0
"""The recorded vectors of ttnn 0.81.1, replayed through the dialect's own names."""

import warnings

import ml_dtypes
import numpy as np
import pytest

import tilewright.ttnn as ttnn
from tilewright import TilewrightError

from ..memory.golden import FOLDER, arrays, recorded

LAYOUTS = {"TILE": ttnn.TILE_LAYOUT, "ROW_MAJOR": ttnn.ROW_MAJOR_LAYOUT}
DTYPES = {dtype.name.lower(): dtype for dtype in ttnn.DataType}
CAST, LAYOUT, BFP, HOSTOPS = (recorded(name) for name in ("cast", "layout", "bfp", "hostops"))


@pytest.fixture(scope="module")
def data():
    """Return the arrays of a recording, read once."""
    read = {}

    def find(name):
        if name not in read:
            read[name] = arrays(name)
        return read[name]

    return find


def raw(tensor):
    return np.frombuffer(tensor.native.raw, np.uint8)


def core_set(ranges):
    return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(a, b), ttnn.CoreCoord(c, d)) for a, b, c, d in ranges])


def ranges_of(cores):
    return [[part.start.x, part.start.y, part.end.x, part.end.y] for part in cores.ranges()]


def described(config):
    """Return a memory config in the form in which it was recorded."""
    matrix, general = config.shard_spec, config.nd_shard_spec
    return {
        "memory_layout": config.memory_layout.name,
        "buffer_type": config.buffer_type.name,
        "shard_spec": matrix
        and {"grid": ranges_of(matrix.grid), "shape": matrix.shape, "orientation": matrix.orientation.name},
        "nd_shard_spec": general
        and {
            "shard_shape": general.shard_shape,
            "grid": ranges_of(general.grid),
            "orientation": general.orientation.name,
            "strategy": general.shard_distribution_strategy.name,
        },
    }


def undescribed(config):
    """Return the memory config of a description."""
    matrix = config.get("shard_spec") or {}
    general = config.get("nd_shard_spec") or {}
    shape = matrix.get("shape") or general["shard_shape"]
    return config_of({**config, **general, **matrix, "shard_shape": shape, "kind": "legacy" if matrix else "nd"})


def config_of(case):
    """Return the memory config that a case was recorded with."""
    grid, orientation = core_set(case["grid"]), ttnn.ShardOrientation[case["orientation"]]
    buffer = ttnn.BufferType[case["buffer_type"]]
    if case["kind"] == "nd":
        strategy = ttnn.ShardDistributionStrategy[case["strategy"]]
        return ttnn.MemoryConfig(buffer, ttnn.NdShardSpec(case["shard_shape"], grid, orientation, strategy))
    shards = ttnn.ShardSpec(grid, case["shard_shape"], orientation)
    return ttnn.MemoryConfig(ttnn.TensorMemoryLayout[case["memory_layout"]], buffer, shards)


def tile_of(case):
    return ttnn.Tile(case["tile"], case.get("transpose_tile", False)) if case.get("tile") else None


# Shapes.


@pytest.mark.parametrize(
    "case", recorded("shapes"), ids=lambda case: f"{case['shape']}-{case['layout']}-{case['tile']}"
)
def test_shapes(case):
    tile = tile_of(case) if case["layout"] == "TILE" else None
    x = ttnn.from_torch(np.zeros(case["shape"], np.float32), layout=LAYOUTS[case["layout"]], tile=tile)
    assert repr(x.shape) == case["repr_shape"] == case["str_shape"]
    assert repr(x.padded_shape) == case["str_padded"]
    assert list(x.padded_shape) == case["padded_shape"]
    assert (x.shape.rank, x.volume(), x.logical_volume()) == (case["rank"], case["volume"], case["logical_volume"])
    try:
        assert repr(x.shape.to_rank(4)) == case["to_rank4"]
    except TilewrightError:
        assert not str(case["to_rank4"]).startswith("Shape")


# Tensors from arrays.


@pytest.mark.parametrize("case", LAYOUT, ids=lambda case: str(case["id"]))
def test_arrays_become_the_same_bytes(case, data):
    stored = data("layout")
    values = stored[f"c{case['id']}_in"].reshape(case["shape"])
    tile = tile_of(case) if case["layout"] == "TILE" else None
    x = ttnn.from_torch(
        values,
        DTYPES[case["dtype"]],
        layout=LAYOUTS[case["layout"]],
        tile=tile,
        pad_value=case["pad_value"],
        memory_config=case["memory_config"] and undescribed(case["memory_config"]),
    )
    assert list(x.padded_shape) == case["padded_shape"]
    np.testing.assert_array_equal(raw(x), stored[f"c{case['id']}_phys"])
    back = stored.get(f"c{case['id']}_back")
    expected = values if back is None else back.reshape(case["shape"])
    if case.get("roundtrip_equals_input") or back is not None:
        np.testing.assert_array_equal(x.to_numpy().astype(np.float32), expected.astype(np.float32))


BLOCK_TENSORS = [case for case in BFP if "shape" in case]
SOURCES = {"bfloat16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("case", BLOCK_TENSORS, ids=lambda case: case["id"])
def test_block_formats(case, data):
    stored = data("bfp")
    source = case.get("src_torch_dtype", "float32")
    values = stored[case["input"]].astype(SOURCES.get(source, source))
    dtype = ttnn.bfloat8_b if case["bits"] == 8 else ttnn.bfloat4_b
    memory = None
    if case["id"].startswith("sharded_via"):
        shards = ttnn.ShardSpec(core_set([[0, 0, 0, 1]]), [32, 96])
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)
    x = ttnn.from_torch(
        values, dtype, tile=tile_of(case), memory_config=memory, col_tilize=case.get("col_tilize", False)
    )
    np.testing.assert_array_equal(raw(x), stored[f"{case['id']}_packed"])
    unpacked = stored.get(f"{case['id']}_unpacked")
    if unpacked is not None:
        np.testing.assert_array_equal(
            x.to_numpy().view(np.uint32), unpacked.reshape(x.shape.logical).astype(np.float32).view(np.uint32)
        )


CASTS = [case for case in CAST if "src" in case]


@pytest.mark.parametrize("case", CASTS, ids=lambda case: case["id"])
def test_casts(case, data):
    stored = data("cast")
    source = {"bool": np.bool_, "bfloat16": ml_dtypes.bfloat16}.get(case["src"], case["src"])
    values = stored[f"{case['id']}_in"].astype(source)
    x = ttnn.from_torch(values, DTYPES[case["dst"]])
    result = x.to_numpy()
    expected = stored[f"{case['id']}_out"]
    if case["out_is_bf16_bits"]:
        result = result.view(np.uint16)
    np.testing.assert_array_equal(result, expected.astype(result.dtype))


# Operations on the host.


def operated(case, x):
    name, arguments = case["op"], case["args"]
    if name == "pad_to_tile":
        return x.pad_to_tile(arguments["pad_value"])
    if name.startswith("to_layout_TILE"):
        tiled = ttnn.to_layout(x, ttnn.TILE_LAYOUT, pad_value=arguments["pad_value"])
        return ttnn.to_layout(tiled, ttnn.ROW_MAJOR_LAYOUT) if name.endswith("ROW_MAJOR") else tiled
    if name == "Tensor.pad":
        return x.pad(arguments["output_padded_shape"], arguments["input_tensor_start"], arguments["pad_value"])
    if name == "Tensor.unpad":
        return x.unpad(arguments["start"], arguments["end"])
    if name == "typecast_TILE":
        return ttnn.typecast(x.to(ttnn.TILE_LAYOUT), DTYPES[arguments["dtype"]])
    before, after = name.split("_TILE_typecast_")
    blocks = ttnn.from_torch(x.to_numpy(), DTYPES[before])
    return ttnn.typecast(blocks, DTYPES[after])


@pytest.mark.parametrize("case", HOSTOPS, ids=lambda case: f"{case['id']}-{case['op']}")
def test_host_operations(case, data):
    stored = data("hostops")
    values = stored[f"h{case['id']}_in"].reshape(case["in_shape"])
    x = operated(case, ttnn.from_torch(values))
    assert x.shape == case["shape"]
    assert x.padded_shape == case["padded_shape"]
    assert (x.layout.name, x.dtype.name) == (case["layout"], case["dtype"])
    np.testing.assert_array_equal(raw(x), stored[f"h{case['id']}_phys"])
    if case["op"] == "Tensor.pad":  # unlike ttnn's, ours can be read wherever it starts
        np.testing.assert_array_equal(x.to_numpy(), values)


# Memory configs and specs.


def grid_of(case):
    kind = case["type"]
    if kind == "CoreGrid":
        return ttnn.CoreGrid(y=case["y"], x=case["x"])
    if kind == "CoreRangeSet":
        return core_set(case["ranges"])
    return tuple(ttnn.CoreGrid(x=x, y=y) for x, y in case["grids"])


def called(function, *arguments, **options):
    """Return the memory config as recorded, or None where the call is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return described(function(*arguments, **options))
    except TilewrightError:
        return None


def test_sharded_memory_configs():
    count = 0
    for case in recorded("sharded_memory_configs"):
        if "raw_args" in case:
            continue
        expected = case["result"]["memory_config"] if case["result"]["ok"] else None
        function = getattr(ttnn, case["fn"])
        orientation = case["orientation"] and ttnn.ShardOrientation[case["orientation"]]
        options = {name: case[name] for name in ("use_height_and_width_as_shard_shape", "tile_layout") if name in case}
        result = called(
            function,
            case["shape"],
            grid_of(case["core_grid"]),
            ttnn.ShardStrategy[case["strategy"]],
            orientation,
            **options,
        )
        assert result == expected, case
        count += 1
    assert count > 900


@pytest.mark.parametrize(
    ("shape", "grid", "strategy"),
    [
        (5, ttnn.CoreGrid(x=1, y=1), ttnn.ShardStrategy.HEIGHT),
        ((32, 32), 5, ttnn.ShardStrategy.HEIGHT),
        ((32, 32), ttnn.CoreGrid(x=1, y=1), "H"),
        ((32, 32), (1, 2), ttnn.ShardStrategy.HEIGHT),
        ((32, 32), (ttnn.CoreGrid(x=1, y=1),), ttnn.ShardStrategy.HEIGHT),
    ],
)
def test_arguments_of_the_wrong_kind(shape, grid, strategy):
    with pytest.raises(TilewrightError):
        ttnn.create_sharded_memory_config(shape, grid, strategy)


@pytest.mark.parametrize("case", recorded("tensor_spec"), ids=lambda case: f"{case['kind']}-{case['shape']}")
def test_tensor_specs(case):
    layout, dtype = LAYOUTS[case["layout"]], DTYPES[case["dtype"]]
    if case["kind"] == "helper":
        spec = ttnn.TensorSpec(ttnn.Shape(case["shape"]), dtype, layout, ttnn.BufferType.L1)
        dims = [case["dims"]] if "dims" in case else []
        grid = core_set(case["grid"])
        orientation = ttnn.ShardOrientation[case["orientation"]]
        result = called(lambda: getattr(spec, case["method"])(*dims, grid, orientation).memory_config)
        assert result == (case["memory_config"] if case["ok"] else None)
        return

    def made():
        values = np.zeros(case["shape"], np.float32)
        return ttnn.from_torch(values, dtype, layout=layout, tile=tile_of(case), memory_config=config_of(case))

    result = called(lambda: made().memory_config())
    assert result == (case["memory_config"] if case["ok"] else None), case.get("error")
    if case["ok"]:
        x = made()
        assert x.padded_shape == case["padded_shape"]
        assert raw(x).nbytes == case["nbytes"]


# Files.


@pytest.mark.parametrize("case", recorded("tensorbin"), ids=lambda case: case["file"])
def test_files(case, tmp_path):
    x = ttnn.load_tensor(FOLDER / case["file"])
    assert x.shape == case["shape"]
    assert x.dtype is DTYPES[case["data_type"]]
    np.testing.assert_array_equal(x.to_numpy().astype(np.float64), np.array(case["values"]))
    ttnn.dump_tensor(tmp_path / "again.tensorbin", x)
    again = ttnn.load_tensor(tmp_path / "again.tensorbin")
    assert again.spec == x.spec
    np.testing.assert_array_equal(raw(again), raw(x))


# Devices.

CHIPS = {"wormhole_N150": "wormhole_n150", "blackhole_P150": "blackhole_p150"}


@pytest.mark.parametrize("name", ["wormhole_N150_FD", "wormhole_N150_SD", "blackhole_P150_FD", "blackhole_P150_SD"])
def test_devices(name, monkeypatch, data):
    record, stored = recorded(f"dev_{name}"), data(f"dev_{name}")
    board, mode = name.rsplit("_", 1)
    if mode == "SD":
        monkeypatch.setenv("TT_METAL_SLOW_DISPATCH_MODE", "1")
    with ttnn.manage_device(chip=CHIPS[board]) as device:
        for index, case in enumerate(record["buffers"]):
            config = case["mc"]
            buffer = ttnn.BufferType[case["buf"]]
            if config is None:
                memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.INTERLEAVED, buffer)
            else:
                grid, orientation = core_set(config["ranges"]), ttnn.ShardOrientation[config["ori"]]
                if config["kind"] == "ND":
                    strategy = ttnn.ShardDistributionStrategy[config["strategy"]]
                    shards = ttnn.NdShardSpec(config["shard_shape"], grid, orientation, strategy)
                    memory = ttnn.MemoryConfig(buffer, shards)
                else:
                    kind = {"H": "HEIGHT_SHARDED", "W": "WIDTH_SHARDED", "B": "BLOCK_SHARDED"}[config["kind"]]
                    shards = ttnn.ShardSpec(grid, config["shard_shape"], orientation)
                    memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout[kind], buffer, shards)
            values = stored.get(f"b{index}_in")
            if values is None:
                values = np.zeros(case["shape"], np.float32)
            tile = ttnn.Tile(case["tile"]) if case["tile"] else None
            x = ttnn.from_torch(
                values.reshape(case["shape"]),
                DTYPES[case["dtype"]],
                layout=LAYOUTS[case["layout"]],
                tile=tile,
                memory_config=memory,
                device=device,
            )
            assert x.buffer_address() == case["address"], index
            assert x.buffer_page_size() == case["page_size"]
            assert x.buffer_aligned_page_size() == case["aligned_page_size"]
            assert x.buffer_num_pages() == case["num_pages"]
            pages = [
                [page.page_index, page.bank_id, page.core_x, page.core_y, page.page_address]
                for page in ttnn.get_buffer_pages(device)
            ]
            np.testing.assert_array_equal(np.array(pages), stored[f"b{index}_pages"])
            host_bytes = stored.get(f"b{index}_host_bytes")
            if host_bytes is not None:
                np.testing.assert_array_equal(raw(x), host_bytes)
            ttnn.deallocate(x)
