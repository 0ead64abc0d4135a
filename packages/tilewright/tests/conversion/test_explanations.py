# SPDX-License-Identifier: Apache-2.0
"""Where the pieces of converted tensors come from, in words, as data and as pictures."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tests.conversion.llamas import NAME, write_model
from tilewright import FormatError
from tilewright.conversion import plan_cache
from tilewright.conversion.plan import Piece
from tilewright.copying.assembly import Assembly, join
from tilewright.views import scene_of, to_svg, to_text

from ..cli.runner import invoke

QUERY = "model.layers.0.self_attn.q_proj.weight"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("source") / NAME)


def test_pieces_of_the_fused_attention_weight(source):
    (explanation,) = plan_cache(source, "out", "N300").explain("layers.0.attention.wqkv")
    assert [str(piece).replace("model.layers.0.self_attn.", "") for piece in explanation.pieces] == [
        "q_proj.weight[0:128, 0:256], transposed, rows in pairs, 32 apart",
        "k_proj.weight[0:64, 0:256], transposed, rows in pairs, 32 apart",
        "v_proj.weight[0:64, 0:256], transposed",
        "q_proj.weight[128:256, 0:256], transposed, rows in pairs, 32 apart",
        "k_proj.weight[64:128, 0:256], transposed, rows in pairs, 32 apart",
        "v_proj.weight[64:128, 0:256], transposed",
    ]
    assert explanation.steps == ["BF16", "bfloat8_b"]
    assert explanation.zeros == 0
    text = str(explanation)
    assert "[0, 0, 0:256, 128:192]  <-  model.layers.0.self_attn.k_proj.weight[0:64, 0:256], transposed" in text
    assert "where weight('layers.0.attention.wq.weight') = rotary(tensor(" in text
    assert "(0, 1)  holds  [0, 0, 0:256, 256:512]" in text


def test_padding_rounding_constants_and_replicas(tmp_path):
    weights = {
        f"model.layers.{k}.{n}_feedforward_layernorm.weight": np.ones(256) for k in (0, 1) for n in ("pre", "post")
    }
    source = write_model(tmp_path / "gemma-2-2b", {"model_type": "gemma2"}, weights, np.float32)
    plan = plan_cache(source, "out", "N300")
    assert plan.explain("norm.weight")[0].steps == ["F32", "bfloat16", "+ 1", "bfloat16"]
    assert "every device holds all of it" in str(plan.explain("norm.weight")[0])
    (head,) = plan.explain("output_lm_head*")
    assert head.zeros == 256 * 21
    assert "the other 5376 elements are zero" in str(head)


def test_names_are_found_by_name_file_start_part_and_wildcards(source):
    plan = plan_cache(source, "out", "N150")
    file = "layers.1.attention.wo_dtype_BFLOAT8_B_layout_TILE.tensorbin"
    cases = {
        "norm.weight": 1,
        file: 1,
        "layers.1.attention.wo": 1,
        "layers.*.attention.wo": 2,
        "layers.0.": 9,
        "wqkv": 2,
    }
    for pattern, count in cases.items():
        assert len(plan.explain(pattern)) == count, pattern
    with pytest.raises(
        FormatError, match=r"no tensor is called 'layers.0.attention.wv'; did you mean 'layers.0.attention.wo'"
    ):
        plan.explain("layers.0.attention.wv")


def test_plans_of_convert_are_explained_too(tmp_path):
    np.savez(tmp_path / "m.npz", q=np.zeros((64, 32), np.float32), k=np.zeros((32, 32), np.float32))
    rules = {"qk": {"value": "pad(join(tensor('q'), tensor('k')), 128, axis=0)"}}
    plan = tw.conversion.plan_conversion(tmp_path / "m.npz", tmp_path / "out", rules=rules, dtype="bfloat16")
    (explanation,) = plan.explain("qk")
    assert [str(piece) for piece in explanation.pieces] == ["q[0:64, 0:32]", "k[0:32, 0:32]"]
    assert explanation.zeros == 32 * 32
    assert explanation.devices == {}


@st.composite
def assemblies(draw):
    """Return an assembly of one or two sources after some steps, and an array with the same steps."""
    shapes = {"a": (8, 6), "b": (8, 6)}
    arrays = {name: np.arange(48).reshape(8, 6) + 100 * k for k, name in enumerate(shapes)}
    one, other = Assembly.of("a", (8, 6)), Assembly.of("b", (8, 6))
    steps = draw(st.lists(st.sampled_from(["transpose", "slice", "join", "pad"]), max_size=4))
    value, joined = one, False
    for step in steps:
        if step == "transpose":
            value = value.transpose()
        elif step == "slice" and value.shape[0] > 2:
            value = value.slice(1, value.shape[0] - 1)
        elif step == "pad":
            value = value.pad(value.shape[1] + 2)
        elif step == "join" and not joined and value.shape == (8, 6):
            value, joined = join([value, other]), True
    return value, arrays


@given(assemblies())
def test_a_piece_names_the_box_that_fills_it(given_assembly):
    value, arrays = given_assembly
    for part in value.parts:
        piece = Piece.of(part, (8, 6))
        box = arrays[piece.source][
            tuple([slice(a, b) for a, b in zip(piece.source_box.offset, piece.source_box.end, strict=True)])
        ]
        offsets = np.asarray(part.layout(0).offsets()) if part.box.size else np.zeros(part.box.shape)
        found = arrays[piece.source].reshape(-1)[offsets]
        assert np.array_equal(found, box.T if "transposed" in piece.changes else box)


def test_the_picture_has_a_color_for_each_source(source):
    (explanation,) = plan_cache(source, "out", "N300").explain("layers.0.attention.wqkv")
    scene = scene_of(explanation)
    grid = scene.panels[0]
    assert (grid.rows, grid.columns, grid.column_names) == (1, 6, ("0", "128", "192", "256", "384", "448"))
    assert [grid.cell(0, k).attributes["label"] for k in range(6)] == ["q_proj", "k_proj", "v_proj"] * 2
    assert (
        grid.cell(0, 1).attributes["from"].endswith("k_proj.weight[0:64, 0:256], transposed, rows in pairs, 32 apart")
    )
    assert [outline.label for outline in grid.outlines] == ["part 0", "part 1"]
    assert "q_proj" in to_svg(scene)
    assert "q_proj" in to_text(scene)
    (head,) = plan_cache(source, "out", "N300").explain("output")
    assert list(scene_of(head).panels[0].valid) == [True, True, False]


def test_the_command_explains_and_draws(source, tmp_path):
    words = ["prepare", str(source), "--for", "N300", "--explain"]
    ended = invoke(*words, "layers.0.attention.wqkv", "--show", str(tmp_path / "w.svg"))
    assert ended.exit_code == 0
    assert ended.stdout.startswith("layers.0.attention.wqkv_sharded_2d_dtype_BFLOAT8_B_layout_TILE.tensorbin\n  shape ")
    assert "<svg" in (tmp_path / "w.svg").read_text(encoding="utf-8")
    (data,) = json.loads(invoke(*words, "layers.0.attention.wqkv", "--json").stdout)
    assert data["pieces"][0] == {
        "box": [[0, 1], [0, 1], [0, 256], [0, 128]],
        "source": QUERY,
        "from": [[0, 128], [0, 256]],
        "changes": ["transposed", "rows in pairs, 32 apart"],
    }
    ended = invoke(*words, "layers.0.", "--show", str(tmp_path / "w.svg"))
    assert (ended.exit_code, "--show draws one file, but layers.0. names 9" in ended.stderr) == (2, True)
    assert not list(tmp_path.glob("*.tensorbin"))
