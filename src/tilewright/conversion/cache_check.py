# SPDX-License-Identifier: Apache-2.0
"""`check_cache`: an existing weight cache compared with what its recipe says, file by file, also one of ttnn's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileFormatError, FormatError
from ..files.source_file import FilePath
from ..files.stored_tensor import PagedBoxes
from ..files.tensorbin import Tensorbin, read_tensorbin
from ..layout import Box
from .assembled_source import aligned_bytes
from .conversion_item import ConversionItem
from .conversion_plan import ConversionPlan
from .conversion_run import DEFAULT_MEMORY, MIN_SLAB_BYTES, plan_memory
from .prepare import plan_cache
from .recipe import Recipe
from .slabs import Slab, SlabCutter

_FILE_NAME = re.compile(r"(?P<name>.+)_dtype_(?P<dtype>[A-Z0-9_]+)_layout_(?P<layout>TILE|ROW_MAJOR)\.tensorbin")
_DIRECTORY = re.compile(r"tensor_cache_(instruct_)?(bfp8|bf16)")
_OPTIONAL = re.compile(r"(kvcache_|empty_[kv]cache).*")
_MODES = ("performance", "accuracy")
_SAMPLED_SLABS = 3  # of each part, if content is sampled

_BELIEVED = "tt_transformers loads it without a word, and the results are wrong"
_OVERWRITTEN = "ttnn fails inside and overwrites the file with what its caller holds, perhaps a placeholder"
_CONVERTED = "tt_transformers converts it on the next start, which needs the checkpoint"


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
class CacheReport:
    """What a check found: problems, notes, and how much was compared.

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
    recipe: str = "tt_transformers",
    full: bool = False,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> CacheReport:
    """Check a weight cache, and return a report.

    Args:
        cache: the directory with the files, or one above it that holds a single cache.
        source: the checkpoint. Without it, files are compared with their names and with each other only.
        machine: the machine that the cache is for, by default the name in its path.
        recipe: the recipe that the cache follows.
        full: compare all values with the source, not a sample of each file.
        memory: the most bytes of memory to use.
        jobs: the number of threads.
        progress: called with the number of checked files, and the number of all files.
        options: those of `plan_cache`, where they cannot be seen from the cache.
    """
    directory = find_cache(Path(cache))
    names = sorted([each.name for each in directory.iterdir() if each.suffix == ".tensorbin"])
    place = read_place(directory, Recipe.named(recipe))
    chosen = machine or place.get("machine")
    if source is None:
        found = [problem for name in names for problem in _check_alone(directory / name)]
        found += _check_layers(names)
        return CacheReport(str(directory), chosen, None, len(names), "names and headers", tuple(found))
    if chosen is None:
        raise FormatError(f"cannot tell from {directory} which machine it is for; name it, such as machine='N300'")
    plan, mode = _choose_plan(
        source, directory, chosen, names, {**place.get("options", {}), **options, "recipe": recipe}
    )
    threads, slab, _ = plan_memory(memory, jobs)
    problems: list[CacheProblem] = []
    with ThreadPoolExecutor(threads) as pool:
        tasks = [pool.submit(_check_item, item, directory, slab, full) for item in plan.items]
        for done, task in enumerate(tasks, 1):
            problems += task.result()
            if progress is not None:
                progress(done, len(tasks))
    extra, notes = _explain_extra_files(names, plan)
    problems += extra
    problems += _check_markers(directory, plan)
    compared = "all values" if full else "a sample of the values of each file"
    return CacheReport(str(directory), chosen, mode, len(plan.items), compared, tuple(problems), tuple(notes))


def find_cache(path: Path) -> Path:
    """Return the directory of a cache: this one, or the only one below it that holds tensorbin files."""
    if list(path.glob("*.tensorbin")):  # all of them: an unfinished search leaves the folder open
        return path
    below = sorted({each.parent for each in path.rglob("*.tensorbin")})
    if len(below) != 1:
        what = ", ".join(map(str, below[:4])) if below else "none"
        raise FileFormatError(f"expected one cache of tensorbin files below {path}, got {what}")
    return below[0]


def read_place(directory: Path, recipe: Recipe) -> dict[str, Any]:
    """Return what the path of a cache says: the machine, and options of the plan."""
    found = _DIRECTORY.fullmatch(directory.name)
    if found is None:
        return {}
    above = directory.parent
    hf_rope = above.name == "hf_rope"
    machine = (above.parent if hf_rope else above).name
    options = {
        "hf_rope": hf_rope,
        "instruct": found[1] is not None,
        "model_dtype": "bfloat8_b" if found[2] == "bfp8" else "bfloat16",
    }
    return {"machine": machine if machine in recipe.cache["devices"] else None, "options": options}


def _choose_plan(
    source: FilePath, directory: Path, machine: str, names: list[str], options: dict[str, Any]
) -> tuple[ConversionPlan, str]:
    """Return the plan of the mode that fits the files best, and that mode."""
    modes = [options.pop("optimizations")] if "optimizations" in options else list(_MODES)
    plans = [(plan_cache(source, directory, machine, optimizations=mode, **options), mode) for mode in modes]
    return max(plans, key=lambda each: len({item.slot.file for item in each[0].items} & set(names)))


