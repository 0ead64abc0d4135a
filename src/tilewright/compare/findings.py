# SPDX-License-Identifier: Apache-2.0
"""What a correlation coefficient does not tell about two tensors, found in their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from .moments import Moments, Totals

FEW = 0.001  # the share of elements that counts as few
HIGH = 0.99  # a correlation that people take for a pass
_ROUNDING = 1e-7  # an error that may be that of the sums themselves
_NOTABLE = 0.5  # the share of an error, or of a variance, that is worth telling


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a high correlation hides: its kind, what was found in words, and the number that shows it.

    >>> Finding("factor", "B is 2 x A", 2.0).kind
    'factor'
    """

    kind: str
    text: str
    value: float

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Counts:
    """How many elements did what: became zero, changed sign, are not finite on one side only; and the worst error.

    >>> Counts(elements=10, nonzero=9, zeroed=3, flipped=0, not_finite=0, worst_error=0.5).zeroed
    3
    """

    elements: int
    nonzero: int
    zeroed: int
    flipped: int
    not_finite: int
    worst_error: float


def findings(moments: Moments, counts: Counts) -> list[Finding]:
    """Return what the correlation of two tensors hides, from their sums.

    >>> import numpy as np
    >>> a = np.linspace(-1, 1, 100)
    >>> moments = Moments()
    >>> moments.add(a, 2 * a)
    >>> print(findings(moments, Counts(100, 100, 0, 0, 0, 1.0))[0])
    B is 2 x A, which is 100 % of the squared error; PCC is the same for any factor
    """
    total = moments.total()
    found: list[Finding] = []
    if total.count and total.pcc is None:
        side = "A" if not total.variance_a else "B"
        found.append(Finding("constant", f"{side} does not vary, so there is no PCC", 0.0))
    found += _in_the_error(total, counts)
    found += _in_the_largest(moments, total)
    if counts.zeroed:
        share = counts.zeroed / max(1, counts.nonzero)
        text = f"{_elements(counts.zeroed, 'nonzero ')} became zero ({_percent(share)}), which hardly moves PCC"
        found.append(Finding("zeroed", text, share))
    if counts.flipped:
        share = counts.flipped / counts.elements
        found.append(Finding("flipped", f"{_elements(counts.flipped)} changed sign ({_percent(share)})", share))
    if counts.not_finite:
        share = counts.not_finite / counts.elements
        text = f"NaN or infinite on one side only: {_elements(counts.not_finite)}, which PCC leaves out"
        found.append(Finding("not_finite", text, share))
    return found


def _in_the_error(total: Totals, counts: Counts) -> list[Finding]:
    """Return what the error is made of that a correlation cannot see."""
    parts = total.error_parts()
    whole = sum(parts.values())
    if not whole or not total.squared_error:
        return []
    found = []
    if parts["factor"] / whole >= _NOTABLE and total.slope is not None:
        text = f"B is {total.slope:.6g} x A, which is {_percent(parts['factor'] / whole)} of the squared error"
        found.append(Finding("factor", f"{text}; PCC is the same for any factor", total.slope))
    if parts["offset"] / whole >= _NOTABLE:
        shift = total.mean_b - total.mean_a
        text = f"B is A {'+' if shift > 0 else '-'} {abs(shift):.6g}, which is {_percent(parts['offset'] / whole)}"
        found.append(Finding("offset", f"{text} of the squared error; PCC is the same for any offset", shift))
    share = counts.worst_error**2 / (total.squared_error * total.count)
    if share >= _NOTABLE and total.count > 1 / FEW:
        text = f"one element makes {_percent(min(1.0, share))} of the squared error; PCC spreads it over {total.count}"
        found.append(Finding("one_error", text, share))
    return found


def _in_the_largest(moments: Moments, total: Totals) -> list[Finding]:
    """Return how the correlation lives on few large elements, if it does."""
    if total.pcc is None or total.count < 1 / FEW:
        return []
    lowest, top = moments.largest(FEW), moments.top()
    shares = [_carried(total, moments.total(below=bin_)) for bin_ in range(lowest, top + 1)]
    if not shares or shares[0] < _NOTABLE:
        return []
    # as few of them as carry nearly as much
    chosen = max(k for k, share in enumerate(shares) if share >= 0.95 * shares[0])
    rest = moments.total(below=lowest + chosen)
    without = rest.pcc
    if not rest.count or (without is not None and 1.0 - without <= 2.0 * (1.0 - total.pcc) + 1e-6):
        return []
    few = total.count - rest.count
    alone = "there is no PCC" if without is None else f"PCC is {without:.6g}"
    text = (
        f"{_elements(few, 'large ')} ({_percent(few / total.count)}) carry {_percent(shares[chosen])} of the variance"
    )
    return [Finding("outliers", f"{text}; without them {alone}", 0.0 if without is None else without)]


def _carried(total: Totals, rest: Totals) -> float:
    """Return the share of the variance that goes with the elements that are not in the rest."""
    return 1.0 - rest.count * rest.variance_a / (total.count * total.variance_a)


def in_short(pcc: float | None, relative_rms: float, found: list[Finding]) -> str:
    """Return one sentence on what PCC is worth for two tensors.

    >>> in_short(0.99999, 0.004, [])
    'PCC tells the truth here: the error is scatter, 0.4 % of the values (rms)'
    """
    error = f"{_percent(relative_rms)} of the values (rms)"
    if pcc is None:
        return f"there is no PCC; the error is {error}"
    if not found:
        return f"PCC tells the truth here: the error is scatter, {error}"
    seen = sqrt(max(0.0, 1.0 - pcc * pcc))
    if pcc >= HIGH and relative_rms > 2.0 * seen:
        suggested = "no error" if seen < _ROUNDING else f"an error of {_percent(seen)}"
        return f"PCC {pcc:.6g} would pass, and suggests {suggested}; it is {error}"
    return f"PCC agrees with the error, which is {error}, but does not tell all:"


def _elements(count: int, kind: str = "") -> str:
    return f"{count} {kind}element{'' if count == 1 else 's'}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
