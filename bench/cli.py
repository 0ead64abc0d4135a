# SPDX-License-Identifier: Apache-2.0
"""How long the command takes to answer, and the package to be imported: the best of several processes.

    make bench

The bare interpreter, measured in the same turns, is in every figure; without site-packages it takes less.
"""

from __future__ import annotations

import subprocess
import sys
import time

TURNS = 9
PYTHON = [sys.executable]
TILEWRIGHT = [sys.executable, "-m", "tilewright"]
# What is started, and the seconds that it may take (0: no promise).
SUBJECTS: dict[str, tuple[list[str], float]] = {
    "python -c pass": ([*PYTHON, "-c", "pass"], 0),
    "python -c 'import numpy'": ([*PYTHON, "-c", "import numpy"], 0),
    "python -c 'import tilewright'": ([*PYTHON, "-c", "import tilewright"], 0.15),
    "tilewright --help": ([*TILEWRIGHT, "--help"], 0.2),
    "tilewright --version": ([*TILEWRIGHT, "--version"], 0.2),
    "tilewright explain --help": ([*TILEWRIGHT, "explain", "--help"], 0.2),
    "tilewright fit --help": ([*TILEWRIGHT, "fit", "--help"], 0.2),
    "tilewright explain 4x60x90 --at 2,33,17": ([*TILEWRIGHT, "explain", "4x60x90", "--at", "2,33,17"], 0),
    "tilewright doctor": ([*TILEWRIGHT, "doctor"], 0),
}


def best_times() -> dict[str, float]:
    """Return the best time of each process, in seconds, taking turns."""
    best = dict.fromkeys(SUBJECTS, float("inf"))
    for _ in range(TURNS):
        for name, (command, _) in SUBJECTS.items():
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def main() -> None:
    """Print the table."""
    times = best_times()
    print(f"{'':<42}{'ms':>8}{'promised':>12}")
    for name, seconds in times.items():
        promise = SUBJECTS[name][1]
        said = f"{1e3 * promise:>9.0f} ms" if promise else f"{'-':>12}"
        late = "  LATE" if promise and seconds > promise else ""
        print(f"{name:<42}{1e3 * seconds:>8.0f}{said}{late}")


if __name__ == "__main__":
    main()
