# SPDX-License-Identifier: Apache-2.0
"""The types of the public names, as a user's type checker sees them."""

import subprocess
import sys
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


def test_the_consumer_runs():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.stdout == "typed\n", done.stderr


def test_editors_know_every_name():
    assert set(get_args(FormatName)) == {*SCALAR_FORMATS, *BLOCK_FORMATS}
    names = set(get_args(ChipName))
    assert {path.stem for path in (Path(tw.__file__).parent / "memory" / "chips").glob("*.toml")} <= names
    assert all(tw.Chip.named(name) for name in names)
