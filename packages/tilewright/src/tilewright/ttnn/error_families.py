# SPDX-License-Identifier: Apache-2.0
"""The table `errors.toml`, which has the errors of ttnn and tt-metal, and what follows from the numbers of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .._integers import ceil_div, round_up
from .._json import parse_toml
from ..formats import format_of
from ..memory import Chip

Numbers = dict[str, Any]  # integers, words, decimals and lists of integers, depending on the wording

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
    "text": r".*",
    "phrase": r"[A-Za-z_](?:[\w\[\]().*/+' -]{0,70}?[\w\])])?",
}
_SMALL_WORDS = re.compile("than|to|of|at|by|is|and|or|be|least|most|only|but|got|has|have|are|was|exceed")
_TOKEN = re.compile(r"\{(\w+)(?::(\w+))?\}|(\[\?)|(\?\])|<(?:(\w+):([^<>]+)|([^<>|]+(?:\|[^<>|]+)+))>")


@dataclass(frozen=True)
class Family:
    """A kind of error: its `wordings`, `what` happened, the `rule` that is broken, `remedies`, and the `unknown` facts.

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

    def derive_from(self, numbers: Numbers) -> Numbers:
        """Return the numbers derived from the numbers of a message; none if one is missing.

        >>> Family("", derive=("difference", "over_by", "end", "size")).derive_from({"end": 9, "size": 7})
        {'over_by': 2}
        """
        if not self.derive:
            return {}
        derivation, arguments = _DERIVATIONS[self.derive[0]], self.derive[1:]
        try:
            return derivation(numbers, *arguments)
        except (KeyError, ZeroDivisionError):
            return {}


@cache
def _load_table() -> dict[str, Any]:
    return parse_toml(Path(__file__).with_name("errors.toml").read_bytes(), "errors.toml")


@cache
def load_families(group: str = "families") -> tuple[Family, ...]:
    """Return the families of a group: "families" are looked for anywhere, "rules" only in the message of a TT_FATAL.

    >>> [family.kind for family in load_families("rules")][:2]
    ['does_not_divide', 'values_differ']
    """
    texts = [{name: _as_lines(value) for name, value in row.items()} for row in _load_table()[group]]
    return tuple([Family(**row) for row in texts])


def load_meanings() -> Mapping[str, str]:
    """Return the meanings of the numbers in messages, by their names.

    >>> load_meanings()["overlap"]
    'bytes that both claim'
    """
    return {**_load_table()["meanings"]}


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
    return text if shape == "text" else text.rpartition("::")[2].strip()


# What follows from the numbers of a message. A number that the message does not have is a KeyError: nothing follows.
# Names that begin with an underscore are for sentences; `_kind` and `_numbers` replace the family's, and
# `_condition` is what failed.


def _difference(numbers: Numbers, name: str, large: str, small: str) -> Numbers:
    return {name: numbers[large] - numbers[small]}


def _excess(numbers: Numbers, name: str, *limits: str) -> Numbers:
    """Return by how much, and how many times, a count is over the limit that the message states."""
    count, limit = numbers[name], numbers[next(filter(numbers.__contains__, limits), "")]
    return {"too_many_by": count - limit, "_times": ceil_div(count, limit)}


def _divides(numbers: Numbers, whole: str, part: str) -> Numbers:
    """Return the remainder of a division, and the next smaller divisor."""
    return {"remainder": numbers[whole] % numbers[part], "_divisor": _largest_divisor(numbers[whole], numbers[part])}


def _division(numbers: Numbers) -> Numbers:
    """Return the kind of a division and its numbers, by the names that the text gives them."""
    whole, part = numbers["_whole"], numbers["_part"]
    stated = ((whole, "_value"), (part, "_divisor_value"))
    named = {_as_name(name): numbers[value] for name, value in stated if value in numbers}
    otherwise = "matmul_per_core_does_not_divide" if "per_core_" in whole else "does_not_divide"
    kind = _kind_of("kinds_by_divisor", part, otherwise)
    derived: Numbers = {"_kind": kind, "_numbers": named, "_whole": whole, "_part": part}
    if len(named) == 2 and numbers["_divisor_value"]:
        derived |= _divides(named, *named)
        derived |= {"_padded": round_up(*named.values())} if kind == "not_a_tile_multiple" else {}
    return derived


def _division_of_condition(numbers: Numbers) -> Numbers:
    """Return a division of which the message has the values only, as in older versions, and the condition the names."""
    names = re.search(r"(?P<_whole>\w{1,40}) % (?:\w{1,40}\.)?(?P<_part>\w{1,40}) == 0", numbers["_condition"])
    return _division(numbers | names.groupdict()) if names else {}


def _equality(numbers: Numbers) -> Numbers:
    """Return the kind and the numbers of two values that should be equal, by the names that the text gives them."""
    first, second, value, other = (numbers[name] for name in ("_first", "_second", "_value", "_other"))
    kind = _kind_of("kinds_by_equal", f"{first} {second}", "values_differ")
    named = {_as_name(first): value, _as_name(second): other}
    return {"_kind": kind, "_numbers": named, "difference": abs(value - other)}


