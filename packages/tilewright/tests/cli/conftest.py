# SPDX-License-Identifier: Apache-2.0
"""How the tests call the command: in this process for most, in one of its own where that is the point."""

import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright.files import Tensorbin, write_tensorbin

from .runner import invoke

COMMAND = [sys.executable, "-m", "tilewright"]


class Outcome:
    """What a command said and how it ended."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the command in a folder of its own, within this process; a status of None is any."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)

    def call(*arguments, status=0, stdin=None):
        found = invoke(*map(str, arguments), stdin=stdin)
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        outcome = Outcome(found.exit_code, found.stdout, found.stderr)
        assert status in (None, outcome.status), outcome.out + outcome.err
        return outcome

    return call


# Processes of tests that run in the background would not hear Ctrl-C, as these do not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def start(tmp_path):
    """Return a function that starts the command as a process of its own; whatever still runs at the end is ended."""
    started = []

    def call(*arguments, **options):
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | options.pop("environment", {})
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=options.pop("stderr", subprocess.PIPE),
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def files(tmp_path):
    """Return a folder with a matrix as .npy and as tiles of two formats."""
    values = np.random.default_rng(0).standard_normal((100, 70)).astype(np.float32)
    np.save(tmp_path / "w.npy", values)
    for dtype in ("bfloat8_b", "float32"):
        spec = tw.TensorSpec(values.shape, dtype, "tile", memory=tw.height_sharded((4, 1)), chip="wormhole_n150")
        write_tensorbin(tmp_path / f"{dtype}.tensorbin", Tensorbin(spec, tw.to_bytes(values, spec)))
    return tmp_path
