# SPDX-License-Identifier: Apache-2.0
"""The page on tensor and memory layouts, statement by statement."""

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
import tilewright.ttnn as ttnn
from tilewright import MemoryConfigError, views
from tilewright.memory import PageLayout, ShardOrientation, TensorMemoryLayout

from .statements import shows

THREE_BANKS = tw.Chip("three", "small", (3, 1), 0, 65536, 3, (0, 0), 65536, 32)
FOUR_PAGES = tw.TensorSpec((4, 8), "bfloat16", chip=THREE_BANKS)
SHARDED = tw.TensorSpec((128, 128), "bfloat16", "tile", memory=tw.block_sharded((2, 2), (64, 64)), chip="wormhole")
HELD = {(0, 0): [0, 1, 4, 5], (1, 0): [2, 3, 6, 7], (0, 1): [8, 9, 12, 13], (1, 1): [10, 11, 14, 15]}
CORES_PICTURE = """
  cores and the pages they hold
  Core (0,0)   Core (1,0)
  ┌─────────┐  ┌─────────┐
  │  P0  P1 │  │  P2  P3 │
  │  P4  P5 │  │  P6  P7 │
  └─────────┘  └─────────┘
  Core (0,1)   Core (1,1)
  ┌─────────┐  ┌─────────┐
  │  P8  P9 │  │ P10 P11 │
  │ P12 P13 │  │ P14 P15 │
  └─────────┘  └─────────┘
""".strip("\n")
HOST_PICTURE = """
   0  P0  P1 │  P2  P3
  32  P4  P5 │  P6  P7
     ────────┼────────
  64  P8  P9 │ P10 P11
  96 P12 P13 │ P14 P15
""".strip("\n")


@pytest.fixture
def device():
    with ttnn.manage_device(device_id=0) as opened:
        yield opened


def randn(*shape):
    """Return random numbers as torch.randn(shape, dtype=torch.bfloat16) would."""
    return np.random.default_rng(0).standard_normal(shape).astype(ml_dtypes.bfloat16)


def spec(layout="tile", memory=None, shape=(64, 64), **others):
    return tw.TensorSpec(shape, "bfloat16", layout, memory=memory, chip="wormhole_n150", **others)


def shown(subject, **options):
    """Return what an object prints when it is shown."""
    out = io.StringIO()
    with redirect_stdout(out):
        subject.show(**options)
    return out.getvalue()


def snippet_config():
    """Return the config of the second snippet of the page."""
    return ttnn.create_sharded_memory_config(
        (32, 32),
        core_grid=ttnn.CoreGrid(y=2, x=2),
        strategy=ttnn.ShardStrategy.BLOCK,
        use_height_and_width_as_shard_shape=True,
    )


# Introduction and attributes.


@shows("M1", "19", "Tensors are stored in a two-dimensional memory space, a buffer")
@shows("M2", "19", "Outer dimensions are combined: [1x4x6x8] becomes [24x8]")
def test_tensors_are_folded_to_two_dimensions():
    assert tw.TensorSpec((1, 4, 6, 8)).physical_shape == (24, 8)
    assert [len(tw.TensorSpec((2,) * rank).physical_shape) for rank in range(1, 8)] == [2] * 7
    assert ttnn.Shape([1, 4, 6, 8]).folded == (24, 8)


@shows("M3", "19", "The folded shape of a ttnn.Tensor")
def test_the_folded_shape_of_a_tensor():
    assert tuple(ttnn.from_torch(np.zeros((1, 4, 6, 8), np.float32)).physical_shape) == (24, 8)


@shows("M4", "19", "A page is the smallest block of memory that stands for a part of the tensor")
def test_pages_are_the_smallest_blocks():
    rows = tw.TensorSpec((1, 4, 6, 8))
    assert (rows.num_pages, rows.page_shape, rows.page_bytes) == (24, (1, 8), 16)


@shows("M5", "24", "The tensor layout is row-major or tiled")
def test_the_two_tensor_layouts():
    assert [member.name for member in PageLayout] == ["ROW_MAJOR", "TILE"]
    assert {ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT} == set(ttnn.Layout)


