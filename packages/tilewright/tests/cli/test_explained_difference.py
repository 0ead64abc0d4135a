# SPDX-License-Identifier: Apache-2.0
"""`tilewright diff --why`."""

import json

import numpy as np

from tilewright.files import write_safetensors


def test_the_command_explains(run, tmp_path):
    weight = np.random.default_rng(0).standard_normal((192, 128)).astype(np.float32)
    pairs = weight.reshape(6, 2, 16, 128).swapaxes(1, 2).reshape(192, 128)
    write_safetensors(tmp_path / "a.safetensors", {"q": weight, "k": weight})
    write_safetensors(tmp_path / "b.safetensors", {"q": pairs, "k": weight})
    done = run("diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "--why", status=1)
    assert "q  B is A with the rows of 6 heads of 32 in pairs" in " ".join(done.out.split("\n"))
    assert "--why gives" in run("diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors", status=1).out
    data = json.loads(
        run("diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "--why", "--json", status=1).out
    )
    assert [reason["kind"] for reason in data["why"]] == ["order"]
