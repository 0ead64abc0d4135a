# SPDX-License-Identifier: Apache-2.0
"""The notebooks run from top to bottom in a real kernel, and are stored with what they give."""

import runpy

import pytest

from .notebooks import NOTEBOOKS, run_notebook
from .pages import DOCS

pytestmark = pytest.mark.slow

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


@pytest.mark.filterwarnings("default")  # Jupyter's own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_gives_what_is_stored(path, tmp_path):
    notebook = run_notebook(path, tmp_path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert sum("image/svg+xml" in output.get("data", {}) for output in outputs) >= 3, "pictures are missing"
    assert not list(tmp_path.iterdir()), "the notebook leaves files behind"
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    assert answers_of(stored) == answers_of(notebook), "run make pictures"


def answers_of(notebook):
    """Return what each cell printed, and which kinds of results it has: pictures may be drawn better any day.

    On a busy machine a kernel sends what one cell prints in several pieces.
    """
    return [
        (
            "".join(output.get("text", "") for output in cell.get("outputs", ())),
            [sorted(output["data"]) for output in cell.get("outputs", ()) if "data" in output],
        )
        for cell in notebook.cells
    ]


def test_pages_of_the_site_have_the_pictures_of_cells():
    shown = runpy.run_path(str(DOCS / "site" / "notebook_pages.py"))["shown"]
    names: dict[str, object] = {}
    lines = shown("import tilewright as tw\ntw.row_major(2, 3).show()\ntw.row_major(2, 3)", names)
    assert sum("<svg" in line for line in lines) == 2


def test_notebooks_are_found():
    assert [path.stem for path in NOTEBOOKS] == ["layouts_by_picture", "weights_to_banks"]
