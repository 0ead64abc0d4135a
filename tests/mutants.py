# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: change the code in small ways, and see whether a test notices. `make mutants` runs it.

    python -m tests.mutants                                    a sample of every file
    python -m tests.mutants --all src/tilewright/copy/plan.py  every mutant of one file (hours)

The operators are Cosmic Ray's. A mutant exists only in the memory of one forked process, where it is imported instead
of the file: the checkout is never changed. A first run of the tests records which test reaches which line. A mutant
then meets the tests which reach its line, a few seconds of them, the quickest first, with few examples each; one that
survives those meets them all, with as many examples as `make test` takes.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import random
import re
import resource
import sys
import time
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import coverage
import hypothesis
import numpy  # noqa: F401  imported once here, for all the forked processes
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider
from hypothesis import strategies  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
# The tests which concern the files of a room; kernels for devices take long to compile, and say nothing about plans.
TESTS = {"layout": ["tests/layout"], "copy": ["tests/copy", "-k", "not opencl and not kernel"]}
SUBJECTS = [*sorted(SOURCES.glob("tilewright/layout/*.py")), SOURCES / "tilewright/copy/plan.py"]

# `is` for `==` is the same for small integers, and the other way round for None and True.
OPERATORS = [
    name
    for name in OperatorProvider()
    if not name.startswith("Variable") and not re.search("Comparison.*_(Is|IsNot)", name)
] + ["ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is"]
HEADS = ("mutants", "tried", "killed", "timeout", "survived", "score")
ON_IMPORT = ""  # what coverage calls no test in particular
TYPE_ALIAS = re.compile(r"[A-Z]\w+ = (Union\[)?(int|tuple|list|dict|Callable)\b")
QUICK = 4.0  # seconds of tests, as recorded, for the first look
PROFILES = {"few": 15, "many": 200}
for profile, examples in PROFILES.items():
    hypothesis.settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # a failure is enough: nobody reads it
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: Path
    operator: str
    occurrence: int
    line: int
    end: int

    @property
    def source(self) -> str:
        """Return the text of the file with the change."""
        text = mutate_code(self.path.read_text(), OperatorProvider()[self.operator](), self.occurrence)
        # The name that Cosmic Ray catches instead has to exist.
        return str(text).replace("CosmicRayTestingException", "ZeroDivisionError")

    @property
    def diff(self) -> str:
        """Return what is changed, without the lines around it."""
        lines = difflib.ndiff(self.path.read_text().splitlines(), self.source.splitlines())
        changed = [line for line in lines if line[0] in "+-"]
        return "\n".join([f"{self.path.relative_to(ROOT)}:{self.line} {self.operator}", *changed])


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of a file that a test could be expected to notice."""
    tree = get_ast(path.read_text())
    skipped = list(_of_no_consequence(ast.parse(path.read_text())))
    found = []
    for name in OPERATORS:
        operator = OperatorProvider()[name]()
        places = (place for node in ast_nodes(tree) for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            if not any(first <= start and end <= last for first, last in skipped):
                found.append(Mutant(path, name, occurrence, start[0], end[0]))
    return found


def _of_no_consequence(tree: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where types, texts of errors, reprs and the sizes of caches stand: changes there break nothing."""
    for node in ast.walk(tree):
        parts: list[Any] = []
        if isinstance(node, ast.FunctionDef):
            decorators = [each for each in node.decorator_list if re.search("cache|overload", ast.unparse(each))]
            parts = [node.returns, *decorators, node if node.name == "__repr__" else None]
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            parts = [node.annotation]
        elif isinstance(node, ast.Raise):
            parts = [node.exc]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts = [node]
        elif isinstance(node, ast.Assign) and TYPE_ALIAS.match(ast.unparse(node)):
            parts = [node.value]
        for part in filter(None, parts):
            yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)


