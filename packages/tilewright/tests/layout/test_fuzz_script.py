# SPDX-License-Identifier: Apache-2.0
"""The long random run of `make fuzz`, in short: it must find nothing, and say what it looked at."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[4] / "tools" / "fuzz" / "compose.py"
BROKEN = """
import runpy, sys
import tilewright as tw
right = tw.compose
tw.compose = lambda outer, inner, **options: right(outer, inner, **options) + 1
sys.argv = ["compose.py", "--pairs", "50"]
runpy.run_path({script!r}, run_name="__main__")
"""


def run(*command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("seed", ["7", "8"])
def test_a_short_random_run_finds_nothing_wrong(seed):
    outcome = run(str(SCRIPT), "--pairs", "300", "--seed", seed)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    summary = outcome.stdout.splitlines()[-1]
    counts = {name: int(count) for count, name in re.findall(r"(\d+) ([a-z ]+?)(?=[,;]| ;|$)", summary)}
    assert counts["failed"] == 0
    assert counts["strided"] + counts["composed"] == 300
    assert min(counts["strided"], counts["composed"]) > 0
    assert {"inverted", "complemented", "divided", "ragged", "multiplied"} <= counts.keys()


def test_a_wrong_composition_would_be_found():
    outcome = run("-c", BROKEN.format(script=str(SCRIPT)))
    assert outcome.returncode == 1
    assert "FAILED" in outcome.stderr
