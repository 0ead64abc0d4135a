# SPDX-License-Identifier: Apache-2.0
"""Random specs: every memory layout, orientation and distribution, ragged shapes, all tiles, all chips."""

from hypothesis import assume
from hypothesis import strategies as st

from tilewright import MemoryConfigError
from tilewright.memory import (
    Chip,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    ShardSpec,
    TensorSpec,
    Tile,
    chip_names,
    nd_sharded,
)

SCALARS = ("bfloat16", "float32", "uint8", "int32", "uint16")
BLOCKS = ("bfloat8_b", "bfloat4_b")
SMALL = Chip.from_toml(
    """
    arch = "small"
    [cores]
    grid = [4, 3]
    [l1]
    base = 4096
    end = 1048576
    [dram]
    banks = 5
    base = 64
    end = 4194304
    alignment = 32
    """,
    "small",
)
CHIPS = (SMALL, *map(Chip.named, chip_names()), Chip.named("blackhole_p150", dispatch="slow"))


@st.composite
def core_sets(draw, across, down):
    """Return one to three ranges of a grid that do not overlap, in any order."""
    ranges = []
    for _ in range(draw(st.integers(1, 3))):
        x0, y0 = draw(st.integers(0, across - 1)), draw(st.integers(0, down - 1))
        x1, y1 = draw(st.integers(x0, min(across - 1, x0 + 3))), draw(st.integers(y0, min(down - 1, y0 + 3)))
        new = CoreRange((x0, y0), (x1, y1))
        if not any(new.overlaps(old) for old in ranges):
            ranges.append(new)
    return CoreRangeSet(ranges)


def rounded(n, unit):
    return -(-n // unit) * unit


@st.composite
def specs(draw, empty=False, rank=4, chips=CHIPS):
    """Return a spec that can be placed on its chip, one of `chips`."""
    least = 0 if empty else 1
    chip = draw(st.sampled_from(chips))
    shape = draw(st.lists(st.integers(least, 4), max_size=rank - 2)) + draw(
        st.lists(st.integers(least, 70), min_size=0 if rank < 3 else 1, max_size=2)
    )
    tiled = draw(st.booleans())
    dtype = draw(st.sampled_from(SCALARS + (BLOCKS if tiled else ())))
    tile = None
    if tiled:
        size = draw(st.sampled_from([(h, w) for h in (32, 16, 8, 4, 2, 1) for w in (32, 16)]))
        tile = Tile(size, transpose=size[0] >= 16 and draw(st.booleans()))
    arguments = {
        "shape": shape,
        "dtype": dtype,
        "page_layout": "tile" if tiled else "row_major",
        "tile": tile,
        "chip": chip,
    }
    return draw(in_any_memory(arguments))


@st.composite
def in_any_memory(draw, arguments):
    """Return a spec with these arguments in some memory where it can be placed on its chip."""
    buffer = draw(st.sampled_from(["dram", "l1"]))
    plain = TensorSpec(**arguments, memory=buffer)
    chip, tile, tiled = plain.known_chip, arguments["tile"], plain.is_tiled
    kind = draw(st.sampled_from(["interleaved", "height", "width", "block", "nd", "nd", "nd"]))
    if kind == "interleaved":
        return plain
    across, down = chip.compute_grid if buffer == "l1" else (chip.dram_banks, 1)
    cores = draw(core_sets(across, down))
    orientation = draw(st.sampled_from(["row_major", "col_major"]))
    unit = tile.shape if tile else (1, 1)
    rows, columns = plain.physical_shape
    any_of = lambda n, u: st.integers(1, max(1, n + 2)).map(lambda s: rounded(s, u))  # noqa: E731
    if kind == "nd":
        padded = plain.padded_shape
        lead = 0 if tiled and unit[0] > 1 else 1
        count = draw(st.integers(min(len(padded), 2 - lead), len(padded)))
        units = ([1] * count + list(unit))[-count:]
        shard = [draw(any_of(n, u)) for n, u in zip(padded[-count:], units, strict=True)]
        distribution = draw(st.sampled_from(["round_robin_1d", "contiguous_1d", "grid_2d"]))
        memory = nd_sharded(shard, cores, orientation, distribution, buffer)
    else:
        height = rows if kind == "width" else draw(any_of(rows, unit[0]))
        width = columns if kind == "height" else draw(any_of(columns, unit[1]))
        memory = MemoryConfig(f"{kind}_sharded", buffer, ShardSpec(cores, (max(1, height), max(1, width)), orientation))
    try:
        spec = TensorSpec(**arguments, memory=memory)
        assume(not spec.violations())
    except MemoryConfigError:
        assume(False)
    return spec
