# SPDX-License-Identifier: Apache-2.0
"""`KernelReport`: the defects of a kernel, the cost of its memory accesses, and the threads behind them.

Warnings about accesses that are right, but cost more than they need to.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tilewright._text import count_of, format_bytes, format_table
from tilewright.display import Drawable
from tilewright.findings import Severity

from .access_log import Site
from .kernel_thread import Dim

WIDTH = 80


@dataclass(frozen=True, slots=True)
class Witness:
    """A thread at a place in the source, and its action there.

    >>> witness = Witness("write", Site("kernel.py", 12, 5), Dim(0, 0, 0), Dim(3, 0, 0))
    >>> print(witness)
    write at kernel.py:12:5 by thread (3,0,0) of block (0,0,0)
    """

    action: str
    site: Site
    block: Dim
    thread: Dim

    def __str__(self) -> str:
        return f"{self.action} at {self.site} by thread {self.thread} of block {self.block}"

    def to_json(self) -> dict[str, Any]:
        """Return the witness as plain data.

        >>> Witness("read", Site("k.py", 1, 2), Dim(0, 0, 0), Dim(1, 0, 0)).to_json()["thread"]
        [1, 0, 0]
        """
        return {
            "action": self.action,
            **asdict(self.site),
            "source": self.site.text,
            "block": list(self.block),
            "thread": list(self.thread),
        }


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect of a kernel: its `kind`, a `message`, the threads and lines involved, and a `remedy`.

    `element` is the memory it is about, and `count` how often it happens, of which the witnesses are the first. One
    that is `harmless` does not change any result on today's GPUs.

    >>> defect = Defect("race", "two threads access s[3] without a barrier between", remedy="call barrier() between")
    >>> print(defect)
    error: race: two threads access s[3] without a barrier between
      remedy: call barrier() between
    """

    kind: str
    message: str
    witnesses: tuple[Witness, ...] = ()
    remedy: str = ""
    element: str = ""
    count: int = 1
    severity: Severity = Severity.ERROR
    harmless: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the defect as plain data.

        >>> Defect("race", "...").to_json()["severity"]
        'error'
        """
        return {
            "kind": self.kind,
            "severity": self.severity.value,
            "message": self.message,
            "element": self.element,
            "count": self.count,
            "harmless": self.harmless,
            "remedy": self.remedy,
            "witnesses": [witness.to_json() for witness in self.witnesses],
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, width: int = WIDTH) -> list[str]:
        """Return the text in lines of at most `width` columns.

        >>> Defect("race", "...").lines()
        ['error: race: ...']
        """
        more = f" ({self.count - 1} more like it)" if self.count > 1 else ""
        result = textwrap.wrap(f"{self.severity.value}: {self.kind}: {self.message}{more}", width, **_HANGING)
        for witness in self.witnesses:
            result += textwrap.wrap(f"  {witness}", width, subsequent_indent="    ", break_long_words=False)
            source = witness.site.text
            if source:
                result.append(textwrap.shorten(f"{source}", width - 6, placeholder=" ..."))
                result[-1] = "      " + result[-1]
        if self.remedy:
            result += textwrap.wrap(f"  remedy: {self.remedy}", width, subsequent_indent="    ")
        return result


_HANGING: Any = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}


@dataclass(frozen=True, slots=True)
class SiteCost:
    """The cost of one line's accesses to one tensor.

    `accesses` counts per thread, `instructions` per warp. In shared memory `wavefronts` are the passes over
    the banks, of which `ideal` would do, and `ways` is the worst conflict; in global memory `sectors` are transferred.

    >>> cost = SiteCost("read", Site("k.py", 3, 9), "s", "shared", 32, 128, 1, 32, 1, 32)
    >>> cost.factor, str(cost)
    (32.0, '32-way bank conflict')
    """

    action: str
    site: Site
    memory: str
    space: str
    accesses: int
    nbytes: int
    instructions: int
    units: int  # wavefronts, or sectors
    ideal: int
    ways: int = 1
    estimated: bool = False  # from a sample of the warps

    @property
    def factor(self) -> float:
        """The cost of the accesses, as a multiple of the ideal one.

        >>> SiteCost("read", Site("k.py", 3, 9), "a", "global", 32, 128, 1, 32, 4).factor
        8.0
        """
        return self.units / self.ideal if self.ideal else 1.0

    def __str__(self) -> str:
        if self.space == "shared":
            return "no conflict" if self.units == self.ideal else f"{self.ways}-way bank conflict"
        return f"{count_of(self.units, 'sector')}, ideal {self.ideal}"

    def to_json(self) -> dict[str, Any]:
        """Return the cost as plain data.

        >>> SiteCost("read", Site("k.py", 3, 9), "a", "global", 32, 128, 1, 4, 4).to_json()["sectors"]
        4
        """
        unit = "wavefronts" if self.space == "shared" else "sectors"
        return {
            "action": self.action,
            **asdict(self.site),
            "source": self.site.text,
            "memory": self.memory,
            "space": self.space,
            "accesses": self.accesses,
            "bytes": self.nbytes,
            "instructions": self.instructions,
            unit: self.units,
            f"ideal_{unit}": self.ideal,
            **({"ways": self.ways} if self.space == "shared" else {}),
            "estimated": self.estimated,
        }


@dataclass(frozen=True, slots=True)
class TouchMap:
    """The threads that touched each element of a tensor between two barriers of one block.

    `readers` and `writers` have the number of a thread per element in row-major order, None where there was none, and
    `racing` marks the elements that threads raced for.

    >>> TouchMap("s", "shared", (1, 2), Dim(0, 0, 0), 0, (None, None), (0, 1), (False, False)).shape
    (1, 2)
    """

    memory: str
    space: str
    shape: tuple[int, int]
    block: Dim
    step: int
    readers: tuple[int | None, ...]
    writers: tuple[int | None, ...]
    racing: tuple[bool, ...]


@dataclass(frozen=True)
class KernelReport(Drawable):
    """The report on a launch: `errors` and `warnings`, and the cost of accesses per line of source.

    >>> report = KernelReport("scale", Dim(4), Dim(64))
    >>> print(report)
    scale: 4 blocks of 64 threads: no errors
    """

    kernel: str
    grid: Dim
    block: Dim
    errors: tuple[Defect, ...] = ()
    warnings: tuple[Defect, ...] = ()
    sites: tuple[SiteCost, ...] = ()
    touches: tuple[TouchMap, ...] = ()
    warp: int = 32
    shared_bytes: int = 0

    @property
    def clean(self) -> bool:
        """Whether no errors were found.

        >>> KernelReport("scale", Dim(4), Dim(64)).clean
        True
        """
        return not self.errors

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data.

        >>> KernelReport("scale", Dim(4), Dim(64)).to_json()["grid"]
        [4, 1, 1]
        """
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "warp": self.warp,
            "shared_bytes": self.shared_bytes,
            "clean": self.clean,
            "errors": [defect.to_json() for defect in self.errors],
            "warnings": [defect.to_json() for defect in self.warnings],
            "sites": [cost.to_json() for cost in self.sites],
        }

    def __str__(self) -> str:
        blocks, threads = (extents.x * extents.y * extents.z for extents in (self.grid, self.block))
        verdict = count_of(len(self.errors), "error") if self.errors else "no errors"
        more = f", {count_of(len(self.warnings), 'warning')}" if self.warnings else ""
        head = f"{self.kernel}: {count_of(blocks, 'block')} of {count_of(threads, 'thread')}: {verdict}{more}"
        parts = [head, *[str(defect) for defect in (*self.errors, *self.warnings)]]
        if self.sites:
            parts.append(self._format_sites())
        return "\n\n".join(parts)

    def _format_sites(self) -> str:
        rows = [("line", "memory", "", "accesses", "bytes", "cost")]
        files = {cost.site.file for cost in self.sites}
        for cost in self.sites:
            about = "~" if cost.estimated else ""
            space = f"{cost.space} {textwrap.shorten(cost.memory, 16, placeholder='..')}"
            rows.append(
                (
                    cost.site.position if len(files) == 1 else str(cost.site),
                    space,
                    cost.action,
                    str(cost.accesses),
                    format_bytes(cost.nbytes),
                    f"{about}{cost}",
                )
            )
        table = "\n".join(format_table(rows, right={3, 4}, indent="  "))
        shared = f"\n  shared memory per block: {format_bytes(self.shared_bytes)}" if self.shared_bytes else ""
        where = f" of {self.sites[0].site.short_file}" if len(files) == 1 else ""
        return f"memory accesses, by line{where}\n{table}{shared}"


