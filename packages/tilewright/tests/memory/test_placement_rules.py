# SPDX-License-Identifier: Apache-2.0
"""Every rule that a spec can break, with the values and the remedy that its message must name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import MemoryConfigError, TilewrightError
from tilewright.files import Tensorbin, write_tensorbin
from tilewright.memory import (
    Allocator,
    Chip,
    CoreCoord,
    CoreGrid,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    NdShardSpec,
    ShardSpec,
    TensorSpec,
    Tile,
    alignment_of,
    block_sharded,
    height_sharded,
    nd_sharded,
    padded_extents,
    sharded_across_dims,
    width_sharded,
)
from tilewright.ttnn import num_cores_to_corerangeset, split_work_to_cores

from ..cases import examples

TWO = [((0, 0), (1, 0)), ((3, 0), (3, 0))]

SPECS = [
    # arguments of the spec, words that its message must hold
    ({"dtype": "bfloat8_b", "page_layout": "row_major"}, "bfloat8_b needs tiles; choose the tile layout"),
    ({"dtype": "float8_e4m3", "page_layout": "tile"}, "choose the row-major layout"),
    ({"tile": (16, 32)}, "cannot have tiles of 16 x 32; leave the tile out"),
    ({"memory": MemoryConfig("height_sharded", "l1")}, "HEIGHT_SHARDED needs a shard shape; pass a ShardSpec"),
    ({"memory": "system_memory"}, "SYSTEM_MEMORY has no banks; use DRAM or L1"),
    ({"memory": nd_sharded((0, 64), (2, 2))}, "must be at least 1, got [0, 64]; use 1 or more"),
    (
        {"page_layout": "tile", "memory": height_sharded((4, 1), (25, 64))},
        "multiple of the tile height 32; use 32 (7 more",
    ),
    (
        {"page_layout": "tile", "memory": width_sharded((4, 1), (64, 20))},
        "shard width 20 is not a multiple of the tile width",
    ),
    (
        {"page_layout": "tile", "memory": nd_sharded((32,), (2, 2))},
        "shard height 1 is not a multiple of the tile height 32",
    ),
    ({"page_layout": "tile", "alignment": (32,)}, "use [32, 32]"),
    ({"page_layout": "tile", "alignment": (40, 32)}, "use [64, 32]"),
    ({"alignment": (0,)}, "must be at least 1, got [0]; use 1 or more"),
    ({"alignment": (24,), "memory": width_sharded((4, 1), (64, 32))}, "not a multiple of the alignment 24; use 48"),
    ({"alignment": (2, 2, 2), "memory": height_sharded((4, 1), (16, 64))}, "3 entries, but a ShardSpec allows 2"),
    ({"memory": height_sharded((4, 1), (16, 32))}, "shard width 32 must be the width 64 of the tensor; use (16, 64)"),
    ({"memory": height_sharded((2, 1), (16, 64))}, "4 shards along the height need 4 cores, got 2"),
    ({"memory": height_sharded((2, 1), (16, 64))}, "use a shard height of at least 32, 4 cores, or nd_sharded"),
    ({"memory": width_sharded((4, 1), (32, 16))}, "shard height 32 must be the height 64 of the tensor; use (64, 16)"),
    ({"memory": width_sharded((3, 1), (64, 16))}, "use a shard width of at least 22"),
    (
        {"memory": block_sharded(TWO, (32, 32))},
        "block sharding needs a single range of cores, got 2 ranges {(0, 0)-(1, 0), (3, 0)-(3, 0)}",
    ),
    ({"memory": block_sharded((2, 2), (16, 32))}, "4 shards along the height do not fit 2 rows of cores"),
    ({"memory": block_sharded((4, 2), (16, 32), "col_major")}, None),
    ({"memory": block_sharded((2, 4), (16, 32), "col_major")}, "4 shards along the height do not fit 2 columns"),
    ({"memory": block_sharded(TWO)}, "needs a single range of cores"),
    ({"memory": sharded_across_dims([2], (2, 2))}, "dimension 2 is outside padded shape [64, 64]; use -2 to 1"),
    ({"shape": (64,), "memory": height_sharded((2, 1), (2, 64))}, "rank 1; use height 1"),
    ({"shape": (64, -1)}, "must not be negative"),
]


@pytest.mark.parametrize(("arguments", "words"), SPECS)
def test_specs(arguments, words):
    arguments = {"shape": (64, 64), "dtype": "bfloat16", **arguments}
    if words is None:
        TensorSpec(**arguments)
        return
    with pytest.raises(MemoryConfigError) as caught:
        TensorSpec(**arguments)
    assert words in str(caught.value)


PLACEMENTS = [
    (nd_sharded((1, 1, 32, 32), (2, 2)), "shard shape [1, 1, 32, 32] has rank 4, but tensor shape [64, 64] has rank 2"),
    (nd_sharded((32, 32), (2, 2), distribution="grid_2d"), None),
    (nd_sharded((16, 64), (2, 2), distribution="grid_2d"), "1 x 4 shards do not fit 2 x 2 cores"),
    (nd_sharded((32, 32), TWO, distribution="grid_2d"), "a single range of cores, got 2 ranges"),
    (
        nd_sharded((32, 32), (3, 1), distribution="contiguous_1d"),
        "got 4 shards on 3 cores; use round_robin_1d",
    ),
    (nd_sharded((32, 32), (9, 1)), "core (8, 0) has no L1 bank on wormhole_n150 with fast dispatch; use cores"),
    (
        nd_sharded((32, 32), (2, 2), buffer_type="dram"),
        "x must be the number of a bank and y must be 0; use (0, 0) to (11, 0)",
    ),
    (nd_sharded((32, 32), (13, 1), buffer_type="dram"), "core (12, 0) is not a DRAM bank"),
    (nd_sharded((32, 32), CoreRangeSet()), "at least one core"),
]


@pytest.mark.parametrize(("memory", "words"), PLACEMENTS)
def test_placements(memory, words):
    spec = TensorSpec((64, 64), memory=memory, chip="wormhole_n150")
    if words is None:
        assert not spec.violations()
        return
    with pytest.raises(MemoryConfigError) as caught:
        spec.pages()
    assert words in str(caught.value)
    (broken,) = spec.violations()
    assert str(broken) == str(caught.value)


def test_pages_must_divide_the_matrix():
    memory = width_sharded((2, 1), (64, 48))
    spec = TensorSpec((64, 64), memory=memory, chip="wormhole_n150", alignment=(24,))
    with pytest.raises(MemoryConfigError, match="tensor width 72 is not a multiple of the page width 48; use an"):
        spec.pages()


def test_configs():
    shards = ShardSpec((2, 2), (32, 32))
    with pytest.raises(MemoryConfigError, match="interleaved memory has no shards"):
        MemoryConfig("interleaved", "l1", shards)
    with pytest.raises(
        MemoryConfigError, match=r"\(height, width\), got \[1, 32, 32\]; use NdShardSpec for other ranks"
    ):
        ShardSpec((2, 2), (1, 32, 32))
    with pytest.raises(MemoryConfigError, match="unknown shard orientation 'diagonal'; use one of \"row_major"):
        ShardSpec((2, 2), (32, 32), "diagonal")
    with pytest.raises(MemoryConfigError, match="at least one extent"):
        NdShardSpec([], (2, 2))
    for wrong in (None, 32, "32x32"):
        with pytest.raises(MemoryConfigError, match=f"expected a shard shape .*, got {wrong!r}"):
            NdShardSpec(wrong, (2, 2))


def test_configs_are_equal_when_the_same_was_asked_for():
    given = nd_sharded((32, 64), (2, 1))
    spec = TensorSpec((64, 64), page_layout="tile", memory=given)
    assert spec.memory.shard_spec is not None
    assert spec.memory == given
    assert hash(spec.memory) == hash(given)
    assert height_sharded((2, 1), (32, 64)) != given, "only shards of a matrix must be whole rows"
    assert height_sharded((2, 1), (32, 64)) != height_sharded((2, 1), (32, 64), buffer_type="dram")
    assert block_sharded((2, 1), (32, 64)) != given


def test_equal_configs_obey_the_same_rules():
    """The kinds of sharding have rules of their own, also where their shards are the same."""
    shards = [ShardSpec(grid, shape) for grid in ((2, 1), (1, 2), (2, 2)) for shape in ((32, 64), (64, 64))]
    every = [
        MemoryConfig(kind, "l1", each)
        for kind in ("height_sharded", "width_sharded", "block_sharded")
        for each in shards
    ]
    every += [MemoryConfig("nd_sharded", "l1", nd_shard_spec=NdShardSpec(each.shape, each.grid)) for each in shards]

    def verdicts(config):
        specs = [TensorSpec(shape, page_layout="tile", memory=config) for shape in ((64, 64), (32, 128), (128, 64))]
        return [[str(each) for each in spec.violations()] for spec in specs]

    for k, one in enumerate(every):
        for other in every[:k]:
            if one == other:
                assert verdicts(one) == verdicts(other), f"{one} and {other}"
    assert len(set(every)) == len(every)


def test_tiles():
    for shape in ((32, 0), (3, -32), (32,), 32):
        with pytest.raises(MemoryConfigError, match="expected a tile of two positive extents"):
            Tile(shape)
    for shape in ((32, 8), (3, 32), (2, 2)):
        assert TensorSpec((64, 64), "uint8", "tile", tile=shape).page_shape == shape
        with pytest.raises(MemoryConfigError, match=r"chips have no tiles of .* leave the chip out"):
            TensorSpec((64, 64), "uint8", "tile", tile=shape, chip="n150")
        with pytest.raises(MemoryConfigError, match="chips have no tiles"):
            TensorSpec((64, 64), "bfloat8_b", "tile", tile=shape)
    with pytest.raises(MemoryConfigError, match="use height 16 or 32"):
        Tile((8, 32), transpose=True)
    assert Tile((16, 16), transpose=True) != Tile((16, 16))


def test_cores():
    with pytest.raises(MemoryConfigError, match=r"got \(3, 0\) to \(1, 0\); use \(1, 0\) to \(3, 0\)"):
        CoreRange((3, 0), (1, 0))
    with pytest.raises(MemoryConfigError, match=r"\(0, 0\)-\(2, 2\) and \(2, 2\)-\(3, 3\) overlap"):
        CoreRangeSet([((0, 0), (2, 2)), ((2, 2), (3, 3))])
    with pytest.raises(MemoryConfigError, match="must not be negative"):
        CoreCoord.of((-1, 0))
    with pytest.raises(MemoryConfigError, match="at least one row"):
        CoreGrid(y=0, x=1)
    with pytest.raises(MemoryConfigError, match="expected a CoreRangeSet"):
        CoreRangeSet.of(5)
    for wrong in (2, "ab", (1, 2, 3), None):
        with pytest.raises(MemoryConfigError, match=r"expected a core \(x, y\), got"):
            CoreCoord.of(wrong)
    for wrong in (2, "8x8", None):
        with pytest.raises(MemoryConfigError, match="expected ranges of cores, got"):
            CoreRangeSet(wrong)
    for wrong in (2, "ab", ((0, 0), (1, 1), (2, 2))):
        with pytest.raises(MemoryConfigError, match=r"expected a range of cores .* got"):
            CoreRangeSet([wrong])
    for wrong in ("8", 8.0, None):
        with pytest.raises(TypeError, match="y of a core grid must be an integer"):
            CoreGrid(wrong, 8)
    with pytest.raises(MemoryConfigError, match="expected 1 to 64, got 65"):
        num_cores_to_corerangeset(65, (8, 8))
    with pytest.raises(MemoryConfigError, match="units of work, got -1"):
        split_work_to_cores((8, 8), -1)


def test_alignments():
    assert padded_extents((3, 5, 7), (6, 6, 9)) == (3, 6, 9)
    assert padded_extents((3, 5, 7), (12, 6, 9)) == (4, 6, 9)
    with pytest.raises(
        MemoryConfigError, match="entry 8 of dimension -3 must be a multiple or a divisor of the 6 rows inside it"
    ):
        padded_extents((3, 5, 7), (8, 6, 9))
    for padded in ((4, 6, 9), (2, 4, 6, 9), (5, 7), (9,)):
        assert padded_extents(padded, alignment_of(padded)) == padded
    padded = TensorSpec((3, 5, 7), "int32", alignment=alignment_of((4, 6, 9)))
    assert padded.padded_shape == (4, 6, 9)
    assert padded.host(2, 4, 6) == 2 * 54 + 4 * 9 + 6


# One function decides: whoever places tensors, or writes where they go, agrees with it.


@st.composite
def placements(draw):
    """Return a spec of a small tensor on a chip, legal there or not."""
    chip = Chip.named(
        draw(st.sampled_from(["wormhole_n150", "blackhole_p100"])), draw(st.sampled_from(["fast", "slow"]))
    )
    buffer = draw(st.sampled_from(["l1", "dram"]))
    across, down = chip.shard_grid(buffer)
    grid = (draw(st.integers(1, across + 1)), draw(st.sampled_from([1, 1, down, down + 1])))
    shape = (32 * draw(st.integers(1, 16)), 32 * draw(st.integers(1, 16)))
    shard = tuple(32 * draw(st.integers(1, 1 + n // 32)) for n in shape)
    shapes = {"height": (shard[0], shape[1]), "width": (shape[0], shard[1]), "block": shard}
    kind = draw(st.sampled_from([*shapes, "nd"]))
    if kind == "nd":
        dealt = draw(st.sampled_from(["round_robin_1d", "grid_2d", "contiguous_1d"]))
        memory = nd_sharded(shard, grid, "row_major", dealt, buffer)
    else:
        memory = MemoryConfig(f"{kind}_sharded", buffer, ShardSpec(grid, shapes[kind]))
    # of one number in many, some are larger than L1
    dtype = draw(st.sampled_from(["uint8", "float32"]))
    try:
        return TensorSpec(shape, dtype, "tile", memory=memory, chip=chip)
    except MemoryConfigError:
        return TensorSpec(shape, dtype, "tile", memory=nd_sharded(shard, grid, buffer_type=buffer), chip=chip)


def is_done(action, *arguments, **more):
    try:
        return action(*arguments, **more) is not False
    except TilewrightError:
        return False


@examples(40)
@given(placements())
def test_everyone_agrees_about_what_is_legal(tmp_path_factory, spec):
    folder, legal = tmp_path_factory.mktemp("legal"), not spec.violations()
    np.save(folder / "x.npy", np.zeros(spec.shape.logical, spec.dtype.name))
    for chip in (spec.chip, None):  # a file need not say for which chip it is
        if chip is None:
            legal = any(not spec.with_chip(each).violations() for each in tw.memory.chip.known_chips())
        rules = {"*": {"memory": spec.memory, "layout": "tile", "dtype": spec.dtype, "chip": chip}}
        assert is_done(tw.convert, folder / "x.npy", folder / "out", rules=rules, force=True) == legal
        held = Tensorbin(spec.replace(chip=chip), bytes(spec.nbytes))
        assert is_done(write_tensorbin, folder / "x.tensorbin", held) == legal
    legal = not spec.violations()
    assert bool(tw.fit(spec)) == legal
    assert is_done(Allocator(spec.chip).allocate, spec) == legal
    assert is_done(tw.Device(spec.chip).put, np.zeros(spec.shape.logical), spec) == legal
    assert is_done(spec.where, 0, 0) == is_done(spec.pages) == is_done(tw.explain, spec, (0, 0)) == legal


@pytest.mark.parametrize(("chip", "banks"), [("wormhole_n150", 12), ("blackhole_p150", 8), ("blackhole_p100", 7)])
def test_shards_in_dram_are_dealt_to_its_row_of_banks(tmp_path, chip, banks):
    np.save(tmp_path / "x.npy", np.zeros((64, 32 * banks), np.float32))
    tw.convert(tmp_path / "x.npy", tmp_path / "out", shard="width", buffer="dram", chip=chip)
    spec = tw.open_tensors(tmp_path / "out")["x"].spec
    assert spec.memory.sharding.grid == CoreRangeSet.of((banks, 1))
    assert len(spec.with_chip(chip).used_banks) == banks


def test_a_shard_larger_than_l1_is_not_converted(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2048, 1024), np.float32))
    asked = {"shard": "height", "grid": (1, 1)}
    for chip in ("wormhole_n150", None):
        with pytest.raises(
            tw.OutOfMemory, match=r"the tensor needs 8388608 bytes per L1 bank, but a bank of .* has .*; use"
        ):
            tw.convert(tmp_path / "x.npy", tmp_path / "out", **asked, chip=chip)
    assert not (tmp_path / "out").exists()
    # 64 cores hold it
    tw.convert(tmp_path / "x.npy", tmp_path / "out", shard="height", chip="wormhole_n150")


def test_a_grid_that_shards_are_worked_out_for_lies_on_the_chip():
    with pytest.raises(
        MemoryConfigError, match=r"core \(8, 0\) has no L1 bank on wormhole_n150 .* \(0, 0\) to \(7, 7\)"
    ):
        TensorSpec((2048, 2048), page_layout="tile", memory=block_sharded((9, 9)), chip="wormhole_n150")
    # as in ttnn, cores of a rectangle that no block reaches need not be there
    spec = TensorSpec((64, 64), page_layout="tile", memory=block_sharded((9, 9), (32, 32)), chip="wormhole_n150")
    assert not spec.violations()
    assert len(spec.used_banks) == 4


def test_grids_of_any_size_are_refused_in_no_time():
    huge = CoreRange((0, 0), (2**31 - 2, 2**31 - 2))
    spec = TensorSpec((64, 64), page_layout="tile", memory=nd_sharded((32, 32), huge), chip="wormhole_n150")
    assert "core (8, 0) has no L1 bank" in str(spec.violations()[0])


def test_small_l1_holds_shards_only():
    assert "L1_SMALL can only hold sharded tensors" in str(
        TensorSpec((32, 32), memory="l1_small", chip="n150").violations()[0]
    )
    assert not TensorSpec((32, 32), memory=height_sharded((1, 1), buffer_type="l1_small"), chip="n150").violations()
