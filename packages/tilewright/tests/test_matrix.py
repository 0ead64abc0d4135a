# SPDX-License-Identifier: Apache-2.0
"""The matrix covers what it promises, and does not pass where nothing could be run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.matrix.cells import CELLS, PYTHONS, clean_environment, interpreters, without_compiler

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def test_every_choice_is_covered():
    assert {(cell.python, cell.is_native) for cell in CELLS} == {(p, b) for p in PYTHONS for b in (True, False)}
    assert {(cell.numpy, cell.is_native) for cell in CELLS} == {(n, b) for n in ("1.26", "2") for b in (True, False)}
    assert {cell.is_native for cell in CELLS if cell.from_sdist} == {True, False}
    assert {cell.python for cell in CELLS if cell.numpy == "1.26"} == {"3.10", "3.11", "3.12"}
    assert any(cell.extras for cell in CELLS)
    assert any(cell.is_oldest for cell in CELLS)
    assert len({cell.name for cell in CELLS}) == len(CELLS)


def test_interpreters_are_found_by_path_and_told_by_what_they_say():
    version = "{}.{}".format(*sys.version_info[:2])
    expected = {version: sys.executable} if version in PYTHONS else {}
    assert interpreters([sys.executable]) == expected
    assert interpreters(["no-such-python", "true", "false"]) == {}


def run_matrix(*arguments):
    command = [sys.executable, "-m", "tools.matrix", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_it_fails_loudly_where_no_python_is_found():
    run = run_matrix("--pythons", "no-such-python")
    assert run.returncode == 1
    assert run.stdout.count("NOT FOUND, ITS CELLS ARE SKIPPED") == len(PYTHONS)
    assert "name some in MATRIX_PYTHONS" in run.stderr


def test_it_fails_where_no_cell_is_meant():
    run = run_matrix("--cells", "2.7")
    assert run.returncode == 1
    assert "3.10-numpy1.26-native-sdist" in run.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="programs are looked for in the Unix way")
def test_without_a_compiler_there_is_none(tmp_path):
    bare = without_compiler(dict(os.environ), str(tmp_path))
    assert subprocess.run(["/bin/sh", "-c", "command -v c++ g++ cc"], env=bare, check=False).returncode != 0
    assert not Path(bare["CXX"]).exists()


def test_a_cell_inherits_no_way_back_to_the_sources(monkeypatch):
    for name in ("PYTHONPATH", "TILEWRIGHT_NATIVE", "VIRTUAL_ENV", "CXX", "MAKEFLAGS"):
        monkeypatch.setenv(name, "x")
    assert not {"PYTHONPATH", "TILEWRIGHT_NATIVE", "VIRTUAL_ENV", "CXX", "MAKEFLAGS"} & set(clean_environment())
