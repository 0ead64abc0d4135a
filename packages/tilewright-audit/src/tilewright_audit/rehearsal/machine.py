# SPDX-License-Identifier: Apache-2.0
"""`MockMachine`: a machine of Tenstorrent as the mock cluster of ttnn wants it described, from the facts of a chip."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tilewright._text import suggest
from tilewright.errors import MemoryConfigError
from tilewright.memory import Chip

_LINKS = 2  # between neighbours
_BOARD_TYPES = {"n150": 0x18, "n300": 0x14, "p100": 0x36, "p150": 0x40}  # in the number of a board, from bit 36
# Wormhole has 10 rows of cores and Blackhole 14 columns, of which fast dispatch takes one.
_PROGRAM_LINES = {"wormhole_b0": 9, "blackhole": 13}
_BLACKHOLE_BANKS = 8
_GRIDS = {
    "N150": ("n150", 1, 1), "N300": ("n300", 1, 2), "T3K": ("n300", 2, 4), "P100": ("p100", 1, 1),
    "P150": ("p150", 1, 1), "P150x2": ("p150", 1, 2), "P150x4": ("p150", 2, 2), "P150x8": ("p150", 2, 4),
}  # fmt: skip


@dataclass(frozen=True)
class MockMachine:
    """A machine to rehearse on: its name, chip and board, and the rows and columns of its devices.

    >>> machine = MockMachine.named("T3K")
    >>> machine.chip.name, machine.devices
    ('wormhole_n300', 8)
    """

    name: str
    chip: Chip
    board: str
    rows: int = 1
    columns: int = 1

    @classmethod
    def named(cls, name: str) -> MockMachine:
        """Return a machine by its `name`, such as N150, T3K or P150x4, or one with the chip of a TOML file.

        >>> MockMachine.named("p150").board, MockMachine.named("wormhole_n300").devices
        ('p150', 2)
        """
        if name.lower().endswith(".toml") or os.sep in name:
            return cls.with_chip(Chip.read(name))
        known = next((machine for machine in _GRIDS if machine.lower() == name.lower().rpartition("_")[2]), None)
        if known is None:
            otherwise = f"use one of {', '.join(_GRIDS)}, or the TOML file of a chip"
            raise MemoryConfigError(f"no machine {name!r} to rehearse on; {suggest(name, _GRIDS, otherwise)}")
        board, rows, columns = _GRIDS[known]
        return cls(known, Chip.named(board), board, rows, columns)

    @classmethod
    def with_chip(cls, chip: Chip) -> MockMachine:
        """Return the machine with one `chip`, which is a Wormhole or a Blackhole with any number of lines harvested.

        >>> MockMachine.with_chip(Chip.named("wormhole_n150", harvested=0)).board
        'n150'
        """
        boards = {"wormhole_b0": "n150", "blackhole": "p150" if chip.dram_banks == _BLACKHOLE_BANKS else "p100"}
        if chip.arch not in boards:
            raise MemoryConfigError(
                f"{chip.name} is a {chip.arch}, and ttnn has mocks of wormhole_b0 and blackhole only; use one of those"
            )
        board = boards[chip.arch]
        usual = Chip.named(board)
        for fact in ("grid", "l1_end", "dram_end", "dispatch"):
            if getattr(chip, fact) != getattr(usual, fact):
                raise MemoryConfigError(
                    f"{chip.name} has {fact} {getattr(chip, fact)}, and the mock of a {board} has"
                    f" {getattr(usual, fact)}; only harvested lines and DRAM banks can differ"
                )
        return cls(chip.name, chip, board)

    @property
    def devices(self) -> int:
        """The number of devices.

        >>> MockMachine.named("N300").devices
        2
        """
        return self.rows * self.columns

    @property
    def harvesting(self) -> dict[str, int]:
        """The masks of harvested parts of each chip, which leave programs the compute grid of the chip.

        >>> MockMachine.named("N150").harvesting
        {'harvest_mask': 1}
        """
        across, down = self.chip.compute_grid
        is_wormhole = self.chip.arch == "wormhole_b0"
        lost = _PROGRAM_LINES[self.chip.arch] - (down if is_wormhole else across)
        if lost < 0:
            raise MemoryConfigError(
                f"{self.chip.name} has {across} x {down} cores, {-lost} lines more than the mock of a {self.board};"
                " fast dispatch takes one line"
            )
        masks = {"harvest_mask": (1 << lost) - 1}
        if not is_wormhole:
            masks |= {"eth_harvesting_mask": 288, "pcie_harvesting_mask": 2}
            missing = _BLACKHOLE_BANKS - self.chip.dram_banks
            masks |= {"dram_harvesting_mask": (1 << missing) - 1} if missing else {}
        return masks

    def describe(self) -> str:
        """Return the description of the cluster, as YAML.

        >>> print(MockMachine.named("N150").describe().splitlines()[0])
        arch: {0: wormhole_b0}
        """
        boards: list[tuple[int, ...]] = [(chip,) for chip in range(self.devices)]
        if self.board == "n300":  # the chips with PCIe are beside each other, as in a T3K
            pairs = range(0, self.devices, 2)
            boards = [(chip + 1, chip) if chip % 4 == 0 and self.devices > 2 else (chip, chip + 1) for chip in pairs]
        return describe_cluster(self.chip.arch, self.board, self.harvesting, (self.rows, self.columns), boards)


def describe_cluster(
    arch: str, board: str, masks: dict[str, int], mesh: tuple[int, int], boards: Sequence[Sequence[int]]
) -> str:
    """Return the description of a mesh of chips, row by row, neighbours linked: the YAML that ttnn's mock reads.

    Args:
        arch: wormhole_b0 or blackhole.
        board: the type of the boards, such as n150.
        masks: the harvested parts of each chip, by the names that ttnn has for them.
        mesh: its rows and columns.
        boards: the numbers of the chips on each board, the one with PCIe first.

    >>> text = describe_cluster("wormhole_b0", "n300", {"harvest_mask": 1}, (1, 2), [(0, 1)])
    >>> [line for line in text.splitlines() if line.startswith("chips_with_mmio")]
    ['chips_with_mmio: [{0: 0}]']
    """
    rows, columns = mesh
    chips = range(rows * columns)
    harvesting = _mapping([("noc_translation", "true"), *masks.items()])
    first = [on_board[0] for on_board in boards]
    lines = [
        f"arch: {_mapping((chip, arch) for chip in chips)}",
        f"ethernet_connections: [{', '.join(_list_links(rows, columns))}]",
        f"chips_with_mmio: [{', '.join([f'{{{chip}: {chip}}}' for chip in first])}]",
        f"harvesting: {_mapping((chip, harvesting) for chip in chips)}",
        f"chip_unique_ids: {_mapping((chip, 1000 + chip) for chip in chips)}",
    ]
    if arch == "wormhole_b0":
        places = [(chip, f"[{chip % columns}, {chip // columns}, 0, 0]") for chip in chips]
        lines.append(f"chips: {_mapping(places)}")
    else:
        lines.append(f"asic_locations: {_mapping((chip, chip) for chip in chips)}")
        lines.append(f"chip_to_bus_id: {_mapping((chip, f'0x{1 + 32 * chip:02x}') for chip in chips)}")
    listed = [
        f"[{{board_id: {(_BOARD_TYPES[board] << 36) + place}}}, {{board_type: {board}}}, {{chips: {sorted(on_board)}}}]"
        for place, on_board in enumerate(boards)
    ]
    return "\n".join([*lines, f"boards: [{', '.join(listed)}]", ""])


def _mapping(items: Iterable[tuple[object, object]]) -> str:
    return f"{{{', '.join([f'{key}: {value}' for key, value in items])}}}"


def _list_links(rows: int, columns: int) -> Iterator[str]:
    """Yield the Ethernet links of a mesh; the channels of a chip are taken in order."""
    channels = dict.fromkeys(range(rows * columns), 0)
    for chip in channels:
        for neighbour, exists in ((chip + 1, (chip + 1) % columns), (chip + columns, chip + columns in channels)):
            for _ in range(_LINKS if exists else 0):
                ends = [f"{{chip: {end}, chan: {channels[end]}}}" for end in (chip, neighbour)]
                yield f"[{', '.join(ends)}]"
                channels[chip] += 1
                channels[neighbour] += 1
