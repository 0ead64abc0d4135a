# SPDX-License-Identifier: Apache-2.0
"""`explain_item`: where every piece of a converted tensor comes from, how it is stored, and which device holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import pairwise
from math import prod
from typing import Any

from ..copying.assembly import Part
from ..errors import FormatError
from ..files.mesh import Coordinate
from ..layout import Box
from ..showing import Shown
from .assembled_source import stored_shape
from .conversion_item import ConversionItem

_MOST_PIECES = 24  # that are written out
_MOST_DEVICES = 8


@dataclass(frozen=True)
class Piece:
    """A box of the output, and the range of the source that fills it.

    `source_box` is None where the elements are not a box of the source. `changes` says what happens on the way.
    """

    box: Box
    source: str
    source_box: Box | None
    changes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the piece as plain data: its box, its source with the range, and the changes."""
        box = None if self.source_box is None else _ranges(self.source_box)
        return {"box": _ranges(self.box), "source": self.source, "from": box, "changes": list(self.changes)}

    @classmethod
    def of(cls, part: Part, source_shape: Sequence[int]) -> Piece:
        """Return the piece of a part of an assembly; `source_shape` is the shape of the source as stored.

        >>> from tilewright.copying.assembly import Assembly
        >>> str(Piece.of(Assembly.of("w", (4, 6)).slice(1, 3).transpose().parts[0], (4, 6)))
        'w[1:3, 0:6], transposed'
        """
        steps = [prod(source_shape[d + 1 :]) for d in range(len(source_shape))]
        start = [part.offset // step % n for step, n in zip(steps, source_shape, strict=True)]
        extents = [1] * len(steps)
        dimensions: list[int] = []  # of the source, in the order of the output
        changes = []
        for mode in part.modes:
            own: list[list[tuple[int, int]]] = [[] for _ in steps]
            for n, step in mode:
                if n > 1 and step:
                    d = next((d for d, unit in enumerate(steps) if step >= unit), len(steps) - 1)
                    own[d].append((n, step // steps[d]))
                    extents[d] += (n - 1) * (step // steps[d])
                elif n > 1:
                    changes.append(f"repeated {n} times")
            for d, leaves in enumerate(own):
                dimensions += [d] if leaves else []
                if order := _describe_order(leaves):
                    changes.append(f"{_dimension_name(d, len(steps))} {order}")
        if sorted(dimensions) != dimensions:
            changes.insert(0, "transposed")
        if len(set(dimensions)) < len(dimensions):
            changes.append("reshaped")
        repeats = prod([n for mode in part.modes for n, step in mode if not step])
        inside = all(a + n <= whole for a, n, whole in zip(start, extents, source_shape, strict=True))
        is_box = inside and prod(extents) * repeats == part.box.size
        box = Box(tuple(start), tuple(extents)) if is_box else None
        return cls(part.box, part.source, box, tuple(changes))

    def __str__(self) -> str:
        box = "" if self.source_box is None else format_box(self.source_box)
        return ", ".join([f"{self.source}{box}", *self.changes])


def _describe_order(leaves: Sequence[tuple[int, int]]) -> str | None:
    """Return how a mode with several leaves reorders a dimension; None if it does not."""
    if all(outer == step * n for (_, outer), (n, step) in pairwise(leaves)):
        return None
    extents, steps = ([leaf[k] for leaf in leaves] for k in (0, 1))
    if extents[-1] == 2 and steps[-2:] == [1, extents[-2]]:
        return f"in pairs, {extents[-2]} apart"
    return f"in the order ({','.join(map(str, extents))}):({','.join(map(str, steps))})"


def _dimension_name(dimension: int, rank: int) -> str:
    return {rank - 2: "rows", rank - 1: "columns" if rank > 1 else "elements"}.get(dimension, f"dimension {dimension}")


@dataclass(frozen=True)
class ItemExplanation(Shown):
    """The explanation of one converted tensor: its pieces, the way of its values, and its devices."""

    item: ConversionItem
    pieces: tuple[Piece, ...]

    @property
    def zeros(self) -> int:
        """Return the number of elements that come from no source."""
        return prod(self.item.source.value.shape) - sum([piece.box.size for piece in self.pieces])

    @property
    def steps(self) -> list[str]:
        """Return the formats of the values, from the sources to the file, and the constant that is added."""
        source = self.item.source
        steps = [source.kind, *[each.name for each in source.through]]
        if source.value.added:
            steps.insert(min(2, len(steps)), f"+ {source.value.added:g}")
        return [*steps, self.item.target.spec.dtype.name]

    @property
    def devices(self) -> dict[Box, list[Coordinate]]:
        """Return the boxes that devices hold, and those devices; empty without a mesh."""
        return {} if self.item.target.mesh is None else self.item.target.mesh.windows()

    def __str__(self) -> str:
        item, spec = self.item, self.item.target.spec
        tiles = f"tiles of {spec.tile.height}x{spec.tile.width}" if spec.is_tiled else "rows"
        lines = [
            item.slot.file or item.name,
            f"  shape     {_format_shape(item.source.value.shape)}, {spec.dtype} in {tiles}, {spec.memory}",
            f"  values    {' -> '.join(self.steps)}",
            f"  made as   {(item.made_as or (item.source.value.text,))[0]}",
            *[f"    where {line}" for line in item.made_as[1:]],
            *self._piece_lines(),
            *self._device_lines(),
        ]
        return "\n".join(lines)

    def _piece_lines(self) -> Iterator[str]:
        yield "  pieces"
        boxes = [format_box(piece.box) for piece in self.pieces[:_MOST_PIECES]]
        width = max(map(len, boxes), default=0)
        for box, piece in zip(boxes, self.pieces, strict=False):
            yield f"    {box:<{width}}  <-  {piece}"
        if len(self.pieces) > _MOST_PIECES:
            yield f"    and {len(self.pieces) - _MOST_PIECES} more"
        if self.zeros:
            yield f"    the other {self.zeros} elements are zero"

    def _device_lines(self) -> Iterator[str]:
        windows = self.devices
        mesh = self.item.target.mesh
        if mesh is None:
            return
        if len(mesh.topology.coordinates) == 1:
            yield "  devices   every device holds all of it" if mesh.shape == (1, 1) else "  devices   one"
            return
        yield f"  devices   {mesh}"
        for box, devices in list(windows.items())[:_MOST_DEVICES]:
            named = ", ".join([str(device) for device in devices[:4]]) + (" ..." if len(devices) > 4 else "")
            yield f"    {named}  hold{'s' if len(devices) == 1 else ''}  {format_box(box)}"
        if len(windows) > _MOST_DEVICES:
            yield f"    and {len(windows) - _MOST_DEVICES} more parts"

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain data: the pieces, the steps of values, the expression and the devices."""
        item = self.item
        return {
            "name": item.name,
            "file": item.slot.file,
            "shape": list(item.source.value.shape),
            "spec": str(item.target.spec),
            "made_as": list(item.made_as),
            "value": item.source.value.text,
            "steps": self.steps,
            "pieces": [piece.to_json() for piece in self.pieces],
            "zeros": self.zeros,
            "devices": [
                {"box": _ranges(box), "devices": [list(device) for device in devices]}
                for box, devices in self.devices.items()
            ],
        }


def explain_item(item: ConversionItem) -> ItemExplanation:
    """Return where every piece of a converted tensor comes from.

    Args:
        item: the tensor, an item of a plan.

    >>> import tempfile, numpy
    >>> from tilewright.conversion import plan_conversion
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((60, 90), numpy.float32))
    ...     plan = plan_conversion(f"{folder}/x.npy", f"{folder}/out", transpose=True)
    >>> explain_item(plan.items[0]).pieces[0].changes
    ('transposed',)
    """
    shapes = {name: stored_shape(tensor) for name, tensor in item.source.tensors.items()}
    return ItemExplanation(item, tuple([Piece.of(part, shapes[part.source]) for part in item.source.value.parts]))


def find_items(items: Sequence[ConversionItem], pattern: str) -> list[ConversionItem]:
    """Return the items that a pattern names: a name or a file, the start or a part of one, or wildcards as in "*.wo*".

    >>> try:
    ...     find_items([], "w")
    ... except FormatError as problem:
    ...     print(problem)
    no tensor is called 'w'; there are none
    """
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: name == pattern,
        lambda name: fnmatchcase(name, pattern),
        lambda name: name.startswith(pattern),
        lambda name: pattern in name,
    )
    for test in tests:
        if found := [item for item in items if test(item.name) or test(item.slot.file)]:
            return found
    names = [item.name for item in items]
    near = get_close_matches(pattern, names, 1, 0.4)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names[:8]) or 'none'}"
    raise FormatError(f"no tensor is called {pattern!r}; {hint}")


def _ranges(box: Box) -> list[list[int]]:
    return [[start, end] for start, end in zip(box.offset, box.end, strict=True)]


def format_box(box: Box) -> str:
    """Return a box as NumPy would index it.

    >>> format_box(Box((0, 32), (1, 64)))
    '[0, 32:96]'
    """
    pairs = zip(box.offset, box.end, strict=True)
    return f"[{', '.join([str(a) if b == a + 1 else f'{a}:{b}' for a, b in pairs])}]"


def _format_shape(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or "scalar"
