# SPDX-License-Identifier: Apache-2.0
"""`stream`: an array of any size through a compute, tile by tile, with bounded memory."""

from __future__ import annotations

import ctypes
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import TransferError
from .budget import DEFAULT_LIMIT, suggest_tile
from .execution import Progress, Switch
from .operands import Input, Output, halo_of, listed, tiler_with_halo
from .pipeline import Pipeline, Report
from .sharing import shared_targets
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
        shape = tuple([int(n) for n in sources[0].shape])
        kind = np.dtype(sources[0].dtype if dtype is None else dtype)
        names = [os.path.abspath(thing) for thing in listed(target) if isinstance(thing, (str, Path))]
        if len(set(names)) < len(names):
            raise shared_targets()
        targets = [_made(thing, shape, kind, files) for thing in listed(target)]
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
        return pipeline.run(_callable(compute), trace, progress, cancel, concurrent)


def _opened(thing: Any) -> Any:
    """Return an array for a path of an `.npy` file, and anything else as it is."""
    if not isinstance(thing, (str, Path)):
        return thing
    if Path(thing).suffix != ".npy":
        raise TransferError(f"{thing} is not an .npy file; open it yourself, and pass what slices")
    return np.load(thing, mmap_mode="r", allow_pickle=False)


def _made(thing: Any, shape: tuple[int, ...], dtype: np.dtype[Any], files: ExitStack) -> Any:
    """Return an array for a path, in a new file that takes its name when all is written."""
    if not isinstance(thing, (str, Path)):
        return thing
    path = Path(thing)
    if path.suffix != ".npy":
        raise TransferError(f"{path} is not an .npy file; make the target yourself, and pass what slices")
    # a name of its own: another process that makes the same file would cut off what is mapped here
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    array = np.lib.format.open_memmap(draft, mode="w+", dtype=dtype, shape=shape)

    def finish(kind: Any, *_: object) -> None:
        if kind is None:
            draft.replace(path)
        else:
            draft.unlink(missing_ok=True)

    files.push(finish)
    return array


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
