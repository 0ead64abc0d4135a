# SPDX-License-Identifier: Apache-2.0
"""Compare reports of real runs, compiler IR, traces and logs with the model of tilewright."""

from .auditing import audit, find_input_kind
from .findings import AuditFinding
from .memory_use import Life, Moment, Peaks, Share, Timeline
from .report import AuditReport
from .reshards import SeenReshard
from .trace_audit import audit_noc_trace

__all__ = [
    "AuditFinding",
    "AuditReport",
    "Life",
    "Moment",
    "Peaks",
    "SeenReshard",
    "Share",
    "Timeline",
    "audit",
    "audit_noc_trace",
    "find_input_kind",
]
