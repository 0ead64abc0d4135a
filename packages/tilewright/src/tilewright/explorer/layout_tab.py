# SPDX-License-Identifier: Apache-2.0
"""The tab of a layout: any notation, an operation of the algebra with its steps, threads, and bank conflicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..analysis import AlgebraStep, bank_conflicts, explain_steps, find_remedy, format_operand
from ..errors import LayoutError, TilewrightError
from ..layout import LayoutLike, Linear, product_each
from ..notation import writable_notations, write
from ..notation.any_text import TYPED, element_options
from ..notation.parsing import parse_with_spare_shape
from ..views.scene import Scene
from ..views.scenes import scene_of
from ..views.scenes.layouts import bank_options
from ..views.scenes.threads import bank_scene, thread_value_scene
from .form import (
    FieldError,
    FormFields,
    attribute_errors,
    attribute_scene,
    parse_integer,
    parse_integers,
    render_for_page,
)

OPERATIONS = {
    "compose": "compose(A, B)",
    "logical_divide": "logical_divide(A, B)",
    "zipped_divide": "zipped_divide(A, B)",
    "logical_product": "logical_product(A, B)",
    "blocked_product": "blocked_product(A, B)",
    "raked_product": "raked_product(A, B)",
    "complement": "complement(A, B)",
    "coalesce": "coalesce(A)",
    "right_inverse": "right_inverse(A)",
    "left_inverse": "left_inverse(A)",
}
"""The operations that the page offers, as they are written."""
STATED = "stated"  # the bytes of an element that the text of the layout states
ITEM_SIZES = (STATED, "1", "2", "4", "8", "16")
MAX_TEXT = 4000  # characters of a layout
MAX_SIDE = 64  # rows and columns of a picture
MAX_OPERAND_SIDE = 32  # of an operand, which only accompanies the result
MAX_LISTED = 1 << 12  # elements and threads that are listed one by one
_UNSUITABLE = (TypeError, RecursionError)  # errors of operands that an operation does not take
_TILER = re.compile(r"\s*<(.*)>\s*", re.DOTALL)


def list_layout_choices() -> dict[str, Any]:
    """Return the choices of the fields of a layout.

    >>> list_layout_choices()["operation"]["coalesce"]
    'coalesce(A)'
    """
    return {"operation": OPERATIONS, "itemsize": list(ITEM_SIZES)}


@dataclass(frozen=True, slots=True)
class LayoutQuestion:
    """The question of the form: the `operands`, their names being A and B, the `result`, and the `steps` to it.

    >>> question = LayoutQuestion({"A": 8}, None, ())
    >>> question.steps
    ()
    """

    operands: Mapping[str, Any]
    result: Any
    steps: tuple[AlgebraStep, ...]


def parse_question(fields: FormFields) -> LayoutQuestion:
    """Return the layout of the form, or the result of the form's operation on it.

    >>> fields = {"notation": "(4,8):(8,1)", "op": "compose", "other": "8:4"}
    >>> print(parse_question(fields).result)
    8:1
    """
    first = _parse_layout(fields, "notation")
    operation = fields.get("op", "")
    if not operation:
        return LayoutQuestion({}, first, ())
    if operation not in OPERATIONS:
        raise FieldError("op", f"unknown operation {operation!r}; choose one of {', '.join(OPERATIONS)}")
    operands = {"A": first}
    has_text = bool(fields.get("other", "").strip())
    if "B" in OPERATIONS[operation] and (has_text or operation != "complement"):
        operands["B"] = _parse_operand(fields, "other")
    if isinstance(first, Linear):
        raise FieldError("op", "a map of registers has no operations; clear the operation to draw it")
    steps = attribute_errors("op", lambda: explain_steps(operation, *operands.values()), *_UNSUITABLE)
    return LayoutQuestion(operands, steps[-1].result, steps)


def describe_layout(fields: FormFields) -> dict[str, Any]:
    """Return a layout with its operands, steps, threads, bank conflicts and notations; scenes are plain data.

    Errors in fields beside the layout are in `problems`, by the name of the field.

    >>> answer = describe_layout({"notation": "(32,32):(32,1)", "threads": "32:1"})
    >>> answer["banks"]["facts"][0]["value"], answer["remedy"]["text"]
    ('32-way conflict, assuming elements of 4 bytes', 'Sw<5,0,5> o (32,32):(32,1)')
    """
    question = parse_question(fields)
    problems: dict[str, str] = {}

    def draw_part(field: str, draw: Callable[[], Any]) -> Any:
        """Return the result of `draw` if the field is filled; its errors belong to the field alone."""
        if not fields.get(field, "").strip():
            return None
        try:
            return draw()
        except TilewrightError as problem:
            problems[problem.field if isinstance(problem, FieldError) else field] = str(problem)
            return None

    threads = draw_part("tile", lambda: render_for_page(_thread_picture(fields, question.result)))
    banks = draw_part("threads", lambda: _describe_banks(fields, question.result))
    return {
        "text": str(question.result),
        "operands": [
            {"name": name, "text": format_operand(operand), **_draw_operand(operand)}
            for name, operand in question.operands.items()
        ],
        "scene": render_for_page(_result_picture(fields, question.result)),
        "steps": [_describe_step(step) for step in question.steps],
        "notations": _translate(question.result, fields),
        "threads": threads,
        "banks": banks and banks["scene"],
        "remedy": banks and banks["remedy"],
        "problems": problems,
    }


def layout_picture(fields: FormFields) -> Scene:
    """Return the picture of the layout in the form.

    >>> layout_picture({"notation": "(4,8):(8,1)"}).title
    '(4,8):(8,1)'
    """
    return _result_picture(fields, parse_question(fields).result)


def _parse_layout(fields: FormFields, field: str, shape: Any = None) -> Any:
    text = fields.get(field, "").strip()
    if not text:
        raise FieldError(field, "the layout is missing; write one, such as (4,8):(8,1) or Sw<3,0,3> o (8,8):(8,1)")
    if len(text) > MAX_TEXT:
        raise FieldError(field, f"the layout has {len(text)} characters; use at most {MAX_TEXT}")
    parsed: Any = attribute_errors(field, lambda: _parse_text(fields, field, shape), *_UNSUITABLE)
    return attribute_errors(field, lambda: getattr(parsed, "memory_layout", parsed), *_UNSUITABLE)


def _parse_text(fields: FormFields, field: str, shape: Any = None) -> object:
    """Return the object that the text in a field describes; without a shape, it gets `shape`, or the form's."""
    if field == "notation":
        shape = parse_integers(fields, "extents", "8x8") or None
    elif shape is not None:
        shape = product_each(shape)
    return parse_with_spare_shape(fields[field].strip(), shape)


