# SPDX-License-Identifier: Apache-2.0
"""A copy without a compute, between memories: straight from source to target, with no buffer between them.

Tiles that lie side by side are one move then: a band of the array, as high as a tile, shared among native threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from .execution import CancelledError, Progress, Switch
from .moves import straight_move
from .ports import MemoryPort, Port
from .tiler import Tiler


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
    before = [port.tensor.memory for port in sources if type(port) is MemoryPort]
    after = [port.tensor.memory for port in targets if type(port) is MemoryPort]
    if len(before) + len(after) < len(sources) + len(targets):
        return False
    return not any(a.overlaps(b) for a in before for b in after)


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
    bands = [Tiler(tiler.space, (tiler.tile[0], *[max(1, n) for n in tiler.space[1:]])) for tiler in tilers]
    count = bands[0].count
    moved = 0
    for number in range(count):
        if cancel is not None and cancel.is_set():
            raise CancelledError(f"cancelled at band {number} of {count}")
        for source, target, band in zip(sources, targets, bands, strict=True):
            assert isinstance(source, MemoryPort)
            assert isinstance(target, MemoryPort)
            box = band[number]
            straight_move(source.tensor.tile(box), target.tensor.tile(box), threads)()
            moved += box.size * source.dtype.itemsize
        if progress is not None:
            progress(number + 1, count)
    return moved