def _check_alone(path: Path) -> Iterator[CacheProblem]:
    """Yield the problems of a file that show without its source."""
    try:
        held = read_tensorbin(path)
    except (FileFormatError, OSError) as problem:
        yield CacheProblem(path.name, f"cannot be read: {problem}", _OVERWRITTEN)
        return
    if (found := _FILE_NAME.fullmatch(path.name)) is not None:
        dtype, layout = held.spec.dtype.name.upper(), held.spec.page_layout.name
        if (dtype, layout) != (found["dtype"], found["layout"]):
            said = f"its name says {found['dtype']} in {found['layout']}, but it holds {dtype} in {layout}"
            yield CacheProblem(path.name, said, f"ttnn loads it as {dtype}")
    if not _OPTIONAL.fullmatch(path.name) and (kind := find_placeholder(held)) is not None:
        yield CacheProblem(path.name, f"is a placeholder: {kind}", _BELIEVED)


def find_placeholder(held: Tensorbin) -> str | None:
    """Return what is suspicious about the values of a file that no trained weight has, or None."""
    for device, pages in held.shards.items():
        values = held.array(device if len(held.shards) > 1 else None).reshape(-1) if pages.nbytes < 1 << 16 else None
        sample = pages if pages.nbytes < 1 << 22 else pages[:: pages.nbytes >> 22 or 1]
        if len(sample) > 1 and (sample == sample[0]).all() and (values is None or values.size > 1):
            return "all bytes are equal"
        numbers = _sample_values(held, device)
        finite = np.isfinite(numbers)
        if not finite.all():
            return f"{np.count_nonzero(~finite)} of {numbers.size} values are not finite"
        if numbers.size > 64 and (numbers == numbers[0]).all():
            return f"all values are {numbers[0]:g}"
        largest = float(np.abs(numbers).max(initial=0))
        if largest and largest < 1e-30:
            return f"no value is larger than {largest:.3g}"
        if largest > 1e30:
            return f"values reach {largest:.3g}"
    return None


def _sample_values(held: Tensorbin, device: Any) -> Any:
    """Return the values of the first pages of a device's part, as float32."""
    spec = held.spec
    rows = 32 if spec.is_tiled else 1
    extents = list(spec.shape.logical)
    for d in range(len(extents) - 2):
        extents[d] = 1
    if len(extents) > 1:
        extents[-2] = min(extents[-2], rows)
    boxes = PagedBoxes(spec)
    box = boxes.enclosing_box(Box((0,) * len(extents), tuple(extents)))
    pages = held.shards[device]
    data = np.concatenate([pages[start : start + size] for start, size in boxes.runs(box)])
    from_spec = boxes.box_spec(box)
    return np.asarray(Tensorbin(from_spec, data).array(), np.float32).reshape(-1)


def _check_item(item: ConversionItem, directory: Path, slab: int, full: bool) -> list[CacheProblem]:
    """Return the problems of the file of one item."""
    name = item.slot.file
    try:
        held = read_tensorbin(directory / name)
    except FileNotFoundError:
        return [CacheProblem(name, "is missing", _CONVERTED)]
    except (FileFormatError, OSError) as problem:
        return [CacheProblem(name, f"cannot be read: {problem}", _OVERWRITTEN)]
    problems = list(_compare_headers(item, held))
    if problems:
        return problems
    return list(_compare_content(item, held, slab, full))


def _compare_headers(item: ConversionItem, held: Tensorbin) -> Iterator[CacheProblem]:
    spec, mesh, name = item.target.spec, item.target.mesh, item.slot.file
    assert mesh is not None
    if held.spec.dtype != spec.dtype or held.spec.page_layout != spec.page_layout:
        found, wanted = (f"{each.dtype} in {each.page_layout}" for each in (held.spec, spec))
        yield CacheProblem(name, f"holds {found}, expected {wanted}", f"ttnn loads it as {held.spec.dtype}")
    if held.mesh_shape != mesh.shape:
        effect = "every device gets all of it" if len(held.shards) < len(mesh.topology.coordinates) else _OVERWRITTEN
        yield CacheProblem(name, f"is for a mesh of {list(held.mesh_shape)}, expected {list(mesh.shape)}", effect)
    elif (held.topology.distribution, held.topology.placements) != (
        mesh.topology.distribution,
        mesh.topology.placements,
    ):
        found, wanted = (
            f"{list(each.distribution)} cutting {list(each.placements)}" for each in (held.topology, mesh.topology)
        )
        yield CacheProblem(name, f"is distributed as {found}, expected {wanted}", _BELIEVED)
    if held.spec.shape.logical != spec.shape.logical:
        shapes = [list(each.shape.logical) for each in (held.spec, spec)]
        yield CacheProblem(name, f"has shape {shapes[0]} per device, expected {shapes[1]}", _BELIEVED)
    elif held.spec.memory != spec.memory:
        yield CacheProblem(
            name, f"is {held.spec.memory}, expected {spec.memory}", "ttnn loads it with the placement of the file"
        )
    elif held.spec != spec:
        yield CacheProblem(name, f"is {held.spec}, expected {spec}", _BELIEVED)


