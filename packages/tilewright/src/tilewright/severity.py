# SPDX-License-Identifier: Apache-2.0
"""`Severity`: how bad what a report says is, in reports of audits and of kernels."""

from enum import Enum


class Severity(Enum):
    """How bad a finding is: something is wrong, something costs, or something is worth knowing.

    >>> Severity.ERROR.value
    'error'
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
