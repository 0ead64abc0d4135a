# SPDX-License-Identifier: Apache-2.0
"""Models as the cache of the Hugging Face hub holds them: folders of links, read by every verb as they are."""

import json

import numpy as np
import pytest

import tilewright as tw
from tilewright import open_tensors

from ..files.samples import write_safetensors


def hub_model(hub, name, sharded):
    """Return the snapshot of a model as the hub's own library caches it: links to blobs, named by what they hold."""
    model = hub / f"models--org--{name}"
    snapshot = model / "snapshots" / "0123abcd"
    for folder in (snapshot, model / "blobs", model / "refs"):
        folder.mkdir(parents=True)
    (model / "refs" / "main").write_text("0123abcd")
    homes = {"a": "model-1.safetensors", "b": "model-2.safetensors"} if sharded else {"a": "model.safetensors"}
    for number, (tensor, home) in enumerate(homes.items()):
        blob = write_safetensors(model / "blobs" / f"{number:064x}", {tensor: np.arange(6, dtype=np.float32)})
        (snapshot / home).symlink_to(f"../../blobs/{blob.name}")
    if sharded:
        (model / "blobs" / "index").write_text(json.dumps({"weight_map": homes}))
        (snapshot / "model.safetensors.index.json").symlink_to("../../blobs/index")
    return snapshot


@pytest.mark.parametrize("sharded", [False, True])
def test_a_model_of_the_hub_is_read_by_every_verb(tmp_path, run, sharded):
    snapshot = hub_model(tmp_path / "hub", "m", sharded)
    (tmp_path / "short").symlink_to(snapshot)
    for place in (snapshot, snapshot.parent.parent, tmp_path / "short"):
        assert list(open_tensors(place)) == (["a", "b"] if sharded else ["a"])
        out = tmp_path / f"out-{place.name}"
        run("convert", place, out, "--dtype", "bfloat16")
        run("verify", out, "--source", place)
        run("inspect", place)
        run("diff", place, out)
        run("explain", place, "--tensor", "a", "--at", "3")
        run("show", place, "--tensor", "a")
        run("fit", place)


def test_links_that_leave_the_model_of_the_hub_are_refused_by_every_verb(tmp_path, run):
    one, other = (hub_model(tmp_path / "hub", name, sharded=False) for name in ("one", "other"))
    (one / "stray.safetensors").symlink_to(other / "model.safetensors")
    verbs = [
        ("convert", one, tmp_path / "out"),
        ("inspect", one),
        ("diff", one, one),
        ("explain", one, "--tensor", "a", "--at", "3"),
        ("show", one, "--tensor", "a"),
        ("fit", one),
    ]
    for verb in verbs:
        assert "--follow-links" in run(*verb, status=3).err
    (other / "model.safetensors").rename(other / "renamed.safetensors")
    (one / "stray.safetensors").unlink()
    (one / "model.safetensors").unlink()
    (one / "model.safetensors").symlink_to(other / "renamed.safetensors")
    for verb in verbs:
        run(*verb, "--follow-links")


def test_a_model_of_the_hub_with_several_snapshots_needs_one_named(tmp_path):
    snapshot = hub_model(tmp_path, "m", sharded=False)
    (snapshot.parent / "4567").mkdir()
    model = snapshot.parent.parent
    assert list(open_tensors(model)) == ["a"]  # refs/main names it
    (model / "refs" / "main").unlink()
    with pytest.raises(tw.FileFormatError, match=r"got 2, .* 0123abcd, 4567"):
        open_tensors(model)
