# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.time`: clocks."""

from __future__ import annotations

import time as _time
from typing import Any

perf_counter, perf_counter_ns, monotonic = _time.perf_counter, _time.perf_counter_ns, _time.monotonic_ns
global_perf_counter_ns = _time.perf_counter_ns
sleep = _time.sleep


def time_function(function: Any) -> int:
    """Return how many nanoseconds a call of `function` takes.

    >>> time_function(lambda: None) >= 0
    True
    """
    start = perf_counter_ns()
    function()
    return perf_counter_ns() - start
