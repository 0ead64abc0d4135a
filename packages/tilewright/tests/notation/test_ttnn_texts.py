# SPDX-License-Identifier: Apache-2.0
"""Printed values of ttnn: every recorded text is parsed, printed again as it was, and read from JSON, too."""

import contextlib
import random
import re

import pytest

from tilewright import FileFormatError, ttnn
from tilewright.memory import CoreRange, CoreRangeSet, MemoryConfig, NdShardSpec, ShardSpec, TensorSpec
from tilewright.memory.config import NamedEnum
from tilewright.notation import (
    find_ttnn_values,
    parse_core_ranges,
    parse_dtype,
    parse_memory_config,
    parse_shape,
    parse_tensor_spec,
    parse_ttnn,
)

from .recorded_texts import as_recorded, recorded

CASES = recorded("texts/ttnn_texts.json")["cases"]
WRAPPERS = {
    "CoreRange": ttnn.CoreRange,
    "CoreRangeSet": ttnn.CoreRangeSet,
    "MemoryConfig": ttnn.MemoryConfig,
    "NdShardSpec": ttnn.NdShardSpec,
    "ShardSpec": ttnn.ShardSpec,
    "TensorSpec": ttnn.TensorSpec,
    "Tile": ttnn.Tile,
}


def texts():
    """Yield the type of every recorded text, the text, and what else was recorded."""
    for case in CASES:
        kind = case["kind"].split(" (")[0]
        for spelling in {case.get("repr"), case.get("str"), case.get("text")} - {None}:
            yield kind, spelling, case


def test_there_are_recorded_texts():
    assert len(CASES) > 60


def test_every_recorded_text_says_what_it_was_made_from():
    for kind, text, case in texts():
        found = parse_ttnn(f"\n  {text}\t ")
        assert (found.kind, found.extra) == (kind, ()), text
        check_value(kind, found.value, case)


def check_value(kind, value, case):
    if kind == "TensorSpec":
        fields = case["fields"]
        assert list(value.shape.logical) == fields["shape"]
        assert value.dtype == parse_dtype(f"DataType.{fields['dtype']}")
        assert value.page_layout.name == fields["layout"]
        assert (list(value.tile.shape) if value.is_tiled else None) == fields["tile"]
        assert value.memory == parse_memory_config(fields["memory_config"])
        assert list(value.alignment or value.default_alignment) == fields["alignment"]
    elif kind == "MemoryConfig":
        check_config(value, case["params"])
    elif isinstance(value, NamedEnum):
        assert value.name.lower() == re.sub("_layout$", "", case["params"].lower())
    elif kind == "DataType":
        assert value == parse_dtype(f"DataType::{case['params'].upper()}")
    elif kind == "Tile":
        assert as_recorded(value)["shape"] == case["params"]["shape"]  # the text does not say "transposed"
    elif "from a set" in case["kind"]:
        assert sorted(as_recorded(value)) == sorted(case["params"])
    else:
        assert as_recorded(value) == case["params"]


def check_config(value, params):
    assert value.buffer_type.name == params["buffer"]
    if "nd" in params:
        assert value.made_with_nd
        assert as_recorded(value.nd_shard_spec) == params["nd"]
    else:
        assert value.memory_layout.name == params["layout"]
        assert (value.shard_spec and as_recorded(value.shard_spec)) == params.get("shard")


def test_recorded_texts_are_printed_as_they_were():
    printed = 0
    for kind, text, _ in texts():
        value = parse_ttnn(text).value
        if kind in WRAPPERS:
            assert repr(WRAPPERS[kind].wrap(value)) == text
            printed += 1
    assert printed > 40


def test_recorded_json_is_the_same_value():
    refused = 0
    for case in CASES:
        if not case.get("to_json"):
            continue
        if "Unsupported type" in case["to_json"]:
            with pytest.raises(FileFormatError, match="Unsupported type span"):
                parse_ttnn(case["to_json"])
            refused += 1
        else:
            assert parse_ttnn(case["to_json"]).value == parse_ttnn(case["repr"]).value, case["to_json"]
    assert refused


def test_our_own_texts_are_parsed():
    config = MemoryConfig("nd_sharded", "l1", nd_shard_spec=NdShardSpec((1, 64, 32), (4, 2), "col_major"))
    specs = [
        TensorSpec((3, 70, 90), "bfloat8_b", tile=(16, 32), memory=config.__class__("interleaved", "l1")),
        TensorSpec((4, 64, 64), "float32", "tile", memory=config),
        TensorSpec((5, 7), "uint16", alignment=(4, 10)),
        TensorSpec((64, 64), memory=MemoryConfig("block_sharded", "l1", ShardSpec((2, 2), (32, 32)))),
    ]
    for spec in specs:
        text = repr(ttnn.TensorSpec.wrap(spec))
        assert parse_tensor_spec(text) == spec
        assert parse_memory_config(ttnn.TensorSpec.wrap(spec).memory_config.to_json()) == spec.memory
    assert parse_shape(str(ttnn.Shape([14, 28], [32, 32]))).padded == (32, 32)
    assert parse_dtype(repr(ttnn.bfloat16)).name == parse_dtype("<DataType.BFLOAT16: 0>").name == "bfloat16"


