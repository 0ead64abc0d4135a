# SPDX-License-Identifier: Apache-2.0
"""`match`: which tensors of one checkpoint are made of which tensors of another, whatever their names.

Tensors with the same elements have the same signature, in whatever order; parts of joined ones are found by their rows
and columns. What is found counts only if all elements agree.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._text import NUMBER_IN_NAME, count_of, list_some
from ..copying import Assembly
from ..files import FilePath, StoredTensor, open_tensors, store_arrays
from ..formats import Format, cast, scalar_format_of
from ..layout import Box
from ..memory import Mesh, TensorSpec, from_bytes, to_bytes
from .cache_folder import suits_any_mesh
from .line_search import Lines, Panel, Wanted, assemble, sample_lines
from .orders import Values, find_order
from .signatures import sign_tensor
from .source import AssembledSource, is_plain, stored_shape
from .tensor_diff import Array, ComparedTensor, collect_tensors, row_major_slabs

Others: TypeAlias = "Mapping[str, tuple[str, ...]]"

_SLAB = 1 << 22  # elements in memory at a time
_MAX_NEAR = 1 << 10  # panels that are tried directly
_MAX_TRIED = 1 << 18  # pairs of panels in formats that round, where names do not help
_MAX_EQUAL = 8  # sources with equal contents that are listed
_MAX_CANDIDATES = 1 << 8  # of these, among which the nearest name is looked for
_MAX_ORDERED = 1 << 26  # elements of a tensor of which any order is looked for
_MAX_REPEATED = 1 << 10  # rows
_ODD = 0x9E3779B97F4A7C15  # a factor of hashes, for lines that only differ in the position of an element
_SHORT, _MAX_PRINTED = 200, 600  # characters of an expression


@dataclass(frozen=True)
class Match:
    """How a tensor of B is made of tensors of A: an expression, proven on all elements.

    `through` are formats that values were rounded to on the way. If it is not `exact`, some elements differ, by at most
    one step of B's format. `others` are tensors with the same contents as a source, which could be meant as well.
    Without a `text`, nothing was found, and `problem` is the reason.

    >>> turned = match({"w": np.arange(6.0).reshape(2, 3)}, {"t": np.arange(6.0).reshape(2, 3).T})["t"]
    >>> print(turned)
    t = transpose(tensor('w'))
    """

    name: str
    text: str = ""
    value: Assembly | None = None
    exact: bool = True
    through: tuple[str, ...] = ()
    others: Others = field(default_factory=dict, hash=False)
    problem: str = ""

    @property
    def sources(self) -> list[str]:
        """The tensors of A that it is made of."""
        return [] if self.value is None else self.value.sources

    def to_json(self) -> dict[str, Any]:
        """Return the match as plain data."""
        if self.value is None:
            return {"name": self.name, "problem": self.problem}
        others = {name: list(more) for name, more in self.others.items()}
        result = {"name": self.name, "value": self.value.text, "sources": self.sources, "exact": self.exact}
        return result | {"through": list(self.through), "others": others}

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name}: {self.problem}"
        near = "" if self.exact else ", each element within one step of its format"
        equal = "".join([f"; {name} equals {list_some(more, 4)}" for name, more in self.others.items()])
        text = (
            self.text
            if len(self.text) <= _MAX_PRINTED
            else f"{self.text[:_MAX_PRINTED]} ... (in {len(self.value.parts)} parts)"
        )
        return f"{self.name} = {text}{near}{equal}"


@dataclass(frozen=True)
class MatchReport:
    """Which tensors of B are made of which of A.

    >>> a = {"q": np.arange(8.0).reshape(4, 2), "k": -np.arange(4.0).reshape(2, 2)}
    >>> report = match(a, {"qk": np.concatenate([a["q"], a["k"]]), "x": np.eye(3)})
    >>> print(report)
    1 of 2 tensors of B is made of tensors of A, by all their elements
    qk = join([tensor('q'), tensor('k')])
    x: no tensors of A have its rows or columns
    """

    matches: tuple[Match, ...]
    source_names: frozenset[str] = field(repr=False)
    targets: Mapping[str, StoredTensor] = field(repr=False, compare=False)

    @property
    def unmatched(self) -> list[str]:
        """The tensors of B for which nothing was found."""
        return [match.name for match in self.matches if match.value is None]

    def __getitem__(self, name: str) -> Match:
        return next(match for match in self.matches if match.name == name)

    def rules(self) -> str:
        """Return rules in TOML, by which `convert` makes the matched tensors of B from tensors of A.

        >>> print(match({"w": np.float32([[1, 2], [3, 4]])}, {"t": np.float32([[1, 3], [2, 4]])}).rules())
        "*" = { skip = true }
        "t" = { value = "transpose(tensor('w'))", skip = false, dtype = "float32", layout = "row_major" }
        """
        lines = [f'"{name}" = {{ {settings} }}' for name, settings in self._rules()]
        return "\n".join(['"*" = { skip = true }', *lines])

    def _rules(self) -> Iterator[tuple[str, str]]:
        for match in self.matches:
            if match.value is None:
                continue
            tensor = self.targets[match.name]
            marks = (r"([*?[])", r"[\1]") if match.name in self.source_names else (r"([{}])", r"\1\1")
            pattern = re.sub(*marks, match.name)  # a pattern of a tensor that exists, or the name of a new one
            settings: dict[str, Any] = {"value": match.value.text, "skip": False, "dtype": str(tensor.format)}
            settings["layout"] = "tile" if tensor.spec is not None and tensor.spec.is_tiled else "row_major"
            settings |= {"through": list(match.through)} if match.through else {}
            settings |= _describe_memory(tensor.spec) if tensor.spec is not None else {}
            settings |= _describe_mesh(tensor.mesh) if tensor.mesh is not None else {}
            yield (
                json.dumps(pattern)[1:-1],
                ", ".join([f"{key} = {json.dumps(value)}" for key, value in settings.items()]),
            )

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {"matches": [match.to_json() for match in self.matches], "unmatched": self.unmatched}

    def __str__(self) -> str:
        count = len(self.matches) - len(self.unmatched)
        head = (
            f"{count} of {count_of(len(self.matches), 'tensor')} of B {'is' if count == 1 else 'are'} made of tensors"
        )
        return "\n".join([f"{head} of A, by all their elements", *map(str, self.matches)])


def _describe_memory(spec: TensorSpec) -> dict[str, Any]:
    """Return the memory of a tensor as settings of rules; none for cores that are not one grid from (0, 0)."""
    sharding, layout = spec.memory.sharding, spec.memory.memory_layout.name.removesuffix("_SHARDED").lower()
    buffer = {"buffer": str(spec.memory.buffer_type).lower()}
    if sharding is None:
        return {} if buffer == {"buffer": "dram"} else buffer
    ranges = list(sharding.grid)
    if len(ranges) > 1 or tuple(ranges[0].start) != (0, 0):
        return {}
    kind = layout if layout in ("height", "width", "block") else "nd"
    nested = {"distribution": sharding.distribution.name.lower()} if kind == "nd" else {}
    grid, shape = [end + 1 for end in ranges[0].end], list(sharding.shape)
    return (
        {"shard": kind, "grid": grid, "shard_shape": shape, "orientation": sharding.orientation.name.lower()}
        | nested
        | buffer
    )


def _describe_mesh(mesh: Mesh) -> dict[str, Any]:
    """Return how the devices of a mesh share a tensor, as settings of rules."""
    cuts = mesh.topology.placements
    if suits_any_mesh(mesh):
        return {}
    return {"mesh": list(mesh.shape), "cut": cuts[0] if len(cuts) == 1 else f"({', '.join(map(str, cuts))})"}


def match(
    a: FilePath | Mapping[str, Any], b: FilePath | Mapping[str, Any], progress: Callable[[int, int], None] | None = None
) -> MatchReport:
    """Return which tensors of B are made of which tensors of A, whatever their names, and how.

    Found are: other orders of the elements, as rotary embeddings, transposes and tiles have; joins, also interleaved
    ones for several devices; slices, stacks, repetition, padding with zeros, an added constant, and number formats
    that round. Memory holds the signatures of all tensors, and of the largest tensors some slabs, a few elements of
    each row and column, and one of at most 2^26 elements whose order is unknown.

    Args:
        a: a file or directory of tensors, or arrays by name.
        b: likewise.
        progress: called with the number of tensors of B that are done, and of all.

    >>> w = np.arange(12, dtype=np.float32).reshape(4, 3)
    >>> report = match({"w": w}, {"padded": np.pad(w, [(0, 2), (0, 0)]), "half": w[2:]})
    >>> [tensor.text for tensor in report.matches]
    ["pad(tensor('w'), 6, 0)", "rest(tensor('w'), 2)"]
    """
    search = _Search(_open(a), _open(b))
    matches: dict[str, Match] = {}
    with np.errstate(all="ignore"):  # elements may be NaN or infinite
        for name in search.ordered_names():
            matches[name] = search.find_near(name)
            if progress is not None:
                progress(len(matches), len(search.b))
        matches |= search.find_far([name for name, own in matches.items() if own.value is None])
    return MatchReport(tuple([matches[name] for name in search.b]), frozenset(search.a), search.b)


def _open(value: FilePath | Mapping[str, Any]) -> Mapping[str, StoredTensor]:
    tensors = open_tensors(value) if isinstance(value, (str, os.PathLike)) else value
    return tensors if all(isinstance(tensor, StoredTensor) for tensor in tensors.values()) else store_arrays(tensors)


class _Source(NamedTuple):
    """A panel of A, and some elements of its rows and columns."""

    panel: Panel
    lines: tuple[Lines, Lines]


class _Search:
    """The search for the tensors of B among the tensors of A."""

    def __init__(self, a: Mapping[str, StoredTensor], b: Mapping[str, StoredTensor]) -> None:
        self.a, self.b = a, b
        self.ours, self.theirs = (
            {name: tensor for name, tensor in collect_tensors(side).items() if tensor.format is not None}
            for side in (a, b)
        )
        self.signatures = {name: sign_tensor(_in_memory(tensor)) for name, tensor in self.ours.items()}
        self.by_key: dict[tuple[int, int], list[str]] = defaultdict(list)
        self.groups: dict[str, list[str]] = defaultdict(list)
        for name, signature in self.signatures.items():
            self.by_key[signature.key].append(name)
            self.groups[_group(name)].append(name)
        self.near = lru_cache(1)(self._sample_group)

    def ordered_names(self) -> list[str]:
        """Return the names of B, layer by layer."""
        return sorted(self.b, key=_group)

    def _sample_group(self, group: str) -> list[_Source]:
        """Return the panels of the tensors of A in a group; none if they are too many."""
        panels = [panel for name in self.groups.get(group, ()) for panel in Panel.of(name, self.ours[name])]
        return [] if len(panels) > _MAX_NEAR else [_Source(panel, sample_lines(panel)) for panel in panels]

    def find_near(self, name: str) -> Match:
        """Return how a tensor of B is made of one with its elements, or of tensors of the same layer."""
        if name not in self.theirs:
            return Match(name, problem=f"its elements, {self.b[name].kind}, have no number format in tilewright")
        tensor = _in_memory(self.theirs[name])
        signature = sign_tensor(tensor)
        if not signature.count:
            return Match(name, problem="it has no elements")
        same = self.by_key.get(signature.key, [])[:_MAX_CANDIDATES]
        equal = sorted(same, key=lambda source: _closeness(name, source))[:_MAX_EQUAL] if same[1:] else same
        turned = next((text for source in equal if (text := self._turn(tensor, source)) is not None), None)
        if turned is not None:  # all elements were compared
            value = assemble(turned, self.a)
            return Match(name, turned, value, others=self._equal_sources(value.sources))
        if not signature.nonzero:
            return Match(name, problem="all its elements are zero, and A has no such tensor of its shape")
        near = self.near(_group(name))
        attempts = [partial(self._reorder, tensor, source) for source in equal]
        attempts += [partial(self._express, tensor, near), partial(self._add_constant, tensor, near)]
        matches = (self._prove(name, tensor, attempt()) for attempt in attempts)
        problem = Match(name, problem="no tensors of A have its rows or columns")
        return next((result for result in matches if result is not None), problem)

    def _turn(self, tensor: ComparedTensor, source: str) -> str | None:
        """Return how a tensor is another one as it is, or transposed: the usual cases, fast."""
        ours = self.ours[source]
        if prod(tensor.shape) != prod(ours.shape) or prod(tensor.shape) > _SLAB:
            return None
        a, b = _values(ours), _values(tensor)
        a = cast(a, b.dtype) if b.dtype.itemsize < a.dtype.itemsize and _is_float(tensor) else a
        if np.array_equal(a.reshape(-1), b.reshape(-1)) and _long(ours) == _long(tensor):
            return _shape(f"tensor({source!r})", ours.shape, tensor.shape)
        if len(ours.shape) == 2 and a.shape[::-1] == _long(tensor) and np.array_equal(a.T, b.reshape(a.shape[::-1])):
            return _shape(f"transpose(tensor({source!r}))", a.shape[::-1], tensor.shape)
        return None

    def _reorder(self, tensor: ComparedTensor, source: str) -> str | None:
        """Return how a tensor is made of one with the same elements, in another order."""
        ours = self.ours[source]
        by_lines = self._express(tensor, [_Source(panel, sample_lines(panel)) for panel in Panel.of(source, ours)])
        is_short = by_lines is not None and len(by_lines) < _SHORT
        if is_short or not prod(ours.shape) == prod(tensor.shape) <= _MAX_ORDERED:
            return by_lines
        a, b = _values(ours), _values(tensor)
        order = find_order(Values(a.astype(b.dtype).reshape(-1), b.reshape(-1)), source, ours.shape, tensor.shape)
        text = None if order is None else _shape(order[1].text, order[1].shape, tensor.shape)
        return min(filter(None, (by_lines, text)), key=len, default=None)

    def _express(self, tensor: ComparedTensor, sources: Sequence[_Source]) -> str | None:
        """Return how a tensor is made of the rows or columns of others."""
        long = _long(tensor)
        if not sources:
            return None
        if len(long) > 2:
            return self._stack(tensor, long, sources)
        (panel,) = Panel.of("", tensor)
        wanted = Wanted(panel)
        text = _make_panel(wanted, sources)
        if text is None and len(long) == 2:
            text = self._from_vectors(tensor, wanted, sources)
        return None if text is None else _shape(text, long, tensor.shape)

    def _from_vectors(self, tensor: ComparedTensor, wanted: Wanted, sources: Sequence[_Source]) -> str | None:
        """Return how a matrix is made of vectors: as copies of one, or as one cut into rows."""
        height, width = wanted.panel.shape
        vectors = [source for source in sources if len(source.panel.shape) == 1]
        rows = wanted.lines[0].values
        if height <= _MAX_REPEATED and (rows == rows[0]).all():
            text = _make_panel(Wanted(_as_vector(tensor, wanted.panel.read(0, 1))), vectors)
            return None if text is None else f"repeat({text}, {height})"
        if vectors and height * width <= max(len(source.lines[0].used) for source in vectors):
            text = _make_panel(Wanted(_as_vector(tensor, wanted.panel.read())), vectors)
            return None if text is None else f"rows_of({text}, {width})"
        return None

    def _stack(self, tensor: ComparedTensor, long: tuple[int, ...], sources: Sequence[_Source]) -> str | None:
        """Return how a tensor of several matrices is made."""
        texts = [_make_panel(Wanted(panel), sources) for panel in Panel.of("", tensor)] if len(long) == 3 else []
        if not texts or None in texts:
            return None
        inner = tensor.shape[tensor.shape.index(long[0]) + 1 :]  # each with dimensions of extent 1 of its own
        text = f"stack([{', '.join([_shape(str(text), long[1:], inner) for text in texts])}])"
        return _shape(text, (long[0], *inner), tensor.shape)

    def _add_constant(self, tensor: ComparedTensor, sources: Sequence[_Source]) -> str | None:
        """Return the expression of a vector with a whole number added, in its own format."""
        vectors = [source.panel for source in sources if source.panel.shape == (prod(tensor.shape),)]
        wanted = _values(tensor).reshape(-1) if vectors else np.empty(0)
        long = _long(tensor)
        for panel in vectors:
            values = panel.read().reshape(-1)
            constant = float(np.round(np.median(wanted.astype(np.float64) - values.astype(np.float64))))
            whole = values.dtype.kind in "iub"  # to which nothing is added in between
            if (
                constant
                and not whole
                and np.array_equal((values + values.dtype.type(constant)).astype(wanted.dtype), wanted)
            ):
                text = f"({panel.text} + {constant})"
                return _shape(text if len(long) == 1 else f"rows_of({text}, {long[-1]})", long, tensor.shape)
        return None

    def find_far(self, names: Sequence[str]) -> dict[str, Match]:
        """Return how tensors of B are made of tensors of A in any layer, found by their rows and columns."""
        wanted = {name: panels for name in names if name in self.theirs and (panels := Panel.of("", self.theirs[name]))}
        result: dict[str, Match] = {}
        for name, panels in self._look_for(wanted).items():
            sources = [_Source(panel, sample_lines(panel)) for panel in panels]
            proven = self._prove(name, self.theirs[name], self._express(self.theirs[name], sources))
            result |= {} if proven is None else {name: proven}
        return result

    def _look_for(self, wanted: Mapping[str, Sequence[Panel]]) -> dict[str, list[Panel]]:
        """Return the panels of A in which there are lines of some panels of B, by the tensor of B."""
        hashes: dict[tuple[Format, int], list[tuple[Array, str]]] = defaultdict(list)
        rounded: list[tuple[str, Wanted]] = []  # whose lines have no hash
        for name, panels in wanted.items():
            for own in [Wanted(panel) for panel in panels if len(panel.shape) > 1]:
                element = own.panel.tensor.format
                assert element is not None
                if element.has_blocks:
                    rounded += [(name, own)] if len(rounded) < _MAX_TRIED // len(self.ours) else []
                else:
                    for lines in own.lines:
                        hashes[element, lines.length].append((_hash_lines(lines), name))
        index = {key: _sort_hashes(parts) for key, parts in hashes.items()}
        sources: dict[str, list[Panel]] = defaultdict(list)
        for panel in (panel for name, tensor in self.ours.items() for panel in Panel.of(name, tensor) if wanted):
            both = sample_lines(panel)
            names = {name for name, own in rounded if own.hits(both)}
            for ((element, length), parts), lines in product(index.items(), both):
                if lines.length == length > 1:
                    names |= _owners_of(_hash_lines(lines.rounded(element)), *parts)
            for name in names:
                sources[name].append(panel)
        return sources

    def _prove(self, name: str, target: ComparedTensor, text: str | None) -> Match | None:
        """Return a match if all elements agree."""
        if text is None:
            return None
        value = assemble(text, self.a)
        stored = {source: self.a[source] for source in value.sources}
        blocks = target.format is not None and target.format.has_blocks
        stages = (
            [(), ("bfloat16",)] if blocks and any(tensor.dtype.itemsize > 2 for tensor in stored.values()) else [()]
        )
        results = []
        for through in stages:
            source = AssembledSource(value, stored, tuple(map(scalar_format_of, through)))
            results.append((_compare(source, target), through))
            if results[-1][0] == "equal":
                break
        agreement, through = min(results, key=lambda result: ("equal", "near", "").index(result[0]))
        if not agreement:
            return None
        return Match(name, text, value, agreement == "equal", through, self._equal_sources(value.sources))

    def _equal_sources(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the tensors of A that have the same elements as some of them."""
        own = {name: self.signatures[name] for name in names}
        equal = {
            name: [
                twin for twin in self.by_key[sign.key][:_MAX_CANDIDATES] if self.signatures[twin].count == sign.count
            ]
            for name, sign in own.items()
        }
        others = {name: tuple([twin for twin in same if twin not in names]) for name, same in equal.items()}
        return {name: more[:_MAX_EQUAL] for name, more in others.items() if more}


