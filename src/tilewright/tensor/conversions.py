# SPDX-License-Identifier: Apache-2.0
"""What an operation on a tensor amounts to, decided from specs alone: a view, a copy of pages, or an untilize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from ..errors import LayoutError, MemoryConfigError
from ..formats import BlockFormat, format_of
from ..layout import ceil_div
from ..layout.integers import as_integer
from ..memory import TensorLayout, TensorSpec, Tile

Kind = Literal["view", "copy", "untilize"]


@dataclass(frozen=True, slots=True)
class Conversion:
    """The spec of an operation's result, and what it takes to make it.

    A "view" shares the bytes. A "copy" moves rows, or whole tiles as they are, or converts elements in their places.
    An "untilize" takes tiles apart, since elements leave their tiles or change their places inside.

    >>> print(reshaped(TensorSpec((64, 64), layout="tile"), (2, 32, 64)))
    reshape is a view: rows keep their width, and matrices end where tiles end
    """

    operation: str
    kind: Kind
    reason: str
    spec: TensorSpec

    def __str__(self) -> str:
        article = "an" if self.kind == "untilize" else "a"
        return f"{self.operation} is {article} {self.kind}: {self.reason}"


def changed(spec: TensorSpec, **changes: Any) -> TensorSpec:
    """Return the spec with some of its fields changed; an alignment of its own is dropped with the shape or layout.

    >>> changed(TensorSpec((4, 8), "int8"), shape=(8, 4))
    TensorSpec((8, 4), 'int8', 'row_major')
    """
    fields = {name: getattr(spec, name) for name in ("dtype", "layout", "tile", "memory", "chip", "alignment")}
    if "shape" in changes or "layout" in changes:
        fields["alignment"] = None
    try:
        return TensorSpec(**{"shape": spec.shape.logical, **fields, **changes})
    except MemoryConfigError as problem:
        if not spec.memory.is_sharded or "memory" in changes:
            raise
        raise MemoryConfigError(f"{problem}; or move it to interleaved memory with to_memory_config first") from None


def relaid(spec: TensorSpec, layout: Any, tile: Any = None) -> Conversion:
    """Return what a change of page layout takes.

    >>> relaid(TensorSpec((64, 64), layout="tile"), "row_major").kind
    'untilize'
    """
    wanted = TensorLayout.of(layout)
    tiled = wanted is TensorLayout.TILE
    size = (spec.tile if tile is None and spec.layout is wanted else Tile.of(tile)) if tiled else Tile()
    if spec.layout is wanted and spec.tile == size and spec.alignment is None:
        return Conversion("to_layout", "view", "it has this layout already", spec)
    if not tiled and isinstance(spec.dtype, BlockFormat):
        raise MemoryConfigError(
            f"{spec.dtype} shares scales inside tiles and has no rows; convert it first, as in to_dtype('float32')"
        )
    target = changed(spec, layout=wanted, tile=size)
    if spec.layout is TensorLayout.TILE:
        return Conversion("to_layout", "untilize", f"tiles of {spec.tile} are taken apart", target)
    return Conversion("to_layout", "copy", "rows are put into tiles" if tiled else "padding is left out", target)


def recast(spec: TensorSpec, dtype: Any) -> Conversion:
    """Return what a change of number format takes; block formats need tiles, and get them.

    >>> recast(TensorSpec((64, 64)), "bfloat8_b").spec.layout
    TensorLayout.TILE
    """
    element = format_of(dtype)
    if element == spec.dtype:
        return Conversion("to_dtype", "view", f"it is {element} already", spec)
    if isinstance(element, BlockFormat) and spec.layout is not TensorLayout.TILE:
        return Conversion("to_dtype", "copy", "rows are put into tiles", changed(spec, dtype=element, layout="tile"))
    return Conversion("to_dtype", "copy", f"{spec.dtype} becomes {element}, in place", changed(spec, dtype=element))


def replaced(spec: TensorSpec, memory: Any, on_device: bool) -> Conversion:
    """Return what a change of memory takes; on the host pages lie in the same order whatever their memory.

    >>> from tilewright import height_sharded
    >>> tiles = TensorSpec((64, 64), layout="tile", chip="n150")
    >>> replaced(tiles, height_sharded((2, 1)), on_device=False).kind
    'view'
    """
    target = changed(spec, memory=memory)
    if target.memory == spec.memory:
        return Conversion("to_memory_config", "view", "it lies there already", spec)
    if target.padded_shape != spec.padded_shape:
        reason = f"shards pad {list(spec.padded_shape)} to {list(target.padded_shape)}"
        return Conversion("to_memory_config", "copy", reason, target)
    if on_device:
        return Conversion("to_memory_config", "copy", "pages move to other banks", target)
    return Conversion("to_memory_config", "view", "on the host pages lie in order wherever they will go", target)


def reshaped(spec: TensorSpec, shape: Any, on_device: bool = False) -> Conversion:
    """Return what a reshape takes; one extent may be -1.

    >>> reshaped(TensorSpec((64, 64)), (-1, 128)).spec.shape
    Shape([32, 128])
    >>> reshaped(TensorSpec((64, 64), layout="tile"), (32, 128)).kind
    'untilize'
    """
    target = changed(spec, shape=_whole_shape(spec, shape))
    pages_stay = not on_device or (not spec.memory.is_sharded and target.page_bytes == spec.page_bytes)
    if pages_stay and target.nbytes == spec.nbytes:
        if spec.padded_shape == spec.shape.logical and target.padded_shape == target.shape.logical:
            if spec.layout is TensorLayout.ROW_MAJOR:
                return Conversion("reshape", "view", "rows have no padding", target)
            if spec.padded_shape[-1] == target.padded_shape[-1]:
                reason = "rows keep their width, and matrices end where tiles end"
                return Conversion("reshape", "view", reason, target)
        if _matrix(spec) == _matrix(target):
            return Conversion("reshape", "view", "the last two dimensions stay as they are", target)
    if spec.layout is TensorLayout.TILE:
        return Conversion("reshape", "untilize", "rows of another length do not fit the same tiles", target)
    return Conversion("reshape", "copy", "rows get another length or padding", target)


def _matrix(spec: TensorSpec) -> tuple[Any, Any]:
    """Return the last two dimensions, with and without padding; None for a tensor padded further out."""
    logical, padded = ((1, 1, *each)[-2:] for each in (spec.shape.logical, spec.padded_shape))
    lead = len(spec.padded_shape) - spec.shape.rank
    outer = (1,) * max(0, lead) + spec.shape.logical
    return (logical, padded) if outer[:-2] == spec.padded_shape[:-2] else (spec, None)


def _whole_shape(spec: TensorSpec, shape: Any) -> tuple[int, ...]:
    extents = [int(as_integer(n, "an extent")) for n in shape]
    known, volume = prod(n for n in extents if n != -1), spec.shape.logical_volume()
    if extents.count(-1) == 1 and known and volume % known == 0:
        extents[extents.index(-1)] = volume // known
    if any(n < 0 for n in extents) or prod(extents) != volume:
        raise LayoutError(
            f"{spec.shape!r} with its {volume} elements cannot become {list(shape)};"
            " the extents must multiply to that number, and one of them may be -1"
        )
    return tuple(extents)


def permuted(spec: TensorSpec, order: Sequence[int]) -> Conversion:
    """Return what a new order of dimensions takes.

    >>> permuted(TensorSpec((2, 3, 64, 64), layout="tile"), (1, 0, 2, 3)).kind
    'copy'
    >>> permuted(TensorSpec((64, 32), layout="tile"), (1, 0)).kind
    'untilize'
    """
    rank = spec.shape.rank
    dims = tuple([int(as_integer(d, "a dimension")) % rank if -rank <= d < rank else d for d in order])
    if sorted(dims) != list(range(rank)):
        raise LayoutError(f"{list(order)} is no order of the {rank} dimensions of {spec.shape!r}; name each once")
    target = changed(spec, shape=[spec.shape[d] for d in dims])
    if dims == tuple(range(rank)):
        return Conversion("transpose", "view", "no dimension moves", spec)
    if spec.layout is not TensorLayout.TILE:
        return Conversion("transpose", "copy", "elements move to other rows", target)
    if dims[-2:] == (rank - 2, rank - 1):
        return Conversion("transpose", "copy", "tiles move whole, since the last two dimensions stay", target)
    return Conversion("transpose", "untilize", "a dimension of the tiles moves", target)


@dataclass(frozen=True, slots=True)
class Box:
    """Half-open ranges with steps, one for each dimension.

    >>> Box.of((slice(1, None), 3), (4, 8)).shape
    (3, 1)
    """

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]

    @classmethod
    def of(cls, ranges: Any, extents: tuple[int, ...]) -> Box:
        """Return the box of slices and indices within some extents; what is left out is whole.

        >>> Box.of((slice(1, 3),), (4, 8)).slices
        (slice(1, 3, 1), slice(0, 8, 1))
        """
        given = list(ranges) if isinstance(ranges, tuple) else [ranges]
        if Ellipsis in given:
            at = given.index(Ellipsis)
            given[at : at + 1] = [slice(None)] * (len(extents) - len(given) + 1)
        if len(given) > len(extents):
            raise LayoutError(f"{len(given)} ranges are too many for the {len(extents)} dimensions {list(extents)}")
        given += [slice(None)] * (len(extents) - len(given))
        found = [_range(each, n) for each, n in zip(given, extents, strict=True)]
        starts, stops, steps = zip(*found, strict=True) if found else ((), (), ())
        return cls(tuple(starts), tuple(stops), tuple(steps))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of elements along each dimension.

        >>> Box((0,), (7,), (2,)).shape
        (4,)
        """
        bounds = zip(self.starts, self.stops, self.steps, strict=True)
        return tuple([ceil_div(max(0, stop - start), step) for start, stop, step in bounds])

    @property
    def slices(self) -> tuple[slice, ...]:
        """Return the ranges as slices.

        >>> Box((0,), (7,), (2,)).slices
        (slice(0, 7, 2),)
        """
        return tuple([slice(*each) for each in zip(self.starts, self.stops, self.steps, strict=True)])


