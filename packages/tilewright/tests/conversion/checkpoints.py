# SPDX-License-Identifier: Apache-2.0
"""A checkpoint to convert, other processes that convert it, and what they leave."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from ..files.samples import write_safetensors


def checkpoint(path, tensors=12, rows=400, columns=300):
    """Write a checkpoint of several tensors, some of which take several slabs."""
    rng = np.random.default_rng(7)
    held = {
        f"layer.{k}.weight": rng.standard_normal((rows + 40 * k, columns)).astype(np.float32) for k in range(tensors)
    }
    held["norm.bias"] = rng.standard_normal(50).astype(np.float32)
    return write_safetensors(path, held)


def command(*arguments):
    return [sys.executable, "-m", "tilewright", "convert", *map(str, arguments)]


def started(*arguments, **variables):
    """Return a process that converts, with what it says kept."""
    environment = {**os.environ, **variables}
    return subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def converted(*arguments):
    """Return a finished process that has converted."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False)


def contents(out):
    """Return the hash of every file of an output, hidden ones too."""
    out = Path(out)
    files = sorted(out.rglob("*")) if out.is_dir() else [out, *out.parent.glob(f".{out.name}*")]
    return {
        str(each.relative_to(out.parent)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in files
        if each.is_file()
    }
