# SPDX-License-Identifier: Apache-2.0
"""Errors of ttnn and tt-metal, found in what people paste and in logs, and explained: see `error_families`.

A text is read as one line: people hard-wrap messages, and tools put timestamps and ranks before every line.
"""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain, islice, pairwise
from typing import Any, NamedTuple

from .._text import format_bytes, format_extents
from ..errors import FileFormatError
from ..findings import Finding, Severity, plain_data
from .error_families import Family, Numbers, Wording, compile_wording, load_families, load_meanings, read_value

_PREFIXES = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?[ |-]*"  # a timestamp
    r"|\[\d{1,6},\d{1,6}\]<\w{1,10}>:? ?"  # a rank of MPI
    r"|\[(?:rank|default)\d{1,4}\]: ?"  # a process of torch
    r"|\(\w{1,30}(?: pid=\d{1,9}(?:, ip=[\d.]{7,15})?)?\) "  # of vLLM or Ray
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,60} [\w./-]{1,60}(?:\[\d{1,9}\])?: "  # the journal, or syslog
    r"|##\[\w{1,20}\]"  # GitHub
    r"|[\w.-]{1,40} +\| (?=\(|ERROR|INFO|WARN)"  # a container
    r"|(?:ERROR|WARNING|INFO|CRITICAL|DEBUG) [\d:. -]{5,30}\[?[\w./-]{1,80}:\d{1,6}\] ?"  # vLLM's logger
    r"|E {2,}|E\Z|[>#|] ?|\x1b\[[\d;]{0,20}m|[ \t]+){0,6}"
)
_GLUED = re.compile(r"E {3,}|(?:(?<!\S)|(?<=info:))E(?!\S)|\x1b\[[\d;]{0,20}m|`")
_ENVELOPE = re.compile(
    r"TT_(?:FATAL|THROW|ASSERT) @ \S{1,400}:\d{1,7}: (?:(?P<condition>(?:(?!TT_(?:FATAL|THROW) @).){0,1000}?) info: )?"
)
_LOGGED = re.compile(r"(?:TT_(?:FATAL|THROW): |\bAlways \| (?!(?:FATAL \| )?TT_)(?:FATAL \| )?)")
_CLASS = re.compile(r"(?:\w{3,80}: )?(?:Error: )?")  # of the program config, before the message
_END = r" backtrace:| \(assert\.hpp| Traceback \(most| TT_(?:FATAL|THROW) @|\Z"
_MESSAGE_END, _SENTENCE_END = re.compile(_END), re.compile(rf"\. |{_END}")
_WRAPPED = 70  # characters of a line that goes on in the next one
_NEAR = 160  # characters between an envelope and its message
_SHOWN = 300  # characters of a message that nothing explains
_EMPTY_CONDITIONS = ("", "false", "tt::exception")


