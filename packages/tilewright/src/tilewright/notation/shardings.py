# SPDX-License-Identifier: Apache-2.0
"""Shardings of XLA, Shardy, JAX and PyTorch's DTensor: which device of a mesh holds which part of a tensor.

`{devices=[4,2]<=[2,4]T(1,0)}` has devices 0 to 7 as a mesh of 2 x 4, whose second axis cuts dimension 0 of the tensor,
and whose first axis cuts dimension 1. `#sdy.sharding<@mesh, [{"y"}, {"x"}]>`, JAX's `P('y', 'x')` and DTensor's
`[Shard(1), Shard(0)]` mean the same on a mesh with the axes x = 2 and y = 4. XLA and JAX cut an extent into equal parts
at once, the last ones shorter or empty; DTensor cuts for one axis of the mesh after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .._integers import ceil_div
from .._text import TextCursor, format_extents, list_some
from ..display import Drawable
from ..errors import CoordinateError, FileFormatError, LayoutError
from ..layout import MAX_DEPTH, Box, Layout, device, with_logical_shape
from ..memory import Coordinate, Mesh, Topology, format_steps

MAX_DEVICES = 1 << 20
_MAX_LISTED = 8  # devices that are printed


class Cut(NamedTuple):
    """A dimension of a tensor that an axis of a mesh cuts into `size` parts.

    The axis is `before` groups of `size` devices, and each device stands for further ones, so that several cuts may
    share an axis: the first of an axis has `before` = 1, as in Shardy's `"x":(1)2`.

    >>> Cut(0, "x", 4)
    Cut(dimension=0, axis='x', size=4, before=1)
    """

    dimension: int
    axis: str
    size: int
    before: int = 1


@dataclass(frozen=True, slots=True)
class HeldElement:
    """Which devices hold an element: the `box` of the tensor that is their part, and `inside`, the coordinate in it.

    `holders` are the numbers of the devices, with their coordinates on the mesh by axis.

    >>> print(parse_sharding("Mesh('x': 2, 'y': 4) P('x')").on((8, 8)).explain_element((5, 1)))
    element   (5, 1) of 8 x 8
    part      [4:8, 0:8] of the tensor: element (1, 1)
    held by   device 4 at x = 1, y = 0
    held by   device 5 at x = 1, y = 1
    held by   device 6 at x = 1, y = 2
    held by   device 7 at x = 1, y = 3
    """

    shape: tuple[int, ...]
    coordinate: Coordinate
    box: Box
    inside: Coordinate
    holders: tuple[tuple[int, dict[str, int]], ...]
    besides: tuple[str, ...] = ()

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps as pairs of a name and a description.

        >>> parse_sharding("{maximal device=3}").on((8,)).explain_element((5,)).steps()[-1]
        ('held by', 'device 3')
        """
        part = f"[{', '.join([f'{a}:{b}' for a, b in zip(self.box.offset, self.box.end, strict=True)])}]"
        steps = [
            ("element", f"{self.coordinate} of {format_extents(self.shape, 'a scalar')}"),
            ("part", f"{part} of the tensor: element {self.inside}"),
        ]
        for number, at in self.holders[:_MAX_LISTED]:
            place = ", ".join([f"{axis} = {index}" for axis, index in at.items()])
            steps.append(("held by", f"device {number} at {place}" if place else f"device {number}"))
        others = len(self.holders) - _MAX_LISTED
        steps += [("", f"and {others} more devices")] * (others > 0)
        return steps + [("besides", ", ".join(self.besides))] * bool(self.besides)

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain data.

        >>> parse_sharding("{maximal device=3}").on((8,)).explain_element((5,)).to_json()["devices"]
        [{'number': 3, 'at': {}}]
        """
        return {
            "shape": list(self.shape),
            "coordinate": list(self.coordinate),
            "part": {"offset": list(self.box.offset), "shape": list(self.box.shape)},
            "inside": list(self.inside),
            "devices": [{"number": number, "at": at} for number, at in self.holders],
            "besides": list(self.besides),
        }

    def __str__(self) -> str:
        return format_steps(self.steps())


class _Piece(NamedTuple):
    """A part of an axis of a mesh, which cuts a dimension or holds copies."""

    axis: int
    size: int
    after: int  # devices of the axis for each step along the piece
    order: int  # among the cuts; copies come last
    dimension: int | None


@dataclass(frozen=True)
class DeviceSharding(Drawable):
    """Which device of a mesh holds which part of a tensor.

    `axes` are the names and sizes of the mesh, `cuts` the cuts of the tensor, the major ones of a dimension first, and
    `numbers` the devices in the order of the mesh; None if the text does not state them, and they are counted. A mesh
    with () as numbers is not known. `rank` is the number of dimensions of the tensor, or with `is_prefix` the least
    one. With `is_nested`, an extent is cut for one axis after the other, as DTensor does. `shape` is that of the
    tensor, if known, and `besides` are the other facts in the text.

    >>> sharding = parse_sharding("{devices=[4,2]<=[2,4]T(1,0)}")
    >>> sharding.axes, sharding.cuts[0]
    ((('axis_0', 2), ('axis_1', 4)), Cut(dimension=0, axis='axis_1', size=4, before=1))
    >>> sharding.windows((8, 8))[5]
    (slice(2, 4, None), slice(4, 8, None))
    """

    axes: tuple[tuple[str, int], ...]
    cuts: tuple[Cut, ...] = ()
    numbers: tuple[int, ...] | None = None
    rank: int = 0
    is_prefix: bool = True
    is_nested: bool = False
    shape: tuple[int, ...] | None = None
    besides: tuple[str, ...] = ()
    text: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [name for name, _ in self.axes]
        if len(set(names)) < len(names):
            raise LayoutError(f"the axes of a mesh have different names, got {', '.join(names)}")
        count = _count_devices(self.mesh_shape)
        if self.numbers is not None and len(self.numbers) not in (count, 0):
            raise LayoutError(
                f"a mesh of {format_extents(self.mesh_shape, 'no axes')} has {count} devices, got {len(self.numbers)}"
            )
        if self.numbers is not None and len(set(self.numbers)) < len(self.numbers):
            raise LayoutError("a device is in a mesh once, but this text names one twice")
        self._pieces()
        if self.shape is not None:
            self._extents(self.shape)

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        """The extents of the mesh.

        >>> parse_sharding("{devices=[2,4]<=[8]}").mesh_shape
        (2, 4)
        """
        return tuple([size for _, size in self.axes])

    @property
    def devices(self) -> Sequence[int]:
        """The numbers of the devices, in the order of the mesh; counted if the text does not state them.

        >>> parse_sharding("{devices=[3]2,1,0}").devices, parse_sharding("Mesh('x': 2) P('x')").devices
        ((2, 1, 0), range(0, 2))
        """
        if self.numbers == ():
            why = next((reason for word, reason in _WITHOUT_DEVICES.items() if word in self.besides), "")
            raise LayoutError(f"this sharding names no devices{why}")
        return range(prod(self.mesh_shape)) if self.numbers is None else self.numbers

    def on(self, shape: Sequence[int]) -> DeviceSharding:
        """Return the sharding of a tensor of `shape`, which pictures and explanations need.

        >>> parse_sharding("{devices=[2,4]<=[8]}").on((8, 8)).shape
        (8, 8)
        """
        return replace(self, shape=tuple(shape))

    def windows(self, shape: Sequence[int] | None = None) -> dict[int, tuple[slice, ...]]:
        """Return the part of a tensor of `shape` that each device holds, by the number of the device.

        >>> parse_sharding("{devices=[2]1,0}").windows((5,))
        {1: (slice(0, 3, None),), 0: (slice(3, 5, None),)}
        """
        return {number: tuple(part) for number, *part in zip(self.devices, *self._columns(shape), strict=True)}

    def boxes(self, shape: Sequence[int] | None = None) -> dict[Box, list[Coordinate]]:
        """Return the distinct parts of a tensor of `shape`, and the coordinates on the mesh of the devices with each.

        >>> parse_sharding("Mesh('x': 2, 'y': 2) P('y')").boxes((4,))[Box((2,), (2,))]
        [(0, 1), (1, 1)]
        """
        result: dict[Box, list[Coordinate]] = {}
        for at, *part in zip(np.ndindex(*self.mesh_shape), *self._columns(shape), strict=True):
            box = Box.between(tuple([s.start for s in part]), tuple([s.stop for s in part]))
            result.setdefault(box, []).append(at)
        return result

    def mesh(self, shape: Sequence[int] | None = None) -> Mesh:
        """Return the mesh of devices that share a tensor of `shape`, if their parts are alike.

        >>> print(parse_sharding("{devices=[2,4]<=[8]}").mesh((8, 8)))
        2 x 4 devices, 2 along dimension 0, 4 along dimension 1; each holds 4 x 2
        """
        extents, mesh_shape = self._extents(shape), self.mesh_shape or (1,)
        part, pieces = list(extents), sorted(self._pieces(), key=lambda piece: piece.order)
        index = np.zeros(len(self.devices), np.int64)
        for piece in pieces:
            index = index * piece.size + self._digits(piece)
        for k, cut in self._by_dimension(len(extents)).items():
            part[k] = _require_even(k, extents[k], cut)
        at = np.unravel_index(np.argsort(index), mesh_shape)
        distribution = tuple([piece.size for piece in pieces]) or (1,)
        cuts = tuple([None if piece.dimension is None else piece.dimension % len(extents) for piece in pieces])
        coordinates = tuple(zip(*[axis.tolist() for axis in at], strict=True))
        return Mesh(mesh_shape, Topology(distribution, cuts or (None,), coordinates), tuple(part))

    def layout(self, shape: Sequence[int] | None = None) -> Layout:
        """Return the layout from a coordinate to the device, and to the element in the row-major part on it.

        Copies are replicas; where a part is shorter than others, the rest is padding.

        >>> print(parse_sharding("{devices=[2,4]<=[8]}").layout((8, 8)))
        ((4,2),(2,4)):((2,4@device),(1,1@device))
        """
        extents, numbers = self._extents(shape), np.array(self.devices, dtype=object)
        even = np.full(len(numbers), numbers[0])
        strides = {}
        for piece in self._pieces():
            digits = self._digits(piece)
            strides[piece] = numbers[np.argmax(digits == 1)] - numbers[0]  # 0 where there is one digit
            even = even + digits * strides[piece]
        if not np.array_equal(even, numbers):
            raise LayoutError(
                f"the devices {list_some(list(map(str, numbers[:99])), _MAX_LISTED)} of this mesh are in an order that"
                " strides cannot express; .windows(shape) has the part of every device"
            )
        cuts = self._by_dimension(len(extents))
        part = [ceil_div(n, prod([piece.size for piece in cuts.get(k, ())])) for k, n in enumerate(extents)]
        modes: list[Any] = list(part)
        steps: list[Any] = [prod(part[k + 1 :]) for k in range(len(part))]
        for k, own in cuts.items():
            if self.is_nested and len(own) > 1:
                _require_even(k, extents[k], own)
            modes[k] = (part[k], *[piece.size for piece in reversed(own)])
            steps[k] = (steps[k], *[strides[piece] @ device for piece in reversed(own)])
        copies = [(piece.size, strides[piece] @ device) for piece in strides if piece.dimension is None]
        laid_out = Layout(tuple(modes), tuple(steps), numbers[0] @ device, copies)
        return laid_out if 0 in extents else with_logical_shape(laid_out, extents)

    def explain_element(self, coordinate: Sequence[int]) -> HeldElement:
        """Return which devices hold the element at a `coordinate` of the tensor, whose shape is known.

        >>> parse_sharding("{devices=[2,4]<=[8]}").on((8, 8)).explain_element((5, 1)).holders
        ((4, {'axis_0': 1, 'axis_1': 0}),)
        """
        extents, at = self._extents(None), tuple(coordinate)
        numbers = dict(zip(np.ndindex(*self.mesh_shape), self.devices, strict=True))
        for box, places in self.boxes().items():
            inside = tuple([c - a for c, a in zip(at, box.offset, strict=False)])
            if len(at) == len(extents) and all(0 <= c < n for c, n in zip(inside, box.shape, strict=True)):
                names = [name for name, _ in self.axes]
                holders = [(numbers[place], dict(zip(names, place, strict=True))) for place in places]
                return HeldElement(extents, at, box, inside, tuple(holders), self.besides)
        raise CoordinateError(f"coordinate {at} is outside shape {list(extents)}")

    def __str__(self) -> str:
        return self.text or repr(self)

    def _extents(self, shape: Sequence[int] | None) -> tuple[int, ...]:
        """Return the shape of the tensor, given or known, if the sharding can be its."""
        if shape is None and self.shape is None:
            raise LayoutError("this sharding does not state the shape of its tensor; give it one, as in shape=(8, 8)")
        extents = tuple([int(n) for n in ((self.shape or ()) if shape is None else shape)])
        if len(extents) < self.rank or (len(extents) > self.rank and not self.is_prefix):
            least = "at least " if self.is_prefix else ""
            raise LayoutError(f"this sharding is for tensors of rank {least}{self.rank}, got shape {list(extents)}")
        if min(extents, default=0) < 0:
            raise LayoutError(f"an extent is at least 0, got shape {list(extents)}")
        return extents

    def _pieces(self) -> list[_Piece]:
        """Return the axes of the mesh, cut into pieces: those of the cuts, and between them those with copies."""
        pieces = []
        own: dict[str, list[tuple[int, Cut]]] = {name: [] for name, _ in self.axes}
        for order, cut in enumerate(self.cuts):
            if cut.axis not in own:
                raise LayoutError(f"the mesh has no axis {cut.axis!r}, only {', '.join(own) or 'none'}")
            own[cut.axis].append((order, cut))
        for k, (name, size) in enumerate(self.axes):
            before = 1
            for order, cut in sorted(own[name], key=lambda pair: pair[1].before):
                after = cut.before * cut.size
                if cut.before < before or (cut.size < 2 and len(own[name]) > 1):
                    raise LayoutError(f"axis {name!r} of the mesh is used twice, but can cut one dimension once")
                if cut.before % before or cut.size < 1 or size % after:
                    raise LayoutError(f"axis {name!r} of {size} devices has no part ({cut.before}){cut.size}")
                if cut.before > before:
                    pieces.append(_Piece(k, cut.before // before, size // cut.before, len(self.cuts), None))
                pieces.append(_Piece(k, cut.size, size // after, order, cut.dimension))
                before = after
            if before < size:
                pieces.append(_Piece(k, size // before, 1, len(self.cuts), None))
        return pieces

    def _by_dimension(self, rank: int) -> dict[int, list[_Piece]]:
        """Return the pieces that cut each dimension of a tensor, major first."""
        result: dict[int, list[_Piece]] = {}
        for piece in sorted(self._pieces(), key=lambda piece: piece.order):
            if piece.dimension is not None:
                result.setdefault(piece.dimension % rank, []).append(piece)
        return result

    def _digits(self, piece: _Piece) -> Any:
        """Return the coordinate of every device along a piece, as an array."""
        inner = prod(self.mesh_shape[piece.axis + 1 :]) * piece.after
        return np.arange(prod(self.mesh_shape)) // inner % piece.size

    def _columns(self, shape: Sequence[int] | None) -> list[list[slice]]:
        """Return for each dimension the slices of all devices, in the order of the mesh."""
        extents = self._extents(shape)
        columns = [[slice(0, n)] * len(self.devices) for n in extents]
        for k, own in self._by_dimension(len(extents)).items():
            spans, index = [(0, extents[k])], np.zeros(len(self.devices), np.int64)
            sizes = [piece.size for piece in own]
            for size in sizes if self.is_nested else [prod(sizes)]:
                spans = [span for start, stop in spans for span in _split(start, stop, size)]
            for piece in own:
                index = index * piece.size + self._digits(piece)
            table = [slice(start, stop) for start, stop in spans]
            columns[k] = [table[number] for number in index.tolist()]
        return columns


_WITHOUT_DEVICES = {
    "replicated": ": each one holds the whole tensor; put their mesh before it, as in Mesh('x': 8) {replicated}",
    "manual": ": the program on each one has a tensor of its own",
    "unknown": ": XLA has not chosen any yet",
    "unreduced": ": each one holds a summand of the tensor",
}


def _split(start: int, stop: int, count: int) -> list[tuple[int, int]]:
    """Return a range as `count` equal ones, the last ones shorter or empty."""
    part = ceil_div(stop - start, count)
    return [(min(start + k * part, stop), min(start + (k + 1) * part, stop)) for k in range(count)]


def _require_even(dimension: int, extent: int, pieces: list[_Piece]) -> int:
    """Return the extent of each part of a dimension, if all are alike."""
    sizes = [piece.size for piece in pieces]
    if extent % prod(sizes):
        raise LayoutError(
            f"dimension {dimension} has {extent} elements, which {format_extents(sizes)} devices cannot share evenly;"
            " .windows(shape) has the part of every device"
        )
    return extent // prod(sizes)


def _count_devices(sizes: Iterable[int]) -> int:
    """Return the number of devices of a mesh, before anything is made for each of them."""
    count = 1
    for size in sizes:
        count *= size
        if size < 1 or count > MAX_DEVICES:
            raise LayoutError(f"a mesh has axes of at least 1 device, and at most {MAX_DEVICES} devices, got {size}")
    return count


# The texts: one sharding, and perhaps its mesh, before or behind it.


class _MeshText(NamedTuple):
    axes: tuple[tuple[str, int], ...]
    numbers: tuple[int, ...] | None = None
    besides: tuple[str, ...] = ()


class _Placement(NamedTuple):
    """A placement of DTensor: the dimension that an axis of the mesh cuts; None if it holds copies or summands."""

    dimension: int | None = None
    factor: int = 1  # of _StridedShard: into how many parts later axes have cut before
    order: int | None = None  # of the axis, among those that cut the dimension
    partial: str = ""


@dataclass
class _Draft:
    """A sharding as its text has it, whose mesh may be elsewhere: a value, or the symbol of one."""

    mesh: _MeshText | str | None = None
    rank: int = 0
    is_prefix: bool = True
    cuts: list[tuple[int, str, int | None, int]] = field(default_factory=list)  # dimension, axis, size, before
    uncut: list[str] = field(default_factory=list)  # other axes that are mentioned
    placements: list[_Placement] | None = None  # of DTensor, for each axis
    orders: dict[int, list[int]] = field(default_factory=dict)  # of DTensor, the axes by dimension, if they are stated
    shape: tuple[int, ...] | None = None
    besides: list[str] = field(default_factory=list)


class _Word(str):
    """A word of Python's that is not in quotes."""

    __slots__ = ()


