# SPDX-License-Identifier: Apache-2.0
"""`tilewright prepare`: the weight cache of a model for a machine, made, checked, retargeted or explained."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from .._text import count_of, format_bytes, format_table, shorten_names, spell_extents
from .console import Answer, ExitCode, Progress, check_output_path, save_picture, table_width, wrap_lines
from .convert import RunOptions, describe_amounts, list_items, run_options
from .fit import fit_to_json, format_fit
from .options import FILE, MACHINE, SHAPE
from .program import option_in, refuse_options, verb

if TYPE_CHECKING:
    from ..conversion import CacheReport, ConversionItem, ConversionPlan, ConversionReport
    from ..memory import Fit

_MAX_PROBLEMS = 40  # that are printed
_CACHE = ("recipe", "optimizations", "model_dtype", "hf_rope", "instruct", "hf_model", "mesh", "pad_mlp_cores")
_WRITING = ("resume", "force", "dry_run", "files", "part", "dask")
_UNUSED_WITH = {  # options that have no effect, by mode
    "--check": _WRITING,
    "--retarget": (),
    "--explain": (*_WRITING, "memory_limit", "jobs"),
    "--recipes": (*_WRITING, "memory_limit", "jobs", "machine", "layers", "batch", *_CACHE[1:]),
}
_NUMBER = r"(?<=layers\.)\d+|(?<=_shard_)\d+"  # that tells like files apart


_cache_option, _other_option = option_in("What the cache is"), option_in("Instead of making a cache")


@verb("prepare", writes_unless=("dry-run", "check", "explain", "recipes"))
@click.argument("paths", nargs=-1, metavar="SOURCE [OUT]")
@click.option(
    "--for", "machine", type=MACHINE, help="Machine: N150, N300, N150x4, T3K, TG, P100, P150, P300, P150x4 ..."
)
@run_options("Prepare", "files", "512MiB", "Print the files, like ones together, and write nothing.")
@_cache_option("--recipe", metavar="NAME", help="Recipe, or its TOML file or folder. [tt_transformers]")
@_cache_option(
    "--optimizations", metavar="MODE", help="performance, accuracy, or a decoder config (.json). [performance]"
)
@_cache_option("--model-dtype", type=click.Choice(["bfloat8_b", "bfloat16"]), help="Format of the head. [bfloat8_b]")
@_cache_option("--hf-rope", is_flag=True, help="Keep the order of rotary halves, for use_hf_rope.")
@_cache_option("--instruct", is_flag=True, help="Use the directory of instruct models, as the text demo always does.")
@_cache_option("--hf-model", metavar="TEXT", help="Value of HF_MODEL where the model is served. [SOURCE]")
@_cache_option("--mesh", type=SHAPE, metavar="RxC", help="Shape of the mesh. [the machine's]")
@_cache_option("--layers", metavar="A-B", help="Only these layers, such as 0-3 or 0,31.")
@_cache_option("--pad-mlp-cores", type=click.IntRange(1), metavar="N", help="PAD_MLP_CORES. [of the environment]")
@_cache_option("--batch", type=click.IntRange(1), metavar="N", help="Batch size recorded in the completion marker. [1]")
@_other_option("--check", is_flag=True, help="Check a cache: prepare --check CACHE [SOURCE].")
@_other_option("--full", is_flag=True, help="With --check: compare all values, not a sample.")
@_other_option("--retarget", is_flag=True, help="Convert a cache for another chip: prepare --retarget CACHE [OUT].")
@_other_option("--source", metavar="SOURCE", help="With --retarget: checkpoint for files that differ in content.")
@_other_option("--explain", metavar="NAME", help="Explain the sources of a file: its name, or how it begins.")
@_other_option("--show", type=FILE, help="With --explain: save a picture, .svg or .html.")
@_other_option("--recipes", is_flag=True, help="List the recipe's families of models and machines.")
def command(
    paths: tuple[str, ...],
    machine: str | None,
    batch: int | None,
    layers: str | None,
    run: RunOptions,
    check: bool,
    full: bool,
    retarget: bool,
    source: str | None,
    explain: str | None,
    show: str | None,
    recipes: bool,
    **options: Any,
) -> Answer:
    """Write the weight cache that tt_transformers would build on the card, from a checkpoint.

    SOURCE is a Hugging Face directory or hub snapshot with config.json and weights (safetensors, PyTorch or ONNX),
    hf://ORG/NAME, or a GGUF file. OUT is what TT_CACHE_PATH will name, by default model_cache/SOURCE: it gets the
    directories and files that tt_transformers looks for, a manifest, and the marker that makes it start without the
    checkpoint.

    \b
    tilewright prepare Llama-3.1-8B-Instruct cache/ --for N300
    tilewright prepare Llama-3.1-8B-Instruct cache/ --for T3K --dry-run
    tilewright prepare Llama-3.1-8B-Instruct --for N300 --explain layers.0.*wqkv*
    tilewright prepare --check cache/ Llama-3.1-8B-Instruct
    tilewright prepare --retarget cache/ --for P300

    With --check the exit status is 0 if the cache is right, and 1 if it is not.
    """
    options |= {"layers": _parse_layers(layers), "max_batch_size": batch}
    typed = {name: value for name, value in options.items() if value not in (None, False)}
    modes = {"--check": check, "--retarget": retarget, "--explain": explain is not None, "--recipes": recipes}
    chosen = [name for name, value in modes.items() if value]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} cannot be used together")
    for name, value, mode in (
        ("--full", full, "--check"),
        ("--source", source, "--retarget"),
        ("--show", show, "--explain"),
    ):
        if value and mode not in chosen:
            raise click.UsageError(f"{name} is only for {mode}; remove it")
    for mode in chosen:
        refuse_options(_UNUSED_WITH[mode], f"with {mode}")
    if recipes:
        return _list_recipe(paths, typed)
    if check:
        return _check(paths, machine, typed, run, full)
    if machine is None:
        raise click.UsageError("name the machine, such as --for N300")
    from ..conversion import fit_plan, plan_cache, plan_retarget

    if retarget:
        cache, out = _split_paths(paths, "--retarget takes a cache and perhaps an output")
        plan = plan_retarget(cache, out, machine, source, **typed)
    else:
        plan = plan_cache(*_split_paths(paths, "expected SOURCE and perhaps OUT"), machine, **typed)
    if explain is not None:
        return _explain(plan, explain, show)
    if run.dry_run:
        refuse_options(["part"], "on the plan, which is of all parts")
        fitting = replace(fit_plan(plan, machine, **typed), notes=())  # which the plan has
        return Answer(lambda: _format_plan(plan, fitting, run.files), {**plan.to_json(), "fit": fit_to_json(fitting)})
    report = run.run_plan(plan, "preparing")
    root = report.out.removesuffix(str(plan.recipe["directory"])) if plan.recipe else report.out
    has_all = "layers" not in typed or bool(plan.beside)  # the marker
    return Answer(lambda: _format_report(report, root, has_all), {"event": "report", **report.to_json()})


def _split_paths(paths: tuple[str, ...], expected: str) -> tuple[str, str | None]:
    """Return one or two paths; the second may be missing."""
    if not 1 <= len(paths) <= 2:
        raise click.UsageError(f"{expected}, got {len(paths)} paths")
    return paths[0], paths[1] if len(paths) > 1 else None


def _format_report(report: ConversionReport, root: str, has_all: bool) -> str:
    """Return a summary of the cache, of all layers or of some, and how to use it; `root` is for TT_CACHE_PATH."""
    lines = [describe_amounts(report, count_of(report.converted, "file"))]
    lines += [f"note: {note}" for note in report.notes]
    if not report.complete:
        return "\n".join([*lines, f"{report.out} is not complete: {report.elsewhere} files are left to other parts"])
    use = f"start tt_transformers with TT_CACHE_PATH={root.rstrip('/') or '.'}"
    state = "is complete" if has_all else "has the layers that were asked for"
    return "\n".join([*lines, f"{report.out} {state}", f"{use}; check it with tilewright prepare --check"])


def _parse_layers(text: str | None) -> list[int] | None:
    """Return the layers of a text such as 0-3 or 0,31.

    >>> _parse_layers("0-2,5")
    [0, 1, 2, 5]
    """
    if text is None:
        return None
    layers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]+)(?:-([0-9]+))?\s*", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise click.UsageError(f"--layers {text} is not a list of layers; write 0-3, or 0,31")
        layers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return sorted(set(layers))


def _list_recipe(paths: tuple[str, ...], options: dict[str, Any]) -> Answer:
    from ..conversion import Recipe, recipe_names
    from ..conversion.rules import rule_sets

    if paths:
        raise click.UsageError("--recipes takes no paths; choose a recipe with --recipe")
    recipe = Recipe.load(options.get("recipe", recipe_names()[0]))
    families = {family.name: list(family.model_types) for family in recipe.families.values()}
    machines = {name: [*table.mesh, table.chip] for name, table in recipe.devices.items()}
    lines = [
        f"recipe {recipe.name}, revision {recipe.revision}",
        f"  follows {recipe.follows}",
        "families, their model_type, and what their files are held to",
    ]
    width = max(map(len, machines))
    held = {True: "recorded caches", False: "the source", None: ""}
    rows = [(name, ", ".join(types), held[recipe.families[name].recorded]) for name, types in families.items()]
    lines += format_table(rows, table_width(), indent="  ")
    lines.append("machines, their mesh and chip")
    lines += [f"  {name:<{width}}  {rows}x{columns}  {chip}" for name, (rows, columns, chip) in machines.items()]
    recorded = {family.name: family.recorded for family in recipe.families.values()}
    sets = {name: list(model_types) for name, model_types in rule_sets().items()}
    lines.append("sets of rules for models of no family, as in convert --rules gpt_oss")
    lines += format_table([(name, ", ".join(types)) for name, types in sets.items()], table_width(), indent="  ")
    own = {"families": families, "recorded": recorded, "machines": machines, "rules": sets}
    data = {**recipe.to_json(), **own}
    return Answer(wrap_lines("\n".join(lines), table_width()), data)


def _explain(plan: ConversionPlan, pattern: str, show: str | None) -> Answer:
    explanations = plan.explain(pattern)
    if show is not None:
        check_output_path(show)
        if len(explanations) > 1:
            names = ", ".join([explanation.item.name for explanation in explanations[:4]])
            raise click.UsageError(f"--show draws one file, but {pattern} names {len(explanations)}: {names} ...")
        save_picture(explanations[0], show)
    return Answer(
        lambda: wrap_lines("\n\n".join(map(str, explanations)), table_width()),
        [explanation.to_json() for explanation in explanations],
    )


def _check(paths: tuple[str, ...], machine: str | None, options: dict[str, Any], run: RunOptions, full: bool) -> Answer:
    from ..conversion import check_cache

    cache, source = _split_paths(paths, "--check takes a cache and perhaps its source")
    with Progress("checking", "files") as progress:
        report = check_cache(
            *(cache, source, machine),
            memory=run.memory_limit,
            jobs=run.jobs,
            full=full,
            progress=progress.update,
            **options,
        )
    return Answer(lambda: _format_check(report), report.to_json(), ExitCode.OK if report else ExitCode.NO)


def _format_check(report: CacheReport) -> str:
    lines = [f"note: {note}" for note in report.notes]
    bad = click.style("bad:", fg="red", bold=True)
    for problem in report.problems[:_MAX_PROBLEMS]:
        lines += [f"{bad} {problem.file}: {problem.problem}", f"     on the card: {problem.effect}"]
    if len(report.problems) > _MAX_PROBLEMS:
        lines.append(f"... and {len(report.problems) - _MAX_PROBLEMS} more; --json lists all")
    what = f" for {report.machine}" if report.machine else ""
    if report.recipe is not None:
        lines.append(f"recipe {report.recipe['name']}, which follows {report.recipe['follows']}")
    if report.problems:
        lines.append(f"compared: {report.compared}")
        lines.append(f"{report.directory}{what}: {count_of(len(report.problems), 'problem')} in {report.files} files")
    else:
        good = click.style("good:", fg="green", bold=True)
        lines.append(f"{good} {report.directory}{what}: {report.files} files; compared: {report.compared}")
    return "\n".join(lines)


def _format_plan(plan: ConversionPlan, fitting: Fit, every: bool) -> str:
    def describe(item: ConversionItem) -> tuple[str, ...]:
        mesh = "replicated" if item.mesh is None else item.mesh.summary
        return item.slot.file, spell_extents(item.spec.shape.logical, "scalar"), str(item.spec.memory), mesh

    rows = list_items(plan, describe, _NUMBER, "file", every)
    lines = [f"note: {note}" for note in plan.notes]
    if plan.recipe is not None:
        lines.append(f"recipe {plan.recipe['name']}, which follows {plan.recipe['follows']}")
    table, width = format_table(rows, table_width(), right=[4, 5], indent="  "), table_width()
    if width is not None and any(len(line) > width for line in table):  # then in two lines each
        names = shorten_names([row[0] for row in rows], width - 2)
        pairs = zip(names, rows, strict=True)
        table = [line for name, row in pairs for line in (f"  {name}", f"      {', '.join(row[1:])}")]
    lines += [f"{count_of(len(plan.items), 'file')} in {plan.out}", *table]
    lines.append(f"reads {format_bytes(plan.bytes_in)}, writes {format_bytes(plan.bytes_out)}")
    return wrap_lines("\n".join([*lines, format_fit(fitting)]), width)
