# SPDX-License-Identifier: Apache-2.0
"""`Tensor`: a tensor spec with storage, and the operations on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..copying import copy
from ..copying.host_memory import aligned_empty
from ..errors import LayoutError, MemoryConfigError
from ..formats import BlockFormat, format_of
from ..memory import ChangeKind, Device, PageLayout, SpecChange, TensorSpec, from_bytes, spec_changes, to_bytes
from .pages import moved, page_grid, put_on_device, with_room, without_padding
from .ranges import Ranges, page_ranges
from .stored import StoredTensor
from .tensor_storage import Bytes, HostStorage, StorageType

Array = np.ndarray[Any, Any]


class Tensor(StoredTensor):
    """A tensor: a spec, and the bytes of its pages on the host (owned or borrowed) or on a device.

    Operations return new tensors, whose `made_by` says whether they are a view of the same bytes, a copy, or needed
    an untilize; `tilewright.memory` says the same beforehand, from specs alone. NumPy and DLPack see the logical
    values; `raw` are the bytes of the pages.

    >>> x = Tensor.of(np.arange(6, dtype=np.float32).reshape(2, 3), dtype="bfloat16", page_layout="tile")
    >>> x.shape, x.padded_shape, x.nbytes
    (Shape([2, 3], [32, 32]), (32, 32), 2048)
    >>> y = x.reshape((3, 2))
    >>> print(y.made_by)
    UNTILIZE: [3[32], 2[32]]: elements are taken out of their tiles
    >>> np.asarray(y).astype(int).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """

    __slots__ = ()

    def to_layout(self, layout: Any, tile: Any = None, pad_value: Any = 0) -> Tensor:
        """Return the tensor in rows or tiles, padding filled with a value.

        >>> Tensor.of(np.ones((5, 7))).to_layout("tile").to_layout("row_major").made_by.kind
        ChangeKind.UNTILIZE
        """
        here, wanted = self.settled(), PageLayout.of(layout)
        if wanted is PageLayout.ROW_MAJOR and isinstance(self.dtype, BlockFormat):
            raise MemoryConfigError(
                f"{self.dtype} shares scales inside tiles and has no rows; convert it first, as in to_dtype('float32')"
            )
        kept = here.tile if tile is None and here.layout is wanted else tile
        return here._repaged(spec_changes.retile_spec(here.spec, wanted, kept), pad_value)

    def to_dtype(self, dtype: Any) -> Tensor:
        """Return the tensor in another number format; padding is converted with the data, and blocks get tiles.

        >>> Tensor.of([[1.5, 2.5]]).to_dtype("int32").numpy().tolist()
        [[1, 2]]
        """
        element = format_of(dtype)
        if isinstance(element, BlockFormat) and self.layout is PageLayout.ROW_MAJOR:
            return self.to_layout("tile").to_dtype(element)
        here = self if self._start is None else self.settled()
        change = spec_changes.convert_spec(here.spec, element)
        if element == here.dtype:
            return here._viewed(change)
        return here._filled(change, moved(here.pages, without_padding(here.spec), without_padding(change.spec)))

    def to_memory_config(self, memory: Any) -> Tensor:
        """Return the tensor in another memory; on a device its pages move there.

        >>> Tensor.of([[1, 2]]).to_memory_config("l1").memory
        MemoryConfig('interleaved', 'l1')
        """
        here = self.settled()
        return here._repaged(spec_changes.reshard_spec(here.spec, memory), 0)

    def to_device(self, device: Device, memory: Any = None) -> Tensor:
        """Return the tensor on a device, in the memory it is meant for or in another.

        >>> on_chip = Tensor.of([[1, 2]]).to_device(Device("wormhole_n150"), "l1")
        >>> on_chip.storage_type, on_chip.numpy().tolist()
        (<StorageType.DEVICE: 2>, [[1, 2]])
        """
        if self.device is device:
            return self if memory is None else self.to_memory_config(memory)
        ready = self.from_device() if self._start is None else self.settled()
        ready = ready if memory is None else ready.to_memory_config(memory)
        spec = ready.spec.with_chip(device.chip)
        change = SpecChange(spec, ChangeKind.COPY, ChangeKind.COPY, f"pages move to {device.chip.name}")
        return Tensor(spec, put_on_device(ready.pages, spec, device), change)

    def from_device(self) -> Tensor:
        """Return the tensor on the host; it keeps the memory config it had.

        >>> Tensor.of([[1, 2]]).to_device(Device("wormhole_n150")).from_device().storage_type
        <StorageType.OWNED_HOST: 0>
        """
        if self.device is None:
            return self
        change = SpecChange(self.spec, ChangeKind.COPY, ChangeKind.COPY, f"pages move from {self.device.chip.name}")
        return Tensor(self.spec, HostStorage(self.pages, StorageType.OWNED_HOST), change)

    def reshape(self, *shape: Any) -> Tensor:
        """Return the same elements in another shape; one extent may be -1.

        >>> Tensor.of([[1, 2], [3, 4]]).reshape(4).numpy().tolist()
        [1, 2, 3, 4]
        """
        here = self.settled()
        extents = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        change = spec_changes.reshape_spec(here.spec, extents)
        if here._kind(change) is ChangeKind.VIEW:
            return here._viewed(change)
        return here._filled(change, to_bytes(here.numpy().reshape(change.spec.shape.logical), change.spec))

    def permute(self, *order: Any) -> Tensor:
        """Return the tensor with its dimensions in another order.

        >>> Tensor.of([[1, 2], [3, 4]]).permute(1, 0).numpy().tolist()
        [[1, 3], [2, 4]]
        """
        here, rank = self.settled(), self.shape.rank
        given = order[0] if len(order) == 1 and not isinstance(order[0], int) else order
        dims = [d % rank if -rank <= d < rank else d for d in given]
        if sorted(dims) != list(range(rank)):
            raise LayoutError(f"{list(given)} is no order of the {rank} dimensions of {self.shape!r}; name each once")
        if dims == list(range(rank)):
            return here._viewed(_nothing(here.spec))
        change = spec_changes.transpose_spec(here.spec, *dims)
        kind = here._kind(change)
        if kind is ChangeKind.VIEW:
            return here._viewed(change)
        if kind is ChangeKind.COPY and here.layout is PageLayout.TILE and dims[-2:] == [rank - 2, rank - 1]:
            return here._gathered(change, page_grid(here.pages, here.spec).transpose(*dims, rank))
        return here._filled(change, to_bytes(here.numpy().transpose(*dims), change.spec))

    def transpose(self, one: int, other: int) -> Tensor:
        """Return the tensor with two dimensions exchanged.

        >>> Tensor.of([[1, 2], [3, 4]]).transpose(0, 1).numpy().tolist()
        [[1, 3], [2, 4]]
        """
        order = list(range(self.shape.rank))
        try:
            order[one], order[other] = order[other], order[one]
        except IndexError:
            raise LayoutError(f"{self.shape!r} has no dimensions {one} and {other} to exchange") from None
        return self.permute(order)

    def slice(self, *ranges: Any) -> Tensor:
        """Return a part: slices and indices, one for each dimension; dimensions stay.

        >>> Tensor.of([[1, 2], [3, 4]]).slice(slice(0, 2), 1).numpy().tolist()
        [[2], [4]]
        """
        here = self.settled()
        taken = Ranges.of(ranges, here.shape.logical)
        if taken.shape == here.shape.logical:
            return here._viewed(_nothing(here.spec))
        if any(step != 1 for step in taken.steps):
            change = _strided(here.spec, taken)
        else:
            change = spec_changes.slice_spec(
                here.spec, *[slice(a, b) for a, b in zip(taken.starts, taken.stops, strict=True)]
            )
        if here._kind(change) is ChangeKind.VIEW:
            return here._viewed(change, here.spec.host(*taken.starts))
        tiles = page_ranges(here.spec, taken)
        if tiles is not None:
            return here._gathered(change, page_grid(here.pages, here.spec)[tiles.slices])
        return here._filled(change, to_bytes(here.numpy()[taken.slices], change.spec))

    def __getitem__(self, ranges: Any) -> Tensor:
        return self.slice(*(ranges if isinstance(ranges, tuple) else (ranges,)))

    def pad(self, padded_shape: Any, start: Any = None, value: Any = 0) -> Tensor:
        """Return the tensor with more padding, from `start` on the data and around them a value; rows only.

        >>> padded = Tensor.of(np.array([[1, 2]], np.uint8)).pad((2, 4), (0, 1), 9)
        >>> padded.pages.tolist(), padded.numpy().tolist()
        ([9, 1, 2, 9, 9, 9, 9, 9], [[1, 2]])
        """
        here = self.settled()
        spec, begin = with_room(here.spec, padded_shape, start)
        change = SpecChange(spec, ChangeKind.COPY, ChangeKind.COPY, "padding is put around the data")
        values = here.numpy()
        whole = np.full(spec.padded_shape, value, values.dtype)
        copy(values, whole[tuple([slice(at, at + n) for at, n in zip(begin, here.shape, strict=True)])])
        made = here._filled(change, to_bytes(whole, without_padding(spec)))
        made._start = begin if any(begin) else None
        return made

    def unpad(self, start: Any, end: Any) -> Tensor:
        """Return the box from start up to, not including, end; the box may reach into the padding. Rows only.

        >>> Tensor.of([[1, 2, 3], [4, 5, 6]]).unpad((0, 1), (2, 3)).numpy().tolist()
        [[2, 3], [5, 6]]
        """
        if self.layout is not PageLayout.ROW_MAJOR:
            raise LayoutError(f"unpad takes rows, not tiles of {self.tile}; use slice, or to_layout('row_major') first")
        extents = self.padded_shape
        if not len(start) == len(end) == len(extents) or any(
            not 0 <= a <= b <= n for a, b, n in zip(start, end, extents, strict=True)
        ):
            raise LayoutError(f"the box from {list(start)} to {list(end)} is not inside {list(extents)}")
        whole = from_bytes(self.pages, without_padding(self.spec))
        part = whole[tuple([slice(a, b) for a, b in zip(start, end, strict=True)])]
        spec = TensorSpec(part.shape, self.dtype, memory=self.memory, chip=self.spec.chip)
        change = SpecChange(spec, ChangeKind.COPY, ChangeKind.COPY, "rows are cut")
        return self._filled(change, to_bytes(part, spec))

    # How results are made.

    def settled(self) -> Tensor:
        """Return the tensor with the padding that its layout asks for, and no more: what `pad` has done is undone.

        >>> Tensor.of(np.array([[1, 2]], np.uint8)).pad((1, 4), (0, 1), 9).settled().pages.tolist()
        [1, 2]
        """
        if self._start is None and self.spec.alignment is None:
            return self
        spec = TensorSpec(self.shape.logical, self.dtype, self.layout, self.tile, self.memory, self.spec.chip)
        change = SpecChange(spec, ChangeKind.COPY, ChangeKind.COPY, "padding is left out")
        return self._filled(change, to_bytes(self.numpy(), spec))

    def _kind(self, change: SpecChange) -> ChangeKind:
        return change.on_host if self.device is None else change.kind

    def _viewed(self, change: SpecChange, offset: int = 0) -> Tensor:
        """Return the same bytes under another spec, on the host also from an element on."""
        if not isinstance(self.storage, HostStorage):
            return Tensor(change.spec, self.storage, change)
        page, rest = divmod(offset, self.spec.page_elements)
        start = page * self.spec.page_bytes + rest * getattr(self.dtype, "itemsize", 0)
        data = self.storage.data[start : start + change.spec.nbytes]
        return Tensor(change.spec, HostStorage(data, self.storage.type), change)

    def _repaged(self, change: SpecChange, fill: Any) -> Tensor:
        """Return the same coordinates in other pages, by one plan."""
        if self._kind(change) is ChangeKind.VIEW:
            return self._viewed(change)
        return self._filled(change, moved(self.pages, self.spec, change.spec, fill))

    def _gathered(self, change: SpecChange, grid: Array) -> Tensor:
        """Return a tensor of whole pages, given as an array of pages."""
        out = aligned_empty(change.spec.nbytes, np.uint8)
        copy(grid, out.reshape(grid.shape))
        return self._filled(change, out)

    def _filled(self, change: SpecChange, pages: Bytes) -> Tensor:
        """Return a tensor of new pages, where this one is."""
        if self.device is not None:
            return Tensor(change.spec, put_on_device(pages, change.spec, self.device), change)
        return Tensor(change.spec, HostStorage(pages, StorageType.OWNED_HOST), change)


def _strided(spec: TensorSpec, taken: Ranges) -> SpecChange:
    """Return the change to every so-many-th element."""
    kind = ChangeKind.UNTILIZE if spec.page_layout is PageLayout.TILE else ChangeKind.COPY
    result = TensorSpec(taken.shape, spec.dtype, spec.page_layout, spec.tile, spec.memory, spec.chip)
    return SpecChange(result, kind, kind, "elements between the steps are left out")


def _nothing(spec: TensorSpec) -> SpecChange:
    return SpecChange(spec, ChangeKind.VIEW, ChangeKind.VIEW, "every element stays where it is")
