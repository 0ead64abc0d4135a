# SPDX-License-Identifier: Apache-2.0
"""The kinds of findings of an audit, and their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.findings import Finding, Severity
from tilewright.notation import ExplainedError

# Likely causes come before their consequences.
KINDS = (
    "failed call",
    "program stopped",
    "wrong page",
    "traffic",
    "overlap",
    "clash",
    "out of memory",
    "shard shape",
    "layout",
    "placement",
    "compiled differently",
    "tensor elsewhere",
    "page size",
    "size",
    "bytes per bank",
    "cores",
    "page missing",
    "page core",
    "page address",
    "chunk",
    "buffer missing",
    "buffer unknown",
    "tensor unknown",
    "not readable",
    "unexpected address",
    "suggestion",
    "late free",
    "reshard",
    "order",
    "barriers",
    "value",
    "scope",
)


@dataclass(frozen=True, slots=True)
class AuditFinding(Finding):
    """A finding of an audit, with its node in the report, call, tensor, address, and both numbers.

    `node` is the number of the node, `call` the operation it belongs to, `recorded` the value in the report, and
    `expected` the value of the model.

    >>> wrong = AuditFinding("page size", "buffer 8 at 1048640: page_size is 1024, the model says 2048", node=8)
    >>> print(wrong)
    error: page size: buffer 8 at 1048640: page_size is 1024, the model says 2048
    """

    node: int | None = None
    call: str = ""
    address: int | None = None
    tensor: str = ""
    recorded: int | str | None = None
    expected: int | str | None = None


def explain_failure(error: ExplainedError, line: int) -> AuditFinding:
    """Return the finding that a text has an `error` of ttnn on a `line`.

    >>> from tilewright.notation import explain_error
    >>> print(explain_failure(explain_error("Kt (16) must be divisible by in0_block_w (5)").errors[0], 7))
    error: failed call: line 7: in0_block_w=5 does not divide the 16 tiles of K.
    """
    message = f"line {line}: {error.message}"
    return AuditFinding("failed call", message, error.severity, error.reason, error.remedy, recorded=line)


def scope_note(message: str, remedy: str = "") -> AuditFinding:
    """Return a note about what was not compared, or only in part.

    >>> print(scope_note("only sizes were compared"))
    note: scope: only sizes were compared
    """
    return AuditFinding("scope", message, Severity.NOTE, remedy=remedy)


def rank_findings(findings: Iterable[AuditFinding]) -> tuple[AuditFinding, ...]:
    """Return findings, the worst first, causes before their consequences, in the order of the run.

    >>> listed = [
    ...     AuditFinding("size", "a"),
    ...     AuditFinding("late free", "b", Severity.NOTE),
    ...     AuditFinding("overlap", "c"),
    ... ]
    >>> [finding.kind for finding in rank_findings(listed)]
    ['overlap', 'size', 'late free']
    """
    order = {kind: place for place, kind in enumerate(KINDS)}
    severities = list(Severity)

    def place_of(finding: AuditFinding) -> tuple[int, int, int]:
        node = -1 if finding.node is None else finding.node
        return severities.index(finding.severity), order.get(finding.kind, len(KINDS)), node

    return tuple(sorted(findings, key=place_of))
