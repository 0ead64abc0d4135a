# SPDX-License-Identifier: Apache-2.0
"""SlabCutter: they cover a tensor once, respect pages and memory, and read the source from front to back."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.conversion.plan import SlabCutter
from tilewright.conversion.rules import ConversionTarget
from tilewright.conversion.source import AssembledSource
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
    return shape, order, ConversionTarget(spec), draw(st.integers(3000, 200_000)), draw(st.booleans())


@examples(60)
@given(cuts())
def test_slabs_cover_a_tensor_once(cut):
    shape, order, target, most, fortran = cut
    with tempfile.TemporaryDirectory() as folder:
        values = np.zeros(shape, np.float16)
        np.save(Path(folder, "x.npy"), np.asfortranarray(values) if fortran else values)
        stored = tw.open_tensors(Path(folder, "x.npy"))["x"]
        source = AssembledSource.of(stored).transpose(order)
        slabs = SlabCutter(source, target, most)
        try:
            boxes = list(slabs)
        except tw.OutOfMemory:
            assert most < 40_000
            return
    assert len(boxes) == len(slabs)
    count = np.zeros(target.spec.shape.logical, int)
    pages = PagedBoxes(target.spec)
    bytes_out = 0
    at = 0
    in_order = True
    for slab in boxes:
        assert slab.window == 0
        count[slab.box.slices] += 1
        readings = [reading for _, reading in source._readings(slab.box)]
        runs = [(int(start), reading.count) for reading in readings for start in reading.starts]
        in_order &= len(runs) == 1 and runs[0][0] == at
        at = runs[-1][0] + runs[-1][1]
        bytes_out += sum(size for _, size in pages.runs(slab.box))
        spec = pages.box_spec(slab.box)
        assert spec.nbytes + slab.box.size * 2 <= most
    assert (count == 1).all()
    assert bytes_out == target.spec.nbytes
    inner = source.axes_from_outermost()[1:]
    whole_inside = all(slabs.extents[d] == target.spec.shape.logical[d] for d in inner)
    assert in_order or not whole_inside


def test_wide_rows_are_cut_too(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((32, 100_000), np.float32))
    source = AssembledSource.of(tw.open_tensors(tmp_path)["x"])
    slabs = SlabCutter(source, ConversionTarget(TensorSpec((32, 100_000), "bfloat8_b")), 1 << 20)
    assert len(slabs) > 10
    assert all(slab.box.shape[0] == 32 for slab in slabs)


def test_the_smallest_slab_is_a_tile(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((64, 64), np.float32))
    source = AssembledSource.of(tw.open_tensors(tmp_path)["x"])
    target = ConversionTarget(TensorSpec((64, 64), "bfloat8_b"))
    assert {slab.box.shape for slab in SlabCutter(source, target, 13248)} == {(32, 32)}
    with pytest.raises(tw.OutOfMemory, match="32 x 32"):
        list(SlabCutter(source, target, 13247))


@examples(60)
@given(cuts(), st.integers(2_000, 60_000))
def test_strips_make_the_output_from_front_to_back(cut, strip_bytes):
    shape, order, target, _, fortran = cut
    with tempfile.TemporaryDirectory() as folder:
        values = np.zeros(shape, np.float16)
        np.save(Path(folder, "x.npy"), np.asfortranarray(values) if fortran else values)
        source = AssembledSource.of(tw.open_tensors(Path(folder, "x.npy"))["x"]).transpose(order)
        slabs = SlabCutter(source, target, 1 << 20)
        strips = slabs.strips(strip_bytes, target.spec.nbytes)
    assert len(strips) == 1 or all(strip.nbytes <= strip_bytes for strip in strips)
    end, count = 0, np.zeros(target.spec.shape.logical, int)
    pages = PagedBoxes(target.spec)
    for strip in strips:
        assert strip.start == end
        end += strip.nbytes
        assert len(strip.slabs) == len(list(strip.slabs))
        for slab in strip.slabs:
            count[slab.box.slices] += 1
            assert all(
                strip.start <= at and at + size <= strip.start + strip.nbytes for at, size in pages.runs(slab.box)
            )
    assert (count == 1).all()
    assert end == target.spec.nbytes
