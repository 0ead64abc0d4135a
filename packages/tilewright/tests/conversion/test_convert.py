# SPDX-License-Identifier: Apache-2.0
"""Conversions: every tensor's bytes are those that packing it whole would give, however it is cut."""

import hashlib
import json
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright._files import PREFIX
from tilewright.conversion import plan_conversion, run_plan
from tilewright.files import Tensorbin, Topology, write_tensorbin
from tilewright.files.manifest import read_manifest
from tilewright.files.stored_tensor import BankImage
from tilewright.memory import TensorSpec, to_bytes

from ..cases import examples
from ..files.samples import write_safetensors

LITTLE = 2 << 17  # bytes of memory: the fewest that are accepted, so that most tensors are cut


def pages_of(tensor):
    """Return the pages of a converted tensor, read piece by piece and put together."""
    return b"".join(tensor.file.read(at, size) for at, size in tensor.runs(tensor.parts[0].box))


def check(folder, out, source, **options):
    """Convert and assert that each tensor has the pages that `to_bytes` gives; return the tensors."""
    plan = plan_conversion(source, out, **options)
    report = run_plan(plan, memory=LITTLE, jobs=3)
    assert report.complete
    sources, made = tw.open_tensors(source), tw.open_tensors(out)
    assert sorted(made) == sorted(item.name for item in plan.items)
    for item in plan.items:
        values = sources[item.name].read()
        values = values if item.target.order is None else values.transpose(item.target.order)
        spec = item.target.spec
        assert pages_of(made[item.name]) == to_bytes(values, spec, item.target.pad_value).tobytes()
        np.testing.assert_array_equal(made[item.name].read(), tw.from_bytes(to_bytes(values, spec), spec))
    assert not list(Path(folder).rglob(f"{PREFIX}*"))
    assert not list(Path(folder).rglob(".*"))
    assert bool(tw.verify(out, source, memory=LITTLE))
    return made


@st.composite
def sources(draw, folder):
    """Return a path with one tensor of random shape, type and storage."""
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=rank - 1, max_size=rank - 1))) if rank > 2 else ()
    shape = (*shape, *draw(st.lists(st.integers(1, 300), min_size=min(rank, 2), max_size=min(rank, 2))))
    dtype = draw(st.sampled_from([np.float32, np.float16, np.float64, np.int32, np.uint8]))
    values = (np.arange(int(np.prod(shape))) % 251).astype(dtype).reshape(shape)
    kind = draw(st.sampled_from(["npy", "fortran", "big", "npz", "safetensors", "tiles"]))
    if kind == "tiles":
        spec = TensorSpec(shape, draw(st.sampled_from(["bfloat8_b", "bfloat16"])), "tile", draw(tiles()))
        write_tensorbin(folder / "x.tensorbin", Tensorbin(spec, to_bytes(values, spec)))
        return folder / "x.tensorbin"
    if kind == "safetensors":
        return write_safetensors(folder / "x.safetensors", {"x": values})
    if kind == "npz":
        np.savez_compressed(folder / "x.npz", x=values)
        return folder / "x.npz"
    stored = np.asfortranarray(values) if kind == "fortran" else values
    np.save(folder / "x.npy", stored.astype(stored.dtype.newbyteorder(">")) if kind == "big" else stored)
    return folder / "x.npy"


def tiles():
    return st.tuples(st.sampled_from([32, 16, 8, 1]), st.sampled_from([32, 16]))


@st.composite
def wishes(draw):
    """Return the settings for all tensors."""
    found = {"dtype": draw(st.sampled_from(["bfloat8_b", "bfloat4_b", "bfloat16", "float32"]))}
    found["layout"] = draw(st.sampled_from(["tile", "row_major"])) if not found["dtype"].endswith("_b") else "tile"
    if found["layout"] == "tile":
        found["tile"] = draw(tiles())
        found["transpose_tile"] = draw(st.booleans()) and found["tile"][0] >= 16
    found["transpose"] = draw(st.booleans())
    found["pad_value"] = draw(st.sampled_from([None, 3]))
    return found


