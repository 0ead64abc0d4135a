# SPDX-License-Identifier: Apache-2.0
"""Hashes of pieces that come from several threads, in any order."""

import hashlib
import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.conversion.rolling_hash import RollingHash


def hashed(pieces, order, begin=0):
    """Return the rolling hash after each thread has added one piece, started in this order."""
    rolling = RollingHash(begin)
    starts, at = [], begin
    for piece in pieces:
        starts.append(at)
        at += len(piece)
    threads = [threading.Thread(target=rolling.add, args=(k, starts[k], pieces[k])) for k in order]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
        assert not each.is_alive()
    return rolling


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=8), st.integers(0, 100), st.randoms(use_true_random=False))
def test_the_order_of_threads_does_not_matter(pieces, begin, rng):
    order = list(range(len(pieces)))
    rng.shuffle(order)
    rolling = hashed(pieces, order, begin)
    assert rolling.in_order
    assert rolling.hexdigest() == hashlib.sha256(b"".join(pieces)).hexdigest()


def test_a_piece_elsewhere_gives_up_and_nobody_waits():
    rolling = RollingHash()
    waiting = [threading.Thread(target=rolling.add, args=(k, 10 * k, bytes(10))) for k in (2, 3, 4)]
    for each in waiting:
        each.start()
    rolling.add(0, 0, bytes(10))
    rolling.add(1, 99, bytes(10))
    for each in waiting:
        each.join(10)
        assert not each.is_alive()
    assert not rolling.in_order
    rolling.add(5, None, b"")


def test_giving_up_lets_everyone_go():
    rolling = RollingHash()
    waiting = threading.Thread(target=rolling.add, args=(1, 10, bytes(10)))
    waiting.start()
    rolling.give_up()
    waiting.join(10)
    assert not waiting.is_alive()
