# SPDX-License-Identifier: Apache-2.0
"""Mock clusters for the real ttnn: a mesh of any size, described as ttnn wants it before Python starts."""

import os
import sys
from pathlib import Path

NONE = {"noc_translation": "true", "harvest_mask": 0, "dram_harvesting_mask": 0}
WORMHOLE = NONE | {"harvest_mask": 64, "eth_harvesting_mask": 0, "pcie_harvesting_mask": 0}
BLACKHOLE = NONE | {"eth_harvesting_mask": 288, "pcie_harvesting_mask": 2, "l2cpu_harvesting_mask": 0}
# the architecture, the number of the first board, and what is switched off
BOARDS = {
    "n150": ("wormhole_b0", 72059269368820857, WORMHOLE),
    "p150": ("blackhole", 4476187513102, BLACKHOLE),
    "p100": ("blackhole", 4476187513102, BLACKHOLE | {"dram_harvesting_mask": 1}),
}


def describe_cluster(board, rows, columns):
    """Return the description of a grid of boards, each with one chip, two links between neighbours."""
    arch, first_id, masks = BOARDS[board]
    chips = range(rows * columns)
    next_channel = dict.fromkeys(chips, 0)
    links = []

    def connect(*pair):
        ends = [f"{{chip: {chip}, chan: {next_channel[chip]}}}" for chip in pair]
        links.append(f"[{', '.join(ends)}]")
        for chip in pair:
            next_channel[chip] += 1

    for chip in chips:
        for neighbour, exists in ((chip + 1, (chip + 1) % columns), (chip + columns, chip + columns in chips)):
            if exists:
                connect(chip, neighbour)
                connect(chip, neighbour)
    harvesting = ", ".join([f"{name}: {value}" for name, value in masks.items()])
    places = [f"{chip}: [{chip % columns}, {chip // columns}, 0, 0]" for chip in chips if arch == "wormhole_b0"]
    lines = [
        f"arch: {{{', '.join([f'{chip}: {arch}' for chip in chips])}}}",
        f"chips: {{{', '.join(places)}}}",
        f"chip_unique_ids: {{{', '.join([f'{chip}: {1000 + chip}' for chip in chips])}}}",
        f"ethernet_connections: [{', '.join(links)}]",
        f"chips_with_mmio: [{', '.join([f'{{{chip}: {chip}}}' for chip in chips])}]",
        f"harvesting: {{{', '.join([f'{chip}: {{{harvesting}}}' for chip in chips])}}}",
        f"asic_locations: {{{', '.join([f'{chip}: 0' for chip in chips])}}}",
    ]
    boards = [f"[{{board_id: {first_id + chip}}}, {{board_type: {board}}}, {{chips: [{chip}]}}]" for chip in chips]
    return "\n".join([*lines, f"boards: [{', '.join(boards)}]", ""])


def describe_graph(board, rows, columns):
    """Return the description of the mesh that the boards are wired to."""
    arch = BOARDS[board][0].upper()
    return (
        f'mesh_descriptors {{ name: "M0" arch: {arch} device_topology {{ dims: [ {rows}, {columns} ] }}'
        " host_topology { dims: [ 1, 1 ] } channels { count: 2 policy: RELAXED } }\n"
        'top_level_instance { mesh { mesh_descriptor: "M0" mesh_id: 0 } }\n'
    )


def cluster_environment(folder, board, rows, columns):
    """Write the descriptions to a folder, and return the environment in which the real ttnn has this mesh."""
    cluster = Path(folder) / f"{board}_{rows}x{columns}.yaml"
    graph = cluster.with_suffix(".textproto")
    cluster.write_text(describe_cluster(board, rows, columns))
    graph.write_text(describe_graph(board, rows, columns))
    return {"TT_METAL_MOCK_CLUSTER_DESC_PATH": str(cluster), "TT_MESH_GRAPH_DESC_PATH": str(graph)}


if __name__ == "__main__":  # python mock_cluster.py BOARD ROWS COLUMNS command ...: run a command with such a mesh
    board, rows, columns, *command = sys.argv[1:]
    os.environ.update(cluster_environment(Path.cwd(), board, int(rows), int(columns)))
    os.execvp(command[0], command)
