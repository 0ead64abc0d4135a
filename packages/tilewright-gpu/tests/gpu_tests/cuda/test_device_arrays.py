# SPDX-License-Identifier: Apache-2.0
"""Arrays of torch, CuPy and JAX in device memory: results live there too, on the caller's stream, without copies."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from tilewright_mojo.std.gpu.host import DeviceContext

import tilewright as tw
from tilewright.copying import copy, tilize_batch
from tilewright.copying.engine import as_operand
from tilewright.copying.placement import placement_of
from tilewright.formats import BLOCK_FORMATS, BlockFormat, format_of, mxfp4
from tilewright.formats.scalars import E2M1
from tilewright.tiling import Input, Output, Pipeline, Tiler

from ..on_devices import random, same_bits

SHAPES = [(1024, 2048), (1000, 1001), (33, 17), (3, 65, 96)]
BLOCKS = list(BLOCK_FORMATS)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def bits(torch, tensor):
    """Return a tensor on the host, bit for bit, also in formats that NumPy lacks."""
    flat = tensor.contiguous().reshape(-1).view(torch.uint8).cpu().numpy()
    name = str(tensor.dtype).removeprefix("torch.")
    return flat.view(format_of(name).dtype).reshape(tuple(tensor.shape))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [None, "bfloat16", "float16", "int32", *BLOCKS])
def test_torch_tensors_are_tilized_and_back(torch, shape, dtype):
    host = random(shape)
    there = torch.from_numpy(host).cuda()
    tiles = tw.tilize(there, dtype=dtype, pad_value=3)
    assert isinstance(tiles, torch.Tensor)
    assert tiles.is_cuda
    wanted = tw.tilize(host, dtype=dtype, pad_value=3, engine="reference")
    same_bits(bits(torch, tiles), wanted)
    block = dtype if dtype in BLOCKS else None
    back = tw.untilize(tiles, shape, dtype=block)
    same_bits(bits(torch, back), tw.untilize(wanted, shape, dtype=block, engine="reference"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8", "float64"])
@pytest.mark.parametrize("shape", [(1024, 512), (1000, 1001), (129, 257)])
def test_a_transposed_view_is_copied(torch, dtype, shape):
    source = torch.randint(0, 255, shape, device="cuda").to(getattr(torch, dtype))
    target = torch.full(shape[::-1], 7, device="cuda", dtype=source.dtype)
    assert copy(source.T, target) is target
    assert torch.equal(target, source.T.contiguous())


def test_a_move_follows_the_stream_of_torch(torch):
    source = torch.zeros((4096, 4096), device="cuda")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)  # the fill below comes late, and a move on another stream would miss it
        source.fill_(5.0)
        tiles = tw.tilize(source)
    stream.synchronize()
    assert bool((tiles == 5.0).all())


def test_slices_that_are_not_aligned_are_moved_too(torch):
    whole = torch.arange(513 * 515, device="cuda", dtype=torch.int16).reshape(513, 515)
    part = whole[1:, 3:]
    same_bits(bits(torch, tw.tilize(part)), tw.tilize(part.cpu().numpy(), engine="reference"))


def test_cupy_arrays_stay_cupy_arrays():
    cupy = pytest.importorskip("cupy")
    host = random((300, 500))
    tiles = tw.tilize(cupy.asarray(host), dtype="bfloat8_b")
    assert isinstance(tiles, cupy.ndarray)
    same_bits(tiles.get(), tw.tilize(host, dtype="bfloat8_b", engine="reference"))
    same_bits(
        tw.untilize(tiles, (300, 500), dtype="bfloat8_b").get(), tw.untilize(tiles.get(), (300, 500), dtype="bfloat8_b")
    )


def test_jax_arrays_stay_jax_arrays():
    jax = pytest.importorskip("jax")
    if all(device.platform == "cpu" for device in jax.devices()):
        pytest.skip("this JAX has no device but the processor")
    host = random((300, 500))
    tiles = tw.tilize(jax.numpy.asarray(host))
    assert isinstance(tiles, jax.Array)
    same_bits(np.asarray(tiles), tw.tilize(host, engine="reference"))


def test_a_format_without_code_goes_through_the_host_and_says_so(torch):
    host = random((64, 64))
    own = BlockFormat("my_blocks", 16, E2M1, mxfp4.scale)
    with pytest.warns(RuntimeWarning, match="my_blocks"):
        tiles = tw.tilize(torch.from_numpy(host).cuda(), dtype=own)
    same_bits(bits(torch, tiles), tw.tilize(host, dtype=own, engine="reference"))
    with pytest.raises(tw.TransferError, match="my_blocks"):
        tw.tilize(torch.from_numpy(host).cuda(), dtype=own, engine="cuda")


def every_bfloat16(torch, seed):
    """Return all values of bfloat16 in blocks with random neighbours, and a matrix of them on the device."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(1 << 16), rng.integers(0, 1 << 16, 1 << 16)]).astype(np.uint16)
    near = rng.integers(0, 1 << 7, 1 << 17).astype(np.uint16) + np.uint16(0x3F00)  # similar magnitudes: ties
    codes = np.where(rng.random(codes.size) < 0.5, codes, near | (codes & 0x8000))
    host = codes.reshape(512, 256)
    return host, torch.from_numpy(host.view(np.int16)).cuda().view(torch.bfloat16)


