# SPDX-License-Identifier: Apache-2.0
"""`open_tensors`: the tensors of a file or directory of any format, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from .._files import as_path
from .._json import expect_string
from .._text import count_of
from ..errors import FileFormatError, LayoutError
from ..memory import DeviceLike
from .bank_image import INDEX_SUFFIX, read_bank_image
from .conversion_manifest import MANIFEST_NAME, open_converted_tensors, read_manifest
from .file_kinds import FILE_KINDS, INDICES, MAIN_SUFFIXES, SUFFIXES, added_kinds, find_file_kind, read_tensors
from .file_names import decode_file_name, find_checkpoint_folder, resolve_inside, validate_tensor_name
from .foreign_files import FOREIGN_SUFFIXES, refuse_foreign_file
from .gguf import choose_gguf_file
from .quantization_config import read_quantization_config
from .quantized_checkpoint import PendingTensor, join_sections
from .remote_file import as_url_path, is_url, open_model_file
from .source_file import FilePath, SourceFile, read_json
from .stored_tensor import StoredTensor

_MODEL, _TORCH_MODEL = "model.safetensors", "pytorch_model.bin"  # what transformers reads of several files
_MAX_INDEX_BYTES = 100_000_000
_CACHE_DEPTHS = ("*/*.tensorbin", "*/*/*.tensorbin", "*/*/*/*.tensorbin")  # of weight caches below their directory
_MAX_NAMED = 4
_MAX_OPENED = 8  # shards at a time


class TensorFile(Mapping[str, StoredTensor]):
    """The tensors at `path`, a file, sharded checkpoint or directory: a mapping from names to `StoredTensor`.

    `kind` is "safetensors", "sharded safetensors", "npy", "npz", "tensorbin", "gguf", "torch", "sharded torch", "onnx",
    "hdf5", "bank image", "converted" (a directory with our manifest) or "directory"; `files` are the paths that hold
    the tensors; `metadata` is the free text that safetensors files carry, or the metadata of a GGUF file. `notes` name
    what is at `path`, and is not among the tensors.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(Path(folder, "x.npz"), a=numpy.zeros(3), b=numpy.ones((2, 2)))
    ...     found = open_tensors(Path(folder, "x.npz"))
    ...     found.kind, list(found), found.nbytes, found["b"].read().tolist()
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
        self._tensors: dict[str, StoredTensor | PendingTensor] = {}
        for tensor in tensors:
            validate_tensor_name(tensor.name)
            if tensor.name in self._tensors:
                places = sorted({str(each.sections[0].path) for each in (self._tensors[tensor.name], tensor)})
                raise FileFormatError(f"tensor {tensor.name!r} exists twice, in {' and '.join(places)}")
            self._tensors[tensor.name] = tensor

    def __getitem__(self, name: str) -> StoredTensor:
        try:
            tensor = self._tensors[name]
        except KeyError:
            near = get_close_matches(str(name), list(self._tensors), 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {count_of(len(self), 'other')}"
            raise KeyError(f"{self.path} has no tensor {name!r}{hint}") from None
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
        """Return what one device of a mesh holds: its parts, and entire tensors that are not on a mesh.

        `device` is a mesh coordinate, or a number in row-major order.

        >>> import tempfile, numpy, tilewright as tw
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros((64, 96)))
        ...     _ = tw.convert(f"{folder}/x.npy", f"{folder}/out", rules={"x": {"mesh": [1, 2], "cut": 1}})
        ...     open_tensors(f"{folder}/out").on_device((0, 1))["x"].shape
        (64, 48)
        """
        if all(tensor.mesh is None for tensor in self.values()):
            raise LayoutError(f"{self.path} has no tensor on a mesh of devices; leave out device {device}")
        parts = [tensor if tensor.mesh is None else tensor.on_device(device) for tensor in self.values()]
        return TensorFile(self.path, self.kind, parts, self.metadata, self.notes)

    @property
    def files(self) -> list[Path]:
        """Return the paths of the files that hold the tensors.

        >>> import tempfile, numpy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
        ...     [path.name for path in open_tensors(folder).files]
        ['x.npy']
        """
        return list(dict.fromkeys([part.path for tensor in self._tensors.values() for part in tensor.sections]))

    @property
    def nbytes(self) -> int:
        """Return the bytes of all tensors.

        >>> import tempfile, numpy
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
        ...     open_tensors(folder).nbytes
        24
        """
        return sum(
            [part.byte_range[1] - part.byte_range[0] for each in self._tensors.values() for part in each.sections]
        )

    def __repr__(self) -> str:
        return f"<TensorFile {self.path}: {self.kind}, {count_of(len(self), 'tensor')}, {self.nbytes} bytes>"


def select_names(names: Sequence[str], patterns: str | Iterable[str]) -> list[str]:
    """Return the names that equal or match shell patterns, in the order of the patterns.

    >>> select_names(["wq", "wk", "b"], "w*")
    ['wq', 'wk']
    """
    result: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        hits = [name for name in names if name == pattern or fnmatchcase(name, pattern)]
        if not hits:
            near = get_close_matches(pattern, names, 1)
            such_as = f", such as {names[0]!r}" if names else ""
            hint = f"did you mean {near[0]!r}?" if near else f"there are {len(names)}{such_as}"
            raise LayoutError(f"no tensor matches {pattern!r}; {hint}")
        result += hits
    return list(dict.fromkeys(result))


def open_tensors(path: FilePath, follow_symlinks: bool = False) -> TensorFile:
    """Return the tensors of a file or directory; headers are read and validated, data is read on demand.

    `path` is a `.safetensors` file (or the index of a sharded one), `.npy`, `.npz`, `.tensorbin`, `.gguf` (or any part
    of a split one), a PyTorch checkpoint (`.pt`, `.pth`, `.bin`, whose pickles are never executed), `.onnx`, `.h5`, the
    index of a bank image, or a directory of these, such as a model of the Hugging Face hub or one of its snapshots, or
    the directory above a single weight cache. It may be a URL, too: `https://host/model.safetensors`, or
    `hf://owner/model[@revision][/file]`; only what is needed is read. Files are recognised by their content, where that
    tells. Codes and scales of quantised checkpoints make one tensor. `follow_symlinks` allows links that point outside
    of a directory (or of the hub's model). Damaged files raise a `FileFormatError`.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(Path(folder, "x.npy"), numpy.zeros(3))
    ...     numpy.save(Path(folder, "y.npy"), numpy.ones(2))
    ...     {name: each.shape for name, each in open_tensors(folder).items()}
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
    if any(tensor.spec is not None for tensor in file.values()):  # made by convert, or by ttnn
        return file
    tensors = join_sections(list(file.values()), lambda: read_quantization_config(open_beside))
    return TensorFile(file.path, file.kind, tensors, file.metadata, file.notes)


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
    homes = {
        expect_string(name, "a name"): expect_string(home, f"the file of {name!r}") for name, home in listed.items()
    }
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
        if name not in shards[home]:
            raise FileFormatError(f"the index says that {name!r} is in {home!r}, but it is not")
    tensors = [shards[home][name] for name, home in homes.items()]
    unlisted = [name for home, shard in shards.items() for name in shard if homes.get(name) != home]
    notes = [f"{index.path.name} does not list {_name_some(unlisted)}, left out"] if unlisted else []
    return TensorFile(index.path, f"sharded {kind}", tensors, metadata, notes)


def _name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(map(repr, names[:_MAX_NAMED])) + more


def _read_shard(index: SourceFile, follow_symlinks: bool, home: str) -> TensorFile:
    """Return the tensors of a file that an index names."""
    try:
        file = index.open_beside(home, follow_symlinks)
        with _name_file_in_errors(file.path):
            kind, tensors, metadata = read_tensors(file)
            return TensorFile(file.path, kind, tensors, metadata)
    except FileNotFoundError:
        raise FileFormatError(f"the index names {home!r}, which does not exist; download it") from None


def _read_directory(folder: Path, follow_symlinks: bool) -> TensorFile:
    """Return the tensors of a directory; files of tensors beside those that were chosen are named in its notes."""
    found = _read_chosen_files(folder, follow_symlinks)
    used = {os.path.realpath(path) for path in found.files}  # links of a hub point elsewhere
    beside = [path for path in sorted(folder.iterdir()) if path.name.endswith(SUFFIXES) and path.is_file()]
    unread = [path.name for path in beside if os.path.realpath(path) not in used]
    if unread and len(unread) < len(beside):  # else all that was read is elsewhere
        verb = "is" if len(unread) == 1 else "are"
        found.notes = (*found.notes, f"{folder} also has {_name_some(unread)}, which {verb} not read")
    return found


def _read_chosen_files(folder: Path, follow_symlinks: bool) -> TensorFile:
    names = sorted([each.name for each in folder.iterdir() if not each.name.startswith(".")])
    main, fallback = [[name for name in names if name.endswith(suffix)] for suffix in INDICES]
    known = [name for name in names if Path(name).suffix in MAIN_SUFFIXES or name.endswith(INDEX_SUFFIX)]
    if "config.json" in names:  # then as transformers chooses
        if _MODEL in names:
            known, main = [_MODEL], []
        fallback = [] if _TORCH_MODEL in names else fallback
    indices = main or ([] if known or MANIFEST_NAME in names else fallback)
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
    files = [resolve_inside(folder, name, follow_symlinks) for name in known]
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
        choice = f"; choose one of those below it: {', '.join(map(str, below[:_MAX_NAMED]))}" if below else ""
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
    """Return the files of the first fallback kind that a directory has; of PyTorch models, that of transformers."""
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
    found = {path.parent for depth in _CACHE_DEPTHS for path in folder.glob(depth)}
    return sorted([each for each in found if each.resolve() == folder.resolve() / each.relative_to(folder)])
