# SPDX-License-Identifier: Apache-2.0
"""`check_cache`: an existing weight cache, also one of ttnn's own, compared with its recipe, file by file.

tt_transformers looks up a name and trusts the file it finds. So every file is checked by itself, against its recipe
where the checkpoint or a manifest identifies the model, and against the other files.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._text import list_some
from ..errors import FileFormatError, TilewrightError
from ..files import MARKER_PREFIX, FilePath, PagedBoxes, StoredTensor, Tensorbin
from ..layout import Box
from ..memory import Coordinate, from_bytes
from .cache import CacheFile, CacheOptions, WeightCache, marker_name, open_checkpoint
from .cache_folder import CacheFolder, build_item, suits_any_mesh
from .plan import DEFAULT_MEMORY, ConversionItem, Slab, SlabCutter
from .recipe import DEFAULT_RECIPE, Recipe
from .run import MIN_SLAB_BYTES, plan_memory
from .source import Rounding, describe_difference, hash_range, name_targets, note_exceptional
from .work_folder import WorkFolder

if TYPE_CHECKING:
    from typing_extensions import Unpack


# Consistency of the files of a weight cache: layers, splits, formats, banks and meshes that disagree.

_FILE_NAME = re.compile(r"(?P<name>.+)_dtype_(?P<dtype>[A-Z0-9_]+)_layout_(?P<layout>TILE|ROW_MAJOR)\.tensorbin")
_OPTIONAL = re.compile(r"(kvcache_|empty_[kv]cache|(model\.)?(vision\w*|visual)\.).*")
_LAYER = re.compile(r"layers\.([0-9]+)\.(.+)")
_SPLIT = re.compile(r"output_lm_head_([0-9]+)_split_shard_([0-9]+)_.*")
_HIDDEN = re.compile(r"(.+)\.hidden_dim_([0-9]+)")
_ALTERNATIVES = ("attention.wo", "attention.wo_width_sharded_2d")  # of two builds
_DISTRIBUTED = "_distributed"
_BRACES = re.compile(r"\{[^{}]*\}")

CONVERTED = "tt_transformers converts it at the next start, which needs the checkpoint"
_UNREAD = "it is never read, and left over from another build"
_EITHER = "tt_transformers loads the one that its build names, which may be the stale one"


@dataclass(frozen=True, slots=True)
class CacheProblem:
    """A problem of one file, and its consequence on the card.

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
        """Return the parts of the name of a `file`, None if it is not named like a file of a cache.

        >>> FileName.parse("notes.tensorbin") is None
        True
        """
        match = _FILE_NAME.fullmatch(file)
        return None if match is None else cls(match["name"], match["dtype"], match["layout"])

    @property
    def is_optional(self) -> bool:
        """Whether it is a cache of keys and values, which can be recreated at any time, or part of the vision tower.

        >>> FileName("kvcache_torch.Size([1, 8, 1024, 64])", "BFLOAT8_B", "TILE").is_optional
        True
        """
        return _OPTIONAL.fullmatch(self.name) is not None

    @property
    def may_be_padded(self) -> bool:
        """Whether a device may get nothing but zeros.

        >>> FileName("output_lm_head_1_split_shard_0_1024_mode_0", "BFLOAT8_B", "TILE").may_be_padded
        True
        """
        return _SPLIT.fullmatch(self.name) is not None or _HIDDEN.fullmatch(self.name) is not None


