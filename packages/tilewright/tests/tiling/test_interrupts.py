# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C answers at once, whatever the workers are doing, and nothing is written afterwards."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

SCRIPT = """
    import threading, time
    from concurrent.futures import ThreadPoolExecutor
    import numpy as np
    import tilewright as tw
    from tilewright.copying import native
    from tilewright.tiling import plan_tiles

    pool = ThreadPoolExecutor(2)
    source, tile = np.zeros((512, 1024)), (128, 1024)
    both = 2 if native.is_available() else 1  # without the library, the caller computes
    runs = {
        "in turns": (1, lambda *ends: tw.stream(*ends, tile=tile, workers=1)),
        "at once": (both, lambda *ends: tw.stream(*ends, tile=tile, workers=1, concurrent=True)),
        "alone": (1, lambda *ends: tw.stream(*ends, tile=tile, workers=0)),
        "plan": (1, lambda source, target, compute: plan_tiles(source, target, tile).run(compute)),
        "threads": (2, lambda source, target, compute: plan_tiles(source, target, tile).run(compute, pool)),
    }
    for name, (count, run) in runs.items():
        computing, release, target = threading.Semaphore(0), threading.Event(), np.zeros((512, 1024))

        def compute(x, y):
            y[...] = 1
            computing.release()
            release.wait(20)

        def say_when_all_compute():
            for _ in range(count):
                computing.acquire()
            print(name, flush=True)

        threading.Thread(target=say_when_all_compute).start()
        try:
            run(source, target, compute)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        release.set()  # whoever was left in a compute ends it now
        time.sleep(0.2)
        print("written" if target.any() else "untouched", flush=True)
    print(threading.active_count() - len(pool._threads), "thread")
    pool.shutdown()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on Unix")
def test_an_interruption_waits_for_no_compute():
    """It came when the other worker's compute was over: 7.2 s late of 8."""
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for name in ("in turns", "at once", "alone", "plan", "threads"):
            assert process.stdout.readline() == f"{name}\n"
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            began = time.monotonic()
            assert process.stdout.readline() == "interrupted\n", name
            assert time.monotonic() - began < 0.5, name
            assert process.stdout.readline() == "untouched\n", name
        assert process.stdout.readline() == "1 thread\n"
