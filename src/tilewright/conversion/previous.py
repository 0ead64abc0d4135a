# SPDX-License-Identifier: Apache-2.0
"""What an earlier conversion left at the output: nothing, something unfinished, something finished, or other files."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import FileFormatError
from ..files.bank_image import IMAGE_SUFFIX, INDEX_SUFFIX
from ..files.conversion_manifest import MANIFEST_NAME, ConversionManifest, ManifestEntry, read_manifest
from ..files.file_names import resolve_inside
from ..files.safetensors import METADATA_KEY, read_safetensors
from .items import Done, Item, final_path
from .output_file import hash_range
from .plan import ConversionPlan
from .workplace import NAME, PAYLOAD, Workplace


def _holds_files(folder: Path) -> bool:
    return folder.is_dir() and any(each.name != NAME for each in folder.iterdir())


class Previous:
    """What is at the output of a plan before it runs, and what of that can be kept."""

    def __init__(self, plan: ConversionPlan, place: Workplace) -> None:
        self.plan, self.place = plan, place
        self._orphans: set[Any] = set()  # names of files, if the journal is sound

    @property
    def is_finished(self) -> bool:
        """Return whether a finished conversion, or a file of that name, is there."""
        return self.plan.out.exists() if self.plan.single else (self.plan.out / MANIFEST_NAME).exists()

    def check(self, unfinished_is_fine: bool, resume: bool, force: bool) -> None:
        """Raise if something is there that must not be touched."""
        out = self.plan.out
        made = {final_path(out, item.slot).resolve() for item in self.plan.items}
        for source in {item.source.path.resolve() for item in self.plan.items} & made:
            raise FileExistsError(
                errno.EEXIST, "it is a source, and would be replaced; choose another output", str(source)
            )
        if out.is_dir() if self.plan.single else out.exists() and not out.is_dir():
            what = "a directory, and one file is to be made" if self.plan.single else "no directory"
            raise FileExistsError(errno.EEXIST, f"it is {what}; choose another output", str(out))
        if force:
            return
        if self.is_finished:
            if self.plan.single and self._manifest() is None:
                said = "a file of that name is there, which no conversion made; choose another output, or use force"
                raise FileExistsError(errno.EEXIST, said, str(out))
            if not resume:
                said = "it is finished; check it with resume, or replace it with force"
                raise FileExistsError(errno.EEXIST, said, str(out))
        elif self.place.is_used:
            if not unfinished_is_fine:
                said = "it is unfinished; go on with resume, or start again with force"
                raise FileExistsError(errno.EEXIST, said, str(out))
        elif not self.plan.single and not self.place.folder.exists() and _holds_files(out):
            # where there is a workplace, they may be files of its first tensor, not yet in a journal
            said = "other files are there; choose another output, or write beside them with force"
            raise FileExistsError(errno.EEXIST, said, str(out))

    def records(self) -> dict[str, Done]:
        """Return the records of all journals, by key."""
        found = {key: Done.from_json(record) for key, record in self.place.records().items()}
        return {key: record for key, record in found.items() if record is not None}

    def taken_over(self, force: bool, items: list[Item], part: tuple[int, int] | None) -> dict[str, Done]:
        """Return the records of the items that need not be done again; what is in the way is removed."""
        if force:
            self._remove_everything()
            return {}
        if self.is_finished:
            return self._checked_again()
        found = self.place.records()
        if part is None:  # else the other parts may be at work
            self.place.clear_parts()
            if self.plan.single and not self._has_payload():
                self.place.clear()
                found = {}
        planned = {item.key for item in self.plan.items}
        for key, record in found.items():
            if key not in planned:
                self._orphans |= {record.get("file"), *(record.get("beside") or ())}
        records = self.records()
        mine = {item.key: records[item.key] for item in items if item.key in records}
        return {
            item.key: mine[item.key]
            for item in items
            if item.key in mine and is_kept(item, mine[item.key], self.plan.out, self.place)
        }

    def _has_payload(self) -> bool:
        """Return whether the unfinished single file is there and is that of this plan, by its size."""
        path = self.place.parts / PAYLOAD
        return path.exists() and path.stat().st_size == self.plan.items[-1].slot.size

    # Finished conversions.

    def _manifest(self) -> ConversionManifest | None:
        """Return the manifest of what is there, None if it is not one of ours."""
        try:
            if not self.plan.single:
                return read_manifest(self.plan.out / MANIFEST_NAME)
            _, metadata = read_safetensors(self.plan.out)
            return ConversionManifest.from_bytes(metadata[METADATA_KEY]) if METADATA_KEY in metadata else None
        except (FileFormatError, FileNotFoundError):
            return None

    def _checked_again(self) -> dict[str, Done]:
        """Return records of a finished conversion, after its files and their sources were hashed again."""
        manifest = self._manifest()
        entries = {} if manifest is None or manifest.to != self.plan.to else manifest.entries
        begin = self.plan.items[0].slot.start if self.plan.single and self.plan.items else 0
        found: dict[str, Done] = {}
        for item in self.plan.items:
            entry = entries.get(item.name)
            if entry is None or manifest is None or manifest.version != item.version:
                continue
            if entry != item.entry(entry.source.sha256, entry.output.sha256, begin):
                continue
            if _hashes(item, self.plan.out) == (entry.source.sha256, entry.output.sha256):
                time = final_path(self.plan.out, item.slot).stat().st_mtime_ns
                file = item.source.file
                found[item.key] = Done(item.key, entry.source.sha256, entry.output.sha256, file.time, file.size, time)
        if len(found) == len(self.plan.items) == len(entries):
            return found
        if self.plan.single:  # its places may have moved: it is made anew, and replaced when that is complete
            return {}
        self._orphans |= files_of(manifest.entries.values() if manifest is not None else ())
        with self.place.journal(None) as journal:
            for item in self.plan.items:
                if item.key in found:
                    journal.add({**found[item.key].to_json(), "file": item.slot.file, "beside": list(item.slot.beside)})
        (self.plan.out / MANIFEST_NAME).unlink()
        return found

    # Making room.

    def _remove_everything(self) -> None:
        """Remove what an earlier conversion made; a single file stays until another takes its place."""
        manifest = self._manifest() if self.is_finished and not self.plan.single else None
        if manifest is not None:
            self._orphans |= files_of(manifest.entries.values())
        for record in self.place.records().values() if not self._is_broken() else ():
            self._orphans |= {record.get("file"), *(record.get("beside") or ())}
        if not self.plan.single:
            (self.plan.out / MANIFEST_NAME).unlink(missing_ok=True)
        self.place.clear()
        (self.place.parts / PAYLOAD).unlink(missing_ok=True)

    def _is_broken(self) -> bool:
        try:
            self.place.records()
        except FileFormatError:
            return True
        return False

    def remove_orphans(self) -> None:
        """Remove files of earlier conversions that this one does not have."""
        ours = {item.slot.file for item in self.plan.items} | {n for item in self.plan.items for n in item.slot.beside}
        for name in self._orphans:
            if isinstance(name, str) and name not in ours:
                with suppress(FileFormatError, OSError):
                    resolve_inside(self.plan.out, name).unlink()


def files_of(entries: Iterable[ManifestEntry]) -> set[str]:
    """Return the names of the files of entries, and of those that belong to them.

    >>> files_of([])
    set()
    """
    found = {entry.output.file for entry in entries}
    images = [name for name in found if name.endswith(IMAGE_SUFFIX)]
    return found | {name.removesuffix(IMAGE_SUFFIX) + INDEX_SUFFIX for name in images}


def _hashes(item: Item, out: Path) -> tuple[str, str] | None:
    """Return the hashes of the source and the output of an item as they are now, None if there is no output."""
    path, slot = final_path(out, item.slot), item.slot
    try:
        if path.stat().st_size < slot.size or not _beside_is_there(item, path):
            return None
        output = hash_range(path, slot.start if slot.shared else 0, slot.size)
    except FileNotFoundError:
        return None
    return hash_range(item.source.path, *item.source.byte_range, item.source.file), output


def _beside_is_there(item: Item, path: Path) -> bool:
    for name, content in item.slot.beside.items():
        try:
            if path.with_name(name).read_bytes() != content:
                return False
        except FileNotFoundError:
            return False
    return True


def is_kept(item: Item, done: Done, out: Path, place: Workplace) -> bool:
    """Return whether what was done for an item still holds: neither its source nor its output has changed."""
    file, slot = item.source.file, item.slot
    is_same_file = (file.size, file.time) == (done.source_size, done.source_time)
    if not is_same_file and hash_range(item.source.path, *item.source.byte_range, file) != done.source_hash:
        return False
    if slot.shared:
        return is_in_payload(item, done, place)
    path = final_path(out, slot)
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    if found.st_size != slot.size or not _beside_is_there(item, path):
        return False
    return found.st_mtime_ns == done.output_time or hash_range(path, 0, slot.size) == done.output_hash


def is_in_payload(item: Item, done: Done, place: Workplace) -> bool:
    """Return whether the bytes of an item are in the unfinished single file."""
    try:
        return hash_range(place.parts / PAYLOAD, item.slot.start, item.slot.size) == done.output_hash
    except (FileNotFoundError, FileFormatError):  # it is not there, or too short
        return False
