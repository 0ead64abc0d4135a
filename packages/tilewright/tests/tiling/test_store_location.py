# SPDX-License-Identifier: Apache-2.0
"""Stored arrays are known by where they are stored: two handles of one are one, and memory is not sent elsewhere."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import combinations
from multiprocessing import get_context

import numpy as np
import pytest

from tilewright import TransferError
from tilewright.tiling import plan_tiles, stream
from tilewright.tiling.endpoints import open_endpoint
from tilewright.tiling.stores import share_bytes


def copied(x, y):
    np.copyto(y, x)


def neighbours(x, y):
    np.add(x[:-2], x[2:], out=y)


class Sliced:
    """A wrapper of unknown kind."""

    def __init__(self, array):
        self.inner, self.shape, self.dtype = {"data": array}, array.shape, array.dtype

    def __getitem__(self, box):
        return self.inner["data"][box]

    def __setitem__(self, box, value):
        self.inner["data"][box] = value


def in_memory():
    a = np.arange(12.0)
    yield [a, a[:], a[::-1], np.asarray(memoryview(a)), Sliced(a), Sliced(a), Sliced(Sliced(a)), Sliced(a[::-1])]
    yield [np.arange(12.0)]
    yield [Sliced(np.arange(12.0))]


def in_zarr(folder):
    zarr = pytest.importorskip("zarr")
    made = {"shape": (12,), "chunks": (4,), "dtype": "f8"}
    group = zarr.open_group(str(folder / "g.zarr"), mode="w")
    x, _, z = [group.create_array(name, **made) for name in "xyz"]
    (folder / "link").symlink_to(folder / "g.zarr", target_is_directory=True)
    again = zarr.open_group(str(folder / "g.zarr"), mode="r+")
    yield [
        x,
        again["x"],
        zarr.open_array(str(folder / "g.zarr" / "x"), mode="r+"),
        zarr.open_array(str(folder / "link" / "x"), mode="r+"),
        zarr.open_array(f"file://{folder}/g.zarr/x", mode="r+"),
        Sliced(again["x"]),
    ]
    yield [again["y"]]
    shared: dict = {}
    yield [zarr.create_array(shared, name="x", **made), zarr.open_group(shared)["x"]]
    yield [zarr.create_array(zarr.storage.MemoryStore(), **made)]
    remote = zarr.open("memory://streams/a.zarr", mode="w", **made)
    yield [remote, zarr.open_array("memory://streams/a.zarr"), zarr.open_group("memory://streams", mode="a")["a.zarr"]]
    yield [zarr.open("memory://streams/b.zarr", mode="w", **made)]
    dask = pytest.importorskip("dask.array")
    yield [dask.from_array(z, chunks=6) + 1, group["z"]]


def in_hdf5(folder):
    h5py = pytest.importorskip("h5py")
    file = h5py.File(folder / "a.h5", "w")
    x, _ = file.create_dataset("x", (12,), "f8"), file.create_dataset("group/y", (12,), "f8")
    file["soft"], file["hard"], file["group/up"] = h5py.SoftLink("/x"), x, h5py.SoftLink("/x")
    file["outside"] = h5py.ExternalLink("a.h5", "/x")
    (folder / "link.h5").symlink_to(folder / "a.h5")
    layout = h5py.VirtualLayout((12,), "f8")
    layout[:] = h5py.VirtualSource(x)
    virtual = file.create_virtual_dataset("virtual", layout)
    again = h5py.File(folder / "a.h5", "r+")
    yield [x, file["x"], file["soft"], file["hard"], file["group/up"], again["x"], file["outside"], virtual, Sliced(x)]
    yield [file["group/y"], again["/group/y"]]
    yield [h5py.File(folder / "b.h5", "w").create_dataset("x", (12,), "f8")]
    memory = h5py.File("a.h5", "w", driver="core", backing_store=False)
    memory["x"] = np.zeros(12)
    yield [memory["x"], memory["x"]]


def in_files(folder):
    np.save(folder / "a.npy", np.arange(12.0))
    (folder / "hard.npy").hardlink_to(folder / "a.npy")
    (folder / "soft.npy").symlink_to(folder / "a.npy")
    one = np.load(folder / "a.npy", mmap_mode="r+")
    yield [one, *[np.load(folder / f"{name}.npy", mmap_mode="r+") for name in ("a", "hard", "soft")], np.asarray(one)]
    np.save(folder / "b.npy", np.arange(12.0))
    yield [np.load(folder / "b.npy", mmap_mode="r+")]


@pytest.fixture(params=["memory", "zarr", "hdf5", "files"])
def classes(request, tmp_path, monkeypatch):
    """Lists of handles: those in one list are handles of one array."""
    monkeypatch.chdir(tmp_path)
    if request.param == "memory":
        return list(in_memory())
    return list({"zarr": in_zarr, "hdf5": in_hdf5, "files": in_files}[request.param](tmp_path))


def test_handles_of_one_array_are_one(classes):
    """h5py makes a new object at each access, and zarr one for each opening: the stream read what it had written."""
    for handles in classes:
        for one, other in combinations(handles, 2):
            assert share_bytes(open_endpoint(one), open_endpoint(other)), (one, other)
            for source, target in ((one, other), (other, one)):
                with pytest.raises(TransferError, match="share memory"):
                    stream(source, target, neighbours, tile=(4,), overlap=1)
                with pytest.raises(TransferError, match="share bytes"):
                    plan_tiles(source, target, tile=(4,))
            with pytest.raises(TransferError, match="two targets share"):
                stream(np.zeros(12), [one, other], lambda x, y, z: None, tile=(4,))
            with pytest.raises(TransferError, match="two targets share"):
                plan_tiles(np.zeros(12), [one, other], tile=(4,))
    for some, others in combinations(classes, 2):
        for one in some:
            for other in others:
                assert not share_bytes(open_endpoint(one), open_endpoint(other)), (one, other)


def test_handles_of_one_array_work_in_place(classes):
    for handles in classes:
        if "dask" in type(handles[0]).__module__:
            continue
        handles[0][:] = np.arange(12.0)
        stream(handles[0], handles[0], np.negative, tile=(4,))
        assert (np.asarray(handles[0][:]) == -np.arange(12)).all()


def test_hdf5_from_dataset_to_dataset(tmp_path):
    h5py = pytest.importorskip("h5py")
    source = np.random.default_rng(3).standard_normal((40, 30))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], y = source, file.create_dataset("y", (40, 30), "f8", chunks=(10, 10))
        stream(file["x"], y, np.negative, tile=(20, 10))
        assert (y[...] == -source).all()
        with ThreadPoolExecutor(2) as pool:
            plan = plan_tiles(file["x"], y, tile=(20, 10))
            assert plan.run(copied, pool, manifest=tmp_path / "done").tasks == 6
            assert plan.run(copied, pool, manifest=tmp_path / "done").skipped == 6
        assert (y[...] == source).all()
        closed = file["x"]
    with pytest.raises(TransferError, match=r"the HDF5 dataset is closed"):
        stream(closed, np.zeros((40, 30)), copied)


class Pickled:
    """A target that takes its elements along when it is sent."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, box):
        return self.array[box]

    def __setitem__(self, box, value):
        self.array[box] = value


