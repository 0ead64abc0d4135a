# SPDX-License-Identifier: Apache-2.0
"""`TaskManifest`: a file that records the finished tasks of a tile plan; and manifests of parts, merged into one.

The first line of a manifest identifies the work: the compute, the sources and targets, their tilers and the range of
tasks. A line follows for each task that finishes, and is never changed. An incomplete last line is ignored, and its
task runs again, which is harmless. The checksum of the written bytes tells whether the result is still there: a script
that is started again may have made its target anew. The checksum of the read bytes tells whether the sources are the
same.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import pickle
import sys
import sysconfig
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._files import as_path, write_file
from ..errors import TransferError
from ..files import SourceFile

_FIRST_BYTES = b'{"plan": '
_RANGE = "the range of tasks"


class Checksums(NamedTuple):
    """The CRC-32 of the bytes that a task read, and of those it wrote.

    >>> Checksums(read=7, wrote=8).wrote
    8
    """

    read: int
    wrote: int


class TaskRecords:
    """Finished tasks and their checksums in 16 bytes each, by number; the last record of a number counts.

    >>> records = TaskRecords([2, 1, 2], [0, 3, 5], [0, 4, 6])
    >>> len(records), records.find(range(2, 9))
    (2, {2: Checksums(read=5, wrote=6)})
    """

    def __init__(self, numbers: ArrayLike = (), read: ArrayLike = (), wrote: ArrayLike = ()) -> None:
        all_numbers = np.asarray(numbers, np.int64)
        self.numbers, last = np.unique(all_numbers[::-1], return_index=True)
        latest = all_numbers.size - 1 - last
        self.read, self.wrote = np.asarray(read, np.uint32)[latest], np.asarray(wrote, np.uint32)[latest]

    def __len__(self) -> int:
        return self.numbers.size

    def find(self, numbers: range) -> dict[int, Checksums]:
        """Return the checksums of the recorded tasks in a range.

        >>> TaskRecords([1], [0], [0]).find(range(5, 9))
        {}
        """
        first, last = np.searchsorted(self.numbers, (numbers.start, numbers.stop))
        rows = zip(*[column[first:last].tolist() for column in (self.numbers, self.read, self.wrote)], strict=True)
        return {number: Checksums(read, wrote) for number, read, wrote in rows}

    def lines(self) -> bytes:
        """Return a line of a manifest for each task.

        >>> TaskRecords([1], [2], [3]).lines()
        b'{"done": 1, "read": 2, "wrote": 3}\\n'
        """
        columns = [column.tolist() for column in (self.numbers, self.read, self.wrote)]
        return b"".join([_record_line(*row) for row in zip(*columns, strict=True)])


def _record_line(number: int, read: int, wrote: int) -> bytes:
    return b'{"done": %d, "read": %d, "wrote": %d}\n' % (number, read, wrote)


class TaskManifest:
    """The manifest of a run: the tasks that earlier runs have finished, and a line for each that finishes now.

    Args:
        path: the file, which is made if it does not exist.
        plan: plain data that identifies the work; a manifest of other work is rejected.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TaskManifest(Path(folder, "run.jsonl"), {"tiles": 4}) as manifest:
    ...         manifest.add([(2, Checksums(1, 0xCBF43926))])
    ...     with TaskManifest(Path(folder, "run.jsonl"), {"tiles": 4}) as again:
    ...         print(again.done.find(range(4)))
    {2: Checksums(read=1, wrote=3421780262)}
    """

    def __init__(self, path: str | Path, plan: dict[str, Any]) -> None:
        self.path = as_path(path)
        plan = _as_read_back(plan)
        text = _read_text(self.path) if self.path.exists() else b""
        self.done = TaskRecords()
        if text:
            recorded, self.done = _parse_manifest(self.path, text)
            _raise_if_changed(self.path, recorded, plan)
        else:
            text = json.dumps({"plan": plan}).encode() + b"\n"
        # an incomplete last line is removed, so that the next line starts on its own
        write_file(self.path, text)
        self._file = self.path.open("ab", buffering=0)

    def add(self, finished: Iterable[tuple[int, Checksums]]) -> None:
        """Record tasks as done, by number, with their checksums.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, TaskManifest(Path(folder, "m"), {}) as manifest:
        ...     manifest.add([(7, Checksums(0, 0))])
        ...     manifest.path.read_bytes().splitlines()[-1]
        b'{"done": 7, "read": 0, "wrote": 0}'
        """
        lines = b"".join([_record_line(number, *checksums) for number, checksums in finished])
        while lines:  # a write may be partial
            lines = lines[self._file.write(lines) or 0 :]

    def close(self) -> None:
        """Flush the file to disk and close it."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> TaskManifest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class MergedManifests:
    """The content of merged manifests of parts: tasks done, ranges missing, and ranges repeated by several parts.

    >>> MergedManifests(done=16, missing=(), repeated=())
    MergedManifests(done=16, missing=(), repeated=())
    >>> print(MergedManifests(13, (range(4, 5), range(7, 9)), ()))
    13 of 16 tasks are done; missing: 4, 7 to 8
    """

    done: int
    missing: tuple[range, ...]
    repeated: tuple[range, ...]

    def __str__(self) -> str:
        total = self.done + sum(map(len, self.missing))
        text = f"{self.done} of {total} tasks are done"
        if self.missing:
            text += f"; missing: {_describe_ranges(self.missing)}"
        if self.repeated:
            text += f"; done by more than one part: {_describe_ranges(self.repeated)}"
        return text


