# SPDX-License-Identifier: Apache-2.0
"""Every file of the caches that the real tt_transformers wrote: its name, spec, mesh and bytes; all with `thorough`."""

import hashlib
import json
import os
import shutil

import pytest

from tilewright.conversion import check_cache, prepare
from tilewright.conversion.cache import WeightCache
from tilewright.files import read_tensorbin
from tilewright.files.manifest import MARKER_PREFIX

from .recorded_caches import cache_options, describe_checkpoint, records, write_checkpoint

BRIEF = (
    "gemma2-N150-performance", "llama31-N300-performance-hf_rope", "llama31_vocab-P150x4-performance",
    "llama_f32-N300-performance", "llama_f32_as_bf16-N150-performance",
    "phi3mini-N150-performance", "qwen25_05b-N300-accuracy",
    "qwen3_06b-N300-performance",
    "gemma1-N300-performance", "gemma3-N150-performance", "mistral3-N300-performance", "mixtral_fused-T3K-performance",
    "mllama-N300-performance", "qwen25vl_new-T3K-performance", "qwen2vl-N300-accuracy", "qwen3vl-N300-performance",
)  # fmt: skip
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
COMPARED = list(records()) if THOROUGH else BRIEF  # some in real size, of several gigabytes


def recorded_spec(spec, mesh):
    """Return a spec and how a mesh shares it, in the words of the records."""
    sharded = spec.memory.shard_spec
    memory = {
        "layout": spec.memory.memory_layout.name,
        "buffer": spec.memory.buffer_type.name,
        "created_with_nd_shard_spec": spec.memory.made_with_nd,
    }
    if sharded is not None:
        grid = [[list(each.start), list(each.end)] for each in sharded.grid]
        shard = {"grid": grid, "shape": list(sharded.shape), "orientation": sharded.orientation.name}
        nested = spec.memory.nd_shard_spec
        memory["shard"] = shard
        memory["nd_shard"] = {
            "grid": grid,
            "shape": list(nested.shape),
            "orientation": nested.orientation.name,
            "strategy": nested.distribution.name,
        }
    return {
        "shape": list(spec.shape.logical),
        "dtype": spec.dtype.name.upper(),
        "layout": spec.page_layout.name,
        "tile": [spec.tile.height, spec.tile.width] if spec.is_tiled else None,
        "alignment": list(spec.alignment or spec.default_alignment),
        "memory": memory,
        "mesh": list(mesh.shape),
        "distribution": list(mesh.topology.distribution),
        "placements": list(mesh.topology.placements),
        "coordinates": [list(device) for device in mesh.topology.coordinates],
        "bytes": spec.nbytes,
        "stored": len(mesh.windows()),
    }


def differences(found, expected):
    """Return what is found otherwise than expected, as far as a record has it: those of later families have less."""
    pairs = {key: (found[key], expected[key]) for key in found.keys() & expected.keys()}
    memory = pairs.pop("memory")
    pairs |= {key: (memory[0].get(key), value) for key, value in memory[1].items()}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def test_every_record_has_the_names_specs_and_meshes_of_the_original():
    files = 0
    for name, record in records().items():
        cache = WeightCache(describe_checkpoint(record), record["run"]["device"], **cache_options(record))
        assert cache.directory == record["directory"], name
        assert f"model_cache/{record['run']['HF_MODEL']}/{cache.directory}" == record["directory_default"], name
        assert {file.file for file in cache.files} == set(record["files"]), name
        for file in cache.files:
            expected = record["files"][file.file]
            assert differences(recorded_spec(file.spec, file.mesh), expected) == {}, f"{name}: {file.file}"
        files += len(record["files"])
    assert files == 1878 + 638


def test_every_recorded_marker_is_written():
    markers = 0
    for name, record in records().items():
        if "marker" not in record:
            continue
        cache = WeightCache(describe_checkpoint(record), record["run"]["device"], **cache_options(record))
        ((file, body),) = cache.marker().items()
        expected = record["marker"]["body"]
        # caches of keys and values depend on batch and length: they are not made, and a marker need not list them
        listed = [each for each in expected["cache_files"] if not each.startswith("kvcache")]
        assert (file, json.loads(body)) == (record["marker"]["name"], {**expected, "cache_files": listed}), name
        markers += 1
    assert markers == 7


@pytest.mark.parametrize("name", COMPARED)
def test_every_payload_is_that_of_the_original(name, tmp_path, monkeypatch):
    record = records()[name]
    monkeypatch.chdir(tmp_path)
    assert write_checkpoint(record["checkpoint"], tmp_path) == record["checkpoint_sha256"]
    report = prepare(record["run"]["HF_MODEL"], "cache", record["run"]["device"], **cache_options(record))
    folder = tmp_path / "cache" / record["directory"]
    assert (folder, report.complete) == (tmp_path / report.out, True)
    written = {path.name for path in folder.iterdir()}
    assert {each for each in written if not each.startswith(MARKER_PREFIX)} == {*record["files"], "tilewright.json"}
    for file, expected in record["files"].items():
        held = read_tensorbin(folder / file)
        hashes = {",".join(map(str, at)): hashlib.sha256(part.data).hexdigest() for at, part in held.shards.items()}
        assert hashes == expected["shards"], file
    assert check_cache("cache", record["run"]["HF_MODEL"], **cache_options(record))
    for each in (folder, tmp_path / record["run"]["HF_MODEL"]):
        shutil.rmtree(each)
