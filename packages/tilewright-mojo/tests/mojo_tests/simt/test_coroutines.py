# SPDX-License-Identifier: Apache-2.0
"""Functions that can wait: in helpers, methods, closures, comprehensions, loops, `try` and `with`, and by recursion."""

import ast
import sys
from contextlib import contextmanager
from functools import partial

import pytest

from tilewright import KernelError
from tilewright_mojo.simt import barrier, launch, thread_idx, warp_sum
from tilewright_mojo.simt.kernel_thread import coroutine_twin, find_definition, register_syntax


def results_of(kernel, *arguments, block=2):
    """Return what a kernel appends to a list, in the order of the threads and of time."""
    log = []
    report = launch(kernel, log, *arguments, grid=1, block=block)
    assert report.clean
    return log


def note(log, step):
    log.append((step, thread_idx.x))


def wait_and_note(log, step):
    note(log, step)
    barrier()


def count_down(log, n):
    if n:
        wait_and_note(log, n)
        count_down(log, n - 1)


class Waiter:
    def __init__(self, log):
        self.log = log

    def wait(self, step, *, again=False):
        wait_and_note(self.log, step)
        return self.wait(step + 1) if again else step

    @property
    def name(self):
        return "waiter"


@contextmanager
def noting(log, step):
    note(log, step)
    yield step
    note(log, -step)


def in_step(steps):
    """Return what two threads note if they wait for each other after each step."""
    return [(step, thread) for step in steps for thread in (0, 1)]


def test_a_helper_waits():
    def kernel(log):
        for step in range(3):
            wait_and_note(log, step)

    assert results_of(kernel) == in_step(range(3))


def test_recursion_and_methods_wait():
    assert results_of(lambda log: count_down(log, 3)) == in_step([3, 2, 1])

    def kernel(log):
        waiter = Waiter(log)
        assert waiter.wait(1, again=True) == 2
        assert waiter.name == "waiter"

    assert results_of(kernel) == in_step([1, 2])


def test_closures_lambdas_and_partial_functions_wait():
    def kernel(log, scale):
        total = 0

        def local(step):
            nonlocal total
            wait_and_note(log, step * scale)
            total += step

        local(1)
        local(2)
        later = lambda step: wait_and_note(log, step)  # noqa: E731
        later(30)
        partial(wait_and_note, log)(total)

    assert results_of(kernel, 10) == in_step([10, 20, 30, 3])


NESTED = [[0, 2], [0, 2]]


def test_comprehensions_and_generator_expressions_wait():
    def kernel(log):
        listed = [wait_and_note(log, step) for step in range(2)]
        total = sum(warp_sum(step) for step in range(warp_sum(1)))
        nested = [[warp_sum(x) for x in range(2)] for _ in range(2)] if sys.version_info >= (3, 11) else NESTED
        found = {warp_sum(x): x for x in range(2) if warp_sum(1)}
        note(log, (listed, total, nested, sorted(found)))

    log = []
    launch(kernel, log, grid=1, block=2, warp=2)
    assert log[:4] == in_step([0, 1])
    assert log[4][0] == ([None, None], 2, NESTED, [0, 2])


def test_try_with_and_loops_wait():
    def kernel(log):
        step = 0
        while True:
            try:
                with noting(log, step + 1):
                    barrier()
                    if step == 1:
                        break
            finally:
                wait_and_note(log, 10 + step)
            step += 1

    expected = [*in_step([1]), (-1, 0), (10, 0), (-1, 1), (10, 1)]
    assert results_of(kernel)[: len(expected)] == expected


def test_defaults_and_keywords_stay_those_of_the_function():
    def helper(log, a, b=5, *rest, c, d=7, **more):
        barrier()
        note(log, (a, b, rest, c, d, more))

    def kernel(log):
        helper(log, 1, c=2)
        helper(log, 1, 2, 3, c=4, d=5, e=6)

    assert [step for step, thread in results_of(kernel) if thread == 0] == [
        (1, 5, (), 2, 7, {}),
        (1, 2, (3,), 4, 5, {"e": 6}),
    ]


def test_errors_keep_their_lines():
    def kernel():
        barrier()
        raise ValueError("here")

    with pytest.raises(ValueError, match="here") as problem:
        launch(kernel, grid=1, block=1)
    assert problem.traceback[-1].lineno + 1 == kernel.__code__.co_firstlineno + 2


def test_what_cannot_wait_is_refused():
    without_source = eval("lambda: barrier()", {"barrier": barrier})  # noqa: S307
    with pytest.raises(KernelError, match=r"barrier\(\) at <string>:1(:9)? cannot wait there"):
        launch(without_source, grid=1, block=2)

    def kernel():
        sorted([1, 2], key=lambda x: barrier())

    with pytest.raises(KernelError, match="cannot wait there"):
        launch(kernel, grid=1, block=2)


def test_a_function_without_source_that_never_waits_runs():
    log = []
    kernel = eval("lambda log: log.append(thread_idx.x)", {"thread_idx": thread_idx})  # noqa: S307
    launch(kernel, log, grid=1, block=3)
    assert log == [0, 1, 2]


def test_functions_that_cannot_wait_are_their_own_twins():
    def plain(x):
        return abs(x) + len([x])

    assert coroutine_twin(plain) is plain
    assert coroutine_twin(wait_and_note) is not wait_and_note
    assert coroutine_twin(wait_and_note) is coroutine_twin(wait_and_note)


def test_syntax_of_other_front_ends_is_found():
    module = ast.parse("def f(log):\n    wait(log, 1)\n")
    register_syntax("<front end>", module)
    names = {"wait": wait_and_note}
    exec(compile(module, "<front end>", "exec"), names)  # noqa: S102
    assert find_definition(names["f"]) is module.body[0]
    assert results_of(names["f"]) == in_step([1])


def test_an_object_offers_what_to_call_in_kernels():
    class Overloads:
        def suspending(self):
            return lambda log: coroutine_twin(wait_and_note)(log, 1)

    def kernel(log, overloads):
        overloads(log)

    assert results_of(kernel, Overloads()) == in_step([1])


def test_objects_that_are_called_wait():
    class Kernel:
        def __init__(self, step):
            self.step = step

        def __call__(self, log):
            wait_and_note(log, self.step)

    def kernel(log, inner):
        inner(log)

    assert results_of(Kernel(1)) == in_step([1])
    assert results_of(kernel, Kernel(2)) == in_step([2])


def test_a_coroutine_function_is_a_kernel():
    async def kernel(log):
        note(log, 1)
        await barrier()
        note(log, 2)

    assert results_of(kernel) == in_step([1, 2])