@examples(50)
@given(st.data(), wishes())
def test_pages_are_those_of_the_whole_tensor(data, wish):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = data.draw(sources(folder))
        to = data.draw(st.sampled_from(["tensorbin", "safetensors", "banks"]))
        chip = {"chip": "wormhole_n150"} if to == "banks" else {}
        check(folder, folder / ("out.safetensors" if to == "safetensors" else "out"), source, to=to, **wish, **chip)


@pytest.mark.parametrize("transpose", [False, True, [1, 0, 2], [2, 1, 0], [2, 0, 1]])
@pytest.mark.parametrize("dtype", ["bfloat8_b", "float32"])
def test_orders_of_dimensions(tmp_path, transpose, dtype):
    write_safetensors(tmp_path / "x.safetensors", {"x": np.arange(70 * 90 * 40, dtype=np.float32).reshape(70, 90, 40)})
    check(tmp_path, tmp_path / "out", tmp_path / "x.safetensors", dtype=dtype, transpose=transpose)


@pytest.mark.parametrize(
    "shard",
    [
        {"shard": "height", "grid": [4, 2]},
        {"shard": "width", "grid": [4, 1]},
        {"shard": "block", "grid": [2, 4]},
        {"shard": "nd", "shard_shape": [64, 32], "grid": [3, 3]},
        {"buffer": "l1"},
    ],
)
@pytest.mark.parametrize("layout", ["tile", "row_major"])
@pytest.mark.parametrize("to", ["tensorbin", "safetensors", "banks"])
def test_memory_configs(tmp_path, shard, layout, to):
    write_safetensors(tmp_path / "x.safetensors", {"x": np.arange(300 * 100, dtype=np.float32).reshape(300, 100)})
    out = tmp_path / ("out.safetensors" if to == "safetensors" else "out")
    settings = {"dtype": "bfloat16", "layout": layout, "chip": "wormhole_n150", **shard}
    made = check(tmp_path, out, tmp_path / "x.safetensors", to=to, **settings)["x"]
    if "shard" in shard:
        assert made.spec.memory.is_sharded
    if to != "banks":
        return
    spec = made.spec
    device = tw.Device(spec.chip)
    block = device.put(np.arange(300 * 100, dtype=np.float32).reshape(300, 100), spec)
    image = BankImage(spec)
    whole = (out / "x.banks.bin").read_bytes()
    for k, bank in enumerate(spec.banks):
        held = device.read_bytes(bank, block.address, image.bank_bytes, spec.memory.buffer_type)
        assert whole[k * image.bank_bytes : (k + 1) * image.bank_bytes] == held.tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3", "float16", "int64", "bool", None])
def test_npy(tmp_path, dtype):
    values = np.arange(300 * 100, dtype=np.float32).reshape(300, 100) % 7
    write_safetensors(tmp_path / "x.safetensors", {"x": values})
    options = {} if dtype is None else {"rules": {"*": {"dtype": dtype}}}
    made = check(tmp_path, tmp_path / "out", tmp_path / "x.safetensors", to="npy", **options)["x"]
    assert made.format == tw.format_of(dtype or "float32")
    raw = np.load(tmp_path / "out" / "x.npy")
    assert raw.shape == values.shape
    assert raw.tobytes() == made.read().tobytes()


def test_a_mesh_becomes_one_tensor(tmp_path):
    spec = TensorSpec((64, 40), "uint16", "tile")
    whole = np.arange(128 * 40, dtype=np.uint16).reshape(128, 40)
    topology = Topology((2,), (0,), ((0, 0), (0, 1)))
    parts = {at: to_bytes(whole[64 * k : 64 * k + 64], spec) for k, at in enumerate(topology.coordinates)}
    write_tensorbin(tmp_path / "x.tensorbin", Tensorbin(spec, parts, (1, 2), topology))
    made = check(tmp_path, tmp_path / "out", tmp_path / "x.tensorbin", rules={"*": {"dtype": "float32"}})
    np.testing.assert_array_equal(made["x"].read(), whole.astype(np.float32))


def test_scalars_and_empty_tensors(tmp_path):
    held = {"s": np.float32(3).reshape(()), "e": np.zeros((0, 7), np.float32), "o": np.ones((1, 1), np.float32)}
    write_safetensors(tmp_path / "x.safetensors", held)
    check(tmp_path, tmp_path / "o.safetensors", tmp_path / "x.safetensors", dtype="bfloat16")
    check(tmp_path, tmp_path / "npy", tmp_path / "x.safetensors", to="npy")
    with pytest.raises(tw.LayoutError, match="e: the tensor is empty"):
        plan_conversion(tmp_path / "x.safetensors", tmp_path / "out")
    check(tmp_path, tmp_path / "out", tmp_path / "x.safetensors", rules={"e": {"skip": True}})


