# SPDX-License-Identifier: Apache-2.0
"""Atoms of AMX and Tensix against what those machines do, and which elements threads hold."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import LayoutError
from tilewright.analysis import atom_coverage, atoms

TTNN = Path(__file__).parent.parent / "golden" / "ttnn" / "layout.npz"


def store(atom, name, matrix):
    """Return the values of the only thread of an atom that holds the operand of that name, in order."""
    layout, (rows, _) = atom.operand(name)
    columns, row = np.divmod(layout(0, np.arange(layout.mode(1).size)), rows)
    return matrix[row, columns]


AMX_TILES = {8: (np.int8, np.int32, 4), 16: (np.float16, np.float32, 2)}  # bits: element, sum, elements of a dword


def test_amx_multiplies():
    """The tile instruction as Intel describes it: dword n of row m of C adds the products of the bytes or halves of
    dword k of row m of A, and of dword n of row k of B, for each k."""
    random = np.random.default_rng(3)
    names = [name for name in atoms if name.startswith("AMX")]
    assert len(names) == 6
    for name in names:
        atom = atoms[name]
        kind, wide, group = AMX_TILES[8 if "8" in name.split("_")[2] else 16]
        assert atom.shape == (16, 16, 16 * group)
        a = random.integers(-8, 8, (16, 16 * group)).astype(kind)
        b = random.integers(-8, 8, (16 * group, 16)).astype(kind)
        tile_a = store(atom, "A", a).reshape(16, 16, group)  # row, dword, part of it
        tile_b = store(atom, "B", b.T).reshape(16, 16, group)
        assert tile_a[0].nbytes == tile_b[0].nbytes == 64
        tile_c = np.zeros((16, 16), wide)
        for m in range(16):
            for k in range(16):
                tile_c[m] += (tile_a[m, k].astype(wide) * tile_b[k].astype(wide)).sum(axis=1, dtype=wide)
        assert np.array_equal(tile_c.reshape(-1), store(atom, "C", a.astype(wide) @ b.astype(wide))), name


def test_tensix_tiles_are_those_that_ttnn_stores():
    """A is stored as M x K, B as K x N and C as M x N, each as ttnn tilizes a matrix of 32 x 32."""
    atom = atoms["TENSIX_32x32x32"]
    with np.load(TTNN) as recorded:
        cases = [(recorded[f"c{k}_in"].reshape(32, 32), recorded[f"c{k}_phys"]) for k in (1, 2, 6)]
    for matrix, stored in cases:
        for name, operand in (("A", matrix), ("B", matrix.T), ("C", matrix)):
            values = stored.view(matrix.dtype) if stored.nbytes == matrix.nbytes else stored
            assert np.array_equal(store(atom, name, operand), values.reshape(-1)), name


def test_coverage_of_the_catalogue():
    for name in (
        "SM80_16x8x16_F32F16F16F32_TN",
        "CDNA3_32x32x8_f16_MFMA",
        "AMX_16x16x64_S32S8S8S32",
        "TENSIX_32x32x32",
    ):
        coverage = atom_coverage(atoms[name])
        assert all(operand.is_exact for operand in (coverage.a, coverage.b, coverage.c)), name
    shared = atom_coverage(atoms["SM90_64x8x16_F32F16F16_SS_KK"])  # all threads see the operands in shared memory
    assert shared.is_complete
    assert (shared.a.is_complete, shared.a.is_exact, shared.a.copies) == (True, False, 127 * 64 * 16)
    wave = atom_coverage(atoms["WMMA1_16x16x16_f16"])  # both halves of the wave hold the same
    assert (wave.a.copies, wave.c.is_exact) == (256, True)


def test_coverage_of_wrong_atoms():
    atom = atoms["SM80_8x8x4_F64F64F64F64_TN"]
    outside = atom_coverage(replace(atom, c=tw.Layout((32, (2,)), (2, (65,)))))
    assert not outside.is_complete
    assert len(outside.c.missing) == len(outside.c.extra) == 32
    assert "32 elements missing, 32 outside" in str(outside)
    twice = atom_coverage(replace(atom, c=tw.Layout((32, (2, 2)), (2, (1, 0)))))
    assert (twice.c.is_complete, twice.c.is_exact, twice.is_complete, twice.c.copies) == (True, False, False, 64)
    for wrong, reason in ((atoms["SM75_U32x4_LDSM_N"], "expected a matrix instruction"), (None, "expected a matrix")):
        with pytest.raises(LayoutError, match=reason):
            atom_coverage(wrong)
    with pytest.raises(LayoutError, match=r"must map \(thread, value\)"):
        atom_coverage(replace(atom, a=tw.Layout(32)))
