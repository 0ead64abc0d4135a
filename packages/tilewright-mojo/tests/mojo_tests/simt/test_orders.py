# SPDX-License-Identifier: Apache-2.0
"""What orders accesses, and what does not: flags between blocks, and loops of barriers."""

import numpy as np

from tilewright_mojo.simt import atomic_add, barrier, block_idx, launch


def write_before_the_flag(data, flag):
    if block_idx.x == 0:
        data[0] = 1.0
        atomic_add(flag, 0, 1)
    elif atomic_add(flag, 0, 1) > 0:
        data[1] = data[0]


def write_after_the_flag(data, flag):
    if block_idx.x == 0:
        data[0] = 1.0
        atomic_add(flag, 0, 1)
        data[0] = 2.0
    elif atomic_add(flag, 0, 1) > 0:
        data[1] = data[0]


def wait_forever():
    while True:
        barrier()


def kinds(kernel, *arguments, grid=2, block=1):
    return [defect.kind for defect in launch(kernel, *arguments, grid=grid, block=block, check="report").errors]


def test_a_flag_orders_what_was_before_it_and_nothing_after():
    assert kinds(write_before_the_flag, np.zeros(2), np.zeros(1, np.int64)) == []
    assert kinds(write_after_the_flag, np.zeros(2), np.zeros(1, np.int64)) == ["race between blocks"]


def test_a_loop_of_barriers_that_never_ends_is_an_error():
    assert kinds(wait_forever, grid=1, block=2) == ["endless loop"]
