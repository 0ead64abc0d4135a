# SPDX-License-Identifier: Apache-2.0
"""What a page in the browser asks has the same answers with the stand-in, and without what only POSIX has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright

from . import session

pytestmark = pytest.mark.slow


def start_session(*arguments):
    # the package that is tested here, also where it is not installed
    environment = os.environ | {"PYTHONPATH": str(Path(tilewright.__file__).parents[1])}
    command = [sys.executable, session.__file__, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.skipif(not session.STAND_IN.is_dir(), reason="not in a checkout")
def test_the_answers_are_the_same_with_the_stand_in_and_without_posix():
    runs = {
        "numpy": start_session("--without-posix"),
        "stand-in": start_session("--without-posix", "--without-packages"),
    }
    expected = json.loads(session.main([]))
    for name, run in runs.items():
        output, errors = run.communicate()
        assert not run.returncode, errors
        found = json.loads(output)
        assert found.pop("numpy") == name
        assert found.pop("imported") == []
        for part, answers in found.items():
            assert expected[part] == answers, f"{part}, with {name}"
        assert set(expected) - set(found) == {"numpy", "imported"}
