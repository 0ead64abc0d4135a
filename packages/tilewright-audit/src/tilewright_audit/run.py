# SPDX-License-Identifier: Apache-2.0
"""`Run`: the calls, buffers, tensors and circular buffers of a captured graph, and the chip it ran on.

Time is the position of a node in the graph.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from tilewright.errors import FileFormatError, MemoryConfigError
from tilewright.memory import DISPATCH_MODES, BufferType, Chip, CoreRangeSet, chip_names
from tilewright.notation import parse_core_ranges

from .graph_report import ReportNode, as_integer

LOCAL_KINDS = {
    "circular_buffer_allocate": "circular buffer",
    "dataflow_buffer_allocate": "dataflow buffer",
    "scratchpad_allocate": "scratchpad",
}
_PLACED = "address buffer_type device_id layout max_size_per_bank num_cores page_size size type"
KNOWN_FIELDS = {
    kind: frozenset(names.split())
    for kind, names in {
        **dict.fromkeys(LOCAL_KINDS, "address borrows_memory core_range_set device_id globally_allocated size"),
        **dict.fromkeys(("buffer", "buffer_allocate", "buffer_deallocate"), _PLACED),
        "tensor": "address buffer_type device_id device_tensors dtype layout memory_config shape size storage_type"
        " tensor_id",
        "function_start": "call inputs name place program_cache_hit program_factory_index program_factory_type",
        "function_end": "aborted name",
        "circular_buffer_deallocate_all": "device_id",
        "capture_start": "",
        "capture_end": "",
        "program_execution": "command_queue_id device_id global_call_count physical_device_id runtime_id sub_device_id"
        " sub_device_manager_id worker_core_ranges",
        "sub_device_manager": "device_id sub_device_manager_id sub_devices",
    }.items()
}
"""The nodes that are understood, with their parameters; those at the end carry nothing that the audit needs."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call at the outermost level, such as ttnn.add, from the time `start` to the time `end`.

    `place` is the line of the program that makes it, where that was recorded.

    >>> print(Call(4, "ttnn.add", 2, 9, "model.py:7"))
    ttnn.add at model.py:7
    """

    number: int  # of its first node
    name: str
    start: int
    end: int
    place: str = ""

    @property
    def frees(self) -> bool:
        """Whether the call deallocates a tensor.

        >>> Call(4, "ttnn.deallocate", 2, 9).frees
        True
        """
        return self.name.endswith("deallocate")

    def __str__(self) -> str:
        return f"{self.name} at {self.place}" if self.place else self.name


@dataclass(slots=True)
class RunBuffer:
    """A buffer of a run: the nodes that allocate and deallocate it, and all nodes of tensors in it.

    A buffer that was there before the capture has no node that allocates it.

    >>> node = ReportNode(8, "buffer_allocate", {"address": 1048640, "size": 2048, "buffer_type": 0})
    >>> buffer = RunBuffer(8, BufferType.DRAM, 3, allocation=node)
    >>> buffer.address, buffer.is_placed
    (1048640, True)
    """

    number: int
    memory: BufferType
    start: int
    device: int = 0
    allocation: ReportNode | None = None
    node: ReportNode | None = None
    tensors: list[ReportNode] = field(default_factory=list)
    request: ReportNode | None = None  # the request of the call that allocated it, as the node of a tensor
    deallocation: ReportNode | None = None
    end: int | None = None
    last_use: int | None = None
    call: str = ""  # the name of the call that allocated it

    @property
    def address(self) -> int:
        """The address, or 0 if nothing was placed, as without dispatch.

        >>> RunBuffer(8, BufferType.DRAM, 3).address
        0
        """
        source = self.allocation if self.allocation is not None else next(iter(self.tensors), None)
        return 0 if source is None else source.integer("address") or 0

    @property
    def is_placed(self) -> bool:
        """Whether the buffer has an address.

        >>> RunBuffer(8, BufferType.L1, 3).is_placed
        False
        """
        return self.address != 0

    @property
    def recorded_bytes(self) -> int:
        """The bytes per bank that were recorded; 0 if they were not.

        >>> RunBuffer(8, BufferType.L1, 3).recorded_bytes
        0
        """
        return 0 if self.allocation is None else self.allocation.integer("max_size_per_bank") or 0

    def is_live(self, time: int) -> bool:
        """Return whether the buffer is allocated at a `time`.

        >>> RunBuffer(8, BufferType.L1, 3, end=5).is_live(4)
        True
        """
        return self.start <= time and (self.end is None or time < self.end)

    def __str__(self) -> str:
        return f"buffer {self.number} at {self.address}" if self.is_placed else f"buffer {self.number}"


@dataclass(frozen=True, slots=True)
class LocalBuffer:
    """Memory that a program takes on each of its `cores` while it runs; `in_tensor` if it is part of a tensor's.

    >>> LocalBuffer(9, "circular buffer", 4096, 105824, None, False, 3, 8).size
    4096
    """

    number: int
    kind: str
    size: int
    address: int
    cores: CoreRangeSet | None
    in_tensor: bool
    start: int
    end: int | None
    device: int = 0


@dataclass(frozen=True)
class Run:
    """The calls, buffers and local buffers of a captured graph, in order.

    >>> nodes = [
    ...     ReportNode(1, "function_start", {"name": "ttnn.empty"}),
    ...     ReportNode(2, "buffer", {"size": 2048, "buffer_type": 1}, (4,)),
    ...     ReportNode(3, "buffer_allocate", {"address": 1497088, "buffer_type": 1}, (2,)),
    ...     ReportNode(4, "tensor", {"tensor_id": 7, "address": 1497088, "storage_type": "DEVICE"}),
    ...     ReportNode(5, "function_end", {"name": "ttnn.empty"}),
    ... ]
    >>> run = build_run(nodes)
    >>> print(run.buffers[0], len(run.buffers[0].tensors), run.call_at(2).name)
    buffer 3 at 1497088 1 ttnn.empty
    """

    nodes: Sequence[ReportNode]
    calls: tuple[Call, ...]
    buffers: tuple[RunBuffer, ...]
    local_buffers: tuple[LocalBuffer, ...]

    def on_each_device(self) -> dict[int, Run]:
        """Return the run as each device saw it: tensors are on all devices of a mesh, local buffers on one.

        >>> Run((), (), (), ()).on_each_device()
        {}
        """
        by_device: dict[int, list[LocalBuffer]] = {}
        for local in self.local_buffers:
            by_device.setdefault(local.device, []).append(local)
        return {device: replace(self, local_buffers=tuple(part)) for device, part in by_device.items()}

    @property
    def is_placed(self) -> bool:
        """Whether addresses were recorded; a run without dispatch has none.

        >>> Run((), (), (), ()).is_placed
        False
        """
        return any(buffer.is_placed for buffer in self.buffers)

    def call_at(self, time: int) -> Call | None:
        """Return the call at a `time`, or the last one before it.

        >>> Run((), (Call(1, "ttnn.add", 0, 5),), (), ()).call_at(3).name
        'ttnn.add'
        """
        position = bisect_right(self.calls, time, key=lambda call: call.start)
        return self.calls[position - 1] if position else None

    def name_call(self, time: int) -> str:
        """Return the name of the call at a `time`, with its place, or nothing before the first.

        >>> Run((), (), (), ()).name_call(0)
        ''
        """
        call = self.call_at(time)
        return "" if call is None else str(call)


def build_run(nodes: Iterable[ReportNode]) -> Run:
    """Return the run that the `nodes` of a graph describe; nodes that do not belong anywhere are left out.

    >>> build_run([]).buffers
    ()
    """
    return _RunBuilder(tuple(nodes)).build()


class _RunBuilder:
    """Builds a run from nodes, in one pass and a second one for what points ahead."""

    def __init__(self, nodes: tuple[ReportNode, ...]) -> None:
        self.nodes = nodes
        self.by_number = {node.number: node for node in nodes}
        self.allocated_nodes = {
            node.connections[0] for node in nodes if node.kind == "buffer_allocate" and node.connections
        }
        self.calls: list[Call] = []
        self.buffers: list[RunBuffer] = []
        self.locals: list[LocalBuffer] = []
        self.open_locals: list[LocalBuffer] = []
        self.by_buffer_node: dict[int, RunBuffer] = {}  # the buffer that was allocated last for a buffer node
        self.live: dict[tuple[BufferType, int, int], RunBuffer] = {}  # by memory, device and address
        self.places: dict[tuple[BufferType, int, int], list[RunBuffer]] = {}
        self.owner: dict[int, RunBuffer] = {}  # of tensor nodes
        self.open_calls: list[tuple[ReportNode, int]] = []

    def build(self) -> Run:
        for time, node in enumerate(self.nodes):
            self._add_node(time, node)
        if self.open_calls:
            self._close_call(*self.open_calls[0], len(self.nodes))
        self.locals += self.open_locals
        for buffer in self.buffers:
            self._attach_tensors(buffer)
            self.places.setdefault((buffer.memory, buffer.device, buffer.address), []).append(buffer)
        for time, node in enumerate(self.nodes):
            if node.kind == "tensor" and node.number not in self.owner:
                self._attach_by_address(time, node)
        self._find_uses()
        local_buffers = tuple(sorted(self.locals, key=lambda local: local.start))
        run = Run(self.nodes, tuple(self.calls), tuple(self.buffers), local_buffers)
        for buffer in run.buffers:
            buffer.call = run.name_call(buffer.start)
        return run

    def _add_node(self, time: int, node: ReportNode) -> None:
        if node.kind == "function_start":
            self.open_calls.append((node, time))
        elif node.kind == "function_end" and self.open_calls:
            first = self.open_calls.pop()
            if not self.open_calls:
                self._close_call(*first, time)
        elif node.kind == "buffer":
            self._add_earlier_buffer(node)
        elif node.kind == "buffer_allocate":
            self._allocate(time, node)
        elif node.kind == "buffer_deallocate":
            self._deallocate(time, node)
        elif node.kind in LOCAL_KINDS:
            self.open_locals.append(_read_local(time, node))
        elif node.kind == "circular_buffer_deallocate_all":
            # The device here may be the mesh and there the chip, so that all of them end.
            self.locals += [replace(local, end=time) for local in self.open_locals]
            self.open_locals = []

    def _close_call(self, node: ReportNode, start: int, end: int) -> None:
        self.calls.append(Call(node.number, node.text("name"), start, end, node.text("place")))

    def _add_earlier_buffer(self, node: ReportNode) -> None:
        """Add a buffer that no node allocates: it was there before the capture."""
        memory = _memory_of(node)
        if node.number in self.allocated_nodes or memory is None or node.number in self.by_buffer_node:
            return
        buffer = RunBuffer(node.number, memory, 0, node.integer("device_id") or 0, node=node)
        self.buffers.append(buffer)
        self.by_buffer_node[node.number] = buffer

    def _allocate(self, time: int, node: ReportNode) -> None:
        memory = _memory_of(node)
        if memory is None:
            return
        source = self.by_number.get(node.connections[0]) if node.connections else None
        owner = source if source is not None and source.kind == "buffer" else None
        buffer = RunBuffer(node.number, memory, time, node.integer("device_id") or 0, node, owner)
        buffer.request = _read_request(self.open_calls[-1][0]) if self.open_calls else None
        self.buffers.append(buffer)
        if owner is not None:
            self.by_buffer_node[owner.number] = buffer
        if buffer.is_placed:
            self.live[memory, buffer.device, buffer.address] = buffer

    def _deallocate(self, time: int, node: ReportNode) -> None:
        buffer = self.by_buffer_node.get(node.connections[0]) if node.connections else None
        memory, address = _memory_of(node), node.integer("address") or 0
        if memory is None:
            return
        here = self.live.get((memory, node.integer("device_id") or 0, address)) if address else None
        if buffer is None or buffer.end is not None or buffer.memory is not memory:
            buffer = here
        elif here is not None and buffer.address != address:
            buffer = here  # a connection of a database may be counted in another graph
        if buffer is None or buffer.end is not None:
            return
        buffer.end, buffer.deallocation = time, node
        key = buffer.memory, buffer.device, buffer.address
        if self.live.get(key) is buffer:
            del self.live[key]

    def _attach_tensors(self, buffer: RunBuffer) -> None:
        if buffer.node is None:
            return
        for number in buffer.node.connections:
            node = self.by_number.get(number)
            if node is not None and node.kind == "tensor":
                buffer.tensors.append(node)
                self.owner[number] = buffer

    def _attach_by_address(self, time: int, node: ReportNode) -> None:
        """Attach a tensor that no buffer is connected to, if a buffer is at its address then."""
        address, memory = node.integer("address"), _memory_of(node)
        if not address or memory is None:
            return
        device = node.integer("device_id") or 0
        for buffer in self.places.get((memory, device, address), ()):
            if buffer.is_live(time):
                buffer.tensors.append(node)
                self.owner[node.number] = buffer
                return

    def _find_uses(self) -> None:
        """Find when each buffer was used last: when a tensor in it was an input, or the result of a call."""
        deallocates = {call.number for call in self.calls if call.frees}
        for time, node in enumerate(self.nodes):
            if node.kind != "function_start" or node.number in deallocates or node.text("name").endswith("deallocate"):
                continue
            for number in node.inputs:
                buffer = self.owner.get(number)
                if buffer is not None:
                    buffer.last_use = max(time, buffer.last_use or 0)


def _memory_of(node: ReportNode) -> BufferType | None:
    """Return the memory that a node is about, or None if it names none of a chip."""
    number = node.integer("buffer_type")
    for memory in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL, BufferType.TRACE):
        if memory.value == number or (number is None and memory.name == node.text("type")):
            return memory
    return None


def _read_request(call: ReportNode) -> ReportNode | None:
    """Return the request of a call that creates a tensor, as the node of a tensor, or None for other calls."""
    if not call.text("name").endswith("create_device_tensor"):
        return None
    starts = {"shape": "Shape(", "dtype": "DataType::", "layout": "Layout::", "memory_config": "MemoryConfig("}
    params = {name: text for text in call.arguments for name, start in starts.items() if text.startswith(start)}
    return ReportNode(call.number, "tensor", params) if len(params) == len(starts) else None


def _read_local(time: int, node: ReportNode) -> LocalBuffer:
    try:
        cores: CoreRangeSet | None = parse_core_ranges(node.text("core_range_set"))
    except FileFormatError:
        cores = None
    in_tensor = any(node.integer(name) == 1 for name in ("globally_allocated", "borrows_memory"))
    size, address = node.integer("size") or 0, node.integer("address") or 0
    device = node.integer("device_id") or 0
    return LocalBuffer(node.number, LOCAL_KINDS[node.kind], size, address, cores, in_tensor, time, None, device)


_MAX_HARVESTED = 4
_MAX_EXTENT = 1024  # cores in a row, DRAM banks
_MAX_ADDRESS = 2**48


MACHINES = {
    "wormhole": {1: "N150", 2: "N300", 4: "N150x4", 8: "T3K", 32: "TG"},
    "blackhole": {1: "P150", 2: "P300", 4: "P150x4", 8: "P150x8", 32: "BHGLX"},
}
"""The machines by their architecture and number of devices, as tt_transformers calls them."""
_CARDS = {"N300": "n300", "T3K": "n300", "P300": "p300"}  # with two chips each


def name_machine(chip: Chip, devices: int) -> str:
    """Return the name of a machine with `devices` devices, each a `chip`, or nothing if there is none.

    >>> name_machine(Chip.named("wormhole_n300"), 8), name_machine(Chip.named("wormhole_n300"), 3)
    ('T3K', '')
    """
    return MACHINES.get(chip.arch.lower().partition("_")[0], {}).get(devices, "")


def candidate_chips(devices: Sequence[Mapping[str, Any]], boards: Sequence[str] = (), count: int = 1) -> list[Chip]:
    """Return the chips that the first of `devices` of a report may be, the most likely first; all if there is none.

    `boards` are the types of the cards, where the report has them, and `count` is the number of devices: chips of such
    cards, and of such machines, come first.

    >>> device = {"arch": "WORMHOLE_B0", "num_x_compute_cores": 8, "num_y_compute_cores": 8, "num_dram_channels": 12}
    >>> [chip.name for chip in candidate_chips([device])][:2]
    ['wormhole_n150', 'wormhole_n300']
    """
    if not devices:
        return [Chip.named(name) for name in _ordered_names()]
    device = devices[0]
    arch = device.get("arch")
    known = [chip for chip in _variants() if not isinstance(arch, str) or chip.arch.lower() == arch.lower()]
    matching = list(dict.fromkeys(_fit_device(chip, device) for chip in known if _matches(chip, device)))
    if not matching:
        resized = [_resize(chip, device) for chip in map(Chip.named, _ordered_names()) if chip in known]
        matching = [chip for chip in resized if chip is not None]
    exact = [chip for chip in matching if chip in _variants()]
    chips = list(dict.fromkeys([*exact, *matching]))

    def is_unlikely(chip: Chip) -> bool:
        card = chip.name.rpartition("_")[2]
        return card not in boards if count == 1 else card != _CARDS.get(name_machine(chip, count), card)

    return sorted(chips, key=is_unlikely)


def small_l1(devices: Sequence[Mapping[str, Any]]) -> int:
    """Return the bytes at the top of L1 that the first of `devices` of a report reserves for small buffers.

    >>> small_l1([{"worker_l1_size": 1499136, "address_at_first_l1_cb_buffer": 105824, "l1_bank_size": 1385120}])
    8192
    """
    names = ("worker_l1_size", "address_at_first_l1_cb_buffer", "l1_bank_size")
    end, base, bank = [as_integer(devices[0].get(name)) or 0 for name in names] if devices else (0, 0, 0)
    return end - base - bank if base and 0 < end - base - bank < bank else 0


def _ordered_names() -> list[str]:
    return sorted(chip_names(), key=lambda name: (not name.startswith("wormhole"), name != "blackhole_p150", name))


@lru_cache(maxsize=1)
def _variants() -> tuple[Chip, ...]:
    """Return known chips with every way of dispatch and harvesting, the form that is sold first."""
    sold = [Chip.named(name, dispatch) for dispatch in DISPATCH_MODES for name in _ordered_names()]
    others = []
    for chip in sold:
        for harvested in range(_MAX_HARVESTED + 1):
            try:
                others.append(replace(chip, harvested=harvested))
            except MemoryConfigError:
                break
    return tuple(dict.fromkeys([*sold, *others]))


def _matches(chip: Chip, device: Mapping[str, Any]) -> bool:
    """Return whether a device has the cores and banks of a chip, as far as the report lists them."""
    across, down = chip.compute_grid
    recorded = {
        "num_x_compute_cores": across,
        "num_y_compute_cores": down,
        "num_dram_channels": chip.dram_banks,
        "worker_l1_size": chip.l1_end,
    }
    return all(as_integer(device.get(name)) in (None, value) for name, value in recorded.items())


def _fit_device(chip: Chip, device: Mapping[str, Any]) -> Chip:
    """Return the chip with the L1 base of a device, which moves from release to release."""
    base = as_integer(device.get("address_at_first_l1_cb_buffer"))
    if base in (None, 0, chip.l1_base):
        return chip
    try:
        return replace(chip, l1_base=base)
    except MemoryConfigError:
        return chip


def _resize(chip: Chip, device: Mapping[str, Any]) -> Chip | None:
    """Return a chip with the cores, banks and L1 of a device that is not a known one."""
    across, down = (as_integer(device.get(f"num_{axis}_compute_cores")) for axis in "xy")
    banks = as_integer(device.get("num_dram_channels")) or chip.dram_banks
    l1_end = as_integer(device.get("worker_l1_size")) or chip.l1_end
    if not across or not down or max(across, down, banks) > _MAX_EXTENT or l1_end > _MAX_ADDRESS:
        return None
    try:
        changed = replace(
            chip,
            grid=(across, down),
            harvested=0,
            dispatch_lines=0,
            storage_cores=(),
            dram_banks=banks,
            l1_end=l1_end,
            dram_noc=(),
            dram_noc_offsets=(),
        )
    except MemoryConfigError:
        return None
    return _fit_device(changed, device)
