# SPDX-License-Identifier: Apache-2.0
"""The dialect beyond its documents: caches, devices, errors, and the company it keeps."""

import inspect
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
import tilewright.ttnn as ttnn
from tilewright.views import scene_of

CORES = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))])


@pytest.fixture
def device():
    with ttnn.manage_device() as opened:
        yield opened


def test_torch_and_ttnn_are_never_imported():
    code = "import sys, tilewright.ttnn; print('torch' in sys.modules, 'ttnn' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["False", "False"]


def test_another_ttnn_can_be_imported_beside_it(tmp_path):
    (tmp_path / "ttnn.py").write_text("Shape = 'theirs'\n", encoding="utf-8")
    code = "import ttnn, tilewright.ttnn as ours; print(ttnn.Shape, ours.Shape([2]), ours.__name__, ttnn.__name__)"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, env=None
    )
    assert process.stdout.strip() == "theirs ttnn.Shape([2]) tilewright.ttnn ttnn"


def test_torch_tensors_by_what_they_can_do(tmp_path):
    torch = pytest.importorskip("torch")
    weights = torch.randn(3, 5, requires_grad=True)
    x = ttnn.from_torch(weights, ttnn.bfloat16)
    back = ttnn.to_torch(x)
    assert back.dtype is torch.bfloat16
    assert torch.equal(back, weights.detach().to(torch.bfloat16))
    for dtype in (torch.bfloat16, torch.float32, torch.int32, torch.uint8, torch.int8, torch.float16, torch.bool):
        values = torch.arange(6).reshape(2, 3).to(dtype)
        assert torch.equal(ttnn.to_torch(ttnn.from_torch(values)).float(), values.float())
    shared = torch.zeros(2, 2)
    x = ttnn.from_torch(shared)
    shared[0, 1] = 4
    assert x.to_list() == [[0.0, 4.0], [0.0, 0.0]]
    assert ttnn.to_torch(x, torch.float64, torch_rank=2).dtype is torch.float64
    ttnn.dump_tensor(tmp_path / "x.tensorbin", x)  # mapped memory is read-only, and torch's is not
    assert torch.equal(ttnn.to_torch(ttnn.load_tensor(tmp_path / "x.tensorbin")), shared)
    packed = ttnn.from_torch(torch.randn(40, 40, dtype=torch.float64), ttnn.bfloat8_b)
    assert ttnn.to_torch(packed).dtype is torch.float32


@pytest.mark.parametrize(
    ("source_dtype", "stored_dtype"),
    [
        (np.float32, "FLOAT32"),
        (ml_dtypes.bfloat16, "BFLOAT16"),
        (np.int32, "INT32"),
        (np.int8, "INT8"),
        (np.uint8, "UINT8"),
        (np.uint16, "UINT16"),
        (np.uint32, "UINT32"),
        (np.bool_, "UINT8"),
        (np.float16, "BFLOAT16"),
        (np.int64, "UINT32"),
        (np.int16, "UINT16"),
        (np.float64, "FLOAT32"),
        (np.uint64, "UINT32"),
    ],
)
def test_default_data_types(source_dtype, stored_dtype):
    x = ttnn.from_torch(np.ones((2, 3)).astype(source_dtype))
    assert x.dtype.name == stored_dtype
    assert (x.to_numpy().astype(np.float32) == 1).all()


