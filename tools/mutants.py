# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: change the code in small ways, and see whether a test notices. `make mutants` runs it.

    python -m tools.mutants                                     a sample of every file
    python -m tools.mutants --all src/tilewright/copying/plan.py   every mutant of one file

The operators are Cosmic Ray's, applied inside functions. The checkout is never changed: a mutant exists only in the
memory of one forked process, in which the function that it changes is replaced. That process has imported everything
and collected the tests already, so a mutant costs little more than the tests that it meets: those that reach its
line, quickest first, a few seconds of them, with few examples each. One that survives meets all that reach its line,
with as many examples as `make test` takes.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import functools
import gc
import inspect
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import time
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import hypothesis
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider

ROOT = Path(__file__).resolve().parents[1] / "packages/tilewright"
PACKAGE = ROOT / "src/tilewright"
SUBJECTS = [*sorted(PACKAGE.glob("layout/*.py")), PACKAGE / "copying/plan.py"]
TESTS = {"layout": "tests/layout", "copying": "tests/copying"}  # those which concern the files of a package
# `is` for `==` is the same for small integers, and the other way round for None and True.
OPERATORS = [
    name
    for name in OperatorProvider()
    if not name.startswith(("Variable", "RemoveDecorator"))
    and not re.search("Comparison.*_(Is|IsNot)", re.sub("_(Is_IsNot|IsNot_Is)$", "", name))
]
QUICK = 3.0  # seconds of tests, as recorded, for the first look
PROFILES = {"few": 15, "many": 200}
VERDICTS = ("killed", "survived", "timeout")


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
        # The exception that Cosmic Ray expects instead of another has to exist.
        return str(text).replace("CosmicRayTestingException", "ZeroDivisionError")

    @property
    def diff(self) -> str:
        """Return what is changed, without the lines around it."""
        lines = difflib.ndiff(self.path.read_text().splitlines(), self.source.splitlines())
        changed = [line for line in lines if line[0] in "+-"]
        return "\n".join([f"{self.path.relative_to(ROOT)}:{self.line} {self.operator}", *changed])


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of a file that a test could be expected to notice."""
    text = path.read_text()
    nodes = list(ast_nodes(get_ast(text)))
    tree = ast.parse(text)
    bodies = [(_span(node.body[0])[0], _span(node)[1]) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    skipped = [_span(node) for node in _of_no_consequence(tree)]

    def concerns(start: tuple[int, int], end: tuple[int, int]) -> bool:
        def with_logical_shape(spans: list[Any]) -> bool:
            return any(first <= start and end <= last for first, last in spans)

        return with_logical_shape(bodies) and not with_logical_shape(skipped)

    found = []
    for name in OPERATORS:
        operator = OperatorProvider()[name]()
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            if concerns(start, end):
                found.append(Mutant(path, name, occurrence, start[0], end[0]))
    return found


def _of_no_consequence(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield types, texts of errors, reprs and checks of our own invariants: changes there break nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from [node] if node.name == "__repr__" else filter(None, [node.returns])
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            yield from filter(None, [node.annotation])
        elif isinstance(node, ast.Raise):
            yield node
        elif isinstance(node, ast.keyword) and node.arg == "strict":
            yield node.value


def _span(node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def sample(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """Return a random choice of mutants, the same for the same seed, spread over lines and kinds of change."""
    shuffled = sorted(mutants, key=lambda each: (each.line, each.operator, each.occurrence))
    random.Random(seed).shuffle(shuffled)
    seen: Counter[Any] = Counter()
    turns = []
    for mutant in shuffled:  # twelve ways to replace one + are hardly better than one
        kind = mutant.line, mutant.operator.split("_")[0]
        turns.append(seen[kind])
        seen[kind] += 1
    chosen = sorted(range(len(shuffled)), key=turns.__getitem__)[:size]
    return sorted((shuffled[k] for k in chosen), key=lambda mutant: mutant.line)


def become(mutant: Mutant) -> None:
    """Replace the function that a mutant changes, and forget what the right one has computed."""
    right, wrong = (compile(text, "", "exec", dont_inherit=True) for text in (mutant.path.read_text(), mutant.source))
    changed = dict(_changed(right, wrong))
    replaced = 0
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__ in changed:
            each.__code__ = changed[each.__code__]
            replaced += 1
        elif isinstance(each, functools._lru_cache_wrapper):
            each.cache_clear()
    if not replaced:
        raise LookupError(f"nothing to replace for\n{mutant.diff}")


def _changed(right: CodeType, wrong: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the functions that differ, right and wrong, out of two modules or classes."""
    codes = ([each for each in code.co_consts if isinstance(each, CodeType)] for code in (right, wrong))
    for a, b in zip(*codes, strict=True):
        if not a.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
            yield from _changed(a, b)
        elif a != b:
            yield a, b


