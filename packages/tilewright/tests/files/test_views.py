# SPDX-License-Identifier: Apache-2.0
"""Tensors that are views of their file: any strides, transposed, overlapping, and repeated."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import tilewright as tw
from tilewright import format_of
from tilewright.conversion.source import AssembledSource
from tilewright.files.source import SourceFile
from tilewright.files.stored_tensor import StoredTensor
from tilewright.layout import Box

extents = st.lists(st.integers(1, 5), max_size=4)


@st.composite
def views(draw):
    shape = tuple(draw(extents))
    steps = [*range(8), 30, 700, 2000]
    strides = tuple([draw(st.sampled_from(steps)) for _ in shape])
    if draw(st.booleans()):  # contiguous in some order
        order, step, chosen = draw(st.permutations(range(len(shape)))), 1, [0] * len(shape)
        for d in order:
            chosen[d], step = step, step * shape[d]
        strides = tuple(chosen)
    box = [sorted(draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in shape]
    return shape, strides, draw(st.integers(0, 9)), tuple([slice(*each) for each in box]), draw(st.booleans())


@given(views())
def test_a_view_reads_as_numpy_does(view):
    shape, strides, start, box, swapped = view
    elements = np.arange(40_000, dtype=">i4" if swapped else "<i4")
    expected = as_strided(elements[start:], shape, [4 * n for n in strides]).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.bin")
        path.write_bytes(elements.tobytes())
        place = (format_of("int32"), 4, SourceFile(path), 4 * start, swapped)
        tensor = StoredTensor.strided("x", "i4", shape, strides, *place)
        np.testing.assert_array_equal(tensor.read(), expected)
        np.testing.assert_array_equal(tensor.read(box), expected[box])
        window = Box.between(tuple([s.start for s in box]), tuple([s.stop for s in box]))
        np.testing.assert_array_equal(tensor.crop(window).read(), expected[box])
        first, last = tensor.byte_range
        span = sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)]) + 1
        assert (first, last) == (4 * start, 4 * (start + span))
        assert tensor.raw.tobytes() == elements.tobytes()[first:last]
        source = AssembledSource.of(tensor)
        if all(window.shape):
            np.testing.assert_array_equal(source.read(window), expected[box])
        at = tuple([n - 1 for n in shape])
        element = tensor.explain_stored(at)
        assert element.value == expected[at]
        assert element.offset == 4 * (start + span - 1)


def test_contiguous_tensors_are_dense(tmp_path):
    (tmp_path / "x.bin").write_bytes(bytes(200))
    file, element = SourceFile(tmp_path / "x.bin"), format_of("uint8")
    for shape, strides in [((4, 5), (5, 1)), ((4, 1, 5), (5, 77, 1)), ((), ()), ((0, 4), (9, 9)), ((1, 1), (3, 3))]:
        tensor = StoredTensor.strided("x", "U8", shape, strides, element, 1, file, 8)
        assert tensor.strides is None
        dense = StoredTensor.dense("x", "U8", shape, element, file, 8, tensor.nbytes)
        assert (tensor.byte_range, tensor.read().shape) == (dense.byte_range, dense.read().shape)
    assert StoredTensor.strided("x", "U8", (5, 4), (1, 5), element, 1, file, 8).order == (1, 0)
    assert StoredTensor.strided("x", "U8", (3, 3), (1, 1), element, 1, file, 0).strides == (1, 1)


def test_views_are_converted_in_one_pass(tmp_path):
    elements = np.arange(128 * 96, dtype=np.float32)
    (tmp_path / "x.bin").write_bytes(elements.tobytes())
    file = SourceFile(tmp_path / "x.bin")
    for shape, strides in [((64, 48), (192, 2)), ((48, 64), (2, 192)), ((64, 40), (1, 0)), ((40, 40), (1, 1))]:
        expected = as_strided(elements, shape, [4 * n for n in strides])
        for swapped in (False, True):
            values = expected.byteswap() if swapped else expected
            out = tmp_path / f"{shape} {strides} {swapped}"
            tensor = StoredTensor.strided("x", "F32", shape, strides, format_of("float32"), 4, file, 0, swapped)
            tw.convert({"x": tensor}, out, dtype="float32", layout="tile")
            np.testing.assert_array_equal(tw.open_tensors(out)["x"].read(), values)
            assert tw.verify(out, {"x": tensor})
