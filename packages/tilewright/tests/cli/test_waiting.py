# SPDX-License-Identifier: Apache-2.0
"""What a command says while it works, how soon Ctrl-C ends it, and which modules it loads."""

import io
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from tilewright.cli import console
from tilewright.cli.console import Progress, Waiting


class Terminal(io.StringIO):
    """A text stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal in place of stderr, on which a command speaks at once."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)  # not in a fixture, after which pytest sets its own
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(console, "_QUIET_SECONDS", 0.01)
    return stream


def wait_for(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_command_that_is_slow_says_what_it_works_on_and_removes_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with Waiting("match a.safetensors \x1b[31mb"):
        wait_for(terminal.getvalue)
    assert terminal.getvalue() == "match a.safetensors  [31mb, 0:00\r\x1b[K"


def test_nothing_is_said_beside_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with Progress("converting", quiet=False) as progress:
        progress.update(1, 1)
        assert Waiting.bars == 1
        with Waiting("convert a.safetensors"):
            time.sleep(0.1)
    assert "convert a" not in terminal.getvalue()
    assert Waiting.bars == 0


def test_nothing_is_said_in_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_QUIET_SECONDS", 0.01)
    with Waiting("match a b"):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_a_command_that_waits_for_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # which never answers
        url = f"http://127.0.0.1:{server.getsockname()[1]}/model.safetensors"
        command = [sys.executable, "-m", "tilewright", "inspect", url]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        connection, _ = server.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.decode().strip() == "tilewright: interrupted"


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        (["show", "(4,8):(8,1)"], ["files.tensor_file", "conversion", "ttnn.operations", "http.client"]),
        (["explain", "4x60x90", "--at", "2,33,17"], ["files.tensor_file", "conversion", "notation.triton"]),
        (["fit", "4096x4096"], ["files.tensor_file", "conversion.run", "tiling", "asyncio"]),
        (["translate", "(4,8):(8,1)"], ["files.tensor_file", "conversion", "ttnn.operations", "http.client"]),
    ],
)
def test_a_command_loads_what_it_uses(arguments: list[str], unused: list[str]) -> None:
    program = (
        "import sys\nfrom tilewright.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    loaded = set(run.stderr.split())
    assert "tilewright.cli" in loaded
    assert not {name for name in unused if name in loaded or f"tilewright.{name}" in loaded}
