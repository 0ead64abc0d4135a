# SPDX-License-Identifier: Apache-2.0
"""Shardings of XLA, Shardy, JAX and PyTorch's DTensor: which device of a mesh holds which part of a tensor.

`{devices=[4,2]<=[2,4]T(1,0)}` has devices 0 to 7 as a mesh of 2 x 4, whose second axis cuts dimension 0 of the tensor,
and whose first axis cuts dimension 1. `#sdy.sharding<@mesh, [{"y"}, {"x"}]>`, JAX's `P('y', 'x')` and DTensor's
`[Shard(1), Shard(0)]` mean the same on a mesh with the axes x = 2 and y = 4. XLA and JAX cut an extent into equal parts
at once, the last ones shorter or empty; DTensor cuts for one axis of the mesh after the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

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

    size: int
    stride: int  # between its devices, in the order of the mesh
    order: int  # among the cuts
    dimension: int | None  # that it cuts; None if it holds copies


@dataclass(frozen=True, slots=True)
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
        for number, times in Counter(self.numbers).most_common(1):
            if times > 1:
                raise LayoutError(f"a device is in a mesh once, but this text names device {number} {times} times")
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
        columns = [[parts[number] for number in index.tolist()] for parts, index in self._parts(shape)]
        return {number: tuple(part) for number, *part in zip(self.devices, *columns, strict=True)}

    def boxes(self, shape: Sequence[int] | None = None) -> dict[Box, list[tuple[int, ...]]]:
        """Return the distinct parts of a tensor of `shape`, and the coordinates on the mesh of the devices with each.

        >>> parse_sharding("Mesh('x': 2, 'y': 2) P('y')").boxes((4,))[Box((2,), (2,))]
        [(0, 1), (1, 1)]
        """
        result: dict[Box, list[tuple[int, ...]]] = {}
        windows = self.windows(shape)
        for at, part in zip(self._coordinates(np.arange(len(windows))), windows.values(), strict=True):
            box = Box.between(tuple([s.start for s in part]), tuple([s.stop for s in part]))
            result.setdefault(box, []).append(at)
        return result

    def mesh(self, shape: Sequence[int] | None = None) -> Mesh:
        """Return the mesh of devices that share a tensor of `shape`, if their parts are alike.

        >>> print(parse_sharding("{devices=[2,4]<=[8]}").mesh((8, 8)))
        2 x 4 devices, 2 along dimension 0, 4 along dimension 1; each holds 4 x 2
        """
        extents = self._extents(shape)
        parts, part = self._by_dimension(len(extents)), list(extents)
        for k, own in parts.items():
            if k is not None:
                part[k] = _require_even(k, extents[k], own)
        index = self._index([piece for own in parts.values() for piece in own])
        distribution = tuple([_count_parts(own) for own in parts.values()]) or (1,)
        topology = Topology(distribution, tuple(parts) or (None,), tuple(self._coordinates(np.argsort(index))))
        return Mesh(self.mesh_shape or (1,), topology, tuple(part))

    def layout(self, shape: Sequence[int] | None = None) -> Layout:
        """Return the layout from a coordinate of a tensor of `shape` to the device, and to the element on it.

        A part is row-major. Copies are replicas; where a part is shorter than others, the rest is padding.

        >>> print(parse_sharding("{devices=[2,4]<=[8]}").layout((8, 8)))
        ((4,2),(2,4)):((2,4@device),(1,1@device))
        """
        extents, numbers = self._extents(shape), np.array(self.devices, dtype=object)
        parts = self._by_dimension(len(extents))
        pieces = [piece for own in parts.values() for piece in own]
        apart = {piece: numbers[piece.stride] - numbers[0] if piece.size > 1 else 0 for piece in pieces}
        if any(numbers - numbers[0] - sum([self._index([piece]) * stride for piece, stride in apart.items()])):
            raise LayoutError(
                f"the devices {list_some(list(map(str, numbers[:99])), _MAX_LISTED)} of this mesh are in an order that"
                " strides cannot express; .windows(shape) has the part of every device"
            )
        part = [ceil_div(extent, _count_parts(parts.get(k, ()))) for k, extent in enumerate(extents)]
        modes: list[Any] = list(part)  # integers, or tuples of them
        strides: list[Any] = [prod(part[k + 1 :]) for k in range(len(part))]  # also those along the axis of devices
        for k, own in parts.items():
            if k is not None:
                if self.is_nested and len(own) > 1:
                    _require_even(k, extents[k], own)
                modes[k] = (part[k], *[piece.size for piece in reversed(own)])
                strides[k] = (strides[k], *[apart[piece] @ device for piece in reversed(own)])
        copies = [(piece.size, apart[piece] @ device) for piece in parts.get(None, ())]
        laid_out = Layout(tuple(modes), tuple(strides), numbers[0] @ device, copies)
        return laid_out if 0 in extents else with_logical_shape(laid_out, extents)

    def explain_element(self, coordinate: Sequence[int]) -> TileExplanation:
        """Return which devices hold the element at a `coordinate` of the tensor, whose shape is known, and where.

        >>> print(parse_sharding("Mesh('x': 2, 'y': 2) P('x')").on((8, 8)).explain_element((5, 1)))
        element   (5, 1) of 8 x 8
        device    2 = (1, 0) of 2 x 2: element (1, 1)
        device    3 = (1, 1) of 2 x 2: element (1, 1)
        """
        extents, at = self._extents(None), tuple(coordinate)
        if len(at) != len(extents) or not all(0 <= c < n for c, n in zip(at, extents, strict=True)):
            raise CoordinateError(f"coordinate {at} is outside shape {list(extents)}")
        holds, inside = np.full(len(self.devices), True), list[int]()
        for c, (parts, index) in zip(at, self._parts(None), strict=True):
            number = next(k for k, part in enumerate(parts) if part.start <= c < part.stop)
            holds &= index == number
            inside.append(c - parts[number].start)
        places = np.flatnonzero(holds)
        coordinates = zip(places.tolist(), self._coordinates(places), strict=True)
        holders = tuple([(self.devices[place], where, tuple(inside)) for place, where in coordinates])
        return TileExplanation(extents, self.mesh_shape or (1,), at, holders, "device")

    def __str__(self) -> str:
        return self.text or repr(self)

    def _extents(self, shape: Sequence[int] | None) -> tuple[int, ...]:
        """Return the shape of the tensor, given or known, if the sharding can be its."""
        if shape is None and self.shape is None:
            raise LayoutError("this sharding does not state the shape of its tensor; give it one, as in shape=(8, 8)")
        extents = tuple([int(n) for n in ((self.shape or ()) if shape is None else shape)])
        rank = max([self.rank, *[k + 1 if k >= 0 else -k for k, *_ in self.cuts]])
        if len(extents) < rank or (len(extents) > rank and not self.is_prefix):
            least = "at least " if self.is_prefix else ""
            raise LayoutError(f"this sharding is for tensors of rank {least}{rank}, got shape {list(extents)}")
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
        rest = prod(self.mesh_shape)
        for name, size in self.axes:
            rest, before = rest // size, 1
            for order, cut in sorted(own[name], key=lambda pair: pair[1].before):
                after = cut.before * cut.size
                if cut.before < before or (cut.size < 2 and len(own[name]) > 1):
                    raise LayoutError(f"axis {name!r} of the mesh is used twice, but can cut one dimension once")
                if cut.before % before or cut.size < 1 or size % after:
                    raise LayoutError(f"axis {name!r} of {size} devices has no part ({cut.before}){cut.size}")
                if cut.before > before:
                    pieces.append(_Piece(cut.before // before, rest * size // cut.before, 0, None))
                pieces.append(_Piece(cut.size, rest * size // after, order, cut.dimension))
                before = after
            if before < size:
                pieces.append(_Piece(size // before, rest, 0, None))
        return pieces

    def _by_dimension(self, rank: int) -> dict[int | None, list[_Piece]]:
        """Return the pieces that cut each dimension of a tensor, major first, and those with copies, of None."""
        result: dict[int | None, list[_Piece]] = {}
        for piece in sorted(self._pieces(), key=lambda piece: (piece.dimension is None, piece.order)):
            result.setdefault(None if piece.dimension is None else piece.dimension % rank, []).append(piece)
        return result

    def _index(self, pieces: Iterable[_Piece]) -> NDArray[np.int64]:
        """Return the number of every device along pieces, the first one major."""
        at = np.arange(len(self.devices))
        index = np.zeros_like(at)
        for piece in pieces:
            index = index * piece.size + at // piece.stride % piece.size
        return index

    def _coordinates(self, places: NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
        """Return the coordinates on the mesh of devices, from their places in its order."""
        mesh_shape = self.mesh_shape or (1,)
        axes = [places // prod(mesh_shape[k + 1 :]) % size for k, size in enumerate(mesh_shape)]
        return zip(*[axis.tolist() for axis in axes], strict=True)

    def _parts(self, shape: Sequence[int] | None) -> Iterator[tuple[list[slice], NDArray[np.int64]]]:
        """Yield for each dimension its parts, and the number of the part that each device has."""
        extents = self._extents(shape)
        pieces = self._by_dimension(len(extents))
        for k, extent in enumerate(extents):
            own, spans = pieces.get(k, []), [(0, extent)]
            for size in [piece.size for piece in own] if self.is_nested else [_count_parts(own)]:
                spans = [span for start, stop in spans for span in _split(start, stop, size)]
            yield [slice(*span) for span in spans], self._index(own)


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


def _count_parts(pieces: Iterable[_Piece]) -> int:
    return prod([piece.size for piece in pieces])


def _require_even(dimension: int, extent: int, pieces: list[_Piece]) -> int:
    """Return the extent of each part of a dimension, if all are alike."""
    if extent % _count_parts(pieces):
        raise LayoutError(
            f"dimension {dimension} has {extent} elements, which {format_extents([piece.size for piece in pieces])}"
            " devices cannot share evenly; .windows(shape) has the part of every device"
        )
    return extent // _count_parts(pieces)


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
    axes: tuple[tuple[str, int], ...] = ()
    numbers: tuple[int, ...] | None = ()


class _Placement(NamedTuple):
    """A placement of DTensor: the dimension that an axis of the mesh cuts; None if it holds copies or summands."""

    dimension: int | None
    factor: int  # of _StridedShard: into how many parts later axes have cut before
    order: int | None  # of the axis, among those that cut the dimension
    partial: str


@dataclass
class _Draft:
    """A sharding as its text has it, whose mesh may be elsewhere: a mesh, or the symbol of one."""

    mesh: _MeshText | str | None = None
    rank: int = 0
    is_prefix: bool = True
    cuts: list[Cut] = field(default_factory=list)  # of size 0 if it is that of the axis
    placements: list[_Placement] | None = None  # of DTensor, for each axis
    shape: tuple[int, ...] | None = None
    state: str = ""  # if it has no devices: replicated, manual, unknown or unreduced


class _Pair(NamedTuple):
    """An item of a bracket that has a key: 'x': 2, or x=2."""

    key: str
    value: Any  # whatever the text has


class _Item(NamedTuple):
    """An item of a call: its keyword if it has one, its value, and the text of both."""

    keyword: str | None
    value: Any  # whatever the text has
    text: str


_PREFIX = re.compile(r"(?:(?:[A-Za-z_][\w.]{0,60})?shardings?\s*[=:]\s*)?\"?", re.ASCII)
_SEPARATOR = re.compile(r"\"?\s*[,;]?")
_HLO = re.compile(r"\{\s*(?:devices|maximal|replicated|manual|unknown|unreduced|mesh|\{)")
_STATE = re.compile(r"(replicated|manual|unknown|unreduced)(?!\w)")
_SUBGROUP = re.compile(r"replicated|manual|unreduced")
_ATTRIBUTE = re.compile(r"(shard_as\s+\d{1,9}|shard_like\s+\d{1,9})|metadata\s*=")
_DEVICES = re.compile(r"\d{1,10}(?!\d)(?:\s*,\s*\d{1,10}(?!\d))*", re.ASCII)
_DEVICE_IDS = re.compile(r",\s*device_ids\s*=\s*[\[(]")
_CLOSING = re.compile(r"[\])]")
_DICTIONARY = re.compile(r"\{(?=\s*[a-z]\w*\.\w+\s*=)", re.ASCII)
_AXIS = re.compile(r"\"([^\"\s]{1,100})\"|'([^'\s]{1,100})'|([A-Za-z_][\w.-]{0,99})", re.ASCII)
_SYMBOL = re.compile(r"@[\w.$-]{1,100}", re.ASCII)
_PRIORITY = re.compile(r"p(\d{1,9})(?!\w)", re.ASCII)
_KEYWORD = re.compile(r"([A-Za-z_]\w*)\s*=\s*", re.ASCII)
_STRING = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_NUMBER = re.compile(r"-?\d{1,18}(?![\w.])", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_CONSTANTS = {"None": None, "UNCONSTRAINED": ...}
_PLACEMENT = re.compile(
    r"(?:Shard|S|(_StridedShard|_S))\(\s*(?:dim\s*=\s*)?(-?\d{1,3})\s*"
    r"(?(1),\s*(?:(?:sf|split_factor)\s*=\s*)?(\d{1,9})\s*)\)(?:\[(\d{1,3})\])?"
    r"|Replicate\(\s*\)|R(?=\s*(?:[\])},RSP_]|on\b|\Z))"
    r"|(Partial\([\w=' ]{0,40}\)|P\((?:sum|avg|product|min|max|band|bor|bxor|premul_sum)\))",
    re.ASCII,
)
_TENSOR = re.compile(r"(unknown dtype|[a-z]\w{0,20})(unknown shape(?=\()|(?=\[[\d, ]*\]\())", re.ASCII)
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_MODULES = re.compile(r"^(?:(?:jax|sharding|P|PartitionSpec|torch|distributed|tensor|device_mesh|np|numpy)\.)+(?=\w)")
_ON = re.compile(r"on(?!\w)")
_DEVICE_NUMBER = re.compile(r"(?:id=|_)(\d{1,9})(?!\w)")
_MESH_DIMS = re.compile(r"mesh_dims=\(([\d, ]*\d)", re.ASCII)  # ShardOrderEntry(tensor_dim=0, mesh_dims=(1, 0))
_KEYWORDS: dict[str, tuple[str, ...]] = {  # of calls that are read; other keywords are besides
    **dict.fromkeys(("Mesh", "AbstractMesh", "make_mesh"), ("device_ids", "axis_sizes", "axis_shapes", "axis_names")),
    **dict.fromkeys(("DeviceMesh", "init_device_mesh"), ("mesh", "mesh_shape", "mesh_dim_names", "stride")),
    **dict.fromkeys(("P", "PartitionSpec", "GSPMDSharding", "array", "tensor", "Size"), ()),
    "NamedSharding": ("mesh", "spec"),
    "DTensorSpec": ("mesh", "placements", "tensor_meta", "shard_order"),
    "DTensor": ("device_mesh", "placements"),
    "TensorMeta": ("shape",),
    "Spec": ("shape",),
}
_EXAMPLES = '{devices=[2,4]<=[8]}, #sdy.sharding<@mesh, [{"x"}]>, NamedSharding(...), [Shard(0), Replicate()]'
_MAX_SAID = 100  # characters of a value that is not used
_A_SYMBOL = "the symbol of a mesh, such as @mesh"


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
    """Reads the items of a text at a cursor, and collects what no item uses in `besides`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cursor = TextCursor(re.sub(r'(?<!\\)\\+(?:22|")', '"', text), "a sharding")  # quotes in a string of MLIR
        self.symbols: dict[str, _MeshText] = {}
        self.besides: list[str] = []

    def read(self) -> DeviceSharding:
        """Return the sharding in the text."""
        cursor, found = self.cursor, list[_MeshText | _Draft]()
        while not cursor.at_end():
            cursor.match(_PREFIX)
            if cursor.accept("sdy.mesh"):
                self._read_symbol()
            elif cursor.accept("#sdy.sharding_per_value<["):
                found += cursor.items("]", self._read_shardy, MAX_DEVICES)
                cursor.expect(">")
            else:
                found.append(self._read_item())
            cursor.match(_SEPARATOR)
        return self._finish(*self._find_one(found, f"such as {_EXAMPLES}"))

    def _finish(self, draft: _Draft, own: _MeshText | None) -> DeviceSharding:
        """Return a sharding on its mesh."""
        if own is None and not draft.state:
            _refuse(
                "this sharding does not state the sizes of its mesh; put them before it, as in Mesh('x': 2, 'y': 4)"
                " P('x'), sdy.mesh @mesh = <[\"x\"=2]> #sdy.sharding<...> or DeviceMesh((2, 4), 'cpu') [Shard(0), R]"
            )
        axes, numbers = own or _MeshText()
        if draft.placements is None:
            sizes = dict(axes)
            cuts = [cut if cut.size else cut._replace(size=sizes.get(cut.axis, 1)) for cut in draft.cuts]
        else:
            cuts = self._place(draft.placements, axes)
        state = [draft.state or "replicated"] if numbers == () else []
        unused = [f"mesh {symbol}" for symbol in self.symbols]
        return DeviceSharding(
            *(axes, tuple(cuts), numbers, draft.rank, draft.is_prefix, draft.placements is not None, draft.shape),
            *((*state, *self.besides, *unused), self.text),
        )

    def _find_one(self, found: Sequence[object], where: str) -> tuple[_Draft, _MeshText | None]:
        """Return the only sharding among what was found, and its own mesh, or the only one that was found."""
        meshes = [item for item in found if isinstance(item, _MeshText)]
        drafts = [item for item in found if isinstance(item, _Draft)]
        if len(drafts) != 1 or len(meshes) > 1:
            counts = f"{count_of(len(drafts), 'sharding')} and {len(meshes)} {'mesh' if len(meshes) == 1 else 'meshes'}"
            _refuse(f"expected one sharding, and its mesh, {where}, got {counts}")
        own = self.symbols.pop(drafts[0].mesh, None) if isinstance(drafts[0].mesh, str) else drafts[0].mesh
        if meshes and own is not None:
            _refuse("this sharding has a mesh of its own, but the text has another one; leave that out")
        return drafts[0], meshes[0] if meshes else own

    def _read_item(self) -> _MeshText | _Draft:
        """Return the next mesh or sharding."""
        cursor, start = self.cursor, self.cursor.skip_space()
        if cursor.accept("#sdy.sharding"):
            return self._read_shardy()
        if cursor.accept("@ mesh:"):  # as DTensor prints operations
            return self._build_mesh([_Item(None, self._read_value(0), "")])
        item = self._read_value(0)
        if not isinstance(item, (_MeshText, _Draft)):
            cursor.at = start
            cursor.fail(f"a sharding, such as {_EXAMPLES}, or a mesh")
        return item

    # XLA: {devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}

    def _read_hlo(self, is_element: bool = False) -> _Draft:
        cursor, draft = self.cursor, _Draft()
        cursor.expect("{")
        if cursor.peek("{") and not is_element:
            drafts = cursor.items("}", lambda: self._read_hlo(True), MAX_DEVICES)
            return (
                drafts[0] if len(drafts) == 1 else _refuse(f"expected one value, got {len(drafts)}; paste one of them")
            )
        if cursor.accept("mesh"):
            draft.mesh = self._read_axes(",")
            if not cursor.accept("replicated"):
                return self._read_dimensions(draft.mesh, "}")
        elif match := cursor.match(_STATE):
            draft.state = match[1]
            draft.mesh = None if draft.state == "replicated" else _MeshText()
        elif cursor.accept("maximal"):
            cursor.expect("device", "=")
            draft.mesh = _MeshText((), (cursor.integer("the number of a device"),))
        else:
            cursor.expect("devices", "=")
            self._read_tiles(draft)
        while match := cursor.match(_ATTRIBUTE):
            self.besides.append(match[1] or f"metadata={cursor.raw()}")
        cursor.expect("}")
        return draft

    def _read_tiles(self, draft: _Draft) -> None:
        """Read how many parts each dimension has, and which devices hold them."""
        cursor, subgroups, pieces = self.cursor, list[str](), None
        tiles = cursor.integers("[", "]")
        count = _count_devices(tiles)
        if cursor.accept("<="):
            extents, order = self._read_iota(count)
            pieces = _refine(tiles, extents, order)
            numbers = _order_devices(extents, order) if pieces is None else tuple(range(count))
        else:
            numbers = self._read_devices()
        if cursor.accept("last_tile_dim_replicate"):
            subgroups = ["replicated"]
        elif cursor.accept("last_tile_dims"):
            cursor.expect("=", "{")
            subgroups = cursor.items("}", lambda: cursor.take(_SUBGROUP, "replicated, manual or unreduced"))
        draft.rank, draft.is_prefix = len(tiles) - len(subgroups), False
        if draft.rank < 0:
            _refuse(f"{len(subgroups)} last_tile_dims are more than the {len(tiles)} of devices=[...]")
        pieces = [(k, k, size) for k, size in enumerate(tiles) if size > 1] if pieces is None else pieces
        names = {piece: f"axis_{at}" for at, piece in enumerate(sorted(pieces, key=lambda piece: piece[0]))}
        draft.mesh = _MeshText(tuple([(name, size) for (_, _, size), name in names.items()]), numbers)
        for piece in pieces:
            _, k, size = piece
            if k < draft.rank:
                draft.cuts.append(Cut(k, names[piece], size))
            elif subgroups[k - draft.rank] != "replicated":
                self.besides.append(f"{subgroups[k - draft.rank]} along {names[piece]}")

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

    def _read_devices(self) -> tuple[int, ...]:
        return tuple(map(int, self.cursor.take(_DEVICES, "the numbers of devices").split(",")))

    # Shardy: #sdy.sharding<@mesh, [{"x"}, {"y":(1)2, ?}p1], replicated={"z"}>, and XLA's {mesh['x'=2], [{'x'}]}

    def _read_symbol(self) -> None:
        """Read the definition of a mesh: @mesh = <["x"=2, "y"=4]>."""
        cursor = self.cursor
        symbol = cursor.take(_SYMBOL, _A_SYMBOL)
        cursor.expect("=", "<")
        self.symbols[symbol] = self._read_axes(">")
        if cursor.match(_DICTIONARY):  # JAX repeats the axes in {stablehlo.mesh = ...}
            self.besides += cursor.items("}", cursor.raw)

    def _read_axes(self, closing: str) -> _MeshText:
        """Return a mesh: ["x"=2, "y"=4], device_ids=[...]."""
        cursor = self.cursor
        cursor.expect("[")
        axes = tuple([(cut.axis, cut.size) for cut in cursor.items("]", lambda: self._read_axis("="))])
        count = _count_devices([size for _, size in axes])
        numbers = tuple(range(count)) if axes else ()
        if cursor.match(_DEVICE_IDS):
            numbers = _order_devices(*self._read_iota(count)) if cursor.peek("[") else self._read_devices()
            cursor.take(_CLOSING, "']' or ')'")
        cursor.expect(closing)
        return _MeshText(axes, numbers)

    def _read_shardy(self) -> _Draft:
        cursor = self.cursor
        cursor.expect("<")
        mesh = self._read_axes(">") if cursor.accept("mesh<") else cursor.take(_SYMBOL, _A_SYMBOL)
        cursor.expect(",")
        return self._read_dimensions(mesh, ">")

    def _read_dimensions(self, mesh: _MeshText | str, closing: str) -> _Draft:
        """Return the sharding from the axes of each dimension on, up to its end."""
        cursor, draft = self.cursor, _Draft(mesh, is_prefix=False)

        def read_dimension() -> None:
            cursor.expect("{")
            for cut in cursor.items("}", lambda: None if cursor.accept("?") else self._read_axis(":")):
                if cut is None:
                    self.besides.append(f"dimension {draft.rank} is open")
                else:
                    draft.cuts.append(cut._replace(dimension=draft.rank))
            if match := cursor.match(_PRIORITY):
                self.besides.append(f"dimension {draft.rank} has priority {match[1]}")
            draft.rank += 1

        cursor.expect("[")
        cursor.items("]", read_dimension)
        while not cursor.accept(closing):
            cursor.expect(",")
            self.besides.append(cursor.raw())  # replicated={...}, unreduced={...}, metadata={...}
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

    def _read_value(self, depth: int) -> Any:  # whatever the text has
        """Return a value of Python: a mesh, a sharding, a number, a string, a word, None, or a bracket of values."""
        cursor, placements = self.cursor, []
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} levels")
        while match := cursor.match(_PLACEMENT):
            dimension, factor, order = [None if number is None else int(number) for number in match.group(2, 3, 4)]
            placements.append(_Placement(dimension, factor or 1, order, match[5] or ""))
        if placements:
            return _Draft(placements=placements)
        if cursor.peek("{") and _HLO.match(cursor.text, cursor.at):
            return self._read_hlo()
        for opening, closing in _BRACKETS.items():
            if cursor.accept(opening):
                return _join(opening, self._read_items(opening, closing, depth))
        if match := cursor.match(_STRING):
            return match[1] or match[2] or ""
        if match := cursor.match(_NUMBER):
            return int(match[0])
        if match := cursor.match(_TENSOR):  # f32[8, 4](S(0)R), in Spec(...)
            self.besides.append(match[1])
            shape = None if match[2] else cursor.integers("[", "]")
            cursor.expect("(")
            return self._build("Spec", [_Item("shape", shape, ""), *self._read_items("Spec", ")", depth)])
        start, name = cursor.skip_space(), _MODULES.sub("", cursor.take(_WORD, "a value"))
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name == "SingleDeviceSharding" and cursor.accept("("):
            return self._read_device()
        if name not in _KEYWORDS or not cursor.accept("("):
            cursor.at = start
            cursor.fail("a mesh, a sharding or a part of one")
        if name.endswith("Mesh"):
            cursor.accept(",")  # JAX prints a mesh without axes as Mesh(, axis_types=())
        return self._build(name, self._read_items(name, ")", depth))

    def _read_device(self) -> _Draft:
        """Return the sharding of a SingleDeviceSharding, from its device on."""
        texts = self.cursor.items(")", self.cursor.raw)
        number = _DEVICE_NUMBER.search(texts[0]) if texts else None
        if number is None:
            _refuse(f"expected the number of a device, as in CpuDevice(id=0), got {', '.join(texts):.40}")
        self.besides += texts
        return _Draft(_MeshText((), (int(number[1]),)))

    def _read_items(self, name: str, closing: str, depth: int) -> list[_Item]:
        """Return the items of a call or a bracket up to the closing one; keywords that are not read are besides."""
        cursor, keywords = self.cursor, _KEYWORDS.get(name)

        def read_item() -> _Item | None:
            start, match = cursor.skip_space(), cursor.match(_KEYWORD)
            keyword = match[1] if match else None
            if keyword and keywords is not None and keyword not in keywords:
                text = cursor.raw()
                self.besides.append(f"{keyword}={text if len(text) <= _MAX_SAID else '...'}")
                return None
            value = cursor.raw() if keyword == "shard_order" else self._read_value(depth + 1)
            if isinstance(value, str) and cursor.accept(":"):
                value = _Pair(value, self._read_value(depth + 1))
            elif isinstance(value, _Draft) and cursor.match(_ON):  # Spec(S(0)R on (8, 4))
                value.shape = _flatten(self._read_value(depth + 1))[1]
            return _Item(keyword, value, cursor.text[start : cursor.at])

        return [item for item in cursor.items(closing, read_item, MAX_DEVICES, is_python=True) if item]

    def _build(self, name: str, items: list[_Item]) -> Any:  # whatever the text has
        """Return what a call means."""
        if name.endswith(("Mesh", "mesh")):
            return self._build_mesh(items)
        if name in ("P", "PartitionSpec"):
            return self._build_spec(items)
        if name.endswith(("Sharding", "Spec", "DTensor")):
            return self._build_sharding(name, items)
        return items[0].value if len(items) == 1 else _refuse(f"expected one value in {name}(...), got {len(items)}")

    def _build_mesh(self, items: list[_Item]) -> _MeshText:
        axes, names = list[tuple[str, int]](), tuple[str, ...]()
        sizes, numbers, strides = tuple[int, ...](), None, None
        for keyword, value, text in items:
            values = value if type(value) is tuple else (value,)
            if keyword == "stride":
                strides = _flatten(value)[1]
            elif values and all(isinstance(pair, _Pair) and isinstance(pair.value, int) for pair in values):
                axes += [(str(name), size) for name, size in values]  # 'x': 2, and (dp=2, tp=4)
            elif isinstance(value, list):
                sizes, numbers = _flatten(value)
            elif values is value and all(isinstance(name, str) for name in value):
                names = value
            elif values is value and all(isinstance(size, int) for size in value):
                sizes = value
            elif value is not None:
                self.besides.append(text)
        axes += zip(names or [f"axis_{k}" for k in range(len(sizes))], sizes, strict=False)
        if len(names or sizes) != len(sizes) or len(strides or axes) != len(axes):
            _refuse(f"a mesh has a name and a stride for each axis, got {list(sizes)}, {names} and strides {strides}")
        if strides is not None and numbers is None and _count_devices([size for _, size in axes]):
            numbers = _count_along([size for _, size in axes], strides)
        return _MeshText(tuple(axes), numbers)

    def _build_spec(self, items: list[_Item]) -> _Draft:
        draft = _Draft()
        for _, value, text in items:
            names = value if type(value) is tuple else (value,)
            if value is ...:  # UNCONSTRAINED
                self.besides.append(f"dimension {draft.rank} is unconstrained")
            elif all(isinstance(name, str) for name in names):
                draft.cuts += [Cut(draft.rank, name, 0) for name in names]
            elif value is not None:
                _refuse(f"expected None or the names of axes in a PartitionSpec, got {text:.40}")
            draft.rank += 1
        return draft

    def _build_sharding(self, name: str, items: list[_Item]) -> _Draft:
        shape, order = None, dict[int, int]()
        for keyword, value, text in items:
            if isinstance(value, (_MeshText, _Draft)):
                continue
            if keyword in ("tensor_meta", "shape"):
                shape = None if value is None else _flatten(value)[1]
            elif keyword == "shard_order":
                for axes in _MESH_DIMS.findall(value):
                    order |= {int(axis): place for place, axis in enumerate(axes.split(","))}
            elif value is not None:
                self.besides.append(text)
        draft, mesh = self._find_one([item.value for item in items], f"in {name}(...)")
        draft.mesh = mesh
        draft.shape = draft.shape if shape is None else shape
        if draft.placements is not None and order:
            draft.placements = [own._replace(order=order.get(k, own.order)) for k, own in enumerate(draft.placements)]
        return draft

    def _place(self, placements: list[_Placement], axes: tuple[tuple[str, int], ...]) -> list[Cut]:
        """Return the cuts of the placements of DTensor, in the order in which their axes cut."""
        if len(placements) != len(axes):
            _refuse(f"DTensor has one placement for each axis of the mesh; got {len(placements)} for {len(axes)} axes")
        dimensions = [placement.dimension for placement in placements if placement.dimension is not None]
        if min(dimensions, default=0) < 0 <= max(dimensions, default=-1):
            _refuse(f"expected dimensions that all count from the front, or all from the end, got {dimensions}")
        self.besides += [
            f"{own.partial} along {axis}" for (axis, _), own in zip(axes, placements, strict=True) if own.partial
        ]
        cuts = []
        for dimension in dict.fromkeys(dimensions):
            order: list[int] = []
            for k in reversed([k for k, placement in enumerate(placements) if placement.dimension == dimension]):
                before = [prod([axes[other][1] for other in order[:at]]) for at in range(len(order) + 1)]
                if placements[k].factor not in before:
                    _refuse(
                        f"_StridedShard with sf={placements[k].factor} gives devices elements of dimension {dimension}"
                        " that are no box: later axes do not cut it into as many parts"
                    )
                order.insert(before.index(placements[k].factor), k)
            if all(placements[k].order is not None for k in order):
                order.sort(key=lambda k: placements[k].order or 0)
            cuts += [Cut(dimension, *axes[k]) for k in order]
        return cuts


