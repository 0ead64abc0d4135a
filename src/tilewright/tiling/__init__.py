# SPDX-License-Identifier: Apache-2.0
"""Tiles in motion: tilers, transfers, pipelines, tile plans, traces."""

from .budget import Suggestion, suggest_tile
from .operands import Input, Output
from .pipeline import CancelledError, Pipeline, Report, Step
from .schedule import Schedule
from .simulation import SimulatedEngine
from .streaming import stream
from .tensors import ExternalTensor, InternalTensor, spaced_layout
from .tile import Tile
from .tiler import Tiler
from .trace import Trace
from .transfers import Event, InlineEngine, ThreadEngine, export, import_, wait

__all__ = [
    "CancelledError",
    "Event",
    "ExternalTensor",
    "InlineEngine",
    "Input",
    "InternalTensor",
    "Output",
    "Pipeline",
    "Report",
    "Schedule",
    "SimulatedEngine",
    "Step",
    "Suggestion",
    "ThreadEngine",
    "Tile",
    "Tiler",
    "Trace",
    "export",
    "import_",
    "spaced_layout",
    "stream",
    "suggest_tile",
    "wait",
]
