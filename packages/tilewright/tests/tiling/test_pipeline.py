# SPDX-License-Identifier: Apache-2.0
"""Pipelines compute the same as NumPy on the whole array, under every scheme and every order of completion."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import LayoutError, TransferError
from tilewright.tiling import Input, Output, Pipeline, SimulatedQueue, ThreadQueue, Tiler
from tilewright.tiling.schedule import Import
from tilewright.tiling.transfers import COMPLETIONS

from ..cases import examples
from .pipelines import SCHEMES, Stencil, stencils


@given(stencils(), st.sampled_from(SCHEMES), st.integers(1, 4), st.integers(0, 99))
def test_every_scheme_is_right_under_every_completion(stencil, scheme, depth, seed):
    options = {"depth": depth} if scheme == "buffered" else {}
    expected = stencil.expected()
    for completion in COMPLETIONS:
        for luck in (None, seed):
            target = np.full(stencil.space, -1, np.int64)
            queue = SimulatedQueue(completion, luck)
            stencil.pipeline(target, scheme=scheme, queue=queue, **options).run(stencil.compute)
            assert (target == expected).all(), (completion, luck)
            assert not queue.pending


def test_the_simulation_finds_a_missing_order():
    """Simplex without its order between export and import, as TTL ships it, is wrong on a slow machine."""
    stencil = Stencil((40,), (4,), ((1, 1),), "row_major", 0)
    wrong = []
    for completion in COMPLETIONS:
        target = np.zeros(40, np.int64)
        pipeline = stencil.pipeline(target, scheme="simplex", queue=SimulatedQueue(completion))
        actions = [
            action._replace(after=()) if isinstance(action, Import) else action
            for action in pipeline.schedule().actions()
        ]
        pipeline.schedule = lambda actions=actions: Unordered(actions)
        pipeline.run(stencil.compute)
        if (target != stencil.expected()).any():
            wrong.append(completion)
    assert "imports_first" in wrong
    assert "immediate" not in wrong


class Unordered:
    buffers = ("b0", "b1", "b2")

    def __init__(self, actions):
        self.listed = list(actions)

    def actions(self):
        return iter(self.listed)


@examples(40)
@given(stencils(3), st.sampled_from(SCHEMES), st.integers(0, 3))
def test_threads_give_the_same(stencil, scheme, workers):
    target = np.full(stencil.space, -1, np.int64)
    if workers:
        with ThreadQueue(workers, inline_below=0) as queue:
            stencil.pipeline(target, scheme=scheme, queue=queue).run(stencil.compute)
    else:
        stencil.pipeline(target, scheme=scheme, workers=0).run(stencil.compute)
    assert (target == stencil.expected()).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_several_operands_of_different_types_and_tiles(scheme):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 99, (20, 30)).astype(np.uint8)
    b = rng.standard_normal((10, 30)).astype(np.float32)
    total, largest = np.zeros((20, 30), np.float64), np.zeros((10, 15), np.int16)
    tilers = [Tiler((20, 30), (4, 6)), Tiler((10, 30), (2, 6)), Tiler((20, 30), (4, 6)), Tiler((10, 15), (2, 3))]

    def compute(x, y, out, most):
        out[...] = x + np.repeat(y, 2, axis=0)
        most[...] = x.reshape(most.shape[0], 2, most.shape[1], 2).max(axis=(1, 3))

    for queue in (None, *map(SimulatedQueue, COMPLETIONS)):
        total[...], largest[...] = 0, 0
        operands = [Input(a, tilers[0]), Input(b, tilers[1])], [Output(total, tilers[2]), Output(largest, tilers[3])]
        Pipeline(*operands, scheme=scheme, queue=queue).run(compute)
        assert (total == a + np.repeat(b, 2, axis=0)).all()
        assert (largest == a.reshape(10, 2, 15, 2).max(axis=(1, 3))).all()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("inputs", "outputs"), [(3, 1), (1, 3), (2, 0), (0, 2)])
def test_numbers_of_operands_need_not_match(scheme, inputs, outputs):
    tiler = Tiler((17,), (4,))
    sources = [np.arange(17) + 100 * k for k in range(inputs)]
    for completion in COMPLETIONS:
        targets = [np.zeros(17, int) for _ in range(outputs)]
        seen = []

        def compute(*arrays, seen=seen):
            seen.append(sum(int(x.sum()) for x in arrays[:inputs]))
            for k, out in enumerate(arrays[inputs:]):
                out[...] = sum(arrays[:inputs]) + k

        pipeline = Pipeline(
            [Input(x, tiler) for x in sources],
            [Output(x, tiler) for x in targets],
            scheme=scheme,
            queue=SimulatedQueue(completion),
        )
        pipeline.run(compute)
        assert sum(seen) == sum(int(x.sum()) for x in sources)
        for k, target in enumerate(targets):
            assert (target == sum(sources, np.zeros(17, int)) + k).all()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "stencil",
    [
        Stencil((0, 4), (2, 2), ((0, 0), (0, 0)), "row_major", 0),
        Stencil((3, 4), (9, 9), ((2, 1), (0, 3)), "row_major", 0),
        Stencil((3, 4), (1, 1), ((1, 1), (1, 1)), "hilbert", "edge"),
        Stencil((1,), (1,), ((0, 0),), "snake", 0),
    ],
    ids=["no tiles", "a tile larger than the space", "tiles of one element", "one element"],
)
def test_extremes(scheme, stencil):
    target = np.full(stencil.space, -1, np.int64)
    report = stencil.pipeline(target, scheme=scheme).run(stencil.compute)
    assert (target == stencil.expected()).all()
    assert report.tiles == stencil.tilers()[1].count


def test_buffers_are_few_aligned_and_reused():
    stencil = Stencil((40, 40), (8, 8), ((1, 1), (1, 1)), "row_major", 0)
    for scheme, most in (("duplex", 2), ("simplex", 3), ("double", 4)):
        addresses = set()

        def compute(x, y, addresses=addresses):
            addresses.update((x.ctypes.data, y.ctypes.data))
            y[...] = 0

        stencil.pipeline(np.zeros((40, 40), np.int64), scheme=scheme).run(compute)
        assert 2 <= len(addresses) <= most  # tiles that one thread carries need one buffer each way
        assert all(address % 64 == 0 for address in addresses)
        addresses.clear()
        for step in stencil.pipeline(np.zeros((40, 40), np.int64), scheme=scheme).steps():
            addresses.update((step.inputs[0].ctypes.data, step.outputs[0].ctypes.data))
            step.outputs[0][...] = 0
        assert len(addresses) == most


def test_a_loop_over_steps_exports_what_was_written():
    a, b = np.arange(20), np.zeros(20, int)
    tiler = Tiler((20,), (6,))
    for step in Pipeline([Input(a, tiler)], [Output(b, tiler)]).steps():
        step.outputs[0][...] = step.inputs[0] * (step.tile + 1)
    assert b.tolist() == [x * (x // 6 + 1) for x in range(20)]


def test_leaving_a_loop_early_ends_what_is_in_flight():
    before = threading.active_count()
    a, b = np.ones(200_000), np.zeros(200_000)
    tiler = Tiler(a.shape, (10_000,))
    for scheme in SCHEMES:
        b[...] = 0
        steps = Pipeline([Input(a, tiler)], [Output(b, tiler)], scheme=scheme).steps()
        for step in steps:
            step.outputs[0][...] = step.inputs[0]
            if step.tile == 4:
                break
        steps.close()
        assert b[:40_000].all()
        assert not b[40_000:].any()
        assert threading.active_count() == before


def test_memory_limit_bounds_the_buffers():
    a, b, tiler = np.zeros(4096), np.zeros(4096), Tiler((4096,), (128,))
    operands = [Input(a, tiler)], [Output(b, tiler)]
    assert Pipeline(*operands, scheme="buffered", memory_limit=10_000).depth == 4
    assert Pipeline(*operands, scheme="buffered", memory_limit=10_000).buffer_bytes <= 10_000
    with pytest.raises(TransferError, match="takes 4096 bytes, the limit is 4000"):
        Pipeline(*operands, scheme="double", memory_limit=4000)


def test_operands_must_fit_together():
    a, b = np.zeros((8, 8)), np.zeros((8, 8))
    with pytest.raises(LayoutError, match=r"same number of tiles, got \[4, 16\]"):
        Pipeline([Input(a, Tiler((8, 8), (4, 4)))], [Output(b, Tiler((8, 8), (2, 2)))])
    with pytest.raises(LayoutError, match="but the array has shape"):
        Pipeline([Input(a, Tiler((9, 8), (4, 4)))], [])
    with pytest.raises(LayoutError, match="unknown scheme 'triple'"):
        Pipeline([Input(a, Tiler((8, 8), (4, 4)))], [], scheme="triple").schedule()
    with pytest.raises(LayoutError, match="at least one"):
        Pipeline([], [])
    for wrong in (a, [a], [Output(b, Tiler((8, 8), (4, 4)))]):
        with pytest.raises(TypeError, match=r"expected a list of Input.*write \[Input\(array, Tiler"):
            Pipeline(wrong, [])
    with pytest.raises(TransferError, match="nan is not a value of"):
        Pipeline([Input(np.zeros(4, int), Tiler((4,), (2,)), "nan")], [])
    b.flags.writeable = False
    with pytest.raises(TransferError, match="read-only"):
        Pipeline([], [Output(b, Tiler((8, 8), (2, 2)))])
    with pytest.raises(TransferError, match="source with shape, dtype and slices, got list"):
        Pipeline([Input([1, 2], Tiler((2,), (2,)))], [])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_in_place_is_safe_only_with_the_same_tiles(scheme):
    a, tiler = np.arange(40), Tiler((40,), (7,))
    Pipeline([Input(a, tiler)], [Output(a, tiler)], scheme=scheme).run(lambda x, y: np.add(x, 1, out=y))
    assert a.tolist() == list(range(1, 41))
    wider = Tiler((40,), (9,), 2, 1)
    with pytest.raises(TransferError, match="share memory"):
        Pipeline([Input(a, wider)], [Output(a, tiler)], scheme=scheme)
    with pytest.raises(TransferError, match="share memory"):
        Pipeline([Input(a[::-1], tiler)], [Output(a, tiler)], scheme=scheme)


def test_a_result_that_is_not_the_output_is_refused():
    a, b, tiler = np.zeros(8), np.zeros(8), Tiler((8,), (4,))
    with pytest.raises(TransferError, match="would be lost"):
        Pipeline([Input(a, tiler)], [Output(b, tiler)]).run(lambda x, y: x + 1)