@shows("M6", "25", "The memory layout is interleaved or sharded")
@shows("M25", "57", "There are two mechanisms: interleaving and sharding")
def test_the_two_memory_layouts():
    assert not tw.interleaved("dram").is_sharded
    others = [member for member in TensorMemoryLayout if member is not TensorMemoryLayout.INTERLEAVED]
    assert others
    assert all(member.is_sharded for member in others)
    assert spec(memory=tw.block_sharded((2, 2))).memory.is_sharded


@shows(
    "M7",
    "26",
    "The storage is L1 or DRAM; there are two options",
    differs="dated: ttnn 0.81.1 also has L1_SMALL and TRACE for buffers of its own; ttnn.strict() enforces the rule",
)
def test_the_two_storages():
    for other in (ttnn.BufferType.L1_SMALL, ttnn.BufferType.TRACE):
        assert ttnn.MemoryConfig(buffer_type=other).buffer_type == other
        with ttnn.strict(), pytest.raises(MemoryConfigError, match="allow buffers in DRAM or L1 only"):
            ttnn.MemoryConfig(buffer_type=other)
    found = {str(spec(memory=name).memory.buffer_type) for name in ("l1", "dram")}
    assert found == {"L1", "DRAM"}


@shows("M8", "23-26", "A tensor on the device tells all three")
def test_a_tensor_tells_its_attributes(device):
    a = ttnn.from_torch(randn(64, 64), layout=ttnn.TILE_LAYOUT, device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert a.layout == ttnn.TILE_LAYOUT
    assert a.memory_config().memory_layout == ttnn.TensorMemoryLayout.INTERLEAVED
    assert a.memory_config().buffer_type == ttnn.BufferType.L1


# Tensor layout.


@shows("M9", "29", "Pages are stored one after the other in a buffer")
def test_pages_follow_each_other():
    values = np.arange(64 * 64, dtype=np.int32).reshape(64, 64)
    stored = np.frombuffer(tw.to_bytes(values, tw.TensorSpec((64, 64), "int32", "tile")), np.int32)
    first = [int(stored[page * 1024]) for page in range(4)]
    assert first == [values[0, 0], values[0, 32], values[32, 0], values[32, 32]]
    in_bank = spec(shape=(32, 32 * 25)).pages().address[0:25:12]  # pages 0, 12 and 24 share a bank
    assert np.diff(in_bank).tolist() == [2048, 2048]


@shows("M10", "33", "Each row of a 64x64 row-major tensor is a page: 64 pages")
def test_rows_are_pages():
    rows = spec("row_major")
    assert (rows.num_pages, rows.page_shape) == (64, (1, 64))
    assert [rows.where(row, 7).page for row in (0, 5, 63)] == [0, 5, 63]


@shows("M11", "33", "Sharded tensors are a minor exception")
@shows("M57", "124", "The page of a sharded row-major tensor is as wide as the shard")
def test_pages_of_sharded_rows():
    assert spec("row_major", tw.width_sharded((2, 1))).page_shape == (1, 32)
    assert spec("row_major", tw.block_sharded((2, 2))).page_shape == (1, 32)
    assert spec("row_major", tw.height_sharded((2, 1))).page_shape == (1, 64)


@shows("M12", "35-37", "Figure 1: the 64 pages of a row-major tensor")
def test_figure_1():
    lines = shown(spec("row_major")).splitlines()
    start = lines.index("  pages of 1 x 64 elements") + 2
    rows = [[str(row), *(f"P{row + k}" for k in range(8))] for row in range(0, 64, 8)]
    assert [line.split() for line in lines[start : start + 8]] == rows
    svg = views.to_svg(views.scene_of(spec("row_major")))
    assert int(re.search(r'height="(\d+)"', svg)[1]) < 600  # a picture, not a strip
    assert svg.count(">P63<") == 2  # among the pages, and in its bank


@shows("M13", "42", "In tiles of 32x32, the default, a 64x64 tensor has four pages")
def test_tiles_are_pages():
    assert (spec().num_pages, spec().page_shape) == (4, (32, 32))
    assert tw.Tile().shape == (32, 32)


@shows("M14", "42", "The same, asked of a ttnn.Tensor")
def test_tiles_are_pages_in_ttnn(device):
    a = ttnn.from_torch(randn(64, 64), layout=ttnn.TILE_LAYOUT, device=device)
    assert (a.buffer_num_pages(), a.buffer_page_size(), a.get_tile()) == (4, 2048, ttnn.Tile((32, 32)))


@shows("M15", "43-45", "Figure 2: the four tiles of a 64x64 tensor")
def test_figure_2():
    assert "      0 32\n   0 P0 P1\n  32 P2 P3\n" in shown(spec())


@shows("M16", "49", "Tiles of 32x32, 16x32, 4x32, 2x32 and 1x32 are supported")
@shows("M17", "49", "The same shapes as ttnn.Tile")
def test_tile_shapes():
    counts = {32: 4, 16: 8, 4: 32, 2: 64, 1: 128}
    for height, pages in counts.items():
        assert spec(tile=(height, 32)).num_pages == pages
        tile = ttnn.Tile((height, 32))
        a = ttnn.from_torch(randn(64, 64), layout=ttnn.TILE_LAYOUT, tile=tile)
        assert (a.get_tile(), a.native.spec.num_pages) == (tile, pages)


@shows(
    "M18",
    "49",
    "The list of tile shapes has no 8x32",
    differs="ttnn 0.81.1 has tiles of 8 x 32, and widths of 16: twelve shapes, and so has tilewright",
)
def test_tiles_of_eight_rows():
    assert spec(tile=(8, 32)).num_pages == 16
    shapes = [(high, wide) for high in (1, 2, 4, 8, 16, 32) for wide in (16, 32)]
    assert all(tw.Tile(shape).is_on_chips for shape in shapes)
    assert not any(tw.Tile(shape).is_on_chips for shape in ((64, 32), (3, 32), (32, 8)))


@shows(
    "M19",
    "49",
    "TT-Metallium supports only tiles of 32x32 so far",
    differs="dated: ttnn 0.81.1 supports all twelve shapes; ttnn.strict() enforces the rule",
)
def test_other_tiles_are_supported():
    values = randn(64, 64)
    a = ttnn.from_torch(values, layout=ttnn.TILE_LAYOUT, tile=ttnn.Tile((16, 32)))
    assert np.array_equal(np.asarray(ttnn.to_numpy(a), np.float32), values.astype(np.float32))
    with ttnn.strict(), pytest.raises(MemoryConfigError, match="allow tiles of 32 x 32 only, got 16 x 32"):
        ttnn.Tile((16, 32))


# Memory layout.


@shows("M20", "53", "The memory of a device consists of banks")
@shows("M21", "53", "Grayskull chips have 8 DRAM banks")
@shows("M22", "53", "Wormhole chips have 12 DRAM banks")
def test_banks():
    assert [tw.Chip.named(name).banks("dram") for name in ("grayskull", "wormhole")] == [8, 12]
    assert tw.Chip.named("wormhole").banks("l1") == 64


@shows("M23", "55", "The L1 of each core is divided into banks; most worker cores have one")
@shows("M24", "55", "Some storage cores have two banks")
def test_banks_of_cores():
    wormhole = tw.Chip.named("wormhole")
    assert len(set(wormhole.bank_cores("l1"))) == wormhole.banks("l1") == 64
    grayskull = tw.Chip.named("grayskull")
    cores = grayskull.bank_cores("l1")
    assert {cores.count(core) for core in map(tw.CoreCoord.of, grayskull.storage_cores)} == {2}
    assert {cores.count(core) for core in set(cores) - set(grayskull.storage_cores)} == {1}


@shows("M26", "61", "The storage of a tensor over several banks can be drawn")
@shows("M27", "63", "Interleaved pages are allocated to the banks in turn")
def test_pages_go_round():
    many = spec(shape=(512, 64))
    assert many.pages().bank.tolist() == [page % 12 for page in range(32)]
    banks = views.scene_of(many).panels[1]
    assert (banks.title, banks.rows, banks.columns) == ("DRAM banks and their pages", 3, 12)
    assert [banks.cell(1, bank).attributes["page"] for bank in range(12)] == list(range(12, 24))


@shows("M28", "63", "The allocation of a new tensor always begins with the first bank")
@shows("M29", "63", "This can lead to some fragmentation between tensors")
@shows("M30", "63", "Both tensors in one picture of the allocator")
def test_every_tensor_begins_with_the_first_bank():
    allocator = tw.Allocator("wormhole")
    first, second = (allocator.allocate(spec(shape=(32, 160))) for _ in range(2))
    for block in (first, second):
        assert block.spec.pages(base=block.address).bank.tolist() == [0, 1, 2, 3, 4]
    words = shown(allocator)
    assert words.startswith("DRAM of wormhole_n150\n")
    assert "banks 0 to 4" in words
    assert "x allocated, unused" in words  # of the seven other banks
    assert "tensors             2\n" in words


@shows("M31", "65", "Figure 3: of four pages over three banks, the fourth wraps around to bank 0")
@shows("M33", "67-69", "Figure 3 as a picture: banks as columns, with their pages")
def test_figure_3():
    assert FOUR_PAGES.pages().bank.tolist() == [0, 1, 2, 0]
    assert "        0  1  2\n   0x0 P0 P1 P2\n  0x20 P3 // //\n" in shown(FOUR_PAGES, address="hex")


@shows("M32", "65", "The next tensor starts at bank 0 as well")
@shows("M34", "67-69", "Figure 3 as a map of memory, with both tensors")
def test_the_next_tensor():
    allocator = tw.Allocator(THREE_BANKS)
    blocks = [allocator.allocate(FOUR_PAGES) for _ in range(2)]
    assert [block.address for block in blocks] == [0, 64]
    (tracks,) = views.scene_of(allocator, each=True).panels
    pages = [(span.track, span.start, span.label) for span in tracks.spans if not span.hatched]
    places = [(0, 0, "P0"), (0, 32, "P3"), (1, 0, "P1"), (2, 0, "P2")]
    assert sorted(pages) == sorted(places + [(bank, 64 + start, label) for bank, start, label in places])


@shows("M35", "73", "ttnn.DRAM_MEMORY_CONFIG and ttnn.L1_MEMORY_CONFIG are the interleaved configs")
@shows("M36", "73", "They are the memory config parameter when a tensor is created")
def test_interleaved_configs(device):
    configs = {ttnn.DRAM_MEMORY_CONFIG: ttnn.BufferType.DRAM, ttnn.L1_MEMORY_CONFIG: ttnn.BufferType.L1}
    for config, memory in configs.items():
        assert (config.memory_layout, config.buffer_type) == (ttnn.TensorMemoryLayout.INTERLEAVED, memory)
        assert ttnn.from_torch(randn(64, 64), device=device, memory_config=config).memory_config() == config


@shows("M37", "76-80", "The example that creates an interleaved tensor in L1")
@shows("M38", "76-80", "The tensor that it creates prints as ttnn prints it")
def test_the_first_snippet(device):
    torch_a = randn(64, 64)
    a = ttnn.from_torch(torch_a)
    a = ttnn.to_device(a, device, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert a.memory_config() == ttnn.L1_MEMORY_CONFIG
    assert (a.storage_type(), a.layout) == (ttnn.StorageType.DEVICE, ttnn.ROW_MAJOR_LAYOUT)
    assert np.array_equal(np.asarray(ttnn.to_numpy(a), np.float32), torch_a.astype(np.float32))
    lines = str(a).splitlines()
    assert lines[0].startswith("ttnn.Tensor([[")
    assert "..., " in lines[0]
    assert lines[-1].endswith("shape=Shape([64, 64]), dtype=DataType::BFLOAT16, layout=Layout::ROW_MAJOR)")


# Sharding.


@shows("M39", "85", "A sharded tensor is distributed over the L1 of the cores of a grid, by a shard specification")
def test_shards_lie_in_the_memory_of_cores():
    assert str(SHARDED.memory) == "block sharded in L1, shards of 64 x 64 on 4 cores"
    assert [tuple(SHARDED.where(*at).core) for at in ((0, 0), (127, 127))] == [(0, 0), (1, 1)]
    assert {SHARDED.where(row, 0).buffer_type.name for row in (0, 127)} == {"L1"}


@shows("M40", "87", "Interleaved pages go to all L1 banks without an explicit mapping")
def test_interleaved_pages_use_all_banks():
    assert set(spec(memory="l1", shape=(2048, 2048)).pages().bank.tolist()) == set(range(64))
    assert set(SHARDED.pages().bank.tolist()) == set(SHARDED.banks)
    assert len(SHARDED.banks) == 4


@shows("M41", "90-92", "Figure 4: of 16 pages, core (0, 0) holds pages 0, 1, 4 and 5")
@shows("M63", "92", "The pages of each core, as data")
def test_the_pages_of_cores():
    assert SHARDED.num_pages == 16
    held = {tuple(core): pages for core, pages in SHARDED.pages().by_core().items()}
    assert held == HELD


@shows(
    "M42",
    "92",
    "Core (0, 1) holds pages 2, 3, 7 and 8",
    differs="the pages beside 2 and 3 are 6 and 7, and the core is (1, 0): cores are (x, y), as on the page of"
    " ttnn.Tensor; core (0, 1) holds 8, 9, 12 and 13",
)
def test_the_pages_of_the_second_core():
    held = SHARDED.pages().by_core()
    assert held[tw.CoreCoord(1, 0)] == [2, 3, 6, 7]
    assert held[tw.CoreCoord(0, 1)] == [8, 9, 12, 13]


@shows("M43", "94-96", "Figure 4 as a picture: pages of the host on the left, cores with their pages on the right")
@shows("M61", "94", "Figure 4 labelled with page numbers")
def test_figure_4():
    for options in ({}, {"label": "page"}):
        words = shown(SHARDED, **options)
        assert HOST_PICTURE in words
        assert CORES_PICTURE in words
    host, cores = views.scene_of(SHARDED).panels
    assert (host.label, cores.label, cores.boxes) == ("page", "page", (2, 2))
    assert cores.box_titles == ("Core (0,0)", "Core (1,0)", "Core (0,1)", "Core (1,1)")
    for title, box in zip(cores.box_titles, [box for row in cores.box_grids() for box in row], strict=True):
        core = tuple(int(n) for n in title.removeprefix("Core (").removesuffix(")").split(","))
        assert list(box.field("page").values) == HELD[core]


@shows("M62", "94", "Figure 4 from the command line")
def test_figure_4_from_the_command_line():
    command = [sys.executable, "-m", "tilewright", "show", "128x128", "--layout", "tile", "--shard", "block"]
    command += ["--grid", "2x2", "--label", "page"]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, env=environment)
    assert HOST_PICTURE in done.stdout
    assert CORES_PICTURE in done.stdout
    command[-1] = "elephant"
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=environment)
    assert done.returncode != 0
    assert "--label elephant is not an attribute" in done.stderr


