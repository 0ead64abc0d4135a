# SPDX-License-Identifier: Apache-2.0
"""An extension of the API reference: examples in docstrings become blocks of code.

Our docstrings are plain Markdown with `>>>` lines, which Markdown would read as quotations of quotations.
"""

import runpy
from pathlib import Path
from typing import Any

import griffe

fenced = runpy.run_path(str(Path(__file__).parent / "reference.py"))["fenced"]


class DoctestFences(griffe.Extension):
    """Fences the examples of every object that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