def test_integers_stay_what_they_are(tmp_path):
    held = {"ids": np.arange(512)[None], "mask": np.ones(3, np.bool_), "w": np.ones((4, 4), np.float32)}
    write_safetensors(tmp_path / "x.safetensors", held)
    plan = plan_conversion(tmp_path / "x.safetensors", tmp_path / "out", dtype="bfloat8_b")
    assert [item.target.spec.dtype.name for item in plan.items] == ["int32", "uint8", "bfloat8_b"]
    assert len(plan.notes) == 2
    ruled = plan_conversion(tmp_path / "x.safetensors", tmp_path / "out", rules={"ids": {"dtype": "uint32"}})
    assert ruled.items[0].target.spec.dtype.name == "uint32"
    check(tmp_path, tmp_path / "out", tmp_path / "x.safetensors", dtype="bfloat8_b")


def test_integers_that_do_not_fit_are_refused(tmp_path):
    write_safetensors(tmp_path / "x.safetensors", {"ids": np.array([1, 2**40]), "w": np.ones((4, 4), np.float32)})
    with pytest.raises(tw.FormatError, match=f"ids contains {2**40}"):
        tw.convert(tmp_path / "x.safetensors", tmp_path / "out")
    assert not (tmp_path / "out" / "tilewright.json").exists()


def test_a_sharded_checkpoint_of_small_floats(tmp_path):
    rng = np.random.default_rng(2)
    kinds = {"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}
    homes = {}
    folder = tmp_path / "model"
    folder.mkdir()
    for kind, dtype in kinds.items():
        homes[f"{kind}.weight"] = f"{kind}.safetensors"
        values = rng.standard_normal((200, 90)).astype(dtype)
        write_safetensors(folder / f"{kind}.safetensors", {f"{kind}.weight": values})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))
    made = check(tmp_path, tmp_path / "blocks", folder, dtype="bfloat8_b")
    assert {each.format.name for each in made.values()} == {"bfloat8_b"}
    made = check(tmp_path, tmp_path / "same", folder)
    assert {each.format.name for each in made.values()} == {"bfloat16"}
    made = check(tmp_path, tmp_path / "same.safetensors", folder)
    assert made["F8_E5M2.weight"].format.name == "float8_e5m2"


@pytest.mark.parametrize("transpose", [False, True])
def test_many_slabs_of_many_tensors_at_once(tmp_path, transpose):
    """Threads have two tensors in hand at a time; hashes are those of the whole files."""
    rng = np.random.default_rng(4)
    held = {f"w{k}": rng.standard_normal((int(rng.integers(100, 3000)), 300), dtype=np.float32) for k in range(7)}
    source, out = write_safetensors(tmp_path / "x.safetensors", held), tmp_path / "out"
    plan = plan_conversion(source, out, dtype="bfloat8_b", transpose=transpose)
    run_plan(plan, memory=8 << 20, jobs=3)
    whole = source.read_bytes()
    for name, entry in read_manifest(out / "tilewright.json").entries.items():
        assert entry.output.sha256 == hashlib.sha256((out / entry.output.file).read_bytes()).hexdigest()
        read = entry.sources[name].bytes
        assert read.sha256 == hashlib.sha256(whole[read.start : read.end]).hexdigest()
        values = held[name].T if transpose else held[name]
        assert pages_of(tw.open_tensors(out)[name]) == to_bytes(values, entry.spec).tobytes()


def test_the_manifest_is_content_alone(tmp_path):
    """Made elsewhere from the same bytes, it is the same, byte for byte."""
    held = {"b": np.ones((40, 40), np.float32), "a/c": np.zeros(3, np.float32)}
    texts = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_safetensors(tmp_path / name / "m.safetensors", held)
        tw.convert(tmp_path / name / "m.safetensors", tmp_path / name / "out", dtype="bfloat8_b")
        texts.append((tmp_path / name / "out" / "tilewright.json").read_bytes())
    assert texts[0] == texts[1]
    manifest = read_manifest(tmp_path / "one" / "out" / "tilewright.json")
    assert list(manifest.entries) == ["b", "a/c"]
    entry = manifest.entries["a/c"]
    assert entry.output.file == "a%2Fc.tensorbin"
    assert entry.sources["a/c"].bytes.size == 12
    assert str(tmp_path) not in texts[0].decode()


