# SPDX-License-Identifier: Apache-2.0
"""`pytest --rehearse N150`: tests of ttnn programs on a mock card, with the verdicts of ttnn and unchecked values.

pytest loads this module at every start, so nothing else is loaded until the option is given.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any  # objects of pytest, which need not be installed

import pytest

if TYPE_CHECKING:
    from .recorder import Recorder

_TITLE = "rehearsal"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option to the `parser` of pytest."""
    group = parser.getgroup("tilewright")
    group.addoption("--rehearse", metavar="MACHINE", help="run tests of ttnn on a mock card, such as N150 or T3K")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Set the mock machine up before anything imports ttnn; `early_config` has the option."""
    machine = early_config.known_args_namespace.rehearse
    if machine:
        early_config.pluginmanager.register(Rehearsal(machine), "tilewright-rehearsal")


class Rehearsal:
    """The mock machine of a run of pytest, with a recorder of its tests.

    >>> Rehearsal.__name__  # pytest makes one for --rehearse
    'Rehearsal'
    """

    def __init__(self, machine: str) -> None:
        import tempfile
        from pathlib import Path

        from tilewright.errors import TilewrightError

        from .machine import MockMachine
        from .process import Stage, find_ttnn
        from .recorder import Recorder

        if "ttnn" in sys.modules:
            raise pytest.UsageError("--rehearse: ttnn was imported before; no plug-in of pytest may import it")
        self.folder = tempfile.TemporaryDirectory(prefix="tilewright-rehearsal-")
        try:
            self.machine = MockMachine.named(machine)
            self.ttnn = find_ttnn(sys.executable)
            stage = Stage.build(Path(self.folder.name).resolve(), self.machine, self.ttnn)
        except (TilewrightError, OSError) as problem:
            self.folder.cleanup()
            raise pytest.UsageError(f"--rehearse {machine}: {problem}") from None
        os.environ.update(stage.environment())
        os.environ.pop("TT_METAL_SLOW_DISPATCH_MODE", None)
        self.recorder: Recorder = Recorder(stage.folder, "NORMAL", logs=False)
        self.recorder.watch_imports()

    def pytest_report_header(self) -> str:
        """Return the line about the machine."""
        return (
            f"rehearsal: {self.machine.name}, ttnn {self.ttnn.version} on its mock; values are zeros, and not checked"
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record the test `item` by itself."""
        self.recorder.forget()
        result = yield
        for capture in self.recorder.captures:
            (self.recorder.folder / capture["file"]).unlink(missing_ok=True)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Explain the error of ttnn that ended the `call` of a test `item`; a check of values decides nothing.

        A test that fails without a problem was expected to fail, perhaps by its values. The summary needs all of it in
        the report, which may come from another process.
        """
        report: Any = yield
        problem = None if call.excinfo is None else call.excinfo.value
        explained = self._explain(problem) if problem is not None and report.failed else None
        unchecked = self.recorder.unchecked if report.when == "call" else 0
        if explained is not None:
            report.sections.append((_TITLE, explained))
        elif report.failed and self.recorder.reads and (problem is None or isinstance(problem, AssertionError)):
            path, line = item.path, (item.location[1] or 0) + 1
            report.outcome, unchecked = "skipped", 1
            report.longrepr = (str(path), line, "a rehearsal cannot check values: they are zeros")
        peaks = [capture["peaks"]["peak_total"] for capture in self.recorder.captures]
        report.user_properties += [(_TITLE, (max(peaks, default=0), bool(unchecked)))]
        return report

    def _explain(self, problem: BaseException) -> str | None:
        """Return the meaning of an error of ttnn, or None for other errors."""
        from .process import ProgramRun
        from .recorder import list_texts
        from .rehearsal import explain_call

        texts = list_texts(problem)
        error = next((error for error in reversed(self.recorder.errors) if error["text"] in texts), None)
        if error is None:
            return None
        finding = explain_call(ProgramRun("raised", {"calls": self.recorder.calls}), error)
        lines = (finding.message, f"why: {finding.reason}", f"remedy: {finding.remedy}")
        return "\n".join([line for line in lines if not line.endswith(": ")])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write on the `terminalreporter` what ttnn refused, and the highest peak."""
        write = terminalreporter.write_line
        terminalreporter.section(f"rehearsal on {self.machine.name}")
        reports = [item for group in terminalreporter.stats.values() for item in group if hasattr(item, "sections")]
        refused = [(item, text) for item in reports for title, text in item.sections if title == _TITLE]
        measured = [(*value, item) for item in reports for title, value in item.user_properties if title == _TITLE]
        for report, text in refused:
            write(f"{report.nodeid}: {text.partition(chr(10))[0]}")
        unchecked = {report.nodeid for _, is_unchecked, report in measured if is_unchecked}
        write(f"refused by ttnn: {len(refused)}; values not checked in {len(unchecked)}")
        size, _, highest = max(measured, key=lambda item: item[0], default=(0, False, None))
        if size and highest is not None:
            write(f"highest L1: {size} bytes per core in {highest.nodeid}, without dataflow buffers")

    def pytest_unconfigure(self) -> None:
        """Remove the folder of the machine."""
        self.folder.cleanup()
