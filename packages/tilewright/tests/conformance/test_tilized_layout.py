# SPDX-License-Identifier: Apache-2.0
"""The page on the tilized data layout, statement by statement."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest

import tilewright as tw
import tilewright.ttnn as ttnn
from tilewright import MemoryConfigError, views
from tilewright.analysis import contiguous_runs

from .statements import shows

ROWS = np.arange(32, dtype=np.uint8).reshape(4, 8)  # each element has its number, counted row by row
PLAIN, TILED = tw.row_major(4, 8), tw.tiled_layout((4, 8), tile=(2, 2))
ADDRESSES = {
    0x0: [0, 1],
    0x4: [2, 3],
    0x8: [4, 5],
    0xC: [6, 7],
    0x2: [8, 9],
    0x6: [10, 11],
    0xA: [12, 13],
    0xE: [14, 15],
    0x10: [16, 17],
    0x14: [18, 19],
    0x18: [20, 21],
    0x1C: [22, 23],
    0x12: [24, 25],
    0x16: [26, 27],
    0x1A: [28, 29],
    0x1E: [30, 31],
}
STORED = [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]
STORED += [16 + number for number in STORED]
TILIZED_PICTURE = """
  memory, tile by tile
       ┌───────┐       ┌───────┐       ┌───────┐       ┌───────┐
   0x0 │  0  1 │   0x4 │  2  3 │   0x8 │  4  5 │   0xC │  6  7 │
   0x2 │  8  9 │   0x6 │ 10 11 │   0xA │ 12 13 │   0xE │ 14 15 │
       └───────┘       └───────┘       └───────┘       └───────┘

       ┌───────┐       ┌───────┐       ┌───────┐       ┌───────┐
  0x10 │ 16 17 │  0x14 │ 18 19 │  0x18 │ 20 21 │  0x1C │ 22 23 │
  0x12 │ 24 25 │  0x16 │ 26 27 │  0x1A │ 28 29 │  0x1E │ 30 31 │
       └───────┘       └───────┘       └───────┘       └───────┘
