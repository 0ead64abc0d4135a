# SPDX-License-Identifier: Apache-2.0
"""Compare the buffers of a run with the model: page size, size, bytes per bank, cores, and their tensors.

The spec of a tensor is built from the texts of shape, dtype, layout and memory config in the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isqrt
from typing import Any

from tilewright._json import parse_json
from tilewright.errors import FileFormatError, TilewrightError
from tilewright.findings import Severity
from tilewright.memory import (
    HEIGHTS,
    WIDTHS,
    Chip,
    MemoryConfig,
    PageLayout,
    ShardSpec,
    TensorMemoryLayout,
    TensorSpec,
    placement_violations,
)
from tilewright.notation import parse_dtype, parse_memory_config, parse_shape, parse_ttnn

from .findings import AuditFinding
from .graph_report import ReportNode, as_integer
from .run import Run, RunBuffer

TILE_SHAPES = tuple([(height, width) for width in WIDTHS for height in HEIGHTS])  # wide ones are more common


@dataclass(frozen=True, slots=True)
class SpecText:
    """The description of a tensor in a report: the texts of its `shape`, `dtype`, `layout` and `memory_config`.

    >>> SpecText.of({"shape": "Shape([32, 64])", "dtype": "DataType::BFLOAT16", "layout": "Layout::TILE"}).shape
    'Shape([32, 64])'
    """

    shape: str
    dtype: str
    layout: str
    memory_config: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SpecText:
        """Return the texts among the `values` of a tensor by name; missing ones are empty.

        >>> SpecText.of({}).dtype
        ''
        """
        texts = [values.get(name) for name in ("shape", "dtype", "layout", "memory_config")]
        return cls(*[text if isinstance(text, str) else "" for text in texts])


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """The spec of a tensor, or the `problem` that prevents one: a text that is not understood, or a rule it breaks.

    If the two forms of shards in its config contradict each other, `conflict` describes it, and `other` is the spec
    with the form that does not decide.

    >>> ReadSpec(None, "the shape is missing").spec is None
    True
    """

    spec: TensorSpec | None
    problem: str = ""
    breaks_rule: bool = False
    conflict: str = ""
    other: TensorSpec | None = None


@dataclass
class SpecReader:
    """Reads specs for a chip; each text is parsed once.

    >>> config = "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1)"
    >>> texts = SpecText("Shape([48, 64])", "DataType::BFLOAT16", "Layout::TILE", config)
    >>> print(SpecReader(Chip.named("wormhole_n150")).read(texts).spec)
    [48[64], 64] bfloat16 in tiles of 32 x 32, interleaved in L1, wormhole_n150
    """

    chip: Chip
    known: dict[SpecText, ReadSpec] = field(default_factory=dict)

    def read(self, texts: SpecText) -> ReadSpec:
        """Return the spec that `texts` describe.

        >>> SpecReader(Chip.named("wormhole_n150")).read(SpecText("", "", "", "")).problem != ""
        True
        """
        if texts not in self.known:
            self.known[texts] = _read_spec(texts, self.chip)
        return self.known[texts]

    def with_other_tiles(self, spec: TensorSpec) -> list[TensorSpec]:
        """Return the specs of the same tensor in every other tile, which a report does not name.

        >>> len(SpecReader(Chip.named("n150")).with_other_tiles(TensorSpec((64, 64), page_layout="tile", chip="n150")))
        11
        """
        if spec.page_layout is not PageLayout.TILE:
            return []
        specs = []
        for tile in TILE_SHAPES:
            try:
                specs.append(spec.replace(tile=tile))
            except TilewrightError:  # its shards are not whole tiles
                continue
        return [other for other in specs if other.tile != spec.tile]


def _read_spec(texts: SpecText, chip: Chip) -> ReadSpec:
    try:
        shape, dtype = parse_shape(texts.shape).logical, parse_dtype(texts.dtype)
        config, layout = parse_memory_config(texts.memory_config), parse_ttnn(texts.layout).value
        if not isinstance(layout, PageLayout):
            raise FileFormatError(f"expected a layout such as Layout::TILE, got {texts.layout[:40]!r}")
    except TilewrightError as error:
        return ReadSpec(None, str(error))
    if config.is_sharded and config.sharding is None:
        return ReadSpec(None, f"a {config.memory_layout} config without shards has no placement")

    def build(memory: MemoryConfig) -> ReadSpec:
        tile = _tile_of_shards(memory) if layout is PageLayout.TILE else None
        try:
            spec = TensorSpec(shape, dtype, layout, tile, memory, chip)
            for violation in placement_violations(spec, any_size=True):
                return ReadSpec(None, str(violation), True)
            spec.bytes_per_bank  # noqa: B018  (the whole placement is computed here, or refused)
        except TilewrightError as error:
            return ReadSpec(None, str(error), True)
        return ReadSpec(spec)

    result = build(config)
    conflict = _find_conflict(config, result.spec)
    swapped = _swap_forms(config)
    if not conflict:
        return result
    return replace(result, conflict=conflict, other=None if swapped is None else build(swapped).spec)


def _swap_forms(config: MemoryConfig) -> MemoryConfig | None:
    """Return the config with the roles of its two forms of shards exchanged, if it has both."""
    if config.shard_spec is None or config.nd_shard_spec is None:
        return None
    if config.made_with_nd:
        return MemoryConfig(config.memory_layout, config.buffer_type, config.shard_spec)
    return MemoryConfig(config.memory_layout, config.buffer_type, nd_shard_spec=config.nd_shard_spec)


def _tile_of_shards(config: MemoryConfig) -> tuple[int, int] | None:
    """Return the largest tile that the shards of a config are whole multiples of, or None for the usual one."""
    sharding = config.sharding
    if sharding is None:
        return None
    height = sharding.shape[-2] if len(sharding.shape) > 1 else 1
    width = sharding.shape[-1]
    if height % 32 == 0 and width % 32 == 0:
        return None
    fitting = [tile for tile in TILE_SHAPES if height % tile[0] == 0 and width % tile[1] == 0]
    return max(fitting, key=lambda tile: tile[0] * tile[1], default=None)


def _find_conflict(config: MemoryConfig, spec: TensorSpec | None) -> str:
    """Return how the two forms of shards in a printed config contradict each other, or nothing."""
    matrix, general = config.shard_spec, config.nd_shard_spec
    if config.made_with_nd and general is not None and spec is not None:
        derived, layout = spec.memory.shard_spec, spec.memory.memory_layout
        if (matrix, config.memory_layout) == (derived, layout):
            return ""
        printed = "no shard_spec" if matrix is None else f"shard_spec {list(matrix.shape)}"
        label = "none" if derived is None else f"{list(derived.shape)}"
        return (
            f"it says {config.memory_layout} and {printed}, but nd_shard_spec {list(general.shape)} amounts to {layout}"
            f" and {label}"
        )
    if matrix is None or general is None or config.made_with_nd:
        return ""
    # the general form of a vector has no height
    same = (general.grid, general.orientation) == (matrix.grid, matrix.orientation)
    if same and general.shape in (matrix.shape, matrix.shape[-1:]):
        return ""
    return (
        f"shard_spec says {list(matrix.shape)} on {matrix.grid}, but nd_shard_spec says {list(general.shape)} on"
        f" {general.grid}"
    )


FACTS = {  # fields of the node that allocates a buffer, and the name of a difference
    "page_size": "page size",
    "size": "size",
    "max_size_per_bank": "bytes per bank",
    "num_cores": "cores",
}
_REASONS = {
    "page size": "a page is one tile, or one row of the tensor or shard",
    "size": "the size is the number of pages times the page size",
    "bytes per bank": "the fullest bank decides, in aligned pages",
    "cores": "cores of the shard grid that hold a shard are counted, and none if the tensor is interleaved",
}
_MAX_SHAPES = 64  # shard shapes to try as an explanation


@dataclass
class CheckedBuffer:
    """A buffer with the spec of its tensor, or None if no tensor in it has one; `tiled` are specs in other tiles.

    >>> from tilewright.memory import BufferType
    >>> CheckedBuffer(RunBuffer(8, BufferType.L1, 0)).label
    ''
    """

    buffer: RunBuffer
    spec: TensorSpec | None = None
    alike: list[TensorSpec] = field(default_factory=list)  # specs that the same facts are true of
    tensor_id: int | None = None
    explained: bool = False  # all facts agree with the spec

    @property
    def label(self) -> str:
        """The tensor in a few words.

        >>> from tilewright.memory import BufferType
        >>> CheckedBuffer(RunBuffer(8, BufferType.L1, 0), TensorSpec((4, 8)), tensor_id=5).label
        'tensor 5 [4, 8] bfloat16'
        """
        if self.spec is None:
            return "" if self.tensor_id is None else f"tensor {self.tensor_id}"
        number = "" if self.tensor_id is None else f"tensor {self.tensor_id} "
        return f"{number}{self.spec.shape} {self.spec.dtype}"

    @property
    def bytes_per_bank(self) -> int:
        """The recorded bytes in each bank, or the bytes of the model if none were recorded.

        >>> from tilewright.memory import BufferType
        >>> CheckedBuffer(RunBuffer(8, BufferType.L1, 0)).bytes_per_bank
        0
        """
        if self.buffer.recorded_bytes or self.spec is None:
            return self.buffer.recorded_bytes
        return self.spec.bytes_per_bank

    def finding(
        self,
        kind: str,
        message: str,
        recorded: int | str | None = None,
        expected: int | str | None = None,
        reason: str = "",
        remedy: str = "compare the code that made this tensor with what the report says about it",
        severity: Severity = Severity.ERROR,
        node: int | None = None,
        call: str | None = None,
        count: int = 1,
    ) -> AuditFinding:
        """Return a finding about this buffer, with its address and label.

        `kind`, `message`, `recorded`, `expected`, `reason`, `remedy`, `severity` and `count` go into the finding, as do
        `node` and `call`, by default the node and call that allocated the buffer.

        >>> from tilewright.memory import BufferType
        >>> CheckedBuffer(RunBuffer(8, BufferType.L1, 0)).finding("size", "size is 1").node
        8
        """
        node = self.buffer.number if node is None else node
        call = self.buffer.call if call is None else call
        address = self.buffer.address or None
        return AuditFinding(
            kind, message, severity, reason, remedy, count, "", node, call, address, self.label, recorded, expected
        )


def list_live(run: Run, checked: Sequence[CheckedBuffer]) -> dict[int, list[CheckedBuffer]]:
    """Return the buffers that are allocated when each call ends, by the number of the call.

    >>> from .run import build_run
    >>> list_live(build_run([]), [])
    {}
    """
    waiting = sorted(checked, key=lambda one: one.buffer.start, reverse=True)
    live: list[CheckedBuffer] = []
    result = {}
    for call in run.calls:
        while waiting and waiting[-1].buffer.start <= call.end:
            live.append(waiting.pop())
        live = [one for one in live if one.buffer.is_live(call.end)]
        result[call.number] = list(live)
    return result


def model_facts(spec: TensorSpec) -> dict[str, int]:
    """Return the expected node that allocates a buffer for `spec`, with only the cores that hold a shard.

    >>> model_facts(TensorSpec((12, 50), "bfloat16", memory="l1", chip="wormhole_n150"))
    {'page_size': 100, 'size': 1200, 'max_size_per_bank': 112, 'num_cores': 0}
    """
    sharding = spec.memory.sharding
    return {
        "page_size": spec.page_bytes,
        "size": spec.nbytes,
        "max_size_per_bank": spec.bytes_per_bank,
        "num_cores": 0 if sharding is None else min(sharding.grid.num_cores, spec.paging.num_shards),
    }


def count_differences(node: ReportNode | None, spec: TensorSpec) -> int:
    """Return how many facts of the node that allocates a buffer differ from `spec`.

    >>> spec = TensorSpec((32, 32), "bfloat16", "tile", memory="l1", chip="wormhole_n150")
    >>> count_differences(ReportNode(8, "buffer_allocate", {"page_size": 2048, "size": 4096}), spec)
    1
    """
    if node is None:
        return 0
    return sum([node.integer(name) not in (None, value) for name, value in model_facts(spec).items()])


class BufferCheck:
    """Compares buffers with the model, for the chip of a `reader` of specs, in a `run`.

    >>> from tilewright.memory import Chip
    >>> from .run import build_run
    >>> BufferCheck(build_run([]), SpecReader(Chip.named("wormhole_n150"))).check_all()
    ([], [])
    """

    def __init__(self, run: Run, reader: SpecReader) -> None:
        self.run, self.reader = run, reader

    def check_all(self) -> tuple[list[CheckedBuffer], list[AuditFinding]]:
        """Return all buffers with their specs, and their errors.

        >>> from tilewright.memory import Chip
        >>> from .run import build_run
        >>> BufferCheck(build_run([]), SpecReader(Chip.named("wormhole_n150"))).check_all()[1]
        []
        """
        checked: list[CheckedBuffer] = []
        findings: list[AuditFinding] = []
        for buffer in self.run.buffers:
            one = self._choose_spec(buffer)
            checked.append(one)
            findings += self._check_facts(one)
            findings += self._check_tensors(one)
        return checked, findings

    def _choose_spec(self, buffer: RunBuffer) -> CheckedBuffer:
        """Return the buffer with the spec that explains the record, or else most of it."""
        counts: Counter[SpecText] = Counter()
        ids: dict[SpecText, int | None] = {}
        for node in (*([] if buffer.request is None else [buffer.request]), *buffer.tensors):
            if node.text("memory_config"):
                counts[SpecText.of(node.params)] += 1
                if ids.get(SpecText.of(node.params)) is None:
                    ids[SpecText.of(node.params)] = node.integer("tensor_id")
        best: tuple[tuple[int, int, int], CheckedBuffer] | None = None
        for place, (texts, count) in enumerate(counts.items()):
            read = self.reader.read(texts)
            for spec in (read.spec, read.other):
                if spec is None:
                    continue
                one = self._explain(buffer, spec, ids[texts])
                rank = (count_differences(buffer.allocation, one.spec or spec), -count, place)
                if best is None or rank < best[0]:
                    best = rank, one
        if best is not None:
            return best[1]
        return CheckedBuffer(buffer, tensor_id=next(iter(ids.values()), None))

    def _explain(self, buffer: RunBuffer, spec: TensorSpec, tensor_id: int | None) -> CheckedBuffer:
        """Return the buffer with a spec, in the tile that explains the facts, or most of them."""
        differences = count_differences(buffer.allocation, spec)
        candidates = [(differences, spec)]
        if differences:
            others = self.reader.with_other_tiles(spec)
            candidates += [(count_differences(buffer.allocation, other), other) for other in others]
        fewest = min([count for count, _ in candidates])
        fitting = [candidate for count, candidate in candidates if count == fewest]
        return CheckedBuffer(buffer, fitting[0], fitting[1:] if fewest == 0 else [], tensor_id, fewest == 0)

    def _check_facts(self, one: CheckedBuffer) -> Iterator[AuditFinding]:
        """Yield the facts of the nodes of a buffer that differ from its spec, or among each other."""
        buffer, spec = one.buffer, one.spec
        model = {} if spec is None else model_facts(spec)
        if buffer.allocation is not None and spec is not None and not one.explained:
            for name, kind in FACTS.items():
                recorded = buffer.allocation.integer(name)
                if recorded not in (None, model[name]):
                    yield _fact_finding(one, buffer.allocation, name, kind, recorded, model[name])
            yield from self._explain_by_shards(one)
        for node in (buffer.deallocation, buffer.node):
            if node is None:
                continue
            for name, kind in FACTS.items():
                first = None if buffer.allocation is None else buffer.allocation.integer(name)
                expected = model.get(name, first)
                recorded = node.integer(name)
                if recorded not in (None, first, expected):
                    yield _fact_finding(one, node, name, kind, recorded, expected)
        if buffer.deallocation is not None and buffer.allocation is not None:
            recorded = buffer.deallocation.integer("address")
            if recorded not in (None, buffer.address):
                message, number = f"{buffer} is deallocated at {recorded}", buffer.deallocation.number
                reason = "a buffer stays where it was allocated"
                yield one.finding("tensor elsewhere", message, recorded, buffer.address, reason, node=number)

    def _explain_by_shards(self, one: CheckedBuffer) -> Iterator[AuditFinding]:
        """Yield shards other than the spec's that would explain the recorded numbers."""
        spec, node = one.spec, one.buffer.allocation
        if spec is None or node is None or spec.memory.sharding is None:
            return
        shape = list(spec.memory.sharding.shape)
        for other in _other_shards(spec, node):
            if not count_differences(node, other) and other.memory.sharding is not None:
                right = list(other.memory.sharding.shape)
                message = f"the tensor says shards of {shape}, but what was allocated are shards of {right}"
                reason = "page size, size and bytes per bank agree with that shard shape"
                yield one.finding("shard shape", f"{one.buffer}: {message}", str(shape), str(right), reason)
                return
        recorded, expected = node.integer("max_size_per_bank") or 0, spec.bytes_per_bank
        if recorded != expected and recorded % spec.aligned_page_bytes == 0:
            message = f"shards of {shape} need {expected} bytes per bank, but {recorded} were allocated"
            reason = "what was allocated is a whole number of pages, as for shards of another shape"
            yield one.finding("shard shape", f"{one.buffer}: {message}", recorded, expected, reason)

    def _check_tensors(self, one: CheckedBuffer) -> Iterator[AuditFinding]:
        """Yield the errors in the nodes of tensors in a buffer."""
        reported: set[tuple[str, object]] = set()  # a tensor is mentioned again and again
        for node in one.buffer.tensors:
            for finding in self.check_tensor(one, node):
                key = (finding.kind, finding.message)
                if key not in reported:
                    reported.add(key)
                    yield finding

    def check_tensor(self, one: CheckedBuffer, node: ReportNode) -> Iterator[AuditFinding]:
        buffer, tensor = one.buffer, f"tensor {node.integer('tensor_id')} (node {node.number})"
        for place, address in _recorded_addresses(node):
            if address != buffer.address:
                message = f"{tensor} is at {address}{place}, its buffer {buffer.number} is at {buffer.address}"
                reason = "a tensor begins where its buffer begins"
                yield one.finding("tensor elsewhere", message, address, buffer.address, reason, node=node.number)
        memory, own = node.integer("buffer_type"), buffer.memory.value
        if memory not in (None, own):
            message = f"{tensor} is in memory {memory}, its buffer {buffer.number} in {own} ({buffer.memory})"
            reason = "a tensor is in the memory of its buffer"
            yield one.finding("tensor elsewhere", message, memory, own, reason, node=node.number)
        if not node.text("memory_config"):
            return
        read = self.reader.read(SpecText.of(node.params))
        size, spec = node.integer("size"), read.spec
        if size is not None and spec is not None and not spec.dtype.has_blocks:
            expected = spec.shape.logical_volume() * spec.dtype.storage_format.itemsize
            if size != expected:
                message = f"{tensor} has size {size}, {spec.shape} {spec.dtype} has {expected}"
                reason = "the size of a tensor is the size of its logical elements"
                yield one.finding("size", message, size, expected, reason, node=node.number)
        yield from _check_shards(one, node, read, tensor)


