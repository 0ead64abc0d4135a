# SPDX-License-Identifier: Apache-2.0
"""The ttnn dialect, over simulated chips: with `import tilewright.ttnn as ttnn`, the examples of its documents run.

Nothing here imports ttnn or torch: both can be used beside it in one process.
"""

from . import config, creation, devices, files, operations, strict_rules, tensor, types, visualizer_report
from .config import *
from .creation import *
from .devices import *
from .files import *
from .operations import *
from .strict_rules import *
from .tensor import *
from .types import *
from .visualizer_report import *

__all__: list[str] = []
__all__ += config.__all__
__all__ += creation.__all__
__all__ += devices.__all__
__all__ += files.__all__
__all__ += operations.__all__
__all__ += strict_rules.__all__
__all__ += tensor.__all__
__all__ += types.__all__
__all__ += visualizer_report.__all__
