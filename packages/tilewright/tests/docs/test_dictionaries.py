# SPDX-License-Identifier: Apache-2.0
"""The dictionaries: every term has a line that runs, and gives what the page says."""

import doctest
import re
import runpy
from importlib import import_module

import pytest

from .pages import DOCS, page_name, rows_of
from .running import FLAGS, run_page, working_in

PAGES = sorted((DOCS / "dictionaries").glob("*.md"))
FEWEST_TERMS = 25
public_names = runpy.run_path(str(DOCS / "site" / "reference.py"))["public_names"]


def code_in(cell):
    """Return what stands between the backticks of a cell that is nothing but code."""
    found = re.fullmatch(r"`([^`]+)`", cell)
    assert found, f"{cell!r} is not one piece of code"
    return found[1]


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_every_term_has_a_line_that_runs(path, tmp_path):
    names = run_page(path, tmp_path)
    for name in {"device", "mesh_device"} & set(names):  # the page closes them at its end
        for device in names[name].get_devices():
            device.is_open = True
    terms = [row for row in rows_of(path) if "try" in row.cells]
    assert len(terms) >= FEWEST_TERMS
    for row in terms:
        with working_in(tmp_path):
            found = repr(eval(code_in(row.cells["try"]), names))  # noqa: S307  (our own pages)
        same = doctest.OutputChecker().check_output(code_in(row.cells["gives"]) + "\n", found + "\n", FLAGS)
        assert same, f"line {row.line}: {row.cells['try']} gives {found}"


@pytest.mark.parametrize(("page", "module"), [("ttnn", "ttnn"), ("cute", "layout"), ("mojo", "mojo.layout")])
def test_no_public_name_is_forgotten(page, module):
    text = (DOCS / "dictionaries" / f"{page}.md").read_text(encoding="utf-8")
    names = public_names(import_module(f"tilewright.{module}"))
    assert names
    assert not [name for name in names if not re.search(rf"\b{name}\b", text)]


@pytest.mark.parametrize(("page", "prefix", "module"), [("ttnn", r"ttnn\.", "ttnn"), ("ttl", "TTL_", "ttl")])
def test_their_names_are_in_the_dialect(page, prefix, module):
    text = (DOCS / "dictionaries" / f"{page}.md").read_text(encoding="utf-8")
    dialect = import_module(f"tilewright.{module}")
    named = {"import_" if name == "import" else name for name in re.findall(rf"\b{prefix}(\w+)", text)} - {"x"}
    assert len(named) > FEWEST_TERMS
    assert not [name for name in named if not hasattr(dialect, name)]


def test_there_are_four():
    assert {path.stem for path in PAGES} == {"ttnn", "mojo", "ttl", "cute"}
