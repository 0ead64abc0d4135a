# SPDX-License-Identifier: Apache-2.0
"""Layouts in the IR of tt-mlir: recorded texts have their recorded parts, and the shape rule its recorded verdicts."""

import contextlib
import random
import re
from collections import Counter

import pytest

from tilewright import (
    FileFormatError,
    MemoryConfigError,
    TensorSpec,
    TilewrightError,
    block_sharded,
    height_sharded,
    nd_sharded,
    width_sharded,
)
from tilewright.memory import CoreRange, CoreRangeSet, MemoryConfig, NdShardSpec, ShardSpec
from tilewright.notation import (
    MetalLayout,
    check_layout,
    mlir_layout_of,
    mlir_tensor_type,
    parse_affine_map,
    parse_mlir_attribute,
    parse_mlir_layout,
    parse_tensor_type,
)
from tilewright.testing import assert_same_placement

from .recorded_texts import corners, recorded

LAYOUTS = recorded("mlir/ttnn_layouts.json")["layouts"]
ATTRIBUTES = recorded("mlir/other_attributes.json")["attributes"]


def uses():
    """Yield every recorded layout with each tensor type that uses it."""
    for case in LAYOUTS:
        layout = parse_mlir_layout(case["text"], case["aliases_in_file"])
        for use in case["uses"]:
            yield layout, parse_tensor_type(use["tensor"]), use


def as_parts(layout):
    """Return a layout as it was recorded."""
    results = zip(layout.map.coefficients, layout.map.constants, strict=True)
    memref = layout.memref
    return {
        "map": {"dims": layout.map.dims, "results": [{"coeffs": list(row), "const": n} for row, n in results]},
        "grid": list(layout.grid),
        "grid_map": layout.grid_map,
        "mesh": layout.mesh,
        "memref": {
            "shape": list(memref.shape),
            "tile": memref.tile and list(memref.tile),
            "dtype": memref.dtype,
            "space": memref.space,
            "extra": list(memref.extra),
        },
        "memory_layout": layout.memory_layout,
        "core_ranges": None if layout.core_ranges is None else corners(layout.core_ranges),
        "ignore_physical": layout.ignore_physical,
    }


def test_there_are_recorded_layouts():
    assert len(LAYOUTS) > 300
    assert len(ATTRIBUTES) > 50


def test_recorded_layouts_have_the_recorded_parts():
    for case in LAYOUTS:
        layout = parse_mlir_layout(f"\n {case['text']} ", case["aliases_in_file"])
        assert as_parts(layout) == case["parsed"], case["text"]
        assert layout.problems() == case["verifier"], case["text"]
        assert layout.extra == ()


def test_the_shape_rule_gives_the_recorded_verdicts():
    for layout, tensor, use in uses():
        verdict = check_layout(layout, tensor)
        expected = use["expected_memref"] and tuple(use["expected_memref"])
        assert list(tensor.shape) == use["shape"]
        assert (verdict.rule, verdict.expected) == (use["verdict"], expected), (use, layout)
        assert use["why"] in verdict.reason
        assert (verdict.severity == "ok") == (verdict.rule == "satisfied" and not layout.problems())


def test_verdicts_are_graded():
    grades = Counter(check_layout(layout, tensor).severity for layout, tensor, _ in uses())
    assert set(grades) == {"ok", "note", "warning", "error"}


TILES = "!ttcore.tile<32x32, bf16>"


