# SPDX-License-Identifier: Apache-2.0
"""Mock clusters for the real ttnn: a mesh of any size, described as ttnn wants it before Python starts."""

import os
import sys
from pathlib import Path

from tilewright_audit.rehearsal.machine import MockMachine, describe_cluster


def describe_graph(arch, rows, columns):
    """Return the description of the mesh that the boards are wired to."""
    return (
        f'mesh_descriptors {{ name: "M0" arch: {arch.upper()} device_topology {{ dims: [ {rows}, {columns} ] }}'
        " host_topology { dims: [ 1, 1 ] } channels { count: 2 policy: RELAXED } }\n"
        'top_level_instance { mesh { mesh_descriptor: "M0" mesh_id: 0 } }\n'
    )


def cluster_environment(folder, board, rows, columns):
    """Write the descriptions to a folder, and return the environment in which the real ttnn has this mesh.

    Every board has one chip.
    """
    machine = MockMachine.named(board)
    boards = [(chip,) for chip in range(rows * columns)]
    cluster = Path(folder) / f"{board}_{rows}x{columns}.yaml"
    graph = cluster.with_suffix(".textproto")
    cluster.write_text(describe_cluster(machine.chip.arch, board, machine.harvesting, (rows, columns), boards))
    graph.write_text(describe_graph(machine.chip.arch, rows, columns))
    return {"TT_METAL_MOCK_CLUSTER_DESC_PATH": str(cluster), "TT_MESH_GRAPH_DESC_PATH": str(graph)}


if __name__ == "__main__":  # python mock_cluster.py BOARD ROWS COLUMNS command ...: run a command with such a mesh
    board, rows, columns, *command = sys.argv[1:]
    os.environ.update(cluster_environment(Path.cwd(), board, int(rows), int(columns)))
    os.execvp(command[0], command)
