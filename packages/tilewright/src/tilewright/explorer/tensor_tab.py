# SPDX-License-Identifier: Apache-2.0
"""The tab of a tensor: its spec, fit, elements and cores as plain data, and its pictures as scenes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._text import spell_extents
from ..conversion import Capacity, Recipe, capacity, list_machines
from ..errors import OutOfMemory
from ..memory import Allocator, TensorSpec, explain, explain_address, fit, format_devices, placement_violations
from ..tiling import Schedule, Tiler
from ..views.scene import Fact, Scene
from ..views.scenes.memory_maps import capacity_scene, memory_scene
from ..views.scenes.meshes import mesh_scene
from ..views.scenes.pipelines import schedule_scene, tiler_scene
from ..views.scenes.placements import page_scene, spec_scene
from .form import (
    FieldError,
    FormFields,
    attribute_errors,
    attribute_scene,
    fill_pasted,
    parse_bytes,
    parse_device,
    parse_element,
    parse_integer,
    parse_integers,
    parse_mesh,
    parse_scene_options,
    parse_spec,
    render_for_page,
    require_placement,
    spec_arguments,
    spell_mesh,
    spell_spec,
)

MAX_LISTED = 1 << 22  # pages searched for the pages of a core
MAX_ROWS = 64  # runs of pages listed for a core
MAX_SIDE = 64  # rows and columns of a picture on the page
# Where a step of the explanation turns from the value to its detail.
_DETAIL = re.compile(r",? (?=of |after |shared |which |= buffer )")


def describe_placement(fields: FormFields) -> dict[str, Any]:
    """Return a spec in Python, its facts, whether it fits, and alternatives if it does not.

    >>> describe_placement({"shape": "64x64", "chip": "n150"})["fit"]["fits"]
    True
    """
    fields = fill_pasted(fields)
    arguments = spec_arguments(fields)
    chip = arguments["chip"]
    answer = fit(arguments, chip, circular_buffers=parse_bytes(fields, "circular"))
    tensor = answer.tensors[0]
    spec, mesh = tensor.spec, parse_mesh(fields)

    def spell_words(placed: TensorSpec) -> dict[str, str]:
        return spell_spec(placed) | ({} if mesh is None else spell_mesh(mesh))

    view = next(
        (view for view in answer.memories if spec is not None and view.buffer_type is spec.memory.buffer_type), None
    )
    return {
        "spec": None if spec is None else _describe_spec(spec, spell_words(spec)),
        "fit": {
            "fits": answer.fits,
            "chip": str(chip),
            "bytes_per_bank": tensor.bytes_per_bank,
            "banks": tensor.banks,
            "bank_bytes": 0 if view is None else view.bank_bytes,
            "circular": answer.circular_buffer_bytes,
            "padding_bytes": tensor.padding_bytes,
            "address": tensor.address,
            "text": str(answer),
            "problems": [str(problem) for problem in (*tensor.problems, *answer.problems)],
            "warnings": list(tensor.warnings),
            "alternatives": [{"text": str(other), "words": spell_words(other.spec)} for other in answer.alternatives],
        },
    }


def _describe_spec(spec: TensorSpec, words: dict[str, str]) -> dict[str, Any]:
    sharding = spec.memory.sharding
    facts = {
        "shape": spell_extents(spec.shape.logical),
        "padded shape": spell_extents(spec.padded_shape),
        "stored as": f"{spell_extents(spec.physical_shape)} matrix",
        "page": f"{spell_extents(spec.page_shape)}, {spec.page_bytes} bytes",
        "pages": str(spec.num_pages),
        "shard": "none" if sharding is None else spell_extents(sharding.shape),
    }
    if any(placement_violations(spec, any_size=True)):
        facts["bytes"] = str(spec.nbytes)
    else:
        facts |= {
            "bytes": str(spec.total_bytes),
            "padding": f"{spec.padding_bytes} bytes ({spec.padding_bytes / max(1, spec.total_bytes):.1%})",
            "banks used": str(len(spec.used_banks)),
            "bytes per bank": str(spec.allocated_bytes),
            "page spacing": f"{spec.aligned_page_bytes} bytes",
        }
    return {"python": repr(spec), "text": str(spec), "facts": facts, "words": words}


def describe_element(fields: FormFields) -> dict[str, Any]:
    """Return where one element lives: found by its coordinate (`at`), its `page`, or its `bank` and `address`.

    >>> found = describe_element({"shape": "64x64", "chip": "n150", "at": "33,5"})
    >>> [step["name"] for step in found["steps"]]
    ['element', 'matrix', 'tile', 'face', 'page', 'value', 'bank', 'address']
    """
    spec = require_placement(parse_spec(fields))
    base, note = None, ""
    try:
        _ = spec.address_on_empty_chip
    except OutOfMemory:
        base, note = 0, "The tensor does not fit on the chip: addresses are relative to its buffer."
    at, why = _requested_element(fields, spec, base)
    if at is None:
        return {"at": None, "note": why}
    where = spec.where(*at, base=base)
    steps = [*_device_steps(fields, at), *explain(spec, at, base).steps()]
    return {
        "at": list(at),
        "page": where.page,
        "core": f"{where.core.x},{where.core.y}" if where.buffer_type.is_l1 else None,
        "bank": where.bank,
        "address": where.address,
        "steps": [_split_step(name, text) for name, text in steps],
        "note": note,
        "scene": render_for_page(page_scene(spec, at=at, **parse_scene_options(fields))),
    }


def _device_steps(fields: FormFields, inside: tuple[int, ...]) -> list[tuple[str, str]]:
    """Return where an element of a device's part is in the entire tensor, and the devices that hold it."""
    mesh = parse_mesh(fields)
    if mesh is None:
        return []
    device = parse_device(fields, mesh)
    start = mesh.window_of(device).offset
    at = tuple([a + c for a, c in zip(start, inside, strict=True)])
    devices, _ = mesh.locate(at)
    replicas = [holder for holder in devices if holder != device]
    shared = f", which {format_devices(replicas)} also {'hold' if len(replicas) > 1 else 'holds'}" if replicas else ""
    return [("tensor", f"{at} of {list(mesh.global_shape)}{shared}"), ("device", f"{device} of {mesh}")]