@pytest.mark.parametrize(
    ("tensor", "text", "severity", "words"),
    [
        ("852800x3", f"<1x1>, memref<26650x1x{TILES}, #l1>, <interleaved>", "note", "same 26650 tiles"),
        ("384x32", f"<6x2>, memref<1x1x{TILES}, #l1>, <height_sharded>, core_ranges = CORES", "note", "12 cores"),
        ("32x32", f"<1x1>, memref<4x4x{TILES}, #dram>, <interleaved>", "warning", "reserves 16 tiles, .* needs 1"),
        ("128x64", f"<1x1>, memref<1x1x{TILES}, #dram>, <interleaved>", "error", "holds 1 tile, .* needs 8 and does"),
        ("64x128", "<1x1>, memref<1x1xbf16, #dram>, <interleaved>", "error", "holds 1 element, .* needs 8192"),
        ("2x32x32", f"<1x1>, memref<1x1x{TILES}, #dram>, <interleaved>", "error", "map has 2 dims, tensor has rank 3"),
        ("32x32", f"<8x8>, memref<1x1x{TILES}, #dram>, <interleaved>", "error", "grid must be 1x1, got 8x8"),
        ("32x32", f"<1x1>, memref<1x1x{TILES}, #l1>", "error", "Memory layout is required"),
        ("32x32", f"<1x1>, memref<1x1x{TILES}, #dram>, <block_sharded>, core_ranges = CORES", "error", "BlockSharded"),
        ("32x32", f"<1x1>, memref<1x1x{TILES}, #l1>, <width_sharded>", "error", "width_sharded. must carry"),
        ("32x32", f"<1x1>, memref<1x1x{TILES}, #l1>, <interleaved>, core_ranges = CORES", "error", "must not carry"),
        ("32x32", f"<1x1x1>, memref<1x1x{TILES}, #l1>, <width_sharded>, core_ranges = CORES", "error", "2 results"),
        ("?x32", f"<1x1>, memref<1x1x{TILES}, #dram>, <interleaved>", "ok", "unknown extents"),
        (
            "9x9",
            f"<1x1>, memref<7x7x{TILES}, #dram>, <interleaved>, ignorePhysicalLayout = true",
            "ok",
            "ignorePhysical",
        ),
    ],
)
def test_a_verdict_says_how_much_it_matters(tensor, text, severity, words):
    text = text.replace("CORES", "<[#ttnn.core_range<(0, 0), (5, 1)>]>")
    layout = parse_mlir_layout(f"#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), {text}>")
    verdict = check_layout(layout, parse_tensor_type(f"tensor<{tensor}xbf16>"))
    assert verdict.severity == severity
    assert re.search(words, verdict.reason)


def test_layouts_stand_for_specs():
    specs = folded = 0
    for layout, tensor, use in uses():
        try:
            spec = layout.to_spec(tensor, "wormhole_n150")
        except MemoryConfigError:
            continue
        specs += 1
        assert list(spec.shape.logical) == use["shape"]
        assert spec.memory.buffer_type.name.lower() == layout.memref.space
        if use["verdict"] == "satisfied" and layout.memref.space == "dram" and not layout.is_sharded:
            own = mlir_layout_of(spec)
            padded = spec.padded_shape[len(spec.padded_shape) - len(tensor.shape) :]
            if own.map.extents(padded) == layout.map.extents(padded):  # otherwise rows are folded in another way
                assert (own.memref.shape, own.memref.tile) == (layout.memref.shape, layout.memref.tile)
                folded += 1
        if layout.is_sharded:
            height, width = layout.memref.tile or (1, 1)
            assert spec.memory.shard_spec.shape == (layout.memref.shape[0] * height, layout.memref.shape[1] * width)
            assert spec.memory.shard_spec.grid == layout.core_ranges
    assert specs > 200
    assert folded > 100


def test_layouts_are_printed_as_ir():
    for case in LAYOUTS:
        layout = parse_mlir_layout(case["text"], case["aliases_in_file"])
        assert parse_mlir_layout(str(layout)) == layout


def test_specs_have_layouts():
    chip = "wormhole_n150"
    for spec in (
        TensorSpec((3, 70, 90), "bfloat8_b", "tile", chip=chip),
        TensorSpec((3, 70, 90), "uint32", chip=chip),
        TensorSpec((7,), "int32", chip=chip),
        TensorSpec((64, 640), "bfloat16", "tile", memory="l1", chip=chip),
        TensorSpec((2, 64, 32), "bfloat16", "tile", memory=height_sharded((4, 1)), chip=chip),
        TensorSpec((64, 256), "float32", "tile", memory=width_sharded((8, 1)), chip=chip),
        TensorSpec((128, 128), "uint16", memory=block_sharded((2, 2)), chip=chip),
    ):
        layout, tensor = mlir_layout_of(spec), mlir_tensor_type(spec)
        assert parse_mlir_layout(tensor.encoding) == layout
        assert parse_tensor_type(f"{str(tensor)[:-1]}, {tensor.encoding}>") == tensor
        assert check_layout(layout, tensor).rule == "satisfied", layout
        assert_same_placement(layout.to_spec(tensor, chip), spec)
    for memory in (height_sharded((4, 1), orientation="col_major"), nd_sharded((2, 32, 32), (4, 1))):
        with pytest.raises(MemoryConfigError, match="row-major shards of a matrix"):
            mlir_layout_of(TensorSpec((2, 64, 32), "bfloat16", "tile", memory=memory))


