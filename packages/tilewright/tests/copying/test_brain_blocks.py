# SPDX-License-Identifier: Apache-2.0
"""bfloat16 packed to scaled blocks by the native library, which has integer kernels for it, equals the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import formats, row_major
from tilewright.copying import Placement, execute, native, plan_copy
from tilewright.copying.native import NativeRunner
from tilewright.layout import tiled_layout

SCALED = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4")
SHAPE = (256, 1024)

pytestmark = pytest.mark.skipif(not native.is_available(), reason="needs the native library")


def brains(spread: int, seed: int) -> np.ndarray[Any, Any]:
    """Return bfloat16 whose exponents are up to `spread` below one that groups of two rows by 16 columns share."""
    rng = np.random.default_rng(seed)
    height, width = SHAPE
    top = rng.integers(0, 255, (height // 2, width // 16)).repeat(2, 0).repeat(16, 1)
    exponent = np.clip(top - rng.integers(0, spread, SHAPE), 0, 254)
    fraction = rng.integers(0, 128, SHAPE) & rng.choice([0x7F, 0x78, 0x70, 0x60, 0x40], SHAPE)  # many ties
    bits = rng.integers(0, 2, SHAPE) << 15 | exponent << 7 | fraction
    bits[rng.random(SHAPE) < 0.05] &= 0x8000
    bits[:, :64] = 0
    if seed % 2:
        special = rng.random(SHAPE) < 1e-3
        bits[special] = rng.choice([0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81], int(special.sum()))
    values: np.ndarray[Any, Any] = bits.astype(np.uint16).view(formats.bfloat16.dtype)
    return values


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("past", [0, 16, 5])
def test_packing_is_that_of_the_reference_wherever_the_target_starts(name: str, tiled: bool, past: int) -> None:
    layout = tiled_layout(SHAPE) if tiled else row_major(*SHAPE)
    place = Placement(layout, name, tile_elements=1024)
    plan = plan_copy(Placement(row_major(*SHAPE), "bfloat16"), place)
    memory = np.empty(place.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + past
    for seed, spread in enumerate((3, 8, 14, 24, 40)):
        values = brains(spread, seed)
        wanted = np.zeros(place.nbytes, np.uint8)
        execute(plan, values.reshape(-1).view(np.uint8), wanted, engine="reference")
        for streaming in (False, True):
            memory[:] = 0xEE
            NativeRunner(plan, 1, streaming)(values.ctypes.data, memory.ctypes.data + start)
            np.testing.assert_array_equal(memory[start : start + place.nbytes], wanted)
            assert (memory[:start] == 0xEE).all()
            assert (memory[start + place.nbytes :] == 0xEE).all()
