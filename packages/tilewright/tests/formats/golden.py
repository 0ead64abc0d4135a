# SPDX-License-Identifier: Apache-2.0
"""The recorded vectors of ttnn, and the plain NumPy tilize that some of them went through."""

import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent.parent / "golden" / "ttnn"
FACE = 16


def recorded(name):
    """Return (cases, arrays) of one pair of files."""
    cases = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        return cases, {key: file[key] for key in file.files}


def padded_shape(shape, tile):
    return tuple(-(-n // t) * t for n, t in zip(shape, tile, strict=True))


def tilized(matrix, tile, transpose=False):
    """Return the elements of a matrix, padded with zeros, in physical order: tiles, in them faces, in them rows.

    In a transposed tile, faces and what is in them go down the columns.
    """
    (height, width), (rows, columns) = tile, padded_shape(matrix.shape, tile)
    padded = np.zeros((rows, columns), dtype=matrix.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    tall = min(height, FACE)
    view = padded.reshape(rows // height, height // tall, tall, columns // width, width // FACE, FACE)
    return view.transpose((0, 3, 4, 1, 5, 2) if transpose else (0, 3, 1, 4, 2, 5)).reshape(-1)


def untilized(flat, shape, tile, transpose=False):
    """Return the matrix of elements in physical order, without its padding."""
    padded = padded_shape(shape, tile)
    places = tilized(np.arange(flat.size).reshape(padded), tile, transpose)
    matrix = np.empty_like(flat)
    matrix[places] = flat
    return matrix.reshape(padded)[: shape[0], : shape[1]]