def test_aliases_are_resolved_over_several_steps():
    aliases = {
        "layout": "#layout1",
        "layout1": "#ttnn.ttnn_layout<#map, <1x1>, memref<1x1xf32, #l1>, <block_sharded>, core_ranges = #cores>",
        "map": "affine_map<(d0, d1) -> (d0, d1)>",
        "cores": "#more",
        "more": "#ttnn.core_range_set<[#one, #ttnn.core_range<(1,0), (1,0)>]>",
        "one": "#ttnn.core_range<(0,0), (0,0)>",
        "l1": "#l1_2",
        "l1_2": "#ttnn.buffer_type<l1>",
    }
    assert parse_mlir_layout("#layout", aliases).core_ranges == CoreRangeSet([CoreRange((0, 0)), CoreRange((1, 0))])
    with pytest.raises(FileFormatError, match="#one at character 23 is not defined"):
        parse_mlir_layout("#layout", {**aliases, "one": "#two"})
    with pytest.raises(FileFormatError, match="stands for itself"):
        parse_mlir_layout("#layout", {**aliases, "layout1": "#layout"})


def test_rarer_parts_are_accepted():
    layout = parse_mlir_layout(
        '#ttnn.ttnn_layout<(d0) -> (d0 * 2 + 3), <4x4, (d0, d1) -> (0, d0, d1)>, mesh = #ttcore.mesh<"a,b>", 1>,'
        " memref<8xf32, strided<[1]>, #ttnn.buffer_type<l1>>, <interleaved>, exactGrid = true>"
    )
    assert layout.grid_map == "(d0, d1) -> (0, d0, d1)"
    assert layout.mesh == '#ttcore.mesh<"a,b>", 1>'
    assert layout.memref.extra == ("strided<[1]>",)
    assert layout.extra == (("exactGrid", "true"),)
    assert layout.map((5,)) == (13,)


def test_recorded_attributes_are_parsed():
    for case in ATTRIBUTES:
        value = parse_mlir_attribute(case["text"], case["aliases_in_file"])
        kind = case["kind"].split(".")[1]
        assert type(value).__name__.lower() == {
            "metal_layout": "metallayout",
            "core_range_set": "corerangeset",
            "shard": "shardstrides",
            "memory_config": "memoryconfig",
            "shard_spec": "shardspec",
        }.get(kind, kind)
        if isinstance(value, MetalLayout):
            check_metal_layout(value, case)


def check_metal_layout(layout, case):
    for text in case["uses"]:
        tensor = parse_tensor_type(text)
        if layout.memref is not None:
            assert layout.map.dims == len(tensor.shape), case
        else:  # the shape on the device is grid and shard
            assert len(tensor.shape) == 2 * len(layout.logical_shape), case
    assert layout.extra == ()


def test_attributes_are_values_of_the_library():
    cores = CoreRangeSet([CoreRange((0, 0), (7, 0))])
    text = "#ttnn.core_range_set<[#ttnn.core_range<(0, 0), (7, 0)>]>"
    assert parse_mlir_attribute(text) == cores
    shards = ShardSpec(cores, (32, 32))
    assert parse_mlir_attribute(f"#ttnn.shard_spec<{text}, <32x32>, <row_major>>") == shards
    config = f"#ttnn.memory_config<#l1, <height_sharded>, #ttnn.shard_spec<{text}, <32x32>, <row_major>>>"
    assert parse_mlir_attribute(config, {"l1": "#ttnn.buffer_type<l1>"}) == MemoryConfig("height_sharded", "l1", shards)
    general = NdShardSpec((1, 32, 32), cores, "row_major", "grid_2d")
    nd_text = f"#ttnn.nd_shard_spec<{text}, <1x32x32>, <row_major>, <grid_2d>>"
    assert parse_mlir_attribute(nd_text) == general
    assert parse_mlir_attribute(f"#ttnn.memory_config<#l1, <nd_sharded>, {nd_text}>").nd_shard_spec == general


