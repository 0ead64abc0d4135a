# SPDX-License-Identifier: Apache-2.0
"""The guide to recipes lists every key, function and name that a recipe may use, and its examples are right."""

import re

from tilewright.conversion.recipe import OUTPUT_KEYS, RUN_FUNCTIONS, RecipeFile
from tilewright.conversion.recipe_logic import Choices
from tilewright.conversion.rules import FUNCTIONS, evaluate
from tilewright.copying.assembly import Assembly

from .pages import DOCS, rows_of

GUIDE = DOCS / "guides" / "write-a-recipe.md"


def listed(*heading):
    """Return the rows of all tables with these columns, by the first word of their first cell."""
    rows = [row.cells for row in rows_of(GUIDE) if tuple(row.cells) == heading]
    return {re.match(r"`(\w+)", cells[heading[0]])[1]: cells for cells in rows}


def test_all_functions_are_listed():
    assert listed("function", "returns", "example", "result").keys() - {"w"} == FUNCTIONS.keys()
    assert listed("function", "returns").keys() == set(RUN_FUNCTIONS)


def test_all_names_and_keys_are_listed():
    assert list(listed("name", "meaning")) == list(Choices._fields)
    assert listed("key", "meaning").keys() == {*RecipeFile.__slots__} - {"where"} | {*OUTPUT_KEYS}


def test_the_examples_of_functions_are_right():
    names = {"w": Assembly.of("w", (4, 6)), "b": Assembly.of("b", (8,))}
    for cells in listed("function", "returns", "example", "result").values():
        value = evaluate(cells["example"].strip("`"), names)
        shown = value.shape if isinstance(value, Assembly) else value
        assert repr(shown) == cells["result"].strip("`"), cells["example"]
