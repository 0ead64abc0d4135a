# SPDX-License-Identifier: Apache-2.0
"""Every script in examples/ runs as a reader would run it; each checks itself and says so."""

import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.copying import load_engine

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))

# The last line that each script prints once all its checks have passed.
LAST_LINES = {
    "device_pipeline.py": "one kernel of opencl: a blur over 500 x 700, the same as on the host",
    "demo.py": "Everything above was checked.",
    "layout_tour.py": "Everything above was checked.",
    "swizzled_transpose.py": "All three agree with NumPy.",
    "tiled_matmul.py": "B in 8 x 8 blocks: the same numbers, bit for bit",
    "ttl_double.py": "double buffering: a cross over 100 x 70, the same as NumPy's",
    "ttl_duplex.py": "duplex buffering: one added to 100 x 70 elements, the same as NumPy's",
    "ttl_simplex.py": "simplex buffering: one added to 300 x 200 elements, the same as NumPy's",
}

# What a script leaves in the folder where it runs; the others leave nothing.
LEFT = {"demo.py": {"tilewright-demo"}}


@pytest.mark.parametrize("script", SCRIPTS, ids=[path.name for path in SCRIPTS])
def test_the_script_runs_to_its_last_line(script, tmp_path):
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    last = done.stdout.rstrip().splitlines()[-1]
    reason = load_engine("opencl").unavailable_reason()
    if script.name == "device_pipeline.py" and reason is not None:
        assert last == f"not run: {reason}"
    else:
        assert last.endswith(LAST_LINES[script.name])
    assert {path.name for path in tmp_path.iterdir()} == LEFT.get(script.name, set())


def test_the_demonstration_leaves_what_it_says(tmp_path):
    script = EXAMPLES / "demo.py"
    command = [sys.executable, "-W", "error", str(script), str(tmp_path / "here")]
    for _ in range(2):  # the second time over what the first has left
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    pictures = ("element.svg", "element.html", "reshard.html")
    assert all(f"{tmp_path / 'here' / name}" in done.stdout for name in pictures)
    assert all((tmp_path / "here" / name).is_file() for name in pictures)
    assert len(list((tmp_path / "here" / "cache").rglob("*.tensorbin"))) == 22


@pytest.mark.parametrize("script", SCRIPTS, ids=[path.name for path in SCRIPTS])
def test_the_script_says_how_it_is_run(script):
    lines = script.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# SPDX-License-Identifier: Apache-2.0"
    assert any(line.strip() in (f"python examples/{script.name}", f"make {script.stem}") for line in lines[:10])


def test_scripts_are_found():
    assert {path.name for path in SCRIPTS} == set(LAST_LINES)
