# SPDX-License-Identifier: Apache-2.0
"""Memory maps: the bytes of every bank of an allocator, with free and unused blocks; the bytes of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..._text import count_of
from ...conversion import Capacity
from ...errors import LayoutError
from ...files import Inspection
from ...memory import Allocation, Allocator, BufferType, Device, MemoryView
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Scene, Span, Tracks
from ..scene_options import SceneOptions, scene_function

if TYPE_CHECKING:
    from typing_extensions import Unpack

UNUSED = "allocated, unused"  # a block is allocated in all banks, but some hold no page of the tensor
_MAX_LABELED = 16  # tracks on which the label "free" is repeated
_MAX_PAGES = 64  # of a tensor whose pages are drawn
_CLOSE_UP = 4  # show only the used part if it is less than 1/4 of the memory


@scene_function
def memory_scene(
    memory: Allocator | Device,
    *,
    buffer_type: BufferType | str | None = None,
    each: bool = False,
    names: Mapping[int, str] | None = None,
    whole: bool = False,
    side: int = MAX_SIDE,
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the map of the memories of a chip: banks as tracks over addresses, with tensors and free blocks.

    `buffer_type` is "l1" or "dram"; by default every memory is drawn that holds something, or both if none does.
    Banks with the same contents share a track, unless `each` asks for every bank, with the pages of small tensors;
    `side` is the most tracks that are drawn. `names` names tensors by their allocation number. The axis shows the part
    that is used, or with `whole` the whole memory. `options` are the common scene options.

    >>> import tilewright as tw
    >>> allocator = tw.Allocator("wormhole_n150")
    >>> _ = allocator.allocate(tw.TensorSpec((512, 512), "bfloat16", "tile", memory="l1", chip="wormhole_n150"))
    >>> (tracks,) = memory_scene(allocator, names={0: "weights"}).panels
    >>> tracks.names, [(span.label, span.start) for span in tracks.spans if not span.hatched]
    (('banks 0 to 63',), [('weights', 1490944)])
    """
    allocator = memory.allocator if isinstance(memory, Device) else memory
    if buffer_type is not None:
        views = [allocator.memory_view(buffer_type)]
    else:
        everything = [allocator.memory_view(name) for name in ("l1", "dram", "l1_small", "trace")]
        views = [view for view in everything if view.allocations] or everything[:2]
    maps = [_draw_memory(allocator, view, each, names or {}, whole, side) for view in views]
    *others, last = [str(view.buffer_type) for view in views]
    prefixes = [f"{name}: " for name in (*others, last)] if others else [""]
    drawn = list(zip(prefixes, maps, strict=True))
    return Scene(
        f"{', '.join(others)} and {last} of {allocator.chip.name}" if others else f"{last} of {allocator.chip.name}",
        tuple([replace(tracks, title=prefix + tracks.title) for prefix, (tracks, _, _) in drawn]),
        tuple([replace(fact, name=prefix + fact.name) for prefix, (_, facts, _) in drawn for fact in facts]),
        " ".join([prefix + note for prefix, (_, _, note) in drawn if note]),
    )


@scene_function
def capacity_scene(report: Capacity, *, side: int = MAX_SIDE, **options: Unpack[SceneOptions]) -> Scene:
    """Return the stack of a bank of DRAM: the part that a model takes, by kind.

    `side` is the most tracks that are drawn; `options` are the common scene options.

    >>> import tilewright as tw
    >>> from tilewright.conversion import capacity
    >>> weight = tw.TensorSpec((1, 1, 4096, 4096), "bfloat8_b", "tile", memory="dram")
    >>> [span.label for span in capacity_scene(capacity([(weight, 200)], "N150")).panels[0].spans]
    ['weights', 'free']
    """
    allocator, names = report.stack()
    scene = memory_scene(allocator, buffer_type="dram", names=names, whole=True, side=side)
    panels = tuple([replace(panel, title="what each bank holds") for panel in scene.panels])
    facts = tuple([Fact(kind, f"{size} bytes of each bank") for kind, size in report.by_kind().items()])
    return Scene(f"DRAM of {report.machine}, each of {count_of(prod(report.mesh), 'device')}", panels, facts)


