# SPDX-License-Identifier: Apache-2.0
"""Compiled plans in memory: found again by plan and key, and bounded in number and bytes."""

import gc
import weakref

import numpy as np

import tilewright as tw
from tilewright.copying import Placement, PlanCache, plan_copy
from tilewright.copying import plan as plan_module


def plan_of(size):
    place = Placement(tw.Layout(size), "int8")
    return plan_copy(place, place)


def never():
    raise AssertionError("made again, although it was cached")


def test_what_was_made_is_found_by_plan_and_key():
    cache = PlanCache()
    assert cache.get(plan_of(4), "a", lambda: 1) == cache.get(plan_of(4), "a", never) == 1
    assert cache.get(plan_of(4), "b", lambda: 2) == 2
    assert cache.get(plan_of(5), "a", lambda: 3) == 3
    assert cache.get(plan_of(4), "a", never) == 1


def test_only_so_many_are_kept(monkeypatch):
    monkeypatch.setattr(plan_module, "MAX_PLANS", 3)
    cache = PlanCache()
    for size in range(1, 5):
        cache.get(plan_of(size), None, lambda size=size: size)
    assert cache.get(plan_of(4), None, never) == 4
    assert cache.get(plan_of(1), None, lambda: "again") == "again"


def test_tables_that_take_too_much_room_are_let_go(monkeypatch):
    monkeypatch.setattr(plan_module, "MAX_TABLE_BYTES", 1000)
    cache = PlanCache(lambda table: table.nbytes)
    gone = weakref.ref(cache.get(plan_of(1), None, lambda: np.zeros(600, np.uint8)))
    cache.get(plan_of(2), None, lambda: np.zeros(300, np.uint8))
    assert cache.get(plan_of(1), None, never).nbytes == 600
    cache.get(plan_of(3), None, lambda: np.zeros(300, np.uint8))
    gc.collect()
    assert gone() is None
    assert cache.get(plan_of(4), None, lambda: np.zeros(5000, np.uint8)).nbytes == 5000  # used, however large
    assert cache.get(plan_of(4), None, never).nbytes == 5000
