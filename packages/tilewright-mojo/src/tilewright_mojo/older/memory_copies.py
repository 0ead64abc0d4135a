# SPDX-License-Identifier: Apache-2.0
"""Copies between the memories of a kernel: each thread copies its share, by a layout of the threads.

`copy_dram_to_sram[thread_layout=...](target, source)` and the like. Outside of a kernel, without a layout of threads,
everything is copied. Where a source is not valid, zeros are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright._dialect import unwrap
from tilewright.errors import LayoutError
from tilewright.mojo import MojoValue, brackets
from tilewright.tensor import Scalars

from ..simt.access_log import start_copy
from ..simt.kernel_thread import current_machine, is_inside_kernel


class ThreadScope(Enum):
    """The threads that share a copy: of a block, or of a warp.

    >>> ThreadScope.WARP.value
    1
    """

    BLOCK = 0
    WARP = 1


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """The distribution of a copy: the layout of the threads over the target and over the source, None if not shared.

    >>> plan = CopyPlan(None, None)
    >>> plan.scope
    <ThreadScope.BLOCK: 0>
    """

    target_threads: Any
    source_threads: Any
    swizzle: Any = None
    scope: ThreadScope = ThreadScope.BLOCK
    fill: Any = 0
    is_async: bool = False

    def copy(self, target: Any, source: Any) -> MojoValue:
        """Copy the share of the running thread; return `target`. Threads beyond the layout have none.

        >>> from tilewright.mojo.layout import TileTensor, row_major
        >>> a, b = (TileTensor([x] * 4, row_major[4]()) for x in (0, 7))
        >>> CopyPlan(None, None).copy(a, b).to_numpy().tolist()
        [7, 7, 7, 7]
        """
        layouts = [layout for layout in (self.target_threads, self.source_threads) if layout is not None]
        if not layouts:
            target.copy_from(source, fill=self.fill)
            if self.is_async:
                mark_in_flight(target)
            return target
        if not is_inside_kernel():
            raise LayoutError("a copy with a layout of threads works only inside a kernel; leave it out on the host")
        thread = current_machine("a copy of threads").thread
        worker = thread.lane if self.scope is ThreadScope.WARP else thread.index
        if worker >= unwrap(layouts[0]).size:
            return target
        ours, theirs = target, source
        if self.target_threads is not None:
            brackets = (self.target_threads,) if self.swizzle is None else (self.target_threads, self.swizzle)
            ours = target.distribute[brackets if len(brackets) > 1 else brackets[0]](worker)
        if self.source_threads is not None:
            theirs = source.distribute[self.source_threads](worker)
        ours.copy_from(theirs, fill=self.fill)
        if self.is_async:
            mark_in_flight(ours)
        return target


def mark_in_flight(target: Any) -> None:
    """Mark the valid scalars of a tensor as being copied by the running thread, which has not waited yet.

    >>> from tilewright.mojo.layout import TileTensor, row_major
    >>> mark_in_flight(TileTensor([0] * 4, row_major[4]()))  # outside of a kernel nothing has to be waited for
    """
    offsets, valid = Scalars.of(target).offsets()
    start_copy(target._store, offsets[valid])


def copy_valid(target: Any, source: Any, bound: int | None) -> None:
    """Copy the scalars of a source that are valid, and less than `bound` after its first one; leave the others.

    >>> from tilewright.mojo.layout import TileTensor, row_major
    >>> edge, tile = TileTensor([1, 2, 3], row_major[3]()).tile[2](1), TileTensor([8, 9], row_major[2]())
    >>> copy_valid(tile, edge, None)
    >>> tile.to_numpy().tolist()
    [3, 9]
    """
    (into, writable), (offsets, valid) = Scalars.of(target).offsets(), Scalars.of(source).offsets()
    if into.shape != offsets.shape or target.dtype != source.dtype:
        raise LayoutError(
            f"a masked copy needs tensors of one shape and type, got {source.shape} of {source.dtype} for"
            f" {target.shape} of {target.dtype}"
        )
    if target.readonly:
        raise LayoutError("the target of a copy is read-only")
    chosen = writable & valid if bound is None else writable & valid & (offsets - source.offset < bound)
    source._store.will_read(offsets[chosen])
    target._store.will_write(into[chosen])
    target._store.host[into[chosen]] = source._store.host[offsets[chosen]]


def plan_of(
    parameters: tuple[Any, ...], named: dict[str, Any], shares: tuple[bool, bool], is_async: bool = False
) -> CopyPlan:
    """Return the plan of a copy with parameters in brackets; `shares` tells whether target and source are shared.

    Of an asynchronous copy, `is_async`, the thread has to wait before the target is read.

    >>> from tilewright.mojo.layout import row_major
    >>> plan_of((row_major[4](),), {}, (True, False)).source_threads is None
    True
    """
    layouts = [entry for entry in parameters if hasattr(entry, "shape") and hasattr(entry, "stride")]
    names = ("thread_layout", "src_thread_layout", "src_warp_layout", "dst_thread_layout")
    first = next((named[name] for name in names if named.get(name) is not None), layouts[0] if layouts else None)
    into = named.get("dst_thread_layout") or (layouts[1] if len(layouts) > 1 else first)
    swizzle = named.get("swizzle")
    if swizzle is True:
        raise LayoutError("swizzle=True, which chooses a swizzle, is not supported; give the swizzle itself")
    if named.get("binary_op") is not None or named.get("axis") is not None:
        raise LayoutError("a copy with binary_op or axis is not supported; copy first, then compute")
    scope = named.get("thread_scope", ThreadScope.BLOCK)
    threads = (into if shares[0] else None, first if shares[1] else None)
    return CopyPlan(*threads, swizzle or None, scope, is_async=is_async)


def _copy_function(
    target_is_shared: bool, source_is_shared: bool, scope: ThreadScope | None = None, is_async: bool = False
) -> brackets[Any]:
    """Return a copy whose target or source, if shared, is distributed over the threads."""

    @brackets
    def copy(parameters: tuple[Any, ...], dst: object, src: object, *bounds: Any, **named: Any) -> MojoValue:
        if bounds:
            raise LayoutError("a copy through an iterator with bounds is one of AMD's GPUs; copy a tile instead")
        if scope is not None:
            named.setdefault("thread_scope", scope)
        return plan_of(parameters, named, (target_is_shared, source_is_shared), is_async).copy(dst, src)

    return copy


copy_dram_to_sram = copy_sram_to_dram = _copy_function(True, True)
copy_dram_to_sram_async = _copy_function(True, True, is_async=True)
copy_dram_to_local = _copy_function(False, True)
copy_sram_to_local = _copy_function(False, True, ThreadScope.WARP)
copy_local_to_dram = copy_local_to_sram = copy_local_to_shared = _copy_function(True, False)
copy_local_to_local = _copy_function(False, False)
