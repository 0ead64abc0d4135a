# SPDX-License-Identifier: Apache-2.0
"""`tilewright convert`: convert checkpoints to tiled files, in bounded memory, resumably."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields
from functools import reduce
from importlib import import_module
from operator import add
from typing import TYPE_CHECKING, Any

import click

from .._text import NUMBER_IN_NAME, count_of, format_bytes, format_table, spell_extents
from ..errors import UnreachableError
from .console import Answer, CommandError, Console, ExitCode, Progress, table_width
from .options import SIZE, SpecOptions, group_options, spec_options
from .program import follow_links_option, refuse_options, reject_options, verb

if TYPE_CHECKING:
    from ..conversion import ConversionItem, ConversionPlan, ConversionReport, ProgressEvent, Rounding

KINDS = ("tensorbin", "safetensors", "banks", "npy")
_MAX_NOTES = 8
_MAX_LISTED = 8  # tensors that were rounded


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is run, as given on the command line."""

    memory_limit: int
    jobs: int | None
    resume: bool
    force: bool
    dry_run: bool
    files: bool
    part: str | None
    dask: str | None

    def run_plan(self, plan: ConversionPlan, label: str) -> ConversionReport:
        """Run a plan, show its progress under a label, and return the report."""
        from ..conversion import run_plan

        refuse_options(["files"], "without --dry-run")
        console, part = Console.current(), _parse_part(self.part)
        with _open_dask_executor(self.dask) as executor, Progress(label) as bar, _report_output_errors(plan):
            return run_plan(
                plan,
                memory=self.memory_limit,
                jobs=self.jobs,
                resume=self.resume,
                force=self.force,
                part=part,
                executor=executor,
                progress=lambda event: _report_progress(event, bar, console),
            )


