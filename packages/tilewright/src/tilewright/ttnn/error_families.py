# SPDX-License-Identifier: Apache-2.0
"""The table `errors.toml`, which has the errors of ttnn and tt-metal, and what follows from the numbers of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

from .._json import parse_toml
from ..formats import format_of
from ..memory import Chip

Numbers = dict[str, Any]  # integers, words, decimals and lists of integers: which one, the wording says

_INTEGER = r"(?<!\w)(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,19})(?!\d)"
_SHAPES = {
    "": _INTEGER,
    "word": r"[A-Za-z_][\w:]{0,63}",
    "operand": r"[A-Za-z_][\w.]{0,60}(?:\(\))?",
    "source": r"[\w./-]{1,120}\.[ch]pp:\d{1,7}",
    "path": r"[\w./:-]{1,80}",
    "memory": "DRAM|L1_SMALL|L1|TRACE",
    "decimal": r"\d{1,12}(?:\.\d{1,6})?",
    "core": r"\((?:x=)?\d{1,4}, ?(?:y=)?\d{1,4}\)",
    "range": r"[\[{][\[{(\d][^A-Za-wzA-Z]{1,400}[\])}]",
    "extents": r"(?:\w{1,20}\()?[\[({]{1,2}\d[\d, ]{0,200}[\])}]{1,2}\)?",
    "list": r"[\w, ]{1,80}",
    "phrase": r"[A-Za-z_](?:[\w\[\]().*/+' -]{0,70}?[\w\])])?",
}
_SMALL_WORDS = {
    "than",
    "to",
    "of",
    "at",
    "by",
    "is",
    "and",
    "or",
    "be",
    "least",
    "most",
    "only",
    "but",
    "got",
    "exceed",
}
_TOKEN = re.compile(r"\{(\w+)(?::(\w+))?\}|(\[\?)|(\?\])|<(?:(\w+):([^<>]+)|([^<>|]+(?:\|[^<>|]+)+))>")


@dataclass(frozen=True)
class Family:
    """A kind of error: its `wordings`, `what` happened, the `rule` that is broken, `remedies`, and what is `unknown`.

    `derive` names one of the functions below, and its arguments; `meanings` are of numbers that mean something else
    here than elsewhere.

    >>> load_families()[0].kind
    'out_of_memory'
    """

    kind: str
    wordings: tuple[str, ...] = ()
    what: str = ""
    rule: str = ""
    remedies: tuple[str, ...] = ()
    derive: tuple[str, ...] = ()
    unknown: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)
    is_warning: bool = False

    def derive_from(self, numbers: Numbers, condition: str) -> Numbers:
        """Return what follows from the numbers of a message and the condition that failed; nothing if one is missing.

        >>> Family("", derive=("difference", "over_by", "end", "size")).derive_from({"end": 9, "size": 7}, "")
        {'over_by': 2}
        """
        if not self.derive:
            return {}
        name, *arguments = self.derive
        try:
            return dict(_DERIVATIONS[name](numbers, condition, *arguments))
        except (KeyError, ZeroDivisionError):
            return {}


@cache
def _load_table() -> Numbers:
    table: Numbers = parse_toml(Path(__file__).with_name("errors.toml").read_bytes(), "errors.toml")
    return table


@cache
def load_families(group: str = "families") -> tuple[Family, ...]:
    """Return the families of a group: "families" are looked for anywhere, "rules" only in the message of a TT_FATAL.

    >>> [family.kind for family in load_families("rules")][:2]
    ['does_not_divide', 'values_differ']
    """
    texts = [{name: _as_lines(value) for name, value in row.items()} for row in _load_table()[group]]
    return tuple([Family(**row) for row in texts])


def load_meanings() -> Mapping[str, str]:
    """Return what the numbers of messages mean, by their names.

    >>> load_meanings()["overlap"]
    'bytes that both claim'
    """
    meanings: Mapping[str, str] = _load_table()["meanings"]
    return meanings


def _as_lines(value: Any) -> Any:
    """Return the texts of the table, each as one line."""
    if isinstance(value, list):
        return tuple([_as_lines(item) for item in value])
    return " ".join(value.split()) if isinstance(value, str) else value


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
    """Return a wording in the language of the table, ready to be found.

    >>> compile_wording("Kt ({k_tiles})").pattern.search("so Kt (16)")["k_tiles"]
    '16'
    """
    parts, shapes, literals, at, depth = [], {}, [""], 0, 0
    for token in _TOKEN.finditer(text):
        literal, at = text[at : token.start()], token.end()
        parts.append(re.escape(literal))
        literals += [literal] * (depth == 0)
        name, shape, opening, closing, word, held, words = token.groups()
        depth += bool(opening) - bool(closing)
        if name:
            shapes[name] = shape or ""
            parts.append(rf"(?P<{name}>{_SHAPES[shape or '']}|\{{\}})")  # {}: a text that was never filled
        elif held or words:
            shapes |= {word: "word"} if word else {}
            parts.append(f"(?P<{word}>" if word else "(?:")
            parts.append("|".join(map(re.escape, (held or words).split("|"))) + ")")
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


# What follows from the numbers of a message. A number that the message does not have is a KeyError: nothing follows.
# Names that begin with an underscore are for sentences; `_kind` and `_numbers` replace those of the family.


def _difference(numbers: Numbers, condition: str, name: str, large: str, small: str) -> Numbers:
    return {name: numbers[large] - numbers[small]}


def _excess(numbers: Numbers, condition: str, count: str, limit: str) -> Numbers:
    return {"too_many_by": numbers[count] - numbers[limit], "_times": ceil(numbers[count] / numbers[limit])}


def _excess_of_one(numbers: Numbers, condition: str, count: str, *limits: str) -> Numbers:
    """Return the excess over the limit that the message states, one of several."""
    return _excess(numbers, condition, count, next((name for name in limits if name in numbers), ""))


def _divides(numbers: Numbers, condition: str, whole: str, part: str) -> Numbers:
    """Return the remainder of a division, and the largest smaller divisor."""
    return {"remainder": numbers[whole] % numbers[part], "_divisor": _largest_divisor(numbers[whole], numbers[part])}


def _division(numbers: Numbers, condition: str) -> Numbers:
    """Return a division whose two numbers are the only ones of the message, in this order."""
    (whole, value), (part, divisor) = [*numbers.items(), ("", 0), ("", 0)][:2]
    names = {"_whole": whole, "_value": value, "_part": part, "_divisor_value": divisor}
    return names | _divides(numbers, condition, whole, part)


def _bare_division(numbers: Numbers, condition: str) -> Numbers:
    return {"_kind": _division_kind(numbers["_whole"], numbers["_part"])}


def _incompatible(numbers: Numbers, condition: str) -> Numbers:
    """Return the kind and the names of two numbers that older versions print without: the condition has them."""
    named = re.search(r"(\w{1,40}) % (?:\w{1,40}\.)?(\w{1,40}) == 0", condition)
    if named is None:
        return {"_whole": "the second value", "_part": "the first value"}
    whole, part = named.groups()
    renamed = {whole: numbers["_value"], part: numbers["_other"]}
    derived = _divides(renamed, condition, whole, part)
    return {"_kind": _division_kind(whole, part), "_numbers": renamed, "_whole": whole, "_part": part, **derived}


def _stated_division(numbers: Numbers, condition: str) -> Numbers:
    """Return a division whose numbers have the names that the message gives them, if it states both."""
    whole, part = numbers["_whole"], numbers["_part"]
    stated = {_as_name(whole): numbers.get("_value"), _as_name(part): numbers.get("_divisor_value")}
    renamed = {name: value for name, value in stated.items() if value is not None}
    derived: Numbers = {"_kind": _division_kind(whole, part), "_numbers": renamed}
    if len(renamed) == 2 and numbers["_divisor_value"]:
        derived |= _divides(renamed, condition, *renamed)
        if derived["_kind"] == "not_a_tile_multiple":
            derived["_padded"] = _round_up(*renamed.values())
    return derived


def _stated_equality(numbers: Numbers, condition: str) -> Numbers:
    """Return the kind and the names of two numbers that should be equal."""
    first, second = numbers["_first"], numbers["_second"]
    kinds = {
        "num_heads": "attention_heads",
        "per_core_": "matmul_per_core_mismatch",
        "in0_block_w": "matmul_per_core_mismatch",
        "block_": "norm_block_mismatch",
    }
    kind = next((kind for word, kind in kinds.items() if word in f"{first} {second}"), "values_differ")
    renamed = {_as_name(first): numbers["_value"], _as_name(second): numbers["_other"]}
    return {"_kind": kind, "_numbers": renamed, "difference": abs(numbers["_value"] - numbers["_other"])}


def _division_kind(whole: str, part: str) -> str:
    """Return the kind of error that a division is which leaves a remainder."""
    kinds = {
        "out_subblock": "matmul_subblock_does_not_divide",
        "in0_block": "matmul_k_block_does_not_divide",
        "subblock": "norm_subblock_does_not_divide",
        "per_core_": "matmul_per_core_does_not_divide",
        "tile": "not_a_tile_multiple",
        "num_heads": "attention_heads",
    }
    found = (kind for word, kind in kinds.items() if word in part.lower())
    return next(found, "matmul_per_core_does_not_divide" if "per_core_" in whole else "does_not_divide")


def _as_name(phrase: str) -> str:
    """Return words of a message as the name of a number."""
    return re.sub(r"\W+", "_", phrase).strip("_")


def _named_numbers(numbers: Numbers, condition: str) -> Numbers:
    """Return the numbers of a message that is not known, by the words before them."""
    named = re.findall(r"([A-Za-z_]\w{0,60})(?: ?\(|=|: | )(\d{1,19})\b(?!\.\d)", numbers["_text"])
    stated = {name: int(value) for name, value in named if name not in _SMALL_WORDS}
    return {"_numbers": stated | {"_text": numbers["_text"]}}


def _largest_divisor(number: int, most: int) -> int:
    """Return the largest divisor of a number of tiles that is at most `most`."""
    return next((d for d in range(min(most, number, 4096), 1, -1) if number % d == 0), 1)


def _round_up(extent: int, tile: int) -> int:
    return -(-extent // tile) * tile


def _out_of_memory(numbers: Numbers, condition: str) -> Numbers:
    """Return why an allocation failed, by how much, and the changes that make it fit."""
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
    if derived["cause"] == "fragmented" and hole is not None:
        return derived | {"_fragments": free} | _smaller_formats(needed, hole)
    if derived["cause"].startswith("full"):
        derived |= {"_release": f"at least {needed - hole} B per bank" if hole is not None else "other tensors"}
        derived |= {"_users": True} if memory == "DRAM" else {}
    space = bank if "over_the_bank_by" in derived else hole
    if space:
        derived |= {"_space": space, "_parts": ceil(needed / space)} | _smaller_formats(needed, space)
    return derived | (_in_dram(numbers) if memory == "L1" else _reserved_dram(numbers, derived))


def _smaller_formats(needed: int, space: int) -> Numbers:
    """Return the changes of format with which what a bank needs would fit a space, if it is tiles of that format."""
    changes = []
    for stored, smaller in (("float32", "bfloat16"), ("bfloat16", "bfloat8_b"), ("bfloat8_b", "bfloat4_b")):
        page, less = (format_of(name).bytes_per_tile(32 * 32) for name in (stored, smaller))
        if needed % page == 0 and needed // page * less <= space:
            changes.append(f"{smaller} if it is {stored} now ({needed // page * less} B per bank)")
    return {"_formats": ", ".join(changes)} if changes else {}


def _in_dram(numbers: Numbers) -> Numbers:
    """Return what a bank of DRAM would hold instead, if the number of L1 banks tells the chip."""
    for chip in _chips():
        if chip.banks("l1") == numbers["banks"]:
            banks = chip.banks("dram")
            per_bank = f"about {ceil(numbers['size'] / banks)} of {chip.bank_bytes('dram')} B in each of {banks} banks"
            return {"_dram": f", on {chip.name} {per_bank}"}
    return {"_dram": ""}


def _reserved_dram(numbers: Numbers, derived: Numbers) -> Numbers:
    """Return how much of every bank is set aside, if returning it would be enough."""
    enough = derived.get("short_by_per_bank") or derived.get("over_the_bank_by") or 0
    for chip in _chips():
        if "bank_size" in numbers and chip.banks("dram") == numbers["banks"]:
            reserved = chip.bank_bytes("dram") - numbers["bank_size"]
            return {"_reserved": reserved, "_chip": chip.name} if reserved >= enough > 0 else {}
    return {}


@cache
def _chips() -> tuple[Chip, ...]:
    return tuple([Chip.named(name) for name in ("wormhole_n150", "blackhole_p150", "blackhole_p100")])


def _buffers_clash(numbers: Numbers, condition: str) -> Numbers:
    end = numbers["buffers_end"]
    left = [f"{chip.l1_end - end} B on {chip.name.partition('_')[0]}" for chip in _chips()[:2] if chip.l1_end > end]
    return {"overlap": end - numbers["l1_buffer_address"], **({"_left": " or ".join(left)} if left else {})}


def _buffers_exceed(numbers: Numbers, condition: str) -> Numbers:
    end, size = numbers["buffers_end"], numbers["l1_size"]
    derived: Numbers = {"over_by": end - size}
    for chip in _chips():
        if chip.l1_end == size and end > size:
            times = ceil((end - chip.l1_base) / (size - chip.l1_base))
            return derived | {"_chip": chip.name, "_buffers": end - chip.l1_base, "_times": times}
    return derived


def _next_legal_shard(numbers: Numbers, condition: str) -> Numbers:
    sides = zip(numbers["shard"], numbers["tile"], strict=False)
    return {"next_legal": [_round_up(extent, side) for extent, side in sides]}


def _off_device(numbers: Numbers, condition: str) -> Numbers:
    if numbers["memory"] == "DRAM":
        return {"_cores": f"(0, 0) to ({numbers['banks'] - 1}, 0)", "_query": "dram_grid_size()"}
    return {"_query": "compute_with_storage_grid_size()"}


def _alignment(numbers: Numbers, condition: str) -> Numbers:
    return {"_elements": numbers.get("alignment", 16) // 2}


def _tile_extent(numbers: Numbers, condition: str) -> Numbers:
    side = "width" if "width" in numbers else "height"
    extent, tile = numbers[side], numbers[f"tile_{side}"]
    return {"remainder": extent % tile, "_padded": _round_up(extent, tile), "_extent": extent, "_tile": tile}


def _subblock(numbers: Numbers, condition: str) -> Numbers:
    width, height, limit = (numbers[name] for name in ("out_subblock_w", "out_subblock_h", "limit"))
    fitting = _largest_divisor(width, limit)
    return {"over_by": width * height - limit, "_width": fitting, "_height": _largest_divisor(height, limit // fitting)}


def _expected_per_core(numbers: Numbers, condition: str) -> Numbers:
    return {"expected_per_core_M": numbers["shard_height"] // numbers["tile_height"]}


def _attention(numbers: Numbers, condition: str) -> Numbers:
    return {"_condition": condition} if condition else {}


def _heads(numbers: Numbers, condition: str) -> Numbers:
    return {"_heads": _largest_divisor(numbers["Q"], numbers["K"] or 1)}


def _fill_cache(numbers: Numbers, condition: str) -> Numbers:
    start, cache_height = numbers["update_idx"], numbers["cache_height"]
    return {"over_by": start + numbers["input_height"] - cache_height, "_most": max(0, cache_height - start)}


_DERIVATIONS: dict[str, Callable[..., Numbers]] = {
    function.__name__.strip("_"): function
    for function in (
        _difference, _excess, _excess_of_one, _divides, _division, _bare_division, _incompatible, _stated_division,
        _stated_equality, _out_of_memory, _buffers_clash, _buffers_exceed, _next_legal_shard, _off_device, _alignment,
        _tile_extent, _subblock, _expected_per_core, _attention, _heads, _fill_cache, _named_numbers,
    )
}  # fmt: skip
