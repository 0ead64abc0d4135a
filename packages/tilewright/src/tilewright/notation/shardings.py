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
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from .._integers import ceil_div
from .._text import TextCursor, count_of, format_extents, list_some
from ..display import Drawable
from ..errors import CoordinateError, FileFormatError, LayoutError
from ..layout import MAX_DEPTH, Box, Layout, device, with_logical_shape
from ..memory import Mesh, TileExplanation, Topology

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

    def boxes(self, shape: Sequence[int] | None = None) -> dict[Box, list[tuple[int, ...]]]:
        """Return the distinct parts of a tensor of `shape`, and the coordinates on the mesh of the devices with each.

        >>> parse_sharding("Mesh('x': 2, 'y': 2) P('y')").boxes((4,))[Box((2,), (2,))]
        [(0, 1), (1, 1)]
        """
        result: dict[Box, list[tuple[int, ...]]] = {}
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

    def explain_element(self, coordinate: Sequence[int]) -> TileExplanation:
        """Return which devices hold the element at a `coordinate` of the tensor, whose shape is known, and where.

        >>> print(parse_sharding("Mesh('x': 2, 'y': 2) P('x')").on((8, 8)).explain_element((5, 1)))
        element   (5, 1) of 8 x 8
        device    2 = (1, 0) of 2 x 2: element (1, 1)
        device    3 = (1, 1) of 2 x 2: element (1, 1)
        """
        extents, at, numbers = self._extents(None), tuple(coordinate), np.reshape(self.devices, self.mesh_shape)
        if len(at) != len(extents) or not all(0 <= c < n for c, n in zip(at, extents, strict=True)):
            raise CoordinateError(f"coordinate {at} is outside shape {list(extents)}")
        for box, places in self.boxes().items():
            inside = tuple([c - start for c, start in zip(at, box.offset, strict=True)])
            if all(0 <= c < n for c, n in zip(inside, box.shape, strict=True)):
                holders = tuple([(int(numbers[place]), place or (0,), inside) for place in places])
        return TileExplanation(extents, self.mesh_shape or (1,), at, holders, "device")

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
    """A sharding as its text has it, whose mesh may be elsewhere: a mesh, or the symbol of one."""

    mesh: _MeshText | str | None = None
    rank: int = 0
    is_prefix: bool = True
    cuts: list[Cut] = field(default_factory=list)  # of size 0 if it is that of the axis
    placements: list[_Placement] | None = None  # of DTensor, for each axis
    shape: tuple[int, ...] | None = None
    besides: list[str] = field(default_factory=list)


class _Word(str):
    """A word of Python's that is not in quotes."""

    __slots__ = ()


_Items: TypeAlias = "list[tuple[Any, Any, slice]]"  # a keyword or key, a value, and where the text has them


class _Node(NamedTuple):
    """A call, or a bracket as its name, with the items in it."""

    name: str
    items: _Items

    @property
    def values(self) -> list[Any]:
        return [value for _, value, _ in self.items]


_PREFIX = re.compile(r"(?:[A-Za-z_][\w.]{0,60})?shardings?\s*[=:]\s*", re.ASCII)
_HLO = re.compile(r"\{\s*(?:devices|maximal|replicated|manual|unknown|unreduced|mesh|\{)")
_STATE = re.compile(r"(replicated|manual|unknown|unreduced)(?!\w)|(?:maximal\s+)?device\s*=")
_ATTRIBUTE = re.compile(r"(shard_as\s+\d{1,9}|shard_like\s+\d{1,9})|metadata\s*=")
_ATTRIBUTES = re.compile(r"\{(?=\s*[a-z]\w*\.\w+\s*=)", re.ASCII)
_BRACKET = re.compile(r"[\[(]")
_KINDS = re.compile(r"replicated|manual|unreduced")
_AXIS = re.compile(r"\"([^\"\s]{1,100})\"|'([^'\s]{1,100})'|([A-Za-z_][\w.-]{0,99})", re.ASCII)
_SYMBOL = re.compile(r"@[\w.$-]{1,100}", re.ASCII)
_PRIORITY = re.compile(r"p(\d{1,9})(?!\w)", re.ASCII)
_STRING = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_NUMBER = re.compile(r"-?\d{1,18}(?![\w.])", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][\w.]*|<[^<>\n]{1,100}>|-?\.?\d[\w.+-]*", re.ASCII)
_PLACEMENT = re.compile(
    r"(?:Shard|S|(_StridedShard|_S))\(\s*(?:dim\s*=\s*)?(-?\d{1,3})\s*"
    r"(?:,\s*(?:(?:sf|split_factor)\s*=\s*)?(\d{1,9})\s*)?\)(?:\[(\d{1,3})\])?"
    r"|Replicate\(\s*\)|R(?=\s*(?:[\])},RSP_]|on\b|\Z))"
    r"|(Partial\([\w=' ]{0,40}\)|P\((?:sum|avg|product|min|max|band|bor|bxor|premul_sum)\))",
    re.ASCII,
)
_TENSOR = re.compile(r"(unknown dtype|[a-z]\w{0,20})(unknown shape(?=\()|(?=\[[\d, ]*\]\())", re.ASCII)
_ON = re.compile(r"on(?!\w)")
_MESHES = ("Mesh", "AbstractMesh", "DeviceMesh", "make_mesh", "init_device_mesh")
_SHARDINGS = ("NamedSharding", "GSPMDSharding", "SingleDeviceSharding", "DTensorSpec", "DTensor", "Spec")
_EXAMPLES = '{devices=[2,4]<=[8]}, #sdy.sharding<@mesh, [{"x"}]>, NamedSharding(...), [Shard(0), Replicate()]'


