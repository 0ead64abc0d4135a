# SPDX-License-Identifier: Apache-2.0
"""The session in a real Pyodide, by node: after `python playground/build.py`, which fetches it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from . import session

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
BUILT = HERE.parents[3] / "build" / "playground"


@pytest.mark.skipif(not (BUILT / "playground.json").is_file(), reason="playground/build.py was not run")
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_answers_are_the_same_in_pyodide():
    command = ["node", str(HERE / "pyodide_session.mjs"), str(BUILT), session.__file__]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr[-2000:]
    found = json.loads(run.stdout)
    print(found["times"])
    answers, expected = found["answers"], json.loads(session.main([]))
    assert answers.pop("imported") == []
    is_stand_in = json.loads((BUILT / "playground.json").read_text(encoding="utf-8"))["numpy"] == "stand_in.zip"
    assert answers.pop("numpy") == ("stand-in" if is_stand_in else "numpy")
    del expected["imported"], expected["numpy"]
    assert list(answers) == list(expected)
    for part, answer in expected.items():
        assert answers[part] == answer, part
