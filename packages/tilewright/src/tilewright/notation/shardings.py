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
from itertools import product
from math import prod
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._integers import ceil_div
from .._text import TextCursor
from ..display import Drawable
from ..errors import CoordinateError, FileFormatError, LayoutError
from ..layout import MAX_DEPTH, Box, Layout, device, with_logical_shape
from ..memory import TileExplanation

MAX_DEVICES = 1 << 20

_Axes: TypeAlias = "tuple[tuple[str, int], ...]"


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
    one. With `is_nested`, an extent is cut for one axis after the other, as DTensor does. `shape` is the tensor's,
    if known, and `besides` are the other facts in the text.

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
        if len(dict(self.axes)) < len(self.axes):
            raise LayoutError(f"the axes of a mesh have different names, got {self.axes}")
        count = _count_devices(self.mesh_shape)
        if self.numbers is not None and len(self.numbers) not in (count, 0):
            raise LayoutError(f"a mesh of {self.mesh_shape} has {count} devices, got {len(self.numbers)}")
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
            raise LayoutError("no devices are named; put a mesh before {replicated}, as in Mesh('x': 8) {replicated}")
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
        for at, part in zip(self._coordinates(), self.windows(shape).values(), strict=True):
            box = Box.between(tuple([s.start for s in part]), tuple([s.stop for s in part]))
            result.setdefault(box, []).append(at)
        return result

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
            raise LayoutError(f"no strides have devices in the order {numbers[:99].tolist()}; use .windows(shape)")
        part = [ceil_div(extent, _count_parts(parts.get(k, ()))) for k, extent in enumerate(extents)]
        modes: list[Any] = list(part)  # integers, or tuples of them
        strides: list[Any] = [prod(part[k + 1 :]) for k in range(len(part))]  # also those along the axis of devices
        for k, own in parts.items():
            if k is not None:
                modes[k] = (part[k], *[piece.size for piece in reversed(own)])
                if self.is_nested and len(own) > 1 and extents[k] % _count_parts(own):
                    raise LayoutError(f"no strides cut {extents[k]} into {modes[k][1:]} parts; use .windows(shape)")
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
        holders = [
            (number, where, tuple([c - s.start for c, s in zip(at, part, strict=True)]))
            for where, (number, part) in zip(self._coordinates(), self.windows().items(), strict=True)
            if all(s.start <= c < s.stop for c, s in zip(at, part, strict=True))
        ]
        return TileExplanation(extents, self.mesh_shape or (1,), at, tuple(holders), "device")

    def __str__(self) -> str:
        return self.text or repr(self)

    def _extents(self, shape: Sequence[int] | None) -> tuple[int, ...]:
        """Return the shape of the tensor, given or known, if the sharding can be its."""
        if shape is None and self.shape is None:
            raise LayoutError("this sharding does not state the shape of its tensor; give it one, as in shape=(8, 8)")
        extents = tuple([int(n) for n in ((self.shape or ()) if shape is None else shape)])
        rank = max([self.rank, *[k + 1 if k >= 0 else -k for k, *_ in self.cuts]])
        if len(extents) < rank or (len(extents) > rank and not self.is_prefix):
            raise LayoutError(f"this sharding has rank {rank}{' or more' * self.is_prefix}, got shape {list(extents)}")
        if min(extents, default=0) < 0:
            raise LayoutError(f"an extent is at least 0, got shape {list(extents)}")
        return extents

    def _pieces(self) -> list[_Piece]:
        """Return the axes of the mesh, in pieces: some cut the tensor, and those between hold copies."""
        pieces = []
        for cut in self.cuts:
            if cut.axis not in dict(self.axes):
                raise LayoutError(f"the mesh has no axis {cut.axis!r}, only {', '.join(dict(self.axes)) or 'none'}")
        rest = prod(self.mesh_shape)
        for name, size in self.axes:
            rest, before = rest // size, 1
            own = sorted([(cut.before, order, cut) for order, cut in enumerate(self.cuts) if cut.axis == name])
            for _, order, cut in own:
                after = cut.before * cut.size
                if cut.before < before or (cut.size < 2 and len(own) > 1):
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

    def _coordinates(self) -> Iterator[tuple[int, ...]]:
        """Return the coordinates on the mesh of all devices, in its order."""
        return product(*[range(size) for size in self.mesh_shape or (1,)])

    def _parts(self, shape: Sequence[int] | None) -> Iterator[tuple[list[slice], NDArray[np.int64]]]:
        """Yield for each dimension its parts, and the number of the part that each device has."""
        extents = self._extents(shape)
        pieces = self._by_dimension(len(extents))
        for k, extent in enumerate(extents):
            own, spans = pieces.get(k, []), [(0, extent)]
            for size in [piece.size for piece in own] if self.is_nested else [_count_parts(own)]:
                spans = [span for start, stop in spans for span in _split(start, stop, size)]
            yield [slice(*span) for span in spans], self._index(own)


