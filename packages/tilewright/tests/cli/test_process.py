# SPDX-License-Identifier: Apache-2.0
"""What only a process of its own can show: signals, pipes, terminals, completion, the installed command."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

EXPLAIN = ("explain", "4x60x90", "--at", "2,33,17")


def finished(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_statuses_reach_the_shell(start):
    assert finished(start(*EXPLAIN))[0] == 0
    assert finished(start("fit", "99999x99999", "--buffer", "l1"))[0] == 1
    assert finished(start("explain", "4x4", "--bit", "1"))[0] == 2
    assert finished(start("inspect", "none.npy"))[0] == 3


def test_the_installed_command_is_the_same(tmp_path):
    command = Path(sys.executable).with_name("tilewright")
    if not command.exists():
        pytest.skip("the package is not installed with its command")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tilewright, version")


def test_no_colours_in_a_pipe(start):
    assert "\x1b" not in finished(start("fit", "99999x99999", "--buffer", "l1"))[1]
    assert "\x1b" not in finished(start("explain", "4x4", "--bit", "1"))[2]


def in_a_terminal(arguments, environment):
    """Return what the command writes to a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright", *arguments],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, **environment},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(ours)
    process.wait(timeout=60)
    return shown.decode()


def test_colours_on_a_terminal_unless_refused():
    question = ["fit", "64x64", "--buffer", "l1"]
    layout = ["explain", "(4,8):(8,1)", "--at", "1,1"]
    plain = {"NO_COLOR": "", "TERM": "xterm"}
    assert "\x1b[32m" in in_a_terminal(question, plain)
    assert "\x1b" not in in_a_terminal(question, {**plain, "NO_COLOR": "1"})
    assert "\x1b" not in in_a_terminal(question, {**plain, "TERM": "dumb"})
    assert "\x1b[36moffset" in in_a_terminal(layout, plain)
    assert "\x1b" not in in_a_terminal(layout, {**plain, "NO_COLOR": "1", "FORCE_COLOR": "1"})


def test_pictures_have_the_colours_that_the_terminal_has():
    picture, plain = ["show", "(4,8):(8,1)"], {"NO_COLOR": "", "TERM": "xterm"}
    assert "\x1b[48;5;" in in_a_terminal(picture, {**plain, "COLORTERM": ""})
    assert "\x1b[48;2;" in in_a_terminal(picture, {**plain, "COLORTERM": "truecolor"})
    assert "\x1b" not in in_a_terminal(picture, {**plain, "NO_COLOR": "1"})


