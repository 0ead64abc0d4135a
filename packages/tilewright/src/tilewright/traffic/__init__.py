# SPDX-License-Identifier: Apache-2.0
"""Traffic: reshard plans, the network on chip, the time of transfers, and which layout is best."""

from .estimate import (
    Bound,
    Estimate,
    Flows,
    NocRates,
    busiest_links,
    estimate_transfers,
    issue_cycles,
    link_load,
    rates_of,
    resource_loads,
    resource_name,
)
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
from .moves import RISC_NAMES, RequestRun, Requests, Risc, TransferRun, TransferRuns
from .noc import Endpoint, Link, NocMap
from .plan import KERNELS, ReshardPlan, reshard
from .steps import OPERATIONS, ReshardStep, StepBuffer

__all__ = [
    "Bound", "Estimate", "LayoutChain", "Link", "MoveCost", "NocMap", "Requests", "ReshardPlan", "ReshardStep",
    "Risc", "StepBuffer", "TransferRun", "TransferRuns", "best_layout", "candidate_specs",
    "cheaper_targets", "chrome_trace", "estimate_transfers", "move_cost", "npe_workload", "reshard",
]  # fmt: skip
