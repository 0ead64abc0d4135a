# SPDX-License-Identifier: Apache-2.0
"""The main job on a system without what only POSIX or Linux has: the pure wheel is for Windows and macOS, too."""

import os
import subprocess
import sys
from pathlib import Path

# What others need of Linux to be imported here is theirs.
ABSENT = """
import asyncio, concurrent.futures, importlib.abc, multiprocessing, os, shutil, signal, subprocess, sys, zipfile
import click, ml_dtypes, numpy, rich.progress

class Absent(importlib.abc.MetaPathFinder):
    names = {"fcntl", "resource", "pwd", "grp", "termios"}
    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for name in Absent.names:
    sys.modules.pop(name, None)
POSIX = ("fork", "forkpty", "geteuid", "getuid", "getgid", "killpg", "setsid", "sched_getaffinity", "sched_setaffinity",
         "sched_yield", "posix_fadvise", "posix_fallocate", "pread", "preadv", "pwrite", "mkfifo",
         "register_at_fork", "getpgid", "fchmod", "chown", "O_DIRECT", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC",
         "O_DIRECTORY")
for name in POSIX:
    if hasattr(os, name):
        delattr(os, name)
shutil._use_fd_functions = False  # which it has decided already
for name in ("SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "setitimer", "alarm", "pthread_sigmask", "sigwait"):
    if hasattr(signal, name):
        delattr(signal, name)
"""

EVERY_MODULE = """
import importlib, pkgutil
import tilewright
wrong = []
for found in pkgutil.walk_packages(tilewright.__path__, "tilewright."):
    if found.name.rpartition(".")[2] == "__main__":
        continue
    try:
        importlib.import_module(found.name)
    except ImportError as problem:
        if "tilewright" in str(problem) or any(name in str(problem) for name in Absent.names):
            wrong.append(f"{found.name}: {problem}")
    except Exception as problem:
        wrong.append(f"{found.name}: {type(problem).__name__}: {problem}")
assert not wrong, "\\n".join(wrong)
"""

MAIN_JOB = """
import numpy as np
import tilewright as tw
from tilewright.cli import program
from tilewright.files import write_sample_llama, write_sample_model

def run(*words):
    try:
        program.main([str(word) for word in words])
    except SystemExit as end:
        assert end.code in (None, 0), (words, end.code)

write_sample_llama("Llama-3.2-1B-Instruct")
write_sample_model("model.safetensors")
run("prepare", "Llama-3.2-1B-Instruct", "cache", "--for", "N300")
run("prepare", "--check", "cache", "Llama-3.2-1B-Instruct")
run("convert", "model.safetensors", "tiles", "--dtype", "bfloat8_b")
run("convert", "model.safetensors", "tiles", "--dtype", "bfloat8_b", "--resume")
run("verify", "tiles", "model.safetensors")
run("explain", "tiles", "--tensor", "layers.0.mlp.up.weight", "--at", "33,7")
run("show", "tiles", "--tensor", "layers.0.mlp.up.weight", "-o", "picture.html")
run("diff", "model.safetensors", "tiles", "--ulp", "1")
x, y = np.arange(4000.0).reshape(40, 100), np.zeros((40, 100))
tw.stream(x, y, lambda a, out: np.copyto(out, a + 1), tile=(16, 32))
assert (y == x + 1).all()
np.save("x.npy", x)
tw.stream("x.npy", "y.npy", lambda a, out: np.copyto(out, a * 2), tile=(16, 32))
assert (np.load("y.npy") == x * 2).all()
print("done")
"""


def run_without(code: str, folder: Path) -> str:
    environment = {**os.environ, "TILEWRIGHT_NATIVE": "0"}
    command = [sys.executable, "-c", f"{ABSENT}\n{code}"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_module_can_be_imported(tmp_path):
    run_without(EVERY_MODULE, tmp_path)


def test_the_main_job_runs(tmp_path):
    assert run_without(MAIN_JOB, tmp_path).endswith("done\n")
    forbidden = set('<>:"|?*\\')
    names = [path.name for path in tmp_path.rglob("*")]
    assert len(names) > 40
    assert not [name for name in names if forbidden & set(name) or name.endswith((".", " "))], "not names on Windows"
