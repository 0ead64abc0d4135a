# SPDX-License-Identifier: Apache-2.0
"""`tilewright fit`: whether tensors fit on a chip together, why not, and what would fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from .._lazy import late_function
from .._text import format_table
from .console import Answer, CommandError, ExitCode, check_input_path, shorten, table_width, wrap_lines
from .options import (
    CHIP_OPTIONS,
    FORMAT,
    MACHINE,
    PLACEMENT_OPTIONS,
    SIZE,
    STATED_BY_TEXT,
    SpecOptions,
    describe_assumptions,
    list_assumptions,
    parse_shape,
    refuse_overridden,
    spec_options,
    stated_by_file,
    typed_options,
)
from .program import follow_links_option, option_in, refuse_options, verb
from .show import picture_text
from .subjects import TEXT, is_text, names_file, parse_subject, read_text

if TYPE_CHECKING:
    from ..conversion import DeviceTensor
    from ..files import PendingTensor, StoredTensor
    from ..memory import Fit


scene_of = late_function("tilewright", "views", "scene_of")
_model_option = option_in("Models")


@verb("fit")
@click.argument("tensors", nargs=-1, required=True, metavar="SHAPE[:NAME=VALUE]|FILE|TEXT...", type=TEXT)
@_model_option("--for", "machine", type=MACHINE, help="Fit a model on this machine: N150, N300, T3K ...")
@_model_option("--machines", is_flag=True, help="Fit a model on every machine.")
@_model_option("--users", type=click.IntRange(1), metavar="N", help="Users served at a time. [1]")
@_model_option("--context", type=click.IntRange(1), metavar="N", help="Most tokens of one user. [as the model can]")
@_model_option(
    "--shared-tokens", "tokens", type=click.IntRange(1), metavar="N", help="Tokens that all users of a replica share."
)
@_model_option("--replicas", type=click.IntRange(1), metavar="N", help="Copies of the model on the machine. [1]")
@_model_option("--block-size", type=click.IntRange(1), metavar="N", help="Tokens of a block of the KV cache. [64]")
@_model_option("--kv-dtype", type=FORMAT, help="Number format of the KV cache. [as the recipe says]")
@_model_option("--optimizations", metavar="MODE", help="performance, accuracy, or a JSON file of formats.")
@_model_option(
    "--solve", type=click.Choice(["users", "context", "precision"]), help="Find the most of these that fits."
)
@_model_option("--explain", is_flag=True, help="Draw the stack of a bank, and list what would change the answer.")
@click.option("--cb", type=SIZE, multiple=True, help="Circular buffer of each core; may be repeated.")
@click.option("--l1-small", type=SIZE, default=0, help="L1 reserved for small buffers.")
@click.option("--trace-region", type=SIZE, help="DRAM reserved for traces. [0, or 50000000 for a model]")
@follow_links_option
@spec_options
def command(
    tensors: tuple[str, ...],
    machine: str | None,
    machines: bool,
    solve: str | None,
    explain: bool,
    cb: tuple[int, ...],
    l1_small: int,
    trace_region: int | None,
    follow_links: bool,
    options: SpecOptions,
    **question: Any,
) -> Answer:
    """Check whether tensors fit on a chip together with circular buffers; if not, explain why, and suggest a fit.

    Tensors are allocated in order. Settings after a shape are for that tensor alone, and are named like the options,
    or are what ttnn prints, SHAPE:MemoryConfig(...):

    \b
    tilewright fit 2048x2048 --dtype float32 --layout tile --shard height
    tilewright fit 4096x4096:buffer=l1 1x4096:dtype=float32 --layout tile \\
        --cb 256KiB
    tilewright fit converted/ --cb 256KiB
    tilewright fit Llama-3.1-8B-Instruct --for N300 --users 32
    tilewright fit config.json --machines --context 32768

    A file or directory stands for all its tensors, placed according to the file, otherwise to the options. Of tensors
    that a mesh of devices shares, each device holds its part.

    With --for, a model is counted as it is served: weights as prepare places them, KV cache, tables and the region for
    traces, on each device of the machine. MODEL is a checkpoint, a GGUF file, or a config.json alone. The
    answer lists what is not counted, such as activations.
    The exit status is 0 if everything fits, and 1 if it does not.
    """
    tensors = tuple([read_text(tensor) for tensor in tensors])
    if machine is not None or machines:
        if len(tensors) != 1 or (machine is not None and machines):
            raise click.UsageError("--for or --machines takes one checkpoint, or config.json, and not the other one")
        refuse_options([*PLACEMENT_OPTIONS, "follow_links", "cb", "l1_small"], "on a model, which is served from DRAM")
        question = {name: value for name, value in question.items() if value is not None}
        question |= {} if trace_region is None else {"trace_region_size": trace_region}
        if machine is None:
            refuse_options(["solve", "explain"], "with --machines; name one with --for")
            return _answer_machines(tensors[0], question)
        return _answer_capacity(tensors[0], machine, solve, explain, question)
    refuse_options([*question, "solve", "explain"], "without --for, such as --for N300")
    reserved = (list(cb), l1_small, trace_region or 0)
    from ..conversion import fit_device, mark_weights

    if not any(map(names_file, tensors)):
        refuse_options(["follow_links"], "without a file")
    typed = typed_options(click.get_current_context())
    pairs = [pair for text in tensors for pair in _parse_tensors(text, options, typed, follow_links)]
    if not any(map(names_file, tensors)):
        refuse_overridden([stated for _, stated in pairs])
    requested = [tensor for tensor, _ in pairs]
    placed = not typed & CHIP_OPTIONS and any("chip" in stated for _, stated in pairs)  # on the chip of a file
    report = fit_device(requested, None if placed else options.build_chip(), *reserved)
    report = mark_weights(report, tensors)
    assumed: dict[str, str] = {}
    both = zip([tensor.spec for tensor in report.tensors], [stated for _, stated in pairs], strict=True)
    stated_of = {(id(spec), stated): spec for spec, stated in both}
    for (_, stated), spec in stated_of.items():
        assumed |= {} if spec is None else list_assumptions(spec, typed | stated)
    return _build_answer(report, assumed)


def _answer_capacity(model: str, machine: str, solve: str | None, explain: bool, question: Mapping[str, Any]) -> Answer:
    """Return whether a model fits a machine, with the largest numbers, and with `explain` a picture and remedies.

    `question` are the other arguments of `capacity`, and `solve` names the number to maximise, or "precision".
    """
    from ..conversion import capacity, solve_precision
    from ..memory import format_steps

    lines: list[tuple[str, str]] = []
    if solve == "precision":
        precision, report = solve_precision(model, machine, **question)
        lines.append(("precision", precision if report.fits else "none that is known suffices"))
    else:
        report = capacity(model, machine, **question)
        report = report if solve is None else report.solve(solve)
    changes = list(report.changes()) if explain or not report.fits else []
    lines += [("change" if k == 0 else "", text) for k, text in enumerate(changes)]
    data = report.to_json() | {"solved": solve, "changes": changes}
    verdict, _, rest = str(report).partition("\n")
    first = click.style(wrap_lines(verdict), fg="green" if report.fits else "red", bold=True)

    def text() -> str:
        picture = ["", picture_text(scene_of(report))] if explain else []
        return "\n".join([first, rest, *([format_steps(lines)] if lines else []), *picture])

    return Answer(text, data, ExitCode.OK if report.fits else ExitCode.NO)


def _answer_machines(model: str, question: Mapping[str, Any]) -> Answer:
    """Return a table of all machines: whether a model fits, and the largest numbers of users and tokens."""
    from ..conversion import list_machines

    reports = list_machines(model, **question)
    rows = [("machine", "devices", "fits", "left", "users", "context")]
    notes = []
    for name, report in reports.items():
        if isinstance(report, str):
            rows.append((name, "", "unknown", "", "", ""))
            notes.append(f"{name}: {report}")
            continue
        fits = ("fits" if report.fits else "does not fit") + ", estimated" * report.is_estimate
        left = f"{report.free / report.bank_bytes:.0%}" if report.fits else ""
        devices = str(report.mesh[0] * report.mesh[1])
        rows.append((name, devices, fits, left, str(report.largest_users or 0), str(report.largest_context or 0)))
    known = [report for report in reports.values() if not isinstance(report, str)]
    context = known[0].context if known else 0
    notes += [f"users: with {context} tokens each, all at once; context: of a single user", *known[0].notes]
    data = {name: report if isinstance(report, str) else report.to_json() for name, report in reports.items()}
    lines = format_table(rows, table_width(), right=[1, 3, 4, 5])
    is_any = any(report.fits for report in known)
    return Answer(lambda: "\n".join([*lines, *map(wrap_lines, notes)]), data, ExitCode.OK if is_any else ExitCode.NO)


def _build_answer(report: Fit, assumed: Mapping[str, str] | None = None) -> Answer:
    line = f"\nassumed: {describe_assumptions(assumed)}" if assumed else ""
    return Answer(
        lambda: format_fit(report) + line,
        lambda: fit_to_json(report) | {"assumed": assumed or {}},
        ExitCode.OK if report else ExitCode.NO,
    )


def _parse_tensors(
    text: str, options: SpecOptions, typed: frozenset[str], follow_links: bool
) -> list[tuple[DeviceTensor, frozenset[str]]]:
    """Return the tensors that an argument names, all of an existing file, or one given by its shape.

    With each are the options whose place the argument takes.
    """
    from ..conversion import DeviceTensor
    from ..memory import TensorSpec

    if is_text(text):
        subject = parse_subject(text, options)
        if not isinstance(subject, TensorSpec):
            noun = "an error message" if getattr(subject, "notation", "") == "error" else "no tensor"
            raise click.UsageError(
                f"{shorten(text)} is {noun}; fit takes tensors: a shape, a file, or a printed TensorSpec"
            )
        return [(DeviceTensor("", subject), STATED_BY_TEXT)]
    if not names_file(text):
        check_input_path(text)
        shape, _, settings = text.partition(":")
        request = options.with_settings(settings).spec_arguments(parse_shape(shape))  # which need not be legal
        return [(DeviceTensor("", request), SpecOptions.setting_names(settings))]
    from ..files import open_tensors

    answers: dict[Any, tuple[Any, frozenset[str]]] = {}  # few of the very many tensors of a checkpoint differ
    result = []
    for stored in open_tensors(text, follow_links).headers:
        if stored.spec is not None or stored.mesh is not None or stored.format is None:
            answer = _place_stored(stored, options, typed), stated_by_file(stored, typed)
        else:
            key = stored.shape, id(stored.format)
            if key not in answers:
                answers[key] = _place_stored(stored, options, typed), stated_by_file(stored, typed)
            answer = answers[key]
        result.append((DeviceTensor(stored.name, answer[0], stored.mesh), answer[1]))
    return result


def _place_stored(tensor: StoredTensor | PendingTensor, options: SpecOptions, typed: frozenset[str]) -> Any:
    """Return the placement of a stored tensor: the file's own, unless options were typed."""
    if tensor.spec is not None and not typed - CHIP_OPTIONS:
        return tensor.spec
    if tensor.format is None and "dtype" not in typed:
        raise CommandError(
            f"{tensor.name} has elements of type {tensor.kind}, which is not a number format here; give --dtype"
        )
    own = options if tensor.format is None or "dtype" in typed else replace(options, dtype=tensor.format.name)
    return own.spec_arguments(tensor.shape if tensor.mesh is None else tensor.mesh.part_shape)


