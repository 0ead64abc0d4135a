# SPDX-License-Identifier: Apache-2.0
"""Tensors with their values, specs without a chip, and that everything a notebook may meet has a picture."""

import json
import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import views
from tilewright.tiling import Input, Output, Pipeline, Tiler

from .things import scenes

SCENES = scenes()
VALUES = np.random.default_rng(0).standard_normal((40, 70)).astype(np.float32)


def in_a_notebook() -> dict[str, object]:
    """Return one of everything that is looked at in a notebook."""
    tiler = Tiler((40, 70), (16, 32))
    packed = tw.Tensor.of(VALUES, dtype="bfloat8_b")
    return {
        "layout": tw.row_major(4, 8),
        "tile tensor": tw.TileTensor(VALUES, tw.row_major(40, 70)),
        "spec": tw.TensorSpec((40, 70), page_layout="tile", chip="wormhole_n150"),
        "spec without a chip": tw.TensorSpec((40, 70), "bfloat8_b"),
        "tensor": packed,
        "placed tensor": tw.Tensor.of(VALUES, page_layout="tile", chip="wormhole_n150"),
        "scalar": tw.Tensor.of(np.float32(3)),
        "empty": tw.Tensor.of(np.zeros((0, 4))),
        "not finite": tw.Tensor.of(np.array([[math.nan, math.inf, 1.0]])),
        "large": tw.Tensor.of(np.zeros((2048, 1024), np.float32), page_layout="tile"),
        "tiler": tiler,
        "pipeline": Pipeline([Input(VALUES, tiler)], [Output(np.zeros_like(VALUES), tiler)]),
        "tile plan": tw.plan_tiles(VALUES, np.zeros_like(VALUES), tile=(16, 32), overlap=1, pad="edge"),
        "error report": tw.formats.quantization_error(VALUES, "bfloat8_b"),
        "difference": tw.diff(VALUES, packed),
        "allocator": tw.Allocator("wormhole_n150"),
    }


@pytest.mark.parametrize("name", in_a_notebook())
def test_everything_has_a_picture_in_a_notebook(name):
    picture = in_a_notebook()[name]._repr_html_()
    assert picture.startswith("<div")
    assert len(picture) < 150_000


def test_values_are_those_of_the_tensor():
    grid = views.scene_of(tw.Tensor.of(VALUES, dtype="bfloat16", page_layout="tile")).panels[0]
    again = np.array(grid.field("value").values).reshape(grid.rows, grid.columns)
    assert np.array_equal(again, np.asarray(tw.Tensor.of(VALUES, dtype="bfloat16").numpy(), np.float64))
    assert {(box.row, box.column) for box in grid.outlines} == {(r, c) for r in (0, 32) for c in (0, 32, 64)}


def test_large_tensors_are_sampled():
    grid = views.scene_of(tw.Tensor.of(np.arange(512.0 * 300).reshape(512, 300)), side=32).panels[0]
    assert grid.block == (16, 10)
    assert grid.cell(3, 4).attributes["value"] == 3 * 16 * 300 + 40


@pytest.mark.parametrize("name", SCENES)
def test_every_scene_is_data_that_json_knows(name):
    found = json.loads(views.to_json(SCENES[name]))
    assert found == json.loads(json.dumps(views.to_data(SCENES[name])))
    assert len(found["panels"]) == len(SCENES[name].panels)
    for panel, data in zip(SCENES[name].panels, found["panels"], strict=True):
        assert data["kind"] == ("grid" if isinstance(panel, views.Grid) else "tracks")
        assert data["title"] == panel.title
