# SPDX-License-Identifier: Apache-2.0
"""Recipes of users: families and files that they add, whole recipes of their own, and what is wrong with them."""

import json

import numpy as np
import pytest

from tilewright import FileFormatError, FormatError, open_tensors
from tilewright.conversion import Recipe, check_cache, plan_cache, prepare, recipe_names, retarget_cache
from tilewright.conversion.rules import ExpressionError, evaluate
from tilewright.files import read_tensorbin

from .llamas import NAME, numbers, write_model

FAMILY = """
model_types = ["olmo"]
extends = "llama"

[weights]
"layers.{layer}.attention.wq.weight" = "tensor(f'model.layers.{layer}.self_attn.q_proj.weight')"
"""
WHOLE = """
follows = "the loader of our own server, 2026-11"
directory = "f'{model_name}-{device}'"

[devices]
Desk = { chip = "blackhole_p150", mesh = [1, 2] }

[values]
layers = "config('num_hidden_layers')"

[[output]]
name = "layer_{layer}_{part}"
each = { part = "['gate', 'up']" }
value = "transpose(weight(f'{layer}.{part}'))"
dtype = "bfloat16"
mesh = "(None, 1)"
"""
OWN = """
model_types = ["llama"]

[weights]
"{layer}.gate" = "tensor(f'model.layers.{layer}.mlp.gate_proj.weight')"
"{layer}.up" = "tensor(f'model.layers.{layer}.mlp.up_proj.weight') + 0.5"
"""


