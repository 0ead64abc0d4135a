# SPDX-License-Identifier: Apache-2.0
"""Bank images: the bytes of a tensor as each bank or core holds them, one bank after the other in one file.

In every bank the image starts at the tensor's address; a JSON index beside the file lists the banks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from .._files import as_path
from ..errors import FileFormatError, MemoryConfigError
from ..memory import Integers, TensorSpec
from .paged_boxes import Runs
from .source_file import ByteArray, FilePath, SourceFile, read_json
from .stored_tensor import StoredTensor
from .strict_json import spec_from_json, spec_to_json

INDEX_SUFFIX, IMAGE_SUFFIX = ".banks.json", ".banks.bin"
_MAX_INDEX_BYTES = 10_000_000


@dataclass(frozen=True)
class BankImage:
    """The offsets of a tensor's pages in its bank image.

    >>> image = BankImage(TensorSpec((64, 64), "bfloat8_b", chip="wormhole_n150"))
    >>> image.bank_bytes, image.nbytes, image.page_offsets(np.arange(4)).tolist()
    (1088, 13056, [0, 1088, 2176, 3264])
    """

    spec: TensorSpec

    @property
    def bank_bytes(self) -> int:
        """Return the bytes of one bank.

        >>> BankImage(TensorSpec((64, 640), "bfloat8_b", chip="wormhole_n150")).bank_bytes
        4352
        """
        return self.spec.bytes_per_bank

    @cached_property
    def nbytes(self) -> int:
        """Return the bytes of the image.

        >>> BankImage(TensorSpec((4, 4), "uint8", chip="wormhole_n150")).nbytes
        384
        """
        return len(self.spec.paging.cores) * self.bank_bytes

    def page_offsets(self, pages: Integers) -> Integers:
        """Return the offset of each page in the image.

        >>> BankImage(TensorSpec((24, 4), "uint8", chip="wormhole_n150")).page_offsets(np.array([0, 1, 12])).tolist()
        [0, 64, 32]
        """
        page_map = self.spec.page_map
        slots = page_map.slot_of_page(pages)
        layouts = (page_map.position_of_slot, page_map.offset_of_slot)
        position, address = [np.broadcast_to(layout(slots), pages.shape) for layout in layouts]
        result: Integers = position.astype(np.int64) * self.bank_bytes + address
        return result

    def runs(self, runs: Runs) -> Runs:
        """Return the runs of the image that hold runs of entire pages, page by page.

        >>> image = BankImage(TensorSpec((24, 4), "uint8", chip="wormhole_n150"))
        >>> image.runs([(0, 8)])
        [(0, 4), (64, 4)]
        """
        size = self.spec.page_bytes
        result: Runs = []
        for start, length in runs:
            if start % size or length % size:
                raise MemoryConfigError(f"bytes {start} to {start + length} are not entire pages of {size} bytes")
            result += [(int(at), size) for at in self.page_offsets(np.arange(start // size, (start + length) // size))]
        return result

    def scatter_pages(self, start: int, pages: ByteArray) -> list[tuple[int, ByteArray]]:
        """Return host pages from byte `start` on as pieces (offset, bytes) of the image.

        >>> image = BankImage(TensorSpec((24, 4), "uint8", chip="wormhole_n150"))
        >>> [(at, part.nbytes) for at, part in image.scatter_pages(48, np.zeros(48, np.uint8))][:2]
        [(32, 32), (96, 32)]
        """
        size, step = self.spec.page_bytes, self.spec.aligned_page_bytes
        first, count = start // size, len(pages) // size
        offsets = self.page_offsets(np.arange(first, first + count))
        order = np.argsort(offsets, kind="stable")
        rows = np.zeros((count, step), np.uint8)
        rows[:, :size] = pages.reshape(count, size)[order]
        offsets = offsets[order]
        cuts = [0, *(np.flatnonzero(np.diff(offsets) != step) + 1).tolist(), count]
        flat = rows.reshape(-1)
        return [(int(offsets[a]), flat[a * step : b * step]) for a, b in pairwise(cuts) if a < b]

    def index_json(self) -> bytes:
        """Return the index of the image as JSON: the spec, and the core and offset of each bank.

        >>> index = BankImage(TensorSpec((4, 4), "uint8", chip="wormhole_n150")).index_json()
        >>> json.loads(index)["banks"][1]
        {'bank': 1, 'core': [1, 0], 'offset': 32}
        """
        spec = self.spec
        banks = [
            {"bank": bank, "core": list(core), "offset": k * self.bank_bytes}
            for k, (bank, core) in enumerate(zip(spec.banks, spec.paging.cores, strict=True))
        ]
        result = {
            "spec": spec_to_json(spec),
            "buffer": spec.memory.buffer_type.name.lower(),
            "bank_bytes": self.bank_bytes,
            "page_bytes": spec.page_bytes,
            "page_step": spec.aligned_page_bytes,
            "banks": banks,
        }
        return (json.dumps(result, indent=1) + "\n").encode()


def read_bank_image(path: FilePath, name: str) -> StoredTensor:
    """Return the tensor of a bank image; `path` is that of its index.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright import to_bytes
    >>> image = BankImage(TensorSpec((2, 4), "uint8", chip="wormhole_n150"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = bytearray(image.nbytes)
    ...     for at, part in image.scatter_pages(0, np.arange(8, dtype=np.uint8)):
    ...         data[at : at + len(part)] = part.tobytes()
    ...     _ = Path(folder, "x.banks.bin").write_bytes(data)
    ...     _ = Path(folder, "x.banks.json").write_bytes(image.index_json())
    ...     read_bank_image(Path(folder, "x.banks.json"), "x").read().tolist()
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    index = as_path(path)
    result = read_json(index, "the index of a bank image", _MAX_INDEX_BYTES)
    image = BankImage(spec_from_json(result.get("spec") if isinstance(result, dict) else None))
    data = SourceFile(index.with_name(index.name[: -len(INDEX_SUFFIX)] + IMAGE_SUFFIX))
    try:
        size = image.nbytes
    except MemoryConfigError as problem:
        raise FileFormatError(f"invalid index: {problem}") from None
    for key in sorted(result.keys() | (facts := json.loads(image.index_json())).keys()):
        if result.get(key, facts.get(key)) != facts.get(key):
            raise FileFormatError(f"invalid index: {key} is not as the spec says; write the image again")
    if data.size != size:
        raise FileFormatError(f"{data.path} has {data.size} bytes, but the image of {image.spec} takes {size}")
    return StoredTensor.paged(name, image.spec.dtype.name, image.spec, data, 0, image)
