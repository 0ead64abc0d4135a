# SPDX-License-Identifier: Apache-2.0
"""The chip of a report: a known one with the same cores, banks and bases, or one that is like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..errors import MemoryConfigError
from ..files import as_integer
from ..memory import DISPATCH_MODES, Chip, chip_names

_MOST_HARVESTED = 4
_MAX_EXTENT = 1024  # cores in a row, DRAM banks
_MAX_ADDRESS = 2**48


MACHINES = {
    "wormhole": {1: "N150", 2: "N300", 4: "N150x4", 8: "T3K", 32: "TG"},
    "blackhole": {1: "P150", 2: "P300", 4: "P150x4", 8: "P150x8", 32: "BHGLX"},
}
"""The machines by their architecture and number of devices, as tt_transformers calls them."""
_CARDS = {"N300": "n300", "T3K": "n300", "P300": "p300"}  # with two chips each


def name_machine(chip: Chip, devices: int) -> str:
    """Return the name of a machine with `devices` devices, each a `chip`, or nothing if there is none.

    >>> name_machine(Chip.named("wormhole_n300"), 8), name_machine(Chip.named("wormhole_n300"), 3)
    ('T3K', '')
    """
    return MACHINES.get(chip.arch.lower().partition("_")[0], {}).get(devices, "")


def candidate_chips(devices: Sequence[Mapping[str, Any]], boards: Sequence[str] = (), count: int = 1) -> list[Chip]:
    """Return the chips that the first of `devices` of a report may be, the most likely first; all if there is none.

    `boards` are the types of the cards, where the report has them, and `count` is the number of devices: chips of such
    cards, and of such machines, come first.

    >>> device = {"arch": "WORMHOLE_B0", "num_x_compute_cores": 8, "num_y_compute_cores": 8, "num_dram_channels": 12}
    >>> [chip.name for chip in candidate_chips([device])][:2]
    ['wormhole_n150', 'wormhole_n300']
    """
    if not devices:
        return [Chip.named(name) for name in _ordered_names()]
    device = devices[0]
    matching = list(dict.fromkeys(_fit_device(chip, device) for chip in _variants() if _matches(chip, device)))
    if not matching:
        resized = [_resize(Chip.named(name), device) for name in _ordered_names()]
        matching = [chip for chip in resized if chip is not None]
    exact = [chip for chip in matching if chip in _variants()]
    found = list(dict.fromkeys([*exact, *matching]))

    def is_unlikely(chip: Chip) -> bool:
        card = chip.name.rpartition("_")[2]
        return card not in boards if count == 1 else card != _CARDS.get(name_machine(chip, count), card)

    return sorted(found, key=is_unlikely)


def _ordered_names() -> list[str]:
    return sorted(chip_names(), key=lambda name: (not name.startswith("wormhole"), name != "blackhole_p150", name))


@lru_cache(maxsize=1)
def _variants() -> tuple[Chip, ...]:
    """Return known chips with every way of dispatch and harvesting, as they are sold first."""
    sold = [Chip.named(name, dispatch) for dispatch in DISPATCH_MODES for name in _ordered_names()]
    others = []
    for chip in sold:
        for harvested in range(_MOST_HARVESTED + 1):
            try:
                others.append(replace(chip, harvested=harvested))
            except MemoryConfigError:
                break
    return tuple(dict.fromkeys([*sold, *others]))


def _matches(chip: Chip, device: Mapping[str, Any]) -> bool:
    """Return whether the cores and banks of a device are those of a chip, as far as the report has them."""
    arch = device.get("arch")
    across, down = chip.compute_grid
    recorded = {
        "num_x_compute_cores": across,
        "num_y_compute_cores": down,
        "num_dram_channels": chip.dram_banks,
        "worker_l1_size": chip.l1_end,
    }
    if isinstance(arch, str) and arch.lower() != chip.arch.lower():
        return False
    return all(as_integer(device.get(name)) in (None, value) for name, value in recorded.items())


def _fit_device(chip: Chip, device: Mapping[str, Any]) -> Chip:
    """Return the chip with the L1 base of a device, which moves from release to release."""
    base = as_integer(device.get("address_at_first_l1_cb_buffer"))
    if base in (None, 0, chip.l1_base):
        return chip
    try:
        return replace(chip, l1_base=base)
    except MemoryConfigError:
        return chip


def _resize(chip: Chip, device: Mapping[str, Any]) -> Chip | None:
    """Return a chip with the cores, banks and L1 of a device that is none of the known ones."""
    arch = device.get("arch")
    if isinstance(arch, str) and arch.lower() != chip.arch.lower():
        return None
    across, down = (as_integer(device.get(f"num_{axis}_compute_cores")) for axis in "xy")
    banks = as_integer(device.get("num_dram_channels")) or chip.dram_banks
    l1_end = as_integer(device.get("worker_l1_size")) or chip.l1_end
    if not across or not down or max(across, down, banks) > _MAX_EXTENT or l1_end > _MAX_ADDRESS:
        return None
    try:
        changed = replace(
            chip,
            grid=(across, down),
            harvested=0,
            dispatch_lines=0,
            storage_cores=(),
            dram_banks=banks,
            l1_end=l1_end,
            dram_noc=(),
            dram_noc_offsets=(),
        )
    except MemoryConfigError:
        return None
    return _fit_device(changed, device)