def _compare(source: AssembledSource, target: ComparedTensor) -> str:
    """Return "equal" if all elements equal the values, "near" if they are within a step of them, else ""."""
    element, mesh = target.format, target.mesh
    assert element is not None
    if source.value.shape != target.shape:
        return ""
    result = "equal"
    for window in mesh.windows() if mesh is not None else [Box((0,) * len(target.shape), target.shape)]:
        for slab in row_major_slabs(window.shape, _SLAB):
            box = slab.relative_to(tuple([-n for n in window.offset]))
            theirs = target.read(box)
            ours = source.read(box)
            if element.has_blocks:
                tile = target.spec.tile if target.spec is not None and target.spec.is_tiled else None
                spec = TensorSpec(box.shape, element, "tile", tile)
                ours = from_bytes(to_bytes(ours, spec), spec)
            elif element.kind == "float":
                ours = cast(ours, element)
            if ((ours == theirs) | ((ours != ours) & (theirs != theirs))).all():
                continue
            steps = target.step_sizes(box)
            if steps is None or not (np.abs(ours - theirs) <= steps).all():
                return ""
            result = "near"
    return result


def _make_panel(wanted: Wanted, sources: Sequence[_Source]) -> str | None:
    """Return the shortest expression that makes a panel of the rows or columns of others."""
    hits: dict[int, list[tuple[Panel, int, Lines]]] = defaultdict(list)
    for panel, lines in sources:
        for axis, along in sorted(wanted.hits(lines)):
            hits[axis].append((panel, along, lines[along]))
    if len(wanted.panel.shape) == 1 and hits:  # too few elements to find a short part by a sample
        hits[0] = [(panel, 0, lines[0]) for panel, lines in sources if len(panel.shape) == 1]
    texts = [wanted.express(axis, own) for axis, own in sorted(hits.items())]
    return min([text for text in texts if text is not None], key=len, default=None)


