# SPDX-License-Identifier: Apache-2.0
"""PyTorch checkpoints: `.pt`, `.pth`, `.bin`, `.ckpt`, in the zip container and in the legacy one.

zip       NAME/data.pkl, a pickle that describes the tensors; NAME/data/KEY, the bytes of each storage;
          NAME/byteorder, "little" or "big"
legacy    pickles of a magic number, a version, the system, the tensors, and the keys of the storages; then, for each
          key, the number of elements (8 bytes) and the elements
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from .._text import count_of
from ..errors import FileFormatError
from ..formats import SCALAR_FORMATS, ScalarFormat
from .range_reader import RangeReader
from .source_file import FilePath, SourceFile, as_source_file
from .stored_tensor import StoredTensor
from .torch_objects import TORCH_TYPES, TensorRef
from .torch_pickle import MAX_PICKLE_BYTES, read_pickle
from .zip_members import ZIP_START, find_member_ranges, open_zip, reject_overlaps

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_START = b"\x8a\x0a" + LEGACY_MAGIC.to_bytes(10, "little")
_LEGACY_VERSION = 1001
_MAX_DEPTH = 64  # of containers in containers
_MAX_VALUES = 2_000_000
_MAX_TENSORS = 200_000
_MAX_NAME_LENGTH = 4096
_MIN_EXPANSION_BYTES = 1 << 30  # tensors that repeat elements may always be this large,
_MAX_EXPANSION = 64  # and otherwise this many times as large as their file
_COUNT_BYTES = 8
_MAX_LEGACY_BYTES = 2 * MAX_PICKLE_BYTES  # of all pickles together
_FORMATS: dict[str, ScalarFormat | None] = {kind: SCALAR_FORMATS.get(kind) for kind in TORCH_TYPES}
_FORMATS["float8_e4m3fn"] = SCALAR_FORMATS["float8_e4m3"]


@dataclass(frozen=True, slots=True)
class _StorageRange:
    """The bytes of a storage in the file."""

    start: int
    nbytes: int


def is_legacy_checkpoint(start: bytes) -> bool:
    """Return whether a file that starts with these bytes is a PyTorch checkpoint in the legacy container.

    >>> is_legacy_checkpoint(b"\\x80\\x02\\x8a\\nl\\xfc\\x9cF\\xf9 j\\xa8P\\x19.")
    True
    """
    return start[:1] == b"\x80" and _LEGACY_START in start[:32]


def find_pickle(names: list[str]) -> str | None:
    """Return the name of the pickle among the members of a checkpoint in the zip container, None if there is none.

    >>> find_pickle(["model/version", "model/data.pkl", "model/data/0"])
    'model/data.pkl'
    """
    hits = [name for name in names if name == "data.pkl" or name.endswith("/data.pkl")]
    return min(hits, key=len, default=None)


def read_torch_checkpoint(path: FilePath | SourceFile, others: dict[str, str] | None = None) -> list[StoredTensor]:
    """Return the tensors of a PyTorch checkpoint; no pickle is executed.

    Names of nested containers at `path` are joined by dots, items of lists by their index; what is not a tensor is left
    out, and noted in `others`.

    >>> import tempfile
    >>> header = b"\\x80\\x02}X\\x01\\x00\\x00\\x00wctorch._utils\\n_rebuild_tensor_v2\\n((X\\x07\\x00\\x00\\x00storage"
    >>> tensor = (
    ...     b"ctorch\\nCharStorage\\nX\\x01\\x00\\x00\\x000X\\x03\\x00\\x00\\x00cpuK\\x02tQK\\x00K\\x02\\x85K\\x01\\x85"
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(f"{folder}/x.pt", "w") as archive:
    ...         archive.writestr("x/data.pkl", header + tensor + b"\\x89}tRs.")
    ...         archive.writestr("x/data/0", b"\\x05\\x06")
    ...     [(each.name, each.read().tolist()) for each in read_torch_checkpoint(f"{folder}/x.pt")]
    [('w', [5, 6])]
    """
    file = as_source_file(path)
    start = file.read(0, min(file.size, 32))
    if start.startswith(ZIP_START):
        value, storages, is_little = _read_zip(file)
    elif is_legacy_checkpoint(start):
        value, storages, is_little = _read_legacy(file)
    else:
        raise FileFormatError(
            "not a PyTorch checkpoint: it is neither a zip file nor starts with torch's magic number; save it again"
            " with torch.save(model.state_dict(), path)"
        )
    swapped = is_little != (sys.byteorder == "little")
    return [_make_tensor(name, ref, file, storages, swapped) for name, ref in _name_tensors(value, others)]


def _name_tensors(value: Any, others: dict[str, str] | None = None) -> Iterator[tuple[str, TensorRef]]:
    """Yield the tensors in nested containers with their names, in the order of the file.

    What is not a tensor is added to `others`: values at the top by name, those in containers by the outermost one.
    """
    inside: dict[str, int] = {}
    if isinstance(value, TensorRef):
        yield "", value
        return
    open_containers = [_named_items("", value)]
    tensors = 0
    for _ in range(_MAX_VALUES):
        item = next(open_containers[-1], None)
        if item is None:
            open_containers.pop()
            if not open_containers:
                return
            continue
        name, inner = item
        if isinstance(inner, TensorRef):
            tensors += 1
            if tensors > _MAX_TENSORS:
                raise FileFormatError(f"the file has more than {_MAX_TENSORS} tensors")
            yield name, inner
        elif isinstance(inner, (dict, list, tuple)):
            if len(open_containers) == _MAX_DEPTH:
                raise FileFormatError(f"containers are nested more than {_MAX_DEPTH} deep, at {name[:80]!r}")
            open_containers.append(_named_items(f"{name}.", inner))
        elif others is not None and len(open_containers) == 1:
            others[name] = f"a value of type {type(inner).__name__}"
        elif others is not None:
            outermost = name.partition(".")[0]
            inside[outermost] = inside.get(outermost, 0) + 1
            others[outermost] = f"{count_of(inside[outermost], 'value')} beside tensors"
    raise FileFormatError(f"the containers have more than {_MAX_VALUES} values")


def _named_items(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, inner in pairs:
        if isinstance(key, str) and len(prefix) + len(key) > _MAX_NAME_LENGTH:
            raise FileFormatError(
                f"a name that starts with {(prefix + key[:80])[:80]!r} is longer than {_MAX_NAME_LENGTH}"
            )
        yield f"{prefix}{key}", inner


def _make_tensor(
    name: str, ref: TensorRef, file: SourceFile, storages: Mapping[str, _StorageRange], swapped: bool
) -> StoredTensor:
    storage = storages.get(ref.storage.key)
    if storage is None:
        raise FileFormatError(f"the storage {ref.storage.key[:40]!r} of {name[:80]!r} is missing from the file")
    size = TORCH_TYPES[ref.kind]
    start = ref.storage.offset * ref.storage.itemsize + ref.offset * size
    if (ref.storage.offset * ref.storage.itemsize) + ref.storage.nbytes > storage.nbytes:
        raise FileFormatError(
            f"{name[:80]!r} needs a storage of {ref.storage.nbytes} bytes, but {ref.storage.key[:40]!r} has"
            f" {storage.nbytes}: the file is truncated"
        )
    expanded = prod([max(1, n) for n in ref.shape]) * size
    if expanded > max(_MIN_EXPANSION_BYTES, _MAX_EXPANSION * file.size):
        raise FileFormatError(
            f"{name[:80]!r} of shape {list(ref.shape)} repeats the elements of a file of {file.size} bytes to"
            f" {expanded}, which is implausible"
        )
    layout = (ref.shape, ref.strides, _FORMATS[ref.kind], size)
    return StoredTensor.strided(name, ref.kind, *layout, file, storage.start + start, swapped and size > 1)


def _read_zip(file: SourceFile) -> tuple[Any, dict[str, _StorageRange], bool]:
    """Return the value of the pickle, the storages by key, and whether they are little-endian."""
    with open_zip(file) as archive:
        listed = archive.infolist()
    members = {info.filename: info for info in listed}
    if len(members) < len(listed):
        raise FileFormatError("the zip file has two members of one name")
    pickle = find_pickle(list(members))
    if pickle is None:
        raise FileFormatError("the zip file is not a PyTorch checkpoint: it has no data.pkl; unpack it")
    prefix = pickle.removesuffix("data.pkl")
    if f"{prefix}constants.pkl" in members:
        raise FileFormatError("the file is a TorchScript program; save the state_dict() of torch.jit.load(path)")
    folder, order = f"{prefix}data/", f"{prefix}byteorder"
    needed = [info for name, info in members.items() if name in (pickle, order) or name.startswith(folder)]
    for info in needed:
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise FileFormatError(
                f"member {info.filename[:80]!r} is compressed or encrypted, so that parts of it cannot be read; save"
                " the file again with torch.save(torch.load(path, weights_only=True), path)"
            )
    ranges = dict(zip([info.filename for info in needed], find_member_ranges(needed, file), strict=True))
    reject_overlaps(list(ranges.values()))
    start, end = ranges[pickle]
    if end - start > MAX_PICKLE_BYTES:
        raise FileFormatError(f"{pickle[:80]!r} has {end - start} bytes, more than {MAX_PICKLE_BYTES}")
    storages = {
        name.removeprefix(folder): _StorageRange(first, last - first)
        for name, (first, last) in ranges.items()
        if name.startswith(folder)
    }
    return read_pickle(RangeReader(file, start, end, "the pickle")), storages, _is_little(file, ranges.get(order))


def _is_little(file: SourceFile, place: tuple[int, int] | None) -> bool:
    if place is None:
        return True
    text = file.read(place[0], min(place[1] - place[0], 16))
    if text not in (b"little", b"big"):
        raise FileFormatError(f"expected 'little' or 'big' as byteorder, got {text!r}")
    return text == b"little"


def _read_legacy(file: SourceFile) -> tuple[Any, dict[str, _StorageRange], bool]:
    """Return the same of a file in the legacy container."""
    source = RangeReader(file, 0, min(file.size, _MAX_LEGACY_BYTES), "the pickle")
    if read_pickle(source) != LEGACY_MAGIC or read_pickle(source) != _LEGACY_VERSION:
        raise FileFormatError(f"expected torch's magic number and version {_LEGACY_VERSION} at the start, got others")
    system, value, keys = read_pickle(source), read_pickle(source), read_pickle(source)
    is_little = system.get("little_endian", True) if isinstance(system, dict) else True
    if not isinstance(is_little, bool) or not isinstance(keys, list):
        raise FileFormatError("expected the byte order and the list of storages after the pickles, got others")
    itemsizes = {ref.storage.key: ref.storage.itemsize for _, ref in _name_tensors(value)}
    storages: dict[str, _StorageRange] = {}
    at = source.position
    for key in keys:
        if not isinstance(key, str) or key in storages:
            raise FileFormatError("the list of storages has a key twice, or one that is not text")
        if key not in itemsizes:
            raise FileFormatError(f"the list of storages has {key[:40]!r}, whose type no tensor says")
        size = int.from_bytes(file.read(at, _COUNT_BYTES), "little") * itemsizes[key]
        at += _COUNT_BYTES
        if size > file.size - at:
            raise FileFormatError(
                f"storage {key[:40]!r} takes {size} bytes, but {file.size - at} follow: the file is truncated"
            )
        storages[key] = _StorageRange(at, size)
        at += size
    return value, storages, is_little
