# SPDX-License-Identifier: Apache-2.0
"""The vectors recorded from TTL: their cases, and TTL's values in them."""

import json
from pathlib import Path

import numpy as np
import pytest

from tilewright import ttl

FOLDER = Path(__file__).parent.parent / "golden" / "ttl"
TYPES = {
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
}


def cases(name):
    """Return the cases of every file of that name, as parameters of a test; other recordings may lie beside."""
    found = []
    for path in sorted(FOLDER.glob(f"{name}*.json")):
        found += json.loads(path.read_text(encoding="utf-8"))["cases"]
    assert found, f"no golden cases in {FOLDER}/{name}*.json"
    return [pytest.param(case, id=case["id"]) for case in found]


def quirk(name):
    return next(case.values[0] for case in cases("quirks") if case.id == name)


def tiler_of(case, tile="tile"):
    return ttl.create_overlap_tiler(
        ttl.create_shape(*case["space"]),
        ttl.create_shape(*case[tile]),
        ttl.create_overlap(*case["overlap"]),
        ttl.create_augmentation(*case["augmentation"]),
    )


def numbers(tile):
    """Return a tile as the vectors write it."""
    at, box = tile.offset, tile.shape
    return [at.x, at.y, at.z, box.width, box.height, box.depth]


def tilers_of(case):
    """Return the input and the output tiler of a kernel: compute tile plus halo, and compute tile."""
    space, compute = ttl.create_shape(*case["space"]), case["compute_tile"]
    larger = [a + b for a, b in zip(compute, case["overlap"], strict=True)]
    reading = ttl.create_overlap_tiler(
        space,
        ttl.create_shape(*larger),
        ttl.create_overlap(*case["overlap"]),
        ttl.create_augmentation(*case["augmentation"]),
    )
    return reading, ttl.create_tiler(space, ttl.create_shape(*compute))
