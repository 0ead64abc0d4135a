# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.tile_io`: copiers between memories of a kernel: `Copier[thread_layout]().copy(dst, src)`."""

from __future__ import annotations

from typing import Any, ClassVar

from .memory_copies import CopyPlan, ThreadScope, plan_of


class TileCopier:
    """Copies the share of a thread from a source to a target.

    >>> GenericToSharedTileCopier.__mro__[1] is TileCopier
    True
    """

    SHARES: ClassVar[tuple[bool, bool]] = (True, True)  # whether target and source are distributed over the threads
    SCOPE: ClassVar[ThreadScope] = ThreadScope.BLOCK
    IS_ASYNC: ClassVar[bool] = False

    def __init__(self, plan: CopyPlan) -> None:
        self._plan = plan

    @classmethod
    def with_parameters(cls, *parameters: Any, **named: Any) -> Any:
        """Return what makes a copier with these parameters: `Copier[thread_layout, swizzle=...]`.

        >>> from tilewright.mojo.layout import row_major
        >>> isinstance(SharedToGenericTileCopier.with_parameters(row_major[4]())(), TileCopier)
        True
        """
        named.setdefault("thread_scope", cls.SCOPE)
        plan = plan_of(parameters, named, cls.SHARES, cls.IS_ASYNC)
        return lambda: cls(plan)

    def __class_getitem__(cls, parameters: Any) -> Any:
        return cls.with_parameters(*(parameters if isinstance(parameters, tuple) else (parameters,)))

    def copy(self, dst: Any, src: Any) -> None:
        """Copy the share of the running thread of `src` to `dst`.

        >>> TileCopier.copy.__name__
        'copy'
        """
        self._plan.copy(dst, src)


class GenericToSharedTileCopier(TileCopier):
    """Copies from global to shared memory.

    >>> GenericToSharedTileCopier.SHARES
    (True, True)
    """


class GenericToSharedAsyncTileCopier(TileCopier):
    """Copies from global to shared memory; the thread has to wait before the target is read.

    >>> GenericToSharedAsyncTileCopier.SHARES
    (True, True)
    """

    IS_ASYNC = True


class SharedToGenericTileCopier(TileCopier):
    """Copies from shared to global memory.

    >>> SharedToGenericTileCopier.SHARES
    (True, True)
    """


class GenericToLocalTileCopier(TileCopier):
    """Copies from global memory to that of the thread.

    >>> GenericToLocalTileCopier.SHARES
    (False, True)
    """

    SHARES = (False, True)


class LocalToGenericTileCopier(TileCopier):
    """Copies from the memory of the thread to global memory.

    >>> LocalToGenericTileCopier.SHARES
    (True, False)
    """

    SHARES = (True, False)


class SharedToLocalTileCopier(TileCopier):
    """Copies from shared memory to that of the thread.

    >>> SharedToLocalTileCopier.SHARES
    (False, True)
    """

    SHARES = (False, True)


class LocalToSharedTileCopier(TileCopier):
    """Copies from the memory of the thread to shared memory.

    >>> LocalToSharedTileCopier.SHARES
    (True, False)
    """

    SHARES = (True, False)
