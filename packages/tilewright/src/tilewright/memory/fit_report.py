# SPDX-License-Identifier: Apache-2.0
"""`fit`: whether tensors fit a chip together, with bytes per bank; if not, why, and alternatives that fit.

Tensors that a mesh of devices shares are given as the parts of one device: every device holds as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from .._integers import ceil_div, round_up
from .._text import count_of, format_bytes
from ..errors import MemoryConfigError, OutOfMemory, TilewrightError
from ..formats import format_of
from .allocator import Allocation, Allocator, MemoryView
from .chip import Chip, ChipLike
from .config import (
    BufferType,
    PageLayout,
    Sharding,
    as_memory,
    block_sharded,
    height_sharded,
    interleaved,
    width_sharded,
)
from .cores import CoreRangeSet, first_cores
from .placement_rules import Violation, placement_violations

if TYPE_CHECKING:
    from .spec import TensorSpec

MIN_ROW_BYTES = 4  # of a row-major row, as device operations expect it
MAX_ALTERNATIVES = 8
FitRequest: TypeAlias = "TensorSpec | Mapping[str, Any]"  # a spec, or the arguments of one
CircularBuffers: TypeAlias = "int | Sequence[int] | Mapping[str, int]"
# Smaller number formats to try, in order; block formats need tiles.
SMALLER = {
    "float64": ("float32", "bfloat16"),
    "float32": ("bfloat16", "bfloat8_b", "bfloat4_b"),
    "bfloat16": ("bfloat8_b", "bfloat4_b"),
    "float16": ("bfloat8_b", "bfloat4_b"),
    "bfloat8_b": ("bfloat4_b",),
    "int32": ("int8",),
    "uint32": ("uint16", "uint8"),
    "uint16": ("uint8",),
}
_SMALL_FORMATS = ("bfloat8_b", "bfloat4_b")  # to try for all tensors together
_PADDING = {"in_pages": "in pages", "alignment": "for alignment", "free_pages": "in free pages"}
_MAX_LISTED = 16  # tensors that are printed one by one
_STRATEGIES = {"block sharded": block_sharded, "height sharded": height_sharded, "width sharded": width_sharded}


@dataclass(frozen=True, slots=True)
class FitTensor:
    """One tensor of a `Fit`: its bytes per bank, padding and address, and its problems and warnings.

    Padding is what the banks with pages of the tensor allocate for it beyond its data, see `TensorSpec.padding_parts`.
    A tensor that breaks a rule is not allocated, and has no bytes and no padding.

    >>> from tilewright import TensorSpec, fit
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
    name: str = ""

    @property
    def total_bytes(self) -> int:
        """Return the bytes in all banks that the tensor takes, or would take.

        >>> from tilewright import TensorSpec, fit
        >>> fit(TensorSpec((60, 90), "bfloat16", "tile", memory="l1"), "wormhole_n150").tensors[0].total_bytes
        12288
        """
        return self.bytes_per_bank * self.banks

    def __str__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        lines = [label.strip()] if self.name and self.spec is None else []
        if self.spec is not None:
            place = "not allocated" if self.address is None else f"at {self.address}"
            chip = f", {self.spec.chip.name}" if self.spec.chip else ""  # which the first line of a report names
            lines.append(f"{label}{str(self.spec).removesuffix(chip)}")
            if self.banks:
                size = f"{self.bytes_per_bank} bytes in {describe_banks(self.spec)}"
                lines.append(f"  {size}, {place}, padding {self._describe_padding(self.spec)}")
            elif not self.spec.num_pages:
                lines.append("  no elements, so no bytes in any bank")
        lines += [f"  {problem}" for problem in self.problems]
        lines += [f"  note: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def _describe_padding(self, spec: TensorSpec) -> str:
        """Return the padding with its share of all bytes, and its parts."""
        parts = [(count, _PADDING[name]) for name, count in spec.padding_parts.items() if count]
        why = f", {parts[0][1]}" if len(parts) == 1 else "".join([f", {count} {words}" for count, words in parts])
        return f"{self.padding_bytes} bytes ({100 * self.padding_bytes / max(1, self.total_bytes):.0f} %{why})"


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether tensors and circular buffers fit a chip together, the problems, and alternatives.

    On a `mesh` of devices, this is for each of them. `remedies` are changes of all tensors together that would fit.
    `scope` says what was counted, where that is not all that a user may expect, and `notes` are about the request.

    >>> from tilewright import TensorSpec, fit
    >>> print(fit(TensorSpec((2048, 2048), "float32", "tile", memory="l1"), "wormhole_n150"))
    fits wormhole_n150
    [2048, 2048] float32 in tiles of 32 x 32, interleaved in L1
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
    remedies: tuple[str, ...] = ()
    mesh: tuple[int, ...] = ()
    scope: str = ""
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.fits

    @property
    def first_problem(self) -> FitTensor | None:
        """Return the first tensor that does not fit, None if there is none.

        >>> from tilewright import TensorSpec, fit
        >>> fit([TensorSpec((64, 64)), TensorSpec((1 << 20, 1 << 20))], "n150").first_problem.spec.shape
        Shape([1048576, 1048576])
        """
        return next((tensor for tensor in self.tensors if tensor.problems), None)

    def __str__(self) -> str:
        devices = f", on each of {prod(self.mesh)} devices ({' x '.join(map(str, self.mesh))})" if self.mesh else ""
        scope = f", {self.scope}" if self.scope else ""
        lines = [f"{'fits' if self.fits else 'does not fit'} {self.chip.name}{devices}{scope}"]
        lines += [f"note: {note}" for note in self.notes]
        lines += self._summarize() if len(self.tensors) > _MAX_LISTED else map(str, self.tensors)
        for view in self.memories:
            if view.allocated:
                lines.append(str(view).splitlines()[0])
                used, total = (format_bytes(each * view.num_banks) for each in (view.allocated, view.bank_bytes))
                if len(self.tensors) > 1:
                    lines.append(f"  in all {used} of {total}, {format_bytes(view.free * view.num_banks)} left")
        if self.circular_buffer_bytes:
            lines.append(f"circular buffers: {self.circular_buffer_bytes} bytes per core")
        lines += [str(problem) for problem in self.problems]
        if self.alternatives:
            lines += ["alternatives that fit, nearest first:", *(f"  {option}" for option in self.alternatives)]
        if self.remedies:
            lines += ["alternatives for all tensors together:", *(f"  {remedy}" for remedy in self.remedies)]
        return "\n".join(lines)

    def _summarize(self) -> list[str]:
        """Return the sums of many tensors, and the first one that does not fit."""
        # every bank reserves as much as the fullest one, as in the lines on each memory
        banks = {view.buffer_type: view.num_banks for view in self.memories}
        held = [(tensor, tensor.spec) for tensor in self.tensors if tensor.spec is not None and tensor.banks]
        total = sum([tensor.bytes_per_bank * banks[spec.memory.buffer_type] for tensor, spec in held])
        unused = total - sum([spec.data_bytes for _, spec in held])
        share = f"{100 * unused / max(1, total):.1f} %"
        waste = f"{format_bytes(unused)} are padding or free space in banks ({share})"
        lines = [f"{len(self.tensors)} tensors, {format_bytes(total)}, of which {waste}"]
        failed = [(k, tensor) for k, tensor in enumerate(self.tensors) if tensor.problems]
        if failed:
            k, first = failed[0]
            lines.append(f"{count_of(len(failed), 'tensor')} without a place, the first is number {k + 1}:")
            lines += [f"  {line}" for line in str(first).splitlines()]
        return lines


def check_fit(
    requests: list[FitRequest],
    spec_type: type[TensorSpec],
    chip: ChipLike | None,
    circular_buffers: CircularBuffers,
    *reserved: int,
    names: Sequence[str] = (),
    mesh: tuple[int, ...] = (),
) -> Fit:
    """Return whether specs, or arguments of a `spec_type`, fit a chip together; `reserved` are sizes for `Allocator`.

    `names` are those of the tensors, and `mesh` is the shape of the mesh whose devices hold as much each.

    >>> from tilewright import TensorSpec
    >>> bool(check_fit([TensorSpec((64, 64), memory="l1")], TensorSpec, "n150", 100_000))
    True
    """
    target = _select_chip(requests, chip)
    checked = [_check_request(item, spec_type, target) for item in requests]
    circular = _total_bytes(circular_buffers)
    allocator = Allocator(target, *reserved)
    tensors = [_allocate_tensor(spec, violations, allocator) for spec, violations in checked]
    if names:
        tensors = [replace(tensor, name=name) for tensor, name in zip(tensors, names, strict=True)]
    problems = _overlap_violations(allocator, circular)
    fits = not problems and not any(tensor.problems for tensor in tensors)
    options: list[Alternative] = []
    remedies: list[str] = []
    specs = [spec for spec, _ in checked]
    too_many = sum([bool(tensor.problems) for tensor in tensors]) > 1
    if too_many:  # no change of one tensor helps the others
        remedies = list(_remedies_for_all(specs, tensors, Allocator(target, *reserved), prod(mesh)))
    if not fits and not remedies:
        index = _tensor_to_change(specs, tensors)
        fitting = (
            option
            for option in alternatives(specs[index] or requests[index], spec_type, target)
            if _all_fit([*specs[:index], option.spec, *specs[index + 1 :]], Allocator(target, *reserved), circular)
        )
        options = list(islice(fitting, MAX_ALTERNATIVES))
    views = tuple([allocator.memory_view(kind) for kind in ("dram", "l1", "l1_small")])
    return Fit(target, fits, tuple(tensors), views, circular, tuple(problems), tuple(options), tuple(remedies), mesh)


def _remedies_for_all(
    specs: list[TensorSpec | None], tensors: list[FitTensor], allocator: Allocator, devices: int
) -> Iterator[str]:
    """Yield changes of all tensors in DRAM that would fit: smaller formats, or more devices that share them."""
    if any(spec is None or spec.memory.buffer_type is not BufferType.DRAM for spec in specs):
        return
    chip, free = allocator.chip, allocator.memory_view("dram").free
    for name in _SMALL_FORMATS:
        changed = [_as_format(spec, name) for spec in specs if spec is not None]
        needed = sum([round_up(spec.allocated_bytes, chip.allocation_alignment) for spec in changed])
        if needed <= free:
            total = format_bytes(sum([spec.nbytes for spec in changed]))
            yield f"all floating-point tensors as {name}: {total}{' on each device' if devices > 1 else ''}"
    needed = sum([tensor.bytes_per_bank for tensor in tensors])
    count = devices * ceil_div(needed, free)
    if count > devices:
        each = format_bytes(sum([tensor.total_bytes for tensor in tensors]) * devices // count)
        yield f"{count} devices that share every tensor evenly: {each} on each"


def _as_format(spec: TensorSpec, name: str) -> TensorSpec:
    """Return a floating-point spec in another format, in tiles; others, and smaller ones, stay as they are."""
    element = spec.dtype
    if not element.has_blocks and element.kind != "float":
        return spec
    arguments = {**spec.arguments(), "dtype": name, "page_layout": "tile", "memory": interleaved("dram")}
    changed = type(spec)(**{**arguments, "tile": None if not spec.is_tiled else spec.tile, "alignment": None})
    return changed if changed.nbytes < spec.nbytes else spec


def row_width_multiple(spec: TensorSpec) -> int:
    """Return the number of elements that the width of a row of `spec` should be a multiple of: 4 bytes, or a tile.

    >>> from tilewright import TensorSpec
    >>> row_width_multiple(TensorSpec((4, 3), "bfloat16")), row_width_multiple(TensorSpec((4, 3), "bfloat8_b"))
    (2, 32)
    """
    if spec.is_tiled or spec.dtype.has_blocks:
        return spec.tile.width
    return max(1, MIN_ROW_BYTES // spec.dtype.itemsize)


def _select_chip(requests: list[FitRequest], chip: ChipLike | None) -> Chip:
    """Return the chip to use, or that of the first request that has one."""
    if chip is not None:
        return Chip.of(chip)
    for request in requests:
        own = request.get("chip") if isinstance(request, Mapping) else request.chip
        if own is not None:
            return Chip.of(own)
    raise MemoryConfigError("whether tensors fit depends on the chip; choose one, such as wormhole_n150")


def _check_request(
    request: FitRequest, spec_type: type[TensorSpec], chip: Chip
) -> tuple[TensorSpec | None, list[Violation]]:
    """Return the spec on the chip, or None if it is invalid, and the violated rules."""
    try:
        spec = spec_type(**{**request, "chip": chip}) if isinstance(request, Mapping) else request.with_chip(chip)
    except MemoryConfigError as problem:
        return None, [Violation.from_error("the spec is valid", problem)]
    return spec, list(placement_violations(spec, any_size=True))


def _allocate_tensor(spec: TensorSpec | None, violations: list[Violation], allocator: Allocator) -> FitTensor:
    """Return how a tensor fits beside those that are allocated already."""
    if spec is None or violations:
        return FitTensor(spec, 0, 0, 0, None, tuple(violations))
    allocation: Allocation | None = None
    try:
        allocation = allocator.allocate(spec)
    except OutOfMemory as problem:
        violation = Violation.from_error("a free block holds the tensor", problem)
        violations = [replace(violation, remedy="see the alternatives")]
    address = allocation.address if allocation else None
    banks = len(spec.used_banks)
    return FitTensor(
        spec, spec.allocated_bytes, banks, spec.padding_bytes, address, tuple(violations), tuple(_width_warnings(spec))
    )


def _width_warnings(spec: TensorSpec) -> Iterator[str]:
    multiple = row_width_multiple(spec)
    width = spec.page_shape[1]
    if spec.num_pages and not spec.is_tiled and width % multiple:
        yield (
            f"rows of {width} x {spec.dtype} are not a multiple of {MIN_ROW_BYTES} bytes; some device operations need a"
            f" width that is a multiple of {multiple}"
        )


def _total_bytes(circular_buffers: CircularBuffers) -> int:
    """Return the bytes of all circular buffers."""
    sizes = circular_buffers.values() if isinstance(circular_buffers, Mapping) else circular_buffers
    total = sum(sizes) if isinstance(sizes, Iterable) else int(sizes)
    if total < 0:
        raise MemoryConfigError(f"circular buffers must have at least 0 bytes, got {total}")
    return int(total)


def _overlap_violations(allocator: Allocator, circular: int) -> list[Violation]:
    """Return the violation if circular buffers, at the bottom of L1, overlap tensors, at the top."""
    start = allocator.start_address("l1")
    lowest = allocator.lowest_address("l1")
    if start + circular <= lowest:
        return []
    over = start + circular - lowest
    return [
        Violation(
            "circular buffers and tensors share L1",
            f"circular buffers use L1 from {start} to {start + circular} on every core, but tensors start at {lowest}",
            remedy=f"make the buffers {over} bytes smaller, or move tensors out of L1",
        )
    ]


def _tensor_to_change(specs: list[TensorSpec | None], tensors: list[FitTensor]) -> int:
    """Return the index of the first tensor with a problem, else of the largest in L1."""
    for k, tensor in enumerate(tensors):
        if tensor.problems:
            return k

    def l1_bytes(k: int) -> int:
        spec = specs[k]
        return tensors[k].bytes_per_bank if spec is not None and spec.memory.buffer_type is BufferType.L1 else -1

    return max(range(len(tensors)), key=l1_bytes)


def _all_fit(specs: list[TensorSpec | None], allocator: Allocator, circular: int) -> bool:
    """Return whether all specs fit an empty allocator together with circular buffers."""
    try:
        for spec in specs:
            if spec is not None:
                allocator.allocate(spec)
    except TilewrightError:
        return False
    return not _overlap_violations(allocator, circular)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another spec for the same tensor, and a description of the change.

    >>> from tilewright import TensorSpec
    >>> next(alternatives(TensorSpec((64, 64), "float32", "tile", memory="l1"), TensorSpec, "n150")).change
    'float32 as bfloat16'
    """

    spec: TensorSpec
    change: str

    @property
    def bytes_per_bank(self) -> int:
        """Return the bytes that the alternative needs in each bank.

        >>> from tilewright import TensorSpec
        >>> next(alternatives(TensorSpec((64, 64), memory="l1"), TensorSpec, "n150")).bytes_per_bank
        1088
        """
        return self.spec.allocated_bytes

    def __str__(self) -> str:
        return f"{self.change}: {self.bytes_per_bank} bytes in {describe_banks(self.spec)}"


def alternatives(request: FitRequest, spec_type: type[TensorSpec], chip: ChipLike) -> Iterator[Alternative]:
    """Yield valid specs for a tensor on a chip, nearest first.

    `request` is a spec, or arguments of an invalid one; `spec_type` is `TensorSpec`.

    >>> from tilewright import TensorSpec
    >>> request = {"shape": (100, 64), "page_layout": "tile", "memory": height_sharded((4, 1), (25, 64))}
    >>> print(next(alternatives(request, TensorSpec, "n150")))
    height sharded (32, 64) on 4 cores: 4096 bytes in each of 4 banks
    """
    chip = Chip.of(chip)
    arguments = dict(request) if isinstance(request, Mapping) else request.arguments()
    arguments["chip"] = chip
    seen = set() if isinstance(request, Mapping) else {_alternative_key(request.with_chip(chip))}
    for changes, description in _candidate_changes(arguments, chip):
        try:
            spec = spec_type(**{**arguments, **changes})
            usable = not spec.violations() and spec.num_pages > 0
        except TilewrightError:
            continue
        if usable and _alternative_key(spec) not in seen:
            seen.add(_alternative_key(spec))
            yield Alternative(spec, description or _describe_memory(spec))


def _alternative_key(spec: TensorSpec) -> tuple[Any, ...]:
    """Return what distinguishes alternatives: not the grid alone if the shards stay the same."""
    usable = None if spec.violations() else spec.memory.buffer_type
    shards = spec.memory.sharding.shape if spec.memory.sharding else None
    return (spec.dtype, spec.memory.memory_layout, shards, usable)


def _candidate_changes(arguments: dict[str, Any], chip: Chip) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield changes of the arguments with descriptions, nearest first; an empty description is filled in later."""
    memory = as_memory(arguments.get("memory"))
    sharding = memory if isinstance(memory, Sharding) else memory.sharding
    is_sharded, buffer = memory.memory_layout.is_sharded, memory.buffer_type
    whole, *parts = _candidate_grids(chip, buffer if is_sharded else BufferType.L1)
    own = memory.memory_layout.name.lower().replace("_", " ")
    strategies = sorted(_STRATEGIES.items(), key=lambda strategy: strategy[0] != own)  # its own first
    if is_sharded:
        for _, make in strategies:
            for grid in (whole,) if sharding is None else (sharding.grid, whole):
                yield {"memory": make(grid, buffer_type=buffer)}, ""
        yield {"memory": interleaved("l1")}, "interleaved in L1"
    yield from _smaller_formats(arguments)
    if not is_sharded and buffer.is_l1:
        yield from (({"memory": make(whole)}, "") for _, make in strategies)
    yield {"memory": interleaved("dram")}, "interleaved in DRAM"
    for change, description in _smaller_formats(arguments):
        yield {**change, "memory": interleaved("dram")}, f"{description}, interleaved in DRAM"
    if is_sharded:
        for _, make in strategies:
            yield from (({"memory": make(grid, buffer_type=buffer)}, "") for grid in parts)


def _smaller_formats(arguments: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    element = format_of(arguments.get("dtype", "bfloat16"))
    page_layout = arguments.get("page_layout")
    tiled = page_layout is not None and PageLayout.of(page_layout) is PageLayout.TILE
    if element.has_blocks and not tiled:
        yield {"page_layout": "tile"}, f"{element} in tiles"
    for name in SMALLER.get(element.name, ()):
        change: dict[str, Any] = {"dtype": name}
        description = f"{element} as {name}"
        if format_of(name).has_blocks and not tiled:
            change["page_layout"] = "tile"
            description += " in tiles"
        yield change, description


def _candidate_grids(chip: Chip, buffer: BufferType) -> list[CoreRangeSet]:
    """Return grids of the chip to try, from all cores or banks down."""
    across, down = chip.shard_grid(buffer)
    sizes = [(across, down), (across, max(1, down // 2)), (max(1, across // 2), down), (across, 1)]
    return [first_cores(x * y, (x, y), row_wise=True) for x, y in dict.fromkeys(sizes)]


def describe_banks(spec: TensorSpec) -> str:
    """Return the number of banks with pages of a tensor as text.

    >>> from tilewright import TensorSpec
    >>> describe_banks(TensorSpec((4, 4), chip="n150"))
    'each of 4 banks'
    """
    count, sharding = len(spec.used_banks), spec.memory.sharding
    text = "one bank" if count == 1 else f"each of {count} banks"
    if sharding is None or sharding.grid.num_cores == count:
        return text
    return f"{text} (its grid has {sharding.grid.num_cores})"


def _describe_memory(spec: TensorSpec) -> str:
    """Return the memory of a tensor as text."""
    sharding = spec.memory.sharding
    if sharding is None:
        return str(spec.memory)
    name = spec.memory.memory_layout.name.lower().replace("_", " ")
    count = min(spec.paging.num_shards, len(spec.paging.cores))
    where = ("core" if spec.memory.buffer_type.is_l1 else "DRAM bank") + ("" if count == 1 else "s")
    return f"{name} {sharding.shape} on {count} {where}"
