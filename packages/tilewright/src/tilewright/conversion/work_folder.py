# SPDX-License-Identifier: Apache-2.0
"""The work folder of a conversion, and the remains of an earlier conversion at the output.

The work folder is a hidden directory with locks, unfinished files, and a journal of finished tensors.

It is beside the result, on the same disk, so that a finished file is renamed in one step. It is removed when the
conversion is complete; as long as it exists, the result is not complete.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .._files import remove_stale_drafts
from .._json import parse_json
from ..errors import FileFormatError
from ..files import (
    IMAGE_SUFFIX,
    INDEX_SUFFIX,
    MANIFEST_NAME,
    METADATA_KEY,
    ConversionManifest,
    ManifestEntry,
    read_manifest,
    read_safetensors,
    resolve_inside,
)
from ..version import __version__
from .plan import PAYLOAD, ConversionItem, ConversionPlan, ItemRecord, final_path
from .source import Rounding, SourceHashes, hash_range, hash_tensor

try:
    import fcntl
except ModuleNotFoundError:  # on Windows
    HAS_FLOCK = False
else:
    HAS_FLOCK = True

NAME = ".tilewright"
_BUSY_MESSAGE = "another process is converting to this output; wait for it, or choose another output"


class WorkFolder:
    """The hidden folder of a conversion to `out`, a directory or a `single` file.

    >>> (
    ...     WorkFolder(Path("out"), single=False).path.as_posix(),
    ...     WorkFolder(Path("o.safetensors"), single=True).path.name,
    ... )
    ('out/.tilewright', '.o.safetensors.tilewright')
    """

    def __init__(self, out: Path, single: bool) -> None:
        self.out = out
        self.path = out.with_name(f".{out.name}{NAME}") if single else out / NAME
        self.drafts = self.path / "parts"

    @contextmanager
    def lock(self, part: tuple[int, int] | None = None) -> Iterator[None]:
        """Hold the lock of the conversion: exclusively, or shared with the other parts of the same conversion.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, WorkFolder(Path(folder), single=False).lock():
        ...     Path(folder, ".tilewright", "lock").exists()
        True
        """
        with self._lock("lock", shared=part is not None):
            if part is None:
                try:
                    yield
                finally:
                    self._remove_if_unused()
                return
            with self._lock("part-{}-of-{}.lock".format(*part), shared=False):
                yield

    def _remove_if_unused(self) -> None:
        """Remove the folder if no tensor is finished."""
        if not self.has_records:
            self.remove()
            with suppress(OSError):
                self.path.parent.rmdir()  # which succeeds only if it is empty

    @contextmanager
    def finish_lock(self) -> Iterator[None]:
        """Hold the lock for finishing the conversion, waiting for others that finish."""
        with self._lock("finish.lock", shared=False, wait=True):
            yield

    @contextmanager
    def _lock(self, name: str, shared: bool, wait: bool = False) -> Iterator[None]:
        path = self.path / name
        while True:
            handle = self._open_lock_file(path)
            try:
                _acquire_lock(handle, shared, wait, self.out)
                if _is_same_file(handle, path):  # otherwise the folder was removed meanwhile
                    yield
                    return
            finally:
                os.close(handle)  # also releases the lock

    def _open_lock_file(self, path: Path) -> int:
        while True:
            for folder in (self.path, self.drafts):
                if folder.is_symlink():  # it could point anywhere
                    raise FileExistsError(errno.EEXIST, "is a link; remove it, or choose another output", str(folder))
            self.drafts.mkdir(parents=True, exist_ok=True)
            try:
                return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
            except FileNotFoundError:
                continue  # another process finished and removed the folder

    @property
    def has_records(self) -> bool:
        """Whether a tensor is finished.

        >>> WorkFolder(Path("nowhere"), single=False).has_records
        False
        """
        return any(path.stat().st_size for path in self.path.glob("done*.jsonl"))

    def records(self) -> dict[str, Any]:
        """Return the records of all journals by key; an incomplete last line is ignored.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     WorkFolder(Path(folder), single=False).records()
        {}
        """
        result: dict[str, Any] = {}
        for path in sorted(self.path.glob("done*.jsonl")):
            for line in path.read_bytes().split(b"\n")[:-1]:
                try:
                    record = parse_json(line, "a line of the journal")
                    result[record["key"]] = record
                except (FileFormatError, KeyError, TypeError):
                    raise FileFormatError(
                        f"{path} is not a conversion journal; start over with force, or remove it"
                    ) from None
        return result

    def journal(self, part: tuple[int, int] | None) -> Journal:
        """Return the journal of this process, open for appending."""
        return Journal(self.path / ("done.jsonl" if part is None else "done-{}-of-{}.jsonl".format(*part)))

    def clear(self) -> None:
        """Remove journals and drafts; the locks stay."""
        for path in self.path.glob("done*.jsonl"):
            path.unlink(missing_ok=True)
        self.remove_drafts()

    def remove_drafts(self) -> None:
        """Remove drafts of processes that ended."""
        remove_stale_drafts(self.drafts)

    def remove(self) -> None:
        """Remove the folder: the conversion is complete."""
        shutil.rmtree(self.path, ignore_errors=True)


class Journal:
    """One line per finished tensor, never changed."""

    def __init__(self, path: Path) -> None:
        if path.exists():  # remove an incomplete last line
            data = path.read_bytes()
            complete = data.rfind(b"\n") + 1
            if complete < len(data):
                os.truncate(path, complete)
        self._file = path.open("ab", buffering=0)

    def add(self, item: ConversionItem, record: ItemRecord) -> None:
        """Add the record of a finished item, in one write."""
        data = {**record.to_json(), "file": item.slot.file, "beside": list(item.slot.beside)}
        self._file.write(json.dumps(data).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_same_file(handle: int, path: Path) -> bool:
    """Return whether an open file is the file at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _acquire_lock(handle: int, shared: bool, wait: bool, out: Path) -> None:
    """Acquire a lock, which the system releases when the process ends."""
    if not HAS_FLOCK:
        _acquire_lock_on_windows(handle, shared, wait, out)
        return
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, how if wait else how | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        raise BlockingIOError(problem.errno, _BUSY_MESSAGE, str(out)) from None


