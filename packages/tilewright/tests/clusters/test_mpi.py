# SPDX-License-Identifier: Apache-2.0
"""Tile plans on the real MPIPoolExecutor, under mpiexec: a master and two workers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")

# that of the environment before that of the system: it belongs to the library that mpi4py finds there
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


@pytest.mark.skipif(MPIEXEC is None, reason="mpiexec is not installed")
def test_a_plan_runs_on_mpi(tmp_path):
    allowed = {  # Open MPI asks before it runs as root, or more processes than there are cores
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    script = Path(__file__).with_name("mpi_plan.py")
    done = subprocess.run(
        [str(MPIEXEC), "-n", "3", sys.executable, "-m", "mpi4py.futures", script, tmp_path],
        env={**os.environ, **allowed},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    workers, tasks, lines, flaky_tasks, retried, is_right, message = json.loads(done.stdout.splitlines()[-1])
    assert workers == 2
    assert (tasks, lines) == (1200, 1201)
    assert (flaky_tasks, retried) == (12, 12)
    assert is_right
    assert "failed 2 times; last error: OSError: not now" in message
