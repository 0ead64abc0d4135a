# SPDX-License-Identifier: Apache-2.0
"""`Tensor`: a tensor spec with storage, on the host or on a device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..copy import copy
from ..copy.buffers import aligned_empty
from ..errors import FormatError, LayoutError
from ..formats import BlockFormat, Format, ScalarFormat, format_of
from ..memory import Allocation, Device, MemoryConfig, Shape, TensorLayout, TensorSpec, Tile, from_bytes, to_bytes
from . import conversions
from .conversions import Box, Conversion
from .exchange import exported, values_of
from .pages import moved, page_grid, put_on_device, without_padding
from .tensor_storage import Bytes, DeviceStorage, HostStorage, StorageType

Array = np.ndarray[Any, Any]


class Tensor:
    """A tensor: a spec, and the bytes of its pages on the host (owned or borrowed) or on a device.

    Operations return new tensors, whose `made_by` says whether they are a view of the same bytes, a copy, or needed
    an untilize. NumPy and DLPack see the logical values; `raw` are the bytes of the pages.

    >>> x = Tensor.of(np.arange(6, dtype=np.float32).reshape(2, 3), dtype="bfloat16", layout="tile")
    >>> x.shape, x.padded_shape, x.nbytes
    (Shape([2, 3], [32, 32]), (32, 32), 2048)
    >>> y = x.reshape((3, 2))
    >>> print(y.made_by)
    reshape is an untilize: rows of another length do not fit the same tiles
    >>> np.asarray(y).astype(int).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """

    __slots__ = ("__weakref__", "_start", "made_by", "spec", "storage")

    def __init__(
        self,
        spec: TensorSpec,
        storage: HostStorage | DeviceStorage,
        made_by: Conversion | None = None,
        start: tuple[int, ...] | None = None,
    ) -> None:
        self.spec, self.storage, self.made_by = spec, storage, made_by
        self._start = start  # where the data begin in the padded box, if not at its origin

    # Making tensors.

    @classmethod
    def of(cls, array: Any, dtype: Any = None, pad_value: Any = 0, borrow: bool | None = None, **spec: Any) -> Tensor:
        """Return the tensor of an array, or of any object with DLPack; further arguments are those of `TensorSpec`.

        An array whose bytes are the tensor's pages is borrowed: both share memory, and each sees the other's changes.
        `borrow=True` insists on it, and `borrow=False` copies.

        >>> values = np.zeros((2, 3), dtype=np.float32)
        >>> x = Tensor.of(values)
        >>> values[0, 0] = 5
        >>> x.storage_type, float(np.asarray(x)[0, 0])
        (<StorageType.BORROWED_HOST: 1>, 5.0)
        """
        values = values_of(array)
        wanted = TensorSpec(values.shape, values.dtype if dtype is None else dtype, **spec)
        return cls.from_array(values, wanted, pad_value, borrow)

    @classmethod
    def from_array(cls, array: Any, spec: TensorSpec, pad_value: Any = 0, borrow: bool | None = None) -> Tensor:
        """Return the tensor of an array with a given spec.

        >>> Tensor.from_array([[1, 2]], TensorSpec((1, 2), "int32")).nbytes
        8
        """
        values = values_of(array)
        is_pages = (
            values.shape == spec.shape.logical == spec.padded_shape
            and spec.layout is TensorLayout.ROW_MAJOR
            and values.flags.c_contiguous
            and isinstance(spec.dtype, ScalarFormat)
            and values.dtype == spec.dtype.dtype
        )
        if is_pages and borrow is not False:
            return cls(spec, HostStorage(values.reshape(-1).view(np.uint8), StorageType.BORROWED_HOST))
        if borrow:
            raise LayoutError(
                f"an array of {values.dtype} with shape {values.shape} and strides {values.strides} does not lie in"
                f" memory as {spec} does, and cannot be borrowed; leave borrow out to copy it"
            )
        return cls(spec, HostStorage(to_bytes(values, spec, pad_value), StorageType.OWNED_HOST))

    @classmethod
    def from_pages(cls, data: Any, spec: TensorSpec) -> Tensor:
        """Return the tensor whose pages are these bytes, which are borrowed.

        >>> Tensor.from_pages(bytes(8), TensorSpec((2, 2), "int16")).storage_type
        <StorageType.BORROWED_HOST: 1>
        """
        pages: Bytes = np.asarray(data) if hasattr(data, "__array__") else np.frombuffer(data, np.uint8)
        if not pages.flags.c_contiguous or pages.nbytes != spec.nbytes:
            raise LayoutError(f"the pages of {spec} are {spec.nbytes} contiguous bytes, got {pages.nbytes}")
        return cls(spec, HostStorage(pages.reshape(-1).view(np.uint8), StorageType.BORROWED_HOST))

    # What it is.

    @property
    def shape(self) -> Shape:
        """Return the extents, with the padded ones beside them.

        >>> Tensor.of(np.zeros((5, 7)), layout="tile").shape
        Shape([5, 7], [32, 32])
        """
        return self.spec.shape

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """Return the extents with padding.

        >>> Tensor.of(np.zeros((5, 7)), layout="tile").padded_shape
        (32, 32)
        """
        return self.spec.padded_shape

    @property
    def dtype(self) -> Format:
        """Return the number format.

        >>> Tensor.of(np.zeros((5, 7), np.int8)).dtype
        format_of('int8')
        """
        return self.spec.dtype

    @property
    def layout(self) -> TensorLayout:
        """Return whether pages are rows or tiles.

        >>> Tensor.of(np.zeros((5, 7))).layout
        TensorLayout.ROW_MAJOR
        """
        return self.spec.layout

    @property
    def tile(self) -> Tile:
        """Return the tile; the usual one where pages are rows.

        >>> Tensor.of(np.zeros((5, 7)), layout="tile", tile=(16, 32)).tile
        Tile((16, 32))
        """
        return self.spec.tile

    @property
    def memory(self) -> MemoryConfig:
        """Return the memory that the tensor lies in, or is meant for.

        >>> Tensor.of(np.zeros((5, 7))).memory
        MemoryConfig('interleaved', 'dram')
        """
        return self.spec.memory

    @property
    def nbytes(self) -> int:
        """Return the bytes of all pages.

        >>> Tensor.of(np.zeros((5, 7), np.float32)).nbytes
        140
        """
        return self.spec.nbytes

    @property
    def storage_type(self) -> StorageType:
        """Return who holds the bytes.

        >>> Tensor.of([[1, 2]], borrow=False).storage_type
        <StorageType.OWNED_HOST: 0>
        """
        return self.storage.type

    @property
    def device(self) -> Device | None:
        """Return the device that holds the tensor, None on the host.

        >>> Tensor.of([[1, 2]]).device is None
        True
        """
        return self.storage.device if isinstance(self.storage, DeviceStorage) else None

    @property
    def pages(self) -> Bytes:
        """Return the bytes of all pages, back to back: the tensor's own on the host, a copy from a device.

        >>> Tensor.of(np.array([[1, 2]], np.uint8)).pages.tolist()
        [1, 2]
        """
        if isinstance(self.storage, HostStorage):
            return self.storage.data
        return self.storage.device.read(self._block())

    @property
    def raw(self) -> memoryview:
        """Return the bytes of all pages as a buffer, without a copy on the host.

        >>> Tensor.of(np.array([[1, 2]], np.uint8)).raw.tobytes()
        b'\\x01\\x02'
        """
        return self.pages.data

    # Values.

    def numpy(self, dtype: Any = None) -> Array:
        """Return the logical values, without a copy where the bytes on the host are those; blocks become float32.

        >>> Tensor.of([[1.0, 2.0]], dtype="bfloat8_b").numpy().tolist()
        [[1.0, 2.0]]
        """
        own = self.spec.dtype
        element = format_of(("float32" if isinstance(own, BlockFormat) else own) if dtype is None else dtype)
        if not isinstance(element, ScalarFormat):
            raise FormatError(f"an array holds a scalar format, not {element}; use raw for the bytes")
        if isinstance(self.storage, DeviceStorage):
            return self.storage.device.get(self._block(), element)
        shape, data = self.spec.shape.logical, self.storage.data
        if self._start is not None:
            whole = from_bytes(data, without_padding(self.spec), element)
            return whole[tuple([slice(at, at + n) for at, n in zip(self._start, shape, strict=True)])]
        is_plain = self.spec.layout is TensorLayout.ROW_MAJOR and self.spec.padded_shape == (shape or (1,))
        if is_plain and element == own and data.ctypes.data % element.itemsize == 0:
            return data.view(element.dtype).reshape(shape)
        return from_bytes(data, self.spec, element)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        values = self.numpy()
        shared = isinstance(self.storage, HostStorage) and np.may_share_memory(values, self.storage.data)
        if copy is False and (not shared or (dtype is not None and values.dtype != dtype)):
            raise ValueError(f"the values of {self.spec} are not an array in memory; leave out copy=False")
        values = values if dtype is None else values.astype(dtype, copy=False)
        return values.copy() if copy and shared else values

    def __dlpack__(self, **options: Any) -> Any:
        return exported(self.numpy(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the memory of the host

    def __len__(self) -> int:
        if not self.spec.shape.rank:
            raise TypeError("a tensor without dimensions has no length")
        return self.spec.shape.logical[0]

    def item(self) -> Any:
        """Return the only element, as a Python number.

        >>> Tensor.of([[2.5]]).item()
        2.5
        """
        return self.numpy().item()

    # Operations.

    def to_layout(self, layout: Any, tile: Any = None, pad_value: Any = 0) -> Tensor:
        """Return the tensor in rows or tiles, padding filled with a value.

        >>> Tensor.of([[1, 2]]).to_layout("tile").to_layout("row_major").made_by.kind
        'untilize'
        """
        return self._repaged(conversions.relaid(self.spec, layout, tile), pad_value)

    def to_dtype(self, dtype: Any) -> Tensor:
        """Return the tensor in another number format; padding is converted with the data.

        >>> Tensor.of([[1.5, 2.5]]).to_dtype("int32").numpy().tolist()
        [[1, 2]]
        """
        change = conversions.recast(self.spec, dtype)
        if change.kind == "view" or change.spec.layout is not self.spec.layout or self._start is not None:
            return self._repaged(change, 0)
        before, after = without_padding(self.spec), without_padding(change.spec)
        return self._filled(change, moved(self.pages, before, after))

    def to_memory_config(self, memory: Any) -> Tensor:
        """Return the tensor in another memory; on a device its pages move there.

        >>> Tensor.of([[1, 2]]).to_memory_config("l1").memory
        MemoryConfig('interleaved', 'l1')
        """
        return self._repaged(conversions.replaced(self.spec, memory, self.device is not None), 0)

    def to_device(self, device: Device, memory: Any = None) -> Tensor:
        """Return the tensor on a device, in the memory it is meant for or in another.

        >>> on_chip = Tensor.of([[1, 2]]).to_device(Device("wormhole_n150"), "l1")
        >>> on_chip.storage_type, on_chip.numpy().tolist()
        (<StorageType.DEVICE: 2>, [[1, 2]])
        """
        if self.device is device:
            return self if memory is None else self.to_memory_config(memory)
        here = self.from_device().settled()
        ready = here if memory is None else here.to_memory_config(memory)
        spec = ready.spec.with_chip(device.chip)
        reason = f"pages move to {device.chip.name}"
        return Tensor(spec, put_on_device(ready.pages, spec, device), Conversion("to_device", "copy", reason, spec))

    def from_device(self) -> Tensor:
        """Return the tensor on the host; it keeps the memory config it had.

        >>> Tensor.of([[1, 2]]).to_device(Device("wormhole_n150")).from_device().storage_type
        <StorageType.OWNED_HOST: 0>
        """
        if self.device is None:
            return self
        change = Conversion("from_device", "copy", f"pages move from {self.device.chip.name}", self.spec)
        return Tensor(self.spec, HostStorage(self.pages, StorageType.OWNED_HOST), change)

    def reshape(self, *shape: Any) -> Tensor:
        """Return the same elements in another shape; one extent may be -1.

        >>> Tensor.of([[1, 2], [3, 4]]).reshape(4).numpy().tolist()
        [1, 2, 3, 4]
        """
        extents = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        change = conversions.reshaped(self.spec, extents, self.device is not None)
        if change.kind == "view" and self._start is None:
            return self._viewed(change)
        return self._filled(change, to_bytes(self.numpy().reshape(change.spec.shape.logical), change.spec))

    def permute(self, *order: Any) -> Tensor:
        """Return the tensor with its dimensions in another order.

        >>> Tensor.of([[1, 2], [3, 4]]).permute(1, 0).numpy().tolist()
        [[1, 3], [2, 4]]
        """
        dims = order[0] if len(order) == 1 and not isinstance(order[0], int) else order
        change = conversions.permuted(self.spec, dims)
        if change.kind == "view":
            return self._viewed(change)
        if change.kind == "copy" and self.spec.layout is TensorLayout.TILE:
            return self._gathered(change, page_grid(self.pages, self.spec).transpose(*dims, self.spec.shape.rank))
        return self._filled(change, to_bytes(self.numpy().transpose(*dims), change.spec))

    def transpose(self, one: int, other: int) -> Tensor:
        """Return the tensor with two dimensions exchanged.

        >>> Tensor.of([[1, 2], [3, 4]]).transpose(0, 1).numpy().tolist()
        [[1, 3], [2, 4]]
        """
        order = list(range(self.spec.shape.rank))
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
        box = Box.of(ranges, self.spec.shape.logical)
        change = conversions.sliced(self.spec, box)
        if change.kind == "view":
            return self._viewed(change)
        pages = conversions.page_box(self.spec, box)
        if pages is not None:
            return self._gathered(change, page_grid(self.pages, self.spec)[pages.slices])
        return self._filled(change, to_bytes(self.numpy()[box.slices], change.spec))

    def __getitem__(self, ranges: Any) -> Tensor:
        return self.slice(*(ranges if isinstance(ranges, tuple) else (ranges,)))

    def pad(self, padded_shape: Any, start: Any = None, value: Any = 0) -> Tensor:
        """Return the tensor with more padding, from `start` on the data and around them a value; rows only.

        >>> padded = Tensor.of(np.array([[1, 2]], np.uint8)).pad((2, 4), (0, 1), 9)
        >>> padded.pages.tolist(), padded.numpy().tolist()
        ([9, 1, 2, 9, 9, 9, 9, 9], [[1, 2]])
        """
        change = conversions.padded(self.spec, padded_shape, start)
        begin = tuple([int(n) for n in start]) if start is not None else ()
        if not any(begin):
            return self._repaged(change, value)
        values = self.numpy()
        whole = np.full(change.spec.padded_shape, value, values.dtype)
        copy(values, whole[tuple([slice(at, at + n) for at, n in zip(begin, self.shape, strict=True)])])
        made = self._filled(change, to_bytes(whole, without_padding(change.spec)))
        made._start = begin
        return made

    def unpad(self, start: Any, end: Any) -> Tensor:
        """Return the box from start up to, not including, end; the box may reach into the padding. Rows only.

        >>> Tensor.of([[1, 2, 3], [4, 5, 6]]).unpad((0, 1), (2, 3)).numpy().tolist()
        [[2, 3], [5, 6]]
        """
        if self.spec.layout is not TensorLayout.ROW_MAJOR:
            raise LayoutError(f"unpad takes rows, not tiles of {self.tile}; use slice, or to_layout('row_major') first")
        extents = self.spec.padded_shape
        if not len(start) == len(end) == len(extents) or any(
            not 0 <= a <= b <= n for a, b, n in zip(start, end, extents, strict=True)
        ):
            raise LayoutError(f"the box from {list(start)} to {list(end)} is not inside {list(extents)}")
        box = Box.of(tuple([slice(a, b) for a, b in zip(start, end, strict=True)]), extents)
        change = Conversion("unpad", "copy", "rows are cut", conversions.changed(self.spec, shape=box.shape))
        whole = from_bytes(self.pages, without_padding(self.spec))
        return self._filled(change, to_bytes(whole[box.slices], change.spec))

    def deallocate(self) -> None:
        """Give the memory on the device back, for all views of it; on the host nothing happens.

        >>> Tensor.of([[1, 2]]).deallocate()
        """
        if isinstance(self.storage, DeviceStorage):
            self.storage.free()

    def is_allocated(self) -> bool:
        """Return whether the bytes are there.

        >>> Tensor.of([[1, 2]]).is_allocated()
        True
        """
        return not isinstance(self.storage, DeviceStorage) or self.storage.is_allocated

    # How results are made.

    def _block(self) -> Allocation:
        """Return the block on the device as this tensor sees it; a view of another tensor has a spec of its own."""
        assert isinstance(self.storage, DeviceStorage)
        return replace(self.storage.allocation, spec=self.spec)

    def settled(self) -> Tensor:
        """Return the tensor with its data at the origin of the padded box, where `pad` may have moved them from.

        >>> Tensor.of(np.array([[1, 2]], np.uint8)).pad((1, 4), (0, 1), 9).settled().pages.tolist()
        [1, 2, 0, 0]
        """
        if self._start is None:
            return self
        return Tensor(self.spec, HostStorage(to_bytes(self.numpy(), self.spec), StorageType.OWNED_HOST), self.made_by)

    def _viewed(self, change: Conversion) -> Tensor:
        """Return the same bytes under another spec."""
        if self._start is not None and change.spec is not self.spec:
            return self.settled()._viewed(change)
        return Tensor(change.spec, self.storage, change, self._start)

    def _repaged(self, change: Conversion, fill: Any) -> Tensor:
        """Return the same coordinates in other pages, by one plan."""
        if change.kind == "view":
            return self._viewed(change)
        here = self.settled()
        return self._filled(change, moved(here.pages, here.spec, change.spec, fill))

    def _gathered(self, change: Conversion, grid: Array) -> Tensor:
        """Return a tensor of whole pages, given as an array of pages."""
        out = aligned_empty(change.spec.nbytes, np.uint8)
        copy(grid, out.reshape(grid.shape))
        return self._filled(change, out)

    def _filled(self, change: Conversion, pages: Bytes) -> Tensor:
        """Return a tensor of new pages, where this one is."""
        if self.device is not None:
            return Tensor(change.spec, put_on_device(pages, change.spec, self.device), change)
        return Tensor(change.spec, HostStorage(pages, StorageType.OWNED_HOST), change)

    def __repr__(self) -> str:
        where = f"on {self.device.chip.name}" if self.device else self.storage_type.name.lower().replace("_", " ")
        return f"<Tensor {self.spec}, {where}>"