def _acquire_lock_on_windows(handle: int, shared: bool, wait: bool, out: Path) -> None:
    if shared or find_spec("msvcrt") is None:  # parts have their own locks; a system without both has one process
        return
    msvcrt = import_module("msvcrt")
    try:
        msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except OSError as problem:
        raise BlockingIOError(problem.errno, _BUSY_MESSAGE, str(out)) from None


class ExistingOutput:
    """The files at the output of a plan before it runs, and which of them can be reused."""

    def __init__(self, plan: ConversionPlan, folder: WorkFolder) -> None:
        self.plan, self.folder = plan, folder
        self._orphans: set[Any] = set()  # names of files; a damaged journal may hold anything

    @property
    def is_finished(self) -> bool:
        """Whether a finished conversion, or any file of that name, exists."""
        return self.plan.out.exists() if self.plan.is_single_file else (self.plan.out / MANIFEST_NAME).exists()

    def validate(self, allow_unfinished: bool, resume: bool, force: bool) -> None:
        """Raise if files exist that must not be replaced."""
        out = self.plan.out
        outputs = {final_path(out, item.slot).resolve() for item in self.plan.items}
        sources = {tensor.path for item in self.plan.items for tensor in item.source.tensors.values()}
        for source in {path.resolve() for path in sources} & outputs:
            raise FileExistsError(
                errno.EEXIST, "also a source, which would be replaced; choose another output", str(source)
            )
        if out.is_dir() if self.plan.is_single_file else out.exists() and not out.is_dir():
            problem = "a directory, but one file is to be written" if self.plan.is_single_file else "not a directory"
            raise FileExistsError(errno.EEXIST, f"{problem}; choose another output", str(out))
        if force:
            return
        problem = ""
        if self.is_finished:
            if self.plan.is_single_file and self._manifest() is None:
                problem = "exists and was not made by convert; choose another output, or use force"
            elif not resume:
                problem = "already finished; check it with resume, or replace it with force"
        elif self.folder.has_records:
            if not allow_unfinished:
                problem = "unfinished; continue with resume, or start over with force"
        elif not self.plan.is_single_file and not self.folder.path.exists() and out.is_dir() and any(out.iterdir()):
            # with a work folder, they may be files of the first tensor, not yet in a journal
            problem = "contains other files; choose another output, or write beside them with force"
        if problem:
            raise FileExistsError(errno.EEXIST, problem, str(out))

    def records(self) -> dict[str, ItemRecord]:
        """Return the records of all journals, by key."""
        records = {key: ItemRecord.from_json(data) for key, data in self.folder.records().items()}
        return {key: record for key, record in records.items() if record is not None}

    def load_records(
        self, force: bool, items: list[ConversionItem], part: tuple[int, int] | None
    ) -> dict[str, ItemRecord]:
        """Return the records of the items that are finished; unusable files are removed."""
        if force:
            self._remove_everything()
            return {}
        if self.is_finished:
            return self._rehash_finished()
        result = self.folder.records()
        if part is None:  # otherwise other parts may be running
            self.folder.remove_drafts()
            if self.plan.is_single_file and not self._has_payload():
                self.folder.clear()
                result = {}
        planned = {item.key for item in self.plan.items}
        self._add_orphans([record for key, record in result.items() if key not in planned])
        records = self.records()
        return {
            item.key: records[item.key]
            for item in items
            if item.key in records and is_still_valid(item, records[item.key], self.plan.out, self.folder)
        }

    def _has_payload(self) -> bool:
        """Return whether the unfinished single file exists and has the size of this plan's."""
        path = self.folder.drafts / PAYLOAD
        return path.exists() and path.stat().st_size == self.plan.items[-1].slot.size

    def _manifest(self) -> ConversionManifest | None:
        """Return the manifest of the existing output, None if it was not made by convert."""
        try:
            if not self.plan.is_single_file:
                return read_manifest(self.plan.out / MANIFEST_NAME)
            _, metadata = read_safetensors(self.plan.out)
            return ConversionManifest.from_bytes(metadata[METADATA_KEY]) if METADATA_KEY in metadata else None
        except (FileFormatError, FileNotFoundError):
            return None

    def _rehash_finished(self) -> dict[str, ItemRecord]:
        """Return the records of a finished conversion, after hashing its files and sources again."""
        manifest = self._manifest()
        entries = {} if manifest is None or manifest.to != self.plan.to else manifest.entries
        result: dict[str, ItemRecord] = {}
        source_hashes = SourceHashes()
        for item in self.plan.items:
            entry = entries.get(item.name)
            if entry is None or manifest is None or manifest.version != __version__:
                continue
            hashes = tuple([source.bytes.sha256 for source in entry.sources.values()])
            if item.recorded is None and len(hashes) != len(item.source.tensors):
                continue
            if entry != item.entry(hashes, entry.output.sha256, self.plan.data_start, entry.exceptional):
                continue
            current = _current_hashes(item, self.plan.out, source_hashes)
            if current is None or current[1] != entry.output.sha256:
                continue
            # the manifest of a copied file has the hashes of its original sources
            if item.recorded is not None or current[0] == hashes:
                time = final_path(self.plan.out, item.slot).stat().st_mtime_ns
                files = tuple([tensor.file_state for tensor in item.source.tensors.values()])
                exceptional = Rounding(0, **entry.exceptional) if entry.exceptional else None
                result[item.key] = ItemRecord(item.key, current[0], entry.output.sha256, files, time, exceptional)
        if len(result) == len(self.plan.items) == len(entries):
            return result
        if self.plan.is_single_file:  # slots may have moved: it is converted again, and replaced when complete
            return {}
        self._orphans |= output_names(manifest.entries.values() if manifest is not None else ())
        with self.folder.journal(None) as journal:
            for item in self.plan.items:
                if item.key in result:
                    journal.add(item, result[item.key])
        (self.plan.out / MANIFEST_NAME).unlink()
        return result

    def _remove_everything(self) -> None:
        """Remove the files of an earlier conversion; a single file stays until it is replaced."""
        manifest = self._manifest() if self.is_finished and not self.plan.is_single_file else None
        if manifest is not None:
            self._orphans |= output_names(manifest.entries.values())
        with suppress(FileFormatError):  # of a damaged journal
            self._add_orphans(self.folder.records().values())
        if not self.plan.is_single_file:
            (self.plan.out / MANIFEST_NAME).unlink(missing_ok=True)
        self.folder.clear()
        (self.folder.drafts / PAYLOAD).unlink(missing_ok=True)

    def _add_orphans(self, records: Iterable[dict[str, Any]]) -> None:
        for record in records:
            self._orphans |= {record.get("file"), *(record.get("beside") or ())}

    def remove_orphans(self) -> None:
        """Remove files of earlier conversions that are not part of this one."""
        current = {name for item in self.plan.items for name in (item.slot.file, *item.slot.beside)}
        for name in self._orphans:
            if isinstance(name, str) and name not in current:
                with suppress(FileFormatError, OSError):
                    resolve_inside(self.plan.out, name).unlink()


