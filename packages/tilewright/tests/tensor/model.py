# SPDX-License-Identifier: Apache-2.0
"""A tensor as NumPy sees it: the place of every scalar and whether it is real; and views as plain indexing of these.

Nothing here asks the package anything but where a layout puts a coordinate, once, for the tensor at the root.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Model:
    """Places and validity of all scalars: first a dimension for each mode, then one for the lanes of each mode.

    `owners` names the mode that each dimension of lanes belongs to, None once a slice dropped it. `leaves` has the
    extents of the leaves of each mode, the first fastest, or None where a view may have arranged them anew.
    """

    places: np.ndarray
    valid: np.ndarray
    leaves: tuple[tuple[int, ...] | None, ...]
    owners: tuple[int | None, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.leaves)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.places.shape[: self.rank]

    @property
    def lanes(self) -> tuple[int, ...]:
        return self.places.shape[self.rank :]

    @property
    def block(self) -> tuple[int, ...]:
        """The shape in which an element is given out: lanes of extent 1 have no dimension."""
        return tuple([n for n in self.lanes if n != 1])

    @property
    def size(self) -> int:
        return prod(self.shape)

    def coordinates(self):
        return product(*map(range, self.shape))

    def given_out(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(self.shape + self.block)

    # what is valid

    @property
    def elements(self) -> np.ndarray:
        """Which elements have anything valid."""
        return self.valid.any(axis=tuple(range(self.rank, self.valid.ndim)))

    @property
    def box(self) -> tuple[int, ...] | None:
        """How many elements of each mode are valid, if these are all elements below some corner; else None."""
        return box_of(self.elements)

    @property
    def readable(self) -> bool:
        """Whether an array can hold just what is valid: a box of elements with all their lanes."""
        partly = self.elements & ~self.valid.all(axis=tuple(range(self.rank, self.valid.ndim)))
        return self.box is not None and not partly.any()

    def read(self, storage: np.ndarray) -> np.ndarray:
        """Return the valid elements, which must be readable."""
        corner = tuple([slice(0, n) for n in self.box])
        return storage[self.given_out(self.places)[corner]]

    def padded(self, storage: np.ndarray, fill: Any) -> np.ndarray:
        """Return all elements, with fill where nothing is valid."""
        found = np.full(self.places.shape, fill, dtype=storage.dtype)
        found[self.valid] = storage[self.places[self.valid]]
        return self.given_out(found)

    def follows_row_major(self) -> bool:
        """Return whether all scalars are valid and follow each other, the last mode fastest."""
        run = self.places.reshape(-1)
        return bool(self.valid.all()) and bool((np.diff(run) == 1).all())

    # views

    def cut(self, *parts: range | int) -> Model:
        """Return the indices that a range names in each mode, valid only inside it; an integer drops its mode."""
        places, valid = self.places, self.valid
        for k, part in enumerate(parts):
            index = np.atleast_1d(np.asarray(part, dtype=np.int64))
            inside = (index >= 0) & (index < self.shape[k])
            index = np.clip(index, 0, max(self.shape[k] - 1, 0))
            beside = inside.reshape([-1 if j == k else 1 for j in range(places.ndim)])
            places, valid = places.take(index, axis=k), valid.take(index, axis=k) & beside
        kept = [k for k, part in enumerate(parts) if isinstance(part, range)]
        dropped = tuple([k for k in range(self.rank) if k not in kept])
        leaves = tuple([None if _nested(self.leaves[k]) else (len(parts[k]),) for k in kept])
        owners = tuple([kept.index(k) if k in kept else None for k in self.owners])
        return Model(places.squeeze(dropped), valid.squeeze(dropped), leaves, owners)

    def tile(self, sizes, coords) -> Model:
        return self.cut(*[range(c * n, c * n + n) for n, c in zip(sizes, coords, strict=True)])

    def share(self, counts, at, cover: bool) -> Model:
        """Return every count-th element of each mode from `at` on; what does not divide is dropped or covered."""
        shares = [-(-n // count) if cover else n // count for n, count in zip(self.shape, counts, strict=True)]
        return self.cut(*[range(k, k + n * count, count) for k, n, count in zip(at, shares, counts, strict=True)])

    def vectorize(self, widths) -> Model:
        """Return blocks of elements as single elements; lanes that were there vary fastest within the new ones."""
        if all(n == 1 for n in widths):
            return self
        blocks = [-(-n // width) for n, width in zip(self.shape, widths, strict=True)]
        padded = self.cut(*[range(n * width) for n, width in zip(blocks, widths, strict=True)])
        split = [n for pair in zip(blocks, widths, strict=True) for n in pair]
        owners = self.owners or tuple(range(self.rank))
        # dimensions now: (blocks, width) of each mode, then the old lanes
        old = {dim: 2 * self.rank + dim for dim in range(len(self.owners))}
        order, lanes = [2 * k for k in range(self.rank)], []
        for dim, mode in enumerate(owners):
            fresh = [] if mode is None else [2 * mode + 1]
            order += [*fresh, *([old[dim]] if dim in old else [])]
            lanes.append((1 if mode is None else widths[mode]) * (self.lanes[dim] if dim in old else 1))

        def rearranged(array):
            return array.reshape(*split, *self.lanes).transpose(order).reshape(*blocks, *lanes)

        leaves = tuple([None if _nested(part) else (n,) for part, n in zip(self.leaves, blocks, strict=True)])
        return Model(rearranged(padded.places), rearranged(padded.valid), leaves, owners)

    def transpose(self) -> Model:
        axes = [*reversed(range(self.rank)), *reversed(range(self.rank, self.places.ndim))]
        owners = tuple([None if k is None else self.rank - 1 - k for k in self.owners[::-1]])
        return Model(self.places.transpose(axes), self.valid.transpose(axes), self.leaves[::-1], owners)

    def by_leaf(self) -> Model:
        """Return the model with a mode for each leaf."""
        slowest_first = [n for part in self.leaves for n in reversed(part)]
        order, start = [], 0
        for part in self.leaves:
            order += range(start + len(part) - 1, start - 1, -1)
            start += len(part)

        def spread(array):
            return array.reshape(slowest_first).transpose(order)

        flat = tuple([(n,) for part in self.leaves for n in part])
        return Model(spread(self.places), spread(self.valid), flat)

    def reshape(self, shape) -> Model:
        """Return another shape over scalars that follow each other; lanes become one run in the last mode."""
        lanes = (*[1] * (len(shape) - 1), prod(self.lanes)) if self.lanes else ()
        owners = tuple(range(len(lanes)))
        whole = (*shape, *lanes)
        return Model(self.places.reshape(whole), self.valid.reshape(whole), tuple([(n,) for n in shape]), owners)

    def relaid(self, layout) -> Model:
        """Return a layout over the storage from the first scalar on."""
        return replace(root(layout), places=root(layout).places + self.places.reshape(-1)[0])

    # text

    def text(self, values: np.ndarray, flat_rank: int) -> str:
        """Return what Mojo prints for integers: two plain modes as rows, everything else flat, first index fastest."""
        if self.size == 0:
            return ""
        texts = np.where(self.valid, np.where(self.valid, values[np.where(self.valid, self.places, 0)], 0), "_")
        elements = np.empty(self.shape, dtype=object)
        for c in self.coordinates():
            elements[c] = listed(texts[c].reshape(-1)) if self.lanes else str(texts[c])
        if self.rank == flat_rank == 2:
            return listed([listed(row) for row in elements])
        return listed(elements.reshape(-1, order="F"))


def listed(texts) -> str:
    return f"[{', '.join(map(str, texts))}]"


def _nested(part: tuple[int, ...] | None) -> bool:
    return part is None or len(part) != 1


def box_of(valid: np.ndarray) -> tuple[int, ...] | None:
    """Return the extents of what is valid, if that is everything below a corner; zeros if it is nothing."""
    if valid.ndim == 0:
        return () if valid else None
    counts = [int(valid.any(axis=tuple(j for j in range(valid.ndim) if j != k)).sum()) for k in range(valid.ndim)]
    inside = np.zeros(valid.shape, dtype=bool)
    inside[tuple([slice(0, n) for n in counts])] = True
    return tuple(counts) if (inside == valid).all() else None


def leaf_extents(mode: Any) -> list[int]:
    return [n for part in mode for n in leaf_extents(part)] if isinstance(mode, tuple) else [int(mode)]


def root(layout: Any, data: tuple[int, ...] | None = None) -> Model:
    """Return the model of a layout, evaluated coordinate by coordinate; data is how much of each mode is valid."""
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    leaves = tuple([tuple(leaf_extents(mode)) for mode in shape])
    extents = tuple([prod(part) for part in leaves])
    places = np.empty(extents, dtype=np.int64)
    valid = np.zeros(extents, dtype=bool)
    valid[tuple([slice(0, n) for n in data or extents])] = True
    for c in product(*map(range, extents)):
        places[c] = layout(*c) if c else layout(())
    return Model(places, valid, leaves)
