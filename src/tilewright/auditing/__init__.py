# SPDX-License-Identifier: Apache-2.0
"""Reports of real runs against the model: where tensors are, how much memory they take, and what could be better."""

from .audit import audit
from .audit_report import AuditReport
from .finding import AuditFinding, Severity

__all__ = ["AuditFinding", "AuditReport", "Severity", "audit"]