def _range(given: Any, extent: int) -> tuple[int, int, int]:
    if isinstance(given, slice):
        start, stop, step = given.indices(extent)
        if step < 1:
            raise LayoutError(f"a slice of a tensor goes forwards, got a step of {step}; flip the array instead")
        return start, max(start, stop), step
    at = int(as_integer(given, "an index"))
    if not -extent <= at < extent:
        raise LayoutError(f"index {at} is outside a dimension of {extent}; use {-extent} to {extent - 1}")
    return at % extent, at % extent + 1, 1


def sliced(spec: TensorSpec, box: Box) -> Conversion:
    """Return what a slice takes; dimensions stay, also those with a single index.

    >>> tiles = TensorSpec((128, 64), layout="tile")
    >>> sliced(tiles, Box.of((slice(32, 96), slice(0, 32)), (128, 64))).kind
    'copy'
    >>> sliced(tiles, Box.of((slice(1, 33),), (128, 64))).kind
    'untilize'
    """
    target = changed(spec, shape=box.shape)
    if box.shape == spec.shape.logical:
        return Conversion("slice", "view", "it is the whole tensor", spec)
    if spec.layout is not TensorLayout.TILE:
        return Conversion("slice", "copy", "rows are cut", target)
    if page_box(spec, box) is None:
        return Conversion("slice", "untilize", f"the edges do not fall between tiles of {spec.tile}", target)
    return Conversion("slice", "copy", "tiles move whole", target)