@shows(
    "M44",
    "104-112",
    "The example that specifies the figure, with the shape 32x32",
    differs="32x32 is not Python; write (32, 32)",
)
def test_the_second_snippet_as_it_is_written():
    with pytest.raises(SyntaxError):
        compile("ttnn.create_sharded_memory_config(32x32)", "snippet", "eval")
    assert ttnn.create_sharded_memory_config(
        (32, 32), ttnn.CoreGrid(y=2, x=2), ttnn.ShardStrategy.BLOCK, use_height_and_width_as_shard_shape=True
    ).shard_spec.shape == [32, 32]


@shows("M45", "104-112", "The example with the shape (32, 32)")
def test_the_second_snippet(device):
    torch_a = randn(64, 64)
    a = ttnn.from_torch(torch_a)
    sharded_memory_config = snippet_config()
    a = ttnn.to_device(a, device, memory_config=sharded_memory_config)
    assert a.memory_config().shard_spec.shape == [32, 32]
    assert a.memory_config().memory_layout == ttnn.TensorMemoryLayout.BLOCK_SHARDED
    assert np.array_equal(np.asarray(ttnn.to_numpy(a), np.float32), torch_a.astype(np.float32))


@shows(
    "M46",
    "104",
    "The example specifies the figure: 16 pages, shards of 2x2 pages",
    differs="64 x 64 elements in shards of 32 x 32 are one tile per core; the figure is of 128 x 128 in shards of"
    " 64 x 64. As written the tensor has rows as pages: 128 of them, 32 wide",
)
def test_the_second_snippet_is_not_the_figure(device):
    a = ttnn.to_device(ttnn.from_torch(randn(64, 64)), device, memory_config=snippet_config())
    assert (a.buffer_num_pages(), a.native.spec.page_shape) == (128, (1, 32))
    tiled = ttnn.from_torch(randn(64, 64), layout=ttnn.TILE_LAYOUT)
    assert ttnn.to_device(tiled, device, memory_config=snippet_config()).buffer_num_pages() == 4
    assert SHARDED.num_pages == 16