def _describe_ranges(ranges: tuple[range, ...], most: int = 20) -> str:
    texts = [f"{part.start} to {part.stop - 1}" if len(part) > 1 else str(part.start) for part in ranges[:most]]
    return ", ".join(texts) + (f" and {len(ranges) - most} more ranges" if len(ranges) > most else "")


def merge_manifests(
    paths: Sequence[str | Path], target: str | Path, plan: dict[str, Any], tasks: range
) -> MergedManifests:
    """Write one manifest with the tasks of several, and return its content.

    Args:
        paths: the manifests of the parts; they must be of one compute and of this plan.
        target: the manifest to write; if it exists, it is merged as well.
        plan: plain data that identifies the plan, without compute and range of tasks.
        tasks: the range of tasks of the plan.
    """
    plan = _as_read_back(plan)
    files = [as_path(path) for path in paths]
    if not files:
        raise TransferError("expected the manifests of parts, got none; name at least one file")
    if as_path(target).exists() and not any(path.samefile(target) for path in files if path.exists()):
        files.append(Path(target))
    compute: Any = None
    parts: list[TaskRecords] = []
    for path in files:
        text = _read_text(path)
        if not text:
            raise TransferError(f"{path} was cut off in its first line, so its plan is unknown; run its part again")
        recorded, done = _parse_manifest(path, text)
        if not parts:
            compute = recorded.get("compute")
            _raise_if_unidentified(path, compute)
        span = _task_range(path, recorded, tasks)
        _raise_if_changed(path, recorded, {**plan, "compute": compute, _RANGE: recorded.get(_RANGE)})
        if len(done) and not (span.start <= done.numbers[0] and done.numbers[-1] < span.stop):
            raise TransferError(f"{path} records tasks outside its part, {span.start} to {span.stop - 1}; remove it")
        parts.append(done)
    _raise_if_sources_changed(files, parts)
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", "read", "wrote")]
    merged = TaskRecords(*columns)
    whole = {"compute": compute, **plan, _RANGE: [tasks.start, tasks.stop]}
    write_file(Path(target), json.dumps({"plan": whole}).encode() + b"\n" + merged.lines())
    numbers, counts = np.unique(columns[0], return_counts=True)
    return MergedManifests(len(merged), _missing_ranges(merged, tasks), _as_ranges(numbers[counts > 1]))


def _raise_if_unidentified(path: Path, compute: object) -> None:
    if not isinstance(compute, dict) or not ("code" in compute or "tag" in compute):
        raise TransferError(
            f"{path} does not say by which code it was made, so it cannot be merged; name the compute with tag='...'"
            " when the parts run"
        )


def _task_range(path: Path, recorded: dict[str, Any], tasks: range) -> range:
    """Return the range of tasks of a part; raise if it is not within the range of the plan."""
    span = recorded.get(_RANGE)
    if isinstance(span, list) and len(span) == 2 and all(isinstance(end, int) for end in span):
        part = range(span[0], span[1])
        if tasks.start <= part.start <= part.stop <= tasks.stop:
            return part
    raise TransferError(
        f"{path} belongs to another plan: it has the range of tasks {span}, this plan {[tasks.start, tasks.stop]}"
    )


def _raise_if_sources_changed(files: list[Path], parts: list[TaskRecords]) -> None:
    """Raise if two parts have done a task, and did not read the same."""
    for k, part in enumerate(parts):
        for earlier, path in zip(parts[:k], files[:k], strict=True):
            common, here, there = np.intersect1d(part.numbers, earlier.numbers, True, return_indices=True)
            differ = common[part.read[here] != earlier.read[there]]
            if differ.size:
                raise TransferError(
                    f"task {differ[0]} read other bytes in {files[k]} than in {path}: a source has changed between the"
                    " parts; remove the older manifest and run its part again"
                )