def check_relations(
    folder: CacheFolder, recipe: Recipe, expected: Sequence[CacheFile] | None, reported: set[str]
) -> tuple[list[CacheProblem], list[str]]:
    """Return the problems that files have with each other, and notes.

    Args:
        folder: the cache.
        recipe: the recipe that the cache follows.
        expected: the files of the recipe, None if they are not known.
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
        problems += _check_majority(folder, reported)
    problems += _check_norms(folder, names, reported)
    return problems, notes


def _list_formats(names: dict[str, FileName], expected: Sequence[CacheFile] | None) -> Iterator[str]:
    """Yield notes about weights in several number formats, as two modes leave them."""
    own = {file.name: file.file for file in expected or ()}
    by_weight: dict[str, list[str]] = {}
    for file, parsed in names.items():
        by_weight.setdefault(parsed.name, []).append(file)
    for weight, files in by_weight.items():
        if weight in own:
            others = [file for file in files if file != own[weight]]
            yield from (f"{file} is of another mode, or stale: this one uses {own[weight]}" for file in others)
        elif len(files) > 1 and expected is None:
            formats = ", ".join([names[file].dtype for file in files])
            yield f"{weight} exists in {len(files)} formats, of several modes: {formats}"


def _check_unknown(
    files: Iterable[str], names: dict[str, FileName], expected: Sequence[CacheFile]
) -> Iterator[CacheProblem]:
    """Yield files that the recipe does not have; files of another mode are recognised by their weight."""
    weights = {file.name for file in expected}
    for file in files:
        parsed = names.get(file)
        if parsed is not None and (parsed.is_optional or parsed.name in weights):
            continue
        yield CacheProblem(file, f"is not a file of this cache{_describe_other_build(parsed, weights)}", _UNREAD)


def _describe_other_build(parsed: FileName | None, weights: set[str]) -> str:
    """Return which other build a file is of."""
    if parsed is None:
        return ": its name matches no weight"
    if (match := _SPLIT.fullmatch(parsed.name)) is not None:
        own = next((split[1] for name in weights if (split := _SPLIT.fullmatch(name))), "none")
        return f": it is one of {match[1]} splits of the head, which has {own} here"
    if _HIDDEN.fullmatch(parsed.name) is not None:
        return ": its network is padded to another width"
    if any(name.startswith(parsed.name) and _HIDDEN.fullmatch(name) for name in weights):
        return ": its network is not padded"
    for ending, alternative in (_ALTERNATIVES, _ALTERNATIVES[::-1]):
        if parsed.name.endswith(ending) and parsed.name.removesuffix(ending) + alternative in weights:
            return f": {alternative} takes its place here"
    if (layer := _LAYER.fullmatch(parsed.name)) is not None:
        count = 1 + max([int(match[1]) for name in weights if (match := _LAYER.fullmatch(name))], default=-1)
        return f": the model has {count} layer{'s' * (count != 1)}" if int(layer[1]) >= count else ""
    return ""


def _check_kinds(weights: dict[str, str], recipe: Recipe) -> Iterator[CacheProblem]:
    """Yield the files that every cache of a recipe has, and this one lacks."""
    for table in recipe.output:
        if table.when.text == "True":
            text = table.name.text[len('f"""') : -len('"""')]
            pattern = ".*".join([re.escape(part) for part in _BRACES.split(text)])
            if not any(re.fullmatch(pattern, weight) for weight in weights):
                yield CacheProblem(_BRACES.sub("*", text), "is missing", CONVERTED)


def _check_layers(weights: dict[str, str]) -> Iterator[CacheProblem]:
    """Yield files that other layers have and one lacks."""
    layers_of: dict[str, set[int]] = {}
    for weight in weights:
        if (match := _LAYER.fullmatch(weight)) is not None:
            layers_of.setdefault(match[2], set()).add(int(match[1]))
    count = 1 + max([layer for layers in layers_of.values() for layer in layers], default=-1)
    for weight_name, layers in layers_of.items():
        for layer in sorted(set(range(count)) - layers):
            yield CacheProblem(f"layers.{layer}.{weight_name}", "is missing, while other layers have it", CONVERTED)


def _check_splits(weights: dict[str, str]) -> Iterator[CacheProblem]:
    """Yield splits of the head that are missing, and splits of a second splitting."""
    splits: dict[int, dict[int, str]] = {}
    for weight, file in weights.items():
        if (match := _SPLIT.fullmatch(weight)) is not None:
            splits.setdefault(int(match[1]), {})[int(match[2])] = file
    for count, present in splits.items():
        for k in sorted(set(range(count)) - present.keys()):
            yield CacheProblem(
                f"output_lm_head_{count}_split_shard_{k}", "is missing, while other splits exist", CONVERTED
            )
    if len(splits) > 1:
        counts = " and ".join(map(str, sorted(splits)))
        for files in splits.values():
            yield CacheProblem(
                next(iter(files.values())), f"is one of two splittings of the head, into {counts}", _EITHER
            )


def _check_alternatives(weights: dict[str, str]) -> Iterator[CacheProblem]:
    """Yield weights that exist in the forms of two builds."""
    ending, alternative = _ALTERNATIVES
    for weight, file in weights.items():
        if weight.endswith(ending) and weight.removesuffix(ending) + alternative in weights:
            yield CacheProblem(file, f"exists beside {alternative}: they are of two builds", _EITHER)
        if (match := _HIDDEN.fullmatch(weight)) is not None and match[1] in weights:
            yield CacheProblem(file, f"exists beside {match[1]}, which is not padded: they are of two builds", _EITHER)


def _check_majority(folder: CacheFolder, reported: set[str]) -> Iterator[CacheProblem]:
    """Yield files for another mesh, or another number of banks, than most."""
    headers = {file: header for file, header in folder.headers.items() if file not in reported}
    shards = {file: spec.memory.shard_spec for file, (spec, _) in headers.items()}
    banks = {file: shard.grid.num_cores for file, shard in shards.items() if shard is not None}
    meshes = {file: mesh.shape for file, (_, mesh) in headers.items() if not suits_any_mesh(mesh)}
    yield from _list_minority(banks, "is sharded over {} banks", "ttnn loads it with the placement of the file")
    yield from _list_minority(meshes, "is for a mesh of {}", "devices get parts of the wrong shape, without a word")


def _list_minority(values: Mapping[str, Any], text: str, effect: str) -> Iterator[CacheProblem]:
    if len(set(values.values())) < 2:
        return
    (usual, count), *_ = Counter(values.values()).most_common(1)
    for file, value in values.items():
        if value != usual:
            shown, most = (list(item) if isinstance(item, tuple) else item for item in (value, usual))
            yield CacheProblem(file, f"{text.format(shown)}, while {count} others have {most}", effect)


def _check_norms(folder: CacheFolder, names: dict[str, FileName], reported: set[str]) -> Iterator[CacheProblem]:
    """Yield norms whose distributed form has other values."""
    by_weight = {parsed.name: file for file, parsed in names.items()}
    for weight, file in by_weight.items():
        twin = by_weight.get(weight.removesuffix(_DISTRIBUTED))
        if not weight.endswith(_DISTRIBUTED) or twin is None or reported & {file, twin}:
            continue
        try:
            a, b = (folder.open(name).array() for name in (twin, file))
        except (TilewrightError, OSError):
            continue
        if not np.array_equal(a.astype(np.float32), b.astype(np.float32), equal_nan=True):
            yield CacheProblem(
                file, f"has other values than {twin}", "prefill and decode use different norms: the results are wrong"
            )


# The content of a cache's file: compared with its source, or searched for values that no trained weight has.

DIFFERS = "differs from the checkpoint"
_SAMPLE_BYTES = 1 << 19  # of a slab that is compared
_SAMPLED_SLABS = 8  # of each part
_SAMPLED_BANDS = 5  # of rows, to look for placeholders
_SMALLEST, _LARGEST = 1e-30, 1e30  # magnitudes of trained weights lie far inside


@dataclass(frozen=True)
class ContentCheck:
    """How content is compared: with memory for `slab` bytes, in full or in a sample.

    A sample has the first, the last and some slabs between them of every device's part: the rest is not seen.
    `exceptional` counts the compared values of each file's source that are NaN, infinite or out of range.
    """

    slab: int
    full: bool
    exceptional: dict[str, Rounding] = field(default_factory=dict)

    def compare(self, item: ConversionItem, tensorbin: Tensorbin) -> str | None:
        """Return where a file differs from its source; None if it does not."""
        target = item.target
        assert target.mesh is not None
        budget = max(self.slab // 4, MIN_SLAB_BYTES)
        slabs = SlabCutter(item.source, target, budget if self.full else min(budget, _SAMPLE_BYTES))
        boxes = PagedBoxes(target.spec)
        devices = list(target.mesh.windows().values())
        for slab in slabs if self.full else _sample(list(slabs)):
            whole, spec, expected, exceptional = slabs.convert(slab)
            self.exceptional[item.name] = self.exceptional.get(item.name, Rounding(0)) + exceptional
            runs = boxes.runs(slab.box)
            for device in devices[slab.window]:
                part = tensorbin.shards[device]
                stored = np.concatenate([part[start : start + size] for start, size in runs])
                if not np.array_equal(stored, expected):
                    difference = describe_difference(from_bytes(expected, spec), from_bytes(stored, spec), whole)
                    return f"{DIFFERS} on device {device}, in {whole}: {difference}"
        return None


def _sample(slabs: list[Slab]) -> list[Slab]:
    """Return the first, the last and some slabs between them of every part."""
    by_window: dict[int, list[Slab]] = {}
    for slab in slabs:
        by_window.setdefault(slab.window, []).append(slab)
    chosen: list[Slab] = []
    for own in by_window.values():
        picks = {round(k * (len(own) - 1) / (_SAMPLED_SLABS - 1)) for k in range(_SAMPLED_SLABS)}
        chosen += [own[k] for k in sorted(picks)]
    return chosen


def find_placeholder(tensorbin: Tensorbin, name: FileName | None = None) -> str | None:
    """Return a description of values in a file that no trained weight has, or None.

    >>> from tilewright import TensorSpec
    >>> find_placeholder(Tensorbin(TensorSpec((64, 64), "bfloat8_b"), bytes(4 * 1088)))
    'all values are 0'
    """
    suspicions = []
    for device in tensorbin.shards:
        numbers = _sample_values(tensorbin, device)
        finite = np.isfinite(numbers)
        if not finite.all():
            return f"{np.count_nonzero(~finite)} of {numbers.size} sampled values are not finite"
        sizes = np.abs(numbers[numbers != 0])
        if numbers.size > 1 and (numbers == numbers[0]).all():
            suspicions.append(f"all values are {numbers[0]:g}")
        elif sizes.size and sizes.max() < _SMALLEST:
            suspicions.append(f"no value is larger than {sizes.max():.3g}")
        elif sizes.size and sizes.max() > _LARGEST:
            return f"values reach {sizes.max():.3g}"
        else:
            suspicions.append("")
    # padding of the head, or of a network, may be all that a device gets
    is_padded = name is not None and name.may_be_padded
    if not all(suspicions) and (is_padded or not any(suspicions)):
        return None
    return next((reason for reason in suspicions if reason), None)


def _sample_values(tensorbin: Tensorbin, device: Coordinate) -> Any:
    """Return the values of some bands of rows of a device's part, as float32."""
    spec = tensorbin.spec
    boxes = PagedBoxes(spec)
    shape = spec.shape.logical
    rows = shape[-2] if len(shape) > 1 else 1
    height = min(rows, 32)
    samples = []
    for start in sorted({round(k * (rows - height) / (_SAMPLED_BANDS - 1)) for k in range(_SAMPLED_BANDS)}):
        for lead in {(0,) * len(shape[:-2]), tuple([n - 1 for n in shape[:-2]])}:
            offset, extents = (*lead, start, 0), (*[1] * len(lead), height, shape[-1])
            box = boxes.enclosing_box(Box(offset[-len(shape) :], extents[-len(shape) :]))
            pages = tensorbin.shards[device]
            data = np.concatenate([pages[at : at + size] for at, size in boxes.runs(box)])
            samples.append(np.asarray(Tensorbin(boxes.box_spec(box), data).array(), np.float32).reshape(-1))
    return np.concatenate(samples)


