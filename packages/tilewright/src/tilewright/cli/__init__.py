# SPDX-License-Identifier: Apache-2.0
"""The command line: one module per verb, imported when the verb is called."""

from .program import main, program

__all__ = ["main", "program"]
