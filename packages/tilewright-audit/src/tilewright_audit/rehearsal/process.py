# SPDX-License-Identifier: Apache-2.0
"""Runs the recorder of a rehearsal in a process of its own, with a time limit, and leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import TilewrightError

from . import recorder
from .machine import MockMachine

GRACE = 5.0  # seconds for a program that is told to stop
_INSTALL = "ttnn has wheels for Linux x86-64 with Python 3.10 or 3.12: pip install ttnn==0.81.1"
_MARK = "TILEWRIGHT_REHEARSAL"
_UNSET = ("TT_METAL_SLOW_DISPATCH_MODE", "TT_METAL_HOME", "TT_MESH_GRAPH_DESC_PATH", "TT_METAL_SIMULATOR")
_FIND = (
    "import importlib.util as u, importlib.metadata as m, json, os, sys; s = u.find_spec('ttnn')\n"
    "print(json.dumps([s and os.path.dirname(s.origin), s and m.version('ttnn'), sys.version.split()[0]]))"
)


class RehearsalError(TilewrightError):
    """There is no ttnn to rehearse with: its message names the Python that was searched, and the package to install.

    >>> issubclass(RehearsalError, TilewrightError)
    True
    """


@dataclass(frozen=True, slots=True)
class Ttnn:
    """An installed ttnn: the Python that has it, its folder, and its version.

    >>> Ttnn("python3", Path("/venv/ttnn"), "0.81.1").version
    '0.81.1'
    """

    python: str
    folder: Path
    version: str


def find_ttnn(python: str = sys.executable) -> Ttnn:
    """Return the ttnn that a `python` has, without importing it; raises `RehearsalError` where there is none.

    >>> try:
    ...     find_ttnn("/no/python")
    ... except RehearsalError as problem:
    ...     print(problem)
    cannot run /no/python: No such file or directory; name a Python that has ttnn with --python
    """
    try:
        answer = subprocess.run([python, "-c", _FIND], capture_output=True, text=True, check=False, timeout=60)
    except OSError as problem:
        reason = f"cannot run {python}: {problem.strerror}; name a Python that has ttnn with --python"
        raise RehearsalError(reason) from None
    lines = answer.stdout.splitlines()
    if answer.returncode or not lines:
        raise RehearsalError(f"{python} cannot tell whether it has ttnn: {answer.stderr.strip()[-200:]}")
    folder, version, running = json.loads(lines[-1])
    if folder is None:
        raise RehearsalError(
            f"no ttnn in {python} (Python {running}); a rehearsal runs the program with your own ttnn. {_INSTALL}, or"
            " name the Python that has it with --python"
        )
    return Ttnn(python, Path(folder), version)


# Opening a device and running an operation build kernels, and the wheel of ttnn has no compiler for them. A mock device
# never runs a kernel, so an executable with nothing in it does.
COMPILER = "riscv-tt-elf-g++"
_EMPTY = "nothing.elf"
_SCRIPT = """#!/bin/sh
# The stand-in of tilewright for a compiler: writes an executable with nothing in it.
out= dependencies=
while [ $# -gt 0 ]; do
    case $1 in
    -o) out=$2; shift ;;
    -MF) dependencies=$2; shift ;;
    --version) echo "stand-in of tilewright 15.1.0" ;;
    esac
    shift
