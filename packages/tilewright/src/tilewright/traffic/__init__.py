# SPDX-License-Identifier: Apache-2.0
"""Traffic: reshard plans, the network on chip, the time of transfers, and which layout is best."""

from .estimate import Bound, Estimate
from .exports import chrome_trace, npe_workload
from .layout_chain import LayoutChain, MoveCost, best_layout, candidate_specs, cheaper_targets, move_cost
from .noc import Link, NocMap
from .planning import reshard
from .requests import Requests, Risc
from .reshard_plan import ReshardPlan
from .steps import ReshardStep, StepBuffer
from .transfer_runs import TransferRun, TransferRuns
from .transfer_times import estimate_transfers

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
