# SPDX-License-Identifier: Apache-2.0
"""Targets stored in chunks: tiles that share one are written one after the other, and others may meet."""

import threading

import numpy as np
import pytest

from tilewright.tiling import Input, Output, Pipeline, Tiler
from tilewright.tiling.stores import chunk_shape

from .chunked import Chunked

SHAPE = (900, 400)


def pipeline(source, target, tile, scheme, workers):
    tiler = Tiler(SHAPE, tile)
    depth = 3 if scheme in ("buffered", "direct") else None
    return Pipeline([Input(source, tiler)], [Output(target, tiler)], scheme=scheme, depth=depth, workers=workers)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("scheme", ["simplex", "duplex", "double", "buffered", "direct"])
def test_no_tile_is_lost_where_chunks_are_cut(scheme, workers):
    """Two threads that write halves of one chunk would each write back the other half as it was: elements were lost."""
    source = np.arange(SHAPE[0] * SHAPE[1], dtype=np.float64).reshape(SHAPE) + 1
    target = Chunked(np.zeros(SHAPE), (130, 400), delay=0.002)
    compute = None if scheme == "direct" else lambda x, y: np.copyto(y, x)
    pipeline(source, target, (100, 400), scheme, workers).run(compute)
    np.testing.assert_array_equal(target.array, source)


def test_whole_chunks_are_written_at_the_same_time():
    meeting = threading.Barrier(2, timeout=30)

    class Met(Chunked):
        def __setitem__(self, box, value):
            if box[0].start < 300:
                meeting.wait()  # passes only if the first two tiles are written at once
            super().__setitem__(box, value)

    source = np.ones(SHAPE)
    target = Met(np.zeros(SHAPE), (50, 400))
    pipeline(source, target, (150, 400), "buffered", 4).run(lambda x, y: np.copyto(y, x))
    np.testing.assert_array_equal(target.array, source)


def test_what_says_nothing_of_chunks_has_none():
    class Odd:
        chunks = ((3, 3), (4,))  # as dask does

    assert chunk_shape(Odd()) is None
    assert chunk_shape(Chunked(np.zeros(6), (3,))) == (3,)