"""


def shown(subject, **options):
    """Return what an object prints when it is shown."""
    out = io.StringIO()
    with redirect_stdout(out):
        subject.show(**options)
    return out.getvalue()


@shows("T1", "6-8", "The layout moves elements that are near in the plane to places that are near in memory")
def test_neighbours_in_the_plane_are_near_in_memory():
    assert [abs(layout(1, 0) - layout(0, 0)) for layout in (PLAIN, TILED)] == [8, 2]


@shows("T2", "10-13", "In row-major, the element below is as far away as the tensor is wide")
def test_the_element_below_is_a_row_away():
    assert [tw.row_major(4, width)(1, 0) for width in (8, 100, 1000)] == [8, 100, 1000]


@shows("T3", "10-13", "In the tilized layout, the element below is close if it is in the same tile")
def test_the_element_below_is_close_in_a_tile():
    assert [tw.tiled_layout((4, width), tile=(2, 2))(1, 0) for width in (8, 100, 1000)] == [2, 2, 2]
    assert TILED(2, 0) - TILED(1, 0) == 14  # in the next tile


@shows("T4", "18", "Tilization takes a tensor into the tilized layout")
@shows("T5", "18", "Naming only the tile is enough")
def test_tilize():
    assert tw.tilize(ROWS, tile=(2, 2), face=None).tolist() == STORED
    assert tw.tilize(ROWS, tile=(2, 2)).tolist() == STORED


@shows("T6", "19-20", "A two-dimensional tumbling window goes over the tensor")
@shows("T7", "19-20", "What the windows see, one after the other, is the tilized memory")
def test_the_tumbling_window():
    windows = tw.Tiler((4, 8), (2, 2))
    assert [window.offset for window in windows] == [(r, c) for r in (0, 2) for c in (0, 2, 4, 6)]
    assert {window.shape for window in windows} == {(2, 2)}
    assert np.concatenate([ROWS[window.slices].ravel() for window in windows]).tolist() == STORED


@shows("T8", "22", "A 4x8 tensor is tilized with 2x2 tiles, also as the spec of a tensor")
def test_a_spec_with_small_tiles():
    spec = tw.TensorSpec((4, 8), "uint8", "tile", tile=(2, 2))
    assert (spec.num_pages, spec.page_bytes, spec.page_shape, spec.padded_shape) == (8, 4, (2, 2), (4, 8))
    assert np.frombuffer(tw.to_bytes(ROWS, spec), np.uint8).tolist() == STORED
    assert tw.explain(spec, (1, 3)).steps()[-1] == ("address", "7 (0x7) = buffer 0 + page at 4 + byte 3")


@shows(
    "T9",
    "22",
    "A 4x8 tensor is tilized with 2x2 tiles, in ttnn",
    differs="the tiles of the page only illustrate: chips and ttnn have heights of 1 to 32 and widths of 16 and 32, and"
    " the dialect refuses others; tw.tilize, tw.tiled_layout and a spec without a chip take any tile",
)
def test_ttnn_has_no_small_tiles():
    with pytest.raises(MemoryConfigError, match=r"no tiles of 2 x 2: .* use tw\.tilize and tw\.tiled_layout"):
        ttnn.Tile((2, 2))
    with pytest.raises(MemoryConfigError, match="chips have no tiles of 2 x 2"):
        tw.TensorSpec((4, 8), "uint8", "tile", tile=(2, 2), chip="wormhole")


@shows("T10", "23-24", "Each cell contains the offset of its element, counted in row-major order")
def test_cells_contain_row_major_numbers():
    grid = views.scene_of(TILED, label="row_major").panels[0]
    assert grid.label == "row_major"
    assert grid.field("row_major").values == tuple(range(32))
    assert "  1  8  9 │ 10 11 │ 12 13 │ 14 15\n" in shown(TILED, label="row_major")


@shows("T11", "24-25", "The left column is the offset of each row in memory, for elements of one byte")
@shows("T15", "30-39", "The drawing of the row-major tensor, with hexadecimal addresses at the left")
def test_the_row_major_drawing():
    assert [hex(PLAIN(row, 0)) for row in range(4)] == ["0x0", "0x8", "0x10", "0x18"]
    drawn = [
        "   0x0  0  1  2  3  4  5  6  7\n",
        "   0x8  8  9 10 11 12 13 14 15\n",
        "  0x10 16 17 18 19 20 21 22 23\n",
        "  0x18 24 25 26 27 28 29 30 31\n",
    ]
    assert "".join(drawn) in shown(PLAIN, label="row_major", address="hex")


@shows("T12", "25", "Elements have one byte; with larger ones the left column scales")
def test_larger_elements():
    rows = tw.TensorSpec((4, 8), "float32")
    assert [tw.explain(rows, (row, 0)).where.address for row in range(4)] == [0x0, 0x20, 0x40, 0x60]
    words = shown(rows, label="row_major", address="hex")
    assert "   0x0  0  1  2  3  4  5  6  7\n  0x20  8  9 10 11 12 13 14 15\n" in words
    assert views.scene_of(PLAIN, itemsize=4, address="hex").panels[1].row_names == ("0x0", "0x20", "0x40", "0x60")


@shows("T13", "25-26", "The window scans the tensor in row-major order")
def test_the_window_scans_row_by_row():
    assert [TILED(row, column) // 4 for row in (0, 2) for column in (0, 2, 4, 6)] == list(range(8))
    assert tw.Tiler((4, 8), (2, 2)).order == "row_major"


@shows("T14", "25-26", "In this example the scan is row-major; others are possible")
def test_a_column_major_scan():
    for spelling in ("col_major", "column_major", "COLUMN-MAJOR"):
        tiler = tw.Tiler((4, 8), (2, 2), order=spelling)
        assert (tiler.order, tiler[1].offset) == ("col_major", (2, 0))
    down = tw.blocked_product(tw.row_major(2, 2), tw.col_major(2, 4))
    assert (down(2, 0), down(0, 2)) == (4, 8)


@shows("T16", "41-52", "The drawing of the tilized tensor: each tile apart, with the address of each of its rows")
@shows("T17", "41-52", "Its cells contain the row-major numbers, as memory holds them")
def test_the_tilized_drawing():
    assert TILIZED_PICTURE.strip("\n") in shown(TILED, label="row_major", address="hex")
    memory = views.scene_of(TILED, label="row_major", address="hex").panels[1]
    assert (memory.boxes, memory.box_rows[3], memory.box_rows[4]) == ((2, 2), ("0xC", "0xE"), ("0x10", "0x12"))
    svg = views.to_svg(views.scene_of(TILED, label="row_major", address="hex"))
    assert all(f">{address}<" in svg for address in ("0x0", "0xA", "0xE", "0x1E"))


@shows("T18", "41-52", "The same drawing, of the array that was tilized")
def test_the_drawing_of_a_tilized_array():
    tensor = tw.TileTensor(tw.tilize(ROWS, tile=(2, 2)), TILED)
    assert TILIZED_PICTURE.strip("\n") in shown(tensor, label="value", address="hex")


@shows("T19", "42-51", "The sixteen addresses of the drawing")
def test_all_addresses():
    memory = tw.tilize(ROWS, tile=(2, 2))
    assert {address: memory[address : address + 2].tolist() for address in ADDRESSES} == ADDRESSES
    assert len(ADDRESSES) == 16


@shows("T20", "42-51", "Element 11 lies at address 0x7")
def test_an_address_and_the_way_back():
    assert (int(ROWS[1, 3]), hex(TILED(1, 3))) == (11, "0x7")
    row, column = divmod(int(ROWS.ravel()[STORED[7]]), 8)
    assert (row, column) == (1, 3)
    assert tw.left_inverse(TILED)(7) == 1 + 3 * 4  # counted down the columns, as coordinates of the algebra are


@shows("T21", "18", "There is a way back from the tilized layout")
def test_untilize():
    assert np.array_equal(tw.untilize(tw.tilize(ROWS, tile=(2, 2)), (4, 8), tile=(2, 2)), ROWS)


@shows("T22", "6", "Kernels commonly use the layout: by default with tiles of 32x32, in faces of 16x16")
def test_the_default_tile():
    assert tw.tilize(np.zeros((64, 64), np.uint8)).shape == (4096,)
    layout = tw.tiled_layout((64, 64))
    assert (layout(0, 16), layout(16, 0), layout(0, 32)) == (256, 512, 1024)


@shows("T23", "19", "A window may reach beyond the tensor, which is padded")
def test_partial_tiles():
    stored = tw.tilize(np.ones((3, 5), np.uint8), tile=(2, 2))
    assert stored.tolist() == [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0]


@shows("T24", "7", "It is the two-dimensional plane of a tensor that is tilized")
def test_higher_ranks_are_tilized_plane_by_plane():
    cube = np.arange(32, dtype=np.uint8).reshape(2, 2, 8)
    assert tw.tilize(cube, tile=(2, 2)).tolist() == STORED
    planes = [tw.tilize(plane, tile=(2, 2)).tolist() for plane in cube]
    assert planes[0] + planes[1] == STORED


@shows("T25", "41-52", "The drawing of the tilized tensor, from the command line")
def test_the_drawing_from_the_command_line():
    command = [sys.executable, "-m", "tilewright", "show", "4x8", "--layout", "tile", "--tile", "2x2"]
    command += ["--dtype", "uint8", "--label", "row_major", "--address", "hex"]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, env=environment)
    assert TILIZED_PICTURE.strip("\n") in done.stdout
    assert "pages                8 of 4 bytes" in done.stdout


@shows("T26", "24-52", "Addresses are written in hexadecimal")
def test_hexadecimal_addresses():
    words = shown(TILED, address="hex")
    assert "  1  0x2  0x3 │  0x6  0x7 │  0xA  0xB │  0xE  0xF\n" in words
    assert "offset:  0x0 to 0x1F" in words
    with pytest.raises(TypeError, match="a Layout cannot be drawn with 'hex'; its options are address, color,"):
        TILED.show(hex=True)


@shows("T27", "7-8", "The layout is often efficient for moving data: a tile is one run of memory")
def test_a_tile_is_one_run_of_memory():
    tile = np.indices((2, 2))
    runs = [str(contiguous_runs(np.asarray(layout(*tile)))) for layout in (PLAIN, TILED)]
    assert runs == ["2 runs of 2", "1 run of 4"]
