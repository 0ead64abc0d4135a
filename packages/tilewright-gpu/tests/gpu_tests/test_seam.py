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
import tilewright_gpu

SOURCES = Path(tilewright_gpu.__file__).parent
LIBRARY = Path(tw.__file__).parent
BASE = {"tilewright._files"}
"""Private modules of the lowest layer, which companions of the same version share."""
MAX_SEAM = 12  # names that are not public; they may only become fewer


def imports(path: Path) -> set[tuple[str, str]]:
    """Return the (module, name) pairs that a file imports by their full names."""
    return {
        (node.module or "", alias.name)
        for node in ast.walk(parse_source(path))
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
    }


def is_public(module: str, name: str) -> bool:
    """Return whether a front lists a name; of the lowest modules, which list none, all names are public."""
    listed = getattr(importlib.import_module(module), "__all__", None)
    return name in listed if listed is not None else module.count(".") == 1


def test_the_seam_only_shrinks():
    names = {pair for path in SOURCES.rglob("*.py") for pair in imports(path)}
    used = sorted(pair for pair in names if pair[0].split(".")[0] == "tilewright" and pair[0] not in BASE)
    assert len(used) > 20
    assert not [module for module, _ in used if module.count(".") > 1], "import from the packages"
    private = [pair for pair in used if not is_public(*pair)]
    assert len(private) <= MAX_SEAM, "\n".join(map(".".join, private))


def test_the_library_imports_no_companion():
    paths = sorted(LIBRARY.rglob("*.py"))
    assert not [path for path in paths if any(module.startswith("tilewright_") for module, _ in imports(path))]


NEEDS_NO_COMPANION = """
import sys
import numpy as np
import tilewright as tw
from tilewright.tiling import Input, Output, Pipeline, Tiler

tw.tilize(np.ones((40, 50), np.float32), dtype="bfloat8_b")
a, b, tiler = np.zeros(8), np.zeros(8), Tiler((8,), (4,))
Pipeline([Input(a, tiler)], [Output(b, tiler)]).run(None)
tw.plan_copy(*[tw.Placement(tw.Layout(8), "int8")] * 2).bind(np.zeros(8, np.int8), np.zeros(8, np.int8))()
print([name for name in sys.modules if name.startswith("tilewright_")])
"""


def test_using_the_library_loads_no_companion():
    done = subprocess.run([sys.executable, "-c", NEEDS_NO_COMPANION], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# Python without the companion: neither its modules nor its entry points are there.
WITHOUT_COMPANION = """
import sys
from importlib import metadata
sys.modules["tilewright_gpu"] = None
entry_points = metadata.entry_points
metadata.entry_points = lambda **options: [] if options["group"] == "tilewright.engines" else entry_points(**options)

import numpy as np
import tilewright as tw
from tilewright import tiling

class OnCuda:
    def __dlpack_device__(self):
        return 2, 0

class OnOpenCL:
    __module__ = "pyopencl.array"

values, tiler = np.ones((4, 4), np.float32), tiling.Tiler((4, 4), (2, 2))
plan = tw.plan_copy(*[tw.Placement(tw.Layout(8), "int8")] * 2)
pipeline = tiling.Pipeline([tiling.Input(values, tiler)], [tiling.Output(values.copy(), tiler)])
requests = {
    "cuda": [
        lambda: tw.tilize(values, engine="cuda"),
        lambda: tw.tilize(OnCuda()),
        lambda: plan.bind(OnCuda(), values),
        lambda: tiling.Input(OnCuda(), tiler) and tiling.Pipeline([tiling.Input(OnCuda(), tiler)], []),
        lambda: plan.code("cuda"),
        lambda: pipeline.kernel("in0", "cuda"),
    ],
    "opencl": [
        lambda: tw.tilize(values, engine="opencl"),
        lambda: tw.copy(OnOpenCL(), values),
        lambda: plan.code("opencl"),
        lambda: pipeline.kernel("in0"),
        lambda: tiling.TileKernel,
    ],
}
for engine, asked in requests.items():
    for number, request in enumerate(asked):
        try:
            request()
        except (tw.DeviceError, ImportError) as problem:
            assert "not installed" in str(problem), problem
            assert f"pip install 'tilewright[{engine}]'" in str(problem), problem
        else:
            raise AssertionError(f"request {number} to {engine}")
assert tw.tilize(values).size == 1024
pipeline.run(None)
"""


def test_an_absent_companion_is_named_with_what_installs_it():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_COMPANION], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_engine_is_refused_by_name():
    with pytest.raises(tw.TransferError, match="unknown engine 'abacus'; use one of auto, native, reference, opencl"):
        tw.tilize([[1.0]], engine="abacus")
