# SPDX-License-Identifier: Apache-2.0
"""Kernels for the tests: each one right, and with one defect that a student might leave in it."""

from tilewright_mojo.simt import (
    barrier,
    block_dim,
    block_idx,
    global_idx,
    lane_id,
    shared_array,
    shuffle_down,
    shuffle_up,
    thread_idx,
    warp_sum,
)

TPB = 64


def block_sum(out, a, n):
    shared, i = shared_array(TPB), thread_idx.x
    shared[i] = a[global_idx.x] if global_idx.x < n else 0
    barrier()
    stride = TPB // 2
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        barrier()
        stride //= 2
    if i == 0:
        out[block_idx.x] = shared[0]


def block_sum_without_inner_barrier(out, a, n):
    shared, i = shared_array(TPB), thread_idx.x
    shared[i] = a[global_idx.x] if global_idx.x < n else 0
    barrier()
    stride = TPB // 2
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        stride //= 2
    if i == 0:
        out[block_idx.x] = shared[0]


def block_sum_without_first_barrier(out, a, n):
    shared, i = shared_array(TPB), thread_idx.x
    shared[i] = a[global_idx.x] if global_idx.x < n else 0
    stride = TPB // 2
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        barrier()
        stride //= 2
    if i == 0:
        out[block_idx.x] = shared[0]


def block_sum_without_tail(out, a, n):
    shared, i = shared_array(TPB), thread_idx.x
    if global_idx.x < n:
        shared[i] = a[global_idx.x]
    barrier()
    stride = TPB // 2
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        barrier()
        stride //= 2
    if i == 0:
        out[block_idx.x] = shared[0]


def block_sum_all_write(out, a, n):
    shared, i = shared_array(TPB), thread_idx.x
    shared[i] = a[global_idx.x] if global_idx.x < n else 0
    barrier()
    stride = TPB // 2
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        barrier()
        stride //= 2
    out[block_idx.x] = shared[0]


def block_sum_early_return(out, a, n):
    shared, i = shared_array(TPB), thread_idx.x
    if global_idx.x >= n:
        return
    shared[i] = a[global_idx.x]
    barrier()
    stride = TPB // 2
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        barrier()
        stride //= 2
    if i == 0:
        out[block_idx.x] = shared[0]


def block_sum_divergent(out, a, n):
    shared, i = shared_array(TPB), thread_idx.x
    if global_idx.x < n:
        shared[i] = a[global_idx.x]
        barrier()
    else:
        shared[i] = 0
        barrier()
    stride = TPB // 2
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        barrier()
        stride //= 2
    if i == 0:
        out[block_idx.x] = shared[0]


def stencil(out, a, n):
    shared, i, g = shared_array(TPB + 2), thread_idx.x, global_idx.x
    shared[i + 1] = a[g] if g < n else 0
    if i == 0:
        shared[0] = a[g - 1] if g > 0 else 0
    if i == TPB - 1:
        shared[TPB + 1] = a[g + 1] if g + 1 < n else 0
    barrier()
    if g < n:
        out[g] = shared[i] + shared[i + 1] + shared[i + 2]


def stencil_off_by_one(out, a, n):
    shared, i, g = shared_array(TPB + 2), thread_idx.x, global_idx.x
    shared[i + 1] = a[g] if g < n else 0
    if i == 0:
        shared[0] = a[g - 1] if g > 0 else 0
    if i == TPB - 1:
        shared[TPB + 1] = a[g + 1] if g + 1 <= n else 0
    barrier()
    if g < n:
        out[g] = shared[i] + shared[i + 1] + shared[i + 2]


def stencil_without_guard(out, a, n):
    shared, i, g = shared_array(TPB + 2), thread_idx.x, global_idx.x
    shared[i + 1] = a[g]
    if i == 0:
        shared[0] = a[g - 1] if g > 0 else 0
    if i == TPB - 1:
        shared[TPB + 1] = a[g + 1] if g + 1 < n else 0
    barrier()
    if g < n:
        out[g] = shared[i] + shared[i + 1] + shared[i + 2]


def stencil_without_halo(out, a, n):
    shared, i, g = shared_array(TPB + 2), thread_idx.x, global_idx.x
    shared[i + 1] = a[g] if g < n else 0
    if i == 0:
        shared[0] = a[g - 1] if g > 0 else 0
    barrier()
    if g < n:
        out[g] = shared[i] + shared[i + 1] + shared[i + 2]


def rows(out, a, n):
    if global_idx.x < n:
        for column in range(4):
            out[global_idx.x * 4 + column] = a[global_idx.x]


def rows_with_wrong_stride(out, a, n):
    if global_idx.x < n:
        for column in range(4):
            out[global_idx.x * 3 + column] = a[global_idx.x]


def rows_of_blocks_overlap(out, a, n):
    if global_idx.x < n:
        for column in range(4):
            out[(block_idx.x * (block_dim.x - 1) + thread_idx.x) * 4 + column] = a[global_idx.x]


def warp_total(out, a, n):
    total = warp_sum(a[global_idx.x] if global_idx.x < n else 0)
    if lane_id() == 0:
        out[global_idx.x // 32] = total


def warp_total_of_some(out, a, n):
    if global_idx.x < n:
        total = warp_sum(a[global_idx.x])
        if lane_id() == 0:
            out[global_idx.x // 32] = total


def neighbours(out, a, n):
    value = a[global_idx.x] if global_idx.x < n else 0
    after = shuffle_down(value, 1)
    before = shuffle_up(value, 1)
    if global_idx.x < n:
        out[global_idx.x] = before + value + after


def neighbours_of_some(out, a, n):
    if lane_id() < 20:
        value = a[global_idx.x]
        out[global_idx.x] = value + shuffle_down(value, 1)


def vectors(out, a, n):
    if global_idx.x < n // 4:
        out.store[4](global_idx.x * 4, a.load[4](global_idx.x * 4))


def vectors_misaligned(out, a, n):
    if global_idx.x < n // 4 - 1:
        out.store[4](global_idx.x * 4, a.load[4](global_idx.x * 4 + 1))
