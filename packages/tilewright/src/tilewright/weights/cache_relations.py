# SPDX-License-Identifier: Apache-2.0
"""What the files of a weight cache say about each other: layers, splits, formats, banks and meshes that disagree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import TilewrightError
from .cache_folder import CacheFolder
from .recipe import Recipe
from .weight_cache import CacheFile

_FILE_NAME = re.compile(r"(?P<name>.+)_dtype_(?P<dtype>[A-Z0-9_]+)_layout_(?P<layout>TILE|ROW_MAJOR)\.tensorbin")
_OPTIONAL = re.compile(r"(kvcache_|empty_[kv]cache).*")
_LAYER = re.compile(r"layers\.([0-9]+)\.(.+)")
_SPLIT = re.compile(r"output_lm_head_([0-9]+)_split_shard_([0-9]+)_.*")
_HIDDEN = re.compile(r"(.+)\.hidden_dim_([0-9]+)")
_ALTERNATIVES = ("attention.wo", "attention.wo_width_sharded_2d")  # of two builds
_DISTRIBUTED = "_distributed"
_BRACES = re.compile(r"\{[^{}]*\}")

CONVERTED = "tt_transformers converts it at the next start, which needs the checkpoint"
_UNREAD = "nobody reads it; it is left over from another build"
_EITHER = "tt_transformers loads the one that its build names, which may be the stale one"


@dataclass(frozen=True, slots=True)
class CacheProblem:
    """A problem of one file: what is wrong, and what would happen on the card.

    >>> CacheProblem("norm.weight_dtype_BFLOAT16_layout_ROW_MAJOR.tensorbin", "is missing", "").problem
    'is missing'
    """

    file: str
    problem: str
    effect: str


@dataclass(frozen=True, slots=True)
class FileName:
    """The name of a file of a cache: the weight, its number format, and its layout.

    >>> FileName.parse("layers.0.attention.wo_dtype_BFLOAT8_B_layout_TILE.tensorbin")
    FileName(name='layers.0.attention.wo', dtype='BFLOAT8_B', layout='TILE')
    """

    name: str
    dtype: str
    layout: str

    @classmethod
    def parse(cls, file: str) -> FileName | None:
        """Return the parts of the name of a `file`, None if it is not named like one of a cache.

        >>> FileName.parse("notes.tensorbin") is None
        True
        """
        found = _FILE_NAME.fullmatch(file)
        return None if found is None else cls(found["name"], found["dtype"], found["layout"])

    @property
    def is_optional(self) -> bool:
        """Return whether it is a cache of keys and values, which is zero and made at will.

        >>> FileName("kvcache_torch.Size([1, 8, 1024, 64])", "BFLOAT8_B", "TILE").is_optional
        True
        """
        return _OPTIONAL.fullmatch(self.name) is not None

    @property
    def may_be_padded(self) -> bool:
        """Return whether a device may get nothing but zeros.

        >>> FileName("output_lm_head_1_split_shard_0_1024_mode_0", "BFLOAT8_B", "TILE").may_be_padded
        True
        """
        return _SPLIT.fullmatch(self.name) is not None or _HIDDEN.fullmatch(self.name) is not None


def check_relations(
    folder: CacheFolder, recipe: Recipe, expected: Sequence[CacheFile] | None, known: set[str]
) -> tuple[list[CacheProblem], list[str]]:
    """Return the problems that files have with each other, and notes.

    Args:
        folder: the cache.
        recipe: the recipe that the cache follows.
        expected: the files that the recipe says, None if that is not known.
        known: files that have a problem of their own.
    """
    names = {file: parsed for file in folder.names if (parsed := FileName.parse(file)) is not None}
    problems: list[CacheProblem] = []
    notes = list(_list_formats(names, expected))
    if expected is not None:
        problems += _check_unknown(folder.names, names, expected)
    else:
        problems += [
            CacheProblem(file, "is not named like a file of a cache", _UNREAD)
            for file in folder.names
            if file not in names
        ]
        weights = {parsed.name: file for file, parsed in names.items() if not parsed.is_optional}
        problems += [
            *_check_kinds(weights, recipe),
            *_check_layers(weights),
            *_check_splits(weights),
            *_check_alternatives(weights),
        ]
        problems += _check_majority(folder, known)
    problems += _check_norms(folder, names, known)
    return problems, notes


def _list_formats(names: dict[str, FileName], expected: Sequence[CacheFile] | None) -> Iterator[str]:
    """Yield notes about weights in several number formats, which is what two modes leave."""
    wanted = {file.name: file.file for file in expected or ()}
    by_weight: dict[str, list[str]] = {}
    for file, parsed in names.items():
        by_weight.setdefault(parsed.name, []).append(file)
    for weight, files in by_weight.items():
        if weight in wanted:
            others = [file for file in files if file != wanted[weight]]
            yield from (f"{file} is of another mode, or stale: this one uses {wanted[weight]}" for file in others)
        elif len(files) > 1 and expected is None:
            formats = ", ".join([names[file].dtype for file in files])
            yield f"{weight} exists in {len(files)} formats, of several modes: {formats}"


def _check_unknown(
    files: Iterable[str], names: dict[str, FileName], expected: Sequence[CacheFile]
) -> Iterator[CacheProblem]:
    """Yield files that the recipe does not have; those of another mode are known by their weight."""
    weights = {file.name for file in expected}
    for file in files:
        parsed = names.get(file)
        if parsed is not None and (parsed.is_optional or parsed.name in weights):
            continue
        yield CacheProblem(file, f"is not a file of this cache{_describe_other_build(parsed, weights)}", _UNREAD)


def _describe_other_build(parsed: FileName | None, weights: set[str]) -> str:
    """Return which other build a file is of."""
    if parsed is None:
        return ": its name is not that of a weight"
    if (found := _SPLIT.fullmatch(parsed.name)) is not None:
        own = next((split[1] for name in weights if (split := _SPLIT.fullmatch(name))), "none")
        return f": it is one of {found[1]} splits of the head, which has {own} here"
    if _HIDDEN.fullmatch(parsed.name) is not None:
        return ": its network is padded to another width"
    if any(name.startswith(parsed.name) and _HIDDEN.fullmatch(name) for name in weights):
        return ": its network is not padded"
    for one, other in (_ALTERNATIVES, _ALTERNATIVES[::-1]):
        if parsed.name.endswith(one) and parsed.name.removesuffix(one) + other in weights:
            return f": {other} takes its place here"
    if (layer := _LAYER.fullmatch(parsed.name)) is not None:
        count = 1 + max([int(found[1]) for name in weights if (found := _LAYER.fullmatch(name))], default=-1)
        return f": the model has {count} layer{'s' * (count != 1)}" if int(layer[1]) >= count else ""
    return ""


def _check_kinds(weights: dict[str, str], recipe: Recipe) -> Iterator[CacheProblem]:
    """Yield the files that every cache of a recipe has, and this one has not."""
    for table in recipe.output:
        if table.when.text == "True":
            text = table.name.text[len('f"""') : -len('"""')]
            pattern = ".*".join([re.escape(part) for part in _BRACES.split(text)])
            if not any(re.fullmatch(pattern, weight) for weight in weights):
                yield CacheProblem(_BRACES.sub("*", text), "is missing", CONVERTED)


def _check_layers(weights: dict[str, str]) -> Iterator[CacheProblem]:
    """Yield files that other layers have and one has not."""
    kinds: dict[str, set[int]] = {}
    for weight in weights:
        if (found := _LAYER.fullmatch(weight)) is not None:
            kinds.setdefault(found[2], set()).add(int(found[1]))
    count = 1 + max([layer for layers in kinds.values() for layer in layers], default=-1)
    for kind, layers in kinds.items():
        for layer in sorted(set(range(count)) - layers):
            yield CacheProblem(
                f"layers.{layer}.{kind}",
                "is missing, while other layers have it",
                CONVERTED,
            )


def _check_splits(weights: dict[str, str]) -> Iterator[CacheProblem]:
    """Yield splits of the head that are missing, and those of a second splitting."""
    splits: dict[int, dict[int, str]] = {}
    for weight, file in weights.items():
        if (found := _SPLIT.fullmatch(weight)) is not None:
            splits.setdefault(int(found[1]), {})[int(found[2])] = file
    for count, present in splits.items():
        for k in sorted(set(range(count)) - present.keys()):
            yield CacheProblem(
                f"output_lm_head_{count}_split_shard_{k}",
                "is missing, while other splits exist",
                CONVERTED,
            )
    if len(splits) > 1:
        counts = " and ".join(map(str, sorted(splits)))
        for files in splits.values():
            yield CacheProblem(
                next(iter(files.values())), f"is one of two splittings of the head, into {counts}", _EITHER
            )


def _check_alternatives(weights: dict[str, str]) -> Iterator[CacheProblem]:
    """Yield weights that exist in the forms of two builds."""
    one, other = _ALTERNATIVES
    for weight, file in weights.items():
        if weight.endswith(one) and weight.removesuffix(one) + other in weights:
            yield CacheProblem(file, f"exists beside {other}: they are of two builds", _EITHER)
        if (found := _HIDDEN.fullmatch(weight)) is not None and found[1] in weights:
            yield CacheProblem(file, f"exists beside {found[1]}, which is not padded: they are of two builds", _EITHER)


def _check_majority(folder: CacheFolder, known: set[str]) -> Iterator[CacheProblem]:
    """Yield files for another mesh, or another number of banks, than most."""
    headers = {file: header for file, header in folder.headers.items() if file not in known}
    shards = {file: header.spec.memory.shard_spec for file, header in headers.items()}
    banks = {file: shard.grid.num_cores for file, shard in shards.items() if shard is not None}
    meshes = {file: header.mesh_shape for file, header in headers.items() if not header.suits_any_mesh}
    yield from _list_minority(banks, "is sharded over {} banks", "ttnn loads it with the placement of the file")
    yield from _list_minority(meshes, "is for a mesh of {}", "devices get parts of the wrong shape, without a word")


def _list_minority(values: Mapping[str, Any], text: str, effect: str) -> Iterator[CacheProblem]:
    if len(set(values.values())) < 2:
        return
    (usual, count), *_ = Counter(values.values()).most_common(1)
    for file, value in values.items():
        if value != usual:
            shown, most = (list(each) if isinstance(each, tuple) else each for each in (value, usual))
            yield CacheProblem(file, f"{text.format(shown)}, while {count} others have {most}", effect)


def _check_norms(folder: CacheFolder, names: dict[str, FileName], known: set[str]) -> Iterator[CacheProblem]:
    """Yield norms whose distributed form has other values."""
    by_weight = {parsed.name: file for file, parsed in names.items()}
    for weight, file in by_weight.items():
        plain = by_weight.get(weight.removesuffix(_DISTRIBUTED))
        if not weight.endswith(_DISTRIBUTED) or plain is None or known & {file, plain}:
            continue
        try:
            one, other = (folder.open(each).array() for each in (plain, file))
        except (TilewrightError, OSError):
            continue
        if not np.array_equal(one.astype(np.float32), other.astype(np.float32), equal_nan=True):
            yield CacheProblem(
                file, f"has other values than {plain}", "prefill and decode use different norms: the results are wrong"
            )
