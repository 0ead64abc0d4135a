# SPDX-License-Identifier: Apache-2.0
"""The session in a real Pyodide, by node: after `python playground/build.py`, which fetches it."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.explorer.in_browser import answer_fields

from . import session

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
BUILT = HERE.parents[3] / "build" / "playground"


@pytest.mark.skipif(not (BUILT / "playground.json").is_file(), reason="playground/build.py was not run")
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("how", ["snapshot", "start"])
def test_the_answers_are_the_same_in_pyodide(tmp_path, how):
    version = json.loads((BUILT / "playground.json").read_text(encoding="utf-8"))["version"]
    folder = shutil.copytree(BUILT / version, tmp_path / "playground")
    for packed in folder.glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    (folder / "nothing").touch()
    command = ["node", str(HERE / "pyodide_session.mjs"), str(folder), session.__file__, how]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr[-2000:]
    found = json.loads(run.stdout)
    print(found["times"])
    answers, expected = found["answers"], json.loads(session.main([]))
    assert answers.pop("imported") == []
    assert answers.pop("numpy") == "stand-in"
    del expected["imported"], expected["numpy"]
    assert list(answers) == list(expected)
    for part, answer in expected.items():
        assert answers[part] == answer, part
    stored = json.loads((folder / "first.json").read_text(encoding="utf-8"))
    assert len(stored) > 5
    for question, body in stored.items():
        name, words = json.loads(question)
        assert body == found["first"][question], name
        assert json.loads(body) == json.loads(answer_fields(name, json.dumps(words))[1]), name