class _Node(NamedTuple):
    """A call, or a bracket as its name, with the items in it: a keyword or key, a value, and its text."""

    name: str
    items: list[tuple[Any, Any, slice]]

    @property
    def values(self) -> list[Any]:
        return [value for _, value, _ in self.items]


_PREFIX = re.compile(r"(?:[A-Za-z_][\w.]{0,60})?shardings?\s*[=:]\s*(?!<)", re.ASCII)
_STATE = re.compile(r"(?:(replicated|manual|unknown|unreduced)(?!\w)|(?:maximal\s+)?device\s*=)")
_ATTRIBUTE = re.compile(r",?\s*(?:(shard_as\s+\d{1,9}|shard_like\s+\d{1,9})|metadata\s*=)")
_HLO = re.compile(r"\{\s*(?:devices|maximal|replicated|manual|unknown|unreduced|mesh|\{)")
_KINDS = re.compile(r"replicated|manual|unreduced")
_AXIS = re.compile(r"\"([^\"\s]{1,100})\"|'([^'\s]{1,100})'|([A-Za-z_][\w.-]{0,99})", re.ASCII)
_SYMBOL = re.compile(r"@([\w.$-]{1,100})", re.ASCII)
_PRIORITY = re.compile(r"p(\d{1,9})(?!\w)", re.ASCII)
_STRING = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_NUMBER = re.compile(r"-?\d{1,18}(?![\w.])", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][\w.]*|<[^<>\n]{1,100}>|-?\.?\d[\w.+-]*", re.ASCII)
_PLACEMENT = re.compile(
    r"(?:Shard|S|(?P<strided>_StridedShard|_S))\(\s*(?:dim\s*=\s*)?(?P<dimension>-?\d{1,3})\s*"
    r"(?:,\s*(?:(?:sf|split_factor)\s*=\s*)?(?P<factor>\d{1,9})\s*)?\)(?:\[(?P<order>\d{1,3})\])?"
    r"|Replicate\(\s*\)|R(?=\s*(?:[\])},RSP_]|on\b|\Z))"
    r"|(?P<partial>Partial\([\w=' ]{0,40}\)|P\((?:sum|avg|product|min|max|band|bor|bxor|premul_sum)\))",
    re.ASCII,
)
_TENSOR = re.compile(r"(unknown dtype|[a-z]\w{0,20})(unknown shape(?=\()|(?=\[[\d, ]*\]\())", re.ASCII)
_ON = re.compile(r"on(?!\w)")
_MESHES = ("Mesh", "AbstractMesh", "DeviceMesh", "make_mesh", "init_device_mesh")
_SHARDINGS = ("NamedSharding", "GSPMDSharding", "SingleDeviceSharding", "DTensorSpec", "DTensor", "Spec")
_EXAMPLES = '{devices=[2,4]<=[8]}, #sdy.sharding<@mesh, [{"x"}]>, NamedSharding(...), [Shard(0), Replicate()]'


