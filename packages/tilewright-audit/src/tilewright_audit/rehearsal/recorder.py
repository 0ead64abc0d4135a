# SPDX-License-Identifier: Apache-2.0
"""Runs a program with the ttnn of this Python on a mock machine, and records its calls: the child of a rehearsal.

It is a program of its own, for a Python that may have nothing but ttnn, so it imports only the standard library:

    python recorder.py request.json

Captures of graphs go to the folder of the request, and the outcome of the program to `result.json` there.
"""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.util
import json
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any  # objects of ttnn, whose classes are not known here

_MAX_STACK = 8  # places of the program, from the call outwards
_MAX_TEXT = 20_000  # characters of an error
_DIE_WITH_PARENT = 1  # an option of prctl
OPENING = ("open_device", "open_mesh_device", "CreateDevice", "CreateDevices")
CLOSING = ("close_device", "close_mesh_device", "CloseDevice", "CloseDevices")
# These end the process on a mock: what is in a trace runs once, when it is recorded.
ENDING = ("begin_trace_capture", "end_trace_capture", "execute_trace", "release_trace")
EVENTS = ("record_event", "wait_for_event", "event_synchronize")
SUB_DEVICES = ("load_sub_device_manager", "clear_loaded_sub_device_manager", "set_sub_device_stall_group")
READING = ("to_torch", "to_numpy", "to_list", "tolist", "item", "cpu", "from_device")
# Functions that programs check values with, by module: values are zeros here, so every check passes.
CHECKS = {
    "torch": ("equal", "allclose"),
    "torch.testing": ("assert_close",),
    **dict.fromkeys(
        ("tests.ttnn.utils_for_testing", "models.utility_functions", "models.common.utility_functions"),
        ("assert_", "comp_", "check_with_", "is_close"),
    ),
}
NOT_CHECKED = "values are not checked in a rehearsal"


