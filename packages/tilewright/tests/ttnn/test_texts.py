# SPDX-License-Identifier: Apache-2.0
"""What ttnn 0.81.1 prints, recorded, and what the dialect prints for the same values."""

import json

import numpy as np
import pytest

import tilewright.ttnn as ttnn
from tilewright import FormatError, MemoryConfigError

from ..memory.golden import FOLDER

CASES = json.loads((FOLDER / "texts.json").read_text(encoding="utf-8"))["cases"]
KINDS = sorted({case["kind"] for case in CASES})


@pytest.fixture(autouse=True)
def usual_options():
    yield
    ttnn.set_printoptions(profile="short")


def core_range(corners):
    return ttnn.CoreRange(*[ttnn.CoreCoord(x, y) for x, y in corners])


def core_ranges(ranges):
    return ttnn.CoreRangeSet([core_range(corners) for corners in ranges])


def shard_spec(asked):
    return ttnn.ShardSpec(core_ranges(asked["grid"]), asked["shape"], ttnn.ShardOrientation[asked["orientation"]])


def nd_shard_spec(asked):
    orientation = ttnn.ShardOrientation[asked["orientation"]]
    strategy = ttnn.ShardDistributionStrategy[asked["strategy"]]
    return ttnn.NdShardSpec(asked["shape"], core_ranges(asked["grid"]), orientation, strategy)


def memory_config(asked):
    buffer = ttnn.BufferType[asked["buffer"]]
    if "nd" in asked:
        return ttnn.MemoryConfig(buffer, nd_shard_spec(asked["nd"]))
    shards = shard_spec(asked["shard"]) if asked.get("shard") else None
    return ttnn.MemoryConfig(ttnn.TensorMemoryLayout[asked["layout"]], buffer, shards)


def tensor_spec(asked):
    dtype, layout = ttnn.DataType[asked["dtype"]], ttnn.Layout[asked["layout"]]
    config = memory_config(asked["memory"])
    return ttnn.TensorSpec(asked["shape"], dtype, layout, memory_config=config, tile=asked["tile"])


def tensor(asked):
    ttnn.set_printoptions(**asked["options"])
    values = np.frombuffer(bytes.fromhex(asked["hex"]), asked["source"]).reshape(asked["shape"])
    dtype, layout = getattr(ttnn, asked["dtype"]), ttnn.Layout[asked["layout"]]
    return ttnn.Tensor(values, data_type=dtype, layout=layout, pad_value=asked["pad"])


