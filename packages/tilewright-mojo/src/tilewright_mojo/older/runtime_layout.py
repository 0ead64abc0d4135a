# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.runtime_layout`: a layout whose unknown extents and strides are given at run time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright.layout import Layout as NativeLayout
from tilewright.layout import as_tuple, col_major, leaves, nest_like, row_major
from tilewright.mojo import DType, ParametrizedMeta, brackets

from .layout import Layout, to_native
from .layout import coalesce as coalesce_static
from .layout import make_layout as make_static_layout
from .nested_integers import as_int_tree, of_tree
from .runtime_tuple import RuntimeTuple, RuntimeTupleType, crd2idx, idx2crd, product


def _strided(order: Any) -> Any:
    def create(owner: object, parameters: tuple[Any, ...], *extents: Any, shape: object = None) -> RuntimeLayout:
        extents = extents if shape is None else (*extents, shape)
        numbers = as_int_tree(extents[0] if len(extents) == 1 else extents)
        numbers = numbers if isinstance(numbers, tuple) else (numbers,)
        known = owner.layout if isinstance(owner, RuntimeLayoutType) else None
        if known is not None:
            numbers = nest_like(known.shape._tree, iter(leaves(numbers)))
        steps = as_int_tree(order(numbers).stride)
        if known is None:
            known = Layout(of_tree(numbers), of_tree(steps))
        return RuntimeLayout._of(known, numbers, steps)

    return create