TAKERS = {
    "from_torch": ttnn.from_torch,
    "as_tensor": ttnn.as_tensor,
    "Tensor": ttnn.Tensor,
    "on a mesh": lambda values: ttnn.from_torch(
        values, mesh_mapper=ttnn.create_mesh_mapper((1, 2), ttnn.MeshMapperConfig(None, None))
    ),
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize(
    "values",
    [
        np.array([2**40]),
        np.array([-1]),
        np.array([-1], np.int16),
        np.array([2**63], np.uint64),
        np.float16([1, 1.0009765625]),
        np.array([1e300]),
        np.array([0.1]),
        np.array([2.0**-160]),
        np.array([[np.nan, 1 + 2.0**-30]]),
    ],
)
def test_values_must_fit_the_type_taken(take, values):
    with pytest.raises(tw.FormatError, match=r"ttnn stores .* by default; pass a dtype: .* is not a value of"):
        take(values)


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_values_that_fit_the_type_taken_are_kept(take, dtype):
    values = np.array([[0.5, -0.0, np.nan, np.inf, -np.inf, 256]], dtype)
    parts = take(values).parts.by_device.values()
    for part in parts:
        np.testing.assert_array_equal(part.numpy().astype(np.float64), values.astype(np.float64))
    assert take(np.zeros((0, 3), dtype)).shape == [0, 3]


def test_a_type_that_is_asked_for_rounds():
    assert ttnn.from_torch(np.array([-1]), ttnn.int32).to_list() == [-1]
    assert ttnn.from_torch(np.float16([1.0009765625]), ttnn.bfloat16).to_list() == [1]
    assert ttnn.from_torch(np.array([0.1, 1e300]), ttnn.float32).to_list() == [np.float32(0.1), np.inf]
    assert ttnn.full((1,), 0.1, ttnn.bfloat16).to_list() == [0.10009765625]
    assert ttnn.full_like(ttnn.zeros((1,), ttnn.float32), 7.7, ttnn.int32).to_list() == [7]
    assert ttnn.arange(257, 259, dtype=ttnn.bfloat16).to_list() == [256, 258]


def test_numbers_without_a_type_are_float32():
    assert ttnn.from_torch([0.1]).to_list() == ttnn.Tensor([0.1]).to_list() == [np.float32(0.1)]
    with pytest.raises(tw.FormatError, match=r"1e\+39 at 0 is not a value of float32"):
        ttnn.from_torch([1e39])


@pytest.mark.parametrize(
    ("refused", "reason"),
    {
        "full": (lambda: ttnn.full((2, 2), 0.1), "makes bfloat16 by default; pass a dtype: 0.1"),
        "a large full": (lambda: ttnn.full((2, 2), 257), "257 is not a value of bfloat16"),
        "beyond 64 bits": (lambda: ttnn.full((2, 2), 2**70), "is not a value of int64"),
        "beyond float32": (lambda: ttnn.full((2, 2), 1e39, ttnn.float32), "is not a value of float32"),
        "a fraction": (lambda: ttnn.full_like(ttnn.zeros((1,), ttnn.int32), 7.7), "the tensor has int32; pass a dtype"),
        "a range": (lambda: ttnn.full_like(ttnn.zeros((1,), ttnn.uint8), 300), "300 is not a value of uint8"),
        "a sign": (lambda: ttnn.full_like(ttnn.zeros((1,), ttnn.uint16), -1), "-1 is not a value of uint16"),
        "not a number": (lambda: ttnn.full_like(ttnn.zeros((1,), ttnn.int8), np.nan), "nan is not a value of int8"),
        "blocks": (lambda: ttnn.full_like(ttnn.zeros((1, 2), ttnn.bfloat8_b), 0.3), "is not a value of bfloat8_b"),
        "arange": (lambda: ttnn.arange(300), "257 at 257 is not a value of bfloat16"),
    }.values(),
)
def test_what_is_created_is_not_rounded_unasked(refused, reason):
    with pytest.raises(tw.FormatError, match=reason):
        refused()


def test_what_is_created_is_exact():
    assert ttnn.full((2,), 2.5).to_list() == [2.5, 2.5]
    assert ttnn.full_like(ttnn.zeros((1, 2), ttnn.bfloat8_b), 0.75).to_list() == [[0.75, 0.75]]
    assert ttnn.full_like(ttnn.zeros((1,), ttnn.float32), 0.1).to_list() == [np.float32(0.1)]
    assert ttnn.arange(256).to_list() == list(range(256))


def test_pad_values_are_converted_like_the_data():
    x = ttnn.from_torch(np.float32([1]), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, pad_value=0.1)
    assert np.frombuffer(x.native.raw, ml_dtypes.bfloat16)[1] == ml_dtypes.bfloat16(0.1)
    x = ttnn.from_torch(np.float32([1]), ttnn.int32, layout=ttnn.TILE_LAYOUT, pad_value=-3.0)
    assert np.frombuffer(x.native.raw, np.int32)[1] == -3


@pytest.mark.parametrize(
    ("refused", "reason"),
    {
        "a float above the range": (lambda: ttnn.from_torch(np.float32([70000]), ttnn.uint16), "outside 0 to 65535"),
        "a float below the range": (lambda: ttnn.from_torch(np.float32([1, -1]), ttnn.uint8), "-1.0 at 1 is outside"),
        "not a number": (lambda: ttnn.from_torch(np.float32([np.nan]), ttnn.int32), "nan at 0 is outside"),
        "bfloat16": (lambda: ttnn.from_torch(np.array([300], ml_dtypes.bfloat16), ttnn.int8), "outside -128 to 127"),
        "a fraction in a list": (lambda: ttnn.Tensor([1.5], [1], ttnn.uint16), "1.5 at 0 is not a value of uint16"),
        "a large number in a list": (lambda: ttnn.Tensor([70000], [1], ttnn.uint16), "70000 at 0 is not a value of"),
        "one too large for the default": (lambda: ttnn.Tensor([2**31], [1]), "is not a value of int32"),
        "a float that is too large": (lambda: ttnn.Tensor([1e39], [1], ttnn.float32), "is not a value of float32"),
        "words": (lambda: ttnn.Tensor(["a"], [1]), "expected numbers"),
        "a pad value": (lambda: padded(np.float32, ttnn.int32, -3.7), "-3.7 is not a value of int32"),
        "a large pad value": (lambda: padded(np.uint8, None, 300), "300 is not a value of uint8"),
        "a pad value of integers": (lambda: padded(np.int32, ttnn.float32, 2.9), "2.9 is not a value of int32"),
        "ttnn.pad": (lambda: ttnn.pad(ttnn.from_torch(np.uint8([1])), [(0, 1)], 300), "300 is not a value of uint8"),
        "pad_to_tile": (lambda: ttnn.from_torch(np.uint8([[1]])).pad_to_tile(-1), "-1 is not a value of uint8"),
        "typecast": (lambda: ttnn.typecast(ttnn.from_torch(np.float32([-1])), ttnn.uint8), "-1.0 at 0 is outside"),
        "reciprocal": (lambda: ttnn.reciprocal(ttnn.from_torch(np.uint8([1]))), "expected numbers with a fraction"),
    }.values(),
)
def test_numbers_that_are_not_values_of_the_type_are_refused(refused, reason):
    with pytest.raises((tw.FormatError, TypeError), match=reason):
        refused()


def padded(source, dtype, value):
    return ttnn.from_torch(np.ones(1, source), dtype, layout=ttnn.TILE_LAYOUT, pad_value=value)


def test_arrays_are_converted_as_ttnn_converts_them():
    assert ttnn.from_torch(np.float32([1.9, -1.9]), ttnn.int32).to_list() == [1, -1]
    assert ttnn.from_torch(np.int32([-1, 300]), ttnn.uint8).to_list() == [255, 44]
    assert ttnn.Tensor([4294967295, 16777217], [2], ttnn.uint32).to_list() == [4294967295, 16777217]


# Arguments.

ONES = np.ones((4, 4), np.float32)


def test_no_function_swallows_arguments():
    """Every keyword is named in a signature; those that are passed on are named there."""
    passes_on = {"manage_device", "create_mesh_device", "show", "__dlpack__", "__array__"}
    named = [(name, getattr(ttnn, name)) for name in ttnn.__all__ if callable(getattr(ttnn, name))]
    methods = [
        (name, member)
        for kind in (ttnn.Tensor, ttnn.TensorSpec, ttnn.MemoryConfig)
        for name, member in vars(kind).items()
    ]
    checked = 0
    for name, member in named + methods:
        if name.startswith("_") and not name.startswith("__"):
            continue
        try:
            parameters = inspect.signature(member).parameters.values()
        except (TypeError, ValueError):  # a class of another language, an enumeration
            continue
        checked += 1
        keywords = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.VAR_KEYWORD]
        assert not keywords or name in passes_on, f"{name} takes **{keywords[0]}"
    assert checked > 80


