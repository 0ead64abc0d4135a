# SPDX-License-Identifier: Apache-2.0
"""Sources and targets that are the same storage: refused, unless each tile only meets itself."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import TransferError
from tilewright.tiling import ExternalTensor, Input, Output, Pipeline, Tiler, plan_tiles
from tilewright.tiling.endpoints import open_endpoint
from tilewright.tiling.stores import are_same_array, share_bytes


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(24.0))
    return path


def mapped(path):
    return np.load(path, mmap_mode="r+")


def neighbours(x, out):
    np.add(x[:-2], x[2:], out=out)


def double(x, out):
    np.multiply(x, 2, out=out)


def test_views_of_one_array_share_what_they_have_in_common():
    a = np.zeros((6, 8))
    turned, odd = a[::-1], a.view(np.uint8)[:, ::2]
    for view in (a, a.T, turned, a[2:3], odd, a.view(np.int32)):
        assert share_bytes(open_endpoint(a), open_endpoint(view))
        assert are_same_array(open_endpoint(view), open_endpoint(view))
    assert not share_bytes(open_endpoint(a[:3]), open_endpoint(a[3:]))
    assert not share_bytes(open_endpoint(a[:0]), open_endpoint(a))
    assert not share_bytes(open_endpoint(a), open_endpoint(a.copy()))
    assert not any(are_same_array(open_endpoint(a), open_endpoint(view)) for view in (a.T, turned, a[2:3], odd))


def test_two_maps_of_a_file_are_the_file(file):
    one, other = open_endpoint(mapped(file)), open_endpoint(mapped(file))
    assert share_bytes(one, other)
    assert are_same_array(one, other)
    assert share_bytes(one, open_endpoint(mapped(file)[5:7]))
    assert not are_same_array(one, open_endpoint(mapped(file)[::-1]))
    assert not share_bytes(open_endpoint(mapped(file)[:5]), open_endpoint(mapped(file)[5:]))
    np.save(file.with_name("b.npy"), np.arange(24.0))
    assert not share_bytes(one, open_endpoint(mapped(file.with_name("b.npy"))))


def test_a_map_and_a_plain_view_of_it_are_one(file):
    map_ = mapped(file)
    assert are_same_array(open_endpoint(map_), open_endpoint(np.asarray(map_)))


def test_stream_does_not_read_what_it_wrote_through_another_map(file):
    with pytest.raises(TransferError, match="share memory"):
        tw.stream(file, mapped(file), neighbours, tile=(4,), overlap=1)
    assert np.load(file).tolist() == list(range(24))
    tw.stream(file, mapped(file), double, tile=(4,))
    assert np.load(file).tolist() == list(range(0, 48, 2))


def test_what_lies_between_each_other_shares_nothing():
    a, z = np.arange(32.0).reshape(4, 8), np.zeros((4, 4), complex)
    tw.stream(a[:, :4], a[:, 4:], np.negative, tile=(2, 3))
    assert a.tolist() == [[*row, *(-x for x in row)] for row in np.arange(32.0).reshape(4, 8)[:, :4].tolist()]
    z.real = a[:, :4]
    plan_tiles(z.real, z.imag, tile=(3, 3)).run(np.negative)
    assert (z == a[:, :4] * (1 - 1j)).all()
    tw.stream(a[:, :4], [z.real, z.imag], lambda x, real, imag: (np.copyto(real, -x), np.copyto(imag, x), None)[2])
    assert (z == a[:, :4] * (-1 + 1j)).all()


def test_two_targets_are_not_one(file):
    a, kept = np.zeros(24), np.load(file)
    for pair in ((a, a), (a[:13], a[11:]), (file, file), (mapped(file), mapped(file))):
        with pytest.raises(TransferError, match="two targets share"):
            tw.stream(np.ones_like(a)[: getattr(pair[0], "size", 24)], list(pair), lambda x, y, z: None, tile=(5,))
    with pytest.raises(TransferError, match="two targets share"):
        plan_tiles(np.ones(24), [file, file], tile=(5,))
    assert (np.load(file) == kept).all()
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_two_streams_to_one_file_at_a_time(file):
    """Both make the whole file, and the last one to finish gives it its name."""
    source, target = np.arange(1000.0), file.with_name("b.npy")

    def nested(x, out):
        if x[0] == 300:
            tw.stream(source, target, np.negative, tile=(50,))
        np.multiply(x, 2, out=out)

    tw.stream(source, target, nested, tile=(100,))
    assert (np.load(target) == 2 * source).all()
    assert sorted(each.name for each in file.parent.iterdir()) == ["a.npy", "b.npy"]


def test_windows_of_one_tensor_are_not_one_array():
    a = np.arange(10)
    whole = ExternalTensor(a)
    first, second = whole.sub((0,), (8,)), whole.sub((1,), (8,))
    tiler = Tiler((8,), (3,))
    with pytest.raises(TransferError, match="share memory"):
        Pipeline([Input(first, tiler)], [Output(second, tiler)])
    Pipeline([Input(first, tiler)], [Output(first, tiler)]).run(double)
    assert a.tolist() == [0, 2, 4, 6, 8, 10, 12, 14, 8, 9]


def test_other_layouts_of_the_same_memory_are_not_one_array():
    a = np.arange(64)
    swizzled = [ExternalTensor(a, (8, 8), tw.compose(tw.Swizzle(3, k, 3), tw.row_major(8, 8))) for k in (0, 0, 1)]
    tiler = Tiler((8, 8), (4, 4))
    Pipeline([Input(swizzled[0], tiler)], [Output(swizzled[1], tiler)])
    with pytest.raises(TransferError, match="share memory"):
        Pipeline([Input(swizzled[0], tiler)], [Output(swizzled[2], tiler)])


def test_tiles_that_overlap_each_other_are_not_written_in_place():
    a, tiler = np.arange(10), Tiler((10,), (4,), 2)
    with pytest.raises(TransferError, match="share memory"):
        Pipeline([Input(a, tiler)], [Output(a, tiler)])


class Sliced:
    """An array that is only reached by slices."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, box):
        return self.array[box]

    def __setitem__(self, box, values):
        self.array[box] = values