def _fact_finding(
    one: CheckedBuffer, node: ReportNode, name: str, kind: str, recorded: int | None, expected: int | None
) -> AuditFinding:
    where = "" if node is one.buffer.allocation else f" in node {node.number} ({node.kind})"
    message = f"{one.buffer}: {name}{where} is {recorded}, the model says {expected}"
    return one.finding(kind, message, recorded, expected, _REASONS[kind], node=node.number)


def _check_shards(one: CheckedBuffer, node: ReportNode, read: ReadSpec, tensor: str) -> Iterator[AuditFinding]:
    """Yield how the shards of a tensor contradict themselves, a rule, or the buffer."""
    if read.conflict:
        reason = "both forms of a shard spec describe the same shards"
        message = f"{tensor} of {one.buffer}: {read.conflict}"
        yield one.finding("shard shape", message, read.conflict, None, reason, node=node.number)
    message, config = f"{tensor} of {one.buffer}: {read.problem}", node.text("memory_config")
    if read.spec is None and read.breaks_rule:
        kind, reason = "shard shape" if "SHARDED" in config else "tensor unknown", "the placement rules of the chip"
        yield one.finding(kind, message, config[:200], None, reason, node=node.number)
    elif read.spec is None:  # a text of a newer release is not an error of the run
        reason = "the text is not one that is known"
        remedy = "read the report with a newer tilewright, or tell us about this text"
        note = one.finding("tensor unknown", message, config[:200], None, reason, remedy, node=node.number)
        yield replace(note, severity=Severity.NOTE)
    elif one.explained and one.spec is not None and _is_same_tensor(read.spec, one.spec):
        own, right = read.spec.memory, one.spec.memory
        if own != right:
            message = f"{tensor} says {own}, but {one.buffer} was allocated for {right}"
            reason = "page size, size and bytes per bank of the buffer agree with the other one only"
            yield one.finding("shard shape", message, str(own), str(right), reason, node=node.number)


