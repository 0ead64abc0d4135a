# SPDX-License-Identifier: Apache-2.0
"""Random pipelines, and what they must compute."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tilewright.tiling import Input, Output, Pipeline, Tiler

SCHEMES = ["duplex", "double", "simplex", "buffered"]
ORDERS = ["row_major", "column_major", "snake", "morton", "hilbert"]
FILLS = [0, 3, "edge", "reflect", "wrap"]
NUMPY_MODES = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}


@dataclass(frozen=True)
class Stencil:
    """A sum over a neighbourhood: space, tile, (before, after) of the halo on each axis, order and fill."""

    space: tuple[int, ...]
    tile: tuple[int, ...]
    halo: tuple[tuple[int, int], ...]
    order: str
    fill: Any

    def tilers(self):
        """Return the tiler of the input, with its halo, and that of the output."""
        around = [a + b for a, b in self.halo]
        larger = tuple(t + n for t, n in zip(self.tile, around, strict=True))
        return Tiler(self.space, larger, tuple(around), self.halo, self.order), Tiler(
            self.space, self.tile, order=self.order
        )

    def source(self):
        return np.random.default_rng(len(self.space)).integers(0, 1000, self.space).astype(np.int32)

    def compute(self, tile, out):
        """Add the first and the last element of every neighbourhood, weighted so that they are told apart."""
        out[...] = 2 * tile[tuple(slice(0, n) for n in out.shape)] + 3 * tile[tuple(slice(-n, None) for n in out.shape)]

    def expected(self):
        source = self.source()
        mode = NUMPY_MODES.get(self.fill)
        kind = {"mode": mode} if mode else {"mode": "constant", "constant_values": self.fill}
        whole = np.pad(source, self.halo, **kind) if source.size else source
        out = np.zeros(self.space, np.int64)
        if source.size:
            self.compute(whole, out)
        return out

    def pipeline(self, target, source=None, **options):
        reading, writing = self.tilers()
        source = self.source() if source is None else source
        return Pipeline([Input(source, reading, self.fill)], [Output(target, writing)], **options)


@st.composite
def stencils(draw, most_rank=5):
    rank = draw(st.integers(1, most_rank))
    largest = {1: 24, 2: 9, 3: 5, 4: 4, 5: 3}[rank]
    space = tuple(draw(st.integers(1, largest)) for _ in range(rank))
    tile = tuple(draw(st.integers(1, n + 1)) for n in space)
    halo = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(rank))
    return Stencil(space, tile, halo, draw(st.sampled_from(ORDERS)), draw(st.sampled_from(FILLS)))
