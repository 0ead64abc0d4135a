# SPDX-License-Identifier: Apache-2.0
"""One tensor in work: slab after slab is read, converted, written and hashed, by whichever thread takes it.

A tensor's file is written under a temporary name, and moves to its own when it is complete and on the disk.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ..atomic import Draft, write_file
from ..copying import execute, plan_copy
from ..copying.host_memory import CACHE_LINE, aligned_empty, placement_of
from ..errors import FormatError
from ..files.paged_boxes import PagedBoxes
from ..files.source_file import ByteArray
from ..layout import round_up
from ..layout.boxes import Box
from ..memory import TensorSpec
from ..memory.host_storage import as_stored_array, host_placement
from .items import Done, Item, final_path
from .output_file import OutputFile, hash_range
from .rolling_hash import Piece, RollingHash
from .slabs import Slabs, inverse
from .targets import is_checked
from .workplace import PAYLOAD

_SOURCE, _OUTPUT = 0, 1  # the streams that are hashed


class Room:
    """The memory of one thread: cut anew for every slab, never larger than it was made."""

    def __init__(self, size: int) -> None:
        self._memory: ByteArray = aligned_empty(size + 4 * CACHE_LINE, np.uint8)
        self._taken = 0

    def reset(self) -> None:
        """Take everything back."""
        self._taken = 0

    def take(self, size: int) -> ByteArray:
        """Return so many bytes that nobody else has."""
        start = self._taken
        self._taken = round_up(start + size, CACHE_LINE)
        if self._taken > len(self._memory):
            return aligned_empty(size, np.uint8)  # a few bytes more than was foreseen, at an edge
        return self._memory[start : start + size]


class Work:
    """One item while it is converted: its slabs, its hashes, and the file it is written to."""

    def __init__(self, item: Item, slabs: Slabs, out: Path, parts: Path, threads: int) -> None:
        self.item, self.slabs, self.threads = item, slabs, threads
        self.boxes = PagedBoxes(item.target.spec)
        slot, self.final = item.slot, final_path(out, item.slot)
        self.parts = parts
        self.hashes = RollingHash(item.source.byte_range[0], slot.start if slot.shared else 0)
        self._left, self._lock = len(slabs), Lock()
        self.draft = None if slot.shared else Draft(self.final, parts)
        self.opened = (parts / PAYLOAD).open("r+b", buffering=0) if self.draft is None else self.draft.file
        self.file = OutputFile(self.opened.fileno(), self.final)

    def start(self) -> None:
        """Write what comes before the data."""
        if self.item.slot.head:
            self.file.write(0, self.item.slot.head)
            self.hashes.start(_OUTPUT, self.item.slot.head)

    def convert(self, box: Box, room: Room) -> tuple[Piece, Piece]:
        """Return the pieces of source and output that are still to be hashed, after a slab was written."""
        data, start, values = self._read(box, room)
        self._check(values)
        pages, pieces = self._packed(values.transpose(self.slabs.order), box.turned(self.slabs.order), room)
        for offset, piece in pieces:
            self.file.write(offset, piece)
        single = len(pieces) == 1 and self.item.slot.image is None
        return (start, data), (pieces[0][0] if single else None, pages)

    def is_last(self) -> bool:
        """Return whether the slab that was hashed now was the last one."""
        with self._lock:
            self._left -= 1
            return self._left == 0

    def _read(self, box: Box, room: Room) -> tuple[ByteArray, int | None, Any]:
        """Return the bytes of a slab as they are stored, where they start if they are one run, and their values."""
        source = self.item.source
        if len(source.parts) > 1:
            turned = source.read(box.turned(source.order))
            return np.empty(0, np.uint8), None, turned.transpose(inverse(source.order))
        runs = source.runs(box)
        data = room.take(sum([size for _, size in runs]))
        source.file.read_runs(runs, data)
        values = source.decode(data, source.pages.spec_of(box))
        return data, runs[0][0] if len(runs) == 1 else None, values

    def _check(self, values: Any) -> None:
        source, target = self.item.source.format, self.item.target.spec.dtype
        if values.size and source is not None and is_checked(source, target):
            low, high, limits = int(values.min()), int(values.max()), target.limits
            if low < limits.lowest or high > limits.highest:
                worst = low if low < limits.lowest else high
                raise FormatError(
                    f"{self.item.name} holds {worst}, which {target} does not; choose another dtype for it, or leave"
                    " it out with skip = true"
                )

    def _packed(self, values: Any, box: Box, room: Room) -> tuple[ByteArray, list[tuple[int, ByteArray]]]:
        """Return the pages of a slab, and the pieces of the file that they are: (offset, bytes)."""
        spec, slot = self.boxes.spec_of(box), self.item.slot
        pages = room.take(spec.nbytes)
        if spec.nbytes:
            pack(values, spec, self.item.target.pad_value, pages, self.threads)
        pieces, at = [], 0
        for start, size in self.boxes.runs(box):
            piece = pages[at : at + size]
            if slot.image is None:
                pieces.append((slot.start + start, piece))
            else:
                pieces += slot.image.scatter_pages(start, piece)
            at += size
        return pages, pieces or [(slot.start, pages)]

    def finish(self) -> Done:
        """Return the hashes, after everything is on the disk and the file has its name."""
        item, slot = self.item, self.item.slot
        source, source_hash = item.source, self.hashes.hexdigest(_SOURCE)
        if not self.hashes.in_order[_SOURCE]:
            source_hash = hash_range(source.path, *source.byte_range, source.file)
        if not slot.shared:  # a shared file is hashed before it is gone on with, and synchronised when it is complete
            self.file.extend(slot.size)
        start = slot.start if slot.shared else 0
        output_hash = self.hashes.hexdigest(_OUTPUT)
        if not self.hashes.in_order[_OUTPUT]:
            output_hash = hash_range(Path(self.opened.name), start, slot.size)
        if self.draft is not None:
            for name, content in slot.beside.items():
                write_file(self.final.with_name(name), content, folder=self.parts)
            self.draft.commit()
        self.opened.close()
        time = 0 if slot.shared else self.final.stat().st_mtime_ns
        return Done(item.key, source_hash, output_hash, source.file.time, source.file.size, time)

    def give_up(self) -> None:
        """Let go of the file, and remove it unless it is shared."""
        self.hashes.give_up()
        if self.draft is not None:
            self.draft.discard()
        self.opened.close()


def pack(values: Any, spec: TensorSpec, pad_value: Any, out: ByteArray, threads: int) -> None:
    """Convert values to the pages of a spec.

    >>> out = np.zeros(4, np.uint8)
    >>> pack(np.array([[1, 2], [3, 4]]), TensorSpec((2, 2), "uint8"), 0, out, 1)
    >>> out.tolist()
    [1, 2, 3, 4]
    """
    array = as_stored_array(values, spec)
    execute(plan_copy(placement_of(array), host_placement(spec, pad_value)), array, out, threads)
