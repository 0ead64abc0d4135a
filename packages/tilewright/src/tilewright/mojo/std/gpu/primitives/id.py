# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.primitives.id`: who a thread is."""

from __future__ import annotations

from typing import Any

from .....simt import block_dim, block_idx, global_idx, grid_dim, thread_idx
from .....simt import lane_id as _lane_id
from .....simt import warp_id as _warp_id
from .....simt.kernel_thread import Dim, RunningMachine, ThreadValue, current_machine

__all__ = [
    "block_dim",
    "block_id_in_cluster",
    "block_idx",
    "cluster_dim",
    "cluster_idx",
    "global_idx",
    "grid_dim",
    "lane_id",
    "sm_id",
    "thread_idx",
    "warp_id",
]


class _ThreadFunction:
    """A function without arguments that may have parameters in brackets, such as `warp_id[broadcast=True]()`."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self) -> int:
        return int(self._function())

    def __getitem__(self, _: Any) -> _ThreadFunction:
        return self

    def with_parameters(self, *_: Any, **named: Any) -> _ThreadFunction:
        """Return the function: its parameters are hints.

        >>> lane_id.with_parameters(broadcast=True) is lane_id
        True
        """
        return self

    def __repr__(self) -> str:
        return str(self.__name__)


lane_id, warp_id = _ThreadFunction(_lane_id), _ThreadFunction(_warp_id)


def _in_cluster(machine: RunningMachine) -> Dim:
    pairs = zip(machine.block_index, machine.plan.cluster, strict=True)
    return Dim(*[index % extent for index, extent in pairs])


def _cluster_index(machine: RunningMachine) -> Dim:
    pairs = zip(machine.block_index, machine.plan.cluster, strict=True)
    return Dim(*[index // extent for index, extent in pairs])


cluster_idx = ThreadValue("cluster_idx", _cluster_index)
cluster_dim = ThreadValue("cluster_dim", lambda machine: Dim(*machine.plan.cluster))
block_id_in_cluster = ThreadValue("block_id_in_cluster", _in_cluster)


def sm_id() -> int:
    """Return the number of the multiprocessor: 0, since blocks run one after another.

    >>> from tilewright.simt import launch
    >>> launch(lambda: print(sm_id()), grid=1, block=1).clean
    0
    True
    """
    current_machine("sm_id()")
    return 0