@shows("M47", "102", "A sharded tensor needs a shard shape, a core grid and a strategy")
def test_nothing_may_be_left_out():
    grid, strategy = ttnn.CoreGrid(y=2, x=2), ttnn.ShardStrategy.BLOCK
    for arguments, missing in (
        ({"core_grid": grid, "strategy": strategy}, "shape"),
        ({"shape": (32, 32), "strategy": strategy}, "core_grid"),
        ({"shape": (32, 32), "core_grid": grid}, "strategy"),
    ):
        with pytest.raises(TypeError, match=f"missing 1 required positional argument: '{missing}'"):
            ttnn.create_sharded_memory_config(**arguments)


@shows("M48", "108", "Without use_height_and_width_as_shard_shape the shape is the tensor's")
@shows("M49", "118", "HEIGHT: shards are entire rows of the tensor")
@shows("M50", "119", "WIDTH: shards are entire columns of the tensor")
@shows("M51", "120", "BLOCK: shards are neither")
def test_strategies():
    found = {}
    for strategy, grid in (
        (ttnn.ShardStrategy.HEIGHT, ttnn.CoreGrid(y=2, x=1)),
        (ttnn.ShardStrategy.WIDTH, ttnn.CoreGrid(y=1, x=2)),
        (ttnn.ShardStrategy.BLOCK, ttnn.CoreGrid(y=2, x=2)),
    ):
        config = ttnn.create_sharded_memory_config((64, 64), core_grid=grid, strategy=strategy)
        found[strategy.name] = config.shard_spec.shape
    assert found == {"HEIGHT": [32, 64], "WIDTH": [64, 32], "BLOCK": [32, 32]}


