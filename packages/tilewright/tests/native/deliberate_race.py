# SPDX-License-Identifier: Apache-2.0
"""Two threads that copy into the same memory: the thread sanitizer must say so, or its silence means nothing.

`make sanitize-threads` runs this first, and goes on only if it is reported.
"""

from threading import Thread

import numpy as np

from tilewright import col_major, row_major
from tilewright.copying import Placement, plan_copy
from tilewright.copying.engine import make_runner

SIZE = 256


def main() -> None:
    source = np.arange(SIZE * SIZE, dtype=np.float32)
    target = np.zeros_like(source)
    plan = plan_copy(Placement(row_major(SIZE, SIZE), "float32"), Placement(col_major(SIZE, SIZE), "float32"))
    run = make_runner(plan, threads=1, engine="native")

    def copy_often() -> None:
        for _ in range(20):
            run(source.ctypes.data, target.ctypes.data)

    threads = [Thread(target=copy_often) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
