# SPDX-License-Identifier: Apache-2.0
"""Events, threads and errors: what a wait promises."""

import os
import threading
import time

import numpy as np
import pytest

from tilewright import TransferError
from tilewright.tiling import (
    ExternalTensor,
    InlineQueue,
    InternalTensor,
    ThreadQueue,
    TransferEvent,
    export,
    import_,
    wait,
)
from tilewright.tiling.transfers import Transfer

BIG = 1 << 20


@pytest.fixture
def queue():
    with ThreadQueue(workers=2, inline_below=0) as made:
        yield made
    assert not [t for t in threading.enumerate() if t.name.startswith("tilewright-transfer") and t in made._threads]


def test_an_event_gathers_transfers_and_can_be_used_again(queue):
    event = TransferEvent(queue)
    source = ExternalTensor(np.arange(100))
    buffers = [InternalTensor(np.zeros(10, int)) for _ in range(10)]
    for _ in range(2):
        for k, buffer in enumerate(buffers):
            import_(buffer, source.sub(10 * k, 10), event)
        assert len(event.pending) == 10
        event.wait()
        assert event.finished
        assert not event.pending
    assert [buffer.array()[0] for buffer in buffers] == list(range(0, 100, 10))


def test_several_events_are_waited_for_together(queue):
    target = np.zeros(20, int)
    events = [TransferEvent(queue), TransferEvent(queue)]
    for k, event in enumerate(events):
        export(InternalTensor(np.full(10, k + 1)), ExternalTensor(target).sub(10 * k, 10), event)
    wait(*events)
    assert target.tolist() == [1] * 10 + [2] * 10


def test_transfers_run_off_the_calling_thread(queue):
    seen = []
    event = TransferEvent(queue)
    event.add(Transfer("import", 0, lambda: seen.append(threading.current_thread()), BIG))
    event.wait()
    assert seen[0] is not threading.current_thread()


def test_small_transfers_are_not_handed_over():
    queue = ThreadQueue()
    seen = []
    queue.start(Transfer("import", 0, lambda: seen.append(threading.current_thread()), 64))
    assert seen == [threading.current_thread()]
    assert not queue._threads


def test_an_error_surfaces_at_the_wait_after_all_transfers_are_over(queue):
    ended = []

    def slow():
        time.sleep(0.05)
        ended.append(True)

    event = TransferEvent(queue)
    event.add(Transfer("import", 5, lambda: {}[1], BIG))
    event.add(Transfer("import", 6, slow, BIG))
    with pytest.raises(TransferError, match="import of tile 5 failed: KeyError") as caught:
        event.wait()
    assert isinstance(caught.value.__cause__, KeyError)
    assert ended == [True]
    assert event.finished


def test_a_transfer_does_not_start_when_what_it_follows_has_failed(queue):
    ran = []
    event = TransferEvent(queue)
    first = event.add(Transfer("export", 1, lambda: 1 // 0, BIG))
    second = event.add(Transfer("import", 3, lambda: ran.append(True), BIG, after=[first]))
    with pytest.raises(TransferError, match="export of tile 1 failed"):
        event.wait()
    assert not ran
    assert "not started" in str(second.error)


def test_transfers_follow_what_they_depend_on(queue):
    order = []

    def late():
        time.sleep(0.05)
        order.append("export")

    event = TransferEvent(queue)
    first = event.add(Transfer("export", 1, late, BIG))
    event.add(Transfer("import", 3, lambda: order.append("import"), BIG, after=[first]))
    event.wait()
    assert order == ["export", "import"]


def test_an_interrupt_in_a_transfer_stays_one():
    def stop():
        raise KeyboardInterrupt

    event = TransferEvent(InlineQueue())
    event.add(Transfer("import", 1, stop))
    with pytest.raises(KeyboardInterrupt):
        event.wait()


def test_what_is_moved_must_not_share_memory():
    memory = np.arange(10)
    with pytest.raises(TransferError, match="overlap in memory"):
        import_(InternalTensor(memory[2:6]), ExternalTensor(memory).sub(5, 4))
    with pytest.raises(TransferError, match="overlap in memory"):
        export(InternalTensor(memory[2:6]), ExternalTensor(memory).sub(5, 4))
    import_(InternalTensor(memory[2:6]), ExternalTensor(memory).sub(6, 4)).wait()
    assert memory.tolist() == [0, 1, 6, 7, 8, 9, 6, 7, 8, 9]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_an_engine_of_its_own():
    big = np.arange(100_000)
    buffer = np.zeros(100_000, int)
    import_(InternalTensor(buffer), ExternalTensor(big)).wait()  # the threads of the parent run
    child = os.fork()
    if child == 0:
        import_(InternalTensor(buffer), ExternalTensor(big + 1)).wait()
        os._exit(0 if (buffer == big + 1).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_engine_needs_threads():
    with pytest.raises(TransferError, match="at least 1"):
        ThreadQueue(0)


def test_a_closed_engine_opens_again():
    queue = ThreadQueue(inline_below=0)
    for _ in range(2):
        transfer = Transfer("import", 0, lambda: None, BIG)
        queue.start(transfer)
        queue.close()
        assert transfer.finished
        assert not queue._threads


def test_an_engine_that_was_interrupted_while_it_started_is_closed(monkeypatch):
    a, b = np.arange(8), np.zeros(8, int)
    queue = ThreadQueue(workers=2, inline_below=0)
    start, begun = threading.Thread.start, []

    def stops(thread):
        if begun:
            raise KeyboardInterrupt
        begun.append(thread)
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", stops)
        with pytest.raises(KeyboardInterrupt):
            import_(InternalTensor(b), ExternalTensor(a), TransferEvent(queue))
    queue.close()
    assert not begun[0].is_alive()
