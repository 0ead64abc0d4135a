# SPDX-License-Identifier: Apache-2.0
"""The types of the public names, as a user's type checker sees them."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import get_args

import pytest

import tilewright as tw
from tilewright.formats import BLOCK_FORMATS, SCALAR_FORMATS
from tilewright.formats.scalars import FormatName
from tilewright.memory.chip import ChipName

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("script.py")


def test_a_consumer_is_checked_strictly(tmp_path):
    pytest.importorskip("mypy")
    options = ["--strict", "--warn-unused-ignores", "--config-file", "", "--cache-dir", str(tmp_path)]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(SCRIPT)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_consumer_of_the_wheel_is_checked_strictly(tmp_path, is_marked):
    pytest.importorskip("mypy")
    from ..test_packaging import build_wheel  # which skips without the dev extra

    venv.create(tmp_path / "env", symlinks=sys.platform != "win32")
    (site,) = (tmp_path / "env").glob("[Ll]ib/**/site-packages")
    with build_wheel(tmp_path, TILEWRIGHT_NATIVE="0") as wheel:
        wheel.extractall(site)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")  # without its .pth files
    if not is_marked:
        (site / "tilewright" / "py.typed").unlink()
    python = tmp_path / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    options = ["--strict", "--warn-unused-ignores", "--config-file", "", "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--python-executable", str(python), str(SCRIPT)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")},
    )  # fmt: skip
    if is_marked:
        assert checked.returncode == 0, checked.stdout
    else:
        assert "missing library stubs or py.typed marker" in checked.stdout


def test_the_consumer_runs():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.stdout == "typed\n", done.stderr


def test_editors_know_every_name():
    assert set(get_args(FormatName)) == {*SCALAR_FORMATS, *BLOCK_FORMATS}
    names = set(get_args(ChipName))
    assert {path.stem for path in (Path(tw.__file__).parent / "memory" / "chips").glob("*.toml")} <= names
    assert all(tw.Chip.named(name) for name in names)
