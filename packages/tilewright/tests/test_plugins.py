# SPDX-License-Identifier: Apache-2.0
"""The example plug-in, installed: all that it adds is known by name; a broken one stops nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "examples" / "plugin"

SESSION = """
import json, struct, sys, warnings
from pathlib import Path
import numpy as np
import tilewright as tw
from tilewright.files.safetensors import LLAMA_CONFIG, write_sample_llama
from tilewright.memory import chip_names
from tilewright.conversion.recipe import recipe_names
answers = {}
spec = tw.TensorSpec((64, 64), "example_fp6", "tile", memory=tw.block_sharded((2, 2)), chip="example_4x4")
answers["where"] = [str(spec.where(33, 40).core), spec.where(33, 40).address]
answers["chips"] = "example_4x4" in chip_names()
values = np.arange(6, dtype=np.float32).reshape(2, 3)
Path("weights.grid").write_bytes(struct.pack("<4sII", b"GRID", 2, 3) + values.tobytes())
answers["grid"] = tw.open_tensors("weights.grid")["weights"].read().tolist()
Path("folder").mkdir()
Path("folder/weights.grid").write_bytes(Path("weights.grid").read_bytes())
answers["folder"] = list(tw.open_tensors("folder"))
Path("short.grid").write_bytes(struct.pack("<4sII", b"GRID", 2, 9))
try:
    tw.open_tensors("short.grid")
except tw.FileFormatError as problem:
    answers["damaged"] = str(problem)
write_sample_llama("MiniLlama")
config = json.loads(Path("MiniLlama/config.json").read_text())
Path("MiniLlama/config.json").write_text(json.dumps({**config, "model_type": "minillama"}))
report = tw.prepare("MiniLlama", "cache", "N150", recipe="example_recipe", hf_model="Llama-3.2-1B")
answers["prepared"] = report.complete
answers["recipes"] = "example_recipe" in recipe_names()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        try:
            tw.TensorSpec((64, 64), "bfloat16", "tile", chip="broken").where(0, 0)
        except tw.MemoryConfigError as problem:
            answers["unknown"] = str(problem).partition(";")[0]
layout = tw.parse("matrix 4 by 8")
answers["notation"] = [str(layout), tw.write(layout, "matrix"), tw.write(tw.parse("(4,8):(8,1)"), "matrix")]
try:
    tw.write(tw.Layout(3, 2), "matrix")
except tw.LayoutError as problem:
    answers["unwritable"] = str(problem)
try:
    tw.parse("matrix of doom")
except tw.LayoutError as problem:
    answers["unreadable"] = str(problem)
from tilewright.cli.doctor import list_all_plugins
answers["doctor"] = list_all_plugins()
answers["warnings"] = [str(each.message) for each in caught]
print(json.dumps(answers))
"""


@pytest.fixture
def installed(tmp_path):
    """Return a folder with the package and its metadata, as an installer leaves them, and a broken chip beside it."""
    if not PLUGIN.is_dir():
        pytest.skip("the example is in the repository, not in the sdist")
    site = tmp_path / "site"
    site.mkdir()
    (site / "tilewright_example").symlink_to(PLUGIN / "tilewright_example")
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = site / f"tilewright_example-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"]
    groups["tilewright.chips"]["broken"] = "tilewright_example:no_such_thing"
    lines = [
        line for group, names in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in names.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return site


def test_the_example_adds_one_of_each(installed, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    code = f"import sys; sys.path.insert(0, {str(installed)!r})\n{SESSION}"
    done = subprocess.run([sys.executable, "-c", code], cwd=work, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert answers["where"] == ["(1, 1)", 1048576 - 832 + 64 + 24 * 6 // 8]
    assert answers["chips"]
    assert answers["recipes"]
    assert answers["grid"] == [[0, 1, 2], [3, 4, 5]]
    assert answers["folder"] == ["weights"]
    assert "2 x 9 numbers take 72 bytes, but 0 follow" in answers["damaged"]
    assert answers["prepared"]
    assert answers["notation"] == ["(4,8):(8,1)", "matrix 4 by 8", "matrix 4 by 8"]
    assert "a matrix has two modes" in answers["unwritable"]
    assert "expected a matrix such as" in answers["unreadable"]
    assert answers["unknown"] == "unknown chip 'broken'"
    assert answers["doctor"]["chips example_4x4"] == "tilewright-example 1.0"
    assert len(answers["warnings"]) == 1
    assert "the plug-in 'broken' of tilewright-example" in answers["warnings"][0]


def test_nothing_is_looked_up_before_it_is_needed():
    code = (
        "import sys, tilewright as tw; tw.TensorSpec((64, 64), chip='n150').where(0, 0); "
        "print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
