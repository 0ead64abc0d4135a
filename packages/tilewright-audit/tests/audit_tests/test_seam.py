# SPDX-License-Identifier: Apache-2.0
"""The seam to the library: the companion uses the fronts of its packages; the library loads no companion."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sources import parse_source

import tilewright as tw
import tilewright_audit

SOURCES = Path(tilewright_audit.__file__).parent
LIBRARY = Path(tw.__file__).parent
BASE = {"tilewright._files", "tilewright._json", "tilewright._lazy", "tilewright._text"}
"""Private modules of the lowest layer, which companions of the same version share."""


def imported_modules(path: Path) -> set[str]:
    """Return the modules that a file imports, relative ones with their dots."""
    found = set()
    for node in ast.walk(parse_source(path)):
        if isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_the_library_is_imported_through_its_packages():
    names = {name for path in SOURCES.rglob("*.py") for name in imported_modules(path)}
    used = {name for name in names if name.split(".")[0] == "tilewright"}
    assert len(used) > 5
    assert not [name for name in used - BASE if name.count(".") > 1 or "._" in name]


def test_the_library_imports_no_companion():
    paths = sorted(LIBRARY.rglob("*.py"))
    assert not [path for path in paths if any(name.startswith("tilewright_") for name in imported_modules(path))]


def test_modules_do_not_import_each_other():
    graph = {
        f".{path.stem}": {name for name in imported_modules(path) if name.startswith(".")}
        for path in SOURCES.glob("*.py")
        if path.stem != "__init__"
    }
    while graph:
        free = {name for name, needed in graph.items() if not needed & graph.keys()}
        assert free, f"modules that import each other: {sorted(graph)}"
        graph = {name: needed for name, needed in graph.items() if name not in free}


def test_using_the_library_loads_no_companion():
    code = (
        "import sys, tilewright as tw\n"
        "from tilewright import views\n"
        "from tilewright.cli import program\n"
        "views.to_text(views.scene_of(tw.row_major(4, 8)))\n"
        "try: program.main(['--help'])\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('tilewright_')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_absent_companion_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tilewright_audit", None)
    with pytest.raises(ImportError, match=r"tilewright.audit is not installed: pip install 'tilewright\[audit\]'"):
        tw.audit  # noqa: B018


@pytest.mark.parametrize("name", ["\0", "a\0b.npy", "\ud800", "x" * 5000, "y/" * 3000 + "z.json"], ids=ascii)
def test_names_that_no_file_can_have(name):
    with pytest.raises((tw.TilewrightError, OSError)) as caught:
        tw.audit(name)
    assert "\0" not in str(caught.value)
    assert not isinstance(caught.value, OSError) or caught.value.errno, caught.value
