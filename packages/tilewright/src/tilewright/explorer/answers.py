# SPDX-License-Identifier: Apache-2.0
"""The answers of the explorer: every question has a name and gets fields of text; both engines of the page ask here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from ..errors import TilewrightError
from ..formats import BLOCK_FORMATS, SCALAR_FORMATS
from ..memory import HEIGHTS, WIDTHS, chip_names
from ..plugins import load_plugin
from ..tiling import SCHEMES
from ..views.html import to_html
from ..views.scene import Scene, to_json
from ..views.svg import to_svg
from .form import BASES, MEMORIES, FieldError, FormFields, Tab, render_for_page
from .layout_tab import describe_layout, layout_picture, list_layout_choices
from .reshard_tab import describe_reshard, draw_reshard, list_reshard_choices, play_reshard
from .tensor_tab import (
    describe_core,
    describe_element,
    describe_model,
    describe_placement,
    list_model_choices,
    memory_picture,
    mesh_picture,
    placement_picture,
    schedule_picture,
    tiles_picture,
)

_DTYPES = (*SCALAR_FORMATS, *BLOCK_FORMATS)
_EXPORTS: dict[str, tuple[Callable[[Scene], str], str]] = {
    "svg": (to_svg, "image/svg+xml"),
    "html": (to_html, "text/html; charset=utf-8"),
    "json": (to_json, "application/json"),
}


def list_choices(fields: FormFields) -> dict[str, Any]:
    """Return the choices of each field.

    >>> list_choices({})["layout"]
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
        "base": list(BASES),
        **list_model_choices(),
        **list_reshard_choices(),
        **list_layout_choices(),
        **({} if (tab := _find_kernel_tab()) is None else tab.choices()),
    }


def _find_kernel_tab() -> Tab | None:
    """Return the tab of kernels, which the companion tilewright-mojo brings; None without it."""
    tab = load_plugin("tabs", "kernel", Tab)
    return tab if isinstance(tab, Tab) else None


def answer_kernel(fields: FormFields) -> dict[str, Any]:
    """Return the result of the program in the form, if a companion can run it."""
    tab = _find_kernel_tab()
    if tab is None:
        raise FieldError("source", "running kernels needs tilewright-mojo: pip install 'tilewright[mojo]'")
    return tab.answer(fields)


ANSWERS: dict[str, Callable[[FormFields], dict[str, Any]]] = {
    "choices": list_choices,
    "placement": describe_placement,
    "element": describe_element,
    "core": describe_core,
    "model": describe_model,
    "reshard": describe_reshard,
    "play": play_reshard,
    "layout": describe_layout,
    "kernel": answer_kernel,
}
"""Questions that are answered in words."""

PICTURES: dict[str, Callable[[FormFields], Scene]] = {
    "placement": placement_picture,
    "mesh": mesh_picture,
    "memory": memory_picture,
    "tiles": tiles_picture,
    "schedule": schedule_picture,
    "layout": layout_picture,
    "flows": partial(draw_reshard, view="map"),
    "links": partial(draw_reshard, view="links"),
    "timeline": partial(draw_reshard, view="timeline"),
}
"""Questions that are answered by a picture."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a question: a `status` of HTTP, the `body`, and its content type, `kind`.

    >>> reply = Reply(HTTPStatus.OK, "{}")
    >>> reply.kind
    'application/json'
    """

    status: HTTPStatus
    body: str
    kind: str = "application/json"


def answer_query(path: str, fields: FormFields) -> Reply:
    """Return the answer to the question at a `path`: answer/NAME, picture/NAME, or export/NAME.SUFFIX.

    `fields` are the fields of the form.

    >>> [answer_query(path, {"notation": "4:x"}).status.value for path in ("picture/layout", "answer/nothing")]
    [422, 404]
    """
    endpoint, _, name = path.partition("/")
    stem, _, suffix = name.partition(".")
    functions: Mapping[str, Callable[[FormFields], Any]] = ANSWERS if endpoint == "answer" else PICTURES
    is_known = endpoint in ("answer", "picture", "export") and stem in functions
    if not is_known or (suffix not in _EXPORTS if endpoint == "export" else suffix):
        return refuse(HTTPStatus.NOT_FOUND, "not found")
    return handle_errors(lambda: _answer(functions[stem], fields, suffix))


def _answer(function: Callable[[FormFields], Any], fields: FormFields, suffix: str) -> Reply:
    result = function(fields)
    if suffix:
        render, content_type = _EXPORTS[suffix]
        return Reply(HTTPStatus.OK, render(result), content_type)
    return Reply(HTTPStatus.OK, encode_json(render_for_page(result) if isinstance(result, Scene) else result))


def handle_errors(make: Callable[[], Reply]) -> Reply:
    """Return the result of `make`; an error becomes an answer with its message.

    >>> def fail():
    ...     raise FieldError("shape", "no shape")
    >>> handle_errors(fail).body
    '{"error":"no shape","field":"shape"}'
    """
    try:
        return make()
    except TilewrightError as problem:
        field = problem.field if isinstance(problem, FieldError) else None
        return refuse(HTTPStatus.UNPROCESSABLE_ENTITY, str(problem), field)
    except Exception as problem:  # unexpected: the page shows it, and the engine goes on
        reason = f"tilewright failed: {type(problem).__name__}: {problem}; this is a bug, please report it"
        return refuse(HTTPStatus.INTERNAL_SERVER_ERROR, reason)


def refuse(status: HTTPStatus, reason: str, field: str | None = None) -> Reply:
    """Return an answer with a `status` other than OK, the `reason`, and the `field` that it is about.

    >>> refuse(HTTPStatus.NOT_FOUND, "not found").body
    '{"error":"not found","field":null}'
    """
    return Reply(status, encode_json({"error": reason, "field": field}))


def encode_json(data: object) -> str:
    """Return `data` as compact JSON.

    >>> encode_json({"a": [1, 2]})
    '{"a":[1,2]}'
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
