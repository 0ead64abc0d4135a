# SPDX-License-Identifier: Apache-2.0
"""`tilewright convert`: checkpoints to tiled files, planned, streamed, resumable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from . import exit_codes
from .console import Answer, Console
from .failures import Failure
from .progress_bar import ProgressBar
from .spec_options import SpecOptions, spec_options
from .values import SIZE, ParamType, bytes_in_words
from .verb import follow_links as links_option
from .verb import verb

if TYPE_CHECKING:
    from ..conversion import ConversionPlan, ConversionReport, Event

KINDS = ("tensorbin", "safetensors", "banks", "npy")
_MOST_LINES = 40  # of the plan's table
_MOST_NOTES = 8
_WIDTH = 80


@verb("convert")
@click.argument("paths", nargs=-1, required=True, metavar="SOURCE... OUT")
@click.option("--to", type=click.Choice(KINDS), help="Kind of output. [tensorbin; safetensors if OUT ends so]")
@click.option(
    "--rules", type=click.Path(dir_okay=False), metavar="FILE", help="TOML: patterns of names, and their settings."
)
@click.option("--transpose", is_flag=True, help="Exchange the last two dimensions of every tensor.")
@click.option("--pad-value", type=float, metavar="X", help="Value of padding. [0]")
@click.option("--memory", "memory_limit", type=SIZE, default="1GiB", show_default=True, help="Most memory to use.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Threads. [one more than cores]")
@click.option("--resume", is_flag=True, help="Keep what an earlier run finished, and make the rest.")
@click.option("--force", is_flag=True, help="Replace what is there.")
@click.option("--dry-run", is_flag=True, help="Print the plan, and write nothing.")
@click.option("--part", metavar="I/N", help="Do one of N parts, counted from 0; each on its own machine.")
@click.option("--dask", metavar="ADDRESS", help="Spread the tensors over a Dask cluster.")
@links_option
@spec_options
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    to: str | None,
    rules: str | None,
    transpose: bool,
    pad_value: float | None,
    memory_limit: int,
    jobs: int | None,
    resume: bool,
    force: bool,
    dry_run: bool,
    part: str | None,
    dask: str | None,
    follow_links: bool,
    options: SpecOptions,
) -> Answer:
    """Convert checkpoints to tiled files, in bounded memory, resumably.

    SOURCE is .safetensors (also sharded, by its index), .npy, .npz, .tensorbin, or a directory of these. OUT is a
    directory with one .tensorbin a tensor and a manifest, or one .safetensors file. Number formats for all tensors
    leave integers as they are; rules say more, and the last line that fits a name wins:

    \b
    "*" = {dtype = "bfloat8_b"}
    "*norm*" = {dtype = "bfloat16"}
    "*.mlp.*.weight" = {dtype = "bfloat4_b", transpose = true}

    \b
    tilewright convert model.safetensors out/ --dtype bfloat8_b
    tilewright convert checkpoint/ out/ --rules rules.toml --memory 4GiB
    tilewright convert checkpoint/ out/ --rules rules.toml --part 0/4
    """
    from ..conversion import plan_conversion, run_plan

    *sources, out = paths
    if not sources:
        raise click.UsageError(f"{out} is the output; name at least one source before it")
    settings = _settings(ctx, options, to)
    settings |= {"transpose": transpose or None, "pad_value": pad_value}
    plan = plan_conversion(sources, out, to, rules, follow_links, **settings)
    console = Console.current()
    if not console.json:
        for note in plan.notes[:_MOST_NOTES]:
            console.note(f"note: {note}")
        if len(plan.notes) > _MOST_NOTES:
            console.note(f"note: and {len(plan.notes) - _MOST_NOTES} more like these; --json lists all")
    if dry_run:
        seconds = plan.seconds(jobs)
        return Answer(lambda: _plan_in_words(plan, seconds), {**plan.to_json(), "seconds": seconds})
    with _executor(dask) as executor, ProgressBar("converting") as bar, _output_errors(plan):
        report = run_plan(
            plan,
            memory=memory_limit,
            jobs=jobs,
            resume=resume,
            force=force,
            part=_part(part),
            executor=executor,
            progress=lambda event: _tell(event, bar, console),
        )
    return Answer(lambda: _report_in_words(report), {"event": "report", **report.to_json()})


def _for_files(option: click.Parameter) -> click.Parameter:
    """Return an option as it is for files, where the source decides what is not said; others share the original."""
    changes: dict[str, Any] = {
        "dtype": {"default": None, "show_default": False, "help": "Number format. [that of the source]"},
        "layout": {"help": "Pages: rows, or tiles. [tile]"},
        "alignment": {"hidden": True, "expose_value": True, "type": _NotForFiles()},
    }
    if option.name not in changes:
        return option
    own = copy(option)
    for name, value in changes[option.name].items():
        setattr(own, name, value)
    return own


class _NotForFiles(ParamType):
    """The type of an option that this verb does not have."""

    name = "nothing"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse the value."""
        self.fail("files have the padding of their tiles and shards, and no other", param, ctx)


command.params = [_for_files(each) for each in command.params]


