# SPDX-License-Identifier: Apache-2.0
"""Seeded defects: each is found, at the right line, and the right version of the kernel is clean."""

import inspect
import sys

import numpy as np
import pytest

from tilewright import KernelError
from tilewright_mojo.simt import launch

from . import kernels

SIZE = 200  # not a multiple of the 64 threads of a block
BLOCKS = 4


def run(kernel, check="report"):
    out, a = np.zeros(4 * SIZE, np.float32), np.arange(SIZE, dtype=np.float32)
    return out, a, launch(kernel, out, a, SIZE, grid=BLOCKS, block=kernels.TPB, check=check)


RIGHT = ["block_sum", "stencil", "rows", "warp_total", "neighbours", "vectors"]

# the defect of each kernel, and a text of the line where it is
DEFECTS = {
    "block_sum_without_inner_barrier": ("race", "shared[i] += shared[i + stride]"),
    "block_sum_without_first_barrier": ("race", "shared[i] += shared[i + stride]"),
    "block_sum_without_tail": ("uninitialised read", "shared[i] += shared[i + stride]"),
    "block_sum_all_write": ("race", "out[block_idx.x] = shared[0]"),
    "block_sum_early_return": ("barrier not reached", "barrier()"),
    "block_sum_divergent": ("divergent barrier", "barrier()"),
    "stencil_off_by_one": (None, ""),  # n is no multiple of the block: the halo is never read there
    "stencil_without_guard": ("out of bounds", "shared[i + 1] = a[g]"),
    "stencil_without_halo": ("uninitialised read", "shared[i + 2]"),
    "rows_with_wrong_stride": ("race", "out[global_idx.x * 3 + column]"),
    "rows_of_blocks_overlap": ("race between blocks", "out[(block_idx.x"),
    "warp_total_of_some": ("inactive lane", "warp_sum(a[global_idx.x])"),
    "neighbours_of_some": ("inactive lane", "shuffle_down(value, 1)"),
    "vectors_misaligned": ("misaligned vector", "a.load[4]"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_are_clean(name):
    _, _, report = run(getattr(kernels, name), check=True)
    assert report.clean
    assert not report.errors
    assert "no errors" in str(report)


def test_right_kernels_compute_the_right_numbers():
    out, a, _ = run(kernels.block_sum)
    padded = np.pad(a, (0, BLOCKS * kernels.TPB - SIZE)).reshape(BLOCKS, -1)
    assert out[:BLOCKS].tolist() == padded.sum(axis=1).tolist()
    out, a, _ = run(kernels.stencil)
    assert out[:SIZE].tolist() == np.convolve(a, np.ones(3), "same").tolist()
    out, a, _ = run(kernels.warp_total)
    assert out[:7].tolist() == [part.sum() for part in np.split(np.pad(a, (0, 24)), 7)]


@pytest.mark.parametrize("name", [name for name, (kind, _) in DEFECTS.items() if kind])
def test_every_defect_is_found_at_its_line(name):
    kind, text = DEFECTS[name]
    _, _, report = run(getattr(kernels, name))
    found = [defect for defect in report.errors if defect.kind == kind]
    assert found, f"expected a {kind}, found {[str(defect) for defect in report.errors]}"
    sources = [witness.site.text for defect in found for witness in defect.witnesses]
    assert any(text in source for source in sources), sources
    assert all(defect.remedy for defect in found)
    with pytest.raises(KernelError) as problem:
        run(getattr(kernels, name), check=True)
    assert kind in str(problem.value)
    assert problem.value.report.errors


def test_an_off_by_one_is_found_where_the_data_end_with_a_block():
    out, a = np.zeros(128, np.float32), np.arange(128, dtype=np.float32)
    with pytest.raises(IndexError, match="index 128 is outside a tensor of shape"):
        launch(kernels.stencil_off_by_one, out, a, 128, grid=2, block=kernels.TPB)


def test_a_race_names_both_lines_both_threads_and_the_element():
    _, _, report = run(kernels.block_sum_without_first_barrier)
    race = next(defect for defect in report.errors if defect.kind == "race")
    first, second = race.witnesses
    assert {first.action, second.action} == {"read", "write"}
    assert first.thread != second.thread
    assert first.block == second.block
    assert race.element.startswith("shared[" if sys.version_info >= (3, 11) else "shared@")  # by its column in a line
    lines, start = inspect.getsourcelines(kernels.block_sum_without_first_barrier)
    assert all(start <= witness.site.line < start + len(lines) for witness in race.witnesses)
    assert first.site.line != second.site.line


def test_every_line_of_a_report_fits_80_columns():
    for name in (*DEFECTS, *RIGHT):
        _, _, report = run(getattr(kernels, name))
        assert all(len(line) <= 80 for line in str(report).splitlines()), str(report)
        assert report.to_json()["clean"] == report.clean
