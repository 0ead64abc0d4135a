# SPDX-License-Identifier: Apache-2.0
"""What the page is told in words and numbers: the library's own answers, as plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import OutOfMemory, TilewrightError
from ...formats.catalogue import BLOCK_FORMATS
from ...formats.scalar import SCALAR_FORMATS
from ...memory import TensorSpec, Where, chip_names, fit
from ...memory.tile import HEIGHTS, WIDTHS
from ...tiling.schedule import SCHEMES
from ..scenes.pages import page_grid, page_scene
from .pictures import drawn
from .questions import (
    MEMORIES,
    FieldError,
    Words,
    arguments_of,
    by,
    drawable,
    element_of,
    number,
    numbers,
    require_place,
    spec_of,
    words_of,
)

MOST_ROWS = 64  # of what a core holds
_DTYPES = (*SCALAR_FORMATS, *BLOCK_FORMATS)


def choices(words: Words) -> dict[str, Any]:
    """Return what can be chosen in each field.

    >>> choices({})["layout"]
    ['tile', 'row_major']
    """
    first = ("bfloat16", "bfloat8_b", "bfloat4_b", "float32", "int32", "uint32", "uint16", "uint8")
    return {
        "dtype": [*first, *(name for name in _DTYPES if name not in first)],
        "layout": ["tile", "row_major"],
        "tile": [f"{high}x{wide}" for wide in WIDTHS for high in HEIGHTS],
        "memory": list(MEMORIES),
        "buffer": ["dram", "l1"],
        "orientation": ["row_major", "col_major"],
        "distribution": ["round_robin_1d", "grid_2d", "contiguous_1d"],
        "chip": chip_names(),
        "dispatch": ["fast", "slow"],
        "scheme": list(SCHEMES),
    }


# Questions about a spec.


def placement(words: Words) -> dict[str, Any]:
    """Return what is known about a spec: itself in Python, its facts, whether it fits, and what would if not.

    >>> placement({"shape": "64x64", "chip": "n150"})["fit"]["fits"]
    True
    """
    arguments = arguments_of(words)
    chip = arguments["chip"]
    answer = fit(arguments, chip, circular_buffers=number(words, "circular", 0))
    tensor = answer.tensors[0]
    spec = tensor.spec
    view = next(
        (view for view in answer.memories if spec is not None and view.buffer_type is spec.memory.buffer_type), None
    )
    return {
        "spec": None if spec is None else _about(spec),
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
            "alternatives": [{"text": str(each), "words": words_of(each.spec)} for each in answer.alternatives],
        },
    }


def _about(spec: TensorSpec) -> dict[str, Any]:
    sharding = spec.memory.sharding
    facts = {
        "shape": by(spec.shape.logical),
        "padded shape": by(spec.padded_shape),
        "stored as": f"{by(spec.physical_shape)} matrix",
        "page": f"{by(spec.page_shape)}, {spec.page_bytes} bytes",
        "pages": str(spec.num_pages),
        "shard": "none" if sharding is None else by(sharding.shape),
        "bytes": str(spec.nbytes),
        "padding": f"{spec.padding_bytes} bytes ({spec.padding_bytes / spec.nbytes if spec.nbytes else 0:.1%})",
    }
    if not spec.violations():
        facts |= {
            "banks used": str(len(set(spec.banks))),
            "bytes of each bank": str(spec.allocated_bytes),
            "page spacing": f"{spec.aligned_page_bytes} bytes",
        }
    return {"python": repr(spec), "text": str(spec), "facts": facts, "words": words_of(spec)}


def element(words: Words) -> dict[str, Any]:
    """Return the way of one element: by its coordinate (`at`), its `page`, or its `bank` and `address`.

    >>> found = element({"shape": "64x64", "chip": "n150", "at": "33,5"})
    >>> [step["name"] for step in found["steps"]]
    ['element', 'padded', 'tile', 'face', 'page', 'bank', 'address']
    """
    spec = spec_of(words)
    require_place(spec)
    base = None
    note = ""
    try:
        _ = spec.first_address
    except OutOfMemory:
        base, note = 0, "The tensor does not fit its chip: addresses are counted from the start of its buffer."
    at = _asked_element(words, spec, base)
    if at is None:
        return {"at": None, "note": "No element lies there: it is padding, a gap, an exponent or not of this tensor."}
    where = spec.where(*at, base=base)
    scene = page_scene(spec, at=at)
    return {
        "at": list(at),
        "page": where.page,
        "core": f"{where.core.x},{where.core.y}",
        "bank": where.bank,
        "address": where.address,
        "steps": _steps(spec, where),
        "note": note,
        "scene": drawn(scene),
    }


def _asked_element(words: Words, spec: TensorSpec, base: int | None) -> tuple[int, ...] | None:
    if words.get("address"):
        place = number(words, "bank", 0)
        if place >= spec.known_chip.banks(spec.memory.buffer_type):
            raise FieldError("bank", f"there is no bank {place}; {spec.known_chip}")
        return spec.element_at(place, _address(words), base=base)
    if words.get("page"):
        return _first_of_page(spec, number(words, "page", 0))
    return element_of(words, spec)


def _address(words: Words) -> int:
    text = words["address"].strip().lower()
    if not text.startswith("0x"):
        return number(words, "address", 0)
    try:
        return int(text[:18], 16)
    except ValueError:
        raise FieldError("address", f"{words['address']!r} is no address; write 1048640 or 0x100040") from None


def _first_of_page(spec: TensorSpec, page: int) -> tuple[int, ...] | None:
    """Return the first element of a page that is data, None if all of it is padding."""
    grid = page_grid(spec, page)
    names = grid.field("element").values
    valid = grid.valid or (True,) * len(names)
    first = next((name for name, alive in zip(names, valid, strict=True) if alive), None)
    return None if first is None else tuple(int(n) for n in first.split(",") if n)


def _steps(spec: TensorSpec, where: Where) -> list[dict[str, str]]:
    """Return the chain of an element, each step with its name, its value and what it means."""
    found = [
        ("element", f"({', '.join(map(str, where.coordinate))})", f"of {by(spec.shape.logical)}"),
        ("padded", f"row {where.row}, column {where.column}", f"of the {by(where.matrix_shape)} matrix"),
    ]
    if where.tile is not None and where.in_tile is not None and where.in_face is not None:
        found += [
            ("tile", f"({where.tile[0]}, {where.tile[1]})", f"row {where.in_tile[0]}, column {where.in_tile[1]} in it"),
            ("face", str(where.face), f"row {where.in_face[0]}, column {where.in_face[1]} in it"),
        ]
    bit = f", bit {where.bit}" if where.bit else ""
    found.append(("page", str(where.page), f"element {where.element}, byte {where.byte}{bit} in it"))
    if where.shard is not None:
        found.append(("shard", f"{where.shard} = {where.shard_coordinate}", f"page {where.page_in_shard} in it"))
    if where.buffer_type.is_l1:
        found.append(("core", str(where.core), f"{where.buffer_type} bank {where.bank}"))
    else:
        found.append(("bank", str(where.bank), f"of {where.buffer_type}"))
    found.append(("address", str(where.address), f"{where.address:#x} = buffer {where.base} + {where.offset}"))
    if where.exponent is not None:
        found.append(("exponent", str(where.exponent), "shared with its neighbours"))
    return [{"name": name, "value": value, "detail": detail} for name, value, detail in found]


def core(words: Words) -> dict[str, Any]:
    """Return what one core or bank holds: its pages, in runs that follow each other, with their addresses.

    >>> words = {"shape": "128x64", "memory": "height_sharded", "buffer": "l1", "grid": "2x1", "chip": "n150"}
    >>> core({**words, "core": "1,0"})["rows"][0]["pages"]
    '4 to 7'
    """
    spec = drawable(spec_of(words))
    require_place(spec)
    chip, buffer = spec.known_chip, spec.memory.buffer_type
    if words.get("core"):
        place = (*numbers(words, "core", "0,0", 2), 0)[:2]
        try:
            bank = chip.bank_of(place, buffer)
        except TilewrightError as problem:
            raise FieldError("core", str(problem)) from None
    else:
        bank = number(words, "bank", 0)
        if bank >= chip.banks(buffer):
            raise FieldError("bank", f"{chip.name} has no {buffer} bank {bank}; use 0 to {chip.banks(buffer) - 1}")
    try:
        table = spec.pages()
    except OutOfMemory:
        table = spec.pages(base=0)
    pages = np.flatnonzero(table.bank == bank)
    pages = pages[np.argsort(table.address[pages], kind="stable")]
    owner = chip.core_of(bank, buffer)
    return {
        "bank": bank,
        "core": f"{owner.x},{owner.y}" if buffer.is_l1 else None,
        "memory": str(buffer),
        "pages": len(pages),
        "bytes": len(pages) * spec.aligned_page_bytes,
        "bank_bytes": chip.bank_bytes(buffer),
        "rows": _held(spec, pages, table.address[pages]),
        "more": max(0, _runs(pages, table.address[pages], spec).size - MOST_ROWS),
    }


def _runs(pages: Any, address: Any, spec: TensorSpec) -> Any:
    """Return where runs of pages start that follow each other in number and in address."""
    if not len(pages):
        return np.zeros(0, dtype=np.int64)
    broken = (np.diff(pages) != 1) | (np.diff(address) != spec.aligned_page_bytes)
    return np.concatenate([[0], np.flatnonzero(broken) + 1])


def _held(spec: TensorSpec, pages: Any, address: Any) -> list[dict[str, Any]]:
    starts = _runs(pages, address, spec)
    ends = np.append(starts[1:], len(pages))
    shards = np.asarray(spec.paging.shard_table()[0]) if spec.memory.is_sharded else None
    rows = []
    for start, end in zip(starts[:MOST_ROWS].tolist(), ends[:MOST_ROWS].tolist(), strict=True):
        first, last = int(pages[start]), int(pages[end - 1])
        rows.append(
            {
                "page": first,
                "pages": str(first) if first == last else f"{first} to {last}",
                "shard": None if shards is None else int(shards[first]),
                "matrix": _box(spec, first),
                "address": int(address[start]),
                "end": int(address[end - 1]) + spec.aligned_page_bytes,
            }
        )
    return rows


def _box(spec: TensorSpec, page: int) -> str:
    high, wide = spec.page_shape
    across = max(1, spec.physical_shape[1] // wide)
    return f"row {page // across * high}, column {page % across * wide}"


QUESTIONS: dict[str, Callable[[Words], dict[str, Any]]] = {
    "choices": choices,
    "placement": placement,
    "element": element,
    "core": core,
}
