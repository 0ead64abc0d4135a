from std.gpu import thread_idx
from std.gpu.host import DeviceContext

def add(total: UnsafePointer[Float32, MutAnyOrigin]):
    if thread_idx.x == 0:
        total[0] = 1 + 2 + 3

def main() raises:
    var ctx = DeviceContext()
    var total = ctx.enqueue_create_buffer[DType.float32](1)
    ctx.enqueue_function[add](total, grid_dim=1, block_dim=4)
    ctx.synchronize()
    with total.map_to_host() as host:
        print(host[0])
