# SPDX-License-Identifier: Apache-2.0
"""SlabCutter: they cover a tensor once, respect pages and memory, and read the source from front to back."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.conversion.rules import ConversionTarget
from tilewright.conversion.tensor_job import SlabCutter
from tilewright.files.stored_tensor import PagedBoxes
from tilewright.memory import TensorSpec

from ..cases import examples


@st.composite
def cuts(draw):
    """Return a shape, an order of its dimensions, a target and the bytes of a slab."""
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.lists(st.integers(1, 300 // rank**2), min_size=rank, max_size=rank)))
    order = tuple(draw(st.permutations(range(len(shape)))))
    dtype, layout = draw(st.sampled_from([("bfloat8_b", "tile"), ("uint8", "tile"), ("float32", "row_major")]))
    tile = (draw(st.sampled_from([32, 16, 1])), draw(st.sampled_from([32, 16])))
    spec = TensorSpec(tuple(shape[d] for d in order), dtype, layout, tile if layout == "tile" else None)
    return shape, ConversionTarget(spec, order), draw(st.integers(3000, 200_000)), draw(st.booleans())


@examples(60)
@given(cuts())
def test_slabs_cover_a_tensor_once(cut):
    shape, target, most, fortran = cut
    with tempfile.TemporaryDirectory() as folder:
        values = np.zeros(shape, np.float16)
        np.save(Path(folder, "x.npy"), np.asfortranarray(values) if fortran else values)
        source = tw.open_tensors(Path(folder, "x.npy"))["x"]
        slabs = SlabCutter(source, target, most)
        try:
            boxes = list(slabs)
        except tw.OutOfMemory:
            assert most < 40_000
            return
    assert len(boxes) == len(slabs)
    laid = tuple(source.shape[d] for d in source.order)
    count = np.zeros(laid, int)
    pages = PagedBoxes(target.spec)
    bytes_out = 0
    at = source.byte_range[0]
    in_order = True
    for box in boxes:
        count[box.slices] += 1
        runs = source.runs(box)
        in_order &= len(runs) == 1 and runs[0][0] == at
        at = runs[-1][0] + runs[-1][1]
        turned = box.permute(slabs.order)
        bytes_out += sum(size for _, size in pages.runs(turned))
        spec = pages.box_spec(turned)
        assert spec.nbytes + int(np.prod(box.shape)) * 2 <= most
    assert (count == 1).all()
    assert bytes_out == target.spec.nbytes
    whole_inside = slabs.extents[1:] == laid[1:]
    assert in_order or not whole_inside


def test_wide_rows_are_cut_too(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((32, 100_000), np.float32))
    source = tw.open_tensors(tmp_path)["x"]
    slabs = SlabCutter(source, ConversionTarget(TensorSpec((32, 100_000), "bfloat8_b"), (0, 1)), 1 << 20)
    assert len(slabs) > 10
    assert all(box.shape[0] == 32 for box in slabs)


def test_the_smallest_slab_is_a_tile(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((64, 64), np.float32))
    source = tw.open_tensors(tmp_path)["x"]
    target = ConversionTarget(TensorSpec((64, 64), "bfloat8_b"), (0, 1))
    assert {box.shape for box in SlabCutter(source, target, 32 * 32 * 4 + 1088)} == {(32, 32)}
    with pytest.raises(tw.OutOfMemory, match="32 x 32"):
        list(SlabCutter(source, target, 32 * 32 * 4 + 1087))
