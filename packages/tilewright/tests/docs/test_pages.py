# SPDX-License-Identifier: Apache-2.0
"""Every block of every page runs, and says what the page says it says."""

import json
import re
import sys
from contextlib import suppress
from importlib.util import find_spec

import pytest

import tilewright as tw
from tilewright.conversion import Rules
from tilewright.conversion.recipe import Recipe, RecipeFile

from .pages import DOCS, FENCE, LANGUAGES, ROOT, blocks_of, page_name, page_paths
from .pictures import differences
from .running import run_page

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OWN = re.compile(
    r"https://(?:raw\.githubusercontent\.com/tilewright/tilewright|github\.com/tilewright/tilewright/blob)/main/"
)
PAGES = page_paths()
FEWEST_BLOCKS = 120


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_the_page_runs(path, tmp_path):
    run_page(path, tmp_path)
    assert not differences(path, tmp_path), "run make pictures"


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_every_block_is_of_a_kind_that_is_run_or_looked_at(path):
    text = path.read_text(encoding="utf-8")
    fences = re.findall(r"^ *```", text, re.MULTILINE)
    assert len(fences) == 2 * len(blocks_of(path)), "a fence is indented or not closed"
    for block in blocks_of(path):
        assert block.language in LANGUAGES, f"line {block.line}: {block.language!r}"


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_what_is_shown_of_files_is_well_formed(path):
    for block in blocks_of(path):
        if block.language == "toml" and tomllib.loads(block.text).keys() & RecipeFile.__annotations__.keys():
            assert RecipeFile.parse(block.text.encode(), f"line {block.line}")
        elif block.language == "toml":
            assert Rules.of(tomllib.loads(block.text)).lines, f"line {block.line}"
        elif block.language == "json":
            assert is_json(block.text), f"line {block.line}"


def is_json(text):
    """Return whether a text is JSON: as a whole, as what stands inside an object, or line by line."""
    for pieces in ([text], ["{" + text + "}"], text.splitlines()):
        with suppress(ValueError):
            return bool([json.loads(piece) for piece in pieces])
    return False


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_commands_between_lines_of_text_exist(path):
    """Indented lines are commands for a checkout; their targets and scripts must be there."""
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for line in re.findall(r"^    (\S.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
        if found := re.match(r"make ([a-z0-9-]+)", line):
            assert found[1] in targets, line
        for script in re.findall(r"\b((?:bench|examples|docs|tools|packages)/[\w/-]+\.py)", line):
            assert (ROOT / script).is_file(), line


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_links_lead_to_files(path):
    words = re.sub(r"`[^`\n]+`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
    for target in re.findall(r"(?:\]\(|src=\")([^)\s#\"]+)", words):
        if found := OWN.match(target):  # the README is also read on a package index, where only these lead anywhere
            assert (ROOT / target[found.end() :]).is_file(), f"{target} does not exist"
        if not target.startswith(("http://", "https://", "mailto:")):
            generated = (path.parent / target).resolve().is_relative_to(DOCS / "api")
            assert generated or (path.parent / target).exists(), f"{target} does not exist"


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_names_in_the_text_exist(path):
    words = FENCE.sub("", path.read_text(encoding="utf-8"))
    for name in sorted(set(re.findall(r"\btw\.(\w+)", words))):
        assert hasattr(tw, name) or find_spec(f"tilewright.{name}"), f"there is no tw.{name}"


def test_the_readme_has_no_relative_link():
    words = FENCE.sub("", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert all(target.startswith("https://") for target in re.findall(r"\]\(([^)\s#]+)", words))


def readme_rows(heading: str) -> dict[str, str]:
    """Return the table below a heading of the README: the first cell of a row, and the others."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ", 1) for line in section.splitlines() if line.startswith("|")]
    return {row[0]: row[1] for row in rows[2:]}


def test_the_readme_names_the_families_and_machines_of_the_recipe():
    recipe = Recipe.load("tt_transformers")
    rows = {name: set(re.findall(r"`(\w+)`", cells)) for name, cells in readme_rows("What `prepare` knows").items()}
    assert rows == {"families": set(recipe.families), "machines": set(recipe.devices)}


FIGURE = re.compile(r"\d[\d.,]*\d(?= (?:s|us|GB/s|GiB|MiB|of memcpy)\b)")


def test_the_readme_has_the_figures_of_the_page_on_performance_and_their_ratios():
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    rows = readme_rows("What it replaces")
    assert len(rows) >= 4
    for theirs, others in rows.items():
        ours, ratio = others.split(" | ")
        assert all(figure in page for figure in FIGURE.findall(f"{theirs} {ours}")), theirs
        before, after = (float(FIGURE.findall(cell)[0].replace(",", "")) for cell in (theirs, ours))
        said = float(ratio.split(" times")[0].replace(",", ""))
        assert max(before / after, after / before) == pytest.approx(said, rel=0.05), theirs


def test_blocks_are_found():
    assert sum(block.language in {"python", "console"} for path in PAGES for block in blocks_of(path)) >= FEWEST_BLOCKS
