# SPDX-License-Identifier: Apache-2.0
"""`AccessorArguments`: the words by which a kernel of tt-metal knows where the pages of a tensor are, both ways.

The words are, in this order: a set of bits, the bytes of a page, and of a sharded tensor its rank, the number of banks,
the tensor and the shard in pages, and the coordinates of the banks, two in a word. A bit for each of them puts it among
the kernel's compile-time words, or among its common runtime words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from textwrap import fill
from typing import Any, TypeAlias

from .._integers import ceil_div
from .._text import count_of, format_extents, format_table, suggest
from ..display import Drawable
from ..errors import MemoryConfigError
from ..layout import as_integer, bank, core
from .chip import Chip, ChipLike
from .config import BufferType, ShardDistribution
from .cores import CoreCoord, CoreLike
from .page_geometry import PageGeometry
from .paging import Integers, PageMap, PageTable, Paging, interleaved_paging

RUNTIME_BITS = {"rank": 4, "banks": 8, "tensor_shape": 16, "shard_shape": 32, "coordinates": 64, "page_size": 128}
_SHARDED, _IN_DRAM = 1, 2  # the other bits of the first word
_IN_RUNS = 1 << 31  # the bit for contiguous_1d in the word with the number of banks
_MAX_RANK, _MAX_BANKS = 8, 1024
_ALIGNMENT = {True: 16, False: 32}  # of pages in L1, and at least in DRAM, on every chip
_MEANINGS = {"page_size": "bytes of a page, aligned", "rank": "rank of the shapes in pages"}
_CHECK = "check the offset"
_WIDTH = 80

Words: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class AccessorArguments(Drawable):
    """The words that a kernel gets for the pages of a tensor, and the paging that they state.

    Args:
        words: the compile-time words.
        runtime_words: the common runtime words, without the address before them; None if they are not known.
        chip: the chip, which knows the cores at the coordinates, and the banks.
        offset: the index of the first of `words` in the kernel's list.
        interleaved_pages: the number of pages of an interleaved tensor, which no word states, if it is known.

    >>> from tilewright import TensorSpec, height_sharded
    >>> spec = TensorSpec((192, 64), page_layout="tile", memory=height_sharded((2, 1)), chip="wormhole_n150")
    >>> arguments = spec.accessor_arguments()
    >>> arguments.words
    (1, 2048, 1, 2, 12, 6, 319951378)
    >>> arguments.paging == spec.paging.squeeze(), arguments.pages_of_shard(1).tolist()
    (True, [6, 7, 8, 9, 10, 11])
    """

    words: Words
    runtime_words: Words | None = ()
    chip: Chip | None = None
    offset: int = 0
    interleaved_pages: int | None = None

    def __post_init__(self) -> None:
        parts, is_l1 = self._parts, self.buffer_type.is_l1
        unit = _ALIGNMENT[is_l1] if self.chip is None else self.chip.page_alignment(self.buffer_type)
        size = (parts["page_size"] or (unit,))[0]
        if not size or size % unit:
            raise MemoryConfigError(
                f"expected the bytes of a page, a multiple of {unit} in {self.buffer_type}, got {size}; {_CHECK}, and"
                " the chip, and skip the words 0, 0 of an optional tensor that was left out"
            )
        if 0 in (parts.get("shard_shape") or ()):
            raise MemoryConfigError(f"expected shards of at least 1 page, got {parts['shard_shape']}; {_CHECK}")
        if parts.get("coordinates") is None:
            return
        at, halves = self.coordinates, _unpack_coordinates(self._part("coordinates"))
        odd = [place for place, count in Counter(at).items() if count > 1 or (place.y and not is_l1)]
        odd += [place for place in halves[len(at) :] if any(place)]
        if odd:
            rule = "distinct cores" if is_l1 else "distinct banks (bank, 0)"
            raise MemoryConfigError(f"expected {rule} and 0 after {len(at)} coordinates, got {odd[0]}; {_CHECK}")
        if self.chip is not None:
            self.chip.banks_of(self.cores, self.buffer_type)

    @cached_property
    def _parts(self) -> dict[str, Words | None]:
        """The words by the name of their part; None if they are not known."""
        return dict(_read_parts(self.words, 0, self.runtime_words))

    def _part(self, name: str) -> Words:
        words = self._parts.get(name)
        if words is None:
            raise MemoryConfigError(f"{name} is left to run time; pass the common runtime words after the address")
        return words

    @property
    def is_sharded(self) -> bool:
        """Whether pages lie in shards.

        >>> parse_accessor([2, 2048]).is_sharded
        False
        """
        return bool(self.words[0] & _SHARDED)

    @property
    def buffer_type(self) -> BufferType:
        """The memory: DRAM, or L1, which stands for L1_SMALL as well.

        >>> parse_accessor([2, 2048]).buffer_type
        BufferType.DRAM
        """
        return BufferType.DRAM if self.words[0] & _IN_DRAM else BufferType.L1

    @property
    def aligned_page_bytes(self) -> int:
        """The distance in bytes of the pages of a bank.

        >>> parse_accessor([2, 2048]).aligned_page_bytes
        2048
        """
        return self._part("page_size")[0]

    @property
    def distribution(self) -> ShardDistribution | None:
        """The distribution of shards, where round_robin_1d stands for grid_2d as well; None for interleaved pages.

        >>> parse_accessor([1, 2048, 1, 2, 12, 6, 319951378]).distribution
        ShardDistribution.ROUND_ROBIN_1D
        """
        if not self.is_sharded:
            return None
        return ShardDistribution.of("contiguous_1d" if self._part("banks")[0] & _IN_RUNS else "round_robin_1d")

    @cached_property
    def coordinates(self) -> tuple[CoreCoord, ...]:
        """The coordinates of the banks as kernels have them: virtual ones of cores, or (bank, 0) in DRAM.

        >>> parse_accessor([1, 2048, 1, 2, 12, 6, 319951378]).coordinates
        (CoreCoord(x=18, y=18), CoreCoord(x=19, y=18))
        """
        return _unpack_coordinates(self._part("coordinates"))[: self._part("banks")[0] % _IN_RUNS]

    @cached_property
    def cores(self) -> tuple[CoreCoord, ...]:
        """The cores of shards in order, or of the banks of an interleaved tensor; a bank of DRAM is the core (bank, 0).

        >>> parse_accessor([1, 2048, 1, 2, 12, 6, 319951378], "wormhole_n150").cores
        (CoreCoord(x=0, y=0), CoreCoord(x=1, y=0))
        """
        if self.is_sharded and not self.buffer_type.is_l1:
            return self.coordinates
        if self.chip is None:
            raise MemoryConfigError("cores and banks depend on the chip; pass chip, such as wormhole_n150")
        return self.chip.cores_at(self.coordinates) if self.is_sharded else self.chip.bank_cores(self.buffer_type)

    @cached_property
    def paging(self) -> Paging:
        """The division of pages into shards and over cores; without a chip, the cores are their virtual coordinates.

        >>> parse_accessor([1, 2048, 2, 1, 4, 6, 4, 3, 4626], "wormhole_n150").paging.shards
        (1, 2)
        """
        if self.is_sharded:
            cores = self.coordinates if self.chip is None else self.cores
            in_runs = self.distribution is ShardDistribution.CONTIGUOUS_1D
            return Paging(self._part("tensor_shape"), self._part("shard_shape"), cores, in_runs)
        if self.interleaved_pages is None:
            raise MemoryConfigError("no word states the number of pages of an interleaved tensor; pass num_pages")
        return interleaved_paging(self.interleaved_pages, self.cores)

    @property
    def num_pages(self) -> int | None:
        """The number of pages; None if it is not known.

        >>> parse_accessor([1, 2048, 1, 2, 12, 6, 319951378]).num_pages, parse_accessor([2, 2048]).num_pages
        (12, None)
        """
        grid = self._parts.get("tensor_shape")
        return self.interleaved_pages if grid is None else prod(grid)

    @cached_property
    def page_map(self) -> PageMap:
        """The map from pages to banks or cores, and back.

        >>> parse_accessor([2, 2048], "wormhole_n150", num_pages=20).page_map.page_at(1, 2048 + 5)
        (13, 5)
        """
        self.paging.validate_even()
        banks: Iterable[int] = [at.x for at in self.cores]  # of DRAM
        if self.buffer_type.is_l1 and self.chip is not None:
            banks = self.chip.banks_of(self.cores, "l1") if self.is_sharded else range(len(self.cores))
        return PageMap(self.paging, tuple(banks), self.aligned_page_bytes, core if self.is_sharded else bank)

    def pages(self, base: int = 0) -> PageTable:
        """Return the table of all pages in order, in a buffer at address `base`.

        >>> parse_accessor([1, 2048, 1, 2, 4, 2, 319951378], "wormhole_n150").pages().core_x.tolist()
        [0, 0, 1, 1]
        """
        return self.page_map.table(base)

    def pages_of_shard(self, shard: int) -> Integers:
        """Return the pages of a `shard` as a kernel iterates over them: a partial shard's missing pages are skipped.

        >>> parse_accessor([1, 2048, 1, 2, 11, 6, 319951378]).pages_of_shard(1).tolist()
        [6, 7, 8, 9, 10]
        """
        return self.paging.pages_of_shard(shard)

    def shards_of(self, place: CoreLike) -> range:
        """Return the shards of `place`, a core (x, y) or a DRAM bank (bank, 0), in the order of their addresses.

        >>> parse_accessor([3, 2048, 1, 2, 12, 2, 16777216]).shards_of((1, 0))
        range(1, 6, 2)
        """
        paging, owner = self.paging, CoreCoord.of(place)
        paging.validate_even()
        if owner not in paging.cores:
            raise MemoryConfigError(f"expected a core of {', '.join(map(str, paging.cores))}, got {owner}; pass those")
        return paging.shards_of(paging.cores.index(owner))

    @property
    def open(self) -> tuple[str, ...]:
        """The facts that the words do not state.

        >>> parse_accessor([130], "wormhole_n150").open
        ('page_size', 'address', 'dtype', 'page layout', 'tile or width of rows', 'shape', 'number of pages')
        """
        further = {
            "orientation": self.is_sharded,
            "round_robin_1d or grid_2d": self.is_sharded and not (self._parts["banks"] or (_IN_RUNS,))[0] & _IN_RUNS,
            "number of pages": not self.is_sharded and self.interleaved_pages is None,
            "chip": self.chip is None,
        }
        late = [name for name, words in self._parts.items() if words is None]
        always = ("address", "dtype", "page layout", "tile or width of rows", "shape")
        return (*late, *always, *[name for name, is_open in further.items() if is_open])

    def table(self) -> list[tuple[str, int, str]]:
        """Return each word with its place in the kernel's lists and its meaning, compile-time words first.

        >>> parse_accessor([2, 2048]).table()
        [('0', 2, 'interleaved in DRAM'), ('1', 2048, 'bytes of a page, aligned')]
        """
        rows: list[tuple[str, int, str]] = []
        for is_late, where in ((False, ""), (True, "run time ")):
            parts = [part for part in self._parts.items() if _is_late(self.words[0], part[0]) is is_late]
            words = [(word, self._meaning(name, k)) for name, own in parts for k, word in enumerate(own or ())]
            rows += [(f"{where}{k}", *word) for k, word in enumerate(words, 0 if is_late else self.offset)]
        return rows

    def _meaning(self, name: str, k: int) -> str:
        """Return the meaning of word `k` of a part."""
        if name == "config":
            late = ", ".join([part for part in RUNTIME_BITS if _is_late(self.words[0], part)])
            kind = "sharded" if self.is_sharded else "interleaved"
            return f"{kind} in {self.buffer_type}{late and f', at run time: {late}'}"
        if name == "banks":
            banks = self._part(name)[0]
            return f"banks: {banks % _IN_RUNS}, shards {'in runs (bit 31)' if banks & _IN_RUNS else 'in turn'}"
        if name == "coordinates":
            pair = slice(2 * k, 2 * k + 2)
            places = list(map(str, self.coordinates[pair]))
            if self.chip is not None and self.buffer_type.is_l1:
                places = [f"core {own} at {place}" for own, place in zip(self.cores[pair], places, strict=True)]
            return " and ".join(places)
        return _MEANINGS.get(name, f"{name.partition('_')[0]}, pages of dimension {k}")

    def explain(self) -> str:
        """Return a table of the words with their meanings, and the facts that they leave open.

        >>> print(parse_accessor([3, 2048, 1, 2, 12, 2, 16777216]).explain())
        TensorAccessor: 12 pages of 2048 bytes, sharded in DRAM, shards of 2 pages
        word     value        hex  meaning
        0            3        0x3  sharded in DRAM
        1         2048      0x800  bytes of a page, aligned
        2            1        0x1  rank of the shapes in pages
        3            2        0x2  banks: 2, shards in turn
        4           12        0xc  tensor, pages of dimension 0
        5            2        0x2  shard, pages of dimension 0
        6     16777216  0x1000000  (0, 0) and (1, 0)
        not stated: address, dtype, page layout, tile or width of rows, shape,
        orientation, round_robin_1d or grid_2d, chip
        """
        rows = [(at, str(word), hex(word), meaning) for at, word, meaning in self.table()]
        lines = format_table([("word", "value", "hex", "meaning"), *rows], right=[1, 2])
        notes = [f"not stated: {', '.join(self.open)}"]
        if self.is_sharded and None not in self._parts.values() and self.paging.is_uneven:
            notes.append(
                f"contiguous_1d with {self.paging.num_shards} shards on {len(self.paging.cores)} cores: ttnn refuses to"
                " copy the tensor from or to the host, and a kernel does not find all shards"
            )
        return "\n".join([str(self), *lines, *[fill(note, _WIDTH) for note in notes]])

    def to_json(self) -> dict[str, Any]:
        """Return the words, their meanings and the open questions, as plain data.

        >>> parse_accessor([2, 2048]).to_json()["words"]
        [2, 2048]
        """
        table = [{"word": at, "value": word, "meaning": meaning} for at, word, meaning in self.table()]
        return {"what": str(self), "words": list(self.words), "table": table, "open": list(self.open)}

    def __str__(self) -> str:
        size, shard = self._parts["page_size"], self._parts.get("shard_shape")
        pages = "pages" if self.num_pages is None else count_of(self.num_pages, "page")
        kind = f"{'sharded' if self.is_sharded else 'interleaved'} in {self.buffer_type}"
        shards = f", shards of {format_extents(shard)} pages" if shard else ""
        return f"TensorAccessor: {pages}{f' of {size[0]} bytes' if size else ''}, {kind}{shards}"


def parse_accessor(
    words: Iterable[int],
    chip: ChipLike | None = None,
    offset: int = 0,
    runtime: Iterable[int] | None = None,
    num_pages: int | None = None,
) -> AccessorArguments:
    """Return the arguments of the `TensorAccessor` that begins at `offset` of a kernel's compile-time words.

    Args:
        words: the compile-time words of the kernel; those after the accessor's own are left alone.
        chip: the chip, which knows the cores at the coordinates, and the banks.
        offset: the index of the accessor's first word, as in `TensorAccessorArgs<3>()`.
        runtime: the common runtime words that the compile-time words leave open, without the address before them.
        num_pages: the number of pages of an interleaved tensor, which no word states.

    >>> accessor = parse_accessor([7, 1, 2048, 2, 4, 4, 6, 2, 3, 319951378, 320016915], "wormhole_n150", offset=1)
    >>> print(accessor)
    TensorAccessor: 24 pages of 2048 bytes, sharded in L1, shards of 2 x 3 pages
    >>> accessor.pages().by_core()[CoreCoord(1, 0)]
    [3, 4, 5, 9, 10, 11]
    """
    listed = words if isinstance(words, (list, tuple)) else list(words)
    parts = dict(_read_parts(listed, offset, None if runtime is None else list(runtime)))
    return AccessorArguments(*_split(parts), None if chip is None else Chip.of(chip), offset, num_pages)


def accessor_arguments(spec: PageGeometry, runtime: Iterable[str] = ()) -> AccessorArguments:
    """Return the arguments of the accessor of a `spec` on its chip, with the parts in `runtime` left to run time.

    >>> from tilewright import TensorSpec
    >>> accessor_arguments(TensorSpec((64, 64), "float32", chip="wormhole_n150")).words
    (2, 256)
    """
    chip, buffer, sharded = spec.known_chip, spec.memory.buffer_type, spec.memory.is_sharded
    config = sharded * _SHARDED + (not buffer.is_l1) * _IN_DRAM
    for name in [runtime] if isinstance(runtime, str) else runtime:
        if name not in RUNTIME_BITS:
            raise MemoryConfigError(f"unknown part {name!r} of an accessor; {suggest(name, list(RUNTIME_BITS))}")
        # an interleaved tensor has no words for the other parts, and tt-metal leaves out their bits
        config |= RUNTIME_BITS[name] if sharded or name == "page_size" else 0
    parts: dict[str, Sequence[int]] = {"config": (config,), "page_size": (spec.aligned_page_bytes,)}
    if sharded:
        paging = spec.cut_pages(uneven=True).squeeze()
        chip.banks_of(paging.cores, buffer)  # which refuses cores that the chip does not have
        at = [chip.virtual_cores[owner] for owner in paging.cores] if buffer.is_l1 else paging.cores
        banks = len(at) | (_IN_RUNS if paging.in_runs else 0)
        parts |= {"rank": (len(paging.grid),), "banks": (banks,), "tensor_shape": paging.grid}
        parts |= {"shard_shape": paging.shard, "coordinates": _pack_coordinates(at)}
    return AccessorArguments(*_split(parts), chip, interleaved_pages=None if sharded else spec.num_pages)


def _split(parts: Mapping[str, Iterable[int] | None]) -> tuple[Words, Words | None]:
    """Return the compile-time and the common runtime words of all parts; None for the latter if some are not known."""
    (config,) = parts["config"] or ()
    own = [word for name, part in parts.items() if not _is_late(config, name) for word in part or ()]
    late = [word for name, part in parts.items() if _is_late(config, name) for word in part or ()]
    return tuple(own), None if None in parts.values() else tuple(late)


def _is_late(config: int, name: str) -> bool:
    """Return whether the bits of the first word leave a part to run time."""
    return bool(config & RUNTIME_BITS.get(name, 0))


def _read_parts(words: Sequence[int], offset: int, late: Sequence[int] | None) -> Iterator[tuple[str, Words | None]]:
    """Yield the parts of the words from `offset` on by name; None for run-time parts that are not given."""
    at, counts = {False: offset, True: 0}, {"config": 1, "page_size": 1, "rank": 1, "banks": 1}
    names, config = ["config", "page_size"], 0
    for name in names:
        is_late = _is_late(config, name)
        source, start = late if is_late else words, at[is_late]
        if source is None:
            yield name, None
            continue
        at[is_late] = start + counts[name]
        part = tuple([_as_word(word) for word in source[start : at[is_late]]])
        if start < 0 or len(part) < counts[name]:
            kind = "common runtime" if is_late else "compile-time"
            raise MemoryConfigError(
                f"expected {count_of(counts[name], 'word')} of {name} from {kind} word {start} on, got {len(part)} of"
                f" {len(source)} words; {_CHECK}, and pass all words"
            )
        if name == "config":
            (config,) = part
            _validate_bits(config, offset)
            names += ["rank", "banks", "tensor_shape", "shard_shape", "coordinates"] if config & _SHARDED else []
        elif name == "rank":
            if not 1 <= part[0] <= _MAX_RANK:
                raise MemoryConfigError(
                    f"expected a rank from 1 to {_MAX_RANK}, got {part[0]} in word {start}; {_CHECK}"
                )
            counts |= {"tensor_shape": part[0], "shard_shape": part[0]}
        elif name == "banks":
            counts["coordinates"] = ceil_div(part[0] % _IN_RUNS, 2)
            if not 1 <= part[0] % _IN_RUNS <= _MAX_BANKS:
                raise MemoryConfigError(f"expected 1 to {_MAX_BANKS} banks, got {part[0]} in word {start}; {_CHECK}")
        yield name, part


def _as_word(value: object) -> int:
    word = int(as_integer(value, "a word"))
    if not 0 <= word < 1 << 32:
        raise MemoryConfigError(f"expected a word from 0 to {(1 << 32) - 1}, got {word}; pass unsigned 32-bit words")
    return word


def _validate_bits(config: int, offset: int) -> None:
    """Raise if the first word has bits that the host code does not write, or not together."""
    late = {name for name in RUNTIME_BITS if _is_late(config, name)}
    sharded = config & _SHARDED
    rules = {
        "no bits above 128": not config >> 8,
        "only page_size of an interleaved tensor at run time": sharded or late <= {"page_size"},
        "the page_size of a sharded tensor at compile time": not sharded or "page_size" not in late,
        "rank at run time only with both shapes": "rank" not in late or late >= {"tensor_shape", "shard_shape"},
        "banks at run time only with the coordinates": "banks" not in late or "coordinates" in late,
    }
    for rule, holds in rules.items():
        if not holds:
            raise MemoryConfigError(
                f"expected {rule}, got {config} ({config:#x}) in word {offset}; {_CHECK}, or the parts left to run time"
            )


def _pack_coordinates(at: Sequence[CoreCoord]) -> list[int]:
    """Return words of two coordinates each, the first in the lower half."""
    halves = [core.x << 8 | core.y for core in at] + [0] * (len(at) % 2)
    return [low | high << 16 for low, high in zip(halves[::2], halves[1::2], strict=True)]


def _unpack_coordinates(words: Words) -> tuple[CoreCoord, ...]:
    return tuple([CoreCoord(word >> half + 8 & 0xFF, word >> half & 0xFF) for word in words for half in (0, 16)])