@pytest.mark.parametrize(
    "call",
    [
        lambda: ttnn.as_tensor(ONES, mesh_mapper="anything"),
        lambda: ttnn.from_torch(ONES, mesh_mapper="anything"),
        lambda: ttnn.from_torch(ONES, enable_bfloat_opt=True),
        lambda: ttnn.to_torch(ttnn.from_torch(ONES), mesh_composer="anything"),
        lambda: ttnn.typecast(ttnn.from_torch(ONES), ttnn.bfloat16, output_tensor=ttnn.from_torch(ONES)),
        lambda: ttnn.tilize(ttnn.from_torch(ONES), tile=ttnn.Tile((16, 32))),
    ],
)
def test_arguments_that_would_change_the_result_are_refused_by_name(call):
    with pytest.raises(
        tw.MemoryConfigError, match=r"(?s)(mesh_mapper|enable_\w+|mesh_composer|output_tensor|tile)=.* is not"
    ):
        call()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: ttnn.as_tensor(ONES, layuot=3), "layuot"),
        (lambda: ttnn.from_torch(ONES, memory_confg=3), "memory_confg"),
        (lambda: ttnn.Tensor(ONES, ttnn.bfloat16, data_type=ttnn.float32), "data_type twice"),
        (lambda: ttnn.Tensor(ONES, ttnn.bfloat16, ttnn.float32), "data_type twice"),
        (lambda: ttnn.Tensor(ttnn.from_torch(ONES), data_type=ttnn.float32), "data_type"),
        (
            lambda: ttnn.TensorSpec(
                [4, 4], ttnn.bfloat16, ttnn.TILE_LAYOUT, ttnn.BufferType.L1, buffer_type=ttnn.BufferType.L1
            ),
            "twice",
        ),
        (
            lambda: ttnn.TensorSpec(
                [4, 4], ttnn.bfloat16, ttnn.TILE_LAYOUT, ttnn.BufferType.L1, memory_config=ttnn.L1_MEMORY_CONFIG
            ),
            "one or the other",
        ),
    ],
)
def test_arguments_that_are_not_there_are_refused_by_name(call, name):
    with pytest.raises(TypeError, match=name):
        call()