def _is_same_tensor(one: TensorSpec, other: TensorSpec) -> bool:
    """Return whether two specs are of the same tensor, not of a view with another shape."""
    return (one.shape.logical, one.dtype, one.page_layout) == (other.shape.logical, other.dtype, other.page_layout)


def _recorded_addresses(node: ReportNode) -> Iterator[tuple[str, int]]:
    """Yield the addresses of a tensor, and where they stand."""
    address = node.integer("address")
    if address is not None:
        yield "", address
    text = node.text("device_tensors")
    if not text:
        return
    try:
        parts = parse_json(text, "device_tensors")
    except FileFormatError:
        return
    for part in parts if isinstance(parts, list) else ():
        own = as_integer(part.get("address")) if isinstance(part, dict) else None
        if own is not None:
            yield " on a device", own


def _other_shards(spec: TensorSpec, node: ReportNode) -> Iterator[TensorSpec]:
    """Yield the tensor in shards that have the bytes per bank and the page size that were recorded."""
    shards = spec.memory.shard_spec
    if shards is None or spec.memory.made_with_nd:
        return
    for shape in islice(_other_shard_shapes(spec, node), _MAX_SHAPES):
        other = ShardSpec(shards.grid, shape, shards.orientation)
        try:
            candidate = spec.with_memory(MemoryConfig(spec.memory.memory_layout, spec.memory.buffer_type, other))
            if not candidate.violations():
                yield candidate
        except TilewrightError:
            continue


def _other_shard_shapes(spec: TensorSpec, node: ReportNode) -> Iterator[tuple[int, int]]:
    """Yield shard shapes that have the bytes per bank and the page size that were recorded."""
    page, total = node.integer("page_size") or spec.page_bytes, node.integer("max_size_per_bank") or 0
    alignment = spec.known_chip.page_alignment(spec.memory.buffer_type)
    aligned = -(-page // alignment) * alignment
    if not page or total % aligned or not total:
        return
    pages = total // aligned
    height, width = spec.tile.shape if spec.is_tiled else (1, page // max(1, spec.dtype.storage_format.itemsize))
    rows, columns = spec.physical_shape
    if spec.memory.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED and width:
        across = max(1, columns // width)
        yield pages // across * height, across * width
    elif spec.memory.memory_layout is TensorMemoryLayout.WIDTH_SHARDED and height:
        down = max(1, rows // height)
        yield down * height, pages // down * width
    elif not spec.is_tiled:
        yield pages, width
    else:
        divisors = [k for k in range(1, min(isqrt(pages), _MAX_SHAPES) + 1) if pages % k == 0]
        for k in divisors:
            yield k * height, pages // k * width
            yield pages // k * height, k * width
