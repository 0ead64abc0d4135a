# SPDX-License-Identifier: Apache-2.0
"""Traffic: reshard plans, the network on chip, the time of transfers, and which layout is best."""

from .estimate import Bound, Estimate, estimate_transfers
from .layout_chain import (
    LayoutChain,
    MoveCost,
    best_layout,
    candidate_specs,
    cheaper_targets,
    chrome_trace,
    move_cost,
    npe_workload,
)
from .moves import Requests, Risc, TransferRun, TransferRuns
from .noc import Link, NocMap
from .plan import ReshardPlan, ReshardStep, StepBuffer, reshard

__all__ = [
    "Bound",
    "Estimate",
    "LayoutChain",
    "Link",
    "MoveCost",
    "NocMap",
    "Requests",
    "ReshardPlan",
    "ReshardStep",
    "Risc",
    "StepBuffer",
    "TransferRun",
    "TransferRuns",
    "best_layout",
    "candidate_specs",
    "cheaper_targets",
    "chrome_trace",
    "estimate_transfers",
    "move_cost",
    "npe_workload",
    "reshard",
]
