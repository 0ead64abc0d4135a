# SPDX-License-Identifier: Apache-2.0
"""The seam to the library: the names beside the public ones that the companion uses; and what needs no companion."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sources import parse_source

import tilewright as tw
import tilewright_mojo
from tilewright import mojo

SOURCES = Path(tilewright_mojo.__file__).parent
BASE = {"tilewright._integers", "tilewright._lazy", "tilewright._text"}
"""Private modules of the lowest layer, which companions of the same version share."""
MAX_SEAM = 25  # names that are not public; they may only become fewer


def imported_names() -> set[tuple[str, str]]:
    """Return the (module, name) pairs that the companion imports from the library."""
    return {
        (node.module, alias.name)
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(parse_source(path))
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("tilewright")
        for alias in node.names
    }


def is_public(module: str, name: str) -> bool:
    """Return whether a front lists a name; of the lowest modules, which list none, all names are public."""
    found = importlib.import_module(module)
    listed = getattr(found, "__all__", None)
    if listed is None and module.count(".") == 1:
        return True
    return name in (listed or ()) or (f"{module}.{name}" in sys.modules and f"{module}.{name}".count(".") == 1)


def test_the_seam_only_shrinks():
    names = imported_names()
    assert len(names) > 50
    private = sorted(pair for pair in names if pair[0] not in BASE and not is_public(*pair))
    assert len(private) <= MAX_SEAM, "\n".join(map(".".join, private))


NEEDS_NO_COMPANION = """
import sys
import numpy as np
import tilewright as tw
from tilewright import views
from tilewright.cli import program
from tilewright.mojo.layout import TileTensor, row_major

views.to_text(views.scene_of(TileTensor(np.arange(8), row_major[2, 4]()).tile[2, 2](0, 1)))
tw.parse("(4,8):(8,1)")
try:
    program.main(["--help"])
except SystemExit:
    pass
print([name for name in sys.modules if name.startswith("tilewright_")])
"""


def test_using_the_library_loads_no_companion():
    done = subprocess.run([sys.executable, "-c", NEEDS_NO_COMPANION], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


class Absent:
    """A finder to which the companion is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "tilewright_mojo":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    "find", [lambda: tw.simt, lambda: mojo.run, lambda: mojo.install, lambda: mojo.layout.LayoutTensor]
)
def test_an_absent_companion_is_named(monkeypatch, find):
    for name in [name for name in sys.modules if name.partition(".")[0] == "tilewright_mojo"]:
        monkeypatch.delitem(sys.modules, name)
    finders = [Absent(), *[finder for finder in sys.meta_path if "tilewright" not in str(type(finder))]]
    monkeypatch.setattr(sys, "meta_path", finders)
    with pytest.raises(ImportError, match=r"is not installed: pip install 'tilewright\[mojo\]'"):
        find()
