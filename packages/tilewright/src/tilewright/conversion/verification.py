# SPDX-License-Identifier: Apache-2.0
"""`verify`: converted files checked against their manifest, and against their source, value by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import as_path
from ..errors import FileFormatError, LayoutError, OutOfMemory, TilewrightError
from ..files import (
    MANIFEST_NAME,
    MARKER_PREFIX,
    METADATA_KEY,
    ConversionManifest,
    FilePath,
    ManifestEntry,
    StoredTensor,
    find_caches_below,
    open_converted_tensor,
    read_manifest,
    read_safetensors,
    resolve_inside,
)
from ..formats import scalar_format_of
from ..memory import DeviceLike, TensorSpec, format_devices, placement_violations
from .plan import DEFAULT_MEMORY, SlabCutter, Sources, open_sources
from .rules import ConversionTarget, evaluate
from .run import MIN_SLAB_BYTES, plan_memory
from .source import (
    AssembledSource,
    Rounding,
    count_exceptional,
    describe_difference,
    hash_range,
    hash_tensor,
    name_targets,
    note_exceptional,
    stored_assembly,
)
from .text_tower import name_language_model
from .work_folder import WorkFolder, output_names


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for one tensor: `problem` is None if it is correct.

    `largest_error` is the largest difference between a value and its source, and `largest_value` the largest magnitude
    in the source; both are None without a source. `exceptional` counts values that are NaN, infinite or out of range:
    of the source, or without it of the file and as its manifest has them.

    >>> Verdict("x", 1088, None).is_good
    True
    """

    name: str
    nbytes: int
    problem: str | None
    largest_error: float | None = None
    largest_value: float | None = None
    exceptional: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def is_good(self) -> bool:
        """Whether there is no problem.

        >>> Verdict("x", 1088, "its bytes have changed").is_good
        False
        """
        return self.problem is None


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result for a conversion: a verdict per tensor, and notes.

    >>> bool(VerifyReport("out", "npy", True, (Verdict("x", 1088, None),)))
    True
    """

    out: str
    to: str
    against_source: bool
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def problems(self) -> list[Verdict]:
        """The verdicts with a problem.

        >>> VerifyReport("out", "npy", True, (Verdict("x", 1088, None),)).problems
        []
        """
        return [verdict for verdict in self.verdicts if not verdict.is_good]

    def __bool__(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data.

        >>> VerifyReport("out", "npy", True, ()).to_json()["good"]
        True
        """
        return {"good": bool(self), **asdict(self)}


def verify(
    out: FilePath,
    source: Sources | None = None,
    *,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    follow_symlinks: bool = False,
    device: DeviceLike | None = None,
) -> VerifyReport:
    """Verify converted files against their manifest, and against their source if it is given; return a report.

    Args:
        out: the output of `convert`. Every file is hashed and decoded.
        source: paths as for `convert`. Their bytes are hashed too, every tensor is converted again and compared byte
            for byte, and the error of the values is measured.
        memory: the most bytes of memory to use.
        jobs: the number of threads.
        progress: called with the number of verified tensors, and the number of all tensors.
        follow_symlinks: allow links that point outside of a directory.
        device: one device of a mesh, by coordinate or number; only its part is decoded and compared. Files are
            hashed as a whole.

    >>> import tempfile, tilewright as tw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/m.npz", w=np.ones((60, 90), np.float32))
    ...     _ = tw.convert(f"{folder}/m.npz", f"{folder}/out", dtype="bfloat8_b")
    ...     bool(verify(f"{folder}/out", f"{folder}/m.npz"))
    True
    """
    path = as_path(out)
    manifest, open_output, notes = _open_outputs(path, follow_symlinks)
    sources = None if source is None else open_sources(source, follow_symlinks)
    if sources is not None and manifest.recipe:
        sources = name_language_model(sources)
    if device is not None:
        _validate_device(device, manifest, path)
    threads, slab, _ = plan_memory(memory, jobs)
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(threads) as pool:
        tasks = [
            pool.submit(_verify_tensor, entry, open_output, sources, slab, device)
            for entry in manifest.entries.values()
        ]
        try:
            for task in tasks:
                verdicts.append(task.result())
                if progress is not None:
                    progress(len(verdicts), len(tasks))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    if sources is not None:
        used = {key for entry in manifest.entries.values() for key in entry.sources}
        left_out = sorted(set(sources) - used)
        notes += [f"the source also has {name}" for name in left_out[:5]]
        notes += [f"and {len(left_out) - 5} more tensors"] if len(left_out) > 5 else []
    pairs = [(verdict, manifest.entries[verdict.name]) for verdict in verdicts]
    notes += note_exceptional(
        [(own.name, own.exceptional, name_targets(*entry.through, entry.spec.dtype)) for own, entry in pairs]
    )
    return VerifyReport(str(path), manifest.to, sources is not None, tuple(verdicts), tuple(notes))


