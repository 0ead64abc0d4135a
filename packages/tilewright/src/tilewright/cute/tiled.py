# SPDX-License-Identifier: Apache-2.0
"""CuTe's tiled instructions: how atoms are repeated over threads and values, and which elements each thread has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

from ..analysis import CopyAtom, MatrixAtom, atoms
from ..errors import LayoutError
from ..layout import (
    Coordinate,
    Layout,
    LayoutArgument,
    LayoutLike,
    Nested,
    ShapeArgument,
    Swizzle,
    as_integer,
    as_tree,
    as_tuple,
    coalesce,
    compose,
    join,
    product,
    require_strided,
    right_inverse,
)
from ..layout import Layout as NativeLayout
from ..tensor import Storage, TileTensor
from .algebra import logical_divide, raked_product, tiled_product, zipped_divide
from .layout import from_native, make_identity_layout, slice_and_offset
from .queries import upcast

__all__ = [
    "ThreadMma", "TiledCopy", "TiledMma", "inner_partition", "local_partition", "local_tile", "make_identity_tensor",
    "make_tensor", "make_tiled_copy", "make_tiled_mma", "outer_partition",
]  # fmt: skip

_OPERAND_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}  # of M, N and K

Part = TypeVar("Part", LayoutLike, TileTensor)  # a layout has a layout as its part, and a tensor a tensor
Projection: TypeAlias = "ShapeArgument | tuple[Projection, ...] | None"  # None leaves a mode out
Permutations: TypeAlias = "LayoutArgument | tuple[LayoutArgument | None, ...]"


def _partition(target: Part, divide: Callable[[LayoutLike], LayoutLike], coord: Coordinate) -> Part:
    """Return the part of a divided layout or tensor that a coordinate selects."""
    whole: Any = target
    part, offset = slice_and_offset(coord, divide(whole.layout if isinstance(whole, TileTensor) else whole))
    selected = part + offset if offset else part
    return cast(Part, whole.reshape(selected, allow_resize=True) if isinstance(whole, TileTensor) else selected)


def _compose_first(layout: LayoutLike, inner: Layout) -> Any:
    """Return a layout whose first mode was composed with another one."""
    return compose(layout, (inner, None))


@dataclass(frozen=True)
class TiledMma:
    """A matrix instruction that is repeated over M, N and K by further threads; `permutations` reorder each of them.

    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", Layout((2, 2, 1)))
    >>> mma.threads, mma.tile_shape
    (128, (32, 16, 16))
    """

    atom: MatrixAtom
    atom_layout: Layout
    permutations: tuple[Any, Any, Any] = (None, None, None)

    @property
    def thread_layout(self) -> LayoutLike:
        """The layout of threads: (thread of the atom, M, N, K).

        >>> print(make_tiled_mma("SM80_16x8x8_F32F16F16F32_TN", Layout((2, 2, 1))).thread_layout)
        (32,2,2,1):(1,32,64,128)
        """
        return tiled_product(self.atom.lanes, self.atom_layout)

    @property
    def threads(self) -> int:
        """The number of threads that take part."""
        return int(self.thread_layout.size)

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """The extents of M, N and K that all threads cover at once."""
        counts = [product(extent) for extent in as_tuple(self.thread_layout.shape)[1:]]
        sizes = [extent * count for extent, count in zip(self.atom.shape, counts, strict=True)]
        return tuple(
            [
                size if order is None else max(size, product(order) if isinstance(order, int) else int(order.size))
                for size, order in zip(sizes, self.permutations, strict=True)
            ]
        )

    def _divide(self, layout: LayoutLike, operand: str) -> Any:
        """Return ((thread of the atom, (threads)), (values, (rests))) of an operand."""
        modes = _OPERAND_MODES[operand]
        tile = tuple([self.permutations[k] for k in modes])
        permuted = layout if tile == (None, None) else logical_divide(layout, tile)
        shape = tuple([Layout(self.atom.shape[k]) for k in modes])
        within = _compose_first(zipped_divide(permuted, shape), self.atom.operand(operand)[0])
        counts = [product(extent) for extent in as_tuple(self.thread_layout.shape)[1:]]
        rests = [logical_divide(within.mode(1).mode(j), counts[k]) for j, k in enumerate(modes)]
        threads = join(within.mode(0).mode(0), join(*[rest.mode(0) for rest in rests]))
        values = join(within.mode(0).mode(1), join(*[rest.mode(1) for rest in rests]))
        return join(threads, values)

    def _coordinate(self, thread: int, operand: str) -> tuple[Any, ...]:
        flat = _thread_coordinate(self.thread_layout, thread)
        return flat[0], tuple([flat[1 + k] for k in _OPERAND_MODES[operand]])

    def _partition(self, target: Part, thread: int, operand: str) -> Part:
        def divide(layout: LayoutLike) -> Any:
            return self._divide(layout, operand)

        return _partition(target, divide, (self._coordinate(thread, operand), (None, (None, None))))

    def partition_A(self, target: Part, thread: int) -> Part:  # noqa: N802  (CuTe's name)
        """Return the share of `thread` in operand A, `target`, of M x K: (values, rest of M, rest of K).

        >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", Layout((2, 2, 1)))
        >>> print(mma.partition_A(Layout((64, 32)), 0))
        ((2,2,2),2,2):((64,8,512),32,1024)
        """
        return self._partition(target, thread, "A")

    def partition_B(self, target: Part, thread: int) -> Part:  # noqa: N802  (CuTe's name)
        """Return the share of `thread` in operand B, `target`, of N x K: (values, rest of N, rest of K).

        >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", Layout((2, 2, 1)))
        >>> print(mma.partition_B(Layout((32, 32)), 0))
        ((2,2),2,2):((32,256),16,512)
        """
        return self._partition(target, thread, "B")

    def partition_C(self, target: Part, thread: int) -> Part:  # noqa: N802  (CuTe's name)
        """Return the share of `thread` in operand C, `target`, of M x N: (values, rest of M, rest of N).

        >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", Layout((2, 2, 1)))
        >>> print(mma.partition_C(Layout((64, 32)), 5))
        ((2,2),2,2):((64,8),32,1024)+129
        """
        return self._partition(target, thread, "C")

    def get_slice(self, thread: int) -> ThreadMma:
        """Return the partitions of one thread: CuTe's `get_slice(thread)`.

        >>> thread = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN").get_slice(3)
        >>> print(thread.partition_C(Layout((16, 8))))
        ((2,2),1,1):((16,8),0,0)+96
        """
        return ThreadMma(self, thread)

    get_thread_slice = get_slice

    def layout_tv(self, operand: str) -> Layout:
        """Return the layout of an operand over all threads and their values, in one tile: CuTe's `get_layoutC_TV`.

        >>> print(make_tiled_mma("SM80_8x8x4_F64F64F64F64_TN", Layout((1, 2, 1))).layout_tv("C"))
        (((4,8),(1,2)),(2,(1,1))):(((16,1),(0,64)),(8,(0,0)))
        """
        self.atom.operand(operand)  # refuses other names
        shape = tuple([self.tile_shape[k] for k in _OPERAND_MODES[operand.upper()]])
        return from_native(self._divide(Layout(shape), operand.upper()))


@dataclass(frozen=True)
class ThreadMma:
    """One thread of a tiled matrix instruction.

    >>> thread = ThreadMma(make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN"), 0)
    >>> thread.thread
    0
    """

    mma: TiledMma
    thread: int

    def partition_A(self, target: Part) -> Part:  # noqa: N802  (CuTe's name)
        """Return the thread's part of operand A, `target`."""
        return self.mma.partition_A(target, self.thread)

    def partition_B(self, target: Part) -> Part:  # noqa: N802  (CuTe's name)
        """Return the thread's part of operand B, `target`."""
        return self.mma.partition_B(target, self.thread)

    def partition_C(self, target: Part) -> Part:  # noqa: N802  (CuTe's name)
        """Return the thread's part of operand C, `target`."""
        return self.mma.partition_C(target, self.thread)


def _thread_coordinate(layout: LayoutLike, thread: int) -> tuple[int, ...]:
    """Return the (V, M, N, K) of a thread, by its number in a layout of threads, which may skip some."""
    for index in range(int(layout.size)):
        if int(layout(index)) == thread:
            digits = []
            for extent in [product(part) for part in as_tuple(layout.shape)]:
                index, digit = divmod(index, extent)
                digits.append(digit)
            return tuple(digits)
    raise LayoutError(f"thread {thread} is not one of {int(layout.size)}, which have the numbers {layout}")


def make_tiled_mma(
    atom: str | MatrixAtom, atom_layout: LayoutArgument | None = None, permutations: Permutations | None = None
) -> TiledMma:
    """Return a matrix instruction repeated by an `atom_layout` of (M, N, K), with `permutations` of each, or None.

    `atom` is one of `tw.atoms`, or its name.

    >>> make_tiled_mma("SM70_8x8x4_F32F16F16F32_NT", Layout((2, 2)), (32, 32, 4)).tile_shape
    (32, 32, 4)
    """
    instruction = atoms[atom] if isinstance(atom, str) else atom
    if not isinstance(instruction, MatrixAtom):
        raise LayoutError(f"{instruction} is not a matrix instruction")
    layout = Layout((1, 1, 1)) if atom_layout is None else _as_layout(atom_layout)
    missing = 3 - int(layout.rank)
    if missing < 0 or layout.size == 0:
        raise LayoutError(f"atoms are repeated over M, N and K by a layout of up to three modes, got {layout}")
    if missing > 0:
        layout = Layout((*as_tuple(layout.shape), *[1] * missing), (*as_tuple(layout.stride), *[0] * missing))
    orders = (None,) * 3 if permutations is None else as_tuple(as_tree(permutations))
    orders = (*orders, *[None] * (3 - len(orders)))
    for axis, order, extent, mode in zip("MNK", orders, instruction.shape, layout.shape, strict=True):
        size = extent * product(mode)
        if order is not None and (_as_layout(order).size % size or not _as_layout(order).size):
            raise LayoutError(
                f"the tile along {axis} must be an exact multiple of {size}, got {_as_layout(order).size}"
            )
    return TiledMma(instruction, layout, orders)


@dataclass(frozen=True)
class TiledCopy:
    """A copy instruction that is repeated over threads and values: `layout_tv` maps both to a tile of shape `tiler`.

    >>> copy = make_tiled_copy("UniversalCopy<uint128_t>", 32, Layout((32, 8), (8, 1)), Layout((1, 4)))
    >>> copy.tiler, copy.threads
    ((32, 32), 256)
    """

    atom: CopyAtom
    bits: int
    layout_tv: Layout
    tiler: tuple[int, ...]

    @property
    def threads(self) -> int:
        """The number of threads that take part."""
        return int(self.layout_tv.mode(0).size)

    def _divide(self, layout: LayoutLike, side: Layout) -> Any:
        """Return (threads, values, rests) of a layout, as one side of the copy sees it."""
        reference = upcast(_reference(self.atom), self.bits)
        own = upcast(from_native(side), self.bits)
        threads, values = int(reference.mode(0).size), int(reference.mode(1).size)
        atom_tv = zipped_divide(self.layout_tv, (threads, values))
        inverse = right_inverse(reference)
        seen = _compose_first(
            atom_tv, require_strided(compose(inverse, own), "a copy")
        )  # ((thread, value), (further threads, further values))
        whole = _zip_modes(seen)
        tiled = zipped_divide(layout, self.tiler)
        return compose(tiled, (whole, None))

    def _partition(self, target: Part, thread: int, side: Layout) -> Part:
        def divide(layout: LayoutLike) -> Any:
            return self._divide(layout, side)

        if not 0 <= as_integer(thread, "a thread") < self.threads:
            raise LayoutError(f"thread {thread} is not one of {self.threads}")
        rests = (None,) * len(self.tiler)
        return _partition(target, divide, ((thread, None), rests))

    def partition_S(self, target: Part, thread: int) -> Part:  # noqa: N802  (CuTe's name)
        """Return the part of a layout or tensor, `target`, that `thread` reads: (values, rest, rest, ...).

        >>> copy = make_tiled_copy("UniversalCopy<uint128_t>", 32, Layout((32, 8), (8, 1)), Layout((1, 4)))
        >>> print(copy.partition_S(Layout((64, 64), (64, 1)), 9))
        ((4,1),2,2):((1,0),2048,32)+68
        """
        return self._partition(target, thread, self.atom.source)

    def partition_D(self, target: Part, thread: int) -> Part:  # noqa: N802  (CuTe's name)
        """Return the part of a layout or tensor, `target`, that `thread` writes: (values, rest, rest, ...).

        >>> copy = make_tiled_copy("UniversalCopy<uint32_t>", 32, Layout((4, 8), (8, 1)))
        >>> print(copy.partition_D(Layout((8, 8), (8, 1)), 9))
        ((1,1),2,1):((0,0),32,0)+9
        """
        return self._partition(target, thread, self.atom.target)


def _zip_modes(layout: Layout) -> Layout:
    """Return ((a, c), (b, d)) of ((a, b), (c, d)), with each of the two modes coalesced where it can be."""
    first, second = layout.mode(0), layout.mode(1)
    modes = []
    for k in (0, 1):
        shape = (first.mode(k).shape, second.mode(k).shape)
        stride = (first.mode(k).stride, second.mode(k).stride)
        modes.append(Layout(shape, stride))
    threads = coalesce(modes[0])
    return Layout((threads.shape, modes[1].shape), (threads.stride, modes[1].stride))


def make_tiled_copy(
    atom: str | CopyAtom, bits: int, threads: LayoutArgument, values: LayoutArgument | None = None
) -> TiledCopy:
    """Return a copy of elements of `bits`, over a layout of `threads` and of each thread's `values`.

    `atom` is one of `tw.atoms`, or its name.

    >>> print(make_tiled_copy("UniversalCopy<uint32_t>", 32, Layout((4, 8), (8, 1)), Layout((2, 1))).layout_tv)
    ((8,4),2):((8,2),1)
    """
    instruction = atoms[atom] if isinstance(atom, str) else atom
    if not isinstance(instruction, CopyAtom):
        raise LayoutError(f"{instruction} is not a copy instruction")
    thread_layout = _as_layout(threads)
    value_layout = Layout((1,) * int(thread_layout.rank)) if values is None else _as_layout(values)
    raked = raked_product(thread_layout, value_layout)
    taken = compose(right_inverse(raked), Layout((int(thread_layout.size), int(value_layout.size))))
    layout_tv = from_native(require_strided(taken, "a copy"))
    tiler = tuple([int(raked.mode(k).size) for k in range(int(raked.rank))])
    copy = TiledCopy(instruction, as_integer(bits, "bits"), layout_tv, tiler)
    _check_atom_fits(copy)
    return copy


def _check_atom_fits(copy: TiledCopy) -> None:
    """Raise if threads, values or bits are not multiples of what one instruction takes."""
    atom, (threads, values) = copy.atom, [int(copy.layout_tv.mode(k).size) for k in (0, 1)]
    size = int(atom.source.mode(1).size)
    if copy.bits < 1 or size % copy.bits:
        raise LayoutError(f"{atom.name} copies {size} bits per thread, which is not a multiple of {copy.bits}")
    if threads % atom.threads or values % (int(_reference(atom).mode(1).size) // copy.bits):
        needed = f"{atom.threads} threads with {int(_reference(atom).mode(1).size) // copy.bits} values"
        raise LayoutError(f"{atom.name} needs {needed}, or multiples, got {threads} threads with {values} values")


def _reference(atom: CopyAtom) -> Layout:
    """Return the side of a copy that its threads and values number: the registers of a matrix instruction."""
    return from_native(atom.target if "LDSM" in atom.name else atom.source)


def _as_layout(value: LayoutArgument) -> Any:
    return value if isinstance(value, (LayoutLike, Swizzle)) else Layout(value)


# CuTe's `local_tile` and `local_partition`, of layouts and of tensors.


def make_tensor(storage: Storage, layout: LayoutLike | None = None) -> TileTensor:
    """Return a view of `storage` through `layout`.

    >>> from tilewright import cute
    >>> int(make_tensor(list(range(8)), cute.Layout((2, 4), (4, 1)))[1, 2])
    6
    """
    return TileTensor(storage, layout)


def local_tile(tensor: Part, tiler: ShapeArgument, coord: Coordinate, proj: Projection = None) -> Part:
    """Return the tile at `coord` of the grid of tiles of a tensor or layout.

    With `proj`, such as `(1, None, 1)`, only the entries of `tiler` and `coord` where it is not None are used. For a
    layout, None in `coord` keeps that mode of the grid.

    >>> from tilewright import cute
    >>> t = make_tensor(list(range(32)), cute.Layout((4, 8), (8, 1)))
    >>> local_tile(t, (2, 4), (1, 1)).to_numpy().tolist()
    [[20, 21, 22, 23], [28, 29, 30, 31]]
    >>> print(local_tile(cute.Layout((4, 8), (8, 1)), (2, 4), (1, None)))
    ((2,4),2):((8,1),4)
    """
    sizes, position = _project(tiler, proj), _project(coord, proj)
    whole: Any = tensor
    is_layout = isinstance(whole, NativeLayout)
    return cast(Part, zipped_divide(whole, sizes)(None, position) if is_layout else whole.tile[sizes](*position))


def local_partition(tensor: TileTensor, threads: NativeLayout, index: int, proj: Projection = None) -> TileTensor:
    """Return the share of thread `index` in `tensor`: every n-th element of each mode, n from the extents of `threads`.

    With `proj`, only the modes of `threads` where it is not None are used.

    >>> from tilewright import cute
    >>> t = make_tensor(list(range(32)), cute.Layout((4, 8), (8, 1)))
    >>> local_partition(t, cute.Layout((2, 4), (4, 1)), 5).to_numpy().tolist()
    [[9, 13], [25, 29]]
    """
    if proj is not None:
        threads = NativeLayout(_project(threads.shape, proj), _project(threads.stride, proj))
    return tensor.distribute[threads](index)


def make_identity_tensor(shape: ShapeArgument) -> Layout:
    """Return the tensor whose elements are their own coordinates in `shape`: a layout over basis strides.

    >>> make_identity_tensor((4, 8))(2, 5)
    (2, 5)
    """
    return make_identity_layout(shape)


def inner_partition(tensor: Part, tiler: ShapeArgument, coord: Coordinate) -> Part:
    """Return the tile of extents `tiler` at `coord` of a `tensor` or layout, as `local_tile` does.

    >>> from tilewright import cute
    >>> print(inner_partition(cute.Layout((4, 8), (8, 1)), (2, 4), (1, 1)))
    ((2,4)):((8,1))
    """
    return local_tile(tensor, tiler, coord)


def outer_partition(layout: NativeLayout, tiler: ShapeArgument, coord: Coordinate) -> LayoutLike:
    """Return the grid of tiles of extents `tiler` of a layout, at one `coord` inside the tile: the share of one thread.

    >>> from tilewright import cute
    >>> print(outer_partition(cute.Layout((4, 8), (8, 1)), (2, 4), (1, 1)))
    ((2,2)):((16,4))
    """
    grid: LayoutLike = zipped_divide(layout, as_tuple(tiler))(as_tuple(coord), None)
    return grid


def _project(entries: Nested[object], proj: Projection) -> tuple[Any, ...]:
    """Return the entries where `proj` is not None."""
    values = as_tuple(entries)
    return (
        values
        if proj is None
        else tuple([v for v, keep in zip(values, as_tuple(proj), strict=True) if keep is not None])
    )
