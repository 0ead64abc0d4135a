# SPDX-License-Identifier: Apache-2.0
"""`capacity`: against what the real ttnn allocated until it refused, and a catalogue of models that are served."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.conversion import capacity, list_machines, solve_precision
from tilewright.errors import TilewrightError

from ..cases import examples

GOLDEN = Path(__file__).parents[1] / "golden" / "capacity"
CASES = json.loads((GOLDEN / "allocations_public.json").read_text())["cases"]
ROWS = json.loads((GOLDEN / "catalogue_public.json").read_text())["rows"]
MODELS = json.loads((GOLDEN / "models.json").read_text())["models"]
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072,
}  # fmt: skip
NAMES = {  # of the numbers of a model, in config.json
    "hidden": "hidden_size", "layers": "num_hidden_layers", "heads": "num_attention_heads", "vocab": "vocab_size",
    "kv_heads": "num_key_value_heads", "intermediate": "intermediate_size", "head_dim": "head_dim",
    "tied_embeddings": "tie_word_embeddings", "max_position_embeddings": "max_position_embeddings",
    "experts": "num_local_experts", "routed_experts": "n_routed_experts", "shared_experts": "n_shared_experts",
    "moe_intermediate": "moe_intermediate_size", "dense_layers_first": "first_k_dense_replace",
    "sliding_window": "sliding_window", "global_head_dim": "global_head_dim",
    "global_kv_heads": "num_global_key_value_heads", "attention_bias": "attention_bias",
}  # fmt: skip
KNOWN = {"llama": "llama", "mistral": "mistral", "qwen2": "qwen2", "qwq": "qwen2", "qwen3-": "qwen3"}
OTHERS = {"gemma-3": "gemma3_text", "gemma-4": "gemma4", "gpt-oss": "gpt_oss", "deepseek-r1-0": "deepseek_v3"}


def tensors_of(case):
    """Return the weights of a recorded case, and the cache of one block or user."""
    weights = []
    for weight in case["weights"]:
        shape, memory = weight["shape"], "dram"
        if weight["memory"] != "interleaved":
            banks = case["banks"]
            memory = tw.width_sharded((banks, 1), (shape[-2], -(-shape[-1] // (32 * banks)) * 32), buffer_type="dram")
        layout = weight.get("layout", "TILE")
        weights.append((tw.TensorSpec(shape, weight["dtype"], layout, memory=memory), weight["count"]))
    rows = case.get("block_size") or case["max_seq_len"]
    shape = (1, case["kv_heads_per_device"], rows, case["head_dim"])
    return weights, tw.TensorSpec(shape, case["kv_dtype"], "tile", memory="dram")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_as_many_fit_as_ttnn_could_allocate(case):
    weights, cache = tensors_of(case)
    layers, machine = case["layers"] * case.get("tensors_per_layer", 2), case["board"].split("_")[1]
    report = capacity(weights, machine, cache=cache, cache_count=layers, trace_region_size=case["trace_region_size"])
    assert report.largest == case["largest"]
    if case["largest"] is None:
        assert report.refusal.placed == case["weights_placed"]
        return
    assert report.bank_bytes == case["bank_bytes"]
    assert report.used(block=case["largest"]) == case["allocated_per_bank_at_largest"]
    refusal = dataclasses.replace(report, blocks=case["largest"] + 1).refusal
    message = case["error_at_largest_plus_1"]
    assert refusal.needed == int(re.search(r"store (\d+) B", message)[1])
    assert refusal.free == int(re.search(r"free: (\d+) B", message)[1])
    assert refusal.placed == case["weights_tensors"] + case["tensors_placed_before_error"]


def config_of(name):
    """Return the config.json of a model of the catalogue, None if its numbers are not known."""
    short = name.split("/")[1].removesuffix("-Instruct")
    model = next((MODELS[key] for key in MODELS if key.split("/")[1].removesuffix("-Instruct") == short), None)
    if model is None:
        return None
    lower = name.lower()
    kinds = [kind for words in (OTHERS, KNOWN) for word, kind in words.items() if word in lower]
    config = {"_name_or_path": name, "model_type": (kinds or ["another"])[0]}
    config |= {NAMES[key]: value for key, value in model.items() if key in NAMES}
    config |= {
        key: value for key, value in model.items() if key.startswith(("linear", "full_", "q_", "kv_lora", "qk", "v_"))
    }
    if isinstance(model.get("layer_types"), dict):
        config["layer_types"] = [kind for kind, count in model["layer_types"].items() for _ in range(count)]
    return config


ASKED = [row for row in ROWS if row["device"] not in ("GPU", "DUAL_GALAXY", "QUAD_GALAXY", "SUPER_CLUSTER")]


@pytest.mark.parametrize("model", sorted({row["model"] for row in ASKED if config_of(row["model"])}))
def test_what_is_served_fits(model):
    config = config_of(model)
    for row in [row for row in ASKED if row["model"] == model]:
        report = capacity(
            config,
            row["device"],
            users=row["max_concurrency"],
            context=row["max_context"],
            block_size=row["block_size"] or 64,
            replicas=row["data_parallel_size"] or 1,
            trace_region_size=row["trace_region_size"],
        )
        assert report.fits or report.is_estimate, row
        assert report.is_estimate or config["model_type"] in KNOWN.values(), row
        again = capacity(
            config, row["device"], users=row["max_concurrency"], context=100 * row["max_context"] * 64
        )  # scaled up until nothing holds it
        assert not again.fits
        assert again.shortfall == again.used() - again.bank_bytes > 0
        assert f"each bank lacks {again.shortfall} bytes (" in str(again)


def test_shared_tokens_are_those_of_tt_transformers():
    for name, machine, tokens in [
        ("Llama-3.1-8B-Instruct", "N150", 32768), ("Llama-3.1-8B-Instruct", "N300", 131072),
        ("Llama-3.1-8B-Instruct", "P150", 131072), ("Mistral-7B-v0.3", "N150", 65536), ("Other-8B", "N150", 131072),
    ]:  # fmt: skip
        report = capacity(LLAMA, machine, users=32, hf_model=name)
        assert (report.blocks - 32) * report.block_size == tokens
        assert report.context == tokens
    assert capacity(LLAMA, "N150", context=200_000).blocks == -(-200_000 // 64) + 1
    with pytest.raises(
        tw.FormatError, match="a context of 4096 tokens is more than the 1024 tokens that all users share"
    ):
        capacity(LLAMA, "N150", context=4096, tokens=1024)


def test_the_largest_numbers_fit_and_one_more_does_not():
    for machine, replicas in (("N150", 1), ("T3K", 1), ("T3K", 4), ("P150x4", 2)):
        report = capacity(LLAMA, machine, users=2 * replicas, context=16384, replicas=replicas)
        users, context = report.solve("users"), report.solve("context")
        assert users.fits
        assert context.fits
        assert users.users * replicas == report.largest_users
        assert context.context == report.largest_context
        assert users.blocks == users.users * (16384 // 64 + 1)  # one that each has begun
        assert context.blocks == context.context // 64 + report.users
        more = report.largest_users // replicas + 1
        assert report.used(block=-(-more * 16384 // 64) + more, user=more) > report.bank_bytes
        asked = capacity(LLAMA, machine, users=2 * replicas, context=context.context + 64, replicas=replicas)
        assert not asked.fits
    with pytest.raises(tw.FormatError, match="expected users or context to solve for, got 'money'"):
        report.solve("money")


def test_every_change_that_is_offered_is_enough():
    report = capacity(LLAMA, "N150", users=32, context=131072, hf_model="Llama-3.1-8B")
    changes = list(report.changes())
    assert not report.fits
    assert [change.split()[0] for change in changes] == ["KV", "77120", "N300:"]
    assert capacity(LLAMA, "N150", users=32, context=131072, kv_dtype="bfloat4_b").fits
    assert capacity(LLAMA, "N150", users=32, context=77120, hf_model="Llama-3.1-8B").fits
    assert capacity(LLAMA, "N300", users=32, context=131072).fits
    assert not list(capacity(LLAMA, "N150", tokens=32768).changes())


def test_kinds_of_attention_are_counted_as_they_are():
    base = {**LLAMA, "model_type": "another", "num_hidden_layers": 8}
    cases = {
        "full": ({}, 8 * 2, (1, 8, 64, 128)),
        "one head": ({"num_key_value_heads": 1}, 8 * 2, (1, 1, 64, 128)),
        "all heads": ({"num_key_value_heads": None}, 8 * 2, (1, 32, 64, 128)),
        "latent": ({"kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128}, 8, (1, 1, 64, 576)),
    }
    for more, count, shape in cases.values():
        [cache] = [each for each in capacity({**base, **more}, "N150").demands if each.kind == "KV cache"]
        assert (cache.count, cache.spec.shape.logical) == (count, shape)
    linear = {
        "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "full_attention_interval": 4,
    }  # fmt: skip
    report = capacity({**base, **linear}, "N300", users=4)
    state, conv = [each for each in report.demands if each.kind == "state"]
    assert (state.count, state.spec.shape.logical, state.per) == (6, (1, 16, 128, 128), "user")
    assert conv.bytes_per_bank({"user": 4}) > conv.bytes_per_bank({"user": 1})
    sliding = {
        "model_type": "gemma4",
        "layer_types": ["sliding_attention"] * 7 + ["full_attention"],
        "sliding_window": 512,
    }
    windows, full = [each for each in capacity({**base, **sliding}, "N150").demands if each.kind == "KV cache"]
    assert (windows.per, windows.count, full.per, full.count) == ("user", 14, "block", 2)
    shared = {"layer_types": ["conv"] * 3 + ["full_attention"] * 5, "num_kv_shared_layers": 2}
    report = capacity({**base, **shared}, "N150")
    assert [each.count for each in report.demands if each.kind == "KV cache"] == [2 * (5 - 2)]
    assert "3 layers of kind 'conv': what they keep of users is not counted" in report.notes


def test_layers_with_formats_of_their_own_are_counted_once():
    report = capacity(LLAMA, "N150", hf_model="Llama-3.1-8B-Instruct")
    counts = {(each.name, each.spec.dtype.name): each.count for each in report.demands if each.kind == "weights"}
    assert counts["attention.wqkv_sharded_2d", "bfloat8_b"] == 32
    assert counts["feed_forward.w1_sharded", "bfloat4_b"] == 31
    assert counts["feed_forward.w1_sharded", "bfloat8_b"] == 1  # the last layer of this very model
    plain = capacity(LLAMA, "N150", hf_model="Llama-3.1-8B")
    assert {each.count for each in plain.demands if "feed_forward" in each.name} == {32}


def test_what_an_estimate_does_not_read_is_said():
    config = {**LLAMA, "model_type": "another", "text_config": {"per_layer_inputs": 256, "bos_token_id": 5}}
    notes = " ".join(capacity({**config, "vision_config": {"depth": 32}}, "P150").notes)
    assert "not read in config.json, so not counted if they add weights: vision_config, per_layer_inputs" in notes
    assert "bos_token_id" not in notes
    assert "not read" not in " ".join(capacity(LLAMA, "P150").notes)


@st.composite
def requests(draw):
    """Return weights with their numbers, and a block of a cache with the number of such tensors."""
    weights = []
    for _ in range(draw(st.integers(0, 4))):
        dtype = draw(st.sampled_from(["bfloat16", "bfloat8_b", "bfloat4_b", "float32"]))
        layout = "tile" if "_b" in dtype else draw(st.sampled_from(["tile", "row_major"]))
        shape = (1, 1, draw(st.integers(1, 9000)), draw(st.integers(1, 9000)))
        weights.append((tw.TensorSpec(shape, dtype, layout, memory="dram"), draw(st.integers(1, 20))))
    shape = (1, draw(st.integers(1, 8)), draw(st.sampled_from([16, 48, 64])), draw(st.sampled_from([72, 128, 576])))
    dtype = draw(st.sampled_from(["bfloat16", "bfloat8_b", "bfloat4_b"]))
    return weights, tw.TensorSpec(shape, dtype, "tile", memory="dram"), 2 * draw(st.integers(1, 20))


def allocates(chip, tensors, trace):
    """Return whether our allocator has space for tensors, one after the other."""
    allocator = tw.Allocator(chip, trace_region_size=trace)
    try:
        for spec, number in tensors:
            for _ in range(number):
                allocator.allocate(spec.with_chip(allocator.chip))
    except tw.OutOfMemory:
        return False
    return True


@given(requests(), st.sampled_from(["n150", "p150", "p100"]), st.sampled_from([0, 1, 50_000_000]))
@examples(25)
def test_the_allocator_has_space_for_the_largest_number_only(asked, chip, trace):
    weights, block, count = asked
    most = capacity(weights, chip, cache=block, cache_count=count, trace_region_size=trace).largest
    if most is None:
        assert not allocates(chip, weights, trace)
        return
    for blocks, fits in ((most, True), (most + 1, False)):
        cache = block.replace(shape=(blocks, *block.shape.logical[1:])) if blocks else None
        tensors = weights if cache is None else [*weights, (cache, count)]
        assert allocates(chip, tensors, trace) == fits


def test_a_model_is_a_folder_or_a_config_or_a_mapping(tmp_path):
    from tilewright.files import write_sample_llama

    folder = tmp_path / "Llama-3.2-1B"
    write_sample_llama(folder)
    config = json.loads((folder / "config.json").read_text())
    whole = capacity(folder, "N300")
    bare = capacity(folder / "config.json", "N300")
    assert whole.used() == bare.used() == capacity({**config, "_name_or_path": "Llama-3.2-1B"}, "N300").used()
    assert "only config.json is known" in bare.notes[0]
    assert not whole.notes
    plan = tw.conversion.plan_cache(folder, None, "N300")
    placed = tw.fit(plan, "n300").memories[0].allocated
    assert sum(each.bytes_per_bank() for each in whole.demands if each.kind == "weights") == placed
    (folder / "model.safetensors").unlink()
    assert capacity(folder, "N300").used() == whole.used()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_size": None}, "config.json: hidden_size is missing"),
        ({"hidden_size": -5}, "config.json: hidden_size is -5; expected a whole number from 1 to 16777216"),
        ({"num_hidden_layers": 10**30}, "config.json: num_hidden_layers is 1000000000000"),
        ({"num_hidden_layers": 5000}, "expected a whole number from 1 to 4096"),
        ({"vocab_size": "many"}, "config.json: vocab_size is 'many'"),
        ({"num_attention_heads": 32.5}, "config.json: num_attention_heads is 32.5"),
        ({"num_attention_heads": True}, "config.json: num_attention_heads is True"),
        ({"layer_types": ["full_attention"] * 3}, "layer_types has 3 layers, but the model has 32"),
        ({"kv_lora_rank": [1]}, r"config.json: kv_lora_rank is \[1\]"),
        ({"intermediate_size": 2**24}, None),
        ({"vocab_size": 2**24}, None),
    ],
)
@pytest.mark.parametrize("model_type", ["llama", "another"])
def test_hostile_numbers_get_a_clear_error(change, words, model_type):
    config = {**LLAMA, "model_type": model_type, **change}
    if words is None:
        assert not capacity(config, "N150").fits
        return
    with pytest.raises(TilewrightError, match=words):
        capacity(config, "N150")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"users": 0}, "users is a number of at least 1, got 0"),
        ({"context": -1}, "context is a number of at least 1, got -1"),
        ({"replicas": 3}, "N150 has 1 device, which 3 replicas cannot share"),
        ({"optimizations": "best"}, "expected performance, accuracy, a decoder config"),
        ({"layers": [0]}, "counts all layers"),
        ({"blocks": 5}, "cache, cache_count and blocks are for specs"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(TilewrightError, match=words):
        capacity(LLAMA, "N150", **arguments)


def test_what_is_not_used_is_refused():
    weight = tw.TensorSpec((1, 1, 64, 64), "bfloat16", "tile", memory="dram")
    for more in ({"users": 8}, {"context": 4}, {"optimizations": "accuracy"}, {"kv_dtype": "bfloat8_b"}):
        with pytest.raises(tw.FormatError, match="specs have no users, context or formats"):
            capacity([weight], "N150", **more)
    with pytest.raises(tw.FormatError, match="solving for the precision chooses the optimizations"):
        solve_precision(LLAMA, "N150", optimizations="accuracy")


def test_all_machines_and_the_most_exact_precision():
    reports = list_machines({**LLAMA, "_name_or_path": "Llama-3.1-70B", "num_hidden_layers": 80}, context=131072)
    assert not reports["N150"].fits
    assert reports["T3K"].fits
    assert reports["N150"].is_estimate  # since tt_transformers refuses it there
    assert solve_precision(LLAMA, "T3K")[0] == "accuracy"
    assert solve_precision(LLAMA, "N300")[0] == "performance"


def test_what_is_said():
    text = str(capacity(LLAMA, "N150", users=32, context=4096, tokens=32768))
    for words in ("fits N150 with 32 users:", "recipe tt_transformers", "are not counted", "only config.json is known"):
        assert words in text
    estimate = str(capacity({**LLAMA, "model_type": "another"}, "P150", users=32))
    assert estimate.startswith("by an estimate, ")
    assert "recipe tt_transformers has no family for model_type 'another'" in " ".join(estimate.split())