_WORTH_TELLING = 2.0  # times the ideal cost


def find_warnings(costs: Iterable[SiteCost]) -> tuple[Defect, ...]:
    """Return warnings about the lines whose accesses take at least twice the ideal cost.

    >>> from tilewright_mojo.simt.access_log import Site
    >>> cost = SiteCost("read", Site("k.py", 3, 9), "s", "shared", 32, 128, 1, 32, 1, 32)
    >>> print(find_warnings([cost])[0])
    warning: bank conflict: read of s at k.py:3:9: 32 wavefronts, ideal 1 (32-way)
      remedy: let neighbouring threads access neighbouring words; pad the rows of a
        tile by one element, or swizzle it
    """
    return tuple([_warn(cost) for cost in costs if cost.factor >= _WORTH_TELLING])


def _warn(cost: SiteCost) -> Defect:
    where = f"{cost.action} of {cost.memory} at {cost.site}"
    if cost.space == "shared":
        return Defect(
            "bank conflict",
            f"{where}: {cost.units} wavefronts, ideal {cost.ideal} ({cost.ways}-way)",
            remedy="let neighbouring threads access neighbouring words; pad the rows of a tile by one element, or"
            " swizzle it",
            severity=Severity.WARNING,
        )
    return Defect(
        "uncoalesced access",
        f"{where}: {cost.units} sectors of 32 bytes, ideal {cost.ideal} ({1 / cost.factor:.0%} of the bytes are used)",
        remedy="let neighbouring threads access neighbouring elements: thread_idx.x belongs to the last index",
        severity=Severity.WARNING,
    )
