# SPDX-License-Identifier: Apache-2.0
"""Files that are not read: what they are, and how their tensors become files that are."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from ..errors import FileFormatError
from .source_file import SourceFile

_MAX_PAGE_BYTES = 1 << 20
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_MAX_POINTER_BYTES = 1024
_START_BYTES = 512


class ForeignKind(NamedTuple):
    """What a file is, and the next step."""

    name: str
    remedy: str


_PICKLE = ForeignKind("a pickle, but not of torch.save", "save its arrays with numpy.savez, or safetensors")
_TAR = ForeignKind(
    "a tar archive", "unpack it; if torch before 0.1.10 wrote it, load it with torch and save it with safetensors"
)
_ARCHIVE = ForeignKind("a compressed archive", "unpack it, and give the files in it")
_WEB_PAGE = ForeignKind("a web page, not the file itself", "download it again; it may need a login")
_TENSORFLOW = ForeignKind(
    "a part of a TensorFlow checkpoint", "save what tf.train.load_checkpoint(path) reads with numpy.savez"
)
_SAVED_MODEL = ForeignKind(
    "a TensorFlow SavedModel", "save the variables of tf.saved_model.load(folder) with numpy.savez"
)
_TFLITE = ForeignKind("a TensorFlow Lite model", "use the model that it was made from")
_FLAX = ForeignKind("a Flax checkpoint", "save it with safetensors.flax.save_file")
_CORE_ML = ForeignKind("a Core ML model", "use the model that it was made from")
_ENGINE = ForeignKind("a compiled engine of TensorRT", "use the model that it was made from")
_PADDLE = ForeignKind("a Paddle checkpoint", "save what paddle.load(path) returns with numpy.savez")
_JSON = ForeignKind("a JSON text", "give the folder that it is in, or the file with the tensors")

_MAGIC = {
    (0, b"PK\x03\x04"): ForeignKind("a zip archive without tensors", "unpack it, and give the files in it"),
    (0, b"\x1f\x8b"): _ARCHIVE,
    (0, b"BZh"): _ARCHIVE,
    (0, b"\xfd7zXZ\0"): _ARCHIVE,
    (0, b"7z\xbc\xaf'\x1c"): _ARCHIVE,
    (0, b"Rar!\x1a\x07"): _ARCHIVE,
    (0, b"\x28\xb5\x2f\xfd"): _ARCHIVE,
    (257, b"ustar"): _TAR,
    (4, b"TFL3"): _TFLITE,
    **{(0, b"\x80" + bytes([protocol])): _PICKLE for protocol in (2, 3, 4, 5)},
    (0, b"<!DOCTYPE html"): _WEB_PAGE,
    (0, b"<!doctype html"): _WEB_PAGE,
    (0, b"<html"): _WEB_PAGE,
    (0, b'{"'): _JSON,
    (0, b"{\n"): _JSON,
}
_SUFFIXES = {
    ".msgpack": _FLAX,
    **dict.fromkeys((".pkl", ".pickle"), ForeignKind("a pickle", "save its arrays with numpy.savez")),
    **dict.fromkeys((".index", ".meta"), _TENSORFLOW),
    ".pb": _SAVED_MODEL,
    ".tflite": _TFLITE,
    **dict.fromkeys((".mlmodel", ".mlpackage"), _CORE_ML),
    **dict.fromkeys((".engine", ".plan", ".trt"), _ENGINE),
    ".pdparams": _PADDLE,
    **dict.fromkeys((".tar", ".nemo"), _TAR),
    **dict.fromkeys((".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar"), _ARCHIVE),
    **dict.fromkeys(
        (".pt", ".pth", ".ckpt", ".bin"),
        ForeignKind(
            "neither a PyTorch checkpoint nor another file of tensors",
            "save one with torch.save(model.state_dict(), path)",
        ),
    ),
}
FOREIGN_SUFFIXES = (*_SUFFIXES, ".data-00000-of-00001")


def refuse_foreign_file(file: SourceFile, known: str) -> NoReturn:
    """Raise an error that says what a file is, and the next step; `known` lists the suffixes that are read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "flax_model.msgpack")
    ...     _ = path.write_bytes(b"\\x82")
    ...     try:
    ...         refuse_foreign_file(SourceFile(path), ".npy")
    ...     except FileFormatError as problem:
    ...         print(str(problem).removeprefix(folder).partition(";")[0])
    /flax_model.msgpack is a Flax checkpoint, which tilewright does not read
    """
    refuse_stand_in(file)
    kind = _find_foreign_kind(file)
    if kind is not None:
        raise _foreign_error(file, kind)
    content = "unknown content" if file.size else "no content: it is empty"
    raise FileFormatError(f"{file.path} has unknown suffix {file.path.suffix!r} and {content}; known suffixes: {known}")


def _foreign_error(file: SourceFile, kind: ForeignKind) -> FileFormatError:
    return FileFormatError(f"{file.path} is {kind.name}, which tilewright does not read; {kind.remedy}")


def _find_foreign_kind(file: SourceFile) -> ForeignKind | None:
    start = file.read(0, min(file.size, _START_BYTES))
    for (offset, magic), kind in _MAGIC.items():
        if start[offset:].startswith(magic):
            return kind
    if ".data-0" in file.path.suffix:
        return _TENSORFLOW
    return _SUFFIXES.get(file.path.suffix.lower()) if file.size else None


def refuse_stand_in(file: SourceFile) -> None:
    """Raise an error if a file is what a download left in its place: a pointer of Git LFS, or a web page.

    >>> refuse_stand_in(SourceFile(__file__))
    """
    if len(_LFS_POINTER) <= file.size <= _MAX_POINTER_BYTES and file.read(0, len(_LFS_POINTER)) == _LFS_POINTER:
        raise FileFormatError(f"{file.path} is a Git LFS pointer, not the file itself; download it with: git lfs pull")
    if file.size <= _MAX_PAGE_BYTES and _find_foreign_kind(file) is _WEB_PAGE:  # others are not worth a request
        raise _foreign_error(file, _WEB_PAGE)
