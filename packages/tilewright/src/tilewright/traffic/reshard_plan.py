# SPDX-License-Identifier: Apache-2.0
"""`ReshardPlan`: how a tensor moves from one memory to another: who sends what to whom, and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, overload

import numpy as np

from ..errors import MemoryConfigError
from ..layout import LayoutLike, compose, left_inverse
from ..memory import Allocation, CoreCoord, Device, Fit, TensorSpec, fit
from ..plain import to_plain
from ..showing import Shown
from ..tensor import Tensor
from ..tensor.page_storage import DeviceStorage
from .estimate import Bound, Estimate, Flows, link_load
from .execution import run_steps
from .noc import Endpoint, Link, NocMap
from .page_moves import PageMoves, has_equal_pages, page_moves
from .plan_json import plan_to_json
from .plan_text import explain_plan
from .requests import RequestLists, Requests, sum_pairs
from .step_choice import choose_steps
from .steps import ReshardStep
from .transfer_runs import TransferRuns

_Key = TypeVar("_Key")


@dataclass(frozen=True, repr=False)
class ReshardPlan(Shown):
    """The plan of a reshard from `source` to `target`; make one with `reshard`.

    `operation` is what was asked for, `kernel` the version of the kernels, `profiler` whether NoC events are recorded
    while it runs; `source_address` and `target_address` are those of the buffers. On a mesh, all `devices` do the same
    at the same time; everything is per device.

    >>> from tilewright import block_sharded, height_sharded, reshard
    >>> spec = TensorSpec((512, 512), page_layout="tile", memory=block_sharded((2, 1)), chip="n150")
    >>> plan = reshard(spec, spec.with_memory(height_sharded((4, 2))))
    >>> plan.traffic[(3, 1), (1, 0)], plan.total_bytes, plan.local
    (32768, 524288, 0.125)
    >>> plan.steps[0].factory, plan.cycles.bound_by.resource
    ('ReshardGenericFactory', 'link')
    """

    source: TensorSpec
    target: TensorSpec
    operation: str
    kernel: str
    profiler: bool
    source_address: int
    target_address: int
    devices: int = 1

    # What moves.

    @cached_property
    def noc_map(self) -> NocMap:
        """Return the network of the chip.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.noc_map.size
        (10, 12)
        """
        return NocMap.of(self.source.known_chip)

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to do, since source and target are equal.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.is_empty
        False
        """
        return not self.steps

    @cached_property
    def _moves(self) -> PageMoves:
        moves = page_moves(self.source, self.target, self.source_address, self.target_address)
        return moves.take(np.zeros(0, dtype=np.int64)) if self.is_empty else moves

    @cached_property
    def transfers(self) -> TransferRuns:
        """Return the bytes that move, as strided runs from an address of a core or bank to another.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> len(plan.transfers)
        4
        """
        return TransferRuns.of(self._moves, self.noc_map)

    @cached_property
    def layout(self) -> LayoutLike | None:
        """Return the layout from a slot of the source to its place in the target: a placement composed with an inverse.

        Slots count the pages of the source shard by shard. None if rows are cut into different pages.

        >>> from tilewright import block_sharded, height_sharded, reshard
        >>> spec = TensorSpec((512, 512), page_layout="tile", memory=block_sharded((2, 1)), chip="n150")
        >>> print(reshard(spec, spec.with_memory(height_sharded((4, 2)))).layout)
        (8,(2,8),2):(2048@addr,(32768@addr,1@core),16384@addr)
        """
        if not has_equal_pages(self.source, self.target):
            return None
        pages = left_inverse(self.source.paging.slots)
        layout: LayoutLike = compose(self.target.page_map.places, compose(self.target.paging.slots, pages))
        return layout

    @cached_property
    def traffic(self) -> dict[tuple[Endpoint, Endpoint], int]:
        """Return the bytes of each pair (reader, source): to a core or DRAM bank, from a core or DRAM bank.

        Pages that stay on their core are in it. What a copy takes through other cores is in `steps`.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.traffic[(1, 0), 2]
        2048
        """
        moves = self._moves
        return sum_pairs(self.noc_map, moves.target, moves.source, moves.nbytes)

    @cached_property
    def total_bytes(self) -> int:
        """Return the bytes that move, those that stay on their core included.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.total_bytes
        8192
        """
        return sum(self.traffic.values())

    @cached_property
    def local_bytes(self) -> int:
        """Return the bytes that stay on their core or in their DRAM bank.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.local_bytes
        0
        """
        return sum(nbytes for (reader, source), nbytes in self.traffic.items() if reader == source)

    @property
    def local(self) -> float:
        """Return the share of bytes that stay on their core or in their DRAM bank; 1 if nothing moves.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.local
        0.0
        """
        return self.local_bytes / self.total_bytes if self.total_bytes else 1.0

    @property
    def noc_bytes(self) -> int:
        """Return the bytes that cross the network.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.noc_bytes
        8192
        """
        return self.total_bytes - self.local_bytes

    @cached_property
    def bytes_in(self) -> dict[Endpoint, int]:
        """Return the bytes that each core or DRAM bank gets from others.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.bytes_in[0, 0]
        4096
        """
        return _sum_by([(reader, n) for (reader, source), n in self.traffic.items() if reader != source])

    @cached_property
    def bytes_out(self) -> dict[Endpoint, int]:
        """Return the bytes that each core or DRAM bank sends to others.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.bytes_out
        {0: 2048, 1: 2048, 2: 2048, 3: 2048}
        """
        return _sum_by([(source, n) for (reader, source), n in self.traffic.items() if reader != source])

    # How the runtime does it.

    @cached_property
    def steps(self) -> tuple[ReshardStep, ...]:
        """Return the operations that the runtime runs, in order; none if source and target are equal.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.steps[0].operation
        'InterleavedToShardedDeviceOperation'
        """
        addresses = self.source_address, self.target_address
        return choose_steps(self.source, self.target, self.operation, addresses, self.kernel)

    @cached_property
    def _requests(self) -> Requests:
        parts = [step.requests for step in self.steps] or [Requests.none(self.noc_map)]
        return parts[0] if len(parts) == 1 else Requests.join(parts)

    @property
    def reads(self) -> RequestLists:
        """Return the reads and barriers of each (core, RISC, NoC), in order, as runs.

        A run is (source, bytes of one read, count) or ("barrier", count).

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> reshard(spec, spec.with_memory(height_sharded((2, 1)))).reads[(1, 0), "NCRISC", "NOC_0"]
        ((2, 2048, 1), (3, 2048, 1), ('barrier', 1))
        """
        return self._requests.reads

    @property
    def writes(self) -> RequestLists:
        """Return the writes and barriers of each (core, RISC, NoC), in order, as runs.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> dict(plan.writes)
        {}
        """
        return self._requests.written

    @cached_property
    def runtime_arguments(self) -> int | None:
        """Return the words of runtime arguments of all RISCs and steps, or None if they are not known.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.runtime_arguments
        16
        """
        words = [step.runtime_arguments for step in self.steps]
        known = [count for count in words if count is not None]
        return sum(known) if len(known) == len(words) else None

    @cached_property
    def links(self) -> dict[Link, int]:
        """Return the bytes that cross each link of the network, over all steps; the busiest first.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> len(plan.links) > 4
        True
        """
        load = link_load(self.noc_map, Flows.of(self._requests))
        order = np.argsort(-load.nbytes, kind="stable")
        numbers, sizes = load.number[order].tolist(), load.nbytes[order].tolist()
        return {self.noc_map.link(number): size for number, size in zip(numbers, sizes, strict=True)}

    @property
    def busiest_link(self) -> tuple[Link, int] | None:
        """Return the link that most bytes cross, and how many; None if none is used.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.busiest_link[1]
        4096
        """
        return next(iter(self.links.items()), None)

    @cached_property
    def banks(self) -> dict[int, int]:
        """Return the bytes that each DRAM bank is read and written, over all steps.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.banks
        {0: 2048, 1: 2048, 2: 2048, 3: 2048}
        """
        flows, first = Flows.of(self._requests), self.noc_map.num_l1
        parts = [
            (int(bank) - first, int(size))
            for side in (flows.origin, flows.to)
            for bank, size in zip(side[side >= first], flows.nbytes[side >= first], strict=True)
        ]
        return dict(sorted(_sum_by(parts).items()))

    # What it costs.

    def estimate(self, profiler: bool | None = None) -> Estimate:
        """Return the estimated time of all steps, with the `profiler` of NoC events on or off.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((256, 256), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.estimate(profiler=True).cycles > plan.estimate(profiler=False).cycles
        True
        """
        chosen = self.profiler if profiler is None else profiler
        parts = [step.estimate(chosen) for step in self.steps]
        if not parts:
            return Estimate(0.0, Bound("nothing", None, 0, 0.0), self.noc_map.chip.clock_mhz or 1, True, "exact")
        longest = max(parts, key=lambda part: part.cycles)
        words = next((part.expected_error for part in parts if not part.calibrated), longest.expected_error)
        return Estimate(
            sum(part.cycles for part in parts),
            longest.bound_by,
            longest.clock_mhz,
            all(part.calibrated for part in parts),
            words,
        )

    @cached_property
    def cycles(self) -> Estimate:
        """Return the estimated time of all steps, what bounds it, and what the estimate is worth.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.cycles.calibrated
        False
        """
        return self.estimate()

    @cached_property
    def peak_l1(self) -> dict[CoreCoord, int]:
        """Return the most bytes of L1 in use on each core while source and target are both there, buffers included.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.peak_l1[0, 0]
        4096
        """
        tensors = [spec.allocated_bytes for spec in (self.source, self.target) if spec.memory.buffer_type.is_l1]
        if self.is_empty:
            tensors = tensors[:1]
        across, down = self.noc_map.chip.compute_grid
        peak = dict.fromkeys([CoreCoord(x, y) for y in range(down) for x in range(across)], sum(tensors))
        base = sum(tensors)
        for step in self.steps:
            extra: dict[CoreCoord, int] = {}
            for buffer in step.buffers:
                if not buffer.borrowed:
                    for core in buffer.cores.cores():
                        extra[core] = extra.get(core, 0) + buffer.nbytes
            for core, size in extra.items():
                peak[core] = max(peak.get(core, 0), base + size)
        return peak

    @cached_property
    def fit(self) -> Fit:
        """Return whether source and target fit the chip together, beside the buffers of the steps.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> bool(plan.fit)
        True
        """
        tensors = [self.source] if self.is_empty else [self.source, self.target]
        buffers = max((step.extra_l1 for step in self.steps), default=0)
        return fit(tensors, self.source.known_chip, circular_buffers=buffers)

    @property
    def fits(self) -> bool:
        """Return whether source and target fit the chip together, beside the buffers of the steps.

        >>> from tilewright import height_sharded, reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> plan = reshard(spec, spec.with_memory(height_sharded((2, 1))))
        >>> plan.fits
        True
        """
        return bool(self.fit)

    # Running it, and showing it.

    @overload
    def run(self, source: Tensor) -> Tensor: ...

    @overload
    def run(self, source: Sequence[Tensor]) -> list[Tensor]: ...

    @overload
    def run(self, source: Allocation, device: Device) -> Allocation: ...

    def run(
        self, source: Tensor | Sequence[Tensor] | Allocation, device: Device | None = None
    ) -> Tensor | list[Tensor] | Allocation:
        """Return the tensor in the target's memory, moved on its simulated device by the steps of the plan.

        `source` is a tensor on a device, or its allocation on `device`, or a tensor on each of several devices; it
        stays where it is.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((2, 3), "int32", chip="n150")
        >>> before = Tensor.of([[1, 2, 3], [4, 5, 6]], "int32").to_device(Device("n150"))
        >>> reshard(spec, spec.with_memory("l1")).run(before).numpy().tolist()
        [[1, 2, 3], [4, 5, 6]]
        """
        source = to_plain(source)
        if not isinstance(source, (Tensor, Allocation)):
            return [self.run(part) for part in source]
        if isinstance(source, Tensor):
            storage = source.storage
            if not isinstance(storage, DeviceStorage):
                raise MemoryConfigError(
                    "a plan runs on a device, but the tensor is on the host; use to_device(...) first"
                )
            self._validate_spec(source.spec)
            if self.is_empty:
                return source
            after = run_steps(self.steps, storage.device, storage.allocation)
            return Tensor(self.target, DeviceStorage(storage.device, after))
        if device is None:
            raise MemoryConfigError("to run on an allocation, pass its device: plan.run(allocation, device)")
        if source.spec is not None:
            self._validate_spec(source.spec)
        return run_steps(self.steps, device, source)

    def _validate_spec(self, spec: TensorSpec) -> None:
        """Raise unless a tensor of this spec is what the plan moves."""
        chip = self.source.chip
        if spec.with_chip(chip) != self.source:
            raise MemoryConfigError(f"the plan moves {self.source}, got {spec}; plan a reshard of that")

    def explain(self) -> str:
        """Return what the plan does and what it costs, as text.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> print(reshard(spec, spec).explain())
        [64, 64] bfloat16 in tiles of 32 x 32, wormhole_n150
        from interleaved in DRAM
        to   interleaved in DRAM
        source and target are equal: nothing to do
        """
        return explain_plan(self)

    def to_json(self, transfers: bool = False, reads: bool = False) -> dict[str, Any]:
        """Return the plan as plain values: a core is [x, y], a DRAM bank its number.

        With `transfers`, also every run; with `reads`, also the reads and writes of all RISCs. Both may be long.

        >>> from tilewright import reshard
        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> reshard(spec, spec.with_memory("l1")).to_json()["bytes"]
        8192
        """
        return plan_to_json(self, transfers, reads)

    def __str__(self) -> str:
        return f"{self.source.shape} {self.source.dtype}: {self.source.memory} to {self.target.memory}"

    def __repr__(self) -> str:
        steps = len(self.steps)
        return f"<ReshardPlan {self}, {self.total_bytes} bytes in {steps} step{'' if steps == 1 else 's'}>"


def _sum_by(parts: list[tuple[_Key, int]]) -> dict[_Key, int]:
    """Return the sum of the numbers of each key."""
    sums: dict[_Key, int] = {}
    for key, number in parts:
        sums[key] = sums.get(key, 0) + number
    return sums
