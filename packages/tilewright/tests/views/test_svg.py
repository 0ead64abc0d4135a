# SPDX-License-Identifier: Apache-2.0
"""SVG is checked by reading it back: every cell once, in the color of its attribute, with its label."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import views
from tilewright.views.scene_options import (
    CATEGORIES,
    candidate_labels,
    cell_colors,
    contrast,
    make_scales,
    ramp_color,
    text_color_on,
)

from .pictures import drawn_grids, parse
from .things import TILED, scenes

SCENES = scenes()


@pytest.mark.parametrize("name", SCENES)
def test_every_cell_is_painted_once_in_the_color_of_its_attribute(name):
    scene = SCENES[name]
    drawn = drawn_grids(views.to_svg(scene))
    grids = [panel for panel in scene.panels if isinstance(panel, views.Grid)]
    assert len(drawn) == len(grids)
    scales = make_scales(scene)
    for found, grid in zip(drawn, grids, strict=True):
        wanted = cell_colors(grid, scales)
        cells = {(row, column) for row in range(grid.rows) for column in range(grid.columns)}
        assert found.colors.keys() == cells
        for (row, column), colors in found.colors.items():
            assert colors == [wanted[row * grid.columns + column]]


@pytest.mark.parametrize("name", SCENES)
def test_every_label_stands_in_its_cell(name):
    scene = SCENES[name]
    grids = [panel for panel in scene.panels if isinstance(panel, views.Grid)]
    for found, grid in zip(drawn_grids(views.to_svg(scene)), grids, strict=True):
        if not found.labels:
            continue
        written = [
            [found.labels.get((k // grid.columns, k % grid.columns), [""])] for k in range(grid.rows * grid.columns)
        ]
        assert [words for (words,) in written] in [[[label] for label in labels] for labels in candidate_labels(grid)]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(-3, 9), st.integers(-3, 9))
def test_the_colors_of_a_layout_follow_its_offsets(rows, columns, down, across):
    layout = tw.Layout((rows, columns), (down, across))
    grid = drawn_grids(views.to_svg(views.layout_scene(layout, memory=False)))[0]
    offsets = layout.offsets()
    low, high = int(offsets.min()), int(offsets.max())
    for (row, column), (color,) in grid.colors.items():
        share = (int(offsets[row, column]) - low) / (high - low) if high > low else 0.0
        assert color == ramp_color("ramp", int(share * 63 + 0.5))
        assert grid.labels[row, column] == [str(layout(row, column))]


def test_padding_is_hatched_and_data_is_not():
    root = parse(views.to_svg(views.layout_scene(TILED, memory=False)))
    hatched = [path for path in root.iter() if path.get("class") == "tw-hatch"]
    assert len(hatched) == 2  # the cells, and their swatch in the legend
    assert not [
        p for p in parse(views.to_svg(views.scene_of(tw.row_major(4, 8)))).iter() if p.get("class") == "tw-hatch"
    ]


def test_tiles_and_faces_are_outlined():
    root = parse(views.to_svg(views.layout_scene(TILED, memory=False)))
    kinds = [rect.get("class") for rect in root.iter() if rect.get("class") in ("tw-tile", "tw-face")]
    assert kinds.count("tw-tile") == 3 * 2
    assert kinds.count("tw-face") == 6 * 4


def test_categories_and_ramps_can_be_read_with_their_ink():
    colors = [*CATEGORIES, *(ramp_color(kind, k) for kind in ("ramp", "heat") for k in range(64))]
    assert min(contrast(color, text_color_on(color)) for color in colors) >= 4.5
    assert len(set(CATEGORIES)) == len(CATEGORIES)


def test_ramps_change_lightness_all_the_way():
    from tilewright.views.scene_options import luminance

    for kind, sign in (("ramp", 1), ("heat", -1)):
        levels = [sign * luminance(ramp_color(kind, k)) for k in range(64)]
        assert levels == sorted(levels)


@pytest.mark.parametrize("name", SCENES)
def test_pictures_are_well_formed_and_ask_for_nothing(name):
    svg = views.to_svg(SCENES[name])
    parse(svg)
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in svg
    assert len(svg) < 500_000


def test_large_layouts_collapse_to_tiles():
    grid = SCENES["huge"].panels[0]
    assert grid.block == (32, 32)
    assert grid.rows == 94
    assert grid.cell(1, 1).attributes["offset"] == tw.tiled_layout((3000, 4000))(32, 32)
