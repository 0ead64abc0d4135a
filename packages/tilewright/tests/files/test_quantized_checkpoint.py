# SPDX-License-Identifier: Apache-2.0
"""Quantised checkpoints: recorded ones value by value, and made ones for what these do not have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.files import write_safetensors
from tilewright.files.quantized import PendingTensor
from tilewright.formats.blocks import CodeTable, decode_e8m0

GOLDEN = Path(__file__).parents[1] / "golden" / "quantised"
FOLDERS = ("checkpoints", "compressed_tensors")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(23)


def cases() -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for folder in FOLDERS:
        for case in json.loads((GOLDEN / folder / f"{folder}.json").read_text())["cases"]:
            yield GOLDEN / folder / case["checkpoint"], case


def digest(values: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(values, "<f4").tobytes()).hexdigest()


def test_recorded_values() -> None:
    count = 0
    for path, case in cases():
        tensors = tw.open_tensors(path)
        assert not [name for name in case.get("plain", ()) if tensors[name].sections != (tensors[name],)], path
        for each in case["tensors"]:
            tensor, expected = tensors[each["name"]], each["expect"]
            values = tensor.read()
            where = f"{path.name}: {each['name']}"
            assert (values.dtype, values.shape) == (np.float32, tuple(expected["shape"])), where
            assert digest(values) == expected["sha256"], where
            if "expect_transposed" in each:
                assert digest(np.swapaxes(values, -1, -2)) == each["expect_transposed"]["sha256"], where
            count += 1
    assert count == 31


def test_sections_are_joined() -> None:
    for path, case in cases():
        names = {each["name"] for each in case["tensors"]} | set(case.get("plain", ())) | set(case.get("ignored", ()))
        assert set(tw.open_tensors(path)) == names, path


def test_boxes_equal_the_whole(rng: np.random.Generator) -> None:
    for path, case in cases():
        tensors = tw.open_tensors(path)
        for each in case["tensors"]:
            tensor = tensors[each["name"]]
            whole = tensor.read()
            for _ in range(4):
                start = [int(rng.integers(0, n)) for n in tensor.shape]
                stop = [int(rng.integers(a + 1, n + 1)) for a, n in zip(start, tensor.shape, strict=True)]
                box = tuple([slice(a, b) for a, b in zip(start, stop, strict=True)])
                assert np.array_equal(tensor.read(box), whole[box]), (path.name, each["name"], box)


def test_recorded_refusals() -> None:
    for case in json.loads((GOLDEN / "checkpoints" / "checkpoints.json").read_text())["refuse"]:
        path = GOLDEN / "checkpoints" / case["checkpoint"]
        with pytest.raises(tw.FormatError, match=r"lin\.weight cannot be read"):
            tw.open_tensors(path)["lin.weight"].read()
        with pytest.raises(tw.FormatError, match=r"lin\.weight: "):
            tw.conversion.plan_conversion(path, "out", dtype="bfloat8_b")
        assert "lin.weight cannot be read" in str(tw.inspect(path))


def test_conversion_is_verified_against_codes_and_scales(tmp_path: Path) -> None:
    for path, case in cases():
        out = tmp_path / path.parent.name / path.name
        tw.convert(path, out, dtype="bfloat8_b")
        report = tw.verify(out, path)
        assert report, (path.name, report.problems)
        plain = tw.convert(path, out / "float32", dtype="float32", layout="row_major")
        assert plain.converted
        made, source = tw.open_tensors(out / "float32"), tw.open_tensors(path)
        for each in case["tensors"]:
            assert digest(made[each["name"]].read()) == each["expect"]["sha256"], (path.name, each["name"])
        assert all(name in made for name in source)


def write_checkpoint(folder: Path, arrays: Mapping[str, Any], config: Mapping[str, Any] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    write_safetensors(folder / "model.safetensors", arrays)
    if config is not None:
        (folder / "config.json").write_text(json.dumps({"quantization_config": config}))
    return folder


def float8(rng: np.random.Generator, *shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)


def test_ragged_blocks_have_the_size_of_the_configuration(tmp_path: Path, rng: np.random.Generator) -> None:
    codes, scales = float8(rng, 100, 70), rng.random((2, 3)).astype(np.float32)
    arrays = {"a.weight": codes, "a.weight_scale_inv": scales}
    config = {"quant_method": "fp8", "weight_block_size": [64, 32]}
    tensor = tw.open_tensors(write_checkpoint(tmp_path / "m", arrays, config))["a.weight"]
    rows, columns = np.arange(100) // 64, np.arange(70) // 32
    assert np.array_equal(tensor.read(), codes.astype(np.float32) * scales[rows[:, None], columns])
    assert tensor.format_name == "float8_e4m3 scaled per 64 x 32"
    without = tw.open_tensors(write_checkpoint(tmp_path / "n", arrays))["a.weight"]
    assert "fit neither" in str(without.problem)


@pytest.mark.parametrize(
    ("shape", "scales", "index"),
    [
        ((4, 6), (), (0, 0)),
        ((4, 6), (1,), (0, 0)),
        ((4, 6), (1, 1), (0, 0)),
        ((4, 6), (4, 1), (1, 0)),
        ((4, 6), (4,), (1, 0)),
        ((4, 6), (1, 6), (0, 1)),
        ((3, 4, 6), (3,), (1, 0, 0)),
        ((3, 4, 6), (3, 1, 1), (1, 0, 0)),
        ((3, 4, 6), (3, 4, 1), (1, 1, 0)),
        ((3, 4, 6), (3, 1, 6), (1, 0, 1)),
        ((2, 200, 130), (2, 2, 2), (1, 128, 128)),
        ((200, 256), (2, 1, 2, 1), (128, 128)),
    ],
)
def test_shapes_of_scales(
    tmp_path: Path, rng: np.random.Generator, shape: tuple[int, ...], scales: tuple[int, ...], index: tuple[int, ...]
) -> None:
    codes = rng.integers(-128, 128, shape).astype(np.int8)
    factors = rng.random(scales).astype(np.float32)
    path = write_checkpoint(tmp_path / "m", {"e": codes, "e_scale": factors})
    steps = [np.zeros(n, int) if not step else np.arange(n) // step for n, step in zip(shape, index, strict=True)]
    grid = factors.reshape([1 + int(step[-1]) for step in steps])
    assert np.array_equal(tw.open_tensors(path)["e"].read(), codes * grid[np.ix_(*steps)])


def test_packed_integers_of_every_width(tmp_path: Path, rng: np.random.Generator) -> None:
    for bits in range(1, 9):
        codes = rng.integers(0, 1 << bits, (24, 96)).astype(np.uint8)
        zeros = rng.integers(0, 1 << bits, (24, 3)).astype(np.uint8)
        scales = rng.random((24, 3)).astype(np.float32)
        arrays = {
            "l.weight_packed": pack_words(codes, bits),
            "l.weight_zero_point": np.ascontiguousarray(pack_words(zeros.T, bits).T),
            "l.weight_scale": scales,
            "l.weight_shape": np.array([24, 96]),
        }
        groups = {"group_0": {"weights": {"num_bits": bits, "type": "int", "group_size": 32}}}
        config = {"quant_method": "compressed-tensors", "config_groups": groups}
        tensor = tw.open_tensors(write_checkpoint(tmp_path / f"m{bits}", arrays, config))["l.weight"]
        spread = np.arange(96) // 32
        expected = (codes.astype(np.float32) - zeros[:, spread]) * scales[:, spread]
        assert np.array_equal(tensor.read(), expected), bits
        assert np.array_equal(tensor.read((slice(5, 9), slice(33, 71))), expected[5:9, 33:71]), bits


def pack_words(codes: np.ndarray[Any, Any], bits: int) -> Any:
    single = np.unpackbits(codes[..., None].copy(), axis=-1, count=bits, bitorder="little").reshape(len(codes), -1)
    single = np.pad(single, ((0, 0), (0, -single.shape[1] % 32)))
    return np.packbits(single, axis=-1, bitorder="little").view(np.int32)


def test_exponents_of_blocks(tmp_path: Path, rng: np.random.Generator) -> None:
    """DeepSeek's newer checkpoints: exponents as scales of blocks, and FP4 in bytes with a scale for each 32."""
    codes, scales = rng.integers(-128, 128, (8, 64)).astype(np.int8), rng.integers(100, 140, (8, 4)).astype(np.uint8)
    path = write_checkpoint(tmp_path / "m", {"e.weight": codes, "e.weight_scale_inv": scales})
    numbers = CodeTable("e2m1", 4).decode(codes.view(np.uint8))
    expected = numbers * decode_e8m0(scales)[:, np.arange(128) // 32]
    tensor = tw.open_tensors(path)["e.weight"]
    assert tensor.format_name == "mxfp4"
    assert np.array_equal(tensor.read(), expected)


@pytest.mark.parametrize(
    ("arrays", "config", "reason"),
    [
        ({"a.weight_packed": np.zeros((4, 16), np.uint8)}, None, "there is no 'a.weight_scale'"),
        ({"a_blocks": np.zeros((4, 2, 16), np.uint8)}, {"quant_method": "mxfp4"}, "there is no 'a_scales'"),
        ({"a.weight": np.zeros((4, 16), np.int8)}, {"quant_method": "fp8"}, "there is no 'a.weight_scale'"),
        ({"a.qweight": np.zeros((4, 16), np.int32), "a.qzeros": np.zeros(4, np.int32)}, None, "GPTQ or AWQ"),
        ({"a.weight": np.zeros((4, 16), np.uint8), "a.weight.absmax": np.zeros(4, np.float32)}, None, "bitsandbytes"),
        ({"a.weight": np.zeros((4, 16), np.int8), "a.SCB": np.zeros(4, np.float32)}, None, "bitsandbytes"),
        ({"a.weight": np.zeros((4, 16), np.uint32), "a.biases": np.zeros((4, 2), np.float32)}, None, "MLX"),
        ({"a.weight.compressed": np.zeros(9, np.int8), "a.weight.bitmask": np.zeros(9, np.uint8)}, None, "sparse"),
        (
            {"a.weight._data": np.zeros((4, 8), np.int8), "a.weight._scale": np.zeros((4, 1), np.float32)},
            None,
            "quanto",
        ),
        (
            {"a.weight": np.zeros((4, 16), np.int8), "a.weight_scale": np.zeros((2, 3), np.float32)},
            None,
            "fit neither",
        ),
        (
            {
                "a.weight_packed": np.zeros((4, 16), np.int32),
                "a.weight_scale": np.zeros((4, 1), np.float32),
                "a.weight_g_idx": np.zeros(128, np.int32),
            },
            None,
            "another order",
        ),
        (
            {"a.weight_packed": np.zeros((4, 16), np.uint8), "a.weight_scale": float8(np.random.default_rng(0), 4, 2)},
            None,
            "needs a scale of the tensor",
        ),
    ],
)
def test_what_is_not_read_is_refused_by_name(
    tmp_path: Path, arrays: Mapping[str, Any], config: Mapping[str, Any] | None, reason: str
) -> None:
    tensors = tw.open_tensors(write_checkpoint(tmp_path / "m", arrays, config))
    problems = [each.problem for each in tensors.values() if each.problem is not None]
    assert len(problems) == 1
    assert reason in problems[0]


def test_bytes_without_scales_are_plain(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "m", {"a.weight": np.arange(6, dtype=np.uint8), "b_scale": np.ones(3)})
    assert tw.open_tensors(path)["a.weight"].read().tolist() == [0, 1, 2, 3, 4, 5]


def test_other_scales_are_another_source(tmp_path: Path, rng: np.random.Generator) -> None:
    """The hash of a source covers its scales: `verify` notices other ones, and a resumed run converts again."""
    codes, scales = float8(rng, 64, 64), np.ones((64, 1), np.float32)
    path = write_checkpoint(tmp_path / "m", {"a.weight": codes, "a.weight_scale": scales})
    tw.convert(path, tmp_path / "out", dtype="bfloat8_b")
    manifest = json.loads(next((tmp_path / "out").glob("*.json")).read_text())
    assert "sections" in json.dumps(manifest)
    scales[-1] = np.nextafter(np.float32(1), np.float32(2))  # which bfloat8_b rounds away
    write_checkpoint(path, {"a.weight": codes, "a.weight_scale": scales})
    assert "has changed" in str(tw.verify(tmp_path / "out", path).problems[0].problem)
    report = tw.convert(path, tmp_path / "out", dtype="bfloat8_b", resume=True)
    assert report.converted == 1
    assert tw.verify(tmp_path / "out", path)


def test_tensors_of_like_modules_are_made_when_they_are_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    arrays, expected = {}, {}
    for k in range(40):
        prefix = f"model.layers.{k}.mlp.gate_proj."
        codes = rng.normal(size=(256, 128 + 128 * (k % 3))).astype(ml_dtypes.float8_e4m3fn)
        scales = rng.uniform(0.5, 2, size=(2, 1 + k % 3)).astype(np.float32)
        arrays |= {f"{prefix}weight": codes, f"{prefix}weight_scale_inv": scales}
        if k % 5 == 0:  # which no convention explains
            arrays[f"{prefix}weight_scale_inv"] = scales = np.ones((3, 7), np.float32)
        if k % 7 == 0:
            arrays[f"{prefix}bias"] = scales[0]
        if k % 11 == 0:
            arrays[f"{prefix}input_scale"] = scales[0, :1]
        expected[f"{prefix}weight"] = (
            codes.astype(np.float32) * np.kron(scales, np.ones((128, 128), np.float32)) if k % 5 else None
        )
    write_safetensors(tmp_path / "m.safetensors", arrays)
    opened = tw.open_tensors(tmp_path / "m.safetensors")
    kept = {name for name in arrays if "scale_inv" not in name or int(name.split(".")[2]) % 5 == 0}
    assert set(opened) == kept
    assert opened.nbytes == sum(array.nbytes for array in arrays.values())
    assert opened.files == [tmp_path / "m.safetensors"]
    pending = [each for each in opened._tensors.values() if isinstance(each, PendingTensor)]
    assert len(pending) > 20
    for name, values in expected.items():
        assert name in opened
        if values is None:
            assert "fit neither" in opened[name].problem
        else:
            assert np.array_equal(opened[name].read(), values), name
            assert opened[name] is opened[name]
            assert [each.name for each in opened[name].sections] == [name, f"{name}_scale_inv"]


def test_a_weight_that_has_lost_its_scales_is_refused_by_those_of_others(tmp_path: Path) -> None:
    codes = np.ones((4, 4), ml_dtypes.float8_e4m3fn)
    scales = {"a.weight_scale": np.full(1, 0.5, np.float32)}
    write_safetensors(tmp_path / "x.safetensors", {"a.weight": codes, **scales, "b.weight": codes, "b.table": codes})
    opened = tw.open_tensors(tmp_path / "x.safetensors")
    assert opened["b.weight"].problem == "there is 'a.weight_scale', but no 'b.weight_scale'"
    assert opened["a.weight"].read().tolist() == [[0.5] * 4] * 4
    assert opened["b.table"].read().astype(np.float32).sum() == 16