def _missing_ranges(records: TaskRecords, tasks: range) -> tuple[range, ...]:
    """Return the ranges of tasks between those that are recorded."""
    ends = [tasks.start - 1, *records.numbers.tolist(), tasks.stop]
    return tuple([range(a + 1, b) for a, b in pairwise(ends) if b > a + 1])


def _as_ranges(numbers: np.ndarray[Any, Any]) -> tuple[range, ...]:
    """Return sorted numbers as ranges of neighbours."""
    if not numbers.size:
        return ()
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return tuple([range(int(run[0]), int(run[-1]) + 1) for run in runs])


def _as_read_back(plan: dict[str, Any]) -> Any:
    return json.loads(json.dumps(plan))


def _read_text(path: Path) -> bytes:
    """Return the complete lines of a manifest; nothing if even its first line was cut off."""
    file = SourceFile(path)  # rejects a pipe or a folder
    text = file.read(0, file.size)
    complete = text[: text.rfind(b"\n") + 1]
    if not complete and text[: len(_FIRST_BYTES)] != _FIRST_BYTES[: len(text)]:
        raise _not_a_manifest(path)
    return complete


def _parse_manifest(path: Path, text: bytes) -> tuple[dict[str, Any], TaskRecords]:
    """Return the content of the complete lines of a manifest: the identity of its plan, and its records."""
    columns = array("q"), array("L"), array("L")
    lines = io.BytesIO(text)
    try:
        recorded = json.loads(lines.readline())["plan"]
        for line in lines:
            record = json.loads(line)
            for column, key in zip(columns, ("done", "read", "wrote"), strict=True):
                column.append(int(record[key]))
        if not isinstance(recorded, dict) or any(max(column, default=0) >= 1 << 32 for column in columns[1:]):
            raise _not_a_manifest(path)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        raise _not_a_manifest(path) from None
    return recorded, TaskRecords(*columns)


def _not_a_manifest(path: Path) -> TransferError:
    return TransferError(f"{path} is not a tile plan manifest, or is from another version; give another path")


def _raise_if_changed(path: Path, recorded: dict[str, Any], plan: dict[str, Any]) -> None:
    """Raise if a manifest belongs to another plan; the message states the difference."""
    changed = [key for key in {**plan, **recorded} if recorded.get(key) != plan.get(key)]
    if changed:
        changes = [_describe_change(key, recorded.get(key), plan.get(key)) for key in changed]
        raise TransferError(
            f"{path} belongs to another plan: {'; '.join(changes)}. Remove it to start over, or give another path"
        )


def _describe_change(name: str, recorded: object, current: object) -> str:
    """Return a text with the entries of a value that differ."""
    if isinstance(recorded, dict) and isinstance(current, dict):
        keys = [key for key in {**recorded, **current} if recorded.get(key) != current.get(key)]
        recorded, current = ({key: value.get(key) for key in keys} for value in (recorded, current))
    return f"{name} was {recorded} and is now {current}"


# Fingerprints of computes: whether two functions do the same.

_LIBRARIES = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("purelib", "platlib")})
_IGNORED_MEMBERS = (
    "__dict__",
    "__weakref__",
    "__module__",
    "__doc__",
    "__annotations__",
    "__firstlineno__",
    "__slotnames__",  # pickle leaves it in a class when it first sends an instance
    "__static_attributes__",  # in no fixed order
)
_IGNORED_TYPES = ("member_descriptor", "getset_descriptor", "_abc_data")


class UnidentifiedError(Exception):
    """A compute, or an object it uses, cannot be identified; the message states which and why."""


def name_compute(compute: object) -> str:
    """Return the qualified name of a compute, or of its type.

    >>> name_compute(np.negative), name_compute(functools.partial(np.clip, a_min=0))
    ('numpy.negative', 'functools.partial(numpy.clip)')
    """
    if isinstance(compute, functools.partial):
        return f"functools.partial({name_compute(compute.func)})"
    if isinstance(compute, np.ufunc):
        return f"numpy.{compute.__name__}"
    named = compute if hasattr(compute, "__qualname__") else type(compute)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