def _parse_operand(fields: FormFields, field: str) -> Any:
    """Return an operand: a layout, a number, or a tiler with one of these per mode, written as <4:1,8>."""
    text = fields.get(field, "").strip()
    tiler = _TILER.fullmatch(text)
    parts = _split_parts(tiler[1]) if tiler else [text]
    operands = tuple([int(part) if _is_number(part) else _parse_layout({field: part}, field) for part in parts])
    return operands if tiler else operands[0]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12


def _split_parts(text: str) -> list[str]:
    """Return the parts between the commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "(<[") - (character in ")>]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _result_picture(fields: FormFields, layout: object) -> Scene:
    sides = {} if isinstance(layout, Linear) else {"side": MAX_SIDE, **bank_options(layout, _parse_itemsize(fields))}

    def draw() -> Scene:
        return attribute_scene(fields, lambda options: scene_of(layout, **sides, **options))

    return attribute_errors("notation", draw, *_UNSUITABLE)


def _draw_operand(operand: object) -> dict[str, Any]:
    """Return the picture of an operand, or a note on one that cannot be drawn, such as a swizzle or a number."""
    if not isinstance(operand, LayoutLike):
        return {"scene": None, "note": "It has no shape of its own to draw."}
    try:
        return {"scene": render_for_page(scene_of(operand, side=MAX_OPERAND_SIDE, memory=False))}
    except TilewrightError as problem:
        return {"scene": None, "note": str(problem)}


def _describe_step(step: AlgebraStep) -> dict[str, str]:
    operands = ", ".join([format_operand(operand) for operand in step.operands])
    return {"name": step.title, "operands": operands, "result": format_operand(step.result), "why": step.sentence}


def _require_listable(layout: object, field: str) -> Any:
    if not isinstance(layout, LayoutLike):
        raise FieldError(field, f"threads need a layout of elements, got {type(layout).__name__}")
    if layout.size > MAX_LISTED:
        raise FieldError(field, f"{layout} has {layout.size} elements; at most {MAX_LISTED} are listed here")
    return layout


def _thread_picture(fields: FormFields, layout: object) -> Scene:
    extents = parse_integers(fields, "tile", "16x8", 2)
    if len(extents) != 2 or not 0 < extents[0] * extents[1] <= MAX_LISTED:
        raise FieldError("tile", f"a tile has two extents and at most {MAX_LISTED} elements; write it as 16x8")
    return thread_value_scene(_require_listable(layout, "tile"), extents)


def _describe_banks(fields: FormFields, memory: Any) -> dict[str, Any]:
    """Return the conflicts of an access to the layout as shared memory, and the swizzle that would prevent them."""
    threads = _parse_layout(fields, "threads", getattr(memory, "shape", None))
    threads = threads if isinstance(threads, Linear) else _require_listable(threads, "threads")
    if isinstance(memory, LayoutLike) and memory.axes:
        raise FieldError("threads", f"{memory} maps to named axes; shared memory has one, so write it without names")
    itemsize = _parse_itemsize(fields)
    report = bank_conflicts(memory, threads, itemsize=itemsize)
    remedy = None if report.conflict_free else _find_remedy(memory, threads, itemsize)
    return {"scene": render_for_page(bank_scene(report)), "remedy": remedy}


def _parse_itemsize(fields: FormFields) -> int | None:
    """Return the bytes of an element as the form chooses them, or as the text of the layout states them, if it does."""
    chosen = fields.get("itemsize", STATED) or STATED
    if chosen != STATED:
        itemsize = parse_integer(fields, "itemsize", 4)
        if str(itemsize) not in ITEM_SIZES:
            raise FieldError("itemsize", f"an element has {', '.join(ITEM_SIZES[1:])} bytes, got {itemsize}")
        return itemsize
    return getattr(_parse_text(fields, "notation"), "itemsize", None)


def _find_remedy(memory: Any, threads: Any, itemsize: int | None) -> dict[str, str]:
    try:
        search = find_remedy(memory, threads, itemsize=itemsize)
    except LayoutError as problem:
        return {"text": "", "note": str(problem)}
    layout = search.apply(memory)
    if layout is None:
        return {"text": "", "note": f"The best of {search.searched} candidates is {search.remedy}."}
    after, ideal = sum(search.wavefronts), sum(search.ideal)
    worth = "It has no conflicts" if search.is_conflict_free else f"It takes {after} wavefronts, ideally {ideal}"
    return {"text": str(layout), "note": f"{worth}; {search.searched} were tried."}


def _translate(layout: object, fields: FormFields) -> list[dict[str, str]]:
    """Return a layout in the notations that can express it, except the one in which it was given.

    `assumed` is the element type of a notation that needs one, where the text of the layout states none.
    """
    texts, parsed = [], _parse_text(fields, "notation")
    for name in writable_notations():
        try:
            options = element_options(parsed, name)
            spelled = write(layout, name, **options)
        except TilewrightError:
            continue
        if spelled != fields["notation"].strip():
            assumed = TYPED[name] if name in TYPED and not options else ""
            texts.append({"name": name, "text": spelled, "assumed": assumed})
    return texts
