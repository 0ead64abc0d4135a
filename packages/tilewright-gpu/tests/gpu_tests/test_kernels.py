# SPDX-License-Identifier: Apache-2.0
"""Pipelines as kernels: what a device computes is what the same pipeline computes on the host, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import FormatError, TransferError
from tilewright.formats import format_of
from tilewright.tiling import ExternalTensor, Input, Output, Pipeline, TileKernel, Tiler, spaced_layout

from .on_devices import EVERY, OPENCL

few = settings(max_examples=max(1, settings().max_examples // (2 if EVERY else 32)))
SCHEMES = [("double", None), ("duplex", None), ("buffered", 3), ("buffered", 4)]
FILLS = [0, 3, "edge", "reflect", "symmetric", "wrap", "zero"]


@pytest.fixture(scope="session")
def device():
    """The engine that kernels run on here; `make test-cuda` has another one."""
    if OPENCL.unavailable_reason():
        pytest.skip(OPENCL.unavailable_reason())
    return "opencl"


def numbers(seed, shape, name="float32"):
    """Return random elements of a format, small and not zero, so that sums are exact in all of them."""
    found = np.random.default_rng(seed).integers(1, 5, shape)
    return found.astype(format_of(name).dtype)


def poisoned(like):
    out = np.empty_like(like)
    out.reshape(-1).view(np.uint8)[...] = 0xA5
    return out


@st.composite
def pipelines(draw):
    """Return the tilers of an input with a halo and of an output, a fill, a scheme and a format."""
    rank = draw(st.integers(1, 3))
    shape = [draw(st.integers(1, (200, 40, 12)[rank - 1])) for _ in range(rank)]
    tile = [draw(st.integers(1, n + 3)) for n in shape]
    halo = [draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in range(rank)]
    order = draw(st.sampled_from(["row_major", "column_major", "snake", "morton", "hilbert"]))
    around = [before + after for before, after in halo]
    reading = Tiler(shape, [t + n for t, n in zip(tile, around, strict=True)], around, halo, order)
    return reading, Tiler(shape, tile, order=order), [before for before, _ in halo], draw(st.sampled_from(FILLS))


@given(
    cut=pipelines(),
    scheme=st.sampled_from(SCHEMES),
    name=st.sampled_from(["float32", "bfloat16", "float16", "int8", "uint16", "int32", "int64", "float64"]),
    groups=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)
@few
def test_a_kernel_computes_what_the_pipeline_computes_on_the_host(device, cut, scheme, name, groups, seed):
    reading, writing, before, fill = cut
    a, b = numbers(seed, reading.space, name), numbers(seed + 1, writing.space, name)
    there, here = poisoned(a), poisoned(a)
    window = tuple(slice(n, None) for n in before)

    def compute(x, y, out):
        inner = x[window][tuple(slice(0, n) for n in out.shape)]
        out[...] = x[tuple(slice(0, n) for n in out.shape)] + inner + y

    def pipeline(target):
        operands = [Input(a, reading, fill), Input(b, writing)]
        return Pipeline(operands, [Output(target, writing)], scheme=scheme[0], depth=scheme[1])

    indices = ", ".join(f"i{k}" for k in range(reading.rank))
    moved = ", ".join(f"i{k} + {n}u" for k, n in enumerate(before))
    pipeline(here).run(compute)
    report = pipeline(there).kernel(f"in0({indices}) + in0({moved}) + in1", engine=device, threads=64).run(groups)
    np.testing.assert_array_equal(there.view(np.uint8), here.view(np.uint8))
    assert report.tiles == writing.count


def test_several_outputs_of_several_types(device):
    a, b = numbers(1, (50, 70)), numbers(2, (50, 70), "int16")
    total, larger = poisoned(a.astype(np.float64)), poisoned(b.astype(np.uint8))
    tiler = Tiler((50, 70), (16, 24))
    pipeline = Pipeline([Input(a, tiler), Input(b, tiler)], [Output(total, tiler), Output(larger, tiler)])
    pipeline.kernel({"out0": "in0 + in1", "out1": "in0 > in1 ? 10 * x0 / 7 : tile"}, engine=device).run()
    np.testing.assert_array_equal(total, a.astype(np.float64) + b)
    numbered = np.add.outer(np.arange(50) // 16 * 3, np.arange(70) // 24)
    rows = np.broadcast_to((10 * np.arange(50) // 7)[:, None], a.shape)
    np.testing.assert_array_equal(larger, np.where(a > b, rows, numbered).astype(np.uint8))


def test_a_compute_for_whole_tiles_shares_local_memory_between_threads(device):
    a = numbers(3, (64, 96), "int32")
    sums = poisoned(np.zeros((4, 3), np.int32))
    pipeline = Pipeline(
        [Input(a, Tiler((64, 96), (16, 32)))], [Output(sums, Tiler((4, 3), (1, 1)))], scheme="buffered", depth=3
    )
    body = """
        if (THREAD == 0) {
            int sum = 0;
            for (unsigned int row = 0; row < in0_box.n0; ++row)
                for (unsigned int column = 0; column < in0_box.n1; ++column) sum += in0(row, column);
            set_out0(doubled(sum), 0, 0);
        }
    """
    pipeline.kernel(
        body, device, each="tile", functions="INLINE i32 doubled(i32 x) { return 2 * x; }", threads=32
    ).run()
    np.testing.assert_array_equal(sums, 2 * a.reshape(4, 16, 3, 32).sum(axis=(1, 3)))


def test_statements_may_have_variables_of_their_own(device):
    a, b = numbers(4, 300), poisoned(numbers(4, 300))
    tiler = Tiler((300,), (64,))
    pipeline = Pipeline([Input(a, tiler)], [Output(b, tiler)], scheme="duplex")
    pipeline.kernel("float square = in0 * in0; out0 = square + square * in0;", device).run()
    np.testing.assert_array_equal(b, a * a + a * a * a)


@pytest.mark.parametrize(
    "cut",
    [np.s_[:, ::-1], np.s_[::-1], np.s_[::2, ::3], np.s_[1:, 3:]],
    ids=["columns backwards", "rows backwards", "steps", "off the grid"],
)
def test_arrays_with_any_strides_are_read_and_written(device, cut):
    whole, target = numbers(5, (33, 61), "int16"), poisoned(numbers(5, (33, 61), "int16"))
    a, b = whole[cut], target[cut]
    untouched = np.ones(target.shape, bool)
    untouched[cut] = False
    before = target.copy()
    tiler = Tiler(a.shape, (8, 10))
    Pipeline([Input(a, tiler)], [Output(b, tiler)]).kernel("3 * in0", device).run()
    np.testing.assert_array_equal(b, 3 * a)
    np.testing.assert_array_equal(target[untouched], before[untouched])


def test_transposed_arrays_and_spaced_layouts(device):
    a = numbers(6, (40, 24))
    memory = np.full(24 * 48, -5, np.float32)
    buffer = ExternalTensor(memory, (24, 40), spaced_layout((24, 40), row_spacing=48))
    tiler = Tiler((24, 40), (8, 16))
    Pipeline([Input(a.T, tiler)], [Output(buffer, tiler)]).kernel("in0 + 1", device).run()
    np.testing.assert_array_equal(memory.reshape(24, 48)[:, :40], a.T + 1)
    assert (memory.reshape(24, 48)[:, 40:] == -5).all()


def test_tiles_are_computed_in_place(device):
    a = numbers(7, (60, 60))
    wanted, tiler = 2 * a, Tiler((60, 60), (16, 16))
    Pipeline([Input(a, tiler)], [Output(a, tiler)]).kernel("2 * in0", device).run(2)
    np.testing.assert_array_equal(a, wanted)


def test_a_pipeline_without_inputs_makes_its_outputs(device):
    b = poisoned(np.zeros((20, 30), np.int64))
    Pipeline([], [Output(b, Tiler((20, 30), (8, 8)))]).kernel("1000 * (i64)x0 + x1", device).run()
    np.testing.assert_array_equal(b, np.add.outer(1000 * np.arange(20), np.arange(30)))


def test_what_is_exported_beyond_the_space_is_left_out(device):
    a, b = numbers(8, (10, 10)), poisoned(numbers(8, (10, 10)))
    tiler = Tiler((10, 10), (6, 6), augmentation=3)
    Pipeline([Input(a, tiler, 7)], [Output(b, tiler)]).kernel("in0 + 1", device).run()
    np.testing.assert_array_equal(b, a + 1)


def test_no_tiles_are_no_work(device):
    a = np.zeros((0, 5), np.float32)
    tiler = Tiler((0, 5), (2, 2))
    assert Pipeline([Input(a, tiler)], [Output(a.copy(), tiler)]).kernel("in0", device).run().tiles == 0


# What cannot be generated, or cannot run.


def simple(a, b, tiler=None, **options):
    tiler = tiler or Tiler(a.shape, (8,) * a.ndim)
    return Pipeline([Input(a, tiler)], [Output(b, tiler)], **options)


@pytest.mark.parametrize(
    ("compute", "options", "message"),
    [
        (np.sqrt, {}, "C statements or an expression.*Python functions run on the host"),
        ("", {}, "C statements or an expression"),
        (["in0", "in0"], {}, "2 expressions, but the pipeline has 1 outputs"),
        ({"out1": "in0"}, {}, "expressions for out1.*the outputs are out0"),
        ("in0", {"engine": "native"}, "'opencl' or 'cuda', got 'native'"),
        ("in0", {"each": "row"}, "each='element' or 'tile', got 'row'"),
        ("in0", {"threads": 5000}, "1 to 1024 threads, got 5000"),
    ],
)
def test_a_compute_that_is_not_one_is_refused(compute, options, message):
    a = numbers(9, (16, 16))
    with pytest.raises(TransferError, match=message):
        simple(a, a.copy()).kernel(compute, **options)


def test_pipelines_that_kernels_cannot_do_are_refused():
    a = numbers(10, (16, 16))
    with pytest.raises(TransferError, match="scheme 'simplex'; use 'double'"):
        simple(a, a.copy(), scheme="simplex").kernel("in0")
    overlapping = Tiler((16, 16), (6, 6), overlap=2)
    with pytest.raises(TransferError, match="overlap, so work-groups would write the same elements"):
        simple(a, a.copy(), overlapping).kernel("in0")
    with pytest.raises(TransferError, match="at least one output"):
        Pipeline([Input(a, Tiler((16, 16), (8, 8)))], []).kernel("in0")
    halo, plain = Tiler((16, 16), (10, 8), overlap=(2, 0), augmentation=((1, 1), (0, 0))), Tiler((16, 16), (8, 8))
    wider = Pipeline([Input(a, plain)], [Output(a.copy(), plain), Output(np.zeros(4), Tiler((4,), (1,)))])
    with pytest.raises(TransferError, match="stores one element of each output"):
        wider.kernel(["in0", "in0"])
    smaller = Pipeline([Input(np.zeros((8, 16)), Tiler((8, 16), (4, 8)))], [Output(a.copy(), plain)])
    with pytest.raises(TransferError, match="in0 is the element at the same index of its tile"):
        smaller.kernel("in0")
    assert isinstance(Pipeline([Input(a, halo)], [Output(a.copy(), plain)]).kernel("in0"), TileKernel)


def test_operands_that_kernels_cannot_reach_are_refused():
    class Stored:
        shape, dtype = (16, 16), np.dtype(np.float32)

        def __getitem__(self, box):
            return np.zeros((16, 16), np.float32)[box]

    tiler = Tiler((16, 16), (8, 8))
    target = Output(np.zeros((16, 16), np.float32), tiler)
    with pytest.raises(TransferError, match=r"in0 is a SlicedEndpoint.*read it into one"):
        Pipeline([Input(Stored(), tiler)], [target]).kernel("in0")
    with pytest.raises(FormatError, match="complex64"):
        Pipeline([Input(np.zeros((16, 16), np.complex64), tiler)], [target]).kernel("1")
    window = ExternalTensor(np.zeros((32, 32), np.float32)).sub((4, 4), (16, 16))
    with pytest.raises(TransferError, match="need entire strided tensors"):
        Pipeline([Input(window, tiler)], [target]).kernel("in0")


def test_a_compute_that_does_not_compile_is_reported_with_the_compilers_words(device):
    a = numbers(11, (16, 16))
    with pytest.raises(TransferError, match=r"could not compile[\s\S]*no_such_name"):
        simple(a, a.copy()).kernel("in0 + no_such_name", device).run()


def test_tiles_larger_than_local_memory_are_reported_with_what_would_do(device):
    a = np.ones((4096, 4096), np.float32)
    kernel = simple(a, a.copy(), Tiler(a.shape, (2048, 2048))).kernel("in0", device)
    with pytest.raises(TransferError, match=r"bytes of (local|shared) memory.*use smaller tiles"):
        kernel.run()


def test_the_program_names_what_it_does():
    a = numbers(12, (64, 64))
    tiler = Tiler((64, 64), (16, 16))
    for engine, word in (("opencl", "async_work_group_copy"), ("cuda", "cp.async")):
        text = simple(a, a.copy(), tiler, scheme="buffered", depth=3).kernel("2 * in0", engine).source
        assert word in text
        assert "out0 = 2 * in0;" in text
        assert "// in0: float32 of 64 x 64, 16 tiles of 16 x 16\n" in text
        assert "3 buffers" in text
