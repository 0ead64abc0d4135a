# SPDX-License-Identifier: Apache-2.0
"""Calls that the extension module repeats without Python: the same results and errors, and nothing is leaked."""

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

import tilewright as tw
from tilewright.copying import native
from tilewright.copying.calls import ReadyCopy, remember
from tilewright.errors import TransferError

_calls = pytest.importorskip("tilewright._calls")
if not native.is_available():
    pytest.skip(native.unavailable_reason(), allow_module_level=True)

dtypes = st.sampled_from([np.float32, bfloat16, np.uint8, np.float64, np.int16])
shapes = st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple)


def spy(calls):
    """Return a function that copies float32 arrays by the native library, and lists in `calls` what it is asked."""
    plan = tw.copying.plan_copy(
        tw.copying.Placement(tw.Layout(4), "float32"), tw.copying.Placement(tw.Layout(4), "float32")
    )
    runner = native.NativeRunner(plan, 1, streaming=False)

    def prepare(source, target, *options):
        calls.append(options)
        made = np.array(source) if target is None else target
        made[...] = source
        ready = (runner.address, runner.nests, 1, 1, 0, 0, 16, 16, (4,), None if target is not None else source.dtype)
        return made, ReadyCopy(*ready, runner)

    return remember(prepare)


@given(shapes, dtypes, st.sampled_from([None, "float32", "bfloat16", "bfloat8_b"]), st.sampled_from([0, -0.0, 3]))
def test_every_call_is_the_first_call(shape, dtype, kind, fill):
    array = np.random.default_rng(sum(shape)).integers(0, 100, shape).astype(dtype)
    wanted = tw.tilize(array, dtype=kind, pad_value=fill, engine="reference")
    for _ in range(4):
        made = tw.tilize(array, dtype=kind, pad_value=fill)
        assert (made.tobytes(), made.dtype, made.shape) == (wanted.tobytes(), wanted.dtype, wanted.shape)
        assert made.ctypes.data % 64 == 0
        assert made.flags.writeable
        assert made.flags.c_contiguous
        assert tw.tilize(array, dtype=kind, pad_value=fill, out=made) is made
        assert made.tobytes() == wanted.tobytes()
        back = tw.untilize(made, list(shape) if fill else shape, dtype=kind, out_dtype=array.dtype)
        assert back.shape == shape
        assert back.dtype == array.dtype
        if kind is None:
            assert back.tobytes() == array.tobytes()


def test_equal_options_are_one_call_and_others_are_not():
    calls, array = [], np.arange(4, dtype=np.float32)
    run = spy(calls)
    same = [(1, (2, 3)), (1, (2, 3)), (int("1"), (2, 3))]
    other = [
        (True, (2, 3)),
        (1.0, (2, 3)),
        (1, (3, 2)),
        ((1, 2), 3),
        (1, (2, 3), None),
        (-1, (2, 3)),
        (1 << 70, (2, 3)),
    ]
    for options in same + other:
        assert run(array, None, *options).tolist() == [0, 1, 2, 3]
    assert calls == [same[0], *other]
    calls.clear()
    for fill in (0.0, -0.0, float("nan"), -float("nan"), float("nan")):
        run(array, None, fill)
    assert len(calls) == 4


def test_options_that_may_change_are_asked_about_every_time():
    calls, array = [], np.arange(4, dtype=np.float32)
    run = spy(calls)
    for option in ([2, 3], {}, np.zeros(1), object(), (1, [2])):
        calls.clear()
        assert [run(array, None, option).tolist() for _ in range(3)] == [[0, 1, 2, 3]] * 3
        assert len(calls) == 3, option


def test_arrays_of_other_signatures_are_other_calls():
    calls, array = [], np.arange(8, dtype=np.float32)
    run = spy(calls)
    others = [array[:4], array[::2], array[:4].view(np.int32), array[:4].reshape(2, 2), array[:4].view(np.recarray)]
    for source in (array[:4], array[4:], *others):
        run(source, None)
    assert len(calls) == 5  # array[4:] and the first of the others are as array[:4]
    target = np.zeros(4, np.float32)
    for _ in range(2):
        assert run(array[4:], target) is target
    assert target.tolist() == [4, 5, 6, 7]
    assert len(calls) == 6


def test_targets_are_examined_at_every_call():
    calls, memory = [], np.arange(8, dtype=np.float32)
    run = spy(calls)
    run(memory[:4], memory[4:])
    for target in (memory[1:5], memory[3:7], memory[:4]):  # they overlap
        calls.clear()
        run(memory[:4], target)
        assert len(calls) == 1
    target = np.zeros(4, np.float32)
    target.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        run(memory[:4], target)


def test_more_calls_than_are_remembered_stay_right():
    arrays = {n: np.arange(n, dtype=np.uint8) for n in range(1, 1500)}
    for _ in range(3):
        for n, array in arrays.items():
            assert tw.copy(array, np.empty(n, np.uint8))[-1] == array[-1]


def test_errors_and_odd_answers_come_through():
    def fail(source, target):
        raise KeyError("always")

    with pytest.raises(KeyError, match="always"):
        remember(fail)(np.zeros(3), None)
    for answer in ((1, 2, 3), (1, (2, 3))):
        with pytest.raises(TypeError):
            remember(lambda source, target, answer=answer: answer)(np.zeros(3), None)
    assert remember(lambda *given: (given, None))() == ()


def test_a_plan_that_the_library_refuses_is_prepared_again():
    calls, address = [], ctypes.cast(native.load_library().tw_run, ctypes.c_void_p).value

    def prepare(source, target):
        calls.append(source)
        return source, ReadyCopy(address, 0, -1, 1, 0, 0, 16, 16, (4,), source.dtype, None)

    run, array = remember(prepare), np.zeros(4, np.float32)
    assert [run(array, None) is array for _ in range(3)] == [True] * 3
    assert len(calls) == 3


def test_nothing_is_leaked():
    array, out = np.ones((32, 32), np.float32), np.empty(1024, np.float32)
    options = {"tile": (32, 32), "pad_value": 1234.5, "threads": 1}

    def once():
        tw.tilize(array, **options)
        tw.tilize(array, **options, out=out)
        tw.untilize(out, (32, 32))
        with pytest.raises(TransferError, match="share memory"):
            tw.tilize(array, out=array.reshape(-1))

    for _ in range(4):
        once()
    watched = [array, out, array.dtype, options["tile"], options["pad_value"], None]
    gc.collect()
    before, blocks = list(map(sys.getrefcount, watched)), sys.getallocatedblocks()
    for _ in range(300):
        once()
    gc.collect()
    grown = [after - count for after, count in zip(map(sys.getrefcount, watched), before, strict=True)]
    assert max(map(abs, grown)) < 30, grown
    assert sys.getallocatedblocks() - blocks < 200


def test_threads_share_what_is_remembered():
    arrays = [np.full((n, 33), n % 251, np.uint8) for n in range(1, 700)]
    problems = []

    def work():
        for array in arrays:
            results = [tw.untilize(tw.tilize(array), array.shape)[-1, -1] for _ in range(4)]
            problems.extend(result for result in results if result != array[-1, -1])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not problems
