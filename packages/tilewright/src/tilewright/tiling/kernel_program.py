# SPDX-License-Identifier: Apache-2.0
"""`KernelProgram`: the C source of a pipeline kernel, in which work-groups import the next tiles while they compute.

For every element of an output, `in0` is the element of the first input at the same index of its tile, `in0(i0 + 1, i1)`
any other one, and `out0` is what will be stored. With each="tile" there are no loops around the user's statements: all
threads of the work-group run them (`THREAD` of `THREADS`, with `BARRIER`), and store with `set_out0(value, i0, i1)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..copying.codegen import (
    Kernel,
    c_dialect,
    conditional,
    indent,
    needs_double,
    read_header,
    reader_functions,
    shared_arrays,
    writer_functions,
)
from ..errors import TransferError
from .kernel_operand import (
    KernelOperand,
    export_code,
    import_code,
    index_names,
    inside_tile_conditions,
    thread_loop,
)

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
        missing = [operand.name for operand in outputs if operand.name not in compute]
        if missing or len(compute) != len(outputs):
            raise TransferError(
                f"the compute has expressions for {', '.join(map(str, compute))}, but the outputs are"
                f" {', '.join(operand.name for operand in outputs)}; give one expression per output"
            )
        compute = [compute[operand.name] for operand in outputs]
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
    functions: dict[str, None] = {}  # an ordered set
    names = []
    for operand in (*inputs, *outputs):
        indices = ", ".join(index_names(operand))
        element = f"{operand.name}_buffer[{operand.buffer_index(index_names(operand))}]"
        if operand in inputs:
            functions |= dict.fromkeys(reader_functions(f"{operand.name}_value", operand.format)[1])
            names.append(f"#define {operand.name}({indices}) {operand.name}_value({element})")
        else:
            functions |= dict.fromkeys(writer_functions(f"{operand.name}_code", operand.format)[1])
            names.append(f"#define set_{operand.name}(value, {indices}) ({element} = {operand.name}_code(value))")
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
    first, box = outputs[0], f"{outputs[0].name}_box"
    indices = ", ".join(index_names(first))
    inner = [
        f"const {reader_functions('', operand.format)[0]} {operand.name} = {operand.name}({indices});"
        for operand in used
    ]
    inner += [f"{writer_functions('', operand.format)[0]} {operand.name};" for operand in outputs]
    inner += ["{", *indent(own), "}"]
    inner += [f"set_{operand.name}({operand.name}, {indices});" for operand in outputs]
    inside = " && ".join(inside_tile_conditions(first, first.rank, box))
    return [head, *indent(thread_loop(first, conditional(inside, inner), box=box)), "}"]


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


NAME = "tw_pipeline"


@dataclass(frozen=True)
class KernelProgram:
    """A pipeline as C source: its operands, its compute, the buffers per operand, and the threads of a work-group.

    >>> from tilewright.tiling.tiler import Tiler
    >>> from tilewright.formats import float32
    >>> tiler = Tiler((10,), (4,))
    >>> ends = [KernelOperand(name, tiler, (4,), float32, None, 16) for name in ("in0", "out0")]
    >>> source = KernelProgram("opencl", (ends[0],), (ends[1],), "out0 = 2 * in0;", "element", "", 2, 64)
    >>> source.kernel().shared
    (('in0_buffers', 32), ('out0_buffers', 32), ('spare', 16))
    >>> "async_work_group_copy" in source.text()
    True
    """

    dialect: str
    inputs: tuple[KernelOperand, ...]
    outputs: tuple[KernelOperand, ...]
    body: str
    each: str
    functions: str
    buffers: int
    threads: int

    @property
    def operands(self) -> tuple[KernelOperand, ...]:
        """Return the inputs, then the outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def _is_opencl(self) -> bool:
        return self.dialect == "opencl"

    def kernel(self) -> Kernel:
        """Return the launch parameters: the name, the threads, and the memory of a work-group."""
        # stores of CUDA are synchronous, so one output buffer is enough
        leaving = self.buffers if self._is_opencl else 1
        shared = [(f"{operand.name}_buffers", self.buffers * operand.buffer_bytes) for operand in self.inputs]
        shared += [(f"{operand.name}_buffers", leaving * operand.buffer_bytes) for operand in self.outputs]
        if self._is_opencl:
            shared.append(("spare", 16))
        return Kernel(NAME, self._header_comment(), (), 0, self.threads, (), tuple(shared))

    def _header_comment(self) -> str:
        buffers = "1 buffer" if self.buffers == 1 else f"{self.buffers} buffers"
        return "\n".join([*[operand.describe() for operand in self.operands], f"{buffers} per input"])

    def text(self) -> str:
        """Return the source."""
        words = c_dialect(self.dialect)
        lines = [words.prelude]
        if needs_double(*[each.format for each in self.operands]):
            lines.append(words.doubles)
        lines += [read_header(f"{self.dialect}_{part}") for part in ("pipeline", "async")]
        for operand in self.operands:
            lines += [f"// {operand.describe()}", *operand.box_code()]
            moving = import_code if operand in self.inputs else export_code
            lines += [*moving(operand, self.dialect), ""]
        lines += [*element_accessors(self.inputs, self.outputs), *self.functions.splitlines(), ""]
        lines += [
            *compute_function(self.body, self.each, self.inputs, self.outputs),
            "",
            *self._import_tile_function(),
            "",
        ]
        return "\n".join([*lines, *self._kernel_function(), ""])

    def _memory_parameters(self, operands: Sequence[KernelOperand], starts: bool) -> list[str]:
        result = []
        for each in operands:
            result.append(f"GLOBAL {'const ' if each in self.inputs else ''}u8 *{each.name}_memory")
            if starts:
                result.append(f"const u64 {each.name}_start")
        return result + [f"GLOBAL const i32 *{operand.name}_tiles" for operand in operands if operand.is_listed]

    def _import_tile_function(self) -> list[str]:
        """Return the function that imports a tile of every input."""
        arguments = ["const u32 tile", *self._memory_parameters(self.inputs, starts=False)]
        arguments += [f"LOCAL {operand.bits_type} *{operand.name}_buffer" for operand in self.inputs]
        result, assigned, passed, end = "void", "", "", []
        if self._is_opencl:
            arguments += ["LOCAL v16 *spare", "event_t event"]
            result, assigned, passed, end = "event_t", "event = ", ", spare, event", ["return event;"]
        calls = [
            f"{assigned}{operand.name}_import({operand.name}_buffer, {operand.name}_memory,"
            f" {operand.find_call('tile')}{passed});"
            for operand in self.inputs
        ]
        return [f"INLINE {result} import_tile({', '.join(arguments)}) {{", *indent([*calls, *end]), "}"]

    def _buffer_pointer(self, operand: KernelOperand, number: str) -> str:
        start = f"(LOCAL {operand.bits_type} *){operand.name}_buffers"
        count = operand.buffer_bytes // operand.size
        return f"{start} + ({number}) * {count}u" if number else start

    def _import_call(self, tile: str, buffer: str) -> str:
        """Return the statement that starts to import a tile."""
        arguments = [tile, *[f"{operand.name}_memory" for operand in self.inputs]]
        arguments += [f"{operand.name}_tiles" for operand in self.inputs if operand.is_listed]
        arguments += [self._buffer_pointer(operand, buffer) for operand in self.inputs]
        if not self._is_opencl:
            return f"import_tile({', '.join(arguments)});"
        return f"arriving[{buffer}] = import_tile({', '.join([*arguments, 'spare', '0'])});"

    def _kernel_function(self) -> list[str]:
        kernel, buffers, opencl = self.kernel(), self.buffers, self._is_opencl
        ahead = max(1, buffers - 1)
        tiles = self.operands[0].tiler.count
        arguments = self._memory_parameters(self.operands, starts=opencl)
        notes = [f"// {line}" for line in kernel.note.splitlines()]
        head = f"KERNEL({self.threads}) {NAME}({', '.join(arguments)}) {{"
        start = shared_arrays(kernel, dynamic=not opencl and bool(kernel.large_shared))
        if opencl:
            start += [f"{operand.name}_memory += {operand.name}_start;" for operand in self.operands]
            start += [f"event_t arriving[{buffers}], leaving[{buffers}];"]
            first = f"(GLOBAL const u8 *){self.operands[0].name}_memory"
            for k in range(buffers):  # every buffer starts free, with the event of a dummy copy
                spare = f"async_work_group_copy((LOCAL u8 *)spare, {first}, 1, 0)"
                start.append(f"leaving[{k}] = {spare};")
        going = "STARTED;" if not opencl and self.inputs else ""
        if self.inputs:
            for k in range(ahead):
                tile = "GROUP" if k == 0 else f"GROUP + {k}u * GROUPS"
                start.append(f"if ({tile} < {tiles}u) {{ {self._import_call(tile, str(k))} }}")
                start += [going] if going else []
        body = [f"const u32 buffer = {'turn % ' + str(buffers) + 'u' if buffers > 1 else '0u'};"]
        coming = f"tile + {ahead}u * GROUPS" if ahead > 1 else "tile + GROUPS"
        later = f"(turn + {ahead}u) % {buffers}u" if buffers > 1 else "0u"
        next_one = [f"const u32 next = {coming};", f"if (next < {tiles}u) {{ {self._import_call('next', later)} }}"]
        next_one = [*next_one, *([going] if going else [])] if self.inputs else []
        if buffers > 1:
            body += next_one
        if self.inputs:
            body.append(
                "wait_group_events(1, &arriving[buffer]);" if opencl else f"ARRIVED({ahead if buffers > 1 else 0});"
            )
        if opencl:
            body.append("wait_group_events(1, &leaving[buffer]);")
        body += [
            "BARRIER;",
            *[
                f"const {operand.name}_box_t {operand.name}_box = {operand.find_call('tile')};"
                for operand in self.operands
            ],
        ]
        for operand in self.outputs:
            pointer = self._buffer_pointer(operand, "buffer" if opencl else "")
            body.append(f"LOCAL {operand.bits_type} *{operand.name}_buffer = {pointer};")
        given = [f"({self._buffer_pointer(operand, 'buffer')})" for operand in self.inputs] + [
            f"{operand.name}_buffer" for operand in self.outputs
        ]
        given += [f"{operand.name}_box" for operand in self.operands]
        body += [f"compute(tile, {', '.join(given)});", "BARRIER;"]
        if buffers == 1:
            body += next_one
        for k, each in enumerate(self.outputs):
            call = f"{each.name}_export({each.name}_buffer, {each.name}_memory, {each.name}_box"
            body.append(
                f"leaving[buffer] = {call}, spare, {'leaving[buffer]' if k else '0'});" if opencl else f"{call});"
            )
        loop = f"for (u32 tile = GROUP, turn = 0; tile < {tiles}u; tile += GROUPS, ++turn) {{"
        end = [f"wait_group_events({buffers}, leaving);"] if opencl else []
        return [*notes, head, *indent([*start, loop, *indent(body), "}", *end]), "}"]
