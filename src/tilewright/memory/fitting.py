# SPDX-License-Identifier: Apache-2.0
"""Will it fit? Bytes per bank, padding, what is free; and when not: why, in numbers, and what would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import MemoryConfigError, OutOfMemory, TilewrightError
from ..formats import ScalarFormat
from .allocator import Allocation, Allocator, MemoryView
from .alternatives import Alternative, alternatives, in_banks
from .chip import Chip
from .kinds import BufferType, TensorLayout
from .legality import Violation, placement_violations
from .spec import TensorSpec, as_spec

ROW_BYTES = 4  # the least a row-major row takes on a device, says the documentation of ttnn; pages are spaced anyway
MOST_ALTERNATIVES = 8


@dataclass(frozen=True, slots=True)
class FitTensor:
    """One tensor of a fit: what it takes of each bank, how much of that is padding, and where it would lie.

    >>> fit(TensorSpec((60, 90), "bfloat16", "tile", memory="l1"), "wormhole_n150").tensors[0].bytes_per_bank
    2048
    """

    spec: TensorSpec | None
    bytes_per_bank: int
    banks: int
    padding_bytes: int
    address: int | None
    problems: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = []
        if self.spec is not None:
            share = 100 * self.padding_bytes / max(1, self.spec.nbytes)
            place = "no place" if self.address is None else f"at {self.address}"
            lines.append(f"{self.spec.shape} {self.spec.dtype}, {self.spec.memory}")
            if self.banks:
                size = f"{self.bytes_per_bank} bytes in {in_banks(self.spec)}"
                lines.append(f"  {size}, {place}, padding {self.padding_bytes} bytes ({share:.0f} %)")
            elif not self.spec.num_pages:
                lines.append("  no elements, so no bytes in any bank")
        lines += [f"  {problem}" for problem in self.problems]
        lines += [f"  note: {warning}" for warning in self.warnings]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether tensors and circular buffers fit a chip together, why not, and what would.

    >>> print(fit(TensorSpec((2048, 2048), "float32", "tile", memory="l1"), "wormhole_n150"))
    fits wormhole_n150
    [2048, 2048] float32, interleaved in L1
      262144 bytes in each of 64 banks, at 1236992, padding 0 bytes (0 %)
    L1: 262144 of 1393312 bytes in each of 64 banks used, largest free block 1131168
    """

    chip: Chip
    fits: bool
    tensors: tuple[FitTensor, ...]
    memories: tuple[MemoryView, ...]
    circular_buffer_bytes: int
    problems: tuple[Violation, ...]
    alternatives: tuple[Alternative, ...]

    def __bool__(self) -> bool:
        return self.fits

    def __str__(self) -> str:
        lines = [f"{'fits' if self.fits else 'does not fit'} {self.chip.name}", *map(str, self.tensors)]
        lines += [str(view).splitlines()[0] for view in self.memories if view.allocated]
        if self.circular_buffer_bytes:
            lines.append(f"circular buffers: {self.circular_buffer_bytes} bytes of each core")
        lines += [str(problem) for problem in self.problems]
        if self.alternatives:
            lines += ["what would fit, nearest first:", *(f"  {each}" for each in self.alternatives)]
        return "\n".join(lines)


def fit(
    request: Any,
    chip: Any = None,
    circular_buffers: Any = 0,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
) -> Fit:
    """Return whether tensors fit a chip together with circular buffers, and the nearest alternatives if not.

    `request` is a spec or a tensor, or a list of these, allocated in order. A spec that cannot even be made is given as
    a dict of the arguments of `TensorSpec`. `circular_buffers` are bytes of each core: a number, or several, or named.

    >>> answer = fit(
    ...     TensorSpec((4096, 4096), "float32", "tile", memory="l1"), "wormhole_n150", circular_buffers=500_000
    ... )
    >>> bool(answer), answer.problems[0].problem
    (False, 'circular buffers reach from 105824 to 605824 on every core, but tensors begin at 450560')
    >>> print(answer.alternatives[0])
    float32 as bfloat16: 524288 bytes in each of 64 banks
    """
    alone = isinstance(request, Mapping) or hasattr(request, "spec") or hasattr(request, "plain")
    listed = [request] if alone or not isinstance(request, Iterable) else request
    requests = [each if isinstance(each, Mapping) else as_spec(each) for each in listed]
    machine = _machine(requests, chip)
    made = [_made(each, machine) for each in requests]
    circular = _total(circular_buffers)
    sizes = (l1_small_size, trace_region_size)
    allocator = Allocator(machine, *sizes)
    tensors = [_placed(spec, broken, allocator) for spec, broken in made]
    problems = _clash(allocator, circular)
    fits = not problems and not any(tensor.problems for tensor in tensors)
    found: list[Alternative] = []
    if not fits:
        specs = [spec for spec, _ in made]
        found = _ranked(requests, specs, tensors, machine, circular, sizes)
    views = tuple([allocator.memory_view(kind) for kind in ("dram", "l1", "l1_small")])
    return Fit(machine, fits, tuple(tensors), views, circular, tuple(problems), tuple(found))


