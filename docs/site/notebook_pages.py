# SPDX-License-Identifier: Apache-2.0
"""Notebooks as pages of the site: their cells are run while the site is built, and shown with what they give."""

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

from tilewright.views import output, to_fragment


def page_of(notebook: Path) -> str:
    """Return the Markdown of a notebook: text, code, and what the code printed or gave."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "notebook"}
    parts: list[str] = []
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts += [text, ""]
        else:
            parts += ["```python", text, "```", "", *shown(text, names)]
        if len(parts) == 2:  # below the title
            parts += [f"*A notebook: [download it]({notebook.name}), change the numbers, run it again.*", ""]
    return "\n".join(parts)


def shown(code: str, names: dict[str, Any]) -> list[str]:
    """Return the lines that stand below a cell, after running it."""
    body = ast.parse(code)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    printed, pictures = io.StringIO(), []
    before = output._display_in_notebook
    output._display_in_notebook = lambda scene: bool(pictures.append(to_fragment(scene)) or True)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(body, "<cell>", "exec"), names)
            value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    finally:
        output._display_in_notebook = before
    if value is not None:
        drawn = getattr(value, "_repr_html_", lambda: None)()
        if drawn:
            pictures.append(drawn)
        else:
            print(repr(value), file=printed)
    lines = ["```text", printed.getvalue().rstrip(), "```", ""] if printed.getvalue() else []
    for picture in pictures:
        lines += [picture, ""]
    return lines
