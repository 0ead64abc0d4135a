# SPDX-License-Identifier: Apache-2.0
"""Mojo's modules `std.memory`, `std.os`, `std.testing` and `std.benchmark`."""

from __future__ import annotations

import math
import os as _os
from time import perf_counter
from typing import Any

import numpy as np

from tilewright.errors import LayoutError, TilewrightError
from tilewright.layout import as_integer
from tilewright.mojo import (
    SIMD,
    AddressSpace,
    DType,
    Error,
    Pointer,
    SIMDType,
    allocate_on_stack,
    brackets,
    format_value,
)

from ..collections import List
from ..errors import FailedAssertion


@brackets
def stack_allocation(parameters: tuple[Any, ...], **named: Any) -> Pointer:
    """`stack_allocation[16, Float32, address_space=AddressSpace.SHARED]()`: a pointer to memory of a block or thread.

    >>> stack_allocation[4, "int8"]().store.size
    4
    """
    values = list(parameters)
    count = values.pop(0) if values else named.get("count")
    kind = values.pop(0) if values else named.get("dtype", named.get("type", named.get("T")))
    space = AddressSpace(named.get("address_space", AddressSpace.GENERIC))
    size = int(as_integer(count, "the number of elements"))
    return Pointer(allocate_on_stack(kind, size, space), 0)


unsafe_stack_allocation = stack_allocation


def memset(ptr: Pointer, value: Any, count: object) -> None:
    """Write `value` to every byte of `count` elements.

    >>> from tilewright.mojo.memory import alloc
    >>> pointer = alloc["uint8"](2)
    >>> memset(pointer, 7, 2)
    >>> pointer[1]
    UInt8(7)
    """
    number = np.full(ptr.dtype.itemsize, int(value) & 255, np.uint8).view(ptr.dtype.dtype)[0]
    for k in range(int(as_integer(count, "the number of elements"))):
        ptr[k] = number.item()


def memset_zero(ptr: Pointer, *count: Any, **named: Any) -> None:
    """Write zeros to `count` elements.

    >>> from tilewright.mojo.memory import alloc
    >>> memset_zero(alloc["uint8"](2), 2)
    """
    memset(ptr, 0, (*count, named.get("count"))[0])


def memcpy(dest: Pointer | None = None, src: Pointer | None = None, count: object = None) -> None:
    """Copy `count` elements.

    >>> from tilewright.mojo.memory import alloc
    >>> target = alloc["int8"](2)
    >>> memcpy(target, alloc["int8"](2), 2)
    """
    if dest is None or src is None:
        raise LayoutError("memcpy takes a destination, a source and a count")
    values = [src[k] for k in range(int(as_integer(count, "the number of elements")))]
    for k, value in enumerate(values):
        dest[k] = value


def memcmp(s1: Pointer, s2: Pointer, count: object) -> int:
    """Return 0 if `count` elements are equal, else -1 or 1 by the first ones that differ.

    >>> from tilewright.mojo.memory import alloc
    >>> memcmp(alloc["int8"](2), alloc["int8"](2), 2)
    0
    """
    for k in range(int(as_integer(count, "the number of elements"))):
        if s1[k] != s2[k]:
            return -1 if s1[k] < s2[k] else 1
    return 0


unsafe_memset, unsafe_memset_zero, unsafe_memcpy = memset, memset_zero, memcpy


@brackets
def bitcast(parameters: tuple[Any, ...], value: object, *, dtype: object = None, width: object = None) -> SIMD:
    """`bitcast[dtype, width](value)`: the same bits as other numbers.

    >>> from tilewright.mojo import Float32
    >>> bitcast["uint32", 1](Float32(1))
    UInt32(1065353216)
    """
    kind = DType.of((*parameters, dtype)[0])
    numbers = np.atleast_1d(np.asarray(value)).view(kind.dtype)
    return SIMDType(kind, numbers.size)(numbers)


pack_bits = unsafe_bitcast = bitcast


def abort(*message: Any, **_: Any) -> None:
    """End the program with a message.

    >>> try:
    ...     abort("no row")
    ... except FailedAssertion as problem:
    ...     print(problem)
    no row
    """
    raise FailedAssertion("".join(map(str, message)) or "abort")


def getenv(name: str, default: str = "") -> str:
    """Return a variable of the environment.

    >>> getenv("NO_SUCH_VARIABLE_OF_OURS", "none")
    'none'
    """
    return _os.environ.get(name, default)


