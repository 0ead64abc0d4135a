# SPDX-License-Identifier: Apache-2.0
"""`Layout`: a function from coordinates to places, given by a shape and strides that nest alike."""

from __future__ import annotations

from itertools import product as combinations
from typing import Any

from ..errors import CoordinateError, LayoutError
from . import bulk
from .admission import Replica, admit, admit_guard, admit_replica, check_span, plain_reach
from .axes import PLAIN, Axis, Place, axis_name
from .base import LayoutLike
from .coords import as_wide, is_array, leaf_coordinates, out_of_range
from .evaluation import ReadyMode, continued, ready_mode, ready_modes
from .guards import Guard, box_extents, live_guards
from .integers import Count, as_integer, is_dynamic
from .mojo import MojoNames
from .notation import format_signed, format_tree, parse_chain
from .selection import fixed_part, kept
from .static import StaticKnowledge
from .steps import along, check_step, merge_modes, span
from .tuples import leaves, map_leaves, product_each

# What a layout has beside shape and strides (offset, replicas, guards), for the usual layout that has nothing else.
_NOTHING_ELSE: tuple[Any, tuple[Replica, ...], tuple[Guard, ...]] = (0, (), ())


class Layout(StaticKnowledge, MojoNames, LayoutLike):
    """A function from coordinates to places: `Layout(shape, stride)` with nested tuples of any depth.

    Without strides the layout is compact and column-major, as in CuTe. A stride is an integer or a step along named
    axes, such as `2048 @ addr`. `offset` is added to every place; `replicas` are copies that exist at the same time;
    `guards` tell data from padding. Given layouts instead, it joins them as modes.

    `==` and `hash` compare everything that `repr` shows: padding, copies, the axes that places lie on, and which
    integers are dynamic. `functionally_equal` compares the functions instead, however they are written.

    >>> L = Layout((4, (2, 3)), (6, (3, 1)))
    >>> L(1, 4), L(1, (0, 2)), L(17)
    (8, 8, 8)
    >>> print(L, L.size, L.cosize)
    (4,(2,3)):(6,(3,1)) 24 24
    >>> L(2, None)
    Layout((2, 3), (3, 1), offset=12)
    """

    __slots__ = ("_axes", "_dynamic", "_flat", "_modes", "_program", "_rest", "_shape", "_stride")
    _shape: Any
    _stride: Any
    _rest: tuple[Any, tuple[Replica, ...], tuple[Guard, ...]]
    # worked out when first needed, and kept
    _axes: tuple[str, ...]
    _dynamic: tuple[int, ...]
    _flat: tuple[list[int], list[Any]]
    _modes: tuple[list[int], list[Any]]
    _program: tuple[list[ReadyMode], list[ReadyMode], bool]

    def __init__(
        self, shape: Any = (), stride: Any = None, offset: Any = 0, replicas: Any = (), guards: Any = ()
    ) -> None:
        if isinstance(shape, Layout):
            given = (shape, stride, offset, replicas, guards)
            shape, stride, offset, replicas, guards = joined_parts(
                tuple([part for k, part in enumerate(given) if part is not (None, None, 0, (), ())[k]])
            )
            check_span(shape, stride)
        elif not 0 <= plain_reach(shape, stride) < 2**63:
            shape, stride = admit(shape, stride)
        self._shape = shape
        self._stride = stride
        if offset.__class__ is int and not offset and not replicas and not guards:
            self._rest = _NOTHING_ELSE
            return
        if offset.__class__ is not int or offset:
            offset = check_step(offset, "offset")
            check_span(shape, stride, offset)
        copies = tuple([admit_replica(replica) for replica in replicas])
        if offset.__class__ is Place:
            offset = _canonical(offset, stride, copies)
        self._rest = (offset, copies, live_guards(shape, [admit_guard(guard, shape) for guard in guards]))

    @property
    def shape(self) -> Any:
        return self._shape

    @property
    def stride(self) -> Any:
        """Return the strides, nested like the shape.

        >>> Layout((4, 8)).stride
        (1, 4)
        """
        return self._stride

    @property
    def offset(self) -> Any:
        """Return the place of coordinate 0.

        >>> (Layout(4) + 5).offset
        5
        """
        return self._rest[0]

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """Return the copies that exist beside the first, as (count, step) pairs.

        >>> from tilewright import replicate, device
        >>> replicate(Layout(4), 2, 1 @ device).replicas
        ((2, Place(device=1)),)
        """
        return self._rest[1]

    @property
    def replicated(self) -> bool:
        return bool(self.replicas)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Return the bounds that tell data from padding; empty when all is data.

        >>> from tilewright import pad
        >>> pad(Layout(100), 128).guards
        (Guard(stride=1, limit=100, offset=0),)
        """
        return self._rest[2]

    @property
    def axes(self) -> tuple[str, ...]:
        """Return the names of the axes that the strides lie on, in order of first use.

        >>> from tilewright import addr, bank
        >>> Layout((12, 100), (1 @ bank, 2048 @ addr)).axes
        ('bank', 'addr')
        """
        try:
            return self._axes
        except AttributeError:
            steps = [*self.flat_modes()[1], *(step for _, step in self.replicas), self.offset]
            found = dict.fromkeys(name for step in steps if step.__class__ is Place for name in step.axes)
            self._axes = tuple(found)
            return self._axes

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Return the lowest and the highest place; over named axes, of each axis.

        >>> Layout((4, 8), (-1, 4)).bounds
        (-3, 28)
        """
        if self.size == 0:
            raise LayoutError(f"{self} is empty: it has no lowest and highest place")
        extents = leaves(self._shape) + [count for count, _ in self.replicas]
        steps = leaves(self._stride) + [step for _, step in self.replicas]
        names = self.axes
        if not names:
            return span(extents, steps, self.offset)
        ends = {name: span(extents, [along(step, name) for step in steps], along(self.offset, name)) for name in names}
        return Place({name: low for name, (low, _) in ends.items()}), Place(
            {name: high for name, (_, high) in ends.items()}
        )

    @property
    def cosize(self) -> Any:
        """Return the size of the smallest buffer that holds every place and place 0; over named axes, of each axis.

        >>> Layout((4, 8), (1, 5)).cosize, Layout(4, -1).cosize, (Layout(2) - 5).cosize
        (39, 4, 6)
        """
        if self.size == 0:
            return Count(0)
        low, high = self.bounds
        if isinstance(low, Place):
            return Place({name: max(high[name], 0) + 1 - min(low[name], 0) for name in low})
        return Count(max(high, 0) + 1 - min(low, 0))

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Return the layout that text describes: what `str` printed, nested and with named axes.

        >>> Layout.parse("(12,100):(1@bank,2048@addr)+5@bank")
        Layout((12, 100), (Place(bank=1), Place(addr=2048)), offset=Place(bank=5))
        """
        terms = parse_chain(text)
        if len(terms) != 1 or terms[0][0] != "layout":
            raise LayoutError(f"{text!r} is not a single layout; tilewright.parse reads compositions and swizzles")
        return layout_from_term(terms[0])

    def on(self, axis: Axis | str) -> Layout:
        """Return the coordinate along one axis, as a layout of plain integers.

        >>> from tilewright import addr, bank
        >>> Layout((12, 100), (1 @ bank, 2048 @ addr)).on(addr)
        Layout((12, 100), (0, 2048))
        """
        name = axis_name(axis)
        if name not in self.axes:
            raise LayoutError(f"{self} has no axis {name!r}; it has {', '.join(self.axes) or 'only plain strides'}")
        replicas = tuple([(count, along(step, name)) for count, step in self.replicas if along(step, name)])
        return self._with(
            stride=map_leaves(lambda step: along(step, name), self._stride),
            offset=along(self.offset, name),
            replicas=replicas,
        )

    def mode(self, *path: int) -> Layout:
        """Return one mode as a layout, without the offset; further numbers lead into nested modes.

        >>> Layout((4, (2, 3)), (6, (3, 1))).mode(1), Layout((4, (2, 3)), (6, (3, 1))).mode(1, 0)
        (Layout((2, 3), (3, 1)), Layout(2, 3))
        """
        if self.replicas:
            raise LayoutError(f"mode of {self}: its copies belong to all modes together; take the mode, then replicate")
        return self._mode(path)

    def _mode(self, path: tuple[int, ...]) -> Layout:
        """Return one mode, without the offset and the copies, which belong to the whole."""
        shape, stride = self._shape, self._stride
        guards = [(guard.stride, guard) for guard in self.guards]
        for k in path:
            modes = shape if shape.__class__ is tuple else (shape,)
            k = as_integer(k, "a mode number")
            if not -len(modes) <= k < len(modes):
                raise CoordinateError(f"{self} has no mode {path}: shape {shape} has modes 0 to {len(modes) - 1}")
            if shape.__class__ is tuple:
                shape, stride = shape[k], stride[k]
                guards = [(step[k], guard) for step, guard in guards]  # type: ignore[index]
        kept = [Guard(step, guard.limit, guard.offset) for step, guard in guards]
        return keep_axes(make(shape, stride, guards=live_guards(shape, kept)), self.axes)

    @property
    def modes(self) -> tuple[Layout, ...]:
        """Return all top-level modes as layouts.

        >>> Layout((4, 8)).modes
        (Layout(4, 1), Layout(8, 4))
        """
        return tuple([self.mode(k) for k in range(self.rank)])

    def __call__(self, *coord: Any) -> Any:
        try:
            program, flat, plain = self._program
        except AttributeError:
            modes, whole = ready_modes(self._shape, self._stride), ready_mode(*self.canonical_modes())
            program, flat, plain = self._program = modes, [whole], not self.axes and not self.replicas
        if len(coord) != len(program):
            if len(coord) != 1 or coord[0].__class__ is not int or not program:
                return LayoutLike.__call__(self, *coord)
            program = flat
        total = self._rest[0]
        for c, (size, inner, step) in zip(coord, program, strict=True):
            if c.__class__ is not int:
                return LayoutLike.__call__(self, *coord)
            if not 0 <= c < size:
                raise out_of_range(coord if len(coord) > 1 else c, self._shape)
            for n, d in inner:
                total = total + c % n * d
                c = c // n
            total = total + c * step
        if plain and total.__class__ is int:
            return total
        return self._finish(total)

    def _place(self, at: list[Any]) -> Any:
        total = self.offset
        for c, step in zip(at, leaves(self._stride), strict=True):
            total = total + c * step
        return self._finish(total)

    def _finish(self, total: Any) -> Any:
        """Return a place in its public form: an int, a Place with all axes of the layout, or the set of all copies."""
        names = self.axes
        if names:
            parts = total._parts if isinstance(total, Place) else {PLAIN: total} if is_array(total) or total else {}
            total = Place._of({**dict.fromkeys(names, 0), **parts})
        elif isinstance(total, int):
            total = int(total)
        if not self.replicas:
            return total
        if any(map(is_array, total._parts.values() if names else [total])):
            raise LayoutError(f"the places of {self} are sets, which no array holds; ask for one index at a time")
        steps = [[k * step for k in range(count)] for count, step in self.replicas]
        return frozenset(total + sum(chosen, 0) for chosen in combinations(*steps))

    def _slice(self, coord: Any) -> Layout:
        shape, stride = self._shape, self._stride
        try:
            offset = self.offset + fixed_part(coord, shape, stride)
        except IndexError as problem:
            raise CoordinateError(f"slice {coord} of shape {shape}: {problem}") from None
        kept_shape, kept_stride = kept(coord, shape), kept(coord, stride)
        guards = [
            Guard(kept(coord, guard.stride), guard.limit, guard.offset + fixed_part(coord, shape, guard.stride))
            for guard in self.guards
        ]
        return make(kept_shape, kept_stride, offset, self.replicas, live_guards(kept_shape, guards))

    def extended(self, *coord: Any) -> Any:
        at = self._coordinate(coord)
        return self._finish(self.offset + self._continued(at))

    def _continued(self, at: Any) -> Any:
        """Return the place of a coordinate relative to the offset; the outermost coalesced mode has no end."""
        if at.__class__ is tuple:
            modes = [self._mode((k,)) for k in range(self.rank)]
            if len(at) != len(modes):
                raise LayoutError(f"coordinate {at} does not fit shape {self._shape}: it takes {len(modes)} entries")
            return sum((mode._continued(part) for part, mode in zip(at, modes, strict=True)), 0)
        extents, steps = self.canonical_modes()
        if 0 in extents[:-1]:
            raise LayoutError(f"{self} is empty and has no place to continue from")
        if is_array(at):
            at = as_wide(at)
            bulk.check_reach(self, at)
            sign = 1 if (at >= 0).all() else 2 * (at >= 0) - 1
        else:
            at = at if hasattr(at, "free_symbols") else as_integer(at, "a coordinate")
            sign = -1 if isinstance(at, int) and at < 0 else 1
        return continued(extents, steps, at, sign)

    def flat_modes(self) -> tuple[list[int], list[Any]]:
        """Return extents and strides of all leaves; they are shared, not to be changed.

        >>> Layout((4, (2, 3))).flat_modes()
        ([4, 2, 3], [1, 4, 8])
        """
        try:
            return self._flat
        except AttributeError:
            self._flat = leaves(self._shape), leaves(self._stride)
            return self._flat

    def canonical_modes(self) -> tuple[list[int], list[Any]]:
        """Return extents and strides of the flattest form of the same function of the index; never empty.

        >>> Layout((2, (1, 6)), (1, (7, 2))).canonical_modes()
        ([12], [1])
        """
        try:
            return self._modes
        except AttributeError:
            extents, steps = self.flat_modes()
            merged, (strides,) = merge_modes(extents, [steps])
            self._modes = merged, strides
            return self._modes

    def valid(self, *coord: Any) -> Any:
        try:
            at = leaf_coordinates(self._coordinate(coord), self._shape)
        except IndexError:
            return bulk.inside(self, coord) if any(map(is_array, leaves(coord))) else False
        answer = bulk.all_true(at)
        for guard in self.guards:
            answer = answer & guard.admits(at)
        return answer

    def _table(self) -> Any:
        return bulk.strided_table(self._shape, self._stride, self.offset, self.replicas, self.axes)

    def _valid_table(self) -> Any:
        """Return which coordinates are data, one dimension a mode; None when all are."""
        answer: Any = None
        for guard in self.guards:
            value = bulk.strided_table(self._shape, guard.stride, guard.offset, (), ())
            inside = (value >= 0) & (value < guard.limit)
            answer = inside if answer is None else answer & inside
        return answer

    @property
    def logical_shape(self) -> tuple[int, ...]:
        """Return how much of each mode is data, where the padding of each mode is its own affair.

        >>> from tilewright import pad
        >>> pad(Layout((60, 90)), (64, 96)).logical_shape
        (60, 90)
        """
        if not self.guards:
            return product_each(self._shape)
        extents = box_extents(self._shape, self.guards)
        if extents is None:
            raise LayoutError(f"{self} is padded across modes: no extent per mode describes its data; use valid(...)")
        return extents

    def _with(self, **changes: Any) -> Layout:
        parts = {
            "shape": self._shape,
            "stride": self._stride,
            "offset": self.offset,
            "replicas": self.replicas,
            "guards": self.guards,
        }
        return make(**{**parts, **changes})

    def __add__(self, step: Any) -> Layout:
        if isinstance(step, LayoutLike):
            return NotImplemented
        offset = self.offset + check_step(step, "offset")
        check_span(self._shape, self._stride, offset)
        return self._with(offset=offset)

    __radd__ = __add__

    def __sub__(self, step: Any) -> Layout:
        return self.__add__(-check_step(step, "offset"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return (
            self._shape == other._shape
            and self._stride == other._stride
            and self._rest == other._rest
            and self._dynamic_leaves() == other._dynamic_leaves()
            and self.axes == other.axes
        )

    def __hash__(self) -> int:
        return hash((self._shape, self._stride, self._rest))

    def __reduce__(self) -> tuple[Any, ...]:
        return make, (self._shape, self._stride, *self._rest)

    def _dynamic_leaves(self) -> tuple[int, ...]:
        """Return which of the leaves, first of the shape, then of the strides, are known only at run time."""
        try:
            return self._dynamic
        except AttributeError:
            extents, steps = self.flat_modes()
            self._dynamic = tuple([k for k, leaf in enumerate(extents + steps) if is_dynamic(leaf)])
            return self._dynamic

    def __repr__(self) -> str:
        extra = [("offset", self.offset), ("replicas", self.replicas), ("guards", self.guards)]
        tail = "".join([f", {name}={value!r}" for name, value in extra if value or value.__class__ is Place])
        return f"Layout({self._shape!r}, {self._stride!r}{tail})"

    def __str__(self) -> str:
        text = f"{format_tree(self._shape)}:{format_tree(self._stride)}"
        text += "".join(f"+R[{count}:{format_tree(step)}]" for count, step in self.replicas)
        text += format_signed(self.offset) if self.offset or self.offset.__class__ is Place else ""
        return text + (" where " + " and ".join(map(str, self.guards)) if self.guards else "")


def make(
    shape: Any, stride: Any, offset: Any = 0, replicas: tuple[Replica, ...] = (), guards: tuple[Guard, ...] = ()
) -> Layout:
    """Return a layout from parts already proven consistent, without checking them again.

    >>> make((4, 8), (1, 4))
    Layout((4, 8), (1, 4))
    """
    layout: Layout = object.__new__(Layout)
    layout._shape = shape
    layout._stride = stride
    if offset.__class__ is Place:
        offset = _canonical(offset, stride, replicas)
    layout._rest = (offset, replicas, guards)
    return layout


def _canonical(offset: Place, stride: Any, replicas: tuple[Replica, ...]) -> Any:
    """Return an offset that says no more than it must: what moves, and the axes that no step names."""
    steps = [*leaves(stride), *(step for _, step in replicas)]
    named = {name for step in steps if step.__class__ is Place for name in step.axes}
    parts = {name: amount for name, amount in offset._parts.items() if amount or (name and name not in named)}
    return Place._of(parts) if parts else 0


def keep_axes(layout: Layout, names: tuple[str, ...]) -> Layout:
    """Return the layout with places on all the named axes; along those that no step is on, they stay at 0.

    >>> from tilewright import bank
    >>> keep_axes(Layout(4, 1 @ bank), ("bank", "addr"))(3)
    Place(bank=3, addr=0)
    """
    missing = [name for name in names if name not in layout.axes] if names else []
    return layout + Place._of(dict.fromkeys(missing, 0)) if missing else layout


def used_axes(layout: Any) -> tuple[str, ...]:
    """Return the axes along which the places of a layout are not all 0.

    >>> from tilewright import addr, bank
    >>> used_axes(Layout((4, 2), (1 @ bank, 0 @ addr)))
    ('bank',)
    """
    if not isinstance(layout, Layout):
        return tuple(layout.axes)
    steps = [*layout.flat_modes()[1], *(step for _, step in layout.replicas), layout.offset]
    return tuple([name for name in layout.axes if any(along(step, name) for step in steps)])


def joined_parts(layouts: tuple[Any, ...]) -> tuple[Any, Any, Any, tuple[Replica, ...], tuple[Guard, ...]]:
    """Return the parts of the layout whose modes are the given layouts.

    >>> joined_parts((Layout(4), Layout(8, 4)))
    ((4, 8), (1, 4), 0, (), ())
    """
    for layout in layouts:
        if not isinstance(layout, Layout):
            raise TypeError(f"layouts can only be joined with layouts, got {type(layout).__name__} {layout!r}")
    shapes = tuple([layout._shape for layout in layouts])
    guards = []
    for k, layout in enumerate(layouts):
        for guard in layout.guards:
            strides = [guard.stride if j == k else map_leaves(_zero, shape) for j, shape in enumerate(shapes)]
            guards.append(Guard(tuple(strides), guard.limit, guard.offset))
    return (
        shapes,
        tuple([layout._stride for layout in layouts]),
        sum((layout.offset for layout in layouts), 0),
        sum((layout.replicas for layout in layouts), ()),
        tuple(guards),
    )


def layout_from_term(term: tuple[Any, ...]) -> Layout:
    """Return the layout that a parsed term describes.

    >>> layout_from_term(("layout", 4, 1, 0, (), ()))
    Layout(4, 1)
    """
    _, shape, stride, offset, replicas, guards = term
    try:
        return Layout(shape, stride, offset, replicas, [Guard(*parts) for parts in guards])
    except TypeError as problem:
        raise LayoutError(f"cannot read {format_tree(shape)}:{format_tree(stride)}: {problem}") from None


def _zero(_: Any) -> int:
    return 0