def recipe_file(folder, text, name="own.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_adds_a_family_to_a_recipe(tmp_path):
    path = recipe_file(tmp_path, FAMILY, "olmo.toml")
    source = write_model(tmp_path / "OLMo-1B", {"model_type": "olmo"})
    plain = plan_cache(write_model(tmp_path / NAME), "out", "N300")
    plan = plan_cache(source, "out", "N300", recipe=path)
    assert [item.name for item in plan.items] == [item.name for item in plain.items]
    changed = {
        one.name
        for one, other in zip(plan.items, plain.items, strict=True)
        if one.source.value.parts != other.source.value.parts
    }
    assert changed == {"layers.0.attention.wqkv_sharded_2d", "layers.1.attention.wqkv_sharded_2d"}
    assert (plan.recipe["name"], plan.recipe["family"], plan.recipe["follows"]) == (
        "olmo",
        "olmo",
        plain.recipe["follows"],
    )
    assert plan.recipe["revision"] != plain.recipe["revision"]


def test_a_file_replaces_values_and_functions_of_the_recipe(tmp_path):
    recipe = recipe_file(
        tmp_path,
        """
[values]
mlp_cores = "3"
hidden_suffix = "f'.{padded_hidden}'"

[functions]
"rows_of_32(weight)" = "reshape(weight, 1, 1, shape(weight)[0] // 16, 16)"
""",
        "mine.toml",
    )
    plan = plan_cache(write_model(tmp_path / NAME), "out", "N300", recipe=recipe)
    shapes = {item.name.partition("_dtype")[0]: item.source.value.shape for item in plan.items}
    assert shapes["layers.0.feed_forward.w2_sharded.576"] == (1, 1, 576, 256)
    assert shapes["norm.weight"] == (1, 1, 16, 16)


def test_a_folder_is_a_recipe_of_its_own(tmp_path):
    recipe_file(tmp_path, WHOLE, "cache.toml")
    recipe_file(tmp_path, OWN, "mine.toml")
    source = write_model(tmp_path / NAME)
    report = prepare(source, tmp_path / "out", "desk", recipe=tmp_path)
    assert sorted(p.name for p in (tmp_path / "out" / f"{NAME}-Desk").iterdir()) == [
        *[f"layer_{k}_{part}_dtype_BFLOAT16_layout_TILE.tensorbin" for k in (0, 1) for part in ("gate", "up")],
        "tilewright.json",
    ]  # and no marker, which is tt_transformers' own
    up = read_tensorbin(f"{report.out}/layer_1_up_dtype_BFLOAT16_layout_TILE.tensorbin")
    expected = open_tensors(source)["model.layers.1.mlp.up_proj.weight"].read().T.astype(np.float32) + 0.5
    assert up.mesh_shape == (1, 2)
    assert np.abs(up.array().astype(np.float32) - expected).max() < 1e-2
    assert (
        json.loads((tmp_path / "out" / f"{NAME}-Desk" / "tilewright.json").read_text())["recipe"]["follows"]
        == "the loader of our own server, 2026-11"
    )


def test_a_cache_of_an_own_recipe_is_checked_and_retargeted_with_it(tmp_path):
    path = recipe_file(tmp_path, FAMILY, "olmo.toml")
    source = write_model(tmp_path / NAME, {"model_type": "olmo"})
    prepare(source, tmp_path / "out", "N300", recipe=path)
    for given in (source, None):
        assert check_cache(tmp_path / "out", given, recipe=path)
        with pytest.raises(FormatError, match="was made with the recipe 'olmo', which does not come with tilewright"):
            check_cache(tmp_path / "out", given)
    assert retarget_cache(tmp_path / "out", tmp_path / "other", "P300", recipe=path).complete
    recipe_file(tmp_path, FAMILY + "# changed\n", "olmo.toml")
    (note,) = check_cache(tmp_path / "out", source, recipe=path).notes
    assert "it was made with revision" in note


def test_one_file_can_be_a_whole_recipe(tmp_path):
    types, _, weights = OWN.partition("\n\n")
    path = recipe_file(tmp_path, types + WHOLE + weights)
    plan = plan_cache(write_model(tmp_path / NAME), "out", "Desk", recipe=path)
    assert len(plan.items) == 4


def test_a_file_adds_outputs_values_and_formats(tmp_path):
    text = (
        FAMILY.replace("[weights]", '[values]\nlimit = "2 * hidden"\n\n[weights]')
        + """
"layers.{layer}.scale" = "tensor(f'model.layers.{layer}.scale')"

[[output]]
name = "layers.{layer}.scale_{limit}"
value = "weight(f'layers.{layer}.scale')"
dtype = "WO"
mesh = "'replicated'"

[[precision]]
when = "layer_count_is_small"
formats = { WO = "bfloat16" }
"""
    )
    text = text.replace('limit = "2 * hidden"', 'limit = "2 * hidden"\nlayer_count_is_small = "layers < 3"')
    path = recipe_file(tmp_path, text)
    weights = {f"model.layers.{k}.scale": numbers(64, 64, seed=k) for k in (0, 1)}
    plan = plan_cache(write_model(tmp_path / NAME, {"model_type": "olmo"}, weights), "out", "N150", recipe=path)
    (scale,) = [item for item in plan.items if item.name == "layers.1.scale_1024"]
    assert scale.target.spec.dtype.name == "bfloat16"
    (own,) = [item for item in plan.items if item.name == "layers.1.attention.wo"]
    assert own.target.spec.dtype.name == "bfloat16"


WRONG = {
    "not TOML": ("model_types = [", "is not TOML"),
    "unknown key": ("modeltypes = ['x']", "unknown key 'modeltypes'; did you mean 'model_types'?"),
    "unknown family": ("model_types = ['x']\nextends = 'lama'", "unknown family 'lama'; expected one of"),
    "no such weight": ("model_types = ['x']\nextends = 'llama'\nwithout = ['norm']", "llama has no weight 'norm'"),
    "not a list": ("model_types = 'x'", "model_types: expected a list of texts, got 'x'"),
    "not an expression": ("model_types = ['x']\n[weights]\nw = 3", "weights: 'w': expected an expression in quotes"),
    "syntax": ("model_types = ['x']\n[weights]\nw = 'tensor('", "weights: 'w': cannot read the expression 'tensor('"),
    "unknown name": (
        "model_types = ['x']\n[weights]\nw = '''transpos(tensor('a'))'''",
        "weights: 'w': transpos(tensor('a')): unknown name 'transpos'; did you mean 'transpose'?",
    ),
    "attribute": (
        "model_types = ['x']\n[weights]\nw = '''tensor('a').T'''",
        "Attribute is not allowed in an expression",
    ),
    "power": ("[values]\nx = '2 ** 70'", "the operator Pow is not allowed"),
    "signature": (
        "[functions]\n'f(x' = 'x'",
        "functions: expected a function such as 'rotary(weight, heads)', got 'f(x'",
    ),
    "output": ("[[output]]\nname = 'x'", "output 'x': 'value' is missing; it needs name, value, dtype, mesh"),
    "output key": ("[[output]]\nname = 'x'\nshape = 3", "output 'x': unknown key 'shape'"),
    "dtype": ("[[output]]\nname = 'x'\nvalue = '1'\nmesh = '1'\ndtype = 'bf17'", "output 'x': dtype: unknown"),
    "group": ("[[output]]\nname = 'x'\nvalue = '1'\nmesh = '1'\ndtype = 'WX'", "dtype WX is not a group of [groups]"),
    "layout": (
        "[[output]]\nname = 'x'\nvalue = '1'\nmesh = '1'\ndtype = 'bfloat16'\nlayout = 'tiles'",
        "layout: expected one of",
    ),
    "chip": ("[devices]\nX = { chip = 'n151', mesh = [1, 1] }", "devices: X: chip:"),
    "mesh": ("[devices]\nX = { chip = 'wormhole_n150', mesh = [1] }", "expected the rows and columns of the mesh"),
    "refusal": ("[[refuse]]\nwhen = 'True'", "refuse 1: 'message' is missing"),
    "format": ("[[precision]]\nwhen = 'True'\nformats = { WO = 'bf17' }", "precision 1: formats: WO: unknown"),
    "models": (
        "[[model_precision]]\nmodels = ['x']\nmodes = ['accuracy']\nlayers = ['0']\nformats = {}",
        "expected a list of numbers",
    ),
    "base": ("recipe = 'other'", "unknown recipe 'other'; tilewright has tt_transformers"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_recipe_is_said_with_its_file(tmp_path, what):
    text, message = WRONG[what]
    path = recipe_file(tmp_path, text)
    with pytest.raises((FileFormatError, FormatError)) as told:
        Recipe.load(path)
    assert message in str(told.value)
    assert str(path) in str(told.value) or what == "base"


def test_errors_of_a_checkpoint_name_the_expression(tmp_path):
    path = recipe_file(tmp_path, FAMILY.replace("q_proj", "query"))
    source = write_model(tmp_path / NAME, {"model_type": "olmo"})
    with pytest.raises(FormatError) as told:
        plan_cache(source, "out", "N300", recipe=path)
    assert "has no tensor 'model.layers.0.self_attn.query.weight', which" in str(told.value)
    assert f"{path}: weights: 'layers.{{layer}}.attention.wq.weight' needs" in str(told.value)
    path = recipe_file(
        tmp_path, FAMILY.replace("tensor(f'", "chunk(tensor(f'").replace("weight')\"", "weight'), 7)[0]\"")
    )
    with pytest.raises(FormatError, match=r"own.toml: weights: .*cannot be cut into 7 equal parts"):
        plan_cache(source, "out", "N300", recipe=path)


def test_an_optional_weight_with_a_mistake_is_not_left_out(tmp_path):
    text = FAMILY + '"layers.{layer}.attention.wq.bias" = "reshape(tensor(\'model.norm.weight\'), 7)"\n'
    source = write_model(tmp_path / NAME, {"model_type": "olmo"})
    with pytest.raises(FormatError, match="cannot reshape"):
        plan_cache(source, "out", "N300", recipe=recipe_file(tmp_path, text))


def test_a_recipe_that_is_not_there(tmp_path):
    with pytest.raises(FormatError, match="unknown recipe 'mine'; tilewright has tt_transformers; for one of your own"):
        Recipe.load("mine")
    with pytest.raises(FileNotFoundError):
        Recipe.load(tmp_path / "mine.toml")
    with pytest.raises(FileFormatError, match=r"has no \.toml files"):
        Recipe.load(tmp_path)


def test_expressions_compute_with_numbers_only():
    with pytest.raises(ExpressionError, match="expected two numbers to multiply"):
        evaluate("'x' * 1000000000000", {})
    with pytest.raises(ExpressionError, match="range of"):
        evaluate("len(range(10000000))", {})
    with pytest.raises(ExpressionError, match="Lambda is not allowed"):
        evaluate("lambda: 1", {})
    with pytest.raises(ExpressionError, match="only functions can be called"):
        evaluate("[len][0]('x')", {})


def test_the_recipes_that_come_with_tilewright_use_names_that_exist() -> None:
    for name in recipe_names():
        Recipe.load(name)._validate()  # not done whenever one is loaded
