# SPDX-License-Identifier: Apache-2.0
"""`explain_difference`: why two tensors differ: the simplest explanation that holds for all of their elements.

A relation turns the values of A into the values of B: none, rounding to a format, a constant, a factor.
Under each relation, the elements may be in another order, padded, cropped, repeated or shifted. What no check of all
elements confirms is not reported; "unrelated" is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any, TypeAlias

import numpy as np

from .._text import format_extents, name_axis
from ..copying import Assembly
from ..files import QuantizedTensor
from ..formats import Format, format_of, scalar_format_of
from ..layout import Box
from ..memory import from_bytes, to_bytes
from .comparison import FORMAT_PRECISION, Comparison
from .line_search import divisors
from .matching import match
from .orders import TILE, Values, find_moved_rows, find_order
from .signatures import Signature, sign_tensor
from .tensor_diff import Array, ComparedTensor, collect_tensors, diff

_NARROW = ("bfloat16", "float16", "float8_e4m3", "float8_e5m2")
_DIGITS = (0, 1, 2, 3, 4, 6)  # of constants and factors that people choose
_RELATED = 0.5  # the least correlation of tensors that have something in common
_MOST_SHIFTS = 1000
_SAMPLE = 4096  # elements that most wrong relations fail for
_NEAR = 0.5  # of the spread of sums that unrelated tensors have
_MOST_NEAR = 8
_MOST_RANK = 128  # of a matrix that an adapter adds
_FLAT = 0.05  # of the largest singular value: what rounding leaves of others
_MOST_PLAIN = 0.5  # of the scales may be 0 or 1: otherwise elements differ in some places
_QUANTIZED_BLOCK = 32  # elements that share a scale, in most types of quantised files
_WINDOW = 16  # elements that are the same after a shift
_BLOCKS = (128, 64, 32, 16)  # columns or rows that share a scale
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class DifferenceReason:
    """Why tensor `name` of B differs from the tensor of A: a `kind`, and the reason in words.

    `kind` is "order", "rounding", "constant", "factor", "bits", "padding", "part", "repeat", "shift", "rank", "other",
    "close" or "unrelated". `source` is the tensor of A that explains it, `order` its elements in B's order, if that is
    an expression, and `count` the elements that were checked.

    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> [reason] = explain_difference(a, a.T)
    >>> reason.kind, str(reason)
    ('order', 'B is A transposed')
    """

    name: str
    kind: str
    words: str
    source: str = ""
    order: Assembly | None = None
    count: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the reason as plain data.

        >>> explain_difference(np.arange(4.0), np.arange(4.0) + 1)[0].to_json()["kind"]
        'constant'
        """
        order = None if self.order is None else {"expression": self.order.text, "shape": list(self.order.shape)}
        return {
            "name": self.name,
            "kind": self.kind,
            "words": self.words,
            "source": self.source,
            "order": order,
            "checked": self.count,
        }

    def __str__(self) -> str:
        return self.words


Steps: TypeAlias = tuple[str, Array]


@dataclass(frozen=True)
class Relation:
    """Values of A as values of B: the `kind`, the `words`, both arrays, and how far `apart` equal ones may be."""

    kind: str
    words: str
    a: Array
    b: Array
    apart: Array | None = None

    def values(self) -> Values:
        """Return the elements of both sides, as they are compared."""
        if self.apart is not None:
            return Values(self.a.reshape(-1), self.b.reshape(-1), self.apart.reshape(-1))
        return Values(_bits(self.a).reshape(-1), _bits(self.b).reshape(-1))


def _bits(values: Array) -> Array:
    """Return the bits of numbers, with one zero, as unsigned integers."""
    whole = np.ascontiguousarray(values if values.dtype.kind in "iub" else values + values.dtype.type(0))
    return whole.view(f"u{whole.itemsize}")


