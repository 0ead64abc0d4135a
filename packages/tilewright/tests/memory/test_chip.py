# SPDX-License-Identifier: Apache-2.0
"""Chips are data: the shipped ones, variants of them, and those that users describe."""

import dataclasses
import re
from pathlib import Path

import pytest

import tilewright.memory
from tilewright import MemoryConfigError
from tilewright.memory import Chip, TensorSpec, chip_names
from tilewright.memory.chip import shuffled_banks

from .strategies import SMALL

FOLDER = Path(tilewright.memory.__file__).parent / "chips"

# name, harvested, cores under fast and slow dispatch, DRAM banks, L1 bytes, DRAM bytes under fast and slow dispatch
BOARDS = [
    ("wormhole_n150", None, (8, 8), (8, 9), 12, 1393312, (1072693184, 1072693184)),
    ("wormhole_n300", None, (8, 8), (8, 8), 12, 1393312, (1072693184, 1072693184)),
    ("wormhole_n150", 0, (8, 9), (8, 10), 12, 1393312, (1072693184, 1072693184)),
    ("blackhole_p150", None, (11, 10), (12, 10), 8, 1461120, (4277141376, 4277141376)),
    ("blackhole_p100", None, (11, 10), (12, 10), 7, 1461120, (4277141376, 4277141376)),
    ("quasar_q1", None, (8, 4), (8, 4), 2, 3861440, (2**30 - 17825920, 2**30 - 1048704)),
]


@pytest.mark.parametrize(("name", "harvested", "fast", "slow", "banks", "l1", "dram"), BOARDS)
def test_boards(name, harvested, fast, slow, banks, l1, dram):
    for mode, grid, size in (("fast", fast, dram[0]), ("slow", slow, dram[1])):
        chip = Chip.named(name, mode, harvested)
        assert chip.compute_grid == grid
        assert chip.banks("l1") == grid[0] * grid[1]
        assert (chip.banks("dram"), chip.bank_bytes("l1"), chip.bank_bytes("dram")) == (banks, l1, size)


@pytest.mark.parametrize(
    ("across", "down", "first"),
    [
        (8, 8, [(1, 4), (4, 4), (4, 1), (2, 2)]),
        (8, 9, [(1, 4), (4, 4), (3, 8), (2, 2)]),
        (11, 10, [(0, 3), (8, 7), (1, 6), (7, 1)]),
        (12, 10, [(9, 2), (1, 7), (7, 5), (2, 9)]),
    ],
)
def test_bank_order(across, down, first):
    core_of = {bank: (k % across, k // across) for k, bank in enumerate(shuffled_banks(across * down))}
    assert [core_of[bank] for bank in range(4)] == first


@pytest.mark.parametrize("count", range(1, 60))
def test_bank_order_is_a_permutation(count):
    assert sorted(shuffled_banks(count)) == list(range(count))


@pytest.mark.parametrize("name", chip_names())
def test_every_shipped_chip_works(name):
    chip = Chip.named(name)
    assert eval(repr(chip), {"Chip": Chip}) == chip  # noqa: S307
    for kind in ("dram", "l1"):
        spec = TensorSpec((100, 100), page_layout="tile", memory=kind, chip=chip)
        assert spec.element_at(spec.where(99, 99)) == (99, 99)
        cores = [chip.core_of(bank, kind) for bank in range(chip.banks(kind))]
        assert [chip.bank_of(core, kind) for core in dict.fromkeys(cores)] == [
            cores.index(core) for core in dict.fromkeys(cores)
        ]


def test_storage_cores_have_two_banks():
    chip = Chip.named("grayskull")
    assert chip.banks("l1") == 12 * 9 + 2 * 8
    assert sum(core.y == 9 for core in chip.l1_cores) == 16


def test_names():
    assert Chip.of("wormhole_b0") == Chip.named("n150") == Chip.of(Chip.named("wormhole_n150"))
    with pytest.raises(MemoryConfigError, match=r"unknown chip 'tpu'; use one of blackhole_p100"):
        Chip.named("tpu")


def test_a_chip_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'arch = "x"\n[cores]\ngrid = [3, 2]\n[l1]\nbase = 0\nend = 4096\n'
        "[dram]\nbanks = 1\nbase = 0\nend = 65536\nalignment = 64\n"
    )
    chip = Chip.read(path)
    assert (chip.name, chip.banks("l1"), chip.allocation_alignment) == ("mine", 6, 64)
    assert eval(repr(chip), {"Chip": Chip}) == chip  # noqa: S307


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'cores' is missing"),
        ("[cores]\ngrid = [1, 1]\n[l1]\nbase = 0\n[dram]\nbase = 0\n", "'end' is missing"),
        ("[cores\n", "cannot read"),
        ("cores = 3\nl1 = 4\ndram = 5\n", "cannot read"),
        ("[cores]\ngrid = 3\n[l1]\nbase=0\nend=1\n[dram]\nbanks=1\nbase=0\nend=1\nalignment=1\n", "cannot read"),
    ],
)
def test_descriptions_that_cannot_be_read(text, words):
    with pytest.raises(MemoryConfigError, match=words):
        Chip.from_toml(text, "broken")


