# SPDX-License-Identifier: Apache-2.0
"""What a change of a tensor costs: nothing (a view), a copy of bytes, or taking elements out of their tiles.

Old and new tensor are layouts over the same coordinates, those of the new tensor, split into common leaves. If every
leaf has the same step on both sides, it is a view; if leaves inside a page are equal and all others step by whole
pages, whole pages are copied; otherwise single elements are copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..copying.loop_nest import Leaf, common_leaves
from ..errors import MemoryConfigError
from ..formats import FormatLike
from ..layout.tuples import leaves
from ..layout.validation import as_integer
from .memory_config import NamedEnum, PageLayout
from .shape import TileLike
from .sharding import MemoryLike
from .spec import TensorSpec

Mode = list[tuple[int, int | None]]  # (extent, step) of the leaves of one dimension, innermost first


class ChangeKind(NamedEnum):
    """What a change costs: a view copies nothing, a copy copies bytes, untilize takes elements out of their tiles.

    >>> ChangeKind.of("view")
    ChangeKind.VIEW
    """

    VIEW = 0
    COPY = 1
    UNTILIZE = 2


@dataclass(frozen=True, slots=True)
class SpecChange:
    """A new spec for a tensor, and what the change costs in the banks (`kind`) and on the host (`on_host`).

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


def retile_spec(spec: TensorSpec, page_layout: PageLayout | str | None = None, tile: TileLike = None) -> SpecChange:
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
    """Return the change, from the steps of the old tensor (first) and the new one (second) of each leaf."""
    if old.dtype != new.dtype:
        reason = f"every element is converted from {old.dtype} to {new.dtype}"
        return SpecChange(new, ChangeKind.COPY, ChangeKind.COPY, reason)
    steps = [leaf.steps for mode in pairs for leaf in mode]
    page, same_page = old.page_elements, old.page_elements == new.page_elements
    on_pages = same_page and offset % page == 0
    unchanged = all(first == second and first is not None for first, second in steps)
    if unchanged and _covers(old, new, offset) and (on_pages or not old.dtype.has_blocks):
        if on_pages and not offset and _same_banks(old, new):
            return SpecChange(new, ChangeKind.VIEW, ChangeKind.VIEW, "every element stays where it is")
        reason = "the host keeps its bytes, but pages are copied to other banks"
        return SpecChange(new, ChangeKind.COPY, ChangeKind.VIEW, reason)
    if on_pages and all(_steps_by_pages(first, second, page) for first, second in steps):
        return SpecChange(new, ChangeKind.COPY, ChangeKind.COPY, "whole pages are copied")
    if old.is_tiled:
        return SpecChange(new, ChangeKind.UNTILIZE, ChangeKind.UNTILIZE, "elements are taken out of their tiles")
    reason = "rows are cut into tiles" if new.is_tiled else "elements are copied to other rows"
    return SpecChange(new, ChangeKind.COPY, ChangeKind.COPY, reason)


def _steps_by_pages(first: int | None, second: int | None, page: int) -> bool:
    """Return whether a leaf keeps its step inside a page, or steps by whole pages on both sides."""
    if first is None or second is None:
        return False
    return bool(first == second if min(first, second) < page else first % page == second % page == 0)


def _covers(old: TensorSpec, new: TensorSpec, offset: int) -> bool:
    """Return whether the bytes of the old tensor cover all pages of the new one, padding included."""
    return offset + prod(new.padded_shape) <= prod(old.padded_shape)


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
    return [_merge_leaves(zip(leaves(extents), leaves(steps), strict=True)) for extents, steps in pairs]


def _window_mode(mode: Mode, start: int, count: int) -> Mode:
    """Return the leaves of `count` indices from `start` on, without steps if adding `start` carries between leaves."""
    below = 1
    for extent, _ in mode[:-1]:
        below *= extent
        if start % below + min(count, below) > below:
            return [(n, None) for n, _ in mode]
    return mode


def _join_modes(modes: list[Mode], extents: list[int]) -> Mode:
    """Return the leaves of neighbouring dimensions as those of one dimension."""
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
    for n, step in mode:
        if merged and step is not None and merged[-1][1] is not None and step == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * n, merged[-1][1])
        elif n != 1:
            merged.append((n, step))
    return merged or [(1, 0)]


def _trim_mode(mode: Mode, extent: int) -> Mode | None:
    """Return leaves for exactly `extent` indices, or None if the leaves do not end there."""
    trimmed, rest = [], extent
    for n, step in mode:
        if rest > n and rest % n:
            return None
        trimmed.append((min(n, rest), step))
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