def test_a_pipe_has_no_colours_unless_forced(run, monkeypatch):
    for question in (["explain", "(4,8):(8,1)", "--at", "1,1"], ["show", "(4,8):(8,1)"], ["inspect", "--help"]):
        assert "\x1b" not in run(*question).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[36moffset" in run("explain", "(4,8):(8,1)", "--at", "1,1").out
    assert "\x1b[48;5;" in run("show", "(4,8):(8,1)").out
    assert "\x1b" not in run("show", "(4,8):(8,1)", "--json").out


def test_a_reader_that_goes_away_is_no_error(start):
    process = start("doctor")
    process.stdout.close()
    process.wait(timeout=60)
    with process.stderr:
        err = process.stderr.read()
    assert process.returncode == 141
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


def test_a_closed_pipe_is_quiet(tmp_path):
    np.savez(tmp_path / "many.npz", **{f"t{k}": np.zeros(1) for k in range(2000)})
    line = '"$0" -m tilewright inspect many.npz | head -n 1'  # the interpreter may lie in a folder of any name
    done = subprocess.run(["sh", "-c", line, sys.executable], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "2000 tensors" in done.stdout


@pytest.mark.parametrize("name", ["größe.npy", os.fsdecode(b"\xff.npy")], ids=["umlauts", "no text at all"])
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_files_may_be_called_anything(start, tmp_path, name, encoding):
    np.save(tmp_path / name, np.zeros(3))
    for arguments in ([], ["--json"]):
        process = start("inspect", name, *arguments, environment={"PYTHONIOENCODING": encoding})
        status, out, err = finished(process)
        assert (status, err) == (0, "")
        assert "float64" in out
    assert finished(start("inspect", name + "x", environment={"PYTHONIOENCODING": encoding}))[0] == 3


def test_ctrl_c_stops_a_stream_and_leaves_nothing(start, tmp_path):
    np.save(tmp_path / "in.npy", np.zeros((400, 400), np.float32))
    (tmp_path / "slow.py").write_text(
        "import pathlib, time\n"
        "def f(x, out):\n    pathlib.Path('started').touch()\n    time.sleep(8)\n    out[...] = x\n",
        encoding="utf-8",
    )
    process = start("stream", "slow:f", "in.npy", "out.npy", "--tile", "20x20")
    for _ in range(600):
        if (tmp_path / "started").exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    status, _, err = finished(process)
    assert status == 130
    assert time.monotonic() - began < 4  # and not after the compute of 8 s; leaving Python takes a while, too
    assert "interrupted" in err
    assert "Traceback" not in err
    left = {each.name for each in tmp_path.iterdir()} - {"__pycache__"}
    assert left == {"in.npy", "slow.py", "started"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(start, shell):
    status, out, _ = finished(start("completion", shell))
    assert status == 0
    assert f"_TILEWRIGHT_COMPLETE={shell}_complete" in out


def test_completion_completes(start, tmp_path):
    def completed(words, index):
        environment = {"_TILEWRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(index)}
        _, out, err = finished(start(environment=environment))
        assert err == ""
        return {line.partition(",")[2] for line in out.splitlines()}

    assert completed("tilewright ex", 1) == {"explain", "explore"}
    assert "--shard-shape" in completed("tilewright explain --sh", 2)
    assert "bfloat8_b" in completed("tilewright explain --dtype bfl", 3)
    assert "wormhole_n150" in completed("tilewright fit --chip worm", 3)
    assert completed("tilewright fit --shard wi", 3) == {"width"}
    assert {"T3K", "T3000", "TG"} <= completed("tilewright fit model --for T", 4)
    assert completed("tilewright translate 4:1 --to tt", 4) == {"tt-mlir", "ttnn"}
    assert completed("tilewright conflicts 4:1 --instruction ldm", 4) == {f"ldmatrix.x{n}" for n in (1, 2, 4)}
    np.savez(tmp_path / "m.npz", wq=np.ones(2), wk=np.ones(2), b=np.ones(2))
    assert completed(f"tilewright inspect {tmp_path / 'm.npz'} --tensor w", 4) == {"wq", "wk"}
    assert completed(f"tilewright inspect {tmp_path / 'none.npz'} --tensor w", 4) <= {""}


def test_bash_takes_the_script(tmp_path, start):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    _, script, _ = finished(start("completion", "bash"))
    (tmp_path / "completion.bash").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [bash, "-c", "source completion.bash && complete -p tilewright"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "tilewright" in done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fit", "64x64"], ["inspect", "--help"]])
def test_every_closed_pipe_has_its_status(start, arguments):
    process = start(*arguments)
    process.stdout.close()
    process.wait(timeout=60)
    with process.stderr:
        assert (process.returncode, process.stderr.read()) == (141, "")


def test_a_conversion_whose_events_nobody_reads(start, tmp_path):
    np.savez(tmp_path / "m.npz", **{f"t{k}": np.zeros((64, 64), np.float32) for k in range(20)})
    process = start("convert", "m.npz", "out", "--json")
    process.stdout.close()
    process.wait(timeout=60)
    with process.stderr:
        assert (process.returncode, process.stderr.read()) == (141, "")


def test_ctrl_c_says_how_a_conversion_goes_on(start, tmp_path):
    with (tmp_path / "zeros.npy").open("wb") as file:  # a hole, which takes a while to convert
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 20, 4096)})
        file.truncate(file.tell() + (1 << 34))
    process = start("convert", "zeros.npy", "out", "--dtype", "bfloat4_b", "--jobs", "1")
    for _ in range(600):
        if (tmp_path / "out").exists() or any(each.name.startswith(".") for each in tmp_path.iterdir()):
            break
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    status, _, err = finished(process)
    assert status == 130
    assert err == "tilewright: error: interrupted; finished tensors are saved, continue with --resume\n"


def test_names_are_cut_on_a_terminal_only(tmp_path):
    names = [f"model.layers.{k}.self_attn.{part}_proj.weight" for k in range(2) for part in "qk"]
    np.savez(tmp_path / "m.npz", **dict.fromkeys(names, np.zeros((1024, 1024), np.int8)))
    question = ["inspect", str(tmp_path / "m.npz")]
    narrow = in_a_terminal(question, {"COLUMNS": "72", "TERM": "xterm"})
    wide = in_a_terminal(question, {"COLUMNS": "200", "TERM": "xterm"})
    piped = subprocess.run([sys.executable, "-m", "tilewright", *question], capture_output=True, text=True, check=True)
    for name in names:
        assert name in wide
        assert name in piped.stdout
        assert name not in narrow
        assert name.removeprefix("model.layers.") in narrow
