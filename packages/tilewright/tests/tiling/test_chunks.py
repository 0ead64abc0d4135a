# SPDX-License-Identifier: Apache-2.0
"""Arrays in chunks: whatever the chunks, tiles, halo, memory and kind of store, the result is NumPy's."""

import threading
from itertools import product
from math import prod
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import TransferError
from tilewright.tiling import Tiler
from tilewright.tiling.stores import ChunkCache, ChunkUses, close_idle_loops, open_access
from tilewright.tiling.tile_choice import choose_tile

from ..cases import examples
from .chunked import Chunked

zarr = pytest.importorskip("zarr", minversion="3.0")


class Counted(zarr.storage.MemoryStore):
    """A store that counts the chunks that are read from it."""

    def __init__(self):
        super().__init__()
        self.reads = []

    async def get(self, key, prototype=None, byte_range=None):
        if "c/" in key:
            self.reads.append(key)
        return await super().get(key, prototype, byte_range)


def make_store(kind, folder, name, values, chunks, shards=None):
    """Return an array of a kind of store that holds some values."""
    if kind == "memory":
        return values.copy()
    if kind == "sliced":
        return Chunked(values.copy(), chunks)
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        file = h5py.File(f"{name}-{uuid4().hex}.h5", "w", driver="core", backing_store=False)
        return file.create_dataset("x", data=values, chunks=tuple(map(min, chunks, values.shape)))
    options = {"zarr 2": {"zarr_format": 2}, "zarr F": {"zarr_format": 2, "order": "F"}, "shards": {"shards": shards}}
    compressors = {"gzip": zarr.codecs.GzipCodec(), "blosc": zarr.codecs.BloscCodec(), "plain": None}
    store = zarr.storage.MemoryStore() if kind == "zarr in memory" else folder / f"{name}.zarr"
    array = zarr.create_array(
        store,
        shape=values.shape,
        chunks=chunks,
        dtype=values.dtype,
        overwrite=True,
        fill_value=7,
        compressors=compressors.get(kind, "auto"),
        **options.get(kind, {}),
    )
    array[...] = values
    return array


SOURCES = ["memory", "sliced", "hdf5", "zarr 2", "zarr F", "shards", "gzip", "blosc", "plain", "zstd", "zarr in memory"]


@st.composite
def chunked_stencils(draw):
    rank = draw(st.integers(1, 3))
    space = tuple(draw(st.integers(1, {1: 60, 2: 20, 3: 9}[rank])) for _ in range(rank))
    chunks = [tuple(draw(st.integers(1, n)) for n in space) for _ in range(2)]
    halo = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(rank))
    tile = draw(st.none() | st.tuples(*[st.integers(1, n) for n in space]))
    return space, chunks, halo, tile


@examples(60)
@given(
    chunked_stencils(),
    st.sampled_from(SOURCES),
    st.sampled_from(SOURCES),
    st.sampled_from([0, 3, "edge", "reflect", "wrap"]),
    st.sampled_from([None, 1 << 12, 1 << 14]),
    st.sampled_from([None, 0, 2]),
)
def test_a_stencil_over_chunks_is_what_numpy_says(
    tmp_path_factory, stencil, source_kind, target_kind, pad, limit, workers
):
    space, (read, written), halo, tile = stencil
    folder = tmp_path_factory.getbasetemp()
    values = np.random.default_rng(prod(space)).integers(0, 100, space).astype(np.float32)
    shards = [tuple(c * 2 for c in chunks) for chunks in (read, written)]
    source = make_store(source_kind, folder, "source", values, read, shards[0])
    target = make_store(target_kind, folder, "target", np.zeros(space, np.float32), written, shards[1])

    def compute(x, out):
        first = x[tuple(slice(0, n) for n in out.shape)]
        last = x[tuple(slice(x.shape[k] - n, None) for k, n in enumerate(out.shape))]
        out[...] = 2 * first + 3 * last

    mode = {"mode": pad} if isinstance(pad, str) else {"mode": "constant", "constant_values": pad}
    expected = np.zeros(space, np.float32)
    compute(np.pad(values, halo, **mode), expected)
    limit = limit if tile is None else None  # a tile that is given might not fit
    tw.stream(source, target, compute, tile=tile, overlap=halo, pad=pad, memory_limit=limit, workers=workers)
    got = target.array if isinstance(target, Chunked) else target[...]
    np.testing.assert_array_equal(got, expected)


def test_every_chunk_is_decoded_once():
    """64 chunks were read 484 times for a halo of one element."""
    values = np.random.default_rng(0).random((64, 64), dtype=np.float32)
    for workers, order in product((0, 1, 3), ("row_major", "column_major", "hilbert")):
        store = Counted()
        source = zarr.create_array(store, shape=(64, 64), chunks=(8, 8), dtype="f4")
        source[...] = values
        store.reads.clear()
        target = np.zeros_like(values)

        def compute(x, out):
            out[...] = x[1:-1, 1:-1] + x[:-2, 1:-1]

        report = tw.stream(source, target, compute, tile=(8, 8), overlap=1, workers=workers, order=order)
        assert len(store.reads) == 64, (workers, order, len(store.reads))
        assert report.read_amplification == 1
        np.testing.assert_array_equal(target, values + np.pad(values, ((1, 0), (0, 0)))[:-1])
        store.reads.clear()
        tw.stream(source, target, compute, overlap=1, workers=workers, order=order)  # at its own tile
        assert len(store.reads) == 64, (workers, order, len(store.reads))


