# SPDX-License-Identifier: Apache-2.0
"""How evenly bytes are spread over the banks of a chip, and over the cores that read them."""

from __future__ import annotations

import numpy as np

from ..analysis import BalanceReport, balance
from ..errors import LayoutError
from ..memory import TensorSpec
from .plan import ReshardPlan


def bank_balance(subject: TensorSpec | ReshardPlan) -> BalanceReport:
    """Return how evenly bytes are spread over banks: the bytes of a tensor, or those a reshard moves to and from DRAM.

    `subject` is a spec with a chip, or a plan. Banks without any count as idle.

    >>> from tilewright import height_sharded
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> print(bank_balance(spec))  # four tiles in twelve banks
    682.667 on average, 0 to 2048, 8 of 12 idle
    """
    if isinstance(subject, ReshardPlan):
        chip = subject.source.chip
        assert chip is not None  # which a plan has
        return balance([subject.banks.get(bank, 0) for bank in range(chip.banks("dram"))])
    if subject.chip is None:
        raise LayoutError(f"expected a TensorSpec with a chip, or a reshard plan, got {subject!r}")
    count = subject.chip.banks(subject.memory.buffer_type)
    pages = np.bincount(subject.pages().bank, minlength=count)
    return balance([int(number) * subject.page_bytes for number in pages])


def reader_balance(plan: ReshardPlan) -> BalanceReport:
    """Return how evenly the cores of a reshard `plan` share the reads over the network.

    >>> from tilewright import height_sharded, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> print(reader_balance(reshard(spec, spec.with_memory(height_sharded((2, 1))))))
    4096 on each of 2
    """
    if not plan.bytes_in:
        raise LayoutError("the plan moves nothing over the network, so there are no readers to compare")
    return balance(plan.bytes_in.values())
