# SPDX-License-Identifier: Apache-2.0
"""An array that is stored in chunks, as zarr and HDF5 do: what is written to part of one rewrites all of it."""

import time
from itertools import product

import numpy as np


class Chunked:
    """Something that slices and has chunks; between reading a chunk and writing it again, time passes."""

    def __init__(self, array, chunks, delay=0.0):
        self.array, self.chunks, self.delay = array, tuple(chunks), delay
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, box):
        return self.array[box].copy()

    def __setitem__(self, box, value):
        spans = [range(part.start // n, -(-part.stop // n)) for part, n in zip(box, self.chunks, strict=True)]
        for index in product(*spans):
            home = tuple(slice(k * n, (k + 1) * n) for k, n in zip(index, self.chunks, strict=True))
            whole = self.array[home].copy()
            time.sleep(self.delay)
            starts = [max(part.start, there.start) for part, there in zip(box, home, strict=True)]
            stops = [min(part.stop, there.stop) for part, there in zip(box, home, strict=True)]
            inside = tuple(slice(a - h.start, b - h.start) for a, b, h in zip(starts, stops, home, strict=True))
            given = tuple(slice(a - p.start, b - p.start) for a, b, p in zip(starts, stops, box, strict=True))
            whole[inside] = np.asarray(value)[given]
            self.array[home] = whole
