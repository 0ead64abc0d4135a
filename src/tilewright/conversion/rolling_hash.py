# SPDX-License-Identifier: Apache-2.0
"""SHA-256 of bytes that several threads handle: each piece is hashed in its turn, or all of them at the end."""

from __future__ import annotations

import hashlib
from threading import Condition
from typing import Any


class RollingHash:
    """The SHA-256 of a range of bytes whose pieces are numbered and come from several threads.

    A piece that does not start where the one before it ended means that the range must be read again in order;
    `in_order` is False from then on.

    >>> rolling = RollingHash()
    >>> rolling.add(0, 0, b"ab")
    >>> rolling.add(1, 2, b"c")
    >>> rolling.in_order, rolling.hexdigest()[:8]
    (True, 'ba7816bf')
    """

    def __init__(self, begin: int = 0) -> None:
        self._hash = hashlib.sha256()
        self._turn, self._position = 0, begin
        self._changed = Condition()
        self.in_order = True

    def add(self, number: int, start: int | None, data: Any) -> None:
        """Hash a piece when those before it are hashed; a start of None says that it is no single piece.

        >>> rolling = RollingHash()
        >>> rolling.add(0, None, b"")
        >>> rolling.in_order
        False
        """
        with self._changed:
            if start is None:
                self.in_order = False
                self._changed.notify_all()
            self._changed.wait_for(lambda: not self.in_order or self._turn == number)
            if not self.in_order:
                return
            if start != self._position:
                self.in_order = False
                self._changed.notify_all()
                return
        self._hash.update(data)  # its turn is nobody else's
        with self._changed:
            self._position += len(data)
            self._turn += 1
            self._changed.notify_all()

    def give_up(self) -> None:
        """Let go of everyone who waits: a piece will never come."""
        with self._changed:
            self.in_order = False
            self._changed.notify_all()

    def hexdigest(self) -> str:
        """Return the hash of what came so far.

        >>> RollingHash().hexdigest()[:8]
        'e3b0c442'
        """
        return self._hash.hexdigest()
