# SPDX-License-Identifier: Apache-2.0
"""`Chip`: the cores, banks, address ranges and alignments of a machine. Known chips are the files in `chips/`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from .._files import as_path
from .._json import parse_toml
from .._text import canonical_word, parse_extents, suggest
from ..errors import MemoryConfigError
from ..plugins import list_plugins, load_plugin
from .config import BufferType, BufferTypeLike
from .cores import CoreCoord, CoreLike

_FOLDER = Path(__file__).parent / "chips"
DISPATCH_MODES = ("fast", "slow")
_MODULUS = 2147483647  # minstd_rand0: x -> 16807 x mod 2^31 - 1, from 1
_MULTIPLIER = 16807
_RANGE = _MODULUS - 2  # the generator yields 1 to _MODULUS - 1


@dataclass(frozen=True, repr=False)
class Chip:
    """A chip: its grid of cores, and the banks of L1 and DRAM with their address ranges and alignments.

    `name` and `arch` identify the chip, `grid` is the columns and rows of cores. L1 of every core goes from `l1_base`
    to `l1_end`; each of the `dram_banks` from one of `dram_bases` to `dram_end`. Pages begin at multiples of
    `l1_alignment` and `dram_alignment`. `dispatch` is "fast" or "slow": fast dispatch reserves `dispatch_lines` rows
    or columns of cores. `harvested` is the number of rows or columns (`harvested_from`) that are disabled. `dram_noc`
    has the NoC position of every DRAM bank, `dram_noc_offsets` where it begins there. `storage_cores` are further
    cores that hold `storage_banks` banks of L1 each. `noc_size` are the columns and rows of the torus of the NoC,
    `noc_columns` and `noc_rows` where on it the columns and rows of cores are (harvested ones last), `noc_dram` where
    the ports of every DRAM bank are, `dram_ports` the port of each bank that NOC 0 and NOC 1 use (the first one by
    default), `dram_workers` the cores that work for the banks, by compute grid, and `clock_mhz` is the clock;
    they are empty where they are not known. `packet_bytes` is the most that one packet of the NoC carries.
    Kernels address column x and row y of the compute grid as `virtual_columns[x]` and `virtual_rows[y]`, whatever is
    harvested.

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
    noc_size: tuple[int, ...] = ()
    noc_columns: tuple[int, ...] = ()
    noc_rows: tuple[int, ...] = ()
    noc_dram: tuple[tuple[tuple[int, int], ...], ...] = ()
    dram_ports: tuple[tuple[int, ...], ...] = ()
    dram_workers: tuple[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], ...] = ()
    packet_bytes: int = 8192
    clock_mhz: int = 0
    virtual_columns: tuple[int, ...] = ()
    virtual_rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.dispatch not in DISPATCH_MODES:
            raise MemoryConfigError(f"{self.name}: expected dispatch 'fast' or 'slow', got {self.dispatch!r}")
        if self.harvested_from not in ("rows", "columns"):
            raise MemoryConfigError(
                f"{self.name}: harvested_from must be 'rows' or 'columns', got {self.harvested_from!r}"
            )
        across, down = self.compute_grid
        if min(across, down, self.dram_banks) < 1:
            raise MemoryConfigError(
                f"{self.name}: expected at least one core and one DRAM bank, got {across} x {down} cores and"
                f" {self.dram_banks} banks; harvest fewer than {self.harvested} {self.harvested_from}"
            )
        for buffer in (BufferType.L1, BufferType.DRAM):
            if not 0 <= self.base(buffer) < self.end(buffer):
                raise MemoryConfigError(
                    f"{self.name}: the {buffer} address range {self.base(buffer)} to {self.end(buffer)} is empty"
                )
            if self.base(buffer) % self.page_alignment(buffer):
                raise MemoryConfigError(
                    f"{self.name}: the {buffer} base {self.base(buffer)} is not a multiple of its alignment"
                    f" {self.page_alignment(buffer)}"
                )

    @classmethod
    def named(cls, name: str, dispatch: str = "fast", harvested: int | None = None) -> Chip:
        """Return a known chip by name or alias, with its `dispatch` and number of `harvested` rows or columns.

        A system, such as T3K or Galaxy, stands for its chip.

        >>> Chip.named("n300").name, Chip.named("T3K").name, Chip.named("wormhole_n150", harvested=0).compute_grid
        ('wormhole_n300', 'wormhole_n300', CoreCoord(x=8, y=9))
        """
        path = _chip_files().get(canonical_word(name))
        chip = load_plugin("chips", name, Chip) if path is None else cls.read(path)
        if not isinstance(chip, Chip):
            otherwise = f"use one of {', '.join(chip_names())}, or read your own description with Chip.read(path)"
            raise MemoryConfigError(f"unknown chip {name!r}; {suggest(name, chip_names(aliases=True), otherwise)}")
        return replace(chip, dispatch=dispatch, harvested=chip.harvested if harvested is None else harvested)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Chip:
        """Return the chip that the TOML file at `path` describes, with the name of the file.

        >>> Chip.read(_FOLDER / "quasar_q1.toml").name
        'quasar_q1'
        """
        path = as_path(path)
        return cls.from_toml(path.read_text(encoding="utf-8"), path.stem)

    @classmethod
    def from_toml(cls, text: str, name: str) -> Chip:
        """Return the chip that a TOML `text` describes; `name` is its name unless the text has one.

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
            return cls(**_chip_fields(parse_toml(text, "it"), name))
        except (
            KeyError,
            TypeError,
            ValueError,
        ) as problem:  # a FileFormatError is a ValueError
            if isinstance(problem, MemoryConfigError):
                raise
            reason = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
            raise MemoryConfigError(
                f"cannot read the description of chip {name!r}: {reason}; it needs [cores] grid, [l1] base and end, and"
                " [dram] banks, base, end and alignment"
            ) from None

    @classmethod
    def of(cls, value: ChipLike) -> Chip:
        """Return a chip from `value`, a `Chip` or a name.

        >>> Chip.of("p150").arch
        'blackhole'
        """
        return value if isinstance(value, Chip) else _cached_chip(str(value))

    @cached_property
    def compute_grid(self) -> CoreCoord:
        """(columns, rows) of the cores that programs can use.

        >>> Chip.named("blackhole_p150").compute_grid
        CoreCoord(x=11, y=10)
        """
        across, down = self.grid
        lost = self.harvested + (self.dispatch_lines if self.dispatch == "fast" else 0)
        return CoreCoord(across, down - lost) if self.harvested_from == "rows" else CoreCoord(across - lost, down)

    @cached_property
    def l1_cores(self) -> tuple[CoreCoord, ...]:
        """The core of each L1 bank, in the shuffled order of banks.

        >>> [tuple(core) for core in Chip.named("wormhole_n150").l1_cores[:3]]
        [(1, 4), (4, 4), (4, 1)]
        """
        across, down = self.compute_grid
        owners = [CoreCoord(x, y) for y in range(down) for x in range(across)]
        owners += [CoreCoord(*core) for core in self.storage_cores for _ in range(self.storage_banks)]
        by_bank = dict(zip(shuffled_banks(len(owners)), owners, strict=True))
        return tuple([by_bank[bank] for bank in range(len(owners))])

    def banks(self, buffer: BufferTypeLike) -> int:
        """Return the number of banks of the memory `buffer`, such as "dram" or "l1".

        >>> Chip.named("grayskull").banks("dram"), Chip.named("grayskull").banks("l1")
        (8, 124)
        """
        if _is_l1(buffer):
            return self.compute_grid.x * self.compute_grid.y + len(self.storage_cores) * self.storage_banks
        return self.dram_banks

    def shard_grid(self, buffer: BufferTypeLike) -> CoreCoord:
        """Return (columns, rows) of the cores for shards in `buffer`: the compute grid, or a row of banks for DRAM.

        >>> Chip.named("blackhole_p100").shard_grid("dram"), Chip.named("blackhole_p100").shard_grid("l1")
        (CoreCoord(x=7, y=1), CoreCoord(x=11, y=10))
        """
        return self.compute_grid if _is_l1(buffer) else CoreCoord(self.dram_banks, 1)

    @cached_property
    def _bank_numbers(self) -> dict[bool, dict[CoreCoord, int]]:
        """The number of the (first) bank of each core, of L1 (True) and of DRAM (False)."""
        return {
            is_l1: {core: bank for bank, core in reversed(list(enumerate(self.bank_cores(buffer))))}
            for is_l1, buffer in ((True, BufferType.L1), (False, BufferType.DRAM))
        }

    def bank_of(self, core: CoreLike, buffer: BufferTypeLike) -> int:
        """Return the bank of a `core` in `buffer`: its (first) L1 bank, or the DRAM bank with its x as number.

        >>> Chip.named("wormhole_n150").bank_of((1, 4), "l1"), Chip.named("wormhole_n150").bank_of((5, 0), "dram")
        (0, 5)
        """
        return self.banks_of([CoreCoord.of(core)], buffer)[0]

    def banks_of(self, cores: Iterable[CoreCoord], buffer: BufferTypeLike) -> tuple[int, ...]:
        """Return the bank in `buffer` of each of `cores`.

        >>> Chip.named("wormhole_n150").banks_of([CoreCoord(0, 0), CoreCoord(1, 0)], "l1")
        (34, 63)
        """
        is_l1 = _is_l1(buffer)
        numbers = self._bank_numbers[is_l1]
        try:
            return tuple([numbers[core] for core in cores])
        except KeyError as missing:
            core, (across, down) = missing.args[0], self.compute_grid
        if is_l1:
            raise MemoryConfigError(
                f"core {core} has no L1 bank on {self.name} with {self.dispatch} dispatch; use cores (0, 0) to"
                f" ({across - 1}, {down - 1})"
            )
        raise MemoryConfigError(
            f"core {core} is not a DRAM bank of {self.name}: x must be the number of a bank and y must be 0; use (0, 0)"
            f" to ({self.dram_banks - 1}, 0)"
        )

    def bank_cores(self, buffer: BufferTypeLike) -> tuple[CoreCoord, ...]:
        """Return the core of each bank of `buffer`; a DRAM bank counts as the core (bank, 0).

        >>> Chip.named("wormhole_n150").bank_cores("dram")[5]
        CoreCoord(x=5, y=0)
        """
        return self.l1_cores if _is_l1(buffer) else tuple([CoreCoord(bank, 0) for bank in range(self.dram_banks)])

    @cached_property
    def virtual_cores(self) -> dict[CoreCoord, CoreCoord]:
        """The virtual coordinates, by which kernels address it, of each core of the compute grid.

        >>> Chip.named("wormhole_n150").virtual_cores[1, 0], Chip.named("blackhole_p150").virtual_cores[7, 0]
        (CoreCoord(x=19, y=18), CoreCoord(x=10, y=2))
        """
        across, down = self.compute_grid
        columns, rows = self.virtual_columns[:across], self.virtual_rows[:down]
        if (len(columns), len(rows)) != (across, down):
            raise MemoryConfigError(
                f"the virtual coordinates of {across} x {down} cores of {self.name} are not known, got {len(columns)}"
                f" columns and {len(rows)} rows; add virtual_columns and virtual_rows, such as [18, 19, 20], to [cores]"
                " of its TOML file"
            )
        return {CoreCoord(x, y): CoreCoord(a, b) for y, b in enumerate(rows) for x, a in enumerate(columns)}

    def cores_at(self, virtual: Iterable[CoreCoord]) -> tuple[CoreCoord, ...]:
        """Return the cores with these `virtual` coordinates.

        >>> Chip.named("wormhole_n150").cores_at([CoreCoord(18, 18), CoreCoord(25, 20)])
        (CoreCoord(x=0, y=0), CoreCoord(x=7, y=2))
        """
        known = {at: core for core, at in self.virtual_cores.items()}
        try:
            return tuple([known[at] for at in virtual])
        except KeyError as missing:
            first, last = min(known), max(known)
            raise MemoryConfigError(
                f"{missing.args[0]} are no virtual coordinates of a core of {self.name} with {self.dispatch} dispatch,"
                f" which has {first} to {last}; pass the chip and the dispatch of the kernel"
            ) from None

    def core_of(self, bank: int, buffer: BufferTypeLike) -> CoreCoord:
        """Return the core that owns a `bank` of `buffer`; a DRAM bank counts as the core (bank, 0).

        >>> Chip.named("wormhole_n150").core_of(0, "l1"), Chip.named("wormhole_n150").core_of(5, "dram")
        (CoreCoord(x=1, y=4), CoreCoord(x=5, y=0))
        """
        if not 0 <= bank < self.banks(buffer):
            raise MemoryConfigError(
                f"{self.name} has {BufferType.of(buffer)} banks 0 to {self.banks(buffer) - 1}, got bank {bank}"
            )
        return self.l1_cores[bank] if _is_l1(buffer) else CoreCoord(bank, 0)

    def base(self, buffer: BufferTypeLike) -> int:
        """Return the first address for tensors in a bank of `buffer`.

        >>> Chip.named("wormhole_n150").base("l1")
        105824
        """
        if _is_l1(buffer):
            return self.l1_base
        return self.dram_bases[DISPATCH_MODES.index(self.dispatch)]

    def end(self, buffer: BufferTypeLike) -> int:
        """Return the address after the last byte of a bank of `buffer`.

        >>> Chip.named("wormhole_n150").end("l1")
        1499136
        """
        return self.l1_end if _is_l1(buffer) else self.dram_end

    def bank_bytes(self, buffer: BufferTypeLike) -> int:
        """Return the bytes of a bank of `buffer` for tensors.

        >>> Chip.named("wormhole_n150").bank_bytes("l1")
        1393312
        """
        return self.end(buffer) - self.base(buffer)

    def page_alignment(self, buffer: BufferTypeLike) -> int:
        """Return the alignment of pages in `buffer`, in bytes.

        >>> Chip.named("blackhole_p150").page_alignment("dram"), Chip.named("blackhole_p150").page_alignment("l1")
        (64, 16)
        """
        return self.l1_alignment if _is_l1(buffer) else self.dram_alignment

    @property
    def allocation_alignment(self) -> int:
        """The alignment of allocations in bytes, in any memory.

        >>> Chip.named("wormhole_n150").allocation_alignment
        32
        """
        return self.dram_alignment

    def noc_address(self, bank: int, address: int) -> int:
        """Return the network-on-chip address of the byte at `address` of DRAM `bank`, if it is known.

        >>> Chip.named("wormhole_n150").noc_address(3, 1053828) == 1053828 + 2**30
        True
        """
        if not self.dram_noc_offsets:
            raise MemoryConfigError(f"the network addresses of the DRAM banks of {self.name} are not known")
        return address + self.dram_noc_offsets[bank]

    def __repr__(self) -> str:
        known = _chip_files()
        if self.name in known:
            original = Chip.read(known[self.name])
            if self == replace(original, dispatch=self.dispatch, harvested=self.harvested):
                changed = [
                    f", {name}={getattr(self, name)!r}"
                    for name in ("dispatch", "harvested")
                    if getattr(self, name) != getattr(original, name)
                ]
                return f"Chip.named({self.name!r}{''.join(changed)})"
        return f"Chip({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in fields(self))})"

    def __str__(self) -> str:
        across, down = self.compute_grid
        return f"{self.name} ({across} x {down} cores, {self.dispatch} dispatch, {self.dram_banks} DRAM banks)"


# Looked up on every question about a memory: by member, by name, and by lower-case name.
_L1_BY_NAME: dict[object, bool] = {
    key: member.is_l1 for member in BufferType for key in (member, member.name, member.name.lower())
}


def _is_l1(buffer: BufferTypeLike) -> bool:
    known = _L1_BY_NAME.get(buffer)
    return BufferType.of(buffer).is_l1 if known is None else known


def chip_names(aliases: bool = False) -> list[str]:
    """Return the names of the known chips, including plug-ins' chips; with `aliases`, all names that they have.

    >>> chip_names()[:2], "n150" in chip_names(aliases=True)
    (['blackhole_p100', 'blackhole_p150'], True)
    """
    files = _chip_files()
    return sorted({*(files if aliases else [path.stem for path in files.values()]), *list_plugins("chips")})


@lru_cache(maxsize=1)
def known_chips() -> tuple[Chip, ...]:
    """Return every known chip with all of its cores, Wormhole chips first.

    >>> [(chip.name, tuple(chip.compute_grid)) for chip in known_chips()][:2]
    [('wormhole_n150', (8, 10)), ('wormhole_n300', (8, 10))]
    """
    names = sorted(chip_names(), key=lambda name: (not name.startswith("wormhole"), name))
    return tuple([Chip.named(name, dispatch="slow", harvested=0) for name in names])


@lru_cache(maxsize=1)
def _chip_files() -> dict[str, Path]:
    """Return the file of every known chip, by name and alias."""
    known = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        also = parse_toml(path.read_bytes(), path.name).get("also", [])
        known.update(dict.fromkeys([path.stem, *also], path))
    return known


_cached_chip = lru_cache(maxsize=64)(Chip.named)

_KEYS = {
    "the description": "name arch also cores l1 dram noc",
    "cores": "grid storage harvested_from harvested dispatch_lines storage_banks virtual_columns virtual_rows",
    "l1": "base end alignment",
    "dram": "banks base end alignment noc noc_offsets",
    "noc": "size columns rows dram dram_ports dram_workers packet_bytes clock_mhz",
}


def _chip_fields(table: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the arguments of `Chip` from a parsed description."""
    cores, l1, dram, noc = table["cores"], table["l1"], table["dram"], table.get("noc", {})
    for (part, keys), part_table in zip(_KEYS.items(), (table, cores, l1, dram, noc), strict=True):
        for key in set(part_table) - set(keys.split()):
            raise MemoryConfigError(f"chip {name!r}: unknown key {key!r} in {part}; {suggest(key, keys.split())}")
    base = dram["base"]
    arguments: dict[str, Any] = {
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
        "noc_size": tuple(noc.get("size", ())),
        "noc_columns": tuple(noc.get("columns", ())),
        "noc_rows": tuple(noc.get("rows", ())),
        "noc_dram": tuple([_ports(bank) for bank in noc.get("dram", dram.get("noc", ()) if noc else ())]),
        "dram_ports": tuple(map(tuple, noc.get("dram_ports", ()))),
        "dram_workers": tuple(
            [
                (parse_extents(grid) or (), tuple(map(tuple, workers)))
                for grid, workers in noc.get("dram_workers", {}).items()
            ]
        ),
        "virtual_columns": tuple(cores.get("virtual_columns", ())),
        "virtual_rows": tuple(cores.get("virtual_rows", ())),
    }
    optional = ("harvested_from", "harvested", "dispatch_lines", "storage_banks", "packet_bytes", "clock_mhz")
    return {**arguments, **{key: part[key] for part in (cores, noc) for key in optional if key in part}}


