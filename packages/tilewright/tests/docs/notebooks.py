# SPDX-License-Identifier: Apache-2.0
"""Notebooks are stored with what their cells give, so that they can be read where nothing runs them.

python -m tests.docs.notebooks          # from the repository's root: run the notebooks, and store their outputs
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from .pages import DOCS

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
PICTURE = re.compile(r"<svg .*</svg>", re.DOTALL)


def run_notebook(path: Path, folder: Path) -> Any:
    """Return a notebook with its outputs, after running it in a folder; pictures are SVG, which viewers leave in."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    notebook.metadata = metadata  # without the versions of this machine
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if found := PICTURE.search(data.pop("text/html", "")):
                data["image/svg+xml"] = found[0]
    return notebook


def main() -> int:
    """Run the notebooks and store them."""
    import nbformat

    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            notebook = run_notebook(path, Path(folder))
        nbformat.write(notebook, path)
        print(f"wrote {path.name}, {path.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
