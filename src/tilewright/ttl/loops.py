# SPDX-License-Identifier: Apache-2.0
"""How a kernel drives a scheme: start, step and finish, or create it and loop with a prolog and an epilog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..tiling.transfers import Event
from .schemes import (
    duplex_buffering_t,
    export_double_buffering_t,
    import_double_buffering_t,
    simplex_buffering_t,
)
from .values import create_empty_tile, tile_t


def create_import_double_buffering(buffer_1: Any, buffer_2: Any, external: Any, event: Event) -> Any:
    """Return an import scheme that has not started: the documented loop begins with its prolog.

    >>> from tilewright import ttl
    >>> outside = ttl.create_const_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> create_import_double_buffering(bytearray(3), bytearray(3), outside, ttl.get_event()).prolog
    1
    """
    return import_double_buffering_t(buffer_1, buffer_2, external, event)


def create_export_double_buffering(buffer_1: Any, buffer_2: Any, external: Any, event: Event) -> Any:
    """Return an export scheme that has not started.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> create_export_double_buffering(bytearray(3), bytearray(3), outside, ttl.get_event()).epilog
    2
    """
    return export_double_buffering_t(buffer_1, buffer_2, external, event)


def create_duplex_buffering(
    ext_in: Any, buffer_in: Any, ext_out: Any, buffer_out: Any, event_in: Event, event_out: Event
) -> Any:
    """Return a duplex scheme that has not started.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> events = ttl.get_event(), ttl.get_event()
    >>> create_duplex_buffering(outside, bytearray(3), outside, bytearray(3), *events).epilog
    1
    """
    return duplex_buffering_t(ext_in, buffer_in, ext_out, buffer_out, (event_in, event_out), False)


def create_simplex_buffering(
    buffer_1: Any, buffer_2: Any, buffer_3: Any, ext_in: Any, ext_out: Any, event_in: Event, event_out: Event
) -> Any:
    """Return a simplex scheme that has not started.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> buffers, events = [bytearray(3) for _ in range(3)], (ttl.get_event(), ttl.get_event())
    >>> create_simplex_buffering(*buffers, outside, outside, *events).prolog
    1
    """
    return simplex_buffering_t((buffer_1, buffer_2, buffer_3), ext_in, ext_out, event_in, event_out, False)


def start_import_double_buffering(buffer_1: Any, buffer_2: Any, external: Any, event: Event, first: tile_t) -> Any:
    """Return an import scheme whose first tile is on its way.

    >>> from tilewright import ttl
    >>> outside = ttl.create_const_ext_tensor(bytearray(range(9)), ttl.create_shape(9), 1)
    >>> tiler = ttl.create_tiler(ttl.create_shape(9), ttl.create_shape(3))
    >>> scheme = start_import_double_buffering(
    ...     bytearray(3), bytearray(3), outside, ttl.get_event(), ttl.get_tile(0, tiler)
    ... )
    >>> step_buffering(scheme, ttl.get_tile(1, tiler)).array().tobytes()
    b'\\x00\\x01\\x02'
    """
    scheme = import_double_buffering_t(buffer_1, buffer_2, external, event)
    scheme.step(first)
    return scheme


def start_export_double_buffering(buffer_1: Any, buffer_2: Any, external: Any, event: Event) -> Any:
    """Return an export scheme; nothing is on its way yet.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> start_export_double_buffering(bytearray(3), bytearray(3), outside, ttl.get_event()).prolog
    0
    """
    return export_double_buffering_t(buffer_1, buffer_2, external, event)


def start_duplex_buffering(
    ext_in: Any, buffer_in: Any, ext_out: Any, buffer_out: Any, events: Any, first: tile_t, shipped: bool = False
) -> Any:
    """Return a duplex scheme whose first tile has arrived; `shipped` makes it import that tile again, as TTL does.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> events, tile = (
    ...     [ttl.get_event(), ttl.get_event()],
    ...     ttl.create_tile(0, 0, 0, ttl.create_tiler(ttl.create_shape(9), ttl.create_shape(3))),
    ... )
    >>> scheme = start_duplex_buffering(outside, bytearray(3), outside, bytearray(3), events, tile)
    >>> finish_buffering(scheme)
    """
    scheme = duplex_buffering_t(ext_in, buffer_in, ext_out, buffer_out, events, shipped)
    scheme.start(first)
    return scheme


def start_simplex_buffering(
    buffer_1: Any,
    buffer_2: Any,
    buffer_3: Any,
    ext_in: Any,
    ext_out: Any,
    event_in: Event,
    event_out: Event,
    first: tile_t,
    shipped: bool = False,
) -> Any:
    """Return a simplex scheme whose first tile is on its way; `shipped` leaves out the order that TTL lacks.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> buffers, events = [bytearray(3) for _ in range(3)], (ttl.get_event(), ttl.get_event())
    >>> tiler = ttl.create_tiler(ttl.create_shape(9), ttl.create_shape(3))
    >>> scheme = start_simplex_buffering(*buffers, outside, outside, *events, ttl.get_tile(0, tiler))
    >>> finish_buffering(scheme)
    """
    buffers = (buffer_1, buffer_2, buffer_3)
    scheme = simplex_buffering_t(buffers, ext_in, ext_out, event_in, event_out, shipped)
    scheme.step(first, create_empty_tile())
    return scheme


def step_buffering(scheme: Any, tile: tile_t, *output: tile_t) -> Any:
    """Return the tensors to compute with, after the waits and transfers of one step.

    Double schemes take one tile and return one tensor. Duplex and simplex take an input and an output tile, or one
    for both, and return `io_tensors_t`.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> scheme = start_export_double_buffering(bytearray(3), bytearray(3), outside, ttl.get_event())
    >>> step_buffering(scheme, ttl.create_empty_tile()).shape.width
    0
    """
    return scheme.step(tile, *output)


def finish_buffering(scheme: Any) -> None:
    """Export what was computed last, and retire everything that is in flight.

    >>> from tilewright import ttl
    >>> outside = ttl.create_ext_tensor(bytearray(9), ttl.create_shape(9), 1)
    >>> finish_buffering(start_export_double_buffering(bytearray(3), bytearray(3), outside, ttl.get_event()))
    """
    scheme.finish()


@dataclass(frozen=True)
class pipeline_iterations_t:
    """How many extra iterations a loop over tiles needs before the first tile and after the last.

    >>> pipeline_iterations_t(1, 2)
    pipeline_iterations_t(prolog=1, epilog=2)
    """

    prolog: int
    epilog: int


def create_pipeline_iterations(scheme: Any) -> pipeline_iterations_t:
    """Return the extra iterations that a scheme needs, when it was created and not started.

    >>> create_pipeline_iterations(duplex_buffering_t)
    pipeline_iterations_t(prolog=0, epilog=1)
    """
    return pipeline_iterations_t(scheme.prolog, scheme.epilog)


def join_pipeline_iterations(scheme: Any, iterations: pipeline_iterations_t) -> pipeline_iterations_t:
    """Return the extra iterations that serve a scheme and all those joined before: the larger of each.

    >>> join_pipeline_iterations(export_double_buffering_t, create_pipeline_iterations(import_double_buffering_t))
    pipeline_iterations_t(prolog=1, epilog=2)
    """
    return pipeline_iterations_t(max(scheme.prolog, iterations.prolog), max(scheme.epilog, iterations.epilog))
