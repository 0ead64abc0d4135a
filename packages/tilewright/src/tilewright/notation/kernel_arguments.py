# SPDX-License-Identifier: Apache-2.0
"""`KernelArguments`: the compile-time words in the command that compiles a kernel of tt-metal, and the accessors there.

The accessors of a kernel follow one another. Where they begin is known to the source of the kernel alone, so they are
looked for: a sharded accessor is hard to mistake, but two words are all that an interleaved one has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .._text import count_of
from ..errors import LayoutError, MemoryConfigError
from ..memory import AccessorArguments, ChipLike, parse_accessor

_WORDS = re.compile(r"KERNEL_COMPILE_TIME_ARGS[\s=]+(\d{1,10}u?(?:\s*,\s*\d{1,10}u?)*)(?!\w|\s*,\s*\w)")
_NAMED = re.compile(r'\{\s*\\?"([^"\\]+)\\?"\s*,\s*(\d+)')
_NAME = re.compile(r'FULL_KERNEL_NAME=[\\"\']*([^\s"\'\\]+)')
_OFFSET = re.compile(r"Tensor(?:AccessorArgs|BindingToken)\s*<\s*(\d{1,9})u?\s*[,>]")
_REMEDY = "give the offset that the kernel has, such as 3 for TensorAccessorArgs<3>()"

Reading = tuple[AccessorArguments, ...]


@dataclass(frozen=True)
class KernelArguments:
    """The compile-time words of a kernel, its name and named words, and `offsets` of accessors if its source is there.

    >>> kernel = parse_kernel_arguments("-DKERNEL_COMPILE_TIME_ARGS=7,3,2048,1,2,12,2,16777216")
    >>> [str(accessor) for accessor in kernel.accessors()]
    ['TensorAccessor: 12 pages of 2048 bytes, sharded in DRAM, shards of 2 pages']
    """

    words: tuple[int, ...]
    name: str = ""
    named: tuple[tuple[str, int], ...] = ()
    offsets: tuple[int, ...] = ()

    def readings(self, chip: ChipLike | None = None, offset: int | None = None) -> list[Reading]:
        """Return the possible accessors on a `chip`: from `offset` on, or each run that the words allow.

        Words inside longer accessors do not count as accessors. A run with a sharded accessor rules out runs without
        one, and a run with an interleaved accessor rules out runs of single words.

        >>> kernel = parse_kernel_arguments("KERNEL_COMPILE_TIME_ARGS=0,4096,4,2,4096")
        >>> [run[0].offset for run in kernel.readings()], [run[0].offset for run in kernel.readings(offset=3)]
        ([0, 3], [3])
        """
        if offset is None and self.offsets:
            return [tuple([parse_accessor(self.words, chip, at) for at in sorted(set(self.offsets))])]
        if offset is not None:
            parse_accessor(self.words, chip, offset)  # raises with the reason if there is none
        runs: dict[int, list[AccessorArguments]] = {}  # by their end
        reach = 0
        for at in range(offset or 0, len(self.words)):
            try:
                accessor = parse_accessor(self.words, chip, at)
            except MemoryConfigError:
                continue
            end = at + len(accessor.words)
            if end > reach:
                reach = end
                runs[end] = [*runs.pop(at, ()), accessor]
        if offset is not None:
            return [tuple(next(run for run in runs.values() if run[0].offset == offset))]
        best = max([_strength(run) for run in runs.values()], default=0)
        return [tuple(run) for run in runs.values() if _strength(run) == best]

    def accessors(self, chip: ChipLike | None = None, offset: int | None = None) -> Reading:
        """Return the accessors on a `chip`, from `offset` on if it is given; raise unless there is one reading.

        >>> kernel = parse_kernel_arguments("KERNEL_COMPILE_TIME_ARGS=0,4096,4,2,4096")
        >>> kernel.accessors(offset=3)[0].words
        (2, 4096)
        """
        readings = self.readings(chip, offset)
        if len(readings) != 1:
            offsets = ", ".join([str(run[0].offset) for run in readings])
            what = f"{len(readings)} at {offsets}" if readings else "none"
            raise LayoutError(f"expected accessors at one place of {len(self.words)} words, got {what}; {_REMEDY}")
        return readings[0]

    def explain(self, chip: ChipLike | None = None, offset: int | None = None) -> str:
        """Return the words with their meanings on a `chip`, of the accessors from `offset` on if it is given.

        >>> print(parse_kernel_arguments("KERNEL_COMPILE_TIME_ARGS=0,4096,4,2,4096").explain())
        kernel: 5 compile-time words
        2 readings are possible; give the offset that the kernel has, such as 3 for TensorAccessorArgs<3>()
        offset 0  TensorAccessor: pages of 4096 bytes, interleaved in L1
        offset 3  TensorAccessor: pages of 4096 bytes, interleaved in DRAM
        """
        lines = [f"kernel{self.name and ' '}{self.name}: {count_of(len(self.words), 'compile-time word')}"]
        lines += [f"named words: {', '.join([f'{name} {value}' for name, value in self.named])}"] if self.named else []
        readings = self.readings(chip, offset)
        if len(readings) != 1:
            lines.append(f"{len(readings) or 'no'} readings are possible; {_REMEDY}")
            lines += [f"offset {run[0].offset}  {', then '.join(map(str, run))}" for run in readings]
            return "\n".join(lines)
        at = 0
        for accessor in readings[0]:
            lines += [*self._own_words(at, accessor.offset), accessor.explain()]
            at = accessor.offset + len(accessor.words)
        if offset is None and not self.offsets and not all(accessor.is_sharded for accessor in readings[0]):
            lines.append("the words of an interleaved accessor may also be the kernel's own: its source decides")
        lines += self._own_words(at, len(self.words))
        if sum([accessor.is_sharded for accessor in readings[0]]) == 1:
            lines.append("tilewright show, with --chip, draws which core holds which pages")
        return "\n".join(lines)

    def _own_words(self, start: int, end: int) -> list[str]:
        words = ", ".join(map(str, self.words[start:end]))
        return [f"from word {start} on, {count_of(end - start, 'word')} of the kernel's own: {words}"] if words else []

    def to_json(self, chip: ChipLike | None = None, offset: int | None = None) -> dict[str, Any]:
        """Return the words and the readings on a `chip`, of those from `offset` on if it is given, as plain data.

        >>> parse_kernel_arguments("KERNEL_COMPILE_TIME_ARGS=2,4096").to_json()["words"]
        [2, 4096]
        """
        readings = [[accessor.to_json() for accessor in run] for run in self.readings(chip, offset)]
        return {"kernel": self.name, "words": list(self.words), "named": dict(self.named), "readings": readings}

    def __str__(self) -> str:
        return f"KERNEL_COMPILE_TIME_ARGS={','.join(map(str, self.words))}"


def _strength(run: list[AccessorArguments]) -> int:
    """Return how hard a run of accessors is to mistake for other words: sharded, interleaved, or a single word."""
    return max([2 if accessor.is_sharded else len(accessor.words) - 1 for accessor in run])


def parse_kernel_arguments(text: str) -> KernelArguments:
    """Return the arguments in a `text` with the command that compiles a kernel; the rest is ignored.

    >>> parse_kernel_arguments('-DFULL_KERNEL_NAME="reader/1/" -DKERNEL_COMPILE_TIME_ARGS=2,4096 -O2').name
    'reader/1/'
    """
    texts = {match[1] for match in _WORDS.finditer(text)}
    if len(texts) != 1:
        raise LayoutError(
            f"expected KERNEL_COMPILE_TIME_ARGS=1,2048,... of one kernel, in decimal, got {len(texts)} lists; pass the"
            " command that compiles one kernel"
        )
    words = tuple([int(word.strip(" \tu\n")) for word in texts.pop().split(",")])
    name = _NAME.search(text)
    named = tuple([(match[1], int(match[2])) for match in _NAMED.finditer(text.partition("COMPILE_TIME_ARG_MAP")[2])])
    offsets = tuple([int(match[1]) for match in _OFFSET.finditer(text)])
    return KernelArguments(words, name[1] if name else "", named, offsets)
