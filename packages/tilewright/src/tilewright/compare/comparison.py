# SPDX-License-Identifier: Apache-2.0
"""The results of a comparison: figures and differences per tensor, and what a correlation coefficient hides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conversion.exactness import describe_exceptional, note_exceptional
from ..files.mesh import format_devices
from ..showing import Shown
from ..tables import count_of, format_table
from .error_statistics import Moments, Totals

FEW_SHARE = 0.001  # the share of elements that counts as few
PASSING_PCC = 0.99  # a correlation that passes common tests
_ROUNDING = 1e-7  # the rounding error of the sums
_NOTABLE_SHARE = 0.5  # of an error or a variance


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a high correlation hides: its kind, a description, and the number that shows it.

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
    """Counts of elements that became zero, changed sign or are finite on one side only; and the worst error.

    >>> Counts(elements=10, nonzero=9, zeroed=3, flipped=0, not_finite=0, worst_error=0.5).zeroed
    3
    """

    elements: int
    nonzero: int
    zeroed: int
    flipped: int
    not_finite: int
    worst_error: float


def find_hidden_errors(moments: Moments, counts: Counts) -> list[Finding]:
    """Return what the correlation of two tensors hides, from their sums and counts.

    >>> import numpy as np
    >>> a = np.linspace(-1, 1, 100)
    >>> moments = Moments()
    >>> moments.add(a, 2 * a)
    >>> print(find_hidden_errors(moments, Counts(100, 100, 0, 0, 0, 1.0))[0])
    B is 2 x A, which is 100 % of the squared error; PCC is the same for any factor
    """
    total = moments.total()
    findings: list[Finding] = []
    if total.count and total.pcc is None:
        side = "A" if not total.variance_a else "B"
        findings.append(Finding("constant", f"{side} is constant, so PCC is undefined", 0.0))
    findings += _find_in_error(total, counts)
    findings += _find_outliers(moments, total)
    if counts.zeroed:
        share = counts.zeroed / max(1, counts.nonzero)
        zeroed = _count_elements(counts.zeroed, "nonzero ")
        text = f"{zeroed} became zero ({_format_percent(share)}), which hardly changes PCC"
        findings.append(Finding("zeroed", text, share))
    if counts.flipped:
        share = counts.flipped / counts.elements
        findings.append(
            Finding("flipped", f"{_count_elements(counts.flipped)} changed sign ({_format_percent(share)})", share)
        )
    if counts.not_finite:
        share = counts.not_finite / counts.elements
        text = f"NaN or infinite on one side only: {_count_elements(counts.not_finite)}, which PCC ignores"
        findings.append(Finding("not_finite", text, share))
    return findings


def _find_in_error(total: Totals, counts: Counts) -> list[Finding]:
    """Return the parts of the error that a correlation cannot see."""
    parts = total.error_parts()
    whole = sum(parts.values())
    if not whole or not total.squared_error:
        return []
    result = []
    if parts["factor"] / whole >= _NOTABLE_SHARE and total.slope is not None:
        text = f"B is {total.slope:.6g} x A, which is {_format_percent(parts['factor'] / whole)} of the squared error"
        result.append(Finding("factor", f"{text}; PCC is the same for any factor", total.slope))
    if parts["offset"] / whole >= _NOTABLE_SHARE:
        shift = total.mean_b - total.mean_a
        text = (
            f"B is A {'+' if shift > 0 else '-'} {abs(shift):.6g}, which is {_format_percent(parts['offset'] / whole)}"
        )
        result.append(Finding("offset", f"{text} of the squared error; PCC is the same for any offset", shift))
    share = counts.worst_error**2 / (total.squared_error * total.count)
    if share >= _NOTABLE_SHARE and total.count > 1 / FEW_SHARE:
        percent = _format_percent(min(1.0, share))
        text = f"one element makes {percent} of the squared error; PCC averages it over {total.count}"
        result.append(Finding("one_error", text, share))
    return result


def _find_outliers(moments: Moments, total: Totals) -> list[Finding]:
    """Return a finding if a few large elements dominate the correlation."""
    if total.pcc is None or total.count < 1 / FEW_SHARE:
        return []
    lowest, top = moments.largest_bins(FEW_SHARE), moments.highest_bin()
    shares = [_variance_share(total, moments.total(below=bin_)) for bin_ in range(lowest, top + 1)]
    if not shares or shares[0] < _NOTABLE_SHARE:
        return []
    # the fewest elements with nearly the same share
    chosen = max(k for k, share in enumerate(shares) if share >= 0.95 * shares[0])
    rest = moments.total(below=lowest + chosen)
    without = rest.pcc
    if not rest.count or (without is not None and 1.0 - without <= 2.0 * (1.0 - total.pcc) + 1e-6):
        return []
    few = total.count - rest.count
    alone = "PCC is undefined" if without is None else f"PCC is {without:.6g}"
    large = f"{_count_elements(few, 'large ')} ({_format_percent(few / total.count)})"
    text = f"{large} make {_format_percent(shares[chosen])} of the variance"
    return [Finding("outliers", f"{text}; without them {alone}", 0.0 if without is None else without)]


def _variance_share(total: Totals, rest: Totals) -> float:
    """Return the share of the variance of the elements that are not in the rest."""
    return 1.0 - rest.count * rest.variance_a / (total.count * total.variance_a)


def summarize_pcc(pcc: float | None, relative_rms: float, findings: list[Finding]) -> str:
    """Return one sentence on how far PCC can be trusted for two tensors.

    >>> summarize_pcc(0.99999, 0.004, [])
    'PCC is reliable here: the error is noise, 0.4 % of the values (rms)'
    """
    error = f"{_format_percent(relative_rms)} of the values (rms)"
    if pcc is None:
        return f"PCC is undefined; the error is {error}"
    if not findings:
        return f"PCC is reliable here: the error is noise, {error}"
    seen = sqrt(max(0.0, 1.0 - pcc * pcc))
    if pcc >= PASSING_PCC and relative_rms > 2.0 * seen:
        suggested = "no error" if seen < _ROUNDING else f"an error of {_format_percent(seen)}"
        return f"PCC {pcc:.6g} would pass and suggests {suggested}, but the error is {error}"
    return f"PCC agrees with the error of {error}, but hides:"


def _count_elements(count: int, kind: str = "") -> str:
    return f"{count} {kind}element{'' if count == 1 else 's'}"


def _format_percent(share: float) -> str:
    return f"{100 * share:.3g} %"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart elements may be: within atol + rtol x |a|, or within `ulp` ULPs; and the least PCC.

    By default elements must be equal.

    >>> Tolerance(atol=1e-3).is_exact, str(Tolerance(ulp=1))
    (False, 'within 1 ULP')
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulp: float | None = None
    pcc: float | None = None

    @property
    def is_exact(self) -> bool:
        """Return whether elements must be equal.

        >>> Tolerance().is_exact
        True
        """
        return not (self.atol or self.rtol or self.ulp)

    def __str__(self) -> str:
        parts = []
        if self.atol or self.rtol:
            parts.append(f"{self.atol:g} + {self.rtol:g} x |a|")
        if self.ulp:
            parts.append(f"{self.ulp:g} ULP")
        within = f"within {' or '.join(parts)}" if parts else "equal"
        return within if self.pcc is None else f"{within}, PCC at least {self.pcc:g}"


@dataclass(frozen=True, slots=True)
class Difference:
    """An element in which two tensors differ: its coordinate, both values, and its tile and core if known.

    On a mesh, `devices` hold it, and tile and core are those in their part.

    >>> print(Difference((1, 2), 0.5, 0.75, (0, 0), (3, 1)))
    (1, 2): 0.5 and 0.75, in tile (0, 0), core (3, 1)
    """

    coordinate: tuple[int, ...]
    a: float
    b: float
    tile: tuple[int, int] | None = None
    core: tuple[int, int] | None = None
    devices: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        at = f"({', '.join(map(str, self.coordinate))})"
        tile = "" if self.tile is None else f", in tile {self.tile}"
        core = "" if self.core is None else f", core {self.core}"
        a, b = (str(each) if isinstance(each, int) else f"{each:.9g}" for each in (self.a, self.b))
        noun = "device" if len(self.devices) == 1 else "devices"
        devices = f", on {noun} {format_devices(self.devices)}" if self.devices else ""
        return f"{at}: {a} and {b}{devices}{tile}{core}"


@dataclass(frozen=True, slots=True, eq=False)
class TensorComparison(Shown):
    """How one tensor differs from another: figures, the first and the worst difference, and what PCC hides.

    `different` counts the elements beyond the tolerance, `unequal` those that are not exactly equal. `max_ulp` is in
    steps of `ulp_format`, the coarser of the two. `error_map` has the largest error of every `map_block` of rows and
    columns. `problem` says why they could not be compared, and `order` how the dimensions of B were permuted for it.
    `exceptional_a` and `exceptional_b` count values that are NaN or infinite, and in A those out of B's range.

    >>> from tilewright.compare import diff
    >>> found = diff(np.zeros((4, 4)), np.eye(4)).tensors[0]
    >>> found.unequal, found.max_abs, str(found.first)
    (4, 1.0, '(0, 0): 0 and 1')
    """

    name: str
    shape: tuple[int, ...]
    format_a: str
    format_b: str
    same: bool
    problem: str = ""
    count: int = 0
    unequal: int = 0
    different: int = 0
    max_abs: float = 0.0
    max_relative: float = 0.0
    max_ulp: float = 0.0
    ulp_format: str = ""
    rms_error: float = 0.0
    relative_rms: float = 0.0
    pcc: float | None = None
    factor: float | None = None
    offset: float | None = None
    pcc_in_words: str = ""
    findings: tuple[Finding, ...] = ()
    first: Difference | None = None
    worst: Difference | None = None
    map_block: tuple[int, int] = (1, 1)
    error_map: NDArray[np.float64] | None = None
    order: tuple[int, ...] | None = None
    exceptional_a: Mapping[str, int] = field(default_factory=dict)
    exceptional_b: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data.

        >>> from tilewright.compare import diff
        >>> diff(np.zeros(3), np.zeros(3)).tensors[0].to_json()["same"]
        True
        """
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def lines(self) -> list[tuple[str, str]]:
        """Return the names and texts of all figures.

        >>> from tilewright.compare import diff
        >>> diff(np.zeros(3), np.zeros(3)).tensors[0].lines()[-1]
        ('PCC', 'every element is equal')
        """
        shape = " x ".join(map(str, self.shape)) or "scalar"
        result = [("tensor", f"{self.name or 'the array'}: {shape}, {self.format_a} and {self.format_b}")]
        if self.problem:
            return [*result, ("problem", self.problem)]
        if self.order is not None:
            result.append(("order", f"B has the dimensions of A in the order {self.order}"))
        for side, counts in (("A", self.exceptional_a), ("B", self.exceptional_b)):
            if counts:
                result.append(("values", f"{side}: {describe_exceptional(counts, self.format_b)}"))
        if not self.unequal:
            return [*result, ("equal", f"all {self.count} elements"), ("PCC", "every element is equal")]
        beyond = "" if self.different == self.unequal else f", {self.different} of them beyond the tolerance"
        share = f"{100 * self.unequal / self.count:.3g} %"
        result += [
            ("unequal", f"{self.unequal} of {self.count} elements ({share}){beyond}"),
            ("max abs", f"{self.max_abs:.6g}" + ("" if self.worst is None else f" at {self.worst}")),
            ("max rel", f"{self.max_relative:.6g}"),
            ("max ULP", f"{self.max_ulp:.6g} steps of {self.ulp_format}"),
            ("rms", f"{self.rms_error:.6g}, {100 * self.relative_rms:.3g} % of the rms of A"),
            *([] if self.first is None else [("first", str(self.first))]),
            ("PCC", "none" if self.pcc is None else f"{self.pcc:.9g}"),
            ("", self.pcc_in_words),
        ]
        return [*result, *(("", f"- {finding}") for finding in self.findings)]

    def __str__(self) -> str:
        return "\n".join(f"{name:<9}{text}" for name, text in self.lines())

    def __repr__(self) -> str:
        said = self.problem or f"{self.unequal} of {self.count} unequal, max abs {self.max_abs:g}"
        return f"<TensorComparison {self.name!r}: {said}>"


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Shown):
    """How the tensors of two files differ, and which exist in only one of them.

    >>> from tilewright.compare import diff
    >>> found = diff({"x": np.zeros(3), "y": np.ones(2)}, {"x": np.zeros(3)})
    >>> found.same, found.only_a, found["x"].same
    (False, ('y',), True)
    """

    a: str
    b: str
    tolerance: Tolerance
    tensors: tuple[TensorComparison, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Return whether both sides have the same tensors, within the tolerance.

        >>> from tilewright.compare import diff
        >>> diff(np.zeros(3), np.ones(3)).same
        False
        """
        return not self.only_a and not self.only_b and all(tensor.same for tensor in self.tensors)

    @property
    def worst(self) -> TensorComparison | None:
        """Return the tensor to look at first: one that cannot be compared, or the one with the largest error.

        >>> from tilewright.compare import diff
        >>> diff({"x": np.zeros(3), "y": np.zeros(2)}, {"x": np.zeros(3), "y": np.ones(2)}).worst.name
        'y'
        """
        return max(self.tensors, key=lambda each: (not each.same, bool(each.problem), each.relative_rms), default=None)

    def __getitem__(self, name: str) -> TensorComparison:
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(f"no comparison of {name!r}; there are {count_of(len(self.tensors), 'other')}")

    def __iter__(self) -> Iterator[TensorComparison]:
        return iter(self.tensors)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain data.

        >>> from tilewright.compare import diff
        >>> sorted(diff(np.zeros(3), np.ones(3)).to_json())
        ['a', 'b', 'only_a', 'only_b', 'same', 'tensors', 'tolerance']
        """
        result = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**result, "tensors": [tensor.to_json() for tensor in self.tensors], "same": self.same}

    def table(self, width: int | None = None) -> str:
        """Return a table with a line per tensor; names are shortened to fit `width`, if it is given.

        >>> from tilewright.compare import diff
        >>> print(diff({"x": np.float32([1, 2])}, {"x": np.float32([1, 3])}).table())
        tensor  max abs      ULPs  rms error        PCC
        x             1  4.19e+06      0.447  1.0000000  DIFFERS
        """
        rows = [("tensor", "max abs", "ULPs", "rms error", "PCC", "")]
        for each in self.tensors:
            verdict = each.problem or ("" if each.same else "DIFFERS")
            figures = ("", "", "", "")
            if not each.problem:
                pcc = "none" if each.pcc is None else f"{each.pcc:.7f}"
                figures = (f"{each.max_abs:.4g}", f"{each.max_ulp:.3g}", f"{each.relative_rms:.3g}", pcc)
            rows.append((each.name, *figures, verdict))
        for side, names in ((self.a, self.only_a), (self.b, self.only_b)):
            rows += [(name, "", "", "", "", f"only in {side}") for name in names]
        reasons = max([len(row[-1]) for row in rows]) - len("DIFFERS")  # they may be long, and exceed the width
        columns = None if width is None else width + max(0, reasons)
        return "\n".join(format_table(rows, columns, right=[1, 2, 3, 4]))

    def text(self, width: int | None = None) -> str:
        """Return the comparison as text; names are shortened to fit `width`, if it is given.

        >>> from tilewright.compare import diff
        >>> diff(np.zeros(3), np.zeros(3)).text().splitlines()[0]
        '1 of 1 tensor is the same (equal)'
        """
        same = sum([tensor.same for tensor in self.tensors])
        missing = len(self.only_a) + len(self.only_b)
        verb = "is" if 1 in (same, len(self.tensors)) else "are"
        heading = f"{same} of {count_of(len(self.tensors), 'tensor')} {verb} the same ({self.tolerance})"
        others = f", {missing} in only one of the two" if missing else ""
        worst = self.worst
        detail = "" if worst is None or not (worst.unequal or worst.problem) else f"\n\n{worst}"
        notes = "".join([f"\nnote: {note}" for note in self.notes()])
        return f"{heading}{others}\n{self.table(width)}{notes}{detail}"

    def notes(self) -> list[str]:
        """Return which tensors have values that are NaN, infinite, or in A out of range of B's format.

        >>> from tilewright.compare import diff
        >>> diff({"x": np.array([1, np.nan])}, {"x": np.array([1, np.nan])}).notes()
        ['x in A: 1 value is NaN', 'x in B: 1 value is NaN']
        """
        sides = [
            (f"{each.name or 'the array'} in {side}", counts, each.format_b)
            for each in self.tensors
            for side, counts in (("A", each.exceptional_a), ("B", each.exceptional_b))
        ]
        return list(note_exceptional(sides))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Comparison of {count_of(len(self.tensors), 'tensor')}: {'same' if self.same else 'different'}>"
