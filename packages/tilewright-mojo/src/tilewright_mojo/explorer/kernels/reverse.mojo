# Each block reverses its part, through shared memory.
# A barrier is missing: which two threads race?
from std.gpu import block_dim, block_idx, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime THREADS = 16
comptime SIZE = 32


def reverse(result: TileTensor, numbers: TileTensor):
    var part = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[THREADS]())
    var mine = thread_idx.x
    var place = block_dim.x * block_idx.x + mine
    part[mine] = numbers[place]
    # barrier()   (from std.gpu import barrier)
    result[place] = part[THREADS - 1 - mine]


def main() raises:
    with DeviceContext() as ctx:
        var numbers = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var result = ctx.enqueue_create_buffer[DType.float32](SIZE)
        with numbers.map_to_host() as host:
            for k in range(SIZE):
                host[k] = Float32(k)
        ctx.enqueue_function[reverse](
            TileTensor(result, row_major[SIZE]()),
            TileTensor(numbers, row_major[SIZE]()),
            grid_dim=SIZE // THREADS, block_dim=THREADS,
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
