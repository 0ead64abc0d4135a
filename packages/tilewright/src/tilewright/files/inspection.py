# SPDX-License-Identifier: Apache-2.0
"""`inspect`: the tensors of a file or directory, from its headers alone; and single tiles and elements, decoded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from .._text import count_of, format_bytes, format_count, format_extents, format_table, spell_extents
from ..display import Drawable
from ..errors import LayoutError
from ..findings import plain_data
from ..memory import ChipLike, DeviceLike, MemoryConfig, Mesh, TensorSpec, format_devices, format_steps
from .quantized import PendingTensor
from .source import is_url
from .spec_json import spec_to_json
from .stored_tensor import DevicePart, StoredTensor
from .tensor_file import TensorFile, open_tensors, select_names
from .tensor_values import DecodedTile, StoredElement, read_element, read_tile

_MAX_KINDS = 5  # of placements that are counted, and of problems that are listed
_MAX_VALUE, _MIN_VALUE = 60, 20  # characters of metadata: without a width, and in the narrowest one


@dataclass(frozen=True, slots=True)
class StoredSection:
    """A tensor of the file that a quantised tensor is made from: its codes, or its scales.

    >>> StoredSection("w_scale", (4, 1), "F32", "w.safetensors", (64, 80)).shape
    (4, 1)
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    path: str
    byte_range: tuple[int, int]


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """One tensor of a file: its name, shape, format, placement, byte range and padding.

    On a `mesh` of devices, `shape` is the shape of the entire tensor, `spec` the spec of each device's part, and
    `parts` lists the devices of each part. The `sections` of a quantised tensor are its codes and scales. `problem`
    is the reason why values cannot be read, if they cannot.

    >>> TensorFacts("x", (60, 90), "bfloat8_b", "U8", None, "x.npy", (0, 6528), 0).nbytes
    6528
    """

    name: str
    shape: tuple[int, ...]
    format: str | None
    kind: str
    spec: TensorSpec | None
    path: str
    byte_range: tuple[int, int]
    padding_bytes: int
    mesh: Mesh | None = None
    parts: tuple[DevicePart, ...] = ()
    sections: tuple[StoredSection, ...] = ()
    problem: str | None = None

    @property
    def nbytes(self) -> int:
        """The bytes that the tensor takes, with all its sections.

        >>> TensorFacts("x", (2,), "uint8", "u1", None, "x.npy", (128, 130), 0).nbytes
        2
        """
        if self.sections:
            return sum([section.byte_range[1] - section.byte_range[0] for section in self.sections])
        return self.byte_range[1] - self.byte_range[0]

    @property
    def placed(self) -> str:
        """A description of the layout.

        >>> TensorFacts("x", (2,), "uint8", "u1", None, "x.npy", (128, 130), 0).placed
        'rows'
        """
        if self.spec is None:
            return "rows"
        paged = f"tiles {self.spec.tile}" if self.spec.is_tiled else "rows"
        return paged if self.spec.memory == MemoryConfig() else f"{paged}, {self.spec.memory}"

    @property
    def row(self) -> tuple[str, ...]:
        """The texts of a table: shape, format, size, padding and mesh.

        >>> TensorFacts("x", (2,), "uint8", "u1", None, "x.npy", (128, 130), 0).row
        ('2', 'uint8', '2 bytes', '-', '-')
        """
        share = f"{100 * self.padding_bytes / self.nbytes:.3g} %" if self.padding_bytes else "-"
        mesh = "-" if self.mesh is None else self.mesh.summary
        return spell_extents(self.shape, "scalar"), self.format or self.kind, format_bytes(self.nbytes), share, mesh

    def __str__(self) -> str:
        shape = format_extents(self.shape, "scalar")
        lines = [
            ("tensor", self.name),
            ("shape", shape),
            ("format", self.format or f"unknown ({self.kind})"),
            ("layout", self.placed),
            ("file", self.path),
            ("bytes", f"{self.nbytes}, from {self.byte_range[0]} to {self.byte_range[1]}"),
            ("padding", f"{self.padding_bytes} bytes ({100 * self.padding_bytes / max(1, self.nbytes):.3g} %)"),
        ]
        if self.problem is not None:
            lines.append(("problem", self.problem))
        if self.mesh is not None:
            lines.insert(2, ("mesh", str(self.mesh)))
        if self.spec is not None:
            lines.append(("spec" if self.mesh is None else "part spec", repr(self.spec)))
        return "\n".join([format_steps(lines), *self._section_lines(), *self._part_lines()])

    def _section_lines(self) -> list[str]:
        """Return a table of the tensors of the file that a quantised tensor is made from."""
        if not self.sections:
            return []
        rows = [("section", "shape", "type", "bytes in the file")]
        for part in self.sections:
            start, end = part.byte_range
            rows.append((part.name, spell_extents(part.shape, "scalar"), part.kind, f"{start} to {end}"))
        return format_table(rows)

    def _part_lines(self) -> list[str]:
        """Return a table of the parts of a mesh: the devices that hold each, its box, and its bytes in the file."""
        if not self.parts:
            return []
        rows = [("devices", "hold", "bytes in the file")]
        for part in self.parts:
            ranges = [f"{a}:{a + n}" for a, n in zip(part.box.offset, part.box.shape, strict=True)]
            start, end = part.byte_range
            rows.append((format_devices(part.devices), f"[{', '.join(ranges)}]", f"{start} to {end}"))
        return format_table(rows)

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs.

        >>> TensorFacts("x", (2,), "uint8", "u1", None, "x.npy", (128, 130), 0).to_json()["nbytes"]
        2
        """
        result = {field.name: getattr(self, field.name) for field in fields(self)}
        spec = None if self.spec is None else spec_to_json(self.spec)
        mesh = None if self.mesh is None else self.mesh.to_json()
        parts = [part.to_json() for part in self.parts]
        sections = [plain_data(section) for section in self.sections]
        return {**result, "spec": spec, "mesh": mesh, "parts": parts, "sections": sections, "nbytes": self.nbytes}


class Inspection(Drawable):
    """The content of a file or directory: its kind, its files, the metadata of its headers, and a summary per tensor.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((2, 3), np.float32))
    ...     inspection = inspect(folder)
    ...     inspection.kind, [(tensor.name, tensor.shape, tensor.format) for tensor in inspection.tensors]
    ('directory', [('x', (2, 3), 'float32')])
    """

    def __init__(self, file: TensorFile) -> None:
        self.file = file

    @cached_property
    def tensors(self) -> tuple[TensorFacts, ...]:
        """The summaries of all tensors."""
        return tuple([_summarize(tensor) for tensor in self.file.headers])

    @cached_property
    def _examples(self) -> list[TensorFacts]:
        """For each tensor the summary of the first one that differs from it only in its name and its place."""
        examples: dict[Hashable, TensorFacts] = {}
        result = []
        for tensor in self.file.headers:
            key: Hashable = id(tensor)
            if isinstance(tensor, PendingTensor):
                key = id(tensor.like)
            elif type(tensor) is StoredTensor and tensor.spec is None:
                start, end = tensor.byte_range
                key = (tensor.shape, tensor.kind, id(tensor.format), end - start)
            if key not in examples:
                examples[key] = _summarize(tensor)
            result.append(examples[key])
        return result

    @cached_property
    def _counts(self) -> list[tuple[TensorFacts, int]]:
        """Each example, and how many tensors are like it."""
        counts = Counter(map(id, self._examples))
        return [(example, counts[key]) for key, example in {id(facts): facts for facts in self._examples}.items()]

    @property
    def path(self) -> str:
        """The path that was inspected."""
        return str(self.file.path)

    @property
    def kind(self) -> str:
        """The file type."""
        return self.file.kind

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the headers."""
        return dict(self.file.metadata)

    @property
    def nbytes(self) -> int:
        """The bytes of all tensors."""
        return self.file.nbytes

    def tile(self, name: str, row: int, column: int) -> DecodedTile:
        """Return one decoded tile of tensor `name`, by its `row` and `column` in the tensor folded to a matrix.

        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/x.npy", np.arange(100 * 40).reshape(100, 40))
        ...     inspect(folder).tile("x", 3, 1).start
        (96, 32)
        """
        return read_tile(self._find(name), row, column)

    def element(self, name: str, coordinate: Iterable[int], chip: ChipLike = "wormhole_n150") -> StoredElement:
        """Return the element of tensor `name` at `coordinate`: its value, its file offset, and its location on `chip`.

        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/x.npy", np.arange(6, dtype=np.int16).reshape(2, 3))
        ...     inspect(folder).element("x", (1, 2)).offset
        138
        """
        return read_element(self._find(name), coordinate, chip)

    def facts(self, name: str) -> TensorFacts:
        """Return the summary of tensor `name`.

        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/x.npy", np.zeros((2, 3), np.float32))
        ...     inspect(folder).facts("x").placed
        'rows'
        """
        return _summarize(self._find(name))

    def _find(self, name: str) -> StoredTensor:
        try:
            return self.file[name]
        except KeyError as problem:
            raise LayoutError(str(problem.args[0])) from None

    def _file_sizes(self) -> dict[Path, int]:
        """Return the sizes of the files that hold the tensors."""
        sources = {source.path: source for source in self.file.sources}
        return {path: file.size if is_url(path) else path.stat().st_size for path, file in sources.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            "path": self.path,
            "kind": self.kind,
            "files": [{"path": str(path), "nbytes": size} for path, size in self._file_sizes().items()],
            "metadata": self.metadata,
            "nbytes": self.nbytes,
            "elements": sum([prod(tensor.shape) for tensor in self.tensors]),
            "parameters": self.parameters,
            "totals": self.totals(),
            "padding_bytes": sum([tensor.padding_bytes for tensor in self.tensors]),
            "tensors": [tensor.to_json() for tensor in self.tensors],
            "notes": list(self.file.notes),
        }

    def select(self, patterns: Iterable[str]) -> tuple[TensorFacts, ...]:
        """Return the summaries of the tensors with these names, or whose names match these shell patterns.

        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/m.npz", wq=np.zeros(2), wk=np.zeros(2), b=np.zeros(2))
        ...     [tensor.name for tensor in inspect(folder).select(["w*"])]
        ['wq', 'wk']
        """
        return tuple([self.facts(name) for name in select_names(list(self.file), list(patterns))])

    def table(self, width: int | None = None, tensors: Sequence[TensorFacts] | None = None) -> str:
        """Return a line for each of `tensors`, by default all; names are shortened to fit `width`, if it is given.

        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/x.npy", np.zeros((2, 3), np.float32))
        ...     print(inspect(folder).table())
        tensor  shape  format   size      padding
        x       2x3    float32  24 bytes  -
        """
        names = list(self.file) if tensors is None else [tensor.name for tensor in tensors]
        examples = self._examples if tensors is None else tensors
        last = None if any(example.mesh is not None for example in examples) else -1  # the mesh, if there is one
        cells = {id(example): example.row[:last] for example in {id(facts): facts for facts in examples}.values()}
        rows = [("tensor", *("shape", "format", "size", "padding", "mesh")[:last])]
        rows += [(name, *cells[id(example)]) for name, example in zip(names, examples, strict=True)]
        return "\n".join(format_table(rows, width))

    def text(self, width: int | None = None, table: bool = True) -> str:
        """Return everything as text, or without the `table` of tensors; names are shortened to fit `width`, if given.

        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/x.npy", np.zeros((2, 3), np.float32))
        ...     inspect(folder).text().splitlines()[-1]
        '1 tensor in rows'
        """
        files = self._file_sizes()
        size = sum(files.values())
        counts = f"{count_of(len(self.file), 'tensor')}, {format_bytes(size)} in {count_of(len(files), 'file')}"
        lines = [f"{self.path}: {self.kind}, {counts}, {format_count(self.parameters)} parameters"]
        lines += [_format_pair(key, value, width) for key, value in sorted(self.metadata.items())]
        placed: Counter[str] = Counter()
        for example, count in self._counts:
            placed[example.placed] += count
        layouts = [f"{count_of(count, 'tensor')} in {how}" for how, count in placed.most_common(_MAX_KINDS)]
        rest = sum(placed.values()) - sum([count for _, count in placed.most_common(_MAX_KINDS)])
        layouts += [f"{count_of(rest, 'tensor')} in {len(placed) - _MAX_KINDS} other ways"] if rest else []
        unread: dict[str, list[str]] = {}  # the names of tensors by their problem
        for name, facts in zip(self.file, self._examples, strict=True):
            if facts.problem is not None:
                unread.setdefault(facts.problem, []).append(name)
        problems = []
        for problem, names in list(unread.items())[:_MAX_KINDS]:
            what, listed = (f"{len(names)} tensors", names[:_MAX_KINDS]) if len(names) > 1 else (names[0], [])
            problems += [f"{what} cannot be read: {problem}", *[f"  {name}" for name in listed]]
            problems += [f"  and {len(names) - _MAX_KINDS} more"] if len(names) > _MAX_KINDS else []
        types = [
            f"{total['format']}: {count_of(total['tensors'], 'tensor')}, {format_count(total['elements'])} elements,"
            f" {format_bytes(total['nbytes'])}"
            for total in self.totals()
        ]
        types = [] if table and len(types) == 1 else types  # of one type, the first line has them
        notes = [f"note: {note}" for note in self.file.notes]
        return "\n".join([*lines, *([self.table(width)] if table else []), *types, *layouts, *problems, *notes])

    @property
    def parameters(self) -> int:
        """The number of values of all tensors that are not integers or bools."""
        whole = ("int", "uint", "bool")
        return sum([total["elements"] for total in self.totals() if not str(total["format"]).startswith(whole)])

    def totals(self) -> list[dict[str, Any]]:
        """Return tensors, elements and bytes of each type, the type with the most bytes first.

        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/m.npz", w=np.zeros((2, 3), np.float32), i=np.arange(4))
        ...     inspect(folder).totals()[0]
        {'format': 'int64', 'tensors': 1, 'elements': 4, 'nbytes': 32}
        """
        totals: dict[str, dict[str, Any]] = {}
        for tensor, count in self._counts:
            name = tensor.format or tensor.kind
            total = totals.setdefault(name, {"format": name, "tensors": 0, "elements": 0, "nbytes": 0})
            for key, amount in (("tensors", 1), ("elements", prod(tensor.shape)), ("nbytes", tensor.nbytes)):
                total[key] += count * amount
        return sorted(totals.values(), key=lambda total: -int(total["nbytes"]))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Inspection of {self.path}: {self.kind}, {count_of(len(self.file), 'tensor')}>"


