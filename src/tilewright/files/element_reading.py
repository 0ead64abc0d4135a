# SPDX-License-Identifier: Apache-2.0
"""`ElementReading`: one element of a stored tensor: its value, its bytes in the file, and its way on a chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import FormatError
from ..formats import BlockFormat
from ..memory import Explanation, TensorSpec, explain
from ..memory.explanation import format_steps, scale_name
from ..memory.where import validate_coordinate
from ..showing import Shown
from .mesh import Coordinate, Mesh
from .stored_tensor import StoredTensor

_MOST_DEVICES = 8  # that are named


@dataclass(frozen=True, slots=True)
class ElementReading(Shown):
    """An element of a stored tensor: `offset` is the byte of its value in the file, `scale_offset` that of its scale.

    Where a mesh of devices shares the tensor, the explanation is that of the part of `devices`, which all hold it.

    >>> import tempfile, numpy
    >>> from tilewright.files import inspect
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.arange(6.0).reshape(2, 3))
    ...     found = inspect(folder).element("x", (1, 2))
    >>> found.value, found.offset
    (5.0, 168)
    """

    name: str
    path: str
    value: float
    offset: int
    scale_offset: int | None
    explanation: Explanation
    devices: tuple[Coordinate, ...] = ()
    mesh: Mesh | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        stored: dict[str, Any] = {"name": self.name, "path": self.path, "value": self.value}
        if self.mesh is not None:
            stored |= {"mesh": self.mesh.to_json(), "devices": [list(each) for each in self.devices]}
        return {**stored, "offset": self.offset, "scale_offset": self.scale_offset, **self.explanation.to_json()}

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps of its way, with the value and the bytes in the file before them."""
        also = scale_name(self.explanation.spec)
        shared = "" if self.scale_offset is None else f", its {also} at byte {self.scale_offset}"
        stored = [("reads", f"{self.value!r}"), ("file", f"{self.path}, at byte {self.offset}{shared}")]
        if self.mesh is not None:
            holders = ", ".join(map(str, self.devices[:_MOST_DEVICES]))
            more = f" and {len(self.devices) - _MOST_DEVICES} others" if len(self.devices) > _MOST_DEVICES else ""
            stored.append(("device", f"{holders}{more} of a mesh of {self.mesh}"))
        return [*stored, *self.explanation.steps()]

    def __str__(self) -> str:
        return format_steps(self.steps())


def read_element(tensor: StoredTensor, coordinate: Any, chip: Any, base: int | None = None) -> ElementReading:
    """Return an element of a stored tensor; a tensor that is not placed on a chip is placed on the one given.

    >>> import tempfile, numpy
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.arange(6, dtype=numpy.int16))
    ...     print(read_element(open_tensors(folder)["x"], (5,), "wormhole_n150").explanation.where.bank)
    0
    """
    placed = placed_spec(tensor, chip)
    at = tuple([int(c) for c in coordinate])
    validate_coordinate(at, tensor.shape)
    devices, inside = ((), at) if tensor.mesh is None else tensor.mesh.locate(at)
    too_large = placed.allocated_bytes > placed.known_chip.bank_bytes(placed.memory.buffer_type)
    found = explain(placed, inside, 0 if base is None and too_large else base)  # a file may hold what no chip does
    value = tensor.read(tuple([slice(c, c + 1) for c in at])).reshape(-1)[0].item()
    offset, scale_offset = _bytes_in_file(tensor, at)
    return ElementReading(tensor.name, str(tensor.path), value, offset, scale_offset, found, devices, tensor.mesh)


def placed_spec(tensor: StoredTensor, chip: Any) -> TensorSpec:
    """Return the spec of a stored tensor, on the chip given if the file names none; rows for one that is not placed.

    >>> import tempfile, numpy
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.arange(6, dtype=numpy.int16))
    ...     print(placed_spec(open_tensors(folder)["x"], "n150"))
    [6] int16 in rows, interleaved in DRAM, wormhole_n150
    """
    if tensor.format is None:
        raise FormatError(f"{tensor.name} has elements of type {tensor.kind}, for which there is no number format here")
    spec = tensor.spec or TensorSpec(tensor.shape, tensor.format)
    return spec if spec.chip is not None else spec.with_chip(chip)


def _bytes_in_file(tensor: StoredTensor, at: tuple[int, ...]) -> tuple[int, int | None]:
    """Return where the value of an element is in the file, and the scale of its block if it has one."""
    host = tensor.pages.spec
    laid = tuple([at[d] for d in tensor.order])
    part = next(
        each
        for each in tensor.parts
        if all(a <= c < b for a, c, b in zip(each.box.offset, laid, each.box.end, strict=True))
    )
    inside = [c - a for c, a in zip(laid, part.box.offset, strict=True)]
    page, element = divmod(host.host(*inside), host.page_elements)
    start = page * host.page_bytes
    if tensor.image is not None:
        ((start, _),) = tensor.image.runs([(start, host.page_bytes)])
    start += part.offset
    if not isinstance(host.dtype, BlockFormat):
        return start + element * host.dtype.itemsize, None
    data = host.dtype.sections(host.page_elements).data_offset
    return start + data + element * host.dtype.bits // 8, start + element // host.dtype.block