def page_box(spec: TensorSpec, box: Box) -> Box | None:
    """Return the box of pages that a box of elements covers, None where it cuts tiles.

    >>> page_box(TensorSpec((128, 64), layout="tile"), Box.of((slice(32, 96),), (128, 64))).slices
    (slice(1, 3, 1), slice(0, 2, 1))
    """
    rank, logical = spec.shape.rank, spec.shape.logical
    if rank < 2 or spec.layout is not TensorLayout.TILE or spec.padded_shape[:-2] != logical[:-2]:
        return None
    starts, stops, steps = (list(each) for each in (box.starts, box.stops, box.steps))
    for d, unit in ((-2, spec.tile.height), (-1, spec.tile.width)):
        ends_well = stops[d] % unit == 0 or stops[d] == logical[d]
        if starts[d] % unit or not ends_well or steps[d] != 1:
            return None
        starts[d], stops[d] = starts[d] // unit, ceil_div(stops[d], unit)
    return Box(tuple(starts), tuple(stops), tuple(steps))


def padded(spec: TensorSpec, shape: Any, start: Any = None) -> Conversion:
    """Return what it takes to grow the padded shape, with the data from `start` on; rows only.

    >>> padded(TensorSpec((5, 7), "float32"), (6, 10)).spec.padded_shape
    (6, 10)
    """
    extents = tuple([int(as_integer(n, "an extent")) for n in shape])
    if spec.layout is not TensorLayout.ROW_MAJOR:
        raise MemoryConfigError(f"tiles of {spec.tile} are padded to whole tiles; use to_layout('row_major') first")
    if len(extents) != spec.shape.rank:
        raise LayoutError(f"padded shape {list(extents)} needs {spec.shape.rank} extents, as {spec.shape!r} has")
    begin = (0,) * len(extents) if start is None else tuple([int(as_integer(n, "a start")) for n in start])
    rooms = list(zip(begin, spec.shape.logical, extents, strict=True)) if len(begin) == len(extents) else [(0, 1, 0)]
    if any(at < 0 or at + n > room for at, n, room in rooms):
        raise LayoutError(
            f"{spec.shape!r} from {list(begin)} on does not fit the padded shape {list(extents)};"
            f" each extent must be at least start + size"
        )
    # entries further out than the last two count rows of the folded matrix
    alignment = [max(1, n if d >= len(extents) - 2 else prod(extents[d:-1])) for d, n in enumerate(extents)]
    target = TensorSpec(
        spec.shape.logical, spec.dtype, spec.layout, None, spec.memory, spec.chip, alignment if extents else None
    )
    kind: Kind = "view" if extents == spec.padded_shape and not any(begin) else "copy"
    return Conversion("pad", kind, "padding is put around the data", target)