def _long(tensor: ComparedTensor) -> tuple[int, ...]:
    """Return the extents that are not 1."""
    return tuple([n for n in tensor.shape if n != 1]) or (1,)


def _is_float(tensor: ComparedTensor) -> bool:
    """Return whether elements are floating-point numbers, to which other tensors may be rounded."""
    return tensor.format is not None and not tensor.format.has_blocks and tensor.format.kind == "float"


def _in_memory(tensor: ComparedTensor) -> ComparedTensor:
    """Return a tensor with its values in memory, if they are few and not in blocks, which have steps."""
    if tensor.format is None or tensor.format.has_blocks or prod(tensor.shape) > _SLAB:
        return tensor
    return replace(tensor, source=_values(tensor))


def _values(tensor: ComparedTensor) -> Array:
    """Return all values; plain ones are read from the file directly, without parts and pages."""
    source = tensor.source
    if (
        isinstance(source, StoredTensor)
        and tensor.shape == source.shape
        and source.strides is None
        and is_plain(source)
    ):
        start, end = source.byte_range
        return (
            np.frombuffer(source.file.read(start, end - start), source.dtype)
            .reshape(stored_shape(source))
            .transpose(source.order)
        )
    return np.asarray(tensor.read(Box((0,) * len(tensor.shape), tensor.shape)))


