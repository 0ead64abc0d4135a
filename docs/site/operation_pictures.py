# SPDX-License-Identifier: Apache-2.0
"""Pictures of the algebra's operations: the first example of each docstring, its layouts and its result, drawn."""

import ast
import doctest
import inspect
from dataclasses import replace
from typing import Any

from tilewright import layout, views
from tilewright.errors import TilewrightError

MOST_CELLS = 130  # a larger picture shows less
NOT_OPERATIONS = {"coordinates", "parse"}


def operation_pictures() -> dict[str, str]:
    """Return the picture of each function of the algebra whose first example has one, as SVG by the function's name."""
    functions = [(name, getattr(layout, name)) for name in layout.__all__ if inspect.isfunction(getattr(layout, name))]
    drawn = ((name, picture_of(function)) for name, function in functions if name not in NOT_OPERATIONS)
    return {name: picture for name, picture in drawn if picture is not None}


def picture_of(function: Any) -> str | None:
    """Return the first call in a function's docstring as a picture: the layouts that go in, and what comes out."""
    for test in doctest.DocTestFinder(recurse=False).find(function, function.__name__):
        names = dict(function.__globals__)
        for example in test.examples:
            call = next((node for node in ast.walk(ast.parse(example.source)) if calls(node, function)), None)
            if isinstance(call, ast.Call):
                given = [(ast.unparse(argument), evaluate(argument, names)) for argument in call.args]
                return drawing(ast.unparse(call), [*given, ("the result", evaluate(call, names))])
            exec(example.source, names)
    return None


def calls(node: ast.AST, function: Any) -> bool:
    """Return whether a node of a syntax tree calls a function by its name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.__name__


def evaluate(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return the value of an expression."""
    return eval(compile(ast.Expression(node), "<example>", "eval"), names)


def drawing(title: str, values: list[tuple[str, Any]]) -> str | None:
    """Return the layouts among some values side by side as SVG, or None if there is nothing worth a look."""
    panels = []
    for text, value in values:
        if isinstance(value, layout.Layout) and value.size <= MOST_CELLS:
            try:
                scene = views.scene_of(value, memory=False)
            except TilewrightError:
                continue
            panels += [replace(panel, title=text) for panel in scene.panels[:1]]
    if not panels or not isinstance(values[-1][1], (layout.Layout, bool)):
        return None
    result = f"= {values[-1][1]}"
    return views.to_svg(views.Scene(title, tuple(panels), note=result))
