# SPDX-License-Identifier: Apache-2.0
"""The scenes: one module for each kind of object that can be drawn; `scene_of` chooses, and users can add types."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from ...compare import Comparison, TensorComparison
from ...copying import Plan
from ...errors import LayoutError
from ...files import DecodedTile, Inspection, StoredElement
from ...formats import QuantizationReport
from ...layout import ComposedLayout, LayoutLike, Swizzle
from ...memory import Allocator, Device, Explanation, TensorSpec
from ...tensor import Tensor, TileTensor
from ...tiling import Pipeline, Schedule, TilePlan, Tiler, Trace
from ..scene import Scene
from .error_maps import block_scene, comparison_scene, comparisons_scene
from .layouts import layout_scene, plan_scene, swizzle_scene
from .memory_maps import inspection_scene, memory_scene
from .pipelines import schedule_scene, tiler_scene, trace_scene
from .specs import spec_scene
from .tensors import tensor_scene, tile_scene, values_scene


@singledispatch
def scene_of(subject: Any, **options: Any) -> Scene:
    """Return the scene of a layout, tensor, spec, plan, report, allocator, device, tiler, schedule, pipeline or trace.

    `subject` is the object, and `options` are those of its scene. `scene_of.register(MyType)` adds another type.

    >>> from tilewright import row_major
    >>> scene_of(row_major(4, 8)).title
    '(4,8):(8,1)'
    """
    own = getattr(subject, "plain", None)  # a dialect object wraps one of the core
    if scene_of.dispatch(type(own)) is not scene_of.dispatch(object):
        return scene_of(own, **options)
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


def _ignore_side(scene: Callable[..., Scene]) -> Callable[..., Scene]:
    """Return a scene function that accepts and ignores `side`, which tracks do not have."""
    return lambda subject, side=0, **options: scene(subject, **options)


scene_of.register(Allocator, _ignore_side(memory_scene))
scene_of.register(Device, _ignore_side(memory_scene))
scene_of.register(Schedule, _ignore_side(schedule_scene))
scene_of.register(Pipeline, _ignore_side(schedule_scene))
scene_of.register(Trace, _ignore_side(trace_scene))


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
def _scene_itself(subject: Scene, side: int | None = None) -> Scene:
    return subject  # already drawn for a side


@scene_of.register
def _composed_scene(subject: ComposedLayout, **options: Any) -> Scene:
    swizzled = isinstance(subject.outer, Swizzle) and not options.keys() & {"color", "label", "memory", "title"}
    return swizzle_scene(subject, **options) if swizzled else layout_scene(subject, **options)
