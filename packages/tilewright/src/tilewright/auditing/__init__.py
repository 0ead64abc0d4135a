# SPDX-License-Identifier: Apache-2.0
"""Reports of real runs, compiler IR, traces and logs against the model: what is wrong, and what could be better."""

from ..severity import Severity
from .audit import audit
from .audit_report import AuditReport
from .finding import AuditFinding
from .input_kind import find_input_kind
from .seen_reshards import SeenReshard
from .timeline import Life, Moment, Peaks, Share, Timeline
from .trace_audit import audit_noc_trace

__all__ = [
    "AuditFinding",
    "AuditReport",
    "Life",
    "Moment",
    "Peaks",
    "SeenReshard",
    "Severity",
    "Share",
    "Timeline",
    "audit",
    "audit_noc_trace",
    "find_input_kind",
]
