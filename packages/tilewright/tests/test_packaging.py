# SPDX-License-Identifier: Apache-2.0
"""What users install: one wheel per platform, and a pure Python one where nothing compiles."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib import resources
from pathlib import Path

import pytest

from tilewright.copying import native

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent

pytest.importorskip("scikit_build_core", reason="the dev extra is not installed")

# The package has to come from the wheel alone, wherever the tests themselves find it.
ASK_THE_WHEEL = """
import sys
sys.path.insert(0, sys.argv[1])
import tilewright
from tilewright.copying import native
assert tilewright.__file__.startswith(sys.argv[1]), tilewright.__file__
print(native.unavailable_reason())
"""


def build_wheel(folder: Path, **environment: str) -> zipfile.ZipFile:
    """Return the wheel that the real backend makes of this source tree."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("TILEWRIGHT_NATIVE", "CC", "CXX")}
    # The Ninja and CMake of the dev extra stand next to the interpreter, which need not be on the PATH.
    inherited["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", "")])
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    command += ["--disable-pip-version-check", "--wheel-dir", str(folder / "wheels"), str(ROOT)]
    # An empty build folder each time: a configured one would remember its compiler.
    command += ["--config-settings", f"build-dir={folder / 'build'}"]
    # Unoptimised and for one set of instructions, which compiles faster: the packaging is tested here, not the speed.
    command += ["--config-settings", "cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0"]
    command += ["--config-settings", "cmake.define.TILEWRIGHT_PORTABLE=ON"]
    run = subprocess.run(command, env={**inherited, **environment}, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    (wheel,) = (folder / "wheels").glob("*.whl")
    return zipfile.ZipFile(wheel)


def ask_wheel(wheel: zipfile.ZipFile, folder: Path) -> str:
    """Return what unavailable_reason() says in a Python that imports the package from the wheel."""
    wheel.extractall(folder)
    environment = {k: v for k, v in os.environ.items() if k != "TILEWRIGHT_NATIVE"}
    # An editable install would answer before the path does; -S leaves its finder out, and with it the
    # dependencies, which are therefore named.
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p.endswith("-packages"))
    command = [sys.executable, "-S", "-c", ASK_THE_WHEEL, str(folder)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


# The command has to answer without the folders of a checkout.
ASK_THE_COMMAND = """
import sys
sys.path.insert(0, sys.argv[1])
from tilewright.cli import main
main(["explain", "4x60x90", "--at", "2,33,17", "--json"])
"""


def ask_command(folder: Path) -> str:
    """Return what the command of an unpacked wheel says."""
    packages = os.pathsep.join(p for p in sys.path if p.endswith("-packages"))
    command = [sys.executable, "-S", "-c", ASK_THE_COMMAND, str(folder)]
    environment = {**os.environ, "PYTHONPATH": packages}
    run = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_type_marker_is_shipped():
    assert resources.files("tilewright").joinpath("py.typed").is_file()


@pytest.mark.skipif(not native.is_available(), reason=f"{native.unavailable_reason()}")
def test_wheel_with_the_native_library(tmp_path):
    with build_wheel(tmp_path) as wheel:
        name = Path(wheel.filename).name
        assert name.startswith("tilewright-")
        assert "-py3-none-" in name
        assert not name.endswith("-any.whl")
        contents = wheel.namelist()
        assert f"tilewright/{native._FILE_NAME}" in contents
        has_headers = Path(sysconfig.get_path("include"), "Python.h").is_file() and sys.platform != "win32"
        assert ("tilewright/_calls.abi3.so" in contents) == has_headers
        page = {path.name for path in (ROOT / "src/tilewright/explorer/page").iterdir()}
        assert {"index.html", "main.js", "style.css"} <= page
        data = {
            "py.typed",
            "formats/ggml_code_books.txt",
            "views/page.css",
            "views/marks.js",
            "cli/schemas/fit.json",
            *(f"explorer/page/{name}" for name in page),
        }
        assert {f"tilewright/{name}" for name in data} <= set(contents)
        assert any(entry.endswith("/LICENSE") for entry in contents)
        assert Path(wheel.filename).stat().st_size < 2_500_000
        assert ask_wheel(wheel, tmp_path / "site") == "None"
        (scripts,) = (tmp_path / "site").glob("*.dist-info/entry_points.txt")
        assert "tilewright = tilewright.cli:main" in scripts.read_text(encoding="utf-8")
        assert "tilewright = tilewright.pytest_plugin" in scripts.read_text(encoding="utf-8")
        assert json.loads(ask_command(tmp_path / "site"))["shape"] == [4, 60, 90]


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"CC": "/nonexistent/cc", "CXX": "/nonexistent/c++"}, id="no compiler"),
        pytest.param({"TILEWRIGHT_NATIVE": "0"}, id="asked to go without"),
    ],
)
def test_wheel_without_the_native_library(tmp_path, environment):
    with build_wheel(tmp_path, **environment) as wheel:
        assert Path(wheel.filename).name.endswith("-py3-none-any.whl")
        contents = wheel.namelist()
        assert f"tilewright/{native._FILE_NAME}" not in contents
        assert "tilewright/py.typed" in contents
        assert "is missing" in ask_wheel(wheel, tmp_path / "site")


def test_a_required_library_that_does_not_compile_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="CMAKE_CXX_COMPILER"):
        build_wheel(tmp_path, CXX="/nonexistent/c++", TILEWRIGHT_NATIVE="1")
