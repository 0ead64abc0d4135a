# SPDX-License-Identifier: Apache-2.0
"""Mock machines: their description, from chip facts, and the compiler that compiles nothing."""

import re
import subprocess
import sys

import pytest

import tilewright as tw
from tilewright_audit.rehearsal.machine import MockMachine
from tilewright_audit.rehearsal.process import COMPILER, empty_executable, write_compiler

TOML = """
arch = "{arch}"
[cores]
grid = {grid}
harvested_from = "{lines}"
harvested = {harvested}
dispatch_lines = 1
[l1]
base = 105824
end = {l1_end}
[dram]
banks = {banks}
base = 1048640
end = {dram_end}
alignment = 64
"""
BLACKHOLE = {
    "arch": "blackhole", "grid": [14, 10], "lines": "columns", "harvested": 1, "l1_end": 1572864, "banks": 8,
    "dram_end": 4278190080,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "devices", "boards", "mmio"),
    [("N150", 1, 1, [0]), ("N300", 2, 1, [0]), ("T3K", 8, 4, [1, 2, 5, 6]), ("P150x4", 4, 4, [0, 1, 2, 3])],
)
def test_a_machine_has_its_devices_boards_and_links(name, devices, boards, mmio):
    text = MockMachine.named(name).describe()
    assert text.count("noc_translation") == devices
    assert text.count("board_id") == boards
    known = next(line for line in text.splitlines() if line.startswith("chips_with_mmio"))
    assert [int(chip) for chip in re.findall(r"\{(\d+):", known)] == mmio
    rows, columns = MockMachine.named(name).rows, MockMachine.named(name).columns
    neighbours = rows * (columns - 1) + columns * (rows - 1)
    assert text.count("[{chip:") == 2 * neighbours
    ends = re.findall(r"\{chip: (\d+), chan: (\d+)\}", text)
    assert len(ends) == len(set(ends))  # a channel has one link


def test_masks_give_the_compute_grid_of_the_chip(tmp_path):
    assert MockMachine.named("P150").harvesting["harvest_mask"] == 3
    assert MockMachine.named("P100").harvesting["dram_harvesting_mask"] == 1
    path = tmp_path / "mine.toml"
    path.write_text(TOML.format(**BLACKHOLE))
    machine = MockMachine.named(str(path))
    assert machine.name == "mine"
    assert machine.board == "p150"
    assert machine.harvesting["harvest_mask"] == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"arch": "quasar"}, "ttnn has mocks of wormhole_b0 and blackhole only"),
        ({"l1_end": 1500000}, "has l1_end 1500000, and the mock of a p150 has 1572864"),
        ({"grid": [15, 10]}, "has grid"),
    ],
)
def test_what_the_mock_cannot_be_is_refused(tmp_path, change, problem):
    path = tmp_path / "mine.toml"
    path.write_text(TOML.format(**BLACKHOLE | change))
    with pytest.raises(tw.MemoryConfigError, match=problem):
        MockMachine.named(str(path))
    with pytest.raises(tw.MemoryConfigError, match="did you mean 'N150'"):
        MockMachine.named("N15O")


@pytest.mark.skipif(sys.platform == "win32", reason="ttnn has wheels for Linux only, where sh is")
def test_the_compiler_writes_what_was_asked_for(tmp_path):
    write_compiler(tmp_path)
    compiler = tmp_path / "compiler" / "bin" / COMPILER
    assert "stand-in" in subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    out, dependencies = tmp_path / "a b.o", tmp_path / "a.d"
    subprocess.run([compiler, "-c", "a.cc", "-o", out, "-MF", dependencies, "-O2"], check=True)
    assert out.read_bytes() == empty_executable()
    assert len(empty_executable()) <= 400
    assert dependencies.read_text() == f"{out}:\n"
