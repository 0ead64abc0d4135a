# SPDX-License-Identifier: Apache-2.0
"""No recorded file and no recorded case is left out."""

import re
from pathlib import Path

import pytest

from .golden import FOLDER, recorded

COUNTS = (22, 601)  # files and cases, as the recordings say of themselves
HERE = Path(__file__).parent


NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def test_the_recordings_are_complete():
    cases = [case for name in NAMES for case in recorded(name)]
    assert (len(NAMES), len(cases)) == COUNTS


@pytest.mark.parametrize("name", NAMES)
def test_ids_tell_cases_apart(name):
    ids = [case["id"] for case in recorded(name)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_replayed(name):
    sources = [path.read_text(encoding="utf-8") for path in HERE.glob("test_golden_*.py")]
    assert any(re.search(rf'(replay|recorded)\("{name}"', source) for source in sources)
