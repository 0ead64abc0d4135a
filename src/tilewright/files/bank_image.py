# SPDX-License-Identifier: Apache-2.0
"""Bank images: the bytes of a tensor as each bank or core holds them, one bank after the other in one file.

The image starts at the tensor's own address in every bank; an index beside it, as JSON, says which bank is where.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from ..errors import FileFormatError, MemoryConfigError
from ..memory import TensorSpec
from .boxes import Runs
from .source_file import SourceFile
from .spec_json import spec_from_json, spec_to_json
from .stored_tensor import StoredTensor
from .strict_json import parse_json

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
INDEX_SUFFIX, IMAGE_SUFFIX = ".banks.json", ".banks.bin"
_MOST_INDEX_BYTES = 10_000_000


@dataclass(frozen=True)
class BankImage:
    """Where the pages of a tensor lie in its image.

    >>> image = BankImage(TensorSpec((64, 64), "bfloat8_b", chip="wormhole_n150"))
    >>> image.bank_bytes, image.nbytes, image.offsets(np.arange(4)).tolist()
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

    def offsets(self, pages: Integers) -> Integers:
        """Return where each of these pages starts in the image.

        >>> BankImage(TensorSpec((24, 4), "uint8", chip="wormhole_n150")).offsets(np.array([0, 1, 12])).tolist()
        [0, 64, 32]
        """
        page_map = self.spec.page_map
        slots = page_map.slot_of_page(pages)
        layouts = (page_map.position_of_slot, page_map.offset_of_slot)
        position, address = [np.broadcast_to(layout(slots), pages.shape) for layout in layouts]
        found: Integers = position.astype(np.int64) * self.bank_bytes + address
        return found

    def runs(self, runs: Runs) -> Runs:
        """Return the runs of bytes of the image that hold runs of whole pages, page by page where they are apart.

        >>> image = BankImage(TensorSpec((24, 4), "uint8", chip="wormhole_n150"))
        >>> image.runs([(0, 8)])
        [(0, 4), (64, 4)]
        """
        size = self.spec.page_bytes
        found: Runs = []
        for start, length in runs:
            if start % size or length % size:
                raise MemoryConfigError(f"bytes {start} to {start + length} are no whole pages of {size} bytes")
            found += [(int(at), size) for at in self.offsets(np.arange(start // size, (start + length) // size))]
        return found

    def arranged(self, start: int, pages: Bytes) -> list[tuple[int, Bytes]]:
        """Return pages, the first of which starts at `start` on the host, as pieces of the image: (offset, bytes).

        >>> image = BankImage(TensorSpec((24, 4), "uint8", chip="wormhole_n150"))
        >>> [(at, part.nbytes) for at, part in image.arranged(48, np.zeros(48, np.uint8))][:2]
        [(32, 32), (96, 32)]
        """
        size, step = self.spec.page_bytes, self.spec.aligned_page_bytes
        first, count = start // size, len(pages) // size
        offsets = self.offsets(np.arange(first, first + count))
        order = np.argsort(offsets, kind="stable")
        rows = np.zeros((count, step), np.uint8)
        rows[:, :size] = pages.reshape(count, size)[order]
        offsets = offsets[order]
        cuts = [0, *(np.flatnonzero(np.diff(offsets) != step) + 1).tolist(), count]
        flat = rows.reshape(-1)
        return [(int(offsets[a]), flat[a * step : b * step]) for a, b in pairwise(cuts) if a < b]

    def index(self) -> bytes:
        """Return the index of the image as JSON: the spec, and for each bank its core and where it starts.

        >>> index = BankImage(TensorSpec((4, 4), "uint8", chip="wormhole_n150")).index()
        >>> json.loads(index)["banks"][1]
        {'bank': 1, 'core': [1, 0], 'offset': 32}
        """
        spec = self.spec
        banks = [
            {"bank": bank, "core": list(core), "offset": k * self.bank_bytes}
            for k, (bank, core) in enumerate(zip(spec.banks, spec.paging.cores, strict=True))
        ]
        found = {
            "spec": spec_to_json(spec),
            "buffer": spec.memory.buffer_type.name.lower(),
            "bank_bytes": self.bank_bytes,
            "page_bytes": spec.page_bytes,
            "page_step": spec.aligned_page_bytes,
            "banks": banks,
        }
        return (json.dumps(found, indent=1) + "\n").encode()


def read_bank_image(path: Any, name: str) -> StoredTensor:
    """Return the tensor of a bank image, by the path of its index.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from tilewright import to_bytes
    >>> image = BankImage(TensorSpec((2, 4), "uint8", chip="wormhole_n150"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = bytearray(image.nbytes)
    ...     for at, part in image.arranged(0, np.arange(8, dtype=np.uint8)):
    ...         data[at : at + len(part)] = part.tobytes()
    ...     _ = Path(folder, "x.banks.bin").write_bytes(data)
    ...     _ = Path(folder, "x.banks.json").write_bytes(image.index())
    ...     read_bank_image(Path(folder, "x.banks.json"), "x").read().tolist()
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    index = SourceFile(path)
    if index.size > _MOST_INDEX_BYTES:
        raise FileFormatError(f"an index of {index.size} bytes is too large; at most {_MOST_INDEX_BYTES} are read")
    found = parse_json(index.read(0, index.size), "the index of a bank image")
    image = BankImage(spec_from_json(found.get("spec") if isinstance(found, dict) else None))
    data = SourceFile(index.path.with_name(index.path.name[: -len(INDEX_SUFFIX)] + IMAGE_SUFFIX))
    try:
        size = image.nbytes
    except MemoryConfigError as problem:
        raise FileFormatError(f"the index describes no image: {problem}") from None
    if data.size != size:
        raise FileFormatError(f"{data.path} has {data.size} bytes, and the image of {image.spec} has {size}")
    return StoredTensor.paged(name, image.spec.dtype.name, image.spec, data, 0, image)