def output_names(entries: Iterable[ManifestEntry]) -> set[str]:
    """Return the names of the output files of entries, with the indices of bank images.

    >>> output_names([])
    set()
    """
    result = {entry.output.file for entry in entries}
    images = [name for name in result if name.endswith(IMAGE_SUFFIX)]
    return result | {name.removesuffix(IMAGE_SUFFIX) + INDEX_SUFFIX for name in images}


def _current_hashes(item: ConversionItem, out: Path, source_hashes: SourceHashes) -> tuple[tuple[str, ...], str] | None:
    """Return the current hashes of an item's sources and output, None if there is no output."""
    path, slot = final_path(out, item.slot), item.slot
    try:
        if path.stat().st_size < slot.size or not _has_side_files(item, path):
            return None
        output = hash_range(path, slot.start if slot.shared else 0, slot.size)
    except FileNotFoundError:
        return None
    return tuple([source_hashes.get(tensor) for tensor in item.source.tensors.values()]), output


def _has_side_files(item: ConversionItem, path: Path) -> bool:
    try:
        return all(path.with_name(name).read_bytes() == content for name, content in item.slot.beside.items())
    except FileNotFoundError:
        return False


def is_still_valid(item: ConversionItem, done: ItemRecord, out: Path, folder: WorkFolder) -> bool:
    """Return whether neither the source nor the output of a finished item has changed."""
    slot = item.slot
    for tensor, file, digest in zip(item.source.tensors.values(), done.source_files, done.source_hashes, strict=True):
        is_same_file = tensor.file_state == file
        if not is_same_file and hash_tensor(tensor) != digest:
            return False
    if slot.shared:
        return is_in_payload(item, done, folder)
    path = final_path(out, slot)
    try:
        result = path.stat()
    except FileNotFoundError:
        return False
    if result.st_size != slot.size or not _has_side_files(item, path):
        return False
    return result.st_mtime_ns == done.output_time or hash_range(path, 0, slot.size) == done.output_hash


def is_in_payload(item: ConversionItem, done: ItemRecord, folder: WorkFolder) -> bool:
    """Return whether the bytes of an item are in the unfinished single file."""
    try:
        return hash_range(folder.drafts / PAYLOAD, item.slot.start, item.slot.size) == done.output_hash
    except (FileNotFoundError, FileFormatError):  # missing or too short
        return False
