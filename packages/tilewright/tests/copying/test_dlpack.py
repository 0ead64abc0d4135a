# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries on the host, also in formats that NumPy lacks: moves take them as they are."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.copying import copy
from tilewright.copying.devices import as_host_array, export_dlpack

FORMATS = ["float32", "float16", "int32", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


class Foreign:
    """Memory behind DLPack, with a gradient to leave behind, as a tensor of torch has it."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        if self.values.dtype.isbuiltin != 1:
            raise TypeError("NumPy has no such type")
        return self.values

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        return export_dlpack(self.values, **options)


def numbers(shape, dtype):
    return (np.random.default_rng(5).standard_normal(shape) * 8).astype(dtype)


def same_bytes(a, b):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(np.ascontiguousarray(a).view(np.uint8), np.ascontiguousarray(b).view(np.uint8))


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_their_values_are_seen_in_place(dtype):
    own = numbers((5, 7), dtype)
    seen = as_host_array(Foreign(own))
    same_bytes(seen, own)
    assert np.shares_memory(seen.view(np.uint8), own.view(np.uint8))


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_moves_take_them_as_arrays(dtype):
    own = numbers((60, 90), dtype)
    same_bytes(tw.tilize(Foreign(own)), tw.tilize(own))
    same_bytes(tw.untilize(Foreign(tw.tilize(own)), (60, 90)), own)
    same_bytes(
        tw.copying.relayout(Foreign(own), tw.row_major(60, 90), tw.col_major(60, 90)),
        tw.copying.relayout(own, tw.row_major(60, 90), tw.col_major(60, 90)),
    )
    target = np.zeros_like(own)
    copy(Foreign(own), Foreign(target))
    same_bytes(target, own)


def test_blocks_are_packed_from_them():
    own = numbers((60, 90), ml_dtypes.bfloat16)
    spec = tw.TensorSpec((60, 90), "bfloat8_b")
    same_bytes(tw.tilize(Foreign(own), dtype="bfloat8_b"), tw.tilize(own, dtype="bfloat8_b"))
    same_bytes(tw.to_bytes(Foreign(own), spec), tw.to_bytes(own, spec))


def test_differences_are_told():
    own = numbers((60, 90), ml_dtypes.bfloat16)
    assert tw.diff(Foreign(own), own.astype(np.float32)).same


def test_strides_are_kept():
    own = numbers((64, 64), ml_dtypes.bfloat16)[::2, ::-1].T
    same_bytes(tw.tilize(Foreign(own)), tw.tilize(own))


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    theirs = torch.randn(60, 90, requires_grad=True)
    same_bytes(tw.tilize(theirs), tw.tilize(theirs.detach().numpy()))
    half = theirs.detach().to(torch.bfloat16)
    same_bytes(tw.tilize(half), tw.tilize(half.float().numpy(), dtype="bfloat16"))
    out = torch.zeros_like(half)
    copy(half, out)
    assert torch.equal(half, out)
