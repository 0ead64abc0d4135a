# SPDX-License-Identifier: Apache-2.0
"""`DescriptionComparison`: how two specs, memory configs, shapes, layouts or tilers differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..layout import Layout, LayoutLike
from ..layout.axes import format_tree
from ..memory import MemoryConfig, Shape, TensorSpec
from ..tiling import Tiler

Description: TypeAlias = "TensorSpec | MemoryConfig | Shape | LayoutLike | Tiler"

_MAX_COMPARED = 1 << 20  # offsets of two layouts that are compared one by one


@dataclass(frozen=True, slots=True)
class DescriptionComparison:
    """How two descriptions of a `kind` differ: rows of (attribute, value in A, value in B).

    >>> found = compare_descriptions(TensorSpec((64, 64), "bfloat16"), TensorSpec((64, 64), "bfloat8_b", "tile"))
    >>> found.same, [name for name, _, _ in found.differences]
    (False, ['dtype', 'page layout', 'pages', 'tile'])
    """

    kind: str
    rows: tuple[tuple[str, str, str], ...]

    @property
    def differences(self) -> list[tuple[str, str, str]]:
        """Return the rows in which A and B differ.

        >>> compare_descriptions(Shape((2, 3)), Shape((2, 4))).differences[0]
        ('shape', '[2, 3]', '[2, 4]')
        """
        return [row for row in self.rows if row[1] != row[2]]

    @property
    def same(self) -> bool:
        """Return whether no row differs.

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
    for kind, (name, describe) in _DESCRIPTIONS.items():
        if isinstance(a, kind) and isinstance(b, kind):
            one, other = describe(a), describe(b)
            rows = [(key, one.get(key, "none"), other.get(key, "none")) for key in dict.fromkeys([*one, *other])]
            if isinstance(a, LayoutLike) and isinstance(b, LayoutLike):
                rows += _first_difference(a, b)
            if a != b and all(row[1] == row[2] for row in rows):  # in something that has no row
                rows.append(("all of it", repr(a), repr(b)))
            return DescriptionComparison(name, tuple(rows))
    return None


def is_description(value: object) -> bool:
    """Return whether `value` describes a tensor without holding values.

    >>> is_description(Shape((2, 3))), is_description(np.zeros(3))
    (True, False)
    """
    return isinstance(value, tuple(_DESCRIPTIONS))


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
    one, other = (np.asarray(each.offsets()) for each in (a, b))
    if one.shape != other.shape:
        return []
    different = np.argwhere(one != other)
    if not len(different):
        return [("offsets", "equal", "equal")]
    at = tuple(different[0].tolist())
    return [(f"offset of element {at}", str(one[at]), str(other[at]))]


_DESCRIPTIONS: dict[type, tuple[str, Callable[[Any], dict[str, str]]]] = {
    TensorSpec: ("spec", _describe_spec),
    MemoryConfig: ("memory config", _describe_memory),
    Shape: ("shape", _describe_shape),
    LayoutLike: ("layout", _describe_layout),
    Tiler: ("tiler", _describe_tiler),
}