def _as_vector(tensor: ComparedTensor, values: Array) -> Panel:
    """Return the elements of a panel as a vector."""
    flat = values.reshape(-1)
    (panel,) = Panel.of("", replace(tensor, source=flat, shape=flat.shape, spec=None, order=None, mesh=None))
    return panel


def _shape(text: str, shape: Sequence[int], wanted: Sequence[int]) -> str:
    """Return an expression of a `shape` in the `wanted` shape, which has as many elements."""
    if tuple(shape) == tuple(wanted):
        return text
    ones = len(wanted) - len(shape)
    if ones > 0 and tuple(wanted) == (1,) * ones + tuple(shape):
        return f"as_rank({text}, {len(wanted)})"
    return f"reshape({text}, {', '.join(map(str, wanted))})"


def _group(name: str) -> str:
    """Return the number of the layer in a name as text; empty if there is none."""
    number = NUMBER_IN_NAME.search(name)
    return "" if number is None else number[0]


def _closeness(name: str, other: str) -> tuple[bool, float, str]:
    """Return a key by which the most similar of some names is the first."""
    return _group(name) != _group(other), -SequenceMatcher(None, name, other).ratio(), other


def _hash_lines(lines: Lines) -> Array:
    """Return a hash of each line that does not repeat one number."""
    values = lines.values[lines.used & (lines.values != lines.values[:, :1]).any(axis=1)]
    codes = (values + np.float32(0)).view(np.uint32).astype(np.uint64)
    codes ^= codes >> np.uint64(7)
    codes += np.uint64(1)
    factors = np.cumprod(np.full(codes.shape[1], _ODD, dtype=np.uint64))
    hashes: Array = (codes * codes * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def _sort_hashes(parts: list[tuple[Array, str]]) -> tuple[Array, Array, list[str]]:
    """Return sorted hashes, the numbers of their owners, and the owners."""
    codes = np.concatenate([part for part, _ in parts])
    order = np.argsort(codes, kind="stable")
    owners = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part, _ in parts])
    return codes[order], owners[order], [name for _, name in parts]


def _owners_of(wanted: Array, codes: Array, owners: Array, names: Sequence[str]) -> set[str]:
    """Return the owners of those sorted codes that are wanted."""
    low, high = (np.searchsorted(codes, wanted, side) for side in ("left", "right"))
    ranges = zip(low, high, strict=True)
    return {names[number] for first, last in ranges if first < last for number in owners[first:last].tolist()}
