# SPDX-License-Identifier: Apache-2.0
"""An extension of the API reference: examples become blocks of code, and every object gets a link to its source.

Our docstrings are plain Markdown with `>>>` lines, which Markdown would read as quotations of quotations.
"""

import runpy
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).parents[2]
SOURCE = "https://github.com/tilewright/tilewright/blob/main"
fenced = runpy.run_path(str(Path(__file__).parent / "reference.py"))["fenced"]


class Docstrings(griffe.Extension):
    """Changes the docstring of every object that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one object, and say where its source is."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
            if (obj.is_class or obj.is_function) and isinstance(obj.filepath, Path):
                path = obj.filepath.resolve().relative_to(ROOT).as_posix()
                obj.docstring.value += f"\n\n[source]({SOURCE}/{path}#L{obj.lineno}-L{obj.endlineno}){{ .source }}"