@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_bfloat16_is_packed_and_unpacked_as_by_the_reference(torch, name):
    for seed in range(4):
        host, array = every_bfloat16(torch, seed)
        wanted = tw.tilize(host.view(ml_dtypes.bfloat16), dtype=name, engine="reference")
        packed = tw.tilize(array, dtype=name)
        same_bits(bits(torch, packed), wanted)
        for dtype in ("bfloat16", "float32"):
            back = tw.untilize(packed, (512, 256), dtype=name, out_dtype=dtype)
            same_bits(
                bits(torch, back), tw.untilize(wanted, (512, 256), dtype=name, out_dtype=dtype, engine="reference")
            )


def test_a_batch_is_each_of_its_tensors(torch):
    for count, shape, dtype in ((3, (60, 50), None), (300, (32, 64), "bfloat8_b"), (2, (64, 96), "mxfp4")):
        hosts = [random(shape) + k for k in range(count)]
        arrays = [torch.from_numpy(host).cuda() for host in hosts]
        for host, tiles in zip(hosts, tilize_batch(arrays, dtype=dtype), strict=True):
            same_bits(bits(torch, tiles), tw.tilize(host, dtype=dtype, engine="reference"))


def test_a_batch_of_different_tensors_is_copied_one_by_one(torch):
    hosts = [random((60, 50)), random((32, 64))]
    for host, tiles in zip(hosts, tilize_batch([torch.from_numpy(host).cuda() for host in hosts]), strict=True):
        same_bits(bits(torch, tiles), tw.tilize(host, engine="reference"))


def test_a_bound_plan_and_a_prepared_call_are_captured_in_a_graph(torch):
    array, place = torch.from_numpy(random((70, 90))).cuda(), tw.tiled_layout((70, 90))
    target = torch.zeros(place.cosize, device="cuda")
    plain = tw.Placement(tw.row_major(70, 90), "float32")
    run = tw.plan_copy(plain, tw.Placement(place, "float32")).bind(array, target)
    run()
    tw.tilize(array), tw.tilize(array)  # the second call is prepared
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
        tiles = tw.tilize(array)
    for step in range(3):
        array.add_(step + 1)
        graph.replay()
        torch.cuda.synchronize()
        wanted = tw.tilize(array.cpu().numpy(), engine="reference")
        same_bits(bits(torch, target), wanted)
        same_bits(bits(torch, tiles), wanted)


def test_prepared_calls_see_alignment_strides_and_streams(torch):
    memory = torch.arange(5000, device="cuda", dtype=torch.int16)
    for start in (0, 1, 8, 3):
        for step in (1, 2):
            array = memory[start : start + 40 * 50 * step : step].view(-1)
            array = array.as_strided((40, 50), (50 * step, step))
            for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    found = [tw.tilize(array) for _ in range(3)]
                stream.synchronize()
                wanted = tw.tilize(array.cpu().numpy(), engine="reference")
                for tiles in found:
                    same_bits(bits(torch, tiles), wanted)


def test_bound_plans_run_in_a_new_thread(torch):
    array, target = torch.from_numpy(random((64, 64))).cuda(), torch.zeros(64, 64, device="cuda")
    run = tw.plan_copy(placement_of(as_operand(array.T)), placement_of(as_operand(target))).bind(array.T, target)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result()
    torch.cuda.synchronize()
    assert torch.equal(target, array.T)