@shows("M52", "118", "The shard of HEIGHT is as wide as the tensor")
def test_a_height_shard_has_the_width_of_the_tensor():
    with pytest.raises(MemoryConfigError, match=r"shard width 32 must be the width 64 .*; use \(32, 64\)"):
        spec(memory=tw.height_sharded((2, 1), (32, 32)))


@shows("M53", "122", "The orientation of shards is ROW-MAJOR or COLUMN-MAJOR")
@shows("M54", "122", "These are the words for it")
def test_orientations():
    assert [member.name for member in ttnn.ShardOrientation] == ["ROW_MAJOR", "COL_MAJOR"]
    rows, columns = ShardOrientation.ROW_MAJOR, ShardOrientation.COL_MAJOR
    for words, orientation in (
        (("ROW-MAJOR", "row_major", "Row-Major", "row major"), rows),
        (("COLUMN-MAJOR", "column_major", "col_major", "Column Major"), columns),
    ):
        for word in words:
            assert ShardOrientation.of(word) is orientation
            assert tw.height_sharded((2, 2), orientation=word).orientation is orientation
    with pytest.raises(MemoryConfigError, match=r'unknown shard orientation .*; use one of "row_major", "col_major"'):
        ShardOrientation.of("DIAGONAL")


@shows("M55", "122", "The orientation is the order in which shards go to the cores of the grid")
@shows("M56", "122", "The same in ttnn")
def test_the_order_of_cores():
    orders = {"ROW-MAJOR": [(0, 0), (1, 0), (0, 1), (1, 1)], "COLUMN-MAJOR": [(0, 0), (0, 1), (1, 0), (1, 1)]}
    for word, order in orders.items():
        placed = spec(memory=tw.height_sharded((2, 2), orientation=word), shape=(128, 128))
        assert [tuple(placed.where(32 * shard, 0).core) for shard in range(4)] == order
    config = ttnn.create_sharded_memory_config(
        (128, 128), ttnn.CoreGrid(y=2, x=2), ttnn.ShardStrategy.HEIGHT, orientation=ttnn.ShardOrientation.COL_MAJOR
    )
    a = ttnn.from_torch(randn(128, 128), layout=ttnn.TILE_LAYOUT, memory_config=config)
    on_chip = a.native.spec.with_chip("wormhole")
    assert [tuple(on_chip.where(32 * shard, 0).core) for shard in range(4)] == orders["COLUMN-MAJOR"]


