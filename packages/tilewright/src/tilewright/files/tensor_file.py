# SPDX-License-Identifier: Apache-2.0
"""`open_tensors`: the tensors of a file or directory of any format, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from .._files import as_path
from .._json import expect_string
from .._lazy import late_function
from .._text import count_of, list_some, suggest
from ..copying import as_host_array
from ..errors import FileFormatError, FormatError, LayoutError
from ..formats import find_scalar_format
from ..memory import DeviceLike
from ..plugins import list_plugins, load_plugin
from .quantized import PendingTensor, join_sections, read_quantization_config
from .safetensors import MAX_HEADER_BYTES, read_safetensors
from .source import (
    GGUF_MAGIC,
    GGUF_SUFFIX,
    HDF5_START,
    KERAS_WEIGHTS,
    MANIFEST_NAME,
    NPY_MAGIC,
    ZIP_START,
    ArraySource,
    FilePath,
    SourceFile,
    decode_file_name,
    find_checkpoint_folder,
    is_url,
    read_json,
    resolve_inside,
    validate_tensor_name,
)
from .stored_tensor import INDEX_SUFFIX, Content, StoredTensor, read_bank_image

# Readers that are loaded when a file is theirs.

read_gguf, choose_gguf_file = [late_function(__package__, "gguf", name) for name in ("read_gguf", "choose_gguf_file")]
read_npy, read_npz, read_hdf5, open_zip = [
    late_function(__package__, "npy", name) for name in ("read_npy", "read_npz", "read_hdf5", "open_zip")
]
read_onnx = late_function(__package__, "onnx", "read_onnx")
read_tensorbin_tensor = late_function(__package__, "tensorbin", "read_tensorbin_tensor")
find_pickle, is_legacy_checkpoint, read_torch_checkpoint = [
    late_function(__package__, "torch_checkpoint", name)
    for name in ("find_pickle", "is_legacy_checkpoint", "read_torch_checkpoint")
]
read_manifest, open_converted_tensors = [
    late_function(__package__, "manifest", name) for name in ("read_manifest", "open_converted_tensors")
]
as_url_path, open_model_file = [
    late_function(__package__, "remote_file", name) for name in ("as_url_path", "open_model_file")
]

# Unsupported files: their type, and how to convert their tensors to a supported one.

_MAX_PAGE_BYTES = 1 << 20
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_MAX_POINTER_BYTES = 1024
_FOREIGN_BYTES = 512


class ForeignKind(NamedTuple):
    """The type of a file, and the next step."""

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
    """Raise an error with the type of a file and the next step; `known` lists the suffixes that are read.

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
    foreign = _find_foreign_kind(file)
    if foreign is not None:
        raise _foreign_error(file, foreign)
    content = "unknown content" if file.size else "no content: it is empty"
    raise FileFormatError(f"{file.path} has unknown suffix {file.path.suffix!r} and {content}; known suffixes: {known}")


def _foreign_error(file: SourceFile, foreign: ForeignKind) -> FileFormatError:
    return FileFormatError(f"{file.path} is {foreign.name}, which tilewright does not read; {foreign.remedy}")


def _find_foreign_kind(file: SourceFile) -> ForeignKind | None:
    start = file.read(0, min(file.size, _FOREIGN_BYTES))
    for (offset, magic), foreign in _MAGIC.items():
        if start[offset:].startswith(magic):
            return foreign
    if ".data-0" in file.path.suffix:
        return _TENSORFLOW
    return _SUFFIXES.get(file.path.suffix.lower()) if file.size else None


def refuse_stand_in(file: SourceFile) -> None:
    """Raise an error if a download left something else in place of a file: a pointer of Git LFS, or a web page.

    >>> refuse_stand_in(SourceFile(__file__))
    """
    if len(_LFS_POINTER) <= file.size <= _MAX_POINTER_BYTES and file.read(0, len(_LFS_POINTER)) == _LFS_POINTER:
        raise FileFormatError(f"{file.path} is a Git LFS pointer, not the file itself; download it with: git lfs pull")
    if file.size <= _MAX_PAGE_BYTES and _find_foreign_kind(file) is _WEB_PAGE:  # others are not worth a request
        raise _foreign_error(file, _WEB_PAGE)


# `FILE_KINDS`: the kinds of files that are read, how each is recognised, and its reader.

_START_BYTES = 64


