# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.complex`: complex numbers and vectors of them."""

from __future__ import annotations

from typing import Any, ClassVar

from ..simd import SIMD, SIMDType, scalar_format
from .math import fma, sqrt

__all__ = ["ComplexFloat32", "ComplexFloat64", "ComplexSIMD", "ComplexScalar"]


class _ComplexMeta(type):
    """`ComplexSIMD[dtype, size]` is the type of such numbers."""

    def __getitem__(cls, parameters: Any) -> Any:
        dtype, size = parameters if isinstance(parameters, tuple) else (parameters, 1)
        kind = SIMDType(scalar_format(dtype), int(size))
        return lambda re, im=0: ComplexSIMD(kind(re), kind(im))


class ComplexSIMD(metaclass=_ComplexMeta):
    """Complex numbers: `re` and `im` are vectors, or scalars, of one type.

    >>> print(ComplexSIMD["float32", 1](1, 2) * ComplexSIMD["float32", 1](0, 1))
    -2.0 + 1.0i
    """

    __slots__ = ("im", "re")
    __bracketed__: ClassVar[tuple[str, ...]] = ("dtype", "size")

    def __init__(self, re: Any, im: Any = 0) -> None:
        self.re, self.im = re, im

    @property
    def dtype(self) -> Any:
        """Return the number type.

        >>> ComplexSIMD["float32", 1](1, 2).dtype
        DType.float32
        """
        return self.re.dtype

    @property
    def size(self) -> int:
        """Return how many numbers there are.

        >>> ComplexSIMD["float32", 4](1, 2).size
        4
        """
        return int(self.re.size)

    def _parts(self, other: Any) -> tuple[Any, Any]:
        return (other.re, other.im) if isinstance(other, ComplexSIMD) else (other, 0)

    def __add__(self, other: Any) -> ComplexSIMD:
        re, im = self._parts(other)
        return ComplexSIMD(self.re + re, self.im + im)

    def __sub__(self, other: Any) -> ComplexSIMD:
        re, im = self._parts(other)
        return ComplexSIMD(self.re - re, self.im - im)

    def __mul__(self, other: Any) -> ComplexSIMD:
        re, im = self._parts(other)
        return ComplexSIMD(self.re * re - self.im * im, self.re * im + self.im * re)

    def __truediv__(self, other: Any) -> ComplexSIMD:
        re, im = self._parts(other)
        square = re * re + im * im
        return ComplexSIMD((self.re * re + self.im * im) / square, (self.im * re - self.re * im) / square)

    def __neg__(self) -> ComplexSIMD:
        return ComplexSIMD(-self.re, -self.im)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComplexSIMD) and self.re == other.re and self.im == other.im

    __hash__ = None  # type: ignore[assignment]

    def conj(self) -> ComplexSIMD:
        """Return the conjugate.

        >>> print(ComplexSIMD["float32", 1](1, 2).conj())
        1.0 - 2.0i
        """
        return ComplexSIMD(self.re, -self.im)

    def squared_norm(self) -> Any:
        """Return the square of the absolute value.

        >>> ComplexSIMD["float32", 1](3, 4).squared_norm()
        Float32(25.0)
        """
        return fma(self.re, self.re, self.im * self.im)

    def norm(self) -> Any:
        """Return the absolute value.

        >>> ComplexSIMD["float32", 1](3, 4).norm()
        Float32(5.0)
        """
        return sqrt(self.squared_norm())

    def squared_add(self, c: ComplexSIMD) -> ComplexSIMD:
        """Return self * self + c.

        >>> print(ComplexSIMD["float32", 1](0, 1).squared_add(ComplexSIMD["float32", 1](2, 0)))
        1.0 + 0.0i
        """
        return self * self + c

    def __str__(self) -> str:
        if isinstance(self.re, SIMD) and self.re.size > 1:
            return f"[{', '.join(str(ComplexSIMD(re, im)) for re, im in zip(self.re, self.im, strict=True))}]"
        is_negative = str(self.im).startswith("-")
        return f"{self.re} {'-' if is_negative else '+'} {-self.im if is_negative else self.im}i"


class _ComplexScalar:
    """`ComplexScalar[dtype](re, im)`: one complex number.

    >>> print(ComplexScalar["float32"](1, 2))
    1.0 + 2.0i
    """

    def __getitem__(self, dtype: Any) -> Any:
        return ComplexSIMD[dtype, 1]


ComplexScalar = _ComplexScalar()
ComplexFloat32, ComplexFloat64 = ComplexScalar["float32"], ComplexScalar["float64"]