def _as_numbers(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the values of both sides in one NumPy type."""
    if a.dtype.kind in "iub" and b.dtype.kind in "iub":
        dtype: Any = np.result_type(a, b)
    else:
        dtype = np.float64 if np.float64 in (a.dtype, b.dtype) else np.float32
    return a.astype(dtype), b.astype(dtype)


def _round(values: Array, name: str) -> Array:
    rounded: Array = values.astype(scalar_format_of(name).dtype).astype(values.dtype)
    return rounded


def list_relations(
    a: Array, b: Array, formats: tuple[Format, Format], steps: Steps | None = None
) -> Iterator[Relation]:
    """Yield the relations that may hold between the values of two tensors, the simplest first.

    Args:
        a: the values of A.
        b: the values of B, of the same type.
        formats: the formats that hold them.
        steps: the format of blocks of one side, and the distance to the next number of each element.

    >>> f32 = format_of("float32")
    >>> [pair.words for pair in list_relations(np.float32([1, 2, 4]), np.float32([2, 4, 8]), (f32, f32))]
    ['', 'times 2', 'times -2']
    """
    yield Relation("order", "", a, b)
    if a.dtype.kind != "f":
        return
    if steps is not None:
        yield Relation("rounding", f"within the steps of {steps[0]}", a, b, steps[1])
    for name in dict.fromkeys([*[element.name for element in formats if element.name in FORMAT_PRECISION], *_NARROW]):
        exact = [_is_exact(side.reshape(-1)[:: max(1, side.size // _SAMPLE)], name) for side in (a, b)]
        if exact == [False, True] and _is_exact(b, name):
            yield Relation("rounding", f"rounded to {name}", _round(a, name), b)
        elif exact == [True, False] and _is_exact(a, name):
            yield Relation("rounding", f"before it was rounded to {name}", a, _round(b, name))
    yield from _affine_relations(a, b, formats)


def _is_exact(values: Array, name: str) -> bool:
    """Return whether a format holds values exactly."""
    return np.array_equal(_round(values, name), values, equal_nan=True)


def _affine_relations(a: Array, b: Array, formats: tuple[Format, Format]) -> Iterator[Relation]:
    """Yield a constant and factors that fit means and deviations, which no order of the elements changes."""
    unit = 2.0 ** (1 - min([FORMAT_PRECISION.get(element.name, 24) for element in formats]))
    means, deviations = [[float(of(side, dtype=np.float64)) for side in (a, b)] for of in (np.mean, np.std)]
    if not np.isfinite([*means, *deviations]).all() or not a.size:
        return
    largest = float(np.abs(a).max())
    if min(deviations) <= 0 or deviations[0] < 8 * unit * largest:  # nearly the same everywhere: anything would fit
        return
    constant, apart = means[1] - means[0], unit * (np.abs(b) + np.abs(b).mean() / 64)
    if abs(deviations[0] - deviations[1]) < 4 * unit * (deviations[0] + abs(constant)):
        near = unit * max(abs(constant), largest)
        number = _choose_number(constant, near)
        if abs(number) > near:
            words = f"{'minus' if number < 0 else 'plus'} {abs(number):.6g}"
            yield Relation("constant", words, a + a.dtype.type(number), b, apart + near)
    ratio = deviations[1] / deviations[0]
    if abs(ratio - 1) > 2 * unit or means[0] * means[1] < 0:
        for factor in (_choose_number(ratio, unit * ratio), -_choose_number(ratio, unit * ratio)):
            yield Relation("factor", f"times {factor:.6g}", a * a.dtype.type(factor), b, apart)


def _choose_number(number: float, near: float) -> float:
    """Return the number with fewest digits that is as `near` as rounding allows, also by its reciprocal or square."""
    candidates = [round(number, digits) for digits in _DIGITS]
    candidates += [1 / whole for digits in (0, 3) if number and (whole := round(1 / number, digits))]
    candidates += [float(np.copysign(round(number**2) ** 0.5, number))]
    return next((candidate for candidate in candidates if candidate and abs(candidate - number) <= near), number)


def _is_same(relation: Relation) -> bool:
    if relation.a.shape != relation.b.shape:
        return False
    values = relation.values()
    return bool(values.same(values.a, slice(None)).all())


# Explanations, each proven on all elements.


def _explain_values(a: Array, b: Array, relations: list[Relation], source: str) -> DifferenceReason | None:
    """Return the relation that holds without another order."""
    for relation in relations:
        if relation.words and _is_same(relation):
            return DifferenceReason("", relation.kind, f"A {relation.words}", source, count=b.size)
    return None


def _explain_bits(a: Array, b: Array, formats: tuple[Format, Format], source: str) -> DifferenceReason | None:
    """Return the reason if the bytes are equal, but read or ordered otherwise; `a` and `b` are as stored."""
    if a.nbytes != b.nbytes or formats[0].has_blocks or formats[1].has_blocks:
        return None
    ours, theirs = [np.ascontiguousarray(side).reshape(-1).view(np.uint8) for side in (a, b)]
    words = ""
    if np.array_equal(ours, theirs):
        words = f"the bytes of A, which are {formats[0]}, read as {formats[1]}"
    elif a.itemsize == b.itemsize > 1 and np.array_equal(ours.reshape(-1, a.itemsize)[:, ::-1].reshape(-1), theirs):
        words = "A with the bytes of every element in reverse (endianness)"
    elif a.itemsize == 1 and np.array_equal((ours << 4) | (ours >> 4), theirs):
        words = "A with the halves of every byte exchanged (nibbles)"
    return DifferenceReason("", "bits", words, source, count=b.size) if words else None


def _explain_scales(a: Array, b: Array, source: str) -> DifferenceReason | None:
    """Return the factor of each row, column or block, as in quantised weights without their scales."""
    if a.shape != b.shape or a.dtype.kind != "f" or a.ndim < 2 or a.size < _WINDOW:
        return None
    x, y = [side.reshape(-1, side.shape[-1]).astype(np.float64) for side in (a, b)]
    rows, columns = x.shape
    grids = {"row": (1, columns), "column": (rows, 1), **{f"{n} x {n} block": (n, n) for n in _BLOCKS}}
    grids |= {f"run of {n} in a row": (1, n) for n in _BLOCKS}
    for what, (down, across) in grids.items():
        if rows % down or columns % across or down * across < 4:
            continue
        cut = [side.reshape(rows // down, down, columns // across, across) for side in (x, y)]
        with np.errstate(all="ignore"):
            at = np.abs(cut[0]).max(axis=(1, 3), keepdims=True)
            scale = (np.sign(cut[0]) * cut[1]).sum(axis=(1, 3), keepdims=True) / np.abs(cut[0]).sum(
                axis=(1, 3), keepdims=True
            )
        scale = np.where(at > 0, scale, 0.0)
        apart = cut[1] - cut[0]
        constant = apart.mean(axis=(1, 3), keepdims=True)
        fits = np.abs(apart - constant) <= 2.0**-7 * np.abs(cut[1]) + 2.0**-14 * at
        if fits.all() and np.mean(constant == 0) < _MOST_PLAIN:
            low, high = constant.min(), constant.max()
            words = f"A plus a constant for each {what}, {low:.4g} to {high:.4g} (zero points of a quantised tensor)"
            return DifferenceReason("", "constant", words, source, count=b.size)
        fits = np.abs(cut[0] * scale - cut[1]) <= 2.0**-7 * np.abs(cut[1]) + 2.0**-14 * np.abs(scale * at)
        used = scale[at > 0]
        if fits.all() and np.count_nonzero(cut[0]) > 2 * scale.size and np.mean(np.isin(used, (0, 1))) < _MOST_PLAIN:
            low, high = used.min(), used.max()
            words = f"A times a factor for each {what}, {low:.4g} to {high:.4g} (scales of a quantised tensor)"
            return DifferenceReason("", "factor", words, source, count=b.size)
    return None


def _explain_rank(a: Array, b: Array, formats: tuple[Format, Format], source: str) -> DifferenceReason | None:
    """Return the rank of a matrix that was added, as by an adapter that was merged."""
    if a.shape != b.shape or a.dtype.kind != "f" or a.ndim != 2 or min(a.shape) <= 2 * _MOST_RANK:
        return None
    added = b.astype(np.float64) - a
    if not np.isfinite(added).all():
        return None
    unit = 2.0 ** (1 - min([FORMAT_PRECISION.get(element.name, 24) for element in formats]))
    columns = added @ np.random.default_rng(0).standard_normal((a.shape[1], _MOST_RANK))
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    for rank in (1 << power for power in range(_MOST_RANK.bit_length())):
        if rank >= _MOST_RANK or sizes[rank] > _FLAT * sizes[0]:
            continue
        rest = np.abs(added - left[:, :rank] @ (left[:, :rank].T @ added))
        if (rest <= 8 * unit * (np.abs(b) + np.abs(b).mean())).all():  # sums are rounded as well
            words = f"A plus a matrix of rank {rank} (as of an adapter, merged)"
            return DifferenceReason("", "rank", words, source, count=b.size)
    return None


def _explain_order(relations: list[Relation], source: str) -> DifferenceReason | None:
    """Return the order in which B has the elements of A, after a relation; either may be padded to whole tiles."""
    for relation in relations:
        padding = ""
        if relation.a.size != relation.b.size and relation.apart is None and relation.a.ndim > 1 < relation.b.ndim:
            wide = [_pad_to_tiles(side) for side in (relation.a, relation.b)]
            if wide[0].size == relation.b.size:
                relation, padding = replace(relation, a=wide[0]), "padded with 0 to whole tiles"
            elif wide[1].size == relation.a.size:
                relation, padding = replace(relation, b=wide[1]), "without the padding of its tiles"
        a, b = relation.a, relation.b
        order = find_order(relation.values(), source, a.shape, b.shape) if a.size == b.size > 1 else None
        if order is not None:
            words = ", ".join([part for part in (order[0], padding, relation.words) if part])
            return DifferenceReason("", "order", f"A {words}", source, None if padding else order[1], b.size)
    return None


def _pad_to_tiles(values: Array) -> Array:
    """Return a tensor with zeros after its last two dimensions, up to whole tiles."""
    pads = [(0, 0)] * (values.ndim - 2) + [(0, -n % TILE) for n in values.shape[-2:]]
    return np.pad(values, pads)


def _explain_extent(relations: list[Relation], source: str) -> DifferenceReason | None:
    """Return how B is A padded, a part of A, or A several times, also transposed."""
    for relation in relations:
        if relation.apart is not None:
            continue
        ours, theirs = _bits(relation.a), _bits(relation.b)
        for turned, name in ((ours, "A"), (ours.T, "A transposed"))[: 1 + (ours.ndim == 2)]:
            fitting = _find_repeats(turned, theirs, name) or _fit_extents(turned, theirs, relation.b, name)
            if fitting is not None:
                kind, words = fitting
                more = f", {relation.words}" if relation.words else ""
                return DifferenceReason("", kind, words + more, source, count=theirs.size)
    return None


def _fit_extents(ours: Array, theirs: Array, values: Array, name: str) -> tuple[str, str] | None:
    """Return how one array fits in another of a different shape: the kind and the words."""
    if ours.ndim != theirs.ndim or ours.shape == theirs.shape or not min(ours.size, theirs.size):
        return None
    pairs = list(zip(ours.shape, theirs.shape, strict=True))
    inside = tuple([slice(0, min(pair)) for pair in pairs])
    longer = [d for d, (n, m) in enumerate(pairs) if n != m]
    extents = format_extents(theirs.shape, "scalar")
    if all(n <= m for n, m in pairs) and np.array_equal(theirs[inside], ours):
        rest = np.ones(theirs.shape, dtype=bool)
        rest[inside] = False
        fill = np.unique(values[rest])
        more = f"padded with {fill[0]:g}" if len(fill) == 1 else "with more after it"
        return "padding", f"{name}, {more}, to {extents}"
    if all(n >= m for n, m in pairs) and np.array_equal(ours[inside], theirs):
        return "part", f"{name} without what is beyond {extents}"
    return _find_slice(ours, theirs, longer[0], name) if len(longer) == 1 and ours.size > theirs.size else None


def _find_slice(ours: Array, theirs: Array, axis: int, name: str) -> tuple[str, str] | None:
    """Return which part of an array along an axis another one is."""
    sides = [np.ascontiguousarray(np.moveaxis(side, axis, 0).reshape(side.shape[axis], -1)) for side in (ours, theirs)]
    moved = find_moved_rows(Values(*sides))
    if moved is None or (np.diff(moved) != 1).any():
        return None
    return "part", f"{name_axis(axis, ours.ndim)} {moved[0]}:{moved[-1] + 1} of {name}"


def _find_repeats(ours: Array, theirs: Array, name: str) -> tuple[str, str] | None:
    """Return how an array is in another several times, as a whole or block by block."""
    if not ours.size or theirs.size <= ours.size or theirs.size % ours.size:
        return None
    times = theirs.size // ours.size
    for blocks in divisors(ours.shape[0] if ours.ndim else 1):
        cut = ours.reshape(blocks, 1, -1)
        if np.array_equal(np.broadcast_to(cut, (blocks, times, cut.shape[2])).reshape(-1), theirs.reshape(-1)):
            return "repeat", f"{name} {times} times" + ("" if blocks == 1 else f", each of {blocks} blocks of rows")
    return None


def _explain_shift(relations: list[Relation], source: str) -> DifferenceReason | None:
    """Return by how many places the elements of A are shifted in B."""
    for relation in relations[:2]:
        values = relation.values()
        if relation.apart is not None or len(values.a) != len(values.b) or len(values.a) < 2 * _WINDOW:
            continue
        for ours, theirs, word in ((values.a, values.b, "later"), (values.b, values.a, "earlier")):
            for shift in np.flatnonzero(theirs[:-_WINDOW] == ours[0])[:_MOST_SHIFTS].tolist():
                start = theirs[shift : shift + _WINDOW]
                if shift and np.array_equal(start, ours[:_WINDOW]) and np.array_equal(theirs[shift:], ours[:-shift]):
                    wraps = ", cyclically" if np.array_equal(theirs[:shift], ours[-shift:]) else ""
                    elements = f"{shift} element{'s' if shift > 1 else ''}"
                    words = f"A with its elements {elements} {word}{wraps}"
                    return DifferenceReason("", "shift", words, source, count=len(values.b))
    return None


@dataclass
class _LoadedTensor:
    """A tensor in memory: its values as they are stored and as numbers, and its format."""

    tensor: ComparedTensor

    def __post_init__(self) -> None:
        whole = Box((0,) * len(self.tensor.shape), self.tensor.shape)
        self.stored = np.asarray(self.tensor.read(whole))
        self.format = self.tensor.format or format_of(self.stored.dtype)
        self.steps = self.tensor.step_sizes(whole)
        self.kind = str(self.format)
        if isinstance(self.tensor.source, QuantizedTensor):
            self.kind = self.tensor.source.kind
            self.steps = _largest_gaps(np.asarray(self.stored, np.float32))

    def pack(self, values: Array) -> Array | None:
        """Return values after packing to the format of the tensor, if that is one of blocks."""
        spec = self.tensor.spec
        if spec is None or not spec.dtype.has_blocks or values.shape != spec.shape.logical:
            return None
        return from_bytes(to_bytes(values, spec), spec)


def _largest_gaps(values: Array) -> Array | None:
    """Return for each element of a quantised tensor the largest gap between neighbouring values of its block."""
    if not values.size or values.shape[-1] % _QUANTIZED_BLOCK:
        return None
    blocks = np.sort(values.reshape(-1, _QUANTIZED_BLOCK), axis=1)
    gaps: Array = np.repeat(np.diff(blocks, axis=1).max(axis=1), _QUANTIZED_BLOCK).reshape(values.shape)
    return gaps


def _explain_pair(one: _LoadedTensor, other: _LoadedTensor, source: str) -> DifferenceReason | None:
    """Return why one tensor differs from the other, or None."""
    a, b = _as_numbers(one.stored, other.stored)
    if not min(a.size, b.size):
        return None
    formats = one.format, other.format
    if b.size > 1 and (b == b.flat[0]).all():
        words = f"all {b.flat[0]:g}, and A is {f'all {a.flat[0]:g}' if (a == a.flat[0]).all() else 'not'}"
        return DifferenceReason("", "constant", words, source, count=b.size)
    steps = None if other.steps is None else (other.kind, other.steps)
    relations = list(list_relations(a, b, formats, steps))
    if steps is not None and a.shape == b.shape and (packed := other.pack(a)) is not None:
        relations.insert(1, Relation("rounding", f"rounded to {steps[0]}", packed, b))
    return (
        _explain_values(a, b, relations, source)
        or _explain_bits(one.stored, other.stored, formats, source)
        or _explain_scales(a, b, source)
        or _explain_rank(a, b, formats, source)
        or _explain_order(relations, source)
        or _explain_extent(relations, source)
        or _explain_shift(relations, source)
    )


def explain_difference(
    a: Any,  # a path, or a tensor of any library, or several by name
    b: Any,
    *,
    tensors: str | Iterable[str] | None = None,
    comparison: Comparison | None = None,
) -> list[DifferenceReason]:
    """Return why each tensor of B differs from its tensor of A: the simplest reason that holds for all elements.

    Tensors that are equal are left out, and so are those in only one of the two. The tensors that are compared are in
    memory as a whole, one pair at a time.

    Args:
        a, b: paths, arrays, tensors, also of a dialect, or mappings of names to them.
        tensors: names or patterns of the tensors to explain; by default all that differ.
        comparison: the result of `diff`, if it is there already.

    >>> a = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    >>> pairs = a.reshape(2, 2, 16, 8).transpose(0, 2, 1, 3).reshape(64, 8)
    >>> for reason in explain_difference({"q": a, "norm": a[0]}, {"q": pairs, "norm": a[0] - 1}):
    ...     print(reason.name, "-", reason)
    q - B is A with the rows of 2 heads of 32 in pairs, one of each half (rope: halves made pairs)
    norm - B is A minus 1
    """
    with np.errstate(all="ignore"):
        compared = diff(a, b, tensors=tensors) if comparison is None else comparison
        return list(_explain(compared, collect_tensors(a), collect_tensors(b)))


def _explain(
    comparison: Comparison, ours: dict[str, ComparedTensor], theirs: dict[str, ComparedTensor]
) -> Iterator[DifferenceReason]:
    """Yield the reason for each tensor that differs."""
    if len(ours) == len(theirs) == 1:
        theirs = {next(iter(ours)): next(iter(theirs.values()))}
    lost: dict[str, DifferenceReason] = {}
    for compared in comparison:
        if compared.same:
            continue
        name = compared.name
        one, other = _LoadedTensor(ours[name]), _LoadedTensor(theirs[name])
        reason = _explain_pair(one, other, name) or _explain_places(one, other)
        if reason is not None:
            yield replace(reason, name=name, words=f"B is {reason.words}")
            continue
        is_close = compared.pcc is not None and abs(compared.pcc) >= _RELATED
        words = f"close to A (PCC {compared.pcc:.6g}), for no reason that was found" if is_close else "unrelated to A"
        kind = "close" if is_close else "unrelated"
        lost[name] = DifferenceReason(name, kind, f"B is {words}", name, count=other.stored.size)
    yield from _explain_by_match(lost, comparison.only_b, ours, theirs)


def _explain_by_match(
    lost: Mapping[str, DifferenceReason],
    added: Iterable[str],
    ours: Mapping[str, ComparedTensor],
    theirs: Mapping[str, ComparedTensor],
) -> Iterator[DifferenceReason]:
    """Yield which tensors of A make the tensors of B that were not explained, or that A does not have."""
    names = [*lost, *added]
    if not names or not ours:
        return
    own = {name: tensor.source for name, tensor in ours.items()}
    report = match(own, {name: theirs[name].source for name in names})
    sources = {matched.name: matched.sources for matched in report.matches}
    signatures = cache(lambda: {name: sign_tensor(tensor) for name, tensor in ours.items()})
    for matched in report.matches:
        name, size = matched.name, prod(theirs[matched.name].shape)
        other = _LoadedTensor(theirs[name])
        for source in matched.sources if matched.value is not None else _find_near(signatures(), other):
            is_same = matched.text == f"tensor({source!r})"
            is_pair = not is_same and len(matched.sources) < 2
            reason = _explain_pair(_LoadedTensor(ours[source]), other, source) if is_pair else None
            if is_same or reason is not None:
                words = f"B is {source} of A"
                if source != name and sources.get(source) == [name]:
                    words += ", with which it is exchanged"
                elif source != name and _NUMBER.sub("#", source) == _NUMBER.sub("#", name):
                    words += ", of another layer"
                more = "" if reason is None else f": {reason.words}"
                order = matched.value if reason is None else reason.order
                yield DifferenceReason(name, "other", words + more, source, order, size)
                break
        else:
            if matched.value is not None:
                near = "" if matched.exact else ", each element within a step of its format"
                words = f"B is made of A: {matched.text}{near}"
                yield DifferenceReason(name, "other", words, ", ".join(matched.sources), matched.value, size)
            else:
                yield lost.get(name) or DifferenceReason(name, "unrelated", f"B alone has it: {matched.problem}")


def _find_near(signatures: Mapping[str, Signature], other: _LoadedTensor) -> list[str]:
    """Return tensors of A with nearly the same sum, as if quantised, or deviation, as if a constant was added."""
    wanted = Signature.of(other.stored)
    alike = {name: own for name, own in signatures.items() if own.count == wanted.count}
    sums = {name: abs(own.total - wanted.total) / max(wanted.squares, 1e-30) ** 0.5 for name, own in alike.items()}
    spread = {
        name: abs(_deviation(own) - _deviation(wanted)) / max(_deviation(own), 1e-30) for name, own in alike.items()
    }
    nearest = [sorted(far, key=far.__getitem__)[:_MOST_NEAR] for far in (sums, spread)]
    return [name for name in dict.fromkeys([*nearest[0], *nearest[1]]) if min(sums[name], spread[name]) < _NEAR]


def _explain_places(one: _LoadedTensor, other: _LoadedTensor) -> DifferenceReason | None:
    """Return the rows and columns in which two tensors differ, if that is less than half of either."""
    if one.stored.shape != other.stored.shape or one.stored.ndim < 1:
        return None
    a, b = [_bits(side) for side in _as_numbers(one.stored, other.stored)]
    unequal = (a != b).reshape(-1, a.shape[-1])
    if a.ndim == 1:
        unequal = unequal.T
    places, least = [], 1.0
    for axis, name in enumerate(("rows" if a.ndim > 1 else "elements", "columns")):
        at, total = np.flatnonzero(unequal.any(axis=1 - axis)), unequal.shape[axis]
        if len(at) < total:
            runs = [f"{run[0]}:{run[-1] + 1}" for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)]
            more = f" and {len(runs) - 4} more" if len(runs) > 4 else ""
            places.append(f"{name} {', '.join(runs[:4])}{more} ({len(at)} of {total})")
            least = min(least, len(at) / total)
    words = f"A but for {' in '.join(places)}"
    return DifferenceReason("", "close", words, count=b.size) if least < _MOST_PLAIN else None


def _deviation(signature: Signature) -> float:
    """Return the deviation of the elements of a tensor from their mean."""
    count = max(signature.count, 1)
    mean = signature.total / count
    return float(max(signature.squares / count - mean * mean, 0.0) ** 0.5)
