# SPDX-License-Identifier: Apache-2.0
"""The long random run of `make fuzz-plans`, in short: it must find nothing, and would find what is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.copying import native

ROOT = Path(__file__).parents[4]
PLACES = {"PYTHONPATH": str(ROOT / "packages" / "tilewright")}
BROKEN = """
import ctypes, sys
from tilewright.copying import native
right = native.run_plan

def wrong(plan, source, target, threads):
    right(plan, source, target, threads)
    ctypes.memmove(target + plan.target.nbytes, b"x", 1)  # one byte beyond what the plan owns

native.run_plan = wrong
from tools.fuzz import plans
plans.CHECKS = [(plans.check_copies, 1.0)]  # all of its memory has guards, which may be written to
sys.argv = ["plans.py", "--plans", "20"]
sys.exit(plans.main())
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not native.is_available(), reason="there is nothing to compare with the reference engine"),
]


def run(*command):
    command, environment = [sys.executable, *command], os.environ | PLACES
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=300, check=False)


def test_a_short_random_run_finds_nothing_wrong():
    outcome = run("-m", "tools.fuzz.plans", "--plans", "60", "--seed", "7")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.rstrip().endswith("; 0 failed")
    assert all(kind in outcome.stdout for kind in ("by table", "strided", "window", "packed", "repacked", "tensor"))


def test_a_byte_too_many_would_be_found():
    outcome = run("-c", BROKEN)
    assert outcome.returncode == 1
    assert "FAILED 0/check_copies/0: AssertionError: native" in outcome.stderr
