# SPDX-License-Identifier: Apache-2.0
"""Whole programs print what Mojo 1.2.0 printed for them; each text beside a program was recorded there."""

from pathlib import Path

import pytest

from tilewright import mojo

PROGRAMS = Path(__file__).parent / "programs"


def test_there_is_a_recording_for_each_program():
    names = {path.stem for path in PROGRAMS.glob("*.mojo")}
    assert len(names) >= 6
    assert names == {path.stem for path in PROGRAMS.glob("*.txt")}


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.mojo")))
def test_it_prints_what_mojo_prints(name, capsys):
    mojo.run(PROGRAMS / f"{name}.mojo")
    assert capsys.readouterr().out == (PROGRAMS / f"{name}.txt").read_text()