@shows("M58", "124", "The page of a sharded tiled tensor stays the tile")
def test_pages_of_sharded_tiles():
    shardings = (tw.block_sharded((2, 2)), tw.height_sharded((2, 1)), tw.width_sharded((2, 1)))
    assert {spec(memory=memory).page_shape for memory in shardings} == {(32, 32)}


@shows("M59", "99", "Each core works on a part of the tensor that is local in its L1")
def test_the_shard_of_one_core():
    values = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
    placed = tw.TensorSpec((128, 128), "float32", "tile", memory=tw.block_sharded((2, 2)), chip="wormhole_n150")
    device = tw.Device("wormhole_n150")
    block = device.put(values, placed)
    own = device.read_bytes((1, 0), block.address, 4 * 4096, "l1")  # the four tiles of core (1, 0)
    assert bytes(own) == bytes(tw.to_bytes(values[:64, 64:], tw.TensorSpec((64, 64), "float32", "tile")))


@shows("M60", "92", "The core grid may be a set of ranges of cores")
def test_a_set_of_ranges_of_cores():
    ranges = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))})
    config = ttnn.create_sharded_memory_config(
        (64, 64), core_grid=ranges, strategy=ttnn.ShardStrategy.BLOCK, use_height_and_width_as_shard_shape=True
    )
    assert config.shard_spec.grid == ranges
    assert config.shard_spec.shape == [64, 64]
    with pytest.raises(MemoryConfigError, match="use_height_and_width_as_shard_shape=True"):  # as ttnn does
        ttnn.create_sharded_memory_config((128, 128), core_grid=ranges, strategy=ttnn.ShardStrategy.BLOCK)


@shows("M64", "24-26", "Row-Major, Tiled, Interleaved, L1 and DRAM are the words of the attributes")
def test_the_words_of_the_attributes():
    assert PageLayout.of("Row-Major") is PageLayout.ROW_MAJOR
    assert PageLayout.of("Tiled") is PageLayout.TILE
    assert TensorMemoryLayout.of("Interleaved") is TensorMemoryLayout.INTERLEAVED
    assert tw.TensorSpec((64, 64), "bfloat16", "Tiled", memory="L1").page_shape == (32, 32)
    assert tw.TensorSpec((64, 64), "bfloat16", "Row-Major", memory="DRAM").page_shape == (1, 64)


@shows("M65", "73-112", "The tensor of the examples can be drawn")
@shows("M66", "73-112", "It can be explained, and checked whether it fits")
def test_the_tensor_of_the_examples(device):
    a = ttnn.to_device(ttnn.from_torch(randn(64, 64)), device, memory_config=ttnn.L1_MEMORY_CONFIG)
    words = shown(a)
    assert "  pages of 1 x 64 elements\n" in words
    assert " P62 P63\n" in words
    assert tw.explain(a, (1, 1)).where.page == 1
    assert str(tw.fit(a)).splitlines()[0] == "fits wormhole_n150"
