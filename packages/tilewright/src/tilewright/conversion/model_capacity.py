# SPDX-License-Identifier: Apache-2.0
"""`capacity`: whether a model fits a machine with its users: weights, caches and tables of a device, bank by bank.

Every device of a mesh has the same memory, and allocates in lockstep. With nothing freed, tensors fit a bank if their
sum does, which is exact against ttnn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._files import as_path
from .._integers import ceil_div
from .._text import count_of, format_bytes, format_extents, list_some
from ..display import Drawable
from ..errors import FormatError
from ..files import SUFFIXES, FilePath, find_checkpoint_folder
from ..findings import plain_data
from ..memory import Allocator, Chip, PageLayout, TensorSpec, format_steps
from ..memory.allocator import SMALLER
from .cache import (
    CacheOptions,
    Checkpoint,
    Machine,
    WeightCache,
    list_unread,
    model_name,
    open_checkpoint,
    read_config,
    spell_checkpoint,
)
from .model_memory import ModelSizes
from .recipe import DEFAULT_RECIPE, Optimizations, Recipe

if TYPE_CHECKING:
    from typing_extensions import Unpack

TRACE_REGION = 50_000_000
"""The bytes of the trace region that the plugin of vLLM opens a device with."""
BLOCK = 64
"""The tokens of a block of the KV cache, in the catalogue of tt-inference-server."""
SHARED_TOKENS = 131_072
"""The tokens that all users of a replica share, as tt_transformers sizes the cache of most models."""

# Models with other numbers of shared tokens: on chips of an architecture, and on meshes of these sizes.
_OTHER_TOKENS = (
    (("Llama-3.1-8B", "Qwen3-8B"), "wormhole", (1,), 32_768),
    (("Mistral-7B",), "wormhole", (1,), 65_536),
    (("gemma-3-4b",), "wormhole", (1, 2), 65_536),
    (("Qwen2.5-14B", "DeepSeek-R1-Distill-Qwen-14B"), "wormhole", (2,), 65_536),
    (("Llama-3.2-90B",), "wormhole", (8,), 65_536),
)
_TRACE = "trace"
_NOT_COUNTED = "activations of prefill, sampling, buffers of collectives, vision and sound"
_TIGHT = 0.1  # of a bank: the tightest production rows keep as much for uncounted buffers
_GROUPS = {"FF1_FF3": "w1 and w3", "FF2": "w2", "WQKV": "wqkv", "WO": "wo"}
_MAX_LISTED = 6  # demands of a kind that are printed
_MOST = 1 << 40  # blocks or users that are looked for


@dataclass(frozen=True, slots=True)
class Demand:
    """Tensors that every device holds: `count` like `spec`, what they are, and the `source` of the numbers.

    The first extent of `spec` is for one block of a cache, one user, or one row of 32 tokens, if it is `per` "block",
    "user" or "row".

    >>> demand = Demand("weights", "w", TensorSpec((1, 1, 64, 64), "bfloat16", "tile", chip="n150"), 2)
    >>> demand.bytes_per_bank()
    4096
    """

    kind: str
    name: str
    spec: TensorSpec
    count: int = 1
    per: str = ""
    source: str = ""

    def bytes_each(self, numbers: Mapping[str, int] | None = None) -> int:
        """Return the bytes that one of the tensors takes in each bank, with `numbers` of blocks, users and so on."""
        number = (numbers or {}).get(self.per, 1)
        if number == 1:
            return self.spec.allocated_bytes
        first, *rest = self.spec.shape.logical
        return self.spec.replace(shape=(first * number, *rest)).allocated_bytes if number else 0

    def bytes_per_bank(self, numbers: Mapping[str, int] | None = None) -> int:
        """Return the bytes that all of them take in each bank, with `numbers` of blocks, users and so on."""
        return self.count * self.bytes_each(numbers)


class Shortage(NamedTuple):
    """The tensor at which ttnn would refuse: its name, how many come before, and the free bytes of a bank."""

    name: str
    placed: int
    needed: int
    free: int


@dataclass(frozen=True)
class Capacity(Drawable):
    """Whether what a device holds fits it, and how much more would.

    `demands` are the counted tensors, in the order of allocation; the cache has `blocks`, of `block_size` tokens, for
    the `users` of one of the `replicas`, who may take up to `context` tokens each. `notes` are about the request.
    With `is_estimate`, the weights are estimated from config.json.

    >>> spec = TensorSpec((1, 8, 64, 128), "bfloat8_b", "tile", chip="n150")
    >>> capacity([], "N150", cache=spec, cache_count=64).largest
    2888
    """

    machine: str
    chip: Chip
    mesh: tuple[int, int]
    demands: tuple[Demand, ...]
    trace_region_size: int = 0
    blocks: int = 1
    users: int = 0
    context: int = 0
    block_size: int = 0
    replicas: int = 1
    is_estimate: bool = False
    notes: tuple[str, ...] = ()
    question: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def bank_bytes(self) -> int:
        """The bytes of each bank of DRAM for tensors: all but the trace region."""
        return self._allocator().memory_view("dram").bank_bytes

    @property
    def numbers(self) -> dict[str, int]:
        """How many blocks and users there are, and rows of 32 tokens in tables."""
        return {"block": self.blocks, "user": self.users, "row": ceil_div(self.context, 32)}

    def used(self, **numbers: int) -> int:
        """Return the used bytes of each bank, with other `numbers` than the requested ones if given."""
        asked = self.numbers | numbers
        return sum([demand.bytes_per_bank(asked) for demand in self.demands])

    @property
    def free(self) -> int:
        """The bytes of each bank that are left; negative if they do not suffice."""
        return self.bank_bytes - self.used()

    @property
    def fits(self) -> bool:
        """Whether everything that is counted fits."""
        return self.free >= 0

    @property
    def shortfall(self) -> int:
        """The bytes of each bank that are lacking; 0 if everything fits."""
        return max(0, -self.free)

    @property
    def refusal(self) -> Shortage | None:
        """Where ttnn would refuse, allocating in order; None if everything fits."""
        free, placed = self.bank_bytes, 0
        for demand in self.demands:
            size = demand.bytes_each(self.numbers)
            fitting = min(demand.count, free // size) if size else demand.count
            placed, free = placed + fitting, free - fitting * size
            if fitting < demand.count:
                return Shortage(f"{demand.kind}: {demand.name}", placed, size, free)
        return None

    @cached_property
    def largest(self) -> int | None:
        """The most blocks of cache that fit, or users with a cache of their own; None if the rest alone does not."""
        return self._largest(lambda blocks: {"block": blocks})

    @cached_property
    def largest_users(self) -> int | None:
        """The most users on the machine who can take `context` tokens each, all at once; None as for `largest`."""
        most = self._largest(lambda users: {"block": self._blocks_for(users * self.context, users), "user": users})
        return None if most is None else most * self.replicas

    @cached_property
    def largest_context(self) -> int | None:
        """The most tokens that one user can take, where all users share the cache; None as for `largest`."""
        most = self._largest(
            lambda blocks: {"block": blocks + self.users, "row": ceil_div(blocks * self.block_size, 32)}
        )
        return None if most is None else most * self.block_size

    @property
    def _shared_tokens(self) -> int:
        return (self.blocks - self.users) * self.block_size

    def _blocks_for(self, tokens: int, users: int) -> int:
        """Return the blocks for the tokens that users share, and one that each has begun."""
        return ceil_div(tokens, self.block_size) + users if self.block_size else users

    def _largest(self, numbers: Callable[[int], dict[str, int]]) -> int | None:
        """Return the largest number of something that fits, None if 0 does not."""
        space, low, high = self.bank_bytes, 0, 1
        if self.used(**numbers(0)) > space:
            return None
        while high < _MOST and self.used(**numbers(high)) <= space:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.used(**numbers(middle)) <= space else (low, middle)
        return low

    def solve(self, what: str) -> Capacity:
        """Return the report with the largest number of `what`: "users" who each have the context, or "context".

        It is this report if none fits.

        >>> config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        >>> report = capacity(config | {"intermediate_size": 64, "vocab_size": 64}, "N150", context=4096)
        >>> report.solve("users").users == report.largest_users
        True
        """
        users, context = (self.largest_users or 0) // self.replicas, self.largest_context
        if what == "users" and users:
            return replace(self, users=users, blocks=self._blocks_for(users * self.context, users))
        if what == "context" and context:
            return replace(self, context=context, blocks=self._blocks_for(context, self.users))
        if what not in ("users", "context"):
            raise FormatError(f"expected users or context to solve for, got {what!r:.40}")
        return self

    def __bool__(self) -> bool:
        return self.fits

    def _allocator(self) -> Allocator:
        return Allocator(self.chip, trace_region_size=self.trace_region_size)

    def by_kind(self) -> dict[str, int]:
        """Return the bytes of each bank by kind, in the order of allocation; the region for traces is the last."""
        result: dict[str, int] = {}
        for demand in self.demands:
            size = self._size_of(demand)
            result[demand.kind] = result.get(demand.kind, 0) + size
        return {**result, _TRACE: self.chip.bank_bytes("dram") - self.bank_bytes}

    def stack(self) -> tuple[Allocator, dict[int, str]]:
        """Return an allocator with one block for each kind, as far as they fit, and the names of the blocks."""
        allocator, names = self._allocator(), {}
        for kind, size in self.by_kind().items():
            space = min(size, allocator.memory_view("dram").largest_free)
            if space and kind != _TRACE:
                names[allocator.allocate_bytes(space, "dram").number] = kind if space == size else f"{kind} (cut off)"
        return allocator, names

    def changes(self) -> Iterator[str]:
        """Yield changes with which the request would fit, each computed: formats, users, context, the next machine.

        >>> spec = TensorSpec((1, 8, 64, 128), "bfloat16", "tile", chip="n150")
        >>> next(capacity([], "N150", cache=spec, cache_count=64, blocks=2000).changes())
        'KV cache in bfloat8_b: 742764544 bytes of each bank'
        """
        if self.fits:
            return
        yield from self._smaller_formats()
        if self.largest and not self.block_size:
            yield f"at most {self.largest} blocks or users of the cache, instead of {self.blocks}"
        if self.block_size and (most := self.largest_context):
            limit = f", and a context of at most as many, instead of {self.context}" if most < self.context else ""
            yield f"{most} tokens, shared by the users of a replica, instead of {self._shared_tokens}{limit}"
        if self.block_size and (users := self.largest_users):
            yield f"at most {count_of(users, 'user')} with {self.context} tokens each, all at once"
        yield from self._next_machine()

    def _smaller_formats(self) -> Iterator[str]:
        """Yield the tensors that are enough to store in the next smaller format, alone or together with others."""
        savings: dict[str, int] = {}
        for demand in self.demands:
            smaller = [name for name in SMALLER.get(demand.spec.dtype.name, ()) if name.startswith("bfloat")]
            if smaller and demand.spec.page_layout is PageLayout.TILE and demand.kind in ("weights", "KV cache"):
                changed = replace(demand, spec=demand.spec.with_dtype(smaller[0]))
                sizes = [variant.bytes_per_bank(self.numbers) for variant in (demand, changed)]
                text = f"{demand.name if demand.kind == 'weights' else demand.kind} in {smaller[0]}"
                savings[text] = savings.get(text, 0) + sizes[0] - sizes[1]
        chosen: list[str] = []
        left, alone = self.used(), [text for text in savings if self.used() - savings[text] <= self.bank_bytes]
        for text in alone or sorted(savings, key=lambda text: -savings[text]):
            chosen.append(text)
            left = (self.used() if alone else left) - savings[text]
            if left <= self.bank_bytes:
                yield f"{', '.join(chosen)}: {left} bytes of each bank"
                if not alone:
                    return
                chosen = []

    def _next_machine(self) -> Iterator[str]:
        """Yield the smallest machine on which everything would fit."""
        if not self.question:
            return
        recipe = Recipe.load(self.question.get("recipe", DEFAULT_RECIPE))
        machines = [Machine.of(name, recipe) for name in recipe.devices]
        for machine in sorted(machines, key=_memory_of):
            if _memory_of(machine) > prod(self.mesh) * self.chip.bank_bytes("dram") * self.chip.banks("dram"):
                other = capacity(machine=machine.name, **self.question)
                if other.fits:
                    yield f"{machine.name}: {other.used()} of {other.bank_bytes} bytes of each bank"
                    return

    def __str__(self) -> str:
        return f"{self._verdict()}\n{format_steps(list(self._rows()))}"

    def _verdict(self) -> str:
        devices = f" ({prod(self.mesh)} devices)" if prod(self.mesh) > 1 else ""
        asked = f" with {count_of(self.users * self.replicas, 'user')}" if self.block_size else ""
        by_estimate = "by an estimate, " if self.is_estimate else ""
        if not self.fits:
            lacking = f"each bank lacks {self.shortfall} bytes ({format_bytes(self.shortfall)})"
            return f"{by_estimate}does not fit {self.machine}{devices}{asked}: {lacking}"
        share = self.free / self.bank_bytes
        tight = "; production keeps 10% or more" if share < _TIGHT else ""
        return (
            f"{by_estimate}fits {self.machine}{devices}{asked}: {share:.0%} of each bank is left for activations{tight}"
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        whole, banks = self.chip.bank_bytes("dram"), self.chip.banks("dram")
        for kind, size in self.by_kind().items():
            own = sorted(
                [demand for demand in self.demands if demand.kind == kind], key=lambda demand: -self._size_of(demand)
            )
            source = ", ".join(dict.fromkeys([demand.source for demand in own if demand.source])) or "as given"
            source = f"a region of {self.trace_region_size} bytes" if kind == _TRACE else source
            yield kind, f"{format_bytes(size)} of each bank ({size / whole:.1%}): {source}"
            yield from [("", self._describe(demand)) for demand in own[:_MAX_LISTED]]
            if len(own) > _MAX_LISTED:
                rest = sum(map(self._size_of, own[_MAX_LISTED:]))
                yield "", f"{format_bytes(rest):>9}  {count_of(len(own) - _MAX_LISTED, 'smaller kind')} of tensors"
        yield "in all", f"{self.used() + whole - self.bank_bytes} of {whole} bytes in each of {banks} banks"
        if self.block_size:
            yield (
                "tokens",
                f"{self._shared_tokens}, shared by the users of a replica; each may take up to {self.context}",
            )
        if (refusal := self.refusal) is not None:
            placed = f"{count_of(refusal.placed, 'tensor')} fit; then {refusal.name} needs {refusal.needed} bytes"
            yield "refused", f"{placed} of each bank, of which {refusal.free} are free"
        yield "largest", self._describe_largest()
        left = f": they share the {format_bytes(self.free)} of each bank that are left" if self.fits else ""
        yield "besides", f"{_NOT_COUNTED} are not counted{left}"
        yield from [("note", note) for note in self.notes]

    def _size_of(self, demand: Demand) -> int:
        return demand.bytes_per_bank(self.numbers)

    def _describe(self, demand: Demand) -> str:
        first, *rest = demand.spec.shape.logical
        extents = [n for n in (first * self.numbers.get(demand.per, 1), *rest) if n > 1] or [1]
        shape = f"{format_extents(extents)} {demand.spec.dtype.name}"
        count = "" if demand.count == 1 else f"{demand.count} of "
        return f"{format_bytes(self._size_of(demand)):>9}  {demand.name}, {count}{shape}"

    def _describe_largest(self) -> str:
        if self.largest is None:
            return "nothing: the rest alone does not fit"
        if not self.block_size:
            return f"{self.largest} blocks, or users, of the cache"
        users = f"{self.largest_users} with {self.context} tokens each, all at once"
        return f"a context of {self.largest_context} tokens, shared by {count_of(self.users, 'user')}; users: {users}"

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        names = (
            *("machine", "mesh", "fits", "bank_bytes", "free", "shortfall", "blocks", "users", "context", "block_size"),
            *("replicas", "trace_region_size", "is_estimate", "largest", "largest_users", "largest_context"),
        )
        demands = [
            {
                "kind": demand.kind,
                "name": demand.name,
                "tensor": str(demand.spec),
                "count": demand.count,
                "per": demand.per or None,
                "bytes_per_bank": self._size_of(demand),
                "source": demand.source,
            }
            for demand in self.demands
        ]
        data = {name: plain_data(getattr(self, name)) for name in names if self.block_size or "largest_" not in name}
        data["refusal"] = None if self.refusal is None else self.refusal._asdict()
        used = {"chip": self.chip.name, "used": self.used(), "by_kind": self.by_kind(), "demands": demands}
        return {**data, **used, "not_counted": _NOT_COUNTED, "notes": list(self.notes)}


def _memory_of(machine: Machine) -> int:
    chip = machine.chip
    return prod(machine.mesh) * chip.bank_bytes("dram") * chip.banks("dram")


def capacity(
    model: FilePath | Mapping[str, Any] | Checkpoint | Sequence[TensorSpec | tuple[TensorSpec, int]],
    machine: str,
    *,
    users: int = 1,
    context: int | None = None,
    tokens: int | None = None,
    block_size: int = BLOCK,
    replicas: int = 1,
    trace_region_size: int | None = None,
    kv_dtype: str | None = None,
    cache: TensorSpec | None = None,
    cache_count: int = 1,
    blocks: int = 1,
    **options: Unpack[CacheOptions],
) -> Capacity:
    """Return whether a model fits a machine together with its caches, and the largest numbers that would.

    Args:
        model: a checkpoint (a folder, a hub path, a GGUF file), its config.json, as a path or as a mapping; or specs of
            tensors that every device holds, each with its number if it is not 1.
        machine: the machine, such as "T3K"; for specs also the name of a chip.
        users: the users who are served at a time.
        context: the most tokens that one user may take; by default all that the users share, or that the model can.
        tokens: the tokens that all users of a replica share; by default as tt_transformers has it, or `context`.
        block_size: the tokens of a block of the cache.
        replicas: the copies of the model, on equal parts of the machine (data parallel).
        trace_region_size: the bytes reserved for traces; by default `TRACE_REGION` for a model, and 0 for specs.
        kv_dtype: the number format of the cache; by default the recipe's.
        cache: for specs, a tensor of the cache for one block or user, whose number is the first extent.
        cache_count: for specs, the number of such tensors, such as K and V of each layer.
        blocks: for specs, the blocks or users that are asked for.
        options: the choices of a weight cache, such as `optimizations`.

    >>> config = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
    >>> config |= {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
    >>> report = capacity(config, "N300", users=32, context=32768)
    >>> report.fits, report.blocks, report.largest_users
    (True, 2080, 8)
    """
    if isinstance(model, Sequence) and not isinstance(model, str):
        if (users, context, tokens, block_size, replicas, kv_dtype) != (1, None, None, BLOCK, 1, None) or options:
            raise FormatError("specs have no users, context or formats to choose; give cache, cache_count and blocks")
        return _of_tensors(model, machine, cache, cache_count, blocks, trace_region_size or 0)
    if cache is not None or (cache_count, blocks) != (1, 1):
        raise FormatError("cache, cache_count and blocks are for specs; a model has its own: give users and context")
    if "layers" in options:
        raise FormatError("capacity counts all layers; leave out layers")
    _require_counts(users=users, context=context, tokens=tokens, block_size=block_size, replicas=replicas)
    recipe = Recipe.load(options.get("recipe", DEFAULT_RECIPE))
    checkpoint, target = _open(model, recipe), Machine.of(machine, recipe)
    part, sizes = _find_machine(machine, recipe, replicas), ModelSizes.of(recipe.complete(checkpoint.config))
    weights, notes, stored = _weights(checkpoint, part, recipe, sizes, options)
    caches = [*_caches(sizes, part, block_size, kv_dtype or stored), _rotary(sizes, part)]
    is_estimate = any(demand.source == _ESTIMATED for demand in weights)
    unread = [text.partition(" ")[0] for text in list_unread(sizes.unread(), ())] if is_estimate else []
    if unread:
        notes.append(f"not read in config.json, so not counted if they add weights: {list_some(unread, _MAX_LISTED)}")
    own, shared = _share_tokens(options.get("hf_model", checkpoint.spelling), part, sizes, context, tokens)
    asked: dict[str, Any] = {
        "users": users,
        "context": context,
        "tokens": tokens,
        "block_size": block_size,
        "replicas": replicas,
    }
    asked |= {"model": checkpoint, "trace_region_size": trace_region_size, "kv_dtype": kv_dtype, **options}
    return Capacity(
        target.name,
        target.chip,
        target.mesh,
        (*weights, *caches),
        TRACE_REGION if trace_region_size is None else trace_region_size,
        ceil_div(shared, block_size) + ceil_div(users, replicas),
        ceil_div(users, replicas),
        own,
        block_size,
        replicas,
        is_estimate,
        (*notes, *sizes.uncounted_layers()),
        asked,
    )


_PRECISIONS = ("accuracy", "performance", "precision_cfg = {ff1_3: bfp4, ff2: bfp4, wqkv: bfp4, wo: bfp4}")


def solve_precision(model: FilePath | Mapping[str, Any], machine: str, **question: Any) -> tuple[str, Capacity]:
    """Return the first `optimizations` with which everything fits, the most exact ones first, and the report.

    Args:
        model: the model, as in `capacity`.
        machine: the name of the machine.
        question: the other arguments of `capacity`.

    >>> config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    >>> solve_precision(config | {"intermediate_size": 64, "vocab_size": 64}, "N150")[0]
    'accuracy'
    """
    if "optimizations" in question:
        raise FormatError("solving for the precision chooses the optimizations; leave them out")
    for optimizations in _PRECISIONS:
        report = capacity(model, machine, **{**question, "optimizations": optimizations})
        if report.fits:
            break
    return optimizations, report


def list_machines(model: FilePath | Mapping[str, Any], **question: Any) -> dict[str, Capacity | str]:
    """Return the report for every machine of the recipe, or why there is none; `question` is as in `capacity`.

    Args:
        model: the model, which is opened once.
        question: the other arguments of `capacity`.

    >>> config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    >>> list(list_machines(config | {"intermediate_size": 64, "vocab_size": 64}))[:3]
    ['N150', 'N300', 'N150x4']
    """
    recipe = Recipe.load(question.get("recipe", DEFAULT_RECIPE))
    checkpoint = _open(model, recipe)
    reports: dict[str, Capacity | str] = {}
    for name in recipe.devices:
        try:
            reports[name] = capacity(checkpoint, name, **question)
        except FormatError as problem:
            reports[name] = str(problem)
    return reports


_ESTIMATED = "estimated from config.json"


def _open(model: FilePath | Mapping[str, Any] | Checkpoint, recipe: Recipe) -> Checkpoint:
    """Return the checkpoint of a model, or one of its config.json alone, if there is nothing else."""
    if isinstance(model, Checkpoint):
        return model
    if isinstance(model, Mapping):
        return Checkpoint.of_config(str(model.get("_name_or_path") or "model"), model)
    path = as_path(model)
    config = None if path.suffix == ".gguf" else read_config(model)
    known = {name for family in recipe.families.values() for name in family.model_types}
    if config is not None and (_is_bare(path) or config.get("model_type") not in known):
        folder = path.resolve().parent if path.suffix == ".json" else path
        return Checkpoint.of_config(spell_checkpoint(folder if path.exists() else model), config)
    return open_checkpoint(model, recipe.name)[0]


def _is_bare(path: Path) -> bool:
    """Return whether a path is a config.json, or a folder without tensors."""
    if not path.is_dir():
        return path.suffix == ".json"
    return not any(file.suffix in SUFFIXES for file in find_checkpoint_folder(path).iterdir())


def _find_machine(name: str, recipe: Recipe, replicas: int = 1) -> Machine:
    """Return the machine of a name; or one like each of the equal parts that `replicas` of a model have of it."""
    whole = Machine.of(name, recipe)
    devices, rest = divmod(prod(whole.mesh), replicas)
    if replicas == 1:
        return whole
    for machine in [Machine.of(other, recipe) for other in recipe.devices]:
        same = machine.chip.arch == whole.chip.arch and machine.chip.banks("dram") == whole.chip.banks("dram")
        if same and not rest and prod(machine.mesh) == devices:
            return machine
    raise FormatError(
        f"{whole.name} has {count_of(prod(whole.mesh), 'device')}, which {replicas} replicas cannot share as machines"
        " that the recipe knows; use another number of replicas"
    )


def _weights(
    checkpoint: Checkpoint, machine: Machine, recipe: Recipe, sizes: ModelSizes, options: CacheOptions
) -> tuple[list[Demand], list[str], str]:
    """Return the weights on each device as `prepare` places them, or as estimated; notes; and the cache's format."""
    alike: dict[str, list[int]] = {}
    try:
        cache = WeightCache(checkpoint, machine.name, **options)
        for layer in range(cache.run.names.get("layers", 0)):
            alike.setdefault(str(cache.run.formats(layer)), []).append(layer)
        counts = {layers[0]: len(layers) for layers in alike.values()}
        chosen: CacheOptions = {**options, "layers": list(counts)}
        files = WeightCache(checkpoint, machine.name, **chosen).files
    except FormatError as problem:
        return _estimate_weights(machine, recipe, sizes, options, str(problem))
    source, demands = f"recipe {recipe.name}", dict[tuple[str, TensorSpec], Demand]()
    for file in files:
        name = file.name.partition(f"layers.{file.layer}.")[2] or file.name
        key = name, file.spec.with_chip(machine.chip)
        count = 1 if file.layer is None else counts[file.layer]
        old = demands.get(key, Demand("weights", *key, 0, "", source))
        demands[key] = replace(old, count=old.count + count)
    notes = ["only config.json is known: weights have the shapes that it implies"]
    notes = [*cache.describe_unused({})] if checkpoint.has_tensors else notes
    return list(demands.values()), notes, cache.run.formats(0).get("KV_CACHE", "bfloat8_b")


def _estimate_weights(
    machine: Machine, recipe: Recipe, sizes: ModelSizes, options: CacheOptions, problem: str
) -> tuple[list[Demand], list[str], str]:
    chosen = Optimizations.of(options.get("optimizations", "performance"), recipe)
    if chosen.layers is not None:
        raise FormatError(f"a decoder config chooses the formats of layers that a recipe knows, but {problem}")
    formats = {group: table["format"] for group, table in recipe.groups.items() if "format" in table}
    usual = (
        {"FF1_FF3": "bfloat4_b"}
        if chosen.mode == "performance"
        else dict.fromkeys(("WQKV", "WO", "KV_CACHE"), "bfloat16")
    )
    formats |= usual if chosen.all_layers is None else chosen.all_layers
    formats["head"] = options.get("model_dtype", "bfloat8_b")
    demands = []
    for weight in sizes.weights():
        dtype = formats.get(weight.group, "bfloat16")
        layout = "tile" if weight.group in formats else "row_major"
        spec = TensorSpec(weight.on(prod(machine.mesh)), dtype, layout, memory="dram", chip=machine.chip)
        name = f"{weight.name}, {_GROUPS[weight.group]}" if weight.group in _GROUPS else weight.name
        demands.append(Demand("weights", name, spec, weight.number, "", _ESTIMATED))
    return demands, [f"estimated, not as prepare would place it: {problem}"], formats["KV_CACHE"]


def _share_tokens(
    name: str, machine: Machine, sizes: ModelSizes, context: int | None, tokens: int | None
) -> tuple[int, int]:
    """Return the tokens of one user, and the tokens that all users of a replica share."""
    devices = prod(machine.mesh)
    usual = (
        number
        for names, arch, sizes_of_mesh, number in _OTHER_TOKENS
        if devices in sizes_of_mesh and machine.chip.arch.startswith(arch) and model_name(name).startswith(names)
    )
    shared = tokens or max(context or 0, next(usual, SHARED_TOKENS))
    if context is not None and context > shared:
        raise FormatError(f"a context of {context} tokens is more than the {shared} tokens that all users share")
    return context or min(shared, sizes.size("max_position_embeddings", default=shared) or shared), shared


def _caches(sizes: ModelSizes, machine: Machine, block_size: int, dtype: str) -> Iterator[Demand]:
    """Yield the caches and states that the layers keep for users, on each device of a replica."""
    devices = prod(machine.mesh)
    for layers in sizes.cache_layers():
        copies = devices // layers.heads if layers.heads else 1
        held = f", each head on {copies} of {devices} devices" if copies > 1 else ""
        source = f"{count_of(layers.layers, 'layer')} of {layers.kind}{held}"
        for heads, *rest in layers.state:  # kept in the format of its sums
            spec = TensorSpec((1, ceil_div(heads, devices), *rest), "float32", "tile", memory="dram", chip=machine.chip)
            yield Demand("state", "linear attention", spec, layers.layers, "user", source)
        if layers.state:
            continue
        heads = max(1, layers.heads // min(devices, layers.heads))
        name, per, number = ("latent vectors" if layers.tensors == 1 else "K and V"), "block", 1
        if layers.window:
            name, per, number = f"{name} of a window", "user", ceil_div(8 * layers.window, block_size) + 1
        spec = TensorSpec((number, heads, block_size, layers.width), dtype, "tile", memory="dram", chip=machine.chip)
        yield Demand("KV cache", name, spec, layers.layers * layers.tensors, per, source)


def _rotary(sizes: ModelSizes, machine: Machine) -> Demand:
    """Return the tables of sines and cosines."""
    width = sizes.size("qk_rope_head_dim", default=sizes.head_dim) or sizes.head_dim
    spec = TensorSpec((1, 1, 32, width), "bfloat16", "tile", memory="dram", chip=machine.chip)
    return Demand("tables", "rotary sines and cosines", spec, 2, "row", "bfloat16, for the whole context")


def _of_tensors(
    tensors: Iterable[TensorSpec | tuple[TensorSpec, int]],
    name: str,
    cache: TensorSpec | None,
    cache_count: int,
    blocks: int,
    trace_region_size: int,
) -> Capacity:
    """Return the capacity for tensors that are given, on a machine or a chip."""
    try:
        machine = Machine.of(name, Recipe.load())
    except FormatError:
        machine = Machine(name, Chip.named(name), (1, 1))
    pairs = [(tensor, 1) if isinstance(tensor, TensorSpec) else tensor for tensor in tensors]
    demands = [Demand("weights", str(spec), spec.with_chip(machine.chip), count) for spec, count in pairs]
    if cache is not None:
        demands.append(Demand("KV cache", str(cache), cache.with_chip(machine.chip), cache_count, "block"))
    return Capacity(machine.name, machine.chip, machine.mesh, tuple(demands), trace_region_size, blocks)


def _require_counts(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and (type(number) is not int or not 1 <= number <= _MOST):
            raise FormatError(f"{name} is a number of at least 1, got {number!r:.40}")
