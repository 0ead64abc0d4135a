# SPDX-License-Identifier: Apache-2.0
"""What a page in the browser asks has the same answers without NumPy, and without what only POSIX has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import tilewright

from . import session


def start_session(*arguments):
    # the package that is tested here, also where it is not installed
    environment = os.environ | {"PYTHONPATH": str(Path(tilewright.__file__).parents[1])}
    command = [sys.executable, session.__file__, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_the_answers_are_the_same_without_numpy_and_without_posix():
    runs = {
        ("ml_dtypes", "numpy"): start_session("--without-posix"),
        (): start_session("--without-posix", "--without-packages"),
    }
    expected = json.loads(session.main([]))
    del expected["imported"]
    for packages, run in runs.items():
        output, errors = run.communicate()
        assert not run.returncode, errors
        found = json.loads(output)
        assert found.pop("imported") == list(packages)
        assert list(found) == list(expected)
        for part, answers in expected.items():
            assert found[part] == answers, f"{part}, with {packages or 'no packages'}"
