# SPDX-License-Identifier: Apache-2.0
"""An extension of the API reference: examples in docstrings become blocks of code.

Our docstrings are plain Markdown with `>>>` lines, which Markdown would read as quotations of quotations.
"""

from typing import Any

import griffe


def fenced(text: str) -> str:
    """Return a docstring with every example inside a fence."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.startswith(">>> "):
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class DoctestFences(griffe.Extension):
    """Fences the examples of every object that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
