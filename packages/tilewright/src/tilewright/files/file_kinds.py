# SPDX-License-Identifier: Apache-2.0
"""`FILE_KINDS`: the kinds of files that are read, how each is recognised, and its reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import FileFormatError
from ..plugins import list_plugins, load_plugin
from .bank_image import INDEX_SUFFIX
from .file_names import decode_file_name
from .foreign_files import refuse_foreign_file, refuse_stand_in
from .gguf import SUFFIX as GGUF_SUFFIX
from .gguf import read_gguf
from .gguf_header import MAGIC as GGUF_MAGIC
from .hdf5 import HDF5_START, KERAS_WEIGHTS, read_hdf5
from .npy import NPY_MAGIC, read_npy, read_npz
from .onnx import read_onnx
from .safetensors import MAX_HEADER_BYTES, read_safetensors
from .source_file import SourceFile
from .stored_tensor import StoredTensor
from .tensorbin import read_tensorbin_tensor
from .torch_checkpoint import find_pickle, is_legacy_checkpoint, read_torch_checkpoint
from .zip_members import ZIP_START, open_zip

Content: TypeAlias = "tuple[list[StoredTensor], dict[str, str]]"
_START_BYTES = 64


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its `name`, its `suffixes`, and `read`, which returns tensors and metadata.

    `matches` says whether a file of a size starts as one of this kind; None if nothing in the content tells. Files of a
    `fallback` kind are not read from a directory that has others.

    >>> [kind.name for kind in FILE_KINDS if ".npy" in kind.suffixes]
    ['npy']
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[SourceFile], Content]
    matches: Callable[[bytes, int], bool] | None = None
    fallback: bool = False


def _read_named(read: Callable[[SourceFile, str], StoredTensor]) -> Callable[[SourceFile], Content]:
    """Return the reader of files that hold one tensor, which has the name of the file."""
    return lambda file: ([read(file, decode_file_name(file.path.stem))], {})


def _read_with_others(
    read: Callable[[SourceFile, dict[str, str]], list[StoredTensor]],
) -> Callable[[SourceFile], Content]:
    """Return the reader of files that also hold values that are not tensors, which are their metadata."""

    def read_both(file: SourceFile) -> Content:
        others: dict[str, str] = {}
        return read(file, others), others

    return read_both


def _is_safetensors(start: bytes, size: int) -> bool:
    header = int.from_bytes(start[:8], "little")
    return start[8:9] == b"{" and header <= min(MAX_HEADER_BYTES, size - 8)


NPZ = FileKind("npz", (".npz",), lambda file: (read_npz(file), {}))
TORCH = FileKind(
    "torch",
    (".pt", ".pth", ".ckpt", ".bin"),
    _read_with_others(read_torch_checkpoint),
    lambda start, _: is_legacy_checkpoint(start),
    fallback=True,
)
HDF5 = FileKind(
    "hdf5",
    (".h5", ".hdf5", ".keras"),
    _read_with_others(read_hdf5),
    lambda start, _: start.startswith(HDF5_START),
    fallback=True,
)
FILE_KINDS = (
    FileKind("safetensors", (".safetensors",), read_safetensors, _is_safetensors),
    FileKind("npy", (".npy",), _read_named(read_npy), lambda start, _: start.startswith(NPY_MAGIC)),
    NPZ,
    FileKind("tensorbin", (".tensorbin",), _read_named(read_tensorbin_tensor)),
    FileKind("gguf", (GGUF_SUFFIX,), read_gguf, lambda start, _: start.startswith(GGUF_MAGIC), fallback=True),
    TORCH,
    HDF5,
    FileKind("onnx", (".onnx",), _read_with_others(read_onnx), fallback=True),
)
"""The kinds of files that are read; no content matches two of them."""

INDICES = {".safetensors.index.json": "safetensors", ".bin.index.json": "torch"}
"""How the indices of sharded checkpoints end, and the kind of their shards."""

MAIN_SUFFIXES = tuple([suffix for kind in FILE_KINDS if not kind.fallback for suffix in kind.suffixes])
SUFFIXES = tuple([suffix for kind in FILE_KINDS for suffix in kind.suffixes])


def added_kinds() -> list[FileKind]:
    """Return the kinds of files that plug-ins read.

    >>> all(isinstance(kind, FileKind) for kind in added_kinds())
    True
    """
    added = [load_plugin("readers", name, FileKind) for name in list_plugins("readers")]
    return [kind for kind in added if isinstance(kind, FileKind)]


def find_file_kind(file: SourceFile) -> FileKind | None:
    """Return the kind of a file, by its content where that tells, and by its suffix otherwise; None if unknown.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros(3))
    ...     find_file_kind(SourceFile(f"{folder}/x.npy")).name
    'npy'
    """
    start = file.read(0, min(file.size, _START_BYTES))
    suffix = file.path.suffix.lower()
    own = next((kind for kind in FILE_KINDS if suffix in kind.suffixes), None)
    if own is None:
        own = next((kind for kind in added_kinds() if suffix in kind.suffixes), None)
    if start.startswith(ZIP_START):
        return _find_zip_kind(file, own)
    if own is not None and own.matches is None:
        return own
    by_content = next(
        (kind for kind in FILE_KINDS if kind.matches is not None and kind.matches(start, file.size)), None
    )
    if by_content is None and own is TORCH:  # a suffix that many others have, too
        return None
    return by_content or own


def _find_zip_kind(file: SourceFile, own: FileKind | None) -> FileKind | None:
    if own is not None and own is not TORCH:
        return own
    try:
        with open_zip(file) as archive:
            names = archive.namelist()
    except FileFormatError:
        return own
    if find_pickle(names) is not None:
        return TORCH
    if KERAS_WEIGHTS in names:
        return HDF5
    return NPZ if names and all(name.endswith(".npy") for name in names) else None


def read_tensors(file: SourceFile) -> tuple[str, list[StoredTensor], dict[str, str]]:
    """Return the kind of a file, its tensors and its metadata; raise if it is of no kind that is read.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros(3))
    ...     read_tensors(SourceFile(f"{folder}/x.npy"))[0]
    'npy'
    """
    refuse_stand_in(file)
    kind = find_file_kind(file)
    if kind is None:
        added = [suffix for kind in added_kinds() for suffix in kind.suffixes]
        refuse_foreign_file(file, ", ".join([*SUFFIXES, *added, *[f"*{each}" for each in (*INDICES, INDEX_SUFFIX)]]))
    return kind.name, *kind.read(file)
