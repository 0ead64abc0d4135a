# SPDX-License-Identifier: Apache-2.0
"""`PageTable`: where every page of a tensor lies, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..layout import Layout, addr

if TYPE_CHECKING:
    from .spec import TensorSpec

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, slots=True, eq=False)
class PageTable:
    """The bank, core and address of every page, page by page.

    >>> from tilewright import TensorSpec
    >>> table = TensorSpec((64, 64), "bfloat16", "tile", chip="wormhole_n150").pages()
    >>> table.bank.tolist(), table.address.tolist()
    ([0, 1, 2, 3], [1048640, 1048640, 1048640, 1048640])
    """

    bank: Integers
    core_x: Integers
    core_y: Integers
    address: Integers

    def __len__(self) -> int:
        return len(self.bank)

    @property
    def page(self) -> Integers:
        """Return the page numbers.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64), "bfloat16", "tile", chip="wormhole_n150").pages().page.tolist()
        [0, 1, 2, 3]
        """
        return np.arange(len(self), dtype=np.int64)

    def rows(self) -> Integers:
        """Return one row a page: page, bank, x, y, address.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((32, 64), "bfloat16", "tile", chip="wormhole_n150").pages().rows().tolist()
        [[0, 0, 0, 0, 1048640], [1, 1, 1, 0, 1048640]]
        """
        return np.stack([self.page, self.bank, self.core_x, self.core_y, self.address], axis=1)


def page_table(spec: TensorSpec, base: int) -> PageTable:
    """Return where every page of a tensor lies whose buffer starts at base.

    >>> from tilewright import TensorSpec
    >>> page_table(TensorSpec((4, 4), chip="wormhole_n150"), 0).core_x.tolist()
    [0, 1, 2, 3]
    """
    if not spec.num_pages:
        nothing = np.zeros(0, dtype=np.int64)
        return PageTable(nothing, nothing, nothing, nothing)
    # Where each shard starts is a broadcast sum; with the modes outermost first it comes out in order.
    deal = spec.page_places
    starts = Layout(tuple(reversed(deal.shape[1:])), tuple(reversed(deal.stride[1:])), offset=base @ addr).offsets()
    position, address = starts[spec.axis].reshape(-1), starts["addr"].reshape(-1)
    cores = np.array(spec.paging.cores, dtype=np.int64)
    if not spec.memory.is_sharded:  # every page is a shard, and the position of a core is its bank
        position, address = position[: spec.num_pages], address[: spec.num_pages]
        return PageTable(position, cores[:, 0][position], cores[:, 1][position], address)
    shard, inside = spec.paging.shard_table()
    banks = np.array(spec.banks, dtype=np.int64)[position]
    inside *= spec.aligned_page_bytes
    inside += address[shard]
    return PageTable(banks[shard], cores[position, 0][shard], cores[position, 1][shard], inside)
