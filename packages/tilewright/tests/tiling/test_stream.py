# SPDX-License-Identifier: Apache-2.0
"""Streams: from and to anything that holds an array, through anything that computes."""

import ctypes
import json
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import FileFormatError, LayoutError, TransferError
from tilewright.tiling import CancelledError, Input, Output, Pipeline, SimulatedQueue, Tiler, Trace, pipeline, stream
from tilewright.tiling.endpoints import MappedEndpoint
from tilewright.tiling.transfers import COMPLETIONS

from ..cases import examples
from .pipelines import stencils


def doubled(x, y):
    np.multiply(x, 2, out=y)


def numbers(shape, dtype=np.float32):
    return np.random.default_rng(3).integers(0, 100, shape).astype(dtype)


class Sliced:
    """An object that slices and is not an array."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, box):
        assert all(0 <= part.start < part.stop <= n for part, n in zip(box, self.shape, strict=True))
        return self.array[box]

    def __setitem__(self, box, value):
        assert all(0 <= part.start < part.stop <= n for part, n in zip(box, self.shape, strict=True))
        self.array[box] = value


@examples(60)
@given(stencils(3), st.sampled_from(COMPLETIONS), st.booleans())
def test_a_stencil_is_what_numpy_says(stencil, completion, sliced):
    source, target = stencil.source(), np.zeros(stencil.space, np.int64)
    ends = (Sliced(source), Sliced(target)) if sliced else (source, target)
    stream(
        *ends,
        stencil.compute,
        tile=stencil.tile,
        overlap=stencil.halo,
        pad=stencil.fill,
        order=stencil.order,
        queue=SimulatedQueue(completion),
    )
    assert (target == stencil.expected()).all()


@pytest.mark.parametrize("sliced", [False, True])
def test_a_tile_wholly_outside_is_all_padding(sliced):
    source, target = numbers((4,)), np.zeros(4, np.float32)
    ends = (Sliced(source), Sliced(target)) if sliced else (source, target)
    # two elements to the left of each output: the first two tiles see nothing of the source
    stream(*ends, lambda x, y: np.copyto(y, x[: y.size]), tile=(1,), overlap=((2, 0),), pad=7)
    assert target.tolist() == [7, 7, *source[:2].tolist()]


@pytest.mark.parametrize("completion", COMPLETIONS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_without_a_compute_the_source_is_copied(completion, depth):
    source, target = numbers((50, 40)), np.zeros((50, 40), np.float32)
    stream(source, target, tile=(7, 9), depth=depth, queue=SimulatedQueue(completion, 1))
    assert (target == source).all()


def test_without_a_tile_one_is_suggested():
    source, target = numbers((300, 200)), np.zeros((300, 200), np.float32)
    report = stream(source, target, doubled, memory_limit=1 << 16)
    assert (target == 2 * source).all()
    assert report.tiles > 1
    assert report.buffer_bytes <= 1 << 16


@pytest.mark.parametrize("tile", [(64, 1000), (50, 300), (200, 7)], ids=["rows", "boxes", "columns"])
@pytest.mark.parametrize("compute", [doubled, None])
def test_files(tmp_path, tile, compute):
    source = numbers((500, 1000))
    np.save(tmp_path / "in.npy", source)
    stream(tmp_path / "in.npy", str(tmp_path / "out.npy"), compute, tile=tile, workers=2)
    assert (np.load(tmp_path / "out.npy") == source * (2 if compute else 1)).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npy", "out.npy"]


def test_a_failed_stream_leaves_no_file(tmp_path):
    np.save(tmp_path / "in.npy", numbers((50, 50)))
    (tmp_path / "out.npy").write_bytes(b"the old one")
    with pytest.raises(ZeroDivisionError):
        stream(tmp_path / "in.npy", tmp_path / "out.npy", lambda x, y: 1 // 0, tile=(10, 10))
    assert (tmp_path / "out.npy").read_bytes() == b"the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npy", "out.npy"]


def test_memory_maps_of_any_kind(tmp_path):
    source = numbers((300, 400), np.int32)
    source.tofile(tmp_path / "raw")
    raw = np.memmap(tmp_path / "raw", np.int32, "r", 400 * 4 * 10, (290, 400))  # with an offset
    target = np.memmap(tmp_path / "out", np.int32, "w+", shape=(290, 400))
    stream(raw, target, doubled, tile=(64, 400))
    assert (target == 2 * source[10:]).all()
    private = np.memmap(tmp_path / "out", np.int32, "c", shape=(290, 400))
    stream(raw[:, ::-1], private, doubled, tile=(64, 400))  # what is private must not be given back
    assert (private == 2 * source[10:, ::-1]).all()
    assert (np.fromfile(tmp_path / "out", np.int32) == 2 * source[10:].reshape(-1)).all()


def test_a_map_whose_file_was_replaced_is_read_through_the_map(tmp_path):
    old, new = numbers((64, 1024), np.int32), np.zeros((64, 1024), np.int32)
    old.tofile(tmp_path / "a")
    mapped = np.memmap(tmp_path / "a", np.int32, "r", shape=(64, 1024))
    new.tofile(tmp_path / "b")
    (tmp_path / "b").replace(tmp_path / "a")
    assert MappedEndpoint(mapped)._file == -1
    target = np.zeros_like(old)
    stream(mapped, target, tile=(32, 1024))
    assert (target == old).all()


def test_a_file_that_ends_too_early_is_an_error(tmp_path):
    numbers((64, 1024), np.int32).tofile(tmp_path / "a")
    mapped = np.memmap(tmp_path / "a", np.int32, "r", shape=(64, 1024))
    port = MappedEndpoint(mapped)
    if port._file < 0:
        pytest.skip("this system does not say which file is mapped")
    with (tmp_path / "a").open("r+b") as file:
        file.truncate(1 << 16)
    with pytest.raises(TransferError, match="import of tile 0 failed: the file was truncated"):
        stream(mapped, np.zeros((64, 1024), np.int32), tile=(64, 1024))


def test_several_sources_and_targets():
    a, b = numbers((30, 30)), numbers((30, 30), np.int16)
    total, less = np.zeros((30, 30)), np.zeros((30, 30), np.float32)

    def both(x, y, plus, minus):
        plus[...] = x + y
        minus[...] = x - y

    stream([a, b], [total, less], both, tile=(8, 8))
    assert (total == a + b).all()
    assert (less == a - b).all()


def test_a_c_function_is_called_with_pointers_and_extents():
    pointer, extents = ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)
    shapes = []

    @ctypes.CFUNCTYPE(None, pointer, extents, pointer, extents)
    def compute(source, source_shape, target, target_shape):
        rows, columns = source_shape[0], source_shape[1]
        shapes.append((rows, columns))
        count = rows * columns
        into = (ctypes.c_float * count).from_address(source)
        out = (ctypes.c_float * count).from_address(target)
        for k in range(count):
            out[k] = 3 * into[k]

    source, target = numbers((10, 12)), np.zeros((10, 12), np.float32)
    stream(source, target, compute, tile=(4, 5))
    assert (target == 3 * source).all()
    assert set(shapes) == {(4, 5), (4, 2), (2, 5), (2, 2)}


def test_numba_functions():
    numba = pytest.importorskip("numba")

    @numba.njit(nogil=True)
    def compute(x, y):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = 2 * x[i, j]

    source, target = numbers((50, 60)), np.zeros((50, 60), np.float32)
    stream(source, target, compute, tile=(16, 16))
    assert (target == 2 * source).all()


@pytest.mark.parametrize("compute", [doubled, None])
def test_progress_and_cancel(compute, monkeypatch):
    monkeypatch.setattr(pipeline, "BAND_BYTES", 1)
    source, target = numbers((100, 100)), np.zeros((100, 100), np.float32)
    done = []
    stream(source, target, compute, tile=(10, 100), progress=lambda n, of: done.append((n, of)))
    assert done == [(k, 10) for k in range(1, 11)]
    switch = threading.Event()
    with pytest.raises(CancelledError):
        stream(source, target, compute, tile=(10, 100), cancel=switch, progress=lambda n, _: n < 3 or switch.set())


@pytest.mark.parametrize("scheme", ["simplex", "duplex", "double", "buffered", "direct"])
def test_without_a_compute_every_scheme_copies(scheme):
    for source in (numbers((100, 70)), numbers((70, 100)).T, numbers((100, 140))[:, ::-2]):
        target = np.zeros((100, 70), np.float32)
        stream(source, target, tile=(16, 16), scheme=scheme)
        assert (target == source).all()


def test_several_operands_are_copied_straight_whatever_their_tiles():
    wide, high = numbers((6, 8)), numbers((12, 2))
    pairs = [(wide, np.zeros_like(wide), (3, 2)), (high, np.zeros_like(high), (3, 1))]
    Pipeline(
        [Input(source, Tiler(source.shape, tile)) for source, _, tile in pairs],
        [Output(target, Tiler(target.shape, tile)) for _, target, tile in pairs],
    ).run(None)
    assert all((source == target).all() for source, target, _ in pairs)


def test_a_trace_holds_every_action(tmp_path):
    source, target = numbers((100, 100)), np.zeros((100, 100), np.float32)
    trace = Trace()
    stream(source, target, doubled, tile=(10, 100), trace=trace)
    for kind in ("import", "compute", "export"):
        spans = [span for span in trace.spans if span.kind == kind]
        assert sorted(span.tile for span in spans) == list(range(10))
        assert all(span.ended >= span.began > 0 for span in spans)
    for number in range(10):
        ends = {span.kind: span for span in trace.spans if span.tile == number and span.kind != "wait"}
        assert ends["import"].ended <= ends["compute"].began
        assert ends["compute"].ended <= ends["export"].began
    assert 0 <= trace.hidden <= 1
    assert trace.summary()["wall"] >= trace.seconds("compute")
    events = json.loads(trace.write(tmp_path / "run.json").read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    assert sum(event["ph"] == "X" and event["cat"] == "compute" for event in events) == 10
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in events if event["ph"] == "X")


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((np.zeros(4), np.zeros(5), doubled), {}, LayoutError, "source has shape"),
        ((np.zeros(4), np.zeros(4), 7), {}, TransferError, "expected a callable compute"),
        (("a.txt", np.zeros(4)), {}, FileFormatError, "a.txt: unknown suffix '.txt' for an array; use one of .npy"),
        ((np.zeros(4), "a.txt"), {}, FileFormatError, "a.txt: unknown suffix '.txt'"),
        (([], np.zeros(4)), {}, TransferError, "at least one source"),
        ((np.zeros(4), np.zeros(4), doubled), {"overlap": (1, 2)}, LayoutError, "2 axes"),
        ((np.zeros(4), np.zeros(4), doubled), {"scheme": "direct"}, LayoutError, "use another scheme"),
        ((np.zeros(4), np.zeros(4, int), None), {}, LayoutError, "equal tilers and types"),
        ((np.zeros(4), np.zeros(4), None), {"overlap": 1}, LayoutError, "equal tilers and types"),
    ],
)
def test_what_is_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        stream(*arguments, **options)