def _fail(text: str, msg: object) -> None:
    raise Error(f"AssertionError: {text}", f" reason: {format_value(msg)}" if str(msg) else "")


def _is_equal(lhs: object, rhs: object) -> bool:
    result = lhs == rhs
    return bool(np.all(result))


def assert_true(val: object, msg: object = "condition was unexpectedly False", **_: Any) -> None:
    """Raise unless a value is true.

    >>> assert_true(1 < 2)
    """
    if not val:
        raise Error("AssertionError: ", format_value(msg))


def assert_false(val: object, msg: object = "condition was unexpectedly True", **_: Any) -> None:
    """Raise if a value is true.

    >>> assert_false(2 < 1)
    """
    if val:
        raise Error("AssertionError: ", format_value(msg))


def assert_equal(lhs: object, rhs: object, msg: object = "", **_: Any) -> None:
    """Raise unless two values are equal.

    >>> assert_equal(3, 3)
    """
    if not _is_equal(lhs, rhs):
        _fail(f"`left == right` comparison failed: left: {format_value(lhs)} right: {format_value(rhs)}", msg)


def assert_not_equal(lhs: object, rhs: object, msg: object = "", **_: Any) -> None:
    """Raise if two values are equal.

    >>> assert_not_equal(3, 4)
    """
    if _is_equal(lhs, rhs):
        _fail(f"`left != right` comparison failed: left: {format_value(lhs)} right: {format_value(rhs)}", msg)


def assert_almost_equal(
    lhs: object,
    rhs: object,
    msg: object = "",
    *,
    atol: Any = 1e-8,
    rtol: Any = 1e-5,
    equal_nan: object = False,
    **_: Any,
) -> None:
    """Raise unless two numbers, or vectors, differ by at most `atol + rtol * |rhs|`.

    >>> assert_almost_equal(1.0, 1.000001)
    """
    left, right = (np.asarray(value, np.float64) for value in (lhs, rhs))
    tolerance = float(atol), float(rtol)
    if not np.allclose(left, right, atol=tolerance[0], rtol=tolerance[1], equal_nan=bool(equal_nan)):
        with np.errstate(invalid="ignore"):
            difference = float(np.max(np.abs(left - right)))
        _fail(
            f"{format_value(lhs)} is not close to {format_value(rhs)} with a diff of"
            f" {difference if math.isfinite(difference) else format_value(difference)}",
            msg,
        )


class assert_raises:  # noqa: N801  (Mojo's name)
    """`with assert_raises(contains="text"):` expects the block to raise an error, with that text in its message.

    >>> with assert_raises(contains="no row"):
    ...     raise Error("no row 3")
    """

    def __init__(self, *, contains: object = None, **_: Any) -> None:
        self._contains = contains

    def __enter__(self) -> assert_raises:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> bool:
        if problem is None:
            raise Error("AssertionError: Didn't raise")
        if not isinstance(problem, (TilewrightError, StopIteration)):
            return False
        return self._contains is None or str(self._contains) in str(problem)


class TestSuite:
    """The tests of a program: `TestSuite.discover_tests[__functions_in_module()]().run()`.

    >>> def test_sum() -> None:
    ...     assert_equal(1 + 1, 2)
    >>> TestSuite.discover_tests[(test_sum,)]().run()
    Running 1 tests
        PASS test_sum
    1 tests: 1 passed, 0 failed, 0 skipped
    """

    __test__ = False  # not a class of tests itself

    def __init__(self, *_: Any, **__: Any) -> None:
        self._tests: list[Any] = []
        self._skipped: set[str] = set()

    @staticmethod
    @brackets
    def discover_tests(parameters: tuple[Any, ...], **options: Any) -> TestSuite:
        """Return the functions among the parameters whose names begin with `test_`."""
        suite = TestSuite()
        for part in parameters:
            for function in part if isinstance(part, (tuple, list)) else (part,):
                if _name_of(function).startswith("test_"):
                    suite._tests.append(function)
        return suite

    @brackets
    def test(self, parameters: tuple[Any, ...]) -> None:
        """Add a test: `suite.test[function]()`.

        >>> suite = TestSuite()
        >>> suite.test[print]()
        """
        self._tests += parameters

    @brackets
    def skip(self, parameters: tuple[Any, ...]) -> None:
        """Leave out a test: `suite.skip[function]()`.

        >>> TestSuite().skip[print]()
        """
        self._skipped.update(map(_name_of, parameters))

    def run(self, **_: Any) -> None:
        """Run the tests; raise if one fails.

        >>> TestSuite().run()
        Running 0 tests
        0 tests: 0 passed, 0 failed, 0 skipped
        """
        print(f"Running {len(self._tests)} tests")
        failed = []
        for function in self._tests:
            name = _name_of(function)
            if name in self._skipped:
                print(f"    SKIP {name}")
                continue
            try:
                function()
            except TilewrightError as problem:
                failed.append(problem)
                print(f"    FAIL {name}\n      {problem}")
            else:
                print(f"    PASS {name}")
        skipped = sum(_name_of(function) in self._skipped for function in self._tests)
        passed = len(self._tests) - len(failed) - skipped
        print(f"{len(self._tests)} tests: {passed} passed, {len(failed)} failed, {skipped} skipped")
        if failed:
            raise Error(f"{len(failed)} of {len(self._tests)} tests failed; the first: {failed[0]}") from failed[0]


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", function))


