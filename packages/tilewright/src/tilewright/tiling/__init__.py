# SPDX-License-Identifier: Apache-2.0
"""Tilers, transfers, schedules, pipelines and tile plans: arrays computed tile by tile."""

from ..layout import Box
from .array_stream import create_like, stream
from .operands import Input, Output
from .pipeline import Pipeline
from .plan_cost import ClusterModel, RunEstimate, simulate_run
from .plan_executor import count_workers, submit_unique
from .plan_task import TaskTimeoutError
from .ray_executor import RayExecutor
from .rechunk import RechunkPlan, RechunkReport, plan_rechunk, rechunk, transpose
from .schedule import SCHEMES, Action, Compute, Export, Import, Phase, Schedule, TransferKey, TransferKind, Wait
from .task_manifest import MergedManifests
from .tile_compute import COMPUTES, CancelledError, Step
from .tile_copies import BoundCopy, CopyList, boxes_outside, export_copies, fill_copy, import_copies
from .tile_kernel import TileKernel
from .tile_plan import PlanReport, Task, TilePlan, plan_tiles
from .tile_reduction import reduce_tiles
from .tile_suggestion import TileSuggestion, suggest_tile
from .tiler import Tiler
from .trace import PipelineReport, Trace
from .transfer_tensors import ExternalTensor, InternalTensor, spaced_layout
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
    "ClusterModel",
    "ExternalTensor",
    "InlineQueue",
    "Input",
    "InternalTensor",
    "MergedManifests",
    "Output",
    "Pipeline",
    "PipelineReport",
    "PlanReport",
    "RayExecutor",
    "RechunkPlan",
    "RechunkReport",
    "RunEstimate",
    "Schedule",
    "SimulatedQueue",
    "Step",
    "Task",
    "TaskTimeoutError",
    "ThreadQueue",
    "TileKernel",
    "TilePlan",
    "TileSuggestion",
    "Tiler",
    "Trace",
    "TransferEvent",
    "export",
    "import_",
    "plan_rechunk",
    "plan_tiles",
    "rechunk",
    "reduce_tiles",
    "simulate_run",
    "spaced_layout",
    "stream",
    "suggest_tile",
    "transpose",
    "wait",
]
