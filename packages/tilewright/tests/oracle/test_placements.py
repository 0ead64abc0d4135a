# SPDX-License-Identifier: Apache-2.0
"""Which placements a chip takes, at which address, and the words that a kernel gets: on the real ttnn's mock device."""

from collections import Counter
from math import prod

import pytest
import ttnn as theirs
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.memory import Chip, CoreRange, CoreRangeSet, MemoryConfig, NdShardSpec, ShardSpec, TensorSpec

from ..cases import examples
from .questions import KINDS, TILES, cores

DTYPES = ("bfloat16", "float32", "uint8")
CHIPS = {"wormhole_b0": "wormhole_n150", "blackhole": "blackhole_p150"}
STRATEGIES = ("ROUND_ROBIN_1D", "GRID_2D", "CONTIGUOUS_1D")


@pytest.fixture(scope="module")
def device():
    """Return the real device of the mock cluster."""
    opened = theirs.open_device(device_id=0)
    yield opened
    theirs.close_device(opened)


@st.composite
def grids(draw, chip, buffer):
    """Return ranges of cores: those of the chip, others, and some of both."""
    across, down = chip.shard_grid(buffer)
    ranges = []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
        x, y = draw(st.integers(0, 1)), draw(st.sampled_from([0, 0, 0, 1]))
        wide, high = draw(st.integers(1, across + 1)), draw(st.sampled_from([1, 1, 2, down, down + 1]))
        new = CoreRange((x, y), (x + wide - 1, y + high - 1))
        if not any(new.overlaps(other) for other in ranges):
            ranges.append(new)
    return [[*part.start, *part.end] for part in ranges]