def test_attributes_are_read_as_the_compiler_prints_them():
    cores = "<[#ttnn.core_range<(0,0), (3,0)>]>"
    shards = ShardSpec((4, 1), (32, 64))
    expected = MemoryConfig("height_sharded", "l1", shards)
    for text in (
        f"#ttnn.memory_config<<l1>, <height_sharded>, <{cores}, <32x64>, <row_major>>>",
        f"#ttnn.memory_config<#l1, #ttnn.shard_spec<{cores}, <32x64>, <row_major>, <physical>>, <height_sharded>>",
        "#ttnn.memory_config<#l1, <height_sharded>, #shards>",
    ):
        assert parse_mlir_attribute(text, {"shards": f"#ttnn.shard_spec<{cores}, <32x64>, <row_major>>"}) == expected
    general = parse_mlir_attribute(
        f"#ttnn.memory_config<<l1>, ndShardSpec = <{cores}, <1x32x64>, <row_major>, <grid_2d>>>"
    )
    assert general == MemoryConfig(
        "nd_sharded", "l1", nd_shard_spec=NdShardSpec((1, 32, 64), (4, 1), "row_major", "grid_2d")
    )
    with pytest.raises(FileFormatError, match="logical shards"):
        parse_mlir_attribute(f"#ttnn.shard_spec<{cores}, <32x64>, <row_major>, <logical>, <32x64>>")
    assert parse_mlir_attribute("#ttcore.memory_space<l1>") == "l1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#ttnn.ttnn_layout<(d0) -> (d1), <1>, memref<8xf32, #dram>>", "expected one of d0 at character 28"),
        ("#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<8xf32, #there>>", "expected a memory .* at character 52"),
        ("#ttnn.ttnn_layout<(d0) -> (d0), <1>>", "up to character 36 lacks a map, a grid or a memref"),
        ("#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<8xf32, #dram>, <sideways>>", "expected a memory layout"),
        ("#ttnn.ttnn_layout<(d0) -> ({{.*}}), <1>>", "test pattern"),
        ("#ttnn.ttnn_layout<(d0) -> (d0), <1>, memref<[[N]]xf32, #dram>>", "test pattern"),
        ("#ttnn.banana<1>", "expected '#ttnn.ttnn_layout' at character 1"),
        ("#nowhere", "#nowhere at character 1 is not defined"),
        ("", "got the end of the text"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, words):
    with pytest.raises(FileFormatError, match=words):
        parse_mlir_layout(text)


def test_maps_are_printed_as_they_are_written():
    texts = {case["text"].split("<", 1)[1].split(", <")[0] for case in LAYOUTS if "\n" not in case["text"]}
    for text in texts:
        plain = text.replace("  ", " ").replace(" * 1 ", " ")
        assert str(parse_affine_map(text)) == plain


def test_damaged_texts_are_values_or_errors():
    chance = random.Random(11)
    pool = [(case["text"], case["aliases_in_file"]) for case in (*LAYOUTS, *ATTRIBUTES)]
    tensors = sorted({use["tensor"] for case in LAYOUTS for use in case["uses"]})
    for _ in range(3000):
        text, aliases = chance.choice(pool)
        characters = list(text)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(characters) + 1)
            characters[at : at + chance.randrange(3)] = chance.choice(
                ("9" * 25, "<" * 50, "x", "0", "#dram", "?", "(d0)", '"', ">", ",", "é", "-1", "")
            )
        with contextlib.suppress(TilewrightError):
            layout = parse_mlir_attribute("".join(characters), aliases)
            if hasattr(layout, "to_spec"):
                tensor = parse_tensor_type(chance.choice(tensors))
                check_layout(layout, tensor)
                layout.to_spec(tensor, "wormhole_n150")
