# SPDX-License-Identifier: Apache-2.0
"""Matrix and copy instructions: which thread holds which element of which operand.

An operand is a layout from (thread, value) to a column-major offset: A has m + k * M, B has n + k * N and C has
m + n * M. The layouts follow from a few rules; the tables list the existing instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .._text import format_extents, suggest
from ..display import Drawable
from ..errors import LayoutError
from ..layout import Layout

_BITS = {
    **dict.fromkeys(("F64", "C64"), 64),
    **dict.fromkeys(("F32", "TF32", "S32"), 32),
    **dict.fromkeys(("F16", "BF16"), 16),
    **dict.fromkeys(("S8", "U8", "E4M3", "E5M2"), 8),
    **dict.fromkeys(("S4", "U4"), 4),
    "U1": 1,
}


@dataclass(frozen=True)
class MatrixAtom(Drawable):
    """A matrix instruction: `shape` is (M, N, K), and `a`, `b`, `c` map threads and values to elements.

    `lanes` maps the threads of the layouts to lanes of the warp: the same, except for quad pairs of SM70.

    >>> atom = atoms["SM80_16x8x16_F32F16F16F32_TN"]
    >>> atom.shape, str(atom.a), atom.element("A", 5, 1)
    ((16, 8, 16), '((4,8),(2,2,2)):((32,1),(16,8,128))', (1, 3))
    """

    name: str
    shape: tuple[int, int, int]
    a: Layout
    b: Layout
    c: Layout
    lanes: Layout

    @property
    def threads(self) -> int:
        """The number of threads that run the instruction together."""
        return int(self.c.mode(0).size)

    def operand(self, name: str) -> tuple[Layout, tuple[int, int]]:
        """Return the layout and the extents of operand `name`: A is M x K, B is N x K, C is M x N."""
        m, n, k = self.shape
        operands = {"A": (self.a, (m, k)), "B": (self.b, (n, k)), "C": (self.c, (m, n))}
        if name.upper() not in operands:
            raise LayoutError(f"an operand is A, B or C, got {name!r}")
        return operands[name.upper()]

    def element(self, name: str, thread: int, value: int) -> tuple[int, int]:
        """Return the row and column of operand `name` that `thread` holds as its value number `value`."""
        layout, (rows, _) = self.operand(name)
        column, row = divmod(int(layout(thread, value)), rows)
        return row, column

    def table(self, name: str) -> str:
        """Return operand `name` as text: for each element the thread and the value that hold it.

        >>> print(atoms["SM80_8x8x4_F64F64F64F64_TN"].table("A").splitlines()[0])
        T0V0   T1V0   T2V0   T3V0
        """
        layout, (rows, columns) = self.operand(name)
        cells: dict[tuple[int, int], str] = {}
        for thread in range(int(layout.mode(0).size)):
            for value in range(int(layout.mode(1).size)):
                cells.setdefault(self.element(name, thread, value), f"T{thread}V{value}")
        width = max(map(len, cells.values()))
        lines = ["  ".join([cells.get((r, c), "-").ljust(width) for c in range(columns)]).rstrip() for r in range(rows)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.name}: A {self.a}, B {self.b}, C {self.c}"


@dataclass(frozen=True)
class CopyAtom:
    """A copy instruction, in bits: `source` and `target` map (thread, bit of its value) to a bit of the copied data.

    >>> load = atoms["SM75_U32x4_LDSM_N"]
    >>> load.source
    Layout((32, 128), (128, 1))
    """

    name: str
    source: Layout
    target: Layout

    @property
    def threads(self) -> int:
        """The number of threads that run the instruction together."""
        return int(self.source.mode(0).size)

    def __str__(self) -> str:
        return f"{self.name}: source {self.source}, target {self.target}"


def _mode(*pairs: tuple[int, int]) -> tuple[Any, Any]:
    """Return the extents and strides of a mode from (extent, stride) pairs, without modes of extent 1."""
    real = [pair for pair in pairs if pair[0] != 1]
    if not real:
        return 1, 0
    if len(real) == 1:
        return real[0]
    return tuple([extent for extent, _ in real]), tuple([stride for _, stride in real])


def _layout(thread: tuple[Any, Any], value: tuple[Any, Any]) -> Layout:
    return Layout((thread[0], value[0]), (thread[1], value[1]))


# NVIDIA.

_NVIDIA = re.compile(
    r"SM(?P<arch>\d+)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<types>(?:TF32|BF16|E\dM\d|[FSUC]\d+)+)"
    r"(?:_(?P<source>SS|RS|TS))?_(?P<major>[TNKM]{2})(?:_\w+)?"
)
_TYPE = re.compile(r"TF32|BF16|E\dM\d|[FSUC]\d+")


def _nvidia(name: str) -> MatrixAtom | None:
    match = _NVIDIA.fullmatch(name)
    if not match:
        return None
    m, n, k = int(match["m"]), int(match["n"]), int(match["k"])
    types = _TYPE.findall(match["types"])
    if match["source"]:
        return _warp_group(name, (m, n, k), types, match["source"])
    if len(types) != 4:
        return None
    if match["arch"] == "70":
        return _quad_pair(name, (m, n, k), types, match["major"])
    a, b = _BITS[types[1]], _BITS[types[2]]
    rows = _mode((4, 2 * m), (8, 1))
    c = _layout(rows, _mode((2, m), (m // 8, 8)))
    return MatrixAtom(name, (m, n, k), _fragment(m, k, a), _fragment(n, k, b), c, Layout(32))


def _fragment(rows: int, depth: int, bits: int) -> Layout:
    """Return an operand: a thread holds a register of neighbours along K, of every eighth row, then further ones."""
    run = max(1, 32 // bits)
    return _layout(
        _mode((4, run * rows), (8, 1)), _mode((run, rows), (rows // 8, 8), (depth // (4 * run), 4 * run * rows))
    )


def _quad_pair(name: str, shape: tuple[int, int, int], types: list[str], major: str) -> MatrixAtom:
    m, n, _ = shape
    plain, swapped = Layout((8, 4), (1, 8)), Layout(((4, 2), 4), ((8, 4), 1))
    a = plain if major[0] == "T" else swapped
    b = plain if major[1] == "N" else swapped
    c = Layout((m, n), (1, m)) if types[0] == "F16" else Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))
    return MatrixAtom(name, shape, a, b, c, Layout((4, 2), (1, 16)))


def _warp_group(name: str, shape: tuple[int, int, int], types: list[str], source: str) -> MatrixAtom:
    m, n, k = shape
    run = max(1, 32 // _BITS[types[1]])
    shared_a, shared_b = Layout((128, (m, k)), (0, (1, m))), Layout((128, (n, k)), (0, (1, n)))
    registers = Layout(
        ((4, 8, 4), _mode((run, m), (2, 8), (k // (4 * run), 4 * run * m))[0]),
        ((run * m, 1, 16), _mode((run, m), (2, 8), (k // (4 * run), 4 * run * m))[1]),
    )
    c = Layout(((4, 8, 4), (2, 2, n // 8)), ((2 * m, 1, 16), (m, 8, 8 * m)))
    return MatrixAtom(name, shape, shared_a if source == "SS" else registers, shared_b, c, Layout(128))


# AMD.

_MFMA = re.compile(r"CDNA(?P<version>\d)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<type>\w+?)(?:_1k)?_MFMA")
_WMMA = re.compile(r"WMMA(?P<version>\d)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_(?P<type>\w+)")


def _amd(name: str) -> MatrixAtom | None:
    match = _MFMA.fullmatch(name)
    if match:
        return _mfma(name, int(match["m"]), int(match["n"]), int(match["k"]), match["type"])
    match = _WMMA.fullmatch(name)
    return _wmma(name, int(match["k"]), int(match["version"])) if match else None


def _mfma(name: str, m: int, n: int, k: int, dtype: str) -> MatrixAtom:
    groups = 64 // n  # of lanes that hold different rows of C, and different parts of K
    width = max(1, k * m // 64)
    a = _layout(_mode((m, 1), (64 // m, width * m)), _mode((width, m)))
    b = _layout(_mode((n, 1), (64 // n, width * n)), _mode((width, n)))
    run = 1 if dtype == "f64" else 4
    c = _layout(_mode((n, m), (groups, run)), _mode((run, 1), (m // (run * groups), run * groups)))
    if m * k == 64:
        a = Layout((64, 1), (1, 0))
    if n * k == 64:
        b = Layout((64, 1), (1, 0))
    return MatrixAtom(name, (m, n, k), a, b, c, Layout(64))


def _wmma(name: str, k: int, version: int) -> MatrixAtom:
    if version == 1:  # both halves of the wave hold the same operands, and every second row
        operand = Layout(((16, 2), k), ((1, 0), 16))
        c = Layout(((16, 2), 8), ((16, 1), 2))
    else:
        operand = Layout(((16, 2), k // 2), ((1, 8 * k), 16))
        c = Layout(((16, 2), 8), ((16, 8), 1))
    return MatrixAtom(name, (16, 16, k), operand, operand, c, Layout(32))


# Tenstorrent and Intel.


def _tensix(name: str) -> MatrixAtom | None:
    """Return Tenstorrent's matrix unit: tiles of 32 x 32, whose faces of 16 x 16 are stored one after the other."""
    if name != "TENSIX_32x32x32":
        return None
    # values run through a face row by row, through the faces from left to right, then down; B is stored as K x N
    rows = Layout((1, (16, 16, 2, 2)), (0, (32, 1, 512, 16)))
    columns = Layout((1, (16, 16, 2, 2)), (0, (1, 32, 16, 512)))
    return MatrixAtom(name, (32, 32, 32), rows, columns, rows, Layout(1))


