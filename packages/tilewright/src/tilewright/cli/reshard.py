# SPDX-License-Identifier: Apache-2.0
"""`tilewright reshard`: who sends what to whom when a tensor moves to another memory, how, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._text import format_bytes, format_table
from ..errors import MemoryConfigError
from .console import (
    Answer,
    CommandError,
    Console,
    ExitCode,
    check_output_path,
    describe_error,
    save_picture,
    table_width,
    wrap_lines,
)
from .move_arguments import parse_move
from .options import FILE, SpecOptions, describe_assumptions, list_assumptions, spec_options, typed_options
from .program import option_in, refuse_options, verb
from .show import check_animation_path, check_picture_path, name_assumptions, picture_text
from .subjects import TEXT, read_text

if TYPE_CHECKING:
    from ..traffic import Endpoint, LayoutChain, RequestRun, ReshardPlan
    from ..views import Scene

OPERATIONS = (
    "to_memory_config",
    "reshard",
    "read",
    "write",
    "interleaved_to_sharded",
    "sharded_to_interleaved",
    "copy",
)
KERNELS = ("current", "2024")
VIEWS = ("map", "links", "timeline")
_MAX_PAIRS = 8  # that are listed; pictures and --json have all


_picture_option = option_in("Pictures")


@verb("reshard")
@click.argument("source", metavar="SOURCE", type=TEXT)
@click.argument("target", metavar="TARGET", type=TEXT)
@click.option(
    "--op",
    type=click.Choice(OPERATIONS),
    default="to_memory_config",
    metavar="OPERATION",
    help=f"{', '.join(OPERATIONS[:-1])} or {OPERATIONS[-1]}. [the first, which chooses as the runtime does]",
)
@click.option("--kernel", type=click.Choice(KERNELS), default="current", help="Version of the kernels. [current]")
@click.option("--profiler/--no-profiler", default=None, help="Time while NoC events are recorded. [for 2024 only]")
@click.option("--reads", is_flag=True, help="List the reads and writes of every RISC, in order.")
@click.option("--best", is_flag=True, help="Rank faster targets and intermediate layouts.")
@click.option("--chrome-trace", type=FILE, help="Write the timeline for Perfetto.")
@click.option("--npe", type=FILE, help="Write the workload for the simulator tt-npe.")
@_picture_option("--map", is_flag=True, help="Draw the chip with the flows between cores and banks.")
@_picture_option("--links", is_flag=True, help="Draw the load of the links of both networks.")
@_picture_option("--timeline", is_flag=True, help="Draw the estimated times of requests and resources.")
@_picture_option("--animate", is_flag=True, help="Write an animation, request by request, as an .html page.")
@_picture_option("--step", type=click.IntRange(1), metavar="N", help="Draw only this step of the plan.")
@_picture_option(
    *("-o", "--output"), type=FILE, help="Write the picture to an .svg, .html, .txt or .json. [--map --links]"
)
@spec_options
def command(
    source: str,
    target: str,
    op: str,
    kernel: str,
    profiler: bool | None,
    reads: bool,
    best: bool,
    chrome_trace: str | None,
    npe: str | None,
    step: int | None,
    output: str | None,
    options: SpecOptions,
    **views: bool,
) -> Answer:
    """Plan the move of a tensor from one memory to another: who sends what to whom, with which kernels, how long.

    SOURCE is a shape with settings, which are named like the options; TARGET may leave out the shape:

    \b
    tilewright reshard 512x512:shard=block:grid=2x1 shard=height:grid=4x2 \\
        --layout tile
    tilewright reshard 512x512:shard=height:grid=8x1 dram --reads
    tilewright reshard 512x512:shard=height:grid=8x1 shard=width:grid=8x1 --best
    tilewright reshard 512x512:shard=block shard=height --layout tile -o map.html

    What ttnn prints may be pasted instead: TensorSpec(...), SHAPE:MemoryConfig(...), and MemoryConfig(...) alone for
    TARGET. The exit status is 0 if both memories and the buffers on the way fit the chip, and 1 if they do not.
    """
    chosen = [view for view in VIEWS if views[view]]
    if step is not None and not chosen and output is None:
        raise click.UsageError("--step has no effect without a picture; add --map, --links or --timeline")
    if views["animate"]:
        if chosen or step is not None:
            raise click.UsageError(
                "--animate plays the whole plan on the map; remove --map, --links, --timeline and --step"
            )
        check_animation_path(output)
    else:
        check_picture_path(output)
    for path in (chrome_trace, npe):
        if path is not None:
            check_output_path(path)
    move = parse_move(read_text(source), read_text(target), options)
    refuse_options(move.overridden, "where the arguments state it")
    assumed = list_assumptions(move.before, typed_options(click.get_current_context()) | move.stated)
    from ..traffic import reshard

    plan = reshard(move.before, move.after, op, kernel, profiler=profiler)
    paths = [path for path in (chrome_trace, npe, output) if path is not None]
    _write_exports(plan, chrome_trace, npe)
    if output is not None and views["animate"]:
        from ..views import animate

        played = animate(plan)
        save_picture(replace(played, scene=name_assumptions(played.scene, assumed)), output)
    elif output is not None:
        has_routes = bool(plan.noc_map.chip.noc_size)
        scene = _draw(plan, chosen or (VIEWS[:2] if has_routes else VIEWS[:1]), step)
        save_picture(name_assumptions(scene, assumed), output)
    chains = _better_chains(plan) if best else None
    data = plan.to_json(reads=reads) | {"assumed": assumed}
    if chains is not None:
        data["best"] = [_chain_data(chain) for chain in chains]
    if paths:
        data["written"] = paths
    drawn = _draw(plan, chosen, step) if chosen and output is None else None
    if drawn is not None and Console.current().json:
        from ..views import to_data

        data["scene"] = to_data(drawn)

    def write() -> str:
        width = table_width() or 80
        parts = [wrap_lines("\n".join(lines), width) for lines in _sections(plan, assumed, reads, chains)]
        if drawn is not None:
            parts.append(picture_text(_drop_facts(drawn, plan)))
        parts += ["\n".join(f"wrote {path} ({Path(path).stat().st_size} bytes)" for path in paths)]
        return "\n\n".join(part for part in parts if part)

    return Answer(write, data, ExitCode.OK if plan.fits else ExitCode.NO)


def _draw(plan: ReshardPlan, views: Sequence[str], step: int | None) -> Scene:
    from ..views import reshard_scene

    return reshard_scene(plan, view=views, step=step)


def _drop_facts(scene: Scene, plan: ReshardPlan) -> Scene:
    """Return a picture without the facts of its plan, which are in the lines above it."""
    from ..views.scenes.reshards import reshard_facts

    above = reshard_facts(plan)
    return replace(scene, facts=tuple([fact for fact in scene.facts if fact not in above]))


def _write_exports(plan: ReshardPlan, trace: str | None, workload: str | None) -> None:
    """Write the plan for other tools, to the paths that were given."""
    from ..traffic import chrome_trace, npe_workload

    try:
        if trace is not None:
            chrome_trace(plan, trace)
        if workload is not None:
            npe_workload(plan, workload)
    except OSError as problem:
        raise CommandError(describe_error(problem).line, ExitCode.OUTPUT) from None


# The answer.


def _sections(
    plan: ReshardPlan, assumed: Mapping[str, str], reads: bool, chains: list[LayoutChain] | None
) -> list[list[str]]:
    """Return the text of the answer, section by section."""
    sections = [plan.explain().splitlines()]
    sections[0] += [f"assumed: {describe_assumptions(assumed)}"] if assumed else []
    if not plan.is_empty:
        sections.append(_list_pairs(plan))
    if chains is not None:
        sections.append(_list_chains(plan, chains))
    if reads:
        sections.append(_list_requests(plan))
    return sections


def _list_pairs(plan: ReshardPlan) -> list[str]:
    """Return the pairs that move most bytes as a table."""
    pairs = sorted(plan.traffic.items(), key=lambda item: (item[0][0] == item[0][1], -item[1]))
    rows = [("to", "from", "bytes", "")]
    rows += [
        (_name(reader), _name(origin), str(size), "stays" if reader == origin else "")
        for (reader, origin), size in pairs[:_MAX_PAIRS]
    ]
    more = len(pairs) - _MAX_PAIRS
    return [*format_table(rows, right=[2]), *([f"and {more} more; --json lists all of them"] if more > 0 else [])]


def _list_requests(plan: ReshardPlan) -> list[str]:
    """Return the reads and the writes of every RISC, in order."""
    lines = []
    for number, step in enumerate(plan.steps, 1):
        for lists, verb_name, word in ((step.reads, "reads", "from"), (step.writes, "writes", "to")):
            for risc, runs in lists.items():
                words = ", ".join(_format_run(run, word) for run in runs)
                lines.append(f"step {number}, core {_name(risc.core)} {risc.risc} {risc.noc} {verb_name} {words}")
    return lines


def _format_run(run: RequestRun, word: str) -> str:
    if len(run) == 2:
        return "barrier" if run[1] == 1 else f"{run[1]} barriers"
    endpoint, size, count = run
    return f"{count} x {size} {word} {_name(endpoint)}"


def _name(endpoint: Endpoint) -> str:
    return f"DRAM {endpoint}" if isinstance(endpoint, int) else f"({endpoint.x},{endpoint.y})"


# What would be better.


def _better_chains(plan: ReshardPlan) -> list[LayoutChain]:
    """Return faster targets, and faster routes to the target through an intermediate layout."""
    from ..traffic import best_layout, cheaper_targets, move_cost

    now = move_cost(plan.source, plan.target)
    try:
        ways = best_layout([plan.source, None, plan.target])
    except MemoryConfigError:  # no stop on the way fits
        ways = []
    shorter = [chain for chain in ways if chain.moves > 1 and now is not None and chain.cycles < now.cycles]
    return [*cheaper_targets(plan), *shorter]


def _list_chains(plan: ReshardPlan, chains: list[LayoutChain]) -> list[str]:
    from ..traffic import move_cost

    now = move_cost(plan.source, plan.target)
    comparison = "" if now is None else f" than {now.cycles:.0f} cycles, launches of the kernels included"
    if not chains:
        return [f"nothing takes less time{comparison}"]
    lines = [f"less time{comparison}:"]
    for chain in chains:
        stop, end = chain.specs[1].memory, chain.specs[-1].memory
        where = f"to {end}" if len(chain.specs) == 2 else f"through {stop}"
        lines.append(f"  {chain.cycles:.0f} cycles, {format_bytes(chain.noc_bytes)} over the NoC: {where}")
    return lines


def _chain_data(chain: LayoutChain) -> dict[str, Any]:
    return {
        "memories": [str(spec.memory) for spec in chain.specs],
        "cycles": chain.cycles,
        "noc_bytes": chain.noc_bytes,
        "peak_l1": chain.peak_l1,
    }
