# SPDX-License-Identifier: Apache-2.0
"""Programs in processes of their own: that fail, exit, fork, hang or are killed, with a package in place of ttnn."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

from tilewright_audit import TtnnProgram, rehearse
from tilewright_audit.rehearsal import process
from tilewright_audit.rehearsal.process import RehearsalError

from .fake_ttnn import install

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ttnn has wheels for Linux only")
HEAD = "import os, sys, threading, time, ttnn\ndevice = ttnn.open_device(0)\nx = ttnn.empty([32, 32])\n"


@pytest.fixture
def rehearsed(tmp_path, monkeypatch):
    """Return a function that rehearses a program, and returns its report."""
    install(tmp_path / "packages")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def call(body, arguments=(), limit=20.0, **options):
        path = tmp_path / "program.py"
        path.write_text(HEAD + body)
        report = rehearse(TtnnProgram(str(path), tuple(arguments), limit=limit), "N150", **options)
        assert not list(tmp_path.glob("tilewright-rehearsal-*"))
        return report

    return call


def test_a_program_that_runs_is_clean(rehearsed):
    report = rehearsed("y = ttnn.empty([32, 32])\nttnn.close_device(device)\n")
    assert report.clean
    assert dict(report.facts)["verdict"] == "fits"
    assert report.counts["calls"] == report.counts["predicted_addresses"] == 2
    assert report.timeline.shares[0].call == "ttnn.empty at program.py:3"


def test_a_call_that_fails_is_explained_with_its_line_and_callers(rehearsed):
    report = rehearsed("def make():\n    return ttnn.empty([64, 64])\n\nmake()\n")
    found = report.findings[0]
    assert found.message.startswith("program.py:5: ttnn.empty failed: A buffer of 16777216 B (16 MiB) does not fit")
    assert found.reason.endswith("Called from program.py:7.")
    assert "backtrace" not in found.recorded
    assert report.exit_status == 1
    assert report.counts["calls"] == 2


def test_an_error_that_was_raised_from_another_is_found(rehearsed):
    body = "try:\n    ttnn.empty([64, 64])\nexcept RuntimeError as problem:\n    raise ValueError('no') from problem\n"
    assert rehearsed(body).findings[0].message.startswith("program.py:5: ttnn.empty failed")


def test_an_error_that_the_program_handles_is_a_note(rehearsed):
    report = rehearsed("try:\n    ttnn.empty([64, 64])\nexcept RuntimeError:\n    pass\n")
    assert report.clean
    assert "The program handled it." in report.notes[0].message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no weights')", "program.py:4: ValueError: no weights"),
        ("sys.exit(3)", "the program exited with status 3, after ttnn.empty at program.py:3"),
        ("sys.exit('no weights')", "the program exited with status 1 (no weights)"),
        ("os._exit(4)", "the program exited with status 4 (os._exit)"),
        ("os.kill(os.getpid(), 11)", "the process ended with a segmentation fault, after ttnn.empty at program.py:3"),
        ("x = = 3", "program.py:4: SyntaxError: invalid syntax"),
    ],
)
def test_a_program_that_ends_early(rehearsed, body, said):
    report = rehearsed(body)
    assert report.findings[0].kind == "program stopped"
    assert report.findings[0].message.startswith(said)
    assert report.exit_status == 1


def test_exits_that_are_no_failures(rehearsed):
    assert rehearsed("sys.exit()").clean
    assert rehearsed("threading.Thread(target=time.sleep, args=[0.1]).start()").clean
    assert rehearsed("sys.exit(sys.argv[1:] != ['--users', '32'])", ["--users", "32"]).clean


def test_a_program_that_runs_for_ever_is_stopped(rehearsed, monkeypatch):
    monkeypatch.setattr(process, "GRACE", 0.5)
    report = rehearsed("while True: pass", limit=1.5)
    assert report.findings[0].message.startswith("the program was stopped after 1.5 s, after ttnn.empty")
    assert report.counts["calls"] == 1  # what it did until then was captured
    ignoring = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    assert "the capture was lost" in rehearsed(ignoring, limit=1.5).notes[0].message


def test_processes_that_a_program_leaves_behind_are_ended(rehearsed, tmp_path):
    body = f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
while not os.path.exists({str(tmp_path / "pid")!r}) or not open({str(tmp_path / "pid")!r}).read():
    time.sleep(0.01)
"""
    assert rehearsed(body).clean
    left = Path("/proc", (tmp_path / "pid").read_text())
    for _ in range(100):
        if not left.exists() or "\nState:\tZ" in left.joinpath("status").read_text():
            return
        time.sleep(0.05)
    pytest.fail(f"process {left.name} is still there")


def test_calls_that_end_a_mock_are_left_out(rehearsed):
    report = rehearsed("device.load_sub_device_manager(1)\nttnn.begin_trace_capture(device)\n")
    assert report.clean
    notes = [note.message for note in report.notes]
    assert "calls that a mock cannot do were left out: load_sub_device_manager (1)" in notes
    assert any("calls of traces were left out" in note for note in notes)