def sample(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """Return a random choice of mutants, the same for the same seed, spread over lines and kinds of change."""
    shuffled = sorted(mutants, key=lambda each: (each.line, each.operator, each.occurrence))
    random.Random(seed).shuffle(shuffled)
    seen: dict[tuple[int, str], int] = {}
    ranked = []
    for mutant in shuffled:  # twelve ways to replace one + are hardly better than one
        kind = mutant.line, mutant.operator.split("_")[0]
        seen[kind] = seen.get(kind, -1) + 1
        ranked.append((seen[kind], len(ranked), mutant))
    return sorted((mutant for _, _, mutant in sorted(ranked, key=lambda each: each[:2])[:size]), key=lambda m: m.line)


class Instead(importlib.machinery.SourceFileLoader, importlib.abc.MetaPathFinder):
    """Imports a mutant where its file would be imported."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(".".join(mutant.path.relative_to(SOURCES).with_suffix("").parts), str(mutant.path))
        self.package = self.name.removesuffix(".__init__")
        self.mutant = mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.package:
            return None
        self.name = name
        inside = [str(self.mutant.path.parent)] if self.mutant.path.stem == "__init__" else None
        return importlib.util.spec_from_file_location(name, self.path, loader=self, submodule_search_locations=inside)

    def get_code(self, fullname: str) -> Any:
        return compile(self.mutant.source, self.path, "exec", dont_inherit=True)


class Chosen:
    """A pytest plugin that keeps the chosen tests, in their order."""

    def __init__(self, tests: list[str]) -> None:
        self.rank = {test: rank for rank, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.rank), key=lambda item: self.rank[item.nodeid])


class Recorder:
    """A pytest plugin that writes down, for every test, the time it takes and the lines it reaches."""

    def __init__(self, room: str, file: Path) -> None:
        self.room, self.file = room, file
        self.coverage = coverage.Coverage(data_file=None, source=[str(SOURCES / "tilewright" / room)])
        self.seconds: dict[str, float] = {}

    def pytest_sessionstart(self) -> None:
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self.coverage.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - start

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        reached: dict[str, dict[str, list[int]]] = {test: {} for test in [*self.seconds, ON_IMPORT]}
        for path in data.measured_files():
            for line, tests in data.contexts_by_lineno(path).items():
                for test in tests:
                    reached[test].setdefault(str(Path(path).relative_to(ROOT)), []).append(line)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps({"seconds": self.seconds, "reached": reached}))


def run(chosen: list[str], plugin: Any, profile: str, seconds: float, mutant: Mutant | None = None) -> str:
    """Return what became of a run of pytest in a process of its own: "killed", "survived" or "timeout"."""

    def inside() -> None:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        if mutant is not None:  # time of the processor: a busy machine is not a hang
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
            sys.meta_path.insert(0, Instead(mutant))
        quietly = "-x -q --tb=no --assert=plain -p no:cacheprovider -p no:xdist".split()
        arguments = [*quietly, f"--hypothesis-profile={profile}", *chosen]
        os._exit(int(pytest.main(arguments, plugins=[plugin])))

    process = multiprocessing.get_context("fork").Process(target=inside)
    process.start()
    process.join(seconds * 30)
    if process.exitcode is None or process.exitcode == -24:  # SIGXCPU
        process.kill()
        process.join()
        return "timeout"
    return "survived" if process.exitcode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else "killed"


class Tests:
    """The tests of a room: what they reach, and how long they take."""

    def __init__(self, room: str, fresh: bool) -> None:
        file = ROOT / "build/mutants" / f"{room}.json"
        unknown = fresh or not file.exists()
        if unknown and run(TESTS[room], Recorder(room, file), "few", 3600) != "survived":
            sys.exit(f"{TESTS[room][0]} fails without any mutant: mend that first")
        recorded = json.loads(file.read_text())
        self.seconds: dict[str, float] = recorded["seconds"]
        self.reached: dict[str, dict[str, list[int]]] = recorded["reached"]

    def concerning(self, mutant: Mutant) -> list[str]:
        """Return the tests which reach a mutant, quickest first; all of them, for what runs on import."""
        path = str(mutant.path.relative_to(ROOT))
        lines = range(mutant.line, mutant.end + 1)
        found = {test for test, files in self.reached.items() if any(line in lines for line in files.get(path, ()))}
        return sorted(self.seconds if ON_IMPORT in found else found, key=self.seconds.__getitem__)

    def judge(self, mutant: Mutant, quick: bool) -> str:
        """Return "killed", "timeout" or "survived"."""
        tests = self.concerning(mutant)
        times = list(accumulate(map(self.seconds.__getitem__, tests)))
        first = tests[: bisect(times, QUICK)]
        verdict = self._meet(mutant, first, "few", QUICK)
        if verdict == "survived" and not quick:
            verdict = self._meet(mutant, tests, "many", sum(times) * PROFILES["many"] / PROFILES["few"])
        return verdict

    def _meet(self, mutant: Mutant, tests: list[str], profile: str, seconds: float) -> str:
        if not tests:
            return "survived"
        files = list(dict.fromkeys(test.split("::")[0] for test in tests))
        return run(files, Chosen(tests), profile, 10 + 5 * seconds, mutant)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=SUBJECTS, help="the files to change (default: all)")
    parser.add_argument("--sample", type=int, default=12, metavar="N", help="mutants of each file (default: 12)")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--seed", type=int, default=0, help="another seed chooses another sample")
    parser.add_argument("--quick", action="store_true", help="leave out the second look, with many examples")
    parser.add_argument("--keep", action="store_true", help="trust what an earlier run recorded about the tests")
    chosen = parser.parse_args()
    os.chdir(ROOT)

    rooms: dict[str, Tests] = {}
    table: list[tuple[str, dict[str, int]]] = []
    survivors: list[Mutant] = []
    for path in map(Path.resolve, chosen.files):
        room = path.parent.name
        if room not in rooms:
            rooms[room] = Tests(room, fresh=not chosen.keep)
        mutants = mutants_of(path)
        counts = {"all": len(mutants), "killed": 0, "survived": 0, "timeout": 0}
        for mutant in sample(mutants, len(mutants) if chosen.all else chosen.sample, chosen.seed):
            verdict = rooms[room].judge(mutant, chosen.quick)
            counts[verdict] += 1
            if verdict == "survived":
                survivors.append(mutant)
                print(mutant.diff, flush=True)
        table.append((str(path.relative_to(SOURCES / "tilewright")), counts))
        print(row(*table[-1]), flush=True)

    total = {key: sum(counts[key] for _, counts in table) for key in ("all", "killed", "survived", "timeout")}
    print("", f"{'file':24}" + "".join(f"{head:>10}" for head in HEADS), sep="\n")
    for name, counts in [*table, ("together", total)]:
        print(row(name, counts))
    if survivors:
        print("\nsurvivors:", *(mutant.diff for mutant in survivors), sep="\n")


def row(name: str, counts: dict[str, int]) -> str:
    """Return a line of the table."""
    tried = counts["killed"] + counts["timeout"] + counts["survived"]
    score = f"{(tried - counts['survived']) / tried:.0%}" if tried else "-"
    cells = (counts["all"], tried, counts["killed"], counts["timeout"], counts["survived"], score)
    return f"{name:24}" + "".join(f"{cell:>10}" for cell in cells)


if __name__ == "__main__":
    main()
