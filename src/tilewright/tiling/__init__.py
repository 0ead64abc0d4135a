# SPDX-License-Identifier: Apache-2.0
"""Tiles in motion: tilers, transfers, pipelines, tile plans, traces."""

from ..layout.box import Box
from .budget import Suggestion, suggest_tile
from .execution import CancelledError, Step
from .kernels import TileKernel
from .operands import Input, Output
from .pipeline import Pipeline, Report
from .plans import PlanReport, Task, TilePlan, plan_tiles
from .schedule import Schedule
from .simulation import SimulatedEngine
from .streaming import stream
from .tensors import ExternalTensor, InternalTensor, spaced_layout
from .tiler import Tiler
from .trace import Trace
from .transfers import Event, InlineEngine, ThreadEngine, export, import_, wait

__all__ = [
    "Box",
    "CancelledError",
    "Event",
    "ExternalTensor",
    "InlineEngine",
    "Input",
    "InternalTensor",
    "Output",
    "Pipeline",
    "PlanReport",
    "Report",
    "Schedule",
    "SimulatedEngine",
    "Step",
    "Suggestion",
    "Task",
    "ThreadEngine",
    "TileKernel",
    "TilePlan",
    "Tiler",
    "Trace",
    "export",
    "import_",
    "plan_tiles",
    "spaced_layout",
    "stream",
    "suggest_tile",
    "wait",
]
