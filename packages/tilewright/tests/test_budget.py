# SPDX-License-Identifier: Apache-2.0
"""The size of every package is a decision: it may fall freely, and rises only with this table, in the same commit.

Code lines exclude docstrings, comments and blank lines.
"""

import ast
from collections import Counter
from pathlib import Path

from tests.sources import parse_source

PACKAGES = Path(__file__).parents[2]
MODULES = "(modules)"  # the files beside a distribution's packages

# At most so many code lines and files in each package of each distribution.
BUDGET = {
    "tilewright": {
        "(modules)": (1340, 18),
        "analysis": (1580, 6),
        "cli": (3840, 24),
        "conversion": (9480, 26),
        "copying": (2290, 9),
        "cute": (1330, 6),
        "explorer": (1300, 9),
        "files": (5590, 18),
        "formats": (1530, 5),
        "layout": (3630, 14),
        "memory": (3880, 15),
        "mojo": (3230, 15),
        "notation": (4470, 12),
        "tensor": (2440, 7),
        "tiling": (4500, 14),
        "traffic": (2170, 9),
        "ttl": (1320, 5),
        "ttnn": (3780, 13),
        "views": (4720, 18),
    },
    "tilewright_audit": {
        "(modules)": (4050, 16),
        "rehearsal": (1150, 8),
    },
    "tilewright_gpu": {
        "(modules)": (1370, 6),
        "codegen": (1670, 7),
    },
    "tilewright_mojo": {
        "(modules)": (1360, 12),
        "explorer": (220, 4),
        "language": (4520, 14),
        "library": (1140, 11),
        "older": (1710, 11),
        "simt": (2180, 7),
    },
}


def code_lines(text: str, tree: ast.Module) -> int:
    """Return the number of lines of a source text, whose syntax tree is `tree`, that are code."""
    documentation: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            documentation.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and number not in documentation for number, line in lines)


def sizes(source: Path) -> dict[str, tuple[int, int]]:
    """Return the code lines and files of each package of a distribution."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in source.rglob("*.py"):
        folders = path.relative_to(source).parent.parts
        package = folders[0] if folders else MODULES
        lines[package] += code_lines(path.read_text(encoding="utf-8"), parse_source(path))
        files[package] += 1
    return {package: (lines[package], files[package]) for package in lines}


def test_every_package_keeps_its_budget():
    found = {path.parent.name: sizes(path.parent) for path in PACKAGES.glob("*/src/*/__init__.py")}
    assert found.keys() == BUDGET.keys()
    over = [
        f"{distribution}.{package}: {lines} code lines in {files} files, the budget is {most_lines} in {most_files}"
        for distribution, packages in found.items()
        for package, (lines, files) in packages.items()
        for most_lines, most_files in [BUDGET[distribution].get(package, (0, 0))]
        if lines > most_lines or files > most_files
    ]
    assert not over, "\n".join(["make it smaller, or raise the budget in this commit and say why in its body:", *over])
    gone = [f"{name}.{package}" for name, budget in BUDGET.items() for package in budget if package not in found[name]]
    assert not gone, f"the budget names packages that are gone: {gone}"


def test_docstrings_comments_and_blank_lines_are_free():
    text = '"""Words.\n\nMore words."""\n# why\n\ndef f():\n    """Words."""\n    return """\n    a value"""  # why\n'
    assert code_lines(text, ast.parse(text)) == 3
