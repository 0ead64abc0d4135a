# SPDX-License-Identifier: Apache-2.0
"""The scenes: one module for each kind of object that can be drawn; `scene_of` chooses, and users can add types."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from ...compare import Comparison, TensorComparison
from ...copying import Plan
from ...errors import LayoutError
from ...files import DecodedTile, Inspection, StoredElement
from ...formats import QuantizationReport
from ...layout import ComposedLayout, LayoutLike, Swizzle
from ...memory import Allocator, Device, Explanation, MemoryConfig, Shape, TensorSpec
from ...plain import to_plain
from ...tensor import Tensor, TileTensor
from ...tiling import Pipeline, Schedule, TilePlan, Tiler, Trace
from ..scene import Scene
from ..scene_options import choose_attributes, refuse_unknown_options
from .error_maps import block_scene, comparison_scene, comparisons_scene
from .layouts import layout_scene, plan_scene, swizzle_scene
from .memory_maps import inspection_scene, memory_scene
from .pipelines import schedule_scene, tiler_scene, trace_scene
from .shapes import memory_config_scene, shape_scene
from .specs import spec_scene
from .tensors import tensor_scene, tile_scene, values_scene


@singledispatch
def scene_of(subject: Any, **options: Any) -> Scene:
    """Return the scene of a layout, tensor, spec, plan, report, allocator, device, tiler, schedule, pipeline or trace.

    `subject` is the object, and `options` are those of its scene: `label`, `color` and `address="hex"` for all, and
    its own. An object of a dialect is drawn as its attribute `plain`, the object of the core that it stands for, with
    its `picture_title` if it has one; `scene_of.register(MyType)` adds a scene for another type.

    >>> from tilewright import row_major
    >>> scene_of(row_major(4, 8)).title
    '(4,8):(8,1)'
    """
    own = to_plain(subject)
    if own is not subject:
        title = getattr(subject, "picture_title", None)  # in the words of the dialect
        return scene_of(own, **({"title": title} if title else {}) | options)
    known = ", ".join(sorted(kind.__name__ for kind in scene_of.registry if kind is not object))
    raise TypeError(f"cannot draw an object of type {type(subject).__name__!r}; expected one of {known}")


scene_of.register(LayoutLike, layout_scene)
scene_of.register(TileTensor, tensor_scene)
scene_of.register(Tensor, values_scene)
scene_of.register(Plan, plan_scene)
scene_of.register(QuantizationReport, block_scene)
scene_of.register(TensorSpec, spec_scene)
scene_of.register(Tiler, tiler_scene)
scene_of.register(Comparison, comparisons_scene)
scene_of.register(TensorComparison, comparison_scene)
scene_of.register(Inspection, inspection_scene)
scene_of.register(DecodedTile, tile_scene)
scene_of.register(Shape, shape_scene)
scene_of.register(MemoryConfig, memory_config_scene)


scene_of.register(Allocator, memory_scene)
scene_of.register(Device, memory_scene)
scene_of.register(Schedule, schedule_scene)
scene_of.register(Pipeline, schedule_scene)
scene_of.register(Trace, trace_scene)


@scene_of.register
def _tile_plan_scene(subject: TilePlan, **options: Any) -> Scene:
    """Return the tiles that the tasks of a plan read, or write where nothing is read."""
    tiler = (*subject.reading, *subject.writing)[0]
    title = f"{len(subject)} tasks, which read these tiles" if subject.reading else f"{len(subject)} tasks"
    return tiler_scene(tiler, **{"title": title, **options})


@scene_of.register
def _explanation_scene(subject: Explanation, **options: Any) -> Scene:
    return spec_scene(subject.spec, at=subject.where.coordinate, **options)


@scene_of.register
def _element_scene(subject: StoredElement, **options: Any) -> Scene:
    return _explanation_scene(subject.explanation, **options)


@scene_of.register
def _swizzle_scene(subject: Swizzle, **options: Any) -> Scene:
    raise LayoutError(
        f"cannot draw {subject} alone: it has no shape; compose it with a layout, as in {subject} o (8,8):(8,1)"
    )


@scene_of.register
def _finished_scene(subject: Scene, **options: Any) -> Scene:
    refuse_unknown_options("a finished Scene", options, ())
    return choose_attributes(subject, "this scene", options)  # type: ignore[arg-type]  # which it checks


@scene_of.register
def _composed_scene(subject: ComposedLayout, **options: Any) -> Scene:
    swizzled = isinstance(subject.outer, Swizzle) and not options.keys() & {"memory", "title"}
    return swizzle_scene(subject, **options) if swizzled else layout_scene(subject, **options)
