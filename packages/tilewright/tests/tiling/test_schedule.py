# SPDX-License-Identifier: Apache-2.0
"""Schedules as data: every tile once, no buffer used by two at a time, and what the run really does."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import LayoutError
from tilewright.tiling import Input, Output, Pipeline, Schedule, SimulatedQueue, Tiler
from tilewright.tiling.schedule import Compute, Export, Import, Phase, TransferKey, Wait

SCHEMES = ["duplex", "double", "simplex", "buffered"]


@st.composite
def schedules(draw):
    scheme = draw(st.sampled_from(SCHEMES))
    depth = draw(st.integers(1, 5)) if scheme == "buffered" else 2
    return Schedule(scheme, draw(st.integers(0, 12)), draw(st.integers(0, 3)), draw(st.integers(0, 3)), depth)


@given(schedules())
def test_every_transfer_is_started_once_and_retired_once(schedule):
    started, retired, computed = Counter(), Counter(), []
    for action in schedule.actions():
        if isinstance(action, Import | Export):
            started[TransferKey(type(action).__name__.lower(), action.tile, action.operand)] += 1
        elif isinstance(action, Wait):
            retired.update(action.retires)
        else:
            computed.append(action.tile)
    assert started == retired
    assert set(started.values()) <= {1}
    assert len(started) == schedule.tiles * (schedule.inputs + schedule.outputs)
    assert computed == list(range(schedule.tiles))


@given(schedules())
def test_no_buffer_is_touched_while_something_else_may_use_it(schedule):
    """Follow each buffer: a transfer in flight owns it, unless the next says that it comes after."""
    owner = {}
    content = {}
    for action in schedule.actions():
        if isinstance(action, Import | Export):
            kind = type(action).__name__.lower()
            place = (action.buffer, action.operand)
            holder = owner.get(place)
            assert holder is None or holder in action.after
            if kind == "export":
                assert content[place] == ("computed", action.tile)
            else:
                content[place] = ("imported", action.tile)
            owner[place] = TransferKey(kind, action.tile, action.operand)
        elif isinstance(action, Wait):
            owner = {place: key for place, key in owner.items() if key not in action.retires}
        else:
            for k in range(schedule.inputs):
                assert owner.get((action.read_buffer, k)) is None
                assert content[action.read_buffer, k] == ("imported", action.tile)
            for k in range(schedule.outputs):
                assert owner.get((action.write_buffer, k)) is None
                content[action.write_buffer, k] = ("computed", action.tile)
    assert not owner


@given(st.integers(0, 12), st.integers(1, 3), st.integers(1, 5))
def test_direct_transfers_follow_whatever_has_their_buffer(tiles, operands, depth):
    schedule = Schedule("direct", tiles, operands, operands, depth)
    owner, flying, started = {}, set(), []
    for action in schedule.actions():
        if isinstance(action, Wait):
            flying -= set(action.retires)
            continue
        kind = type(action).__name__.lower()
        place = (action.buffer, action.operand)
        holder = owner.get(place)
        assert holder is None or holder in action.after
        if kind == "export":
            assert holder == TransferKey("import", action.tile, action.operand)
        owner[place] = TransferKey(kind, action.tile, action.operand)
        flying.add(owner[place])
        started.append(owner[place])
    assert not flying
    assert len(started) == len(set(started)) == 2 * tiles * operands


@given(schedules())
def test_only_the_named_buffers_are_used(schedule):
    used = set()
    for action in schedule.actions():
        if isinstance(action, Compute):
            used |= {action.read_buffer, action.write_buffer}
        elif not isinstance(action, Wait):
            used.add(action.buffer)
    assert used <= set(schedule.buffers)


def test_imports_and_exports_run_beside_the_compute():
    """While tile i is computed, import i + 1 and export i - 1 are under way: that is what buffering is for."""
    for scheme in ("double", "simplex", "buffered"):
        schedule = Schedule(scheme, 9, depth=2)
        flying = set()
        for action in schedule.actions():
            if isinstance(action, Wait):
                flying -= set(action.retires)
            elif isinstance(action, Compute):
                if 1 <= action.tile < 8:
                    assert TransferKey("import", action.tile + 1) in flying
                    assert TransferKey("export", action.tile - 1) in flying
            else:
                flying.add(TransferKey(type(action).__name__.lower(), action.tile, action.operand))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_run_does_what_the_schedule_says(scheme):
    started = []

    class Watched(SimulatedQueue):
        def start(self, transfer):
            started.append((transfer.kind, transfer.tile, transfer.operand))
            super().start(transfer)

    tiler = Tiler((10,), (3,))
    pipeline = Pipeline(
        [Input(np.zeros(10), tiler)], [Output(np.zeros(10), tiler)], scheme=scheme, queue=Watched("fifo")
    )
    planned = [
        (type(action).__name__.lower(), action.tile, action.operand)
        for action in pipeline.schedule().actions()
        if isinstance(action, Import | Export)
    ]
    pipeline.run(lambda x, y: np.copyto(y, x))
    assert started == planned


def test_a_schedule_of_any_length_costs_nothing():
    schedule = Schedule("double", 10**12)
    assert next(iter(schedule)).name == "start"


def test_schedules_are_values():
    schedule = Schedule("buffered", 3, depth=3)
    assert eval(repr(schedule), {"Schedule": Schedule}) == schedule  # noqa: S307 - a repr can be pasted back
    phase = list(schedule)[1]
    names = {
        "Phase": Phase,
        "Import": Import,
        "Export": Export,
        "Wait": Wait,
        "Compute": Compute,
        "TransferKey": TransferKey,
    }
    assert eval(repr(phase), names) == phase  # noqa: S307


def test_what_is_no_scheme():
    with pytest.raises(LayoutError, match="unknown scheme"):
        Schedule("triple", 3)
    with pytest.raises(LayoutError, match="at least 1"):
        Schedule("buffered", 3, depth=0)
    with pytest.raises(LayoutError, match="use scheme='buffered'"):
        Schedule("double", 3, depth=3)
