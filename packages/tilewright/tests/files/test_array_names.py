# SPDX-License-Identifier: Apache-2.0
"""Arrays by name: every kind of name is opened and created by one function, with the real libraries."""

import http.server
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import tilewright as tw
from tilewright import FileFormatError, TransferError
from tilewright.files.array_file import create_array, default_chunks, open_array
from tilewright.files.source import parse_array_name
from tilewright.tiling import plan_tiles

VALUES = np.random.default_rng(0).standard_normal((70, 90), dtype=np.float32)


def doubled(x, out):
    np.multiply(x, 2, out=out)


def names(folder):
    """Yield names of arrays that can be created in a folder, each with the libraries it needs."""
    yield f"{folder}/a.npy", ()
    yield f"file://{folder}/b.npy", ()
    yield f"{folder}/a.zarr", ("zarr",)
    yield f"file://{folder}/b.zarr", ("zarr",)
    yield "memory://names/a.zarr", ("zarr", "fsspec")
    yield f"{folder}/a.h5::x", ("h5py",)
    yield f"{folder}/a.h5::group/y", ("h5py",)
    yield f"{folder}/b.nc::x", ("h5py",)


def usable(folder, *more):
    found = []
    for name, libraries in names(folder):
        try:
            for library in (*libraries, *more):
                __import__(library)
        except ImportError:
            continue
        found.append(name)
    return found


def test_every_name_can_be_created_opened_and_replaced(tmp_path):
    for name in usable(tmp_path):
        for factor in (1, 2):
            with create_array(name, VALUES.shape, VALUES.dtype, (32, 40)) as made:
                made[0:70, 0:90] = VALUES * factor
            opened = open_array(name)
            np.testing.assert_array_equal(opened[3:70, 5:90], VALUES[3:, 5:] * factor, err_msg=name)
            assert tuple(opened.shape) == VALUES.shape, name
            del opened
        writable = open_array(name, writing=True)
        writable[0:1, 0:2] = np.array([[7, 8]], np.float32)
        del writable
        assert open_array(name)[0:1, 0:2].tolist() == [[7, 8]], name


def test_streams_between_names_of_all_kinds(tmp_path):
    all_names = usable(tmp_path)
    np.save(tmp_path / "start.npy", VALUES)
    previous, factor = f"{tmp_path}/start.npy", 1
    for name in [*all_names, *reversed(all_names[:-1])]:  # each from the one before, and back over what is there
        tw.stream(previous, name, doubled, memory_limit=1 << 20)
        previous, factor = name, 2 * factor
        np.testing.assert_array_equal(open_array(name)[0:70, 0:90], factor * VALUES, err_msg=name)


