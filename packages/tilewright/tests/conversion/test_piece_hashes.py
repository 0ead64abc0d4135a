# SPDX-License-Identifier: Apache-2.0
"""Hashes of pieces that come from several threads, in any order."""

import hashlib
import threading

from hypothesis import given
from hypothesis import strategies as st

from tilewright.conversion.source import PieceHashes

from ..cases import examples


def in_threads(rolling, pieces, order):
    """Add pieces of both ranges, each from a thread of its own, started in this order."""
    starts = [[0], [50]]
    for one, other in pieces:
        starts[0].append(starts[0][-1] + len(one))
        starts[1].append(starts[1][-1] + len(other))
    threads = [
        threading.Thread(
            target=rolling.add, args=(k, (starts[0][k], pieces[k][0]), (starts[1][k], pieces[k][1])), daemon=True
        )
        for k in order
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
        assert not each.is_alive()


@examples(50)
@given(
    st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=300)), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_the_order_of_threads_does_not_matter(pieces, rng):
    order = list(range(len(pieces)))
    rng.shuffle(order)
    rolling = PieceHashes(0, 50)
    in_threads(rolling, pieces, order)
    assert rolling.in_order == [True, True]
    for stream in (0, 1):
        whole = b"".join(piece[stream] for piece in pieces)
        assert rolling.hexdigest(stream) == hashlib.sha256(whole).hexdigest()


def test_a_range_out_of_order_does_not_spoil_the_other():
    rolling = PieceHashes(0, 0)
    rolling.add(0, (0, b"ab"), (0, b"x"))
    rolling.add(1, (2, b"c"), (7, b"y"))
    rolling.add(2, (3, b""), (None, b"z"))
    assert rolling.in_order == [True, False]
    assert rolling.hexdigest(0) == hashlib.sha256(b"abc").hexdigest()


def test_nobody_waits_for_what_is_out_of_order_or_never_comes():
    for end in (lambda rolling: rolling.add(1, (99, b""), (99, b"")), lambda rolling: rolling.abandon()):
        rolling = PieceHashes(0, 0)
        waiting = [
            threading.Thread(target=rolling.add, args=(k, (10 * k, bytes(10)), (10 * k, bytes(10)))) for k in (2, 3)
        ]
        for each in waiting:
            each.start()
        rolling.add(0, (0, bytes(10)), (0, bytes(10)))
        end(rolling)
        for each in waiting:
            each.join(10)
            assert not each.is_alive()
        assert rolling.in_order == [False, False]