BELIEVED = "tt_transformers loads it without a word, and the results are wrong"
OVERWRITTEN = "ttnn fails inside and overwrites the file with what its caller holds, perhaps a placeholder"
FILLED = "tt_transformers starts without the checkpoint, and fills what is missing with placeholders"
LOADED = "tt_transformers ignores it and loads the checkpoint"
PLACED = "ttnn loads it with the placement of the file, not the one that the model asks for"


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The result of a check: problems, notes, and how much was compared.

    >>> bool(CacheReport("cache", "N150", "performance", 22, "nothing", ()))
    True
    """

    directory: str
    machine: str | None
    mode: str | None
    files: int
    compared: str
    problems: tuple[CacheProblem, ...]
    notes: tuple[str, ...] = ()
    recipe: Mapping[str, str] | None = field(default=None, hash=False)

    def __bool__(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data.

        >>> CacheReport("cache", "N150", "performance", 22, "nothing", ()).to_json()["good"]
        True
        """
        return {"good": bool(self), **asdict(self)}


def check_cache(
    cache: FilePath,
    source: FilePath | None = None,
    machine: str | None = None,
    *,
    full: bool = False,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Unpack[CacheOptions],
) -> CacheReport:
    """Check a weight cache, and report the consequence of each problem on the card.

    Args:
        cache: the directory with the files, or one above it that holds a single cache.
        source: the checkpoint. Without it, files are compared with the manifest, if there is one, and with each other.
        machine: the machine that the cache is for, by default the one that its manifest or its path names.
        full: compare all values with the source, not a sample of each file.
        memory: the most bytes of memory to use.
        jobs: the number of threads.
        progress: called with the number of checked files, and the number of all files.
        options: as in `plan_cache`, where they cannot be seen from the cache.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright.conversion import prepare
    >>> from tilewright.files import write_sample_llama
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_llama(f"{folder}/Llama-3.2-1B-Instruct")
    ...     out = prepare(f"{folder}/Llama-3.2-1B-Instruct", f"{folder}/cache", "N300").out
    ...     (Path(out) / "norm.weight_dtype_BFLOAT16_layout_ROW_MAJOR.tensorbin").unlink()
    ...     report = check_cache(f"{folder}/cache", f"{folder}/Llama-3.2-1B-Instruct")
    >>> report.files, [(problem.file[:11], problem.problem) for problem in report.problems][0]
    (22, ('norm.weight', 'is missing'))
    """
    folder = CacheFolder(cache)
    checkpoint, tensors = (
        (None, {}) if source is None else open_checkpoint(source, options.get("recipe") or folder.recipe)
    )
    described = checkpoint is not None or folder.record is not None
    expected = folder.describe(checkpoint, machine, **options) if described else None
    files = {file.file: file for file in expected.files} if expected is not None else {}
    threads, slab, _ = plan_memory(memory, jobs)
    content = ContentCheck(slab, full)
    problems: list[CacheProblem] = []
    names = sorted({*files, *folder.names})

    def check(name: str) -> list[CacheProblem]:
        return list(_check_file(folder, name, files.get(name), tensors, content))

    with ThreadPoolExecutor(threads) as pool:
        for done, file_problems in enumerate(pool.map(check, names), 1):
            problems += file_problems
            if progress is not None:
                progress(done, len(names))
    reported = {problem.file for problem in problems}
    differing = sum([problem.problem.startswith(DIFFERS) for problem in problems])
    rules = Recipe.load(options.get("recipe", DEFAULT_RECIPE)) if expected is None else expected.recipe
    others, notes = check_relations(folder, rules, list(files.values()) if described else None, reported)
    problems += [*others, *_check_markers(folder, expected)]
    if 1 < len(names) < 2 * differing:
        notes.append(f"{differing} of {len(names)} files differ from the checkpoint; was the cache made from {source}?")
    if WorkFolder(folder.path, single=False).has_records:
        notes.append("a run of prepare is not finished; continue it with --resume")
    notes += _describe_values(folder, list(files.values()), content)
    if expected is not None:
        notes += _describe_revision(folder, expected)
        if source is None:
            problems += _check_tied_head(folder, expected, content, reported)
        notes += [*_describe_mesh(expected), *expected.describe_layers(), *expected.describe_unused(tensors)]
    return CacheReport(
        str(folder.path),
        expected.machine.name if expected is not None else machine or folder.machine(rules),
        expected.optimizations.mode if expected is not None else None,
        len(names),
        _describe_comparison(source is not None, folder.manifest is not None, full),
        tuple(problems),
        tuple(notes),
        expected.recipe.to_json() if expected is not None else None,
    )


