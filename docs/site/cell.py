# SPDX-License-Identifier: Apache-2.0
"""Runs blocks of a page in the page's own Python: what they print, and the pictures that they write."""

import ast
import contextlib
import io
import json
import sys
import traceback
from pathlib import Path

names: dict[str, object] = {"__name__": "page"}
sys.path.insert(0, "")  # blocks with a title are files, which later ones import


def save(name: str, text: str) -> str:
    """Save a block as the file that its title names; return its output."""
    Path(name).write_text(text, encoding="utf-8")
    sys.modules.pop(Path(name).stem, None)
    return json.dumps({"text": f"saved {name}", "pictures": []})


def run(code: str) -> str:
    """Run a block as a session does, in the names of the page; return its output as JSON: text, and SVG."""
    before = pictures()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            for statement in ast.parse(code, "<page>").body:
                is_shown = isinstance(statement, ast.Expr)
                tree = ast.Interactive([statement]) if is_shown else ast.Module([statement], [])
                exec(compile(tree, "<page>", "single" if is_shown else "exec"), names)
        except BaseException as problem:
            print(failure(problem))
    changed = [path.read_text(encoding="utf-8") for path, time in pictures().items() if before.get(path) != time]
    return json.dumps({"text": printed.getvalue(), "pictures": changed})


def pictures() -> dict[Path, int]:
    """Return the pictures in the working directory, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in sorted(Path.cwd().glob("*.svg"))}


def failure(problem: BaseException) -> str:
    """Return an exception as text, with the line of the block that raised it."""
    lines = [line for frame, line in traceback.walk_tb(problem.__traceback__) if frame.f_code.co_filename == "<page>"]
    where = f"  line {lines[0]}\n" if lines else ""
    return f"Traceback (most recent call last):\n{where}{''.join(traceback.format_exception_only(problem)).rstrip()}"