def test_arguments_that_change_nothing_are_taken():
    x = ttnn.from_torch(ONES, cq_id=0, mesh_mapper=None)
    tiled = ttnn.tilize(x, use_multicore=False, tile=ttnn.Tile((32, 32)))
    assert ttnn.to_torch(ttnn.untilize(tiled, use_multicore=True), mesh_composer=None).tolist() == ONES.tolist()
    padded = ttnn.pad(x, [(0, 4), (0, 0)], memory_config=ttnn.L1_MEMORY_CONFIG)
    assert padded.memory_config() == ttnn.L1_MEMORY_CONFIG
    assert ttnn.tilize_with_val_padding(x, (32, 32), 1.0, dtype=ttnn.bfloat16).dtype == ttnn.bfloat16


def test_files_need_their_extension(tmp_path):
    for path in (tmp_path / "x.bin", tmp_path / "x"):
        with pytest.raises(tw.FileFormatError, match=r"x\.tensorbin"):
            ttnn.dump_tensor(path, ttnn.from_torch(np.ones((2, 2))))
        with pytest.raises(tw.FileFormatError, match=r"x\.tensorbin"):
            ttnn.load_tensor(path)


def test_what_was_padded_off_its_place_is_saved_right(tmp_path):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    ttnn.dump_tensor(tmp_path / "x.tensorbin", ttnn.from_torch(values).pad([4, 5], [1, 1], 9.0))
    assert ttnn.load_tensor(tmp_path / "x.tensorbin").to_list() == values.tolist()


# Devices.


def test_devices_are_opened_by_number(monkeypatch):
    device = ttnn.open_device(device_id=0)
    assert ttnn.open_device(device_id=0) is device
    assert ttnn.GetDefaultDevice() is device
    ttnn.close_device(device)
    assert ttnn.GetDefaultDevice() is None
    monkeypatch.setenv("TILEWRIGHT_CHIP", "blackhole_p150")
    with ttnn.manage_device(0) as other:
        assert other is not device
        assert (other.arch(), other.id(), other.get_num_devices()) == ("blackhole", 0, 1)
        assert other.dram_grid_size() == (8, 1)
    with ttnn.manage_device(device_id=1, chip="wormhole_n300", l1_small_size=1000) as third:
        assert third.memory_view("l1_small").bank_bytes == 1024


def test_a_host_tensor_needs_a_known_device():
    x = ttnn.from_torch(np.ones((2, 2), np.float32))
    with pytest.raises(tw.MemoryConfigError, match="to_device"):
        ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG)
    with pytest.raises(tw.MemoryConfigError, match="to_device first"):
        x.buffer_address()


