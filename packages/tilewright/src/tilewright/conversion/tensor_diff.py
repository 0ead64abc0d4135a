# SPDX-License-Identifier: Apache-2.0
"""`diff`: two tensors, files or directories compared in logical space, one slab at a time, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, prod, sqrt
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from .._dialect import unwrap
from ..copying import as_host_array
from ..errors import LayoutError, TilewrightError
from ..files import (
    StoredTensor,
    Tensorbin,
    TensorFile,
    as_box,
    decode_small_floats,
    decode_step_sizes,
    inverse_order,
    open_tensors,
    read_step_sizes,
    select_names,
)
from ..formats import Format, format_of
from ..layout import Box, Layout, LayoutLike, cut_into_slabs, format_tree, largest_slab
from ..memory import DeviceLike, MemoryConfig, Mesh, Shape, TensorSpec
from ..tiling import Tiler
from .comparison import (
    Comparison,
    Counts,
    Difference,
    ErrorMap,
    Floats,
    Moments,
    TensorComparison,
    Tolerance,
    coarser_format,
    find_hidden_errors,
    settle_non_finite,
    summarize_pcc,
    ulp_distance,
)
from .source import Rounding, count_exceptional

# `DescriptionComparison`: how two specs, memory configs, shapes, layouts or tilers differ.

Description: TypeAlias = "TensorSpec | MemoryConfig | Shape | LayoutLike | Tiler"

_MAX_COMPARED = 1 << 20  # offsets of two layouts that are compared one by one


@dataclass(frozen=True, slots=True)
class DescriptionComparison:
    """How two descriptions of a `kind` differ: rows of (attribute, value in A, value in B).

    >>> comparison = compare_descriptions(TensorSpec((64, 64), "bfloat16"), TensorSpec((64, 64), "bfloat8_b", "tile"))
    >>> comparison.same, [name for name, _, _ in comparison.differences]
    (False, ['dtype', 'page layout', 'pages', 'tile'])
    """

    kind: str
    rows: tuple[tuple[str, str, str], ...]

    @property
    def differences(self) -> list[tuple[str, str, str]]:
        """The rows in which A and B differ.

        >>> compare_descriptions(Shape((2, 3)), Shape((2, 4))).differences[0]
        ('shape', '[2, 3]', '[2, 4]')
        """
        return [row for row in self.rows if row[1] != row[2]]

    @property
    def same(self) -> bool:
        """Whether no row differs.

        >>> compare_descriptions(Shape((2, 3)), Shape((2, 3))).same
        True
        """
        return not self.differences

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain data.

        >>> compare_descriptions(Shape((2, 3)), Shape((2, 3))).to_json()["same"]
        True
        """
        return {"kind": self.kind, "same": self.same, "attributes": [list(row) for row in self.rows]}

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        if self.same:
            return f"the same {self.kind}: {', '.join([f'{name} {value}' for name, value, _ in self.rows])}"
        table = [("", "A", "B"), *self.differences]
        widths = [max(len(row[k]) for row in table) for k in range(3)]
        lines = ["  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]) for row in table]
        head = f"different {self.kind}s: {len(self.differences)} of {len(self.rows)} attributes"
        return "\n".join([head, *[line.rstrip() for line in lines]])


def compare_descriptions(a: object, b: object) -> DescriptionComparison | None:
    """Return how two descriptions, `a` and `b`, differ, or None if they are not descriptions of one kind.

    >>> from tilewright import row_major, col_major
    >>> print(compare_descriptions(row_major(2, 3), col_major(2, 3)))
    different layouts: 2 of 5 attributes
                              A      B
    stride                    (3,1)  (1,2)
    offset of element (0, 1)  1      2
    """
    for class_, (name, describe) in _DESCRIPTIONS.items():
        if isinstance(a, class_) and isinstance(b, class_):
            ours, theirs = describe(a), describe(b)
            rows = [(key, ours.get(key, "none"), theirs.get(key, "none")) for key in dict.fromkeys([*ours, *theirs])]
            if isinstance(a, LayoutLike) and isinstance(b, LayoutLike):
                rows += _first_difference(a, b)
            if a != b and all(row[1] == row[2] for row in rows):  # in something that has no row
                rows.append(("all of it", repr(a), repr(b)))
            return DescriptionComparison(name, tuple(rows))
    return None


def _describe_spec(spec: TensorSpec) -> dict[str, str]:
    return {
        "shape": str(list(spec.shape.logical)),
        "padded shape": str(list(spec.padded_shape)),
        "dtype": str(spec.dtype),
        "page layout": spec.page_layout.name.lower(),
        **({"tile": str(spec.tile)} if spec.is_tiled else {}),
        "pages": f"{spec.num_pages} of {spec.page_bytes} bytes",
        **_describe_memory(spec.memory),
        "chip": "none" if spec.chip is None else spec.chip.name,
    }


def _describe_memory(memory: MemoryConfig) -> dict[str, str]:
    result = {"memory layout": memory.memory_layout.name.lower(), "buffer type": str(memory.buffer_type)}
    if (sharding := memory.sharding) is not None:
        result |= {
            "shard shape": str(list(sharding.shape)),
            "cores": ", ".join([f"{box.start}-{box.end}" for box in sharding.grid]),
            "orientation": sharding.orientation.name.lower(),
            "distribution": sharding.distribution.name.lower(),
        }
    return result


def _describe_shape(shape: Shape) -> dict[str, str]:
    return {"shape": str(list(shape.logical)), "padded shape": str(list(shape.padded))}


def _describe_layout(layout: LayoutLike) -> dict[str, str]:
    if not isinstance(layout, Layout):
        return {"layout": str(layout), "elements": str(layout.size)}
    shape, stride = format_tree(layout.shape), format_tree(layout.stride)
    return {"shape": shape, "stride": stride, "offset": str(layout.offset), "elements": str(layout.size)}


def _describe_tiler(tiler: Tiler) -> dict[str, str]:
    return {name: str(getattr(tiler, name)) for name in ("space", "tile", "overlap", "augmentation", "order", "count")}


def _first_difference(a: LayoutLike, b: LayoutLike) -> list[tuple[str, str, str]]:
    """Return the first element that has different offsets in two layouts of one shape."""
    if a.size != b.size or a.axes or b.axes or not 0 < a.size <= _MAX_COMPARED:
        return []
    offsets_a, offsets_b = (np.asarray(layout.offsets()) for layout in (a, b))
    if offsets_a.shape != offsets_b.shape:
        return []
    different = np.argwhere(offsets_a != offsets_b)
    if not len(different):
        return [("offsets", "equal", "equal")]
    at = tuple(different[0].tolist())
    return [(f"offset of element {at}", str(offsets_a[at]), str(offsets_b[at]))]


_DESCRIPTIONS: dict[type, tuple[str, Callable[[Any], dict[str, str]]]] = {
    TensorSpec: ("spec", _describe_spec),
    MemoryConfig: ("memory config", _describe_memory),
    Shape: ("shape", _describe_shape),
    LayoutLike: ("layout", _describe_layout),
    Tiler: ("tiler", _describe_tiler),
}


Array = np.ndarray[Any, Any]
DEFAULT_MEMORY = 64 << 20
_BYTES_PER_ELEMENT = 128  # of a slab, with all temporaries
_TILE = (32, 32)
_CHIP = "wormhole_n150"  # for specs without a chip: the core of a shard does not depend on it


def row_major_slabs(shape: tuple[int, ...], max_elements: int, tile: tuple[int, int] = (32, 32)) -> Iterator[Box]:
    """Yield boxes of at most `max_elements` that cover a shape in row-major order, each one run of elements.

    Runs of rows, and parts of one row, are multiples of `tile` where that fits.

    >>> [box.slices for box in row_major_slabs((2, 100), 100)]
    [(slice(0, 1, None), slice(0, 100, None)), (slice(1, 2, None), slice(0, 100, None))]
    >>> sum(box.size for box in row_major_slabs((3, 70, 50), 1000))
    10500
    """
    if not prod(shape):
        return
    extents = list(largest_slab(shape, (1,) * len(shape), lambda slab: prod(slab) <= max_elements))
    for d, unit in zip(reversed(range(len(shape))), reversed(tile), strict=False):
        if unit <= extents[d] < shape[d]:  # one dimension at most is cut into more than single elements
            extents[d] -= extents[d] % unit
    yield from cut_into_slabs(shape, tuple(extents))


def row_pieces(start: int, count: int, width: int, max_elements: int = 1 << 14) -> Iterator[slice]:
    """Yield slices of `count` elements from element `start` on: some entire rows, or part of one.

    They are short enough to stay in the caches.

    >>> list(row_pieces(0, 10, 4, max_elements=9)), list(row_pieces(2, 6, 100, max_elements=4))
    ([slice(0, 8, None), slice(8, 10, None)], [slice(0, 4, None), slice(4, 6, None)])
    """
    at, stop = start, start + count
    while at < stop:
        whole_rows = at + max_elements // width * width
        end = whole_rows if width <= max_elements else min(at + max_elements, at - at % width + width)
        yield slice(at - start, min(end, stop) - start)
        at = end


@dataclass(frozen=True, slots=True, eq=False)
class ComparedTensor:
    """One side of a comparison: an array or a stored tensor, read box by box in the shape of the other side.

    `shape` is the source's, or its dimensions permuted (`order` has the source's dimensions), or differs in
    dimensions of extent 1. `spec` is None if there is none for these coordinates; on a `mesh`, it describes each
    device's part.

    >>> ComparedTensor(np.zeros((1, 2, 3)), (2, 3), None).read(Box((0, 0), (1, 2))).shape
    (1, 2)
    """

    source: Array | StoredTensor
    shape: tuple[int, ...]
    format: Format | None
    spec: TensorSpec | None = None
    order: tuple[int, ...] | None = None
    steps: Array | None = None  # of every element of a block format in memory
    mesh: Mesh | None = None

    def read(self, box: Box) -> Array:
        """Return the values in a box."""
        source = self.source
        return self._read_through(
            box, source.read if isinstance(source, StoredTensor) else lambda at: source[at.slices]
        )

    def step_sizes(self, box: Box) -> Array | None:
        """Return the distance to the next representable number in a box, for block formats."""
        source, steps = self.source, self.steps
        if steps is not None:
            return self._read_through(box, lambda at: steps[at.slices])
        if not isinstance(source, StoredTensor) or self.format is None or not self.format.has_blocks:
            return None
        return self._read_through(box, lambda at: read_step_sizes(source, at))

    def _read_through(self, box: Box, read: Callable[[Box], Array]) -> Array:
        """Return the result of `read` for the same box of the source, in the shape of the box."""
        if self.order is not None:
            return read(box.permute(self.order)).transpose(inverse_order(self.order))
        if self.shape == self.source.shape:
            return read(box)
        longer = iter([part for part, n in zip(box.slices, self.shape, strict=True) if n != 1])
        slices = tuple([slice(0, 1) if n == 1 else next(longer) for n in self.source.shape])
        return read(as_box(slices, self.source.shape)).reshape(box.shape)


def collect_tensors(value: object) -> dict[str, ComparedTensor]:
    """Return the tensors of a path, an array, a tensor, or a mapping of names to these.

    >>> sorted(collect_tensors({"a": np.zeros(3), "b": np.ones(2)}))
    ['a', 'b']
    """
    tensors = open_tensors(value) if isinstance(value, (str, os.PathLike)) else value
    if isinstance(tensors, Mapping):
        return {str(name): _as_compared_tensor(tensor) for name, tensor in tensors.items()}
    return {"": _as_compared_tensor(tensors)}


def _as_compared_tensor(value: Any) -> ComparedTensor:
    value = unwrap(value)
    if isinstance(value, StoredTensor):
        value = decode_small_floats(value)
        return ComparedTensor(value, value.shape, value.format, value.spec, mesh=value.mesh)
    if isinstance(value, Tensorbin):
        if len(value.shards) > 1:
            return _compare_parts(value)
        value = value.tensor()
    spec = getattr(value, "spec", None)
    if isinstance(spec, TensorSpec):
        array: Array = np.asarray(value)
        steps = decode_step_sizes(value.pages, spec) if spec.dtype.has_blocks else None
        return ComparedTensor(array, array.shape, spec.dtype, spec, steps=steps)
    array = as_host_array(value)
    return ComparedTensor(array, array.shape, format_of(array))


def _compare_parts(tensorbin: Tensorbin) -> ComparedTensor:
    """Return the tensor that the parts of a mesh make."""
    spec, mesh, whole = tensorbin.spec, tensorbin.mesh, tensorbin.array()
    steps: Array | None = None
    if spec.dtype.has_blocks:
        steps = np.empty(whole.shape, np.float32)
        for box, devices in mesh.windows().items():
            steps[box.slices] = decode_step_sizes(tensorbin.pages(devices[0]), spec)
    return ComparedTensor(whole, whole.shape, spec.dtype, spec, steps=steps, mesh=mesh)


def _conversion_order(a: ComparedTensor, b: ComparedTensor) -> tuple[int, ...] | None:
    """Return the order of b's dimensions in a's coordinates, if one of two files was made from the other, permuted."""
    if not isinstance(a.source, StoredTensor) or not isinstance(b.source, StoredTensor):
        return None
    order_a, order_b = a.source.source_order, b.source.source_order
    permutation = order_a or order_b
    if permutation is None or (order_a and order_b) or sorted(permutation) != list(range(len(b.shape))):
        return None
    order = order_b or inverse_order(permutation)
    return order if tuple([b.shape[axis] for axis in inverse_order(order)]) == a.shape else None


def match_shape(a: ComparedTensor, b: ComparedTensor, transpose: bool | None = None) -> ComparedTensor:
    """Return b with the shape of a: dimensions of extent 1 are added or removed, `transpose` swaps the last two.

    By default, the dimensions of a file that was converted from the other one are taken from its manifest.

    >>> match_shape(*[_as_compared_tensor(np.zeros(shape)) for shape in ((2, 3), (1, 2, 3))]).shape
    (2, 3)
    """
    swapped = (*b.shape[:-2], *b.shape[:-3:-1])
    order = _conversion_order(a, b) if transpose is None else None
    if transpose and len(b.shape) > 1 and swapped == a.shape:
        order = (*range(len(b.shape) - 2), len(b.shape) - 1, len(b.shape) - 2)
    elif transpose and a.shape == b.shape and len(b.shape) > 1:
        raise LayoutError(f"both shapes are {list(a.shape)}, so B is not A transposed; leave transpose out")
    if order is not None:
        return replace(b, shape=a.shape, spec=None, mesh=None, order=order)
    if a.shape == b.shape:
        return b
    if [n for n in a.shape if n != 1] == [n for n in b.shape if n != 1]:
        return replace(b, shape=a.shape, spec=None, mesh=None)
    hint = "; if B is A transposed, say so (transpose=True, or --transpose)" if swapped == a.shape else ""
    raise LayoutError(f"shapes {list(a.shape)} and {list(b.shape)} differ{hint}")


@overload
def diff(a: Description, b: Description) -> DescriptionComparison: ...
@overload
def diff(
    a: Any,
    b: Any,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    ulp: float | None = None,
    pcc: float | None = None,
    tensors: str | Iterable[str] | None = None,
    transpose: bool | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Callable[[int, int], None] | None = None,
    device: DeviceLike | None = None,
) -> Comparison: ...
def diff(
    a: Any,
    b: Any,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    ulp: float | None = None,
    pcc: float | None = None,
    tensors: str | Iterable[str] | None = None,
    transpose: bool | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Callable[[int, int], None] | None = None,
    device: DeviceLike | None = None,
) -> Comparison | DescriptionComparison:
    """Return how two files, directories, arrays or mappings of arrays differ.

    Values are compared at their logical coordinates; number formats and layouts may differ. Two specs, memory configs,
    shapes, layouts or tilers, also of a dialect, are compared attribute by attribute.

    Args:
        a, b: paths, arrays, tensors, also of a dialect, or mappings of names to them; or two descriptions.
        atol, rtol, ulp, pcc: the tolerance: elements are the same within atol + rtol x |a|, or within `ulp` ULPs; `pcc`
            is the least correlation, and alone it is all that is asked of finite elements.
        tensors: names or patterns of the tensors to compare; by default all.
        transpose: True: B has its last two dimensions swapped. By default, if one file was converted from the other
            with its dimensions permuted, according to its manifest, they are compared in the order of A; False does
            not.
        memory: the most bytes of memory to use.
        progress: called with the number of compared elements, and the number of all elements.
        device: one device of a mesh, by coordinate or number: only its part is compared.

    >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    >>> comparison = diff(x, 2 * x)
    >>> comparison.same, comparison.tensors[0].pcc
    (False, 1.0)
    >>> print(comparison.tensors[0].findings[0])
    B is 2 x A, which is 100 % of the squared error; PCC is the same for any factor
    """
    descriptions = [unwrap(item) for item in (a, b)]
    compared = compare_descriptions(*descriptions)
    if compared is not None:
        return compared
    if any(isinstance(item, tuple(_DESCRIPTIONS)) for item in descriptions):
        types = " and ".join([type(item).__name__ for item in (a, b)])
        raise LayoutError(f"cannot compare {types}: expected two tensors, or two descriptions of the same kind")
    tolerance = Tolerance(atol, rtol, ulp, pcc)
    ones, others = collect_tensors(a), collect_tensors(b)
    if len(ones) == len(others) == 1:  # names do not matter
        others = {next(iter(ones)): next(iter(others.values()))}
    names = list(dict.fromkeys([*ones, *others]))
    selected = names if tensors is None else select_names(names, tensors)
    both = [name for name in selected if name in ones and name in others]
    if device is not None:
        if not any(side[name].mesh is not None for side in (ones, others) for name in both):
            raise LayoutError(f"no tensor is on a mesh of devices; leave out device {device}")
        for name in both:
            ones[name], others[name] = _select_device(ones[name], others[name], device)
    total = sum([prod(ones[name].shape) for name in both])
    done = 0
    result = []
    for name in both:
        work = _TensorDiff(name, ones[name], others[name], tolerance, transpose, memory)
        for count in work.run():
            done += count
            if progress is not None:
                progress(done, total)
        result.append(work.result())
    return Comparison(
        _display_name(a, "A"),
        _display_name(b, "B"),
        tolerance,
        tuple(result),
        tuple([name for name in selected if name not in others]),
        tuple([name for name in selected if name not in ones]),
    )


def _select_device(a: ComparedTensor, b: ComparedTensor, device: DeviceLike) -> tuple[ComparedTensor, ComparedTensor]:
    """Return a device's parts of two tensors; for a tensor that is not on a mesh, the same box."""
    mesh = a.mesh or b.mesh
    if mesh is None:
        return a, b
    first, second = (
        _as_compared_tensor(tensor.source.on_device(device))
        if tensor.mesh is not None and isinstance(tensor.source, StoredTensor)
        else _crop(tensor, mesh.window_of(device))
        if tensor.shape == mesh.global_shape
        else tensor
        for tensor in (a, b)
    )
    return first, second


def _crop(tensor: ComparedTensor, box: Box) -> ComparedTensor:
    source = tensor.source
    cropped = source.crop(box) if isinstance(source, StoredTensor) else source[box.slices]
    steps = None if tensor.steps is None else tensor.steps[box.slices]
    return ComparedTensor(cropped, box.shape, tensor.format, steps=steps)


def _display_name(value: object, default: str) -> str:
    if isinstance(value, TensorFile):
        value = value.path
    return os.fspath(value) if isinstance(value, (str, os.PathLike)) else default


class _ElementPair(NamedTuple):
    """Some elements of both sides: as read, as doubles, their distance, which differ, and whether all are finite."""

    a: Any
    b: Any
    one: Floats
    other: Floats
    apart: Floats
    unequal: NDArray[np.bool_]
    all_finite: bool


class _TensorDiff:
    """The comparison of one pair of tensors, slab by slab."""

    def __init__(
        self, name: str, a: ComparedTensor, b: ComparedTensor, tolerance: Tolerance, transpose: bool | None, memory: int
    ) -> None:
        self.name, self.a, self.b, self.tolerance, self.memory = name, a, b, tolerance, memory
        self.count = prod(a.shape)
        self.problem = ""
        self.moments = Moments()
        self.unequal = self.different = self.nonzero = self.zeroed = self.flipped = self.not_finite = 0
        self.max_relative = self.max_ulp = self.max_abs = 0.0
        self.exceptional_a = self.exceptional_b = Rounding(0)
        self.first: tuple[int, float, float] | None = None
        self.worst: tuple[int, float, float] | None = None
        try:
            self.b = match_shape(a, b, transpose)
            if a.format is None or b.format is None:
                raise LayoutError("one tensor has an element type without a number format in tilewright")
            self.unit = coarser_format(a.format, b.format)
        except TilewrightError as problem:
            self.problem = str(problem)
        self.map = ErrorMap(a.shape, self._tile_shape())

    def _tile_shape(self) -> tuple[int, int]:
        for tensor in (self.b, self.a):
            if tensor.spec is not None and tensor.spec.is_tiled:
                return tensor.spec.tile.shape
        return _TILE

    def run(self) -> Iterator[int]:
        """Compare slab by slab, and yield the number of elements of each."""
        if self.problem:
            yield self.count
            return
        max_elements = max(1, self.memory // _BYTES_PER_ELEMENT)
        for box in row_major_slabs(self.a.shape, max_elements, self._tile_shape()):
            self._compare_slab(box)
            yield box.size

    def _compare_slab(self, box: Box) -> None:
        start = int(np.ravel_multi_index(box.offset, self.a.shape)) if box.offset else 0
        a, b = self.a.read(box).reshape(-1), self.b.read(box).reshape(-1)
        steps: Floats | None = None
        for part in row_pieces(start, a.size, self.map.width):
            piece = self._add_to_sums(a[part], b[part])
            if not piece.unequal.any():
                continue
            if steps is None and self.unit.has_blocks:
                steps = self._step_sizes(box)
            self._add_differences(start + part.start, piece, None if steps is None else steps[part])
            self.map.add(start + part.start, piece.apart)

    def _add_to_sums(self, a: Array, b: Array) -> _ElementPair:
        """Add some elements of both sides to the sums, and return them with their distances."""
        with np.errstate(all="ignore"):
            wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
            apart = np.abs(wide_a - wide_b)
        finite = np.isfinite(apart)  # neither is the distance of two infinities
        all_finite = bool(finite.all())
        if not all_finite:
            finite = np.isfinite(wide_a) & np.isfinite(wide_b)
            apart = settle_non_finite(apart, wide_a, wide_b)
        whole = a.dtype.kind in "iu" and b.dtype.kind in "iu"
        unequal = (a != b) if whole else apart != 0.0  # integers may exceed a double
        self.moments.add(wide_a if all_finite else wide_a[finite], wide_b if all_finite else wide_b[finite])
        self.nonzero += int(np.count_nonzero(wide_a))
        if not all_finite:
            self.not_finite += int(np.count_nonzero(~finite & unequal))
            self.exceptional_b += count_exceptional(b)
        assert self.b.format is not None
        self.exceptional_a += count_exceptional(a, (self.b.format,))
        return _ElementPair(a, b, wide_a, wide_b, apart, unequal, all_finite)

    def _add_differences(self, start: int, piece: _ElementPair, steps: Floats | None) -> None:
        """Add some elements, not all equal, from element `start` on to the counts and maxima."""
        wide_a, wide_b, apart, unequal = piece.one, piece.other, piece.apart, piece.unequal
        ulps = ulp_distance(piece.a, piece.b, self.unit, steps, piece.all_finite)
        with np.errstate(all="ignore"):
            relative = apart / np.abs(wide_a)
            relative[wide_a == 0.0] = 0.0
        largest = float(relative.max())
        self.max_relative = max(self.max_relative, inf if np.isnan(largest) else largest)
        self.max_ulp = max(self.max_ulp, float(ulps.max()))
        self.unequal += int(np.count_nonzero(unequal))
        self.zeroed += int(np.count_nonzero((wide_b == 0.0) & (wide_a != 0.0)))
        self.flipped += int(np.count_nonzero(wide_a * np.sign(wide_b) < 0.0))
        worst = int(np.argmax(apart)) if apart.any() else int(np.argmax(unequal))
        if self.worst is None or apart[worst] > self.max_abs:
            self.max_abs = float(apart[worst])
            self.worst = (start + worst, _to_python_number(piece.a[worst]), _to_python_number(piece.b[worst]))
        beyond = self._exceeds_tolerance(wide_a, apart, ulps) & unequal
        hits = int(np.count_nonzero(beyond))
        self.different += hits
        if self.first is None and hits:
            k = int(np.argmax(beyond))
            self.first = (start + k, _to_python_number(piece.a[k]), _to_python_number(piece.b[k]))

    def _step_sizes(self, box: Box) -> Floats | None:
        result = [side.step_sizes(box) for side in (self.a, self.b)]
        sizes = [array.reshape(-1) for array in result if array is not None]
        return None if not sizes else sizes[0] if len(sizes) == 1 else np.maximum(sizes[0], sizes[1])

    def _exceeds_tolerance(self, values: Floats, apart: Floats, ulps: Floats) -> NDArray[np.bool_]:
        limit = self.tolerance
        result: NDArray[np.bool_] = np.ones(apart.shape, np.bool_)
        if limit.atol or limit.rtol:
            with np.errstate(all="ignore"):
                result &= ~(apart <= limit.atol + limit.rtol * np.abs(values))
        if limit.ulp is not None:
            result &= ~(ulps <= limit.ulp)
        return result

    def result(self) -> TensorComparison:
        """Return the result."""
        a, b = self.a, self.b
        format_a, format_b = (str(tensor.format) if tensor.format is not None else "unknown" for tensor in (a, b))
        if self.problem:
            return TensorComparison(self.name, a.shape, format_a, format_b, same=False, problem=self.problem)
        total = self.moments.total()
        counts = Counts(self.count, self.nonzero, self.zeroed, self.flipped, self.not_finite, self.max_abs)
        result = find_hidden_errors(self.moments, counts) if self.unequal else []
        rms_a = sqrt(total.variance_a + total.mean_a**2)
        rms = sqrt(total.squared_error)
        relative = (rms / rms_a if rms_a else inf) if rms else 0.0
        limit = self.tolerance
        correlated = limit.pcc is None or not self.unequal or (total.pcc or 0.0) >= limit.pcc
        is_each_held = limit.pcc is None or not limit.is_exact or self.not_finite
        return TensorComparison(
            self.name,
            a.shape,
            format_a,
            format_b,
            same=correlated and not (is_each_held and self.different),
            count=self.count,
            unequal=self.unequal,
            different=self.different,
            max_abs=self.max_abs,
            max_relative=self.max_relative,
            max_ulp=self.max_ulp,
            ulp_format=str(self.unit),
            rms_error=rms,
            relative_rms=relative,
            pcc=total.pcc,
            factor=total.slope,
            offset=total.offset,
            pcc_in_words=summarize_pcc(total.pcc, relative, result) if self.unequal else "",
            findings=tuple(result),
            first=self._make_difference(self.first),
            worst=self._make_difference(self.worst),
            map_block=self.map.block,
            error_map=self.map.cells,
            order=b.order,
            exceptional_a=self.exceptional_a.exceptional,
            exceptional_b=self.exceptional_b.exceptional,
        )

    def _make_difference(self, element: tuple[int, float, float] | None) -> Difference | None:
        if element is None:
            return None
        at, value_a, value_b = element
        coordinate = tuple([int(c) for c in np.unravel_index(at, self.a.shape)]) if self.a.shape else ()
        for tensor in (self.b, self.a):
            if tensor.spec is not None:
                devices, inside = ((), coordinate) if tensor.mesh is None else tensor.mesh.locate(coordinate)
                return Difference(coordinate, value_a, value_b, *_locate_element(tensor.spec, inside), devices)
        return Difference(coordinate, value_a, value_b)


def _to_python_number(value: Any) -> float:
    """Return an element as a Python number: integers as int, since they may exceed a float."""
    return int(value) if value.dtype.kind in "iu" else float(value)


def _locate_element(
    spec: TensorSpec, coordinate: tuple[int, ...]
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Return the tile and the core of an element; no core for interleaved pages on an unknown chip."""
    try:
        where = (spec if spec.chip is not None else spec.with_chip(_CHIP)).where(*coordinate, base=0)
    except TilewrightError:  # an impossible grid
        return None, None
    has_core = spec.memory.is_sharded or (spec.chip is not None and spec.memory.buffer_type.is_l1)
    return where.tile, (where.core.x, where.core.y) if has_core else None
