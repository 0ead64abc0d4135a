# SPDX-License-Identifier: Apache-2.0
"""`Chip`: what of a machine decides where bytes go. A chip is data: the shipped ones are the files in `chips/`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ..errors import MemoryConfigError
from .bank_order import shuffled_banks
from .cores import CoreCoord
from .kinds import BufferType

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent / "chips"
DISPATCH_MODES = ("fast", "slow")


@dataclass(frozen=True, repr=False)
class Chip:
    """A machine: its grid of cores, and the banks of L1 and DRAM with their bases, ends and alignments.

    `dispatch` is "fast" or "slow": fast dispatch keeps some lines of cores for itself. `harvested` lines are off.

    >>> chip = Chip.named("wormhole_n150")
    >>> chip.compute_grid, chip.banks("dram"), chip.banks("l1")
    (CoreCoord(x=8, y=8), 12, 64)
    >>> Chip.named("wormhole_n150", dispatch="slow").compute_grid
    CoreCoord(x=8, y=9)
    """

    name: str
    arch: str
    grid: tuple[int, int]
    l1_base: int
    l1_end: int
    dram_banks: int
    dram_bases: tuple[int, int]  # under fast and slow dispatch
    dram_end: int
    dram_alignment: int
    l1_alignment: int = 16
    harvested_from: str = "rows"
    harvested: int = 0
    dispatch_lines: int = 0
    dispatch: str = "fast"
    dram_noc: tuple[tuple[int, int], ...] = ()
    dram_noc_offsets: tuple[int, ...] = ()
    storage_cores: tuple[tuple[int, int], ...] = ()
    storage_banks: int = 1

    def __post_init__(self) -> None:
        if self.dispatch not in DISPATCH_MODES:
            raise MemoryConfigError(f"{self.name}: dispatch is 'fast' or 'slow', not {self.dispatch!r}")
        if self.harvested_from not in ("rows", "columns"):
            raise MemoryConfigError(f"{self.name}: harvested_from is 'rows' or 'columns', not {self.harvested_from!r}")
        across, down = self.compute_grid
        if min(across, down, self.dram_banks) < 1:
            raise MemoryConfigError(
                f"{self.name}: a grid of {across} x {down} cores with {self.dram_banks} DRAM banks holds nothing;"
                f" harvest fewer than {self.harvested} of the {self.harvested_from}"
            )
        for buffer in (BufferType.L1, BufferType.DRAM):
            if not 0 <= self.base(buffer) < self.end(buffer):
                raise MemoryConfigError(
                    f"{self.name}: {buffer} runs from {self.base(buffer)} to {self.end(buffer)}; give it room"
                )
            if self.base(buffer) % self.page_alignment(buffer):
                raise MemoryConfigError(
                    f"{self.name}: the {buffer} base {self.base(buffer)} is not aligned to"
                    f" {self.page_alignment(buffer)} bytes"
                )

    @classmethod
    def named(cls, name: str, dispatch: str = "fast", harvested: int | None = None) -> Chip:
        """Return a shipped chip by its name or another name it goes by.

        >>> Chip.named("n300").name, Chip.named("wormhole_n150", harvested=0).compute_grid
        ('wormhole_n300', CoreCoord(x=8, y=9))
        """
        files = _known_chips()
        if name not in files:
            raise MemoryConfigError(
                f"there is no chip {name!r}; choose one of {', '.join(chip_names())},"
                " or describe your own in a file for Chip.read"
            )
        chip = cls.read(files[name])
        return replace(chip, dispatch=dispatch, harvested=chip.harvested if harvested is None else harvested)

    @classmethod
    def read(cls, path: Any) -> Chip:
        """Return the chip that a TOML file describes, named after the file.

        >>> Chip.read(_FOLDER / "quasar_q1.toml").name
        'quasar_q1'
        """
        path = Path(path)
        return cls.from_toml(path.read_text(encoding="utf-8"), path.stem)

    @classmethod
    def from_toml(cls, text: str, name: str) -> Chip:
        """Return the chip that a TOML text describes.

        >>> Chip.from_toml(
        ...     '''
        ... arch = "small"
        ... [cores]
        ... grid = [2, 2]
        ... [l1]
        ... base = 1024
        ... end = 65536
        ... [dram]
        ... banks = 2
        ... base = 0
        ... end = 1048576
        ... alignment = 32
        ... ''',
        ...     "small",
        ... ).banks("l1")
        4
        """
        try:
            table = tomllib.loads(text)
            return cls(**_fields_of(table, name))
        except (KeyError, TypeError, ValueError, RecursionError) as problem:  # a TOMLDecodeError is a ValueError
            if isinstance(problem, MemoryConfigError):
                raise
            what = f"misses {problem}" if isinstance(problem, KeyError) else f"cannot be read: {problem}"
            raise MemoryConfigError(
                f"the description of chip {name!r} {what}; it needs [cores] grid, [l1] base and end, and [dram] banks,"
                " base, end and alignment"
            ) from None

    @classmethod
    def of(cls, value: Any) -> Chip:
        """Return a chip given as such or by name.

        >>> Chip.of("p150").arch
        'blackhole'
        """
        return value if isinstance(value, Chip) else _named(str(value))

    # Cores.

    @cached_property
    def compute_grid(self) -> CoreCoord:
        """Return (columns, rows) of the cores that programs may use.

        >>> Chip.named("blackhole_p150").compute_grid
        CoreCoord(x=11, y=10)
        """
        across, down = self.grid
        lost = self.harvested + (self.dispatch_lines if self.dispatch == "fast" else 0)
        return CoreCoord(across, down - lost) if self.harvested_from == "rows" else CoreCoord(across - lost, down)

    @cached_property
    def l1_cores(self) -> tuple[CoreCoord, ...]:
        """Return the core of each L1 bank, in the shuffled order of banks.

        >>> [tuple(core) for core in Chip.named("wormhole_n150").l1_cores[:3]]
        [(1, 4), (4, 4), (4, 1)]
        """
        across, down = self.compute_grid
        owners = [CoreCoord(x, y) for y in range(down) for x in range(across)]
        owners += [CoreCoord(*core) for core in self.storage_cores for _ in range(self.storage_banks)]
        by_bank = dict(zip(shuffled_banks(len(owners)), owners, strict=True))
        return tuple([by_bank[bank] for bank in range(len(owners))])

    @cached_property
    def _l1_bank_of(self) -> dict[CoreCoord, int]:
        return {core: bank for bank, core in reversed(list(enumerate(self.l1_cores)))}

    # Banks.

    def banks(self, buffer: Any) -> int:
        """Return the number of banks of a memory.

        >>> Chip.named("grayskull").banks("dram"), Chip.named("grayskull").banks("l1")
        (8, 124)
        """
        if BufferType.of(buffer).is_l1:
            return self.compute_grid.x * self.compute_grid.y + len(self.storage_cores) * self.storage_banks
        return self.dram_banks

    def shard_grid(self, buffer: Any) -> CoreCoord:
        """Return (columns, rows) of the cores that shards go to where no others are named: a row of banks for DRAM.

        >>> Chip.named("blackhole_p100").shard_grid("dram"), Chip.named("blackhole_p100").shard_grid("l1")
        (CoreCoord(x=7, y=1), CoreCoord(x=11, y=10))
        """
        return self.compute_grid if BufferType.of(buffer).is_l1 else CoreCoord(self.dram_banks, 1)

    def bank_of(self, core: Any, buffer: Any) -> int:
        """Return the bank of a core: its (first) L1 bank, or for DRAM the bank that its x names.

        >>> Chip.named("wormhole_n150").bank_of((1, 4), "l1"), Chip.named("wormhole_n150").bank_of((5, 0), "dram")
        (0, 5)
        """
        at, buffer = CoreCoord.of(core), BufferType.of(buffer)
        if buffer.is_l1:
            if at in self._l1_bank_of:
                return self._l1_bank_of[at]
            across, down = self.compute_grid
            raise MemoryConfigError(
                f"core {at} has no L1 bank on {self.name} with {self.dispatch} dispatch;"
                f" its cores are (0, 0) to ({across - 1}, {down - 1})"
            )
        if at.y or at.x >= self.dram_banks:
            raise MemoryConfigError(
                f"core {at} is no DRAM bank of {self.name}: x names the bank and y must be 0;"
                f" use (0, 0) to ({self.dram_banks - 1}, 0)"
            )
        return at.x

    def core_of(self, bank: int, buffer: Any) -> CoreCoord:
        """Return the core that owns a bank; a DRAM bank counts as the core (bank, 0).

        >>> Chip.named("wormhole_n150").core_of(0, "l1"), Chip.named("wormhole_n150").core_of(5, "dram")
        (CoreCoord(x=1, y=4), CoreCoord(x=5, y=0))
        """
        if not 0 <= bank < self.banks(buffer):
            raise MemoryConfigError(
                f"{self.name} has no {BufferType.of(buffer)} bank {bank}; it has 0 to {self.banks(buffer) - 1}"
            )
        return self.l1_cores[bank] if BufferType.of(buffer).is_l1 else CoreCoord(bank, 0)

    def base(self, buffer: Any) -> int:
        """Return the first address that tensors may use in a bank.

        >>> Chip.named("wormhole_n150").base("l1")
        105824
        """
        if BufferType.of(buffer).is_l1:
            return self.l1_base
        return self.dram_bases[DISPATCH_MODES.index(self.dispatch)]

    def end(self, buffer: Any) -> int:
        """Return the address after the last byte of a bank.

        >>> Chip.named("wormhole_n150").end("l1")
        1499136
        """
        return self.l1_end if BufferType.of(buffer).is_l1 else self.dram_end

    def bank_bytes(self, buffer: Any) -> int:
        """Return how many bytes of a bank tensors may use.

        >>> Chip.named("wormhole_n150").bank_bytes("l1")
        1393312
        """
        return self.end(buffer) - self.base(buffer)

    def page_alignment(self, buffer: Any) -> int:
        """Return the multiple of bytes at which the pages of a memory start.

        >>> Chip.named("blackhole_p150").page_alignment("dram"), Chip.named("blackhole_p150").page_alignment("l1")
        (64, 16)
        """
        return self.l1_alignment if BufferType.of(buffer).is_l1 else self.dram_alignment

    @property
    def allocation_alignment(self) -> int:
        """Return the multiple of bytes in which memory of any kind is handed out.

        >>> Chip.named("wormhole_n150").allocation_alignment
        32
        """
        return self.dram_alignment

    def noc_address(self, bank: int, address: int) -> int:
        """Return the address that a DRAM byte has on the network of the chip, where that is known.

        >>> Chip.named("wormhole_n150").noc_address(3, 1053828) == 1053828 + 2**30
        True
        """
        if not self.dram_noc_offsets:
            raise MemoryConfigError(f"where the DRAM banks of {self.name} lie on its network was not measured")
        return address + self.dram_noc_offsets[bank]

    def __repr__(self) -> str:
        known = _known_chips()
        if self.name in known:
            shipped = Chip.read(known[self.name])
            if self == replace(shipped, dispatch=self.dispatch, harvested=self.harvested):
                changed = [
                    f", {name}={getattr(self, name)!r}"
                    for name in ("dispatch", "harvested")
                    if getattr(self, name) != getattr(shipped, name)
                ]
                return f"Chip.named({self.name!r}{''.join(changed)})"
        return f"Chip({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in fields(self))})"

    def __str__(self) -> str:
        across, down = self.compute_grid
        return f"{self.name} ({across} x {down} cores, {self.dispatch} dispatch, {self.dram_banks} DRAM banks)"


def chip_names() -> list[str]:
    """Return the names of the shipped chips.

    >>> chip_names()[:2]
    ['blackhole_p100', 'blackhole_p150']
    """
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


@lru_cache(maxsize=1)
def known_chips() -> tuple[Chip, ...]:
    """Return every shipped chip with all cores that it can have, those of Wormhole first.

    >>> [(chip.name, tuple(chip.compute_grid)) for chip in known_chips()][:2]
    [('wormhole_n150', (8, 10)), ('wormhole_n300', (8, 10))]
    """
    names = sorted(chip_names(), key=lambda name: (not name.startswith("wormhole"), name))
    return tuple([Chip.named(name, dispatch="slow", harvested=0) for name in names])


@lru_cache(maxsize=1)
def _known_chips() -> dict[str, Path]:
    """Return the file of every shipped chip, under all its names."""
    known = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        also = tomllib.loads(path.read_text(encoding="utf-8")).get("also", [])
        known.update(dict.fromkeys([path.stem, *also], path))
    return known


@lru_cache(maxsize=64)
def _named(name: str) -> Chip:
    return Chip.named(name)


def _fields_of(table: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the arguments of `Chip` that a description holds."""
    cores, l1, dram = table["cores"], table["l1"], table["dram"]
    base = dram["base"]
    found: dict[str, Any] = {
        "name": table.get("name", name),
        "arch": table.get("arch", name),
        "grid": tuple(cores["grid"]),
        "storage_cores": tuple(map(tuple, cores.get("storage", ()))),
        "l1_base": l1["base"],
        "l1_end": l1["end"],
        "l1_alignment": l1.get("alignment", 16),
        "dram_banks": dram["banks"],
        "dram_bases": tuple(base[mode] for mode in DISPATCH_MODES) if isinstance(base, dict) else (base, base),
        "dram_end": dram["end"],
        "dram_alignment": dram["alignment"],
        "dram_noc": tuple(map(tuple, dram.get("noc", ()))),
        "dram_noc_offsets": tuple(dram.get("noc_offsets", ())),
    }
    optional = ("harvested_from", "harvested", "dispatch_lines", "storage_banks")
    return {**found, **{key: cores[key] for key in optional if key in cores}}