def test_a_small_limit_holds_few_chunks():
    store = Counted()
    source = zarr.create_array(store, shape=(64, 64), chunks=(8, 8), dtype="f4")
    source[...] = 1

    def compute(x, out):
        out[...] = x[1:-1, 1:-1]

    reads = []
    for memory in (16 << 10, 4 << 10, 1500):  # a chunk takes 256 bytes, the buffers 1408, a row of chunks 2048
        store.reads.clear()
        target = np.zeros((64, 64), np.float32)
        report = tw.stream(source, target, compute, tile=(8, 8), overlap=1, memory_limit=memory)
        assert (target == 1).all()
        reads.append(len(store.reads))
        assert report.buffer_bytes <= memory
        assert report.read_amplification == reads[-1] / 64
    assert reads[0] == 64
    assert 64 < reads[1] < 300, "some memory helps"
    assert reads[1] < reads[2] <= 484


@examples(80)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 3), st.integers(0, 3), st.integers(1, 13))
def test_uses_are_those_of_the_tiles(space, tile, before, after, chunk):
    tiler = Tiler((space,), (tile + before + after,), (before + after,), ((before, after),))
    uses = ChunkUses(tiler, (chunk,))
    boxes = [box.within((space,)) for box in tiler]
    for k in range(-(-space // chunk)):
        users = [
            number
            for number, box in enumerate(boxes)
            if not box.empty and box.offset[0] < min((k + 1) * chunk, space) and box.end[0] > k * chunk
        ]
        assert uses.tiles((k,)) == users
        assert uses.count((k,)) == len(users)
        assert uses.is_shared or len(users) <= 1


def test_threads_that_need_one_chunk_decode_it_once_and_failures_wake_them():
    uses = ChunkUses(Tiler((8,), (2,), overlap=1, augmentation=1), (8,))
    cache, decoded, started = ChunkCache(1 << 20), [], threading.Barrier(4)

    def load(index):
        decoded.append(index)
        if len(decoded) == 1:
            raise OSError("the first one fails")
        return np.zeros(8)

    results = []

    def read():
        started.wait()
        try:
            results.append(cache.read(0, uses, (0,), load).size)
        except OSError:
            results.append("failed")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(map(str, results)) == ["8", "8", "8", "failed"]
    assert len(decoded) <= 5


def test_chosen_tiles_are_whole_chunks():
    def stored(chunks, shards=None):
        return zarr.create_array({}, shape=(8192, 8192), chunks=chunks, shards=shards, dtype="f4")

    cases = [
        ([stored((1024, 1024))], [stored((1024, 1024))], 1, None, (1024, 1024)),
        ([stored((512, 512))], [stored((4096, 64))], 0, None, (4096, 512)),
        (["float32"], [stored((256, 2048))], 0, None, (256, 2048)),
        ([stored((2048, 512))], ["float32"], 0, None, (2048, 512)),
        ([stored((512, 512))], [stored((256, 256), (1024, 1024))], 0, None, (1024, 1024)),
    ]
    for inputs, outputs, halo, limit, expected in cases:
        found = choose_tile((8192, 8192), inputs, outputs, limit, halo, "buffered", 2)
        assert found.tile == expected, found
    tight = choose_tile((8192, 8192), [stored((512, 512))], [stored((4096, 64))], 16 << 20, 0, "buffered", 2)
    assert tight.tile[0] % 4096 == 0
    assert tight.tile[1] % 64 == 0
    assert tight.buffer_bytes <= 16 << 20
    tiny = choose_tile((8192, 8192), [stored((512, 512))], [stored((4096, 64))], 1 << 16)
    assert tiny.buffer_bytes <= 1 << 16
    assert tiny.tile[0] % 4096, "too little memory for whole chunks"


def test_chunks_of_nothing_but_the_fill_value_are_not_stored(tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(10, 10), chunks=(4, 4), dtype="f4", fill_value=np.nan)
    array[...] = 1
    values = np.full((10, 10), np.nan, np.float32)
    values[5, 5] = 2
    tw.stream(values, array, lambda x, y: np.copyto(y, x), tile=(4, 4))
    files = sorted(path.name for path in (tmp_path / "a.zarr/c").rglob("*") if path.is_file())
    assert files == ["1"]
    np.testing.assert_array_equal(array[...], values)
    array[...] = 0
    tw.stream(-np.zeros((10, 10), np.float32), array, lambda x, y: np.copyto(y, x), tile=(4, 4))
    assert np.signbit(array[...]).all()


def test_damaged_chunks_are_named(tmp_path):
    for name, options in {"zstd": {}, "plain": {"compressors": None}, "two": {"zarr_format": 2}}.items():
        array = zarr.create_array(tmp_path / name, shape=(8, 8), chunks=(4, 4), dtype="f4", **options)
        array[...] = 1
        path = next(path for path in (tmp_path / name).rglob("*0") if path.is_file())
        path.write_bytes(b"damaged")
        with pytest.raises(TransferError, match=rf"import of tile 0 failed: cannot decode a chunk of .*{name}"):
            tw.stream(array, np.zeros((8, 8), np.float32), lambda x, y: np.copyto(y, x), tile=(4, 4))


def test_streams_inside_an_event_loop(tmp_path):
    import asyncio

    array = zarr.create_array(tmp_path / "a.zarr", shape=(8, 8), chunks=(4, 4), shards=(8, 8), dtype="f4")

    async def run():
        open_access(array).write((slice(0, 8), slice(0, 8)), np.ones((8, 8), np.float32))
        return open_access(array).read((slice(0, 2), slice(0, 2)))

    assert asyncio.run(run()).tolist() == [[1, 1], [1, 1]]
    close_idle_loops()
    assert open_access(array).read((slice(0, 1), slice(0, 2))).tolist() == [[1, 1]]