def _describe_comparison(with_source: bool, with_manifest: bool, full: bool) -> str:
    if with_source:
        return "headers, and all values with the checkpoint" if full else "headers, and a sample of each file's values"
    own = (
        "headers, and all bytes with the manifest" if with_manifest else "names and headers, and files with each other"
    )
    return f"{own}; only the cache itself, since the checkpoint was not given"


def _check_file(
    folder: CacheFolder, name: str, file: CacheFile | None, tensors: Mapping[str, StoredTensor], content: ContentCheck
) -> Iterator[CacheProblem]:
    """Yield the problems of one file; `file` is its entry in the recipe."""
    try:
        tensorbin = folder.open(name)
    except FileNotFoundError:
        yield CacheProblem(name, f"is missing{_describe_variant(folder, name)}", CONVERTED)
        return
    except (FileFormatError, OSError) as problem:
        reason = str(problem).removeprefix(f"{folder.path / name}: ")
        yield CacheProblem(name, f"cannot be read: {reason}", OVERWRITTEN)
        return
    parsed = FileName.parse(name)
    actual = (tensorbin.spec.dtype.name.upper(), tensorbin.spec.page_layout.name)
    if parsed is not None and actual != (parsed.dtype, parsed.layout):
        mismatch = f"its name says {parsed.dtype} in {parsed.layout}, but it holds {actual[0]} in {actual[1]}"
        yield CacheProblem(name, mismatch, f"ttnn loads it as {actual[0]}")
        return
    if parsed is not None and parsed.is_optional:
        return
    if file is not None and (problems := list(_compare_headers(file, tensorbin))):
        yield from problems
        return
    different = _compare_bytes(folder, name, file, tensorbin, tensors, content)
    is_unknown = different is None and not tensors
    placeholder = find_placeholder(tensorbin, parsed) if different or is_unknown else None
    if placeholder is not None:
        yield CacheProblem(name, f"is a placeholder: {placeholder}", BELIEVED)
    elif different:
        yield CacheProblem(name, different, BELIEVED)


