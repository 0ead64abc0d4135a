# SPDX-License-Identifier: Apache-2.0
"""`Tensor`: a tensor spec with storage, and the operations on it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from .._integers import ceil_div
from ..copying import aligned_empty, as_host_array, copy, execute, export_dlpack, plan_copy
from ..display import Drawable
from ..errors import LayoutError, MemoryConfigError, TransferError
from ..formats import Format, FormatLike, Number, fit_values, format_of
from ..layout import as_integer
from ..memory import (
    Allocation,
    ChangeKind,
    Device,
    MemoryConfig,
    PageLayout,
    Shape,
    SpecChange,
    TensorSpec,
    Tile,
    alignment_of,
    from_bytes,
    host_placement,
    spec,
    to_bytes,
)
from .store import Array, Storage


class Tensor(Drawable):
    """A tensor: a `spec`, and the `storage` of its pages on the host (owned or borrowed) or on a device.

    The data begin at `start` of the padded shape, by default at the origin. Operations return new tensors; `made_by`
    tells whether they are a view of the same bytes, a copy, or needed an untilize, and `tilewright.memory` predicts
    that from specs alone. NumPy and DLPack see the logical values; `raw` are the bytes of the pages.

    >>> x = Tensor.of(np.arange(6, dtype=np.float32).reshape(2, 3), dtype="bfloat16", page_layout="tile")
    >>> x.shape, x.padded_shape, x.nbytes
    (Shape([2, 3], [32, 32]), (32, 32), 2048)
    >>> y = x.reshape((3, 2))
    >>> print(y.made_by)
    UNTILIZE: [3[32], 2[32]]: elements are taken out of their tiles
    >>> np.asarray(y).astype(int).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """

    __slots__ = ("__weakref__", "_start", "made_by", "spec", "storage")

    def __init__(
        self,
        spec: TensorSpec,
        storage: HostStorage | DeviceStorage,
        made_by: SpecChange | None = None,
        start: tuple[int, ...] | None = None,
    ) -> None:
        self.spec, self.storage, self.made_by = spec, storage, made_by
        self._start = start  # where the data start in the padded shape, if not at the origin

    # Constructors.

    @classmethod
    def of(
        cls,
        array: Storage,
        dtype: FormatLike | None = None,
        pad_value: Number = 0,
        borrow: bool | None = None,
        **spec: Any,
    ) -> Tensor:
        """Return a tensor with the values of `array`, an array or any object with DLPack.

        `dtype` is another number format, to which an array is converted, and of which the numbers of a list must be
        values; `pad_value` fills padding, and `spec` are further arguments of `TensorSpec`.
        An array that already has the bytes of the pages is borrowed: both share memory. `borrow=True` raises if that is
        not possible, `borrow=False` always copies.

        >>> values = np.zeros((2, 3), dtype=np.float32)
        >>> x = Tensor.of(values)
        >>> values[0, 0] = 5
        >>> x.storage_type, float(np.asarray(x)[0, 0])
        (<StorageType.BORROWED_HOST: 1>, 5.0)
        """
        values = as_host_array(array)
        full_spec = TensorSpec(values.shape, values.dtype if dtype is None else dtype, **spec)
        if isinstance(array, (list, tuple)):
            fit_values(values, full_spec.dtype.value_format)
        return cls.from_array(values, full_spec, pad_value, borrow)

    @classmethod
    def from_array(cls, array: Storage, spec: TensorSpec, pad_value: Number = 0, borrow: bool | None = None) -> Tensor:
        """Return a tensor with the values of `array` and this `spec`; `pad_value` and `borrow` as in `of`.

        >>> Tensor.from_array([[1, 2]], TensorSpec((1, 2), "int32")).nbytes
        8
        """
        values = as_host_array(array)
        if isinstance(array, (list, tuple)):
            fit_values(values, spec.dtype.value_format)
        is_pages = (
            values.shape == spec.shape.logical == spec.padded_shape
            and spec.page_layout is PageLayout.ROW_MAJOR
            and values.flags.c_contiguous
            and not spec.dtype.has_blocks
            and values.dtype == spec.dtype.dtype
        )
        if is_pages and borrow is not False:
            return cls(spec, HostStorage(values.reshape(-1).view(np.uint8), StorageType.BORROWED_HOST))
        if borrow:
            raise LayoutError(
                f"cannot borrow an array of {values.dtype} with shape {values.shape} and strides {values.strides} as"
                f" {spec}; without borrow=True it is copied"
            )
        return cls(spec, HostStorage(to_bytes(values, spec, pad_value), StorageType.OWNED_HOST))

    @classmethod
    def from_pages(cls, data: bytes | bytearray | memoryview | Array, spec: TensorSpec) -> Tensor:
        """Return a tensor of `spec` with the bytes `data` as its pages, which are borrowed.

        >>> Tensor.from_pages(bytes(8), TensorSpec((2, 2), "int16")).storage_type
        <StorageType.BORROWED_HOST: 1>
        """
        pages: Bytes = np.asarray(data) if hasattr(data, "__array__") else np.frombuffer(data, np.uint8)
        if not pages.flags.c_contiguous or pages.nbytes != spec.nbytes:
            raise LayoutError(f"expected {spec.nbytes} contiguous bytes for {spec}, got {pages.nbytes}")
        return cls(spec, HostStorage(pages.reshape(-1).view(np.uint8), StorageType.BORROWED_HOST))

    # Properties.

    @property
    def shape(self) -> Shape:
        """The logical and the padded extents.

        >>> Tensor.of(np.zeros((5, 7)), page_layout="tile").shape
        Shape([5, 7], [32, 32])
        """
        return self.spec.shape

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """The padded extents.

        >>> Tensor.of(np.zeros((5, 7)), page_layout="tile").padded_shape
        (32, 32)
        """
        return self.spec.padded_shape

    @property
    def dtype(self) -> Format:
        """The number format.

        >>> Tensor.of(np.zeros((5, 7), np.int8)).dtype
        format_of('int8')
        """
        return self.spec.dtype

    @property
    def layout(self) -> PageLayout:
        """Whether pages are rows or tiles.

        >>> Tensor.of(np.zeros((5, 7))).layout
        PageLayout.ROW_MAJOR
        """
        return self.spec.page_layout

    @property
    def tile(self) -> Tile:
        """The tile; the default one where pages are rows.

        >>> Tensor.of(np.zeros((5, 7)), page_layout="tile", tile=(16, 32)).tile
        Tile((16, 32))
        """
        return self.spec.tile

    @property
    def memory(self) -> MemoryConfig:
        """The memory config of the tensor.

        >>> Tensor.of(np.zeros((5, 7))).memory
        MemoryConfig('interleaved', 'dram')
        """
        return self.spec.memory

    @property
    def nbytes(self) -> int:
        """The number of bytes of all pages.

        >>> Tensor.of(np.zeros((5, 7), np.float32)).nbytes
        140
        """
        return self.spec.nbytes

    @property
    def storage_type(self) -> StorageType:
        """The owner of the bytes.

        >>> Tensor.of([[1, 2]], borrow=False).storage_type
        <StorageType.OWNED_HOST: 0>
        """
        return self.storage.type

    @property
    def device(self) -> Device | None:
        """The device that holds the tensor, None on the host.

        >>> Tensor.of([[1, 2]]).device is None
        True
        """
        return self.storage.device if isinstance(self.storage, DeviceStorage) else None

    @property
    def data_start(self) -> tuple[int, ...]:
        """The start of the data in the padded shape: the origin, unless `pad` was given a start.

        >>> Tensor.of([[1, 2]]).data_start
        (0, 0)
        """
        return (0,) * self.spec.shape.rank if self._start is None else self._start

    @property
    def pages(self) -> Bytes:
        """The bytes of all pages, one after the other: a view on the host, a copy from a device.

        >>> Tensor.of(np.array([[1, 2]], np.uint8)).pages.tolist()
        [1, 2]
        """
        if isinstance(self.storage, HostStorage):
            return self.storage.data
        return self.storage.device.read(self._block())

    @property
    def raw(self) -> memoryview:
        """The bytes of all pages as a buffer, without a copy on the host.

        The tensor itself exports no buffer: NumPy would read its bytes as its values.

        >>> Tensor.of(np.array([[1, 2]], np.uint8)).raw.tobytes()
        b'\\x01\\x02'
        """
        return self.pages.data

    # Values.

    def numpy(self, dtype: FormatLike | None = None) -> Array:
        """Return the logical values as an array of `dtype` (block formats as float32), without a copy where possible.

        >>> Tensor.of([[1.0, 2.0]], dtype="bfloat8_b").numpy().tolist()
        [[1.0, 2.0]]
        """
        own = self.spec.dtype
        element = own.value_format if dtype is None else format_of(dtype).require_scalar("numpy()")
        if isinstance(self.storage, DeviceStorage):
            return self.storage.device.get(self._block(), element)
        shape, data = self.spec.shape.logical, self.storage.data
        if self._start is not None:
            padded = from_bytes(data, padding_as_data(self.spec), element)
            return padded[tuple([slice(start, start + n) for start, n in zip(self._start, shape, strict=True)])]
        is_plain = self.spec.page_layout is PageLayout.ROW_MAJOR and self.spec.padded_shape == (shape or (1,))
        if is_plain and element == own and data.ctypes.data % element.itemsize == 0:
            return data.view(element.dtype).reshape(shape)
        return from_bytes(data, self.spec, element)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        values = self.numpy()
        shared = isinstance(self.storage, HostStorage) and np.may_share_memory(values, self.storage.data)
        if copy is False and (not shared or (dtype is not None and values.dtype != dtype)):
            raise ValueError(f"the values of {self.spec} are not an array in memory; do not pass copy=False")
        values = values if dtype is None else values.astype(dtype, copy=False)
        return values.copy() if copy and shared else values

    def __dlpack__(self, **options: Any) -> Any:
        return export_dlpack(self.numpy(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the memory of the host

    def __len__(self) -> int:
        if not self.spec.shape.rank:
            raise TypeError("a tensor without dimensions has no length")
        return self.spec.shape.logical[0]

    def item(self) -> bool | int | float:
        """Return the only element, as a Python number.

        >>> Tensor.of([[2.5]]).item()
        2.5
        """
        number: bool | int | float = self.numpy().item()
        return number

    # Memory.

    def _block(self) -> Allocation:
        """Return the allocation on the device with the spec of this tensor, which may be a view of another."""
        assert isinstance(self.storage, DeviceStorage)
        return replace(self.storage.allocation, spec=self.spec)

    def deallocate(self) -> None:
        """Free the memory on the device, for all views of it; on the host nothing happens.

        >>> Tensor.of([[1, 2]]).deallocate()
        """
        if isinstance(self.storage, DeviceStorage):
            self.storage.free()

    def is_allocated(self) -> bool:
        """Return whether the bytes are allocated.

        >>> Tensor.of([[1, 2]]).is_allocated()
        True
        """
        return not isinstance(self.storage, DeviceStorage) or self.storage.is_allocated

    def __repr__(self) -> str:
        where = f"on {self.device.chip.name}" if self.device else self.storage_type.name.lower().replace("_", " ")
        return f"<Tensor {self.spec}, {where}>"

    # Operations.

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
        return here._repage(spec.retile_spec(here.spec, page_layout, new_tile), pad_value)

    def to_dtype(self, dtype: FormatLike) -> Tensor:
        """Return the tensor in the number format `dtype`; padding is also converted, and block formats get tiles.

        >>> Tensor.of([[1.5, 2.5]]).to_dtype("int32").numpy().tolist()
        [[1, 2]]
        """
        element = format_of(dtype)
        if element.has_blocks and self.layout is PageLayout.ROW_MAJOR:
            return self.to_layout("tile").to_dtype(element)
        here = self if self._start is None else self.without_extra_padding()
        change = spec.convert_spec(here.spec, element)
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
        return here._repage(spec.reshard_spec(here.spec, memory), 0)

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
        change = _copied(spec, f"pages are copied to {device.chip.name}")
        return Tensor(spec, upload_pages(ready.pages, spec, device), change)

    def from_device(self) -> Tensor:
        """Return the tensor on the host, with the memory config that it had.

        >>> Tensor.of([[1, 2]]).to_device(Device("wormhole_n150")).from_device().storage_type
        <StorageType.OWNED_HOST: 0>
        """
        if self.device is None:
            return self
        change = _copied(self.spec, f"pages are copied from {self.device.chip.name}")
        return Tensor(self.spec, HostStorage(self.pages, StorageType.OWNED_HOST), change)

    def reshape(self, *shape: int | Iterable[int]) -> Tensor:
        """Return the same elements in another `shape`, extents or one tuple; one extent may be -1.

        >>> Tensor.of([[1, 2], [3, 4]]).reshape(4).numpy().tolist()
        [1, 2, 3, 4]
        """
        here = self.without_extra_padding()
        change = spec.reshape_spec(here.spec, _unpack(shape))
        if here._change_kind(change) is ChangeKind.VIEW:
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
        change = spec.transpose_spec(here.spec, *dims)
        cost = here._change_kind(change)
        if cost is ChangeKind.VIEW:
            return here._as_view(change)
        if cost is ChangeKind.COPY and here.layout is PageLayout.TILE and dims[-2:] == [rank - 2, rank - 1]:
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
            change = spec.slice_spec(here.spec, *slices)
        if here._change_kind(change) is ChangeKind.VIEW:
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
        change = _copied(spec, "padding is added around the data")
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
        change = _copied(spec, "rows are sliced")
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
        change = _copied(spec, "padding is removed")
        return self._from_pages(change, to_bytes(self.numpy(), spec))

    def _change_kind(self, change: SpecChange) -> ChangeKind:
        """Return the cost of a change where this tensor is."""
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
        if self._change_kind(change) is ChangeKind.VIEW:
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


def _copied(spec: TensorSpec, reason: str) -> SpecChange:
    """Return the change that copies elements."""
    return SpecChange(spec, ChangeKind.COPY, ChangeKind.COPY, reason)


def _unchanged(spec: TensorSpec) -> SpecChange:
    """Return the change that leaves every element in its place."""
    return SpecChange(spec, ChangeKind.VIEW, ChangeKind.VIEW, "every element stays where it is")


Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


class StorageType(Enum):
    """Who owns the bytes of a tensor.

    >>> StorageType.BORROWED_HOST.is_host
    True
    """

    OWNED_HOST = 0
    BORROWED_HOST = 1
    DEVICE = 2

    @property
    def is_host(self) -> bool:
        """Whether the bytes are in the memory of this process.

        >>> StorageType.DEVICE.is_host
        False
        """
        return self is not StorageType.DEVICE


@dataclass(frozen=True, slots=True, eq=False)
class HostStorage:
    """Pages on the host, one after the other, and who owns them.

    >>> HostStorage(np.zeros(8, np.uint8), StorageType.OWNED_HOST).data.nbytes
    8
    """

    data: Bytes
    type: StorageType


class DeviceStorage:
    """A block of device memory, freed when nothing refers to it any more, or by `free`.

    >>> from tilewright import TensorSpec
    >>> device = Device("wormhole_n150")
    >>> block = DeviceStorage(device, device.allocate(TensorSpec((4, 4))))
    >>> block.free()
    >>> device.memory_view("dram").allocated
    0
    """

    type = StorageType.DEVICE

    def __init__(self, device: Device, allocation: Allocation) -> None:
        self.device = device
        self._allocation = allocation
        self._release = weakref.finalize(self, device.free, allocation)

    @property
    def allocation(self) -> Allocation:
        """The block; raises if it was freed, or if its device was closed.

        >>> from tilewright import TensorSpec
        >>> device = Device("wormhole_n150")
        >>> DeviceStorage(device, device.allocate(TensorSpec((4, 4)))).allocation.address
        1048640
        """
        if not self._release.alive:
            raise TransferError(f"the tensor at {self._allocation.address} of {self.device.chip.name} was deallocated")
        if not self.device.is_open:
            raise TransferError(
                f"the tensor at {self._allocation.address} was on a {self.device.chip.name} that is closed; copy it to"
                " the host before the device is closed"
            )
        return self._allocation

    @property
    def is_allocated(self) -> bool:
        """Whether the block is still allocated.

        >>> from tilewright import TensorSpec
        >>> device = Device("wormhole_n150")
        >>> DeviceStorage(device, device.allocate(TensorSpec((4, 4)))).is_allocated
        True
        """
        return self._release.alive and self.device.is_open

    def free(self) -> None:
        """Free the block; a second call does nothing.

        >>> from tilewright import TensorSpec
        >>> device = Device("wormhole_n150")
        >>> DeviceStorage(device, device.allocate(TensorSpec((4, 4)))).free()
        """
        self._release()


def convert_pages(pages: Bytes, before: TensorSpec, after: TensorSpec, fill: Number = 0) -> Bytes:
    """Return `pages` of a tensor as pages of another spec of the same shape: one plan converts, retiles and pads.

    >>> rows, tiles = TensorSpec((2, 3), "uint8"), TensorSpec((2, 3), "uint8", "tile", (1, 16))
    >>> convert_pages(np.arange(6, dtype=np.uint8), rows, tiles, fill=9)[:5].tolist()
    [0, 1, 2, 9, 9]
    """
    if len(before.padded_shape) != len(after.padded_shape):  # ranks below 2 are extended, which is not a single plan
        return to_bytes(from_bytes(pages, before), after, fill)
    out = aligned_empty(after.nbytes, np.uint8)
    if after.nbytes:
        execute(plan_copy(host_placement(before), host_placement(after, fill)), pages, out)
    return out


def padding_as_data(spec: TensorSpec) -> TensorSpec:
    """Return the spec of the same pages in which padding counts as data.

    >>> padding_as_data(TensorSpec((5, 7), page_layout="tile")).shape
    Shape([32, 32])
    """
    return TensorSpec(spec.padded_shape, spec.dtype, spec.page_layout, spec.tile)


def pad_spec(
    spec: TensorSpec, padded_shape: Sequence[int], start: Sequence[int] | None = None
) -> tuple[TensorSpec, tuple[int, ...]]:
    """Return (spec, start): the spec with a larger padded shape, and where the data start in it. Row-major only.

    >>> pad_spec(TensorSpec((5, 7), "float32"), (6, 10), (0, 1))
    (TensorSpec((5, 7), 'float32', 'row_major', alignment=(6, 10)), (0, 1))
    """
    if spec.page_layout is not PageLayout.ROW_MAJOR:
        raise MemoryConfigError(f"pad needs a row-major tensor, got {spec.tile}; use to_layout('row_major') first")
    extents = tuple([int(as_integer(n, "an extent")) for n in padded_shape])
    begin = tuple([int(as_integer(n, "a start")) for n in start]) if start is not None else (0,) * len(extents)
    if len(extents) != spec.shape.rank or len(begin) != spec.shape.rank:
        raise LayoutError(
            f"{spec.shape!r} needs a padded extent and a start per dimension, got {list(extents)} and {list(begin)}"
        )
    if any(first < 0 or first + n > size for first, n, size in zip(begin, spec.shape, extents, strict=True)):
        raise LayoutError(
            f"{spec.shape!r} from {list(begin)} on does not fit into the padded shape {list(extents)};"
            " each padded extent must be at least start + extent"
        )
    alignment = alignment_of(extents) if all(extents) and extents else None
    return TensorSpec(spec.shape.logical, spec.dtype, "row_major", None, spec.memory, spec.chip, alignment), begin


def page_grid(pages: Bytes, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """Return the pages of a tiled tensor as an array: outer dimensions, rows and columns of tiles, bytes of a tile.

    >>> spec = TensorSpec((2, 64, 96), "bfloat16", "tile")
    >>> page_grid(np.zeros(spec.nbytes, np.uint8), spec).shape
    (2, 2, 3, 2048)
    """
    if spec.page_layout is not PageLayout.TILE:
        raise TypeError(f"page_grid needs a tiled tensor, got {spec}")
    *outer, rows, columns = spec.padded_shape
    return pages.reshape(*outer, rows // spec.tile.height, columns // spec.tile.width, spec.page_bytes)


def upload_pages(pages: Bytes, spec: TensorSpec, device: Device) -> DeviceStorage:
    """Allocate memory for a tensor on `device`, write its pages, and return the storage.

    >>> upload_pages(np.zeros(8, np.uint8), TensorSpec((8,), "uint8"), Device("wormhole_n150")).allocation.size
    32
    """
    storage = DeviceStorage(device, device.allocate(spec))
    device.write(storage.allocation, pages)
    return storage


RangeEntry: TypeAlias = "slice | SupportsIndex | EllipsisType"


def index_ranges(entries: Sequence[RangeEntry], extents: tuple[int, ...]) -> tuple[range, ...]:
    """Return the indices that slices and integers select from dimensions with these extents; missing ones are whole.

    >>> index_ranges((slice(1, None), 3), (4, 8))
    (range(1, 4), range(3, 4))
    """
    complete = list(entries)
    if Ellipsis in complete:
        dots = complete.index(Ellipsis)
        complete[dots : dots + 1] = [slice(None)] * (len(extents) - len(complete) + 1)
    if len(complete) > len(extents):
        raise LayoutError(f"expected at most {len(extents)} ranges for the shape {list(extents)}, got {len(complete)}")
    complete += [slice(None)] * (len(extents) - len(complete))
    return tuple([_index_range(entry, n) for entry, n in zip(complete, extents, strict=True)])


def _index_range(entry: RangeEntry, extent: int) -> range:
    """Return the indices that a slice or an integer selects from a dimension."""
    if isinstance(entry, slice):
        start, stop, step = entry.indices(extent)
        if step < 1:
            raise LayoutError(f"the step of a slice must be positive, got {step}; reverse the array instead")
        return range(start, max(start, stop), step)
    index = int(as_integer(entry, "an index"))
    if not -extent <= index < extent:
        raise LayoutError(f"index {index} is outside a dimension of {extent}; use {-extent} to {extent - 1}")
    return range(index % extent, index % extent + 1)


def page_slices(spec: TensorSpec, selected: tuple[range, ...]) -> tuple[slice, ...] | None:
    """Return the slices of the grid of pages that ranges of elements cover; None if they cut through tiles.

    >>> page_slices(TensorSpec((128, 64), page_layout="tile"), (range(32, 96), range(64)))
    (slice(1, 3, 1), slice(0, 2, 1))
    """
    rank, logical = spec.shape.rank, spec.shape.logical
    if rank < 2 or spec.page_layout is not PageLayout.TILE or spec.padded_shape[:-2] != logical[:-2]:
        return None
    slices = [slice(part.start, part.stop, part.step) for part in selected]
    for d, unit in ((-2, spec.tile.height), (-1, spec.tile.width)):
        part = selected[d]
        ends_at_tile = part.stop % unit == 0 or part.stop == logical[d]
        if part.start % unit or not ends_at_tile or part.step != 1:
            return None
        slices[d] = slice(part.start // unit, ceil_div(part.stop, unit), 1)
    return tuple(slices)
