# SPDX-License-Identifier: Apache-2.0
"""Progress on stderr: a line that is redrawn on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

from .console import Console, is_terminal
from .values import bytes_in_words

_REDRAWN = 0.1  # seconds between redrawings
_REPEATED = 10.0  # seconds between plain lines
_BAR = 24


class Progress:
    """How far some work is, of a known amount of it in bytes or in things; silent when a program listens.

    >>> with Progress("converting", 100, "tensors", quiet=True) as progress:
    ...     progress.update(40)
    """

    def __init__(self, label: str, total: int, unit: str = "bytes", quiet: bool | None = None) -> None:
        self.label, self.total, self.unit = label, total, unit
        self.quiet = Console.current().json if quiet is None else quiet
        self.stream: TextIO = sys.stderr
        self.redraws = is_terminal(self.stream)
        self.began = time.monotonic()
        self.said = self.began
        self.done = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self.redraws and not self.quiet:
            print("\r\x1b[K", end="", file=self.stream, flush=True)

    def update(self, done: int, total: int | None = None) -> None:
        """Note that so much is done, and say so if it is time."""
        self.done, self.total = done, self.total if total is None else total
        now = time.monotonic()
        if self.quiet or now - self.said < (_REDRAWN if self.redraws else _REPEATED):
            return
        self.said = now
        if self.redraws:
            print(f"\r\x1b[K{self.line(now)}", end="", file=self.stream, flush=True)
        else:
            print(self.line(now), file=self.stream, flush=True)

    def line(self, now: float) -> str:
        """Return the line that says how far the work is, how fast it goes, and when it ends."""
        share = self.done / self.total if self.total else 1.0
        spent = max(now - self.began, 1e-9)
        rate = self.done / spent
        speed = f"{bytes_in_words(int(rate))}/s" if self.unit == "bytes" else f"{rate:.3g} {self.unit}/s"
        left = "" if not rate else f", {_clock((self.total - self.done) / rate)} left"
        full = round(_BAR * min(share, 1.0))
        bar = f"[{'#' * full}{'.' * (_BAR - full)}] " if self.redraws else ""
        return f"{self.label} {bar}{100 * share:3.0f} %, {speed}{left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
