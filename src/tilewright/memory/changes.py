# SPDX-License-Identifier: Apache-2.0
"""What a change of a tensor costs: nothing (a view), moving bytes (a copy), or taking elements out of their tiles.

Both sides are layouts over the same coordinates, the new tensor's. Cut into common leaves, they say it all: where every
leaf has the same step on both sides nothing moves; where leaves inside a page stay as they are and all others step by
whole pages, whole pages move; anything else moves single elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..copying.refinement import Leaf, common_leaves
from ..errors import MemoryConfigError
from ..formats import BlockFormat
from ..layout.tuples import leaves
from .kinds import Choice, TensorLayout
from .spec import TensorSpec

Mode = list[tuple[int, Any]]


class ChangeKind(Choice):
    """What a change costs: a view moves nothing, a copy moves bytes, untilize takes elements out of their tiles.

    >>> ChangeKind.of("view")
    ChangeKind.VIEW
    """

    VIEW = 0
    COPY = 1
    UNTILIZE = 2


@dataclass(frozen=True, slots=True)
class Change:
    """A new spec for a tensor, and what it takes to get there: in the banks, and in the pages on the host.

    >>> print(reshaped(TensorSpec((2, 64, 64), layout="tile"), (128, 64)))
    VIEW: [128, 64]: every element stays where it is
    """

    spec: TensorSpec
    kind: ChangeKind
    on_host: ChangeKind
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.spec.shape}: {self.reason}"


def reshaped(spec: TensorSpec, shape: Any) -> Change:
    """Return the change to another shape with the same elements in the same order; one extent may be -1.

    >>> str(reshaped(TensorSpec((64, 64), layout="tile"), (32, 128)).kind)
    'UNTILIZE'
    >>> reshaped(TensorSpec((4, 8)), (2, -1)).on_host, reshaped(TensorSpec((4, 8)), (2, 16)).kind
    (ChangeKind.VIEW, ChangeKind.COPY)
    """
    old = spec.shape.logical
    new = _completed(old, [int(n) for n in shape])
    result = _remade(spec, shape=new)
    before, after = _modes(spec), _modes(result)
    pairs: list[list[Leaf]] = []
    for mine, theirs in _groups(old, new):
        count = prod(old[k] for k in mine)
        joined = [_joined([before[k] for k in mine], [old[k] for k in mine])]
        joined.append(_joined([after[k] for k in theirs], [new[k] for k in theirs]))
        pairs.append(common_leaves(len(pairs), joined, count))
    return _classified(spec, result, pairs, 0)


def transposed(spec: TensorSpec, *order: int) -> Change:
    """Return the change to another order of dimensions; without one, the last two are swapped.

    >>> transposed(TensorSpec((2, 3, 64, 64), layout="tile"), 1, 0, 2, 3).kind
    ChangeKind.COPY
    >>> transposed(TensorSpec((64, 64), layout="tile")).kind
    ChangeKind.UNTILIZE
    """
    rank = spec.shape.rank
    axes = [d % rank for d in order] if order else [*range(rank - 2), rank - 1, rank - 2]
    if rank < 2 or sorted(axes) != list(range(rank)):
        raise MemoryConfigError(f"{order} is no order of the {rank} dimensions of {list(spec.shape)}; name each once")
    extents = [spec.shape.logical[d] for d in axes]
    result = _remade(spec, shape=extents)
    before, after = _modes(spec), _modes(result)
    pairs = [common_leaves(k, [before[d], after[k]], extents[k]) for k, d in enumerate(axes)]
    return _classified(spec, result, pairs, 0)


def sliced(spec: TensorSpec, *box: Any) -> Change:
    """Return the change to a part of the tensor, given by a slice with step 1 for each of the first dimensions.

    >>> sliced(TensorSpec((128, 64), layout="tile"), slice(32, 96)).kind
    ChangeKind.COPY
    >>> sliced(TensorSpec((128, 64), layout="tile"), slice(16, 80)).kind
    ChangeKind.UNTILIZE
    """
    shape = spec.shape.logical
    parts = [*box, *[slice(None)] * (len(shape) - len(box))]
    if len(parts) != len(shape) or any(not isinstance(part, slice) or part.step not in (None, 1) for part in parts):
        raise MemoryConfigError(f"{box} is no box of {list(shape)}; give at most {len(shape)} slices with step 1")
    ranges = [part.indices(n)[:2] for part, n in zip(parts, shape, strict=True)]
    extents = [max(0, stop - start) for start, stop in ranges]
    result = _remade(spec, shape=extents)
    before, after = _modes(spec), _modes(result)
    pairs, offset = [], 0
    for k, (start, _) in enumerate(ranges):
        window = _window(before[k], start, extents[k])
        pairs.append(common_leaves(k, [window, after[k]], extents[k]))
        offset += _place(before[k], start)
    return _classified(spec, result, pairs, offset)


def retiled(spec: TensorSpec, layout: Any = None, tile: Any = None) -> Change:
    """Return the change to rows, or to tiles of another form.

    >>> retiled(TensorSpec((64, 64)), "tile").kind, retiled(TensorSpec((64, 64), layout="tile"), "row_major").kind
    (ChangeKind.COPY, ChangeKind.UNTILIZE)
    """
    return _in_place(spec, _remade(spec, layout=spec.layout if layout is None else layout, tile=tile))


def resharded(spec: TensorSpec, memory: Any) -> Change:
    """Return the change to another memory: whole pages move, unless rows become wider or narrower.

    >>> from tilewright import block_sharded
    >>> resharded(TensorSpec((64, 64), layout="tile", chip="n150"), block_sharded((2, 2))).kind
    ChangeKind.COPY
    """
    return _in_place(spec, spec.with_memory(memory))


def converted(spec: TensorSpec, dtype: Any) -> Change:
    """Return the change to another number format: every element stays in its tile or row, with new bytes.

    >>> converted(TensorSpec((64, 64), "float32", "tile"), "bfloat8_b").kind
    ChangeKind.COPY
    """
    return _in_place(spec, spec.with_dtype(dtype))


def _in_place(spec: TensorSpec, result: TensorSpec) -> Change:
    """Return the change between two specs of one shape."""
    before, after = _modes(spec), _modes(result)
    pairs = [common_leaves(k, [before[k], after[k]], n) for k, n in enumerate(spec.shape)]
    return _classified(spec, result, pairs, 0)


def _remade(spec: TensorSpec, **changes: Any) -> TensorSpec:
    """Return the spec with other arguments; shards that do not suit them are an error of their own."""
    arguments = {name: getattr(spec, name) for name in ("dtype", "layout", "tile", "memory", "chip", "alignment")}
    try:
        return TensorSpec(**{"shape": spec.shape.logical, **arguments, **changes})
    except MemoryConfigError as problem:
        raise MemoryConfigError(f"{problem}; the result needs a memory config of its own: reshard first") from None


def _classified(old: TensorSpec, new: TensorSpec, pairs: Sequence[Sequence[Leaf]], offset: int) -> Change:
    """Return the change, decided from the steps of the old tensor (first) and the new one (second) on each leaf."""
    if old.dtype != new.dtype:
        why = f"every element is converted from {old.dtype} to {new.dtype}"
        return Change(new, ChangeKind.COPY, ChangeKind.COPY, why)
    steps = [leaf.steps for mode in pairs for leaf in mode]
    page, same_page = old.page_elements, old.page_elements == new.page_elements
    on_pages = same_page and offset % page == 0
    stays = all(first == second and first is not None for first, second in steps)
    if stays and _has_room(old, new, offset) and (on_pages or not isinstance(old.dtype, BlockFormat)):
        if on_pages and not offset and _same_banks(old, new):
            return Change(new, ChangeKind.VIEW, ChangeKind.VIEW, "every element stays where it is")
        why = "the host keeps its bytes, but pages go to other banks"
        return Change(new, ChangeKind.COPY, ChangeKind.VIEW, why)
    if on_pages and all(_by_pages(first, second, page) for first, second in steps):
        return Change(new, ChangeKind.COPY, ChangeKind.COPY, "whole pages move")
    if old.layout is TensorLayout.TILE:
        return Change(new, ChangeKind.UNTILIZE, ChangeKind.UNTILIZE, "elements leave their tiles")
    why = "rows are cut into tiles" if new.layout is TensorLayout.TILE else "elements move to other rows"
    return Change(new, ChangeKind.COPY, ChangeKind.COPY, why)


def _by_pages(first: Any, second: Any, page: int) -> bool:
    """Return whether a leaf keeps its step inside a page, or steps by whole pages on both sides."""
    if first is None or second is None:
        return False
    return bool(first == second if min(first, second) < page else first % page == second % page == 0)


def _has_room(old: TensorSpec, new: TensorSpec, offset: int) -> bool:
    """Return whether the bytes of the old tensor cover all pages of the new one, padding included."""
    return offset + prod(new.padded_shape) <= prod(old.padded_shape)


def _same_banks(old: TensorSpec, new: TensorSpec) -> bool:
    """Return whether pages of the same number lie at the same place."""
    if old.chip != new.chip or old.memory.buffer_type is not new.memory.buffer_type:
        return False
    if old.memory.is_sharded and new.memory.is_sharded:
        return old.paging == new.paging
    return old.memory.is_sharded == new.memory.is_sharded


# Modes: the leaves of one dimension as (extent, step), innermost first.


def _modes(spec: TensorSpec) -> list[Mode]:
    layout = spec.host
    if not spec.shape.rank:
        return []
    pairs = zip(layout.shape, layout.stride, strict=True)
    return [_merged(zip(leaves(extents), leaves(steps), strict=True)) for extents, steps in pairs]


def _place(mode: Mode, index: int) -> int:
    """Return the place of an index of one dimension."""
    place = 0
    for extent, step in mode[:-1]:
        index, digit = divmod(index, extent)
        place += digit * step
    return place + index * int(mode[-1][1])


def _window(mode: Mode, start: int, count: int) -> Mode:
    """Return the leaves of count indices from start on: the same ones, or without steps where adding start carries."""
    below = 1
    for extent, _ in mode[:-1]:
        below *= extent
        if start % below + min(count, below) > below:
            return [(n, None) for n, _ in mode]
    return mode


def _joined(modes: list[Mode], extents: list[int]) -> Mode:
    """Return the leaves of neighbouring dimensions, counted row by row, as those of one."""
    found: Mode = []
    live = [k for k, extent in enumerate(extents) if extent != 1]
    for k in reversed(live):
        exact = _trimmed(modes[k], extents[k])
        if exact is None:  # nothing follows the outermost dimension, so that it need not end where its data do
            exact = modes[k] if k == live[0] else [(extents[k], None)]
        found += exact
    return _merged(found)


def _merged(mode: Iterable[tuple[int, Any]]) -> Mode:
    """Return the leaves with those joined that make one run, which another side may cut elsewhere; never none."""
    merged: Mode = []
    for n, step in mode:
        if merged and step is not None and merged[-1][1] is not None and step == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * n, merged[-1][1])
        elif n != 1:
            merged.append((n, step))
    return merged or [(1, 0)]


def _trimmed(mode: Mode, extent: int) -> Mode | None:
    """Return leaves for exactly so many indices, None where the leaves do not end there."""
    found, rest = [], extent
    for n, step in mode:
        if rest > n and rest % n:
            return None
        found.append((min(n, rest), step))
        rest = max(1, rest // n)
    return found


def _completed(old: tuple[int, ...], new: list[int]) -> tuple[int, ...]:
    count, known = prod(old), prod(n for n in new if n != -1)
    if new.count(-1) == 1 and known and count % known == 0:
        new[new.index(-1)] = count // known
    if prod(new) != count or any(n < 0 for n in new):
        raise MemoryConfigError(f"{list(old)} has {count} elements and cannot become {new}; the products must agree")
    return tuple(new)


def _groups(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Return the shortest runs of dimensions on both sides that hold the same number of elements."""
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
