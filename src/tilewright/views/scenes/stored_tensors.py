# SPDX-License-Identifier: Apache-2.0
"""The scenes of files: the byte ranges of their tensors, and one tile of a tensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...errors import LayoutError
from ...files import DecodedTile, Inspection
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Field, Grid, Outline, Scene, Span, Tracks


def inspection_scene(found: Inspection, *, side: int = MAX_SIDE, title: str = "") -> Scene:
    """Return the bytes of every file, and the tensors in them.

    >>> import tempfile
    >>> import tilewright as tw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((4, 4)))
    ...     scene = inspection_scene(tw.inspect(folder))
    >>> [(span.label, span.end - span.start) for span in scene.panels[0].spans]
    [('x', 128)]
    """
    if not found.tensors:
        raise LayoutError(f"cannot draw {found.path}: it holds no tensors")
    files = list(dict.fromkeys(each.path for each in found.tensors))[:side]
    spans = tuple(
        Span(
            files.index(each.path),
            *each.byte_range,
            each.name,
            each.format or each.kind,
            note=f"{list(each.shape)} {each.format or each.kind}, {each.placed}, {each.nbytes} bytes",
        )
        for each in found.tensors
        if each.path in files and each.nbytes
    )
    end = max([1, *(each.byte_range[1] for each in found.tensors)])
    panels = (Tracks(tuple(Path(each).name for each in files), spans, 0, end, "bytes", "bytes of each file"),)
    padding = sum(each.padding_bytes for each in found.tensors)
    facts = (
        Fact("kind", found.kind),
        Fact("tensors", str(len(found.tensors))),
        Fact("bytes", str(found.nbytes)),
        Fact("padding", f"{padding} bytes ({100 * padding / max(1, found.nbytes):.3g} %)"),
    )
    return Scene(title or Path(found.path).name, panels, facts)


def tile_scene(found: DecodedTile, *, side: int = MAX_SIDE, title: str = "") -> Scene:
    """Return the values of one tile, its faces outlined, and the exponents of its blocks.

    >>> reading = DecodedTile("x", "int8", (0, 0), (0, 0), (1, 1), np.ones((1, 1)), np.ones((1, 1), bool))
    >>> tile_scene(reading).panels[0].field("value").values
    (1.0,)
    """
    rows, columns = found.values.shape
    high, wide = found.face
    valid = tuple(found.valid.reshape(-1).tolist())
    outlines = tuple(
        Outline(top, left, high, wide, "face") for top in range(0, rows, high) for left in range(0, columns, wide)
    )
    values = tuple(v if ok else None for v, ok in zip(found.values.reshape(-1).tolist(), valid, strict=True))
    link = tuple(range(rows * columns))
    panels = [Grid(rows, columns, (Field("value", values, "ramp"),), "values", "value", "value", valid, link, outlines)]
    if found.exponents is not None:
        field = Field("exponent", tuple(found.exponents.reshape(-1).tolist()), "ramp")
        panels.append(Grid(rows, columns, (field,), "shared exponents", "exponent", "exponent", valid, link, outlines))
    known = found.values[found.valid]
    facts = [
        Fact("format", found.format),
        Fact("elements", f"{known.size} of {found.values.size}, the rest is padding"),
    ]
    if known.size:
        facts.append(Fact("values", f"{np.nanmin(known):.6g} to {np.nanmax(known):.6g}"))
    at = ", ".join(map(str, found.start))
    return Scene(title or f"{found.name}, tile {found.tile}, from ({at})", tuple(panels), tuple(facts))