def _kind_of(table: str, names: str, otherwise: str) -> str:
    """Return the kind of the first row of a table whose word the names of some numbers have."""
    return next((kind for word, kind in _load_table()[table].items() if word in names.lower()), otherwise)


def _as_name(phrase: str) -> str:
    """Return words of a message as the name of a number."""
    return re.sub(r"\W+", "_", phrase).strip("_")


def _named_numbers(numbers: Numbers) -> Numbers:
    """Return the numbers of a message that is not known, by the words before them."""
    named = re.findall(r"([A-Za-z_]\w{0,60})(?: ?\(|=|: | )(\d{1,19})\b(?!\.\d)", numbers["_text"])
    return {"_numbers": {name: int(value) for name, value in named if not _SMALL_WORDS.fullmatch(name)}}


def _largest_divisor(number: int, most: int) -> int:
    """Return the largest divisor of a number of tiles that is at most `most`."""
    return next((d for d in range(min(most, number, 4096), 1, -1) if number % d == 0), 1)


def _out_of_memory(numbers: Numbers) -> Numbers:
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
        derived |= {"_space": space, "_parts": ceil_div(needed, space)} | _smaller_formats(needed, space)
    return derived | (_in_dram(numbers) if memory == "L1" else _reserved_dram(numbers, derived))


def _smaller_formats(needed: int, space: int) -> Numbers:
    """Return the changes of format with which the tiles of a bank would fit a space."""
    changes = []
    for stored, smaller in (("float32", "bfloat16"), ("bfloat16", "bfloat8_b"), ("bfloat8_b", "bfloat4_b")):
        page, less = (format_of(name).bytes_per_tile(32 * 32) for name in (stored, smaller))
        if needed % page == 0 and needed // page * less <= space:
            changes.append(f"{smaller} if it is {stored} now ({needed // page * less} B per bank)")
    return {"_formats": ", ".join(changes)} if changes else {}


def _in_dram(numbers: Numbers) -> Numbers:
    """Return the share of a bank of DRAM instead, if the number of L1 banks identifies the chip."""
    for chip in _chips():
        if chip.banks("l1") == numbers["banks"]:
            banks = chip.banks("dram")
            share, bank = ceil_div(numbers["size"], banks), chip.bank_bytes("dram")
            return {"_dram": f", on {chip.name} about {share} of {bank} B in each of {banks} banks"}
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


def _buffers_clash(numbers: Numbers) -> Numbers:
    end = numbers["buffers_end"]
    left = [f"{chip.l1_end - end} B on {chip.name.partition('_')[0]}" for chip in _chips()[:2] if chip.l1_end > end]
    return {"overlap": end - numbers["l1_buffer_address"], **({"_left": " or ".join(left)} if left else {})}


def _buffers_exceed(numbers: Numbers) -> Numbers:
    end, size = numbers["buffers_end"], numbers["l1_size"]
    derived: Numbers = {"over_by": end - size}
    for chip in _chips():
        if chip.l1_end == size and end > size:
            times = ceil_div(end - chip.l1_base, size - chip.l1_base)
            return derived | {"_chip": chip.name, "_buffers": end - chip.l1_base, "_times": times}
    return derived


def _next_legal_shard(numbers: Numbers) -> Numbers:
    return {"next_legal": list(map(round_up, numbers["shard"], numbers["tile"]))}


def _off_device(numbers: Numbers) -> Numbers:
    if numbers["memory"] == "DRAM":
        return {"_cores": f"(0, 0) to ({numbers['banks'] - 1}, 0)", "_query": "dram_grid_size()"}
    return {"_query": "compute_with_storage_grid_size()"}


def _alignment(numbers: Numbers) -> Numbers:
    return {"_alignment": numbers.get("alignment", 16), "_elements": numbers.get("alignment", 16) // 2}


def _subblock(numbers: Numbers) -> Numbers:
    width, height, limit = (numbers[name] for name in ("out_subblock_w", "out_subblock_h", "limit"))
    fitting = _largest_divisor(width, limit)
    return {"over_by": width * height - limit, "_width": fitting, "_height": _largest_divisor(height, limit // fitting)}


def _expected_per_core(numbers: Numbers) -> Numbers:
    return {"expected_per_core_M": numbers["shard_height"] // numbers["tile_height"]}


def _heads(numbers: Numbers) -> Numbers:
    return {"_heads": _largest_divisor(numbers["Q"], numbers["K"])}


def _fill_cache(numbers: Numbers) -> Numbers:
    free = numbers["cache_height"] - numbers["update_idx"]
    return {"over_by": numbers["input_height"] - free, "_most": max(0, free)}


_DERIVATIONS: dict[str, Callable[..., Numbers]] = {
    function.__name__.strip("_"): function
    for function in (
        _difference, _excess, _divides, _division, _division_of_condition, _equality, _out_of_memory, _buffers_clash,
        _buffers_exceed, _next_legal_shard, _off_device, _alignment, _subblock, _expected_per_core, _heads, _fill_cache,
        _named_numbers,
    )
}  # fmt: skip