def test_operations_follow_their_tensor(device):
    values = np.arange(60 * 90, dtype=np.float32).reshape(60, 90)
    x = ttnn.from_torch(values, layout=ttnn.TILE_LAYOUT, device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
    for y, expected in (
        (ttnn.reshape(x, (90, 60)), values.reshape(90, 60)),
        (ttnn.permute(x, (1, 0)), values.T),
        (ttnn.transpose(x, 0, 1), values.T),
        (ttnn.untilize(x), values),
        (ttnn.unpad(x, (1, 2), (30, 40)), values[1:30, 2:40]),
        (x[3], values[3]),
        (x[..., 5:7], values[:, 5:7]),
        (ttnn.pad(x, [(1, 0), (0, 2)], 7), np.pad(values, [(1, 0), (0, 2)], constant_values=7)),
        (ttnn.typecast(x, ttnn.int32), values),
        (ttnn.to_memory_config(x, ttnn.DRAM_MEMORY_CONFIG, ttnn.float32), values),
        (ttnn.tilize_with_val_padding(ttnn.untilize(x), (96, 96), 5), values),
        (ttnn.untilize_with_unpadding(x, (9, 8)), values[:10, :9]),
    ):
        assert y.device() is device
        np.testing.assert_array_equal(y.to_numpy().astype(np.float32), expected)
    ttnn.deallocate(x)
    assert not x.is_allocated()


def test_tilize_with_val_padding_fills():
    x = ttnn.tilize_with_val_padding(ttnn.from_torch(np.ones((5, 7), np.float32)), (64, 32), 3.0)
    expected = np.full((64, 32), 3, np.float32)
    expected[:5, :7] = 1
    whole = tw.from_bytes(x.native.pages, tw.TensorSpec((64, 32), "float32", "tile"))
    np.testing.assert_array_equal(whole, expected)


def test_extra_padding_of_a_device_tensor_survives(device):
    x = ttnn.from_torch(np.ones((5, 7), np.float32)).pad([6, 9], [0, 0], 2.0)
    there = x.to(device)
    assert there.padded_shape == [6, 9]
    np.testing.assert_array_equal(there.native.pages, x.native.pages)


# Values that print, compare and refuse.


def test_wrappers_compare_by_their_core_values():
    spec = ttnn.ShardSpec(CORES, [32, 64], ttnn.ShardOrientation.ROW_MAJOR)
    assert spec == ttnn.ShardSpec(CORES, (32, 64), ttnn.ShardOrientation.ROW_MAJOR)
    assert spec != ttnn.ShardSpec(CORES, (64, 64), ttnn.ShardOrientation.ROW_MAJOR)
    assert hash(ttnn.Tile((16, 32))) == hash(ttnn.Tile([16, 32]))
    assert ttnn.Tile((32, 32)) != ttnn.Tile((32, 32), transpose_tile=True)
    assert ttnn.MemoryConfig() == ttnn.DRAM_MEMORY_CONFIG != ttnn.L1_MEMORY_CONFIG
    assert CORES.contains(ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0)))
    assert (CORES.size(), len(CORES), CORES.empty(), list(CORES)) == (1, 1, False, CORES.ranges())


def made(shape=(64, 64), layout=ttnn.TILE_LAYOUT, memory=None, **options):
    return ttnn.from_torch(np.zeros(shape, np.float32), layout=layout, memory_config=memory, **options)


def sharded(kind, shape, cores=CORES, orientation=ttnn.ShardOrientation.ROW_MAJOR, buffer=ttnn.BufferType.L1):
    layout = ttnn.TensorMemoryLayout[f"{kind}_SHARDED"]
    return ttnn.MemoryConfig(layout, buffer, ttnn.ShardSpec(cores, shape, orientation))


def nd(shape, cores=CORES, strategy=ttnn.ShardDistributionStrategy.ROUND_ROBIN_1D):
    return ttnn.MemoryConfig(ttnn.BufferType.L1, ttnn.NdShardSpec(shape, cores, shard_distribution_strategy=strategy))


