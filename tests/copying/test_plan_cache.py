# SPDX-License-Identifier: Apache-2.0
"""Compiled plans in memory: found again by plan and key, and never more of them than there is room for."""

import gc
import weakref

import numpy as np

import tilewright as tw
from tilewright.copying import Placement, compiled, plan_copy
from tilewright.copying.kernel_cache import PlanCache


def plan_of(size):
    place = Placement(tw.Layout(size), "int8")
    return plan_copy(place, place)


def never():
    raise AssertionError("made again, although it was kept")


def test_what_was_made_is_found_by_plan_and_key():
    kept = PlanCache()
    assert kept.get(plan_of(4), "a", lambda: 1) == kept.get(plan_of(4), "a", never) == 1
    assert kept.get(plan_of(4), "b", lambda: 2) == 2
    assert kept.get(plan_of(5), "a", lambda: 3) == 3
    assert kept.get(plan_of(4), "a", never) == 1


def test_only_so_many_are_kept(monkeypatch):
    monkeypatch.setattr(compiled, "MOST", 3)
    kept = PlanCache()
    for size in range(1, 5):
        kept.get(plan_of(size), None, lambda size=size: size)
    assert kept.get(plan_of(4), None, never) == 4
    assert kept.get(plan_of(1), None, lambda: "again") == "again"


def test_tables_that_take_too_much_room_are_let_go(monkeypatch):
    monkeypatch.setattr(compiled, "MAX_FILE_BYTES", 1000)
    kept = PlanCache(lambda table: table.nbytes)
    gone = weakref.ref(kept.get(plan_of(1), None, lambda: np.zeros(600, np.uint8)))
    kept.get(plan_of(2), None, lambda: np.zeros(300, np.uint8))
    assert kept.get(plan_of(1), None, never).nbytes == 600
    kept.get(plan_of(3), None, lambda: np.zeros(300, np.uint8))
    gc.collect()
    assert gone() is None
    assert kept.get(plan_of(4), None, lambda: np.zeros(5000, np.uint8)).nbytes == 5000  # used, however large
    assert kept.get(plan_of(4), None, never).nbytes == 5000
