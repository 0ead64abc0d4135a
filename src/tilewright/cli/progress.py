# SPDX-License-Identifier: Apache-2.0
"""Progress on stderr: a bar on a terminal, a plain line every few seconds elsewhere, nothing beside JSON."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from ..byte_sizes import format_bytes
from .console import Console, is_terminal

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_LINE_SECONDS = 5.0  # between plain lines
_REDRAW_SECONDS = 0.1


class Progress:
    """Reports how much of some work is done.

    Args:
        label: what is being done, such as "converting".
        unit: what is counted, such as "bytes" or "tiles".
        quiet: report nothing; by default, if the command prints JSON.

    >>> with Progress("converting", "tensors", quiet=True) as progress:
    ...     progress.update(40, 100)
    """

    def __init__(self, label: str, unit: str = "bytes", quiet: bool | None = None) -> None:
        self.label, self.unit = label, unit
        self.quiet = Console.current().json if quiet is None else quiet
        self._bar: RichProgress | None = None
        self._started = self._reported = time.monotonic()

    def __enter__(self) -> Progress:
        if not self.quiet and is_terminal():
            self._bar = _make_bar(self.unit, Console.current().color)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, total: int, detail: str = "") -> None:
        """Report that `done` of `total` units are done, if it is time to report again; `detail` is added to the bar."""
        now = time.monotonic()
        wait = _LINE_SECONDS if self._bar is None else _REDRAW_SECONDS
        if self.quiet or (now - self._reported < wait and not (self._bar is not None and done >= total)):
            return
        self._reported = now
        if self._bar is None:
            print(self.line(done, total, now), file=sys.stderr, flush=True)
            return
        if not self._bar.tasks:
            self._bar.add_task(self.label, total=total, detail="")
            self._bar.start()
        self._bar.update(self._bar.tasks[0].id, completed=done, total=total, detail=detail)

    def line(self, done: int, total: int, now: float) -> str:
        """Return one plain line: the share done, the rate, and the time left at that rate."""
        share = done / total if total else 1.0
        rate = done / max(now - self._started, 1e-9)
        speed = f"{format_bytes(int(rate))}/s" if self.unit == "bytes" else f"{rate:.3g} {self.unit}/s"
        left = f", {_format_clock((total - done) / rate)} left" if rate else ""
        return f"{self.label} {100 * share:3.0f} %, {speed}{left}"


def _format_clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _make_bar(unit: str, color: bool | None) -> RichProgress | None:
    """Return a bar by rich, or None where rich is not installed."""
    try:
        from rich.console import Console as RichConsole
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as RichProgress
    except ModuleNotFoundError:
        return None
    amounts = (DownloadColumn(binary_units=True), TransferSpeedColumn()) if unit == "bytes" else (MofNCompleteColumn(),)
    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        *amounts,
        TimeRemainingColumn(),
        console=RichConsole(stderr=True, no_color=color is False),
        transient=True,
    )
