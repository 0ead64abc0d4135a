# SPDX-License-Identifier: Apache-2.0
"""The schedules of TTL's three schemes as data, in closed form: as tilewright runs them, and as TTL ships them."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import LayoutError
from ..tiling.schedule import Action, Compute, Export, Import, Phase, TransferKey, TransferKind, Wait


def schedule(scheme: str, tiles: int, shipped: bool = False) -> Iterator[Phase]:
    """Return an iterator over the phases of a scheme for a number of tiles.

    `shipped` returns what TTL does: duplex imports tile 0 twice, and simplex does not order an export before the
    import into the same buffer.

    >>> for phase in schedule("simplex", 2):
    ...     print(phase)
    start: wait[]; wait[]; import 0 -> b0
    step 0: wait[]; wait[import 0]; import 1 -> b1; compute 0 (b0 -> b2)
    step 1: wait[]; wait[import 1]; export 0 <- b2; compute 1 (b1 -> b0)
    finish: wait[export 0]; wait[]; export 1 <- b0; wait[export 1]; wait[]
    """
    if scheme not in _SCHEMES:
        raise LayoutError(f"unknown TTL scheme {scheme!r}; choose one of {', '.join(_SCHEMES)}")
    return _SCHEMES[scheme](tiles, shipped)


def _transfer_keys(kind: TransferKind, tile: int, tiles: int) -> tuple[TransferKey, ...]:
    return (TransferKey(kind, tile),) if 0 <= tile < tiles else ()


def _import_actions(tile: int, tiles: int, buffer: str, after: tuple[TransferKey, ...] = ()) -> list[Action]:
    return [Import(tile, buffer, 0, after)] if 0 <= tile < tiles else []


def _export_actions(tile: int, tiles: int, buffer: str) -> list[Action]:
    return [Export(tile, buffer)] if 0 <= tile < tiles else []


def _double_phases(n: int, _: bool) -> Iterator[Phase]:
    yield Phase("start_import", None, (Wait(()), *_import_actions(0, n, "in0")))
    yield Phase("start_export", None, ())
    for i in range(n):
        arriving = Wait(_transfer_keys("import", i, n))
        yield Phase("step_import", i, (arriving, *_import_actions(i + 1, n, f"in{(i + 1) % 2}")))
        leaving = Wait(_transfer_keys("export", i - 2, n))
        compute = Compute(i, f"in{i % 2}", f"out{(i + 1) % 2}")
        yield Phase("step_export", i, (leaving, *_export_actions(i - 1, n, f"out{i % 2}"), compute))
    yield Phase("finish_import", None, ())
    last = _export_actions(n - 1, n, f"out{n % 2}")
    yield Phase(
        "finish_export",
        None,
        (Wait(_transfer_keys("export", n - 2, n)), *last, Wait(_transfer_keys("export", n - 1, n))),
    )


def _duplex_phases(n: int, shipped: bool) -> Iterator[Phase]:
    yield Phase("start", None, (*_import_actions(0, n, "in"), Wait(_transfer_keys("import", 0, n), 2)))
    for i in range(n):
        again = shipped or i > 0
        begun = [*(_import_actions(i, n, "in") if again else []), *_export_actions(i - 1, n, "out")]
        ended = (*(_transfer_keys("import", i, n) if again else ()), *_transfer_keys("export", i - 1, n))
        yield Phase("step", i, (*begun, Wait(ended, 2), Compute(i, "in", "out")))
    yield Phase("finish", None, (*_export_actions(n - 1, n, "out"), Wait(_transfer_keys("export", n - 1, n), 2)))


def _simplex_phases(n: int, shipped: bool) -> Iterator[Phase]:
    yield Phase("start", None, (Wait(()), Wait(()), *_import_actions(0, n, "b0")))
    for i in range(n):
        turning = f"b{(i + 1) % 3}"
        leaving = _transfer_keys("export", i - 1, n)
        ready = (Wait(_transfer_keys("export", i - 2, n)), Wait(_transfer_keys("import", i, n)))
        begun = (*_export_actions(i - 1, n, turning), *_import_actions(i + 1, n, turning, () if shipped else leaving))
        yield Phase("step", i, (*ready, *begun, Compute(i, f"b{i % 3}", f"b{(i + 2) % 3}")))
    last = _export_actions(n - 1, n, f"b{(n + 1) % 3}")
    ready = (Wait(_transfer_keys("export", n - 2, n)), Wait(()))
    yield Phase("finish", None, (*ready, *last, Wait(_transfer_keys("export", n - 1, n)), Wait(())))


_SCHEMES = {"double": _double_phases, "duplex": _duplex_phases, "simplex": _simplex_phases}