def _amx(name: str) -> MatrixAtom | None:
    """Return a tile multiplication of AMX: rows of 64 bytes, B with groups of K in the bytes of a word."""
    match = re.fullmatch(
        r"AMX_16x16x(64|32)_(S32S8S8S32|S32U8U8S32|S32S8U8S32|S32U8S8S32|F32BF16BF16F32|F32F16F16F32)", name
    )
    if not match:
        return None
    k = int(match[1])
    group = k // 16
    a = Layout((1, (k, 16)), (0, (16, 1)))
    b = Layout((1, (group, 16, 16)), (0, (16, 1, group * 16)))
    c = Layout((1, (16, 16)), (0, (16, 1)))
    return MatrixAtom(name, (16, 16, k), a, b, c, Layout(1))


# Copies.

_LDSM = re.compile(r"SM75_U(?:32x([124])_LDSM_N|16x([248])_LDSM_T)")
_STSM = re.compile(r"SM90_U(?:32x([124])_STSM_N|16x([248])_STSM_T)")
# Copies by one thread, of an integer type: of any size, or asynchronous ones of 4, 8 or 16 bytes.
_THREAD_COPY = re.compile(
    r"(?:UniversalCopy<(?=\D*(?:8|16|32|64|128)_t)|SM80_CP_ASYNC_CACHE(?:ALWAYS|GLOBAL)(?:_ZFILL)?<(?=\D*(?:32|64|128)_t))"
    r"(?:cute::)?u?int(?P<bits>\d+)_t>",
    re.ASCII,
)


