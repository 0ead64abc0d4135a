# SPDX-License-Identifier: Apache-2.0
"""Kernels in Mojo source on the SIMT machine: right ones run clean, and seeded defects are found at their lines."""

import re

import pytest
from tests.cli.runner import invoke

from tilewright import KernelError
from tilewright.mojo import run
from tilewright_mojo.simt import collect_reports

HEAD = """
from std.gpu import thread_idx, block_idx, block_dim, lane_id
from max.gpu.sync import barrier
from max.gpu.host import DeviceContext
from max.gpu.primitives import block
from std.gpu.primitives.warp import shuffle_down, sum as warp_sum
from std.atomic import Atomic
from layout import TileTensor
from layout.tile_layout import row_major
from layout.tile_tensor import stack_allocation

comptime TPB = 32
comptime BLOCKS = 4
comptime SIZE = 100
comptime dtype = DType.float32

def reduce(shared: TileTensor, i: Int, stride: Int):
    if i < stride:
        shared[i] += shared[i + stride]

def kernel(output: TileTensor, a: TileTensor, counter: UnsafePointer[Int32, MutAnyOrigin], size: Int):
    var shared = stack_allocation[dtype=dtype, address_space=AddressSpace.SHARED](row_major[TPB]())
    var i = thread_idx.x
    var g = block_dim.x * block_idx.x + i
"""

MAIN = """

def main() raises:
    with DeviceContext() as ctx:
        var a = ctx.enqueue_create_buffer[dtype](SIZE)
        with a.map_to_host() as host:
            for k in range(SIZE):
                host[k] = Float32(k)
        var output = ctx.enqueue_create_buffer[dtype](BLOCKS)
        var counter = ctx.enqueue_create_buffer[DType.int32](1)
        counter.enqueue_fill(0)
        var layout = row_major[SIZE]()
        ctx.enqueue_function[kernel](
            TileTensor(output, row_major[BLOCKS]()), TileTensor(a, layout), counter, SIZE,
            grid_dim=BLOCKS, block_dim=TPB,
        )
        ctx.synchronize()
        with output.map_to_host() as host:
            print(host)
        with counter.map_to_host() as host:
            print(host)
"""

SUM = """
    shared[i] = a[g] if g < size else 0
    barrier()
    var stride = TPB // 2
    while stride > 0:
        reduce(shared, i, stride)
        barrier()
        stride //= 2
    if i == 0:
        output[block_idx.x] = shared[0]
        _ = Atomic.fetch_add(counter, 1)
"""

BLOCK_SUM = """
    var value: Float32 = 0
    if g < size:
        value = a[g][0]
    var total = block.sum[block_size=TPB, broadcast=False](val=value)
    if i == 0:
        output[block_idx.x] = total
        _ = Atomic.fetch_add(counter, 1)
"""

WARP_SUM = """
    var value: Float32 = 0
    if g < size:
        value = a[g][0]
    var total = warp_sum(value)
    if lane_id() == 0:
        output[block_idx.x] = total
        _ = Atomic.fetch_add(counter, 1)
"""

TOTALS = "HostBuffer([496.0, 1520.0, 2544.0, 390.0])\nHostBuffer([4])\n"


def source(body):
    return HEAD + body + MAIN


@pytest.mark.parametrize("body", [SUM, BLOCK_SUM, WARP_SUM], ids=["shared memory", "block", "warp"])
def test_right_kernels_are_clean(body, capsys):
    with collect_reports() as reports:
        run(source(body))
    assert capsys.readouterr().out == TOTALS
    assert [(report.kernel, report.clean) for report in reports] == [("kernel", True)]