MAKE = {
    "BufferType": lambda name: ttnn.BufferType[name],
    "CoreCoord": lambda at: ttnn.CoreCoord(*at),
    "CoreRange": core_range,
    "CoreRangeSet": core_ranges,
    "CoreRangeSet (from a set)": lambda ranges: ttnn.CoreRangeSet({core_range(corners) for corners in ranges}),
    "DataType": lambda name: getattr(ttnn, name),
    "Layout": lambda name: getattr(ttnn, name),
    "MemoryConfig": memory_config,
    "NdShardSpec": nd_shard_spec,
    "Shape": ttnn.Shape,
    "ShardOrientation": lambda name: ttnn.ShardOrientation[name.upper()],
    "ShardSpec": shard_spec,
    "Tensor": tensor,
    "TensorMemoryLayout": lambda name: ttnn.TensorMemoryLayout[name],
    "TensorSpec": tensor_spec,
    "Tile": lambda asked: ttnn.Tile(asked["shape"], asked["transpose"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_printed_as_ttnn_prints_them(kind):
    for case in CASES:
        if case["kind"] == kind:
            value = MAKE[kind](case["params"])
            assert repr(value) == case["repr"], case["params"]
            # the one clash: the original document prints ttnn.Shape([...]), and ttnn today Shape([...])
            assert str(value) == ("ttnn." if kind == "Shape" else "") + case["repr"], case["params"]


def test_values_are_written_as_json_as_ttnn_writes_them():
    written = [case for case in CASES if "to_json" in case]
    assert len(written) > 20
    for case in written:
        value = MAKE[case["kind"]](case["params"])
        expected, found = json.loads(case["to_json"]), json.loads(value.to_json())
        shards, ours = expected.get("nd_shard_spec", expected) if isinstance(expected, dict) else {}, found
        if "Unsupported type" in str(shards.get("shard_shape", "")):  # ttnn writes an error text for it
            ours = found.get("nd_shard_spec", found)
            shards["shard_shape"] = ours["shard_shape"]
            assert ours["shard_shape"] == case["params"].get("nd", case["params"])["shape"]
        assert found == expected
        assert value.to_json() == json.dumps(expected, separators=(",", ":"), sort_keys=True)
        if case["kind"] == "MemoryConfig":
            assert ttnn.MemoryConfig.from_json(value.to_json()) == value


def test_enums_are_printed_as_in_ttnn_and_equal_those_of_the_core():
    assert (str(ttnn.ShardStrategy.BLOCK), repr(ttnn.ShardStrategy.BLOCK)) == (
        "ShardStrategy.BLOCK",
        "<ShardStrategy.BLOCK: 3>",
    )
    assert str(ttnn.CoreGrid(y=2, x=3)) == "ttnn.CoreGrid(x=3, y=2)"
    kinds = (ttnn.Layout, ttnn.BufferType, ttnn.TensorMemoryLayout, ttnn.ShardOrientation, ttnn.ShardStrategy)
    for kind in (*kinds, ttnn.ShardDistributionStrategy):
        for member in kind:
            assert member == member.native == member
            assert hash(member) == hash(member.native)
            assert kind.of(member.native) is member
            assert member.native not in [other for other in kind if other is not member]
    assert ttnn.ROW_MAJOR_LAYOUT != ttnn.ShardOrientation.ROW_MAJOR


def test_print_options_are_checked():
    with pytest.raises(FormatError, match="unknown print profile 'long'; use one of 'empty', 'short', 'full'"):
        ttnn.set_printoptions(profile="long")
    with pytest.raises(FormatError, match="sci_mode, got 'maybe'"):
        ttnn.set_printoptions(profile="short", sci_mode="maybe")
    with pytest.raises(FormatError, match="0 or more digits, got -1"):
        ttnn.set_printoptions(profile="short", precision=-1)
    with pytest.raises(TypeError):
        ttnn.set_printoptions(precision=3)


def test_a_json_that_is_no_config_is_refused():
    for text in ("{}", "[]", "no json", '{"memory_layout": 9, "buffer_type": 0, "created_with_nd_shard_spec": false}'):
        with pytest.raises(MemoryConfigError, match="expected a memory config as to_json"):
            ttnn.MemoryConfig.from_json(text)


def test_a_deallocated_tensor_is_printed_without_values():
    with ttnn.manage_device() as device:
        x = ttnn.from_torch(np.ones((2, 3), np.float32), ttnn.bfloat16, device=device)
        assert str(x).startswith("ttnn.Tensor([[ 1.0000,  1.0000,  1.0000],\n             [ 1.0000,")
        ttnn.deallocate(x)
        properties = "shape=Shape([2, 3]), dtype=DataType::BFLOAT16, layout=Layout::ROW_MAJOR"
        assert str(x) == f"ttnn.Tensor(<buffer is not allocated>, {properties})"


def test_padded_tiles_of_higher_rank_show_their_own_values():
    """ttnn 0.81.1 prints padding there from the second matrix on."""
    x = ttnn.from_torch(np.arange(4, dtype=np.int32).reshape(2, 1, 2), layout=ttnn.TILE_LAYOUT)
    assert str(x).startswith("ttnn.Tensor([[[    0,     1]],\n\n             [[    2,     3]]], shape=Shape([2, 1, 2])")