def test_older_texts_are_parsed():
    assert parse_ttnn("4294967295-18446744073709551615").value == (2**32 - 1, 2**64 - 1)
    cores = CoreRangeSet([CoreRange((0, 0), (7, 7))])
    assert parse_core_ranges("{[(x=0,y=0) - (x=7,y=7)]}") == cores
    assert parse_core_ranges("[(x=0,y=0) - (x=7,y=7)]") == cores
    assert parse_core_ranges("(x=7, y=3)") == CoreRangeSet([CoreRange((7, 3))])
    text = (
        "tt::tt_metal::MemoryConfig(memory_layout=TensorMemoryLayout::HEIGHT_SHARDED,buffer_type=BufferType::L1,"
        "shard_spec=ShardSpec(grid={[(x=0,y=0) - (x=7,y=7)]},shape={10923, 8},orientation=ShardOrientation::ROW_MAJOR,"
        "mode=ShardMode::PHYSICAL,physical_shard_shape=std::nullopt))"
    )
    found = parse_ttnn(text)
    assert found.value == MemoryConfig("height_sharded", "l1", ShardSpec(cores, (10923, 8)))
    assert found.extra == (("mode", "ShardMode::PHYSICAL"),)
    assert parse_memory_config(text) == found.value
    with pytest.raises(FileFormatError, match="mode=ShardMode::LOGICAL"):
        parse_memory_config(text.replace("PHYSICAL", "LOGICAL"))


def test_texts_of_older_reports_and_tables_are_parsed():
    config = (
        "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1,shard_spec=std::nullopt)"
    )
    spec = (
        "TensorSpec(logical_shape=Shape([1, 2048, 4, 128]),tensor_layout=TensorLayout(dtype=DataType::BFLOAT16,"
        "page_config=PageConfig(config=RowMajorPageConfig(tile=Tile(tile_shape={32, 32},face_shape={16, 16},num_faces=4"
        f"))),memory_config={config},alignment=Alignment([1])))"
    )
    expected = TensorSpec((1, 2048, 4, 128), "bfloat16", memory="l1")
    assert parse_tensor_spec(spec) == expected
    storage = f"DeviceStorage(memory_config={ttnn.L1_MEMORY_CONFIG!r})"
    assert parse_tensor_spec(f"Tensor(storage={storage},tensor_spec={spec})") == expected
    sharded = (
        "MemoryConfig(memory_layout=TensorMemoryLayout::WIDTH_SHARDED;buffer_type=BufferType::L1;shard_spec=ShardSpec("
        "grid={[(x=0;y=0) - (x=7;y=3)]};shape={32; 128};orientation=ShardOrientation::ROW_MAJOR))"
    )
    assert parse_memory_config(sharded) == MemoryConfig("width_sharded", "l1", ShardSpec((8, 4), (32, 128)))


def test_values_are_found_in_a_log():
    pieces, expected = ["2026-11-17 | INFO | "], []
    for kind, text, _ in texts():
        if kind in ("MemoryConfig", "Shape", "Tile", "ShardSpec", "TensorSpec"):
            expected.append((sum(map(len, pieces)), parse_ttnn(text)))
            pieces += [text, ", Tensor(nothing, Shape([x]) then "]
    assert list(find_ttnn_values("".join(pieces))) == expected
    assert len(expected) > 40


def test_a_sharded_layout_without_shards_has_no_placement():
    found = parse_ttnn(repr(ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG))
    assert found.value.is_sharded
    assert not found.has_placement
    assert parse_ttnn(repr(ttnn.DRAM_MEMORY_CONFIG)).has_placement


def test_fields_without_a_place_are_reported():
    text = repr(ttnn.DRAM_MEMORY_CONFIG).replace("per_core_allocation=0", "earlier=1,later=f(1, {2})")
    assert parse_ttnn(text).extra == (("earlier", "1"), ("later", "f(1, {2})"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{[0-0 - 7-0], [0-1 - 1-x]}", "expected a core .* at character 22, got '1-x"),
        ("Shape([1, 2", "at character 12, got the end of the text"),
        ("{[0-0 - 7-0], [3-0 - 9-0]}", "overlap"),
        ("[3-0 - 1-0]", "must not start after its end"),
        ("[0-0 - 7-99999]", "at most 1023"),
        ("Tile with shape: [5, 7]", "no tiles of 5 x 7"),
        ("MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED)", "'buffer_type' is missing"),
        ("MemoryConfig(memory_layout=BufferType::L1)", "expected a TensorMemoryLayout at character 28"),
        ("Banana(1)", "character 7"),
        ("", "got the end of the text"),
        ("[1, 2", "expected a core"),
        ('{"x":1', "not JSON"),
        ('{"z":1}', "expected the JSON of"),
        ("Shape([1]) and more", "expected the end at character 12"),
        (f"Shape([{'1' * 30}])", "expected an extent at character 8"),
        ("DataType::INVALID", "invalid"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, words):
    with pytest.raises(FileFormatError, match=words):
        parse_ttnn(text)


def test_damaged_texts_are_values_or_errors():
    chance = random.Random(7)
    pool = sorted({text for _, text, _ in texts()} | {case["to_json"] for case in CASES if case.get("to_json")})
    characters = "".join(sorted(set("".join(pool)))) + "\0é∞"
    for _ in range(4000):
        text = list(chance.choice(pool))
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(text) + 1)
            match chance.randrange(4):
                case 0:
                    text[at:at] = chance.choice(characters)
                case 1:
                    del text[at : at + chance.randrange(1, 9)]
                case 2:
                    text[at : at + 1] = chance.choice(("9" * 25, "[" * 50, "-1", "{}", "std::nullopt", "0"))
                case _:
                    other = chance.choice(pool)
                    text[at:] = other[chance.randrange(len(other)) :]
        with contextlib.suppress(FileFormatError):
            parse_ttnn("".join(text))