def format_fit(report: Fit) -> str:
    """Return a report as text, its verdict in color."""
    first, *rest = wrap_lines(str(report)).splitlines()
    return "\n".join([click.style(first, fg="green" if report else "red", bold=True), *rest])


def fit_to_json(report: Fit) -> dict[str, Any]:
    """Return a report as plain data."""
    return {
        "fits": report.fits,
        "chip": report.chip.name,
        "mesh": list(report.mesh) or None,
        "scope": report.scope or None,
        "notes": list(report.notes),
        "tensors": [
            {
                "name": tensor.name or None,
                "tensor": None if tensor.spec is None else str(tensor.spec),
                "bytes_per_bank": tensor.bytes_per_bank,
                "banks": tensor.banks,
                "total_bytes": tensor.total_bytes,
                "padding_bytes": tensor.padding_bytes,
                "padding_parts": tensor.spec.padding_parts if tensor.spec is not None and tensor.banks else {},
                "address": tensor.address,
                "problems": list(tensor.problems),
                "warnings": list(tensor.warnings),
            }
            for tensor in report.tensors
        ],
        "memories": list(report.memories),
        "circular_buffer_bytes": report.circular_buffer_bytes,
        "problems": list(report.problems),
        "alternatives": [
            {"change": variant.change, "tensor": str(variant.spec), "bytes_per_bank": variant.bytes_per_bank}
            for variant in report.alternatives
        ],
        "remedies": list(report.remedies),
    }
