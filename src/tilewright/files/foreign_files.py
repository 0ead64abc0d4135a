# SPDX-License-Identifier: Apache-2.0
"""Files that are not read: what they are, and how their tensors become files that are."""

from __future__ import annotations

from pathlib import Path

from ..errors import FileFormatError

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_MAX_POINTER_BYTES = 1024
_TORCH = (
    "a PyTorch checkpoint",
    "save it as safetensors: safetensors.torch.save_file(torch.load(path, weights_only=True), 'model.safetensors')",
)
_GGUF = ("a GGUF file of llama.cpp under another name", "rename it to end in .gguf")
_HDF5 = ("an HDF5 file", "save its datasets with numpy.savez, or safetensors.numpy.save_file")
_MAGIC = {b"GGUF": _GGUF, b"\x89HDF": _HDF5}
_SUFFIXES = {
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".bin"), _TORCH),
    **dict.fromkeys((".h5", ".hdf5", ".keras"), _HDF5),
    ".onnx": (
        "an ONNX model",
        "save what onnx.numpy_helper.to_array returns for each of onnx.load(path).graph.initializer with numpy.savez",
    ),
    ".msgpack": ("a Flax checkpoint", "save it with safetensors.flax.save_file"),
    **dict.fromkeys((".pkl", ".pickle"), ("a pickle", "save its arrays with numpy.savez")),
}
FOREIGN_SUFFIXES = tuple(_SUFFIXES)


def refuse_foreign_file(path: Path, known: str) -> None:
    """Raise an error that says what the file at `path` is, and the next step; `known` lists the suffixes that are read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.h5")
    ...     _ = path.write_bytes(b"")
    ...     try:
    ...         refuse_foreign_file(path, ".npy")
    ...     except FileFormatError as problem:
    ...         print(str(problem).removeprefix(folder).partition(";")[0])
    /model.h5 is an HDF5 file, which tilewright does not read
    """
    refuse_lfs_pointer(path)
    kind = _MAGIC.get(_read_start(path, 4)) or _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise FileFormatError(f"{path} has unknown suffix {path.suffix!r}; known suffixes: {known}")
    raise FileFormatError(f"{path} is {kind[0]}, which tilewright does not read; {kind[1]}")


def refuse_lfs_pointer(path: Path) -> None:
    """Raise an error if a file is a pointer that Git LFS left in the place of the file.

    >>> refuse_lfs_pointer(Path(__file__))
    """
    if path.stat().st_size <= _MAX_POINTER_BYTES and _read_start(path, len(_LFS_POINTER)) == _LFS_POINTER:
        raise FileFormatError(f"{path} is a Git LFS pointer, not the file itself; download it with: git lfs pull")


def _read_start(path: Path, size: int) -> bytes:
    if not path.is_file():  # a device or a named pipe may never answer
        return b""
    with path.open("rb") as file:
        return file.read(size)
