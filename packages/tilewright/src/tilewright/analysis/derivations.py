# SPDX-License-Identifier: Apache-2.0
"""The algebra of layouts step by step: how a composition, complement, division or product comes about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._integers import ceil_div
from ..errors import LayoutError
from ..layout import (
    Layout,
    LayoutArgument,
    LayoutLike,
    ShapeArgument,
    Tiler,
    as_tree,
    blocked_product,
    coalesce,
    complement,
    compose,
    flat_divide,
    flat_product,
    free_positions,
    functionally_equal,
    join,
    left_inverse,
    logical_divide,
    logical_product,
    product,
    raked_product,
    right_inverse,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)

_LISTED = 6  # elements that a sentence lists
_MAX_PLACES = 32  # of an image that is listed


@dataclass(frozen=True, slots=True)
class AlgebraStep:
    """One step of a derivation: an operation of name `title` on `operands`, its `result`, and why, in a `sentence`.

    >>> step = AlgebraStep("complement", (Layout(4), 16), Layout(4, 4), "the places that the tile leaves free")
    >>> print(step)
    complement(4:1, 16) = 4:4
        the places that the tile leaves free
    """

    title: str
    operands: tuple[Any, ...]
    result: Any
    sentence: str

    def __str__(self) -> str:
        operands = ", ".join([format_operand(operand) for operand in self.operands])
        return f"{self.title}({operands}) = {format_operand(self.result)}\n    {self.sentence}"


def format_operand(operand: object) -> str:
    """Return an `operand` of the algebra as text: layouts as they print, tuples of them in brackets.

    >>> format_operand((Layout(4, 2), (3, None)))
    '(4:2,(3,None))'
    """
    if isinstance(operand, (tuple, list)):
        return f"({','.join(map(format_operand, operand))})"
    return str(operand)


def explain_steps(operation: str | Callable[..., Any], *operands: Any) -> tuple[AlgebraStep, ...]:
    """Return the steps by which an operation of the algebra finds its result; the last step has it.

    `operation` is "compose", "complement", "coalesce", "left_inverse", "right_inverse", a divide or a product such as
    "zipped_divide" and "blocked_product", or the function of that name; `operands` are its operands.

    >>> for step in explain_steps("logical_divide", Layout(16), 4):
    ...     print(step)
    complement(4:1, 16) = 4:4
        where the tiles start: the places up to 16 that the tile 4:1 leaves free
    join(4:1, 4:4) = (4,4):(1,4)
        the tile first, then the tiles
    logical_divide(16:1, 4) = (4,4):(1,4)
        compose(16:1, (4,4):(1,4)): first the elements of a tile, then the tiles
    """
    name = operation if isinstance(operation, str) else getattr(operation, "__name__", repr(operation))
    name = {"composition": "compose"}.get(name, name)
    if name not in _OPERATIONS:
        raise LayoutError(f"cannot explain {name!r}; operations with steps are {', '.join(sorted(_OPERATIONS))}")
    function, explain = _OPERATIONS[name]
    least, most = (1, 2) if name in ("complement", "coalesce") else (1, 1) if name.endswith("inverse") else (2, 2)
    if not least <= len(operands) <= most:
        raise LayoutError(f"{name} takes {least if least == most else '1 or 2'} operands, got {len(operands)}")
    values = tuple([as_tree(operand) for operand in operands])
    result = function(*values)  # refuses wrong operands
    return tuple(explain(name, result, _as_layout(values[0]), *values[1:]))


def _explain_compose(name: str, result: LayoutLike, a: LayoutLike, b: Any) -> list[AlgebraStep]:
    if isinstance(b, tuple):
        parts = [compose(a.mode(k), tiler) for k, tiler in enumerate(b)]
        steps = [
            AlgebraStep(name, (a.mode(k), tiler), part, f"mode {k} by itself")
            for k, (tiler, part) in enumerate(zip(b, parts, strict=True))
        ]
        return [*steps, AlgebraStep(name, (a, b), result, "a tuple is composed mode by mode")]
    b = _as_layout(b)
    steps = _steps_of_modes(a, b, result) if isinstance(result, Layout) and isinstance(a, Layout) else []
    count = min(_LISTED, int(result.size))
    trace = ", ".join([f"{i} -> {b(i)} -> {result(i)}" for i in range(count)])
    law = "R(i) == A(B(i))" + (f": {trace}{', ...' * (result.size > count)}" if trace else "")
    if not isinstance(result, Layout):
        law = f"no strides describe it, so B is evaluated, then A; {law}"
    return [*steps, AlgebraStep(name, (a, b), result, law)]


def _steps_of_modes(a: Layout, b: LayoutLike, result: Layout) -> list[AlgebraStep]:
    """Return the steps for each mode of `b`; none if the composition cannot be made mode by mode."""
    if not isinstance(b, Layout) or b.offset or b.replicas or b.guards or b.axes or a.guards or result.guards:
        return []
    modes = [(n, d) for n, d in zip(*b.flat_modes(), strict=True)]
    if any(d < 0 or n == 0 for n, d in modes):
        return []
    parts = [compose(a, Layout(n, d)) for n, d in modes]
    if not all(isinstance(part, Layout) for part in parts):
        return []
    together = join(*[part - a.offset for part in parts]) + a.offset
    if not functionally_equal(together, result):
        return []
    if len(modes) == 1 and modes[0][1] < 2:
        return []  # the composition itself
    steps = []
    for (n, d), part in zip(modes, parts, strict=True):
        if d > 1 and a.size > d:
            spaced = compose(a, Layout(ceil_div(a.size, d), d))
            if isinstance(spaced, Layout):
                steps.append(AlgebraStep("divide", (a, d), spaced, f"A at multiples of {d}, the stride of B"))
        sentence = f"{n} of these" if d > 1 else f"the first {n} elements of A" if d else "A(0), over and over"
        steps.append(AlgebraStep("compose", (a, Layout(n, d)), part, sentence))
    return steps


def _explain_complement(
    name: str, result: LayoutLike, layout: LayoutLike, bound: ShapeArgument | None = None
) -> list[AlgebraStep]:
    operands = (layout,) if bound is None else (layout, bound)
    limit = int(layout.cosize) if bound is None and not layout.axes else product(as_tree(bound or 0))
    steps = []
    if isinstance(layout, Layout) and not layout.axes and not layout.replicas and 0 < layout.size <= _MAX_PLACES:
        image = tuple(sorted({int(layout(i)) for i in range(layout.size)}))
        steps.append(AlgebraStep("image", (layout,), image, "the places in use"))
    modes: list[tuple[int, int]] = []
    if isinstance(layout, Layout) and not layout.axes:
        modes = sorted([(d, n) for n, d in zip(*layout.flat_modes(), strict=True) if d and n > 1])
    filled, exact = 1, True
    for d, n in modes:
        exact = exact and d % filled == 0
        if exact and d > filled:
            gap = Layout(d // filled, filled)
            text = f"{filled} place{'s' * (filled > 1)} filled, the next stride is {d}: {d // filled} fit before it"
            steps.append(AlgebraStep("gap", (Layout(n, d),), gap, text))
        filled = d * n
    copies = ceil_div(limit, filled)
    if exact and copies > 1:
        steps.append(
            AlgebraStep(
                "repeat", (filled, limit), Layout(copies, filled), f"blocks of {filled} until {limit} places are filled"
            )
        )
    free = f"the places in [0, {limit}) where copies of {layout} can start without a collision"
    return [*(steps if exact else steps[:1]), AlgebraStep(name, operands, result, free)]


def _explain_divide(name: str, result: LayoutLike, layout: LayoutLike, tiler: Tiler) -> list[AlgebraStep]:
    if name != "logical_divide":
        first = logical_divide(layout, tiler)
        return [
            *_explain_divide("logical_divide", first, layout, tiler),
            AlgebraStep(name, (layout, tiler), result, f"the same modes, grouped as {_DIVIDE_FORMS[name]}"),
        ]
    if tiler is None:
        return [AlgebraStep(name, (layout, tiler), result, "the mode stays whole")]
    if isinstance(tiler, tuple):
        modes = [layout.mode(k) for k in range(len(tiler))]
        steps = [
            step
            for mode, part in zip(modes, tiler, strict=True)
            for step in _explain_divide(name, logical_divide(mode, part), mode, part)
        ]
        return [*steps, AlgebraStep(name, (layout, tiler), result, "mode by mode: (tile, rest) for each")]
    tile = _as_layout(tiler)
    rest = complement(tile, layout.size)
    both = join(tile, rest)
    where = f"where the tiles start: the places up to {layout.size} that the tile {tile} leaves free"
    return [
        AlgebraStep("complement", (tile, layout.size), rest, where),
        AlgebraStep("join", (tile, rest), both, "the tile first, then the tiles"),
        AlgebraStep(
            name, (layout, tiler), result, f"compose({layout}, {both}): first the elements of a tile, then the tiles"
        ),
    ]


def _explain_product(name: str, result: LayoutLike, block: LayoutLike, tiler: Tiler) -> list[AlgebraStep]:
    if isinstance(tiler, tuple):
        modes = [block.mode(k) for k in range(len(tiler))] if name == "logical_product" else []
        steps = [
            AlgebraStep(name, (mode, part), logical_product(mode, part), f"mode {k} by itself")
            for k, (mode, part) in enumerate(zip(modes, tiler, strict=False))
        ]
        return [*steps, AlgebraStep(name, (block, tiler), result, _PRODUCT_FORMS[name])]
    copies = _as_layout(tiler)
    if isinstance(block, Layout) and not copies.axes and not block.axes:
        free = free_positions(block, copies.cosize)
        placed = compose(free, copies)
        bound = f"size(A) * cosize(B) = {block.size} * {copies.cosize} = {block.size * copies.cosize}"
        steps = [
            AlgebraStep("complement", (block, block.size * copies.cosize), free, f"where copies can start; {bound}"),
            AlgebraStep("compose", (free, copies), placed, "the copies in the order of B"),
        ]
    else:
        steps = []
    if name != "logical_product":
        steps.append(
            AlgebraStep(
                "logical_product", (block, tiler), logical_product(block, tiler), _PRODUCT_FORMS["logical_product"]
            )
        )
    return [*steps, AlgebraStep(name, (block, tiler), result, _PRODUCT_FORMS[name])]


def _explain_inverse(name: str, result: LayoutLike, layout: LayoutLike) -> list[AlgebraStep]:
    is_right = name == "right_inverse"
    size = int(result.size) if is_right else int(layout.size)
    count = min(_LISTED, size)
    pairs = [(i, result(i), layout(result(i))) if is_right else (i, layout(i), result(layout(i))) for i in range(count)]
    trace = ", ".join([f"{i} -> {there} -> {back}" for i, there, back in pairs])
    law = "L(R(i)) == i" if is_right else "R(L(i)) == i"
    return [
        AlgebraStep("coalesce", (layout,), coalesce(layout), "the same function with the fewest modes"),
        AlgebraStep(name, (layout,), result, f"{law}: {trace}{', ...' * (size > count)}"),
    ]


def _explain_coalesce(
    name: str, result: LayoutLike, layout: LayoutArgument, profile: ShapeArgument | None = None
) -> list[AlgebraStep]:
    steps: list[AlgebraStep] = []
    if isinstance(layout, Layout) and profile is None and not layout.guards:
        modes = [(n, d) for n, d in zip(*layout.flat_modes(), strict=True) if n != 1]
        n, d = modes[0] if modes else (1, 0)
        for after, step in modes[1:]:
            merges = step == n * d
            pair = (Layout(n, d), Layout(after, step))
            merged = Layout(n * after, d) if merges else Layout((n, after), (d, step))
            relation = f"{step} is {'' if merges else 'not '}{n} * {d}: {'one mode' if merges else 'two modes'}"
            steps.append(AlgebraStep("merge", pair, merged, relation))
            n, d = (n * after, d) if merges else (after, step)
    operands = (layout,) if profile is None else (layout, profile)
    return [*steps, AlgebraStep(name, operands, result, "the same function of the index, with the fewest modes")]


def _as_layout(value: Any) -> Any:
    """Return an operand as a layout: an integer or a shape stands for the compact one."""
    return value if isinstance(value, LayoutLike) or callable(value) else Layout(value)


_DIVIDE_FORMS = {
    "zipped_divide": "((tile, ...), (rest, ...))",
    "tiled_divide": "((tile, ...), rest, ...)",
    "flat_divide": "(tile, ..., rest, ...)",
}
_PRODUCT_FORMS = {
    "logical_product": "(block, copies): the block first, then its copies",
    "zipped_product": "the same modes, grouped as ((block, ...), (copies, ...))",
    "tiled_product": "the same modes, grouped as ((block, ...), copies, ...)",
    "flat_product": "the same modes, grouped as (block, ..., copies, ...)",
    "blocked_product": "mode by mode (block, copies): the block varies fastest, so that copies stay whole",
    "raked_product": "mode by mode (copies, block): the copies vary fastest, so that their elements are interleaved",
}
_DIVIDES = (logical_divide, zipped_divide, tiled_divide, flat_divide)
_PRODUCTS = (logical_product, zipped_product, tiled_product, flat_product, blocked_product, raked_product)
_OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., list[AlgebraStep]]]] = {
    "compose": (compose, _explain_compose),
    "complement": (complement, _explain_complement),
    "coalesce": (coalesce, _explain_coalesce),
    "left_inverse": (left_inverse, _explain_inverse),
    "right_inverse": (right_inverse, _explain_inverse),
    **{divide.__name__: (divide, _explain_divide) for divide in _DIVIDES},
    **{repeat.__name__: (repeat, _explain_product) for repeat in _PRODUCTS},
}
