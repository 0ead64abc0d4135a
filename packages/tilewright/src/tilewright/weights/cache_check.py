# SPDX-License-Identifier: Apache-2.0
"""`check_cache`: an existing weight cache, also one of ttnn's own, compared with what its recipe says, file by file.

tt_transformers looks up a name and believes what it finds. So every file is checked by itself, against its recipe where
the checkpoint or a manifest says which model it is, and against the other files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..conversion.conversion_run import DEFAULT_MEMORY, plan_memory
from ..conversion.exactness import name_targets, note_exceptional
from ..conversion.output_file import hash_range
from ..conversion.work_folder import WorkFolder
from ..errors import FileFormatError
from ..files import StoredTensor
from ..files.conversion_manifest import MARKER_PREFIX
from ..files.source_file import FilePath
from ..files.tensorbin import Tensorbin
from .cache_content import DIFFERS, ContentCheck, find_placeholder
from .cache_folder import CacheFolder
from .cache_preparation import build_item
from .cache_relations import CONVERTED, CacheProblem, FileName, check_relations
from .recipe import DEFAULT_RECIPE, Recipe
from .weight_cache import CacheFile, CacheOptions, WeightCache, marker_name, open_checkpoint

if TYPE_CHECKING:
    from typing_extensions import Unpack

BELIEVED = "tt_transformers loads it without a word, and the results are wrong"
OVERWRITTEN = "ttnn fails inside and overwrites the file with what its caller holds, perhaps a placeholder"
FILLED = "tt_transformers starts without the checkpoint, and fills what is missing with placeholders"
LOADED = "tt_transformers ignores it and loads the checkpoint"
PLACED = "ttnn loads it with the placement of the file, not the one that the model asks for"


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
    """Check a weight cache, and return a report that says what each problem would do on the card.

    Args:
        cache: the directory with the files, or one above it that holds a single cache.
        source: the checkpoint. Without it, files are compared with the manifest, if there is one, and with each other.
        machine: the machine that the cache is for, by default the one that its manifest or its path names.
        full: compare all values with the source, not a sample of each file.
        memory: the most bytes of memory to use.
        jobs: the number of threads.
        progress: called with the number of checked files, and the number of all files.
        options: those of `plan_cache`, where they cannot be seen from the cache.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright.weights import prepare
    >>> from tilewright.files import write_sample_llama
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_llama(f"{folder}/Llama-3.2-1B-Instruct")
    ...     out = prepare(f"{folder}/Llama-3.2-1B-Instruct", f"{folder}/cache", "N300").out
    ...     (Path(out) / "norm.weight_dtype_BFLOAT16_layout_ROW_MAJOR.tensorbin").unlink()
    ...     report = check_cache(f"{folder}/cache", f"{folder}/Llama-3.2-1B-Instruct")
    >>> report.files, [(each.file[:11], each.problem) for each in report.problems][0]
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
        for done, found in enumerate(pool.map(check, names), 1):
            problems += found
            if progress is not None:
                progress(done, len(names))
    known = {each.file for each in problems}
    other = sum([each.problem.startswith(DIFFERS) for each in problems])
    rules = Recipe.load(options.get("recipe", DEFAULT_RECIPE)) if expected is None else expected.recipe
    others, notes = check_relations(folder, rules, list(files.values()) if described else None, known)
    problems += [*others, *_check_markers(folder, expected)]
    if 1 < len(names) < 2 * other:
        notes.append(
            f"{other} of {len(names)} files differ from the checkpoint; is {source} the model that the cache was made"
            " from?"
        )
    if WorkFolder(folder.path, single=False).has_records:
        notes.append("a run of prepare is not finished; continue it with --resume")
    notes += _describe_values(folder, list(files.values()), content)
    if expected is not None:
        notes += _describe_revision(folder, expected)
        if source is None:
            problems += _check_tied_head(folder, expected, content, known)
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
    folder: CacheFolder,
    name: str,
    file: CacheFile | None,
    tensors: Mapping[str, StoredTensor],
    content: ContentCheck,
) -> Iterator[CacheProblem]:
    """Yield the problems of one file; `file` is what the recipe says of it."""
    try:
        held = folder.open(name)
    except FileNotFoundError:
        yield CacheProblem(name, f"is missing{_describe_variant(folder, name)}", CONVERTED)
        return
    except (FileFormatError, OSError) as problem:
        reason = str(problem).removeprefix(f"{folder.path / name}: ")
        yield CacheProblem(name, f"cannot be read: {reason}", OVERWRITTEN)
        return
    parsed = FileName.parse(name)
    found = (held.spec.dtype.name.upper(), held.spec.page_layout.name)
    if parsed is not None and found != (parsed.dtype, parsed.layout):
        said = f"its name says {parsed.dtype} in {parsed.layout}, but it holds {found[0]} in {found[1]}"
        yield CacheProblem(name, said, f"ttnn loads it as {found[0]}")
        return
    if parsed is not None and parsed.is_optional:
        return
    if file is not None and (problems := list(_compare_headers(file, held))):
        yield from problems
        return
    different = _compare_bytes(folder, name, file, held, tensors, content)
    is_unknown = different is None and not tensors
    kind = find_placeholder(held, parsed) if different or is_unknown else None
    if kind is not None:
        yield CacheProblem(name, f"is a placeholder: {kind}", BELIEVED)
    elif different:
        yield CacheProblem(name, different, BELIEVED)