def _compare_content(item: ConversionItem, held: Tensorbin, slab: int, full: bool) -> Iterator[CacheProblem]:
    """Yield the problem of a file with other content than the source gives."""
    source, target = item.source, item.target
    assert target.mesh is not None
    slabs = SlabCutter(source, target, max(slab // 4 if full else 1 << 20, MIN_SLAB_BYTES))
    boxes = PagedBoxes(target.spec)
    devices = list(target.mesh.windows().values())
    for each in slabs if full else _sample_slabs(list(slabs)):
        window = slabs.windows[each.window]
        whole = each.box.relative_to(tuple([-n for n in window.offset]))
        spec = boxes.box_spec(each.box)
        expected = aligned_bytes(spec.nbytes)
        source.pack(list(source.read_parts(whole, aligned_bytes)), spec, expected, aligned_bytes, target.pad_value)
        runs = boxes.runs(each.box)
        for device in devices[each.window]:
            pages = held.shards[device]
            stored = (
                pages[runs[0][0] : runs[0][0] + runs[0][1]]
                if len(runs) == 1
                else np.concatenate([pages[start : start + size] for start, size in runs])
            )
            if not np.array_equal(stored, expected):
                kind = find_placeholder(held)
                what = (
                    f"is a placeholder: {kind}" if kind else f"differs from the source on device {device}, in {whole}"
                )
                yield CacheProblem(item.slot.file, what, _BELIEVED)
                return


def _sample_slabs(slabs: list[Slab]) -> list[Slab]:
    """Return the first, the last and a middle slab of every part."""
    by_window: dict[int, list[Slab]] = {}
    for slab in slabs:
        by_window.setdefault(slab.window, []).append(slab)
    chosen: list[Slab] = []
    for own in by_window.values():
        picks = {round(k * (len(own) - 1) / (_SAMPLED_SLABS - 1)) for k in range(_SAMPLED_SLABS)}
        chosen += [own[k] for k in sorted(picks)]
    return chosen


def _explain_extra_files(names: list[str], plan: ConversionPlan) -> tuple[list[CacheProblem], list[str]]:
    """Return the problems and notes about files that the recipe does not have."""
    expected = {item.slot.file: item for item in plan.items}
    by_name = {item.name: item for item in plan.items}
    problems, notes = [], []
    for name in names:
        if name in expected or _OPTIONAL.fullmatch(name):
            continue
        found = _FILE_NAME.fullmatch(name)
        if found is not None and found["name"] in by_name:
            notes.append(f"{name} is of another mode, or stale: this mode uses {by_name[found['name']].slot.file}")
        else:
            problems.append(
                CacheProblem(name, "is not a file of this recipe", "nobody reads it; it may be of another build")
            )
    return problems, notes


def _check_markers(directory: Path, plan: ConversionPlan) -> Iterator[CacheProblem]:
    """Yield the problems of completion markers."""
    for path in sorted(directory.glob(".weights_complete.*")):
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
            listed = list(body["cache_files"])
        except (ValueError, KeyError, TypeError) as problem:
            yield CacheProblem(path.name, f"cannot be read: {problem}", "tt_transformers loads the checkpoint")
            continue
        missing = [name for name in listed if not (directory / name).exists()]
        if missing:
            more = f", and {len(missing) - 1} more" if missing[1:] else ""
            said = f"lists {missing[0]}, which does not exist{more}"
            yield CacheProblem(path.name, said, "tt_transformers loads the checkpoint")
        wanted = plan.beside.get(path.name)
        if wanted is not None and json.loads(wanted)["weights"] != body.get("weights"):
            yield CacheProblem(path.name, "lists other weights than the checkpoint has", _BELIEVED)


def _check_layers(names: Iterable[str]) -> Iterator[CacheProblem]:
    """Yield files that other layers, or other splits of the head, have and one has not."""
    groups: dict[str, set[int]] = {}
    total: set[int] = set()
    for name in names:
        if (found := re.match(r"layers\.([0-9]+)\.(.+?)_dtype_", name)) is not None:
            groups.setdefault(found[2], set()).add(int(found[1]))
            total.add(int(found[1]))
    for kind, layers in groups.items():
        for layer in sorted(set(range(max(total) + 1)) - layers):
            yield CacheProblem(f"layers.{layer}.{kind}", "is missing, while other layers have it", _CONVERTED)
    splits: dict[int, set[int]] = {}
    for name in names:
        if (found := re.match(r"output_lm_head_([0-9]+)_split_shard_([0-9]+)_", name)) is not None:
            splits.setdefault(int(found[1]), set()).add(int(found[2]))
    for count, present in splits.items():
        for k in sorted(set(range(count)) - present):
            yield CacheProblem(
                f"output_lm_head_{count}_split_shard_{k}", "is missing, while other splits exist", _CONVERTED
            )