class RuntimeLayout(metaclass=ParametrizedMeta):
    """A layout at run time: `layout` has the numbers known at compile time, `shape` and `stride` all of them.

    >>> known = Layout.row_major(-1, 8)
    >>> layout = RuntimeLayout[known].row_major((4, 8))
    >>> print(layout, layout.layout, layout.size(), layout(RuntimeTuple(2, 5)), layout.dim(0))
    ((4, 8):(8, 1)) ((-1, 8):(8, 1)) 32 21 4
    """

    __slots__ = ("layout", "shape", "stride")
    __bracketed__: ClassVar[tuple[str, ...]] = ("layout",)
    layout: Layout
    shape: RuntimeTuple
    stride: RuntimeTuple
    element_type: ClassVar[Any] = DType.int64
    linear_idx_type: ClassVar[Any] = DType.int64

    def __init__(self, shape: Any, stride: Any) -> None:
        trees = [as_int_tree(shape), as_int_tree(stride)]
        self.layout = Layout(getattr(shape, "S", of_tree(trees[0])), getattr(stride, "S", of_tree(trees[1])))
        self.shape, self.stride = (
            RuntimeTuple._of(known, tree)
            for known, tree in zip((self.layout.shape, self.layout.stride), trees, strict=True)
        )

    @classmethod
    def _with_parameters(cls, layout: Any = None, *_: Any, **__: Any) -> Any:
        """Return the type `RuntimeLayout[layout, element_type=..., linear_idx_type=...]`; integers have no width here.

        >>> print(RuntimeLayout.with_parameters(Layout.row_major(4, 8))())
        ((4, 8):(8, 1))
        """
        return cls if layout is None or layout is ... else RuntimeLayoutType(layout)

    @classmethod
    def _of(cls, layout: Layout, shape: object, stride: object) -> RuntimeLayout:
        result = object.__new__(cls)
        result.layout = layout
        result.shape, result.stride = RuntimeTuple._of(layout.shape, shape), RuntimeTuple._of(layout.stride, stride)
        return result

    row_major = staticmethod(brackets(_strided(row_major), None))
    col_major = staticmethod(brackets(_strided(col_major), None))

    @property
    def native(self) -> NativeLayout:
        """The layout of the library: numbers that are known only at run time are marked so.

        >>> RuntimeLayout[Layout.row_major(-1, 8)].row_major((4, 8)).native
        Layout((Idx(4), 8), (8, 1))
        """
        return to_native(self.layout, self.shape, self.stride)

    def __call__(self, *index: Any, idx: object = None) -> int:
        """Return the offset of a coordinate, which Mojo calls `idx`."""
        index = index if idx is None else (*index, idx)
        coordinate = index[0] if len(index) == 1 else index
        return crd2idx(coordinate, self.shape, self.stride)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the offsets, as for native layouts; NumPy would list the modes."""
        return self.native.__array__(dtype, copy)

    def idx2crd(self, idx: object, *_: Any) -> RuntimeTuple:
        """Return the coordinate at an index.

        >>> print(RuntimeLayout.row_major(4, 8).idx2crd(21))
        (2, 5)
        """
        return idx2crd(idx, self.shape, self.stride)

    def size(self) -> int:
        """Return the number of coordinates.

        >>> RuntimeLayout.row_major(4, 8).size()
        32
        """
        return product(self.shape)

    @brackets
    def cast(self, parameters: object, **_: Any) -> RuntimeLayout:
        """Return the same layout: its integers have no width.

        >>> print(RuntimeLayout.row_major(4, 8).cast())
        ((4, 8):(8, 1))
        """
        return self

    def _sublayout(self, parameters: tuple[Any, ...], *modes: Any) -> RuntimeLayout:
        (k,) = parameters or modes
        return RuntimeLayout._of(self.layout[k], self.shape[k].int_tree, self.stride[k].int_tree)

    @property
    def sublayout(self) -> brackets[RuntimeLayout]:
        """Return a mode: `layout.sublayout[1]()`.

        >>> print(RuntimeLayout.row_major(4, 8).sublayout[1]())
        (8:1)
        """
        return brackets(RuntimeLayout._sublayout, self)

    def dim(self, k: object) -> int:
        """Return the extent of a mode.

        >>> RuntimeLayout.row_major(4, 8).dim(0)
        4
        """
        return product(self.shape[k])

    def parametrized_type(self) -> RuntimeLayoutType:
        """Return the type of the layout.

        >>> print(RuntimeLayout.row_major(4, 8).parametrized_type().layout)
        ((4, 8):(8, 1))
        """
        return RuntimeLayoutType(self.layout)

    def rank(self) -> int:
        """Return the number of modes.

        >>> RuntimeLayout.row_major(4, 8).rank()
        2
        """
        return len(self.shape)

    __len__ = rank

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuntimeLayout) and (self.shape, self.stride) == (other.shape, other.stride)

    def __hash__(self) -> int:
        return hash((self.shape, self.stride))

    def __str__(self) -> str:
        return f"({self.shape}:{self.stride})"

    def __repr__(self) -> str:
        return f"RuntimeLayout({self.shape!r}, {self.stride!r})"


@dataclass(frozen=True, slots=True, repr=False)
class RuntimeLayoutType:
    """The type `RuntimeLayout[layout]`: called with a shape and strides; without, all must be known.

    >>> isinstance(RuntimeLayout[Layout.row_major(4, 8)](), RuntimeLayout[Layout.row_major(4, 8)])
    True
    """

    layout: Layout

    def __call__(self, shape: object = None, stride: object = None) -> RuntimeLayout:
        known = self.layout
        numbers = known.shape._tree if shape is None else nest_like(known.shape._tree, iter(leaves(as_int_tree(shape))))
        if stride is None:
            steps = known.stride._tree
        else:
            steps = nest_like(known.stride._tree, iter(leaves(as_int_tree(stride))))
        return RuntimeLayout._of(known, numbers, steps)

    @property
    def ShapeType(self) -> RuntimeTupleType:  # noqa: N802  (Mojo's name)
        """The type of the shape."""
        return RuntimeTupleType(self.layout.shape)

    @property
    def StrideType(self) -> RuntimeTupleType:  # noqa: N802
        """The type of the strides."""
        return RuntimeTupleType(self.layout.stride)

    @property
    def row_major(self) -> brackets[RuntimeLayout]:
        """Return the layout of a shape in row-major order: `RuntimeLayout[layout].row_major(shape)`."""
        return brackets(_strided(row_major), self)

    @property
    def col_major(self) -> brackets[RuntimeLayout]:
        """Return the layout of a shape in column-major order: `RuntimeLayout[layout].col_major(shape)`."""
        return brackets(_strided(col_major), self)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, RuntimeLayout) and value.layout == self.layout

    def __repr__(self) -> str:
        return f"RuntimeLayout[{self.layout!r}]"


def coalesce(layout: RuntimeLayout, keep_rank: bool = False) -> RuntimeLayout:
    """Return the layout with the modes merged that are known to continue each other.

    >>> print(coalesce(RuntimeLayout[Layout.row_major(-1, -1)].row_major((8, 1))))
    ((8, 1):(1, 1))
    """
    known = coalesce_static(layout.layout, keep_rank)
    pairs = zip(leaves(layout.shape.int_tree), leaves(layout.stride.int_tree), strict=True)
    pairs_left = [pair for n, pair in zip(leaves(layout.layout.shape._tree), pairs, strict=True) if n != 1]
    if len(leaves(known.shape._tree)) == len(pairs_left):  # only extents 1 were dropped
        shape, stride = (nest_like(known.shape._tree, iter(column)) for column in zip(*pairs_left, strict=True))
        return RuntimeLayout._of(known, shape, stride)
    actual = coalesce_static(Layout(of_tree(layout.shape.int_tree), of_tree(layout.stride.int_tree)))
    return RuntimeLayout(actual.shape, actual.stride)


def make_layout(*layouts: RuntimeLayout) -> RuntimeLayout:
    """Return a layout with other layouts as its modes.

    >>> print(make_layout(RuntimeLayout.row_major(2, 2), RuntimeLayout.row_major(4, 4)))
    (((2, 2), (4, 4)):((2, 1), (4, 1)))
    """
    known = make_static_layout(*[layout.layout for layout in layouts])
    shape, stride = (tuple([getattr(layout, name).int_tree for layout in layouts]) for name in ("shape", "stride"))
    return RuntimeLayout._of(known, shape, stride)


def clipped_layout(layout: Layout, native: Any, extents: tuple[int, ...]) -> RuntimeLayout:
    """Return the layout of a tensor at run time, with the extents of its valid part.

    >>> from tilewright import Layout as NativeLayout
    >>> print(clipped_layout(Layout.row_major(4, 4), NativeLayout((4, 4), (8, 1)), (2, 4)))
    ((2, 4):(8, 1))
    """
    shape, stride = (as_int_tree(tree) for tree in (native.shape, native.stride))
    parts = [n if isinstance(n, tuple) else extent for n, extent in zip(as_tuple(shape), extents, strict=True)]
    return RuntimeLayout._of(layout, tuple(parts) if isinstance(shape, tuple) else parts[0], stride)