def parse_sharding(text: str, mesh: str | Mapping[str, int] = "") -> DeviceSharding:
    """Return the sharding that a `text` of XLA, Shardy, JAX or DTensor describes.

    `mesh` is its mesh, if the text does not have it: the sizes of the axes by name, or the text of a mesh.

    >>> parse_sharding("P('x', None)", {"x": 2, "y": 4}).cuts
    (Cut(dimension=0, axis='x', size=2, before=1),)
    >>> parse_sharding('#sdy.sharding<@mesh, [{"x":(2)4}, {?}]>', 'sdy.mesh @mesh = <["x"=8]>').besides
    ('dimension 1 is open',)
    """
    if not isinstance(mesh, str):
        mesh = f"Mesh({', '.join([f'{name!r}: {size}' for name, size in mesh.items()])})"
    return _ShardingReader(f"{mesh} {text}".strip()).read()


class _ShardingReader:
    """Reads the items of a text at a cursor."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cursor = TextCursor(re.sub(r'(?<!\\)\\+(?:22|")', '"', text), "a sharding")  # quotes in a string of MLIR
        self.symbols: dict[str, _MeshText] = {}

    def read(self) -> DeviceSharding:
        """Return the sharding in the text."""
        cursor, found = self.cursor, list[Any]()
        while not cursor.at_end():
            cursor.match(_PREFIX)
            is_quoted = cursor.accept('"')
            found.append(self._read_item())
            if is_quoted:
                cursor.expect('"')
            if not cursor.accept(","):
                cursor.accept(";")
        meshes = [item for item in found if isinstance(item, _MeshText)]
        drafts = [item for item in found if isinstance(item, _Draft)]
        if len(drafts) != 1 or len(meshes) > 1:
            counts = f"{count_of(len(drafts), 'sharding')} and {len(meshes)} {'mesh' if len(meshes) == 1 else 'meshes'}"
            _refuse(f"expected one sharding, and its mesh, such as {_EXAMPLES}; this text has {counts}")
        return self._finish(drafts[0], meshes[0] if meshes else None)

    def _finish(self, draft: _Draft, mesh: _MeshText | None) -> DeviceSharding:
        """Return a sharding on its own mesh, or on the one that was found elsewhere."""
        is_replicated = draft.besides[:1] == ["replicated"]
        if isinstance(draft.mesh, _MeshText) and mesh is not None:
            _refuse("this sharding has a mesh of its own, but the text has another one; leave that out")
        own = self.symbols.get(draft.mesh, mesh) if isinstance(draft.mesh, str) else draft.mesh or mesh
        if own is None and not is_replicated:
            _refuse(
                "this sharding does not state the sizes of its mesh; put them before it, as in Mesh('x': 2, 'y': 4)"
                " P('x'), sdy.mesh @mesh = <[\"x\"=2]> #sdy.sharding<...> or DeviceMesh((2, 4), 'cpu') [Shard(0), R]"
            )
        elif own is not None and is_replicated and own.numbers != ():
            del draft.besides[0]  # the mesh has the devices
        own = own or _MeshText((), ())
        sizes = dict(own.axes)
        cuts = [cut if cut.size else cut._replace(size=sizes.get(cut.axis, 1)) for cut in draft.cuts]
        if draft.placements is not None:
            cuts = _place(draft, own.axes)
        return DeviceSharding(
            *(own.axes, tuple(cuts), own.numbers, draft.rank, draft.is_prefix, draft.placements is not None),
            *(draft.shape, (*own.besides, *draft.besides), self.text),
        )

    def _read_item(self) -> _MeshText | _Draft | None:
        """Return the next mesh or sharding; None for the definition of a symbol."""
        cursor, start = self.cursor, self.cursor.skip_space()
        if cursor.accept("sdy.mesh"):
            symbol = self._read_symbol()
            cursor.expect("=", "<")
            mesh = self._read_axes(">")
            if cursor.match(_ATTRIBUTES):  # JAX repeats the axes in {stablehlo.mesh = ...}
                mesh = mesh._replace(besides=(*mesh.besides, *cursor.items("}", cursor.raw)))
            self.symbols[symbol] = mesh
            return None
        if cursor.accept("#sdy.sharding_per_value"):
            cursor.expect("<", "[")
            draft = _only(cursor.items("]", self._read_shardy, MAX_DEVICES))
            cursor.expect(">")
            return draft
        if cursor.accept("#sdy.sharding"):
            return self._read_shardy()
        is_mesh = cursor.accept("@ mesh:")  # as DTensor prints operations
        item = self._read_value(0)
        item = self._build("Mesh", [(None, item, slice(0))]) if is_mesh else item
        item = _Draft(placements=item) if isinstance(item, list) else item
        if not isinstance(item, (_MeshText, _Draft)):
            cursor.at = start
            cursor.fail(f"a sharding, such as {_EXAMPLES}, or a mesh")
        return item

    # XLA: {devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}

    def _read_hlo(self, is_element: bool = False) -> _Draft:
        cursor, draft = self.cursor, _Draft()
        cursor.expect("{")
        if cursor.peek("{") and not is_element:
            return _only(cursor.items("}", lambda: self._read_hlo(True), MAX_DEVICES))
        if cursor.accept("mesh"):
            draft.mesh = self._read_axes(",")
            if not cursor.accept("replicated"):
                return self._read_dimensions(draft.mesh, "}")
        elif match := cursor.match(_STATE):
            draft.besides += [match[1]] if match[1] else []
            if match[1] != "replicated":
                draft.mesh = _MeshText((), () if match[1] else (self._read_device(),))
        else:
            cursor.expect("devices", "=")
            self._read_tiles(draft)
        while match := cursor.match(_ATTRIBUTE):
            draft.besides.append(match[1] or f"metadata={cursor.raw()}")
        cursor.expect("}")
        return draft

    def _read_tiles(self, draft: _Draft) -> None:
        """Read how many parts each dimension has, and which devices hold them."""
        cursor, kinds, pieces = self.cursor, list[str](), None
        tiles = cursor.integers("[", "]")
        count = _count_devices(tiles)
        if cursor.accept("<="):
            iota = self._read_iota(count)
            pieces = _refine(tiles, *iota)
            numbers = _order_devices(*iota) if pieces is None else tuple(range(count))
        else:
            numbers = self._read_devices()
        if cursor.accept("last_tile_dim_replicate"):
            kinds = ["replicated"]
        elif cursor.accept("last_tile_dims"):
            cursor.expect("=", "{")
            kinds = cursor.items("}", lambda: cursor.take(_KINDS, "replicated, manual or unreduced"))
        draft.rank, draft.is_prefix = len(tiles) - len(kinds), False
        if draft.rank < 0:
            _refuse(f"{len(kinds)} last_tile_dims are more than the {len(tiles)} of devices=[...]")
        if pieces is None:
            pieces = [(k, k, size) for k, size in enumerate(tiles) if size > 1]
        order = sorted(range(len(pieces)), key=lambda j: pieces[j][0])
        names = {j: f"axis_{at}" for at, j in enumerate(order)}
        draft.mesh = _MeshText(tuple([(names[j], pieces[j][2]) for j in order]), numbers)
        draft.cuts = [Cut(k, names[j], size) for j, (_, k, size) in enumerate(pieces) if k < draft.rank]
        for j, (_, k, _) in enumerate(pieces):
            if k >= draft.rank and kinds[k - draft.rank] != "replicated":
                draft.besides.append(f"{kinds[k - draft.rank]} along {names[j]}")

    def _read_iota(self, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the dimensions that the device numbers are counted along, and their order."""
        cursor = self.cursor
        extents = cursor.integers("[", "]")
        order = cursor.integers("(", ")") if cursor.accept("T") else tuple(range(len(extents)))
        if _count_devices(extents) != count or sorted(order) != list(range(len(extents))):
            _refuse(
                f"expected extents of {count_of(count, 'device')} after <=, and their positions once each after T, got"
                f" {list(extents)} and {list(order)}"
            )
        return extents, order

    def _read_device(self) -> int:
        return self.cursor.integer("the number of a device", 2**31 - 1)

    def _read_devices(self) -> tuple[int, ...]:
        numbers = [self._read_device()]
        while self.cursor.accept(","):
            numbers.append(self._read_device())
        return tuple(numbers)

    # Shardy: #sdy.sharding<@mesh, [{"x"}, {"y":(1)2, ?}p1], replicated={"z"}>, and XLA's {mesh['x'=2], [{'x'}]}

    def _read_symbol(self) -> str:
        return self.cursor.take(_SYMBOL, "the symbol of a mesh, such as @mesh")

    def _read_axes(self, closing: str) -> _MeshText:
        """Return a mesh: ["x"=2, "y"=4], device_ids=[...]."""
        cursor = self.cursor
        cursor.expect("[")
        axes = tuple([(cut.axis, cut.size) for cut in cursor.items("]", lambda: self._read_axis("="))])
        count, start = _count_devices([size for _, size in axes]), cursor.at
        numbers = tuple(range(count)) if axes else ()
        if cursor.accept(",") and cursor.accept("device_ids"):
            cursor.expect("=")
            bracket = cursor.take(_BRACKET, "'[' or '('")
            is_iota = bracket == "(" and cursor.peek("[")
            numbers = _order_devices(*self._read_iota(count)) if is_iota else self._read_devices()
            cursor.expect("]" if bracket == "[" else ")")
        else:
            cursor.at = start
        cursor.expect(closing)
        return _MeshText(axes, numbers, () if numbers else ("replicated",))

    def _read_shardy(self) -> _Draft:
        cursor, mesh = self.cursor, None
        cursor.expect("<")
        if cursor.accept("mesh"):
            cursor.expect("<")
            mesh = self._read_axes(">")
        symbol = mesh or self._read_symbol()
        cursor.expect(",")
        return self._read_dimensions(symbol, ">")

    def _read_dimensions(self, mesh: _MeshText | str, closing: str) -> _Draft:
        """Return the sharding from the axes of each dimension on, up to its end."""
        cursor, draft = self.cursor, _Draft(mesh, is_prefix=False)

        def read_dimension() -> None:
            cursor.expect("{")
            for cut in cursor.items("}", lambda: None if cursor.accept("?") else self._read_axis(":")):
                if cut is None:
                    draft.besides.append(f"dimension {draft.rank} is open")
                else:
                    draft.cuts.append(cut._replace(dimension=draft.rank))
            if match := cursor.match(_PRIORITY):
                draft.besides.append(f"dimension {draft.rank} has priority {match[1]}")
            draft.rank += 1

        cursor.expect("[")
        cursor.items("]", read_dimension)
        while not cursor.accept(closing):
            cursor.expect(",")
            start = cursor.skip_space()
            if cursor.accept("metadata"):
                cursor.raw()
            else:
                cursor.take(_KINDS, repr(closing))
                cursor.expect("=", "{")
                cursor.items("}", lambda: self._read_axis(":"))
            draft.besides.append(cursor.text[start : cursor.at])
        return draft

    def _read_axis(self, sign: str) -> Cut:
        """Return an axis with its size, as in "x"=8, or a part of one, as in "x":(2)4; of size 0 if there is none."""
        cursor = self.cursor
        match, before = cursor.match(_AXIS), 1
        name = match[1] or match[2] or match[3] if match else cursor.fail("the name of an axis")
        if not cursor.accept(sign):
            return Cut(0, name, 0) if sign == ":" else cursor.fail("'='")
        if sign == ":":
            cursor.expect("(")
            before = cursor.integer()
            cursor.expect(")")
        return Cut(0, name, cursor.integer("the devices along an axis"), before)

    # JAX and DTensor, as Python prints them

    def _read_value(self, depth: int) -> Any:
        """Return a value of Python: a mesh, a sharding, a list of placements, a number, a string, a word, a node."""
        cursor, placements = self.cursor, []
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} levels")
        while match := cursor.match(_PLACEMENT):
            if (match[1] is None) != (match[3] is None):
                cursor.fail("a split factor for _StridedShard, and for no other placement, before")
            dimension, factor, order = [None if match[k] is None else int(match[k]) for k in (2, 3, 4)]
            placements.append(_Placement(dimension, factor or 1, order, match[5] or ""))
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
        if match := cursor.match(_TENSOR):  # f32[8, 4](S(0)R), in Spec(...)
            shape = None if match[2] else cursor.integers("[", "]")
            cursor.expect("(")
            placements = self._read_items("(", ")", depth)
            if not isinstance(placements, list):
                cursor.fail("placements before")
            return _Draft(placements=placements, shape=shape, besides=[match[1]])
        name = cursor.take(_WORD, "a value")
        if not cursor.accept("("):
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

    def _build(self, name: str, items: _Items) -> Any:
        if name in _MESHES:
            return self._build_mesh(items)
        if name in ("P", "PartitionSpec"):
            return self._build_spec(items)
        if name in _SHARDINGS:
            return self._build_sharding(name, items)
        if items and name in ("(", "[") and all(key is None and isinstance(value, list) for key, value, _ in items):
            return [placement for _, value, _ in items for placement in value]
        return _Node(name, items)

    def _build_mesh(self, items: _Items) -> _MeshText:
        axes: list[tuple[str, int]] = []
        names: list[str] = []
        besides: list[str] = []
        sizes: tuple[int, ...] = ()
        numbers = strides = None
        for key, value, span in items:
            inner = value.items if isinstance(value, _Node) else []
            if isinstance(value, int) and type(key) is str:  # 'x': 2
                axes.append((key, value))
            elif inner and all(isinstance(k, _Word) and isinstance(n, int) for k, n, _ in inner):
                axes += [(str(k), n) for k, n, _ in inner]  # (dp=2, tp=4)
            elif inner and all(type(n) is str for n in value.values):
                names = value.values
            elif key == "stride":
                strides = _flatten(value)[1]
            elif isinstance(value, _Node) and value.name == "(" and all(isinstance(n, int) for n in value.values):
                sizes = tuple(value.values)
            elif isinstance(value, _Node) and value.name in ("[", "array", "tensor"):
                sizes, numbers = _flatten(value)
            elif value is not None:
                besides.append(self.cursor.text[span])
        axes += zip(names or [f"axis_{k}" for k in range(len(sizes))], sizes, strict=False)
        if len(names or sizes) != len(sizes) or len(strides or axes) != len(axes):
            _refuse(f"a mesh of {count_of(len(axes), 'axis')} has as many names and strides")
        if strides is not None and numbers is None and _count_devices([size for _, size in axes]):
            numbers = (0,)
            for (_, size), stride in zip(axes, strides, strict=True):
                numbers = tuple([number + k * stride for number in numbers for k in range(size)])
        return _MeshText(tuple(axes), numbers, tuple(besides))

    def _build_spec(self, items: _Items) -> _Draft:
        draft = _Draft()
        for key, value, span in items:
            entries, text = value.values if isinstance(value, _Node) else [value], self.cursor.text[span]
            if key in ("unreduced", "reduced"):
                draft.besides.append(text)
                continue
            if key is None and isinstance(value, _Word) and value.endswith("UNCONSTRAINED"):
                draft.besides.append(f"dimension {draft.rank} is unconstrained")
            elif key is None and all(type(entry) is str for entry in entries):
                draft.cuts += [Cut(draft.rank, entry, 0) for entry in entries]
            elif key is not None or value is not None:
                _refuse(f"expected None or the names of axes in a PartitionSpec, got {text:.40}")
            draft.rank += 1
        return draft

    def _build_sharding(self, name: str, items: _Items) -> _Draft:
        drafts, meshes, besides, order = list[_Draft](), list[_MeshText](), list[str](), dict[int, int]()
        shape: tuple[int, ...] | None = None
        for key, value, span in items:
            text = self.cursor.text[span]
            if isinstance(value, _MeshText):
                meshes.append(value)
            elif isinstance(value, (_Draft, list)):
                drafts.append(value if isinstance(value, _Draft) else _Draft(placements=value))
            elif isinstance(value, _Node) and value.name == "TensorMeta":
                items.extend(value.items)  # which are next
            elif key in ("on", "shape"):
                shape = _flatten(value)[1]
            elif key == "shard_order" and isinstance(value, _Node):
                for entry in value.values:
                    axes = _flatten(entry.values[-1] if isinstance(entry, _Node) and entry.items else entry)[1]
                    order |= {axis: place for place, axis in enumerate(axes)}
            elif name == "SingleDeviceSharding" and key in ("device", None):
                number = re.search(r"(?:id=|_)(\d{1,9})(?!\w)", text)
                if number is None:
                    _refuse(f"expected the number of a device, as in CpuDevice(id=0), got {text:.40}")
                drafts.append(_Draft(_MeshText((), (int(number[1]),))))
                besides.append(text)
            elif value is not None:
                besides.append("local_tensor" if key == "local_tensor" else text)
        if len(drafts) != 1 or len(meshes) > 1 or (meshes and drafts[0].mesh is not None):
            _refuse(f"expected one sharding, and its mesh, in {name}(...)")
        draft = drafts[0]
        draft.mesh = meshes[0] if meshes else draft.mesh
        draft.shape = draft.shape if shape is None else shape
        draft.besides += besides
        for k, placement in enumerate(draft.placements or ()):
            if draft.placements and k in order:
                draft.placements[k] = placement._replace(order=order[k])
        return draft


