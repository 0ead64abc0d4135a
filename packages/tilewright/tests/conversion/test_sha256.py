# SPDX-License-Identifier: Apache-2.0
"""SHA-256, two streams at once: what hashlib says, however the bytes come."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.conversion import source as sha256
from tilewright.conversion.source import PairedHash, new_hash, update_pair

pieces = st.lists(st.integers(0, 400), max_size=6)


def noise(seed, count):
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


@pytest.fixture(params=["as it is", "hashlib"])
def _way(request, monkeypatch):
    if request.param == "hashlib":
        monkeypatch.setattr(sha256, "_is_native", lambda: False)


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=6), st.integers(0, 2**32 - 1))
def test_two_streams(sizes, seed):
    both = new_hash(), new_hash()
    expected = hashlib.sha256(), hashlib.sha256()
    for k, (a, b) in enumerate(sizes):
        first, second = noise(seed + k, a), noise(seed + k + 1000, b)
        update_pair(both[0], first, both[1], second.tobytes())
        expected[0].update(first)
        expected[1].update(second)
        assert [each.hexdigest() for each in both] == [each.hexdigest() for each in expected]


@given(pieces, st.integers(0, 2**32 - 1))
def test_one_stream(sizes, seed):
    ours, theirs = new_hash(), hashlib.sha256()
    for k, size in enumerate(sizes):
        data = noise(seed + k, size)
        ours.update(data.data)
        theirs.update(data)
    assert ours.hexdigest() == theirs.hexdigest()


@pytest.mark.usefixtures("_way")
def test_large_pieces_of_unequal_length():
    one, other = new_hash(), new_hash()
    a, b = noise(1, 1_000_003), noise(2, 300_001)
    update_pair(one, a, other, b)
    update_pair(one, b, other, a)
    assert one.hexdigest() == hashlib.sha256(a.tobytes() + b.tobytes()).hexdigest()
    assert other.hexdigest() == hashlib.sha256(b.tobytes() + a.tobytes()).hexdigest()


def test_without_the_instructions_hashlib_does_it(monkeypatch):
    monkeypatch.setattr(sha256, "_is_native", lambda: False)
    assert not isinstance(new_hash(), PairedHash)