@dataclass(frozen=True, slots=True)
class ExplainedError(Finding):
    """An error of ttnn or tt-metal: its finding, its `numbers`, the numbers `derived` from them, and the `remedies`.

    `meanings` has the meaning of each number. `text` is the message, `line` where it begins, counted from 1,
    `condition` what the program checked, and `unknown` what the text leaves open.

    >>> error = explain_error("Kt (16) must be divisible by in0_block_w (5)").errors[0]
    >>> error.kind, error.numbers, error.derived
    ('matmul_k_block_does_not_divide', {'k_tiles': 16, 'in0_block_w': 5}, {'remainder': 1})
    """

    text: str = ""
    line: int = 1
    condition: str = ""
    numbers: Numbers = field(default_factory=dict, hash=False)
    derived: Numbers = field(default_factory=dict, hash=False)
    meanings: Mapping[str, str] = field(default_factory=dict, hash=False)
    remedies: tuple[str, ...] = ()
    unknown: str = ""

    def explain(self, width: int = 80) -> str:
        """Return the explanation as text, in lines of at most `width` characters.

        >>> print(
        ...     explain_error("Ends 128 must be less than or equal to the shape of the tensor 96").errors[0].explain()
        ... )
        slice_out_of_range: A slice ends at 128, 32 past the extent 96.
          rule     Ends count within the padded shape of the tensor.
          numbers  end      128  end of the slice
                   size     96   extent of the tensor along that dimension
                   over_by  32   how far it is over the limit
          remedy   End at 96 or before.
        """
        numbers = self.numbers | self.derived
        values = {name: _spell(value, "core" if name == "core" else None) for name, value in numbers.items()}
        values.pop("cause", None)  # which the first line states
        long = [max(map(len, texts), default=0) for texts in (values, values.values())]
        rows = [f"{name:{long[0]}}  {value:{long[1]}}  {self.meanings.get(name, '')}" for name, value in values.items()]
        bullet = "- " if len(self.remedies) > 1 else ""
        sections = (  # each with its label, its rows, and how far the further lines of a row are indented
            ("rule", [self.reason], 0),
            ("failed", [self.condition], 0),
            ("numbers", rows, sum(long) + 4),
            ("remedy", [bullet + remedy for remedy in self.remedies], len(bullet)),
            ("unknown", [self.unknown], 0),
            ("line", [str(self.line)] if self.line > 1 else [], 0),
        )
        wrap = partial(textwrap.wrap, width=width, break_on_hyphens=False)
        lines = wrap(f"{self.kind}: {self.message}", subsequent_indent="  ")
        for label, texts, indent in sections:
            for k, text in enumerate(filter(None, texts)):
                head = f"  {'' if k else label:7}  "
                lines += wrap(head + text, subsequent_indent=" " * (len(head) + indent), break_long_words=False)
        return "\n".join(lines)


