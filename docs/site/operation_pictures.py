# SPDX-License-Identifier: Apache-2.0
"""Pictures of the algebra's operations: the first example of each docstring, its layouts and its result, drawn."""

import ast
import doctest
import inspect
from dataclasses import replace
from typing import Any

from tilewright import layout, views

MOST_CELLS = 130  # a larger picture shows less


def operation_pictures() -> dict[str, str]:
    """Return the pictures of those functions of the algebra whose first example has one, as SVG by name."""
    functions = {name: getattr(layout, name) for name in layout.__all__}
    drawn = {name: picture_of(function) for name, function in functions.items() if inspect.isfunction(function)}
    return {name: picture for name, picture in drawn.items() if picture}


def picture_of(function: Any) -> str:
    """Return the first call in a function's docstring as a picture: the layouts that go in, and what comes out."""
    (test,) = doctest.DocTestFinder(recurse=False).find(function, function.__name__) or (None,)
    names = dict(function.__globals__)
    for example in test.examples if test else ():
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.__name__:
                values = [(ast.unparse(part), eval(ast.unparse(part), names)) for part in node.args]
                return drawing(ast.unparse(node), values, eval(ast.unparse(node), names))
        exec(example.source, names)
    return ""


def drawing(call: str, arguments: list[tuple[str, Any]], result: Any) -> str:
    """Return the layouts among the arguments and the result of a call side by side as SVG, if they are worth it."""
    values = [(text, value) for text, value in [*arguments, ("the result", result)] if isinstance(value, layout.Layout)]
    if not isinstance(result, (layout.Layout, bool)) or any(value.size > MOST_CELLS for _, value in values):
        return ""
    panels = (replace(views.scene_of(value, memory=False).panels[0], title=text) for text, value in values)
    return views.to_svg(views.Scene(call, tuple(panels), note=f"= {result}"))