def _split(start: int, stop: int, count: int) -> list[tuple[int, int]]:
    """Return a range as `count` equal ones, the last ones shorter or empty."""
    part = ceil_div(stop - start, count)
    return [(min(start + k * part, stop), min(start + (k + 1) * part, stop)) for k in range(count)]


def _count_parts(pieces: Iterable[_Piece]) -> int:
    return prod([piece.size for piece in pieces])


def _count_devices(sizes: Iterable[int]) -> int:
    """Return the number of devices of a mesh, before anything is made for each of them."""
    count = 1
    for size in sizes:
        count *= size
        if size < 1 or count > MAX_DEVICES:
            raise LayoutError(f"a mesh has axes of at least 1 device, and at most {MAX_DEVICES} devices, got {size}")
    return count


# The texts: one sharding, and its mesh, in it, before it or behind it.


@dataclass
class _Draft:
    """A sharding as its text has it, whose mesh may be elsewhere."""

    cuts: list[Cut] = field(default_factory=list)  # of size 0 for a whole axis
    rank: int = 0
    is_prefix: bool = True
    placements: list[re.Match[str]] | None = None  # of DTensor, for each axis
    state: str = ""  # if it has no devices: replicated, manual, unknown or unreduced


_PREFIX = re.compile(r"(?:(?:[A-Za-z_][\w.]{0,60})?shardings?\s*[=:]\s*)?\"?", re.ASCII)
_SEPARATOR = re.compile(r"\"?\s*[,;]?")
_NAME = re.compile(r"\"([^\"\n]{1,100})\"|'([^'\n]{1,100})'|([A-Za-z_][\w.-]{0,99})", re.ASCII)
_STATE = re.compile(r"(?:replicated|manual|unknown|unreduced)(?!\w)")
_ATTRIBUTE = re.compile(r"(?=shard_as\s|shard_like\s|metadata\s*=)")
_DEVICES = re.compile(r"\d{1,10}(?!\d)(?:\s*,\s*\d{1,10}(?!\d))*", re.ASCII)
_DEVICE_IDS = re.compile(r",\s*device_ids\s*=\s*([\[(])")
_SYMBOL = re.compile(r"@[\w.$-]{1,100}", re.ASCII)
_DICTIONARY = re.compile(r"\{(?=\s*[a-z]\w*\.\w+\s*=)", re.ASCII)
_PART_OF_AXIS = re.compile(r":\s*\(\s*(\d{1,9})\s*\)\s*([1-9]\d{0,8})", re.ASCII)
_PRIORITY = re.compile(r"p(\d{1,9})(?!\w)", re.ASCII)
_MODULES = r"(?:(?:jax|sharding|torch|distributed|tensor|device_mesh)\.){0,4}"
_MESH = re.compile(rf"{_MODULES}(?:(?:Abstract|Device)?Mesh|make_mesh|init_device_mesh)\(|@ mesh:\s*\(")
_MESH_KEYWORDS = ("device_ids", "axis_sizes", "axis_shapes", "axis_names", "mesh", "mesh_shape", "mesh_dim_names")
_TYPE = re.compile(r"(?:'[^'\n]*'|\"[^\"\n]*\"|[A-Za-z_][\w.]*)(?=\s*[,)])")  # DeviceMesh((2, 4), 'cuda')
_ARRAY = re.compile(r"(?=\[)|(?:(?:np|numpy|torch)\.)?(?:array|tensor)\(")
_SPEC = re.compile(rf"{_MODULES}(?:P|PartitionSpec)\((?![a-z]\w*\))")
_UNCONSTRAINED = re.compile(r"(?:(?:P|PartitionSpec)\.)?UNCONSTRAINED(?!\w)")
_WRAPPER = re.compile(rf"{_MODULES}(?:NamedSharding|GSPMDSharding|DTensor(?:Spec)?|Spec)\(")
_KEYWORD = re.compile(r"([A-Za-z_]\w*)\s*=\s*", re.ASCII)
_PLACEMENT = re.compile(
    r"(?:Shard|S|(_StridedShard|_S))\(\s*(?:dim\s*=\s*)?(?P<dimension>-?\d{1,3})\s*"
    r"(?(1),\s*(?:(?:sf|split_factor)\s*=\s*)?(?P<factor>\d{1,9})\s*)\)(?:\[(?P<order>\d{1,3})\])?"
    r"|Replicate\(\s*\)|R(?=\s*(?:[\])},RSP_]|on\b|\Z))"
    r"|(?P<partial>Partial\([\w=' ]{0,40}\)|P\((?:sum|avg|product|min|max|band|bor|bxor|premul_sum)\))",
    re.ASCII,
)
_EXTENTS = r"((?:\d{1,18}(?:, ?\d{1,18}){0,63},?)?)"
_TENSOR = re.compile(rf"(unknown dtype|[a-z]\w{{0,20}})(?:unknown shape|\[{_EXTENTS}\])(?=\()", re.ASCII)
_ON = re.compile(rf"on\s*\({_EXTENTS}\)", re.ASCII)
_SIZE = re.compile(rf"shape=torch\.Size\(\[{_EXTENTS}\]\)", re.ASCII)
_MESH_DIMS = re.compile(rf"mesh_dims=\({_EXTENTS}\)", re.ASCII)  # ShardOrderEntry(tensor_dim=0, mesh_dims=(1, 0))
_EXAMPLES = "such as {devices=[2,4]<=[8]}, Mesh('x': 2) P('x') or DeviceMesh((2, 4), 'cpu') [Shard(0), R]"
_MAX_SAID = 100  # characters of a value that is not used


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
    """Reads a text at a cursor, and collects its meshes, its shardings and all other parts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cursor = TextCursor(re.sub(r'(?<!\\)\\+(?:22|")', '"', text), "a sharding")  # quotes in a string of MLIR
        self.meshes: list[tuple[_Axes, tuple[int, ...] | None]] = []  # with the numbers of their devices
        self.drafts: list[_Draft] = []
        self.symbols: set[str] = set()
        self.shape: tuple[int, ...] | None = None
        self.order: dict[int, int] = {}  # of axes, among those that cut a dimension
        self.besides: list[str] = []

    def read(self) -> DeviceSharding:
        """Return the sharding in the text."""
        while not self.cursor.at_end():
            self.cursor.match(_PREFIX)
            self._read_part(0)
            self.cursor.match(_SEPARATOR)
        if len(self.drafts) != 1 or len(self.meshes) > 1:
            _refuse(f"expected one sharding and its mesh, {_EXAMPLES}, got {len(self.drafts)} and {len(self.meshes)}")
        if len(self.symbols) > 1:
            _refuse(f"expected the mesh of the sharding, got {' and '.join(sorted(self.symbols))}")
        (draft,) = self.drafts
        if not self.meshes and not draft.state:
            _refuse("this sharding does not state its mesh; put it before, as in Mesh('x': 2, 'y': 4) P('x')")
        axes, numbers = self.meshes[0] if self.meshes else ((), ())
        sizes, is_nested = dict(axes), draft.placements is not None
        cuts = [cut if cut.size else cut._replace(size=sizes.get(cut.axis, 1)) for cut in draft.cuts]
        cuts += self._place(draft.placements or [], axes) if is_nested else []
        state = [draft.state or "replicated"] if numbers == () else []
        return DeviceSharding(
            *(axes, tuple(cuts), numbers, draft.rank, draft.is_prefix, is_nested, self.shape),
            *((*state, *self.besides), self.text),
        )

    def _read_part(self, depth: int) -> None:
        """Read a mesh or a sharding."""
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} levels")
        if cursor.accept("sdy.mesh"):
            self._read_symbol()
        elif cursor.accept("#sdy.sharding_per_value<["):
            cursor.items("]", self._read_shardy)
            cursor.expect(">")
        elif cursor.accept("#sdy.sharding"):
            self._read_shardy()
        elif cursor.accept("{"):
            self._read_hlo(depth)
        elif cursor.match(_MESH):
            self._read_mesh()
        elif cursor.match(_SPEC):
            self._read_spec()
        elif cursor.match(_WRAPPER):
            cursor.items(")", lambda: self._read_argument(depth + 1), is_python=True)
        else:
            self._read_placements()

    def _read_argument(self, depth: int) -> None:
        """Read an argument of a call that has a mesh and a sharding; others are besides."""
        keyword = self.cursor.match(_KEYWORD)
        if keyword is None or keyword[1] in ("mesh", "spec", "device_mesh", "placements"):
            self._read_part(depth)
            return
        text = self._skip(keyword[0])
        if size := _SIZE.search(text):
            self.shape = _find_numbers(size[1])
        for entry in _MESH_DIMS.findall(text):
            self.order |= {axis: place for place, axis in enumerate(_find_numbers(entry))}

    def _skip(self, keyword: str = "") -> str:
        """Return the text of an item that is besides."""
        text = self.cursor.raw() or self.cursor.fail("a value")
        self.besides.append(keyword + (text if len(text) <= _MAX_SAID or not keyword else "..."))
        return text

    # XLA: {devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}, {mesh['x'=2], [{'x'}]}, {{replicated}}

    def _read_hlo(self, depth: int) -> None:
        """Read a sharding of XLA from its brace on."""
        cursor, draft = self.cursor, _Draft()
        if cursor.peek("{"):
            cursor.items("}", lambda: self._read_part(depth + 1))
            return
        if cursor.accept("mesh"):
            self._read_axes(",")
            if not cursor.accept("replicated"):
                self._read_dimensions("}")
                return
        elif match := cursor.match(_STATE):
            draft.state = match[0]
            self.meshes += [((), ())] * (draft.state != "replicated")
        elif cursor.accept("maximal"):
            cursor.expect("device", "=")
            self.meshes.append(((), (cursor.integer("the number of a device"),)))
        else:
            cursor.expect("devices", "=")
            self._read_tiles(draft)
        if cursor.match(_ATTRIBUTE):
            self._skip()
        cursor.expect("}")
        self.drafts.append(draft)

    def _read_tiles(self, draft: _Draft) -> None:
        """Read how many parts each dimension has, and which devices hold them."""
        cursor, pieces = self.cursor, list[tuple[int, int, int]]()
        tiles = cursor.integers("[", "]")
        count = _count_devices(tiles)
        if cursor.accept("<="):
            extents, order = self._read_iota(count)
            pieces = _refine(tiles, extents, order)
            numbers = tuple(range(count)) if pieces else _order_devices(extents, order)
        else:
            numbers = self._read_devices()
        subgroups = ["replicated"] * cursor.accept("last_tile_dim_replicate")
        if cursor.accept("last_tile_dims"):
            cursor.expect("=", "{")
            subgroups = cursor.items("}", lambda: cursor.take(_STATE, "replicated, manual or unreduced"))
        draft.rank, draft.is_prefix = len(tiles) - len(subgroups), False
        if draft.rank < 0:
            _refuse(f"{len(subgroups)} last_tile_dims are more than the {len(tiles)} of devices=[...]")
        pieces = pieces or [(k, k, size) for k, size in enumerate(tiles) if size > 1]
        names = {piece: f"axis_{at}" for at, piece in enumerate(sorted(pieces, key=lambda piece: piece[0]))}
        self.meshes.append((tuple([(name, size) for (_, _, size), name in names.items()]), numbers))
        for owner, k, size in pieces:
            if k < draft.rank:
                draft.cuts.append(Cut(k, names[owner, k, size], size))
            elif subgroups[k - draft.rank] != "replicated":
                self.besides.append(f"{subgroups[k - draft.rank]} along {names[owner, k, size]}")

    def _read_iota(self, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the dimensions that the device numbers are counted along, and their order."""
        cursor = self.cursor
        extents = cursor.integers("[", "]")
        order = cursor.integers("(", ")") if cursor.accept("T") else tuple(range(len(extents)))
        if _count_devices(extents) != count or sorted(order) != list(range(len(extents))):
            _refuse(f"expected {count} devices in <=[...], and its positions in T(...), got {extents} and {order}")
        return extents, order

    def _read_devices(self) -> tuple[int, ...]:
        return tuple(map(int, self.cursor.take(_DEVICES, "the numbers of devices").split(",")))

    # Shardy: #sdy.sharding<@mesh, [{"x"}, {"y":(1)2, ?}p1], replicated={"z"}>

    def _read_symbol(self) -> None:
        """Read the definition of a mesh: @mesh = <["x"=2, "y"=4]>."""
        cursor = self.cursor
        self.symbols.add(cursor.take(_SYMBOL, "a symbol, such as @mesh"))
        cursor.expect("=", "<")
        self._read_axes(">")
        if cursor.match(_DICTIONARY):  # JAX repeats the axes in {stablehlo.mesh = ...}
            cursor.items("}", self._skip)

    def _read_shardy(self) -> None:
        cursor = self.cursor
        cursor.expect("<")
        if cursor.accept("mesh<"):
            self._read_axes(">")
        else:
            self.symbols.add(cursor.take(_SYMBOL, "a symbol, such as @mesh"))
        cursor.expect(",")
        self._read_dimensions(">")

    def _read_axes(self, closing: str) -> None:
        """Read a mesh: ["x"=2, "y"=4], device_ids=[...]."""
        cursor, names, sizes = self.cursor, list[str](), list[int]()
        cursor.expect("[")
        cursor.items("]", lambda: self._read_axis(names, sizes))
        count = _count_devices(sizes)
        numbers = tuple(range(count)) if sizes else ()
        if ids := cursor.match(_DEVICE_IDS):
            numbers = _order_devices(*self._read_iota(count)) if cursor.peek("[") else self._read_devices()
            cursor.expect("]" if ids[1] == "[" else ")")
        cursor.expect(closing)
        self._add_mesh(names, sizes, numbers)

    def _read_axis(self, names: list[str], sizes: list[int]) -> None:
        """Read the name of an axis of a mesh, its size, or both, as in "x"=2 and 'x': 2."""
        cursor = self.cursor
        if match := cursor.match(_NAME):
            names.append(match[match.lastindex or 0])
            if not cursor.accept("=") and not cursor.accept(":"):
                return
        sizes.append(cursor.integer("the devices along an axis"))

    def _add_mesh(self, names: list[str], sizes: list[int], numbers: tuple[int, ...] | None) -> None:
        names = names or [f"axis_{k}" for k in range(len(sizes))]
        if len(names) != len(sizes):
            _refuse(f"a mesh has a name for each axis, got sizes {sizes} and names {names}")
        self.meshes.append((tuple(zip(names, sizes, strict=True)), numbers))

    def _read_dimensions(self, closing: str) -> None:
        """Read a sharding from the axes of each dimension on, up to its end."""
        cursor, draft = self.cursor, _Draft(is_prefix=False)

        def read_dimension() -> None:
            cursor.expect("{")
            cursor.items("}", lambda: self._read_cut(draft))
            if match := cursor.match(_PRIORITY):
                self.besides.append(f"dimension {draft.rank} has priority {match[1]}")
            draft.rank += 1

        cursor.expect("[")
        cursor.items("]", read_dimension)
        while not cursor.accept(closing):
            cursor.expect(",")
            self._skip()  # replicated={...}, unreduced={...}, metadata={...}
        self.drafts.append(draft)

    def _read_cut(self, draft: _Draft) -> None:
        """Read an axis that cuts the next dimension, a part of one, as in "x":(2)4, or the ? of an open dimension."""
        if self.cursor.accept("?"):
            self.besides.append(f"dimension {draft.rank} is open")
            return
        name = self.cursor.match(_NAME) or self.cursor.fail("the name of an axis")
        before, size = part.groups() if (part := self.cursor.match(_PART_OF_AXIS)) else (1, 0)
        draft.cuts.append(Cut(draft.rank, name[name.lastindex or 0], int(size), int(before)))

    # JAX and DTensor, as Python prints them

    def _read_mesh(self) -> None:
        """Read the arguments of a mesh: 'x': 2, (2, 4), ('x', 'y'), (x=2, y=4), or [[0, 1], [2, 3]]."""
        cursor, names, sizes, numbers = self.cursor, list[str](), list[int](), list[int]()

        def read_argument() -> None:
            keyword = cursor.match(_KEYWORD)
            if keyword and keyword[1] not in _MESH_KEYWORDS:
                self._skip(keyword[0])
            elif kind := cursor.match(_TYPE):
                self.besides.append(kind[0])
            elif cursor.accept("("):
                cursor.items(")", lambda: self._read_axis(names, sizes), is_python=True)
            elif array := cursor.match(_ARRAY):
                sizes.extend(self._read_rows(numbers, 1))
                cursor.expect(")" if array[0] else "")
            else:
                self._read_axis(names, sizes)

        cursor.accept(",")  # JAX prints a mesh without axes as Mesh(, axis_types=())
        cursor.items(")", read_argument, is_python=True)
        self._add_mesh(names, sizes, tuple(numbers) or None)

    def _read_rows(self, numbers: list[int], depth: int) -> tuple[int, ...]:
        """Return the shape of nested lists of devices, whose numbers are added to `numbers`."""
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail(f"at most {MAX_DEPTH} levels")
        if not cursor.accept("["):
            numbers.append(cursor.integer("the number of a device"))
            return ()
        rows = cursor.items("]", lambda: self._read_rows(numbers, depth + 1), MAX_DEVICES, is_python=True)
        if len(set(rows)) > 1:
            _refuse("expected rows of the same length in a mesh")
        return (len(rows), *(rows[0] if rows else ()))

    def _read_spec(self) -> None:
        """Read the entries of a PartitionSpec."""
        cursor, draft = self.cursor, _Draft()

        def read_entry() -> None:
            if keyword := cursor.match(_KEYWORD):  # unreduced={'x'}
                self._skip(keyword[0])
                return
            if cursor.match(_UNCONSTRAINED):
                self.besides.append(f"dimension {draft.rank} is unconstrained")
            elif cursor.accept("("):
                cursor.items(")", lambda: self._read_cut(draft), is_python=True)
            elif not cursor.accept("None"):
                self._read_cut(draft)
            draft.rank += 1

        cursor.items(")", read_entry, is_python=True)
        self.drafts.append(draft)

    def _read_placements(self) -> None:
        """Read placements of DTensor: [Shard(0), Replicate()], S(0)R, or f32[8, 4](S(0)R)."""
        cursor, matches = self.cursor, list[re.Match[str]]()

        def read_some() -> None:
            matches.append(cursor.match(_PLACEMENT) or cursor.fail(f"a sharding or a mesh, {_EXAMPLES}"))
            while match := cursor.match(_PLACEMENT):
                matches.append(match)

        if tensor := cursor.match(_TENSOR):
            self.besides.append(tensor[1])
            self.shape = None if tensor[2] is None else _find_numbers(tensor[2])
        closing = ")" if cursor.accept("(") else "]" if cursor.accept("[") else ""
        if closing:
            cursor.items(closing, read_some, is_python=True)
        else:
            read_some()
        if shape := cursor.match(_ON):
            self.shape = _find_numbers(shape[1])
        self.drafts.append(_Draft(placements=matches))

    def _place(self, placements: list[re.Match[str]], axes: _Axes) -> list[Cut]:
        """Return the cuts of the placements of DTensor, in the order in which their axes cut."""
        if len(placements) != len(axes):
            _refuse(f"DTensor has one placement for each axis of the mesh; got {len(placements)} for {len(axes)} axes")
        partials = [(match["partial"], name) for match, (name, _) in zip(placements, axes, strict=True)]
        self.besides += [f"{partial} along {name}" for partial, name in partials if partial]
        cuts, ranks = dict[int, list[Cut]](), dict[str, int]()
        for k in reversed(range(len(axes))):
            (axis, size), match = axes[k], placements[k]
            if match["dimension"]:
                if self.order and (match["factor"] or k not in self.order):
                    _refuse(f"expected a place for each Shard in shard_order, and no _StridedShard, got {match[0]}")
                own = cuts.setdefault(int(match["dimension"]), [])
                parts = [prod([cut.size for cut in own[:at]]) for at in range(len(own) + 1)]
                factor = int(match["factor"] or 1)
                if factor not in parts:
                    _refuse(f"{match[0]} cuts what later axes have cut into {factor} parts, but they cut into {parts}")
                own.insert(parts.index(factor), Cut(int(match["dimension"]), axis, size))
                ranks[axis] = self.order.get(k, int(match["order"] or 0))
        if min(cuts, default=0) < 0 <= max(cuts, default=-1):
            _refuse(f"expected dimensions that all count from the front, or all from the end, got {sorted(cuts)}")
        return [cut for own in cuts.values() for cut in sorted(own, key=lambda cut: ranks[cut.axis])]


def _refuse(problem: str) -> NoReturn:
    raise FileFormatError(f"a sharding: {problem}")


def _find_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in a text.

    >>> _find_numbers("8, 4")
    (8, 4)
    """
    return tuple(map(int, re.findall(r"\d+", text)))


def _refine(tiles: Sequence[int], extents: Sequence[int], order: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the factors of `extents`, in an order, that `tiles` consist of, with both their places; none if of none.

    >>> _refine((4, 2), (2, 4), (1, 0)), _refine((8,), (2, 4), (1, 0)), _refine((2, 3), (3, 2), (0, 1))
    ([(1, 0, 4), (0, 1, 2)], [(1, 0, 4), (0, 0, 2)], [])
    """
    waiting = [(owner, extents[owner]) for owner in reversed(order) if extents[owner] > 1]
    result = []
    for k, size in enumerate(tiles):
        while size > 1:
            owner, extent = waiting.pop()
            factor = min(size, extent)
            if max(size, extent) % factor:
                return []
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
    numbers = [0]
    for k in [k for k in order if extents[k] > 1]:
        stride = prod(extents[k + 1 :])
        numbers = [number + at * stride for number in numbers for at in range(extents[k])]
    return tuple(numbers)
