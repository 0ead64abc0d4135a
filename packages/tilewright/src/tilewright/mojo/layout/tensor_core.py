# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.tensor_core`: small matrix products that the threads of a warp compute together.

Each lane loads its fragment of a tile; `mma_op` multiplies the tiles of the whole warp. Fragments are those of NVIDIA's
`mma.m16n8k*`; products are computed in float32, without the rounding of a real tensor core.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import FormatError, LayoutError
from ...simt.collectives import Answers, Collective
from ...simt.coroutines import Suspension
from ...simt.kernel_thread import current_machine
from ..brackets import brackets
from ..dtype import DType
from ..simd import SIMD, as_vector, scalar_format

__all__ = ["TensorCore"]

_LANES = 32
_M, _N = 16, 8
_DEPTHS = {4: (4, 8), 2: (8, 16)}  # K, by the bytes of an input


def fragment_places(operand: str, depth: int, itemsize: int) -> Any:
    """Return (rows, columns) of the elements of each lane, of the operand "a", "b" or "c".

    >>> rows, columns = fragment_places("c", 8, 4)
    >>> rows[5].tolist(), columns[5].tolist()
    ([1, 1, 9, 9], [2, 3, 2, 3])
    """
    lane = np.arange(_LANES)[:, None]
    group, member = lane // 4, lane % 4
    if operand == "c":
        k = np.arange(4)
        return group + 8 * (k // 2), 2 * member + k % 2
    pack = 4 // itemsize  # neighbours that share a register
    count = (_M if operand == "a" else _N) * depth // _LANES
    k = np.arange(count)
    within, register = k % pack, k // pack
    if operand == "b":
        return pack * member + within + 4 * pack * register, group + 0 * k
    return group + 8 * (register % 2), pack * member + within + 4 * pack * (register // 2)


class TensorCore:
    """`TensorCore[out_type, in_type, Index(16, 8, 8)]()`: loads fragments, multiplies and stores them.

    >>> TensorCore["float32", "float32", (16, 8, 8)]().shape
    (16, 8, 8)
    """

    def __init__(self, out_type: DType, in_type: DType, shape: tuple[int, ...], transpose_b: bool = False) -> None:
        self.out_type, self.in_type, self.shape, self.transpose_b = out_type, in_type, shape, transpose_b
        if in_type.itemsize not in _DEPTHS:
            raise FormatError(f"TensorCore takes float32, bfloat16 or float16, got {in_type}")
        if shape[:2] != (_M, _N) or shape[2] not in _DEPTHS[in_type.itemsize]:
            depths = " or ".join(f"(16, 8, {depth})" for depth in _DEPTHS[in_type.itemsize])
            raise LayoutError(f"TensorCore of {in_type} has the shape {depths}, got {shape}")
        size = in_type.itemsize
        self._places = {operand: fragment_places(operand, shape[2], size) for operand in ("a", "b", "c")}

    @classmethod
    def with_parameters(cls, *parameters: Any, **named: Any) -> Any:
        """Return what makes the operation: `TensorCore[out_type, in_type, shape, transpose_b]`.

        >>> TensorCore.with_parameters("float32", "bfloat16", shape=(16, 8, 16))().in_type
        DType.bfloat16
        """
        names = ("out_type", "in_type", "shape", "transpose_b")
        values = {**dict(zip(names, parameters, strict=False)), **named}
        shape = tuple([int(extent) for extent in values["shape"]])
        transposed = bool(values.get("transpose_b", False))
        return lambda: cls(scalar_format(values["out_type"]), scalar_format(values["in_type"]), shape, transposed)

    def __class_getitem__(cls, parameters: Any) -> Any:
        return cls.with_parameters(*parameters)

    def _load(self, operand: str, tile: Any, is_transposed: bool = False) -> SIMD:
        lane = current_machine("TensorCore").thread.lane
        rows, columns = (table[lane].tolist() for table in self._places[operand])
        pairs = zip(columns, rows, strict=True) if is_transposed else zip(rows, columns, strict=True)
        return as_vector(np.array([float(tile[row, column][0]) for row, column in pairs], dtype=np.float32))

    @brackets
    def load_a(self, parameters: tuple[Any, ...], a: Any, **named: Any) -> SIMD:
        """Return the lane's elements of a tile of A, M x K.

        >>> TensorCore.load_a.__class__.__name__
        'brackets'
        """
        return self._load("a", a)

    @brackets
    def load_b(self, parameters: tuple[Any, ...], b: Any, **named: Any) -> SIMD:
        """Return the lane's elements of a tile of B, K x N, or N x K if it is transposed.

        >>> TensorCore.load_b.__class__.__name__
        'brackets'
        """
        return self._load("b", b, self.transpose_b)

    def load_c(self, c: Any) -> SIMD:
        """Return the lane's elements of a tile of C, M x N.

        >>> TensorCore.load_c.__name__
        'load_c'
        """
        return self._load("c", c)

    def mma_op(self, a: SIMD, b: SIMD, c: SIMD) -> Suspension:
        """Return the lane's elements of A * B + C, of which all lanes hold a part.

        >>> TensorCore.mma_op.__name__
        'mma_op'
        """
        machine = current_machine("mma_op()")
        fragments = tuple([np.asarray(part) for part in (a, b, c)])
        return machine.suspend("warp", "mma_op", fragments, Collective("mma_op", self._multiply))

    mma = mma_op

    def _multiply(self, values: Mapping[int, Any], size: int) -> Answers:
        missing = next((lane for lane in range(_LANES) if lane not in values), None)
        depth = self.shape[2]
        operands = []
        for k, (name, shape) in enumerate((("a", (_M, depth)), ("b", (depth, _N)), ("c", (_M, _N)))):
            matrix = np.zeros(shape, dtype=np.float32)
            rows, columns = self._places[name]
            for lane, parts in values.items():
                matrix[rows[lane], columns[lane]] = parts[k]
            operands.append(matrix)
        product = operands[0] @ operands[1] + operands[2]
        rows, columns = self._places["c"]
        return {lane: (as_vector(product[rows[lane], columns[lane]]), missing) for lane in values}

    def store_d(self, d_dst: Any, d_src: SIMD) -> None:
        """Write the lane's elements of D to a tile.

        >>> TensorCore.store_d.__name__
        'store_d'
        """
        lane = current_machine("TensorCore").thread.lane
        rows, columns = (table[lane].tolist() for table in self._places["c"])
        for row, column, number in zip(rows, columns, np.asarray(d_src).tolist(), strict=True):
            d_dst[row, column] = number
