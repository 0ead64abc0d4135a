# SPDX-License-Identifier: Apache-2.0
"""Copies that are prepared by an earlier call: the same results and errors, whatever has changed in between."""

import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.copying import ArrayLibrary, engine, tilize_batch
from tilewright.errors import LayoutError, TransferError

shapes = st.tuples(st.integers(1, 70), st.integers(1, 70))
dtypes = st.sampled_from(["float32", "int16", "uint8", "float64"])


@pytest.fixture(autouse=True)
def _nothing_prepared():
    engine._calls.clear()


def views(memory, shape):
    """Return arrays of one shape with different strides and alignments."""
    rows, columns = shape
    size = rows * columns
    return [
        memory[:size].reshape(shape),
        memory[3 : 3 + size].reshape(shape),
        memory[:size].reshape(columns, rows).T,
        memory[: 2 * size].reshape(rows, 2 * columns)[:, ::2],
        memory[:size].reshape(shape)[::-1],
    ]


@given(shapes, dtypes, st.sampled_from([0, 0.0, -0.0, 3, True]))
def test_every_call_is_the_first_call(shape, dtype, fill):
    memory = np.random.default_rng(shape).integers(0, 100, 3 * shape[0] * shape[1] + 8).astype(dtype)
    for again in range(3):
        for k, array in enumerate(views(memory, shape)):
            wanted = tw.tilize(array, pad_value=fill, engine="reference")
            made = tw.tilize(array, pad_value=fill)
            assert made.tobytes() == wanted.tobytes(), (again, k)
            assert not np.shares_memory(made, wanted)
            back = tw.untilize(made, shape)
            assert back.tobytes() == np.ascontiguousarray(array).tobytes(), (again, k)
            target = np.zeros((shape[1], shape[0]), dtype).T
            assert tw.copy(array, target) is target
            np.testing.assert_array_equal(target, array)


def test_the_sign_of_a_zero_fill_is_not_forgotten():
    array = np.ones((3, 3), np.float32)
    signs = [np.signbit(tw.tilize(array, pad_value=fill)[-1]) for fill in (0, -0.0, 0.0, 0, -0.0)]
    assert signs == [False, True, False, False, True]


def test_the_environment_is_asked_at_every_call(monkeypatch):
    array = np.ones((40, 40), np.float32)
    tw.tilize(array)
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "nonsense")
    with pytest.raises(TransferError, match="unknown engine 'nonsense'"):
        tw.tilize(array)
    monkeypatch.setenv("TILEWRIGHT_ENGINE", "reference")
    monkeypatch.setenv("TILEWRIGHT_THREADS", "many")
    with pytest.raises(TransferError, match="TILEWRIGHT_THREADS must be a positive number"):
        tw.tilize(array)


def test_out_is_examined_at_every_call():
    array = np.ones((32, 32), np.float32)
    out = np.zeros(1024, np.float32)
    assert tw.tilize(array, out=out) is out
    assert tw.tilize(array, out=out) is out
    assert tw.tilize(array, out=out.reshape(2, 512)).shape == (1024,)
    assert tw.tilize(array, out=out.reshape(2, 512)).shape == (1024,)
    with pytest.raises(TransferError, match="share memory"):
        tw.tilize(array, out=array.reshape(-1))
    out.flags.writeable = False
    with pytest.raises(TransferError, match="read-only"):
        tw.tilize(array, out=out)
    with pytest.raises(LayoutError, match="out must be a contiguous array of 1024"):
        tw.tilize(array, out=np.zeros(1000, np.float32))


def test_halves_of_one_array_are_copied_again_and_again():
    memory = np.arange(64, dtype=np.int32).reshape(4, 16)
    left, right = memory[:, :8], memory[:, 8:]
    for _ in range(3):
        left += 1
        tw.copy(left, right)
        np.testing.assert_array_equal(left, right)


def test_options_without_a_hash_are_accepted_every_time():
    array = np.arange(24, dtype=np.uint8).reshape(4, 6)
    wanted = tw.tilize(array, tile=(2, 2), face=None)
    for _ in range(3):
        np.testing.assert_array_equal(tw.tilize(array, tile=[2, 2], face=None), wanted)


def test_errors_come_again():
    array = np.ones((4, 4), np.float32)
    for _ in range(3):
        with pytest.raises(LayoutError, match="tile must be"):
            tw.tilize(array, tile=(0, 4))
        with pytest.raises(TypeError, match="copy needs an array as its target, got None"):
            tw.copy(array, None)
        with pytest.raises(LayoutError, match="needs a contiguous array"):
            tw.untilize(np.ones((64, 64), np.float32).T, (64, 64))


def test_arrays_are_not_kept_alive():
    array = np.ones((32, 32), np.float32)
    tw.tilize(array)
    result = tw.tilize(array)
    watch = weakref.ref(array)
    del array
    assert watch() is None
    assert result.size == 1024


class Tensor:
    """An array of another library, in host memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


def test_the_type_of_the_result_does_not_change(monkeypatch):
    library = ArrayLibrary(
        signature=lambda tensor: tensor.array.shape,
        address=lambda tensor: tensor.array.ctypes.data,
        is_writeable=lambda tensor: True,
        allocator=lambda tensor, shape, element: lambda: (Tensor(np.empty(shape, element.dtype)), 0),
    )
    monkeypatch.setitem(engine._libraries, Tensor, library)  # as an engine knows tensors, which may be on the host
    results = [tw.tilize(Tensor(np.ones((32, 32), np.float32))) for _ in range(3)]
    assert [type(result) for result in results] == [np.ndarray] * 3


def test_a_batch_on_the_host_is_each_of_its_arrays():
    arrays = [np.random.default_rng(k).standard_normal((40, 50)).astype(np.float32) for k in range(3)]
    for array, tiles in zip(arrays, tilize_batch(arrays, dtype="bfloat8_b"), strict=True):
        np.testing.assert_array_equal(tiles, tw.tilize(array, dtype="bfloat8_b", engine="reference"))
    assert tilize_batch([]) == []
