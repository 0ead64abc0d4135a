# SPDX-License-Identifier: Apache-2.0
"""A machine on which transfers take their time, simulated: it shows whether a schedule waits for everything it must.

Real copies are often over before anyone looks, and so hide a missing wait. Here a transfer happens as late as a rule
allows: at once, at the wait in order, at the wait in reverse order, or with imports or exports preferred. A schedule
that is right under all five, and under random delays, does not depend on luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, get_args

from ..errors import TransferError
from .transfers import Transfer

Completion = Literal["immediate", "fifo", "lifo", "imports_first", "exports_first"]
COMPLETIONS: tuple[Completion, ...] = get_args(Completion)


class SimulatedEngine:
    """An engine without threads in which transfers complete in a chosen order, and no earlier than they must.

    `imports_first` completes imports at once and exports when they are waited for; `exports_first` the other way
    round. With a seed, any transfer that is under way may also complete at any start or wait.

    >>> engine = SimulatedEngine("lifo")
    >>> a, b = (Transfer("import", k, lambda k=k: print("tile", k)) for k in (0, 1))
    >>> engine.start(a), engine.start(b)
    (None, None)
    >>> engine.wait([a])
    tile 1
    tile 0
    """

    def __init__(self, completion: Completion, seed: int | None = None) -> None:
        if completion not in COMPLETIONS:
            raise TransferError(f"there is no completion {completion!r}; choose one of {', '.join(COMPLETIONS)}")
        self.completion = completion
        self.under_way: list[Transfer] = []
        self._random = None if seed is None else Random(seed)

    def start(self, transfer: Transfer) -> None:
        """Begin a transfer, and complete it if the rule says so."""
        self.under_way.append(transfer)
        eager = {"immediate": ("import", "export"), "imports_first": ("import",), "exports_first": ("export",)}
        if transfer.kind in eager.get(self.completion, ()):
            self._complete(transfer)
        self._complete_some()

    def wait(self, transfers: Sequence[Transfer]) -> None:
        """Complete these transfers, and under "lifo" also those that were started after them, last first."""
        self._complete_some()
        wanted = [transfer for transfer in self.under_way if transfer in transfers]
        if self.completion == "lifo" and wanted:
            wanted = self.under_way[self.under_way.index(wanted[0]) :][::-1]
        for transfer in wanted:
            self._complete(transfer)

    def close(self) -> None:
        """Complete everything."""
        self.wait(list(self.under_way))

    def _complete(self, transfer: Transfer) -> None:
        """Complete a transfer after those it depends on, as every engine must."""
        if transfer not in self.under_way:
            return
        for earlier in transfer.after:
            self._complete(earlier)
        self.under_way.remove(transfer)
        transfer.run()

    def _complete_some(self) -> None:
        if self._random is None:
            return
        for transfer in list(self.under_way):
            if self._random.random() < 0.3:
                self._complete(transfer)
