# SPDX-License-Identifier: Apache-2.0
"""What people wait for: whole processes, the best of several turns, each beside what it cannot be faster than.

    python bench/waits.py                       # all but `prepare`
    python bench/waits.py --only opening fit
    python bench/waits.py --only prepare --folder /a/folder/on/a/disk

The checkpoints have the names, types and shapes of DeepSeek-V3 (90,427 tensors in 163 files, FP8 with scales), of twice
as many of its layers in bfloat16, and of a Llama of 10,000 layers, and no data: their files have holes. What they are
compared with is `json.loads` of the same headers in a process of its own, and `import numpy`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from math import prod
from pathlib import Path

TURNS = 5
TILEWRIGHT = [sys.executable, "-m", "tilewright"]
NUMPY = [sys.executable, "-c", "import numpy"]
HEADERS = """
import json, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.safetensors")):
    with path.open("rb") as file:
        json.loads(file.read(int.from_bytes(file.read(8), "little")))
"""
BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1}
Entry = tuple[str, str, tuple[int, ...]]

SHELL = {
    "show (4,8):(8,1)": ["show", "(4,8):(8,1)"],
    "show 4096x4096 --dtype bfloat8_b": ["show", "4096x4096", "--dtype", "bfloat8_b"],
    "explain 4x60x90 --at 2,33,17": ["explain", "4x60x90", "--at", "2,33,17"],
    "fit 4096x4096": ["fit", "4096x4096"],
    "translate bf16[256,512]{1,0:T(8,128)(2,1)}": ["translate", "bf16[256,512]{1,0:T(8,128)(2,1)}"],
}


def linear(name: str, rows: int, columns: int, is_fp8: bool) -> Iterator[Entry]:
    """Yield a weight, and the scales of its blocks of 128 x 128."""
    yield f"{name}.weight", "F8_E4M3" if is_fp8 else "BF16", (rows, columns)
    if is_fp8:
        yield f"{name}.weight_scale_inv", "F32", (-(-rows // 128), -(-columns // 128))


def deepseek(layers: int, is_fp8: bool) -> Iterator[Entry]:
    """Yield the tensors of DeepSeek-V3, with some number of layers."""
    yield "model.embed_tokens.weight", "BF16", (129280, 7168)
    for layer in range(layers):
        base = f"model.layers.{layer}"
        for name, width in (("input_layernorm", 7168), ("post_attention_layernorm", 7168)):
            yield f"{base}.{name}.weight", "BF16", (width,)
        for name, width in (("q_a_layernorm", 1536), ("kv_a_layernorm", 512)):
            yield f"{base}.self_attn.{name}.weight", "BF16", (width,)
        shapes = {"q_a_proj": (1536, 7168), "q_b_proj": (24576, 1536), "kv_a_proj_with_mqa": (576, 7168)}
        for name, shape in (shapes | {"kv_b_proj": (32768, 512), "o_proj": (7168, 16384)}).items():
            yield from linear(f"{base}.self_attn.{name}", *shape, is_fp8)
        experts, hidden = [""], 18432
        if layer >= 3:
            yield f"{base}.mlp.gate.weight", "BF16", (256, 7168)
            yield f"{base}.mlp.gate.e_score_correction_bias", "F32", (256,)
            experts, hidden = [*(f"experts.{k}." for k in range(256)), "shared_experts."], 2048
        for expert in experts:
            yield from linear(f"{base}.mlp.{expert}gate_proj", hidden, 7168, is_fp8)
            yield from linear(f"{base}.mlp.{expert}up_proj", hidden, 7168, is_fp8)
            yield from linear(f"{base}.mlp.{expert}down_proj", 7168, hidden, is_fp8)
    yield "model.norm.weight", "BF16", (7168,)
    yield "lm_head.weight", "BF16", (129280, 7168)


def llama(layers: int) -> Iterator[Entry]:
    """Yield the tensors of a narrow Llama."""
    yield "model.embed_tokens.weight", "BF16", (1024, 64)
    shapes = {f"self_attn.{name}_proj": (64, 64) for name in "qkvo"}
    shapes |= {"mlp.gate_proj": (128, 64), "mlp.up_proj": (128, 64), "mlp.down_proj": (64, 128)}
    for layer in range(layers):
        for name, shape in shapes.items():
            yield f"model.layers.{layer}.{name}.weight", "BF16", shape
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"model.layers.{layer}.{name}.weight", "BF16", (64,)
    yield "model.norm.weight", "BF16", (64,)
    yield "lm_head.weight", "BF16", (1024, 64)


def write_checkpoint(folder: Path, entries: list[Entry], shards: int, config: dict[str, object]) -> None:
    """Write the headers of a checkpoint, with holes in place of the data, an index and a config.json."""
    folder.mkdir()
    weight_map, size = {}, -(-len(entries) // shards)
    for first in range(0, len(entries), size):
        header, at = {}, 0
        name = f"model-{first // size:05}.safetensors"
        for tensor, kind, shape in entries[first : first + size]:
            end = at + prod(shape) * BYTES[kind]
            header[tensor] = {"dtype": kind, "shape": shape, "data_offsets": [at, end]}
            weight_map[tensor], at = name, end
        text = json.dumps(header).encode()
        with (folder / name).open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + at)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "config.json").write_text(json.dumps(config))


def write_checkpoints(folder: Path) -> dict[str, Path]:
    """Write the three checkpoints, and return their folders."""
    config: dict[str, object] = {"model_type": "deepseek_v3", "torch_dtype": "bfloat16", "num_hidden_layers": 61}
    fp8 = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
    write_checkpoint(folder / "fp8", list(deepseek(61, True)), 163, config | {"quantization_config": fp8})
    write_checkpoint(folder / "bf16", list(deepseek(120, False)), 163, config)
    write_checkpoint(folder / "narrow", list(llama(10_000)), 40, {"model_type": "llama"})
    return {name: folder / name for name in ("fp8", "bf16", "narrow")}


def best_times(commands: dict[str, list[str]]) -> dict[str, float]:
    """Return the best time of each process in seconds, taking turns."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(TURNS):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def print_table(title: str, commands: dict[str, list[str]]) -> None:
    """Print the seconds of some commands."""
    print(f"\n{title:<58}{'seconds':>10}")
    for name, seconds in best_times(commands).items():
        print(f"{name:<58}{seconds:>10.2f}", flush=True)