def _refuse(problem: str) -> NoReturn:
    raise FileFormatError(f"a sharding: {problem}")


def _join(name: str, items: list[_Item]) -> Any:  # whatever the text has
    """Return the items of a bracket as a list or a tuple; placements as those of one sharding."""
    values = [value if keyword is None else _Pair(keyword, value) for keyword, value, _ in items]
    placements = [value.placements for value in values if isinstance(value, _Draft) and value.placements]
    if values and len(placements) == len(values):
        return _Draft(placements=[placement for own in placements for placement in own])
    return values if name == "[" else tuple(values)


def _flatten(value: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of nested lists of integers, and their numbers."""
    if isinstance(value, int):
        return (), (value,)
    if not isinstance(value, (list, tuple)) or isinstance(value, _Pair):
        _refuse("expected integers in brackets in a mesh or a shape")
    parts = [_flatten(part) for part in value]
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
    return _count_along([extents[k] for k in order], [prod(extents[k + 1 :]) for k in order])


def _count_along(extents: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Return the number of every coordinate, row by row.

    >>> _count_along((2, 3), (1, 2))
    (0, 2, 4, 1, 3, 5)
    """
    numbers = [0]
    for extent, stride in zip(extents, strides, strict=True):
        numbers = [number + k * stride for number in numbers for k in range(extent)]
    return tuple(numbers)
