# SPDX-License-Identifier: Apache-2.0
"""Traffic: reshard plans, the network on chip, the time of transfers, and which layout is best."""

from .best_layout import LayoutChain, MoveCost, best_layout, candidate_specs, move_cost
from .estimate import Bound, Estimate
from .exports import chrome_trace, npe_workload
from .noc import Link, NocMap
from .requests import Requests, Risc
from .reshard_plan import ReshardPlan, reshard
from .steps import Step, StepBuffer
from .transfer_times import estimate_transfers
from .transfers import Transfer, Transfers

__all__ = [
    "Bound",
    "Estimate",
    "LayoutChain",
    "Link",
    "MoveCost",
    "NocMap",
    "Requests",
    "ReshardPlan",
    "Risc",
    "Step",
    "StepBuffer",
    "Transfer",
    "Transfers",
    "best_layout",
    "candidate_specs",
    "chrome_trace",
    "estimate_transfers",
    "move_cost",
    "npe_workload",
    "reshard",
]