def _describe_variant(folder: CacheFolder, name: str) -> str:
    """Return a remark about a file of the same weight in another number format."""
    wanted = FileName.parse(name)
    for other in folder.names:
        parsed = FileName.parse(other)
        if wanted is not None and parsed is not None and parsed.name == wanted.name:
            return f"; {other} is of another mode"
    return ""


def _compare_bytes(
    folder: CacheFolder,
    name: str,
    file: CacheFile | None,
    held: Tensorbin,
    tensors: Mapping[str, StoredTensor],
    content: ContentCheck,
) -> str | None:
    """Return how the bytes of a file differ from the checkpoint, or from the manifest.

    The text is empty if they do not differ, and None if there is nothing to compare them with.
    """
    if file is not None and tensors:
        return content.compare(build_item(file, tensors), held) or ""
    manifest = folder.manifest
    entry = None if file is None or manifest is None else manifest.entries.get(file.name)
    if entry is None or entry.output.file != name:
        return None
    same = hash_range(folder.path / name, 0, entry.output.end) == entry.output.sha256
    return "" if same else "has changed since it was made: its SHA-256 is not that of the manifest"


def _compare_headers(file: CacheFile, held: Tensorbin) -> Iterator[CacheProblem]:
    spec, mesh, name = file.spec, file.mesh, file.file
    if held.mesh_shape != mesh.shape:
        effect = (
            "every device gets all of it, in the wrong shape"
            if len(held.shards) < len(mesh.topology.coordinates)
            else OVERWRITTEN
        )
        yield CacheProblem(name, f"is for a mesh of {list(held.mesh_shape)}, expected {list(mesh.shape)}", effect)
    elif held.topology != mesh.topology:
        found, wanted = (
            f"{list(each.distribution)} cutting {list(each.placements)}" for each in (held.topology, mesh.topology)
        )
        order = " in another order of devices" if found == wanted else ""
        yield CacheProblem(name, f"is distributed as {found}{order}, expected {wanted}", BELIEVED)
    if held.spec.shape.logical != spec.shape.logical:
        shapes = [list(each.shape.logical) for each in (held.spec, spec)]
        yield CacheProblem(name, f"has shape {shapes[0]} per device, expected {shapes[1]}", BELIEVED)
    elif held.spec.memory != spec.memory:
        yield CacheProblem(name, f"is {held.spec.memory}, expected {spec.memory}", PLACED)
    elif held.spec != spec:
        yield CacheProblem(name, f"is {held.spec}, expected {spec}", BELIEVED)


def _check_tied_head(
    folder: CacheFolder, expected: WeightCache, content: ContentCheck, known: set[str]
) -> Iterator[CacheProblem]:
    """Yield the files that are not what another file gives, which holds the same tensor: the head of a tied model."""
    checked = {file.file for file in expected.files if file.file in folder.names} - known
    for name, whole in expected.whole_tensors().items():
        tied = [file for file in expected.files if file.value.sources == [name] and file is not whole]
        for file in tied if whole.file in checked else ():
            item = build_item(file, {name: folder.open_tensor(whole, name)})
            if file.file in checked and content.compare(item, folder.open(file.file)) is not None:
                yield CacheProblem(file.file, f"is not {whole.name}, to which the model ties it", BELIEVED)


def _check_markers(folder: CacheFolder, expected: WeightCache | None) -> Iterator[CacheProblem]:
    """Yield the problems of completion markers; `expected` is None if the model is not known."""
    wanted = {} if expected is None else {name: json.loads(body) for name, body in expected.marker().items()}
    known: dict[str, Any] = next(iter(wanted.values()), {})  # of any batch size or mode
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
            yield CacheProblem(path.name, f"lists {_list_names(missing)}, which does not exist", LOADED)
        for key in ("model_name", "n_layers", "mesh_shape"):
            if key in known and body.get(key) != known[key]:
                yield CacheProblem(path.name, f"says {key} {body.get(key)!r}, expected {known[key]!r}", LOADED)
        if known and body.get("weights") != known["weights"]:
            yield CacheProblem(path.name, "lists other weights than the checkpoint has", LOADED)
        if path.name in wanted and (absent := sorted({*known["cache_files"]} - listed)):
            yield CacheProblem(path.name, f"does not list {_list_names(absent)}", FILLED)


def _list_names(names: list[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if names[1:] else "")


def _describe_values(folder: CacheFolder, files: list[CacheFile], content: ContentCheck) -> list[str]:
    """Return notes about values that are NaN, infinite or out of range, in the checkpoint or as the manifest says."""
    if content.exceptional:
        counts = [(file.name, seen.exceptional) for file in files if (seen := content.exceptional.get(file.name))]
        where = "" if content.full else ", in the sample that was compared"
    else:
        entries = {} if folder.manifest is None else folder.manifest.entries
        counts, where = [(name, dict(entry.exceptional)) for name, entry in entries.items()], ", as the manifest says"
    formats = {file.name: name_targets(*file.through, file.spec.dtype) for file in files}
    return [note + where for note in note_exceptional([(name, each, formats.get(name)) for name, each in counts])]


def _describe_revision(folder: CacheFolder, expected: WeightCache) -> list[str]:
    made, own = (folder.record or {}).get("revision"), expected.recipe.revision
    if made is None or made == own:
        return []
    return [f"it was made with revision {made} of its recipe, and is checked with {own}"]


def _describe_mesh(expected: WeightCache) -> list[str]:
    usual = expected.recipe.devices[expected.machine.name].mesh
    if expected.machine.mesh == usual:
        return []
    return [f"the files are for a mesh of {list(expected.machine.mesh)}, and {expected.machine.name} is {list(usual)}"]
