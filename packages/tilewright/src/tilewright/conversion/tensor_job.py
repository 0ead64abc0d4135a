# SPDX-License-Identifier: Apache-2.0
"""`TensorJob`: the conversion of one tensor, slab by slab.

A tensor's file is written under a temporary name, and renamed when it is complete and on disk. If slabs do not follow
each other in the output (it is transposed, for example), strips of it are put together in buffers and written in one
go. If they would be too large or too narrow, slabs are written in pieces, and the file is read again for its hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from threading import Lock

from ..atomic import Draft, write_file
from ..errors import FormatError
from ..files.paged_boxes import PagedBoxes
from ..files.source_file import ByteArray
from ..layout import Box
from ..memory import TensorSpec
from .assembled_source import PartValues
from .conversion_item import PAYLOAD, ConversionItem, ItemRecord, final_path
from .exactness import Rounding
from .job_memory import OutputBuffers, Scratch
from .output_file import NumberedPieces, OutputFile, PieceHashes, SourceHashes, hash_range
from .rules import needs_range_check
from .slabs import Slab, SlabCutter


@dataclass
class OpenStrip:
    """A strip of the output that is being made: its bytes in the file, its buffer, and the number of missing slabs."""

    number: int
    start: int
    nbytes: int
    slabs_left: int
    buffer: ByteArray | None = None


class TensorJob:
    """The conversion of one tensor: reads, packs, writes and hashes its slabs, from any thread."""

    def __init__(
        self, item: ConversionItem, slabs: SlabCutter, out: Path, drafts: Path, threads: int, buffers: OutputBuffers
    ) -> None:
        self.item, self.threads, self._buffers = item, threads, buffers
        slot, self.final, self._drafts = item.slot, final_path(out, item.slot), drafts
        self._begin = slot.start if slot.shared else 0  # of what is written here
        self.output_hashes = PieceHashes(self._begin)
        self.source_hashes = PieceHashes(*[tensor.byte_range[0] for tensor in item.source.tensors.values()])
        self._boxes, self._windows = PagedBoxes(item.target.spec), slabs.windows
        self._strips = slabs.strips(buffers.size, slot.step)
        is_small = all(strip.nbytes <= buffers.size for strip in self._strips)
        self._is_buffered = is_small and slot.image is None and not slabs.in_output_order
        self._strips_left, self._lock = len(self._strips), Lock()
        self.slab_count = sum([len(strip.slabs) for strip in self._strips])
        self._draft = None if slot.shared else Draft(self.final, drafts)
        self._open_file = (drafts / PAYLOAD).open("r+b", buffering=0) if self._draft is None else self._draft.file
        self._file = OutputFile(self._open_file.fileno(), self.final)
        self._may_round = item.recorded is None and item.source.may_round(item.target.spec)
        self._rounding = Rounding(0 if self._may_round else prod(item.source.value.shape))

    @property
    def can_be_hashed_later(self) -> bool:
        """Return whether all of the output is in one buffer."""
        return self._is_buffered and len(self._strips) == 1

    def steps(self) -> Iterator[tuple[OpenStrip, Slab]]:
        """Write what comes before the data, and yield the slabs with the strips that they belong to."""
        slot = self.item.slot
        if slot.head:
            self._file.write(0, slot.head)
            self.output_hashes.add_prefix(0, slot.head)
        for number, strip in enumerate(self._strips):
            state = OpenStrip(number, slot.start + strip.start, strip.nbytes, len(strip.slabs))
            if self._is_buffered:
                state.buffer = self._buffers.take(state.start, strip.nbytes)
                if len(self._windows) > 1 or not self.item.source.covers(self.item.target.spec):
                    state.buffer[:] = 0  # what no slab covers
            for slab in strip.slabs:
                yield state, slab

    def convert_slab(self, number: int, strip: OpenStrip, slab: Slab, scratch: Scratch) -> list[NumberedPieces]:
        """Read, pack and write a slab; return what has to be hashed."""
        item, window = self.item, self._windows[slab.window]
        box = slab.box.relative_to(tuple([-n for n in window.offset]))
        parts = list(item.source.read_parts(box, scratch.allocate))
        for part in parts:
            self._check_range(part)
        if not self._may_round and item.recorded is None:
            self._add_rounding(item.source.count_exceptional(parts, item.target.spec, box))
        begin = item.slot.start + slab.window * item.slot.step
        options = (scratch.allocate, item.target.pad_value, self.threads)
        sources = tuple([item.source.piece_of(name, parts) for name in item.source.tensors])
        hashed: list[NumberedPieces] = [(self.source_hashes, number, sources)]
        if strip.buffer is not None:
            pages, at = strip.buffer, begin - strip.start
            item.source.pack(parts, item.target.spec, pages, *options, box=slab.box, start=at)
            self._measure_rounding(parts, item.target.spec, pages, scratch, slab.box, at)
            return hashed
        spec, runs = self._boxes.box_spec(slab.box), self._boxes.runs(slab.box)
        start = begin + runs[0][0] if len(runs) == 1 and item.slot.image is None else None
        pages = scratch.allocate(spec.nbytes, start)
        if spec.nbytes:
            item.source.pack(parts, spec, pages, *options)
            self._measure_rounding(parts, spec, pages, scratch)
        position = 0
        for offset, size in runs:
            self._write_pages(begin, offset, pages[position : position + size])
            position += size
        return [*hashed, (self.output_hashes, number, ((start, pages),))]

    def _measure_rounding(
        self,
        parts: list[PartValues],
        spec: TensorSpec,
        pages: ByteArray,
        scratch: Scratch,
        box: Box | None = None,
        start: int = 0,
    ) -> None:
        """Count the values of a slab that were rounded."""
        if not self._may_round:
            return
        self._add_rounding(
            self.item.source.measure_rounding(parts, spec, pages, scratch.allocate, self.threads, box, start)
        )

    def _add_rounding(self, here: Rounding) -> None:
        with self._lock:
            self._rounding += here

    def _write_pages(self, begin: int, offset: int, pages: ByteArray) -> None:
        """Write pages with an offset in the tensor, whose data begin at `begin`."""
        image = self.item.slot.image
        for at, piece in [(begin + offset, pages)] if image is None else image.scatter_pages(offset, pages):
            self._file.write(at, piece)

    def finish_slab(self, strip: OpenStrip) -> bool:
        """Count a finished slab, and return whether it was the last one of its strip."""
        with self._lock:
            strip.slabs_left -= 1
            return strip.slabs_left == 0

    def strip_pieces(self, strip: OpenStrip) -> list[NumberedPieces]:
        """Return what has to be hashed of a finished strip."""
        pieces = ((strip.start, strip.buffer),)
        return [] if strip.buffer is None else [(self.output_hashes, strip.number, pieces)]

    def finish_strip(self, strip: OpenStrip) -> bool:
        """Write a strip that is hashed, and return whether it was the last one."""
        if strip.buffer is not None:
            self._file.write(strip.start, strip.buffer)
            self._buffers.release(strip.buffer)
            strip.buffer = None
        with self._lock:
            self._strips_left -= 1
            return self._strips_left == 0

    def _check_range(self, part: PartValues) -> None:
        """Raise if integers do not fit the target's format."""
        values = part.values
        source, target = self.item.source.tensors[part.part.source].format, self.item.target.spec.dtype
        if values.size and source is not None and needs_range_check(source, target):
            low, high, limits = int(values.min()), int(values.max()), target.limits
            if low < limits.lowest or high > limits.highest:
                worst = low if low < limits.lowest else high
                raise FormatError(
                    f"{self.item.name} contains {worst}, which does not fit {target}; choose another dtype for it, or"
                    " leave it out with skip = true"
                )

    def finish(self, source_hashes: SourceHashes) -> ItemRecord:
        """Flush the file, give it its name, and return the record with the hashes."""
        item, slot, tensors = self.item, self.item.slot, list(self.item.source.tensors.values())
        for stream, tensor in enumerate(tensors):
            if self.source_hashes.in_order[stream] and self.source_hashes.position(stream) == tensor.byte_range[1]:
                source_hashes.add(tensor, self.source_hashes.hexdigest(stream))
        hashes = tuple([source_hashes.get(tensor) for tensor in tensors])
        if not slot.shared:  # a shared file is extended beforehand, and flushed when it is complete
            self._file.extend(slot.size)
        output_hash = self.output_hashes.hexdigest(0)
        if not self.output_hashes.in_order[0] or self.output_hashes.position(0) != slot.size:
            output_hash = hash_range(Path(self._open_file.name), self._begin, slot.size)
        if self._draft is not None:
            for name, content in slot.beside.items():
                write_file(self.final.with_name(name), content, folder=self._drafts)
            self._draft.commit()
        self._close()
        time = 0 if slot.shared else self.final.stat().st_mtime_ns
        files = tuple([tensor.file_state for tensor in tensors])
        return ItemRecord(item.key, hashes, output_hash, files, time, self._rounding)

    def abandon(self) -> None:
        """Close the file, and remove it unless it is shared."""
        self.stop_waiting()
        if self._draft is not None:
            self._draft.discard()
        self._close()

    def stop_waiting(self) -> None:
        """Release all threads that wait for a piece: it will never come."""
        self.output_hashes.abandon()
        self.source_hashes.abandon()

    def _close(self) -> None:
        self._file.close()
        self._open_file.close()
