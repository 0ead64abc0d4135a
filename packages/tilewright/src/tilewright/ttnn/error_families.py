# SPDX-License-Identifier: Apache-2.0
"""The errors of ttnn and tt-metal, as a table: how each is worded, what its numbers mean, and what helps.

A wording is a message with its values as `{name}`, integers unless a shape follows as in `{kernel:word}`. `[?...?]` may
be absent, `<a|b>` is one of some words, and `<axis:height|width>` is one that is kept. Names that begin with an
underscore are for the sentences only. A sentence is filled with the numbers and with what `derive` makes of them; a
remedy that needs a number which the message does not have is left out.

`GENERAL` has the rules that operations share, such as "A (5) must be divisible by B (2)"; only the message of a
TT_FATAL is compared with these, as such words are too common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import ceil
from typing import Any

from ..formats import format_of
from ..memory import Chip

Numbers = dict[str, Any]  # integers, words, decimals and lists of integers: which one, the wording says
Derive = Callable[[Numbers, str], Numbers]  # of the numbers and the condition that failed

_INTEGER = r"(?<!\w)(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,19})(?!\d)"
_SHAPES = {
    "": _INTEGER,
    "word": r"[A-Za-z_][\w:]{0,63}",
    "path": r"[\w./:-]{1,80}",
    "memory": "DRAM|L1_SMALL|L1|TRACE",
    "decimal": r"\d{1,12}(?:\.\d{1,6})?",
    "core": r"\((?:x=)?\d{1,4}, ?(?:y=)?\d{1,4}\)",
    "range": r"[\[{][\[{(\d][^A-Za-wzA-Z]{1,400}[\])}]",
    "extents": r"(?:\w{1,20}\()?[\[({]{1,2}\d[\d, ]{0,200}[\])}]{1,2}\)?",
    "list": r"[\w, ]{1,80}",
    "phrase": r"[A-Za-z_](?:[\w\[\]().*/+' -]{0,70}?[\w\])])?",
}
_TOKEN = re.compile(r"\{(\w+)(?::(\w+))?\}|(\[\?)|(\?\])|<(?:(\w+):([^<>]+)|([^<>|]+(?:\|[^<>|]+)+))>")


@dataclass(frozen=True)
class Family:
    """A kind of error: its `wordings`, `what` happened, the `rule` that is broken, `remedies`, and what is `unknown`.

    >>> FAMILIES[0].kind
    'out_of_memory'
    """

    kind: str
    wordings: tuple[str, ...]
    what: str
    rule: str
    remedies: tuple[str, ...]
    derive: Derive = lambda numbers, condition: {}
    unknown: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)  # of numbers that mean something else here
    is_warning: bool = False


@dataclass(frozen=True)
class Wording:
    """A wording as a regular `pattern`, the `shapes` of its values, and an `anchor` that every such message has.

    >>> wording = compile_wording("{a} B [?only ?]of <axis:height|width>")
    >>> wording.anchor, wording.pattern.match("7 B of width").groupdict()
    (' B ', {'a': '7', 'axis': 'width'})
    """

    pattern: re.Pattern[str]
    shapes: dict[str, str]
    anchor: str


@cache
def compile_wording(text: str) -> Wording:
    """Return a wording in the language of this module, ready to be found.

    >>> compile_wording("Kt ({k_tiles})").pattern.search("so Kt (16)")["k_tiles"]
    '16'
    """
    parts, shapes, literals, at, depth = [], {}, [""], 0, 0
    for token in _TOKEN.finditer(text):
        literal, at = text[at : token.start()], token.end()
        parts.append(re.escape(literal))
        literals += [literal] * (depth == 0)
        name, shape, opening, closing, word, kept, words = token.groups()
        depth += bool(opening) - bool(closing)
        if name:
            shapes[name] = shape or ""
            parts.append(rf"(?P<{name}>{_SHAPES[shape or '']}|\{{\}})")  # {}: a text that was never filled
        elif kept or words:
            shapes |= {word: "word"} if word else {}
            parts.append(f"(?P<{word}>" if word else "(?:")
            parts.append("|".join(map(re.escape, (kept or words).split("|"))) + ")")
        else:
            parts.append("(?:" if opening else ")?")
    parts.append(re.escape(text[at:]))
    return Wording(re.compile("".join(parts)), shapes, max([*literals, text[at:]], key=len))


def read_value(text: str, shape: str) -> Any:
    """Return the value that a text of a `shape` states.

    >>> read_value("1,024", ""), read_value("[0-0 - 7-3]", "range"), read_value("DataType::BFLOAT16", "word")
    (1024, [[0, 0], [7, 3]], 'BFLOAT16')
    """
    if shape in ("", "decimal"):
        return float(text) if "." in text else int(text.replace(",", ""))
    if shape in ("core", "range", "extents"):
        numbers = [int(digits) for digits in re.findall(r"\d{1,19}", text)]
        return [numbers[k : k + 2] for k in range(0, len(numbers), 2)] if shape == "range" else numbers
    return text.rpartition("::")[2].strip()


# What follows from the numbers.


def _difference(name: str, large: str, small: str) -> Derive:
    """Return what names the difference of two numbers, if both are stated."""

    def derive(numbers: Numbers, condition: str) -> Numbers:
        return {name: numbers[large] - numbers[small]} if large in numbers and small in numbers else {}

    return derive


def _largest_divisor(number: int, most: int) -> int:
    """Return the largest divisor of a number of tiles that is at most `most`."""
    return next((d for d in range(min(most, number, 4096), 1, -1) if number % d == 0), 1)


def _tiles_of(extent: int, tile: int = 32) -> int:
    return -(-extent // tile) * tile


def _smaller_formats(needed: int, room: int) -> Numbers:
    """Return the changes of format with which what a bank needs would fit the room, if it is tiles of that format."""
    changes = []
    for stored, smaller in (("float32", "bfloat16"), ("bfloat16", "bfloat8_b"), ("bfloat8_b", "bfloat4_b")):
        page, less = (format_of(name).bytes_per_tile(32 * 32) for name in (stored, smaller))
        if needed % page == 0 and needed // page * less <= room:
            changes.append(f"{smaller} if it is {stored} now ({needed // page * less} B per bank)")
    return {"_formats": ", ".join(changes)} if changes else {}


def _out_of_memory(numbers: Numbers, condition: str) -> Numbers:
    """Return why an allocation failed, by how much, and the changes that make it fit."""
    if "memory" not in numbers or "needed_per_bank" not in numbers:
        return {"_kind": "out_of_memory"}
    memory, needed = numbers["memory"], numbers["needed_per_bank"]
    bank, free, hole = (numbers.get(name) for name in ("bank_size", "free_per_bank", "largest_free_block"))
    derived: Numbers = {"_kind": f"{memory.lower()}_out_of_memory"}
    if hole is not None:
        derived["short_by_per_bank"] = needed - hole
    if bank is not None and needed > bank:
        derived |= {"cause": "larger than an empty bank", "over_the_bank_by": needed - bank}
    elif free is None or hole is None:
        derived["cause"] = "full or fragmented: the message does not say how much is free"
    else:
        derived["cause"] = "fragmented" if free >= needed else "full"
    if memory == "L1_SMALL":
        return derived | {"_l1_small_size": f"of at least {bank + needed}" if bank else "larger than now"}
    if memory == "TRACE":
        return derived | {"_kind": "trace_region_too_small", "_trace": True}
    if derived["cause"] == "fragmented":
        return derived | {"_fragments": free} | _smaller_formats(needed, hole)
    if derived["cause"].startswith("full"):
        derived |= {"_release": f"at least {needed - hole} B per bank" if hole is not None else "other tensors"}
    room = bank if "over_the_bank_by" in derived else hole
    if room:
        derived |= {"_room": room, "_parts": ceil(needed / room)} | _smaller_formats(needed, room)
    return derived | (_in_dram(numbers) if memory == "L1" else _reserved_dram(numbers, derived))


def _in_dram(numbers: Numbers) -> Numbers:
    """Return what a bank of DRAM would hold instead, if the number of L1 banks tells the chip."""
    for chip in _chips():
        if chip.banks("l1") == numbers.get("banks") and "size" in numbers:
            banks = chip.banks("dram")
            per_bank = f"about {ceil(numbers['size'] / banks)} of {chip.bank_bytes('dram')} B in each of {banks} banks"
            return {"_dram": f", on {chip.name} {per_bank}"}
    return {"_dram": ""}


def _reserved_dram(numbers: Numbers, derived: Numbers) -> Numbers:
    """Return how much of every bank is set aside, if returning it would be enough."""
    bank = numbers.get("bank_size")
    for chip in _chips():
        if bank and chip.banks("dram") == numbers.get("banks"):
            reserved = chip.bank_bytes("dram") - bank
            enough = derived.get("short_by_per_bank", derived.get("over_the_bank_by", 0))
            return {"_reserved": reserved, "_chip": chip.name} if reserved >= enough > 0 else {}
    return {}


@cache
def _chips() -> tuple[Chip, ...]:
    return tuple([Chip.named(name) for name in ("wormhole_n150", "blackhole_p150", "blackhole_p100")])


def _buffers_clash(numbers: Numbers, condition: str) -> Numbers:
    if "buffers_end" not in numbers or "l1_buffer_address" not in numbers:
        return {}
    end = numbers["buffers_end"]
    rooms = [f"{chip.l1_end - end} B on {chip.name.partition('_')[0]}" for chip in _chips()[:2] if chip.l1_end > end]
    derived: Numbers = {"overlap": end - numbers["l1_buffer_address"]}
    return derived | ({"_rooms": " or ".join(rooms)} if rooms else {})


def _buffers_exceed(numbers: Numbers, condition: str) -> Numbers:
    if "buffers_end" not in numbers or "l1_size" not in numbers:
        return {}
    end, size = numbers["buffers_end"], numbers["l1_size"]
    derived: Numbers = {"over_by": end - size}
    for chip in _chips():
        if chip.l1_end == size and end > size:
            times = ceil((end - chip.l1_base) / (size - chip.l1_base))
            return derived | {"_chip": chip.name, "_buffers": end - chip.l1_base, "_times": times}
    return derived


def _shards_exceed(numbers: Numbers, condition: str) -> Numbers:
    room = next((numbers[name] for name in ("cores", "rows", "columns", "banks") if name in numbers), None)
    if room is None or "shards" not in numbers:
        return {}
    derived: Numbers = {"too_many_by": numbers["shards"] - room}
    return derived | ({"_times": ceil(numbers["shards"] / room)} if room else {})


def _next_legal_shard(numbers: Numbers, condition: str) -> Numbers:
    shard, tile = numbers.get("shard", []), numbers.get("tile", [])
    if not tile or len(shard) != len(tile) or not all(tile):
        return {}
    return {"next_legal": [_tiles_of(extent, side) for extent, side in zip(shard, tile, strict=True)]}


def _off_device(numbers: Numbers, condition: str) -> Numbers:
    if "memory" not in numbers or not numbers.get("banks"):
        return {}
    if numbers["memory"] == "DRAM":
        return {"_cores": f"(0, 0) to ({numbers['banks'] - 1}, 0)", "_query": "dram_grid_size()"}
    return {"_query": "compute_with_storage_grid_size()"}


def _alignment(numbers: Numbers, condition: str) -> Numbers:
    return {"_elements": numbers["alignment"] // 2} if numbers.get("alignment") else {"_elements": 8}


def _divides(number: str, divisor: str) -> Derive:
    """Return what names the remainder of a division, and the largest smaller divisor."""

    def derive(numbers: Numbers, condition: str) -> Numbers:
        whole, part = numbers.get(number), numbers.get(divisor)
        if whole is None or not part:
            return {}
        return {"remainder": whole % part, "_divisor": _largest_divisor(whole, part), "_one": 1}

    return derive


def _incompatible(numbers: Numbers, condition: str) -> Numbers:
    """Return the kind and the names of two numbers that older versions print without: the condition has them."""
    named = re.search(r"(\w{1,40}) % (?:\w{1,40}\.)?(\w{1,40}) == 0", condition)
    if named is None:
        return {"_kind": "incompatible_values", "_condition": condition or "a condition that the text does not show"}
    whole, part = named[1], named[2]
    values = {"value": numbers.get("_value"), "other": numbers.get("_other")}
    renamed = {name: value for name, value in zip((whole, part), values.values(), strict=True) if value is not None}
    derived = _divides(whole, part)(renamed, condition) if whole != part else {}
    return {"_kind": _division_kind(whole, part), "_numbers": renamed, "_whole": whole, "_part": part, **derived}


def _division_kind(whole: str, part: str) -> str:
    """Return the kind of error that a division is which leaves a remainder."""
    for word, kind in (
        ("out_subblock", "matmul_subblock_does_not_divide"),
        ("in0_block", "matmul_k_block_does_not_divide"),
        ("subblock", "norm_subblock_does_not_divide"),
        ("per_core_", "matmul_per_core_does_not_divide"),
        ("tile", "not_a_tile_multiple"),
        ("num_heads", "attention_heads"),
    ):
        if word in part.lower() or (word == "per_core_" and word in whole.lower()):
            return kind
    return "does_not_divide"


def _general_division(numbers: Numbers, condition: str) -> Numbers:
    whole, part = numbers.get("_whole", ""), numbers.get("_part", "")
    stated = {"_whole": numbers.get("_value"), "_part": numbers.get("_divisor_value")}
    renamed = {_as_name(numbers[key]): value for key, value in stated.items() if value is not None and key in numbers}
    derived = _divides(_as_name(whole), _as_name(part))(renamed, condition)
    if _division_kind("", part) == "not_a_tile_multiple" and derived:
        derived["_padded"] = _tiles_of(renamed[_as_name(whole)], renamed[_as_name(part)])
    return {"_kind": _division_kind(whole, part), "_numbers": renamed, **derived}


def _general_equality(numbers: Numbers, condition: str) -> Numbers:
    first, second = str(numbers.get("_first", "")), str(numbers.get("_second", ""))
    stated = {"_first": numbers.get("_value"), "_second": numbers.get("_other")}
    renamed = {_as_name(numbers[key]): value for key, value in stated.items() if value is not None and key in numbers}
    both = f"{first} {second}"
    kind = (
        "attention_heads" if "num_heads" in both else
        "matmul_per_core_mismatch" if "per_core_" in both or "in0_block_w" in both else
        "norm_block_mismatch" if "block_w" in both or "block_h" in both else "values_differ"
    )  # fmt: skip
    values = list(renamed.values())
    derived: Numbers = {"difference": abs(values[0] - values[1])} if len(values) == 2 else {}
    return {"_kind": kind, "_numbers": renamed, **derived}


def _as_name(phrase: str) -> str:
    """Return words of a message as the name of a number."""
    return re.sub(r"\W+", "_", phrase).strip("_")


def _heads(numbers: Numbers, condition: str) -> Numbers:
    query, key = numbers.get("Q"), numbers.get("K")
    return {"_heads": _largest_divisor(query, key or 1)} if query else {}


def _subblock(numbers: Numbers, condition: str) -> Numbers:
    width, height, limit = (numbers.get(name) for name in ("out_subblock_w", "out_subblock_h", "limit"))
    if width is None or height is None or not limit:
        return {}
    fitting = _largest_divisor(width, limit)
    return {"over_by": width * height - limit, "_width": fitting, "_height": _largest_divisor(height, limit // fitting)}


def _excess(number: str, limit: str, name: str = "too_many_by") -> Derive:
    """Return what names the excess of a count over its limit, and how many times the limit it is."""

    def derive(numbers: Numbers, condition: str) -> Numbers:
        count, most = numbers.get(number), numbers.get(limit)
        return {name: count - most, "_times": ceil(count / most)} if count is not None and most else {}

    return derive


def _tile_extent(numbers: Numbers) -> Numbers:
    """Return the sides of a tile and an extent under names that do not say which of the two they are."""
    side = "width" if "width" in numbers else "height"
    extent, tile = numbers.get(side), numbers.get(f"tile_{side}")
    if extent is None or not tile:
        return {}
    return {"remainder": extent % tile, "_padded": _tiles_of(extent, tile), "_extent": extent, "_tile": tile}


def _division_of(numbers: Numbers) -> Numbers:
    """Return a division whose two numbers are the only ones of the message, in this order."""
    if len(numbers) != 2:
        return {}
    (whole, value), (part, divisor) = numbers.items()
    names = {"_whole": whole, "_value": value, "_part": part, "_divisor_value": divisor}
    return names | _divides(whole, part)(numbers, "")


def _expected_per_core(numbers: Numbers, condition: str) -> Numbers:
    shard, tile = numbers.get("shard_height"), numbers.get("tile_height")
    return {"expected_per_core_M": shard // tile} if shard is not None and tile else {}


def _fill_cache(numbers: Numbers, condition: str) -> Numbers:
    start, height, cache_height = (numbers.get(name) for name in ("update_idx", "input_height", "cache_height"))
    if start is None or height is None or cache_height is None:
        return {}
    return {"over_by": start + height - cache_height, "_most": max(0, cache_height - start)}


# The families. The first wording that fits a message decides.

_FREE = " (allocated: {allocated_per_bank} B, free: {free_per_bank} B, largest free block: {largest_free_block} B)"
_DIVISION = (
    "<_whole:per_core_M|per_core_N|out_block_h|out_block_w|block_w> %"
    " [?program_config.?]<_part:out_subblock_h|out_subblock_w|subblock_w> == 0"
)

FAMILIES = (
    Family(
        "out_of_memory",
        (
            "Out of Memory: Not enough space to allocate {size} B {memory:memory} buffer across {banks} banks, where"
            " each bank needs to store {needed_per_bank} B"
            f"[?, but bank size is [?only ?]{{bank_size}} B[?{_FREE}?]?]",
            "Out of Memory: Not enough space after considering dependencies to allocate {size} B {memory:memory} across"
            f" {{banks}} banks ({{needed_per_bank}} B per bank), bank size is {{bank_size}} B[?{_FREE}?]",
        ),
        "A buffer[? of {size:B}?] does not fit[? {memory}: {cause}?].",
        "Each of the[? {banks}?] banks must hold its share of the buffer[?, {needed_per_bank:B},?] in one piece.",
        (
            "Enough is free ({_fragments:B} per bank), but not in one piece: free tensors before this call, or move"
            " those that stay together with ttnn.reallocate. Or make the buffer need at most {largest_free_block:B} per"
            " bank.",
            "Free {_release} first, with ttnn.deallocate; in DRAM, fewer users or blocks of KV cache leave room too.",
            "Keep the tensor in DRAM: memory_config=ttnn.DRAM_MEMORY_CONFIG{_dram}.",
            "Store it in a smaller format: {_formats}.",
            "Divide it into at least {_parts} parts, along a dimension or among the devices of a mesh: each bank has"
            " room for {_room:B}.",
            "Open the device with a smaller trace_region_size: of each bank of {_chip}, {_reserved:B} are set aside.",
            "Open the device with an l1_small_size {_l1_small_size}.",
            "Open the device with a larger trace_region_size.{_trace:given}",
        ),
        _out_of_memory,
        "which tensor it was, of which format, and what else is allocated: ttnn.get_memory_view shows that.",
    ),
    Family(
        "device_out_of_memory",
        ("Out of Memory: Cannot allocate at an address below {lowest}. Allocation at {address}",),
        "A buffer would have to start at {address}, below {lowest}, the lowest address that is allowed.",
        "Tensors in L1 grow down from the top and must stay above {lowest}.",
        ("Free at least {short_by:B} per bank of L1, or keep a tensor in DRAM.",),
        _difference("short_by", "lowest", "address"),
    ),
    Family(
        "buffers_clash_with_l1",
        (
            "Statically allocated <circular|dataflow> buffers in program {program} clash with L1 buffers on core range"
            " {core_range:range}. L1 buffer allocated at {l1_buffer_address} and static <circular|dataflow> buffer"
            " region ends at {buffers_end}",
        ),
        "The operation's own buffers and an L1 tensor overlap[? by {overlap:B}?][? on cores {core_range}?].",
        "The operation's buffers grow up[? to address {buffers_end}?]; tensors grow down from the top, and the lowest on"
        " these cores begins[? at {l1_buffer_address}?] within the buffers.",
        (
            "Keep the L1 tensor[? at {l1_buffer_address}?] in DRAM (memory_config=ttnn.DRAM_MEMORY_CONFIG), or"
            " ttnn.deallocate it before this call.",
            "Shrink the operation's buffers[? by at least {overlap:B}?]: a smaller in0_block_w, block or chunk size, or a"
            " smaller data type.",
            "Beside these buffers, the tensors in L1 may take at most this much per core: {_rooms}.",
        ),
        _buffers_clash,
        "which tensor begins there, and which operation[? program {program}?] is.",
    ),
    Family(
        "buffers_exceed_l1",
        (
            "Statically allocated <circular|dataflow> buffers on core range {core_range:range} grow to {buffers_end} B"
            " which is beyond max L1 size of {l1_size} B",
        ),
        "The operation's own buffers end[? {over_by:B}?] past the end of L1[? on cores {core_range}?].",
        "[?They end at address {buffers_end} of {l1_size}. ?]No tensor is in the way, so moving tensors does not help.",
        (
            "Shrink the operation's buffers[? by at least {over_by:B}?]: smaller blocks or chunks (in0_block_w, per_core_M,"
            " per_core_N, q_chunk_size, k_chunk_size), fewer channels per core, or a smaller data type.",
            "On {_chip} they take {_buffers:B}: with blocks or chunks of 1/{_times} of the size they fit, if all of"
            " them shrink with it.",
        ),
        _buffers_exceed,
        "which operation it is, and how its buffers depend on its block sizes.",
    ),
    Family(
        "circular_buffer_exceeds_bank",
        ("Circular buffer size {size} B exceeds allocated L1 buffer bank size of {bank_size} B",),
        "A circular buffer of {size:B} lies on an L1 tensor that has only {bank_size:B} per bank.",
        "A circular buffer on a tensor is at most as large as the tensor's shard.",
        ("Shrink the circular buffer by at least {over_by:B}, or use a larger shard.",),
        _difference("over_by", "size", "bank_size"),
        is_warning=True,
    ),
    Family(
        "trace_region_too_small",
        (
            "Creating trace buffers of size {trace_bytes}[? ?]B on MeshDevice {_device}, but only {trace_region_size}"
            "[? ?]B is allocated for trace region",
            "Creating trace buffers of size {trace_bytes}[? ?]B on [?MeshDevice|?]device {_device}, but only"
            " {trace_region_size}[? ?]B is allocated for trace region",
        ),
        "The traces need {short_by:B} more than the trace region has.",
        "All live traces together need {trace_bytes:B}; the device was opened with {trace_region_size:B} for them.",
        (
            "Open the device with trace_region_size={trace_bytes} or more (in vLLM: override_tt_config); it is taken"
            " from DRAM.",
            "Release traces that are no longer replayed, with ttnn.release_trace.",
        ),
        _difference("short_by", "trace_bytes", "trace_region_size"),
    ),
    Family(
        "kernel_config_too_small",
        (
            "Program size ({program_size}) too large for kernel config buffer ({kernel_config_size}) on {core_type:word}",
        ),
        "One program's kernels and arguments need {over_by:B} more than the kernel config buffer has.",
        "They take {program_size:B}; the buffer on {core_type} cores has {kernel_config_size:B}.",
        (
            "Make the kernels smaller: fewer features, no profiling, fewer runtime arguments.",
            "On TENSIX cores a smaller worker_l1_size at open leaves more; on ACTIVE_ETH the buffer is fixed.",
        ),
        _difference("over_by", "program_size", "kernel_config_size"),
    ),
    Family(
        "too_many_runtime_arguments",
        (
            "{arguments} unique+common runtime args targeting kernel {kernel:path} on {core:core} are too large."
            " Max allowable is {limit}",
        ),
        "Kernel {kernel} gets {over_by} runtime arguments too many on core {core:core}.",
        "Unique and common arguments count together: {arguments} of at most {limit}.",
        ("Pass at least {over_by} fewer per core: as compile-time arguments, or in a buffer.",),
        _difference("over_by", "arguments", "limit"),
    ),
    Family(
        "shards_exceed_cores",
        (
            "Number of shards along <axis:height|width> {shards} must not exceed number of cores {cores}",
            "Number of shards along <axis:height|width> {shards} must not exceed number of rows {rows} for",
            "Number of shards along <axis:height|width> {shards} must not exceed number of columns {columns} for",
            "Number of shards along <axis:height|width> must not exceed core grid <height|width>",
            "Expected number of shards {shards} to be less than or equal to total number of L1 banks {banks} in compute"
            " cores",
        ),
        "The tensor has more shards than there are cores[?: {shards}, {too_many_by} too many?].",
        "The extent divided by that of a shard, rounded up, is at most the number of cores; block sharding puts the"
        " height over the rows of the grid and the width over its columns (column-major: the other way round).",
        (
            "Make the shard at least {_times} times as large along the {axis}, rounded up to a multiple of 32 in TILE"
            " layout.",
            "Use a grid with {shards} cores along that direction, if the chip has them:"
            " compute_with_storage_grid_size().{axis:given}",
            "Derive the grid from compute_with_storage_grid_size(): a harvested chip has {banks} cores here.",
        ),
        _shards_exceed,
    ),
    Family(
        "shard_grid_off_device",
        (
            "Invalid shard grid: shard core {core:core} has no <memory:L1|DRAM> bank on this device, which has {banks}"
            " of them",
        ),
        "The shard grid names core {core:core}, where this device has no {memory} bank.",
        "It has {banks} {memory} banks; harvested chips have fewer than others of the same name.",
        (
            "The cores of DRAM banks are {_cores}: use {banks} shards at most, on a grid within these.",
            "Derive the grid from the device's {_query}.",
        ),
        _off_device,
    ),
    Family(
        "shard_not_tile_sized",
        ("Physical shard shape {shard:extents} must be tile {tile:extents} sized",),
        "A shard of {shard} is no whole number of tiles.",
        "In TILE layout, both extents of a shard are multiples of those of the tile, {tile}.",
        (
            "Use shards of {next_legal}: the extents rounded up to whole tiles.",
            "Keep the shard, with layout=ttnn.ROW_MAJOR_LAYOUT.",
        ),
        _next_legal_shard,
    ),
    Family(
        "shard_width_mismatch",
        ("Shard width {shard_width} must match physical width {tensor_width} for height sharded",),
        "A height-sharded tensor keeps whole rows, but its shards are {shard_width} wide, not {tensor_width}.",
        "The shard's width is the padded width of the tensor, {tensor_width}.",
        ("Give the shard the width {tensor_width}.", "Cut the rows: with block or width sharding."),
        _difference("difference", "tensor_width", "shard_width"),
    ),
    Family(
        "shard_height_mismatch",
        ("Shard height {shard_height} must match physical height {tensor_height} for width sharded",),
        "A width-sharded tensor keeps whole columns, but its shards are {shard_height} high, not {tensor_height}.",
        "The shard's height is the padded height of the tensor, all its outer dimensions included: {tensor_height}.",
        ("Give the shard the height {tensor_height}.", "Cut the columns: with block or height sharding."),
        _difference("difference", "tensor_height", "shard_height"),
    ),
    Family(
        "page_not_aligned",
        (
            "Shard page size must be aligned to {alignment}[? ?]B for L1 Tensor",
            "Shard page size must currently have L1 aligned page size",
        ),
        "A row of a row-major shard is not aligned in L1.",
        "The shard's width times the bytes of an element is a multiple of 16 bytes, the alignment of L1.",
        ("Use shards whose width is a multiple of {_elements} elements of two bytes.", "Use TILE layout."),
        _alignment,
        "the width of the shard and the bytes of an element.",
    ),
    Family(
        "size_not_multiple_of_page",
        ("Physical size {size:extents} must be multiple of page size {page:extents}",),
        "A tensor of {size} does not divide into pages of {page}.",
        "Versions before 0.81 do not pad: every extent is a multiple of the page's.",
        ("Pad the tensor to whole pages first.", "Use a page, shard or tile whose extents divide {size}."),
        meanings={"size": "extents of the tensor", "page": "extents of a page"},
    ),
    Family(
        "layout_must_be_tile",
        (
            "Only TILE layout is supported for {dtype:word} dtype",
            "<Inputs|Input|Input tensor|Inputs to matmul|All tensors|Cache tensor> must be tilized",
            "TILE layout requires height dimension to be multiple of {_multiple}",
            "TILE layout requires <height|width> dimension to be multiple of",
        ),
        "A tensor[? of {dtype}?] must be in TILE layout, and is not.",
        "Block formats, matmul and most other operations read whole tiles.",
        (
            "Convert it first: ttnn.to_layout(x, ttnn.TILE_LAYOUT), which pads as well.",
            "Keep ROW_MAJOR layout with a type other than {dtype}, such as bfloat16.",
        ),
    ),
    Family(
        "not_a_tile_multiple",
        (
            "Input tensor width ({width}) must be divisible by tile width ({tile_width})",
            "Input tensor height ({height}) must be divisible by tile height ({tile_height})",
        ),
        "An extent of {_extent} is no multiple of the tile's {_tile}.",
        "Without padding, tilize takes whole tiles only.",
        ("Use ttnn.tilize_with_zero_padding or ttnn.to_layout(x, ttnn.TILE_LAYOUT), which pad to {_padded}.",),
        lambda numbers, condition: _tile_extent(numbers),
    ),
    Family(
        "matmul_subblock_does_not_divide",
        (
            "out_block_h ({out_block_h}) must be divisible by out_subblock_h ({out_subblock_h})",
            "out_block_w ({out_block_w}) must be divisible by out_subblock_w ({out_subblock_w})",
            "per_core_M ({per_core_M}) must be divisible by out_subblock_h ({out_subblock_h})",
            "per_core_N ({per_core_N}) must be divisible by out_subblock_w ({out_subblock_w})",
        ),
        "{_part} {_divisor_value} does not divide {_whole} {_value}.",
        "Each core computes its block in whole sub-blocks.",
        (
            "Use {_part}={_divisor}, the largest smaller divisor of {_value}; 1 always divides.",
            "out_subblock_h times out_subblock_w is at most 8 tiles (4 with fp32_dest_acc_en).",
        ),
        lambda numbers, condition: _division_of(numbers),
    ),
    Family(
        "matmul_subblock_too_large",
        (
            "out_subblock_w {out_subblock_w} times out_subblock_h {out_subblock_h} needs to be at most {limit} to fit in"
            " hardware",
        ),
        "A sub-block of {out_subblock_h} x {out_subblock_w} tiles is {over_by} more than the registers hold.",
        "They hold {limit} tiles: 8, half of that with fp32_dest_acc_en, twice that with dst_full_sync_en.",
        (
            "Use out_subblock_h={_height}, out_subblock_w={_width}: divisors of these, so that they still divide the"
            " block.",
            "Set fp32_dest_acc_en=False, if it is set: then 8 tiles fit.",
        ),
        _subblock,
    ),
    Family(
        "matmul_k_block_does_not_divide",
        ("Kt ({k_tiles}) must be divisible by in0_block_w ({in0_block_w})",),
        "in0_block_w={in0_block_w} does not divide the {k_tiles} tiles of K.",
        "K is read in whole blocks of in0_block_w tiles.",
        ("Use in0_block_w={_divisor}, the largest smaller divisor of {k_tiles}; 1 always divides.",),
        _divides("k_tiles", "in0_block_w"),
    ),
    Family(
        "matmul_blocks_exceed_cores",
        (
            "Number of blocks exceeds number of cores[? available?]: {blocks} blocks > {cores} cores",
            "number of M blocks ceil(M/per_core_M)={blocks} must not exceed input A shard grid cores ({cores})",
        ),
        "The output has {blocks} blocks, {too_many_by} more than the {cores} cores can take.",
        "There are ceil(M tiles / per_core_M) times ceil(N tiles / per_core_N) blocks, one for a core.",
        (
            "Make per_core_M or per_core_N at least {_times} times as large, or compute_with_storage_grid_size larger"
            " if the chip has more cores.",
        ),
        _excess("blocks", "cores"),
    ),
    Family(
        "matmul_blocks_exceed_cores",
        (
            "mcast_in0 requires M ({M_tiles}) to fit within a single per_core_M block ({per_core_M}), got"
            " num_blocks_y={blocks}",
        ),
        "With mcast_in0 all {M_tiles} tiles of M belong into one block, but there are {blocks} blocks.",
        "mcast_in0 sends A to all cores, which share N; per_core_M is all of M.",
        ("Use mcast_in0=False, for a height-sharded A.", "Use per_core_M={M_tiles}, if the blocks fit L1."),
    ),
    Family(
        "matmul_blocks_exceed_grid",
        (
            "Num output blocks along <axis:x> ({blocks}) must be smaller than or equal to the number of columns in"
            " compute grid ({columns})",
            "Num output blocks along <axis:y> ({blocks}) must be smaller than or equal to the number of rows in"
            " compute grid ({rows})",
        ),
        "There are {blocks} output blocks along {axis}, {too_many_by} more than the grid has cores there.",
        "Along x are ceil(N tiles / per_core_N) blocks, along y ceil(M tiles / per_core_M).",
        (
            "Make per_core_N at least {_times} times as large.{columns:given}",
            "Make per_core_M at least {_times} times as large.{rows:given}",
        ),
        lambda numbers, condition: _excess("blocks", "columns" if "columns" in numbers else "rows")(numbers, condition),
    ),
    Family(
        "matmul_per_core_mismatch",
        (
            "per_core_M ({per_core_M}) must equal shard_shape[0] ({shard_height}) / in0_tile height ({tile_height})",
            "per_core_M must be equal to shard_shape[0] ({shard_height}) / in0_tile.get_height() ({tile_height})",
        ),
        "per_core_M is not the height of A's shards in tiles.",
        "A sharded A fixes per_core_M: {shard_height} rows of tiles of {tile_height} rows.",
        ("Use per_core_M={expected_per_core_M}, or shard A in other pieces.",),
        _expected_per_core,
    ),
    Family(
        "matmul_per_core_does_not_divide",
        (
            "per_core_M, {per_core_M}, must divide M, {M_tiles}, if per_core_M < M",
            "per_core_M, {per_core_M}, must be a multiple of M, {M_tiles}, if per_core_M > M",
        ),
        "per_core_M={per_core_M} does not go with the {M_tiles} tiles of M.",
        "per_core_M divides the tiles of M, or is a multiple of them.",
        ("Use per_core_M={_divisor}: a divisor of {M_tiles}.",),
        _divides("M_tiles", "per_core_M"),
    ),
    Family(
        "grid_off_device",
        (
            "compute_with_storage_grid_size {grid:core} must fit within device grid {device_grid:core}",
            "compute_with_storage_grid_size {grid:extents} must fit within device grid {device_grid:extents}",
        ),
        "The grid of {grid} cores is larger than the device's, {device_grid}.",
        "compute_with_storage_grid_size counts columns, then rows, and is at most the device's.",
        ("Use at most {device_grid}: device.compute_with_storage_grid_size() tells it.",),
    ),
    Family(
        "matmul_inner_dimension",
        (
            "The width of the first tensor must be equal to the height of the second tensor. Mismatch:"
            " width={width_of_a} height={height_of_b}",
            "The width of the first tensor must be equal to the height of the second tensor",
        ),
        "The width of A differs from the height of B[?: {width_of_a} and {height_of_b}?].",
        "In A @ B, the width of A equals the height of B, in elements.",
        (
            "Use transpose_b=True if the other extent of B is {width_of_a}, or transpose_a=True if that of A is"
            " {height_of_b}.",
        ),
    ),
    Family(
        "matmul_batch_mismatch",
        ("atch[? dimension {_dimension}?] mismatch[?:?] a={batch_of_a} vs b={batch_of_b}",),
        "The batches of A and B differ[? in dimension {_dimension}?]: {batch_of_a} and {batch_of_b}.",
        "The outer dimensions of A and B are equal, or B has none.",
        ("Reshape or repeat one of them, or give B a batch of 1.",),
    ),
    Family(
        "norm_subblock_does_not_divide",
        ("block_w must be divisible by subblock_w",),
        "subblock_w does not divide block_w.",
        "A core computes its block in whole sub-blocks.",
        ("Use a divisor of block_w for subblock_w; 1 always divides.",),
        unknown="the two values: the message does not print them.",
    ),
    Family(
        "norm_block_mismatch",
        (
            "block_w ({block_w}) must equal to K (in tiles) / num_cores[?_c?][?_r?] ({expected_block_w})",
            "block_w must equal to K / num_cores",
        ),
        "block_w is not the width in tiles divided by the cores along it[?: {block_w} instead of {expected_block_w}?].",
        "Each core normalizes a block of block_w columns of tiles; the last number of the message is the quotient.",
        ("Use block_w={expected_block_w}, or a grid with another number of cores along the width.",),
    ),
    Family(
        "attention_shape_mismatch",
        ("<K and V hidden dim|Head dimensions|Batch sizes> must match. Got [?Q: {Q}, ?]K: {K}, V: {V}",),
        "The shapes of Q, K and V do not agree: K has {K}, V has {V}.",
        "Q, K and V have the same head dimension. {_condition}",
        (
            "Give all three the same head dimension; if K and V agree, compare Q with them: the message does not name"
            " it.",
        ),
        lambda numbers, condition: {"_condition": f"The condition that failed is {condition}." if condition else ""},
    ),
    Family(
        "attention_heads",
        (
            "Q num_heads must be >= K num_heads and divisible by K num_heads[?, and K num_heads must be greater than 0?]."
            " Got Q: {Q}, K: {K}",
            "Q num_heads must be equal to K num_heads[?, and greater than 0?]. Got Q: {Q}, K: {K}",
            "Q num_heads must be >= K num_heads and divisible<,| by K num_heads> Got Q: {Q}, K: {K}",
        ),
        "{Q} query heads cannot share {K} key heads.",
        "The query heads are a multiple of the key heads.",
        ("Use a number of key heads that divides {Q}, such as {_heads}.",),
        _heads,
    ),
    Family(
        "kv_cache_too_short",
        (
            "Fill update_idx ({update_idx}) + input tensor height ({input_height}) must be <= cache tensor height ({cache_height})",
        ),
        "{input_height} tokens from position {update_idx} on end {over_by} past the cache of {cache_height}.",
        "A cache holds as many tokens as its second last extent.",
        ("Write at most {_most} tokens in this call.", "Make the cache longer, by at least {over_by} tokens."),
        _fill_cache,
    ),
    Family(
        "kv_cache_too_small",
        (
            "The model's max seq len ({max_model_len}) is larger than the maximum number of tokens that can be stored in"
            " KV cache ({kv_tokens})",
        ),
        "One request of {max_model_len} tokens is {short_by} more than the KV cache holds.",
        "The cache has {kv_tokens} tokens for all users together.",
        (
            "Use max_model_len={kv_tokens} or less.",
            "Give the cache at least {short_by} tokens more, as blocks: on Tenstorrent, gpu_memory_utilization does"
            " nothing.",
        ),
        _difference("short_by", "max_model_len", "kv_tokens"),
    ),
    Family(
        "kv_cache_too_small",
        (
            "To serve at least one request with the model[?s?]'s max seq len ({max_model_len}), ({needed_gib:decimal} GiB KV"
            " cache is needed, which is larger than the available KV cache memory ({available_gib:decimal} GiB)[?."
            " Based on the available memory, the estimated maximum model length is {estimated_max_len}?]",
        ),
        "One request of {max_model_len} tokens needs {needed_gib} GiB of KV cache; there are {available_gib} GiB.",
        "The memory is synthetic on Tenstorrent: it stands for the number of blocks that the plug-in asked for.",
        (
            "Use max_model_len={estimated_max_len} or less.",
            "Give the cache more blocks; gpu_memory_utilization does nothing here.",
        ),
    ),
    Family(
        "slice_out_of_range",
        ("Ends {end} must be less than or equal to the shape of the tensor {size}",),
        "A slice ends at {end}, {over_by} past the extent {size}.",
        "Ends count within the padded shape of the tensor.",
        ("End at {size} or before.",),
        _difference("over_by", "end", "size"),
        meanings={"size": "extent of the tensor along that dimension"},
    ),
    Family(
        "dtype_unsupported",
        (
            "Unsupported data format for input[? tensor?] {_operand:word}: {dtype:word}",
            "Only {_supported:list} are supported for inputs with {_layout:word} layout, got {dtype:word}",
            "Unsupported data type {dtype:word}",
        ),
        "The operation does not take {dtype}.",
        "Each operation takes some data types only, fewer in some layouts.",
        (
            "Convert the input first: ttnn.typecast(x, ttnn.bfloat16), or one of {_supported}.",
            "Convert the input first: ttnn.typecast(x, ttnn.bfloat16).",
        ),
    ),
    Family(
        "tensor_not_on_device",
        (
            "<_operand:Input tensor A|Input tensor B|Input tensor|Bias tensor|Input mask> must be on device, got"
            "[?:?][? storage type:?][? storage_type?] {_storage:word}",
            "All tensors must be on device",
        ),
        "{_operand} is on the host.",
        "Operations read tensors of the device only.",
        ("Move it first: ttnn.to_device(x, device), or from_torch(..., device=device).",),
    ),
    Family(
        "tensor_not_allocated",
        (
            "Input Tensor[? <_operand:A|B>?] is not allocated",
            "Tensor is not allocated",
            "DeviceStorage is not allocated",
        ),
        "An input was deallocated before the call.",
        "ttnn.deallocate, and operations that reuse their input, leave a tensor without memory.",
        ("Deallocate it after its last use.",),
    ),
    Family(
        "memory_layout_required",
        ("Output memory config must be sharded for DRAM sharded program config",),
        "The DRAM-sharded program config needs a sharded output.",
        "With it, A and the output are width-sharded in L1, and B is width-sharded in DRAM.",
        ("Pass memory_config=ttnn.L1_WIDTH_SHARDED_MEMORY_CONFIG, and B width-sharded in DRAM.",),
    ),
    Family(
        "shard_spec_missing",
        ("RuntimeError: bad optional access",),
        "A value that is absent was read; most often the shard spec of a sharded memory config.",
        "A sharded memory config has a shard spec: a grid, a shard shape and an orientation.",
        ("Give the memory config a shard spec: ttnn.create_sharded_memory_config makes both.",),
        unknown="which value it was: the message does not say.",
    ),
    Family(
        "mesh_too_large",
        (
            "Requested mesh shape {requested:extents} requires {needed} devices, but only {available} devices are"
            " available in the system mesh {system_mesh:extents}",
        ),
        "A mesh of {requested} needs {needed} devices; {available} are there.",
        "The mesh that is opened is a part of the system's, {system_mesh}.",
        ("Open a mesh within {system_mesh}, of at most {available} devices.", "Run on a machine with {needed}."),
        _difference("short_by", "needed", "available"),
    ),
    Family(
        "fabric_not_configured",
        ("Trying to get un-initialized fabric context",),
        "A collective ran without the fabric between the devices.",
        "The fabric is configured before the mesh is opened.",
        ("Call ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D) before ttnn.open_mesh_device.",),
    ),
    Family(
        "mesh_shards_differ",
        ("All tensor shards must have the same tensor spec",),
        "The pieces on the devices of the mesh have different shapes or types.",
        "Every device holds a piece of the same spec, so the dimension divides by the devices of its mesh axis.",
        ("Pad the dimension to a multiple of the number of devices on that axis, or replicate it.",),
        unknown="the dimension and the mesh.",
    ),
    Family(
        "host_and_device_shape_differ",
        ("Host tensor has different shape",),
        "A host tensor is copied into a device tensor of another logical shape.",
        "Copies keep the shape; on a mesh, it is the shape of one piece.",
        ("Copy a tensor of exactly the shape that the device tensor was made with.",),
        unknown="the two shapes.",
    ),
    Family(
        "device_count_mismatch",
        ("Device count mismatch: {expected} vs {got}",),
        "Two numbers of devices should be equal: {expected} and {got}.",
        "A program runs on as many devices as it was compiled for.",
        ("Compile for the mesh that is open, or open a mesh of {expected} devices.",),
        _difference("difference", "expected", "got"),
    ),
    Family(
        "",
        ("Error: incompatible values {_value} and {_other}", "incompatible values {_value} and {_other}"),
        "{_part} does not divide {_whole}: {_other} and {_value}.",
        "The condition above the message names the two: the first is a multiple of the second.",
        ("Use {_part}={_divisor}, the largest smaller divisor of {_value}.",),
        _incompatible,
    ),
    Family(
        "",
        (f"{_DIVISION} at {{_file:path}}",),
        "{_part} does not divide {_whole}.",
        "{_part} is a divisor of {_whole}.",
        ("Use a divisor of {_whole} for {_part}; 1 always divides.",),
        lambda numbers, condition: {"_kind": _division_kind(numbers["_whole"], numbers["_part"])},
        "the two values: the text does not state them.",
    ),
)
"""What is looked for anywhere in a text."""

GENERAL = (
    Family(
        "does_not_divide",
        (
            "{_whole:phrase}[?,?][?:?][? ?][?=?][?(?]{_value}[? tiles?][?)?] <must|should|needs to> be"
            " <divisible by|a multiple of|multiple of|multiples of> {_part:phrase}[?:?][? ?][?=?][?(?]{_divisor_value}",
            "{_whole:phrase} <must|should|needs to> be <divisible by|a multiple of|multiple of> {_part:phrase}",
        ),
        "{_whole} is no multiple of {_part}.",
        "{_whole} is a multiple of {_part}.",
        ("Pad {_whole} to {_padded}.", "Use {_divisor} instead of {_divisor_value}: it divides {_value}."),
        _general_division,
    ),
    Family(
        "values_differ",
        (
            "{_first:phrase}[?,?][?:?][? ?][?=?][?(?]{_value}[?)?] must [?be ?]<equal to|equal|match|the same as>"
            " {_second:phrase}[?,?][?:?][? ?][?=?][?(?]{_other}",
        ),
        "{_first} is {_value}, and {_second} is {_other}.",
        "{_first} equals {_second}.",
        ("Make them equal.",),
        _general_equality,
    ),
    Family(
        "layout_must_be_tile",
        (
            "{_operand:phrase} must be <tilized|tiled>",
            "{_operand:phrase} must be in <TILE|tile|tiled|TILE_LAYOUT> layout",
        ),
        "{_operand} must be in TILE layout, and is not.",
        "The operation reads whole tiles.",
        ("Convert it first: ttnn.to_layout(x, ttnn.TILE_LAYOUT).",),
    ),
    Family(
        "tensor_not_on_device",
        ("{_operand:phrase} must be on <device|the device>",),
        "{_operand} must be on the device, and is not.",
        "Operations read tensors of the device only.",
        ("Move it first: ttnn.to_device(x, device).",),
    ),
    Family(
        "memory_layout_required",
        (
            "{_operand:phrase} must be <_layout:sharded|interleaved|height sharded|width sharded|block sharded|HEIGHT_SHARDED|WIDTH_SHARDED|BLOCK_SHARDED|INTERLEAVED>",
        ),
        "{_operand} must be {_layout}, and is not.",
        "The operation, or its program config, reads that memory layout only.",
        ("Move it first: ttnn.to_memory_config(x, ...) with a {_layout} memory config.",),
    ),
    Family(
        "dtype_unsupported",
        (
            "Unsupported data <format|type>[? for {_operand:phrase}?][?:?] {dtype:word}",
            "Unsupported <data type|data format|dtype>",
        ),
        "The operation does not take {dtype}.",
        "Each operation takes some data types only.",
        ("Convert the input first: ttnn.typecast(x, ttnn.bfloat16).",),
    ),
)
"""What the message of a TT_FATAL is compared with, if it is none of `FAMILIES`."""

CONDITIONS = (replace(FAMILIES[-1], wordings=(_DIVISION,)),)
"""What the condition of a TT_FATAL is compared with, if its message says nothing."""

MEANINGS = {
    "size": "bytes of the whole buffer on one device",
    "memory": "kind of memory",
    "banks": "banks there are for it",
    "needed_per_bank": "bytes that each bank must hold",
    "bank_size": "bytes of a bank, without what is reserved",
    "allocated_per_bank": "bytes of a bank that are taken",
    "free_per_bank": "bytes of a bank that are free",
    "largest_free_block": "bytes of the largest free piece of a bank",
    "short_by_per_bank": "bytes by which that piece is too small",
    "over_the_bank_by": "bytes by which an empty bank is too small",
    "cause": "why there is no room",
    "lowest": "lowest address that L1 tensors may have",
    "address": "address at which the buffer would begin",
    "program": "number of the program since the start",
    "core_range": "first and last core, (x, y), both included",
    "core": "core, as (x, y)",
    "l1_buffer_address": "where the lowest L1 tensor on these cores begins",
    "buffers_end": "where the operation's own buffers end",
    "l1_size": "bytes of L1 of one core",
    "overlap": "bytes that both claim",
    "over_by": "how far it is over the limit",
    "short_by": "how much is missing",
    "too_many_by": "how many there are too many",
    "difference": "how far the two are apart",
    "remainder": "what the division leaves",
    "limit": "largest value that is allowed",
    "trace_bytes": "bytes of all live traces together",
    "trace_region_size": "bytes set aside for traces when the device was opened",
    "program_size": "bytes of the kernels and arguments of one program",
    "kernel_config_size": "bytes that a core has for them",
    "core_type": "kind of core",
    "arguments": "runtime arguments of the kernel, common ones included",
    "kernel": "name of the kernel",
    "axis": "direction that is meant",
    "shards": "shards of the tensor along that direction",
    "cores": "cores there are for them",
    "rows": "rows of the grid",
    "columns": "columns of the grid",
    "shard": "extents of a shard",
    "tile": "extents of a tile",
    "next_legal": "nearest larger extents that are allowed",
    "shard_width": "columns of a shard",
    "shard_height": "rows of a shard",
    "tensor_width": "columns of the padded tensor",
    "tensor_height": "rows of the padded tensor, outer dimensions included",
    "alignment": "bytes of which a page is a multiple",
    "page": "extents of a page",
    "dtype": "number format of the tensor",
    "width": "columns of the tensor",
    "height": "rows of the tensor",
    "tile_width": "columns of a tile",
    "tile_height": "rows of a tile",
    "blocks": "blocks of the output, one for a core",
    "k_tiles": "K, the inner extent, in tiles",
    "M_tiles": "M, the rows of the output, in tiles",
    "in0_block_w": "tiles of K that are read at once",
    "per_core_M": "rows of tiles that a core computes",
    "per_core_N": "columns of tiles that a core computes",
    "expected_per_core_M": "rows of tiles in a shard of A",
    "out_block_h": "rows of tiles in an output block",
    "out_block_w": "columns of tiles in an output block",
    "out_subblock_h": "rows of tiles in a sub-block",
    "out_subblock_w": "columns of tiles in a sub-block",
    "grid": "columns and rows of the grid that was asked for",
    "device_grid": "columns and rows of the device's grid",
    "width_of_a": "columns of A, in elements",
    "height_of_b": "rows of B, in elements",
    "batch_of_a": "extent of that dimension of A",
    "batch_of_b": "extent of that dimension of B",
    "block_w": "columns of tiles in a core's block",
    "expected_block_w": "columns of tiles divided by cores",
    "Q": "of the queries",
    "K": "of the keys",
    "V": "of the values",
    "update_idx": "position of the first token written",
    "input_height": "tokens written",
    "cache_height": "tokens that the cache holds",
    "kv_tokens": "tokens that the KV cache holds for all users",
    "max_model_len": "tokens of the longest request",
    "needed_gib": "GiB of KV cache that one such request needs",
    "available_gib": "GiB of KV cache that there are",
    "estimated_max_len": "tokens of the longest request that fits",
    "end": "end of the slice",
    "requested": "mesh that was asked for",
    "needed": "devices that it has",
    "available": "devices that the system has",
    "system_mesh": "mesh of all devices",
    "expected": "devices expected",
    "got": "devices found",
}
"""What a number means, by its name; a family may have another meaning."""