class Arena:
    """A pytest plugin that collects the tests once, and lets every mutant meet those that concern it."""

    def __init__(
        self, package: str, mutants: list[Mutant], profile: str, report: Callable[[Mutant, str], None]
    ) -> None:
        self.package, self.mutants, self.profile, self.report = package, mutants, profile, report
        self.record = ROOT.parents[1] / "build/mutants" / f"{package}.json"
        self.failed = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: Any) -> bool:
        items = {item.nodeid: item for item in session.items}
        if self.profile == "few" and forked(lambda: self._record(session.items), 3600) != "survived":
            return True
        recorded = json.loads(self.record.read_text())
        for mutant in self.mutants:
            path, lines = str(mutant.path), range(mutant.line, mutant.end + 1)
            tests = [test for test, files in recorded["reached"].items() if set(lines) & set(files.get(path, ()))]
            tests.sort(key=recorded["seconds"].__getitem__)
            times = list(accumulate(map(recorded["seconds"].__getitem__, tests)))
            expected = sum(times) * PROFILES["many"] / PROFILES["few"]
            if self.profile == "few":
                expected = QUICK
                tests = tests[: bisect(times, QUICK)]
            chosen = [items[test] for test in tests]
            self.report(mutant, forked(functools.partial(self._meet, chosen, mutant), 10 + 5 * expected))
        return True

    def _meet(self, items: list[Any], mutant: Mutant) -> bool:
        become(mutant)
        return self._survives(items)

    def _survives(self, items: list[Any], before: Callable[[Any], None] = lambda item: None) -> bool:
        for item, following in zip(items, [*items[1:], None], strict=True):
            before(item)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return False
        return True

    def _record(self, items: list[Any]) -> bool:
        """Write down, for every test, the time it takes and the lines it reaches."""
        tracer = coverage.Coverage(data_file=None, source=[str(PACKAGE / self.package)], messages=False)
        tracer.start()
        starts: list[float] = []

        def before(item: Any) -> None:
            tracer.switch_context(item.nodeid)
            starts.append(time.process_time())

        if not self._survives(items, before):
            return False
        starts.append(time.process_time())
        tracer.stop()
        seconds = {item.nodeid: end - start for item, start, end in zip(items, starts, starts[1:], strict=False)}
        reached: dict[str, dict[str, list[int]]] = {test: {} for test in seconds}
        data = tracer.get_data()
        for path in data.measured_files():
            for line, tests in data.contexts_by_lineno(path).items():
                for test in filter(None, tests):
                    reached[test].setdefault(path, []).append(line)
        self.record.parent.mkdir(parents=True, exist_ok=True)
        self.record.write_text(json.dumps({"seconds": seconds, "reached": reached}))
        return True


def forked(survives: Callable[[], bool], seconds: float) -> str:
    """Return what became of a process of its own: "killed", "survived" or "timeout"."""
    pid = os.fork()
    if not pid:
        code = 2
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            # Time of the processor, since a busy machine is not a hang; by the clock only what waits for ever.
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
            signal.alarm(40 * int(seconds))
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
            code = 0 if survives() else 1
        except LookupError:
            code = 3
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if -code in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM):
        return "timeout"
    return {0: "survived", 3: "unknown"}.get(code, "killed")


def judge(package: str, mutants: list[Mutant], profile: str) -> Iterator[tuple[Mutant, str]]:
    """Yield mutants with what became of them, out of one session of pytest in a process of its own."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    plugins = [f"-pno:{name}" for name in ("cacheprovider", "faulthandler", "xdist")]
    quietly = ["-qq", "-s", "--no-summary", "--assert=plain", *plugins]

    def session() -> None:
        sys.modules["pyopencl"] = None  # type: ignore[assignment]  # drivers start threads, and those survive no fork
        hypothesis.settings.register_profile(
            "mutants",
            max_examples=PROFILES[profile],
            deadline=None,
            derandomize=True,
            database=None,
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # nobody reads the smallest example
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        arena = Arena(package, mutants, profile, lambda mutant, verdict: sender.send((mutant, verdict)))
        pytest.main([*quietly, "--hypothesis-profile=mutants", TESTS[package]], plugins=[arena])

    process = multiprocessing.get_context("fork").Process(target=session)
    process.start()
    sender.close()
    try:
        for _ in mutants:
            yield receiver.recv()
    except EOFError:
        sys.exit(f"{TESTS[package]} fails without any mutant: mend that first")
    process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=SUBJECTS, help="the files to change (default: all)")
    parser.add_argument("--sample", type=int, default=25, metavar="N", help="mutants of each file (default: 25)")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--seed", type=int, default=0, help="another seed chooses another sample")
    parser.add_argument("--quick", action="store_true", help="leave out the second look, with many examples")
    options = parser.parse_args()
    os.chdir(ROOT)

    paths = [path.resolve() for path in options.files]
    every = {path: mutants_of(path) for path in paths}
    size = sys.maxsize if options.all else options.sample
    chosen = {path: sample(every[path], size, options.seed) for path in paths}
    verdicts: dict[Mutant, str] = {}
    for package in dict.fromkeys(path.parent.name for path in paths):
        mutants = [mutant for path in paths if path.parent.name == package for mutant in chosen[path]]
        for profile in ["few"] if options.quick else ["few", "many"]:
            for mutant, verdict in judge(package, mutants, profile):
                verdicts[mutant] = verdict
                if verdict != "killed":
                    print(f"{verdict} ({profile} examples): {mutant.diff}", flush=True)
            mutants = [mutant for mutant in mutants if verdicts[mutant] == "survived"]

    print("", f"{'file':24}" + "".join(f"{head:>10}" for head in ("mutants", "tried", *VERDICTS, "score")), sep="\n")
    total: Counter[str] = Counter()
    for path in paths:
        counts = Counter(verdicts[mutant] for mutant in chosen[path]) + Counter(mutants=len(every[path]))
        print(row(str(path.relative_to(PACKAGE)), counts))
        total += counts
    print(row("together", total))
    print("\nsurvivors:", *(mutant.diff for mutant, verdict in verdicts.items() if verdict == "survived"), sep="\n")


def row(name: str, counts: Counter[str]) -> str:
    """Return a line of the table."""
    tried = sum(counts[verdict] for verdict in VERDICTS)
    score = f"{(tried - counts['survived']) / tried:.0%}" if tried else "-"
    cells = (counts["mutants"], tried, *(counts[verdict] for verdict in VERDICTS), score)
    return f"{name:24}" + "".join(f"{cell:>10}" for cell in cells)


if __name__ == "__main__":
    main()