def parse_sharding(text: str, mesh: str | Mapping[str, int] | None = None) -> DeviceSharding:
    """Return the sharding that a `text` of XLA, Shardy, JAX or DTensor describes.

    `mesh` is its mesh, if the text does not have it: the sizes of the axes by name, or the text of a mesh.

    >>> parse_sharding("P('x', None)", {"x": 2, "y": 4}).cuts
    (Cut(dimension=0, axis='x', size=2, before=1),)
    >>> parse_sharding('sdy.mesh @mesh = <["x"=8]> #sdy.sharding<@mesh, [{"x":(2)4}, {?}]>').besides
    ('dimension 1 is open',)
    """
    reader = _ShardingReader(text)
    if isinstance(mesh, str):
        return reader.read(_ShardingReader(mesh).read_mesh())
    return reader.read(None if mesh is None else _MeshText(tuple(mesh.items())))


class _ShardingReader:
    """Reads the items of a text at a cursor."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.cursor = TextCursor(re.sub(r'\\+(?:22|")', '"', self.text), "a sharding")  # in a string of MLIR
        self.meshes: dict[str, _MeshText] = {}

    def read_mesh(self) -> _MeshText:
        """Return the mesh that is the entire text."""
        mesh = self._read_item()
        self.cursor.expect_end()
        return mesh if isinstance(mesh, _MeshText) else _refuse("expected a mesh, such as Mesh('x': 2, 'y': 4)")

    def read(self, mesh: _MeshText | None) -> DeviceSharding:
        """Return the sharding in the text."""
        found: _Draft | None = None
        while not self.cursor.at_end():
            item = self._read_item()
            if isinstance(item, _MeshText) and mesh is None:
                mesh = item
            elif isinstance(item, _Draft) and found is None:
                found = item
            elif item is not None:
                _refuse(f"this text has two {'meshes' if isinstance(item, _MeshText) else 'shardings'}; paste one")
            if not self.cursor.accept(","):
                self.cursor.accept(";")
        if found is None:
            _refuse(
                f"this text has {'no sharding' if mesh is None else 'a mesh, but no sharding'}, such as {_EXAMPLES}"
            )
        return self._finish(found, mesh)

    def _finish(self, draft: _Draft, mesh: _MeshText | None) -> DeviceSharding:
        """Return a sharding on its own mesh, or on the one that was found elsewhere."""
        own = draft.mesh
        if isinstance(own, str):
            own = self.meshes.get(own, mesh)
        elif own is not None and mesh is not None:
            _refuse("this sharding has a mesh of its own, but the text has another one; leave that out")
        own = own or mesh
        if own is None and draft.besides[:1] == ["replicated"]:
            own = _MeshText((), ())
        elif own is None:
            names = list(dict.fromkeys([axis for _, axis, _, _ in draft.cuts])) or ["x"]
            example = f"Mesh({', '.join([f'{name!r}: 2' for name in names])})"
            if isinstance(draft.mesh, str):
                example = f"sdy.mesh @{draft.mesh} = <[" + ", ".join([f'"{name}"=2' for name in names]) + "]>"
            elif draft.placements is not None:
                example = f"DeviceMesh(({'2, ' * len(draft.placements)}), 'cpu')"
            _refuse(f"this sharding does not state its mesh; put it before, as in {example}, with its own sizes")
        elif draft.besides[:1] == ["replicated"]:
            del draft.besides[0]
        sizes = dict(own.axes)
        for axis in [*draft.uncut, *[axis for _, axis, _, _ in draft.cuts]]:
            if axis not in sizes:
                _refuse(f"the mesh has no axis {axis!r}, only {', '.join(sizes) or 'none'}")
        cuts = [Cut(k, axis, sizes[axis] if size is None else size, before) for k, axis, size, before in draft.cuts]
        if draft.placements is not None:
            cuts = _place(draft, own.axes)
        return DeviceSharding(
            *(own.axes, tuple(cuts), own.numbers, draft.rank, draft.is_prefix, draft.placements is not None),
            *(draft.shape, (*own.besides, *draft.besides), self.text),
        )

    def _read_item(self) -> _MeshText | _Draft | None:
        """Return the next mesh or sharding; None after the definition of a symbol."""
        cursor = self.cursor
        cursor.match(_PREFIX)
        is_quoted = cursor.accept('"')
        item: Any = None
        if cursor.accept("sdy.mesh"):
            symbol = self._read_symbol()
            cursor.expect("=", "<")
            self.meshes[symbol] = self._read_axes()
            cursor.expect(">")
        elif cursor.accept("#sdy.sharding_per_value"):
            cursor.expect("<", "[")
            item = self._choose(cursor.items("]", self._read_shardy, MAX_DEVICES))
            cursor.expect(">")
        elif cursor.accept("#sdy.sharding"):
            item = self._read_shardy()
        elif cursor.peek("{"):
            item = self._read_hlo()
        elif cursor.accept("@ mesh:"):  # as DTensor prints an operation
            item = self._build("Mesh", [(None, self._read_value(0), slice(0))])
        else:
            start = cursor.skip_space()
            item = self._read_value(0)
            if isinstance(item, list):
                item = _Draft(placements=item)
            elif not isinstance(item, (_MeshText, _Draft)):
                cursor.at = start
                cursor.fail(f"a sharding, such as {_EXAMPLES}, or a mesh")
        if is_quoted:
            cursor.expect('"')
        checked: _MeshText | _Draft | None = item
        return checked

    def _choose(self, shardings: list[_Draft]) -> _Draft:
        if len(shardings) != 1:
            _refuse(f"this text has the shardings of {len(shardings)} values; paste one of them")
        return shardings[0]

    # XLA: {devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}

    def _read_hlo(self, is_element: bool = False) -> _Draft:
        cursor = self.cursor
        cursor.expect("{")
        if cursor.peek("{") and not is_element:
            return self._choose(cursor.items("}", lambda: self._read_hlo(True), MAX_DEVICES))
        if cursor.accept("mesh"):
            mesh = self._read_axes()
            cursor.expect(",")
            if not cursor.accept("replicated"):
                return self._read_dimensions(mesh, "}")
            cursor.expect("}")
            return _Draft(mesh)
        draft = _Draft()
        if match := cursor.match(_STATE):
            draft.besides = [match[1]] if match[1] else []
            if match[1] != "replicated":
                draft.mesh = _MeshText((), () if match[1] else (self._read_device(),))
        else:
            cursor.expect("devices", "=")
            self._read_tiles(draft)
        while match := cursor.match(_ATTRIBUTE):
            draft.besides.append(match[1] or f"metadata={cursor.raw()}")
        cursor.expect("}")
        return draft

    def _read_device(self) -> int:
        return self.cursor.integer("the number of a device", 2**31 - 1)

    def _read_tiles(self, draft: _Draft) -> None:
        """Read how many parts each dimension has, and which devices hold them."""
        cursor, kinds = self.cursor, [""][1:]
        tiles = cursor.integers("[", "]")
        count = _count_devices(tiles)
        iota, numbers = None, ()
        if cursor.accept("<="):
            iota = self._read_iota(count)
        else:
            numbers = self._read_devices(count)
        if cursor.accept("last_tile_dim_replicate"):
            kinds = ["replicated"]
        elif cursor.accept("last_tile_dims"):
            cursor.expect("=", "{")
            kinds = cursor.items("}", lambda: cursor.take(_KINDS, "replicated, manual or unreduced"))
        if len(kinds) > len(tiles):
            cursor.fail(f"at most {len(tiles)} last_tile_dims")
        draft.rank, draft.is_prefix = len(tiles) - len(kinds), False
        factors = None if iota is None else _refine(tiles, *iota)
        if factors is None:
            numbers = numbers if iota is None else _order_devices(*iota)
            factors = [[(k, size)] if size > 1 else [] for k, size in enumerate(tiles)]
        else:
            numbers = tuple(range(count))
        flat = [(owner, k, place, size) for k, own in enumerate(factors) for place, (owner, size) in enumerate(own)]
        names = {part: f"axis_{j}" for j, part in enumerate(sorted(flat, key=lambda part: part[:2]))}
        draft.mesh = _MeshText(tuple([(name, part[3]) for part, name in names.items()]), numbers)
        draft.cuts = [(part[1], names[part], part[3], 1) for part in flat if part[1] < draft.rank]
        for k, kind in enumerate(kinds, draft.rank):
            along = ", ".join([names[part] for part in flat if part[1] == k])
            draft.besides += [f"{kind} along {along}"] * (kind != "replicated" and bool(along))

    def _read_iota(self, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the dimensions that the device numbers are counted along, and their order."""
        cursor = self.cursor
        extents = cursor.integers("[", "]")
        order = cursor.integers("(", ")") if cursor.accept("T") else tuple(range(len(extents)))
        if _count_devices(extents) != count or sorted(order) != list(range(len(extents))):
            _refuse(f"{format_extents(extents)} devices in the order {list(order)} are not the {count} of the tiles")
        return extents, order

    def _read_devices(self, count: int, opening: str = "", closing: str = "") -> tuple[int, ...]:
        self.cursor.expect(opening)
        numbers = [self._read_device()]
        while len(numbers) < count and self.cursor.accept(","):
            numbers.append(self._read_device())
        if len(numbers) < count:
            self.cursor.fail(f"{count} devices, got {len(numbers)}; expected another")
        self.cursor.expect(closing)
        return tuple(numbers)

    # Shardy: #sdy.sharding<@mesh, [{"x"}, {"y":(1)2, ?}p1], replicated={"z"}>, and XLA's {mesh[x=2,y=4], [{x}, {y}]}

    def _read_symbol(self) -> str:
        return self.cursor.take(_SYMBOL, "the symbol of a mesh, such as @mesh")[1:]

    def _read_name(self) -> str:
        match = self.cursor.match(_AXIS)
        return match[1] or match[2] or match[3] if match else self.cursor.fail("the name of an axis")

    def _read_axes(self) -> _MeshText:
        """Return a mesh: ["x"=2, "y"=4], device_ids=[...]."""
        cursor = self.cursor

        def read_axis() -> tuple[str, int]:
            name = self._read_name()
            cursor.expect("=")
            return name, cursor.integer("the devices along an axis")

        cursor.expect("[")
        axes = tuple(cursor.items("]", read_axis))
        count, start = _count_devices([size for _, size in axes]), cursor.at
        numbers = tuple(range(count)) if axes else ()
        if cursor.accept(",") and cursor.accept("device_ids"):
            cursor.expect("=")
            if cursor.accept("(["):
                cursor.at -= 1
                numbers = _order_devices(*self._read_iota(count))
                cursor.expect(")")
            else:
                numbers = self._read_devices(count, *("()" if cursor.peek("(") else "[]"))
        else:
            cursor.at = start
        return _MeshText(axes, numbers, () if numbers else ("replicated",))

    def _read_shardy(self) -> _Draft:
        cursor = self.cursor
        cursor.expect("<")
        mesh: _MeshText | str
        if cursor.accept("mesh"):
            cursor.expect("<")
            mesh = self._read_axes()
            cursor.expect(">")
        else:
            mesh = self._read_symbol()
        cursor.expect(",")
        return self._read_dimensions(mesh, ">")

    def _read_dimensions(self, mesh: _MeshText | str, closing: str) -> _Draft:
        """Return the sharding from the axes of each dimension on, up to its end."""
        cursor, draft = self.cursor, _Draft(mesh, is_prefix=False)

        def read_dimension() -> None:
            cursor.expect("{")
            for axis in cursor.items("}", lambda: None if cursor.accept("?") else self._read_axis()):
                if axis is None:
                    draft.besides.append(f"dimension {draft.rank} is open")
                else:
                    draft.cuts.append((draft.rank, *axis))
            if match := cursor.match(_PRIORITY):
                draft.besides.append(f"dimension {draft.rank} has priority {match[1]}")
            draft.rank += 1

        cursor.expect("[")
        cursor.items("]", read_dimension)
        while not cursor.accept(closing):
            cursor.expect(",")
            if cursor.accept("metadata"):
                cursor.expect("=")
                draft.besides.append(f"metadata={cursor.raw()}")
                continue
            kind = cursor.take(_KINDS, repr(closing))
            cursor.expect("=", "{")
            start = cursor.at
            draft.uncut += [name for name, _, _ in cursor.items("}", self._read_axis)]
            draft.besides.append(f"{kind}={{{cursor.text[start : cursor.at]}")
        return draft

    def _read_axis(self) -> tuple[str, int | None, int]:
        """Return the name of an axis; of a part of it, as "x":(2)4, the size and what is before it as well."""
        cursor, name = self.cursor, self._read_name()
        if not cursor.accept(":"):
            return name, None, 1
        cursor.expect("(")
        before = cursor.integer()
        cursor.expect(")")
        return name, cursor.integer(), before

    # JAX and DTensor, as Python prints them

    def _read_value(self, depth: int) -> Any:
        """Return a value of Python: a mesh, a sharding, a list of placements, a number, a string, a word, a node."""
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} levels")
        placements = []
        while match := cursor.match(_PLACEMENT):
            if (match["factor"] is None) != (match["strided"] is None):
                cursor.fail("a split factor in _StridedShard, and in no other placement")
            dimension, factor, order = (match[k] and int(match[k]) for k in ("dimension", "factor", "order"))
            placements.append(_Placement(dimension, factor or 1, order, match["partial"] or ""))
        if placements:
            return placements
        if cursor.peek("{") and _HLO.match(cursor.text, cursor.at):
            return self._read_hlo()
        for opening, closing in ("()", "[]", "{}"):
            if cursor.accept(opening):
                return self._read_items(opening, closing, depth)
        if match := cursor.match(_STRING):
            return match[1] or match[2] or ""
        if match := cursor.match(_NUMBER):
            return int(match[0])
        if match := cursor.match(_TENSOR):  # f32[8, 4](S(0)R), a part of Spec(...)
            shape = None if match[2] else cursor.integers("[", "]")
            cursor.expect("(")
            placements = self._read_items("(", ")", depth)
            if not isinstance(placements, list):
                cursor.fail("placements before")
            return _Draft(placements=placements, shape=shape, besides=[match[1]])
        name = cursor.take(_WORD, "a value")
        if not name[-1].isalnum() or not cursor.accept("("):
            return None if name == "None" else _Word(name)
        return self._read_items(name.rpartition(".")[2], ")", depth)

    def _read_items(self, name: str, closing: str, depth: int) -> Any:
        """Return what a call or a bracket means, from its items up to the closing bracket."""
        cursor, items = self.cursor, list[tuple[Any, Any, slice]]()

        def read_item() -> None:
            start = cursor.skip_space()
            key, value = None, self._read_value(depth + 1)
            if cursor.accept("=") or cursor.accept(":"):
                key, value = value, self._read_value(depth + 1)
            items.append((key, value, slice(start, cursor.at)))
            if cursor.match(_ON):  # Spec(S(0)R on (8, 4))
                items.append(("on", self._read_value(depth + 1), slice(0)))

        if name in _MESHES:
            cursor.accept(",")  # JAX prints a mesh without axes as Mesh(, axis_types=())
        cursor.items(closing, read_item, MAX_DEVICES, is_python=True)
        return self._build(name, items)

    def _build(self, name: str, items: list[tuple[Any, Any, slice]]) -> Any:
        if name in _MESHES:
            return self._build_mesh(items)
        if name in ("P", "PartitionSpec"):
            return self._build_spec(items)
        if name in _SHARDINGS:
            return self._build_sharding(name, items)
        if items and name in ("(", "[") and all(key is None and isinstance(value, list) for key, value, _ in items):
            return [placement for _, value, _ in items for placement in value]
        return _Node(name, items)

    def _spell(self, key: object, span: slice) -> str:
        """Return an item that has no meaning here, as the text has it."""
        return self.cursor.text[span]

    def _build_mesh(self, items: list[tuple[Any, Any, slice]]) -> _MeshText:
        axes: list[tuple[str, int]] = []
        names: list[str] = []
        sizes: tuple[int, ...] | None = None
        numbers: tuple[int, ...] | None = None
        strides: tuple[int, ...] | None = None
        besides = []
        for key, value, span in items:
            inner = value.items if isinstance(value, _Node) and value.name in ("(", "[") else []
            if isinstance(value, int) and isinstance(key, str) and not isinstance(key, _Word):
                axes.append((key, value))
            elif inner and all(isinstance(k, _Word) and isinstance(n, int) for k, n, _ in inner):
                axes += [(str(k), n) for k, n, _ in inner]  # (dp=2, tp=4)
            elif inner and all(type(n) is str for _, n, _ in inner):
                names = [n for _, n, _ in inner]
            elif key in ("stride", "strides"):
                strides = _flatten(value)[1]
            elif isinstance(value, _Node) and value.name == "(" and all(isinstance(n, int) for _, n, _ in inner):
                sizes = tuple([n for _, n, _ in inner])
            elif isinstance(value, _Node) and value.name in ("[", "array", "tensor"):
                sizes, numbers = _flatten(value)
            elif value is not None:
                besides.append(self._spell(key, span))
        if sizes and names and len(names) != len(sizes):
            _refuse(f"a mesh of {format_extents(sizes)} has {len(sizes)} axes, got the names {', '.join(names)}")
        if sizes:
            axes += zip(names or [f"axis_{k}" for k in range(len(sizes))], sizes, strict=True)
        if strides is not None and numbers is None:
            if len(strides) != len(axes):
                _refuse(f"a mesh of {len(axes)} axes has as many strides, got {list(strides)}")
            _count_devices([size for _, size in axes])
            numbers = (0,)
            for (_, size), stride in zip(axes, strides, strict=True):
                numbers = tuple([number + k * stride for number in numbers for k in range(size)])
        return _MeshText(tuple(axes), numbers, tuple(besides))

    def _build_spec(self, items: list[tuple[Any, Any, slice]]) -> _Draft:
        draft = _Draft()
        for key, value, span in items:
            text = self._spell(key, span)
            entries = value.values if isinstance(value, _Node) else [value]
            if key is not None:  # unreduced={'y'}
                entries = (
                    entries[0].values if entries and isinstance(entries[0], _Node) else entries
                )  # frozenset({'y'})
                draft.uncut += [entry for entry in entries if type(entry) is str]
                draft.besides.append(text)
                if key not in ("unreduced", "reduced") or not all(type(entry) is str for entry in entries):
                    _refuse(f"expected unreduced or reduced with the names of axes in a PartitionSpec, got {text:.40}")
                continue
            if isinstance(value, _Word) and value.endswith("UNCONSTRAINED"):
                draft.besides.append(f"dimension {draft.rank} is unconstrained")
            elif all(type(entry) is str for entry in entries):
                draft.cuts += [(draft.rank, entry, None, 1) for entry in entries]
            elif value is not None:
                _refuse(f"expected None or the names of axes in a PartitionSpec, got {text:.40}")
            draft.rank += 1
        return draft

    def _build_sharding(self, name: str, items: list[tuple[Any, Any, slice]]) -> _Draft:
        drafts: list[_Draft] = []
        meshes: list[_MeshText] = []
        shape, orders, besides = None, dict[int, list[int]](), list[str]()
        items = [
            part
            for item in items
            for part in (item[1].items if isinstance(item[1], _Node) and item[1].name == "TensorMeta" else [item])
        ]
        for key, value, span in items:
            if isinstance(value, _MeshText):
                meshes.append(value)
            elif isinstance(value, _Draft):
                drafts.append(value)
            elif isinstance(value, list):
                drafts.append(_Draft(placements=value))
            elif key in ("on", "shape"):
                shape = _flatten(value.values[0] if isinstance(value, _Node) and value.name == "Size" else value)[1]
            elif key == "shard_order" and isinstance(value, _Node):
                for entry in value.values:
                    fields = {k: v for k, v, _ in entry.items} if isinstance(entry, _Node) else {}
                    orders[_flatten(fields.get("tensor_dim"))[1][0]] = list(_flatten(fields.get("mesh_dims"))[1])
            elif name == "SingleDeviceSharding" and key in ("device", None):
                number = re.search(r"(?:id=|_)(\d{1,9})(?!\w)", self.cursor.text[span])
                if number is None:
                    _refuse(
                        f"expected the number of a device, such as CpuDevice(id=0), got {self._spell(key, span):.40}"
                    )
                meshes.append(_MeshText((), (int(number[1]),)))
                drafts.append(_Draft())
                besides.append(self._spell(key, span))
            elif key == "local_tensor":
                besides.append("local_tensor")
            elif value is not None:
                besides.append(self._spell(key, span))
        if len(drafts) != 1 or len(meshes) > 1 or (meshes and drafts[0].mesh is not None):
            _refuse(f"expected one mesh and one sharding in {name}, got {len(meshes)} and {len(drafts)}")
        drafts[0].mesh = meshes[0] if meshes else drafts[0].mesh
        drafts[0].orders, drafts[0].shape = orders, drafts[0].shape if shape is None else shape
        drafts[0].besides += besides
        return drafts[0]


