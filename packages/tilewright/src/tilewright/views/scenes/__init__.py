# SPDX-License-Identifier: Apache-2.0
"""The scenes: one module for each kind of object that can be drawn; `scene_of` chooses, and users can add types."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from itertools import accumulate
from types import FunctionType
from typing import Any

from ...analysis import BankReport, MatrixAtom
from ...conversion import Comparison, ItemExplanation, TensorComparison
from ...copying import Plan
from ...errors import LayoutError
from ...files import DecodedTile, Inspection, Mesh, SharedElement, StoredElement, Tensorbin
from ...formats import QuantizationReport
from ...layout import ComposedLayout, LayoutLike, Linear, Swizzle
from ...memory import Allocator, Device, Explanation, MemoryConfig, Shape, TensorSpec
from ...plain import to_plain
from ...plugins import load_plugin
from ...simt import KernelReport
from ...tensor import Tensor, TileTensor
from ...tiling import Pipeline, Schedule, TilePlan, Tiler, Trace
from ...traffic import ReshardPlan
from ..scene import Scene
from ..scene_options import choose_attributes, refuse_unknown_options
from .kernels import kernel_scene
from .layouts import layout_scene, plan_scene, swizzle_scene
from .memory_maps import inspection_scene, memory_scene
from .meshes import assembly_scene, mesh_scene
from .pipelines import schedule_scene, tiler_scene, trace_scene
from .placements import memory_config_scene, shape_scene, spec_scene, window_grid
from .reshards import reshard_scene
from .tensors import block_scene, comparison_scene, comparisons_scene, tensor_scene, tile_scene, values_scene
from .threads import atom_scene, bank_scene, linear_scene


@singledispatch
def scene_of(subject: Any, **options: Any) -> Scene:
    """Return the scene of a layout, tensor, spec, plan, report, allocator, device, tiler, schedule, pipeline or trace.

    `subject` is the object, and `options` are those of its scene: `label`, `color` and `address="hex"` for all, and
    its own. An object of a dialect is drawn as its attribute `plain`, the object of the core that it stands for, with
    its `picture_title` if it has one, and its `picture_window` in a larger space; `scene_of.register(MyType)` adds a
    scene for another type, and so does an entry point of the group `tilewright.scenes` named after the class.

    >>> from tilewright import row_major
    >>> scene_of(row_major(4, 8)).title
    '(4,8):(8,1)'
    """
    own = to_plain(subject)
    if own is not subject:
        title = getattr(subject, "picture_title", None)  # in the words of the dialect
        scene = scene_of(own, **({"title": title} if title else {}) | options)
        window = getattr(subject, "picture_window", None)  # of a part: the space around it, and its box
        grid = window_grid(*window) if window else None
        return scene if grid is None else replace(scene, panels=(*scene.panels, grid))
    if _register_plugin(type(subject)):
        return scene_of(subject, **options)
    known = ", ".join(sorted(kind.__name__ for kind in scene_of.registry if kind is not object))
    raise TypeError(f"cannot draw an object of type {type(subject).__name__!r}; expected one of {known}")


def _register_plugin(owner: type) -> bool:
    """Register the scene function of a plug-in for a class or one of its bases; return whether there is one."""
    for base in owner.__mro__:
        scene = load_plugin("scenes", f"{base.__module__}.{base.__qualname__}", FunctionType)
        if isinstance(scene, FunctionType):
            scene_of.register(base, scene)
            return True
    return False


def side_by_side(*subjects: Any, title: str = "", **options: Any) -> Scene:
    """Return one scene of several `subjects`, with all their panels; what is the same in them is marked together.

    Panels and facts are named A, B and so on, as the subjects are in the note below the `title`; `options` are those
    of their scenes.

    >>> from tilewright import col_major, row_major
    >>> scene = side_by_side(row_major(2, 2), col_major(2, 2), memory=False)
    >>> [panel.title for panel in scene.panels], scene.note
    (['A: coordinates', 'B: coordinates'], 'A: (2,2):(2,1). B: (2,2):(1,2).')
    """
    if not subjects:
        raise LayoutError("nothing to draw: side_by_side needs at least one object")
    scenes = [scene_of(subject, **options) for subject in subjects]
    letters = [chr(ord("A") + k) if k < _ALPHABET else str(k) for k in range(len(scenes))]
    named = list(zip(letters, scenes, strict=True))
    notes = [f"{letter}: {scene.title}. {scene.note}".strip() for letter, scene in named]
    return Scene(
        title or "side by side",
        tuple(replace(panel, title=f"{letter}: {panel.title}") for letter, scene in named for panel in scene.panels),
        tuple(replace(fact, name=f"{letter}: {fact.name}") for letter, scene in named for fact in scene.facts),
        " ".join(notes),
        tuple(accumulate(len(scene.panels) for scene in scenes[:-1])),
    )


_ALPHABET = 26

scene_of.register(LayoutLike, layout_scene)
scene_of.register(TileTensor, tensor_scene)
scene_of.register(Tensor, values_scene)
scene_of.register(Plan, plan_scene)
scene_of.register(QuantizationReport, block_scene)
scene_of.register(TensorSpec, spec_scene)
scene_of.register(Tiler, tiler_scene)
scene_of.register(Mesh, mesh_scene)
scene_of.register(Comparison, comparisons_scene)
scene_of.register(TensorComparison, comparison_scene)
scene_of.register(Inspection, inspection_scene)
scene_of.register(DecodedTile, tile_scene)
scene_of.register(Shape, shape_scene)
scene_of.register(ItemExplanation, assembly_scene)
scene_of.register(MemoryConfig, memory_config_scene)
scene_of.register(BankReport, bank_scene)
scene_of.register(Linear, linear_scene)
scene_of.register(MatrixAtom, atom_scene)
scene_of.register(KernelReport, kernel_scene)


scene_of.register(Allocator, memory_scene)
scene_of.register(Device, memory_scene)
scene_of.register(Schedule, schedule_scene)
scene_of.register(Pipeline, schedule_scene)
scene_of.register(Trace, trace_scene)
scene_of.register(ReshardPlan, reshard_scene)


@scene_of.register
def _tile_plan_scene(subject: TilePlan, **options: Any) -> Scene:
    """Return the tiles that the tasks of a plan read, or write where nothing is read."""
    tiler = (*subject.reading, *subject.writing)[0]
    title = f"{len(subject)} tasks, which read these tiles" if subject.reading else f"{len(subject)} tasks"
    return tiler_scene(tiler, **{"title": title, **options})


@scene_of.register
def _explanation_scene(subject: Explanation, **options: Any) -> Scene:
    return spec_scene(subject.spec, **{"at": subject.where.coordinate, **options})


@scene_of.register
def _tensorbin_scene(subject: Tensorbin, **options: Any) -> Scene:
    if len(subject.shards) == 1:
        return values_scene(subject.tensor(), **options)
    return mesh_scene(subject.mesh, **{"spec": subject.spec, **options})


@scene_of.register
def _shared_element_scene(subject: SharedElement, **options: Any) -> Scene:
    return mesh_scene(subject.mesh, **{"spec": subject.explanation.spec, "at": subject.coordinate, **options})


@scene_of.register
def _element_scene(subject: StoredElement, **options: Any) -> Scene:
    if subject.mesh is not None:
        return mesh_scene(subject.mesh, **{"spec": subject.explanation.spec, "at": subject.coordinate, **options})
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
