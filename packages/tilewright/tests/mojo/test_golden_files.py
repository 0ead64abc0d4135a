# SPDX-License-Identifier: Apache-2.0
"""No recorded file and no recorded case is left out."""

import re
from pathlib import Path

import pytest

from .golden import VERSIONS, recorded

COUNTS = {"26.7": (22, 601), "26.2": (13, 172)}  # files and cases, as the recordings say of themselves
HERE = Path(__file__).parent


def names(version):
    return sorted(path.stem for path in VERSIONS[version].glob("*.json"))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_recordings_are_complete(version):
    cases = [case for name in names(version) for case in recorded(name, version)]
    assert (len(names(version)), len(cases)) == COUNTS[version]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted({*names("26.7"), *names("26.2")}))
def test_ids_tell_cases_apart(name, version):
    ids = [case["id"] for case in recorded(name, version)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", sorted({*names("26.7"), *names("26.2")}))
def test_every_file_is_replayed(name):
    sources = [path.read_text(encoding="utf-8") for path in HERE.glob("test_golden_*.py")]
    assert any(re.search(rf'(replay|recorded)\("{name}"', source) for source in sources)