def fingerprint_compute(compute: Callable[..., Any]) -> str:
    """Return a hash that is equal only for computes that do the same; raise UnidentifiedError if there is none.

    >>> def make_scale(factor):
    ...     def scale(x, out):
    ...         out[...] = factor * x
    ...
    ...     return scale
    >>> fingerprint_compute(make_scale(2)) == fingerprint_compute(make_scale(2))
    True
    >>> fingerprint_compute(make_scale(2)) == fingerprint_compute(make_scale(3))
    False
    """
    function = compute
    while isinstance(function, functools.partial):
        function = function.func
    if getattr(function, "__name__", "") == "<lambda>":
        raise UnidentifiedError("the compute is a lambda, which has no name")
    return _hash_by_value(compute)


def _hash_by_value(value: object) -> str:
    content = io.BytesIO()
    try:
        _PicklerByValue(content).dump(value)
    except UnidentifiedError:
        raise
    except Exception as problem:  # any object may raise, and nesting may be too deep
        raise UnidentifiedError(f"the compute uses what has no known value: {problem}") from None
    return hashlib.sha256(content.getvalue()).hexdigest()


class _PicklerByValue(pickle.Pickler):
    """Writes functions and classes with their code and all that they use, the same in every process.

    Pickle itself writes their names alone, and sets in no fixed order.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=4)
        self.fast = True  # without references to equal objects, which differ from process to process
        self._seen: dict[int, int] = {}

    def persistent_id(self, value: object) -> object:
        """Return the parts of an object that are written instead of it, None for objects that pickle writes itself."""
        if isinstance(value, (set, frozenset)):
            return type(value).__name__, sorted(map(_hash_by_value, value))
        if isinstance(value, ModuleType):
            return _version_of(value)
        if isinstance(value, CodeType):
            signature = value.co_names, value.co_varnames, value.co_freevars, value.co_argcount, value.co_flags
            return value.co_code, signature, value.co_consts
        if isinstance(value, np.ufunc) and value.__name__ not in vars(np):  # numpy.frompyfunc, numba.vectorize
            raise UnidentifiedError(f"the compute uses the ufunc {value.__name__}, which is not one of NumPy's")
        if not isinstance(value, (FunctionType, type)):
            return getattr(value, "py_func", None)  # of a function that numba compiled
        if (library := _find_library(value)) is not None:
            return name_compute(value), _version_of(library)
        if id(value) in self._seen:
            return "seen", self._seen[id(value)]
        self._seen[id(value)] = len(self._seen)
        return _function_parts(value) if isinstance(value, FunctionType) else _class_parts(value)


def _function_parts(function: FunctionType) -> tuple[object, ...]:
    """Return all that a function depends on: its code, defaults, enclosed values, globals and attributes."""
    names = sorted(set(_code_names(function.__code__)))
    used = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for module in [value for value in used.values() if isinstance(value, ModuleType)]:
        if not _is_library(module.__name__):  # helpers.FACTOR is two names in byte code
            used |= {f"{module.__name__}.{name}": vars(module)[name] for name in names if name in vars(module)}
    enclosed = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            enclosed.append(cell.cell_contents)
    attributes = {name: value for name, value in vars(function).items() if name != "__wrapped__"}
    defaults = function.__defaults__, function.__kwdefaults__
    return name_compute(function), function.__code__, defaults, enclosed, used, attributes


def _class_parts(owner: type) -> tuple[object, ...]:
    """Return all that a class depends on: its bases, and its members by name."""
    members = {
        name: getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        for name, member in vars(owner).items()
        if name not in _IGNORED_MEMBERS and type(member).__name__ not in _IGNORED_TYPES
    }
    return name_compute(owner), owner.__bases__, members


def _code_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_names(constant)


def _is_library(module: str | None) -> bool:
    """Return whether a module belongs to Python or to an installed package, so that its version identifies it."""
    loaded = sys.modules.get(module or "")
    if module is None or loaded is None:
        return False
    path = getattr(loaded, "__file__", None)
    in_python = module.partition(".")[0] in sys.stdlib_module_names
    return in_python or (path is not None and str(path).startswith(_LIBRARIES))


def _find_library(value: object) -> ModuleType | None:
    """Return the library module that a function or class can be imported from, None if there is none."""
    name, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(name, str) or not isinstance(qualified, str) or not _is_library(name):
        return None
    member: Any = sys.modules[name]
    for part in qualified.split("."):
        member = getattr(member, part, None)
    return sys.modules[name] if member is value else None


def _version_of(module: ModuleType) -> tuple[str, str]:
    top = sys.modules.get(module.__name__.partition(".")[0])
    return module.__name__, str(getattr(top, "__version__", ""))
