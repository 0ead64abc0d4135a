# SPDX-License-Identifier: Apache-2.0
"""What scripts outside the tests import from the library exists: benches, fuzzers, oracles, examples and documents."""

import ast
import importlib
from pathlib import Path

from tests.sources import parse_source

ROOT = Path(__file__).parents[3]
FOLDERS = ("bench", "docs", "examples", "tools", "packages/tilewright/tests")


def missing_names(path: Path) -> list[str]:
    """Return what a file imports from the library, at any depth, and is not there."""
    missing = []
    for node in ast.walk(parse_source(path)):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "tilewright":
            names = [alias.name for alias in node.names if alias.name != "*"]
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            missing += [f"{place}: {node.module}.{name}" for name in names if not has_name(node.module, name)]
    return missing


def has_name(module: str, name: str) -> bool:
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError as problem:
        return not (problem.name or "").startswith("tilewright")  # an optional package that is not installed
    return True


def test_scripts_import_what_there_is():
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 300
    assert not [name for path in files for name in missing_names(path)]