def verb_rows(verb: list[str], checkpoints: dict[str, Path], *options: str) -> dict[str, list[str]]:
    """Return the commands of a verb for each checkpoint, each after the headers alone."""
    rows = {}
    for name, folder in checkpoints.items():
        rows[f"{name}: json.loads of the headers"] = [sys.executable, "-c", HEADERS, str(folder)]
        rows[f"{name}: {' '.join(verb)}"] = [*TILEWRIGHT, *verb, str(folder), *options]
    return rows


def time_prepare(folder: Path) -> None:
    """Print the table of `bench/convert.py` for the weight cache of Llama-3.2-1B."""
    script = Path(__file__).with_name("convert.py")
    command = [sys.executable, str(script), "--only", "prepare", "--machines", "N150", "--folder", str(folder)]
    subprocess.run(command, check=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["opening", "fit", "recipe", "shell", "prepare"]
    parser.add_argument("--only", nargs="+", choices=names, default=names[:-1])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        checkpoints = write_checkpoints(Path(name))
        os.chdir(name)
        numpy = {"python -c 'import numpy'": NUMPY}
        if "opening" in given.only:
            print_table("opening 90,000 tensors", numpy | verb_rows(["inspect"], checkpoints))
        if "fit" in given.only:
            print_table("whether 90,000 tensors fit a chip", numpy | verb_rows(["fit"], checkpoints))
        if "recipe" in given.only:
            dry_run = [*TILEWRIGHT, "prepare", "fp8", "--for", "T3K", "--dry-run"]
            capacity = [*TILEWRIGHT, "fit", "fp8", "--for", "T3K"]
            print_table("no recipe for this family", numpy | {"prepare --dry-run": dry_run, "fit --for": capacity})
        if "shell" in given.only:
            print_table("a shell", numpy | {name: [*TILEWRIGHT, *words] for name, words in SHELL.items()})
    if "prepare" in given.only:
        time_prepare(given.folder)


if __name__ == "__main__":
    main()