@dataclass(frozen=True)
class FileKind:
    """A kind of file: its `name`, its `suffixes`, and `read`, which returns tensors and metadata.

    `matches` returns whether a file starts like this type, given its size; None if the content does not show it.
    Files of a `fallback` kind are not read from a directory that has others.

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


def _is_safetensors(start: bytes, size: int) -> bool:
    header = int.from_bytes(start[:8], "little")
    return start[8:9] == b"{" and header <= min(MAX_HEADER_BYTES, size - 8)


NPZ = FileKind("npz", (".npz",), read_npz)
TORCH = FileKind(
    "torch",
    (".pt", ".pth", ".ckpt", ".bin"),
    read_torch_checkpoint,
    lambda start, _: is_legacy_checkpoint(start),
    fallback=True,
)
HDF5 = FileKind(
    "hdf5",
    (".h5", ".hdf5", ".keras"),
    read_hdf5,
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
    FileKind("onnx", (".onnx",), read_onnx, fallback=True),
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
    """Return the kind of a file, by its content if possible, and by its suffix otherwise; None if unknown.

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
        return _find_zip_type(file, own)
    if own is not None and own.matches is None:
        return own
    by_content = next(
        (kind for kind in FILE_KINDS if kind.matches is not None and kind.matches(start, file.size)), None
    )
    if by_content is None and own is TORCH:  # a suffix that many others share
        return None
    return by_content or own


def _find_zip_type(file: SourceFile, own: FileKind | None) -> FileKind | None:
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
        refuse_foreign_file(file, ", ".join([*SUFFIXES, *added, *[f"*{name}" for name in (*INDICES, INDEX_SUFFIX)]]))
    return kind.name, *kind.read(file)


_CONFIG, _MODEL, _TORCH_MODEL = "config.json", "model.safetensors", "pytorch_model.bin"  # what transformers reads
_MAX_INDEX_BYTES = 100_000_000
_CACHE_DEPTHS = ("*/*.tensorbin", "*/*/*.tensorbin", "*/*/*/*.tensorbin")  # of weight caches below their directory
_MAX_NAMED = 4
_MAX_OPENED = 8  # shards at a time