def _split_step(name: str, text: str) -> dict[str, str]:
    """Return a step of the explanation, split into its value and the detail after it."""
    value, detail = (*_DETAIL.split(text, maxsplit=1), "")[:2]
    return {"name": name, "value": value, "detail": detail}


def _requested_element(fields: FormFields, spec: TensorSpec, base: int | None) -> tuple[tuple[int, ...] | None, str]:
    """Return the requested element, or None and the reason why there is none."""
    if fields.get("address"):
        bank = _parse_bank(fields, spec)
        element = explain_address(spec, bank, _parse_address(fields), base=base)
        why = f"Address {fields['address']} of bank {bank} holds {element}."
        return (element.coordinate if element.kind == "data" else None), why
    if fields.get("page"):
        page = parse_integer(fields, "page", 0)
        return _first_of_page(spec, page), f"Page {page} is all padding."
    return parse_element(fields, spec), ""


def _parse_bank(fields: FormFields, spec: TensorSpec) -> int:
    bank, (chip, buffer) = parse_integer(fields, "bank", 0), (spec.known_chip, spec.memory.buffer_type)
    if bank >= chip.banks(buffer):
        raise FieldError("bank", f"{chip.name} has no {buffer} bank {bank}; use 0 to {chip.banks(buffer) - 1}")
    return bank


def _parse_address(fields: FormFields) -> int:
    text = fields["address"].strip().lower()
    try:
        return int(text[:18], 16) if text.startswith("0x") else parse_integer(fields, "address", 0)
    except ValueError:
        raise FieldError("address", f"{fields['address']!r} is not an address; write 1048640 or 0x100040") from None


def _first_of_page(spec: TensorSpec, page: int) -> tuple[int, ...] | None:
    """Return the first element of a page that is data, or None if the page is all padding."""
    if not 0 <= page < spec.num_pages:
        raise FieldError("page", f"page {page} does not exist; pages are 0 to {spec.num_pages - 1}")
    for start in range(0, spec.page_elements, spec.page_shape[1]):
        coordinate, is_data = spec.coordinate_of(page, start)
        if is_data:
            return tuple(coordinate[len(coordinate) - spec.shape.rank :])
    return None


def describe_core(fields: FormFields) -> dict[str, Any]:
    """Return the contents of one core or bank: its pages in consecutive runs, with their addresses.

    >>> words = {"shape": "128x64", "memory": "height_sharded", "buffer": "l1", "grid": "2x1", "chip": "n150"}
    >>> describe_core({**words, "core": "1,0"})["rows"][0]["pages"]
    '4 to 7'
    """
    spec = require_placement(parse_spec(fields))
    chip, buffer = spec.known_chip, spec.memory.buffer_type
    if fields.get("core"):
        core = (*parse_integers(fields, "core", "0,0", 2), 0)[:2]
        bank = attribute_errors("core", lambda: chip.bank_of(core, buffer))
    else:
        bank = _parse_bank(fields, spec)
    if spec.num_pages > MAX_LISTED:
        raise FieldError(
            "shape",
            f"{spec.num_pages} pages are more than can be listed ({MAX_LISTED}); look at single elements instead",
        )
    try:
        table = spec.pages()
    except OutOfMemory:
        table = spec.pages(base=0)
    pages = np.flatnonzero(table.bank == bank)
    pages = pages[np.argsort(table.address[pages], kind="stable")]
    owner = chip.core_of(bank, buffer)
    rows, num_runs = _page_rows(spec, pages, table.address[pages])
    return {
        "bank": bank,
        "core": f"{owner.x},{owner.y}" if buffer.is_l1 else None,
        "memory": str(buffer),
        "pages": len(pages),
        "bytes": len(pages) * spec.aligned_page_bytes,
        "bank_bytes": chip.bank_bytes(buffer),
        "rows": rows,
        "more": max(0, num_runs - MAX_ROWS),
    }