def test_a_check_of_values_decides_nothing(rehearsed):
    report = rehearsed("assert x.to_list() == [1.0], 'too low'")
    assert report.clean
    assert dict(report.facts)["verdict"] == "fits, as far as it ran"
    assert "AssertionError: too low" in str(report.notes[0])
    assert not rehearsed("assert False").clean


def test_a_program_without_a_device(rehearsed, tmp_path):
    report = rehearse(_write(tmp_path / "none.py", "print('hello')"), "N150")
    assert dict(report.facts)["verdict"] == "nothing to rehearse: no device was opened"


def test_asking_whether_there_is_a_ttnn_changes_nothing(rehearsed, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    path = tmp_path / "asking.py"
    _write(path, "import importlib.util\nassert importlib.util.find_spec('ttnn')\n" + HEAD)
    assert rehearse(path, "N150").counts["calls"] == 1


def test_a_module_is_rehearsed_as_python_runs_it(rehearsed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / "serve.py", HEAD)
    assert rehearse(TtnnProgram("serve", is_module=True), "N150").counts["calls"] == 1


def test_changes_that_ttnn_refuses_are_not_suggested(rehearsed):
    report = rehearsed("ttnn.empty([64, 64])\n", suggest=True)
    assert [note.message for note in report.notes if note.kind == "suggestion"] == [
        "no change of a single line that was tried helps, of 3"
    ]


def test_two_devices_one_after_another(rehearsed):
    body = "ttnn.close_device(device)\ndevice = ttnn.open_device(0)\nttnn.empty([32, 32])\nttnn.empty([32, 32])\n"
    report = rehearsed(body)
    assert report.peaks.l1 == 4096
    assert any("2 devices were opened" in note.message for note in report.notes)


def _write(path, text):
    path.write_text(text)
    return path


def test_no_ttnn_is_said_with_what_to_install(tmp_path, monkeypatch):
    with pytest.raises(RehearsalError, match=r"no ttnn in .*pip install ttnn==0\.81\.1"):
        rehearse(_write(tmp_path / "a.py", ""), "N150", python=_write_python(tmp_path))
    with pytest.raises(FileNotFoundError):
        rehearse(tmp_path / "nothing.py", "N150")


def _write_python(folder):
    """Return a Python without packages."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_the_command_says_what_happened_by_its_status(rehearsed, run, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(HEAD + "ttnn.empty([int(sys.argv[2]), 32])\n")
    assert "program.py: clean" in run("rehearse", str(path), "--rows", "32", "--for", "N150").out
    said = json.loads(run("rehearse", str(path), "--rows", "64", "--for", "N150", "--json", status=1).out)
    assert said["findings"][0]["kind"] == "failed call"
    page = tmp_path / "page.html"
    run("rehearse", str(path), "--rows", "32", "--for", "P150", "--html", str(page))
    assert "program.py:4" in page.read_text()
    assert "--html" in run("rehearse", str(path), "--for", "N150", "--html", "a.doc", status=2).err
    assert "no machine" in run("rehearse", str(path), "--for", "N15O", status=2).err
    assert "no ttnn" in run("rehearse", str(path), "--for", "N150", "--python", _write_python(tmp_path), status=5).err


def test_pytest_runs_tests_on_the_mock(rehearsed, tmp_path):
    tests = tmp_path / "test_program.py"
    tests.write_text(
        "import pytest, ttnn\n"
        "@pytest.fixture\ndef device():\n    device = ttnn.open_device(0)\n    yield device\n"
        "    ttnn.close_device(device)\n"
        "def test_fits(device):\n    ttnn.empty([32, 32])\n"
        "def test_refused(device):\n    ttnn.empty([64, 64])\n"
        "def test_expected(device):\n    with pytest.raises(RuntimeError):\n        ttnn.empty([64, 64])\n"
        "def test_values(device):\n    assert ttnn.empty([32, 32]).to_list() == [1.0]\n"
        "@pytest.mark.xfail(strict=True, reason='wrong values')\n"
        "def test_wrong_values(device):\n    ttnn.empty([32, 32]).to_list()\n"
        "def test_wrong(device):\n    assert False\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests), "--rehearse", "N150"]
    said = _run_pytest(command, tmp_path)
    assert "2 failed, 2 passed, 2 skipped" in said
    assert "test_refused: test_program.py:10: ttnn.empty failed: A buffer of 16777216 B" in said
    assert "refused by ttnn: 1; values not checked in 2" in said
    assert "highest L1: 2048 bytes per core" in said
    assert not list(tmp_path.glob("tilewright-rehearsal-*"))
    assert "no machine 'N1'" in _run_pytest([*command[:-1], "N1"], tmp_path)


def _run_pytest(command, folder):
    import subprocess

    installed = _has_plugin()
    more = [] if installed else ["-p", "tilewright_audit.rehearsal.pytest_plugin"]
    paths = os.pathsep.join([str(folder / "packages"), *sys.path])
    env = {**os.environ, "PYTHONPATH": paths, "PYTEST_ADDOPTS": ""}
    asked = subprocess.run([*command, *more], capture_output=True, text=True, env=env, cwd=folder, check=False)
    return asked.stdout + asked.stderr


def _has_plugin():
    from importlib import metadata

    return any(entry.name == "tilewright-rehearse" for entry in metadata.entry_points(group="pytest11"))
