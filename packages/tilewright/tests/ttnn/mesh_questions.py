# SPDX-License-Identifier: Apache-2.0
"""Questions about tensors on meshes, which ttnn and the dialect are asked in the same words."""

import contextlib
import hashlib
import random

import numpy as np

COUNT = 300
KINDS = [
    ("float32", "ROW_MAJOR"),
    ("float32", "TILE"),
    ("int32", "ROW_MAJOR"),
    ("uint16", "TILE"),
    ("bfloat8_b", "TILE"),
]


def make_questions(count=COUNT):
    """Return the questions: meshes of up to 8 x 8, cut and joined in ways that mostly work."""
    rng = random.Random(20)
    questions = []
    for _ in range(count):
        mesh = rng.choice([(1, 1), (1, 2), (1, 8), (2, 4), (8, 4), (rng.randint(1, 4), rng.randint(1, 4))])
        free = rng.random() < 0.3
        distribution = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))] if free else list(mesh)
        if rng.random() < 0.3:
            distribution = [mesh[0] * mesh[1]]
        rank = rng.randint(1, 4)
        axes = rng.sample(range(rank), rank) + [rng.randrange(rank) for _ in distribution]  # mostly different ones
        cuts = [rng.choice([None, axis, axis - rank]) for axis in axes[: len(distribution)]]
        shape = [rng.randint(1, 3 if axis < rank - 2 else 40) for axis in range(rank)]
        for parts, cut in zip(distribution, cuts, strict=True):
            if cut is not None and rng.random() < 0.85:
                shape[cut] *= parts
        dtype, layout = rng.choice(KINDS)
        questions.append(
            {
                "mesh": list(mesh),
                "distribution": distribution,
                "cuts": cuts,
                "offset": [rng.randint(0, 1) for _ in mesh] if rng.random() < 0.15 else None,
                "shape": shape,
                "dtype": dtype,
                "layout": layout,
                "dims": [rng.randint(-rank, rank - 1) if cut is None else cut for cut in cuts],
            }
        )
    return questions


def answer(dialect, question, mesh_of, pages_of, refusals):
    """Return what a dialect answers: the parts and their topology, and the whole again; None for what it refuses.

    `mesh_of` returns the mesh of a shape, and `pages_of` the bytes of a tensor's part on a device.
    """
    result = {"parts": None, "whole": None}
    with contextlib.suppress(*refusals):
        tensor = _distribute(dialect, question, mesh_of)
        topology = tensor.tensor_topology()
        devices = [list(at) for at in topology.mesh_coords()]
        result["parts"] = {
            "shape": list(tensor.shape),
            "distribution": list(topology.distribution_shape()),
            "placements": [getattr(each, "dim", None) for each in topology.placements()],
            "devices": devices,
            "sha256": _digest([pages_of(tensor, at) for at in devices]),
        }
        config = dialect.MeshComposerConfig(question["dims"], dialect.MeshShape(question["distribution"]))
        composer = dialect.create_mesh_composer(mesh_of(question["mesh"]), config)
        whole = tensor.to_numpy(mesh_composer=composer)
        result["whole"] = {"shape": list(whole.shape), "sha256": _digest([whole.tobytes()])}
    return result


def _distribute(dialect, question, mesh_of):
    volume = int(np.prod(question["shape"]))
    values = (np.arange(volume) % 251).reshape(question["shape"]).astype(np.float32)
    placements = [
        dialect.PlacementReplicate() if cut is None else dialect.PlacementShard(cut) for cut in question["cuts"]
    ]
    options = {}
    if question["offset"] is not None:
        options["mesh_offset_override"] = dialect.MeshCoordinate(*question["offset"])
    config = dialect.MeshMapperConfig(placements, dialect.MeshShape(question["distribution"]), **options)
    return dialect.Tensor(
        values,
        data_type=getattr(dialect, question["dtype"]),
        layout=getattr(dialect.Layout, question["layout"]),
        mesh_mapper=dialect.create_mesh_mapper(mesh_of(question["mesh"]), config),
    )


def _digest(pieces):
    return hashlib.sha256(b"".join(pieces)).hexdigest()[:16]