@dataclass(frozen=True)
class ErrorReport:
    """The errors that a text has, each once, in the order of their first lines.

    >>> len(find_errors("all 845 tests passed").errors)
    0
    """

    errors: tuple[ExplainedError, ...]

    def explain(self) -> str:
        """Return the explanations of all errors as text.

        >>> find_errors("all 845 tests passed").explain()
        'no error of ttnn or tt-metal in this text'
        """
        return "\n\n".join([error.explain() for error in self.errors]) or "no error of ttnn or tt-metal in this text"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data.

        >>> find_errors("all 845 tests passed").to_json()
        {'errors': []}
        """
        return {"errors": [plain_data(error) for error in self.errors]}

    def __str__(self) -> str:
        return self.explain()


def explain_error(text: str) -> ErrorReport:
    """Return the errors of ttnn and tt-metal in a `text`: their meaning, by how much each fails, and remedies.

    The text is a message, a traceback or a log, with all that tools put around it. A text without such an error
    raises a `FileFormatError`, which lists the supported forms.

    >>> text = "Number of shards along width 16 must not exceed number of cores 8"
    >>> explain_error(text).errors[0].derived
    {'too_many_by': 8}
    """
    report = find_errors(text, is_message=True)
    if not report.errors:
        raise FileFormatError(
            f"{text.strip()[:60]!r} has no error of ttnn or tt-metal: known are the messages of TT_FATAL and TT_THROW"
            " about memory, circular buffers, shards, layouts, matmul program configs, meshes and KV caches; paste the"
            " whole message, from TT_FATAL or its first word on"
        )
    return report


def find_errors(text: str, is_message: bool = False) -> ErrorReport:
    """Return the errors of ttnn and tt-metal in a log: each once, with its first line; none if there are none.

    Args:
        text: the log; 10^5 lines take about a second.
        is_message: whether the text is expected to be a message, which may begin without any envelope.

    >>> [error.kind for error in find_errors("12:01 ok\\nTT_FATAL: Input Tensor A is not allocated").errors]
    ['tensor_not_allocated']
    """
    joined, starts = _join_lines(text)
    heads = _find_heads(joined, starts)
    messages = _find_known(joined)
    known = [message.match.start() for message in messages]
    conditions = {}  # by the message: a log states the condition only once, where the message is raised
    for head, next_head in pairwise([*heads, _Head(len(joined), len(joined))]):
        following = bisect_left(known, head.start)
        if following == len(known) or known[following] >= min(head.start + _NEAR, next_head.start):
            following = len(messages)
            messages.append(_explain_unknown(joined, head))
        condition, start = head.condition, messages[following].match.start()
        if start > head.start and joined.startswith(condition, head.start):  # the message is on its line
            condition = condition[: start - head.start].strip()
        if condition not in _EMPTY_CONDITIONS:
            conditions[messages[following].match[0]] = condition
    if is_message and not messages:
        messages = [*_match_rules(joined, 0), *_search(load_families("conditions"), joined, 0, _SHOWN)][:1]
    messages = messages or [*islice(_search(load_families("hidden"), joined), 1)]
    messages.sort(key=lambda message: message.match.start())
    errors: dict[tuple[str, str], ExplainedError] = {}
    for message in messages:
        line = bisect_right(starts, message.match.start())
        error = _explain_message(message, conditions.get(message.match[0], ""), line)
        errors.setdefault((error.kind, f"{error.numbers} {error.message}"), error)  # it is logged, and then raised
    return ErrorReport(tuple(errors.values()))


def _join_lines(text: str) -> tuple[str, list[int]]:
    """Return a text in one line, without what tools put before lines, and where in it each line begins, and the end."""
    lines = [_PREFIXES.sub("", line, count=1).replace("\\n", " ") for line in text.splitlines()]
    parts = [" ".join(_GLUED.sub(" ", line).split()) for line in lines]
    return " ".join(parts), [0, *accumulate(len(part) + 1 for part in parts)]


class _Head(NamedTuple):
    """Where a message begins and ends, and the condition of its envelope; without a message, that is all there is."""

    start: int
    end: int
    condition: str = ""


def _find_heads(joined: str, starts: Sequence[int]) -> list[_Head]:
    """Return where messages begin, as envelopes and log lines show: whatever the message is."""
    heads = [_Head(match.end(), _end_of(joined, starts, match.end())) for match in _LOGGED.finditer(joined)]
    for match in _ENVELOPE.finditer(joined):
        start, condition = match.end(), match["condition"]
        end = _end_of(joined, starts, start)
        if condition is None:  # older versions have no message; the condition ends with its line
            end = max(start, min(end, starts[bisect_right(starts, start)] - 1))
            condition = joined[start:end]
        heads.append(_Head(start, end, condition))
    return sorted(heads)


class _Message(NamedTuple):
    """A message in a text that is one line, and the wording that matches it."""

    family: Family
    wording: Wording
    match: re.Match[str]


def _search(families: Sequence[Family], text: str, start: int = 0, end: int | None = None) -> Iterator[_Message]:
    """Yield where the wordings of some families are; those whose anchor the text lacks cost no search."""
    end = len(text) if end is None else end
    for family in families:
        for wording in map(compile_wording, family.wordings):
            if text.find(wording.anchor, start, end) >= 0:
                yield from [_Message(family, wording, match) for match in wording.pattern.finditer(text, start, end)]


def _find_known(joined: str) -> list[_Message]:
    """Return the messages of known families, without messages inside others: the first and longest one counts."""
    known: list[_Message] = []
    bare = [message for message in _search(load_families("conditions"), joined) if message.match["_file"]]
    matches = [*_search(load_families(), joined), *bare]
    for message in sorted(matches, key=lambda message: (message.match.start(), -message.match.end())):
        if not known or message.match.start() >= known[-1].match.end():
            known.append(message)
    return known


def _match_rules(joined: str, start: int) -> Iterator[_Message]:
    """Yield the general rules that the message which begins at `start` states."""
    begin = next(_CLASS.finditer(joined, start)).end()
    end = next(_SENTENCE_END.finditer(joined, begin, begin + _SHOWN)).start()
    for family in load_families("rules"):
        for wording in map(compile_wording, family.wordings):
            if match := wording.pattern.match(joined, begin, end):
                yield _Message(family, wording, match)


def _explain_unknown(joined: str, head: _Head) -> _Message:
    """Return the finding of an unknown message: a rule, the rule of its condition, or the message itself."""
    before = head.start - len(head.condition) - len(" info: ")
    conditions = _search(load_families("conditions"), joined, max(0, before), head.end)
    whole = _search(load_families("unexplained"), joined, head.start, head.end)
    return next(chain(_match_rules(joined, head.start), conditions, whole))


def _end_of(joined: str, starts: Sequence[int], start: int) -> int:
    """Return where the message that begins at `start` ends: with its line, and the next ones if that is wrapped."""
    line = bisect_right(starts, start)
    while line < len(starts) - 1 and starts[line] - max(start, starts[line - 1]) > _WRAPPED:
        line += 1
    end = next(_MESSAGE_END.finditer(joined, start, start + _SHOWN)).start()
    return max(start, min(end, starts[line] - 1))


def _spell(value: Any, shape: str | None = None) -> str:
    """Return a number of a message, or a list of them, as text: a size if `shape` is "B", nothing if it is "given"."""
    if shape == "given":
        return ""
    if shape == "B":
        return f"{value} B" + (f" ({format_bytes(value)})" if value >= 1 << 20 else "")
    if isinstance(value, list) and value and isinstance(value[0], list):
        return " to ".join([_spell(core, "core") for core in value])
    if isinstance(value, list):
        return f"({', '.join(map(str, value))})" if shape == "core" else format_extents(value)
    return str(value)


def _fill(sentence: str, values: Mapping[str, Any]) -> str | None:
    """Return a sentence with its values; without the optional parts, or None, for which a value is missing."""
    parts = []
    for k, part in enumerate(re.split(r"\[\?(.*?)\?\]", sentence)):
        try:
            parts.append(re.sub(r"\{(\w+)(?::(\w+))?\}", lambda value: _spell(values[value[1]], value[2]), part))
        except KeyError:
            if k % 2 == 0:
                return None
    return "".join(parts).strip()


def _explain_message(message: _Message, condition: str, line: int) -> ExplainedError:
    family, wording, match = message
    stated = {name: text for name, text in match.groupdict().items() if text is not None}
    values = {name: read_value(text, wording.shapes[name]) for name, text in stated.items() if text != "{}"}
    values |= {"_condition": condition} if condition else {}
    derived = family.derive_from(values)
    numbers = derived.get("_numbers", values)
    values = values | numbers | derived
    shown = {name: value for name, value in (numbers | derived).items() if not name.startswith("_")}
    known = {} if family.kind == "unexplained" else load_meanings()  # its words may mean something else
    meanings = {**known, **family.meanings}
    remedies = [text for text in (_fill(remedy, values) for remedy in family.remedies) if text]
    unknown = [_fill(family.unknown, values) or "", "the numbers: the text has {} for them" * ("{}" in stated.values())]
    return ExplainedError(
        kind=derived.get("_kind", family.kind),
        message=_fill(family.what, values) or match[0].strip(),
        severity=Severity.WARNING if family.is_warning else Severity.ERROR,
        reason=_fill(family.rule, values) or "",
        remedy=remedies[0] if remedies else "",
        text=match[0].strip(),
        line=line,
        condition=condition,
        numbers={name: value for name, value in shown.items() if name in numbers},
        derived={name: value for name, value in shown.items() if name not in numbers},
        meanings={name: meanings[name] for name in shown if name in meanings},
        remedies=tuple(remedies),
        unknown="; ".join([part.rstrip(".") for part in unknown if part]),
    )