@pytest.mark.parametrize(
    ("part", "key", "words"),
    [
        ("cores", "harvestd", "unknown key 'harvestd' in cores; did you mean 'harvested'?"),
        ("l1", "size", "unknown key 'size' in l1; use one of base, end, alignment"),
        ("dram", "aligment", "did you mean 'alignment'?"),
        ("noc", "bogus", "unknown key 'bogus' in noc; use one of size, "),
        (None, "vendor", "unknown key 'vendor' in the description; use one of name, arch, "),
    ],
)
def test_unknown_keys_of_a_description_are_refused(part, key, words):
    text = (FOLDER / "wormhole_n150.toml").read_text()
    line = f"{key} = 1\n"
    text = line + text if part is None else text.replace(f"[{part}]\n", f"[{part}]\n{line}")
    with pytest.raises(MemoryConfigError, match=re.escape(words)):
        Chip.from_toml(text, "n150")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"harvested": 3}, "harvest fewer than 3 rows"),
        ({"dispatch": "medium"}, "'fast' or 'slow'"),
        ({"harvested_from": "corners"}, "'rows' or 'columns'"),
        ({"l1_base": 2**30}, "is empty"),
        ({"l1_base": 8}, "not a multiple of its alignment 16"),
    ],
)
def test_chips_that_cannot_be(change, words):
    with pytest.raises(MemoryConfigError, match=words):
        dataclasses.replace(SMALL, **change)


def test_banks_that_are_not_there():
    with pytest.raises(MemoryConfigError, match=r"core \(4, 0\) has no L1 bank on small .* \(0, 0\) to \(3, 2\)"):
        SMALL.bank_of((4, 0), "l1")
    with pytest.raises(MemoryConfigError, match="has DRAM banks 0 to 4, got bank 5"):
        SMALL.core_of(5, "dram")
    with pytest.raises(MemoryConfigError, match="are not known"):
        SMALL.noc_address(0, 0)


@pytest.mark.parametrize(
    ("name", "chip"),
    [("N150", "wormhole_n150"), ("Wormhole", "wormhole_n150"), ("T3K", "wormhole_n300"), ("T3000", "wormhole_n300"),
     ("QuietBox", "wormhole_n300"), ("LoudBox", "wormhole_n300"), ("Galaxy", "wormhole_n150"),
     ("P300", "blackhole_p150")],
)  # fmt: skip
def test_chips_and_systems_have_the_names_that_people_use(name, chip):
    assert Chip.named(name).name == chip


def test_the_nearest_chip_is_named():
    with pytest.raises(MemoryConfigError, match="unknown chip 'wormhole_n15'; did you mean 'wormhole_n150'"):
        Chip.named("wormhole_n15")
    with pytest.raises(MemoryConfigError, match=r"unknown chip 'potato'; use one of blackhole_p100.*Chip.read"):
        Chip.named("potato")


def test_a_member_has_the_names_that_people_use():
    orientation = tilewright.memory.ShardOrientation
    assert orientation.of("COLUMN_MAJOR") is orientation.of("Column-Major") is orientation.COL_MAJOR
    with pytest.raises(MemoryConfigError, match="unknown tensor memory layout 'hight_sharded'; did you mean 'height_s"):
        tilewright.memory.TensorMemoryLayout.of("hight_sharded")
