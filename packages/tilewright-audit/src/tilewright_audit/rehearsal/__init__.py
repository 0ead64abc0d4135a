# SPDX-License-Identifier: Apache-2.0
"""Real ttnn programs on a mock machine: what they would do with the memory of a card, before there is one.

pytest loads the plug-in in here at every start, so the names load their modules when they are used.
"""

from typing import TYPE_CHECKING

from tilewright._lazy import lazy_names

if TYPE_CHECKING:
    from .machine import MockMachine
    from .process import RehearsalError
    from .rehearsal import Program, rehearse

_NAMES = {
    "machine": ("MockMachine",),
    "process": ("RehearsalError",),
    "rehearsal": ("Program", "rehearse"),
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = ["MockMachine", "Program", "RehearsalError", "rehearse"]
