# SPDX-License-Identifier: Apache-2.0
"""`Tensor`: a tensor spec with storage, and the operations on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..copying import copy
from ..copying.host_memory import aligned_empty
from ..errors import LayoutError, MemoryConfigError
from ..formats import FormatLike, fit_values, format_of
from ..memory import (
    ChangeKind,
    Device,
    MemoryConfig,
    PageLayout,
    SpecChange,
    TensorSpec,
    Tile,
    from_bytes,
    spec_changes,
    to_bytes,
)
from .base_tensor import BaseTensor
from .page_storage import (
    Bytes,
    HostStorage,
    RangeEntry,
    StorageType,
    convert_pages,
    index_ranges,
    pad_spec,
    padding_as_data,
    page_grid,
    page_slices,
    upload_pages,
)
from .store import Array, Number


class Tensor(BaseTensor):
    """A tensor: a spec, and the bytes of its pages on the host (owned or borrowed) or on a device.

    Operations return new tensors; `made_by` says whether they are a view of the same bytes, a copy, or needed an
    untilize, and `tilewright.memory` predicts that from specs alone. NumPy and DLPack see the logical values; `raw` are
    the bytes of the pages.

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

    def to_layout(
        self, layout: PageLayout | str, tile: Tile | Sequence[int] | None = None, pad_value: Number = 0
    ) -> Tensor:
        """Return the tensor in `layout`, rows or tiles of shape `tile`; padding is filled with `pad_value`.

        >>> Tensor.of(np.ones((5, 7))).to_layout("tile").to_layout("row_major").made_by.kind
        ChangeKind.UNTILIZE
        """
        here, page_layout = self.without_extra_padding(), PageLayout.of(layout)
        if page_layout is PageLayout.ROW_MAJOR and self.dtype.has_blocks:
            raise MemoryConfigError(
                f"{self.dtype} needs tiles, because its scales are shared within tiles; use to_dtype('float32') first"
            )
        new_tile = here.tile if tile is None and here.layout is page_layout else tile
        return here._repage(spec_changes.retile_spec(here.spec, page_layout, new_tile), pad_value)

    def to_dtype(self, dtype: FormatLike) -> Tensor:
        """Return the tensor in the number format `dtype`; padding is converted, too, and block formats get tiles.

        >>> Tensor.of([[1.5, 2.5]]).to_dtype("int32").numpy().tolist()
        [[1, 2]]
        """
        element = format_of(dtype)
        if element.has_blocks and self.layout is PageLayout.ROW_MAJOR:
            return self.to_layout("tile").to_dtype(element)
        here = self if self._start is None else self.without_extra_padding()
        change = spec_changes.convert_spec(here.spec, element)
        if element == here.dtype:
            return here._as_view(change)
        return here._from_pages(
            change, convert_pages(here.pages, padding_as_data(here.spec), padding_as_data(change.spec))
        )

    def to_memory_config(self, memory: MemoryConfig | str) -> Tensor:
        """Return the tensor with the memory config `memory`; on a device its pages are copied there.

        >>> Tensor.of([[1, 2]]).to_memory_config("l1").memory
        MemoryConfig('interleaved', 'l1')
        """
        here = self.without_extra_padding()
        return here._repage(spec_changes.reshard_spec(here.spec, memory), 0)

    def to_device(self, device: Device, memory: MemoryConfig | str | None = None) -> Tensor:
        """Return the tensor on `device`, with its memory config or with `memory`.

        >>> on_chip = Tensor.of([[1, 2]]).to_device(Device("wormhole_n150"), "l1")
        >>> on_chip.storage_type, on_chip.numpy().tolist()
        (<StorageType.DEVICE: 2>, [[1, 2]])
        """
        if self.device is device:
            return self if memory is None else self.to_memory_config(memory)
        ready = self.from_device() if self._start is None else self.without_extra_padding()
        ready = ready if memory is None else ready.to_memory_config(memory)
        spec = ready.spec.with_chip(device.chip)
        change = SpecChange(spec, ChangeKind.COPY, ChangeKind.COPY, f"pages are copied to {device.chip.name}")
        return Tensor(spec, upload_pages(ready.pages, spec, device), change)

    def from_device(self) -> Tensor:
        """Return the tensor on the host, with the memory config that it had.

        >>> Tensor.of([[1, 2]]).to_device(Device("wormhole_n150")).from_device().storage_type
        <StorageType.OWNED_HOST: 0>
        """
        if self.device is None:
            return self
        change = SpecChange(
            self.spec, ChangeKind.COPY, ChangeKind.COPY, f"pages are copied from {self.device.chip.name}"
        )
        return Tensor(self.spec, HostStorage(self.pages, StorageType.OWNED_HOST), change)

    def reshape(self, *shape: int | Iterable[int]) -> Tensor:
        """Return the same elements in another `shape`, extents or one tuple; one extent may be -1.

        >>> Tensor.of([[1, 2], [3, 4]]).reshape(4).numpy().tolist()
        [1, 2, 3, 4]
        """
        here = self.without_extra_padding()
        change = spec_changes.reshape_spec(here.spec, _unpack(shape))
        if here._kind(change) is ChangeKind.VIEW:
            return here._as_view(change)
        return here._from_pages(change, to_bytes(here.numpy().reshape(change.spec.shape.logical), change.spec))

    def permute(self, *order: int | Iterable[int]) -> Tensor:
        """Return the tensor with its dimensions in another `order`, numbers or one tuple.

        >>> Tensor.of([[1, 2], [3, 4]]).permute(1, 0).numpy().tolist()
        [[1, 3], [2, 4]]
        """
        here, rank = self.without_extra_padding(), self.shape.rank
        entries = _unpack(order)
        dims = [d % rank if -rank <= d < rank else d for d in entries]
        if sorted(dims) != list(range(rank)):
            raise LayoutError(f"expected each of the {rank} dimensions of {self.shape!r} once, got {list(entries)}")
        if dims == list(range(rank)):
            return here._as_view(_unchanged(here.spec))
        change = spec_changes.transpose_spec(here.spec, *dims)
        kind = here._kind(change)
        if kind is ChangeKind.VIEW:
            return here._as_view(change)
        if kind is ChangeKind.COPY and here.layout is PageLayout.TILE and dims[-2:] == [rank - 2, rank - 1]:
            return here._from_page_grid(change, page_grid(here.pages, here.spec).transpose(*dims, rank))
        return here._from_pages(change, to_bytes(here.numpy().transpose(*dims), change.spec))

    def transpose(self, first: int, second: int) -> Tensor:
        """Return the tensor with dimensions `first` and `second` exchanged.

        >>> Tensor.of([[1, 2], [3, 4]]).transpose(0, 1).numpy().tolist()
        [[1, 3], [2, 4]]
        """
        order = list(range(self.shape.rank))
        try:
            order[first], order[second] = order[second], order[first]
        except IndexError:
            raise LayoutError(f"{self.shape!r} has no dimensions {first} and {second}") from None
        return self.permute(order)

    def slice(self, *ranges: RangeEntry) -> Tensor:
        """Return a part: `ranges` are slices and indices, one per dimension; all dimensions stay.

        >>> Tensor.of([[1, 2], [3, 4]]).slice(slice(0, 2), 1).numpy().tolist()
        [[2], [4]]
        """
        here = self.without_extra_padding()
        selected = index_ranges(ranges, here.shape.logical)
        slices = tuple([slice(part.start, part.stop, part.step) for part in selected])
        shape = tuple(map(len, selected))
        if shape == here.shape.logical:
            return here._as_view(_unchanged(here.spec))
        if any(part.step != 1 for part in selected):
            change = _slice_with_steps(here.spec, shape)
        else:
            change = spec_changes.slice_spec(here.spec, *slices)
        if here._kind(change) is ChangeKind.VIEW:
            return here._as_view(change, here.spec.host(*[part.start for part in selected]))
        tiles = page_slices(here.spec, selected)
        if tiles is not None:
            return here._from_page_grid(change, page_grid(here.pages, here.spec)[tiles])
        return here._from_pages(change, to_bytes(here.numpy()[slices], change.spec))

    def __getitem__(self, ranges: RangeEntry | tuple[RangeEntry, ...]) -> Tensor:
        return self.slice(*(ranges if isinstance(ranges, tuple) else (ranges,)))

    def pad(self, padded_shape: Sequence[int], start: Sequence[int] | None = None, value: Number = 0) -> Tensor:
        """Return a row-major tensor padded to `padded_shape` with `value`; the data begin at `start`.

        >>> padded = Tensor.of(np.array([[1, 2]], np.uint8)).pad((2, 4), (0, 1), 9)
        >>> padded.pages.tolist(), padded.numpy().tolist()
        ([9, 1, 2, 9, 9, 9, 9, 9], [[1, 2]])
        """
        here = self.without_extra_padding()
        spec, begin = pad_spec(here.spec, padded_shape, start)
        change = SpecChange(spec, ChangeKind.COPY, ChangeKind.COPY, "padding is added around the data")
        values = here.numpy()
        padded = np.full(spec.padded_shape, fit_values(value, here.dtype.value_format), values.dtype)
        copy(values, padded[tuple([slice(first, first + n) for first, n in zip(begin, here.shape, strict=True)])])
        result = here._from_pages(change, to_bytes(padded, padding_as_data(spec)))
        result._start = begin if any(begin) else None
        return result

    def unpad(self, start: Sequence[int], end: Sequence[int]) -> Tensor:
        """Return the box of a row-major tensor from `start` up to but not including `end`; it may include padding.

        >>> Tensor.of([[1, 2, 3], [4, 5, 6]]).unpad((0, 1), (2, 3)).numpy().tolist()
        [[2, 3], [5, 6]]
        """
        if self.layout is not PageLayout.ROW_MAJOR:
            raise LayoutError(
                f"unpad needs a row-major tensor, got tiles of {self.tile}; use slice, or to_layout('row_major')"
            )
        extents = self.padded_shape
        if not len(start) == len(end) == len(extents) or any(
            not 0 <= a <= b <= n for a, b, n in zip(start, end, extents, strict=True)
        ):
            raise LayoutError(
                f"the box from {list(start)} to {list(end)} is not inside the padded shape {list(extents)}"
            )
        padded = from_bytes(self.pages, padding_as_data(self.spec))
        part = padded[tuple([slice(a, b) for a, b in zip(start, end, strict=True)])]
        spec = TensorSpec(part.shape, self.dtype, memory=self.memory, chip=self.spec.chip)
        change = SpecChange(spec, ChangeKind.COPY, ChangeKind.COPY, "rows are sliced")
        return self._from_pages(change, to_bytes(part, spec))

    # Results.

    def without_extra_padding(self) -> Tensor:
        """Return the tensor with only the padding that its page layout needs: the inverse of `pad`.

        >>> Tensor.of(np.array([[1, 2]], np.uint8)).pad((1, 4), (0, 1), 9).without_extra_padding().pages.tolist()
        [1, 2]
        """
        if self._start is None and self.spec.alignment is None:
            return self
        spec = TensorSpec(self.shape.logical, self.dtype, self.layout, self.tile, self.memory, self.spec.chip)
        change = SpecChange(spec, ChangeKind.COPY, ChangeKind.COPY, "padding is removed")
        return self._from_pages(change, to_bytes(self.numpy(), spec))

    def _kind(self, change: SpecChange) -> ChangeKind:
        """Return what a change costs where this tensor is."""
        return change.on_host if self.device is None else change.kind

    def _as_view(self, change: SpecChange, offset: int = 0) -> Tensor:
        """Return the same bytes under another spec; on the host from the element at `offset` on."""
        if not isinstance(self.storage, HostStorage):
            return Tensor(change.spec, self.storage, change)
        page, rest = divmod(offset, self.spec.page_elements)
        start = page * self.spec.page_bytes + rest * getattr(self.dtype, "itemsize", 0)
        data = self.storage.data[start : start + change.spec.nbytes]
        return Tensor(change.spec, HostStorage(data, self.storage.type), change)

    def _repage(self, change: SpecChange, fill: Number) -> Tensor:
        """Return the same elements in other pages, by one plan."""
        if self._kind(change) is ChangeKind.VIEW:
            return self._as_view(change)
        return self._from_pages(change, convert_pages(self.pages, self.spec, change.spec, fill))

    def _from_page_grid(self, change: SpecChange, grid: Array) -> Tensor:
        """Return a tensor of whole pages, which are an array of pages."""
        out = aligned_empty(change.spec.nbytes, np.uint8)
        copy(grid, out.reshape(grid.shape))
        return self._from_pages(change, out)

    def _from_pages(self, change: SpecChange, pages: Bytes) -> Tensor:
        """Return a tensor of new pages, on the host or device of this one."""
        if self.device is not None:
            return Tensor(change.spec, upload_pages(pages, change.spec, self.device), change)
        return Tensor(change.spec, HostStorage(pages, StorageType.OWNED_HOST), change)


def _slice_with_steps(spec: TensorSpec, shape: tuple[int, ...]) -> SpecChange:
    """Return the change of a slice with steps other than 1."""
    kind = ChangeKind.UNTILIZE if spec.page_layout is PageLayout.TILE else ChangeKind.COPY
    result = TensorSpec(shape, spec.dtype, spec.page_layout, spec.tile, spec.memory, spec.chip)
    return SpecChange(result, kind, kind, "elements between the steps are dropped")


def _unpack(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the arguments of `reshape(2, 3)` or `reshape((2, 3))` as one tuple."""
    return tuple(arguments[0]) if len(arguments) == 1 and not isinstance(arguments[0], int) else arguments


def _unchanged(spec: TensorSpec) -> SpecChange:
    """Return the change that leaves every element in its place."""
    return SpecChange(spec, ChangeKind.VIEW, ChangeKind.VIEW, "every element stays where it is")
