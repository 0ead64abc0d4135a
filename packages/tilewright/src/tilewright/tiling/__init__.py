# SPDX-License-Identifier: Apache-2.0
"""Tilers, transfers, schedules, pipelines and tile plans: arrays computed tile by tile."""

from typing import TYPE_CHECKING, Any

from .._lazy import companion_name
from ..layout import Box
from .endpoints import DeviceEndpoint, Endpoint, Input, MemoryEndpoint, Output
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
    Fill,
    InternalTensor,
    boxes_outside,
    export_copies,
    fill_copy,
    import_copies,
    spaced_layout,
    validate_fill,
)
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

if TYPE_CHECKING:
    TileKernel: Any  # of a companion

__all__ = [
    "Box", "CancelledError", "ExternalTensor", "InlineQueue", "Input", "InternalTensor", "MergedManifests",
    "Output", "Pipeline", "PipelineReport", "PlanReport", "Schedule", "SimulatedQueue", "Step", "Task",
    "TaskTimeoutError", "ThreadQueue", "TilePlan", "Tiler", "Trace", "TransferEvent", "export", "import_",
    "plan_tiles", "spaced_layout", "stream", "wait",
]  # fmt: skip


def _find_name(name: str) -> Any:
    if name != "TileKernel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return companion_name(f"{__name__}.{name}", "tilewright_gpu", "opencl")


if not TYPE_CHECKING:  # for a type checker it would make every misspelt name a name of this module
    __getattr__ = _find_name
