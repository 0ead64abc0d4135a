# Result i is the sum of weights[k] * numbers[i + k], and beyond the
# end there are zeros. A block needs numbers of the next one: who
# brings them?
from std.gpu import barrier, block_idx, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from std.testing import assert_equal
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime SIZE = 16
comptime TAPS = 3
comptime THREADS = 8
comptime BLOCKS = 2


def convolve(result: TileTensor, numbers: TileTensor, weights: TileTensor):
    var part = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[THREADS + TAPS - 1]())
    var mine = thread_idx.x
    var i = block_idx.x * THREADS + mine
    # your part: fill part and its margin, then write result[i]
    part[mine] = numbers[i]
    if mine < TAPS - 1:
        var beyond = i + THREADS
        if beyond < SIZE:
            part[mine + THREADS] = numbers[beyond]
        else:
            part[mine + THREADS] = 0
    barrier()
    var total: Float32 = 0
    for k in range(TAPS):
        total += weights[k] * part[mine + k]
    result[i] = total
    # end of your part


def main() raises:
    with DeviceContext() as ctx:
        var numbers = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var weights = ctx.enqueue_create_buffer[DType.float32](TAPS)
        var result = ctx.enqueue_create_buffer[DType.float32](SIZE)
        result.enqueue_fill(-1)
        with numbers.map_to_host() as host:
            for i in range(SIZE):
                host[i] = Float32(i)
        with weights.map_to_host() as host:
            for i in range(TAPS):
                host[i] = Float32(i + 1)
        ctx.enqueue_function[convolve](
            TileTensor(result, row_major[SIZE]()),
            TileTensor(numbers, row_major[SIZE]()),
            TileTensor(weights, row_major[TAPS]()),
            grid_dim=BLOCKS, block_dim=THREADS,
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
            for i in range(SIZE):
                var total = 0
                for k in range(TAPS):
                    if i + k < SIZE:
                        total += (k + 1) * (i + k)
                assert_equal(host[i], Float32(total))
    print("Right.")