def _describe_variant(folder: CacheFolder, name: str) -> str:
    """Return a remark about a file of the same weight in another number format."""
    own = FileName.parse(name)
    for candidate in folder.names:
        parsed = FileName.parse(candidate)
        if own is not None and parsed is not None and parsed.name == own.name:
            return f"; {candidate} is of another mode"
    return ""


def _compare_bytes(
    folder: CacheFolder,
    name: str,
    file: CacheFile | None,
    tensorbin: Tensorbin,
    tensors: Mapping[str, StoredTensor],
    content: ContentCheck,
) -> str | None:
    """Return how the bytes of a file differ from the checkpoint, or from the manifest.

    The text is empty if they do not differ, and None if there is nothing to compare them with.
    """
    if file is not None and tensors:
        return content.compare(build_item(file, tensors), tensorbin) or ""
    manifest = folder.manifest
    entry = None if file is None or manifest is None else manifest.entries.get(file.name)
    if entry is None or entry.output.file != name:
        return None
    same = hash_range(folder.path / name, 0, entry.output.end) == entry.output.sha256
    return "" if same else "has changed since it was made: its SHA-256 differs from the manifest's"


def _compare_headers(file: CacheFile, tensorbin: Tensorbin) -> Iterator[CacheProblem]:
    spec, mesh, name = file.spec, file.mesh, file.file
    if tensorbin.mesh_shape != mesh.shape:
        effect = (
            "every device gets all of it, in the wrong shape"
            if len(tensorbin.shards) < len(mesh.topology.coordinates)
            else OVERWRITTEN
        )
        yield CacheProblem(name, f"is for a mesh of {list(tensorbin.mesh_shape)}, expected {list(mesh.shape)}", effect)
    elif tensorbin.topology != mesh.topology:
        actual, expected = (
            f"{list(own.distribution)} cutting {list(own.placements)}" for own in (tensorbin.topology, mesh.topology)
        )
        order = " in another order of devices" if actual == expected else ""
        yield CacheProblem(name, f"is distributed as {actual}{order}, expected {expected}", BELIEVED)
    if tensorbin.spec.shape.logical != spec.shape.logical:
        shapes = [list(tensor_spec.shape.logical) for tensor_spec in (tensorbin.spec, spec)]
        yield CacheProblem(name, f"has shape {shapes[0]} per device, expected {shapes[1]}", BELIEVED)
    elif tensorbin.spec.memory != spec.memory:
        yield CacheProblem(name, f"is {tensorbin.spec.memory}, expected {spec.memory}", PLACED)
    elif tensorbin.spec != spec:
        yield CacheProblem(name, f"is {tensorbin.spec}, expected {spec}", BELIEVED)