def test_several_sources(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 3)))
    np.save(tmp_path / "b.npy", np.ones((3, 3)))
    plan = plan_conversion([tmp_path / "a.npy", tmp_path / "b.npy"], tmp_path / "out")
    assert [item.name for item in plan.items] == ["a", "b"]
    with pytest.raises(tw.FileFormatError, match="twice"):
        plan_conversion([tmp_path / "a.npy", tmp_path / "a.npy"], tmp_path / "out")


def test_what_cannot_be_planned(tmp_path):
    write_safetensors(tmp_path / "x.safetensors", {f"w{k}": np.ones((40, 40), np.float32) for k in range(8)})
    source, out = tmp_path / "x.safetensors", tmp_path / "out"
    with pytest.raises(tw.FormatError, match="unknown output type"):
        plan_conversion(source, out, to="zip")
    with pytest.raises(tw.FormatError, match=r"ends in \.safetensors"):
        plan_conversion(source, out, to="safetensors")
    with pytest.raises(tw.MemoryConfigError, match=r"(?s)8 tensors cannot be converted.*w0 and 7 more: "):
        plan_conversion(source, out, shard="height", grid=[4, 1], shard_shape=[25, 40], dtype="bfloat16")
    with pytest.raises(tw.FormatError, match="tensors are skipped"):
        plan_conversion(source, out, skip=True)
    with pytest.raises(tw.MemoryConfigError, match="chip"):
        plan_conversion(source, out, to="banks")
    with pytest.raises(tw.FormatError, match="float16"):
        plan_conversion(source, out, dtype="float16")
    with pytest.raises(tw.FormatError, match="cannot store"):
        plan_conversion(source, out, to="npy", dtype="bfloat8_b")
    with pytest.raises(tw.LayoutError, match="transpose"):
        plan_conversion(source, out, transpose=[0, 1, 2])
    assert not out.exists()


def test_the_smallest_slab_must_fit(tmp_path):
    write_safetensors(tmp_path / "x.safetensors", {"x": np.ones((64, 300_000), np.uint8)})
    with pytest.raises(tw.OutOfMemory, match="smallest slab"):
        tw.convert(
            tmp_path / "x.safetensors", tmp_path / "out", "banks", layout="row_major", chip="n150", memory=LITTLE
        )
    with pytest.raises(tw.MemoryConfigError, match="expected at least"):
        tw.convert(tmp_path / "x.safetensors", tmp_path / "out", memory=1000)
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


def test_parts_cover_the_plan(tmp_path):
    rng = np.random.default_rng(1)
    held = {f"w{k}": np.ones((int(rng.integers(1, 200)), 10), np.float32) for k in range(20)}
    write_safetensors(tmp_path / "x.safetensors", held)
    plan = plan_conversion(tmp_path / "x.safetensors", tmp_path / "out")
    for n in (1, 2, 3, 7, 30):
        parts = [plan.part(i, n) for i in range(n)]
        assert sorted(item.name for part in parts for item in part) == sorted(held)
        loads = [sum(item.bytes_in for item in part) for part in parts]
        assert max(loads) - min(loads) <= max(item.bytes_in for item in plan.items)
    with pytest.raises(tw.MemoryConfigError, match="part 3 of 3"):
        plan.part(3, 3)


def test_the_plan_in_numbers(tmp_path):
    write_safetensors(tmp_path / "x.safetensors", {"x": np.ones((60, 90), np.float32)})
    plan = plan_conversion(tmp_path / "x.safetensors", tmp_path / "o.safetensors", dtype="bfloat8_b")
    assert plan.bytes_in == 60 * 90 * 4
    run_plan(plan)
    assert plan.bytes_out == (tmp_path / "o.safetensors").stat().st_size
    assert plan.padding_bytes == 6 * 1088 - 60 * 90 * 1088 // 1024
    assert plan.seconds() > 0
