# SPDX-License-Identifier: Apache-2.0
"""The picture of a page against `where`: every element once, at its own address, and padding nowhere else."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import views
from tilewright.errors import LayoutError
from tilewright.views.scenes.placements import page_grid

from ..cases import examples

TILES = [(32, 32), (16, 32), (32, 16), (8, 32), (1, 16)]


@st.composite
def specs(draw) -> tw.TensorSpec:
    shape = (
        *draw(st.lists(st.integers(1, 2), max_size=2)),
        *draw(st.lists(st.integers(1, 70), min_size=1, max_size=2)),
    )
    dtype = draw(st.sampled_from(["bfloat16", "float32", "bfloat8_b", "bfloat4_b"]))
    layout = "tile" if "_b" in dtype else draw(st.sampled_from(["tile", "row_major"]))
    tile = draw(st.sampled_from(TILES)) if layout == "tile" else None
    memory = draw(st.sampled_from(["dram", "l1", tw.height_sharded((2, 2))]))
    try:
        return tw.TensorSpec(shape, dtype, layout, tile=tile, memory=memory, chip="wormhole_n150")
    except tw.MemoryConfigError:
        return tw.TensorSpec(shape, dtype, layout, tile=tile, chip="wormhole_n150")


@given(specs(), st.data())
@examples(40)
def test_every_cell_is_the_element_it_says(spec, data):
    total = 0
    chosen = data.draw(st.integers(0, spec.num_pages - 1))
    for page in range(spec.num_pages):
        grid = page_grid(spec, page)
        names, addresses = grid.field("element").values, grid.field("address").values
        data_here = [k for k, name in enumerate(names) if name is not None and (not grid.valid or grid.valid[k])]
        total += len(data_here)
        if page == chosen:
            for k in data_here[:: max(1, len(data_here) // 40)]:
                where = spec.where(*map(int, names[k].split(",")))
                assert (where.page, where.address) == (page, addresses[k])
                if where.in_tile is not None:
                    assert where.in_tile == (k // grid.columns, k % grid.columns)
                    assert where.face == grid.field("face").values[k]
    assert total == prod(spec.shape.logical)


def test_a_transposed_tile_is_stored_down_its_columns():
    spec = tw.TensorSpec((32, 32), "bfloat16", "tile", tile=tw.Tile((32, 32), transpose=True), chip="wormhole_n150")
    grid = page_grid(spec, 0)
    for row, column in ((0, 1), (1, 0), (20, 3), (3, 20)):
        assert grid.cell(row, column).attributes["address"] == spec.where(row, column).address
        assert grid.cell(row, column).attributes["face"] == spec.where(row, column).face


def test_long_rows_are_shown_around_the_element():
    spec = tw.TensorSpec((4, 101_000), "bfloat16", chip="wormhole_n150")
    scene = views.page_scene(spec, at=(2, 70_001))
    (grid,) = scene.panels
    mark = next(box for box in grid.outlines if box.kind == "mark")
    assert grid.cell(mark.row, mark.column).attributes["element"] == "2,70001"
    assert grid.rows * grid.columns == 1024
    assert scene.note == "1024 of the 101000 elements of the page."


def test_the_end_of_a_row_holds_nothing():
    grid = page_grid(tw.TensorSpec((1, 40), "uint8", chip="wormhole_n150"))
    assert grid.cell(1, 7).attributes["element"] == "0,39"
    assert grid.cell(1, 8).attributes["element"] is None


def test_a_tensor_that_does_not_fit_is_drawn_all_the_same():
    spec = tw.TensorSpec((100_000, 100_000), "float32", "tile", memory="l1", chip="wormhole_n150")
    facts = {fact.name for fact in views.page_scene(spec, 77).facts}
    assert "address in the buffer" in facts


def test_pages_that_do_not_exist_are_named():
    with pytest.raises(LayoutError, match="pages are 0 to 3"):
        views.page_scene(tw.TensorSpec((64, 64), page_layout="tile", chip="wormhole_n150"), 4)
