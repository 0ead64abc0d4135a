# Rotate each block's numbers by one to the left, through shared
# memory: a thread reads what its neighbor has brought. When is that
# there?
from std.gpu import barrier, block_idx, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from std.testing import assert_equal
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime THREADS = 8
comptime BLOCKS = 2
comptime SIZE = THREADS * BLOCKS


def rotate(result: TileTensor, numbers: TileTensor):
    var part = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[THREADS]())
    var mine = thread_idx.x
    var i = block_idx.x * THREADS + mine
    part[mine] = numbers[i]
    # your part: write result[i] from part
    barrier()
    result[i] = part[(mine + 1) % THREADS]
    # end of your part


def main() raises:
    with DeviceContext() as ctx:
        var numbers = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var result = ctx.enqueue_create_buffer[DType.float32](SIZE)
        result.enqueue_fill(-1)
        with numbers.map_to_host() as host:
            for i in range(SIZE):
                host[i] = Float32(i)
        ctx.enqueue_function[rotate](
            TileTensor(result, row_major[SIZE]()),
            TileTensor(numbers, row_major[SIZE]()),
            grid_dim=BLOCKS, block_dim=THREADS,
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
            for i in range(SIZE):
                var block = i // THREADS * THREADS
                assert_equal(host[i], Float32(block + (i + 1) % THREADS))
    print("Right.")
