# SPDX-License-Identifier: Apache-2.0
"""Members of Mojo's library that need a device, or that refuse a value."""

import pytest

from tilewright import mojo
from tilewright.errors import LayoutError, TilewrightError

DEVICE_PROGRAM = """\
from max.gpu.host import DeviceContext, DeviceBuffer
from layout.swizzle import make_swizzle
from layout.tile_layout import row_major, zipped_divide
from layout.coord import coord
from std.benchmark import Bench, Bencher, BenchId, ThroughputMeasure, BenchMetric
from std.utils import StaticTuple

@fieldwise_init
struct Parts(Copyable):
    var size: Int

def measure(mut bencher: Bencher, parts: Parts) raises:
    print("measure", parts.size)

def main() raises:
    var ctx = DeviceContext()
    var whole = ctx.enqueue_create_buffer[DType.int32](8).enqueue_fill(3)
    var part = DeviceBuffer[DType.int32](ctx, whole.unsafe_ptr() + 2, 4, owning=False)
    part.enqueue_fill(5)
    with whole.map_to_host() as host:
        print(host[1], host[2], host[5], host[6], len(part))
    var numbers = alloc[Float32]({count = 4}).unsafe_leak()
    numbers.unsafe_free()
    print(make_swizzle[num_rows=8, row_size=32, access_size=4]())
    print(zipped_divide[coord[2, 2]](row_major[6, 4]())(coord[5]))
    print(StaticTuple[Int, 3](7).size)
    var bench = Bench()
    bench.bench_with_input(measure, BenchId("a", "b"), Parts(6), [ThroughputMeasure(BenchMetric.bytes, 4)])
"""


def test_members_around_a_device(capsys):
    mojo.run(DEVICE_PROGRAM)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 5 5 3 4"
    assert lines[2:] == ["12", "3", "measure 6"]


def test_wrong_values_are_refused_with_our_errors():
    cases = {
        "Optional[Int]().value()": "none",
        'Int("x1")': "not convertible to integer",
        'Float64("x1")': "not convertible to float",
        "[1, 2].index(5)": "not in list",
        "Dict[Int, Int]().popitem()": "EmptyDict",
        "Dict[Int, Int]().pop(3)": "no key 3",
        'Codepoint.ord("ab")': "one character",
        "Codepoint(1 << 40)": "between 0 and",
        'Variant[Int, Float64]("a")': "none of the types",
        "Variant[Int, Float64](3)[Float64]": "another type",
        "Deque[Int]().pop()": "empty Deque",
        "Set[Int]().pop()": "empty set",
    }
    for expression, words in cases.items():
        header = "from std.utils import Variant\nfrom std.collections import Deque, Set\n"
        with pytest.raises(TilewrightError) as caught:
            mojo.run(f"{header}def main() raises:\n    _ = {expression}\n")
        assert words in str(caught.value), expression


def test_a_buffer_needs_memory_of_a_device():
    program = (
        "from max.gpu.host import DeviceContext, DeviceBuffer\n"
        "def main() raises:\n    _ = DeviceBuffer[DType.int32](DeviceContext(), alloc[Int32](4), 4, owning=False)\n"
    )
    with pytest.raises(LayoutError, match="unsafe_ptr"):
        mojo.run(program)
