# SPDX-License-Identifier: Apache-2.0
"""The block types of ggml: laws of all of them; tests/files/test_gguf.py has the recorded values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import FormatError
from tilewright.formats.ggml import GGML_TYPES, GgmlType, load_code_book

DECODED = [kind for kind in GGML_TYPES.values() if kind.unpack is not None]
kinds = st.sampled_from(DECODED)


def random_records(kind: GgmlType, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, kind.nbytes), dtype=np.uint8)


def test_there_are_all_types():
    assert len(DECODED) == 23
    assert [kind.name for kind in GGML_TYPES.values() if kind.unpack is None] == ["Q8_1", "Q8_K", "Q1_0"]
    assert all(number == kind.number for number, kind in GGML_TYPES.items())


@given(kinds, st.integers(0, 5), st.integers(0, 2**32))
def test_blocks_are_decoded_by_themselves(kind, count, seed):
    records = random_records(kind, count, seed)
    whole = kind.decode(records)
    assert (whole.shape, whole.dtype) == ((count, kind.elements), np.float32)
    for k in range(count):
        np.testing.assert_array_equal(kind.decode(records[k : k + 1])[0], whole[k])


@given(kinds, st.integers(0, 2**32))
def test_values_are_codes_times_scales_plus_offsets(kind, seed):
    records = random_records(kind, 4, seed)
    with np.errstate(all="ignore"):
        groups = kind.unpack(records)
        expected = groups.codes.astype(np.float32) * groups.scales[..., None]
        expected = expected if groups.offsets is None else expected + groups.offsets[..., None]
    assert groups.codes.dtype == np.int8
    np.testing.assert_array_equal(kind.decode(records), expected.reshape(4, -1))


@pytest.mark.parametrize("kind", DECODED, ids=lambda kind: kind.name)
def test_many_blocks_are_decoded_in_pieces(kind):
    records = random_records(kind, 3000, kind.number)
    np.testing.assert_array_equal(kind.decode(records)[2500:], kind.decode(records[2500:]))


def test_code_books_have_different_rows():
    for name, rows in {
        "IQ1_S": 2048,
        "IQ2_XXS": 256,
        "IQ2_XS": 512,
        "IQ2_S": 1024,
        "IQ3_XXS": 256,
        "IQ3_S": 512,
    }.items():
        assert len(np.unique(load_code_book(name), axis=0)) == rows, name


def test_bytes_of_another_size_are_refused():
    with pytest.raises(FormatError, match=r"Q4_K.*\[2, 143\]"):
        GGML_TYPES[12].decode(np.zeros((2, 143), np.uint8))
    with pytest.raises(FormatError, match="Q8_K"):
        GGML_TYPES[15].decode(np.zeros((2, 292), np.uint8))