def _copy(name: str) -> CopyAtom | None:
    for pattern, is_load in ((_LDSM, True), (_STSM, False)):
        if match := pattern.fullmatch(name):
            matrices = int(match[1]) if match[1] else int(match[2]) // 2
            memory = _layout(_mode((8 * matrices, 128), (4 // matrices, 0)), (128, 1))
            registers = _matrix_registers(matrices, is_transposed=not match[1])
            return CopyAtom(name, memory, registers) if is_load else CopyAtom(name, registers, memory)
    if name == "SM75_U32x1_MOVM_T":
        return CopyAtom(name, Layout((32, 32), (32, 1)), Layout((32, 32), (32, 1)))
    if match := _THREAD_COPY.fullmatch(name):
        bits = int(match["bits"])
        return CopyAtom(name, Layout((1, bits), (0, 1)), Layout((1, bits), (0, 1)))
    return None


def _matrix_registers(matrices: int, is_transposed: bool) -> Layout:
    """Return the registers of 8 x 8 matrices of 16 bits: a thread holds two neighbours of a row, or of a column."""
    if is_transposed:
        return _layout(((4, 8), (256, 16)), _mode((16, 1), (2, 128), (matrices, 1024)))
    return _layout((32, 32), _mode((32, 1), (matrices, 1024)))


# The catalogue.

_RULES: tuple[Callable[[str], MatrixAtom | CopyAtom | None], ...] = (_nvidia, _amd, _tensix, _amx, _copy)
_INTEGERS = ("S32S8S8S32", "S32S8U8S32", "S32U8S8S32", "S32U8U8S32")
_NIBBLES = ("S32S4S4S32", "S32S4U4S32", "S32U4S4S32", "S32U4U4S32")


def _names() -> Iterator[str]:
    """Yield the names of the instructions, as CuTe and Triton have them."""
    for types in ("F16F16F16F16", "F32F16F16F32"):
        yield from [f"SM70_8x8x4_{types}_{major}" for major in ("TN", "NT", "NN", "TT")]
    yield from ["SM75_16x8x8_F16F16F16F16_TN", "SM75_16x8x8_F32F16F16F32_TN", "SM75_8x8x16_S32S8S8S32_TN"]
    for k in (8, 16):
        yield from [f"SM80_16x8x{k}_{types}_TN" for types in ("F16F16F16F16", "F32F16F16F32", "F32BF16BF16F32")]
    yield from [f"SM80_16x8x{k}_F32TF32TF32F32_TN" for k in (4, 8)]
    yield from ["SM80_8x8x4_F64F64F64F64_TN", "SM80_8x8x4_C64C64C64C64_TN"]
    for shape, operands in (
        ("8x8x16", _INTEGERS), ("16x8x16", _INTEGERS), ("16x8x32", _INTEGERS),
        ("8x8x32", _NIBBLES), ("16x8x32", _NIBBLES), ("16x8x64", _NIBBLES),
    ):  # fmt: skip
        yield from [f"SM80_{shape}_{types}_TN{end}" for types in operands for end in ("", "_SATURATE")]
    for shape in ("8x8x128", "16x8x128", "16x8x256"):
        yield from [f"SM80_{shape}_S32U1U1S32_TN_{operation}" for operation in ("XORPOPC", "ANDPOPC")]
    for out in ("F32", "F16"):
        yield from [f"SM89_16x8x32_{out}{a}{b}{out}_TN" for a in ("E4M3", "E5M2") for b in ("E4M3", "E5M2")]
    yield from [f"SM90_16x8x{k}_F64F64F64F64_TN" for k in (4, 8, 16)]
    for n in range(8, 257, 8):
        for source in ("SS", "RS"):
            yield from [f"SM90_64x{n}x16_{types}_{source}_KK" for types in ("F16F16F16", "F32F16F16", "F32BF16BF16")]
            yield f"SM90_64x{n}x8_F32TF32TF32_{source}_TN"
            yield from [f"SM90_64x{n}x32_F32{a}{b}_{source}_TN" for a in ("E4M3", "E5M2") for b in ("E4M3", "E5M2")]
            yield from [f"SM90_64x{n}x32_S32{a}{b}_{source}_TN" for a in ("S8", "U8") for b in ("S8", "U8")]
    for version in (1, 2, 3, 4):
        yield from [f"CDNA{version}_{shape}_MFMA" for shape in _MFMA_SHAPES[version]]
    yield from [f"WMMA{version}_16x16x16_{dtype}" for version in (1, 2) for dtype in ("f16", "bf16", "iu8", "iu4")]
    yield from [
        "WMMA3_16x16x32_f16",
        "WMMA3_16x16x32_bf16",
        "WMMA3_16x16x64_fp8",
        "WMMA3_16x16x64_i8",
        "WMMA3_16x16x4_f32",
    ]
    yield "TENSIX_32x32x32"
    yield from [f"AMX_16x16x64_{types}" for types in _INTEGERS]
    yield from ["AMX_16x16x32_F32BF16BF16F32", "AMX_16x16x32_F32F16F16F32"]
    for n in (1, 2, 4):
        yield from [
            f"SM75_U32x{n}_LDSM_N",
            f"SM75_U16x{2 * n}_LDSM_T",
            f"SM90_U32x{n}_STSM_N",
            f"SM90_U16x{2 * n}_STSM_T",
        ]
    yield "SM75_U32x1_MOVM_T"
    yield from [f"UniversalCopy<uint{bits}_t>" for bits in (8, 16, 32, 64, 128)]
    for cache in ("ALWAYS", "GLOBAL"):
        yield from [f"SM80_CP_ASYNC_CACHE{cache}<uint{bits}_t>" for bits in (32, 64, 128)]


_MFMA_SHAPES = {
    1: (
        *("32x32x2_f32", "16x16x4_f32", "32x32x8_f16", "16x16x16_f16"),
        *("32x32x4_bf16", "16x16x8_bf16", "32x32x8_i8", "16x16x16_i8"),
    ),
    2: ("32x32x8_bf16_1k", "16x16x16_bf16_1k", "16x16x4_f64"),
    3: (
        *("32x32x8_f16", "16x16x16_f16", "32x32x8_bf16", "16x16x16_bf16", "32x32x16_i8", "16x16x32_i8"),
        *("32x32x16_fp8", "16x16x32_fp8", "32x32x2_f32", "16x16x4_f32", "16x16x4_f64"),
    ),
    4: (
        *("32x32x16_f16", "16x16x32_f16", "32x32x16_bf16", "16x16x32_bf16"),
        *("32x32x32_i8", "16x16x64_i8", "32x32x16_fp8", "16x16x32_fp8"),
    ),
}


class AtomCatalogue(Mapping[str, "MatrixAtom | CopyAtom"]):
    """The instructions by name: `atoms["SM80_16x8x16_F32F16F16F32_TN"]`; iteration gives all names.

    >>> len(atoms) > 900, "SM75_U32x4_LDSM_N" in atoms
    (True, True)
    """

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            remedy = suggest(name, self._known(), "list(tw.atoms) has all names")
            raise LayoutError(f"unknown instruction {name!r}; {remedy}")
        return _atom(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def __contains__(self, name: object) -> bool:
        # copies by one thread are the same for each spelling of an integer type; one is listed
        return name in self._known() or (isinstance(name, str) and _THREAD_COPY.fullmatch(name) is not None)

    def __repr__(self) -> str:
        return f"<{len(self)} matrix and copy instructions>"

    @staticmethod
    @lru_cache(maxsize=1)
    def _known() -> dict[str, None]:
        return dict.fromkeys(_names())


@lru_cache(maxsize=256)
def _atom(name: str) -> MatrixAtom | CopyAtom:
    return next(atom for atom in (rule(name) for rule in _RULES) if atom is not None)


atoms = AtomCatalogue()
"""All instructions, by name."""


# Whether the threads of a matrix instruction hold all elements of its operands, and how often.


@dataclass(frozen=True, slots=True)
class OperandCoverage:
    """The threads' share of an operand of `extents` elements: `values` each, with `missing` and `extra` ones.

    Elements are column-major offsets: `missing` ones no thread holds, `extra` ones are outside the operand. `copies` is
    how many (thread, value) pairs hold an element that another one also holds.

    >>> operand = OperandCoverage("A", (16, 16), 32, 8, (), (), 0)
    >>> print(operand, operand.is_exact)
    A 16 x 16: 32 threads with 8 values, each element once True
    """

    name: str
    extents: tuple[int, int]
    threads: int
    values: int
    missing: tuple[int, ...]
    extra: tuple[int, ...]
    copies: int

    @property
    def is_complete(self) -> bool:
        """Whether every element of the operand is held, and nothing else."""
        return not self.missing and not self.extra

    @property
    def is_exact(self) -> bool:
        """Whether every element of the operand is held exactly once, and nothing else."""
        return self.is_complete and not self.copies

    def __str__(self) -> str:
        problems = [f"{len(self.missing)} elements missing"] * bool(self.missing)
        problems += [f"{len(self.extra)} outside"] * bool(self.extra)
        if self.is_complete:
            problems = [f"{self.copies} held again" if self.copies else "each element once"]
        size = format_extents(self.extents)
        return f"{self.name} {size}: {self.threads} threads with {self.values} values, {', '.join(problems)}"


@dataclass(frozen=True, slots=True)
class AtomCoverage:
    """The elements of `a`, `b` and `c` that the threads of a matrix instruction hold.

    >>> from tilewright.analysis import atoms
    >>> coverage = atom_coverage(atoms["SM80_16x8x8_F32F16F16F32_TN"])
    >>> print(coverage)
    SM80_16x8x8_F32F16F16F32_TN: 16 x 8 x 8, 32 threads
      A 16 x 8: 32 threads with 4 values, each element once
      B 8 x 8: 32 threads with 2 values, each element once
      C 16 x 8: 32 threads with 4 values, each element once
    """

    atom: MatrixAtom
    a: OperandCoverage
    b: OperandCoverage
    c: OperandCoverage

    @property
    def is_complete(self) -> bool:
        """Whether the threads hold every element of all operands, and of C each exactly once."""
        return self.a.is_complete and self.b.is_complete and self.c.is_exact

    def __str__(self) -> str:
        shape = format_extents(self.atom.shape)
        return "\n  ".join(
            [f"{self.atom.name}: {shape}, {self.atom.threads} threads", *map(str, (self.a, self.b, self.c))]
        )


def atom_coverage(atom: MatrixAtom) -> AtomCoverage:
    """Return the elements of each operand that the threads of a matrix instruction `atom`, known or new, hold.

    >>> from dataclasses import replace
    >>> from tilewright import Layout
    >>> from tilewright.analysis import atoms
    >>> atom = atoms["SM80_8x8x4_F64F64F64F64_TN"]
    >>> print(atom_coverage(replace(atom, a=Layout((32, 1), (2, 0)))).a)
    A 8 x 4: 32 threads with 1 values, 16 elements missing, 16 outside
    """
    if not isinstance(atom, MatrixAtom):
        raise LayoutError(f"expected a matrix instruction, such as atoms[name], got {type(atom).__name__}")
    return AtomCoverage(atom, *[_operand_coverage(atom, name) for name in "ABC"])


def _operand_coverage(atom: MatrixAtom, name: str) -> OperandCoverage:
    layout, extents = atom.operand(name)
    if layout.rank != 2:
        raise LayoutError(f"operand {name} of {atom.name} must map (thread, value), got {layout} of rank {layout.rank}")
    held = np.asarray(layout(np.arange(layout.size, dtype=np.int64))).reshape(-1)
    distinct, wanted = np.unique(held), np.arange(extents[0] * extents[1])
    return OperandCoverage(
        name,
        extents,
        int(layout.mode(0).size),
        int(layout.mode(1).size),
        tuple(np.setdiff1d(wanted, distinct).tolist()),
        tuple(np.setdiff1d(distinct, wanted).tolist()),
        held.size - distinct.size,
    )