def _refuse(problem: str) -> NoReturn:
    raise FileFormatError(f"a sharding: {problem}")


def _only(drafts: list[_Draft]) -> _Draft:
    return (
        drafts[0]
        if len(drafts) == 1
        else _refuse(f"this text has shardings of {len(drafts)} values; paste one of them")
    )


def _flatten(value: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of nested lists of integers, and their numbers."""
    if isinstance(value, int):
        return (), (value,)
    if not isinstance(value, _Node) or (value.name not in ("(", "[") and not value.items):
        _refuse("expected integers in brackets in a mesh or a shape")
    if value.name not in ("(", "["):  # array([0, 1])
        return _flatten(value.values[0])
    parts = [_flatten(part) for part in value.values]
    if len({shape for shape, _ in parts}) > 1:
        _refuse("expected rows of the same length in a mesh")
    return (len(parts), *(parts[0][0] if parts else ())), tuple([number for _, own in parts for number in own])


def _refine(tiles: Sequence[int], extents: Sequence[int], order: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Return the factors of `extents`, in an order, that `tiles` consist of, with both their places; None if of none.

    >>> _refine((4, 2), (2, 4), (1, 0)), _refine((8,), (2, 4), (1, 0)), _refine((2, 3), (3, 2), (0, 1))
    ([(1, 0, 4), (0, 1, 2)], [(1, 0, 4), (0, 0, 2)], None)
    """
    waiting = [(owner, extents[owner]) for owner in reversed(order) if extents[owner] > 1]
    result = []
    for k, size in enumerate(tiles):
        while size > 1:
            owner, extent = waiting.pop()
            factor = min(size, extent)
            if max(size, extent) % factor:
                return None
            result.append((owner, k, factor))
            size //= factor
            if extent > factor:
                waiting.append((owner, extent // factor))
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
    if min(dimensions, default=0) < 0 <= max(dimensions, default=-1):
        _refuse(f"expected dimensions that all count from the front, or all from the end, got {dimensions}")
    draft.rank = max([k + 1 if k >= 0 else -k for k in dimensions], default=0)
    cuts = []
    for dimension in dict.fromkeys(dimensions):
        order: list[int] = []
        for k in reversed([k for k, placement in enumerate(placements) if placement.dimension == dimension]):
            before = [prod([axes[other][1] for other in order[:at]]) for at in range(len(order) + 1)]
            if placements[k].factor not in before:
                _refuse(
                    f"_StridedShard with sf={placements[k].factor} gives devices elements of dimension {dimension} that"
                    " are no box: later axes do not cut it into as many parts"
                )
            order.insert(before.index(placements[k].factor), k)
        if all(placements[k].order is not None for k in order):
            order.sort(key=lambda k: placements[k].order or 0)
        cuts += [Cut(dimension, *axes[k]) for k in order]
    for (axis, _), placement in zip(axes, placements, strict=True):
        draft.besides += [f"{placement.partial} along {axis}"] if placement.partial else []
    return cuts
