# SPDX-License-Identifier: Apache-2.0
"""`tilewright prepare`: the weight cache of a model for a machine, made or checked without the machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from ..byte_sizes import format_bytes
from ..tables import count_of, format_table
from .console import Answer, Console, ExitCode, Progress, table_width
from .convert import format_report, format_shape, open_dask_executor, parse_part, report_output_errors, report_progress
from .fit import fit_to_json, format_fit
from .options import SHAPE, SIZE
from .program import verb

if TYPE_CHECKING:
    from ..conversion import ConversionPlan
    from ..conversion.cache_check import CacheReport
    from ..memory import Fit


@verb("prepare")
@click.argument("paths", nargs=-1, required=True, metavar="SOURCE OUT")
@click.option("--for", "machine", metavar="MACHINE", help="N150, N300, N150x4, T3K, TG, P100, P150, P300, P150x4 ...")
@click.option(
    "--recipe", default="tt_transformers", show_default=True, metavar="NAME", help="Recipe, or its TOML file."
)
@click.option("--optimizations", metavar="MODE", help="performance, accuracy, or a JSON file of formats. [performance]")
@click.option("--model-dtype", type=click.Choice(["bfloat8_b", "bfloat16"]), help="Format of the head. [bfloat8_b]")
@click.option("--hf-rope", is_flag=True, help="Keep the order of rotary halves, for use_hf_rope.")
@click.option("--instruct", is_flag=True, help="Use the directory of instruct models, as the text demo always does.")
@click.option("--mesh", type=SHAPE, metavar="RxC", help="Shape of the mesh. [that of the machine]")
@click.option("--layers", metavar="A-B", help="Only these layers, such as 0-3 or 0,31.")
@click.option("--batch", type=click.IntRange(1), default=1, show_default=True, help="Batch size of the marker.")
@click.option("--memory", "memory_limit", type=SIZE, default="512MiB", show_default=True, help="Memory limit.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Threads. [one more than cores]")
@click.option("--resume", is_flag=True, help="Continue an earlier run: skip what it finished.")
@click.option("--force", is_flag=True, help="Replace existing output.")
@click.option("--dry-run", is_flag=True, help="Print every file without writing anything.")
@click.option("--part", metavar="I/N", help="Prepare part I of N, counted from 0; one part per machine.")
@click.option("--dask", metavar="ADDRESS", help="Spread the files over a Dask cluster.")
@click.option("--check", is_flag=True, help="Check an existing cache: prepare --check CACHE [SOURCE].")
@click.option("--full", is_flag=True, help="With --check: compare all values, not a sample.")
def command(
    paths: tuple[str, ...],
    machine: str | None,
    recipe: str,
    optimizations: str | None,
    model_dtype: str | None,
    hf_rope: bool,
    instruct: bool,
    mesh: tuple[int, ...] | None,
    layers: str | None,
    batch: int,
    memory_limit: int,
    jobs: int | None,
    resume: bool,
    force: bool,
    dry_run: bool,
    part: str | None,
    dask: str | None,
    check: bool,
    full: bool,
) -> Answer:
    """Write the weight cache that tt_transformers would build on the card, from a checkpoint.

    SOURCE is a Hugging Face directory or hub snapshot with config.json. OUT is what TT_CACHE_PATH will name: it gets
    the directories and files that tt_transformers looks for, a manifest, and the marker that makes it start without
    the checkpoint.

    \b
    tilewright prepare Llama-3.1-8B-Instruct cache/ --for N300
    tilewright prepare Llama-3.1-8B-Instruct cache/ --for T3K --dry-run
    tilewright prepare --check cache/ Llama-3.1-8B-Instruct

    With --check the exit status is 0 if the cache is right, and 1 if it is not.
    """
    options: dict[str, Any] = {
        "recipe": recipe,
        "optimizations": optimizations,
        "model_dtype": model_dtype,
        "hf_rope": hf_rope or None,
        "instruct": instruct or None,
        "mesh": mesh,
        "layers": _parse_layers(layers),
    }
    typed = {name: value for name, value in options.items() if value is not None}
    if check:
        return _check(paths, machine, typed, memory_limit, jobs, full)
    if len(paths) != 2:
        raise click.UsageError(f"expected SOURCE and OUT, got {len(paths)} paths")
    if machine is None:
        raise click.UsageError("name the machine, such as --for N300")
    from ..conversion.conversion_run import run_plan
    from ..conversion.model_fit import fit_plan
    from ..conversion.prepare import plan_cache

    plan = plan_cache(*paths, machine, max_batch_size=batch, **typed)
    if dry_run:
        fitting = fit_plan(plan, machine, **typed)
        return Answer(lambda: _format_plan(plan, fitting), {**plan.to_json(), "fit": fit_to_json(fitting)})
    console = Console.current()
    with open_dask_executor(dask) as executor, Progress("preparing") as bar, report_output_errors(plan):
        report = run_plan(
            plan,
            memory=memory_limit,
            jobs=jobs,
            resume=resume,
            force=force,
            part=parse_part(part),
            executor=executor,
            progress=lambda event: report_progress(event, bar, console),
        )
    return Answer(lambda: format_report(report), {"event": "report", **report.to_json()})


def _parse_layers(text: str | None) -> list[int] | None:
    """Return the layers of a text such as 0-3 or 0,31.

    >>> _parse_layers("0-2,5")
    [0, 1, 2, 5]
    """
    if text is None:
        return None
    layers: list[int] = []
    for each in text.split(","):
        found = re.fullmatch(r"\s*([0-9]+)(?:-([0-9]+))?\s*", each)
        if found is None:
            raise click.UsageError(f"--layers {text} is not a list of layers; write 0-3, or 0,31")
        layers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return layers


def _check(
    paths: tuple[str, ...], machine: str | None, options: dict[str, Any], memory: int, jobs: int | None, full: bool
) -> Answer:
    from ..conversion.cache_check import check_cache

    if len(paths) > 2:
        raise click.UsageError(f"--check takes a cache and perhaps its source, got {len(paths)} paths")
    cache, source = (*paths, None)[:2]
    assert cache is not None
    with Progress("checking", "files") as progress:
        report = check_cache(
            cache, source, machine, memory=memory, jobs=jobs, full=full, progress=progress.update, **options
        )
    return Answer(lambda: _format_check(report), report.to_json(), ExitCode.OK if report else ExitCode.NO)


def _format_check(report: CacheReport) -> str:
    lines = [f"note: {note}" for note in report.notes]
    bad = click.style("bad:", fg="red", bold=True)
    for each in report.problems:
        lines += [f"{bad} {each.file}: {each.problem}", f"     on the card: {each.effect}"]
    what = f" for {report.machine}" if report.machine else ""
    if report.problems:
        lines.append(f"{report.directory}{what}: {len(report.problems)} problems in {report.files} files")
    else:
        good = click.style("good:", fg="green", bold=True)
        lines.append(f"{good} {report.directory}{what}: {report.files} files; compared: {report.compared}")
    return "\n".join(lines)


def _format_plan(plan: ConversionPlan, fitting: Fit) -> str:
    rows = [
        (
            item.slot.file,
            format_shape(item.target.spec.shape.logical),
            str(item.target.spec.memory),
            "replicated" if item.target.mesh is None else item.target.mesh.summary,
            format_bytes(item.bytes_out),
        )
        for item in plan.items
    ]
    lines = [f"{count_of(len(rows), 'file')} in {plan.out}", *format_table(rows, table_width(), right=[4], indent="  ")]
    lines.append(f"reads {format_bytes(plan.bytes_in)}, writes {format_bytes(plan.bytes_out)}")
    return "\n".join([*lines, format_fit(fitting)])
