# SPDX-License-Identifier: Apache-2.0
"""What is written in a notation is read back as the same function, or refused with the reason."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Layout, LayoutError, TensorSpec, TilewrightError
from tilewright.layout.linear import Linear
from tilewright.layout.tuples import leaves, map_leaves
from tilewright.memory import CoreCoord, CoreRange, CoreRangeSet, MemoryConfig, NdShardSpec, Shape, ShardSpec, Tile
from tilewright.memory.config import ShardDistribution
from tilewright.notation import (
    NOTATIONS,
    WRITABLE,
    linear_of_encoding,
    memory_layout_of_encoding,
    parse,
    parse_encoding,
    parse_triton_type,
    write,
)

from ..memory.strategies import specs
from .recorded_texts import recorded


def offsets(layout, shape):
    grid = np.ix_(*[np.arange(extent) for extent in shape])
    return np.broadcast_to(np.asarray(layout(*grid)), shape).astype(np.int64)


def extents(layout):
    return tuple(map(int, layout.logical_shape))


@st.composite
def compact_layouts(draw, factors=(1, 2, 3, 4)):
    """Return a layout without gaps: the leaves of its modes are stored in any order."""
    modes = draw(st.lists(st.lists(st.sampled_from(factors), min_size=1, max_size=3), min_size=1, max_size=3))
    leaves = [(k, position) for k, mode in enumerate(modes) for position in range(len(mode))]
    strides, stride = {}, 1
    for k, position in draw(st.permutations(leaves)):
        strides[k, position] = stride
        stride *= modes[k][position]
    steps = [tuple([strides[k, position] for position in range(len(mode))]) for k, mode in enumerate(modes)]
    return Layout(tuple(map(tuple, modes)), tuple(steps))


def read_back(text, notation, shape):
    """Return the offsets that a text means."""
    parsed = parse(text, shape=shape, notation=notation)
    if notation == "triton":
        layout = memory_layout_of_encoding(parsed.value.encoding, shape)
    else:
        layout = getattr(parsed, "layout", parsed)
    return offsets(layout, shape)


def test_every_notation_is_written():
    assert set(WRITABLE) == set(NOTATIONS) - {"axe", "error", "sharding", "tt-metal", "vpad"}  # which are only read


@given(compact_layouts())
def test_compact_layouts_are_written_in_all_strided_notations(layout):
    shape = extents(layout)
    is_tiled = all(list(leaves(mode)) == sorted(leaves(mode)) for mode in layout.stride)
    for notation in ("tilewright", "cute", "memref", "mlir", "tvm", "onednn", "xla", "mosaic"):
        try:
            text = write(layout, notation)
        except LayoutError:
            assert notation in ("onednn", "xla", "mosaic")
            assert not is_tiled, notation
            continue
        assert np.array_equal(read_back(text, notation, shape), offsets(layout, shape)), (notation, text)


@given(compact_layouts(), st.data())
def test_padded_layouts_are_written_or_refused(layout, data):
    shape = tuple([data.draw(st.integers(max(1, extent // 2), extent)) for extent in extents(layout)])
    padded = tw.with_logical_shape(layout, shape)
    for notation in ("onednn", "xla", "mosaic", "memref", "mlir", "tvm"):
        try:
            text = write(padded, notation)
        except LayoutError as problem:
            reason = str(problem)
            assert "padding" in reason or "further apart" in reason, notation
        else:
            assert np.array_equal(read_back(text, notation, shape), offsets(padded, shape)), (notation, text)


@given(compact_layouts((1, 2, 4)), st.sampled_from([0, 2, 8, 16]), st.data())
def test_layouts_of_shared_memory_are_written_for_triton(layout, padding, data):
    shape = extents(layout)
    if padding:
        cut = data.draw(st.sampled_from([2, 4, 8, 16]))  # elements before every padding
        layout = Layout(layout.shape, map_leaves(lambda d: d + d // cut * padding, layout.stride))
    else:
        bits = data.draw(st.integers(0, 2))
        layout = tw.compose(tw.Swizzle(bits, data.draw(st.integers(0, 2)), max(1, bits)), layout)
    try:
        text = write(layout, "triton")
    except LayoutError:
        assert tw.size(layout) < 1 << 6  # a swizzle, or a gap, beyond the layout
        return
    assert np.array_equal(read_back(text, "triton", shape), offsets(layout, shape)), text


def written_encoding(linear, dtype="f16"):
    """Return the encoding that a map is written with, which must have the same map."""
    text = write(linear, "triton", dtype=dtype)
    written = parse(text).value
    assert linear_of_encoding(written.encoding, written.shape, written.bits) == linear, text
    return written.encoding


def test_what_was_read_from_triton_is_written_with_an_encoding_of_the_same_map():
    listed = 0
    for case in recorded("notations/triton/encodings.json")["cases"]:
        kind = parse_triton_type(case["type"], case["aliases"])
        linear = linear_of_encoding(kind.encoding, kind.shape, kind.bits)
        name = written_encoding(linear, kind.dtype).name
        listed += name in ("linear", "shared_linear") and kind.encoding.name != name
    assert listed < 4  # those of AMD with many parameters


def test_encodings_are_recognized():
    mma = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"
    hopper = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, 64, 16]}>"
    mfma = "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>"
    wmma = (
        "#ttg.amd_wmma<{version = 2, isTranspose = false, ctaLayout = {warp = [[1, 0], [0, 1]]}, "
        "instrShape = [16, 16, 16]}>"
    )
    blocked = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
    clustered = blocked.replace("}>", ", CGALayout = [[1, 0]]}>")
    for text, shape in [
        (blocked, (64, 64)),
        (clustered, (64, 64)),
        (f"#ttg.slice<{{dim = 1, parent = {blocked}}}>", (32,)),
        (mma, (64, 64)),
        (hopper, (64, 256)),
        (f"#ttg.dot_op<{{opIdx = 0, parent = {mma}, kWidth = 2}}>", (64, 64)),
        (f"#ttg.dot_op<{{opIdx = 1, parent = {mma}, kWidth = 4}}>", (64, 64)),
        (f"#ttg.slice<{{dim = 0, parent = {mma}}}>", (64,)),
        (mfma, (128, 128)),
        (f"#ttg.dot_op<{{opIdx = 0, parent = {mfma.replace('true', 'false')}, kWidth = 4}}>", (128, 128)),
        (wmma, (64, 64)),
        ("#ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [0, 1]}>", (64, 32)),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>", (16, 64)),
    ]:
        linear = linear_of_encoding(parse_encoding(text), shape)
        written = written_encoding(linear)
        assert written.name == "slice" if "slice" in text else str(written) == text  # a slice has several parents


@given(st.data())
def test_every_linear_map_is_written_for_triton(data):
    shape = data.draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3))
    image = st.tuples(*[st.integers(0, extent - 1) for extent in shape])
    names = data.draw(st.sampled_from([("register", "lane", "warp", "block"), ("offset", "block")]))
    counts = [data.draw(st.integers(0, 3)) if name != "block" else 0 for name in names]
    bases = {name: [data.draw(image) for _ in range(count)] for name, count in zip(names, counts, strict=True)}
    written_encoding(Linear(bases, {f"dim{k}": extent for k, extent in enumerate(shape)}))


@given(specs(empty=True))
def test_specs_are_written_as_ttnn_and_tt_mlir(spec):
    plain = spec.replace(chip=None)
    if spec.is_tiled and spec.tile.transpose:
        with pytest.raises(LayoutError, match="loses information"):
            write(spec, "ttnn")
    else:
        assert parse(write(spec, "ttnn"), notation="ttnn").placement == plain
        assert parse(write(spec.memory, "ttnn"), notation="ttnn").placement == spec.memory
    try:
        text = write(spec, "tt-mlir")
    except TilewrightError as problem:
        reason = str(problem)
        assert "tt-mlir" in reason
        return
    again = parse(text, shape=spec.shape.logical).placement
    assert (again.shape, again.dtype, again.tile) == (spec.shape, spec.dtype, spec.tile)
    assert again.memory.shard_spec == spec.memory.shard_spec
    assert write(parse(text), "tt-mlir") == text


def test_other_values_of_ttnn():
    cores = CoreRangeSet([CoreRange((0, 0), (7, 0)), CoreRange((0, 1), (1, 1))])
    nd = NdShardSpec((1, 32, 64), cores, "col_major", ShardDistribution.GRID_2D)
    for value in (
        *(CoreCoord(7, 3), cores.ranges[0] if hasattr(cores, "ranges") else CoreRange((0, 0), (7, 0)), cores),
        *(Shape([14, 28], [32, 32]), Tile((16, 32)), ShardSpec(cores, (32, 64), "col_major"), nd),
        *(MemoryConfig("nd_sharded", "l1", nd_shard_spec=nd), MemoryConfig("interleaved", "dram")),
        *(tw.format_of("bfloat8_b"), tw.format_of("float8_e4m3"), ShardDistribution.GRID_2D),
    ):
        assert parse(write(value, "ttnn"), notation="ttnn").placement == value, value
        assert write(tw.parse(write(value, "ttnn"), notation="ttnn"), "ttnn") == write(value, "ttnn")
    config = tw.ttnn.MemoryConfig(tw.ttnn.TensorMemoryLayout.INTERLEAVED, tw.ttnn.BufferType.L1)
    assert write(config, "ttnn") == repr(config)


def test_refusals_name_the_reason():
    spec, linear = TensorSpec((64, 64)), Linear({"lane": [1, 2]}, {"dim0": 4})
    older = (
        "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1,shard_spec=std::nullopt,"
        "later=1)"
    )
    for value, notation, reason in [
        (Layout((4, 8)), "ttnn", "make a TensorSpec or a MemoryConfig"),
        (linear, "ttnn", "make a TensorSpec or a MemoryConfig"),
        (Layout((4, 8)), "tt-mlir", "make a TensorSpec of it"),
        (spec.memory, "tt-mlir", "make a TensorSpec of it"),
        (spec.replace(dtype="float64"), "ttnn", "no data type float64"),
        (parse(older), "ttnn", "later"),
        (spec, "xla", "written as ttnn or tt-mlir"),
        (Layout((4, 8), (16, 1)), "mosaic", "gaps or overlaps"),
        (Layout((4, 8)) + 3, "mosaic", "begins at 3"),
        (tw.with_logical_shape(Layout((4, 8)), (3, 8)), "mosaic", "has padding"),
        (Layout((3, 5)), "triton", "power"),
        (Layout((4, 4), (1, 1)), "triton", "shared memory"),
        (Layout((4, 8), (1, 7)), "triton", "power of two, got 3"),
        (Layout((2, 2), (6, 3)), "triton", "shared memory"),
        (Layout((2, 2), (1, 2 @ tw.bank)), "triton", "several results"),
        (Linear({"thread": [1]}, {"dim0": 2}), "triton", "register, lane, warp"),
        (tw.Swizzle(2, 0, 2), "triton", "linear maps"),
        (linear, "xla", "no text for a linear map"),
        (5, "cute", "can express layouts only, got int"),
        (parse("Shape([4, 8])"), "cute", "not a layout"),
    ]:
        with pytest.raises(TilewrightError, match=reason):
            raise AssertionError(f"{value} as {notation} is {write(value, notation)}")


def test_onednn_tags_of_padded_dimensions_with_one_block_are_written_back():
    cases = recorded("notations/onednn/tags.json")["cases"]
    assert len(cases) > 20
    for case in cases:
        shape = tuple(case["dims"])
        layout = parse(case["tag"], shape=shape).layout
        again = parse(write(layout, "onednn"), shape=shape).layout
        np.testing.assert_array_equal(again.offsets(fill=-1).ravel(), layout.offsets(fill=-1).ravel(), case["tag"])
    assert write(parse("aBcd16b", shape=(2, 3, 3, 5)).layout, "onednn") == "aBcd16b"
    assert write(parse("ABcd4b16a4b", shape=(3, 3, 2, 2)).layout, "onednn") == "ABcd4b16a4b"
