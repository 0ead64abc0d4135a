# SPDX-License-Identifier: Apache-2.0
"""Every cache is right under threads: fresh objects on several of them, with the switches as close as they can be."""

import sys
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest

import tilewright as tw
from tilewright.copying import Placement, PlanCache, execute, plan_copy

THREADS, ROUNDS = 4, 60
COMPILED = PlanCache()


@contextmanager
def switching_all_the_time():
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def build_layouts(k):
    """Layouts of shapes that were never seen before, sound ones and others."""
    shape, stride = (4, 3, k + 2), (3, 1, 12)
    layout = tw.Layout(shape, stride)
    refused = 0
    for wrong in ((4, -3, k), (4, "3", k), (4, 3)):
        try:
            tw.Layout(wrong, stride)
        except (TypeError, ValueError):
            refused += 1
    return layout(3, 2, k + 1), layout.size, layout.axes, refused


def work_on_layouts(k):
    """The same object on every thread: what it works out when first asked, it works out once or twice, alike."""
    layout = tw.compose(tw.Layout((k + 3, 5), (5, 1)), tw.Layout(6, 2))
    return [layout(i) for i in range(6)], layout.cosize, tw.left_inverse(tw.Layout((2, k + 2), (2, 5)))(2)


def copy_by_plan(k):
    source = np.arange((k % 7 + 2) * 9, dtype=np.float32).reshape(-1, 9)
    rows, columns = source.shape
    plan = plan_copy(
        Placement(tw.row_major(rows, columns), "float32"), Placement(tw.col_major(rows, columns), "bfloat16")
    )
    target = np.zeros(plan.target.nbytes, np.uint8)
    execute(plan, source, target)
    return target.tobytes(), plan.explain()


def pack_tiles(k):
    values = np.linspace(-1, 1, 32 * (k % 5 + 1) * 32, dtype=np.float32).reshape(32, -1)
    packed = tw.tilize(values, dtype=("bfloat8_b", "bfloat4_b", "mxfp4")[k % 3])
    return packed.tobytes()


def ask_specs(k):
    spec = tw.TensorSpec((1, 2, 33 + k, 70), "bfloat8_b", "tile", memory="dram", chip="wormhole_n150")
    where = spec.where(0, 1, 32, 5)
    return where.page, where.address, spec.element_at(where.bank, where.address), len(spec.pages().address)


def stream_tiles(k):
    source = np.arange((k % 6 + 3) * 10, dtype=np.int32).reshape(-1, 10)
    target = np.zeros_like(source)
    tw.stream(source, target, _double, tile=(2, 4))
    return target.tobytes()


def _double(x, out):
    out[...] = 2 * x


def draw_layouts(k):
    from tilewright.views import scene_of, to_svg

    return to_svg(scene_of(tw.row_major(k % 9 + 1, 4)))


def compile_plans(k):
    """What an engine made of a plan is that of this plan, however many are made, found and forgotten meanwhile."""
    place = Placement(tw.Layout(k + 1), "int8")
    plan = plan_copy(place, place)
    return COMPILED.get(plan, "an engine", lambda: plan.moved), COMPILED.get(plan, "another", lambda: -plan.moved)


@pytest.mark.parametrize(
    "work",
    [
        build_layouts,
        work_on_layouts,
        copy_by_plan,
        pack_tiles,
        ask_specs,
        stream_tiles,
        draw_layouts,
        compile_plans,
    ],
)
def test_threads_with_fresh_objects_get_the_answers_of_one(work):
    rounds = 5 * ROUNDS if work in (build_layouts, work_on_layouts, compile_plans) else ROUNDS
    answers = [[None] * rounds for _ in range(THREADS)]
    problems = []
    start = threading.Barrier(THREADS)

    def run(number):
        try:
            start.wait()
            for k in range(rounds):
                answers[number][k] = work(k)
        except BaseException as problem:
            problems.append(problem)

    with switching_all_the_time():
        threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not problems
    alone = [work(k) for k in range(rounds)]
    assert all(each == alone for each in answers)


def test_after_many_layouts_on_threads_a_wrong_shape_is_still_refused():
    """The constructor once remembered shapes by their identity, and took new ones for those that were gone."""
    stride = (1, 4, 8)

    def build():
        for i in range(60_000):
            tw.Layout((4, 2, i), stride)

    with switching_all_the_time():
        threads = [threading.Thread(target=build) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    taken = 0
    for i in range(20_000):
        with suppress(tw.LayoutError):
            tw.Layout((4, -3, i), stride)
            taken += 1
    assert not taken
