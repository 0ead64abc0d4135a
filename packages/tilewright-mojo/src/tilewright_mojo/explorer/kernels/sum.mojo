# Each block sums its part: half of the threads add what the
# other half has, and again. Nothing is wrong with it.
from std.gpu import barrier, block_dim, block_idx, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime THREADS = 16
comptime BLOCKS = 2
comptime SIZE = 32


def sum_blocks(sums: TileTensor, numbers: TileTensor):
    var partial = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[THREADS]())
    var mine = thread_idx.x
    partial[mine] = numbers[block_dim.x * block_idx.x + mine]
    barrier()
    var half = THREADS // 2
    while half > 0:
        if mine < half:
            partial[mine] += partial[mine + half]
        barrier()
        half //= 2
    if mine == 0:
        sums[block_idx.x] = partial[0]


def main() raises:
    with DeviceContext() as ctx:
        var numbers = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var sums = ctx.enqueue_create_buffer[DType.float32](BLOCKS)
        with numbers.map_to_host() as host:
            for k in range(SIZE):
                host[k] = Float32(k)
        ctx.enqueue_function[sum_blocks](
            TileTensor(sums, row_major[BLOCKS]()),
            TileTensor(numbers, row_major[SIZE]()),
            grid_dim=BLOCKS, block_dim=THREADS,
        )
        ctx.synchronize()
        with sums.map_to_host() as host:
            print(host)