OutputOpener = Callable[[ManifestEntry], tuple[StoredTensor, Path, int]]
"""Opens a converted tensor: the tensor, its file, and the offset that its byte range counts from."""


def _open_outputs(out: Path, follow_symlinks: bool) -> tuple[ConversionManifest, OutputOpener, list[str]]:
    """Return the manifest, the function that opens a tensor that it lists, and notes about other files."""
    if not out.exists():
        out.stat()  # raises the error of a missing file
    if not out.is_dir():
        return (*_open_single_file(out), [])
    path = out / MANIFEST_NAME
    if not path.exists():
        if WorkFolder(out, single=False).path.exists():
            raise FileFormatError(f"{out} is unfinished; finish it with convert --resume")
        below = [folder for folder in find_caches_below(out) if (folder / MANIFEST_NAME).exists()]
        if len(below) == 1:
            manifest, opener, notes = _open_outputs(below[0], follow_symlinks)
            return manifest, opener, [f"checked {below[0]}, the only conversion below {out}", *notes]
        raise FileFormatError(
            f"{out} has no {MANIFEST_NAME}, which convert and prepare write; check a weight cache of ttnn with prepare"
            " --check"
        )
    try:
        manifest = read_manifest(path)
    except FileFormatError as problem:
        raise FileFormatError(f"{path}: {problem}") from None
    files = output_names(manifest.entries.values())
    present = {file.name for file in out.iterdir()}
    others = sorted([name for name in present - files - {MANIFEST_NAME} if not name.startswith(MARKER_PREFIX)])
    notes = [f"{name} is not in the manifest" for name in others[:5]]
    notes += [f"and {len(others) - 5} more files"] if len(others) > 5 else []

    def open_output(entry: ManifestEntry) -> tuple[StoredTensor, Path, int]:
        path = resolve_inside(out, entry.output.file, follow_symlinks)
        return open_converted_tensor(path, entry.name, entry, manifest.to), path, 0

    return manifest, open_output, notes


def _open_single_file(out: Path) -> tuple[ConversionManifest, OutputOpener]:
    try:
        tensors, metadata = read_safetensors(out)
        if METADATA_KEY not in metadata:
            raise FileFormatError("no manifest: the file was not made by convert")
        manifest = ConversionManifest.from_bytes(metadata[METADATA_KEY])
    except FileFormatError as problem:
        raise FileFormatError(f"{out}: {problem}") from None
    begin = min([tensor.byte_range[0] for tensor in tensors], default=0)
    by_name = {tensor.name: tensor for tensor in tensors}
    missing = sorted(set(manifest.entries) - set(by_name))
    if missing:
        raise FileFormatError(f"{out}: the manifest lists {missing[0]!r}, which is not in the file")
    return manifest, lambda entry: (by_name[entry.name], out, begin)


def _validate_device(device: DeviceLike, manifest: ConversionManifest, path: Path) -> None:
    """Raise unless the meshes of a conversion have a device, and there are any."""
    meshes = {entry.mesh for entry in manifest.entries.values() if entry.mesh is not None}
    shared = [mesh for mesh in meshes if prod(mesh.shape) > 1]
    if not shared:
        raise LayoutError(f"{path} has no tensor on a mesh of devices; leave out device {device}")
    for mesh in shared:
        mesh.window_of(device)


def _verify_tensor(
    entry: ManifestEntry,
    open_output: OutputOpener,
    sources: dict[str, StoredTensor] | None,
    slab: int,
    device: DeviceLike | None = None,
) -> Verdict:
    size = entry.output.size
    try:
        tensor, path, begin = open_output(entry)
        if tensor.host != entry.spec and (tensor.host is None or tensor.host.nbytes != entry.spec.nbytes):
            return Verdict(entry.name, size, f"the file holds {tensor.host}, but the manifest says {entry.spec}")
        for broken in placement_violations(entry.spec):  # an earlier release may have written it
            return Verdict(entry.name, size, f"invalid placement: {broken}; convert it again")
        result = hash_range(path, begin + entry.output.start, begin + entry.output.end)
        if result != entry.output.sha256:
            changed = f"its bytes have changed: expected SHA-256 {entry.output.sha256}, got {result}"
            if sources is not None:  # what has changed?
                located = _compare_with_source(entry, tensor, sources, slab, device).problem
                changed = changed if located is None else f"{changed}; {located}"
            return Verdict(entry.name, size, changed)
        if path.stat().st_size < begin + entry.output.end:
            return Verdict(entry.name, size, "its file is too short")
        if sources is None:
            decoded = _decode_all(tensor if device is None or tensor.mesh is None else tensor.on_device(device), slab)
            return Verdict(entry.name, size, None, exceptional=entry.exceptional or decoded.exceptional)
        return _compare_with_source(entry, tensor, sources, slab, device)
    except FileNotFoundError as problem:
        return Verdict(entry.name, size, f"{problem.filename or entry.output.file} is missing")
    except OutOfMemory:  # not a fault of the tensor
        raise
    except TilewrightError as problem:
        return Verdict(entry.name, size, str(problem))


