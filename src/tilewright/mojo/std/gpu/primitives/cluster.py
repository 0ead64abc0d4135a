# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.primitives.cluster`: blocks that run together, which this machine does not have."""

from __future__ import annotations

from typing import Any, NoReturn

from .....errors import TransferError

__all__ = [
    "block_rank_in_cluster",
    "cluster_arrive",
    "cluster_arrive_relaxed",
    "cluster_sync",
    "cluster_sync_relaxed",
    "cluster_wait",
    "elect_one_sync",
]


class _Refused:
    """A function of clusters, which says that there are none when it is called.

    >>> try:
    ...     cluster_sync()
    ... except TransferError as problem:
    ...     print(problem)
    cluster_sync() needs blocks that run together, but here blocks run one after another; use one block, or two launches
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise TransferError(
            f"{self.__name__}() needs blocks that run together, but here blocks run one after another; use one block,"
            " or two launches"
        )

    def with_parameters(self, *parameters: Any, **named: Any) -> _Refused:
        """Return the function: it refuses whatever its parameters are.

        >>> cluster_wait.with_parameters(1) is cluster_wait
        True
        """
        return self


block_rank_in_cluster, cluster_arrive = _Refused("block_rank_in_cluster"), _Refused("cluster_arrive")
cluster_arrive_relaxed, cluster_sync = _Refused("cluster_arrive_relaxed"), _Refused("cluster_sync")
cluster_sync_relaxed, cluster_wait = _Refused("cluster_sync_relaxed"), _Refused("cluster_wait")
elect_one_sync = _Refused("elect_one_sync")