def test_a_new_target_follows_the_source(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3.0")
    source = zarr.create_array(tmp_path / "in.zarr", shape=(70, 90), chunks=(16, 24), shards=(32, 48), dtype="f4")
    source[...] = VALUES
    tw.stream(tmp_path / "in.zarr", tmp_path / "out.zarr", doubled)
    out = zarr.open_array(tmp_path / "out.zarr", mode="r")
    assert (out.chunks, out.shards) == ((16, 24), (32, 48))
    tw.stream(tmp_path / "in.zarr", tmp_path / "other.zarr", doubled, chunks=(10, 90), dtype="float64")
    other = zarr.open_array(tmp_path / "other.zarr", mode="r")
    assert (other.chunks, other.dtype) == ((10, 90), np.float64)
    np.testing.assert_array_equal(other[...], 2 * VALUES)
    assert default_chunks((100_000, 1000), 8) == (782, 500)


def test_a_failure_leaves_what_was_there(tmp_path):
    for name in usable(tmp_path):
        if name.startswith("memory"):
            continue  # written in place
        with create_array(name, VALUES.shape, VALUES.dtype) as made:
            made[0:70, 0:90] = VALUES
        with pytest.raises(ZeroDivisionError):
            tw.stream(VALUES, name, lambda x, y: 1 // 0, tile=(70, 90))
        np.testing.assert_array_equal(open_array(name)[0:70, 0:90], VALUES, err_msg=name)
    pytest.importorskip("h5py")
    with pytest.raises(ZeroDivisionError):
        tw.stream(VALUES, tmp_path / "new.h5::x", lambda x, y: 1 // 0, tile=(70, 90))
    assert not (tmp_path / "new.h5").exists()
    assert sorted(open_array(f"{tmp_path}/a.h5::x").file) == ["group", "x"]


class RangeServer(http.server.SimpleHTTPRequestHandler):
    """Serves files in ranges, as web servers do, and counts the bytes."""

    served = 0

    def do_GET(self):
        body = self.find_body()
        if body is None:
            return
        start, end = 0, len(body)
        spec = self.headers.get("Range")
        if spec:
            first, _, last = spec.removeprefix("bytes=").partition("-")
            start, end = int(first), min(len(body), int(last) + 1) if last else len(body)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")
        else:
            self.send_response(200)
        type(self).served += end - start  # before the client can go on
        self.finish_headers(end - start)
        self.wfile.write(body[start:end])

    def do_HEAD(self):
        body = self.find_body()
        if body is not None:
            self.send_response(200)
            self.finish_headers(len(body))

    def finish_headers(self, size):
        self.send_header("Content-Length", str(size))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")
        self.end_headers()

    def find_body(self):
        from pathlib import Path

        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return None
        return path.read_bytes()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def web(tmp_path):
    """Return the URL of a server of the temporary folder."""

    def handler(*arguments):
        return RangeServer(*arguments, directory=str(tmp_path))

    RangeServer.served = 0
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # connections that aiohttp has not closed yet
@pytest.mark.parametrize("library", ["obstore", "fsspec"])
def test_arrays_behind_http_are_read_in_ranges(tmp_path, web, library, monkeypatch):
    pytest.importorskip(library)
    if library == "fsspec":
        pytest.importorskip("aiohttp")
        monkeypatch.setattr("tilewright.files.remote_file.OBJECT_SCHEMES", ())
    np.save(tmp_path / "c.npy", VALUES)
    np.save(tmp_path / "f.npy", np.asfortranarray(VALUES))
    large = np.arange(1 << 20, dtype=np.int32).reshape(1024, 1024)
    np.save(tmp_path / "large.npy", large)
    for name in ("c.npy", "f.npy"):
        array = open_array(f"{web}/{name}")
        np.testing.assert_array_equal(array[3:60, 5:80], VALUES[3:60, 5:80], err_msg=name)
        np.testing.assert_array_equal(array[0:70, 0:90], VALUES, err_msg=name)
        target = np.zeros_like(VALUES)
        tw.stream(f"{web}/{name}", target, doubled, tile=(32, 40))
        np.testing.assert_array_equal(target, 2 * VALUES, err_msg=name)
    array = open_array(f"{web}/large.npy")
    before = RangeServer.served
    np.testing.assert_array_equal(array[100:102, 7:9], large[100:102, 7:9])
    assert RangeServer.served - before < 100_000
    with pytest.raises(FileNotFoundError):
        open_array(f"{web}/none.npy")
    zarr = pytest.importorskip("zarr", minversion="3.0.8")
    stored = zarr.create_array(tmp_path / "a.zarr", shape=(70, 90), chunks=(32, 32), dtype="f4")
    stored[...] = VALUES
    target = np.zeros_like(VALUES)
    tw.stream(f"{web}/a.zarr", target, lambda x, y: np.copyto(y, x[1:-1, 1:-1]), overlap=1)
    np.testing.assert_array_equal(target, VALUES)
    for name in ("x.zarr", "x.npy"):
        with pytest.raises(FileFormatError, match="web servers are read only"):
            tw.stream(VALUES, f"{web}/{name}", doubled)


def test_object_stores_of_obstore(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3.0.8")
    store = pytest.importorskip("obstore.store")
    for inner in (store.MemoryStore(), store.LocalStore(tmp_path)):
        made = {"shape": (70, 90), "chunks": (32, 32), "dtype": "f4", "overwrite": True}
        source = zarr.create_array(zarr.storage.ObjectStore(inner), name="a", **made)
        target = zarr.create_array(zarr.storage.ObjectStore(inner), name="b", **made)
        source[...] = VALUES
        tw.stream(source, target, lambda x, y: np.copyto(y, x[1:-1, 1:-1]), overlap=1)
        np.testing.assert_array_equal(target[...], VALUES)
        with pytest.raises(TransferError, match="share"):
            tw.stream(source, source, lambda x, y: np.copyto(y, x[1:-1, 1:-1]), overlap=1)
    local = zarr.open_array(tmp_path / "b", mode="r+")
    with pytest.raises(TransferError, match="share"):
        tw.stream(target, local, lambda x, y: np.copyto(y, x[1:-1, 1:-1]), overlap=1)


@pytest.mark.slow
def test_plans_by_name_run_in_other_processes(tmp_path):
    made = [name for name in usable(tmp_path) if ".zarr" in name and not name.startswith("memory")]
    if "h5py" in sys.modules or __import__("importlib.util").util.find_spec("h5py"):
        with create_array(f"{tmp_path}/a.h5::x", VALUES.shape, VALUES.dtype) as source:
            source[...] = VALUES
        sources = [f"{tmp_path}/a.h5::x"]
    else:
        np.save(tmp_path / "a.npy", VALUES)
        sources = [f"{tmp_path}/a.npy"]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for name in made[:1]:
            with create_array(name, VALUES.shape, VALUES.dtype, (32, 32)):
                pass
            plan = plan_tiles(sources[0], name, tile=(32, 32))
            assert plan.run(doubled, pool).tasks == 9
            np.testing.assert_array_equal(open_array(name)[0:70, 0:90], 2 * VALUES)
            again = plan.run(doubled, manifest=tmp_path / "run.jsonl")
            assert (again.tasks, plan.run(doubled, manifest=tmp_path / "run.jsonl").skipped) == (9, 9)
        if made and sources[0].endswith("::x"):  # of HDF5
            with pytest.raises(TransferError, match="one process at a time can write"):
                plan_tiles(made[0], sources[0], tile=(32, 32)).run(doubled, pool)
        if made:
            with create_array("memory://names/p.zarr", VALUES.shape, VALUES.dtype, (32, 32)):
                pass
            with pytest.raises(TransferError, match="memory:// in this process"):
                plan_tiles(made[0], "memory://names/p.zarr", tile=(32, 32)).run(doubled, pool)


@pytest.mark.parametrize(
    ("name", "library", "extra"),
    [
        ("a.zarr", "zarr", "zarr"),
        ("a.h5::x", "h5py", "hdf5"),
        ("memory://a.npy", "fsspec", "remote"),
    ],
)
def test_what_is_missing_is_named(tmp_path, monkeypatch, name, library, extra):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.core", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.h5").touch()
    with pytest.raises(
        ModuleNotFoundError, match=rf"needs {library}, which is not installed; pip install 'tilewright\[{extra}\]'"
    ):
        open_array(name)


def test_wrong_names(tmp_path):
    for name, message in {
        "a.h5": "name a dataset in it, as in a.h5::name",
        "a.zarr::x": "only HDF5 files have datasets after '::'; write a.zarr/x for zarr",
        "s3://bucket/a": "unknown suffix '' for an array",
        "a.txt": "unknown suffix '.txt'",
    }.items():
        with pytest.raises(FileFormatError, match=message.replace("(", r"\(")):
            parse_array_name(name)
    pytest.importorskip("h5py")
    with create_array(tmp_path / "a.h5::group/x", (3,), "int8"):
        pass
    with pytest.raises(FileFormatError, match="has no dataset 'y'; it has group/x"):
        open_array(tmp_path / "a.h5::y")
    (tmp_path / "b.h5").write_bytes(b"not HDF5")
    with pytest.raises(FileFormatError, match="cannot be opened as an HDF5 file"):
        open_array(tmp_path / "b.h5::x")
    zarr = pytest.importorskip("zarr", minversion="3.0")
    zarr.open_group(tmp_path / "g.zarr", mode="w").create_array("x", shape=(3,), dtype="f4")
    assert open_array(tmp_path / "g.zarr/x").shape == (3,)
    with pytest.raises(FileFormatError, match=r"cannot be opened as a zarr array.*name the array"):
        open_array(tmp_path / "g.zarr")
    with (
        pytest.raises(FileFormatError, match="only zarr arrays can be written"),
        create_array("memory://a.npy", (3,), "int8"),
    ):
        pass


def test_a_shape_that_contradicts_the_file_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 6)))
    assert open_array(tmp_path / "a.npy", shape=(4, 6)).shape == (4, 6)
    with pytest.raises(tw.FileFormatError, match=r"a.npy has shape \[4, 6\], got \[6, 4\]; leave the shape out"):
        open_array(tmp_path / "a.npy", shape=(6, 4))
