# SPDX-License-Identifier: Apache-2.0
"""Scenes are plain data: what they say about layouts, tensors, threads, blocks and plans."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import addr, bank, views
from tilewright.copying import Placement, plan_copy
from tilewright.layout import tiled_layout

from .things import TILED, build_scenes, noisy, scenes


def test_scenes_are_values():
    one, other = scenes(), build_scenes()
    for name, scene in one.items():
        assert scene == other[name], name
        hash(scene)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(-3, 9), st.integers(-3, 9), st.integers(0, 5))
def test_each_element_is_linked_to_the_place_where_it_lives(rows, columns, down, across, start):
    layout = tw.Layout((rows, columns), (down, across)) + start
    coordinates, memory = views.layout_scene(layout).panels
    where = {value: k for k, value in enumerate(memory.link) if value is not None}
    low = int(memory.row_name(0))
    for row in range(rows):
        for column in range(columns):
            place = where[coordinates.link[row * columns + column]]
            assert low + place == layout(row, column)
            row_, column_ = (int(n) for n in memory.field("element").values[place].split(","))
            assert layout(row_, column_) == layout(row, column)


def test_named_axes_become_attributes():
    pages = tw.compose(tw.Layout((12, 100), (1 @ bank, 2048 @ addr)), tw.row_major(4, 5))
    coordinates, memory = views.layout_scene(pages).panels
    assert coordinates.cell(2, 3).attributes == {"bank": 1, "addr": 2048}
    assert (memory.rows, memory.columns) == (2, 12)
    assert memory.cell(1, 1).attributes["element"] == "2,3"
    assert not memory.cell(1, 8).valid


def test_padding_is_not_valid():
    grid = views.layout_scene(TILED).panels[0]
    for row in range(grid.rows):
        for column in range(grid.columns):
            assert grid.cell(row, column).valid == (row < 20 and column < 28)


def test_a_view_shows_values_and_places_in_storage():
    tensor = tw.TileTensor(np.arange(100, 148), tw.row_major(6, 8)).tile[4, 4](1, 1)
    grid = views.scene_of(tensor).panels[0]
    assert grid.cell(1, 2).attributes == {"offset": 46, "value": 146}
    assert not grid.cell(2, 0).valid
    assert grid.cell(2, 0).attributes["value"] is None


def test_vectors_fill_memory():
    memory = views.scene_of(tw.TileTensor(np.arange(48), tw.row_major(6, 8)).vectorize[1, 4]()).panels[1]
    assert not memory.valid
    assert memory.field("element").values[:8] == ("0,0",) * 4 + ("0,1",) * 4


def test_distribute_agrees_with_the_tensor():
    threads = tw.row_major(2, 4)
    grid = views.distribute_scene(tw.row_major(6, 8), threads).panels[0]
    tensor = tw.TileTensor(np.arange(48), tw.row_major(6, 8))
    for thread in range(8):
        mine = tensor.distribute[threads](thread).to_numpy().reshape(-1).tolist()
        assert [k for k, owner in enumerate(grid.field("thread").values) if owner == thread] == sorted(mine)


def test_exponents_and_errors_are_those_of_the_report():
    values = noisy(32, 64)
    report = tw.formats.quantization_error(values, "bfloat8_b")
    exponents, errors = views.scene_of(report).panels
    assert exponents.field("exponent").values == tuple(report.scale_exponents.reshape(-1).tolist())
    assert errors.field("max_abs_error").values == tuple(report.max_abs_error.reshape(-1).tolist())
    (box,) = errors.outlines
    assert (box.row, box.column) == (report.worst.index[0], report.worst.index[1] // 16)


def test_padding_of_a_view_has_no_place():
    memory = views.scene_of(tw.TileTensor(np.arange(48), tw.row_major(6, 8)).tile[4, 4](1, 1)).panels[1]
    assert [name for name in memory.field("element").values if name] == [f"{r},{c}" for r in (0, 1) for c in range(4)]
    assert [memory.row_name(row) for row in range(memory.rows)] == ["0", "8", "16", "24", "32", "40"]
    (mark,) = memory.outlines  # the first element
    assert (mark.kind, mark.label, mark.row, mark.column) == ("mark", "origin", 4, 4)


def test_differences_are_those_of_the_arrays():
    before = np.arange(600.0).reshape(2, 10, 30)
    after = before.copy()
    after[1, 4, 7] += 3
    after[0, 0, 0] = np.nan
    scene = views.difference_scene(before, after, side=10)
    (grid,) = scene.panels
    assert (grid.rows, grid.columns, grid.block) == (10, 10, (2, 3))
    assert grid.cell(7, 2).attributes["difference"] == 3
    assert grid.cell(0, 0).attributes["difference"] == np.inf
    assert scene.facts[0].value.startswith("2 of 600")
    with pytest.raises(tw.LayoutError, match="cannot be compared"):
        views.difference_scene(before, after[0])


def test_a_plan_paints_elements_by_their_source():
    target_layout = tiled_layout((7, 10), (4, 4), (2, 2))
    plan = plan_copy(Placement(tw.row_major(7, 10), "float32"), Placement(target_layout, "bfloat16"))
    source, target = views.scene_of(plan).panels
    for row in range(7):
        for column in range(10):
            place = target_layout(row, column)
            assert target.field("source").values[place] == row * 10 + column
            assert target.link[place] == source.link[row * 10 + column]
    assert sum(link is not None for link in target.link) == 70


def test_large_things_are_shown_in_blocks_without_their_memory():
    scene = views.scene_of(tw.row_major(100_000, 70_000))
    (grid,) = scene.panels
    assert grid.rows <= 128
    assert grid.columns <= 128
    high, wide = grid.block
    assert grid.cell(5, 7).attributes["offset"] == 5 * high * 70_000 + 7 * wide
    assert "stands for" in scene.note


def test_bad_requests_say_what_would_be_right():
    with pytest.raises(tw.LayoutError, match="cannot draw"):
        views.layout_scene(tw.Layout((0, 4)))
    with pytest.raises(tw.LayoutError, match=r"color='bnak' is not an attribute.*offset"):
        views.layout_scene(tw.row_major(2, 2), color="bnak")
    with pytest.raises(TypeError, match="cannot draw an object of type 'int'"):
        views.scene_of(3)
    with pytest.raises(tw.LayoutError, match="needs 4 values of 'bank', got 3"):
        views.Grid(2, 2, (views.Field("bank", (1, 2, 3)),))
    with pytest.raises(tw.LayoutError, match="outside a tile of 4 x 4"):
        views.thread_value_scene(tw.Layout((4, 8)), (4, 4))
    with pytest.raises(tw.LayoutError, match="swizzle_scene needs"):
        views.swizzle_scene(tw.Swizzle(2, 0, 2))