def keep(*_: Any) -> None:
    """Do nothing: no value is optimised away here.

    >>> keep(3)
    """


class Report:
    """The time of one run.

    >>> Report(0.5).mean("ms")
    500.0
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds

    def mean(self, unit: object = "s") -> float:
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

    def print(self, unit: object = "s") -> None:
        """Print the time.

        >>> Report(0.0).print()
        Mean: 0.0 s (one run)
        """
        print(f"Mean: {self.mean(unit)} {unit} (one run)")


@brackets
def run(parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> Report:
    """`run[function]()`: the report of one run.

    >>> run[lambda: None]().iters()
    1
    """
    (function,) = [value for value in (*parameters, *arguments, *named.values()) if callable(value)][:1]
    start = perf_counter()
    function()
    return Report(perf_counter() - start)


class _Settings:
    """Settings that have no effect: everything runs once."""

    def __init__(self, *values: Any, **named: Any) -> None:
        self.values, self.named = values, named
        self.__dict__.update(named)


class BenchConfig(_Settings):
    """The number and the length of measurements; no effect here.

    >>> BenchConfig(max_iters=10).max_iters
    10
    """


class BenchId(_Settings):
    """The name of a measurement.

    >>> BenchId("copy").values
    ('copy',)
    """


class ThroughputMeasure(_Settings):
    """The amount of work in a run.

    >>> ThroughputMeasure("elements", 10).values
    ('elements', 10)
    """


class BenchMetric:
    """A quantity to count: elements, bytes or floating point operations.

    >>> BenchMetric.bytes
    'bytes'
    """

    elements, bytes, flops, theoretical_flops = "elements", "bytes", "flops", "theoretical_flops"


class Bencher:
    """Runs a measured function once.

    >>> Bencher().iter[lambda: print("ran")]()
    ran
    """

    num_iters = 1

    @brackets
    def iter(self, parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> None:
        """Run a function once: `bencher.iter[function]()`.

        >>> Bencher().iter[lambda: None]()
        """
        callables = [value for value in (*parameters, *arguments, *named.values()) if callable(value)]
        callables[0]()

    @brackets
    def iter_custom(self, parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> None:
        """Run a function of a device context once: `bencher.iter_custom[function](ctx)`.

        >>> Bencher().iter_custom[lambda ctx: None]("ctx")
        """
        callables = [value for value in (*parameters, *arguments) if callable(value)]
        callables[0](*[value for value in arguments if not callable(value)])

    iter_preproc = iter  # noqa: A003  (Mojo's names)


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

    @brackets
    def bench_function(self, parameters: tuple[Any, ...], *arguments: Any, **_: Any) -> None:
        """Measure a function of a `Bencher`: `bench.bench_function[function](BenchId("name"))`.

        >>> Bench().bench_function[lambda bencher: None](BenchId("copy"))
        """
        functions = [value for value in (*parameters, *arguments) if callable(value)]
        names = [value for value in arguments if isinstance(value, BenchId)]
        others = (_Settings, list, List, str)
        inputs = [value for value in arguments if not callable(value) and not isinstance(value, others)]
        functions[0](Bencher(), *inputs)
        self._names.append(str(names[0].values[0]) if names and names[0].values else "benchmark")

    bench_with_input = bench_function

    def dump_report(self, *_: Any) -> None:
        """Print the measurements.

        >>> Bench().dump_report()
        """
        for name in self._names:
            print(f"{name}: one run")