class TensorFile(Mapping[str, StoredTensor]):
    """The tensors at `path`, a file, sharded checkpoint or directory: a mapping from names to `StoredTensor`.

    `kind` is "safetensors", "sharded safetensors", "npy", "npz", "tensorbin", "gguf", "torch", "sharded torch", "onnx",
    "hdf5", "bank image", "converted" (a directory with our manifest) or "directory"; `files` are the paths that hold
    the tensors; `metadata` is the free text that safetensors files carry, or the metadata of a GGUF file. `notes` name
    files and tensors at `path` that are left out.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(Path(folder, "x.npz"), a=numpy.zeros(3), b=numpy.ones((2, 2)))
    ...     file = open_tensors(Path(folder, "x.npz"))
    ...     file.kind, list(file), file.nbytes, file["b"].read().tolist()
    ('npz', ['a', 'b'], 56, [[1.0, 1.0], [1.0, 1.0]])
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        tensors: Iterable[StoredTensor | PendingTensor],
        metadata: Mapping[str, str] | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        self.path, self.kind, self.metadata, self.notes = path, kind, dict(metadata or {}), tuple(notes)
        self._tensors = _index_by_name(list(tensors))

    @property
    def headers(self) -> Collection[StoredTensor | PendingTensor]:
        """The tensors in order, as their headers describe them; `values()` makes a `StoredTensor` of each.

        >>> [header.shape for header in store_arrays({"w": [[1.0, 2.0]]}).headers]
        [(1, 2)]
        """
        return self._tensors.values()

    def __getitem__(self, name: str) -> StoredTensor:
        try:
            tensor = self._tensors[name]
        except KeyError:
            hint = suggest(name, self._tensors, f"it has {count_of(len(self), 'other')}")
            raise KeyError(f"{self.path} has no tensor {name!r}; {hint}") from None
        if isinstance(tensor, PendingTensor):
            self._tensors[name] = tensor = tensor.make()
        return tensor

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def on_device(self, device: DeviceLike) -> TensorFile:
        """Return the contents of one device of a mesh: its parts, and entire tensors that are not on a mesh.

        `device` is a mesh coordinate, or a number in row-major order.

        >>> import tempfile, numpy, tilewright as tw
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros((64, 96)))
        ...     _ = tw.convert(f"{folder}/x.npy", f"{folder}/out", rules={"x": {"mesh": [1, 2], "cut": 1}})
        ...     open_tensors(f"{folder}/out").on_device((0, 1))["x"].shape
        (64, 48)
        """
        if all(tensor.mesh is None for tensor in self.headers):
            raise LayoutError(f"{self.path} has no tensor on a mesh of devices; leave out device {device}")
        parts = [tensor if tensor.mesh is None else tensor.on_device(device) for tensor in self.values()]
        return TensorFile(self.path, self.kind, parts, self.metadata, self.notes)

    @property
    def files(self) -> list[Path]:
        """The paths of the files that hold the tensors.

        >>> import tempfile, numpy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
        ...     [path.name for path in open_tensors(folder).files]
        ['x.npy']
        """
        return list(dict.fromkeys([source.path for source in self.sources]))

    @property
    def sources(self) -> list[SourceFile]:
        """The files that hold the tensors, as they were when they were opened.

        >>> [source.size for source in store_arrays({"w": [1.0, 2.0]}).sources]
        [16]
        """
        return list(dict.fromkeys([part.file for tensor in self.headers for part in tensor.sections]))

    @property
    def nbytes(self) -> int:
        """The bytes of all tensors.

        >>> import tempfile, numpy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
        ...     open_tensors(folder).nbytes
        24
        """
        return sum([tensor.nbytes for tensor in self.headers])

    def __repr__(self) -> str:
        return f"<TensorFile {self.path}: {self.kind}, {count_of(len(self), 'tensor')}, {self.nbytes} bytes>"


def _index_by_name(tensors: Sequence[StoredTensor | PendingTensor]) -> dict[str, StoredTensor | PendingTensor]:
    """Return tensors by name; raise if a name points outside of its directory, or exists twice."""
    result = {tensor.name: tensor for tensor in tensors}
    whole = "".join(result)  # names of a checkpoint with very many are checked together
    if not (whole.isascii() and whole.isprintable()) or any(c in whole for c in "/\\:") or ".." in result:
        for name in result:
            validate_tensor_name(name)
    if len(result) < len(tensors):
        first: dict[str, StoredTensor | PendingTensor] = {}
        for tensor in tensors:
            if tensor.name in first:
                paths = sorted({str(stored.sections[0].path) for stored in (first[tensor.name], tensor)})
                raise FileFormatError(f"tensor {tensor.name!r} exists twice, in {' and '.join(paths)}")
            first[tensor.name] = tensor
    return result


def select_names(names: Sequence[str], patterns: str | Iterable[str]) -> list[str]:
    """Return the names that equal or match shell patterns, in the order of the patterns.

    >>> select_names(["wq", "wk", "b"], "w*")
    ['wq', 'wk']
    """
    result: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        hits = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not hits:
            such_as = f", such as {names[0]!r}" if names else ""
            hint = suggest(pattern, names, f"there are {len(names)}{such_as}")
            raise LayoutError(f"no tensor matches {pattern!r}; {hint}")
        result += hits
    return list(dict.fromkeys(result))


def open_tensors(path: FilePath, follow_symlinks: bool = False) -> TensorFile:
    """Return the tensors of a file or directory; headers are read and validated, data is read on demand.

    `path` is a `.safetensors` file (or the index of a sharded one), `.npy`, `.npz`, `.tensorbin`, `.gguf` (or any part
    of a split one), a PyTorch checkpoint (`.pt`, `.pth`, `.bin`, whose pickles are never executed), `.onnx`, `.h5`, the
    index of a bank image, or a directory of these, such as a model of the Hugging Face hub or one of its snapshots, or
    the directory above a single weight cache. It may also be a URL: `https://host/model.safetensors`, or
    `hf://owner/model[@revision][/file]`; only the necessary bytes are read. Files are recognised by their content if
    possible, and by their suffix otherwise. Codes and scales of quantised checkpoints make one tensor.
    `follow_symlinks` allows links that point outside of a directory (or of the hub's model). Damaged files raise a
    `FileFormatError`.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
    ...     numpy.save(Path(folder, "y.npy"), numpy.ones(2))
    ...     {name: tensor.shape for name, tensor in open_tensors(folder).items()}
    {'x': (3,), 'y': (2,)}
    """
    if is_url(path):
        with _name_file_in_errors(as_url_path(path)):
            remote = open_model_file(os.fspath(path))
            return _join_quantized(_read_source(remote, follow_symlinks), remote.open_beside)
    file = as_path(path)
    if file.is_dir():
        folder = find_checkpoint_folder(file)
        return _join_quantized(_read_directory(folder, follow_symlinks), lambda name: SourceFile(folder / name))
    with _name_file_in_errors(file):
        tensors = _read_file(file, follow_symlinks)
    return _join_quantized(tensors, lambda name: SourceFile(file.parent / name))


def _join_quantized(file: TensorFile, open_beside: Callable[[str], SourceFile]) -> TensorFile:
    """Return the tensors of a checkpoint, codes and scales as one each; `open_beside` opens files next to it."""
    stored = [tensor for tensor in file.headers if isinstance(tensor, StoredTensor)]
    if any(tensor.spec is not None for tensor in stored):  # made by convert, or by ttnn
        return file
    tensors = join_sections(stored, lambda: read_quantization_config(open_beside))
    return file if tensors is stored else TensorFile(file.path, file.kind, tensors, file.metadata, file.notes)


@contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Add the path of a file to errors that do not name it."""
    try:
        yield
    except FileFormatError as problem:
        text = str(problem)
        raise FileFormatError(text if str(path) in text else f"{path}: {text}") from None


def _read_file(path: Path, follow_symlinks: bool = False) -> TensorFile:
    if path.name.endswith(INDEX_SUFFIX):
        image = read_bank_image(path, decode_file_name(path.name[: -len(INDEX_SUFFIX)]))
        return TensorFile(path, "bank image", [image])
    return _read_source(SourceFile(path), follow_symlinks)


def _read_source(file: SourceFile, follow_symlinks: bool = False) -> TensorFile:
    if file.path.name.endswith(tuple(INDICES)):
        return _read_sharded(file, follow_symlinks)
    kind, tensors, metadata = read_tensors(file)
    return TensorFile(file.path, kind, tensors, metadata)


def _read_sharded(index: SourceFile, follow_symlinks: bool) -> TensorFile:
    """Return the tensors that the index of a sharded checkpoint lists."""
    result = read_json(index, "the index", _MAX_INDEX_BYTES)
    listed = result.get("weight_map") if isinstance(result, dict) else None
    if not isinstance(listed, dict):
        raise FileFormatError("the index has no weight_map")
    for name, home in listed.items():
        if type(home) is not str or not (name.isascii() and home.isascii()):
            expect_string(name, "a name")
            expect_string(home, f"the file of {name!r}")
    homes: dict[str, str] = listed
    kind = next(kind for suffix, kind in INDICES.items() if index.path.name.endswith(suffix))
    shards: dict[str, TensorFile] = {}
    metadata: dict[str, str] = {}
    with ThreadPoolExecutor(_MAX_OPENED) as pool:  # each may be a request
        distinct = list(dict.fromkeys(homes.values()))
        for home, shard in zip(distinct, pool.map(partial(_read_shard, index, follow_symlinks), distinct), strict=True):
            if shard.kind != kind:
                raise FileFormatError(f"the index names {home!r}, which is not a {kind} file")
            shards[home] = shard
            metadata |= shard.metadata
    for name, home in homes.items():
        if name not in shards[home]._tensors:
            raise FileFormatError(f"the index says that {name!r} is in {home!r}, but it is not")
    tensors = [shards[home]._tensors[name] for name, home in homes.items()]
    unlisted = [repr(name) for home, shard in shards.items() for name in shard if homes.get(name) != home]
    notes = [f"{index.path.name} does not list {list_some(unlisted, _MAX_NAMED)}, left out"] if unlisted else []
    return TensorFile(index.path, f"sharded {kind}", tensors, metadata, notes)


def _read_shard(index: SourceFile, follow_symlinks: bool, home: str) -> TensorFile:
    """Return the tensors of a file that an index names."""
    try:
        file = index.open_beside(home, follow_symlinks)
        with _name_file_in_errors(file.path):
            kind, tensors, metadata = read_tensors(file)  # an index must not name another one
            return TensorFile(file.path, kind, tensors, metadata)
    except FileNotFoundError:
        raise FileFormatError(f"the index names {home!r}, which does not exist; download it") from None


def _read_directory(folder: Path, follow_symlinks: bool) -> TensorFile:
    """Return the tensors of a directory; its notes name the files of tensors that were not chosen."""
    result = _read_chosen_files(folder, follow_symlinks)
    used = {os.path.realpath(path) for path in result.files}  # links of a hub point elsewhere
    beside = [path for path in sorted(folder.iterdir()) if path.name.endswith(SUFFIXES) and path.is_file()]
    unread = [repr(path.name) for path in beside if os.path.realpath(path) not in used]
    if unread and len(unread) < len(beside):  # else all that was read is elsewhere
        verb = "is" if len(unread) == 1 else "are"
        result.notes = (*result.notes, f"{folder} also has {list_some(unread, _MAX_NAMED)}, which {verb} not read")
    return result


def _read_chosen_files(folder: Path, follow_symlinks: bool) -> TensorFile:
    names = sorted([item.name for item in folder.iterdir() if not item.name.startswith(".")])
    main, fallback = [[name for name in names if name.endswith(suffix)] for suffix in INDICES]
    model_files = [name for name in names if Path(name).suffix in MAIN_SUFFIXES or name.endswith(INDEX_SUFFIX)]
    if _CONFIG in names:  # then as transformers chooses
        if _MODEL in names:
            model_files, main = [_MODEL], []
        fallback = [] if _TORCH_MODEL in names else fallback
    indices = main or ([] if model_files or MANIFEST_NAME in names else fallback)
    if len(indices) > 1:
        raise FileFormatError(f"{folder} has several indices: {', '.join(indices)}; give one of them")
    if indices:
        index = resolve_inside(folder, indices[0], follow_symlinks)
        with _name_file_in_errors(index):
            return _read_sharded(SourceFile(folder / indices[0]), follow_symlinks)
    if MANIFEST_NAME in names:
        path = resolve_inside(folder, MANIFEST_NAME, follow_symlinks)
        with _name_file_in_errors(path):
            manifest = read_manifest(path)
            tensors = open_converted_tensors(folder, manifest, follow_symlinks)
            return TensorFile(folder, "converted", tensors, manifest.metadata)
    files = [resolve_inside(folder, name, follow_symlinks) for name in model_files]
    if not files:
        with _name_file_in_errors(folder):
            model = choose_gguf_file(names)
        if model is not None:
            path = resolve_inside(folder, model, follow_symlinks)
            with _name_file_in_errors(path):
                return _read_file(path)
    files = files or _find_fallback_files(folder, names, follow_symlinks)
    if not files:
        for name in names:
            if name.endswith(FOREIGN_SUFFIXES):
                refuse_foreign_file(SourceFile(resolve_inside(folder, name, follow_symlinks)), "")
        below = find_caches_below(folder)
        if len(below) == 1:
            return _read_directory(below[0], follow_symlinks)
        choice = "; its config.json is enough for tilewright fit --machines" if _CONFIG in names else ""
        choice = f"; choose one of those below it: {', '.join(map(str, below[:_MAX_NAMED]))}" if below else choice
        raise FileFormatError(f"{folder} has no tensor files ({', '.join(SUFFIXES)}){choice}")
    tensors = []
    metadata: dict[str, str] = {}
    for path in files:
        with _name_file_in_errors(path):
            file = _read_file(path)
        tensors += file.values()
        metadata |= file.metadata
    return TensorFile(folder, "directory", tensors, metadata)


def _find_fallback_files(folder: Path, names: list[str], follow_symlinks: bool) -> list[Path]:
    """Return the files of the first fallback type in a directory; for PyTorch models, as transformers does."""
    for kind in [*(kind for kind in FILE_KINDS if kind.fallback), *added_kinds()]:
        own = [_TORCH_MODEL] if _TORCH_MODEL in names and _TORCH_MODEL.endswith(kind.suffixes) else names
        paths = [resolve_inside(folder, name, follow_symlinks) for name in own if name.endswith(kind.suffixes)]
        files = [path for path in paths if find_file_kind(SourceFile(path)) is kind]
        if files:
            return files
    return []


def find_caches_below(folder: Path) -> list[Path]:
    """Return the folders below one that hold tensorbin files, as weight caches do; links are not followed.

    >>> find_caches_below(Path("no such folder"))
    []
    """
    caches = {path.parent for depth in _CACHE_DEPTHS for path in folder.glob(depth)}
    return sorted([cache for cache in caches if cache.resolve() == folder.resolve() / cache.relative_to(folder)])


# `store_arrays`: arrays in memory as the tensors of a file.


def store_arrays(arrays: Mapping[str, Any]) -> TensorFile:
    """Return arrays, including other libraries' arrays on the host, as if they had been read from a file.

    >>> import numpy as np
    >>> store_arrays({"w": np.ones((2, 3), np.float32)})["w"].read().tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    return TensorFile(Path("arrays"), "arrays", [_store(str(name), array) for name, array in arrays.items()])


def _store(name: str, value: object) -> StoredTensor:
    if isinstance(value, StoredTensor):
        return value
    array = as_host_array(value)
    element = find_scalar_format(array)
    if element is None:
        raise FormatError(f"{name}: expected an array of numbers, got dtype {array.dtype}")
    source = ArraySource(name, array.astype(array.dtype.newbyteorder("="), copy=False))
    return StoredTensor.dense(name, str(array.dtype), array.shape, element, source, 0, source.size)
