# SPDX-License-Identifier: Apache-2.0
"""What the SIMT machine costs: kernels in Python and in Mojo, with all checks and without, beside numba's simulator.

    python bench/simt.py [--repeat 5]

Each number is the shortest time of a few interleaved runs: seconds per launch, and microseconds per thread. The kernels
are a tree reduction in shared memory and a stencil with a halo, over 16,384 threads. numba's simulator runs the same
reduction, written for it, on few blocks, since it takes long; it checks nothing, and is left out where numba is not
installed.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # the folder of this script, where copy.py would hide the standard library's

import argparse
import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import mojo, simt

SHAPES = ((256, 64), (64, 256))  # blocks, threads
NUMBA_BLOCKS = 4

MOJO = """
from std.gpu import thread_idx, block_idx, block_dim
from max.gpu.sync import barrier
from max.gpu.host import DeviceContext
from layout import TileTensor
from layout.tile_layout import row_major
from layout.tile_tensor import stack_allocation

comptime BLOCKS = {blocks}
comptime T = {threads}
comptime dtype = DType.float32
comptime layout = row_major[BLOCKS * T]()
comptime out_layout = row_major[BLOCKS]()

def block_sum(
    output: TileTensor[mut=True, dtype, type_of(out_layout), MutAnyOrigin],
    a: TileTensor[mut=False, dtype, type_of(layout), ImmutAnyOrigin],
):
    var shared = stack_allocation[dtype=dtype, address_space=AddressSpace.SHARED](row_major[T]())
    var local = thread_idx.x
    shared[local] = a[block_dim.x * block_idx.x + local]
    barrier()
    var stride = T // 2
    while stride > 0:
        if local < stride:
            shared[local] += shared[local + stride]
        barrier()
        stride //= 2
    if local == 0:
        output[block_idx.x] = shared[0]

def launch() raises:
    var ctx = DeviceContext()
    var out = ctx.enqueue_create_buffer[dtype](BLOCKS)
    var a = ctx.enqueue_create_buffer[dtype](BLOCKS * T)
    a.enqueue_fill(1)
    var ones = TileTensor[mut=False, dtype, type_of(layout)](a, layout)
    ctx.enqueue_function[block_sum](TileTensor(out, out_layout), ones, grid_dim=BLOCKS, block_dim=T)
    ctx.synchronize()
"""

NUMBA = """
import time
import numpy as np
from numba import cuda, float32
blocks, threads, repeat = {blocks}, {threads}, {repeat}

@cuda.jit
def block_sum(out, a):
    shared = cuda.shared.array({threads}, float32)
    local = cuda.threadIdx.x
    shared[local] = a[cuda.blockDim.x * cuda.blockIdx.x + local]
    cuda.syncthreads()
    stride = {threads} // 2
    while stride > 0:
        if local < stride:
            shared[local] += shared[local + stride]
        cuda.syncthreads()
        stride //= 2
    if local == 0:
        out[cuda.blockIdx.x] = shared[0]

a, out = np.ones(blocks * threads, np.float32), np.zeros(blocks, np.float32)
times = []
for _ in range(repeat):
    start = time.perf_counter()
    block_sum[blocks, threads](out, a)
    times.append(time.perf_counter() - start)
assert (out == threads).all()
print(min(times))
"""


def block_sum(out: Any, a: Any) -> None:
    """Sum the elements of each block in shared memory, in a tree."""
    local, count = simt.thread_idx.x, simt.block_dim.x
    shared = simt.shared_array(count, "float32")
    shared[local] = a[count * simt.block_idx.x + local]
    simt.barrier()
    stride = count // 2
    while stride > 0:
        if local < stride:
            shared[local] += shared[local + stride]
        simt.barrier()
        stride //= 2
    if local == 0:
        out[simt.block_idx.x] = shared[0]


def stencil(out: Any, a: Any) -> None:
    """Add each element to its neighbours, through shared memory with a halo."""
    local, count, size = simt.thread_idx.x, simt.block_dim.x, out.shape[0]
    i = count * simt.block_idx.x + local
    shared = simt.shared_array(count + 2, "float32")
    shared[local + 1] = a[i]
    if local == 0:
        shared[0] = a[i - 1] if i > 0 else 0
    if local == count - 1:
        shared[count + 1] = a[i + 1] if i + 1 < size else 0
    simt.barrier()
    out[i] = shared[local] + shared[local + 1] + shared[local + 2]


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def numba_seconds(blocks: int, threads: int, repeat: int) -> float | None:
    """Return the shortest time of the reduction in numba's simulator; None if numba is not there."""
    program = NUMBA.format(blocks=blocks, threads=threads, repeat=repeat)
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def measure(blocks: int, threads: int, repeat: int) -> None:
    a = np.ones(blocks * threads, np.float32)
    sums, sides = np.zeros(blocks, np.float32), np.zeros_like(a)
    program = mojo.run(MOJO.format(blocks=blocks, threads=threads))
    runs: dict[str, Callable[[], Any]] = {
        "reduction, Python, all checks": partial(simt.launch, block_sum, sums, a, grid=blocks, block=threads),
        "reduction, Python, no checks": partial(
            simt.launch, block_sum, sums, a, grid=blocks, block=threads, check=False
        ),
        "reduction, Mojo, all checks": program.launch,
        "stencil, Python, all checks": partial(simt.launch, stencil, sides, a, grid=blocks, block=threads),
    }
    times = {name: float("inf") for name in runs}
    for _ in range(repeat):
        for name, run in runs.items():
            times[name] = min(times[name], seconds(run))
    assert (sums == threads).all()
    count = blocks * threads
    rows = {name: (taken, taken / count) for name, taken in times.items()}
    peer = numba_seconds(NUMBA_BLOCKS, threads, 1)
    if peer is not None:
        rows[f"reduction, numba's simulator, {NUMBA_BLOCKS} blocks"] = peer, peer / (NUMBA_BLOCKS * threads)
    print(f"\n{blocks} blocks of {threads} threads{'s':>25}{'us per thread':>16}")
    for name, (taken, each) in rows.items():
        print(f"  {name:42}{taken:8.2f}{each * 1e6:16.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print(f"tilewright {tw.__version__}, best of {arguments.repeat}")
    for blocks, threads in SHAPES:
        measure(blocks, threads, arguments.repeat)


if __name__ == "__main__":
    main()