def _ports(bank: list[Any]) -> tuple[tuple[int, int], ...]:
    """Return the positions of the ports of a DRAM bank: a list of them, or the only one."""
    return tuple(map(tuple, bank)) if isinstance(bank[0], list) else (tuple(bank),)


def _random_draws() -> Iterator[int]:
    """Yield the numbers of libstdc++'s minstd_rand0, seeded with 0."""
    state = 1
    while True:
        state = _MULTIPLIER * state % _MODULUS
        yield state - 1


def _uniform_below(limit: int, draws: Iterator[int]) -> int:
    """Return a uniform number from 0 to limit - 1; draws that would bias it are rejected."""
    scale = _RANGE // limit
    return next(draw for draw in draws if draw < limit * scale) // scale


@lru_cache(maxsize=64)
def shuffled_banks(count: int) -> tuple[int, ...]:
    """Return the L1 bank of each core, with cores counted row by row.

    The runtime shuffles banks with libstdc++'s `std::shuffle` and a `default_random_engine` seeded with 0, so that the
    order depends only on the number of banks. Two swaps share one random draw while the square of the count fits.

    >>> shuffled_banks(8)
    (2, 7, 1, 6, 5, 0, 4, 3)
    """
    draws = _random_draws()
    banks = list(range(count))
    k = 1
    if count % 2 == 0 and count:
        j = _uniform_below(2, draws)
        banks[1], banks[j] = banks[j], banks[1]
        k = 2
    while k < count:
        first, second = divmod(_uniform_below((k + 1) * (k + 2), draws), k + 2)
        banks[k], banks[first] = banks[first], banks[k]
        banks[k + 1], banks[second] = banks[second], banks[k + 1]
        k += 2
    return tuple(banks)


ChipName: TypeAlias = Literal[
    "wormhole_n150", "wormhole_n300", "blackhole_p100", "blackhole_p150", "grayskull_e150", "quasar_q1",
    "n150", "n300", "p100", "p150",
]  # fmt: skip
"""The names of our chips, which an editor completes; files and plug-ins add others."""

ChipLike: TypeAlias = Chip | ChipName | str