def test_what_lives_in_this_process_is_no_target_of_others(tmp_path):
    """All tasks were done, and the target untouched."""
    zarr = pytest.importorskip("zarr")
    made = {"shape": (12,), "chunks": (4,), "dtype": "f8"}
    np.save(tmp_path / "in.npy", np.arange(1, 13.0))
    np.save(tmp_path / "out.npy", np.zeros(12))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        private = {
            "MemoryStore": zarr.create_array(zarr.storage.MemoryStore(), **made),
            "dictionary": zarr.create_array({}, **made),
            "memory://": zarr.open("memory://streams/c.zarr", mode="w", **made),
            "array": np.zeros(12),
            "wrapper": Pickled(np.zeros(12)),
        }
        if h5py := pytest.importorskip("h5py"):
            private["HDF5"] = h5py.File(tmp_path / "a.h5", "w").create_dataset("x", (12,), "f8")
        for name, target in private.items():
            with pytest.raises(TransferError, match=r"(?s)target.* executor of threads"):
                plan_tiles(tmp_path / "in.npy", target, tile=(4,)).run(copied, pool)
            assert not np.asarray(target[:]).any(), name
            target[:] = np.arange(1, 13.0)
        for name in ("memory://", "array", "HDF5"):
            with pytest.raises(TransferError, match=r"the source is .* executor of threads"):
                plan_tiles(private[name], tmp_path / "out.npy", tile=(4,)).run(copied, pool)
            assert not np.load(tmp_path / "out.npy").any()
        for name in ("MemoryStore", "dictionary", "wrapper"):  # which are sent with their elements
            np.save(tmp_path / "out.npy", np.zeros(12))
            plan_tiles(private[name], tmp_path / "out.npy", tile=(4,)).run(copied, pool)
            assert (np.load(tmp_path / "out.npy") == np.arange(1, 13)).all()


def test_an_empty_first_tile_proves_nothing(tmp_path):
    """A target in the memory of a worker looks right where zeros are written to zeros."""
    source = np.zeros(40)
    source[-1] = 1
    np.save(tmp_path / "in.npy", source)
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(TransferError, match=r"sees another target than this process"),
    ):
        plan_tiles(tmp_path / "in.npy", Pickled(np.zeros(40)), tile=(4,)).run(copied, pool)
