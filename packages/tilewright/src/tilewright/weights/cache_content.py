# SPDX-License-Identifier: Apache-2.0
"""The content of a cache's file: compared with what its source gives, or looked at for values no trained weight has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..conversion.assembled_source import aligned_bytes
from ..conversion.conversion_item import ConversionItem
from ..conversion.conversion_run import MIN_SLAB_BYTES
from ..conversion.exactness import Rounding, describe_difference
from ..conversion.slabs import Slab, SlabCutter
from ..files.mesh import Coordinate
from ..files.paged_boxes import PagedBoxes
from ..files.tensorbin import Tensorbin
from ..layout import Box
from ..memory import from_bytes
from .cache_relations import FileName

DIFFERS = "differs from the checkpoint"
_SAMPLE_BYTES = 1 << 19  # of a slab that is compared
_SAMPLED_SLABS = 8  # of each part
_SAMPLED_BANDS = 5  # of rows, to look for placeholders
_SMALLEST, _LARGEST = 1e-30, 1e30  # magnitudes of trained weights lie far inside


@dataclass(frozen=True)
class ContentCheck:
    """How content is compared: with memory for `slab` bytes, in full or in a sample.

    A sample has the first, the last and some slabs between them of every device's part: what lies between them is not
    seen. `exceptional` has what was compared of each file's source and is NaN, infinite or out of range.
    """

    slab: int
    full: bool
    exceptional: dict[str, Rounding] = field(default_factory=dict)

    def compare(self, item: ConversionItem, held: Tensorbin) -> str | None:
        """Return where a file differs from what its source gives; None if it does not."""
        source, target = item.source, item.target
        assert target.mesh is not None
        budget = max(self.slab // 4, MIN_SLAB_BYTES)
        slabs = SlabCutter(source, target, budget if self.full else min(budget, _SAMPLE_BYTES))
        boxes = PagedBoxes(target.spec)
        devices = list(target.mesh.windows().values())
        for each in slabs if self.full else _sample(list(slabs)):
            whole = each.box.relative_to(tuple([-n for n in slabs.windows[each.window].offset]))
            spec = boxes.box_spec(each.box)
            expected = aligned_bytes(spec.nbytes)
            parts = list(source.read_parts(whole, aligned_bytes))
            seen = self.exceptional.get(item.name, Rounding(0))
            self.exceptional[item.name] = seen + source.count_exceptional(parts, spec, whole)
            source.pack(parts, spec, expected, aligned_bytes, target.pad_value)
            runs = boxes.runs(each.box)
            for device in devices[each.window]:
                part = held.shards[device]
                stored = np.concatenate([part[start : start + size] for start, size in runs])
                if not np.array_equal(stored, expected):
                    found = describe_difference(from_bytes(expected, spec), from_bytes(stored, spec), whole)
                    return f"{DIFFERS} on device {device}, in {whole}: {found}"
        return None


def _sample(slabs: list[Slab]) -> list[Slab]:
    """Return the first, the last and some slabs between them of every part."""
    by_window: dict[int, list[Slab]] = {}
    for slab in slabs:
        by_window.setdefault(slab.window, []).append(slab)
    chosen: list[Slab] = []
    for own in by_window.values():
        picks = {round(k * (len(own) - 1) / (_SAMPLED_SLABS - 1)) for k in range(_SAMPLED_SLABS)}
        chosen += [own[k] for k in sorted(picks)]
    return chosen


def find_placeholder(held: Tensorbin, name: FileName | None = None) -> str | None:
    """Return what is suspicious about the values of a file that no trained weight has, or None.

    >>> from tilewright import TensorSpec
    >>> find_placeholder(Tensorbin(TensorSpec((64, 64), "bfloat8_b"), bytes(4 * 1088)))
    'all values are 0'
    """
    suspicions = []
    for device in held.shards:
        numbers = _sample_values(held, device)
        finite = np.isfinite(numbers)
        if not finite.all():
            return f"{np.count_nonzero(~finite)} of {numbers.size} sampled values are not finite"
        sizes = np.abs(numbers[numbers != 0])
        if numbers.size > 1 and (numbers == numbers[0]).all():
            suspicions.append(f"all values are {numbers[0]:g}")
        elif sizes.size and sizes.max() < _SMALLEST:
            suspicions.append(f"no value is larger than {sizes.max():.3g}")
        elif sizes.size and sizes.max() > _LARGEST:
            return f"values reach {sizes.max():.3g}"
        else:
            suspicions.append("")
    # padding of the head, or of a network, may be all that a device gets
    is_padded = name is not None and name.may_be_padded
    if not all(suspicions) and (is_padded or not any(suspicions)):
        return None
    return next((each for each in suspicions if each), None)


def _sample_values(held: Tensorbin, device: Coordinate) -> Any:
    """Return the values of some bands of rows of a device's part, as float32."""
    spec = held.spec
    boxes = PagedBoxes(spec)
    shape = spec.shape.logical
    rows = shape[-2] if len(shape) > 1 else 1
    height = min(rows, 32)
    found = []
    for start in sorted({round(k * (rows - height) / (_SAMPLED_BANDS - 1)) for k in range(_SAMPLED_BANDS)}):
        for lead in {(0,) * len(shape[:-2]), tuple([n - 1 for n in shape[:-2]])}:
            offset, extents = (*lead, start, 0), (*[1] * len(lead), height, shape[-1])
            box = boxes.enclosing_box(Box(offset[-len(shape) :], extents[-len(shape) :]))
            pages = held.shards[device]
            data = np.concatenate([pages[at : at + size] for at, size in boxes.runs(box)])
            found.append(np.asarray(Tensorbin(boxes.box_spec(box), data).array(), np.float32).reshape(-1))
    return np.concatenate(found)