@st.composite
def placements(draw, chip):
    """Return the arguments of a placement, as plain values."""
    tiled = draw(st.booleans())
    unit = draw(st.sampled_from(TILES)) if tiled else (1, 1)
    kind = draw(st.sampled_from(["INTERLEAVED", *KINDS, *KINDS, "ND", "ND"]))
    # ttnn gives empty rows a page of 4 bytes, and refuses shards of another width, though there is nothing to place
    least = 0 if tiled or kind == "INTERLEAVED" else 1
    outer = draw(st.lists(st.integers(least, 4) | st.integers(1, 4), max_size=2))
    # some are as large as the memory of a core, and larger
    shape = [*outer, draw(st.integers(1, 70) | st.integers(1, 3000)), draw(st.integers(1, 70) | st.integers(1, 3000))]
    buffer = draw(st.sampled_from(["L1", "DRAM"]))
    grid = draw(grids(chip, buffer))
    box = CoreRangeSet([((a, b), (c, d)) for a, b, c, d in grid]).bounding_box
    padded = [prod(shape[:-2]) * -(-shape[-2] // unit[0]) * unit[0], -(-shape[-1] // unit[1]) * unit[1]]

    def extent(n, step, parts):
        even = -(-n // draw(st.sampled_from([1, parts, parts, parts + 1])))
        return max(step, -(-even // step) * step) if draw(st.integers(0, 9)) else draw(st.integers(1, n + 1))

    if kind == "ND":
        rank = draw(st.integers(1, len(shape) + draw(st.sampled_from([0, 0, 1]))))
        units = ([1] * rank + list(unit))[-rank:]
        extents = ([1] * rank + shape)[-rank:]
        shard = [extent(n, step, box.width) for n, step in zip(extents, units, strict=True)]
    else:
        height = padded[0] if kind == "WIDTH_SHARDED" else extent(padded[0], unit[0], box.height)
        width = padded[1] if kind == "HEIGHT_SHARDED" else extent(padded[1], unit[1], box.width)
        shard = [max(1, height), max(1, width)]
    return {
        "shape": shape,
        "dtype": draw(st.sampled_from(DTYPES)),
        "tile": unit if tiled else None,
        "buffer": buffer,
        "kind": kind,
        "grid": grid,
        "shard": shard,
        "orientation": draw(st.sampled_from(["ROW_MAJOR", "COL_MAJOR"])),
        "strategy": draw(st.sampled_from(STRATEGIES)),
    }


def ask_theirs(device, asked):
    """Return the address and the accessor's words that the real device gives a tensor, None where it refuses."""
    kind, buffer = asked["kind"], getattr(theirs.BufferType, asked["buffer"])
    order = getattr(theirs.ShardOrientation, asked["orientation"])
    where = {"buffer_type": buffer}
    layout = theirs.ROW_MAJOR_LAYOUT if asked["tile"] is None else theirs.TILE_LAYOUT
    if asked["tile"] is not None:
        where["tile"] = theirs.Tile(asked["tile"])
    if kind == "ND":
        strategy = getattr(theirs.ShardDistributionStrategy, asked["strategy"])
        where["nd_shard_spec"] = theirs.NdShardSpec(
            theirs.Shape(asked["shard"]), cores(theirs, asked["grid"]), order, strategy
        )
    elif kind != "INTERLEAVED":
        where["memory_layout"] = getattr(theirs.TensorMemoryLayout, kind)
        where["shard_spec"] = theirs.ShardSpec(cores(theirs, asked["grid"]), asked["shard"], order)
    try:
        spec = theirs.TensorSpec(theirs.Shape(asked["shape"]), getattr(theirs, asked["dtype"]), layout, **where)
        tensor = theirs.allocate_tensor_on_device(spec, device)
        words = list(theirs.TensorAccessorArgs(tensor).get_compile_time_args()) if prod(asked["shape"]) else []
        answer = tensor.buffer_address(), words
        contiguous = kind == "ND" and asked["strategy"] == "CONTIGUOUS_1D"
        if contiguous and prod(asked["shape"]):  # refused only once it is written; the question of nothing is fatal
            theirs._ttnn.bfp_utils.compute_shard_page_mapping(
                list(tensor.padded_shape),
                asked["shard"],
                *(asked["tile"] or (1, asked["shard"][-1])),
                cores(theirs, asked["grid"]),
                order,
                strategy,
            )
    except RuntimeError:
        return None
    theirs.deallocate(tensor)
    return answer


def ask_ours(chip, asked):
    """Return the address and the words that ours gives a tensor on an empty chip, None where it refuses."""
    kind, grid = asked["kind"], CoreRangeSet([((a, b), (c, d)) for a, b, c, d in asked["grid"]])
    try:
        if kind == "INTERLEAVED":
            memory = MemoryConfig("interleaved", asked["buffer"])
        elif kind == "ND":
            shards = NdShardSpec(asked["shard"], grid, asked["orientation"], asked["strategy"])
            memory = MemoryConfig("nd_sharded", asked["buffer"], nd_shard_spec=shards)
        else:
            memory = MemoryConfig(kind, asked["buffer"], ShardSpec(grid, asked["shard"], asked["orientation"]))
        layout = "row_major" if asked["tile"] is None else "tile"
        spec = TensorSpec(asked["shape"], asked["dtype"], layout, asked["tile"], memory, chip)
    except tw.MemoryConfigError:
        return None
    answer = tw.fit(spec)
    assert bool(answer) == (not spec.violations()), (answer, spec.violations())
    address = answer.tensors[0].address
    if address is None:
        return None
    if not spec.num_pages:
        return address, []
    words = spec.accessor_arguments().words
    found = tw.parse_accessor(words, chip, num_pages=spec.num_pages).pages(address)
    assert (found.rows() == spec.pages(address).rows()).all()
    return address, list(words)


def test_placements(device):
    chip = Chip.named(CHIPS[str(device.arch()).rsplit(".", 1)[-1].lower()])
    size = device.compute_with_storage_grid_size()
    assert chip.compute_grid == (size.x, size.y)
    seen = Counter()

    @examples(1500, database=None)
    @given(placements(chip))
    def agree(asked):
        real = ask_theirs(device, asked)
        seen[asked["kind"], real is not None] += 1
        assert ask_ours(chip, asked) == real

    agree()
    # a law about refusals needs refusals, and placements that are not refused
    assert all(seen[kind, legal] > 20 for kind in (*KINDS, "ND") for legal in (True, False)), seen