def _decode_all(tensor: StoredTensor, slab: int) -> Rounding:
    """Read all values, slab by slab, and count exceptional ones; raise if they cannot be decoded."""
    total = Rounding(0)
    whole = TensorSpec(tensor.shape, tensor.pages.spec.dtype, tensor.pages.spec.page_layout, tensor.pages.spec.tile)
    for piece in SlabCutter(AssembledSource.of(tensor), ConversionTarget(whole), slab):
        total += count_exceptional(tensor.read(piece.box))
    return total


def _compare_with_source(
    entry: ManifestEntry,
    converted: StoredTensor,
    sources: dict[str, StoredTensor],
    slab: int,
    device: DeviceLike | None = None,
) -> Verdict:
    """Convert a tensor again from its sources, compare it, and return the verdict."""
    name, size = entry.name, entry.output.size
    for key in entry.sources:
        if key not in sources:
            return Verdict(name, size, f"the source has no tensor {'of that name' if key == name else repr(key)}")
    try:
        source = rebuild_source(entry, sources)
    except TilewrightError as problem:
        return Verdict(name, size, str(problem))
    for key, recorded in entry.sources.items():
        result = hash_tensor(sources[key])
        if result != recorded.bytes.sha256:
            changed = "the source" if key == name else f"source {key!r}"
            return Verdict(name, size, f"{changed} has changed: expected SHA-256 {recorded.bytes.sha256}, got {result}")
    target = ConversionTarget(entry.spec, entry.pad_value, mesh=entry.mesh)
    # in memory: the slab, the expected pages, the decoded values, and both as float64
    slabs = SlabCutter(source, target, max(slab // 8, MIN_SLAB_BYTES), converted.image is not None)
    selected = None if device is None or converted.mesh is None else converted.mesh.window_of(device)
    error, largest, counts = 0.0, 0.0, Rounding(0)
    for piece in slabs:
        if selected is not None and slabs.windows[piece.window] != selected:
            continue
        whole, spec, expected, exceptional = slabs.convert(piece)
        counts += exceptional
        stored = converted.read_pages(piece.box, converted.parts[piece.window])
        if not np.array_equal(expected, stored):
            at = int(np.flatnonzero(expected != stored)[0])
            devices = converted.device_parts[piece.window].devices if converted.device_parts else ()
            holders = f" on device{'s' if len(devices) > 1 else ''} {format_devices(devices)}" if devices else ""
            first_byte = f"first at byte {at} of {whole}{holders}"
            difference = describe_difference(converted.decode(expected, spec), converted.decode(stored, spec), whole)
            return Verdict(name, size, f"converting the source gives different bytes, {first_byte}: {difference}")
        away, most = _largest_difference(source.read(whole), converted.decode(stored, spec))
        error, largest = max(error, away), max(largest, most)
    return Verdict(name, size, None, error, largest, counts.exceptional)


def rebuild_source(entry: ManifestEntry, sources: Mapping[str, StoredTensor]) -> AssembledSource:
    """Return the value that a converted tensor was made from, by its manifest entry."""
    tensors = {key: sources[key] for key in entry.sources}
    through = tuple([scalar_format_of(element) for element in entry.through])
    if entry.value is not None:
        value = evaluate(entry.value, {"tensor": lambda key: stored_assembly(sources[key])})
    else:
        value = stored_assembly(tensors[entry.name])
        if entry.order is not None:
            if len(entry.order) != len(value.shape):
                raise LayoutError(
                    f"the source has {len(value.shape)} dimensions, but the manifest has the order {entry.order}"
                )
            value = value.transpose(entry.order)
    shape = entry.spec.shape.logical if entry.mesh is None else entry.mesh.global_shape
    if value.shape != shape:
        raise LayoutError(f"the source has shape {value.shape}, but the manifest says {list(shape)}")
    return AssembledSource(value, tensors, through)


def _largest_difference(values: NDArray[Any], decoded: NDArray[Any]) -> tuple[float, float]:
    """Return the largest difference between values, and the largest magnitude; non-finite values are ignored."""
    if not values.size:
        return 0.0, 0.0
    a, b = values.astype(np.float64), decoded.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    away = np.abs(np.subtract(a, b, out=np.zeros_like(a), where=finite))
    return float(away.max()), float(np.abs(np.where(np.isfinite(a), a, 0)).max())
