# SPDX-License-Identifier: Apache-2.0
"""Real ttnn programs on a mock machine: what they would do with the memory of a card, before there is one."""

from .machine import MockMachine
from .process import RehearsalError
from .rehearsal import Program, rehearse

__all__ = ["MockMachine", "Program", "RehearsalError", "rehearse"]