class Recorder:
    """Records the calls of ttnn in a process: where they are in the program, their errors, and captured graphs.

    `folder` is where captures go, `mode` NORMAL or NO_DISPATCH, `changes` are the arguments to replace, by the number
    of the call or the name of its stack, and with `logs` calls are written down at once: the process may end in one.

    >>> import tempfile
    >>> recorder = Recorder(Path(tempfile.gettempdir()), "NORMAL")
    >>> recorder.calls
    []
    """

    def __init__(self, folder: Path, mode: str, changes: dict[str, Any] | None = None, logs: bool = True) -> None:
        self.folder, self.mode, self.changes, self.logs = folder, mode, changes or {}, logs
        self.calls: list[dict[str, Any]] = []  # name, and the places of the program
        self.errors: list[dict[str, Any]] = []
        self.captures: list[dict[str, Any]] = []
        self.released: dict[int, list[int]] = {}  # calls whose results are freed after a call
        self.results: dict[int, Any] = {}  # that are freed later
        self.left_out: dict[str, int] = {}  # calls that were not made, and how often
        self.reads: list[dict[str, Any]] = []
        self.open = self.unchecked = self.saved = 0
        self.process, self.state = os.getpid(), threading.local()
        self.ttnn: Any = None
        self.inside = ""

    @property
    def is_here(self) -> bool:
        """Whether this is the process that is recorded, not one that it forked.

        >>> Recorder(Path(), "NORMAL").is_here
        True
        """
        return os.getpid() == self.process

    def forget(self) -> None:
        """Forget the calls so far, as between tests; a device that is open stays so.

        >>> Recorder(Path(), "NORMAL").forget()
        """
        self.calls, self.errors, self.captures, self.reads, self.unchecked = [], [], [], [], 0

    def watch_imports(self) -> None:
        """Start recording when ttnn is imported, and let every check of values pass."""
        actions: dict[str, Callable[[ModuleType], None]] = dict.fromkeys(CHECKS, self._pass_checks)
        sys.meta_path.insert(0, _ImportWatch({**actions, "ttnn": self.attach}))

    def attach(self, ttnn: Any) -> None:
        """Record the calls of the module `ttnn`.

        >>> Recorder(Path(), "NORMAL").attach  # doctest: +ELLIPSIS
        <bound method Recorder.attach of ...>
        """
        self.ttnn, self.inside = ttnn, os.path.dirname(ttnn.__file__) + os.sep
        for operation in (ttnn.decorators.FastOperation, ttnn.decorators.Operation):
            operation.__call__ = self._recorded(operation.__call__, None)
        for name in ("deallocate", "to", *READING):
            if hasattr(ttnn.Tensor, name):
                setattr(ttnn.Tensor, name, self._recorded(getattr(ttnn.Tensor, name), f"ttnn.Tensor.{name}"))
        modules = [ttnn, ttnn.device, ttnn.distributed]
        for names, wrap in ((OPENING, self._opening), (CLOSING, self._closing), ((*ENDING, *EVENTS), self._nothing)):
            for name in names:
                wrapped: dict[int, Any] = {}  # a function that two modules have is wrapped once
                for module in modules:
                    function = vars(module).get(name)
                    if function is not None:
                        setattr(module, name, wrapped.setdefault(id(function), wrap(function, name)))
        for name in SUB_DEVICES:
            if hasattr(ttnn.MeshDevice, name):
                setattr(ttnn.MeshDevice, name, self._nothing(None, name))

    def _recorded(self, function: Any, name: str | None) -> Any:
        """Return a function that records the calls of an operation, or of a method with a name."""

        def call(operation: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self.state, "busy", False) or not self.is_here:
                return function(operation, *args, **kwargs)
            called = name or str(operation.python_fully_qualified_name)
            number = len(self.calls)
            self._log_call(called, (operation, *args, *kwargs.values()))
            if called.rpartition(".")[2] in READING:
                self.reads.append(self.calls[number])
            args = self._change(number, args, kwargs)
            graph = self.ttnn._ttnn.graph
            marked = graph.is_graph_capture_active()
            if marked:
                graph.unwind_open_functions("a call before did not complete")
                graph.track_function_start(f"{called} @{number}")
            self.state.busy = True
            try:
                result = function(operation, *args, **kwargs)
                self._release(number, result)
                return result
            except Exception as error:
                values: dict[str, Any] = {"args": [_describe(value) for value in args]}
                values["kwargs"] = {key: _describe(value) for key, value in kwargs.items()}
                self.errors.append({"call": number, **_describe_error(error), **values})
                raise
            finally:
                self.state.busy = False
                if marked and graph.is_graph_capture_active():
                    graph.track_function_end()

        return call

    def _log_call(self, name: str, values: tuple[Any, ...]) -> None:
        freed = any(getattr(value, "is_allocated", lambda: True)() is False for value in values)
        self.calls.append({"name": name, "stack": self._find_places(), "freed": freed})
        if self.logs:
            with open(self.folder / f"{self.mode}.calls.jsonl", "a") as log:
                log.write(json.dumps(self.calls[-1]) + "\n")

    def _find_places(self) -> list[tuple[str, int]]:
        """Return the files and lines of the program from which ttnn was called, the innermost first."""
        places: list[tuple[str, int]] = []
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and len(places) < _MAX_STACK:
            file = frame.f_code.co_filename
            if not file.startswith(self.inside) and is_of_program(file):
                places.append((file, frame.f_lineno))
            frame = frame.f_back
        return places

    def _change(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Replace arguments of a call by name, or from #1 on by place, as the request has it."""
        changes = self.changes.get(str(number)) or self.changes.get(name_stack(self.calls[number]["stack"]), {})
        for name, value in changes.items():
            if name.startswith("#"):
                place = int(name[1:]) - 1
                args = (*args[:place], self._make_memory(value), *args[place + 1 :])
            elif name == "release after":
                self.released.setdefault(value, []).append(number)
            elif value is None:
                kwargs.pop(name, None)
            elif "fields" in value:
                for field, one in value["fields"].items():
                    setattr(kwargs[name], field, one)
            else:
                kwargs[name] = self._make_memory(value)
        return args

    def _release(self, number: int, result: Any) -> None:
        """Free the results that the request frees after a call."""
        if any(number in numbers for numbers in self.released.values()):
            self.results[number] = result
        for earlier in self.released.get(number, ()):
            self.ttnn.deallocate(self.results.pop(earlier))

    def _make_memory(self, value: dict[str, Any]) -> Any:
        ttnn = self.ttnn
        kind, buffer = getattr(ttnn.TensorMemoryLayout, value["layout"]), getattr(ttnn.BufferType, value["buffer"])
        if "shard" not in value:
            return ttnn.MemoryConfig(kind, buffer)
        core = ttnn.CoreCoord
        boxes = [ttnn.CoreRange(core(a, b), core(c, d)) for a, b, c, d in value["grid"]]
        orientation = getattr(ttnn.ShardOrientation, value["orientation"])
        return ttnn.MemoryConfig(kind, buffer, ttnn.ShardSpec(ttnn.CoreRangeSet(boxes), value["shard"], orientation))

    def _opening(self, function: Any, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            device = function(*args, **kwargs)
            if self.is_here:
                self.open += 1
                if self.open == 1:
                    self.begin()
            return device

        return call

    def _closing(self, function: Any, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_here and self.open:
                self.open -= 1
                if not self.open:
                    self.save()
            return function(*args, **kwargs)

        return call

    def _nothing(self, _: Any, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> int:
            self.left_out[name] = self.left_out.get(name, 0) + 1
            return 0

        return call

    def _pass_checks(self, module: Any) -> None:
        starts = CHECKS[module.__name__]

        def wrap(function: Any) -> Any:
            def check(*args: Any, **kwargs: Any) -> Any:
                if not self.reads:
                    return function(*args, **kwargs)
                self.unchecked += 1
                return (True, NOT_CHECKED) if module.__name__ != "torch" else True

            return check

        for name, value in list(vars(module).items()):
            if name.startswith(starts) and callable(value):
                setattr(module, name, wrap(value))

    def begin(self) -> None:
        """Begin a capture."""
        graph = self.ttnn._ttnn.graph
        graph.begin_graph_capture(getattr(graph.RunMode, self.mode))

    def save(self) -> None:
        """End the capture, if there is one, and write it to a file.

        >>> Recorder(Path(), "NORMAL").save()
        """
        if self.ttnn is None or not self.ttnn._ttnn.graph.is_graph_capture_active():
            return
        graph = self.ttnn._ttnn.graph
        self.saved += 1
        path = self.folder / f"{self.mode}.{self.saved}.json"
        nodes = json.loads(graph.end_graph_capture_to_file(str(path)))
        usage = graph.extract_resource_usage_per_core(nodes)
        names = ("peak_cb", "peak_dataflow_buffer", "peak_l1", "peak_scratchpad", "peak_total")
        self.captures.append({"file": path.name, "peaks": {name: getattr(usage, name) for name in names}})

    def finish(self, outcome: dict[str, Any]) -> None:
        """Write the `outcome` of the program with its calls, errors and captures, once.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Recorder(Path(folder), "NORMAL").finish({"kind": "ended"})
        ...     json.loads(Path(folder, "result.json").read_text())["kind"]
        'ended'
        """
        path = self.folder / "result.json"
        if not self.is_here or path.exists():
            return
        try:
            self.save()
        except Exception as error:  # of ttnn; the outcome of the program is worth more
            outcome["capture_error"] = str(error)
        names = ("calls", "errors", "captures", "left_out", "unchecked")
        result = {**outcome, **{name: getattr(self, name) for name in names}, "reads": len(self.reads)}
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(result))
        draft.replace(path)


def is_of_program(file: str) -> bool:
    """Return whether a `file` belongs to the program: not to this module, to Python, or to an installed package.

    >>> is_of_program("model.py"), is_of_program("<frozen runpy>"), is_of_program(__file__)
    (True, False, False)
    """
    inside = (__file__, "<", os.path.dirname(os.__file__) + os.sep)
    return not file.startswith(inside) and "site-packages" not in file and "dist-packages" not in file


def name_stack(stack: Sequence[Sequence[Any]]) -> str:
    """Return the name of the `stack` of files and lines of a call: calls of one line, as in a loop, share it.

    >>> name_stack([("model.py", 7), ("main.py", 3)])
    'model.py:7 main.py:3'
    """
    return " ".join([f"{file}:{line}" for file, line in stack])


class _ImportWatch(importlib.abc.MetaPathFinder):
    """Runs an action after any import of a module; others may only ask whether it is there."""

    def __init__(self, actions: dict[str, Callable[[ModuleType], None]]) -> None:
        self.actions = actions
        self.asked: set[str] = set()  # of the other finders

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname not in self.actions or fullname in self.asked:
            return None
        self.asked.add(fullname)
        spec = importlib.util.find_spec(fullname)
        self.asked.discard(fullname)
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return None
        execute = loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            if fullname in self.actions:
                self.actions.pop(fullname)(module)

        loader.exec_module = execute_and_act
        return spec


def _describe(value: Any) -> Any:
    """Return an argument of a call as plain data: a tensor by its spec, a config by its fields."""
    kind = type(value).__name__
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "memory_config") and hasattr(value, "layout") and hasattr(value, "dtype"):
        try:
            memory = str(value.memory_config())
        except Exception:  # of ttnn: a tensor on the host has none
            memory = ""
        return {"tensor": [str(value.shape), str(value.dtype), str(value.layout), memory]}
    if kind.endswith("Config") and "MemoryConfig" not in kind:
        fields = {name: getattr(value, name, None) for name in dir(value) if not name.startswith("_")}
        plain = {name: one for name, one in fields.items() if isinstance(one, (bool, int)) or one is None}
        return {"config": kind, "fields": plain}
    if isinstance(value, (list, tuple)):
        return [_describe(item) for item in value[:8]]
    return str(value)[:_MAX_TEXT]


def _describe_error(error: BaseException) -> dict[str, Any]:
    return {"type": type(error).__name__, "text": _text_of(error)}


def _text_of(error: BaseException) -> str:
    return str(error).partition("\nbacktrace:")[0][:_MAX_TEXT]


def list_texts(error: BaseException) -> list[str]:
    """Return the texts of an `error` and of the errors that it was raised from.

    >>> list_texts(ValueError("no"))
    ['no']
    """
    texts: list[str] = []
    known: BaseException | None = error
    while known is not None and len(texts) < _MAX_STACK:
        texts.append(_text_of(known))
        known = known.__cause__ or known.__context__
    return texts


def run_program(request: dict[str, Any], recorder: Recorder) -> dict[str, Any]:
    """Run the program of a `request` as Python would, and return its outcome."""
    program, own = request["program"], os.path.dirname(os.path.abspath(__file__))
    folder = os.getcwd() if request["is_module"] else str(Path(program).resolve().parent)
    sys.argv, sys.path[:] = [program, *request["arguments"]], [folder, *[entry for entry in sys.path if entry != own]]
    try:
        if request["is_module"]:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
    except SystemExit as problem:
        code = problem.code
        status = code if isinstance(code, int) else 0 if code is None else 1
        return {"kind": "exited", "status": status, "text": code if isinstance(code, str) else ""}
    except BaseException as problem:  # whatever the program raises ends the rehearsal, and is reported
        places = [
            (frame.filename, frame.lineno)
            for frame in reversed(traceback.extract_tb(problem.__traceback__))
            if is_of_program(frame.filename) and not frame.filename.startswith(recorder.inside or "\0")
        ]
        if isinstance(problem, SyntaxError) and problem.filename and problem.lineno:
            places.insert(0, (problem.filename, problem.lineno))
        causes = list_texts(problem)
        return {"kind": "raised", **_describe_error(problem), "causes": causes, "stack": places[:_MAX_STACK]}
    return {"kind": "ended"}


def main(path: str) -> None:
    """Run the program that the request at `path` describes."""
    request = json.loads(Path(path).read_text())
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    recorder = Recorder(Path(request["folder"]), request["mode"], request["changes"])
    leave = os._exit

    def leave_early(status: int) -> None:
        recorder.finish({"kind": "exited", "status": status, "text": "os._exit"})
        leave(status)

    def stop(*_: object) -> None:
        recorder.finish({"kind": "stopped"})
        leave(1)

    os._exit = leave_early  # type: ignore[assignment]  # it does not return
    signal.signal(signal.SIGTERM, stop)
    recorder.watch_imports()
    recorder.finish(run_program(request, recorder))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    leave(0)  # a device that is still open may end the process otherwise


if __name__ == "__main__":
    main(sys.argv[1])
