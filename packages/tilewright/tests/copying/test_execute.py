# SPDX-License-Identifier: Apache-2.0
"""Running plans: which engine, on which memory, with how many threads, and what is refused before a byte moves."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tilewright import LayoutError, TilewrightError, TransferError
from tilewright.copying import Placement, copy, engine, execute, native, plan_copy, relayout, tilize, untilize
from tilewright.formats import cast, format_of
from tilewright.layout import Layout, Swizzle, col_major, compose, row_major

from ..cases import all_cases
from .models import (
    POISON,
    SCALARS,
    any_bits,
    assert_same_bits,
    numbers,
    opencl_step,
    poisoned,
    ragged_plan,
    tilized,
    untilized,
)


def same_order(count, element="int8"):
    return plan_copy(Placement(Layout(count), element), Placement(Layout(count), element))


# Memory that is shared, read-only or too small.


@all_cases(
    (
        "source, target",
        [
            (slice(0, 8), slice(0, 8)),
            (slice(0, 8), slice(7, 15)),
            (slice(7, 15), slice(0, 8)),
            (slice(7, None, -1), slice(7, 15)),
            (slice(0, 16, 2), slice(3, 11)),
        ],
    ),
    step=opencl_step,
)
def test_source_and_target_must_not_overlap(engine, source, target):
    memory = np.arange(16, dtype=np.int8)
    with pytest.raises(TransferError, match="share memory"):
        copy(memory[source], memory[target], **engine)
    assert memory.tolist() == list(range(16))


def test_a_tensor_cannot_be_tilized_in_place(engine):
    array = np.arange(1024, dtype=np.int32).reshape(32, 32)
    with pytest.raises(TransferError, match="share memory"):
        tilize(array, out=array, **engine)
    assert (array.reshape(-1) == np.arange(1024)).all()


def test_neighbours_in_one_block_of_memory_do_not_overlap(engine):
    memory = np.arange(16, dtype=np.int8)
    copy(memory[:8], memory[8:], **engine)
    assert memory.tolist() == [*range(8), *range(8)]
    copy(memory[12:], memory[4:12][::-1][4:], **engine)
    assert memory[4:8].tolist() == [7, 6, 5, 4]


def test_the_target_must_be_writeable(engine):
    target = np.zeros(8, dtype=np.int8)
    target.flags.writeable = False
    with pytest.raises(TransferError, match="read-only"):
        execute(same_order(8), np.ones(8, dtype=np.int8), target, **engine)
    assert not target.any()


def test_a_broadcast_array_is_not_a_target(engine):
    one = np.zeros(1, dtype=np.int8)
    with pytest.raises(TilewrightError, match=r"read-only|several elements"):
        copy(np.ones(8, dtype=np.int8), np.broadcast_to(one, (8,)), **engine)
    assert not one.any()


@all_cases(
    ("source, target, who", [(7, 8, "source has 7"), (8, 7, "target has 7"), (0, 8, "source")]), step=opencl_step
)
def test_memory_must_be_as_large_as_the_placements(engine, source, target, who):
    after = np.zeros(target, dtype=np.int8)
    with pytest.raises(TransferError, match=who):
        execute(same_order(8), np.ones(source, dtype=np.int8), after, **engine)
    assert not after.any()


def test_memory_may_be_larger_than_the_placements(engine):
    target = poisoned(20, "int8")
    execute(same_order(8), np.arange(30, dtype=np.int8), target, **engine)
    assert target[:8].tolist() == list(range(8))
    assert_same_bits(target[8:], poisoned(12, "int8"))


def test_blocks_need_all_bytes_of_their_tiles(engine):
    target = Placement(row_major(32, 32), "bfloat8_b", tile_elements=1024)
    plan = plan_copy(Placement(row_major(32, 32), "float32"), target)
    with pytest.raises(TransferError, match="1088"):
        execute(plan, np.ones(1024, dtype=np.float32), np.zeros(1087, dtype=np.uint8), **engine)


def test_nothing_happens_to_no_elements(engine):
    plan = plan_copy(Placement(row_major(0, 4), "int8"), Placement(row_major(0, 4), "int8"))
    target = poisoned(4, "int8")
    execute(plan, np.zeros(0, dtype=np.int8), target, **engine)
    assert_same_bits(target, poisoned(4, "int8"))


def test_an_empty_source_leaves_nothing_but_padding(engine):
    plan = ragged_plan(Placement(row_major(0, 4), "int8"), Placement(row_major(3, 4), "int8", fill=7))
    target = poisoned(13, "int8")
    execute(plan, np.zeros(0, dtype=np.int8), target, **engine)
    assert target[:12].tolist() == [7] * 12
    assert_same_bits(target[12:], poisoned(1, "int8"))


# Which engine.


@pytest.fixture
def calls(monkeypatch):
    """Note which engine is asked, and with how many threads; none of them moves anything."""
    seen = []
    monkeypatch.delenv("TILEWRIGHT_ENGINE", raising=False)
    monkeypatch.delenv("TILEWRIGHT_THREADS", raising=False)
    monkeypatch.setattr(native, "can_run", lambda plan: True)
    monkeypatch.setattr(native, "run_plan", lambda plan, source, target, threads: seen.append(("native", threads)))
    monkeypatch.setattr(engine, "run_plan", lambda plan, source, target: seen.append(("reference", None)))
    return seen


def run_something(**options):
    execute(same_order(4), np.ones(4, dtype=np.int8), np.zeros(4, dtype=np.int8), **options)


@pytest.mark.parametrize(
    ("argument", "variable", "chosen"),
    [
        (None, None, "native"),
        (None, "", "native"),
        (None, "auto", "native"),
        (None, "reference", "reference"),
        (None, "native", "native"),
        ("reference", None, "reference"),
        ("reference", "native", "reference"),
        ("native", "reference", "native"),
        ("auto", "reference", "native"),
    ],
)
def test_the_argument_comes_before_the_environment_variable(calls, monkeypatch, argument, variable, chosen):
    if variable is not None:
        monkeypatch.setenv("TILEWRIGHT_ENGINE", variable)
    run_something(engine=argument)
    assert [name for name, _ in calls] == [chosen]


def test_the_fastest_engine_that_can_is_the_default(calls, monkeypatch):
    monkeypatch.setattr(native, "can_run", lambda plan: False)
    run_something()
    run_something(engine="auto")
    assert [name for name, _ in calls] == ["reference", "reference"]


@pytest.mark.parametrize(
    ("argument", "variable", "given"),
    [(None, None, 0), (None, "", 0), (None, "3", 3), (2, None, 2), (2, "3", 2), (0, "3", 0)],
)
def test_the_number_of_threads_comes_from_the_argument_or_the_variable(calls, monkeypatch, argument, variable, given):
    if variable is not None:
        monkeypatch.setenv("TILEWRIGHT_THREADS", variable)
    run_something(engine="native", threads=argument)
    assert calls == [("native", given)]


def test_a_negative_number_of_threads_is_refused(calls):
    with pytest.raises(TransferError, match=r"threads must be .* got -1"):
        run_something(engine="native", threads=-1)
    assert not calls


@all_cases(("by_variable", [False, True]))
def test_an_unknown_engine_is_refused_and_the_known_ones_are_named(calls, monkeypatch, by_variable):
    if by_variable:
        monkeypatch.setenv("TILEWRIGHT_ENGINE", "abacus")
    with pytest.raises(TransferError, match=r"abacus.*auto, native, reference"):
        run_something(engine=None if by_variable else "abacus")
    assert not calls


def test_asking_for_a_native_engine_that_is_missing_says_why(monkeypatch):
    monkeypatch.setattr(native, "can_run", lambda plan: False)
    monkeypatch.setattr(native, "unavailable_reason", lambda: "the native library is on holiday")
    with pytest.raises(TransferError, match="on holiday"):
        run_something(engine="native")


def test_asking_the_native_engine_for_a_format_it_lacks_names_the_format(monkeypatch):
    monkeypatch.setattr(native, "can_run", lambda plan: False)
    monkeypatch.setattr(native, "unavailable_reason", lambda: None)
    with pytest.raises(TransferError, match="float32 to mxfp4"):
        tilize(np.ones((32, 32), dtype=np.float32), dtype="mxfp4", engine="native")


@all_cases(("name", ["mxfp4", "nvfp4", "mxfp8_e5m2"]))
def test_every_format_has_an_engine(name):
    array = numbers(np.random.default_rng(1), (40, 40))
    assert_same_bits(tilize(array, dtype=name), tilize(array, dtype=name, engine="reference"))


# Addresses.


@all_cases(("element", SCALARS), step=opencl_step)
def test_memory_may_start_at_any_byte(engine, element):
    values = any_bits(np.random.default_rng(2), (33, 47), element)
    size = format_of(element).itemsize
    for shift in (1, 3, size, 31):
        before = np.ndarray(values.shape, values.dtype, np.zeros(values.nbytes + shift, dtype=np.uint8), offset=shift)
        before[...] = values
        wanted = tilized(values, (32, 32))
        memory = np.full(wanted.nbytes + 64, POISON, dtype=np.uint8)
        out = np.ndarray(wanted.shape, wanted.dtype, memory, offset=32 + shift)
        tilize(before, out=out, **engine)
        assert_same_bits(out.copy(), wanted)
        assert (memory[: 32 + shift] == POISON).all()
        assert (memory[32 + shift + wanted.nbytes :] == POISON).all()
        back = np.ndarray(values.shape, values.dtype, np.zeros(values.nbytes + shift, dtype=np.uint8), offset=shift)
        untilize(out, values.shape, out=back, **engine)
        assert_same_bits(back.copy(), values)


@all_cases(("shift", [1, 2, 5, 63]), ("name", ["bfloat8_b", "bfloat4_b", "bfloat2_a"]), step=opencl_step)
def test_blocks_may_start_at_any_byte(engine, name, shift):
    values = numbers(np.random.default_rng(3), (70, 40))
    wanted = tilize(values, dtype=name, engine="reference")
    memory = np.full(wanted.nbytes + 128, POISON, dtype=np.uint8)
    out = memory[shift : shift + wanted.size]
    tilize(values, dtype=name, out=out, **engine)
    assert_same_bits(out, wanted)
    assert (memory[:shift] == POISON).all()
    assert (memory[shift + wanted.size :] == POISON).all()
    back = untilize(out, values.shape, dtype=name, **engine)
    assert_same_bits(back, untilize(wanted, values.shape, dtype=name, engine="reference"))


# Sizes and strides.


@pytest.fixture
def far_apart(tmp_path):
    """Two rows of memory more than 4 GiB apart, in a file that is nearly all hole."""
    memory = np.memmap(tmp_path / "hole.bin", dtype=np.uint8, mode="w+", shape=((1 << 32) + 4096,))
    yield np.ndarray((2, 100), np.float32, memory, strides=((1 << 32) + 512, 4))
    del memory


def test_rows_may_be_gigabytes_apart_in_the_source(engine, far_apart):
    values = any_bits(np.random.default_rng(4), (2, 100), "float32")
    far_apart[...] = values
    assert_same_bits(copy(far_apart, np.zeros((2, 100), dtype=np.float32), **engine), values)
    assert_same_bits(tilize(far_apart, **engine), tilized(values))


def test_rows_may_be_gigabytes_apart_in_the_target(engine, far_apart):
    values = any_bits(np.random.default_rng(5), (2, 100), "float32")
    copy(values, far_apart, **engine)
    assert_same_bits(far_apart.copy(), values)
    untilize(tilized(values[::-1]), (2, 100), out=far_apart, **engine)
    assert_same_bits(far_apart.copy(), values[::-1].copy())


def test_places_beyond_64_bits_are_refused():
    with pytest.raises(LayoutError, match=r"2\^63"):
        Layout((2, 2), (2**62, 2**62)) + 2**62
    for layout in (Layout(2, 2**61), row_major(2**30, 2**31)):
        with pytest.raises(TransferError, match=str(8 * layout.cosize)):
            execute(
                plan_copy(Placement(layout, "int64"), Placement(Layout(layout.shape, layout.stride), "int8")),
                np.zeros(2, dtype=np.int64),
                np.zeros(2, dtype=np.int8),
            )


@all_cases(
    ("shape", [(2**31, 2**31), (2**61, 1), (1, 2**62), (3, 2**30, 2**30)]),
    ("element", [None, "float64", "bfloat8_b"]),
    step=opencl_step,
)
def test_results_that_no_memory_can_hold_are_refused(engine, shape, element):
    array = np.broadcast_to(np.int8(1), shape)
    with pytest.raises((MemoryError, ValueError, TransferError)):
        tilize(array, dtype=element, **engine)


def test_untilize_of_a_shape_beyond_64_bits_is_refused(engine):
    with pytest.raises((MemoryError, ValueError)):
        untilize(np.zeros(1024, dtype=np.float32), (2**40, 2**40), **engine)


# Threads.


MOVES = {
    "float32 tiles": tilize,
    "bfloat16 tiles": lambda array, **options: tilize(array, dtype="bfloat16", **options),
    "transposed tiles": lambda array, **options: tilize(array, transpose=True, **options),
    "bfloat8_b": lambda array, **options: tilize(array, dtype="bfloat8_b", **options),
    "bfloat4_b": lambda array, **options: tilize(array, dtype="bfloat4_b", **options),
    "transpose": lambda array, **options: copy(array.T, np.empty(array.shape[::-1], dtype=np.float32), **options),
    "conversion": lambda array, **options: copy(array, np.empty(array.shape, dtype=np.int16), **options),
    "swizzle": lambda array, **options: relayout(
        array, row_major(*array.shape), compose(Swizzle(3, 2, 3), row_major(*array.shape)), **options
    ),
}


@all_cases(("shape", [(1024, 1024), (1000, 1037), (37, 50021)]), ("move", MOVES))
def test_large_moves_are_the_same_on_every_engine(fast_engine, move, shape):
    if move == "swizzle" and shape != (1024, 1024):
        shape = (shape[0], 1024)
    array = numbers(np.random.default_rng(6), shape)
    assert_same_bits(MOVES[move](array, **fast_engine), MOVES[move](array, engine="reference"))


@all_cases(("shape", [(1024, 1024), (1000, 1037)]), ("name", ["float32", "bfloat16", "bfloat8_b", "bfloat4_b"]))
def test_large_tensors_come_back_the_same_on_every_engine(fast_engine, name, shape):
    data = tilize(numbers(np.random.default_rng(7), shape), dtype=name, engine="reference")
    wanted = untilize(data, shape, dtype=name, engine="reference")
    assert_same_bits(untilize(data, shape, dtype=name, **fast_engine), wanted)


@all_cases(("threads", [0, 1, 2, 3, 7, 64]))
def test_any_number_of_threads_gives_the_same_bytes(threads):
    array = numbers(np.random.default_rng(8), (500, 700))
    assert_same_bits(tilize(array, threads=threads), tilized(array))
    assert_same_bits(tilize(array[:3, :5], threads=threads), tilized(array[:3, :5]))
    assert_same_bits(untilize(tilized(array), array.shape, threads=threads), array)


def test_one_plan_may_run_on_many_arrays_at_once(engine):
    arrays = [any_bits(np.random.default_rng(seed), (130, 70), "float32") for seed in range(24)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda array: tilize(array, **engine), arrays))
    for array, result in zip(arrays, results, strict=True):
        assert_same_bits(result, tilized(array))


def test_plans_may_be_made_in_many_threads_at_once(engine):
    shapes = [(rows, columns) for rows in range(1, 60, 4) for columns in (1, 17, 40)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda shape: tilize(np.ones(shape, dtype=np.int16), tile=(8, 16), **engine), shapes))
    for shape, result in zip(shapes, results, strict=True):
        assert_same_bits(result, tilized(np.ones(shape, dtype=np.int16), (8, 16)))
        assert_same_bits(untilized(result, shape, (8, 16)), np.ones(shape, dtype=np.int16))


def test_a_conversion_through_a_plan_is_a_cast(engine):
    plan = plan_copy(Placement(row_major(20, 30), "float32"), Placement(col_major(20, 30), "int8"))
    array = any_bits(np.random.default_rng(9), (20, 30), "float32")
    out = poisoned(600, "int8").reshape(30, 20)
    execute(plan, array, out, **engine)
    assert_same_bits(out, np.ascontiguousarray(cast(array, "int8").T))
