# SPDX-License-Identifier: Apache-2.0
"""`tilewright stream`: a compute over files larger than memory, tile by tile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import click

from . import exit_codes
from .console import Answer
from .failures import Failure
from .progress import Progress
from .targets import check_target
from .values import FORMAT, SHAPE, SIZE, bytes_in_words
from .verb import verb

PADS = ("edge", "reflect", "symmetric", "wrap")


@verb("stream")
@click.argument("compute")
@click.argument("paths", nargs=-1, required=True, metavar="SOURCE... TARGET")
@click.option("--tile", type=SHAPE, metavar="SHAPE", help="Shape of a tile. [suggested for the memory]")
@click.option("--overlap", type=click.IntRange(0), metavar="N", help="Elements seen around a tile. [the compute's]")
@click.option("--pad", default="0", metavar="VALUE", help=f"Around the array: a number, or {', '.join(PADS)}. [0]")
@click.option("--scheme", type=click.Choice(["simplex", "duplex", "double", "buffered"]), help="Buffering. [double]")
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Depth of --scheme buffered.")
@click.option("--workers", type=click.IntRange(0), default=1, show_default=True, help="Threads that move tiles.")
@click.option("--memory", type=SIZE, metavar="SIZE", help="Most bytes of buffers. [8MiB]")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Argument of the compute; repeat for more."
)
@click.option("--shape", type=SHAPE, metavar="SHAPE", help="Shape of raw sources.")
@click.option("--dtype", type=FORMAT, help="Type of raw sources, and of .npy files that lost it.")
@click.option("--out-dtype", type=FORMAT, help="Type of the target. [that of the first source]")
@click.option("--trace", type=click.Path(dir_okay=False), metavar="FILE", help="Write a trace for ui.perfetto.dev.")
@click.option("--force", is_flag=True, help="Replace the target if it exists.")
def command(
    compute: str,
    paths: tuple[str, ...],
    tile: tuple[int, ...] | None,
    overlap: int | None,
    pad: str,
    scheme: str | None,
    depth: int | None,
    workers: int,
    memory: int | None,
    settings: tuple[str, ...],
    shape: tuple[int, ...] | None,
    dtype: str | None,
    out_dtype: str | None,
    trace: str | None,
    force: bool,
) -> Answer:
    """Run a COMPUTE over files tile by tile, in bounded memory.

    Files are .npy, .zarr, or raw (.raw, .bin, .dat) with --shape and --dtype; the last one is written. COMPUTE is one
    of copy, scale, shift, clip, absolute, add, subtract, cross, box, or MODULE:FUNCTION of your own, which is called
    with NumPy views, inputs first, and writes into the last. Ctrl-C stops it and leaves no file behind.

    \b
    tilewright stream scale in.npy out.npy --set factor=3
    tilewright stream box in.npy out.npy --pad edge --memory 64MiB
    tilewright stream my_filters:sharpen in.zarr out.zarr --overlap 2 --workers 2
    """
    from ..files.arrays import new_array, open_array
    from ..tiling import Trace, stream

    *sources, target = paths
    function, halo = _compute(compute, len(sources), _settings(settings))
    if not sources:
        raise click.UsageError(f"{target} is the target; name at least one source before it")
    for path, replace in ((target, force), (trace, True)):
        if path is not None:
            check_target(path, replace)
    arrays = [open_array(path, shape, dtype) for path in sources]
    if not arrays[0].shape:
        raise Failure(f"{sources[0]} holds a single number, which has no tiles; give an array", exit_codes.INPUT)
    kept = Trace() if trace is not None else None
    with (
        new_array(target, arrays[0].shape, out_dtype or arrays[0].dtype, tile) as made,
        Progress(compute, 0, "tiles") as progress,
    ):
        report = stream(
            arrays,
            made,
            function,
            tile=tile,
            overlap=halo if overlap is None else overlap,
            pad=_pad(pad),
            scheme=scheme,
            workers=workers,
            depth=depth,
            memory_limit=memory,
            progress=progress.update,
            trace=kept,
        )
    if kept is not None and trace is not None:
        kept.write(trace)
    data = {
        "compute": compute,
        "sources": sources,
        "target": target,
        "shape": arrays[0].shape,
        "tiles": report.tiles,
        "seconds": report.seconds,
        "bytes_in": report.bytes_in,
        "bytes_out": report.bytes_out,
        "bytes_per_second": report.bytes_per_second,
        "buffer_bytes": report.buffer_bytes,
        "trace": None if kept is None else {"path": trace, **kept.summary()},
    }
    return Answer(lambda: _in_words(data), data)


def _in_words(data: dict[str, Any]) -> str:
    speed = f"{bytes_in_words(int(data['bytes_per_second']))}/s"
    read, wrote, buffers = (bytes_in_words(data[name]) for name in ("bytes_in", "bytes_out", "buffer_bytes"))
    lines = [
        f"{data['compute']} over {list(data['shape'])}: {data['tiles']} tiles in {data['seconds']:.3g} s, {speed}",
        f"read {read}, wrote {wrote}, buffers {buffers}",
        f"wrote {data['target']}",
    ]
    if data["trace"]:
        lines.append(
            f"wrote {data['trace']['path']}; {100 * data['trace']['hidden']:.0f} % of the transfers were hidden"
        )
    return "\n".join(lines)


def _compute(name: str, sources: int, settings: dict[str, Any]) -> tuple[Callable[..., Any] | None, int]:
    """Return the function of a compute, and how far it looks around."""
    from ..tiling.named_computes import COMPUTES

    if ":" in name:
        return _guarded(_imported(name), name, settings), 0
    known = COMPUTES.get(name)
    if known is None:
        raise click.UsageError(f"there is no compute {name!r}; choose one of {', '.join(COMPUTES)}, or MODULE:FUNCTION")
    if sources and known.inputs != sources:
        raise click.UsageError(f"{name} takes {known.inputs} source(s), got {sources}")
    if known.function is None:
        if settings:
            raise click.UsageError(f"{name} takes no --set, got {', '.join(settings)}")
        return None, 0
    return _guarded(known.function, name, settings), known.halo


def _imported(name: str) -> Any:
    """Return the function that `module:function` names; modules of the current folder are found, too."""
    module, _, path = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as problem:
        raise click.UsageError(f"{name}: there is no module {problem.name!r} here or where Python looks") from None
    except AttributeError as problem:
        raise click.UsageError(f"{name}: {problem}") from None
    if not callable(found) and not hasattr(found, "ctypes"):
        raise click.UsageError(f"{name} is a {type(found).__name__}, which cannot be called")
    return found


def _guarded(function: Any, name: str, settings: dict[str, Any]) -> Any:
    """Return a compute whose errors say whose they are; compiled ones are left alone."""
    if not callable(function):
        return function
    ready = partial(function, **settings) if settings else function

    def call(*arrays: Any) -> Any:
        try:
            return ready(*arrays)
        except Exception as problem:
            shapes = ", ".join(str(list(array.shape)) for array in arrays)
            raise Failure(f"{name} failed on tiles of {shapes}: {type(problem).__name__}: {problem}") from problem

    return call


def _settings(texts: tuple[str, ...]) -> dict[str, Any]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"--set {text!r}: write NAME=VALUE")
        found[name] = _number(value)
    return found


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _pad(text: str) -> Any:
    value = _number(text)
    if isinstance(value, str) and value not in PADS:
        raise click.UsageError(f"--pad {text!r}: use a number, or one of {', '.join(PADS)}")
    return value