def _check_tied_head(
    folder: CacheFolder, expected: WeightCache, content: ContentCheck, reported: set[str]
) -> Iterator[CacheProblem]:
    """Yield the files that disagree with another file of the same tensor: the head of a tied model."""
    checked = {file.file for file in expected.files if file.file in folder.names} - reported
    for name, whole in expected.whole_tensors().items():
        tied = [file for file in expected.files if file.value.sources == [name] and file is not whole]
        for file in tied if whole.file in checked else ():
            item = build_item(file, {name: folder.open_tensor(whole, name)})
            if file.file in checked and content.compare(item, folder.open(file.file)) is not None:
                yield CacheProblem(file.file, f"is not {whole.name}, to which the model ties it", BELIEVED)


def _check_markers(folder: CacheFolder, expected: WeightCache | None) -> Iterator[CacheProblem]:
    """Yield the problems of completion markers; `expected` is None if the model is not known."""
    markers = {} if expected is None else {name: json.loads(body) for name, body in expected.marker().items()}
    marker: dict[str, Any] = next(iter(markers.values()), {})  # of any batch size or mode
    for path in sorted(folder.path.glob(f"{MARKER_PREFIX}*")):
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
            listed = {str(name) for name in body["cache_files"]}
            variant = body["build_variant"]
        except (ValueError, KeyError, TypeError) as problem:
            yield CacheProblem(path.name, f"cannot be read: {problem!r}", LOADED)
            continue
        if path.name != marker_name(variant):
            yield CacheProblem(
                path.name, f"is named for another build than it describes, {marker_name(variant)}", LOADED
            )
        if missing := sorted([name for name in listed if not (folder.path / name).exists()]):
            yield CacheProblem(path.name, f"lists {list_some(missing)}, which does not exist", LOADED)
        for key in ("model_name", "n_layers", "mesh_shape"):
            if key in marker and body.get(key) != marker[key]:
                yield CacheProblem(path.name, f"says {key} {body.get(key)!r}, expected {marker[key]!r}", LOADED)
        if marker and body.get("weights") != marker["weights"]:
            yield CacheProblem(path.name, "lists other weights than the checkpoint has", LOADED)
        if path.name in markers and (absent := sorted({*marker["cache_files"]} - listed)):
            yield CacheProblem(path.name, f"does not list {list_some(absent)}", FILLED)


