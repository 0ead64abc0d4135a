# SPDX-License-Identifier: Apache-2.0
"""A tile plan on an MPIPoolExecutor, for `mpiexec -n 3 python -m mpi4py.futures mpi_plan.py FOLDER`."""

import json
import sys
from pathlib import Path

import numpy as np
from mpi4py.futures import MPIPoolExecutor

from tilewright import TransferError
from tilewright.tiling import plan_tiles
from tilewright.tiling.plan_executor import count_workers


class Flaky:
    """Fails for each tile once, in whichever process."""

    def __init__(self, folder: str, always: bool = False) -> None:
        self.folder, self.always = folder, always

    def __call__(self, x, y) -> None:
        path = Path(self.folder, f"seen {int(x[0, 0])}")
        if self.always or not path.exists():
            path.touch()
            raise OSError("not now")
        np.negative(x, out=y)


def main(folder: str) -> None:
    before, after = Path(folder, "in.npy"), Path(folder, "out.npy")
    np.save(before, np.arange(40 * 60).reshape(40, 60))
    np.lib.format.open_memmap(after, "w+", np.int64, (40, 60)).flush()
    with MPIPoolExecutor() as executor:
        workers = count_workers(executor)
        small = plan_tiles(before, after, tile=(1, 2)).run(np.negative, executor, manifest=Path(folder, "done"))
        right = bool((np.load(after) == -np.load(before)).all())
        np.lib.format.open_memmap(after, "w+", np.int64, (40, 60)).flush()
        flaky = plan_tiles(before, after, tile=(10, 20)).run(Flaky(folder), executor, timeout=30)
        right &= bool((np.load(after) == -np.load(before)).all())
        try:
            plan_tiles(before, after, tile=(10, 20)).run(Flaky(folder, always=True), executor, retries=1)
        except TransferError as problem:
            message = str(problem)
        else:
            message = ""
    lines = len(Path(folder, "done").read_bytes().splitlines())
    print(json.dumps([workers, small.tasks, lines, flaky.tasks, flaky.retried, right, message]))


if __name__ == "__main__":
    main(sys.argv[1])
