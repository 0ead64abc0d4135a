# SPDX-License-Identifier: Apache-2.0
"""Weight caches that the real tt_transformers wrote, and the checkpoints that they were made from, bit for bit."""

import hashlib
import json
import lzma
from functools import cache
from math import prod
from pathlib import Path

import numpy as np

from tilewright import format_of
from tilewright.conversion.cache import Checkpoint
from tilewright.conversion.text_tower import merge_text_config, rename
from tilewright.copying.assembly import Assembly

FOLDER = Path(__file__).parents[1] / "golden" / "weight_cache"
STORED = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
CHUNK = 1 << 20


@cache
def records():
    """Return all records by name."""
    files = [FOLDER / f"{name}.json.xz" for name in ("records", "families")]
    return {name: record for file in files for name, record in json.loads(lzma.decompress(file.read_bytes())).items()}


def list_tensors(checkpoint):
    """Yield the name, shape and center of the values of every tensor of a checkpoint, in the order of its file."""
    if "tensors" in checkpoint:  # of a family with a list, not a rule
        yield from [(name, tuple(shape), around) for name, shape, around in checkpoint["tensors"]]
        return
    config, family = checkpoint["config"], checkpoint["family"]
    dim, hidden, vocabulary = (config[key] for key in ("hidden_size", "intermediate_size", "vocab_size"))
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    width = config.get("head_dim") or dim // heads
    around = 0 if family == "gemma2" else 1
    rows = {"q": heads * width, "k": groups * width, "v": groups * width}
    yield "model.embed_tokens.weight", (vocabulary, dim), 0
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        attention, network = f"{prefix}.self_attn", f"{prefix}.mlp"
        yield f"{prefix}.input_layernorm.weight", (dim,), around
        if family == "phi3":
            yield f"{attention}.qkv_proj.weight", (sum(rows.values()), dim), 0
        else:
            for name, count in rows.items():
                yield f"{attention}.{name}_proj.weight", (count, dim), 0
                if family == "qwen2":
                    yield f"{attention}.{name}_proj.bias", (count,), 0
        if family == "qwen3":
            yield f"{attention}.q_norm.weight", (width,), 1
            yield f"{attention}.k_norm.weight", (width,), 1
        yield f"{attention}.o_proj.weight", (dim, heads * width), 0
        yield f"{prefix}.post_attention_layernorm.weight", (dim,), around
        if family == "gemma2":
            yield f"{prefix}.pre_feedforward_layernorm.weight", (dim,), around
            yield f"{prefix}.post_feedforward_layernorm.weight", (dim,), around
        if family == "mixtral":
            yield f"{prefix}.block_sparse_moe.gate.weight", (config["num_local_experts"], dim), 0
            for expert in range(config["num_local_experts"]):
                for name, shape in {"w1": (hidden, dim), "w2": (dim, hidden), "w3": (hidden, dim)}.items():
                    yield f"{prefix}.block_sparse_moe.experts.{expert}.{name}.weight", shape, 0
            continue
        if family == "phi3":
            yield f"{network}.gate_up_proj.weight", (2 * hidden, dim), 0
        else:
            yield f"{network}.gate_proj.weight", (hidden, dim), 0
            yield f"{network}.up_proj.weight", (hidden, dim), 0
        yield f"{network}.down_proj.weight", (dim, hidden), 0
    yield "model.norm.weight", (dim,), around
    if not config.get("tie_word_embeddings"):
        yield "lm_head.weight", (vocabulary, dim), 0


def random_words(key, first, count):
    """Return words of the generator SplitMix64, counted from the hash of a key."""
    seed = np.uint64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little"))
    with np.errstate(over="ignore"):
        bits = seed + np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        return bits ^ (bits >> np.uint64(31))


def values(checkpoint, name, shape, around):
    """Yield the stored values of a tensor: a sum of three numbers, some of them scaled, some zero."""
    for first in range(0, prod(shape), CHUNK):
        words = random_words(f"{checkpoint['seed']}:{name}", first, min(CHUNK, prod(shape) - first))
        parts = [(words >> np.uint64(shift) & np.uint64(0xFFF)).astype(np.int32) for shift in (0, 12, 24)]
        choice = (words >> np.uint64(36) & np.uint64(0x1FF)).astype(np.int32)
        exponent = np.full(len(words), -15, np.int32)
        exponent[choice % 64 == 1] = -24
        exponent[choice == 0] = -9
        total = np.where(choice % 256 == 2, 0, sum(parts) - 6142).astype(np.float32)
        numbers = np.ldexp(total, exponent) + np.float32(around)
        yield numbers.astype(format_of(STORED[checkpoint["store"]]).dtype)


def write_checkpoint(checkpoint, folder):
    """Write a checkpoint into a folder, as Hugging Face does, and return the SHA-256 of all its values."""
    home = Path(folder) / checkpoint["name"]
    home.mkdir(parents=True)
    (home / "config.json").write_text(json.dumps(checkpoint["config"]), encoding="utf-8")
    tensors, count, digest = list(list_tensors(checkpoint)), checkpoint.get("files", 1), hashlib.sha256()
    size, per_file, index = format_of(STORED[checkpoint["store"]]).itemsize, -(-len(tensors) // count), {}
    for number in range(count):
        own = tensors[number * per_file : (number + 1) * per_file]
        file = "model.safetensors" if count == 1 else f"model-{number + 1:05}-of-{count:05}.safetensors"
        header, end = {}, 0
        for name, shape, _ in own:
            header[name] = {
                "dtype": checkpoint["store"],
                "shape": shape,
                "data_offsets": (end, end + prod(shape) * size),
            }
            end, index[name] = end + prod(shape) * size, file
        text = json.dumps(header).encode()
        with (home / file).open("wb") as opened:
            opened.write(len(text).to_bytes(8, "little") + text)
            for tensor in own:
                for piece in values(checkpoint, *tensor):
                    digest.update(piece.tobytes())
                    opened.write(piece.tobytes())
    if count > 1:
        (home / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}), encoding="utf-8")
    return digest.hexdigest()


def describe_checkpoint(record):
    """Return the checkpoint of a record by the names, shapes and types of its tensors alone."""
    checkpoint = record["checkpoint"]
    shapes = {rename(name): shape for name, shape, _ in list_tensors(checkpoint)}
    return Checkpoint(
        record["run"]["HF_MODEL"],
        merge_text_config(checkpoint["config"]),
        {name: Assembly.of(name, shape) for name, shape in shapes.items()},
        dict.fromkeys(shapes, format_of(STORED[checkpoint["store"]])),
    )


def cache_options(record):
    """Return the options of a recorded run, as `prepare` takes them."""
    run = record["run"]
    options = {
        "optimizations": run["optimizations"],
        "model_dtype": run["dtype"],
        "hf_rope": run["use_hf_rope"],
        "mesh": run["mesh_shape"],
        "instruct": "instruct" in record["directory"],
        "max_batch_size": run["max_batch_size"],
    }
    if "PAD_MLP_CORES" in run["environment"]:
        options["pad_mlp_cores"] = int(run["environment"]["PAD_MLP_CORES"])
    return options