def _describe_values(folder: CacheFolder, files: list[CacheFile], content: ContentCheck) -> list[str]:
    """Return notes about values that are NaN, infinite or out of range, in the checkpoint or by the manifest."""
    if content.exceptional:
        counts = [(file.name, seen.exceptional) for file in files if (seen := content.exceptional.get(file.name))]
        where = "" if content.full else ", in the sample that was compared"
    else:
        entries = {} if folder.manifest is None else folder.manifest.entries
        counts, where = (
            [(name, dict(entry.exceptional)) for name, entry in entries.items()],
            ", by the manifest",
        )
    formats = {file.name: name_targets(*file.through, file.spec.dtype) for file in files}
    return [note + where for note in note_exceptional([(name, count, formats.get(name)) for name, count in counts])]


def _describe_revision(folder: CacheFolder, expected: WeightCache) -> list[str]:
    recorded, own = (folder.record or {}).get("revision"), expected.recipe.revision
    if recorded is None or recorded == own:
        return []
    return [f"it was made with revision {recorded} of its recipe, and is checked with {own}"]


def _describe_mesh(expected: WeightCache) -> list[str]:
    usual = expected.recipe.devices[expected.machine.name].mesh
    if expected.machine.mesh == usual:
        return []
    return [f"the files are for a mesh of {list(expected.machine.mesh)}, and {expected.machine.name} is {list(usual)}"]
