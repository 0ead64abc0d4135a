# SPDX-License-Identifier: Apache-2.0
"""Schedules: every import, export, wait and compute of a pipeline, as data, before anything runs.

A scheme is a closed form: for a number of tiles it lists phases, and for each phase its actions in order. An import
or export begins a transfer and goes on; `after` names transfers that must be over before it may touch its buffer. A
wait retires transfers. Whatever runs the actions in order, and honours `after`, gets the right result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ..errors import LayoutError
from ..showing import Shown

Kind: TypeAlias = Literal["import", "export"]


class Key(NamedTuple):
    """Which transfer: an import or export, of which tile, of which operand.

    >>> Key("import", 3)
    Key(kind='import', tile=3, operand=0)
    """

    kind: Kind
    tile: int
    operand: int = 0


class Import(NamedTuple):
    """Begin to import a tile of an input into a buffer.

    >>> print(Import(3, "b1", 0, (Key("export", 1),)))
    import 3 -> b1 after export 1
    """

    tile: int
    buffer: str
    operand: int = 0
    after: tuple[Key, ...] = ()

    def __str__(self) -> str:
        return f"import {self.tile}{_of(self.operand)} -> {self.buffer}{_after(self.after)}"


class Export(NamedTuple):
    """Begin to export a tile of an output from a buffer.

    >>> print(Export(3, "out1"))
    export 3 <- out1
    """

    tile: int
    buffer: str
    operand: int = 0
    after: tuple[Key, ...] = ()

    def __str__(self) -> str:
        return f"export {self.tile}{_of(self.operand)} <- {self.buffer}{_after(self.after)}"


class Wait(NamedTuple):
    """Wait for transfers; `events` says how many events the wait names.

    >>> print(Wait((Key("import", 3), Key("export", 2))))
    wait[import 3, export 2]
    """

    retires: tuple[Key, ...]
    events: int = 1

    def __str__(self) -> str:
        return f"wait[{', '.join([_key(key) for key in self.retires])}]"


class Compute(NamedTuple):
    """Compute a tile from the buffers of the inputs into the buffers of the outputs.

    >>> print(Compute(3, "in1", "out1"))
    compute 3 (in1 -> out1)
    """

    tile: int
    read_buffer: str
    write_buffer: str

    def __str__(self) -> str:
        return f"compute {self.tile} ({self.read_buffer} -> {self.write_buffer})"


Action: TypeAlias = Import | Export | Wait | Compute


class Phase(NamedTuple):
    """The actions of a start, a step or a finish, in order.

    >>> print(Phase("step", 0, (Wait((Key("import", 0),)), Compute(0, "in", "out"))))
    step 0: wait[import 0]; compute 0 (in -> out)
    """

    name: str
    step: int | None
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        title = self.name if self.step is None else f"{self.name} {self.step}"
        return f"{title}: {'; '.join(map(str, self.actions)) or '(nothing)'}"


def _key(key: Key) -> str:
    return f"{key.kind} {key.tile}{_of(key.operand)}"


def _of(operand: int) -> str:
    return f" of operand {operand}" if operand else ""


def _after(keys: tuple[Key, ...]) -> str:
    return f" after {', '.join(map(_key, keys))}" if keys else ""


@dataclass(frozen=True, slots=True)
class Schedule(Shown):
    """The phases of a scheme for a number of tiles, inputs and outputs: a sequence made on demand, of any length.

    Every scheme here issues an export as soon as its tile is computed, where TTL waits for the next step.

    - `duplex`: 2 buffers. Import i + 1 and export i run together; compute runs alone.
    - `double`: 4 buffers, the same as `buffered` with depth 2.
    - `buffered`: depth input and depth output buffers; depth - 1 imports and depth - 1 exports run beside a compute.
    - `simplex`: 3 buffers that are input and output in turn. Import i + 2 enters the buffer that export i leaves, and
      says so: it starts when that export is over.
    - `direct`: depth buffers and no compute; a tile leaves from the buffer in which it arrived.

    >>> for phase in Schedule("duplex", 2):
    ...     print(phase)
    start: import 0 -> in
    step 0: wait[import 0]; compute 0 (in -> out); export 0 <- out; import 1 -> in
    step 1: wait[export 0, import 1]; compute 1 (in -> out); export 1 <- out
    finish: wait[export 1]
    """

    scheme: str
    tiles: int
    inputs: int = 1
    outputs: int = 1
    depth: int = 2

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise LayoutError(f"there is no scheme {self.scheme!r}; choose one of {', '.join(SCHEMES)}")
        if self.depth < 1 or self.tiles < 0:
            raise LayoutError(f"depth {self.depth} and {self.tiles} tiles: use a depth of at least 1")
        if self.scheme == "double" and self.depth != 2:
            raise LayoutError(f"double buffering has depth 2, not {self.depth}; use scheme='buffered'")

    def __iter__(self) -> Iterator[Phase]:
        return SCHEMES[self.scheme](self)

    def actions(self) -> Iterator[Action]:
        """Yield the actions of all phases, in order.

        >>> [type(action).__name__ for action in Schedule("double", 1).actions()]
        ['Import', 'Wait', 'Compute', 'Export', 'Wait']
        """
        for phase in self:
            yield from phase.actions

    @property
    def buffers(self) -> tuple[str, ...]:
        """Return the names of the buffers, one of each for every operand that it serves.

        >>> Schedule("buffered", 9, depth=3).buffers
        ('in0', 'in1', 'in2', 'out0', 'out1', 'out2')
        """
        if self.scheme == "simplex":
            return ("b0", "b1", "b2")
        if self.scheme == "duplex":
            return ("in", "out")
        if self.scheme == "direct":
            return tuple([f"b{k}" for k in range(self.depth)])
        return tuple([f"{side}{k}" for side in ("in", "out") for k in range(self.depth)])

    def imports(self, tile: int, buffer: str, after: Kind | None = None, after_tile: int = 0) -> tuple[Action, ...]:
        """Return the imports of a tile of every input; `after` makes each follow the transfer that has its buffer.

        >>> Schedule("duplex", 2).imports(1, "in")
        (Import(tile=1, buffer='in', operand=0, after=()),)
        """
        if tile >= self.tiles:
            return ()
        if after is None:
            return tuple([Import(tile, buffer, operand) for operand in range(self.inputs)])
        follows = self.keys(after, after_tile)
        return tuple([Import(tile, buffer, k, follows[k : k + 1]) for k in range(self.inputs)])

    def exports(self, tile: int, buffer: str) -> tuple[Action, ...]:
        """Return the exports of a tile of every output.

        >>> Schedule("duplex", 2).exports(1, "out")
        (Export(tile=1, buffer='out', operand=0, after=()),)
        """
        return tuple([Export(tile, buffer, operand) for operand in range(self.outputs)])

    def keys(self, kind: Kind, tile: int) -> tuple[Key, ...]:
        """Return the transfers of a tile, one for each operand; none for a tile that does not exist.

        >>> Schedule("duplex", 2, inputs=2).keys("import", 0)
        (Key(kind='import', tile=0, operand=0), Key(kind='import', tile=0, operand=1))
        """
        if not 0 <= tile < self.tiles:
            return ()
        count = self.inputs if kind == "import" else self.outputs
        return tuple([Key(kind, tile, operand) for operand in range(count)])


def _wait(keys: tuple[Key, ...]) -> tuple[Action, ...]:
    return (Wait(keys),) if keys else ()


def _last(plan: Schedule, count: int) -> tuple[Action, ...]:
    """Return the wait for the exports of the last tiles."""
    return _wait(tuple([key for i in range(plan.tiles - count, plan.tiles) for key in plan.keys("export", i)]))


def _duplex(plan: Schedule) -> Iterator[Phase]:
    yield Phase("start", None, plan.imports(0, "in"))
    for i in range(plan.tiles):
        ready = _wait(plan.keys("export", i - 1) + plan.keys("import", i))
        follow = plan.exports(i, "out") + plan.imports(i + 1, "in")
        yield Phase("step", i, (*ready, Compute(i, "in", "out"), *follow))
    yield Phase("finish", None, _last(plan, 1))


def _buffered(plan: Schedule) -> Iterator[Phase]:
    depth = plan.depth
    ahead = depth - 1
    into, out = plan.buffers[:depth], plan.buffers[depth:]
    yield Phase("start", None, tuple([action for i in range(ahead) for action in plan.imports(i, into[i])]))
    for i in range(plan.tiles):
        slot = i % depth
        # the buffer of tile i - 1 is free, and its successor can be on its way before anyone waits
        arriving = plan.imports(i + ahead, into[slot - 1])
        ready = _wait(plan.keys("export", i - depth) + plan.keys("import", i))
        yield Phase("step", i, (*arriving, *ready, Compute(i, into[slot], out[slot]), *plan.exports(i, out[slot])))
    yield Phase("finish", None, _last(plan, depth))


def _simplex(plan: Schedule) -> Iterator[Phase]:
    buffers = plan.buffers
    yield Phase("start", None, plan.imports(0, "b0") + plan.imports(1, "b1"))
    for i in range(plan.tiles):
        turning = buffers[(i + 2) % 3]
        # import i followed export i - 2 into its buffer: both are over together
        ready = _wait(plan.keys("export", i - 2) + plan.keys("import", i))
        follow = plan.exports(i, turning) + plan.imports(i + 2, turning, after="export", after_tile=i)
        yield Phase("step", i, (*ready, Compute(i, buffers[i % 3], turning), *follow))
    yield Phase("finish", None, _last(plan, 2))


def _direct(plan: Schedule) -> Iterator[Phase]:
    depth = plan.depth
    buffers = plan.buffers
    yield Phase("start", None, tuple([action for i in range(depth - 1) for action in plan.imports(i, buffers[i])]))
    for i in range(plan.tiles):
        # every transfer follows the one that has its buffer, so nobody waits but to keep the queue short
        ahead = i + depth - 1
        last = {"after": "export", "after_tile": ahead - depth} if ahead >= depth else {}
        arriving = plan.imports(ahead, buffers[ahead % depth], **last)  # type: ignore[arg-type]
        leaving = tuple([Export(i, buffers[i % depth], k, (Key("import", i, k),)) for k in range(plan.outputs)])
        over = _wait(plan.keys("import", i - depth + 1) + plan.keys("export", i - depth + 1))
        yield Phase("step", i, (*arriving, *leaving, *over))
    rest = range(max(0, plan.tiles - depth + 1), plan.tiles)
    keys = [key for i in rest for key in plan.keys("import", i) + plan.keys("export", i)]
    yield Phase("finish", None, _wait(tuple(keys)))


SCHEMES: dict[str, Callable[[Schedule], Iterator[Phase]]] = {
    "duplex": _duplex,
    "double": _buffered,
    "buffered": _buffered,
    "simplex": _simplex,
    "direct": _direct,
}
