# SPDX-License-Identifier: Apache-2.0
"""How long `match` takes for very many tensors, renamed and some of them turned, and the memory that it needs.

python bench/matching.py [NUMBER OF TENSORS]
"""

from __future__ import annotations

import sys

# A neighbour of this file is called copy, and so is a module of the standard library: keep this folder off the path.
sys.path[:] = [folder for folder in sys.path if not folder.endswith("bench")]

import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from tilewright.conversion import match
from tilewright.files import write_safetensors

SIDE = 64


def write_files(folder: Path, count: int) -> None:
    """Write tensors under one name each, and again under others, in another order, every second one transposed."""
    rng = np.random.default_rng(0)
    a = {f"model.{k}.weight": rng.standard_normal((SIDE, SIDE)).astype(np.float32) for k in range(count)}
    values, order = list(a.values()), rng.permutation(count)
    b = {f"b{k}": np.ascontiguousarray(values[n].T if n % 2 else values[n]) for k, n in enumerate(order)}
    for name, tensors in (("a", a), ("b", b)):
        write_safetensors(folder / f"{name}.safetensors", tensors, {})


def main() -> None:
    """Print the time and the memory, of a process of its own: the one that writes the files needs more."""
    if len(sys.argv) > 2:
        began = time.perf_counter()
        report = match(*sys.argv[1:3])
        took, peak = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{len(report.matches)} tensors of {SIDE}x{SIDE}: {took:.1f} s, at most {peak:.0f} MiB")
        print(f"{len(report.unmatched)} of them not found")
        return
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
        paths = [f"{folder}/{name}.safetensors" for name in "ab"]
        subprocess.run([sys.executable, __file__, *paths], check=True)


if __name__ == "__main__":
    main()
