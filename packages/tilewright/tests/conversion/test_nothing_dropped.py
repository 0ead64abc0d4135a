# SPDX-License-Identifier: Apache-2.0
"""Whatever a source or a rule file has is converted, or named as left out with the reason, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.cli.runner import invoke
from tests.files import onnx_samples, torch_samples
from tests.files.gguf_files import write_gguf
from tilewright.conversion import plan_cache, plan_conversion
from tilewright.files import open_tensors, write_safetensors, write_sample_llama

FLOATS = np.arange(6, dtype=np.float32).reshape(2, 3)
WHOLE = np.arange(6, dtype=np.int32).reshape(2, 3)


def safetensors(folder: Path) -> Path:
    write_safetensors(folder / "m.safetensors", {"w": FLOATS, "i": WHOLE}, {"author": "someone", "format": "pt"})
    return folder / "m.safetensors"


def sharded(folder: Path) -> Path:
    write_safetensors(folder / "a.safetensors", {"w": FLOATS, "author": FLOATS})
    write_safetensors(folder / "b.safetensors", {"i": WHOLE})
    index = {"weight_map": {"w": "a.safetensors", "i": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def gguf(folder: Path) -> Path:
    return write_gguf(folder / "m.gguf", {"w": FLOATS, "i": WHOLE}, {"author": "someone"})


def torch(folder: Path, nested: bool = False) -> Path:
    named = {
        "w": torch_samples.tensor("0", (2, 3), (3, 1)),
        "i": torch_samples.tensor("1", (2, 3), (3, 1), kind="IntStorage"),
    }
    note = torch_samples.text("someone")
    named["author"] = torch_samples.dictionary({"name": note, "twice": note}) if nested else note
    data = torch_samples.zipped(torch_samples.dictionary(named), {"0": FLOATS.tobytes(), "1": WHOLE.tobytes()})
    (folder / "m.pt").write_bytes(data)
    return folder / "m.pt"


def onnx(folder: Path) -> Path:
    parts = [
        onnx_samples.initializer("w", (2, 3), 1, 9, FLOATS.tobytes()),
        onnx_samples.initializer("i", (2, 3), 6, 9, WHOLE.tobytes()),
        onnx_samples.initializer("author", (1,), 8, 6, b"someone"),
    ]
    (folder / "m.onnx").write_bytes(onnx_samples.model(*parts))
    return folder / "m.onnx"


def hdf5(folder: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "m.h5", "w") as file:
        file["w"], file["i"], file["author"] = FLOATS, WHOLE, "someone"
    return folder / "m.h5"


def npz(folder: Path) -> Path:
    np.savez(folder / "m.npz", w=FLOATS, i=WHOLE)
    return folder / "m.npz"


SOURCES = [safetensors, sharded, gguf, torch, lambda folder: torch(folder, nested=True), onnx, hdf5, npz]


@pytest.mark.parametrize("write", SOURCES)
@pytest.mark.parametrize("to", ["tensorbin", "safetensors", "npy"])
def test_every_tensor_and_all_else_is_converted_or_named(
    tmp_path: Path, write: Callable[[Path], Path], to: str
) -> None:
    source = write(tmp_path)
    out = tmp_path / ("out.safetensors" if to == "safetensors" else "out")
    plan = plan_conversion(source, out, to, dtype="bfloat16")
    assert sorted([item.name for item in plan.items]) == ["i", "w"]
    named = "\n".join([*plan.notes, *plan.skipped])
    if write is safetensors:
        assert plan.metadata["author"] == "someone"
        tw.convert(source, out, to)
        assert tw.open_tensors(out).metadata["author"] == "someone"
    else:
        assert ("author" in named) == (write is not npz), named
    assert "i: integers stay int32" in named
    opened = tw.open_tensors(source)
    assert set(opened) == {"w", "i"}


@pytest.mark.parametrize("dtype", ["bfloat8_b", "bfloat16", "float32"])
@pytest.mark.parametrize("kind", ["bool", "uint8", "int32", "int64"])
@pytest.mark.parametrize("pattern", ["*", "mode*", "model.?osition_ids", "model.[p]osition_ids"])
def test_wildcards_leave_integers_alone(tmp_path: Path, dtype: str, kind: str, pattern: str) -> None:
    source = {"model.position_ids": np.arange(6).reshape(1, 6).astype(kind), "model.w": FLOATS}
    plan = plan_conversion(source, tmp_path / "o.safetensors", rules={pattern: {"dtype": dtype}})
    assert plan.items[0].spec.dtype.name == kind
    assert plan.items[1].spec.dtype.name == (dtype if "?" not in pattern and "[" not in pattern else "float32")
    (note,) = plan.notes
    stay = "bools stay bool" if kind == "bool" else f"integers stay {kind}"
    assert note == f"model.position_ids: {stay}; a rule with the tensor's own name changes them"
    for rules in (
        {"model.position_ids": {"dtype": dtype}},
        {"*": {"dtype": "float32"}, "model.position_ids": {"dtype": dtype}},
    ):
        plan = plan_conversion(source, tmp_path / "o.safetensors", rules=rules)
        assert plan.items[0].spec.dtype.name == dtype
        assert not plan.notes


def test_wildcards_may_ask_for_other_integers(tmp_path: Path) -> None:
    plan = plan_conversion({"ids": WHOLE}, tmp_path / "o.safetensors", rules={"*ids": {"dtype": "uint16"}})
    assert plan.items[0].spec.dtype.name == "uint16"
    assert not plan.notes


@pytest.mark.parametrize(
    ("rules", "to", "part"),
    [
        ({"*": {"tile": [16, 32], "layout": "row_major"}}, "tensorbin", "w: tile has no effect on rows"),
        ({"w": {"shard": "height", "grid": [1, 1]}}, "npy", "w: shard, grid has no effect on .npy files"),
        ({"w": {"layout": "tile"}}, "npy", "w: layout has no effect on .npy files"),
        ({"wieght": {"dtype": "bfloat16"}}, "tensorbin", "no tensor matches the pattern 'wieght'"),
        ({"w": {"pad_value": 3, "layout": "row_major"}}, "tensorbin", "w: pad_value has no effect on rows"),
        ({"w*": {"dtype": "bfloat8_b"}, "*": {"dtype": "bfloat16"}}, "tensorbin", "the rule 'w*' has no effect: later"),
        ({"w": {"like_ttnn": True}}, "tensorbin", "w: like_ttnn has an effect on blocks in sharded memory only"),
        ({"x": {"value": "slice(tensor('w'), 0, 1)"}}, "tensorbin", "w: "),
        ({"w": {"value": "slice(this, 0, 1)"}}, "tensorbin", "w: "),
    ],
)
def test_settings_without_effect_are_named(tmp_path: Path, rules: dict, to: str, part: str) -> None:
    notes = plan_conversion({"w": FLOATS}, tmp_path / "out", to, rules=rules).notes
    assert any(note.startswith(part) for note in notes), notes


def test_settings_of_another_sharding_are_named(tmp_path: Path) -> None:
    rules = {
        "*": {"shard": "nd", "shard_shape": (32, 64), "grid": (1, 2), "distribution": "grid_2d"},
        "w": {"shard": "height", "shard_dims": [0]},  # which takes the other settings from the rule for all
    }
    arrays = dict.fromkeys("vw", np.ones((64, 64), np.float32))
    notes = plan_conversion(arrays, tmp_path / "out", rules=rules).notes
    assert [note for note in notes if "effect" in note] == [
        "w: distribution, shard_dims has no effect with shard = 'height'"
    ]


def test_elements_that_no_output_has_are_counted(tmp_path: Path) -> None:
    arrays = {"a": np.ones((6, 4), np.float32), "b": np.zeros((6, 4), np.float32)}

    def notes(**rules: dict) -> tuple[str, ...]:
        return plan_conversion(arrays, tmp_path / "out", rules=rules).notes

    assert notes(c={"value": "slice(tensor('a'), 0, 2)"}) == (
        "a: 8 of 24 elements are used; the others are in no output",
    )
    assert notes(b={"value": "tensor('a')"}) == ("b: 0 of 24 elements are used; the others are in no output",)
    assert notes(c={"value": "join([tensor('a'), tensor('b')])"}, b={"skip": True}) == ()
    assert notes(b={"skip": True, "dtype": "bfloat16"}) == ("the rule 'b' skips tensors: dtype has no effect",)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"dtyp": "bfloat16"}, "unknown key 'dtyp'"),
        ({"orientation": "row_major"}, "orientation = row_major needs shard"),
        ({"distribution": "grid_2d"}, "distribution = grid_2d needs shard"),
        ({"shard": "height", "grid": [1, 1], "memory": tw.interleaved("l1")}, "both place the tensor"),
        ({"value": "tensor('w')", "each": {"k": []}}, "makes no tensor"),
        ({"each": {"k": [1]}}, "needs a value"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(tmp_path: Path, settings: dict, part: str) -> None:
    name = "new.{k}" if "each" in settings else "w"
    with pytest.raises(tw.TilewrightError, match=part.replace("(", r"\(")):
        plan_conversion({"w": FLOATS}, tmp_path / "out", rules={name: settings})


def test_the_example_of_the_help_keeps_position_ids(tmp_path: Path) -> None:
    words = invoke("convert", "--help").output
    rules = [line.strip() for line in words.splitlines() if line.strip().startswith('"')]
    assert len(rules) == 3
    (tmp_path / "rules.toml").write_text("\n".join(rules))
    ids = np.arange(512, dtype=np.int64).reshape(1, 512)
    write_safetensors(tmp_path / "m.safetensors", {"embeddings.position_ids": ids, "a.mlp.b.weight": FLOATS})
    out = str(tmp_path / "out")
    answer = invoke("convert", str(tmp_path / "m.safetensors"), out, "--rules", str(tmp_path / "rules.toml"))
    assert answer.exit_code == 0, answer.output
    assert np.array_equal(tw.open_tensors(out)["embeddings.position_ids"].read(), ids)


def test_files_beside_a_checkpoint_are_named(tmp_path):
    model = tmp_path / "Llama-3.2-1B-Instruct"
    write_sample_llama(model)
    assert open_tensors(model).notes == ()
    np.savez(model / "extra.npz", bias=np.ones(3, np.float32))
    shards = tmp_path / "sharded"
    shards.mkdir()
    save = {"a": np.ones((2, 2), np.float32)}
    write_safetensors(shards / "model-00001-of-00001.safetensors", save)
    write_safetensors(shards / "adapter_model.safetensors", {"b": np.ones(3, np.float32)})
    index = {"weight_map": {"a": "model-00001-of-00001.safetensors"}}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index))
    (note,) = open_tensors(shards).notes
    assert note.endswith("also has 'adapter_model.safetensors', which is not read")
    assert f"note: {note}" in str(tw.inspect(shards))
    assert note in plan_conversion(shards, tmp_path / "out").notes


def test_prepare_names_files_that_are_not_read(tmp_path):
    model = tmp_path / "Llama-3.2-1B-Instruct"
    write_sample_llama(model)
    (weights,) = model.glob("*.safetensors")
    index = {"weight_map": dict.fromkeys(open_tensors(weights), weights.name)}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    write_safetensors(model / "extra.safetensors", {"model.layers.0.self_attn.q_proj.bias": np.ones(3, np.float32)})
    notes = plan_cache(model, tmp_path / "cache", "N300").notes
    assert any("also has 'extra.safetensors', which is not read" in note for note in notes)


@pytest.mark.parametrize("place", ["manifest", "tensor", "source", "output", "index", "banks"])
def test_what_a_manifest_or_an_index_has_besides_is_refused(tmp_path, place):
    np.save(tmp_path / "w.npy", np.zeros((32, 32), np.float32))
    tw.convert(tmp_path / "w.npy", tmp_path / "out", to="banks", chip="n150")
    path = tmp_path / "out" / ("w.banks.json" if place in ("index", "banks") else "tilewright.json")
    data = json.loads(path.read_text())
    entry = data.get("tensors", {}).get("w", {})
    if place == "banks":
        data["banks"][0]["core"] = [7, 7]
    else:
        {"tensor": entry, "source": entry.get("source"), "output": entry.get("output")}.get(place, data)["bogus"] = 1
    path.write_text(json.dumps(data))
    with pytest.raises(tw.FileFormatError, match="banks does not match" if place == "banks" else "bogus"):
        tw.open_tensors(tmp_path / "out")