def inspect(
    path: str | os.PathLike[str], follow_symlinks: bool = False, *, device: DeviceLike | None = None
) -> Inspection:
    """Return the content of a file or directory: tensors, formats, specs, sizes, padding. Only headers are read.

    `path` is anything that `open_tensors` takes; `follow_symlinks` allows links that point outside of a directory.
    `device` is one device of a mesh, by coordinate or number: of tensors on a mesh, only its parts are listed.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/x.npz", a=np.zeros((2, 3)))
    ...     inspect(f"{folder}/x.npz").tensors[0].byte_range[1] > 0
    True
    """
    file = open_tensors(path, follow_symlinks)
    return Inspection(file if device is None else file.on_device(device))


def _summarize(tensor: StoredTensor | PendingTensor) -> TensorFacts:
    spec, sections = tensor.spec, tensor.sections
    padding = 0
    if spec is not None:
        stored = tensor.nbytes if tensor.mesh is None else len(tensor.parts) * spec.nbytes
        padding = stored - tensor.size * spec.page_bytes // spec.page_elements
    return TensorFacts(
        tensor.name,
        tensor.shape,
        tensor.format_name,
        tensor.kind,
        tensor.spec,
        str(tensor.path),
        tensor.byte_range,
        padding,
        tensor.mesh,
        tensor.device_parts,
        ()
        if sections[0] is tensor
        else tuple(
            [StoredSection(part.name, part.shape, part.kind, str(part.path), part.byte_range) for part in sections]
        ),
        tensor.problem,
    )


def _format_pair(key: str, value: str, width: int | None) -> str:
    """Return a line of metadata, of at most `width` characters if that is given, without control characters."""
    name = "".join([c if c.isprintable() else "\ufffd" for c in key])
    words = "".join([c if c.isprintable() else "\ufffd" for c in " ".join(value.split())])
    most = _MAX_VALUE if width is None else max(_MIN_VALUE, width - len(name) - 4)
    return f"  {name}: {words if len(words) <= most else words[: most - 3] + '...'}"
