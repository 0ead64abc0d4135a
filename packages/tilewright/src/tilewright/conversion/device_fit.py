# SPDX-License-Identifier: Apache-2.0
"""`fit_device`: whether what one device holds fits it, on a mesh that shares tensors or alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from ..errors import LayoutError
from ..memory import ChipLike, CircularBuffers, Fit, FitRequest, Mesh, TensorSpec, check_fit

WEIGHTS_ONLY = "weights only: KV cache and activations are not counted"


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """One device's part of a tensor: its name, the spec or its arguments, and the mesh that shares it.

    >>> DeviceTensor("w", TensorSpec((4, 4))).mesh is None
    True
    """

    name: str
    request: FitRequest
    mesh: Mesh | None = None


def mark_weights(report: Fit, requests: Iterable[object]) -> Fit:
    """Return a report of files, marked as covering weights only if one of them is the folder of a model.

    >>> from tilewright import memory
    >>> mark_weights(memory.fit(TensorSpec((4, 4)), "n150"), ["weights.npy"]).scope
    ''
    """
    folders = [Path(path) for path in requests if isinstance(path, (str, os.PathLike)) and os.path.isdir(path)]
    is_model = any((folder / "config.json").is_file() for folder in folders)
    return replace(report, scope=WEIGHTS_ONLY) if is_model else report


def fit_device(
    tensors: Sequence[DeviceTensor],
    chip: ChipLike | None,
    circular_buffers: CircularBuffers = 0,
    *reserved: int,
    mesh: tuple[int, ...] | None = None,
) -> Fit:
    """Return whether what one device holds fits it.

    `mesh` is the shape of the mesh of devices, () for one device; the default is the mesh that shares the tensors. The
    other arguments are as in `fit`.
    """
    requests = [tensor.request for tensor in tensors]
    names = [tensor.name for tensor in tensors]
    shape = _find_mesh(tensors) if mesh is None else mesh
    return check_fit(requests, TensorSpec, chip, circular_buffers, *reserved, names=names, mesh=shape)


def _find_mesh(tensors: Sequence[DeviceTensor]) -> tuple[int, ...]:
    """Return the shape of the mesh that shares tensors, () if one device holds them; raise if there are several."""
    meshes = [(tensor.mesh.shape, tensor.name) for tensor in tensors if tensor.mesh is not None]
    shapes = {shape: name for shape, name in meshes if prod(shape) > 1}
    if len(shapes) > 1:
        (shape, first), (other, second) = list(shapes.items())[:2]
        raise LayoutError(
            f"{first} is on a mesh of {list(shape)}, {second} on one of {list(other)}: they are not for one machine;"
            " check them one after the other"
        )
    return next(iter(shapes), ())
