# SPDX-License-Identifier: Apache-2.0
"""Recipes, rules and layouts in files: `check_file`, the verb, the plugin of pytest, the hooks of pre-commit."""

import re
from pathlib import Path

import pytest

from tilewright.checks import check_file
from tilewright.cli import program
from tilewright.conversion import rules

from .cli.runner import invoke

pytest_plugins = ["pytester"]

HOOKS = Path(__file__).parents[3] / ".pre-commit-hooks.yaml"
RECIPES = Path(rules.__file__).with_name("recipes")
LAYOUTS = """\
# rows of a matrix
(4,8):(8,1) == bf16[4,8]{1,0}

(4,8):(8,1) == (4,8):(1,4)
(4,8:(8,1)
"""


def problems(path):
    return [checked.problem for checked in check_file(path)]


def test_every_line_of_layouts_is_checked(tmp_path):
    path = tmp_path / "a.layouts"
    path.write_text(LAYOUTS, "utf-8")
    checked = check_file(path)
    assert [each.place.rpartition(":")[2] for each in checked] == ["2", "4", "5"]
    assert checked[0].problem is None
    assert checked[1].problem == "(4,8):(8,1) and (4,8):(1,4) are different functions"
    assert "cannot parse '(4,8:(8,1)'" in checked[2].problem


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x = 1  # tilewright: (4,8):(8,1)", None),
        ("/* tilewright: (4,8):(8,1) == (4,(2,4)):(8,(1,2)) */", None),
        ("<!-- tilewright: (4,8):(8,1) == (8,4):(4,1) == (4,8):(8,1) -->", "are different functions"),
        ("// tilewright: Swizzle<3,3,3> o", "expected"),
        ("// tilewright: 4x60x90", ""),
    ],
)
def test_a_mark_in_a_line_of_a_source_is_checked(tmp_path, line, problem):
    path = tmp_path / "kernel.cu"
    path.write_text(f"int a;\n{line}\n", "utf-8")
    (found,) = problems(path)
    assert (found is None) == (problem is None)
    assert problem is None or problem in found


def test_a_source_without_a_mark_has_nothing_to_check(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import tilewright\n# (4,8:(8,1)\n")
    assert problems(path) == []


def test_recipes_and_rules(tmp_path):
    paths = [path for path in RECIPES.rglob("*.toml") if path.stem != "cache"]  # which has functions in Python
    assert paths
    for path in paths:
        assert problems(path) == [None], path
    good, bad, broken = tmp_path / "good.toml", tmp_path / "bad.toml", tmp_path / "broken.toml"
    good.write_text('"*norm*" = {dtype = "bfloat16"}\n')
    bad.write_text('"*norm*" = {dtyp = "bfloat16"}\n')
    broken.write_text('"*norm*" = {\n')
    assert problems(good) == [None]
    assert "did you mean 'dtype'?" in problems(bad)[0]
    assert "is not TOML" in problems(broken)[0]
    recipe = tmp_path / "family.toml"
    recipe.write_text('model_types = ["mine"]\nextends = "llama"\n')
    assert problems(recipe) == [None]
    recipe.write_text('model_types = ["mine"]\nextends = "lama"\n')
    (found,) = problems(recipe)
    assert found is not None
    assert not found.startswith(str(recipe))


def test_a_recipe_of_several_files_is_wrong_where_one_is(tmp_path):
    base, child = tmp_path / "base.toml", tmp_path / "child.toml"
    base.write_text('model_types = ["old"]\nextends = "llama"\n')
    child.write_text('model_types = ["new"]\nextends = "base"\n')
    assert problems(child) == problems(base) == [None]
    base.unlink()
    assert "base" in problems(child)[0]
    base.write_text('model_types = ["old"]\nextnds = "llama"\n')
    assert "extnds" in problems(base)[0]


def test_the_verb(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.layouts").write_text(LAYOUTS, "utf-8")
    Path("b.layouts").write_text("(4,8):(8,1)\n", "utf-8")
    found = invoke("check", "a.layouts", "b.layouts")
    assert found.exit_code == 1
    assert found.stdout.splitlines()[0].startswith("a.layouts:4: ")
    assert found.stdout.splitlines()[-1] == "2 problems in 4 texts in 2 files"
    assert invoke("check", "b.layouts").exit_code == 0
    assert invoke("check", "b.layouts", "--json").stdout.startswith('{"files": ["b.layouts"], "good": true')
    assert invoke("check", "none.layouts").exit_code == 3
    Path("c.layouts").write_bytes(b"\xff\xfe")
    assert invoke("check", "c.layouts").exit_code == 3


def test_pytest_collects_what_is_to_be_checked(pytester):
    Path("a.layouts").write_text(LAYOUTS, "utf-8")
    Path("rules").mkdir()
    Path("rules/a.toml").write_text('"*norm*" = {dtyp = "bfloat16"}\n')
    plugin = ("-p", "no:cacheprovider", *_plugin())
    assert pytester.runpytest(*plugin).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    found = pytester.runpytest(*plugin, "--tilewright")
    found.assert_outcomes(passed=1, failed=2)
    found.stdout.fnmatch_lines(
        ["*_ a.layouts: line 4 _*", "*a.layouts:4: (4,8):(8,1) and (4,8):(1,4) are different functions"]
    )
    found = pytester.runpytest(*plugin, "--tilewright", "-o", "tilewright_files=rules/*.toml")
    found.assert_outcomes(failed=1)


def _plugin():
    """Return the options that load the plugin where the installed package does not name it yet."""
    from importlib.metadata import entry_points

    named = any(entry.value == "tilewright.pytest_plugin" for entry in entry_points(group="pytest11"))
    return () if named else ("-p", "tilewright.pytest_plugin")


@pytest.mark.skipif(not HOOKS.is_file(), reason="the tests of an sdist have no repository around them")
def test_hooks_run_verbs():
    """The file is simple enough to be read by its lines; PyYAML is not needed for tests."""
    text = HOOKS.read_text("utf-8")
    entries = re.findall(r"^  entry: tilewright (\S+)$", text, re.MULTILINE)
    assert len(entries) == text.count("- id: ") == 2
    assert set(entries) <= set(program.list_commands(None))
    recipes, layouts = (re.compile(each) for each in re.findall(r"^  files: (\S+)$", text, re.MULTILINE))
    for path in ("rules.toml", "recipe.toml", "recipes/olmo.toml", "models/rules-small.toml", "a/recipes/b.toml"):
        assert recipes.search(path), path
    for path in ("pyproject.toml", "recipes/a.py", "myrules.toml.txt"):
        assert not recipes.search(path), path
    assert layouts.search("golden/a.layouts")
