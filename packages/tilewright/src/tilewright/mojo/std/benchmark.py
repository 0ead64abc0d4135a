# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.benchmark`: what is measured runs once; times of a simulation say nothing about a device."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from ..brackets import Bracketed
from ..collections import List

__all__ = [
    "Bench",
    "BenchConfig",
    "BenchId",
    "BenchMetric",
    "Bencher",
    "BenchmarkInfo",
    "Report",
    "ThroughputMeasure",
    "bencher_iter_custom",
    "black_box",
    "keep",
    "run",
]


def keep(*_: Any) -> None:
    """Do nothing: nobody optimises a value away here.

    >>> keep(3)
    """


def black_box(value: Any) -> Any:
    """Return the value.

    >>> black_box(3)
    3
    """
    return value


class Report:
    """The time of one run.

    >>> Report(0.5).mean("ms")
    500.0
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def mean(self, unit: Any = "s") -> float:
        """Return the mean time; there was one run.

        >>> Report(0.5).mean()
        0.5
        """
        return self._seconds * {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}.get(str(unit), 1.0)

    duration = min = max = mean

    def iters(self) -> int:
        """Return how often it ran.

        >>> Report().iters()
        1
        """
        return 1

    def print(self, unit: Any = "s") -> None:
        """Print the time.

        >>> Report(0.0).print()
        Mean: 0.0 s (one run)
        """
        print(f"Mean: {self.mean(unit)} {unit} (one run)")


def _run(_: Any, parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> Report:
    (function,) = [value for value in (*parameters, *arguments, *named.values()) if callable(value)][:1]
    start = perf_counter()
    function()
    return Report(perf_counter() - start)


class _Run(Bracketed[Report]):
    """`run[function]()`: the report of one run.

    >>> run[lambda: None]().iters()
    1
    """


run = _Run(_run)


class _Settings:
    """Settings that have no effect: everything runs once."""

    def __init__(self, *values: Any, **named: Any) -> None:
        self.values, self.named = values, named
        self.__dict__.update(named)


class BenchConfig(_Settings):
    """How often and how long to measure; no effect here.

    >>> BenchConfig(max_iters=10).max_iters
    10
    """


class BenchId(_Settings):
    """The name of a measurement.

    >>> BenchId("copy").values
    ('copy',)
    """


class BenchmarkInfo(_Settings):
    """What is known of a measurement.

    >>> BenchmarkInfo(name="copy").name
    'copy'
    """


class ThroughputMeasure(_Settings):
    """How much work a run does.

    >>> ThroughputMeasure("elements", 10).values
    ('elements', 10)
    """


class BenchMetric:
    """What is counted: elements, bytes or floating point operations.

    >>> BenchMetric.bytes
    'bytes'
    """

    elements, bytes, flops, theoretical_flops = "elements", "bytes", "flops", "theoretical_flops"


class Bencher:
    """Runs what is measured, once.

    >>> Bencher().iter[lambda: print("ran")]()
    ran
    """

    num_iters = 1

    def _iterate(self, parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> None:
        callables = [value for value in (*parameters, *arguments, *named.values()) if callable(value)]
        callables[0]()

    def _iterate_custom(self, parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> None:
        callables = [value for value in (*parameters, *arguments) if callable(value)]
        rest = [value for value in arguments if not callable(value)]
        callables[0](*rest)

    @property
    def iter(self) -> Bracketed[None]:
        """Run a function once: `bencher.iter[function]()`.

        >>> Bencher().iter[lambda: None]()
        """
        return Bracketed(Bencher._iterate, self)

    @property
    def iter_custom(self) -> Bracketed[None]:
        """Run a function of a device context once: `bencher.iter_custom[function](ctx)`.

        >>> Bencher().iter_custom[lambda ctx: None]("ctx")
        """
        return Bracketed(Bencher._iterate_custom, self)

    iter_preproc = iter  # noqa: A003  (Mojo's names)


def bencher_iter_custom(bencher: Bencher, function: Any, *arguments: Any) -> None:
    """Run a function of a device context once.

    >>> bencher_iter_custom(Bencher(), lambda ctx: None, "ctx")
    """
    bencher.iter_custom(function, *arguments)


class Bench:
    """A list of measurements; each runs once, when it is added.

    >>> bench = Bench()
    >>> bench.bench_function[lambda bencher: bencher.iter[lambda: None]()](BenchId("copy"))
    >>> bench.dump_report()
    copy: one run
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        self.config = BenchConfig()
        self._names: list[str] = []

    def _measure(self, parameters: tuple[Any, ...], *arguments: Any, **_: Any) -> None:
        functions = [value for value in (*parameters, *arguments) if callable(value)]
        names = [value for value in arguments if isinstance(value, BenchId)]
        others = (_Settings, list, List, str)
        inputs = [value for value in arguments if not callable(value) and not isinstance(value, others)]
        functions[0](Bencher(), *inputs)
        self._names.append(str(names[0].values[0]) if names and names[0].values else "benchmark")

    @property
    def bench_function(self) -> Bracketed[None]:
        """Measure a function of a `Bencher`: `bench.bench_function[function](BenchId("name"))`.

        >>> Bench().bench_function[lambda bencher: None](BenchId("copy"))
        """
        return Bracketed(Bench._measure, self)

    bench_with_input = bench_function

    def dump_report(self, *_: Any) -> None:
        """Print what was measured.

        >>> Bench().dump_report()
        """
        for name in self._names:
            print(f"{name}: one run")
