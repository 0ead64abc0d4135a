# SPDX-License-Identifier: Apache-2.0
"""`PageMoves`: where every page of a tensor is before a reshard and after it, as arrays.

Tiles, and rows of the same width, move as whole pages. Rows that are cut into pages of different widths move in pieces:
a row is cut wherever one of the two cuts it. The runtime moves units of the greatest common divisor of both widths.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from .._integers import round_up
from ..errors import MemoryConfigError
from ..memory import TensorSpec
from ..memory.paging import Integers
from .noc import NocMap

_ADDRESS_BITS = 36  # of a key that sorts by endpoint, then by address; a bank has at most 2^33 bytes


@dataclass(frozen=True, slots=True, eq=False)
class PageMoves:
    """One entry for each page or piece of a page: `nbytes` from an endpoint and address to another.

    Endpoints are the numbers of a `NocMap`.

    >>> from tilewright import height_sharded
    >>> tiles = TensorSpec((64, 32), page_layout="tile", chip="n150")
    >>> moves = page_moves(tiles, tiles.with_memory(height_sharded((2, 1))))
    >>> len(moves), moves.nbytes.tolist()
    (2, [2048, 2048])
    """

    source: Integers
    source_address: Integers
    target: Integers
    target_address: Integers
    nbytes: Integers
    page: Integers  # of the target

    def __len__(self) -> int:
        return len(self.source)

    def take(self, order: Integers) -> PageMoves:
        """Return the entries in another `order`, or some of them.

        >>> tiles = TensorSpec((64, 32), page_layout="tile", chip="n150")
        >>> page_moves(tiles, tiles.with_memory("l1")).take(np.array([1])).page.tolist()
        [1]
        """
        return PageMoves(*[getattr(self, name)[order] for name in PageMoves.__slots__])

    def by_target(self) -> PageMoves:
        """Return the entries target by target, in the order of their addresses there.

        >>> tiles = TensorSpec((64, 32), page_layout="tile", memory="l1", chip="n150")
        >>> page_moves(tiles, tiles.with_memory("dram")).by_target().target.tolist()
        [64, 65]
        """
        return self.take(_order_of(self.target, self.target_address))

    def by_source(self) -> PageMoves:
        """Return the entries source by source, in the order of their addresses there.

        >>> tiles = TensorSpec((64, 32), page_layout="tile", memory="l1", chip="n150")
        >>> page_moves(tiles, tiles.with_memory("dram")).by_source().page.tolist()
        [0, 1]
        """
        return self.take(_order_of(self.source, self.source_address))


def _order_of(endpoint: Integers, address: Integers) -> Integers:
    return np.argsort((endpoint << _ADDRESS_BITS) + address, kind="stable")


def validate_pair(source: TensorSpec, target: TensorSpec) -> None:
    """Raise unless `source` and `target` are the same pages of the same tensor on the same chip.

    >>> validate_pair(TensorSpec((4, 4), chip="n150"), TensorSpec((4, 8), chip="n150"))
    Traceback (most recent call last):
        ...
    tilewright.errors.MemoryConfigError: source has shape (4, 4), target has shape (4, 8): they must be equal, since a \
reshard moves pages; convert first
    """
    for name, one, other in (
        ("shape", source.shape.logical, target.shape.logical),
        ("dtype", source.dtype, target.dtype),
        ("page layout", source.page_layout, target.page_layout),
        ("tile", source.tile, target.tile),
        ("padded outer shape", source.padded_shape[:-1], target.padded_shape[:-1]),
    ):
        if one != other:
            raise MemoryConfigError(
                f"source has {name} {one}, target has {name} {other}: they must be equal, since a reshard moves pages;"
                " convert first"
            )
    if source.is_tiled and source.padded_shape != target.padded_shape:
        raise MemoryConfigError(
            f"source has padded shape {source.padded_shape}, target {target.padded_shape}: they must be equal, since a"
            " reshard moves tiles; give both the same alignment"
        )
    if source.known_chip != target.known_chip:
        raise MemoryConfigError(
            f"source is on {source.known_chip}, target on {target.known_chip}: a reshard stays on one chip; use"
            " with_chip for one of them"
        )


def has_equal_pages(source: TensorSpec, target: TensorSpec) -> bool:
    """Return whether the pages of `source` are those of `target`, with the same numbers.

    >>> from tilewright import width_sharded
    >>> rows = TensorSpec((4, 64), chip="n150")
    >>> has_equal_pages(rows, rows.with_memory(width_sharded((2, 1))))
    False
    """
    return source.page_shape == target.page_shape and source.physical_shape == target.physical_shape


def page_moves(
    source: TensorSpec, target: TensorSpec, source_base: int = 0, target_base: int = 0, whole_units: bool = False
) -> PageMoves:
    """Return where every page of `source` is, and where it is in `target`, for buffers at two base addresses.

    With `whole_units`, rows with pages of different widths are cut into units of the greatest common divisor of both.

    >>> from tilewright import width_sharded
    >>> rows = TensorSpec((1, 7), "int32", memory=width_sharded((2, 1), (1, 4)), chip="n150")
    >>> page_moves(rows, rows.with_memory(width_sharded((3, 1), (1, 3)))).nbytes.tolist()
    [12, 4, 8, 4]
    """
    noc = NocMap.of(source.known_chip)
    if not min(source.num_pages, target.num_pages):
        return PageMoves(*[np.zeros(0, dtype=np.int64)] * len(PageMoves.__slots__))
    before, after = source.pages(source_base), target.pages(target_base)
    here = noc.numbers(before.bank, source.memory.buffer_type)
    there = noc.numbers(after.bank, target.memory.buffer_type)
    if has_equal_pages(source, target):
        return PageMoves(
            here,
            before.address,
            there,
            after.address,
            np.full(len(before), source.page_bytes, dtype=np.int64),
            after.page,
        )
    itemsize = source.dtype.storage_format.itemsize
    widths = source.page_bytes, target.page_bytes
    unit = gcd(*widths)
    # whole units move, so that a little of the padding of rows does, too
    width = round_up((source.shape.logical[-1] if source.shape.logical else 1) * itemsize, unit)
    steps = (unit,) if whole_units else widths
    edges = np.unique(np.concatenate([np.array([width]), *[np.arange(0, width, step) for step in steps]]))
    starts, sizes = edges[:-1], np.diff(edges)
    rows = np.arange(source.physical_shape[0], dtype=np.int64)[:, None]
    pages, inside = [], []
    for spec, page_width in zip((source, target), widths, strict=True):
        across, byte = np.divmod(starts, page_width)
        pages.append((rows * (spec.physical_shape[1] // spec.page_shape[1]) + across).reshape(-1))
        inside.append(np.tile(byte, len(rows)))
    return PageMoves(
        here[pages[0]],
        before.address[pages[0]] + inside[0],
        there[pages[1]],
        after.address[pages[1]] + inside[1],
        np.tile(sizes, len(rows)).astype(np.int64),
        pages[1],
    )
