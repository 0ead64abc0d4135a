# SPDX-License-Identifier: Apache-2.0
"""What the machine computes: coordinates, shared and local memory, warps, blocks, atomics, limits."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import KernelError, LayoutError, TransferError
from tilewright_mojo.simt import (
    BlockLimits,
    atomic_add,
    atomic_compare_exchange,
    atomic_load,
    atomic_max,
    ballot,
    barrier,
    block_broadcast,
    block_dim,
    block_idx,
    block_max,
    block_prefix_sum,
    block_sum,
    collect_reports,
    global_idx,
    grid_dim,
    lane_id,
    launch,
    local_array,
    shared_array,
    shuffle_idx,
    shuffle_xor,
    syncwarp,
    thread_idx,
    vote_all,
    vote_any,
    warp_broadcast,
    warp_id,
    warp_max,
    warp_min,
    warp_prefix_sum,
    warp_sum,
)
from tilewright_mojo.simt.access_log import dynamic_memory


def gather(kernel, block, warp=32, grid=1):
    """Return what each thread of a kernel returns, by calling it with a list to append to."""
    log = []
    assert launch(kernel, log, grid=grid, block=block, warp=warp).clean
    return log


def test_every_thread_knows_who_it_is():
    def kernel(log):
        log.append((*block_idx, *thread_idx, global_idx.x, global_idx.y, lane_id(), warp_id()))
        assert (*grid_dim, *block_dim) == (2, 1, 1, 3, 2, 1)

    log = gather(kernel, (3, 2), warp=4, grid=2)
    assert len(set(log)) == 12
    assert log[4] == (0, 0, 0, 1, 1, 0, 1, 1, 0, 1)
    assert log[6] == (1, 0, 0, 0, 0, 0, 3, 0, 0, 0)


def test_what_only_kernels_know():
    for ask in (lambda: thread_idx.x, lane_id, barrier, lambda: warp_sum(1), lambda: shared_array(4)):
        with pytest.raises(TransferError, match="known only inside a kernel"):
            ask()


def test_shared_memory_is_new_for_every_block_and_one_per_path_of_calls():
    def tile():
        return shared_array(2, "int32")

    def kernel(log):
        a, b = tile(), shared_array(2, "int32")
        c = tile()
        for _ in range(2):
            d = shared_array(2, "int32")
        a[thread_idx.x] = 1
        b[thread_idx.x] = 2
        c[thread_idx.x] = 3
        d[thread_idx.x] = 4
        barrier()
        log.append([int(each[1 - thread_idx.x]) for each in (a, b, c, d)])

    assert gather(kernel, 2, grid=2) == [[1, 2, 3, 4]] * 4

    def stale(log):
        shared = shared_array(2)
        if block_idx.x == 0:
            shared[thread_idx.x] = 1
        log.append(shared[thread_idx.x])

    report = launch(stale, [], grid=2, block=2, check="report")
    assert [defect.kind for defect in report.errors] == ["uninitialised read"]


def test_local_memory_belongs_to_a_thread_and_to_a_call():
    def kernel(log):
        arrays = []
        for k in range(3):
            mine = local_array(2, "int32")
            mine[0] = 10 * thread_idx.x + k
            arrays.append(mine)
            barrier()
        log.append([int(each[0]) for each in arrays])

    assert gather(kernel, 2) == [[0, 1, 2], [10, 11, 12]]

    def unwritten(log):
        log.append(local_array(2)[0])

    with pytest.raises(KernelError, match="uninitialised read"):
        launch(unwritten, [], grid=1, block=1)


def test_dynamic_shared_memory():
    def kernel(log):
        numbers = tw.TileTensor(dynamic_memory("float32").data)
        numbers[thread_idx.x] = thread_idx.x
        barrier()
        log.append(float(numbers[3 - thread_idx.x]))

    log = []
    assert launch(kernel, log, grid=1, block=4, shared_bytes=16).shared_bytes == 16
    assert log == [3, 2, 1, 0]
    with pytest.raises(KernelError, match="no dynamic shared memory"):
        launch(kernel, [], grid=1, block=4)


def test_warp_operations():
    def kernel(log):
        x = lane_id() + 1
        log.append(
            [
                warp_sum(x),
                warp_max(x),
                warp_min(x),
                warp_broadcast(x),
                warp_prefix_sum(x),
                warp_prefix_sum(x, exclusive=True),
                shuffle_idx(x, 2),
                shuffle_xor(x, 1),
                ballot(x % 2 == 0),
                vote_any(x == 3),
                vote_all(x == 3),
            ]
        )
        syncwarp()

    log = gather(kernel, 8, warp=4)
    assert [row[:4] for row in log] == [[10, 4, 1, 1]] * 8
    assert [row[4] for row in log] == [1, 3, 6, 10] * 2
    assert [row[5] for row in log] == [0, 1, 3, 6] * 2
    assert [row[6:] for row in log[:2]] == [[3, 2, 0b1010, True, False], [3, 1, 0b1010, True, False]]


def test_shuffles_of_groups_of_lanes():
    def kernel(log):
        log.append(shuffle_idx(lane_id(), 1, width=2))

    assert gather(kernel, 4, warp=4) == [1, 1, 3, 3]


def test_block_operations():
    def kernel(log):
        x = thread_idx.x + 1
        log.append(
            [block_sum(x), block_sum(x, broadcast=False), block_max(x), block_prefix_sum(x), block_broadcast(x, 2)]
        )

    assert gather(kernel, 3, warp=2) == [[6, 6, 3, 1, 3], [6, 2, 3, 3, 3], [6, 3, 3, 6, 3]]


def test_divergent_warp_operations_take_place_one_after_another():
    def kernel(log):
        if lane_id() < 2:
            log.append(warp_max(lane_id()))
        else:
            log.append(10 * warp_max(lane_id()))

    report = launch(kernel, [], grid=1, block=4, warp=4, check="report")
    assert {defect.kind for defect in report.errors} == {"inactive lane"}


def test_atomics_neither_race_nor_lose_anything():
    def kernel(histogram, largest, flag, values):
        atomic_add(histogram, int(values[global_idx.x]) % 4, 1)
        atomic_max(largest, 0, int(values[global_idx.x]))
        atomic_compare_exchange(flag, 0, 0, 1)

    values = np.arange(64)
    histogram, largest, flag = np.zeros(4, int), np.zeros(1, int), np.zeros(1, int)
    assert launch(kernel, histogram, largest, flag, values, grid=4, block=16).clean
    assert (histogram.tolist(), largest.tolist(), flag.tolist()) == ([16] * 4, [63], [1])

    def mixed(total):
        atomic_add(total, 0, 1)
        total[0] = 5

    report = launch(mixed, np.zeros(1, int), grid=1, block=2, check="report")
    assert any("atomic" in witness.action for defect in report.errors for witness in defect.witnesses)


def test_limits():
    def kernel():
        shared_array((64, 64, 4))

    with pytest.raises(LayoutError, match="a block of 2048 threads"):
        launch(kernel, grid=1, block=2048)
    with pytest.raises(KernelError, match="65536 bytes of shared memory, more than 49152"):
        launch(kernel, grid=1, block=1)
    assert launch(kernel, grid=1, block=1, limits=BlockLimits(static_shared=64 << 10)).shared_bytes == 65536
    with pytest.raises(LayoutError, match="grid takes one to three numbers of at least 1"):
        launch(kernel, grid=0, block=1)
    with pytest.raises(LayoutError, match="a warp has at least 1 thread"):
        launch(kernel, grid=1, block=1, warp=0)
    with pytest.raises(LayoutError, match="a block has 0 to 232448 bytes of shared memory"):
        launch(kernel, grid=1, block=1, shared_bytes=1 << 20)
    with pytest.raises(LayoutError, match="check must be"):
        launch(kernel, grid=1, block=1, check="maybe")


def test_without_checks_only_what_stops_a_kernel_is_noticed():
    def races(out):
        out[0] = thread_idx.x

    assert launch(races, np.zeros(1), grid=1, block=4, check=False).clean

    def leaves(out):
        out[thread_idx.x] = 1

    with pytest.raises(IndexError, match=r"by thread \(1,0,0\) of block \(0,0,0\)"):
        launch(leaves, np.zeros(1), grid=1, block=4, check=False)


def test_reports_of_all_launches_are_collected():
    def kernel(out):
        out[0] = thread_idx.x

    with collect_reports() as reports:
        launch(kernel, np.zeros(1), grid=1, block=4)
        launch(kernel, np.zeros(1), grid=1, block=1)
    assert [report.clean for report in reports] == [False, True]


def test_arrays_that_share_memory_are_one_memory():
    def kernel(a, b):
        if thread_idx.x == 0:
            a[2] = 1
        else:
            b[0] = 2

    numbers = np.zeros(4)
    report = launch(kernel, numbers, numbers[2:], grid=1, block=2, check="report")
    assert [defect.kind for defect in report.errors] == ["race"]
    report = launch(kernel, numbers, numbers[3:], grid=1, block=2, check="report")
    assert report.clean


def test_costs_are_those_of_the_analysis():
    def kernel(out, a):
        tile = shared_array((32, 32))
        tile[thread_idx.x, 0] = a[thread_idx.x * 32]
        out[thread_idx.x] = tile[thread_idx.x, 0]

    out, a = np.zeros(32, np.float32), np.zeros(1024, np.float32)
    costs = {(cost.memory, cost.action): cost for cost in launch(kernel, out, a, grid=1, block=32).sites}
    column = tw.Layout(32, 32)
    assert costs["tile", "write"].units == tw.analysis.bank_conflicts(column, instruction="st").wavefronts == 32
    assert costs["a", "read"].units == tw.analysis.coalescing(column).sectors == 32
    assert costs["out", "write"].units == tw.analysis.coalescing(tw.Layout(32)).sectors == 4
    assert costs["tile", "read"].ways == 32


def test_an_atomic_flag_orders_blocks():
    def kernel(sums, flags):
        if block_idx.x > 0:
            while atomic_load(flags, block_idx.x - 1) == 0:
                pass
            sums[block_idx.x] = sums[block_idx.x - 1] + 1
        else:
            sums[0] = 1
        atomic_add(flags, block_idx.x, 1)

    sums = np.zeros(4, int)
    assert launch(kernel, sums, np.zeros(4, int), grid=4, block=1).clean
    assert sums.tolist() == [1, 2, 3, 4]

    def without_flags(sums):
        sums[block_idx.x] = sums[block_idx.x - 1] + 1 if block_idx.x else 1

    with pytest.raises(KernelError, match="race between blocks"):
        launch(without_flags, sums, grid=4, block=1)


def test_errors_of_the_kernel_itself_stay_and_name_the_thread():
    def kernel():
        barrier()
        return 1 // (thread_idx.x - 2)

    with pytest.raises(ZeroDivisionError) as problem:
        launch(kernel, grid=1, block=4)
    if hasattr(problem.value, "add_note"):  # Python 3.11
        assert problem.value.__notes__ == ["in thread (2,0,0) of block (0,0,0)"]


def test_a_race_says_whether_the_same_number_is_written():
    def kernel(out, numbers):
        out[0] = numbers[thread_idx.x]

    def message(*numbers):
        return launch(kernel, np.zeros(1), np.array(numbers), grid=1, block=2, check="report").errors[0].message

    assert message(5.0, 5.0).startswith("two threads write the same number to out[0]")
    assert message(5.0, 6.0).startswith("two threads write out[0]")
    assert message(0.0, 6.0).startswith("two threads write out[0]")

    def rows(out):
        out[0, :] = 7.0

    report = launch(rows, np.zeros((2, 4)), grid=1, block=2, check="report")
    assert report.errors[0].message.startswith("two threads write the same number to out[0, 0]")


def test_the_last_write_of_a_block_is_compared_before_its_memory_is_cleared():
    def kernel():
        flag = shared_array(1, "int32")
        flag[0] = 1

    report = launch(kernel, grid=3, block=4, check="lenient")
    assert [(defect.count, defect.harmless) for defect in report.errors] == [(3, True)], str(report)


def test_errors_of_the_library_inside_a_kernel_are_one_error_each():
    def kernel():
        shared_array(8, "floot32")

    with pytest.raises(KernelError, match="\nerror: cannot go on: unknown format 'floot32'"):
        launch(kernel, grid=1, block=1)


def test_a_list_of_numbers_is_refused_since_its_accesses_cannot_be_seen():
    def kernel(out, taps):
        out[thread_idx.x] = taps[thread_idx.x]

    with pytest.raises(TypeError, match=r"out is a list of numbers, .* use a NumPy array"):
        launch(kernel, [0, 0], (1, 2), grid=1, block=2)
    assert launch(kernel, np.zeros(2), (1, 2), grid=1, block=2).clean


def test_one_thread_that_misses_a_barrier_is_named():
    def kernel(last):
        if thread_idx.x <= last:
            return
        barrier()

    for last, words in {0: "thread (0,0,0) of the block has returned", 2: "3 of 4 threads of the block, such"}.items():
        message = launch(kernel, last, grid=1, block=4, check="report").errors[0].message
        assert message.startswith(words), message
