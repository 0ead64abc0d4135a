# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.primitives.block`: reductions, scans and broadcasts of all threads of a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.layout import as_integer
from tilewright.mojo import MojoValue, brackets

from ..simt import collectives
from .warp import larger, smaller


class BlockFunction(brackets[Any]):
    """A function of a block: `sum[block_size=128, broadcast=True](val)`; of its parameters only `broadcast` matters.

    >>> isinstance(sum, BlockFunction)
    True
    """


def _reduction(join: Callable[[Any, Any], Any]) -> BlockFunction:
    def call(
        parameters: tuple[Any, ...], val: object, broadcast: object = None, block_size: object = None, **named: Any
    ) -> MojoValue:
        flags = [entry for entry in parameters if isinstance(entry, bool)]
        to_all = bool(flags[0]) if flags else broadcast is None or bool(broadcast)
        return collectives.block_reduce(val, join, to_all)

    return BlockFunction(call)


sum = _reduction(lambda a, b: a + b)  # noqa: A001  (Mojo's names)
max, min = _reduction(larger), _reduction(smaller)  # noqa: A001


def _broadcast(parameters: tuple[Any, ...], val: object, src_thread: object = 0, **named: Any) -> Any:
    return collectives.block_broadcast(val, int(as_integer(src_thread, "a thread")))


def _prefix_sum(parameters: tuple[Any, ...], val: object, exclusive: object = False, **named: Any) -> Any:
    flags = [entry for entry in parameters if isinstance(entry, bool)]
    return collectives.block_prefix_sum(val, bool(flags[0] if flags else exclusive))


def _reduce(parameters: tuple[Any, ...], val: object, func: object = None, **named: Any) -> Any:
    functions = [entry for entry in (*parameters, func) if callable(entry)]
    return collectives.block_reduce(val, functions[-1])


broadcast, prefix_sum, reduce = BlockFunction(_broadcast), BlockFunction(_prefix_sum), BlockFunction(_reduce)
