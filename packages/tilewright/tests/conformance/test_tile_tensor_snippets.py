# SPDX-License-Identifier: Apache-2.0
"""The twelve snippets of the reference of Mojo's TileTensor run as the page prints them, as Mojo source."""

import pytest

import tilewright as tw
from tilewright import mojo

CONSTRUCTION = """\
from layout.tile_layout import row_major
from layout import TileTensor
from layout import Idx
# Create a 4x4 tensor with row-major layout
var storage = InlineArray[Float32, 16](uninitialized=True)
var tensor = TileTensor(storage, row_major[4, 4]()).fill(0.0)
# Access elements using flat indices
tensor[0, 0] = 1.0
tensor[1, 2] = 2.0
# Extract a 2x2 tile at position (1, 0)
var tile = tensor.tile[2, 2](1, 0)
# Vectorize for SIMD operations (shape becomes 4x1, element size 1x4)
var vec = tensor.vectorize[1, 4]()
"""
DEVICE_BUFFER = """\
from std.gpu.host import DeviceContext, DeviceBuffer
from layout.tile_layout import row_major
from layout import TileTensor
from layout import Idx
comptime dtype = DType.float32
var ctx = DeviceContext()
# Allocate buffers
var dev_buf = ctx.enqueue_create_buffer[dtype](16)
var host_buf = ctx.enqueue_create_host_buffer[dtype](16)
# Ensure buffers have been created
ctx.synchronize()
# Initialize host buffer and copy to device buffer
for i in range(16):
    host_buf[i] = Scalar[dtype](i)
ctx.enqueue_copy(dev_buf, host_buf)
# Create TileTensor to use on device
var tensor = TileTensor(
    dev_buf,
    row_major((Idx[4](), Idx[4]())),
)
...
"""
HOST_BUFFER = """\
from std.gpu.host import DeviceContext, HostBuffer
from layout.tile_layout import row_major
from layout import TileTensor
from layout import Idx
comptime dtype = DType.float32
var ctx = DeviceContext()
var host_buf = ctx.enqueue_create_host_buffer[dtype](8)
var tensor = TileTensor(
    host_buf,
    row_major((Idx[4](), Idx[4]())),
)
"""
PRINT = """\
from layout import TileTensor
from layout.tile_layout import row_major
def main() raises:
    var storage = InlineArray[Float32, 2 * 3](uninitialized=True)
    var tensor = TileTensor(storage, row_major[2, 3]()).fill(1.0)
    print(tensor) # Internally calls `write_to` with a StringWriter
"""
TILE = """\
from layout.tile_layout import row_major
from layout import TileTensor
var storage = InlineArray[Float32, 16](uninitialized=True)
var tensor = TileTensor(storage, row_major[4, 4]()).fill(1.0)
# Extract the tile at position (1, 0) with tile size 2x2
var t = tensor.tile[2, 2](1, 0)
"""
RESHAPE = """\
from layout.tile_layout import row_major
from layout import TileTensor
var storage = InlineArray[Float32, 12](uninitialized=True)
var tensor = TileTensor(storage, row_major[3, 4]()).fill(1.0)
# tensor has shape (3, 4)
var reshaped = tensor.reshape[2, 6]()
# reshaped has shape (2, 6), same underlying data
var reshaped_1d = tensor.reshape[12]()
# reshaped_1d has shape (12,), equivalent to coalesce
"""
RESHAPE_AT_RUN_TIME = """\
from layout.tile_layout import row_major
from layout import TileTensor
from layout import Idx, Coord
var storage = InlineArray[Float32, 12](uninitialized=True)
var tensor = TileTensor(storage, row_major[3, 4]()).fill(1.0)
# Reshape with runtime-determined dimensions
var rows = 2
var cols = 6
var reshaped = tensor.reshape(Coord(Idx(rows), Idx(cols)))
"""
FILL = """\
from layout.tile_layout import row_major
from layout import TileTensor
def main() raises:
    var storage = InlineArray[Float32, 3 * 4](uninitialized=True)
    var tensor = TileTensor(storage, row_major[3,4]()).fill(0.0)
    print(tensor)
"""
FILL_WITHOUT_CHAINING = """\
from layout.tile_layout import row_major
from layout import TileTensor
var storage = InlineArray[Float32, 3 * 4](uninitialized=True)
var tensor = TileTensor(storage, row_major[3,4]()).fill(0.0)
tensor = tensor.fill(0.0)
# or
_ = tensor.fill(0.0)
"""
SLICE = """\
from layout.tile_layout import row_major
from layout import TileTensor
comptime layout_3d = row_major[16, 16, 16]()
var stack = InlineArray[UInt8, layout_3d.static_product](fill=0)
var tensor_3d = TileTensor(stack, layout_3d)
var slice = tensor_3d.slice[0:2, 1:3, 0:4]()
"""
SLICE_AT_RUN_TIME = """\
# For a 2D tensor, slice rows 1:3 and columns 2:5
var sliced = tensor.slice((1, 3), (2, 5))
"""
MAKE_DYNAMIC = """\
from layout import TileTensor
from layout.tile_layout import row_major
var storage = InlineArray[Float32, 12](uninitialized=True)
var tensor = TileTensor(Span(storage), row_major[3, 4]())
var dynamic = tensor.make_dynamic[DType.int64]()
# dynamic has RuntimeInt[DType.int64] for all shape/stride dimensions
"""
MATRIX = """\
from layout.tile_layout import row_major
from layout import TileTensor
var storage = InlineArray[Float32, 48](fill=1)
var tensor = TileTensor(storage, row_major[6, 8]())
"""


def test_eleven_snippets_run_as_printed(capsys):
    program = mojo.run(CONSTRUCTION)
    assert float(program.tensor[1, 2]) == 2.0
    assert (program.tile.dim(0), program.tile.dim(1)) == (2, 2)
    assert (program.vec.dim(0), program.vec.dim(1), program.vec.element_size) == (4, 1, 4)
    assert mojo.run(DEVICE_BUFFER).tensor.rank == 2
    mojo.run(PRINT)
    assert capsys.readouterr().out == "[[1.0, 1.0, 1.0],\n[1.0, 1.0, 1.0]]\n"
    assert mojo.run(TILE).t.numel() == 4
    program = mojo.run(RESHAPE)
    assert [program.reshaped.dim(k) for k in (0, 1)] == [2, 6]
    assert program.reshaped_1d.dim(0) == 12
    assert [mojo.run(RESHAPE_AT_RUN_TIME).reshaped.dim(k) for k in (0, 1)] == [2, 6]
    mojo.run(FILL)
    assert capsys.readouterr().out == "[" + ",\n".join(["[0.0, 0.0, 0.0, 0.0]"] * 3) + "]\n"
    assert mojo.run(FILL_WITHOUT_CHAINING).tensor.numel() == 12
    assert [mojo.run(SLICE).slice.dim(k) for k in range(3)] == [2, 2, 4]
    program = mojo.run(MATRIX + SLICE_AT_RUN_TIME)  # the page's fragment speaks of a tensor that it does not make
    assert [program.sliced.dim(k) for k in (0, 1)] == [2, 3]
    assert mojo.run(MAKE_DYNAMIC).dynamic.all_dims_known is False


def test_the_snippet_that_is_wrong_leaves_its_memory():
    with pytest.raises(tw.LayoutError, match="16"):
        mojo.run(HOST_BUFFER)