def _page_rows(
    spec: TensorSpec, pages: NDArray[np.int64], address: NDArray[np.int64]
) -> tuple[list[dict[str, Any]], int]:
    """Return the first runs of consecutive pages at consecutive addresses, and the number of all runs."""
    broken = (np.diff(pages) != 1) | (np.diff(address) != spec.aligned_page_bytes)
    starts = [0, *(np.flatnonzero(broken) + 1).tolist()] if len(pages) else []
    shards = np.asarray(spec.paging.shard_table()[0]) if spec.memory.is_sharded else None
    rows = []
    for start, end in pairwise([*starts, len(pages)][: MAX_ROWS + 1]):
        first, last = int(pages[start]), int(pages[end - 1])
        rows.append(
            {
                "page": first,
                "pages": str(first) if first == last else f"{first} to {last}",
                "shard": None if shards is None else int(shards[first]),
                "matrix": _page_origin(spec, first),
                "address": int(address[start]),
                "end": int(address[end - 1]) + spec.aligned_page_bytes,
            }
        )
    return rows, len(starts)


def _page_origin(spec: TensorSpec, page: int) -> str:
    high, wide = spec.page_shape
    across = max(1, spec.physical_shape[1] // wide)
    return f"row {page // across * high}, column {page % across * wide}"


def placement_picture(fields: FormFields) -> Scene:
    """Return the pages of the spec, and the banks or cores that hold them.

    >>> len(placement_picture({"shape": "64x64", "chip": "n150"}).panels)
    2
    """
    spec = require_placement(parse_spec(fields))
    return attribute_scene(fields, lambda options: spec_scene(spec, side=MAX_SIDE, **options))


def mesh_picture(fields: FormFields) -> Scene:
    """Return the devices that share the tensor, and their parts.

    >>> mesh_picture({"shape": "64x96", "mesh": "1x2", "cut": "1"}).panels[0].columns
    2
    """
    mesh = parse_mesh(fields)
    if mesh is None:
        raise FieldError("mesh", "one device holds the tensor; give a mesh, such as 1x2")
    start = mesh.window_of(parse_device(fields, mesh)).offset
    return mesh_scene(mesh, at=start, **parse_scene_options(fields))


def memory_picture(fields: FormFields) -> Scene:
    """Return the memory map of the spec, with circular buffers.

    >>> memory_picture({"shape": "64x64", "buffer": "l1", "chip": "n150"}).panels[0].unit
    'bytes'
    """
    spec = require_placement(parse_spec(fields))
    allocator = Allocator(spec.known_chip)
    block = allocator.allocate(spec)
    names = {block.number: f"{spell_extents(spec.shape.logical)} {spec.dtype}"}
    circular = parse_bytes(fields, "circular")
    if circular and spec.memory.buffer_type.is_l1:
        circular_block = allocator.reserve(allocator.start_address("l1"), circular, "l1")
        names[circular_block.number] = "circular buffers"
    return memory_scene(
        allocator, buffer_type=spec.memory.buffer_type, names=names, whole=bool(circular), **parse_scene_options(fields)
    )


# The pipeline of a tensor, drawn: its tiles, and when each is imported, computed and exported.

MAX_BUFFERS = 16
MAX_TILES_DRAWN = 24
MAX_TILE_SIDE = 32  # of the tiles, which only accompany the schedule


def pipeline_tiler(fields: FormFields) -> Tiler:
    """Return the tiler of the pipeline in the form.

    >>> pipeline_tiler({"shape": "64x64", "tile_moved": "32x64", "chip": "n150"}).count
    2
    """
    spec = parse_spec(fields)
    shape = spec.shape.logical or (1,)
    tile = parse_integers(fields, "tile_moved", spell_extents(shape)) or _default_tile(spec)
    if len(tile) < len(shape):
        tile = (1,) * (len(shape) - len(tile)) + tile
    overlap = parse_integer(fields, "overlap", 0)
    halo = (0,) * (len(shape) - min(2, len(shape))) + (overlap,) * min(2, len(shape))
    return attribute_errors("tile_moved", lambda: Tiler(shape, tile, overlap=halo))


def _default_tile(spec: TensorSpec) -> tuple[int, ...]:
    shape = spec.shape.logical
    rows = min(shape[-2], spec.tile.height) if len(shape) > 1 else 1
    return ((1,) * (len(shape) - 2) + (rows, shape[-1])) if len(shape) > 1 else shape or (1,)


def tiles_picture(fields: FormFields) -> Scene:
    """Return the tiles of the pipeline in the form.

    >>> tiles_picture({"shape": "64x64", "chip": "n150"}).title
    '64 x 64 in tiles of 32 x 64'
    """
    return tiler_scene(pipeline_tiler(fields), side=MAX_TILE_SIDE, **parse_scene_options(fields))


def schedule_picture(fields: FormFields) -> Scene:
    """Return the schedule of the pipeline in the form.

    >>> schedule_picture({"shape": "64x64", "scheme": "duplex", "chip": "n150"}).title
    'duplex buffering'
    """
    scheme = fields.get("scheme") or "double"
    depth = parse_integer(fields, "depth", 3 if scheme in ("buffered", "direct") else 2)
    if not 1 <= depth <= MAX_BUFFERS:
        raise FieldError("depth", f"depth {depth} cannot be drawn; use 1 to {MAX_BUFFERS}")
    times = parse_integers(fields, "times", "1x2x1: import, compute, export", 3) or (2, 3, 2)
    if len(times) != 3 or not all(times):
        raise FieldError(
            "times", f"{fields.get('times')!r}: expected the times of import, compute and export, such as 1x2x1"
        )
    tiler = pipeline_tiler(fields)
    tiles = tiler.count
    if not tiles:
        raise FieldError("shape", "the tensor has no elements; give every dimension at least 1")
    depth = 2 if scheme == "double" else depth
    schedule = attribute_errors("scheme", lambda: Schedule(scheme, min(tiles, 1 << 40), depth=depth))
    scene = schedule_scene(schedule, times=times, tiles=MAX_TILES_DRAWN)
    return replace(scene, facts=(*scene.facts, _buffer_fact(parse_spec(fields), tiler, schedule)))


def _buffer_fact(spec: TensorSpec, tiler: Tiler, schedule: Schedule) -> Fact:
    """Return the L1 space of the buffers of a pipeline, if elements have the format of the tensor."""
    buffer_bytes = -(-prod(tiler.largest_tile) * spec.page_bytes // spec.page_elements)
    total, available = len(schedule.buffers) * buffer_bytes, spec.known_chip.bank_bytes("l1")
    words = f"{len(schedule.buffers)} x {buffer_bytes} = {total} bytes, of {available} in the L1 of a core"
    return Fact("buffers", words, "good" if total <= available else "bad")


# The card of a model: whether it fits a machine with its users, from its config.json.

MAX_CONFIG = 1 << 18  # characters of a config.json


def list_model_choices() -> dict[str, Any]:
    """Return the machines that a model can be fitted on.

    >>> list_model_choices()["machine"][:2]
    ['N150', 'N300']
    """
    return {"machine": list(Recipe.load().devices)}


def describe_model(fields: FormFields) -> dict[str, Any]:
    """Return whether the model of a pasted `config` fits a `machine`, with `users` and a `context`, and what would.

    >>> config = '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,'
    >>> config += '"intermediate_size": 64, "vocab_size": 64}'
    >>> describe_model({"config": config, "machine": "N300", "users": "8"})["fits"]
    True
    """
    text = fields.get("config", "").strip()
    if len(text) > MAX_CONFIG:
        raise FieldError("config", f"the config.json has {len(text)} characters; use at most {MAX_CONFIG}")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FieldError("config", f"expected JSON: {problem}; paste the whole config.json of a model") from None
    if not isinstance(config, Mapping):
        raise FieldError("config", f"expected an object, got {text[:40]}; paste the whole config.json of a model")
    question: dict[str, Any] = {
        "users": parse_integer(fields, "users", 1),
        "context": parse_integer(fields, "context", 0) or None,
    }
    machine = fields.get("machine") or "N150"
    report = attribute_errors("config", lambda: capacity(config, machine, **question))
    others = attribute_errors("config", lambda: list_machines(config, **question))
    verdict, _, rest = str(report).partition("\n")
    return {
        "fits": report.fits,
        "verdict": verdict,
        "text": rest,
        "changes": list(report.changes()),
        "machines": [
            {"name": name, "fits": other.fits, "users": other.largest_users, "context": other.largest_context}
            for name, other in others.items()
            if isinstance(other, Capacity)
        ],
        "scene": render_for_page(capacity_scene(report)),
    }