def test_blocks_become_other_blocks_on_the_device(torch):
    host = random((100, 130))
    place = tw.tiled_layout((100, 130))
    eight = tw.tilize(torch.from_numpy(host).cuda(), dtype="bfloat8_b")
    places = [tw.Placement(place, name, tile_elements=1024) for name in ("bfloat8_b", "bfloat4_b")]
    four = torch.full((places[1].nbytes,), 0xA5, device="cuda", dtype=torch.uint8)
    from tilewright.copying import execute

    execute(tw.plan_copy(*places), eight, four)
    wanted = np.full(places[1].nbytes, 0xA5, dtype=np.uint8)
    execute(tw.plan_copy(*places), eight.cpu().numpy(), wanted, engine="reference")
    same_bits(four.cpu().numpy(), wanted)


@pytest.mark.parametrize("dtype", BLOCKS)
def test_values_in_physical_order_are_packed_and_unpacked(torch, dtype):
    host = random(64 * 1024, 3)
    packed = tw.pack(torch.from_numpy(host).cuda(), dtype)
    assert isinstance(packed, torch.Tensor)
    same_bits(bits(torch, packed), tw.pack(host, dtype, engine="reference"))
    values = tw.unpack(packed, dtype, out_dtype="bfloat16")
    assert values.dtype == torch.bfloat16
    wanted = tw.unpack(packed.cpu().numpy(), dtype, out_dtype="bfloat16", engine="reference")
    same_bits(bits(torch, values), wanted)


def test_flat_memory_goes_from_layout_to_layout(torch):
    there = torch.arange(300 * 400, device="cuda", dtype=torch.int32)
    moved = tw.copying.relayout(there, tw.row_major(300, 400), tw.col_major(300, 400), dtype="float32")
    assert torch.equal(moved, there.reshape(300, 400).T.reshape(-1).to(torch.float32))
    out = torch.full((300 * 400,), -1, device="cuda", dtype=torch.int32)
    tw.copying.relayout(there, tw.row_major(300, 400), tw.col_major(300, 400), out=out)
    assert torch.equal(out, there.reshape(300, 400).T.reshape(-1))


def test_a_full_device_is_reported(torch):
    with pytest.raises(tw.DeviceError, match=r"is out of memory.*free arrays"):
        DeviceContext("cuda").enqueue_create_buffer["float64"](1 << 40)


LOST = """
import cupy, numpy as np, tilewright as tw
there = cupy.ones((64, 64), cupy.float32)
bad = cupy.RawKernel('extern "C" __global__ void bad(int *p) { p[1ll << 40] = 1; }', "bad")
bad((1,), (1,), (there,))
try:
    tw.tilize(there)
    tw.copy(there, np.zeros((64, 64), np.float32))
except tw.DeviceError as problem:
    print(problem)
"""


def test_a_context_that_is_lost_is_an_error_that_says_so():
    pytest.importorskip("cupy")
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=120, check=False)
    assert "failed" in done.stdout, done.stderr
    assert "may have to be restarted" in done.stdout


def test_shared_memory_is_refused(torch):
    whole = torch.zeros((64, 64), device="cuda")
    with pytest.raises(tw.TransferError, match="share memory"):
        copy(whole.T, whole)


def test_halves_of_one_array_are_copied_to_each_other(torch):
    whole = torch.arange(64 * 64, dtype=torch.float32, device="cuda").reshape(64, 64)
    left = whole[:, :32].cpu()
    copy(whole[:, :32], whole[:, 32:])
    assert (whole[:, 32:].cpu() == left).all()
    assert (whole[:, :32].cpu() == left).all()
    with pytest.raises(tw.TransferError, match="share memory"):
        copy(whole[:, :32], whole[:, 31:63])
    tiler, halo = Tiler((64, 32), (16, 16)), Tiler((64, 32), (18, 16), (2, 0), (1, 0))
    Pipeline([Input(whole[:, :32], halo)], [Output(whole[:, 32:], tiler)]).kernel("in0(i0 + 1, i1) + 1").run()
    assert (whole[:, 32:].cpu() == left + 1).all()
    with pytest.raises(tw.TransferError, match="share memory"):
        Pipeline([Input(whole[:, :32], halo)], [Output(whole[:, :32], tiler)])
