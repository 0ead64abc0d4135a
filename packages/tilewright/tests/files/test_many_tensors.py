# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of many tensors: headers alone are looked at, and tensors are made when asked for."""

import json
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.files import stored_tensor
from tilewright.files.safetensors import parse_header

LAYERS = 50


def write_sparse(path: Path, entries: list[tuple[str, str, list[int], int]]) -> None:
    """Write a safetensors file of tensors (name, type, shape, bytes) of zeros."""
    header, at = {}, 0
    for name, kind, shape, nbytes in entries:
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + nbytes]}
        at += nbytes
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)


@pytest.fixture
def quantised(tmp_path: Path) -> Path:
    """A checkpoint with scales, in two files with an index."""
    homes = {}
    for part in range(2):
        entries = []
        for k in range(part * LAYERS, (part + 1) * LAYERS):
            weight = f"model.layers.{k}.mlp.up_proj.weight"
            entries += [
                (weight, "F8_E4M3", [256, 384], 256 * 384),
                (f"{weight}_scale_inv", "F32", [2, 3], 24),
                (f"model.layers.{k}.norm.weight", "BF16", [384 + k], 768 + 2 * k),
            ]
        write_sparse(tmp_path / f"part-{part}.safetensors", entries)
        homes |= {name: f"part-{part}.safetensors" for name, *_ in entries}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))
    return tmp_path


def test_a_list_of_tensors_needs_few_specs(quantised: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, dense_spec = [], stored_tensor._dense_spec
    monkeypatch.setattr(stored_tensor, "_dense_spec", lambda *shape: made.append(shape) or dense_spec(*shape))
    inspection = tw.inspect(quantised)
    assert len(inspection.text().splitlines()) > 2 * LAYERS
    assert len(made) < 5  # of the scales of the first module
    assert inspection.nbytes == 2 * LAYERS * (256 * 384 + 24) + sum(768 + 2 * k for k in range(2 * LAYERS))


def test_the_list_of_like_tensors_is_what_each_tensor_says(quantised: Path) -> None:
    inspection = tw.inspect(quantised)
    rows = {line.split()[0]: line for line in inspection.table().splitlines()[1:]}
    made = tw.open_tensors(quantised)
    assert list(rows) == list(made)
    for name, tensor in made.items():
        facts = inspection.facts(name)
        assert facts.format == tensor.format_name
        assert [section.name for section in facts.sections if facts.sections] == (
            [section.name for section in tensor.sections] if tensor.sections != (tensor,) else []
        )
        assert rows[name].split()[1:] == "  ".join(facts.row[:-1]).split()
    assert tuple(map(inspection.facts, made)) == inspection.tensors
    weight = f"model.layers.{2 * LAYERS - 1}.mlp.up_proj.weight"
    assert made[weight].read((slice(0, 1), slice(0, 2))).tolist() == [[0.0, 0.0]]
    assert made[f"model.layers.{LAYERS}.norm.weight"].read().shape == (384 + LAYERS,)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"dtype": "F32", "shape": [2.0, 3], "data_offsets": [24, 48]}, "an entry of the shape of 'b', got 2.0"),
        ({"dtype": "F32", "shape": "[2, 3]", "data_offsets": [24, 48]}, "as the shape of 'b', got '"),
        ({"dtype": "F32", "shape": [2, 3], "data_offsets": [24.0, 48]}, "a data offset of 'b', got 24.0"),
        ({"dtype": "F32", "shape": [2, 3], "data_offsets": [-24, 0]}, "a data offset of 'b', got -24"),
        ({"dtype": "F32", "shape": [2, 3], "data_offsets": [24, 47]}, "takes 24 bytes, but its data_offsets span 23"),
        ({"dtype": "F32", "shape": [2, 3], "data_offsets": [20, 44]}, "overlaps the tensor before it"),
        ({"dtype": "F32", "shape": [2, 3], "data_offsets": [28, 52]}, "leaves a gap from byte 24"),
        ({"dtype": "F32", "shape": [2, 3], "data_offsets": [24, 48], "more": 1}, "'b' has unknown keys 'more'"),
        ({"dtype": ["F32"], "shape": [2, 3], "data_offsets": [24, 48]}, "expected a string as the dtype of 'b'"),
        ([24, 48], "expected an object for 'b'"),
    ],
)
def test_an_entry_like_one_before_is_checked_as_strictly(entry: object, problem: str) -> None:
    first = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    text = json.dumps({"a": first, "b": entry}).encode()
    with pytest.raises(tw.FileFormatError) as caught:
        parse_header(text, 48)
    assert problem in str(caught.value)


def test_booleans_are_no_extents() -> None:
    first = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
    second = {"dtype": "U8", "shape": [True], "data_offsets": [1, 2]}
    with pytest.raises(tw.FileFormatError, match="got True"):
        parse_header(json.dumps({"a": first, "b": second}).encode(), 2)


def test_like_tensors_fit_as_they_do_one_by_one(quantised: Path) -> None:
    tensors = tw.open_tensors(quantised)
    whole = tw.fit(quantised, "n150", memory="l1")
    specs = [tw.TensorSpec(each.shape, each.format, memory="l1", chip="n150") for each in tensors.values()]
    alone = tw.memory.fit(specs)
    assert [each.name for each in whole.tensors] == list(tensors)
    for got, expected in zip(whole.tensors, alone.tensors, strict=True):
        assert (got.spec, got.address, got.padding_bytes, got.warnings) == (
            *(expected.spec, expected.address, expected.padding_bytes, expected.warnings),
        )
    assert whole.memories == alone.memories