DEFECTS = {
    "removed barrier": (SUM.replace("        barrier()\n", ""), "race", "shared[i] += shared[i + stride]"),
    "removed first barrier": (SUM.replace("    barrier()\n    var", "    var"), "race", "shared[i] = a[g]"),
    "missing guard": (SUM.replace(" if g < size else 0", ""), "out of bounds", "a[g]"),
    "uninitialised tail": (
        SUM.replace("    shared[i] = a[g] if g < size else 0", "    if g < size:\n        shared[i] = a[g]"),
        "uninitialised read",
        "shared[i + stride]",
    ),
    "early return": ("    if g >= size:\n        return\n" + SUM, "barrier not reached", "barrier()"),
    "all threads write": (
        SUM.replace(
            "    if i == 0:\n        output[block_idx.x] = shared[0]", "    if i < 2:\n        output[block_idx.x] = i"
        ),
        "race",
        "output[block_idx.x]",
    ),
    "plain counter": (
        SUM.replace("_ = Atomic.fetch_add(counter, 1)", "counter[] += 1"),
        "race between blocks",
        "counter",
    ),
    "shuffle from an inactive lane": (
        "    if i < 16:\n        var x = shuffle_down(Float32(i), 1)\n        output[0] = x\n",
        "inactive lane",
        "shuffle_down(Float32(i), 1)",
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_seeded_defects_are_found(name):
    body, kind, text = DEFECTS[name]
    with pytest.raises(KernelError) as problem:
        run(source(body), name=f"<{name}>")
    found = [defect for defect in problem.value.report.errors if defect.kind == kind]
    assert found, str(problem.value)
    lines = source(body).splitlines()
    named = [lines[witness.site.line - 1] for defect in found for witness in defect.witnesses]
    assert any(text in line for line in named), named
    assert re.search(rf"<{name}>:\d+(:\d+)? by thread", str(problem.value).replace("\n    ", " "))


def test_the_same_number_from_all_threads_is_an_error_of_reports_only(capsys):
    text = source(SUM.replace("    if i == 0:\n", "    if True:\n").replace("_ = Atomic.fetch_add(counter, 1)", "pass"))
    run(text)
    assert capsys.readouterr().out.startswith("HostBuffer([496.0")
    with collect_reports() as reports:
        run(text)
    assert [(defect.kind, defect.harmless) for defect in reports[0].errors] == [("race", True)]


def test_the_command_reports_and_draws(tmp_path):
    path = tmp_path / "sum.mojo"
    path.write_text(source(SUM), encoding="utf-8")
    answer = invoke("run", "--check", str(path))
    assert answer.exit_code == 0
    assert answer.stdout.startswith(TOTALS)
    assert "kernel: 4 blocks of 32 threads: no errors" in answer.stdout
    path.write_text(source(DEFECTS["removed barrier"][0]), encoding="utf-8")
    picture = tmp_path / "races.svg"
    answer = invoke("run", "--picture", str(picture), str(path))
    assert answer.exit_code == 1
    assert "error: race" in answer.stdout
    assert "shared (shared), step 1: races" in picture.read_text(encoding="utf-8")


COPIES = """
from std.gpu import thread_idx
from max.gpu.sync import barrier
from max.gpu.memory import async_copy_wait_all
from max.gpu.host import DeviceContext
from layout import Layout, LayoutTensor
from layout.layout_tensor import copy_dram_to_sram_async, copy_sram_to_dram

comptime N = 16
comptime layout = Layout.row_major(N, N)

def kernel(
    output: LayoutTensor[DType.float32, layout, MutAnyOrigin], a: LayoutTensor[DType.float32, layout, MutAnyOrigin]
):
    var tile = LayoutTensor[
        DType.float32, layout, MutAnyOrigin, address_space=AddressSpace.SHARED
    ].stack_allocation()
    copy_dram_to_sram_async[thread_layout=Layout.row_major(8, 4)](tile.vectorize[1, 4](), a.vectorize[1, 4]())
    async_copy_wait_all()
    barrier()
    var i = thread_idx.x // N
    while i < N:
        output[i, thread_idx.x % N] = tile[i, thread_idx.x % N] + 1
        i += 2

def main() raises:
    var ctx = DeviceContext()
    var a = ctx.enqueue_create_buffer[DType.float32](N * N)
    a.enqueue_fill(3)
    var output = ctx.enqueue_create_buffer[DType.float32](N * N)
    ctx.enqueue_function[kernel](
        LayoutTensor[DType.float32, layout](output), LayoutTensor[DType.float32, layout](a), grid_dim=1, block_dim=32
    )
    with output.map_to_host() as host:
        print(host[0], host[N * N - 1])
"""


def test_asynchronous_copies_have_to_be_waited_for(capsys):
    run(COPIES)
    assert capsys.readouterr().out == "4.0 4.0\n"
    with pytest.raises(KernelError, match="copy in flight"):
        run(COPIES.replace("    async_copy_wait_all()\n", ""))
    with pytest.raises(KernelError, match="error: race"):
        run(COPIES.replace("    barrier()\n", ""))


@pytest.mark.parametrize(
    "copy",
    [
        "copy_dram_to_sram_async(tile, a)",
        "_ = tile.copy_from_async(a)",
        "_ = tile.vectorize[1, 4]().copy_from_async(a.vectorize[1, 4]())",
        "_ = tile.copy_from_async[is_masked=True](a)",
    ],
)
def test_every_asynchronous_copy_has_to_be_waited_for(copy, capsys):
    start = COPIES.index("    copy_dram_to_sram_async[")
    end = COPIES.index("    async_copy_wait_all()")
    program = f"{COPIES[:start]}    if thread_idx.x == 0:\n        {copy}\n{COPIES[end:]}"
    run(program)
    assert capsys.readouterr().out == "4.0 4.0\n"
    with pytest.raises(KernelError, match="copy in flight"):
        run(program.replace("    async_copy_wait_all()\n", ""))


ELEMENTWISE = """
from max.algorithm.functional import elementwise
from max.gpu.host import DeviceContext
from std.gpu.primitives.warp import sum as warp_sum
from std.gpu import lane_id
from layout import TileTensor
from layout.tile_layout import row_major
from std.utils.coord import Coord

def main() raises:
    var ctx = DeviceContext()
    var buffer = ctx.enqueue_create_buffer[DType.int32](64)
    buffer.enqueue_fill(2)
    var totals = ctx.enqueue_create_buffer[DType.int32](2)
    var numbers = TileTensor(buffer, row_major[64]())
    var sums = TileTensor(totals, row_major[2]())

    def add[width: Int, alignment: Int = 1](index: Coord) {var}:
        var k = Int(index[0].value())
        var total = warp_sum(numbers[k])
        if lane_id() == 0:
            sums[k // 32] = total

    elementwise[simd_width=1, target="gpu"](add, Coord(64), ctx)
    print(totals)
"""


def test_elementwise_on_the_device_is_a_launch(capsys):
    with collect_reports() as reports:
        run(ELEMENTWISE)
    assert capsys.readouterr().out == "DeviceBuffer([64, 64])\n"
    assert [report.clean for report in reports] == [True]