TWO = ttnn.CoreRangeSet([ttnn.CoreRange((0, 0), (0, 0)), ttnn.CoreRange((2, 0), (2, 0))])
FAR = ttnn.CoreRangeSet([ttnn.CoreRange((0, 9), (0, 9))])
CONDITIONS = {
    "1 tile": lambda device: ttnn.Tile((7, 32)),
    "1 transposed": lambda device: ttnn.Tile((8, 32), True),
    "1 rows": lambda device: made(layout=ttnn.ROW_MAJOR_LAYOUT, tile=ttnn.Tile((16, 32))),
    "2 start after end": lambda device: ttnn.CoreRange(ttnn.CoreCoord(1, 0), ttnn.CoreCoord(0, 0)),
    "2 overlap": lambda device: ttnn.CoreRangeSet([*CORES, *CORES]),
    "3 no shard spec": lambda device: made(memory=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG),
    "4 block float": lambda device: made(layout=ttnn.ROW_MAJOR_LAYOUT, dtype=ttnn.bfloat8_b),
    "4 float8": lambda device: made(dtype=ttnn.fp8_e4m3),
    "5 zero": lambda device: made(memory=sharded("HEIGHT", (0, 64))),
    "5 zero nd": lambda device: made(memory=nd([0, 32])),
    "6 whole tiles": lambda device: made(memory=sharded("HEIGHT", (16, 64))),
    "8 width": lambda device: made(memory=sharded("HEIGHT", (32, 32))),
    "8 cores": lambda device: made((256, 64), memory=sharded("HEIGHT", (32, 64))),
    "9 height": lambda device: made(memory=sharded("WIDTH", (32, 32))),
    "9 cores": lambda device: made((64, 256), memory=sharded("WIDTH", (64, 32))),
    "10 one range": lambda device: made(memory=sharded("BLOCK", (32, 32), TWO)),
    "10 rows": lambda device: made((96, 64), memory=sharded("BLOCK", (32, 32))),
    "11 rank 1": lambda device: made((64,), ttnn.ROW_MAJOR_LAYOUT, sharded("HEIGHT", (2, 64))),
    "12 rank": lambda device: made((64, 64), memory=nd([1, 1, 32, 32]), device=device),
    "13 ranges": lambda device: made(memory=nd([32, 32], TWO, ttnn.ShardDistributionStrategy.GRID_2D), device=device),
    "14 uniform": lambda device: made(
        (96, 32), memory=nd([32, 32], strategy=ttnn.ShardDistributionStrategy.CONTIGUOUS_1D), device=device
    ),
    "15 off the device": lambda device: made(memory=sharded("HEIGHT", (64, 64), FAR), device=device),
    "15 dram row": lambda device: made(
        memory=sharded("HEIGHT", (64, 64), FAR, buffer=ttnn.BufferType.DRAM), device=device
    ),
    "16 out of memory": lambda device: made((4096, 4096), memory=sharded("HEIGHT", (4096, 4096), TWO), device=device),
    "interleaved with shards": lambda device: ttnn.MemoryConfig(
        ttnn.TensorMemoryLayout.INTERLEAVED, ttnn.BufferType.L1, ttnn.ShardSpec(CORES, [32, 32])
    ),
    "col_tilize": lambda device: made(col_tilize=True),
    "spec and dtype": lambda device: ttnn.from_torch(np.zeros((2, 2)), ttnn.int8, spec=made((2, 2)).spec),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions(name, device):
    with pytest.raises(tw.TilewrightError, match=r"\w{3}"):
        CONDITIONS[name](device)


def test_a_width_that_shards_pad_is_converted_not_refused(device):
    # ttnn accepts this on a mock device and fails when bytes are written; ours are right
    values = np.arange(35, dtype=np.float32).reshape(5, 7)
    config = sharded("WIDTH", (5, 2), ttnn.CoreRangeSet([ttnn.CoreRange((0, 0), (3, 0))]))
    x = ttnn.to_device(ttnn.from_torch(values), device, memory_config=config)
    assert x.padded_shape == [5, 8]
    np.testing.assert_array_equal(x.to_numpy(), values)


def test_the_rest_of_the_library_takes_tensors_and_specs_of_the_dialect():
    x = ttnn.from_torch(np.ones((64, 64), np.float32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
    with ttnn.manage_device() as device:
        for subject in (x, x.spec, x.native, [x, x.spec]):
            assert tw.fit(subject, "wormhole_n150")
        placed = x.native.spec.with_chip(device.chip)
        for subject in (ttnn.TensorSpec.wrap(placed), placed):
            assert tw.explain(subject, (33, 5)).where == placed.where(33, 5)
        assert scene_of(x).title == scene_of(x.native).title
        assert scene_of(ttnn.TensorSpec.wrap(placed)).title == scene_of(placed).title
    for wrong in (np.ones((3, 4)), 5, ttnn.DRAM_MEMORY_CONFIG):
        with pytest.raises(tw.MemoryConfigError, match="expected a TensorSpec or a tensor"):
            tw.explain(wrong, (0, 0))


# Shapes, words and devices at their edges.


@pytest.mark.parametrize("shape", ["32x32", "3232", "", (32.5, 32), (32, "a"), 32, None, (0, 32), (-32, 32), [32]])
@pytest.mark.parametrize("create", [ttnn.create_sharded_memory_config, ttnn.create_sharded_memory_config_])
def test_what_is_no_shape_is_refused(create, shape):
    with pytest.raises(tw.MemoryConfigError, match="expected"):
        create(shape, ttnn.CoreGrid(y=2, x=2), ttnn.ShardStrategy.BLOCK, ttnn.ShardOrientation.ROW_MAJOR)


def test_a_shape_that_is_no_python_is_written_out():
    with pytest.raises(tw.MemoryConfigError, match=r"got '32x32'; write \(32, 32\)"):
        ttnn.create_sharded_memory_config("32x32", ttnn.CoreGrid(y=2, x=2), ttnn.ShardStrategy.BLOCK)


@pytest.mark.parametrize(
    ("enum", "name", "meant"),
    [
        (ttnn.ShardOrientation, "COLUMN_MAJOR", "COL_MAJOR"),
        (ttnn.ShardOrientation, "row_major", "ROW_MAJOR"),
        (ttnn.StorageType, "BORROWED_HOST_STORAGE", "BORROWED_HOST"),
        (ttnn.StorageType, "OWNED_HOST_STORAGE", "OWNED_HOST"),
        (ttnn.StorageType, "DEVICE_STORAGE", "DEVICE"),
        (ttnn.Layout, "TILED", "TILE"),
        (ttnn.TensorMemoryLayout, "BLOCK", "BLOCK_SHARDED"),
        (ttnn.ShardStrategy, "BLOCK_SHARDED", "BLOCK"),
        (ttnn.DataType, "BF16", "BFLOAT16"),
        (tw.memory.BufferType, "DRAMM", "DRAM"),
    ],
)
def test_a_member_that_does_not_exist_names_the_nearest(enum, name, meant):
    with pytest.raises(
        AttributeError, match=rf"{enum.__name__} has no {name}, its members are .*{enum.__name__}.{meant}"
    ):
        getattr(enum, name)
    assert not hasattr(enum, "_missing_name_")


def test_a_tensor_of_a_closed_device_is_gone():
    device = ttnn.open_device(device_id=0)
    tensor = ttnn.from_torch(ONES, device=device)
    kept = ttnn.from_device(tensor)
    ttnn.close_device(device)
    for read in (tensor.to_numpy, tensor.to_list, lambda: ttnn.from_device(tensor), tensor.buffer_address):
        with pytest.raises(tw.TransferError, match="that is closed; copy it to the host before"):
            read()
    with pytest.raises(tw.MemoryConfigError, match="is closed; open it again"):
        ttnn.to_device(kept, device)
    assert not tensor.is_allocated()
    ttnn.deallocate(tensor)  # there is nothing left to do
    assert (kept.to_numpy() == 1).all()
    with ttnn.manage_device(device_id=0) as again:
        assert (ttnn.to_device(kept, again).to_numpy() == 1).all()


def test_a_part_of_a_mesh_leaves_its_devices_open():
    mesh_device = ttnn.open_mesh_device(ttnn.MeshShape(1, 2))
    tensor = ttnn.from_torch(ONES, device=mesh_device)
    ttnn.close_mesh_device(mesh_device.create_submesh(ttnn.MeshShape(1, 1)))
    assert (ttnn.get_device_tensors(tensor)[0].to_numpy() == 1).all()
    ttnn.close_mesh_device(mesh_device)
    with pytest.raises(tw.TransferError, match="is closed"):
        ttnn.get_device_tensors(tensor)[0].to_numpy()


def test_rows_of_block_shards_are_multiples_of_64_bytes():
    for dtype, width in ((ttnn.float32, 48), (ttnn.bfloat16, 64), (ttnn.uint8, 64)):
        spec = ttnn.TensorSpec([4, 80], dtype, ttnn.ROW_MAJOR_LAYOUT).block_sharded(ttnn.CoreRange((0, 0), (1, 1)))
        assert spec.memory_config.shard_spec.shape == [2, width]
