# SPDX-License-Identifier: Apache-2.0
"""`scene_of`: from anything that can be looked at to its scene. Later rooms and users register their own things."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from ..compare import Comparison, TensorComparison
from ..copying import Plan
from ..errors import LayoutError
from ..files import ElementReading, Inspection, TileReading
from ..formats import QuantizationReport
from ..layout import ComposedLayout, LayoutLike, Swizzle
from ..memory import Allocator, Device, Explanation, TensorSpec
from ..tensor import Tensor, TileTensor
from ..tiling import Pipeline, Schedule, TilePlan, Tiler, Trace
from .scene import Scene
from .scenes.block_formats import block_scene
from .scenes.comparisons import comparison_scene, comparisons_scene
from .scenes.layouts import layout_scene
from .scenes.memory_maps import memory_scene
from .scenes.plans import plan_scene
from .scenes.schedules import schedule_scene, trace_scene
from .scenes.specs import spec_scene
from .scenes.stored_tensors import inspection_scene, tile_scene
from .scenes.swizzles import swizzle_scene
from .scenes.tensors import tensor_scene, values_scene
from .scenes.tilers import tiler_scene


@singledispatch
def scene_of(thing: Any, **options: Any) -> Scene:
    """Return the scene of a layout, tensor, spec, plan, report, allocator, device, tiler, schedule, pipeline or trace.

    Options are those of its scene. `scene_of.register(MyType)` teaches it another type.

    >>> from tilewright import row_major
    >>> scene_of(row_major(4, 8)).title
    '(4,8):(8,1)'
    """
    own = getattr(thing, "plain", None)  # a dialect's value is one of ours under other names
    if scene_of.dispatch(type(own)) is not scene_of.dispatch(object):
        return scene_of(own, **options)
    known = ", ".join(sorted(kind.__name__ for kind in scene_of.registry if kind is not object))
    raise TypeError(f"there is no scene of a {type(thing).__name__}; there is one of: {known}")


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
scene_of.register(TileReading, tile_scene)


def _without_side(scene: Callable[..., Scene]) -> Callable[..., Scene]:
    """Return a scene that takes, and does not need, the cap on rows and columns: lanes have none."""
    return lambda thing, side=0, **options: scene(thing, **options)


scene_of.register(Allocator, _without_side(memory_scene))
scene_of.register(Device, _without_side(memory_scene))
scene_of.register(Schedule, _without_side(schedule_scene))
scene_of.register(Pipeline, _without_side(schedule_scene))
scene_of.register(Trace, _without_side(trace_scene))


@scene_of.register
def _of_tile_plan(thing: TilePlan, **options: Any) -> Scene:
    """Return the tiles that the tasks of a plan read, or write where nothing is read."""
    tiler = (*thing.reading, *thing.writing)[0]
    words = f"{len(thing)} tasks, which read these tiles" if thing.reading else f"{len(thing)} tasks"
    return tiler_scene(tiler, **{"title": words, **options})


@scene_of.register
def _of_explanation(thing: Explanation, **options: Any) -> Scene:
    return spec_scene(thing.spec, at=thing.where.coordinate, **options)


@scene_of.register
def _of_element(thing: ElementReading, **options: Any) -> Scene:
    return _of_explanation(thing.explanation, **options)


@scene_of.register
def _of_swizzle(thing: Swizzle, **options: Any) -> Scene:
    raise LayoutError(f"{thing} has no shape of its own; compose it with a layout, as in {thing} o (8,8):(8,1)")


@scene_of.register
def _of_scene(thing: Scene, side: int | None = None) -> Scene:
    return thing  # which was drawn for a side already


@scene_of.register
def _of_composed(thing: ComposedLayout, **options: Any) -> Scene:
    swizzled = isinstance(thing.outer, Swizzle) and not options.keys() & {"color", "label", "memory", "title"}
    return swizzle_scene(thing, **options) if swizzled else layout_scene(thing, **options)
