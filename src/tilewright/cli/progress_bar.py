# SPDX-License-Identifier: Apache-2.0
"""The progress of bytes and tensors: a bar by rich on a terminal, plain lines elsewhere, nothing beside JSON."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from .console import Console, is_terminal
from .progress import Progress

_REPEATED = 5.0  # seconds between plain lines
_REDRAWN = 0.1


class ProgressBar:
    """How far a conversion is. Where rich is missing, the plain line of the other verbs takes its place.

    >>> with ProgressBar("converting", quiet=True) as bar:
    ...     bar.update(10, 40, 1, 4, "wte")
    """

    def __init__(self, label: str, quiet: bool | None = None) -> None:
        self.label = label
        self.quiet = Console.current().json if quiet is None else quiet
        self._shown: Any = None
        self._task: Any = None
        self._plain: Progress | None = None
        self._said = time.monotonic()

    def __enter__(self) -> ProgressBar:
        return self

    def _start(self, total: int) -> None:
        if is_terminal():
            try:
                self._shown = _rich_bar(Console.current().color)
            except ModuleNotFoundError:
                self._shown = None
        if self._shown is None:
            self._plain = Progress(self.label, total, quiet=False)
            return
        self._task = self._shown.add_task(self.label, total=total, tensors="")
        self._shown.start()

    def update(self, done: int, total: int, tensors: int, tensors_total: int, name: str | None) -> None:
        """Note that so many bytes and tensors are done."""
        if self.quiet:
            return
        if self._shown is None and self._plain is None:
            self._start(total)
        now = time.monotonic()
        if now - self._said < _REDRAWN and done < total:
            return
        self._said = now
        if self._shown is not None:
            self._shown.update(self._task, completed=done, total=total, tensors=f"{tensors}/{tensors_total}")
        elif self._plain is not None:
            self._plain.update(done, total)

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self._shown is not None:
            self._shown.stop()
        if self._plain is not None:
            self._plain.__exit__(kind, value, trace)


def _rich_bar(color: bool | None) -> Any:
    from rich.console import Console as RichConsole
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[tensors]}"),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=RichConsole(stderr=True, no_color=color is False),
        transient=True,
    )
