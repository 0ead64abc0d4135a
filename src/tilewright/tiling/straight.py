# SPDX-License-Identifier: Apache-2.0
"""A copy without a compute, between memories: straight from source to target, with no buffer between them.

Tiles that lie side by side are one move then: a band of the array, some rows of tiles high, shared by native threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .execution import CancelledError, Progress, Switch
from .moves import straight_move
from .ports import MemoryPort, Port
from .sharing import share_storage
from .tiler import Tiler

BAND_BYTES = 64 << 20
"""Bytes of a band: much more than can be copied while threads start, and little enough to cancel between two."""


def can_go_straight(sources: Sequence[Port], targets: Sequence[Port], tilers: Sequence[Tiler]) -> bool:
    """Return whether sources and targets are memories that share nothing, and nothing is padded.

    >>> import numpy as np
    >>> from tilewright.tiling import ExternalTensor
    >>> a, b = (MemoryPort(ExternalTensor(np.zeros(8))) for _ in range(2))
    >>> can_go_straight([a], [b], [Tiler((8,), (4,))]), can_go_straight([a], [a], [Tiler((8,), (4,))])
    (True, False)
    """
    if any(any(tiler.overlap) or any(map(any, tiler.augmentation)) for tiler in tilers):
        return False
    # by their exact type: a mapped file is better read and written than touched
    if any(type(port) is not MemoryPort for port in (*sources, *targets)):
        return False
    return not any(share_storage(source, target) for source in sources for target in targets)


def copy_straight(
    sources: Sequence[Port],
    targets: Sequence[Port],
    tilers: Sequence[Tiler],
    threads: int,
    progress: Progress | None = None,
    cancel: Switch | None = None,
) -> int:
    """Return the bytes that were copied, in bands of whole rows of tiles.

    >>> import numpy as np
    >>> from tilewright.tiling import ExternalTensor
    >>> a, b = np.arange(8), np.zeros(8, int)
    >>> ends = [[MemoryPort(ExternalTensor(x))] for x in (a, b)]
    >>> copy_straight(*ends, [Tiler((8,), (4,))], threads=1)
    64
    >>> b.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    pairs = list(zip(sources, targets, tilers, strict=True))
    total = sum([tiler.volume * source.dtype.itemsize for source, _, tiler in pairs])
    count, moved = tilers[0].count, 0
    for source, target, tiler in pairs:
        assert isinstance(source, MemoryPort)
        assert isinstance(target, MemoryPort)
        for box in _bands(tiler, source.dtype.itemsize):
            if cancel is not None and cancel.is_set():
                raise CancelledError(f"cancelled after {moved} of {total} bytes")
            straight_move(source.tensor.tile(box), target.tensor.tile(box), threads)()
            moved += box.size * source.dtype.itemsize
            if progress is not None:
                progress(count * moved // total, count)
    return moved


def _bands(tiler: Tiler, itemsize: int) -> Tiler:
    """Return an array cut into whole rows of tiles, as many to a band as make it worth starting threads."""
    rest = [max(1, n) for n in tiler.space[1:]]
    row = tiler.tile[0] * prod(rest) * itemsize
    return Tiler(tiler.space, (tiler.tile[0] * -(-BAND_BYTES // max(1, row)), *rest))
