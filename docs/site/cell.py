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
    """Run a block in the names of the page, and print the values of its expressions; return its output as JSON."""
    before = pictures()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            for statement in ast.parse(code, "<page>").body:
                is_shown = isinstance(statement, ast.Expr)
                tree = ast.Interactive([statement]) if is_shown else ast.Module([statement], [])
                exec(compile(tree, "<page>", "single" if is_shown else "exec"), names)
        except BaseException as problem:
            frames = traceback.walk_tb(problem.__traceback__)
            lines = [line for frame, line in frames if frame.f_code.co_filename == "<page>"]
            print("Traceback (most recent call last):", *(f"  line {line}" for line in lines[:1]), sep="\n")
            print("".join(traceback.format_exception_only(problem)).rstrip())
    changed = [path.read_text(encoding="utf-8") for path, time in pictures().items() if before.get(path) != time]
    return json.dumps({"text": printed.getvalue(), "pictures": changed})


def pictures() -> dict[Path, int]:
    """Return the pictures in the working directory, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in sorted(Path.cwd().glob("*.svg"))}