def test_an_object_that_slices_is_itself():
    thing = Sliced(np.arange(12.0))
    with pytest.raises(TransferError, match="share memory"):
        tw.stream(thing, thing, neighbours, tile=(4,), overlap=1)
    tw.stream(thing, thing, double, tile=(4,))
    assert thing.array.tolist() == list(range(0, 24, 2))
    assert not share_bytes(open_endpoint(thing), open_endpoint(Sliced(np.arange(12.0))))


def test_zarr_arrays_are_known_by_where_they_are_kept(tmp_path):
    zarr = pytest.importorskip("zarr")
    made = {"mode": "w", "shape": (12,), "chunks": (4,), "dtype": "f8"}
    one, other = (zarr.open(str(tmp_path / name), **made) for name in ("one.zarr", "other.zarr"))
    again = zarr.open(str(tmp_path / "one.zarr"), mode="r+")
    assert share_bytes(open_endpoint(one), open_endpoint(again))
    assert not share_bytes(open_endpoint(one), open_endpoint(other))
    in_memory = [zarr.open(zarr.storage.MemoryStore(), **made) for _ in range(2)]
    assert share_bytes(open_endpoint(in_memory[0]), open_endpoint(in_memory[0]))
    assert not share_bytes(*map(open_endpoint, in_memory))


def test_plans_never_work_in_place(file):
    """A task that is tried again, or run again after a kill, would find its own results for its source."""
    a = np.arange(24.0)
    for source, target in ((a, a), (a, a[::-1]), (file, file), (file, mapped(file)), (mapped(file), file)):
        for overlap in (0, 1):
            with pytest.raises(TransferError, match="share bytes"):
                plan_tiles(source, target, tile=(4,), overlap=overlap)
    with pytest.raises(TransferError, match="share bytes"):
        plan_tiles([np.zeros(24), a], [np.zeros(24), a], tile=(4,))
    plan_tiles(a[:12], a[12:], tile=(4,)).run(double)
    assert a[12:].tolist() == list(range(0, 24, 2))
