# SPDX-License-Identifier: Apache-2.0
"""`tilewright stream`: run a compute over files larger than memory, tile by tile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import Any

import click

from .._text import format_bytes
from ..errors import FileFormatError
from .console import Answer, CommandError, ExitCode, Progress, check_output_path
from .options import FILE, FORMAT, SHAPE, SIZE
from .program import refuse_options, verb

PADS = ("edge", "reflect", "symmetric", "wrap")


@verb("stream", writes_unless=())
@click.argument("compute")
@click.argument("paths", nargs=-1, required=True, metavar="SOURCE... TARGET")
@click.option("--tile", type=SHAPE, help="Shape of a tile. [suggested for the memory]")
@click.option(
    "--overlap",
    type=click.IntRange(0),
    metavar="N",
    help="Width of the halo read around a tile. [what the compute needs]",
)
@click.option(
    "--pad", default="0", metavar="VALUE", help=f"Values outside the array: a number, or {', '.join(PADS)}. [0]"
)
@click.option("--scheme", type=click.Choice(["simplex", "duplex", "double", "buffered"]), help="Buffering. [double]")
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Depth of --scheme buffered.")
@click.option("--workers", type=click.IntRange(0), help="Threads besides the main one. [1; one per core for zarr]")
@click.option("--memory", type=SIZE, help="Limit of buffers and cached chunks. [8MiB; 256MiB for zarr]")
@click.option("--chunks", type=SHAPE, help="Chunks of a new target. [the source's]")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Argument of the compute; may be repeated."
)
@click.option("--shape", type=SHAPE, help="Shape of raw sources.")
@click.option("--dtype", type=FORMAT, help="Type of raw sources, and of .npy files without one.")
@click.option("--out-dtype", type=FORMAT, help="Type of the target. [the first source's]")
@click.option("--trace", type=FILE, help="Write a trace for ui.perfetto.dev.")
@click.option("--force", is_flag=True, help="Replace the target if it exists.")
def command(
    compute: str,
    paths: tuple[str, ...],
    tile: tuple[int, ...] | None,
    overlap: int | None,
    pad: str,
    scheme: str | None,
    depth: int | None,
    workers: int | None,
    memory: int | None,
    chunks: tuple[int, ...] | None,
    settings: tuple[str, ...],
    shape: tuple[int, ...] | None,
    dtype: str | None,
    out_dtype: str | None,
    trace: str | None,
    force: bool,
) -> Answer:
    """Run a COMPUTE over arrays tile by tile, in bounded memory.

    Arrays are .npy, .zarr, FILE.h5::DATASET, URLs of these (s3://, https://, memory://, ...), or raw
    (.raw, .bin, .dat) with --shape and --dtype; the last one is written. COMPUTE is one of copy, scale, shift, clip,
    absolute, add, subtract, cross, box, or MODULE:FUNCTION of your own, which is called with NumPy views, inputs
    first, and writes into the last. Ctrl-C stops it without leaving a file.

    \b
    tilewright stream scale in.npy out.npy --set factor=3
    tilewright stream box in.npy out.npy --pad edge --memory 64MiB
    tilewright stream my_filters:sharpen in.zarr out.zarr --overlap 2
    tilewright stream copy in.h5::x s3://bucket/x.zarr --chunks 256x256
    """
    from ..files import open_array, parse_array_name
    from ..tiling import Trace, create_like, stream

    *sources, target = paths
    pad_value = _parse_pad(pad)
    function, halo = _find_compute(compute, len(sources), _parse_settings(settings))
    if not sources:
        raise click.UsageError(f"no source given: {target} is the target; name at least one source before it")
    _check_target(target, force)
    if trace is not None:
        check_output_path(trace)
    file_types = [parse_array_name(path).kind for path in sources]
    if "raw" not in file_types:
        refuse_options(["shape"], "without a raw source")
    if not {"raw", "npy"} & {*file_types}:
        refuse_options(["dtype"], "without a raw source, or an .npy file")
    new_chunks = chunks or tile
    if parse_array_name(target).kind in ("raw", "npy"):
        refuse_options(["chunks"], "on a target without chunks")
        new_chunks = None
    if not (halo if overlap is None else overlap):
        refuse_options(["pad"], "without an overlap")
    arrays = [
        open_array(path, shape if file_type == "raw" else None, dtype if file_type in ("raw", "npy") else None)
        for path, file_type in zip(sources, file_types, strict=True)
    ]
    if not arrays[0].shape:
        raise CommandError(
            f"{sources[0]} holds a scalar, which cannot be cut into tiles; give an array", ExitCode.INPUT
        )
    dropped = {path: sorted(getattr(array, "attrs", None) or {}) for path, array in zip(sources, arrays, strict=True)}
    notes = [f"the attributes of {path} are not copied: {', '.join(names)}" for path, names in dropped.items() if names]
    for note in notes:
        click.echo(f"note: {note}", err=True)
    recorder = Trace() if trace is not None else None
    with (
        create_like(target, arrays[0], out_dtype or arrays[0].dtype, new_chunks) as created,
        Progress(compute, "tiles") as progress,
    ):
        report = stream(
            arrays,
            created,
            function,
            tile=tile,
            overlap=halo if overlap is None else overlap,
            pad=pad_value,
            scheme=scheme,
            workers=workers,
            depth=depth,
            memory_limit=memory,
            progress=progress.update,
            trace=recorder,
        )
    if recorder is not None and trace is not None:
        recorder.write(trace)
    data = {
        "compute": compute,
        "sources": sources,
        "target": target,
        "shape": arrays[0].shape,
        **asdict(report),
        "bytes_per_second": report.bytes_per_second,
        "notes": notes,
        "trace": None if recorder is None else {"path": trace, **recorder.summary()},
    }
    return Answer(lambda: _format_answer(data), data)


def _check_target(target: str, force: bool) -> None:
    """Raise if the folder of a target does not exist, or something would be replaced unasked."""
    from ..files import open_array, parse_array_name

    name = parse_array_name(target)
    if name.is_local and name.kind != "hdf5":
        check_output_path(name.path, force)
        return
    if name.is_local and name.kind == "hdf5":
        check_output_path(name.path)
    try:
        open_array(target)
    except (OSError, FileFormatError):
        return
    if not force:
        raise CommandError(f"{target} exists; choose another target, or --force to replace it", ExitCode.OUTPUT)


def _format_answer(data: dict[str, Any]) -> str:
    speed = f"{format_bytes(int(data['bytes_per_second']))}/s"
    read, wrote, buffers = (format_bytes(data[name]) for name in ("bytes_in", "bytes_out", "buffer_bytes"))
    lines = [
        f"{data['compute']} over {list(data['shape'])}: {data['tiles']} tiles in {data['seconds']:.3g} s, {speed}",
        f"read {read}, wrote {wrote}, buffers {buffers}",
        f"wrote {data['target']}",
    ]
    if data["trace"]:
        lines.append(
            f"wrote {data['trace']['path']}; {100 * data['trace']['hidden']:.0f} % of the transfer time was hidden"
        )
    return "\n".join(lines)


def _find_compute(name: str, sources: int, settings: dict[str, Any]) -> tuple[Callable[..., Any] | None, int]:
    """Return the function of a compute, and the width of the halo it reads."""
    from ..tiling import COMPUTES

    if ":" in name:
        return _wrap_compute(_import_function(name), name, settings), 0
    compute = COMPUTES.get(name)
    if compute is None:
        raise click.UsageError(f"unknown compute {name!r}; choose one of {', '.join(COMPUTES)}, or MODULE:FUNCTION")
    if sources and compute.inputs != sources:
        raise click.UsageError(f"{name} takes {compute.inputs} source(s), got {sources}")
    if compute.function is None:
        if settings:
            raise click.UsageError(f"{name} takes no --set, got {', '.join(settings)}")
        return None, 0
    return _wrap_compute(compute.function, name, settings), compute.halo


def _import_function(name: str) -> Any:
    """Return the function that `module:function` names; the current folder is searched first."""
    module, _, path = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        target: Any = import_module(module)
        for part in path.split("."):
            target = getattr(target, part)
    except ModuleNotFoundError as problem:
        raise click.UsageError(
            f"{name}: no module {problem.name!r} in the current folder or on Python's path"
        ) from None
    except AttributeError as problem:
        raise click.UsageError(f"{name}: {problem}") from None
    if not callable(target) and not hasattr(target, "ctypes"):
        raise click.UsageError(f"{name} is a {type(target).__name__}, which cannot be called")
    return target


def _wrap_compute(function: object, name: str, settings: dict[str, Any]) -> Any:
    """Return a compute that raises its errors with its name; a compiled one is returned as it is."""
    if not callable(function):
        return function
    ready = partial(function, **settings) if settings else function

    def call(*arrays: Any) -> Any:
        try:
            return ready(*arrays)
        except Exception as problem:
            shapes = ", ".join(str(list(array.shape)) for array in arrays)
            raise CommandError(f"{name} failed on tiles of {shapes}: {type(problem).__name__}: {problem}") from problem

    return call


def _parse_settings(texts: tuple[str, ...]) -> dict[str, Any]:
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"--set {text!r}: write NAME=VALUE")
        if name in settings:
            raise click.UsageError(f"--set {text!r}: {name} is set twice; set it once")
        settings[name] = _parse_number(value)
    return settings


def _parse_number(text: str) -> Any:
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def _parse_pad(text: str) -> Any:
    value = _parse_number(text)
    if isinstance(value, str) and value not in PADS:
        raise click.UsageError(f"--pad {text!r}: use a number, or one of {', '.join(PADS)}")
    return value
