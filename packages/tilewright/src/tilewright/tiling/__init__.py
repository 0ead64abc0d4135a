# SPDX-License-Identifier: Apache-2.0
"""Tilers, transfers, schedules, pipelines and tile plans: arrays computed tile by tile."""

from ..layout import Box
from .endpoints import Input, Output
from .manifest import MergedManifests
from .pipeline import Pipeline, create_like, stream
from .plan_task import TaskTimeoutError
from .schedule import (
    SCHEMES,
    Action,
    Compute,
    Export,
    Import,
    Phase,
    PipelineReport,
    Schedule,
    Trace,
    TransferKey,
    TransferKind,
    Wait,
)
from .tile_compute import COMPUTES, CancelledError, Step
from .tile_copies import (
    BoundCopy,
    CopyList,
    ExternalTensor,
    InternalTensor,
    boxes_outside,
    export_copies,
    fill_copy,
    import_copies,
    spaced_layout,
)
from .tile_kernel import TileKernel
from .tile_plan import PlanReport, Task, TilePlan, count_workers, plan_tiles, submit_unique
from .tiler import Tiler
from .transfers import (
    InlineQueue,
    SimulatedQueue,
    ThreadQueue,
    Transfer,
    TransferEvent,
    TransferQueue,
    export,
    import_,
    wait,
)

__all__ = [
    "Box",
    "CancelledError",
    "ExternalTensor",
    "InlineQueue",
    "Input",
    "InternalTensor",
    "MergedManifests",
    "Output",
    "Pipeline",
    "PipelineReport",
    "PlanReport",
    "Schedule",
    "SimulatedQueue",
    "Step",
    "Task",
    "TaskTimeoutError",
    "ThreadQueue",
    "TileKernel",
    "TilePlan",
    "Tiler",
    "Trace",
    "TransferEvent",
    "export",
    "import_",
    "plan_tiles",
    "spaced_layout",
    "stream",
    "wait",
]
