# SPDX-License-Identifier: Apache-2.0
"""Traffic: reshard plans, the network on chip, the time of transfers, and which layout is best."""

from .estimate import Bound, Estimate
from .noc import Link, NocMap
from .requests import Requests, Risc
from .reshard_plan import ReshardPlan, reshard
from .steps import Step, StepBuffer
from .transfer_times import estimate_transfers
from .transfers import Transfer, Transfers

__all__ = [
    "Bound",
    "Estimate",
    "Link",
    "NocMap",
    "Requests",
    "ReshardPlan",
    "Risc",
    "Step",
    "StepBuffer",
    "Transfer",
    "Transfers",
    "estimate_transfers",
    "reshard",
]
