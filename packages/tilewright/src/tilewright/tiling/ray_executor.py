# SPDX-License-Identifier: Apache-2.0
"""`RayExecutor`: a Ray cluster with the interface of `concurrent.futures.Executor`, for tile plans and conversions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, InvalidStateError
from concurrent.futures import wait as wait_for
from contextlib import suppress
from typing import Any

from ..errors import TransferError


class RayExecutor(Executor):
    """Runs calls as tasks of a Ray cluster.

    Ray does not retry them, so that failures are counted in one place, that of the caller. A worker that was killed, a
    node that was lost or a call that Ray cancelled is an exception of the call's future, like any other.

    Args:
        address: the cluster, such as "auto" or "ray://head:10001"; by default the one that this process is connected
            to, or else a new one on this machine, which ends with the executor.
        options: what a call needs, as for `ray.remote`: `num_cpus`, `memory`, `resources`, `runtime_env`, ...

    >>> issubclass(RayExecutor, Executor)
    True
    """

    def __init__(self, address: str | None = None, **options: Any) -> None:
        try:
            import ray
        except ImportError:
            raise TransferError("RayExecutor needs ray, which is not installed; run: pip install ray") from None
        self._ray: Any = ray
        self._is_connected_here = not ray.is_initialized()
        if self._is_connected_here:
            ray.init(address=address, log_to_driver=False, include_dashboard=False if address is None else None)
        self._cpus = float(options.get("num_cpus", 1))
        self._call = ray.remote(max_retries=0, **options)(_call)
        self._pending: set[RayFuture] = set()
        self._is_shut_down = False

    @property
    def num_workers(self) -> int:
        """Return how many calls the cluster runs at once, as it is now."""
        cpus = float(self._ray.cluster_resources().get("CPU", 1))
        return max(1, int(cpus / self._cpus) if self._cpus else int(cpus))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a call and return its future.

        Args:
            fn: the function; like its arguments it is sent by cloudpickle, so lambdas may be sent.
            args: its arguments.
            kwargs: its keyword arguments.
        """
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = RayFuture(self._ray, self._call.remote(fn, args, kwargs))
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls, and leave the cluster if this executor has connected to it.

        Args:
            wait: return when all submitted calls are over.
            cancel_futures: cancel those that are not over.
        """
        self._is_shut_down = True
        if cancel_futures:
            for future in list(self._pending):
                future.cancel()
        if wait:
            wait_for(list(self._pending))
        if self._is_connected_here and (wait or cancel_futures):
            self._is_connected_here = False
            self._ray.shutdown()


class RayFuture(Future[Any]):
    """The future of a call that runs as a task of Ray.

    >>> issubclass(RayFuture, Future)
    True
    """

    def __init__(self, ray: Any, reference: Any) -> None:
        super().__init__()
        self._ray, self._reference = ray, reference
        reference.future().add_done_callback(self._take)

    def _take(self, done: Future[Any]) -> None:
        problem = done.exception()
        with suppress(InvalidStateError):  # it was cancelled meanwhile
            if problem is None:
                self.set_result(done.result())
            else:
                self.set_exception(problem)

    def cancel(self) -> bool:
        """Cancel the call, also if it runs: Ray interrupts it; return whether it was not over yet."""
        if not super().cancel():
            return False
        with suppress(Exception):  # the cluster may be gone
            self._ray.cancel(self._reference)
        return True


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)
