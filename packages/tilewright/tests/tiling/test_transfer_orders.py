# SPDX-License-Identifier: Apache-2.0
"""Engines that finish transfers in any order, late, twice, never or with an error: right, or raised; never wrong."""

import random
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import TransferError
from tilewright.tiling import CancelledError, Input, Output, Pipeline, Tiler, TransferEvent, export, import_
from tilewright.tiling.tile_copies import ExternalTensor, InternalTensor

from ..cases import examples
from .pipelines import SCHEMES, stencils

FAULTS = ["none", "none", "drop", "late", "twice", "start", "wait", "work", "cancel"]


class UnrulyError(Exception):
    """What an queue raises."""


class Unruly:
    """An queue that runs what was started whenever it likes: any order, in threads or not, and with one fault."""

    def __init__(self, seed, fault):
        self.random, self.fault = random.Random(seed), fault
        self.waiting, self.threads, self.faulty = [], [], False
        self.at = self.random.randint(0, 12)
        self.started = 0

    def strikes(self, fault):
        if self.fault != fault or self.started <= self.at or self.faulty:
            return False
        self.faulty = True
        return True

    def start(self, transfer):
        self.started += 1
        if self.strikes("start"):
            raise UnrulyError("no more threads")
        if self.strikes("drop"):
            return
        if self.strikes("work"):
            transfer.work = self.fail
        self.waiting.append(transfer)
        if self.random.random() < 0.5:
            self.run_some()

    def fail(self):
        raise UnrulyError("the disk is gone")

    def run_some(self, least=0):
        self.random.shuffle(self.waiting)
        for _ in range(self.random.randint(least, len(self.waiting))):
            transfer = self.waiting.pop()
            if self.random.random() < 0.3:
                self.threads.append(threading.Thread(target=self.run, args=(transfer,)))
                self.threads[-1].start()
            else:
                self.run(transfer)

    def run(self, transfer):
        if self.random.random() < 0.1:
            time.sleep(0.0005)
        transfer.run()
        if self.strikes("twice"):
            self.waiting.append(transfer)

    def wait(self, transfers):
        if self.strikes("wait"):
            raise UnrulyError("lost the connection")
        if self.strikes("late"):
            return  # before they are over
        while any(transfer in self.waiting for transfer in transfers):
            self.run_some(1)
        if self.faulty and self.fault == "drop":
            return
        for transfer in transfers:
            transfer.join()

    def close(self):
        while self.waiting:
            self.run_some(1)
        for thread in self.threads:
            thread.join()


@examples(400)
@given(
    stencils(3),
    st.sampled_from([*SCHEMES, "steps"]),
    st.integers(1, 4),
    st.sampled_from(FAULTS),
    st.integers(0, 2**32),
)
def test_any_engine_gives_the_right_result_or_an_error(stencil, scheme, depth, fault, seed):
    target, expected = np.full(stencil.space, -1, np.int64), stencil.expected()
    queue, switch = Unruly(seed, fault), threading.Event()
    options = {"scheme": "double"} if scheme == "steps" else {"scheme": scheme}
    if scheme == "buffered":
        options["depth"] = depth
    chosen = stencil.pipeline(target, queue=queue, **options)

    def progress(done, _):
        if fault == "cancel" and done > queue.at:
            switch.set()

    problem = None
    try:
        if scheme == "steps":
            for step in chosen.steps(progress=progress, cancel=switch):
                stencil.compute(*step.inputs, *step.outputs)
        else:
            chosen.run(stencil.compute, progress=progress, cancel=switch)
    except (UnrulyError, TransferError) as found:
        problem = found
    snapshot = target.copy()
    queue.close()
    assert (target == snapshot).all(), "something was written after the run had ended"
    if problem is None:
        assert (target == expected).all()
        assert fault not in ("start", "wait", "work") or not queue.faulty  # others may be made good
        return
    assert fault not in ("none", "twice"), problem
    assert isinstance(problem, CancelledError) == (fault == "cancel")
    for tile in stencil.tilers()[1]:
        part = tile.within(stencil.space).slices
        assert (target[part] == expected[part]).all() or (target[part] == -1).all(), "a tile is half written"


@examples(100)
@given(st.integers(1, 30), st.integers(2, 7), st.integers(1, 3), st.sampled_from(SCHEMES), st.integers(0, 2**32))
def test_outputs_that_overlap_are_written_in_the_order_of_the_tiles(size, tile, overlap, scheme, seed):
    overlap = min(overlap, tile - 1, max(0, size - 1))
    tiler = Tiler((size,), (tile,), overlap)
    source, target, expected = np.zeros(size), np.full(size, -1.0), np.full(size, -1.0)
    for number, box in enumerate(tiler):
        expected[box.slices] = number
    queue = Unruly(seed, "none")
    pipeline = Pipeline([Input(source, tiler)], [Output(target, tiler)], scheme=scheme, queue=queue)
    for step in pipeline.steps():
        step.outputs[0][...] = step.tile
    queue.close()
    assert (target == expected).all()


def test_what_repeats_the_space_is_not_read_in_place():
    a = np.arange(10.0)
    tiler = Tiler((10,), (4,), 0, 2)
    for fill in ("wrap", "edge", "reflect", "symmetric"):
        with pytest.raises(TransferError, match="share memory but not tiles"):
            Pipeline([Input(a, tiler, fill)], [Output(a, tiler)])
    Pipeline([Input(a, tiler, 0)], [Output(a, tiler)]).run(lambda x, y: np.multiply(x, 2, out=y))
    assert (a == 2 * np.arange(10)).all()


def test_an_event_whose_queue_cannot_start_a_transfer_does_not_wait_for_it():
    whole, inner = ExternalTensor(np.arange(8)), InternalTensor(np.zeros(4, int))
    queue = Unruly(0, "start")
    queue.at = 0
    event = TransferEvent(queue)
    with pytest.raises(UnrulyError):
        import_(inner, whole.sub(0, 4), event)
    with pytest.raises(TransferError, match="UnrulyError: no more threads"):
        event.wait()
    dropped = TransferEvent(Unruly(0, "drop"))
    dropped.queue.at = 0
    export(inner, whole.sub(0, 4), dropped)
    with pytest.raises(TransferError, match=r"the queue returned from wait\(\) before it was over"):
        dropped.wait()
