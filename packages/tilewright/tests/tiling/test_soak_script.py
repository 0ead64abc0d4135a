# SPDX-License-Identifier: Apache-2.0
"""The half hour of `make soak`, in seconds; and what it would say if something piled up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.fuzz.soak import Sample, trends

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "packages" / "tilewright")}
FLAT = [Sample(1, 6, 100_000 + 50 * (k % 3), (90 << 20) + 4096 * (k % 5)) for k in range(20)]


def test_a_few_seconds_find_nothing_wrong():
    command = [sys.executable, "-m", "tools.fuzz.soak", "--seconds", "3", "--every", "1", "--seed", "5"]
    outcome = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT, timeout=300, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    assert "; 0 failed" in outcome.stdout


def test_what_stays_flat_is_no_trend():
    assert trends(FLAT) == []


@pytest.mark.parametrize("what", ["threads", "files", "objects", "memory"])
def test_what_grows_is_named(what):
    held = [vars(each) | {what: getattr(each, what) * (20 + k) // 20 + (k > 15)} for k, each in enumerate(FLAT)]
    found = trends([Sample(**each) for each in held])
    assert len(found) == 1
    assert found[0].startswith(f"{what} grew")
