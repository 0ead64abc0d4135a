# SPDX-License-Identifier: Apache-2.0
"""A number that is not a value of the tensor's format is refused, however it comes; the tensor stays as it was."""

import numpy as np
import pytest

import tilewright as tw


def writes(value):
    """Return every way in which a value gets into a tensor of two rows, each as (name, function)."""
    return [
        ("fill", lambda t: t.fill(value)),
        ("element", lambda t: t.__setitem__((1, 0), value)),
        ("linear element", lambda t: t.__setitem__(1, value)),
        ("slice", lambda t: t.__setitem__((slice(None), 0), value)),
        ("slice of values", lambda t: t.__setitem__((slice(None), 0), [value, 0])),
        ("store", lambda t: t.store((1, 0), value)),
        ("wide store", lambda t: t.store[2]((1, 0), [0, value])),
        ("vector", lambda t: t.vectorize[1, 2]().__setitem__((1, 0), [value, 0])),
        ("vector of one value", lambda t: t.vectorize[1, 2]().__setitem__((1, 0), value)),
        ("vector fill", lambda t: t.vectorize[1, 2]().fill(value)),
        ("ragged fill", lambda t: t.tile[4, 4](0, 0).fill(value)),
        ("swizzled", lambda t: t.reshape(tw.compose(tw.Swizzle(1, 0, 1), tw.row_major(2, 2))).fill(value)),
        ("copy of a number", lambda t: t.copy_from(value)),
        ("copy of an array", lambda t: t.copy_from(np.array([[0, value], [0, 0]]))),
        ("copy of lists", lambda t: t.copy_from([[0, 0], [value, 0]])),
        ("padding of a read", lambda t: t.tile[4, 4](0, 0).to_numpy(fill=value)),
        ("padding of a load", lambda t: t.tile[4, 4](0, 0).load(3, 3, fill=value)),
        ("padding of a vector", lambda t: t.tile[2, 4](0, 0).vectorize[1, 4]().load(0, 0, fill=value)),
        ("new tensor", lambda t: tw.TileTensor([value, 0], tw.row_major(2), dtype=t.dtype)),
    ]


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("int32", 1.5, "1.5"),
        ("uint8", 300, "300"),
        ("uint8", -1, "-1"),
        ("int16", float("nan"), "nan"),
        ("int16", float("inf"), "inf"),
        ("float16", 1e5, "100000.0"),
        ("float32", 1e39, "1e+39"),
        ("float32", 1j, ""),
        ("bool", 2, "2"),
    ],
)
def test_a_number_that_is_not_a_value_of_the_format_is_refused(dtype, value, message):
    for name, write in writes(value):
        tensor = tw.TileTensor(np.zeros(4, dtype), tw.row_major(2, 2))
        try:
            write(tensor)
        except tw.FormatError as problem:
            assert str(problem).startswith(message), name  # noqa: PT017  (one of many, named)
            assert f" is not a value of {dtype}" in str(problem), name  # noqa: PT017
        else:
            pytest.fail(f"{name} took {value} into {dtype}")
        assert not tensor.to_numpy().any(), name


@pytest.mark.parametrize(
    ("dtype", "value", "stored"),
    [("int32", 2.0, 2), ("float32", True, 1.0), ("float16", 0.1, 0.0999755859375), ("uint8", np.int64(255), 255)],
)
def test_a_number_that_fits_is_stored(dtype, value, stored):
    for name, write in writes(value):
        tensor = tw.TileTensor(np.zeros(4, dtype), tw.row_major(2, 2))
        result = write(tensor)
        values = tensor.to_numpy() if tensor.to_numpy().any() else np.asarray(result)
        assert stored in values.reshape(-1).tolist(), name


def test_a_tensor_is_converted_where_an_array_must_fit():
    halves = np.array([[0.5, 1.5], [2.5, -1.5]])
    target = tw.TileTensor(np.zeros(4, np.int32), tw.row_major(2, 2))
    assert target.copy_from(tw.TileTensor(halves)).to_numpy().tolist() == [[0, 1], [2, -1]]
    with pytest.raises(tw.FormatError, match=r"0\.5 at \(0, 0\) is not a value of int32"):
        target.copy_from(halves)


def test_arithmetic_in_place_does_not_wrap_into_a_smaller_type():
    tensor = tw.TileTensor(np.full(2, 100, np.int8), tw.row_major(2))
    with pytest.raises(tw.FormatError, match="1100 at 0 is not a value of int8"):
        tensor += np.array([1000, 1])
    with pytest.raises(tw.FormatError, match=r"300 out of bounds for int8|400 at 0 is not a value of int8"):
        tensor += 300
    assert tensor.to_numpy().tolist() == [100, 100]


def test_padding_of_a_tensor_with_pages():
    with pytest.raises(tw.FormatError, match="300 is not a value of uint8"):
        tw.Tensor.of(np.zeros((1, 2), np.uint8)).pad((2, 4), value=300)
    with pytest.raises(tw.FormatError, match=r"0\.5 is not a value of uint8"):
        tw.Tensor.of(np.zeros((1, 2), np.uint8)).to_layout("tile", pad_value=0.5)


def test_a_list_must_fit_and_an_array_is_converted():
    with pytest.raises(tw.FormatError, match=r"1\.5 at \(0, 0\) is not a value of int32"):
        tw.Tensor.of([[1.5, 2.0]], dtype="int32")
    with pytest.raises(tw.FormatError, match=r"300 at \(0, 0\) is not a value of uint8"):
        tw.Tensor.from_array([[300, 2]], tw.TensorSpec((1, 2), "uint8"))
    assert tw.Tensor.of([[1.0, 2.0]], dtype="int32").numpy().tolist() == [[1, 2]]
    assert tw.Tensor.of([[0.1]], dtype="bfloat8_b").numpy().tolist() == [[pytest.approx(0.1, rel=0.01)]]
    assert tw.Tensor.of(np.array([[1.5, 2.0]]), dtype="int32").numpy().tolist() == [[1, 2]]
