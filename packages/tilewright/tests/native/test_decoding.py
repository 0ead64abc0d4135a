# SPDX-License-Identifier: Apache-2.0
"""The native decoders of quantised codes make the same bits as the NumPy ones."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.copying.native import CODE_NUMBERS, can_decode, decode_codes
from tilewright.formats.blocks import CodeTable
from tilewright.formats.ggml import GGML_TYPES

pytestmark = pytest.mark.skipif(not can_decode("int8"), reason="no native library")
BLOCK_TYPES = [each for each in GGML_TYPES.values() if each.name in CODE_NUMBERS]
TABLES = {
    "e2m1": CodeTable("e2m1", 4),
    "float8_e4m3": CodeTable("float8_e4m3", 8),
    "float8_e5m2": CodeTable("float8_e5m2", 8),
    "int8": CodeTable("int", 8),
}
SPECIAL = np.array([0.0, -0.0, 1.0, -0.37, 1e-45, 2.0**-127, 3e38, np.inf, -np.inf], np.float32)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether numbers have the same bits; NaNs need not."""
    numbers = ~(np.isnan(a) & np.isnan(b))
    return a.shape == b.shape and np.array_equal(a.view(np.uint32)[numbers], b.view(np.uint32)[numbers])


@pytest.mark.parametrize("code", TABLES)
def test_every_code_with_special_scales(code: str) -> None:
    table = TABLES[code]
    codes = np.tile(np.arange(256, dtype=np.uint8), (len(SPECIAL), 1))
    with np.errstate(all="ignore"):
        expected = table.decode(codes) * SPECIAL[:, None]
    columns = expected.shape[1]
    assert same_bits(decode_codes(code, codes, columns, SPECIAL[:, None], (1, columns)), expected)


@pytest.mark.parametrize("code", TABLES)
def test_groups_of_any_size(code: str) -> None:
    rng, table = np.random.default_rng(3), TABLES[code]
    for _ in range(60):
        rows, columns = int(rng.integers(1, 40)), 2 * int(rng.integers(1, 70))
        high, wide = int(rng.integers(1, 20)), 2 * int(rng.integers(1, 30))
        top, left = int(rng.integers(0, high)), 2 * int(rng.integers(0, wide // 2))
        codes = rng.integers(0, 256, (rows, columns * table.bits // 8)).astype(np.uint8)
        down, across = (top + np.arange(rows)) // high, (left + np.arange(columns)) // wide
        scales = rng.normal(size=(down[-1] + 1, across[-1] + 1)).astype(np.float32)
        expected = table.decode(codes) * scales[down[:, None], across]
        made = decode_codes(code, codes, columns, scales, (high, wide), (top, left))
        assert same_bits(made, expected), (code, rows, columns, high, wide, top, left)


@pytest.mark.parametrize("kind", BLOCK_TYPES, ids=lambda kind: kind.name)
def test_blocks_of_ggml(kind) -> None:  # type: ignore[no-untyped-def]
    records = np.random.default_rng(4).integers(0, 256, (3000, kind.nbytes)).astype(np.uint8)
    expected = kind.decode(records)
    made = decode_codes(kind.name, records, kind.elements)
    assert same_bits(made, expected)
    wide = decode_codes(kind.name, records.reshape(100, -1), 30 * kind.elements)
    assert same_bits(wide.reshape(expected.shape), expected)