def _settings(ctx: click.Context, options: SpecOptions, to: str | None) -> dict[str, Any]:
    """Return the settings that were given on the command line; what was not given is the converter's to choose."""
    default = click.core.ParameterSource.DEFAULT
    given = {each.name for each in fields(SpecOptions) if ctx.get_parameter_source(each.name) is not default}
    found: dict[str, Any] = {name: getattr(options, name) for name in given - {"chip", "dispatch", "harvested"}}
    # a chip that nobody asked for is not written into manifests, unless something depends on it
    on_a_chip = given & {"chip", "dispatch", "harvested", "shard", "buffer"} or to == "banks"
    return {**found, "chip": options.machine() if on_a_chip else None}


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", text.strip())
    if found is None or int(found[1]) >= int(found[2]):
        raise click.UsageError(f"--part {text} is no part; write I/N with I from 0 to N - 1, such as 0/4")
    return int(found[1]), int(found[2])


@contextmanager
def _executor(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    distributed: Any = import_module("distributed")
    try:
        client = distributed.Client(address)
    except (OSError, ValueError) as problem:
        raise Failure(f"no Dask scheduler answers at {address}: {problem}; start one with dask scheduler") from None
    with client:
        yield client.get_executor()


@contextmanager
def _output_errors(plan: ConversionPlan) -> Iterator[None]:
    """Let errors about files that are no sources be errors of the output."""
    out = str(plan.out)
    try:
        yield
    except FileExistsError as problem:
        said = re.sub(r"\b(resume|force)\b", r"--\1", problem.strerror or "")
        raise Failure(f"{problem.filename or out}: {said}", exit_codes.OUTPUT) from None
    except OSError as problem:
        if problem.filename in {str(item.source.path) for item in plan.items}:
            raise
        reason = (problem.strerror or str(problem)).lower()
        kept = "" if isinstance(problem, BlockingIOError) else "; what is finished is kept, go on with --resume"
        raise Failure(f"{problem.filename or out}: {reason}{kept}", exit_codes.OUTPUT) from problem


def _tell(event: Event, bar: ProgressBar, console: Console) -> None:
    if event.kind != "bytes":
        console.event(event.kind, **{name: value for name, value in event.to_json().items() if name != "kind"})
    bar.update(event.bytes_done, event.bytes_total, event.tensors_done, event.tensors_total, event.name)


def _plan_in_words(plan: ConversionPlan, seconds: float) -> str:
    lines = [f"{len(plan.items)} tensors to {plan.out} ({plan.to})"]
    rows = [
        (item.name, f"{item.source.kind} {_shape(item.source.shape)}", _target(item), bytes_in_words(item.bytes_out))
        for item in plan.items[:_MOST_LINES]
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    room = max(12, _WIDTH - sum(widths[1:]) - 8)
    names = min(widths[0], room)
    for name, *rest in rows:
        columns = [f"{each:<{width}}" for each, width in zip(rest[:2], widths[1:3], strict=True)]
        lines.append(f"  {_elided(name, names):<{names}}  {columns[0]}  {columns[1]}  {rest[2]:>{widths[3]}}")
    if len(plan.items) > _MOST_LINES:
        lines.append(f"  ... and {len(plan.items) - _MOST_LINES} more; --json lists all")
    waste = plan.padding_bytes / max(1, plan.bytes_out)
    lines.append(
        f"reads {bytes_in_words(plan.bytes_in)}, writes {bytes_in_words(plan.bytes_out)},"
        f" of which {bytes_in_words(plan.padding_bytes)} padding ({waste:.0%})"
    )
    if plan.skipped:
        lines.append(f"leaves out {len(plan.skipped)}: {', '.join(plan.skipped[:4])}" + "..." * (len(plan.skipped) > 4))
    lines.append(f"takes about {_time(seconds)} on this machine, if the disk keeps up")
    return "\n".join(lines)


def _elided(name: str, width: int) -> str:
    """Return a name that is too long with its middle left out: both ends tell tensors apart."""
    if len(name) <= width:
        return name
    front = (width - 2) // 3
    return f"{name[:front]}..{name[len(name) - (width - 2 - front) :]}"


def _target(item: Any) -> str:
    spec, turned = item.target.spec, item.target.order != tuple(range(len(item.target.order)))
    tiles = f"in {spec.tile.height}x{spec.tile.width}" if spec.layout.name == "TILE" else "in rows"
    shards = "" if spec.memory.sharding is None else f", {spec.memory.memory_layout.name.lower()}"
    return f"{spec.dtype} {_shape(spec.shape.logical) + ' ' if turned else ''}{tiles}{shards}"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _time(seconds: float) -> str:
    if seconds != seconds:
        return "an unknown time"
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _report_in_words(report: ConversionReport) -> str:
    rate = f", {bytes_in_words(int(report.bytes_in / report.seconds))}/s" if report.seconds and report.bytes_in else ""
    kept = f", {report.kept} kept" if report.kept else ""
    left_out = f", {len(report.skipped)} left out" if report.skipped else ""
    line = (
        f"{report.converted} tensors converted{kept}{left_out}: {bytes_in_words(report.bytes_in)} read,"
        f" {bytes_in_words(report.bytes_out)} written in {_time(report.seconds)}{rate}"
    )
    if report.complete:
        return f"{line}\n{report.out} is complete; check it with tilewright verify {report.out}"
    return f"{line}\n{report.out} is not complete: {report.elsewhere} tensors belong to other parts"