def _draw_memory(
    allocator: Allocator, view: MemoryView, every_bank: bool, names: Mapping[int, str], whole: bool, side: int
) -> tuple[Tracks, list[Fact], str]:
    """Return one memory as tracks, with its facts and a note."""
    start = allocator.start_address(view.buffer_type)
    end = start + view.bank_bytes
    labels = {block.number: _allocation_label(block, names) for block in view.allocations}
    groups = _group_banks(view.num_banks, view.allocations, every_bank)
    free = _free_ranges([(block.single_address, block.end) for block in view.allocations], start, end)
    low, high = (start, end) if whole else _shown_range(view.allocations, start, end)
    spans: list[Span] = []
    for track, (_, used) in enumerate(groups):
        for block in view.allocations:
            if block.number in used:
                spans += _block_spans(track, block, labels[block.number], every_bank)
            else:
                note = f"{_describe_block(block, labels[block.number])}; allocated in this bank, but unused"
                spans.append(Span(track, block.address, block.end, "", UNUSED, True, note, block.number))
        for first, last in free:
            first, last = max(first, low), min(last, high)
            if first < last:
                note = f"free: {first} to {last}, {last - first} bytes"
                spans.append(
                    Span(track, first, last, "free" if len(groups) <= _MAX_LABELED else "", "free", True, note)
                )
    drawn = tuple(name for name, _ in groups)
    tracks = Tracks(drawn, tuple(spans), low, high, "bytes", "what each bank holds").first(side)
    note = "" if (low, high) == (start, end) else f"Addresses {low} to {high} of {start} to {end}."
    return tracks, _memory_facts(view, free, {used for _, used in groups}), note


def _describe_block(block: Allocation, label: str) -> str:
    return f"{label}: {block.address} to {block.end}, {block.size} bytes"


def _block_spans(track: int, block: Allocation, label: str, every_bank: bool) -> list[Span]:
    """Return a tensor in one bank as a span; if every bank is drawn and its pages are few, one span for every page."""
    note = _describe_block(block, label)
    whole = [Span(track, block.address, block.end, label, label, note=note, link=block.number)]
    spec = block.spec
    if not every_bank or spec is None or spec.num_pages > _MAX_PAGES:
        return whole
    table = spec.pages(base=block.address)
    size = spec.aligned_page_bytes
    pages = [(page, int(table.address[page])) for page in np.flatnonzero(table.bank == track).tolist()]
    spans = [
        Span(track, at, at + size, f"P{page}", label, False, f"P{page}: {at} to {at + size}, of {label}", block.number)
        for page, at in pages
    ]
    gaps = _free_ranges([(at, at + size) for _, at in pages], block.address, block.end)
    unused = [
        Span(track, first, last, "", UNUSED, True, f"{first} to {last} of {label}: allocated, but unused", block.number)
        for first, last in gaps
    ]
    return [*spans, *unused]


def _allocation_label(block: Allocation, names: Mapping[int, str]) -> str:
    if block.number in names:
        return names[block.number]
    if block.spec is None:
        return f"#{block.number}"
    return f"#{block.number} {'x'.join(map(str, block.spec.shape.logical))} {block.spec.dtype}"


def _group_banks(banks: int, allocations: tuple[Allocation, ...], every_bank: bool) -> list[tuple[str, frozenset[int]]]:
    """Return (name, numbers of the tensors that use it) of every bank, or of every set of banks that are alike."""
    users: list[set[int]] = [set() for _ in range(banks)]
    for block in allocations:
        for bank in range(banks) if block.spec is None else block.spec.used_banks:
            users[bank].add(block.number)
    if every_bank:
        return [(f"bank {bank}", frozenset(blocks)) for bank, blocks in enumerate(users)]
    alike: dict[frozenset[int], list[int]] = {}
    for bank, blocks in enumerate(users):
        alike.setdefault(frozenset(blocks), []).append(bank)
    return [(_describe_banks(banks), used) for used, banks in alike.items()]