def run_options(verb_name: str, noun: str, memory: str, dry_run: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that gives a verb the options of a run, as the argument `run`, in words about its files."""
    declared = (
        click.Option(["--memory", "memory_limit"], type=SIZE, default=memory, show_default=True, help="Memory limit."),
        click.Option(["--jobs"], type=click.IntRange(1), metavar="N", help="Threads. [one more than cores]"),
        click.Option(["--resume"], is_flag=True, help=f"Continue an earlier run: skip its finished {noun}."),
        click.Option(["--force"], is_flag=True, help="Replace existing output."),
        click.Option(["--dry-run"], is_flag=True, help=dry_run),
        click.Option(["--files"], is_flag=True, help=f"With --dry-run: list all {noun}, not like ones together."),
        click.Option(["--part"], metavar="I/N", help=f"{verb_name} part I of N, counted from 0; one part per machine."),
        click.Option(["--dask"], metavar="ADDRESS", help=f"Spread the {noun} over a Dask cluster."),
    )
    return group_options("run", RunOptions, declared)


@verb("convert", writes_unless=("dry-run",))
@click.argument("paths", nargs=-1, required=True, metavar="SOURCE... OUT")
@click.option("--to", type=click.Choice(KINDS), help="Output type. [tensorbin, or safetensors if OUT is one]")
@click.option("--rules", metavar="NAME", help="TOML file of name patterns and settings, or a set, such as gpt_oss.")
@click.option("--transpose", is_flag=True, help="Transpose the last two dimensions of every tensor.")
@click.option("--like-ttnn", is_flag=True, help="Round to bfloat16 before blocks for sharded memory, as ttnn does.")
@click.option("--pad-value", type=float, metavar="X", help="Value of padding. [0]")
@run_options("Convert", "tensors", "1GiB", "Print the plan, like tensors together, and write nothing.")
@follow_links_option
@spec_options
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    to: str | None,
    rules: str | None,
    transpose: bool,
    like_ttnn: bool,
    pad_value: float | None,
    follow_links: bool,
    run: RunOptions,
    options: SpecOptions,
) -> Answer:
    """Convert checkpoints to tiled files, in bounded memory, resumably.

    SOURCE is a checkpoint of safetensors, GGUF, PyTorch, ONNX or HDF5 (also sharded, by its index), .npy, .npz,
    .tensorbin, a directory of these, or a URL. OUT is a directory with one .tensorbin per tensor and a manifest, or
    one .safetensors file. --dtype and patterns leave integer tensors as they are, unless a rule has a tensor's own
    name; the last line that matches a name wins:

    \b
    "*" = {dtype = "bfloat8_b"}
    "*norm*" = {dtype = "bfloat16"}
    "*.mlp.*.weight" = {dtype = "bfloat4_b", transpose = true}

    \b
    tilewright convert model.safetensors out/ --dtype bfloat8_b
    tilewright convert checkpoint/ out/ --rules rules.toml --memory 4GiB
    tilewright convert checkpoint/ out/ --rules rules.toml --part 0/4
    """
    from ..conversion import plan_conversion

    *sources, out = paths
    if not sources:
        raise click.UsageError(f"no source given: {out} is the output; name at least one source before it")
    reject_options(["alignment"], "is not for files, which are padded to their tiles and shards only")
    settings = _typed_settings(ctx, options, to)
    settings |= {"transpose": transpose or None, "like_ttnn": like_ttnn or None, "pad_value": pad_value}
    plan = plan_conversion(sources, out, to, rules, follow_links, **settings)
    console = Console.current()
    if not console.json:
        for note in plan.notes[:_MAX_NOTES]:
            console.print_note(f"note: {note}")
        if len(plan.notes) > _MAX_NOTES:
            console.print_note(f"note: and {len(plan.notes) - _MAX_NOTES} more like these; --json lists all")
    if run.dry_run:
        refuse_options(["part"], "on the plan, which is of all parts")
        seconds = plan.seconds(run.jobs)
        return Answer(lambda: _format_plan(plan, seconds, run.files), {**plan.to_json(), "seconds": seconds})
    report = run.run_plan(plan, "converting")
    return Answer(lambda: format_report(report, len(plan.notes)), {"event": "report", **report.to_json()})


def _adapt_option_to_files(option: click.Parameter) -> click.Parameter:
    """Return an option as it applies to files, where the source decides the defaults."""
    changes: dict[str, Any] = {
        "dtype": {"default": None, "show_default": False, "help": "Number format. [the source's]"},
        "layout": {"help": "Pages: rows, or tiles. [tile]"},
        "alignment": {"hidden": True},
    }
    if option.name not in changes:
        return option
    own = copy(option)
    for name, value in changes[option.name].items():
        setattr(own, name, value)
    return own


command.params = [_adapt_option_to_files(option) for option in command.params]


def _typed_settings(ctx: click.Context, options: SpecOptions, to: str | None) -> dict[str, Any]:
    """Return the settings that were typed; the converter chooses the others."""
    default = click.core.ParameterSource.DEFAULT
    typed = {field.name for field in fields(SpecOptions) if ctx.get_parameter_source(field.name) is not default}
    settings: dict[str, Any] = {name: getattr(options, name) for name in typed - {"chip", "dispatch", "harvested"}}
    # the default chip is not written into manifests, unless something depends on it
    on_a_chip = typed & {"chip", "dispatch", "harvested", "shard", "buffer"} or to == "banks"
    return {**settings, "chip": options.build_chip() if on_a_chip else None}


def _parse_part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]+)/([0-9]+)", text.strip())
    if match is None or int(match[1]) >= int(match[2]):
        raise click.UsageError(f"--part {text} is not a part; write I/N with I from 0 to N - 1, such as 0/4")
    return int(match[1]), int(match[2])


@contextmanager
def _open_dask_executor(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    distributed: Any = import_module("distributed")
    try:
        client = distributed.Client(address)
    except (OSError, ValueError) as problem:
        raise CommandError(f"no Dask scheduler at {address}: {problem}; start one with: dask scheduler") from None
    with client:
        yield client.get_executor()


@contextmanager
def _report_output_errors(plan: ConversionPlan) -> Iterator[None]:
    """Report errors of files that are not sources as errors of the output, and how to go on after Ctrl-C."""
    out = str(plan.out)
    try:
        yield
    except BrokenPipeError:  # of standard output, which reports progress
        raise
    except KeyboardInterrupt:
        raise CommandError(
            "interrupted; finished tensors are saved, continue with --resume", ExitCode.INTERRUPTED
        ) from None
    except UnreachableError as problem:
        raise UnreachableError(f"{problem}; finished tensors are saved, continue with --resume") from None
    except FileExistsError as problem:
        message = re.sub(r"\b(resume|force)\b", r"--\1", problem.strerror or "")
        raise CommandError(f"{problem.filename or out}: {message}", ExitCode.OUTPUT) from None
    except OSError as problem:
        if problem.filename in {str(tensor.path) for item in plan.items for tensor in item.source.tensors.values()}:
            raise
        reason = (problem.strerror or str(problem)).lower()
        hint = "; choose another output, or continue with --resume"
        if problem.errno == errno.ENOSPC:
            hint = "; make space and continue with --resume, which keeps finished tensors, or choose another output"
        if isinstance(problem, BlockingIOError):
            hint = ""
        raise CommandError(f"{problem.filename or out}: {reason}{hint}", ExitCode.OUTPUT) from problem


def _report_progress(event: ProgressEvent, bar: Progress, console: Console) -> None:
    if event.kind != "bytes":
        console.print_event(event.kind, **{name: value for name, value in event.to_json().items() if name != "kind"})
    bar.update(event.bytes_done, event.bytes_total, f"{event.tensors_done}/{event.tensors_total} tensors")


def list_items(
    plan: ConversionPlan, describe: Callable[[ConversionItem], tuple[str, ...]], number: str, noun: str, every: bool
) -> list[tuple[str, ...]]:
    """Return rows of a table of a plan: the name and facts from `describe`, and the count and bytes of like items.

    Like are items with the same facts, and the same name but for what matches the pattern `number`, unless `every` one
    has a row.
    """
    groups: dict[tuple[str, ...], list[ConversionItem]] = {}
    for item in plan.items:
        name, *facts = describe(item)
        groups.setdefault((name if every else re.sub(number, "*", name), *facts), []).append(item)
    return [
        (
            pattern if len(items) > 1 else describe(items[0])[0],
            *facts,
            count_of(len(items), noun),
            format_bytes(sum([item.bytes_out for item in items])),
        )
        for (pattern, *facts), items in groups.items()
    ]


def _format_plan(plan: ConversionPlan, seconds: float, every: bool) -> str:
    def describe(item: ConversionItem) -> tuple[str, ...]:
        return item.name, f"{item.source.kind} {spell_extents(item.source_shape, 'scalar')}", _describe_target(item)

    rows = list_items(plan, describe, NUMBER_IN_NAME.pattern, "tensor", every)
    lines = [f"{count_of(len(plan.items), 'tensor')} to {plan.out} ({plan.to})"]
    lines += format_table(rows, table_width(), right=[3, 4], indent="  ")
    waste = plan.padding_bytes / max(1, plan.bytes_out)
    lines.append(
        f"reads {format_bytes(plan.bytes_in)}, writes {format_bytes(plan.bytes_out)},"
        f" of which {format_bytes(plan.padding_bytes)} padding ({waste:.0%})"
    )
    if plan.skipped:
        lines.append(f"skips {len(plan.skipped)}: {', '.join(plan.skipped[:4])}" + "..." * (len(plan.skipped) > 4))
    lines.append(f"takes about {format_seconds(seconds)} on this machine if the disk is fast enough")
    return "\n".join(lines)


def _describe_target(item: ConversionItem) -> str:
    spec, turned = item.target.spec, item.target.order is not None
    tiles = f"in {spec.tile.height}x{spec.tile.width}" if spec.is_tiled else "in rows"
    shards = "" if spec.memory.sharding is None else f", {spec.memory.memory_layout.name.lower()}"
    return f"{spec.dtype} {spell_extents(spec.shape.logical, 'scalar') + ' ' if turned else ''}{tiles}{shards}"


def format_seconds(seconds: float) -> str:
    if seconds != seconds:
        return "an unknown time"
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def format_rounding(rounding: Mapping[str, Rounding]) -> list[str]:
    """Return lines that state which tensors are exact, and how far the others are from their sources."""
    rounded = {name: counts for name, counts in rounding.items() if not counts.is_exact}
    exact = len(rounding) - len(rounded)
    lines = [f"{count_of(exact, 'tensor')} exact"] if exact else []
    if len(rounded) <= _MAX_LISTED:
        return lines + [f"{name}: {counts}" for name, counts in rounded.items()]
    if rounded:
        total = reduce(add, rounded.values())
        worst = max(rounded, key=lambda name: rounded[name].largest_error)
        lines.append(f"{count_of(len(rounded), 'tensor')} rounded: {total} in {worst}; --json lists them")
    return lines


def describe_amounts(report: ConversionReport, converted: str, skipped: str = "") -> str:
    """Return a line on what was `converted` and `skipped`, with the bytes and the time."""
    reused = f", {report.reused} already done" if report.reused else ""
    read, written = format_bytes(report.bytes_in), format_bytes(report.bytes_out)
    rate = f", {format_bytes(int(report.bytes_in / report.seconds))}/s" if report.seconds and report.bytes_in else ""
    return f"{converted}{reused}{skipped}: {read} read, {written} written in {format_seconds(report.seconds)}{rate}"


def format_report(report: ConversionReport, num_printed: int = 0) -> str:
    """Return a summary of a conversion, in words; the first `num_printed` notes were printed before."""
    skipped = f", {len(report.skipped)} skipped" if report.skipped else ""
    line = describe_amounts(report, f"{count_of(report.converted, 'tensor')} converted", skipped)
    line += "".join([f"\n{text}" for text in format_rounding(report.rounding)])
    line += "".join([f"\nnote: {note}" for note in report.notes[num_printed:]])
    if report.complete:
        return f"{line}\n{report.out} is complete; check it with tilewright verify {report.out}"
    return f"{line}\n{report.out} is not complete: {count_of(report.elsewhere, 'tensor')} left to other parts"
