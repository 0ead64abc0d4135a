# SPDX-License-Identifier: Apache-2.0
"""`KernelBackend`: a device on which plans run as generated kernels, which CUDA and OpenCL share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.copying import Backend, DeviceArray, Plan, stage_operands
from tilewright.formats import float32

from .codegen import Tuning


class KernelBackend(Backend):
    """A device on which plans run as generated kernels."""

    @abstractmethod
    def working(self, action: str) -> AbstractContextManager[None]:
        """Return a context for work on the device: errors of its library become a DeviceError that names the action."""

    @abstractmethod
    def compile_plan(self, plan: Plan, aligned: tuple[int, int], tuning: Tuning | None) -> Sequence[Any]:
        """Return the launches of a plan for two alignments in bytes, which are cached; each has its `kernel`."""

    @abstractmethod
    def enqueue(self, launch: Any, source: DeviceArray, target: DeviceArray) -> None:
        """Enqueue a launch of `compile_plan`."""

    @abstractmethod
    def launch_pipeline(self, kernel: Any, arrays: Sequence[DeviceArray], groups: int | None) -> None:
        """Enqueue a `TileKernel` with its operands."""

    @abstractmethod
    def read_bytes(self, array: DeviceArray, data: NDArray[Any]) -> None:
        """Copy an array that is not empty to bytes of the host."""

    @abstractmethod
    def write_bytes(self, data: NDArray[Any], array: DeviceArray) -> None:
        """Copy bytes of the host to an array that is not empty."""

    def run_plan(self, plan: Plan, source: DeviceArray, target: DeviceArray, tuning: Tuning | None = None) -> None:
        """Enqueue a `plan` from `source` to `target`, with kernels that a `tuning` shapes; the host does not wait."""
        aligned = (source.alignment, target.alignment)
        with self.working("run the plan"):
            launches = self.compile_plan(plan, aligned, tuning)
            stages = stage_operands(plan, source, target, lambda count: self.empty((count,), float32))
            for launch in launches:
                _, read, written = stages[launch.kernel.stage]
                self.enqueue(launch, read, written)

    def download(self, array: DeviceArray, target: NDArray[Any]) -> None:
        """Copy the bytes of a contiguous device array to a contiguous host array, and wait for them."""
        if array.size:
            with self.working("copy memory to the host"):
                self.read_bytes(array, target.reshape(-1).view(np.uint8))

    def upload(self, source: NDArray[Any], array: DeviceArray) -> None:
        """Copy the bytes of a host array to a contiguous device array."""
        if array.size:
            with self.working("copy memory from the host"):
                self.write_bytes(np.ascontiguousarray(source).reshape(-1).view(np.uint8), array)
