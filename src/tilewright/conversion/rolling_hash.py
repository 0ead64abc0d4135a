# SPDX-License-Identifier: Apache-2.0
"""SHA-256 of ranges that several threads handle: each piece is hashed in its turn, or the whole range at the end."""

from __future__ import annotations

from threading import Condition
from typing import Any

from ..files.sha256 import new_hash, update_pair

Piece = tuple[int | None, Any]  # where it starts in its range, None if it is in several places, and its bytes


class RollingHash:
    """The SHA-256 of two ranges of bytes, a source and an output, whose numbered pieces come from several threads.

    A piece that does not start where the one before it ended means that its range must be read again in order;
    `in_order` says of each range whether that never happened.

    >>> rolling = RollingHash(0, 100)
    >>> rolling.add(0, (0, b"ab"), (100, b"x"))
    >>> rolling.add(1, (2, b"c"), (None, b""))
    >>> rolling.in_order, rolling.hexdigest(0)[:8]
    ([True, False], 'ba7816bf')
    """

    def __init__(self, *begins: int) -> None:
        self._hashes = [new_hash() for _ in begins]
        self._positions = list(begins)
        self._turn = 0
        self._changed = Condition()
        self.in_order = [True for _ in begins]

    def start(self, stream: int, data: bytes) -> None:
        """Hash what comes before the first piece of a range.

        >>> rolling = RollingHash(0, 0)
        >>> rolling.start(1, b"abc")
        >>> rolling.hexdigest(1)[:8]
        'ba7816bf'
        """
        self._hashes[stream].update(data)
        self._positions[stream] += len(data)

    def add(self, number: int, *pieces: Piece) -> None:
        """Hash a piece of each range when those before it are hashed.

        >>> rolling = RollingHash(0, 0)
        >>> rolling.add(0, (None, b""), (None, b""))
        >>> rolling.in_order
        [False, False]
        """
        hash_together([(self, number, pieces)])

    def _begin(self, number: int, pieces: tuple[Piece, ...]) -> list[int]:
        """Return the ranges whose piece is to be hashed, when it is the turn of this number."""
        with self._changed:
            for k, (start, _) in enumerate(pieces):
                if start is None:
                    self.in_order[k] = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not any(self.in_order) or self._turn == number)
            for k, (start, _) in enumerate(pieces):
                self.in_order[k] = self.in_order[k] and start == self._positions[k]
            return [k for k, kept in enumerate(self.in_order) if kept]

    def _end(self, pieces: tuple[Piece, ...], active: list[int]) -> None:
        """Let the next number have its turn."""
        with self._changed:
            for k in active:
                self._positions[k] += len(pieces[k][1])
            self._turn += 1
            self._changed.notify_all()

    def give_up(self) -> None:
        """Let go of everyone who waits: a piece will never come."""
        with self._changed:
            self.in_order = [False for _ in self.in_order]
            self._changed.notify_all()

    def hexdigest(self, stream: int) -> str:
        """Return the hash of what came so far of a range.

        >>> RollingHash(0).hexdigest(0)[:8]
        'e3b0c442'
        """
        return self._hashes[stream].hexdigest()


def hash_together(added: list[tuple[RollingHash, int, tuple[Piece, ...]]]) -> None:
    """Add pieces to several hashes, each in its turn, two of about the same length at a time.

    >>> one, other = RollingHash(0), RollingHash(0)
    >>> hash_together([(one, 0, ((0, b"abc"),)), (other, 0, ((0, b"abc"),))])
    >>> one.hexdigest(0) == other.hexdigest(0)
    True
    """
    begun = [(rolling, pieces, rolling._begin(number, pieces)) for rolling, number, pieces in added]
    # their turns are nobody else's
    streams = [(rolling._hashes[k], pieces[k][1]) for rolling, pieces, active in begun for k in active]
    streams.sort(key=lambda stream: -len(stream[1]))
    for (one, first), (other, second) in zip(streams[::2], streams[1::2], strict=False):
        update_pair(one, first, other, second)
    if len(streams) % 2:
        last, data = streams[-1]
        last.update(data.data if hasattr(data, "ctypes") else data)
    for rolling, pieces, active in begun:
        rolling._end(pieces, active)