def _refuse(problem: str) -> NoReturn:
    raise FileFormatError(problem)


def _flatten(value: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of nested lists of integers, and their numbers."""
    if isinstance(value, int):
        return (), (value,)
    if not isinstance(value, _Node):
        _refuse("expected integers in brackets in a mesh or shape")
    if value.name in ("array", "tensor"):
        return _flatten(value.values[0] if value.items else None)
    parts = [_flatten(part) for part in value.values]
    if len({shape for shape, _ in parts}) > 1:
        _refuse("the rows of a mesh have the same number of devices, but not in this text")
    return (len(parts), *(parts[0][0] if parts else ())), tuple([number for _, own in parts for number in own])


def _refine(tiles: Sequence[int], extents: Sequence[int], order: Sequence[int]) -> list[list[tuple[int, int]]] | None:
    """Return for each tile dimension the dimensions of the device numbers it takes up, with factors; None if it cannot.

    >>> _refine((4, 2), (2, 4), (1, 0)), _refine((8,), (2, 4), (1, 0)), _refine((2, 3), (3, 2), (0, 1))
    ([[(1, 4)], [(0, 2)]], [[(1, 4), (0, 2)]], None)
    """
    waiting = [(owner, extents[owner]) for owner in reversed(order) if extents[owner] > 1]
    result = []
    for size in tiles:
        own = []
        while size > 1:
            owner, extent = waiting.pop()
            factor = min(size, extent)
            if max(size, extent) % factor:
                return None
            own.append((owner, factor))
            size //= factor
            if extent > factor:
                waiting.append((owner, extent // factor))
        result.append(own)
    return result


def _order_devices(extents: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the device numbers of an iota of `extents`, with its dimensions in an order.

    >>> _order_devices((2, 3), (1, 0))
    (0, 3, 1, 4, 2, 5)
    """
    kept = [k for k in order if extents[k] > 1]  # NumPy has a limit of dimensions
    numbers = np.arange(prod(extents)).reshape([extents[k] for k in sorted(kept)])
    return tuple(numbers.transpose([sorted(kept).index(k) for k in kept]).ravel().tolist())


def _place(draft: _Draft, axes: Sequence[tuple[str, int]]) -> list[Cut]:
    """Return the cuts of the placements of DTensor, in the order in which their axes cut."""
    placements = draft.placements or []
    if len(placements) != len(axes):
        _refuse(f"DTensor has one placement for each axis of the mesh; got {len(placements)} for {len(axes)} axes")
    dimensions = [placement.dimension for placement in placements if placement.dimension is not None]
    if min(dimensions, default=0) < 0 <= max(dimensions, default=0):
        _refuse(f"expected dimensions that all count from the front, or all from the end, got {dimensions}")
    draft.rank = max([k + 1 if k >= 0 else -k for k in dimensions], default=0)
    for (axis, _), placement in zip(axes, placements, strict=True):
        draft.besides += [f"{placement.partial} along {axis}"] * bool(placement.partial)
    cuts = []
    for dimension in dict.fromkeys(dimensions):
        order: list[int] = []
        for k in reversed([k for k, placement in enumerate(placements) if placement.dimension == dimension]):
            before = [prod([axes[other][1] for other in order[:at]]) for at in range(len(order) + 1)]
            if placements[k].factor not in before:
                _refuse(
                    f"_StridedShard(dim={dimension}, sf={placements[k].factor}) gives a device elements that are no box,"
                    " since no later axes cut the dimension into as many parts"
                )
            order.insert(before.index(placements[k].factor), k)
        stated = sorted(order, key=lambda k: placements[k].order or 0)
        stated = draft.orders.get(dimension, stated if placements[order[-1]].order is not None else order)
        if sorted(stated) != sorted(order):
            _refuse(f"the axes {stated} of shard_order are not those that cut dimension {dimension}, {sorted(order)}")
        cuts += [Cut(dimension, *axes[k]) for k in stated]
    return cuts
