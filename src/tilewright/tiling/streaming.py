# SPDX-License-Identifier: Apache-2.0
"""`stream`: an array of any size through a compute, tile by tile, with bounded memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TransferError
from ..files.arrays import new_array, open_array
from .budget import DEFAULT_LIMIT, suggest_tile
from .execution import Progress, Switch
from .operands import Input, Output, check_one_shape, check_operand, halo_of, listed, tiler_with_halo
from .pipeline import Pipeline, Report
from .sharing import shared_targets
from .storage import check_npy_name
from .tiler import Tiler
from .trace import Trace
from .transfers import Engine

Array = np.ndarray[Any, Any]


def stream(
    source: Any,
    target: Any,
    compute: Any = None,
    tile: Any = None,
    overlap: Any = 0,
    pad: Any = 0,
    scheme: str | None = None,
    workers: int = 1,
    depth: int | None = None,
    memory_limit: int | None = None,
    order: str = "row_major",
    dtype: Any = None,
    progress: Progress | None = None,
    cancel: Switch | None = None,
    trace: Trace | None = None,
    engine: Engine | None = None,
    concurrent: bool = False,
) -> Report:
    """Return what happened when every tile of the source went through the compute into the target.

    Sources and targets are arrays, memory maps, `.npy` files (a target file is made, of the type `dtype`), or anything
    that slices: one of each, or a list of several, all of one shape. `compute(*inputs, *outputs)` gets NumPy views of
    the tiles and writes into the outputs; it may be compiled by numba, or a C function `f(in, in_shape, ..., out,
    out_shape)` of pointers to elements and to `int64_t` extents; without a compute the source is copied. It is called
    for one tile at a time, in order; `concurrent` allows several at once, in each of the `workers` and in the caller.

    `overlap` is how far an input tile reaches beyond its output tile, on both sides or as (before, after) for each
    axis; outside the source it finds `pad`: a value, "edge", "reflect", "symmetric" or "wrap". Without a `tile`, one is
    suggested for the `memory_limit`, which bounds all buffers.

    >>> a, b = np.arange(12.0).reshape(3, 4), np.zeros((3, 4))
    >>> stream(a, b, lambda x, y: np.multiply(x, 2, out=y), tile=(2, 2)).tiles
    4
    >>> b[2].tolist()
    [16.0, 18.0, 20.0, 22.0]
    """
    with ExitStack() as files:
        sources = [_opened(thing) for thing in listed(source)]
        if not sources:
            raise TransferError("there is no source; give an array, a file, or a list of them")
        for thing in sources:
            check_operand(thing, "source")
        names = [thing for thing in listed(target) if isinstance(thing, (str, Path))]
        arrays = [thing for thing in listed(target) if not isinstance(thing, (str, Path))]
        for name in names:
            check_npy_name(name)
        for thing in arrays:
            check_operand(thing, "target")
        check_one_shape(sources, arrays)
        if len({os.path.realpath(name) for name in names}) < len(names):
            raise shared_targets()
        shape = tuple([int(n) for n in sources[0].shape])
        kind = np.dtype(sources[0].dtype if dtype is None else dtype)
        function = _callable(compute)
        targets = [
            files.enter_context(new_array(thing, shape, kind)) if isinstance(thing, (str, Path)) else thing
            for thing in listed(target)
        ]
        if compute is not None:
            scheme = scheme or "double"
        elif scheme is None:
            scheme = "direct"
        halo = halo_of(overlap, len(shape))
        if tile is None:
            tile, depth = _suggested(shape, sources, targets, halo, scheme, depth, memory_limit)
        pipeline = Pipeline(
            [Input(thing, tiler_with_halo(thing.shape, tile, halo, order), pad) for thing in sources],
            [Output(thing, Tiler(thing.shape, tile, order=order)) for thing in targets],
            scheme=scheme,
            depth=depth,
            workers=workers,
            engine=engine,
            memory_limit=memory_limit,
        )
        return pipeline.run(function, trace, progress, cancel, concurrent)


def _opened(thing: Any) -> Any:
    """Return an array for a path of an `.npy` file, and anything else as it is."""
    if not isinstance(thing, (str, Path)):
        return thing
    check_npy_name(thing)
    return open_array(thing)


def _suggested(
    shape: tuple[int, ...],
    sources: Sequence[Any],
    targets: Sequence[Any],
    halo: tuple[tuple[int, int], ...],
    scheme: str,
    depth: int | None,
    limit: int | None,
) -> tuple[tuple[int, ...], int | None]:
    found = suggest_tile(
        shape,
        [thing.dtype for thing in sources],
        [thing.dtype for thing in targets] if scheme != "direct" else [],
        DEFAULT_LIMIT if limit is None else limit,
        halo,
        scheme,
        depth,
    )
    return found.tile, found.depth if scheme in ("buffered", "direct") else depth


def _callable(compute: Any) -> Callable[..., Any] | None:
    """Return a compute as something to call with arrays; a C function is given pointers instead."""
    pointer_like = getattr(compute, "ctypes", None)  # numba's cfunc
    if pointer_like is not None and not isinstance(compute, np.ndarray):
        compute = pointer_like
    if not isinstance(compute, ctypes._CFuncPtr):  # type: ignore[attr-defined]  # it has no public name
        if compute is not None and not callable(compute):
            raise TransferError(f"the compute {compute!r} cannot be called")
        return compute  # type: ignore[no-any-return]
    function: Any = compute
    shapes: dict[tuple[int, ...], Any] = {}

    def call(*arrays: Array) -> None:
        given: list[Any] = []
        for array in arrays:
            extent = shapes.get(array.shape)
            if extent is None:
                extent = shapes[array.shape] = (ctypes.c_int64 * array.ndim)(*array.shape)
            given += [ctypes.c_void_p(array.ctypes.data), extent]
        function(*given)  # without the GIL, as every foreign function

    return call
