# SPDX-License-Identifier: Apache-2.0
"""The program of a kernel: work-groups take tiles in turn, and import the next ones while they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...copying.codegen.arithmetic import needs_double
from ...copying.codegen.c_language import c_dialect, indent
from ...copying.codegen.kernel import Kernel
from ...copying.codegen.program import shared_arrays
from .computing import computing, values
from .moving import CUDA_WORDS, OPENCL_WORDS, exported, imported
from .operand import Operand

NAME = "tw_pipeline"


@dataclass(frozen=True)
class KernelSource:
    """A pipeline as it becomes a program: what it moves, what it computes, how many rooms each operand has.

    >>> from ..tiler import Tiler
    >>> from tilewright.formats import float32
    >>> tiler = Tiler((10,), (4,))
    >>> ends = [Operand(name, tiler, (4,), float32, None, 16) for name in ("in0", "out0")]
    >>> source = KernelSource("opencl", (ends[0],), (ends[1],), "out0 = 2 * in0;", "element", "", 2, 64)
    >>> source.kernel().shared
    (('in0_rooms', 32), ('out0_rooms', 32), ('spare', 16))
    >>> "async_work_group_copy" in source.text()
    True
    """

    dialect: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    body: str
    each: str
    functions: str
    rooms: int
    threads: int

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Return the inputs, then the outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def _is_opencl(self) -> bool:
        return self.dialect == "opencl"

    def kernel(self) -> Kernel:
        """Return what a launch has to know: threads, and the memory of a work-group."""
        # a store of CUDA is over when its thread goes on, so one room for what leaves is enough
        leaving = self.rooms if self._is_opencl else 1
        shared = [(f"{each.name}_rooms", self.rooms * each.room_bytes) for each in self.inputs]
        shared += [(f"{each.name}_rooms", leaving * each.room_bytes) for each in self.outputs]
        if self._is_opencl:
            shared.append(("spare", 16))
        return Kernel(NAME, self._note(), (), 0, self.threads, (), tuple(shared))

    def _note(self) -> str:
        rooms = {1: "one room", 2: "two rooms"}.get(self.rooms, f"{self.rooms} rooms")
        return "\n".join([*[each.described() for each in self.operands], f"{rooms} for the tiles of each input"])

    def text(self) -> str:
        """Return the program."""
        words = c_dialect(self.dialect)
        lines = [words.prelude]
        if needs_double(*[each.format for each in self.operands]):
            lines.append(words.doubles)
        lines.append(OPENCL_WORDS if self._is_opencl else CUDA_WORDS)
        for operand in self.operands:
            lines += [f"// {operand.described()}", *operand.box()]
            moving = imported if operand in self.inputs else exported
            lines += [*moving(operand, self.dialect), ""]
        lines += [*values(self.inputs, self.outputs), *self.functions.splitlines(), ""]
        lines += [*computing(self.body, self.each, self.inputs, self.outputs), "", *self._import_all(), ""]
        return "\n".join([*lines, *self._main(), ""])

    def _memories(self, operands: Sequence[Operand], starts: bool) -> list[str]:
        found = []
        for each in operands:
            found.append(f"GLOBAL {'const ' if each in self.inputs else ''}u8 *{each.name}_memory")
            if starts:
                found.append(f"const u64 {each.name}_start")
        return found + [f"GLOBAL const i32 *{each.name}_tiles" for each in operands if each.listed]

    def _import_all(self) -> list[str]:
        """Return the function that imports a tile of every input."""
        arguments = [*self._memories(self.inputs, starts=False)]
        arguments += [f"LOCAL {each.raw} *{each.name}_room" for each in self.inputs]
        if not self._is_opencl:
            head = f"INLINE void import_tile({', '.join(['const u32 tile', *arguments])}) {{"
            calls = [
                f"{each.name}_import({each.name}_room, {each.name}_memory, {each.find('tile')});"
                for each in self.inputs
            ]
            return [head, *indent(calls), "}"]
        arguments += ["LOCAL v16 *spare", "event_t under_way"]
        head = f"INLINE event_t import_tile({', '.join(['const u32 tile', *arguments])}) {{"
        calls = [
            f"under_way = {each.name}_import({each.name}_room, {each.name}_memory, {each.find('tile')},"
            " spare, under_way);"
            for each in self.inputs
        ]
        return [head, *indent([*calls, "return under_way;"]), "}"]

    def _room(self, operand: Operand, number: str) -> str:
        start = f"(LOCAL {operand.raw} *){operand.name}_rooms"
        count = operand.room_bytes // operand.size
        return f"{start} + ({number}) * {count}u" if number else start

    def _importing(self, tile: str, room: str) -> str:
        """Return the statement that begins to import a tile."""
        arguments = [tile, *[f"{each.name}_memory" for each in self.inputs]]
        arguments += [f"{each.name}_tiles" for each in self.inputs if each.listed]
        arguments += [self._room(each, room) for each in self.inputs]
        if not self._is_opencl:
            return f"import_tile({', '.join(arguments)});"
        return f"arriving[{room}] = import_tile({', '.join([*arguments, 'spare', '0'])});"

    def _main(self) -> list[str]:
        kernel, rooms, opencl = self.kernel(), self.rooms, self._is_opencl
        ahead = max(1, rooms - 1)
        tiles = self.operands[0].tiler.count
        arguments = self._memories(self.operands, starts=opencl)
        notes = [f"// {line}" for line in kernel.note.splitlines()]
        head = f"KERNEL({self.threads}) {NAME}({', '.join(arguments)}) {{"
        start = shared_arrays(kernel, dynamic=not opencl and bool(kernel.large_shared))
        if opencl:
            start += [f"{each.name}_memory += {each.name}_start;" for each in self.operands]
            start += [f"event_t arriving[{rooms}], leaving[{rooms}];"]
            first = f"(GLOBAL const u8 *){self.operands[0].name}_memory"
            for k in range(rooms):  # every room starts free, and an event has to be some copy's
                spare = f"async_work_group_copy((LOCAL u8 *)spare, {first}, 1, 0)"
                start.append(f"leaving[{k}] = {spare};")
        going = "STARTED;" if not opencl and self.inputs else ""
        if self.inputs:
            for k in range(ahead):
                tile = "GROUP" if k == 0 else f"GROUP + {k}u * GROUPS"
                start.append(f"if ({tile} < {tiles}u) {{ {self._importing(tile, str(k))} }}")
                start += [going] if going else []
        body = [f"const u32 room = {'turn % ' + str(rooms) + 'u' if rooms > 1 else '0u'};"]
        coming = f"tile + {ahead}u * GROUPS" if ahead > 1 else "tile + GROUPS"
        later = f"(turn + {ahead}u) % {rooms}u" if rooms > 1 else "0u"
        next_one = [f"const u32 next = {coming};", f"if (next < {tiles}u) {{ {self._importing('next', later)} }}"]
        next_one = [*next_one, *([going] if going else [])] if self.inputs else []
        if rooms > 1:
            body += next_one
        if self.inputs:
            body.append(
                "wait_group_events(1, &arriving[room]);" if opencl else f"ARRIVED({ahead if rooms > 1 else 0});"
            )
        if opencl:
            body.append("wait_group_events(1, &leaving[room]);")
        body += [
            "BARRIER;",
            *[f"const {each.name}_place {each.name}_box = {each.find('tile')};" for each in self.operands],
        ]
        for each in self.outputs:
            body.append(f"LOCAL {each.raw} *{each.name}_room = {self._room(each, 'room' if opencl else '')};")
        given = [f"({self._room(each, 'room')})" for each in self.inputs] + [
            f"{each.name}_room" for each in self.outputs
        ]
        given += [f"{each.name}_box" for each in self.operands]
        body += [f"compute(tile, {', '.join(given)});", "BARRIER;"]
        if rooms == 1:
            body += next_one
        for k, each in enumerate(self.outputs):
            call = f"{each.name}_export({each.name}_room, {each.name}_memory, {each.name}_box"
            body.append(f"leaving[room] = {call}, spare, {'leaving[room]' if k else '0'});" if opencl else f"{call});")
        loop = f"for (u32 tile = GROUP, turn = 0; tile < {tiles}u; tile += GROUPS, ++turn) {{"
        end = [f"wait_group_events({rooms}, leaving);"] if opencl else []
        return [*notes, head, *indent([*start, loop, *indent(body), "}", *end]), "}"]