def _describe_banks(banks: list[int]) -> str:
    if len(banks) == 1:
        return f"bank {banks[0]}"
    if banks == list(range(banks[0], banks[-1] + 1)):
        return f"banks {banks[0]} to {banks[-1]}"
    return f"{len(banks)} banks from {banks[0]}"


def _free_ranges(allocated: Iterable[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Return the rest between `start` and `end`."""
    ranges = []
    for first, last in sorted(allocated):
        if start < first:
            ranges.append((start, first))
        start = last
    return [*ranges, (start, end)] if start < end else ranges


def _shown_range(allocations: tuple[Allocation, ...], start: int, end: int) -> tuple[int, int]:
    if not allocations:
        return start, end
    low, high = allocations[0].address, allocations[-1].end
    if (high - low) * _CLOSE_UP >= end - start:
        return start, end
    margin = (high - low) // _CLOSE_UP
    return max(start, low - margin), min(end, high + margin)


def _memory_facts(view: MemoryView, free: list[tuple[int, int]], contents: set[frozenset[int]]) -> list[Fact]:
    used = view.allocated / view.bank_bytes if view.bank_bytes else 0.0
    whole = len(free) <= 1
    alike = "all of them hold the same tensors" if len(contents) == 1 else f"which hold {len(contents)} sets of tensors"
    return [
        Fact("banks", f"{view.num_banks} of {view.bank_bytes} bytes, {alike}"),
        Fact("tensors", str(len(view.allocations))),
        Fact("allocated", f"{view.allocated} bytes of each bank ({used:.1%})"),
        Fact("free", f"{view.free} bytes in {len(free)} block{'s' * (len(free) != 1)}"),
        Fact("largest free block", f"{view.largest_free} bytes", "good" if whole else "bad"),
    ]


@scene_function
def inspection_scene(
    inspection: Inspection, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the bytes of every file of an `inspection`, and the tensors in them.

    `side` is the most files that are drawn, and `title` the picture's title. `options` are the common scene options.

    >>> import tempfile
    >>> import tilewright as tw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((4, 4)))
    ...     scene = inspection_scene(tw.inspect(folder))
    >>> [(span.label, span.end - span.start) for span in scene.panels[0].spans]
    [('x', 128)]
    """
    if not inspection.tensors:
        raise LayoutError(f"cannot draw {inspection.path}: it holds no tensors")
    files = list(dict.fromkeys(tensor.path for tensor in inspection.tensors))[:side]
    spans = tuple(
        Span(
            files.index(tensor.path),
            *tensor.byte_range,
            tensor.name,
            tensor.format or tensor.kind,
            note=f"{list(tensor.shape)} {tensor.format or tensor.kind}, {tensor.placed}, {tensor.nbytes} bytes",
        )
        for tensor in inspection.tensors
        if tensor.path in files and tensor.nbytes
    )
    end = max([1, *(tensor.byte_range[1] for tensor in inspection.tensors)])
    panels = (Tracks(tuple(Path(tensor).name for tensor in files), spans, 0, end, "bytes", "bytes of each file"),)
    padding = sum(tensor.padding_bytes for tensor in inspection.tensors)
    facts = (
        Fact("kind", inspection.kind),
        Fact("tensors", str(len(inspection.tensors))),
        Fact("bytes", str(inspection.nbytes)),
        Fact("padding", f"{padding} bytes ({100 * padding / max(1, inspection.nbytes):.3g} %)"),
    )
    return Scene(title or Path(inspection.path).name, panels, facts)
