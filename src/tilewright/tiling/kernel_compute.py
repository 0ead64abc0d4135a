# SPDX-License-Identifier: Apache-2.0
"""C code for the compute of a kernel: the user's C, with names for the elements of the tiles.

For every element of an output, `in0` is the element of the first input at the same index of its tile, `in0(i0 + 1, i1)`
any other one, and `out0` is what will be stored. With each="tile" there are no loops around the user's statements: all
threads of the work-group run them (`THREAD` of `THREADS`, with `BARRIER`), and store with `set_out0(value, i0, i1)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..copying.codegen.arithmetic import reader_functions, writer_functions
from ..copying.codegen.c_language import indent
from ..errors import TransferError
from .kernel_operand import KernelOperand

COMPUTE_UNITS = ("element", "tile")


def compute_statements(compute: Any, outputs: Sequence[KernelOperand]) -> str:
    """Return a compute as C statements; it may be statements, an expression, or one expression per output.

    >>> from tilewright.tiling.tiler import Tiler
    >>> from tilewright.formats import float32
    >>> compute_statements("2 * in0", [KernelOperand("out0", Tiler((4,), (2,)), (4,), float32, None, 16)])
    'out0 = 2 * in0;'
    """
    if isinstance(compute, str):
        if ";" in compute:
            return compute.strip("\n")
        compute = [compute]
    if isinstance(compute, Mapping):
        missing = [each.name for each in outputs if each.name not in compute]
        if missing or len(compute) != len(outputs):
            raise TransferError(
                f"the compute has expressions for {', '.join(map(str, compute))}, but the outputs are"
                f" {', '.join(each.name for each in outputs)}; give one expression per output"
            )
        compute = [compute[each.name] for each in outputs]
    if not isinstance(compute, Sequence) or not all(isinstance(each, str) and each.strip() for each in compute):
        raise TransferError(
            f"expected C statements or an expression such as '2 * in0', got {compute!r}; Python functions run on the"
            " host, with Pipeline.run"
        )
    if len(compute) != len(outputs):
        raise TransferError(
            f"the compute has {len(compute)} expressions, but the pipeline has {len(outputs)} outputs; give one"
            " expression per output, or statements that assign to out0, out1, ..."
        )
    return "\n".join(f"{each.name} = {text.strip()};" for each, text in zip(outputs, compute, strict=True))


def element_accessors(inputs: Sequence[KernelOperand], outputs: Sequence[KernelOperand]) -> list[str]:
    """Return the functions that convert elements to and from numbers, and macros that name elements."""
    functions: dict[str, None] = {}
    names = []
    for operand in inputs:
        functions.update(dict.fromkeys(reader_functions(f"{operand.name}_value", operand.format)[1]))
        indices = [f"i{k}" for k in range(operand.rank)]
        names.append(
            f"#define {operand.name}({', '.join(indices)})"
            f" {operand.name}_value({operand.name}_buffer[{operand.buffer_index(indices)}])"
        )
    for operand in outputs:
        functions.update(dict.fromkeys(writer_functions(f"{operand.name}_code", operand.format)[1]))
        indices = [f"i{k}" for k in range(operand.rank)]
        names.append(
            f"#define set_{operand.name}(value, {', '.join(indices)})"
            f" ({operand.name}_buffer[{operand.buffer_index(indices)}] = {operand.name}_code(value))"
        )
    return [*[text.rstrip("\n") for text in functions], *names]


def compute_function(
    body: str, each: str, inputs: Sequence[KernelOperand], outputs: Sequence[KernelOperand]
) -> list[str]:
    """Return the function that computes a tile."""
    arguments = [f"LOCAL const {operand.bits_type} *{operand.name}_buffer" for operand in inputs]
    arguments += [f"LOCAL {operand.bits_type} *{operand.name}_buffer" for operand in outputs]
    arguments += [f"const {operand.name}_box_t {operand.name}_box" for operand in (*inputs, *outputs)]
    head = f"INLINE void compute(const u32 tile, {', '.join(arguments)}) {{"
    own = body.splitlines()
    if each == "tile":
        return [head, *indent(own), "}"]
    for operand in outputs:
        validate_matching_tiles(operand, outputs[0], "a compute per element stores one element of each output")
    used = [operand for operand in inputs if re.search(rf"\b{operand.name}\b(?!\s*\()", body)]
    for operand in used:
        validate_matching_tiles(
            operand, outputs[0], f"{operand.name} is the element at the same index of its tile", larger=True
        )
    first = outputs[0]
    indices = ", ".join(f"i{k}" for k in range(first.rank))
    inner = [
        f"const {reader_functions('', operand.format)[0]} {operand.name} = {operand.name}({indices});"
        for operand in used
    ]
    inner += [f"{writer_functions('', operand.format)[0]} {operand.name};" for operand in outputs]
    inner += ["{", *indent(own), "}"]
    inner += [f"set_{operand.name}({operand.name}, {indices});" for operand in outputs]
    return [head, *indent(_element_loop(first, inner)), "}"]


def _element_loop(operand: KernelOperand, body: list[str]) -> list[str]:
    """Return a loop in which threads share the elements of a tile of an output."""
    extents = operand.tiler.largest
    below, digits = 1, []
    for k in reversed(range(operand.rank)):
        text = "q" if below == 1 else f"q / {below}u"
        digits.append(f"i{k} = {text}" if k == 0 else f"i{k} = {text} % {extents[k]}u")
        below *= extents[k]
    box = f"{operand.name}_box"
    locations = ", ".join(f"x{k} = {box}.at{k} + ({operand.index_type})i{k}" for k in range(operand.rank))
    ragged = [k for k, (_, _, extent, _, rest) in enumerate(operand.tiler.axes) if rest != extent]
    lines = [f"const u32 {', '.join(digits[::-1])};", f"const {operand.index_type} {locations};"]
    if ragged:
        body = [f"if ({' && '.join(f'i{k} < {box}.n{k}' for k in ragged)}) {{", *indent(body), "}"]
    return [f"for (u32 q = THREAD; q < {below}u; q += THREADS) {{", *indent([*lines, *body]), "}"]


def validate_matching_tiles(operand: KernelOperand, first: KernelOperand, why: str, larger: bool = False) -> None:
    """Raise unless the tiles of an operand have the shapes of those of `first`, or with `larger` contain them.

    >>> from tilewright.tiling.tiler import Tiler
    >>> from tilewright.formats import float32
    >>> first = KernelOperand("out0", Tiler((4,), (2,)), (4,), float32, None, 16)
    >>> validate_matching_tiles(first, first, "they are the same")
    """
    mine, other = operand.tiler, first.tiler
    pairs = list(zip(mine.axes, other.axes, strict=False))
    sizes = [(a, b) for (_, _, *one), (_, _, *two) in pairs for a, b in ((one[0], two[0]), (one[2], two[2]))]
    fits = all(a >= b if larger else a == b for a, b in sizes)
    if mine.grid != other.grid or mine.order != other.order or not fits:
        raise TransferError(
            f"{why}, but the tiles of {operand.name} ({mine}) and of {first.name} ({other}) differ; name elements by"
            f" index, as in {operand.name}(0, 0), or compute whole tiles with each='tile'"
        )
