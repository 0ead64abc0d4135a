# SPDX-License-Identifier: Apache-2.0
"""Compare reports of real runs, compiler IR, traces and logs with the model; rehearse programs on mock cards."""

from typing import TYPE_CHECKING

from tilewright._lazy import lazy_names

if TYPE_CHECKING:
    from .auditing import audit, find_input_kind
    from .findings import AuditFinding
    from .memory_use import Life, Moment, Peaks, Share, Timeline
    from .rehearsal.rehearsal import TtnnProgram, rehearse
    from .report import AuditReport
    from .reshards import SeenReshard
    from .trace_audit import audit_noc_trace

_NAMES = {
    "auditing": ("audit", "find_input_kind"),
    "findings": ("AuditFinding",),
    "memory_use": ("Life", "Moment", "Peaks", "Share", "Timeline"),
    "rehearsal.rehearsal": ("TtnnProgram", "rehearse"),
    "report": ("AuditReport",),
    "reshards": ("SeenReshard",),
    "trace_audit": ("audit_noc_trace",),
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "AuditFinding", "AuditReport", "Life", "Moment", "Peaks", "SeenReshard", "Share", "Timeline", "TtnnProgram",
    "audit", "audit_noc_trace", "find_input_kind", "rehearse",
]  # fmt: skip
