# SPDX-License-Identifier: Apache-2.0
"""The notebooks run from top to bottom in a real kernel, and are kept without outputs."""

import runpy

import pytest

from .pages import DOCS

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


@pytest.mark.filterwarnings("default")  # Jupyter's own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert sum("text/html" in output.get("data", {}) for output in outputs) >= 3, "pictures are missing"
    assert not list(tmp_path.iterdir()), "the notebook leaves files behind"


def test_pages_of_the_site_have_the_pictures_of_cells():
    shown = runpy.run_path(str(DOCS / "site" / "notebook_pages.py"))["shown"]
    names: dict[str, object] = {}
    lines = shown("import tilewright as tw\ntw.row_major(2, 3).show()\ntw.row_major(2, 3)", names)
    assert sum("<svg" in line for line in lines) == 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_not_kept(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert cell.cell_type == "markdown" or (not cell.outputs and cell.execution_count is None)


def test_notebooks_are_found():
    assert [path.stem for path in NOTEBOOKS] == ["layouts_by_picture", "weights_to_banks"]
