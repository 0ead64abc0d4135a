# SPDX-License-Identifier: Apache-2.0
"""`reduce_tiles`: a value of each tile, and all of them combined, in the order of the tiles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np  # noqa: F401  (for the examples)

from ..errors import TransferError
from .array_stream import default_workers
from .operands import Input, as_list, open_operand, tiler_with_halo, validate_equal_shapes, validate_operand
from .pipeline import Pipeline
from .tile_compute import CancelFlag, ProgressCallback, Step, StepCompute
from .tile_suggestion import fit_depth, suggest_tile
from .tiler import Extents, Margins, as_extents, as_margins

_NOTHING = object()


class _Reduction(StepCompute):
    """Values of tiles that arrive in any order, combined in the order of the tiles."""

    def __init__(self, compute: Callable[..., Any], combine: Callable[[Any, Any], Any], initial: Any) -> None:
        self.compute, self.combine, self.total = compute, combine, initial
        self._values: dict[int, Any] = {}  # of tiles whose predecessors are not combined yet
        self._next = 0
        self._lock = threading.Lock()

    def run_step(self, step: Step) -> None:
        value = self.compute(*step.inputs)
        with self._lock:
            self._values[step.tile] = value
            while self._next in self._values:
                value = self._values.pop(self._next)
                self.total = value if self.total is _NOTHING else self.combine(self.total, value)
                self._next += 1


def reduce_tiles(
    source: Any,
    compute: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    initial: Any = _NOTHING,
    tile: Extents | None = None,
    overlap: Margins = 0,
    pad: Any = 0,
    workers: int | None = None,
    memory_limit: int | None = None,
    order: str = "row_major",
    progress: ProgressCallback | None = None,
    cancel: CancelFlag | None = None,
) -> Any:
    """Compute a value of each tile, combine the values in the order of the tiles, and return the result.

    The result does not depend on the number of workers: rounding is that of one fixed order.

    Args:
        source: an array or anything that slices, or a name such as `a.npy`, `a.zarr` or `a.h5::x`; or a list of them,
            all of one shape.
        compute: a function of the arrays of a tile, which returns its value: a number, a small array, a tuple. It must
            not return a view of the tile, whose memory the next tile takes. It may be called for several tiles at once.
        combine: a function of what is combined so far and the value of the next tile.
        initial: what the first value is combined with; without it, the first value is taken as it is.
        tile: the extents of a tile, by default chosen to fit `memory_limit` and the chunks of the source. Other tiles
            round differently.
        overlap, pad: the halo of a tile, and what it holds outside the source, as of `stream`.
        workers: threads beside the caller; by default one per core for stores that decode in parallel, otherwise 1.
        memory_limit: the most bytes that buffers and cached chunks may take.
        order: the order of the tiles, as of `Tiler`.
        progress, cancel: those of `Pipeline.run`.

    >>> a = np.arange(12.0).reshape(3, 4)
    >>> reduce_tiles(a, np.sum, lambda total, value: total + value, tile=(2, 2)).item()
    66.0
    >>> reduce_tiles(a, lambda x: x.max(axis=0), np.maximum, tile=(1, 4)).tolist()
    [8.0, 9.0, 10.0, 11.0]
    """
    sources = [open_operand(item) for item in as_list(source)]
    if not sources:
        raise TransferError("expected at least one source: an array, a name, or a list of them")
    for function, name in ((compute, "compute"), (combine, "combine")):
        if not callable(function):
            raise TransferError(f"expected a callable {name}, got {function!r}")
    for array in sources:
        validate_operand(array, "source")
    validate_equal_shapes(sources, [])
    shape = tuple([int(n) for n in sources[0].shape])
    halo = as_margins(overlap, "overlap", len(shape))
    count = 1 + (default_workers(sources) if workers is None else workers)
    depth = count
    if tile is None:
        suggestion = suggest_tile(shape, sources, [], memory_limit, halo, "buffered", count)
        tile, depth = suggestion.tile, suggestion.depth
    elif memory_limit is not None:
        depth = fit_depth(as_extents(tile, "tile", len(shape)), sources, [], memory_limit, halo, "buffered", count)
    inputs = [Input(array, tiler_with_halo(array.shape, tile, halo, order), pad) for array in sources]
    pipeline = Pipeline(inputs, [], scheme="buffered", depth=depth, workers=count - 1, memory_limit=memory_limit)
    reduction = _Reduction(compute, combine, initial)
    pipeline.run(reduction, progress=progress, cancel=cancel, concurrent=True)
    if reduction.total is _NOTHING:
        raise TransferError(f"a source of shape {shape} has no tiles, and no initial value was given; give one")
    return reduction.total
