# SPDX-License-Identifier: Apache-2.0
"""The tab of files: the tensors of a file by its header, and how each would be placed on a chip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from .._text import spell_extents
from ..errors import FileFormatError, TilewrightError
from ..files import TensorFacts, inspect
from ..formats import format_of
from ..memory import TensorSpec
from ..views.scenes.memory_maps import inspection_scene
from .form import DEFAULT_CHIP, FieldError, render_for_page, spell_mesh, spell_spec

SUFFIXES = (".safetensors", ".gguf", ".tensorbin", ".npy")
MAX_BYTES = 64 << 20  # of the start of a file
MAX_FILE = 1 << 50
MAX_TENSORS = 1000  # that are listed
MAX_DRAWN = 300  # tensors in the picture of a file
MAX_ENTRIES = 40  # of metadata
MAX_VALUE = 200  # characters of an entry


def describe_file(path: Path) -> dict[str, Any]:
    """Return the header of the file at `path`: its type, its metadata and its tensors.

    >>> with start_of_file("x.npy", 0, b"") as path:
    ...     try:
    ...         describe_file(path)
    ...     except FieldError as problem:
    ...         problem.field
    'file'
    """
    try:
        inspection = inspect(path)
    except (TilewrightError, OSError) as problem:
        raise FieldError("file", str(problem).replace(f"{path.parent}/", "")) from None
    tensors = inspection.tensors
    return {
        "name": path.name,
        "kind": inspection.kind,
        "bytes": inspection.nbytes,
        "padding": sum([tensor.padding_bytes for tensor in tensors]),
        "count": len(tensors),
        "metadata": [[name, value[:MAX_VALUE]] for name, value in list(inspection.metadata.items())[:MAX_ENTRIES]],
        "tensors": [_describe_tensor(tensor) for tensor in tensors[:MAX_TENSORS]],
        "scene": render_for_page(inspection_scene(inspection)) if 0 < len(tensors) <= MAX_DRAWN else None,
    }


def _describe_tensor(tensor: TensorFacts) -> dict[str, Any]:
    """Return a tensor for the page; `words` fill the form of the tab Tensor, and `note` states the assumptions."""
    words, note = _spell_tensor(tensor)
    return {
        "name": tensor.name,
        "shape": spell_extents(tensor.shape, "scalar"),
        "format": tensor.format or tensor.kind,
        "placed": tensor.placed,
        "bytes": tensor.nbytes,
        "padding": tensor.padding_bytes,
        "problem": tensor.problem,
        "words": words,
        "note": note,
    }


def _spell_tensor(tensor: TensorFacts) -> tuple[dict[str, str] | None, str]:
    """Return the fields of a tensor's placement, and how it was found; None for one that has none."""
    try:
        if tensor.spec is not None:
            spec = tensor.spec if tensor.spec.chip is not None else tensor.spec.with_chip(DEFAULT_CHIP)
            words = spell_spec(spec)
            return (words if tensor.mesh is None else words | spell_mesh(tensor.mesh)), "As the file says."
        dtype = "bfloat16"
        note = "The file has no placement: drawn as ttnn places it by default, in tiles over the DRAM banks"
        if tensor.format is not None and _is_tiled_format(tensor.format):
            dtype, note = tensor.format, f"{note}."
        else:
            note = f"{note}, as bfloat16."
        return spell_spec(TensorSpec(tensor.shape, dtype, "tile", chip=DEFAULT_CHIP)), note
    except TilewrightError as problem:
        return None, str(problem)


def _is_tiled_format(name: str) -> bool:
    try:
        TensorSpec((32, 32), format_of(name), "tile", chip=DEFAULT_CHIP)
    except TilewrightError:
        return False
    return True


@contextmanager
def start_of_file(name: str, size: int, start: bytes) -> Iterator[Path]:
    """Yield the path of a temporary file with this `name`, `size` and `start`; the rest of it is a hole.

    >>> with start_of_file("a/x.npy", 100, b"abc") as path:
    ...     path.name, path.stat().st_size, path.read_bytes()[:4]
    ('x.npy', 100, b'abc\\x00')
    """
    base = PurePosixPath(name.replace("\\", "/")).name
    if Path(base).suffix not in SUFFIXES or not base.isprintable() or len(base) > 200:
        raise FieldError("file", f"{base[:200]!r} has an unknown suffix; use one of {', '.join(SUFFIXES)}")
    if not len(start) <= size <= MAX_FILE:
        raise FieldError("file", f"expected {len(start)} to {MAX_FILE} bytes as size, got {size}")
    with TemporaryDirectory(prefix="tilewright-") as folder:
        path = Path(folder, base)
        with path.open("wb") as file:
            file.write(start)
            try:
                file.truncate(size)
            except OSError as problem:
                raise FileFormatError(f"no temporary file of {size} bytes for {base}: {problem}") from None
        yield path
