# SPDX-License-Identifier: Apache-2.0
"""What a comparison found: of one tensor, and of all tensors of two files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..showing import Shown
from .findings import Finding

_NAMES = 26  # columns for a tensor's name in a table


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart elements may be: within atol + rtol x |a|, or within so many ULPs; and the least PCC.

    Nothing given means: exactly equal.

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
    """An element in which two tensors differ: its coordinate, both values, and where it lives, if that is known.

    >>> print(Difference((1, 2), 0.5, 0.75, (0, 0), (3, 1)))
    (1, 2): 0.5 and 0.75, in tile (0, 0), core (3, 1)
    """

    coordinate: tuple[int, ...]
    a: float
    b: float
    tile: tuple[int, int] | None = None
    core: tuple[int, int] | None = None

    def __str__(self) -> str:
        at = f"({', '.join(map(str, self.coordinate))})"
        tile = "" if self.tile is None else f", in tile {self.tile}"
        core = "" if self.core is None else f", core {self.core}"
        a, b = (str(each) if isinstance(each, int) else f"{each:.9g}" for each in (self.a, self.b))
        return f"{at}: {a} and {b}{tile}{core}"


@dataclass(frozen=True, slots=True, eq=False)
class TensorComparison(Shown):
    """How one tensor differs from another: figures, the first and the worst difference, and what PCC hides.

    `different` counts the elements beyond the tolerance, `unequal` those that are not exactly equal. `max_ulp` is in
    steps of `ulp_format`, the coarser of the two. `error_map` has the largest error of every `map_block` of rows and
    columns. `problem` says why there is no comparison.

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

    def to_json(self) -> dict[str, Any]:
        """Return the figures for programs.

        >>> from tilewright.compare import diff
        >>> diff(np.zeros(3), np.zeros(3)).tensors[0].to_json()["same"]
        True
        """
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def lines(self) -> list[tuple[str, str]]:
        """Return the figures with their names, for people.

        >>> from tilewright.compare import diff
        >>> diff(np.zeros(3), np.zeros(3)).tensors[0].lines()[-1]
        ('PCC', 'every element is equal')
        """
        shape = " x ".join(map(str, self.shape)) or "scalar"
        found = [("tensor", f"{self.name or 'the array'}: {shape}, {self.format_a} and {self.format_b}")]
        if self.problem:
            return [*found, ("problem", self.problem)]
        if not self.unequal:
            return [*found, ("equal", f"all {self.count} elements"), ("PCC", "every element is equal")]
        beyond = "" if self.different == self.unequal else f", {self.different} of them beyond the tolerance"
        share = f"{100 * self.unequal / self.count:.3g} %"
        found += [
            ("unequal", f"{self.unequal} of {self.count} elements ({share}){beyond}"),
            ("max abs", f"{self.max_abs:.6g}" + ("" if self.worst is None else f" at {self.worst}")),
            ("max rel", f"{self.max_relative:.6g}"),
            ("max ULP", f"{self.max_ulp:.6g} steps of {self.ulp_format}"),
            ("rms", f"{self.rms_error:.6g}, {100 * self.relative_rms:.3g} % of the rms of A"),
            *([] if self.first is None else [("first", str(self.first))]),
            ("PCC", "none" if self.pcc is None else f"{self.pcc:.9g}"),
            ("", self.pcc_in_words),
        ]
        return [*found, *(("", f"- {each}") for each in self.findings)]

    def __str__(self) -> str:
        return "\n".join(f"{name:<9}{text}" for name, text in self.lines())

    def __repr__(self) -> str:
        said = self.problem or f"{self.unequal} of {self.count} unequal, max abs {self.max_abs:g}"
        return f"<TensorComparison {self.name!r}: {said}>"


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Shown):
    """How the tensors of two files differ, and which are in one of them only.

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
        return not self.only_a and not self.only_b and all(each.same for each in self.tensors)

    @property
    def worst(self) -> TensorComparison | None:
        """Return the tensor that is worth looking at first: one that cannot be compared, or with the largest error.

        >>> from tilewright.compare import diff
        >>> diff({"x": np.zeros(3), "y": np.zeros(2)}, {"x": np.zeros(3), "y": np.ones(2)}).worst.name
        'y'
        """
        return max(self.tensors, key=lambda each: (not each.same, bool(each.problem), each.relative_rms), default=None)

    def __getitem__(self, name: str) -> TensorComparison:
        for each in self.tensors:
            if each.name == name:
                return each
        raise KeyError(f"there is no comparison of {name!r}; there are {len(self.tensors)} others")

    def __iter__(self) -> Iterator[TensorComparison]:
        return iter(self.tensors)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison for programs.

        >>> from tilewright.compare import diff
        >>> sorted(diff(np.zeros(3), np.ones(3)).to_json())
        ['a', 'b', 'only_a', 'only_b', 'same', 'tensors', 'tolerance']
        """
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**found, "tensors": [each.to_json() for each in self.tensors], "same": self.same}

    def table(self) -> str:
        """Return a line for each tensor.

        >>> from tilewright.compare import diff
        >>> print(diff({"x": np.float32([1, 2])}, {"x": np.float32([1, 3])}).table())
        tensor                         max abs      ULPs  rms error        PCC
        x                                    1  4.19e+06      0.447  1.0000000  DIFFERS
        """
        lines = [f"{'tensor':<{_NAMES}}{'max abs':>12}{'ULPs':>10}{'rms error':>11}{'PCC':>11}"]
        for each in self.tensors:
            name = each.name if len(each.name) < _NAMES else f"...{each.name[4 - _NAMES :]}"
            if each.problem:
                lines.append(f"{name:<{_NAMES}}  {each.problem}")
                continue
            pcc = "none" if each.pcc is None else f"{each.pcc:.7f}"
            figures = f"{each.max_abs:>12.4g}{each.max_ulp:>10.3g}{each.relative_rms:>11.3g}{pcc:>11}"
            lines.append(f"{name:<{_NAMES}}{figures}{'' if each.same else '  DIFFERS'}")
        lines += [f"{name:<{_NAMES}}  only in {self.a}" for name in self.only_a]
        lines += [f"{name:<{_NAMES}}  only in {self.b}" for name in self.only_b]
        return "\n".join(lines)

    def __str__(self) -> str:
        same = sum(each.same for each in self.tensors)
        missing = len(self.only_a) + len(self.only_b)
        heading = f"{same} of {len(self.tensors)} tensors are the same ({self.tolerance})"
        others = f", {missing} in one of the two only" if missing else ""
        worst = self.worst
        detail = "" if worst is None or not (worst.unequal or worst.problem) else f"\n\n{worst}"
        return f"{heading}{others}\n{self.table()}{detail}"

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.tensors)} tensors: {'same' if self.same else 'different'}>"
