# SPDX-License-Identifier: Apache-2.0
"""`TensorSpec`: shape, format, pages and memory of a tensor on a chip, which decide where its elements are; `fit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from typing import Any

from .._dialect import unwrap
from .._text import format_extents
from ..copying import Leaf, common_leaves
from ..display import Drawable
from ..errors import MemoryConfigError
from ..formats import Format, FormatLike, format_of
from ..layout import as_integer, leaves
from .accessor import AccessorArguments, accessor_arguments
from .allocator import CircularBuffers, Fit, FitRequest, check_fit
from .chip import Chip, ChipLike
from .config import MemoryConfig, MemoryLike, NamedEnum, PageLayout, PageLayoutLike, as_memory, nd_sharded
from .cores import CoreLike, CoreRange, CoreRangeSet
from .page_geometry import PageGeometry
from .paging import PageTable
from .placement_rules import Violation, grid_violations, placement_violations, spec_violations, validate_placement
from .shape import Shape, Tile, TileLike, padded_extents
from .where import ElementLocator, Where, split_location


@dataclass(frozen=True, init=False, repr=False)
class TensorSpec(PageGeometry, Drawable):
    """The shape, number format, page layout and memory of a tensor on a chip, which decide where each byte is.

    Args:
        shape: the logical extents.
        dtype: the number format.
        page_layout: "tile" or "row_major"; the default is tiles for block formats, rows otherwise.
        tile: the `Tile`, or its (height, width); 32 x 32 by default.
        memory: a `MemoryConfig`, a `Sharding` without a shard shape, or "dram" (the default) or "l1" for interleaved.
        chip: the `Chip` or its name; needed for banks and addresses.
        alignment: pads the last dimensions to multiples, beyond what tiles and shards need.

    >>> from tilewright import block_sharded
    >>> spec = TensorSpec((1, 4, 60, 90), "bfloat8_b", memory=block_sharded(core_grid=(8, 8)), chip="wormhole_n150")
    >>> spec.padded_shape, spec.physical_shape, spec.num_pages, spec.page_bytes
    ((1, 4, 64, 96), (256, 96), 24, 1088)
    >>> spec.where(0, 2, 33, 17).core
    CoreCoord(x=0, y=5)
    """

    shape: Shape
    dtype: Format
    page_layout: PageLayout
    tile: Tile
    memory: MemoryConfig
    chip: Chip | None
    alignment: tuple[int, ...] | None

    def __init__(
        self,
        shape: Iterable[int],
        dtype: FormatLike = "bfloat16",
        page_layout: PageLayoutLike | None = None,
        tile: TileLike = None,
        memory: MemoryLike = None,
        chip: ChipLike | None = None,
        alignment: Iterable[int] | None = None,
    ) -> None:
        element = format_of(dtype)
        if page_layout is None:
            page_layout = PageLayout.TILE if element.has_blocks else PageLayout.ROW_MAJOR
        set_field = object.__setattr__  # the class is frozen
        set_field(self, "dtype", element)
        set_field(self, "page_layout", PageLayout.of(page_layout))
        set_field(self, "tile", Tile.of(tile))
        set_field(self, "chip", None if chip is None else Chip.of(chip))
        set_field(self, "alignment", None if alignment is None else tuple(map(int, alignment)))
        set_field(self, "shape", Shape(shape))
        set_field(self, "memory", self._resolve_memory(memory))
        for violation in spec_violations(self):
            raise MemoryConfigError(f"{list(self.shape)} {element}: {violation}")
        padded = self.padded_shape
        set_field(self, "shape", Shape(self.shape.logical, padded))
        set_field(self, "memory", self.memory.complete(padded, self.physical_shape))

    def _resolve_memory(self, memory: MemoryLike) -> MemoryConfig:
        """Return the config of a memory, with a computed shard shape for a `Sharding`."""
        config = as_memory(memory)
        if isinstance(config, MemoryConfig):
            return config
        if self.chip is not None:  # a computed shard shape uses all cores of the grid
            for violation in grid_violations(self.chip, config.grid, config.buffer_type):
                raise MemoryConfigError(str(violation))
        tile = self.tile.shape if self.is_tiled else None
        padded = padded_extents(self.shape.logical, self.alignment or tile or (1,))
        return config.config_for(padded, tile, self.dtype.storage_format.itemsize)

    def replace(self, **changes: Any) -> TensorSpec:  # arguments of any type; the constructor validates them
        """Return the spec with `changes` to its constructor arguments.

        >>> TensorSpec((64, 64)).replace(shape=(32, 64), dtype="int8").page_bytes
        64
        """
        return TensorSpec(**{**self.arguments(), **changes})

    def arguments(self) -> dict[str, Any]:  # of any type
        """Return the constructor arguments by name.

        >>> TensorSpec((64, 64), "int8").arguments()["dtype"]
        format_of('int8')
        """
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"shape": self.shape.logical}

    def with_memory(self, memory: MemoryLike) -> TensorSpec:
        """Return the spec of the same tensor in another `memory`.

        >>> from tilewright import height_sharded
        >>> TensorSpec((64, 64), page_layout="tile").with_memory(height_sharded((2, 1))).memory.sharding.shape
        (32, 64)
        """
        return self.replace(memory=memory)

    def with_chip(self, chip: ChipLike | None) -> TensorSpec:
        """Return the spec of the same tensor on another `chip`.

        >>> TensorSpec((64, 64), chip="n150").with_chip("p150").aligned_page_bytes
        128
        """
        return self.replace(chip=chip)

    def with_dtype(self, dtype: FormatLike) -> TensorSpec:
        """Return the spec of the same tensor in another number format `dtype`.

        >>> TensorSpec((64, 64), page_layout="tile").with_dtype("bfloat8_b").page_bytes
        1088
        """
        return self.replace(dtype=dtype)

    @cached_property
    def address_on_empty_chip(self) -> int:
        """The address of the tensor on an empty chip.

        >>> TensorSpec((32, 32), "int32", "tile", memory="l1", chip="n150").address_on_empty_chip
        1495040
        """
        chip, buffer = self.known_chip, self.memory.buffer_type
        validate_placement(self)
        return chip.end(buffer) - self.allocated_bytes if buffer.is_l1 else chip.base(buffer)

    @cached_property
    def locator(self) -> ElementLocator:
        """The locator, which finds elements by coordinate and by address.

        >>> TensorSpec((4, 4), "int32", chip="n150").locator.element_at(1, 1048648, base=1048640)
        (1, 2)
        """
        return ElementLocator(self)

    def where(self, *coord: int, base: int | None = None) -> Where:
        """Return where the element at `coord` is, in a buffer at address `base` or on an empty chip.

        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").where(0, 2, 33, 17).address
        1053828
        """
        return self.locator.locate(coord, self.address_on_empty_chip if base is None else base)

    def element_at(
        self, place: Where | CoreLike | int, address: int | None = None, bit: int = 0, base: int | None = None
    ) -> tuple[int, ...] | None:
        """Return the coordinate of the element at an address of a core or bank; None for padding, gaps and scales.

        `place` is a bank, a core (x, y), or a `Where` without an address; `bit` is the bit in the byte, and `base` the
        address of the buffer.

        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").element_at(3, 1053828)
        (0, 2, 33, 17)
        """
        bank_or_core, at, bit = split_location(place, address, bit)
        return self.locator.element_at(bank_or_core, at, self.address_on_empty_chip if base is None else base, bit)

    def pages(self, base: int | None = None) -> PageTable:
        """Return the table of all pages, in a buffer at address `base` or on an empty chip.

        >>> TensorSpec((64, 64), page_layout="tile", chip="n150").pages().bank.tolist()
        [0, 1, 2, 3]
        """
        return self.page_map.table(self.address_on_empty_chip if base is None else base)

    def accessor_arguments(self, runtime: Iterable[str] = ()) -> AccessorArguments:
        """Return the words that a kernel of tt-metal gets for the tensor's `TensorAccessor`.

        `runtime` names the parts that are left to run time: "rank", "banks", "tensor_shape", "shard_shape" and
        "coordinates" of a sharded tensor, which an interleaved one does not have, or its "page_size".

        >>> from tilewright import block_sharded
        >>> spec = TensorSpec((128, 128), page_layout="tile", memory=block_sharded((2, 2)), chip="wormhole_n150")
        >>> spec.accessor_arguments().words
        (1, 2048, 2, 4, 4, 4, 2, 2, 319951378, 320016915)
        >>> spec.accessor_arguments(runtime=["tensor_shape"]).runtime_words
        (4, 4)
        """
        return accessor_arguments(self, runtime)

    @classmethod
    def from_accessor(
        cls,
        arguments: AccessorArguments,
        dtype: FormatLike,
        page_layout: PageLayoutLike | None = None,
        tile: TileLike = None,
        shape: Iterable[int] | None = None,
        row_width: int | None = None,
    ) -> TensorSpec:
        """Return a spec whose accessor has these `arguments`, given the facts that the words leave open.

        A sharded tensor has the shape that the words give its pages, which may have fewer dimensions than the tensor
        that they were made for; every page is in the same place.

        Args:
            arguments: the words, for a known chip.
            dtype: the number format.
            page_layout: "tile" or "row_major", by default as for every spec.
            tile: the tile.
            shape: the logical extents of an interleaved tensor.
            row_width: the elements of a page that is the row of a shard.

        >>> from tilewright import parse_accessor
        >>> words = [1, 2048, 1, 2, 12, 6, 319951378]
        >>> spec = TensorSpec.from_accessor(parse_accessor(words, "n150"), "bfloat16", "tile")
        >>> spec.shape.logical, spec.accessor_arguments().words == tuple(words)
        ((32, 384), True)
        """
        sharded, buffer = arguments.is_sharded, arguments.buffer_type
        extents = (1, row_width or 1) if sharded else tuple(shape or ())
        spec = cls(extents, dtype, page_layout, tile, buffer.name, arguments.chip)
        if row_width is None and not spec.is_tiled if sharded else shape is None:
            missing = "elements of a shard's row; pass row_width" if sharded else "shape of the tensor; pass shape"
            raise MemoryConfigError(f"the words do not state the {missing}")
        if spec.aligned_page_bytes != arguments.aligned_page_bytes:
            raise MemoryConfigError(
                f"pages of {format_extents(spec.page_shape)} {spec.dtype} have {spec.aligned_page_bytes} bytes, but the"
                f" words state {arguments.aligned_page_bytes}; pass another dtype, page layout, tile or width"
            )
        if not sharded:
            return spec
        paging, (rows, columns), tiled = arguments.paging, spec.page_shape, spec.is_tiled
        # pages of rows lie one below the other; pages of tiles with a single dimension lie in a row
        grid, cut = [(*(1,) * (tiled and len(n) == 1), *n, *(1,) * (not tiled)) for n in (paging.grid, paging.shard)]
        extents, cut = [(*n[:-2], n[-2] * rows, n[-1] * columns) for n in (grid, cut)]
        cores = CoreRangeSet([CoreRange(owner) for owner in paging.cores])
        how = "contiguous_1d" if paging.in_runs else "round_robin_1d"
        return spec.replace(shape=extents, memory=nd_sharded(cut, cores, "row_major", how, buffer))

    def violations(self) -> list[Violation]:
        """Return the placement rules that the tensor breaks on its chip; without a chip, on all known chips.

        >>> from tilewright import height_sharded
        >>> spec = TensorSpec((64, 64), page_layout="tile", memory=height_sharded((1, 9), (32, 64)), chip="n150")
        >>> print(spec.violations()[0].remedy)
        use cores (0, 0) to (7, 7)
        """
        return list(placement_violations(self))

    @cached_property
    def rules_broken(self) -> tuple[Violation, ...]:
        """The placement rules that the spec breaks, whatever its size: whether it fits is another question.

        >>> TensorSpec((64, 64), page_layout="tile", memory="l1", chip="n150").rules_broken
        ()
        """
        return tuple(placement_violations(self, any_size=True))

    def fit(self, circular_buffers: CircularBuffers = 0) -> Fit:
        """Return whether the tensor fits its chip beside `circular_buffers` (bytes per core), and alternatives if not.

        >>> bool(TensorSpec((64, 64), memory="l1", chip="n150").fit(circular_buffers=100_000))
        True
        """
        return check_fit([self], TensorSpec, self.chip, circular_buffers)

    def __repr__(self) -> str:
        parts = [repr(self.shape.logical), repr(self.dtype.name), repr(self.page_layout.name.lower())]
        if not self.tile.is_default:
            parts.append(f"tile={self.tile!r}")
        if self.memory != MemoryConfig():
            parts.append(f"memory={self.memory!r}")
        if self.chip is not None:
            parts.append(f"chip={self.chip!r}")
        if self.alignment is not None:
            parts.append(f"alignment={self.alignment}")
        return f"TensorSpec({', '.join(parts)})"

    def __str__(self) -> str:
        pages = f"tiles of {self.tile}" if self.is_tiled else "rows"
        chip = f", {self.chip.name}" if self.chip else ""
        return f"{self.shape} {self.dtype} in {pages}, {self.memory}{chip}"


def as_spec(value: object) -> TensorSpec:
    """Return the spec of `value`: a tensor, a spec, or either in a dialect.

    >>> as_spec(TensorSpec((4, 4))).shape.logical
    (4, 4)
    """
    native = unwrap(value)
    spec = native if isinstance(native, TensorSpec) else getattr(native, "spec", None)
    if not isinstance(spec, TensorSpec):
        raise MemoryConfigError(
            f"expected a TensorSpec or a tensor, got {type(value).__name__}, which does not state how it is stored;"
            " create a TensorSpec(shape, dtype, ...) with it"
        )
    return spec


def device_address(value: object) -> int | None:
    """Return the address of a tensor that is on a device, or None: a spec's address depends on the other buffers.

    >>> device_address(TensorSpec((4, 4))) is None
    True
    """
    storage = getattr(unwrap(value), "storage", None)
    allocation = getattr(storage, "allocation", None)
    return None if allocation is None else int(allocation.single_address)


def _as_fitted(value: object) -> TensorSpec:
    """Return the spec of a tensor, or of the storage of a tensor in memory with a layout: one page, in one bank."""
    native = unwrap(value)
    cosize, dtype = getattr(getattr(native, "layout", None), "cosize", None), getattr(native, "dtype", None)
    if cosize is None or dtype is None or isinstance(getattr(native, "spec", None), TensorSpec):
        return as_spec(value)
    return TensorSpec((1, int(cosize)), dtype, "row_major", memory="l1" if _is_local(value) else "dram")


def _is_local(value: object) -> bool:
    """Return whether a tensor is in the memory of a core: internal, shared or local."""
    space = getattr(getattr(unwrap(value), "address_space", None), "name", "")
    return bool(getattr(value, "internal", False)) or space in ("SHARED", "LOCAL")


def fit(
    request: object,  # specs, tensors of any kind, or arguments of specs; one or several
    chip: ChipLike | None = None,
    circular_buffers: CircularBuffers = 0,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
) -> Fit:
    """Return whether tensors fit a chip together with circular buffers, and the nearest alternatives if not.

    Args:
        request: a spec or a tensor, a dict of arguments of `TensorSpec`, or a list of these, allocated in order. A
            tensor in memory with a layout is fitted as its storage, into one bank.
        chip: the chip; the default is the first tensor's.
        circular_buffers: bytes per core: a number, several, or several by name.
        l1_small_size: bytes reserved at the top of L1.
        trace_region_size: bytes reserved in all DRAM.

    >>> answer = fit(
    ...     TensorSpec((4096, 4096), "float32", "tile", memory="l1"), "wormhole_n150", circular_buffers=500_000
    ... )
    >>> bool(answer), answer.problems[0].message
    (False, 'circular buffers use L1 from 105824 to 605824 on every core, but tensors start at 450560')
    >>> print(answer.alternatives[0])
    float32 as bfloat16: 524288 bytes in each of 64 banks
    """
    listed = request if isinstance(request, (list, tuple, Iterator)) else [request]
    requests: list[FitRequest] = [item if isinstance(item, Mapping) else _as_fitted(item) for item in listed]
    return check_fit(requests, TensorSpec, chip, circular_buffers, l1_small_size, trace_region_size)


# The cost of a change of a tensor: nothing (a view), a copy of bytes, or taking elements out of their tiles.

Mode = list[tuple[int, int | None]]  # (extent, stride) of the leaves of one dimension, innermost first


class ChangeKind(NamedEnum):
    """The cost of a change: a view copies nothing, a copy copies bytes, untilize takes elements out of their tiles.

    >>> ChangeKind.of("view")
    ChangeKind.VIEW
    """

    VIEW = 0
    COPY = 1
    UNTILIZE = 2


@dataclass(frozen=True, slots=True)
class SpecChange:
    """A new spec for a tensor, and the cost of the change in the banks (`kind`) and on the host (`on_host`).

    >>> print(reshape_spec(TensorSpec((2, 64, 64), page_layout="tile"), (128, 64)))
    VIEW: [128, 64]: every element stays where it is
    """

    spec: TensorSpec
    kind: ChangeKind
    on_host: ChangeKind
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.spec.shape}: {self.reason}"


def reshape_spec(spec: TensorSpec, shape: Iterable[int]) -> SpecChange:
    """Return the change of `spec` to another `shape` with the same elements in the same order; one extent may be -1.

    >>> str(reshape_spec(TensorSpec((64, 64), page_layout="tile"), (32, 128)).kind)
    'UNTILIZE'
    >>> reshape_spec(TensorSpec((4, 8)), (2, -1)).on_host, reshape_spec(TensorSpec((4, 8)), (2, 16)).kind
    (ChangeKind.VIEW, ChangeKind.COPY)
    """
    old = spec.shape.logical
    new = _infer_extent(old, [int(as_integer(n, "an extent")) for n in shape])
    result = _replace_arguments(spec, shape=new)
    before, after = _dimension_modes(spec), _dimension_modes(result)
    pairs: list[list[Leaf]] = []
    for mine, theirs in _matching_dimensions(old, new):
        count = prod(old[k] for k in mine)
        joined = [_join_modes([before[k] for k in mine], [old[k] for k in mine])]
        joined.append(_join_modes([after[k] for k in theirs], [new[k] for k in theirs]))
        pairs.append(common_leaves(len(pairs), joined, count))
    return _classify_change(spec, result, pairs, 0)


def transpose_spec(spec: TensorSpec, *order: int) -> SpecChange:
    """Return the change of `spec` to another `order` of dimensions; by default, the last two are swapped.

    >>> transpose_spec(TensorSpec((2, 3, 64, 64), page_layout="tile"), 1, 0, 2, 3).kind
    ChangeKind.COPY
    >>> transpose_spec(TensorSpec((64, 64), page_layout="tile")).kind
    ChangeKind.UNTILIZE
    """
    rank = spec.shape.rank
    axes = [d % rank for d in order] if order else [*range(rank - 2), rank - 1, rank - 2]
    if rank < 2 or sorted(axes) != list(range(rank)):
        raise MemoryConfigError(f"expected an order of the {rank} dimensions of shape {list(spec.shape)}, got {order}")
    extents = [spec.shape.logical[d] for d in axes]
    result = _replace_arguments(spec, shape=extents)
    before, after = _dimension_modes(spec), _dimension_modes(result)
    pairs = [common_leaves(k, [before[d], after[k]], extents[k]) for k, d in enumerate(axes)]
    return _classify_change(spec, result, pairs, 0)


def slice_spec(spec: TensorSpec, *box: slice) -> SpecChange:
    """Return the change of `spec` to a part: `box` has a slice with step 1 for each of the first dimensions.

    >>> slice_spec(TensorSpec((128, 64), page_layout="tile"), slice(32, 96)).kind
    ChangeKind.COPY
    >>> slice_spec(TensorSpec((128, 64), page_layout="tile"), slice(16, 80)).kind
    ChangeKind.UNTILIZE
    """
    shape = spec.shape.logical
    parts: list[Any] = [*box, *[slice(None)] * (len(shape) - len(box))]
    if len(parts) != len(shape) or any(not isinstance(part, slice) or part.step not in (None, 1) for part in parts):
        raise MemoryConfigError(f"expected at most {len(shape)} slices with step 1 for shape {list(shape)}, got {box}")
    ranges = [part.indices(n)[:2] for part, n in zip(parts, shape, strict=True)]
    extents = [max(0, stop - start) for start, stop in ranges]
    result = _replace_arguments(spec, shape=extents)
    before, after = _dimension_modes(spec), _dimension_modes(result)
    pairs = [
        common_leaves(k, [_window_mode(before[k], start, extents[k]), after[k]], extents[k])
        for k, (start, _) in enumerate(ranges)
    ]
    offset = spec.host(*[start for start, _ in ranges]) if all(extents) else 0
    return _classify_change(spec, result, pairs, offset)


def retile_spec(spec: TensorSpec, page_layout: PageLayoutLike | None = None, tile: TileLike = None) -> SpecChange:
    """Return the change of `spec` to another `page_layout` or `tile`.

    >>> tiled = TensorSpec((64, 64), page_layout="tile")
    >>> retile_spec(TensorSpec((64, 64)), "tile").kind, retile_spec(tiled, "row_major").kind
    (ChangeKind.COPY, ChangeKind.UNTILIZE)
    """
    chosen = spec.page_layout if page_layout is None else page_layout
    return _compare_specs(spec, _replace_arguments(spec, page_layout=chosen, tile=tile))


def reshard_spec(spec: TensorSpec, memory: MemoryLike) -> SpecChange:
    """Return the change of `spec` to another `memory`: whole pages are copied, unless the width of rows changes.

    >>> from tilewright import block_sharded
    >>> reshard_spec(TensorSpec((64, 64), page_layout="tile", chip="n150"), block_sharded((2, 2))).kind
    ChangeKind.COPY
    """
    return _compare_specs(spec, spec.with_memory(memory))


def convert_spec(spec: TensorSpec, dtype: FormatLike) -> SpecChange:
    """Return the change of `spec` to the number format `dtype`: every element stays in its tile or row.

    >>> convert_spec(TensorSpec((64, 64), "float32", "tile"), "bfloat8_b").kind
    ChangeKind.COPY
    """
    return _compare_specs(spec, spec.with_dtype(dtype))


def _compare_specs(spec: TensorSpec, result: TensorSpec) -> SpecChange:
    """Return the change between two specs of the same shape."""
    before, after = _dimension_modes(spec), _dimension_modes(result)
    pairs = [common_leaves(k, [before[k], after[k]], n) for k, n in enumerate(spec.shape)]
    return _classify_change(spec, result, pairs, 0)


def _replace_arguments(spec: TensorSpec, **changes: Any) -> TensorSpec:  # arguments of TensorSpec
    """Return the spec with other arguments; raise if its memory does not suit them."""
    try:
        return spec.replace(**changes)
    except MemoryConfigError as problem:
        raise MemoryConfigError(f"{problem}; the result needs another memory config: reshard first") from None


def _classify_change(old: TensorSpec, new: TensorSpec, pairs: Sequence[Sequence[Leaf]], offset: int) -> SpecChange:
    """Return the change, from the strides of the old tensor (first) and the new one (second) of each leaf."""
    if old.dtype != new.dtype:
        reason = f"every element is converted from {old.dtype} to {new.dtype}"
        return SpecChange(new, ChangeKind.COPY, ChangeKind.COPY, reason)
    strides = [leaf.strides for mode in pairs for leaf in mode]
    page, same_page = old.page_elements, old.page_elements == new.page_elements
    on_pages = same_page and offset % page == 0
    unchanged = all(first == second and first is not None for first, second in strides)
    covered = offset + prod(new.padded_shape) <= prod(old.padded_shape)  # all new pages, with their padding
    if unchanged and covered and (on_pages or not old.dtype.has_blocks):
        if on_pages and not offset and _same_banks(old, new):
            return SpecChange(new, ChangeKind.VIEW, ChangeKind.VIEW, "every element stays where it is")
        reason = "the host keeps its bytes, but pages are copied to other banks"
        return SpecChange(new, ChangeKind.COPY, ChangeKind.VIEW, reason)
    if on_pages and all(_moves_whole_pages(first, second, page) for first, second in strides):
        return SpecChange(new, ChangeKind.COPY, ChangeKind.COPY, "whole pages are copied")
    if old.is_tiled:
        return SpecChange(new, ChangeKind.UNTILIZE, ChangeKind.UNTILIZE, "elements are taken out of their tiles")
    reason = "rows are cut into tiles" if new.is_tiled else "elements are copied to other rows"
    return SpecChange(new, ChangeKind.COPY, ChangeKind.COPY, reason)


def _moves_whole_pages(first: int | None, second: int | None, page: int) -> bool:
    """Return whether a leaf keeps its stride inside a page, or strides over whole pages on both sides."""
    if first is None or second is None:
        return False
    return bool(first == second if min(first, second) < page else first % page == second % page == 0)


def _same_banks(old: TensorSpec, new: TensorSpec) -> bool:
    """Return whether all pages are in the same banks at the same addresses."""
    if old.chip != new.chip or old.memory.buffer_type is not new.memory.buffer_type:
        return False
    if old.memory.is_sharded and new.memory.is_sharded:
        return old.paging == new.paging
    return old.memory.is_sharded == new.memory.is_sharded


def _dimension_modes(spec: TensorSpec) -> list[Mode]:
    """Return the leaves of each dimension of a tensor."""
    layout = spec.host
    if not spec.shape.rank:
        return []
    pairs = zip(layout.shape, layout.stride, strict=True)
    return [_merge_leaves(zip(leaves(extents), leaves(strides), strict=True)) for extents, strides in pairs]


def _window_mode(mode: Mode, start: int, count: int) -> Mode:
    """Return the leaves of `count` indices from `start` on, without strides if adding `start` carries over."""
    below = 1
    for extent, _ in mode[:-1]:
        below *= extent
        if start % below + min(count, below) > below:
            return [(n, None) for n, _ in mode]
    return mode


def _join_modes(modes: list[Mode], extents: list[int]) -> Mode:
    """Return the leaves of neighbouring dimensions as the leaves of one dimension."""
    joined: Mode = []
    live = [k for k, extent in enumerate(extents) if extent != 1]
    for k in reversed(live):
        exact = _trim_mode(modes[k], extents[k])
        if exact is None:  # the outermost dimension need not end with its data
            exact = modes[k] if k == live[0] else [(extents[k], None)]
        joined += exact
    return _merge_leaves(joined)


def _merge_leaves(mode: Iterable[tuple[int, int | None]]) -> Mode:
    """Return the leaves with contiguous ones merged; at least one."""
    merged: Mode = []
    for n, stride in mode:
        if merged and stride is not None and merged[-1][1] is not None and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * n, merged[-1][1])
        elif n != 1:
            merged.append((n, stride))
    return merged or [(1, 0)]


def _trim_mode(mode: Mode, extent: int) -> Mode | None:
    """Return leaves for exactly `extent` indices, or None if the leaves do not end there."""
    trimmed, rest = [], extent
    for n, stride in mode:
        if rest > n and rest % n:
            return None
        trimmed.append((min(n, rest), stride))
        rest = max(1, rest // n)
    return trimmed


def _infer_extent(old: tuple[int, ...], new: list[int]) -> tuple[int, ...]:
    """Return the new shape with -1 replaced, or raise if the number of elements differs."""
    count, known = prod(old), prod(n for n in new if n != -1)
    if new.count(-1) == 1 and known and count % known == 0:
        new[new.index(-1)] = count // known
    if prod(new) != count or any(n < 0 for n in new):
        raise MemoryConfigError(f"shape {list(old)} has {count} elements and cannot be reshaped to {new}")
    return tuple(new)


def _matching_dimensions(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Return the shortest runs of dimensions on both sides with the same number of elements."""
    if not prod(old):
        return []
    groups = []
    i = j = 0
    while i < len(old) or j < len(new):
        mine, theirs = [i] if i < len(old) else [], [j] if j < len(new) else []
        i, j = i + len(mine), j + len(theirs)
        while prod(old[k] for k in mine) != prod(new[k] for k in theirs):
            if prod(old[k] for k in mine) < prod(new[k] for k in theirs):
                mine.append(i)
                i += 1
            else:
                theirs.append(j)
                j += 1
        groups.append((mine, theirs))
    return groups