def row_width_multiple(spec: TensorSpec) -> int:
    """Return the multiple of elements that a row should hold on a device: 4 bytes of a row, or a tile.

    >>> row_width_multiple(TensorSpec((4, 3), "bfloat16")), row_width_multiple(TensorSpec((4, 3), "bfloat8_b"))
    (2, 32)
    """
    if spec.layout is TensorLayout.TILE or not isinstance(spec.dtype, ScalarFormat):
        return spec.tile.width
    return max(1, ROW_BYTES // spec.dtype.itemsize)


def _machine(requests: list[Any], chip: Any) -> Chip:
    if chip is not None:
        return Chip.of(chip)
    for each in requests:
        named = each.get("chip") if isinstance(each, Mapping) else each.chip
        if named is not None:
            return Chip.of(named)
    raise MemoryConfigError("whether tensors fit depends on the chip; give one, as in chip='wormhole_n150'")


def _made(request: Any, chip: Chip) -> tuple[TensorSpec | None, list[Violation]]:
    """Return the spec on the chip, or the rule that forbids it."""
    try:
        spec = TensorSpec(**{**request, "chip": chip}) if isinstance(request, Mapping) else request.with_chip(chip)
    except MemoryConfigError as problem:
        return None, [Violation.told_by("the spec is legal", problem)]
    return spec, list(placement_violations(spec, any_size=True))


def _placed(spec: TensorSpec | None, broken: list[Violation], allocator: Allocator) -> FitTensor:
    if spec is None or broken:
        return FitTensor(spec, 0, 0, spec.padding_bytes if spec else 0, None, tuple(broken))
    allocation: Allocation | None = None
    try:
        allocation = allocator.allocate(spec)
    except OutOfMemory as problem:
        why = Violation.told_by("a free block holds the tensor", problem)
        broken = [replace(why, remedy="see the alternatives")]
    address = allocation.address if allocation else None
    banks = len(spec.used_banks)
    return FitTensor(
        spec, spec.allocated_bytes, banks, spec.padding_bytes, address, tuple(broken), tuple(_warnings(spec))
    )


def _warnings(spec: TensorSpec) -> Iterable[str]:
    multiple = row_width_multiple(spec)
    width = spec.page_shape[1]
    if spec.num_pages and spec.layout is TensorLayout.ROW_MAJOR and width % multiple:
        yield (
            f"rows of {width} x {spec.dtype} are not a multiple of {ROW_BYTES} bytes; some device operations want a"
            f" width that is a multiple of {multiple}"
        )


def _total(circular_buffers: Any) -> int:
    if isinstance(circular_buffers, Mapping):
        circular_buffers = circular_buffers.values()
    total = sum(circular_buffers) if isinstance(circular_buffers, Iterable) else int(circular_buffers)
    if total < 0:
        raise MemoryConfigError(f"circular buffers take {total} bytes; use 0 or more")
    return int(total)


def _clash(allocator: Allocator, circular: int) -> list[Violation]:
    """Return the clash of circular buffers, which grow from the bottom of L1, with tensors, which come from the top."""
    start = allocator.start("l1")
    lowest = allocator.lowest("l1")
    if start + circular <= lowest:
        return []
    over = start + circular - lowest
    return [
        Violation(
            "circular buffers and tensors share L1",
            f"circular buffers reach from {start} to {start + circular} on every core, but tensors begin at {lowest}",
            f"make them {over} bytes smaller, or take tensors out of L1",
        )
    ]


def _ranked(
    requests: list[Any],
    specs: list[TensorSpec | None],
    tensors: list[FitTensor],
    chip: Chip,
    circular: int,
    sizes: tuple[int, int],
) -> list[Alternative]:
    """Return the alternatives for one tensor that make everything fit, nearest first."""
    culprit = _culprit(specs, tensors)
    given = requests[culprit] if specs[culprit] is None else specs[culprit]
    found = []
    for option in alternatives(given, chip):
        changed = [option.spec if k == culprit else spec for k, spec in enumerate(specs)]
        if _all_fit(changed, chip, circular, sizes):
            found.append(option)
            if len(found) == MOST_ALTERNATIVES:
                break
    return found


def _culprit(specs: list[TensorSpec | None], tensors: list[FitTensor]) -> int:
    """Return the tensor to change: the first with a problem, else the one that takes most of each L1 bank."""
    for k, tensor in enumerate(tensors):
        if tensor.problems:
            return k

    def in_l1(k: int) -> int:
        spec = specs[k]
        return tensors[k].bytes_per_bank if spec is not None and spec.memory.buffer_type is BufferType.L1 else -1

    return max(range(len(tensors)), key=in_l1)


def _all_fit(specs: list[TensorSpec | None], chip: Chip, circular: int, sizes: tuple[int, int]) -> bool:
    allocator = Allocator(chip, *sizes)
    try:
        for spec in specs:
            if spec is not None:
                allocator.allocate(spec)
    except TilewrightError:
        return False
    return not _clash(allocator, circular)
