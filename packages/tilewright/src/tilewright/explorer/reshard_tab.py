# SPDX-License-Identifier: Apache-2.0
"""Reshards in the explorer: another memory for the tensor of the form, the cost of moving it there, and pictures."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from ..errors import MemoryConfigError, TilewrightError
from ..memory import TensorSpec
from ..traffic import KERNELS, OPERATIONS, ReshardPlan, reshard
from ..views.animation import animate, draw_frames
from ..views.html import panel_markup
from ..views.scene import Scene
from ..views.scenes.reshards import reshard_facts, reshard_scene
from .form import FieldError, FormFields, parse_mesh, parse_spec, require_placement

TARGET_FIELDS = ("memory", "buffer", "grid", "shard", "orientation", "distribution")  # with "to_" before them
MAX_PLAYED = 1 << 16  # requests that are drawn as frames
MAX_PAGES = 1 << 18  # of a tensor whose reshard is planned on the page


def list_reshard_choices() -> dict[str, list[str]]:
    """Return the choices of the fields of a reshard.

    >>> list_reshard_choices()["kernel"]
    ['current', '2024']
    """
    return {"op": list(OPERATIONS), "kernel": list(KERNELS)}


def parse_target(fields: FormFields) -> TensorSpec:
    """Return the spec of the target: the tensor of the form in the memory of the fields that start with `to_`.

    >>> words = {"shape": "64x64", "chip": "n150", "to_memory": "height_sharded", "to_buffer": "l1", "to_grid": "2x1"}
    >>> parse_target(words).memory.is_sharded
    True
    """
    words = {name: value for name, value in fields.items() if name not in TARGET_FIELDS and not name.startswith("to_")}
    words |= {name: fields.get(f"to_{name}", "") for name in TARGET_FIELDS}
    try:
        return require_placement(parse_spec(words))
    except FieldError as problem:
        field = f"to_{problem.field}" if problem.field in TARGET_FIELDS else problem.field
        raise FieldError(field, str(problem)) from None


def parse_reshard(fields: FormFields) -> ReshardPlan:
    """Return the plan of the reshard in the form.

    >>> parse_reshard({"shape": "64x64", "chip": "n150", "to_buffer": "l1"}).total_bytes
    8192
    """
    source = require_placement(parse_spec(fields))
    if source.num_pages > MAX_PAGES:
        raise FieldError(
            "shape", f"{source.num_pages} pages are too many to plan here (at most {MAX_PAGES}); use tilewright reshard"
        )
    mesh = parse_mesh(fields)
    try:
        return _plan_reshard(
            source,
            parse_target(fields),
            fields.get("op") or OPERATIONS[0],
            fields.get("kernel") or KERNELS[0],
            1 if mesh is None else prod(mesh.shape),
        )
    except FieldError:
        raise
    except TilewrightError as problem:
        words = str(problem)
        field = next((name for name in ("op", "kernel") if words.startswith(f"unknown {name}")), "to_memory")
        raise FieldError("op" if fields.get("op") not in (None, "", OPERATIONS[0]) else field, words) from None


@lru_cache(maxsize=8)  # the page asks for words and for three pictures of the same plan
def _plan_reshard(source: TensorSpec, target: TensorSpec, operation: str, kernel: str, devices: int) -> ReshardPlan:
    return reshard(source, target, operation, kernel, devices=devices)


def describe_reshard(fields: FormFields) -> dict[str, Any]:
    """Describe the traffic and the time of a reshard in words, with the plan in Python.

    >>> answer = describe_reshard({"shape": "64x64", "chip": "n150", "to_buffer": "l1"})
    >>> answer["fits"], answer["facts"]["moves"]
    (True, '8 KiB between 4 pairs, 0 % stays where it is')
    """
    plan = parse_reshard(fields)
    if plan.is_empty:
        return {"empty": True, "fits": True, "facts": {}, "warnings": [], "time": None, "python": "", "chip": ""}
    try:
        time: dict[str, Any] | None = {
            "cycles": round(plan.cycles.cycles),
            "microseconds": plan.cycles.microseconds,
            "bound": str(plan.cycles.bound_by),
            "calibrated": plan.cycles.calibrated,
            "worth": plan.cycles.expected_error,
        }
    except MemoryConfigError:
        time = None
    more = "" if plan.operation == OPERATIONS[0] else f", op={plan.operation!r}"
    more += "" if plan.kernel == KERNELS[0] else f", kernel={plan.kernel!r}"
    more += "" if plan.devices == 1 else f", devices={plan.devices}"
    return {
        "empty": False,
        "fits": plan.fits,
        "chip": plan.noc_map.chip.name,
        "bytes": plan.total_bytes,
        "noc_bytes": plan.noc_bytes,
        "time": time,
        "facts": {fact.name: fact.value for fact in reshard_facts(plan)},
        "warnings": list(plan.warnings),
        "python": f"tw.reshard(\n    {plan.source!r},\n    {plan.target!r}{more},\n)",
    }


def play_reshard(fields: FormFields) -> dict[str, Any]:
    """Return the requests of the reshard in the form as an animation: panels, and the frames that are drawn over them.

    >>> answer = play_reshard({"shape": "64x64", "chip": "n150", "to_buffer": "l1"})
    >>> len(answer["panels"]), answer["frames"]["captions"][-1]
    (2, 'done: 16 KiB')
    """
    plan = parse_reshard(fields)
    requests = sum([len(step.requests.nbytes) for step in plan.steps])
    if requests > MAX_PLAYED:
        raise FieldError("shape", f"{requests} requests are too many to animate here (at most {MAX_PLAYED})")
    animation = animate(plan)
    drawings, frames = draw_frames(animation)
    return {"panels": panel_markup(animation.scene, drawings), "frames": frames}


def draw_reshard(fields: FormFields, view: str) -> Scene:
    """Return a `view` of the reshard in the form: its flows on the chip, the load of the links, or the timeline.

    >>> draw_reshard({"shape": "64x64", "chip": "n150", "to_buffer": "l1"}, "map").panels[0].title
    'flows'
    """
    return reshard_scene(parse_reshard(fields), view=view)
