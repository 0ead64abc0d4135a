# SPDX-License-Identifier: Apache-2.0
"""Whole programs in Mojo print what the real Mojo prints for them."""

import json
from pathlib import Path

import pytest

from tilewright import mojo

FOLDER = Path(__file__).with_name("golden")

CASES = json.loads((FOLDER / "programs" / "programs.json").read_text(encoding="utf-8"))["cases"]


def test_programs_were_recorded():
    assert len(CASES) >= 5


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_a_program_prints_what_mojo_prints(case, capsys):
    mojo.run(case["source"], name=f"{case['id']}.mojo")
    printed = capsys.readouterr().out.replace("],\n[", "], [")  # a matrix in rows, as on the original page
    assert printed.splitlines() == case["output"].splitlines()
