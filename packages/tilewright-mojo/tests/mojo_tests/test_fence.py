# SPDX-License-Identifier: Apache-2.0
"""The second wall: a process behind the fence cannot do what a program never needs, even if it runs Python."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from tilewright_mojo.explorer.kernel_process import run_in_process

pytestmark = pytest.mark.slow

ATTEMPTS = {
    "write a file": "open(folder + '/new', 'w')",
    "change a file": "open(folder + '/secret', 'a')",
    "remove a file": "os.unlink(folder + '/secret')",
    "change the rights of a file": "os.chmod(folder + '/secret', 0)",
    "read a file": "open(folder + '/secret').read()",
    "list a folder": "os.listdir(folder)",
    "open a socket": "socket.socket()",
    "start a process": "subprocess.run([sys.executable, '-V'])",
    "become a program": "os.execv(sys.executable, [sys.executable, '-V'])",
    "fork": "os.fork()",
    "signal a process": "os.kill(os.getppid(), 0)",
    "signal a process by another call": "library.tgkill(os.getppid(), os.getppid(), 0)",
    "signal a process by a descriptor": "os.pidfd_open(os.getppid())",
    "limit a process": "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)",
    "slow a process down": "os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, 0))",
    "move a process": "os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))",
    "share memory with a process": "library.shmget(0, 4096, 0o1600)",
    "send a process a message": "library.msgget(0, 0o1600)",
    "change the attributes of a file": "os.removexattr(folder + '/secret', 'user.none')",
}
SCRIPT = """
import ctypes, json, os, resource, socket, subprocess, sys
import numpy, ml_dtypes, tilewright
attempts, folder = json.loads(sys.stdin.read())
class Library:
    def __getattr__(self, name):
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
        def call(*arguments):
            if function(*arguments) < 0:
                raise OSError(ctypes.get_errno(), name)
        return call
library = Library()
def attempt_all(*_):
    allowed = []
    for name, attempt in attempts.items():
        try:
            eval(attempt)
            allowed.append(name)
        except PermissionError:
            pass
        except OSError:  # it was not refused, and failed for another reason
            allowed.append(name)
    print(json.dumps([left, allowed]))
    raise SystemExit(0)
"""
EXPLORER = """
from tilewright_mojo.fence import raise_fence
left = raise_fence()
attempt_all()
"""
COMMAND = """
from tilewright.cli import main
from tilewright_mojo import fence
from tilewright_mojo import running
raise_fence, left = fence.raise_fence, None
def raise_and_keep(*arguments, **options):
    global left
    left = raise_fence(*arguments, **options)
fence.raise_fence, running.run_collecting = raise_and_keep, attempt_all
sys.argv = ["tilewright", "run", "-I", folder + "/library", folder + "/programs/program.mojo"]
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's; elsewhere the page names what is open")
@pytest.mark.parametrize("start", [EXPLORER, COMMAND])
def test_a_fenced_process_cannot_do_what_no_program_needs(tmp_path, start):
    (tmp_path / "secret").write_text("secret")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + start],
        input=json.dumps([ATTEMPTS, str(tmp_path)]),
        capture_output=True,
        text=True,
        check=True,
    )
    left, allowed = json.loads(done.stdout)
    assert left is not None
    opened = {
        "the user's files": {name for name in ATTEMPTS if "file" in name or "folder" in name},
        "other processes and the network": {name for name in ATTEMPTS if "file" not in name and "folder" not in name},
    }
    expected = set().union(*(opened.get(wall, set()) for wall in left))
    assert set(allowed) <= expected  # all walls stand where the kernel has them
    assert (tmp_path / "secret").read_text() == "secret"


def test_programs_run_behind_the_fence():
    answer = run_in_process({"source": Path(__file__).parent.joinpath("sum.mojo").read_text(encoding="utf-8")})
    assert answer["error"] is None
    assert answer["output"] == "6.0\n"
    assert answer["launches"] == 1


def test_a_program_cannot_forge_the_answer_or_read_the_environment(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "secret")
    source = """
from std.os import getenv
from std.sys import stdout, exit
def main() raises:
    stdout.write('{"output": "forged", "reports": []}')
    stdout.flush()
    print(getenv("SECRET_TOKEN", "nothing"))
    exit(0)
"""
    answer = run_in_process({"source": source})
    assert answer["output"].endswith("nothing\n")
    assert answer["output"].startswith('{"output"')


def test_the_escape_of_a_shared_link_is_refused():
    source = 'def main():\n    var g = print.__globals__\n    g["__builtins__"]["__import__"]("os").system("true")'
    assert "no name '__globals__'" in run_in_process({"source": source})["error"]


def test_a_program_cannot_fill_the_memory_of_the_explorer():
    source = "from std.sys import stderr\ndef main() raises:\n"
    source += "    for _ in range(300):\n        stderr.write('x' * 1_000_000)\n    raise Error('y' * 100_000_000)\n"
    tracemalloc.start()
    answer = run_in_process({"source": source})
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answer["error"].endswith("... and more")
    assert most < 10_000_000


def test_the_command_imports_what_it_was_told_of(tmp_path):
    for folder in ("programs", "library", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}_part.mojo").write_text("def double(x: Int) -> Int:\n    return 2 * x\n")

    def run(name, *options):
        program = tmp_path / "programs" / "program.mojo"
        program.write_text(f"from {name} import double\ndef main():\n    print(double(21))\n")
        command = [sys.executable, "-m", "tilewright", "run", *options, str(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert run("programs_part") == "42\n"
    assert run("library_part", "-I", str(tmp_path / "library")) == "42\n"
    assert run("..elsewhere.elsewhere_part", "-I", str(tmp_path / "elsewhere")) == "42\n"
    if not raises_fence():
        return
    assert f"Permission denied; pass -I {tmp_path / 'elsewhere'}" in run("..elsewhere.elsewhere_part")


def raises_fence():
    script = "from tilewright_mojo.fence import raise_fence; print('files' in str(raise_fence()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout == "False\n"
