# SPDX-License-Identifier: Apache-2.0
"""`BaseTensor`: a tensor spec with storage: its properties, its bytes and its values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ..copying.dlpack import as_host_array, export_dlpack
from ..errors import LayoutError
from ..formats import Format, FormatLike, fit_values, format_of
from ..memory import (
    Allocation,
    Device,
    MemoryConfig,
    PageLayout,
    Shape,
    SpecChange,
    TensorSpec,
    Tile,
    from_bytes,
    to_bytes,
)
from ..showing import Shown
from .page_storage import Bytes, DeviceStorage, HostStorage, StorageType, padding_as_data
from .store import Array, Number, Storage

Kind = TypeVar("Kind", bound="BaseTensor")


class BaseTensor(Shown):
    """A tensor spec, and the bytes of its pages on the host (owned or borrowed) or on a device.

    >>> BaseTensor.of([[1, 2]]).nbytes
    16
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
        cls: type[Kind],
        array: Storage,
        dtype: FormatLike | None = None,
        pad_value: Number = 0,
        borrow: bool | None = None,
        **spec: Any,
    ) -> Kind:
        """Return a tensor with the values of `array`, an array or any object with DLPack.

        `dtype` is another number format, to which an array is converted, and of which the numbers of a list must be
        values; `pad_value` fills padding, and `spec` are further arguments of `TensorSpec`.
        An array that already has the bytes of the pages is borrowed: both share memory. `borrow=True` raises if that is
        not possible, `borrow=False` always copies.

        >>> values = np.zeros((2, 3), dtype=np.float32)
        >>> x = BaseTensor.of(values)
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
    def from_array(
        cls: type[Kind], array: Storage, spec: TensorSpec, pad_value: Number = 0, borrow: bool | None = None
    ) -> Kind:
        """Return a tensor with the values of `array` and this `spec`; `pad_value` and `borrow` as in `of`.

        >>> BaseTensor.from_array([[1, 2]], TensorSpec((1, 2), "int32")).nbytes
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
    def from_pages(cls: type[Kind], data: bytes | bytearray | memoryview | Array, spec: TensorSpec) -> Kind:
        """Return a tensor with the bytes `data` as its pages, which are borrowed.

        >>> BaseTensor.from_pages(bytes(8), TensorSpec((2, 2), "int16")).storage_type
        <StorageType.BORROWED_HOST: 1>
        """
        pages: Bytes = np.asarray(data) if hasattr(data, "__array__") else np.frombuffer(data, np.uint8)
        if not pages.flags.c_contiguous or pages.nbytes != spec.nbytes:
            raise LayoutError(f"expected {spec.nbytes} contiguous bytes for {spec}, got {pages.nbytes}")
        return cls(spec, HostStorage(pages.reshape(-1).view(np.uint8), StorageType.BORROWED_HOST))

    # Properties.

    @property
    def shape(self) -> Shape:
        """Return the logical and the padded extents.

        >>> BaseTensor.of(np.zeros((5, 7)), page_layout="tile").shape
        Shape([5, 7], [32, 32])
        """
        return self.spec.shape

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """Return the padded extents.

        >>> BaseTensor.of(np.zeros((5, 7)), page_layout="tile").padded_shape
        (32, 32)
        """
        return self.spec.padded_shape

    @property
    def dtype(self) -> Format:
        """Return the number format.

        >>> BaseTensor.of(np.zeros((5, 7), np.int8)).dtype
        format_of('int8')
        """
        return self.spec.dtype

    @property
    def layout(self) -> PageLayout:
        """Return whether pages are rows or tiles.

        >>> BaseTensor.of(np.zeros((5, 7))).layout
        PageLayout.ROW_MAJOR
        """
        return self.spec.page_layout

    @property
    def tile(self) -> Tile:
        """Return the tile; the default one where pages are rows.

        >>> BaseTensor.of(np.zeros((5, 7)), page_layout="tile", tile=(16, 32)).tile
        Tile((16, 32))
        """
        return self.spec.tile

    @property
    def memory(self) -> MemoryConfig:
        """Return the memory config of the tensor.

        >>> BaseTensor.of(np.zeros((5, 7))).memory
        MemoryConfig('interleaved', 'dram')
        """
        return self.spec.memory

    @property
    def nbytes(self) -> int:
        """Return the number of bytes of all pages.

        >>> BaseTensor.of(np.zeros((5, 7), np.float32)).nbytes
        140
        """
        return self.spec.nbytes

    @property
    def storage_type(self) -> StorageType:
        """Return who owns the bytes.

        >>> BaseTensor.of([[1, 2]], borrow=False).storage_type
        <StorageType.OWNED_HOST: 0>
        """
        return self.storage.type

    @property
    def device(self) -> Device | None:
        """Return the device that holds the tensor, None on the host.

        >>> BaseTensor.of([[1, 2]]).device is None
        True
        """
        return self.storage.device if isinstance(self.storage, DeviceStorage) else None

    @property
    def data_start(self) -> tuple[int, ...]:
        """Return where the data start in the padded shape: at the origin, unless `pad` was given a start.

        >>> BaseTensor.of([[1, 2]]).data_start
        (0, 0)
        """
        return (0,) * self.spec.shape.rank if self._start is None else self._start

    @property
    def pages(self) -> Bytes:
        """Return the bytes of all pages, one after the other: those of the tensor on the host, a copy from a device.

        >>> BaseTensor.of(np.array([[1, 2]], np.uint8)).pages.tolist()
        [1, 2]
        """
        if isinstance(self.storage, HostStorage):
            return self.storage.data
        return self.storage.device.read(self._block())

    @property
    def raw(self) -> memoryview:
        """Return the bytes of all pages as a buffer, without a copy on the host.

        The tensor itself exports no buffer: NumPy would read its bytes as its values.

        >>> BaseTensor.of(np.array([[1, 2]], np.uint8)).raw.tobytes()
        b'\\x01\\x02'
        """
        return self.pages.data

    # Values.

    def numpy(self, dtype: FormatLike | None = None) -> Array:
        """Return the logical values as an array of `dtype` (block formats as float32), without a copy where possible.

        >>> BaseTensor.of([[1.0, 2.0]], dtype="bfloat8_b").numpy().tolist()
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

    def item(self) -> Any:
        """Return the only element, as a Python number.

        >>> BaseTensor.of([[2.5]]).item()
        2.5
        """
        return self.numpy().item()

    # Memory.

    def _block(self) -> Allocation:
        """Return the allocation on the device with the spec of this tensor, which may be a view of another."""
        assert isinstance(self.storage, DeviceStorage)
        return replace(self.storage.allocation, spec=self.spec)

    def deallocate(self) -> None:
        """Free the memory on the device, for all views of it; on the host nothing happens.

        >>> BaseTensor.of([[1, 2]]).deallocate()
        """
        if isinstance(self.storage, DeviceStorage):
            self.storage.free()

    def is_allocated(self) -> bool:
        """Return whether the bytes are allocated.

        >>> BaseTensor.of([[1, 2]]).is_allocated()
        True
        """
        return not isinstance(self.storage, DeviceStorage) or self.storage.is_allocated

    def __repr__(self) -> str:
        where = f"on {self.device.chip.name}" if self.device else self.storage_type.name.lower().replace("_", " ")
        return f"<Tensor {self.spec}, {where}>"