done
[ -z "$out" ] || cp "${0%/*}/nothing.elf" "$out"
[ -z "$dependencies" ] || echo "$out:" >"$dependencies"
"""

_HEADER, _PROGRAM, _SECTION, _CODE = 52, 32, 40, bytes(16)
_ENTRY = 0x4000


def empty_executable() -> bytes:
    """Return a RISC-V executable of four empty instructions, with the empty relocations that kernels must have.

    >>> empty_executable()[:4]
    b'\\x7fELF'
    """
    names = b"\0.text\0.rela.text\0.shstrtab\0"
    code = _HEADER + _PROGRAM
    sections = code + len(_CODE)
    kind = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)  # 32 bits, little-endian
    sizes = (_HEADER, _PROGRAM, 1, _SECTION, 4, 3)
    start = kind + struct.pack("<HHIIIIIHHHHHH", 2, 243, 1, _ENTRY, _HEADER, sections, 0, *sizes)
    load = struct.pack("<8I", 1, code, _ENTRY, _ENTRY, len(_CODE), len(_CODE), 7, 4)
    text = (names.index(b".text"), 1, 6, _ENTRY, code, len(_CODE), 0, 0, 4, 0)
    relocations = (names.index(b".rela.text"), 4, 0, 0, sections, 0, 0, 1, 4, 12)
    strings = (names.index(b".shstrtab"), 3, 0, 0, sections + 4 * _SECTION, len(names), 0, 0, 1, 0)
    table = bytes(_SECTION) + b"".join(struct.pack("<10I", *entry) for entry in (text, relocations, strings))
    return start + load + _CODE + table + names


def write_compiler(sfpi: Path) -> None:
    """Write the stand-in into the folder `sfpi`, where ttnn expects its compiler.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_compiler(Path(folder))
    ...     sorted(path.name for path in Path(folder, "compiler", "bin").iterdir())
    ['nothing.elf', 'riscv-tt-elf-g++']
    """
    bin_folder = sfpi / "compiler" / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    (sfpi / "include").mkdir(exist_ok=True)
    (bin_folder / _EMPTY).write_bytes(empty_executable())
    compiler = bin_folder / COMPILER
    compiler.write_text(_SCRIPT)
    compiler.chmod(0o755)


def write_runtime_root(folder: Path, ttnn: Path) -> None:
    """Fill a `folder` with links to all of the installed `ttnn` folder, except for the compiler, which is a stand-in.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as temporary:
    ...     installed, root = Path(temporary, "ttnn"), Path(temporary, "root")
    ...     (installed / "runtime" / "hw").mkdir(parents=True)
    ...     write_runtime_root(root, installed)
    ...     sorted(path.name for path in (root / "runtime").iterdir())
    ['hw', 'sfpi']
    """
    runtime = folder / "runtime"
    runtime.mkdir(parents=True)
    for source, target in ((ttnn, folder), (ttnn / "runtime", runtime)):
        for entry in source.iterdir() if source.is_dir() else ():
            if entry.name not in ("runtime", "sfpi", "__pycache__"):
                (target / entry.name).symlink_to(entry)
    write_compiler(runtime / "sfpi")


@dataclass(frozen=True)
class ProgramRun:
    """The outcome of a run of a program: how it ended, its calls and errors, and the captured graphs.

    `kind` is ended, exited, raised, stopped (by the time limit) or killed (by a signal); `details` has the rest.

    >>> run = ProgramRun("exited", {"status": 3})
    >>> run.details["status"]
    3
    """

    kind: str
    details: Mapping[str, Any] = field(hash=False)
    captures: tuple[Path, ...] = ()

    @property
    def calls(self) -> Sequence[Mapping[str, Any]]:
        """The calls of ttnn, with their names and places.

        >>> ProgramRun("ended", {}).calls
        []
        """
        calls: Sequence[Mapping[str, Any]] = self.details.get("calls", [])
        return calls

    @property
    def errors(self) -> Sequence[Mapping[str, Any]]:
        """The errors that calls of ttnn raised, in order, even if the program handled them.

        >>> ProgramRun("ended", {}).errors
        []
        """
        errors: Sequence[Mapping[str, Any]] = self.details.get("errors", [])
        return errors

    @property
    def failure(self) -> Mapping[str, Any] | None:
        """The error of a call of ttnn that ended the program, or None if none did.

        >>> ProgramRun("ended", {}).failure is None
        True
        """
        causes = self.details.get("causes", ())
        return next((error for error in reversed(self.errors) if error["text"] in causes), None)


@dataclass(frozen=True)
class Stage:
    """A mock machine in a temporary folder, on which programs run, with an environment of ttnn without a card.

    >>> stage = Stage(Path("rehearsal"), Ttnn("python3", Path("/venv/ttnn"), "0.81.1"))
    >>> stage.environment()["TT_METAL_RUNTIME_ROOT"]
    'rehearsal/root'
    """

    folder: Path
    ttnn: Ttnn

    @classmethod
    def build(cls, folder: Path, machine: MockMachine, ttnn: Ttnn) -> Stage:
        """Write the description of a `machine` and the stand-in for the compiler of `ttnn` into a `folder`."""
        (folder / "cluster.yaml").write_text(machine.describe())
        write_runtime_root(folder / "root", ttnn.folder)
        return cls(folder, ttnn)

    def environment(self) -> dict[str, str]:
        """Return the environment of a program on this machine."""
        own = {name: value for name, value in os.environ.items() if name not in _UNSET}
        return own | {
            "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(self.folder / "cluster.yaml"),
            "TT_METAL_RUNTIME_ROOT": str(self.folder / "root"),
            "TT_METAL_CACHE": str(self.folder / "cache"),
            "TT_METAL_LOGS_PATH": str(self.folder),
            "TT_LOGGER_LEVEL": "fatal",
            "LOGURU_LEVEL": "ERROR",
            _MARK: str(self.folder),
        }

    def run(
        self,
        program: str,
        arguments: Sequence[str] = (),
        mode: str = "NORMAL",
        limit: float = 300.0,
        *,
        is_module: bool = False,
        changes: Mapping[str, Any] | None = None,
        shown: bool = False,
    ) -> ProgramRun:
        """Run a `program` with `arguments`, for at most `limit` seconds, and return its outcome.

        Args:
            program: a script, or a module.
            arguments: of the program.
            mode: NORMAL, with addresses, or NO_DISPATCH, with the buffers of all programs.
            limit: seconds after which the program is stopped.
            is_module: whether `program` names a module, as after python -m.
            changes: arguments of calls to replace, by the number of the call.
            shown: whether what it prints goes to standard error.
        """
        number = sum(1 for _ in self.folder.glob("run*"))
        folder = self.folder / f"run{number}"
        folder.mkdir()
        request = {"program": program, "arguments": list(arguments), "mode": mode, "is_module": is_module}
        (folder / "request.json").write_text(json.dumps({**request, "folder": str(folder), "changes": changes or {}}))
        command = [self.ttnn.python, recorder.__file__, str(folder / "request.json")]
        out: Any = sys.stderr.fileno() if shown else subprocess.DEVNULL
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment(), start_new_session=True
        )
        status: int | None = None
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(GRACE)
            child.kill()
        finally:
            self.end_processes()
            child.wait()
        return _read_run(folder, mode, status)

    def end_processes(self) -> None:
        """Kill all processes in this environment: a program may start others, and leave its group."""
        mark = f"{_MARK}={self.folder}\0".encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if mark in (entry / "environ").read_bytes() + b"\0":
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:  # it has ended, or is another user's
                continue


def _read_run(folder: Path, mode: str, status: int | None) -> ProgramRun:
    """Return the outcome of a run from its folder; a killed process left only its calls."""
    path = folder / "result.json"
    if path.exists():
        details = json.loads(path.read_text())
        captures = tuple([folder / capture["file"] for capture in details["captures"]])
        return ProgramRun(details["kind"], details, captures)
    calls = folder / f"{mode}.calls.jsonl"
    lines = calls.read_text().splitlines() if calls.exists() else []
    known = {"calls": [json.loads(line) for line in lines if line.endswith("}")]}
    if status is None:
        return ProgramRun("stopped", known, tuple(sorted(folder.glob(f"{mode}.*.json"))))
    return ProgramRun("killed", {**known, "signal": -status if status < 0 else status}, ())
