# SPDX-License-Identifier: Apache-2.0
"""The scenes: `scene_of` finds the function that draws an object in a table of classes, and loads its module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import accumulate
from types import FunctionType
from typing import Any

from ..._dialect import unwrap
from ...errors import LayoutError
from ...plugins import load_plugin
from ..scene import Scene
from ..scene_options import choose_attributes, refuse_unknown_options

SceneFunction = Callable[..., Scene]

# The class of an object, as "package.Class", and the function that draws it, as "module.function".
SCENES = {
    "analysis.BankReport": "threads.bank_scene",
    "analysis.MatrixAtom": "threads.atom_scene",
    "conversion.Capacity": "memory_maps.capacity_scene",
    "conversion.Comparison": "tensors.comparisons_scene",
    "conversion.ItemExplanation": "meshes.assembly_scene",
    "conversion.TensorComparison": "tensors.comparison_scene",
    "copying.Plan": "layouts.plan_scene",
    "files.DecodedTile": "tensors.tile_scene",
    "files.Inspection": "memory_maps.inspection_scene",
    "files.SharedElement": "meshes.element_scene",
    "files.StoredElement": "meshes.element_scene",
    "files.Tensorbin": "tensors.tensorbin_scene",
    "formats.QuantizationReport": "tensors.block_scene",
    "layout.ComposedLayout": "layouts.composed_scene",
    "layout.LayoutLike": "layouts.layout_scene",
    "layout.Linear": "threads.linear_scene",
    "layout.Swizzle": "layouts.refuse_swizzle",
    "memory.AccessorArguments": "placements.accessor_scene",
    "memory.Allocator": "memory_maps.memory_scene",
    "memory.Device": "memory_maps.memory_scene",
    "memory.Explanation": "placements.explanation_scene",
    "memory.MemoryConfig": "placements.memory_config_scene",
    "memory.Mesh": "meshes.mesh_scene",
    "memory.Shape": "placements.shape_scene",
    "memory.TensorSpec": "placements.spec_scene",
    "notation.DeviceSharding": "meshes.sharding_scene",
    "notation.ParsedText": "layouts.text_scene",
    "tensor.Tensor": "tensors.values_scene",
    "tensor.TileTensor": "tensors.tensor_scene",
    "tiling.Pipeline": "pipelines.schedule_scene",
    "tiling.Schedule": "pipelines.schedule_scene",
    "tiling.TilePlan": "pipelines.tile_plan_scene",
    "tiling.Tiler": "pipelines.tiler_scene",
    "tiling.Trace": "pipelines.trace_scene",
    "traffic.ReshardPlan": "reshards.reshard_scene",
}
_registered: dict[type, SceneFunction] = {}
_found: dict[type, SceneFunction | None] = {}  # by the class of an object


def scene_of(subject: object, **options: Any) -> Scene:
    """Return the scene of a layout, tensor, spec, plan, report, allocator, device, tiler, schedule, pipeline or trace.

    `subject` is the object, and `options` are the options of its scene: `label`, `color` and `address="hex"` for all,
    and its own. An object of a dialect is drawn as its native object, with its `picture_title` if it has one, and its
    `picture_window` in a larger space. `register_scene` adds a scene for another type, and so does an entry point of
    the group `tilewright.scenes` named after the class.

    >>> from tilewright import row_major
    >>> scene_of(row_major(4, 8)).title
    '(4,8):(8,1)'
    """
    owner = type(subject)
    if owner not in _found:
        _found[owner] = _find_scene(owner)
    function = _found[owner]
    if function is not None:
        return function(subject, **options)
    own = unwrap(subject)
    if own is subject:
        classes = ", ".join(sorted({name.rpartition(".")[2] for name in SCENES} | {k.__name__ for k in _registered}))
        raise TypeError(f"cannot draw an object of type {type(subject).__name__!r}; expected one of {classes}")
    title = getattr(subject, "picture_title", None)  # in the words of the dialect
    scene = scene_of(own, **({"title": title} if title else {}) | options)
    window = getattr(subject, "picture_window", None)  # of a part: the space around it, and its box
    if not window:
        return scene
    grid = import_module(f"{__name__}.placements").window_grid(*window)
    return scene if grid is None else replace(scene, panels=(*scene.panels, grid))


def register_scene(owner: type, function: SceneFunction) -> None:
    """Draw objects of a class with a function of your own.

    Args:
        owner: the class; subclasses are drawn alike.
        function: takes the object and options by name, and returns a `Scene`.

    >>> class Chessboard:
    ...     pass
    >>> register_scene(Chessboard, lambda board, **options: Scene("a chessboard"))
    >>> scene_of(Chessboard()).title
    'a chessboard'
    """
    _registered[owner] = function
    _found.clear()


def _find_scene(owner: type) -> SceneFunction | None:
    """Return the function that draws a class or its nearest base, loading its module; None if there is none."""
    for base in owner.__mro__:
        library, _, rest = base.__module__.partition(".")
        name = SCENES.get(f"{rest.partition('.')[0]}.{base.__qualname__}") if library == "tilewright" else None
        if base in _registered:
            return _registered[base]
        if name is not None:
            module, _, function = name.partition(".")
            scene: SceneFunction = getattr(import_module(f"{__name__}.{module}"), function)
            return scene
        plugin = load_plugin("scenes", f"{base.__module__}.{base.__qualname__}", FunctionType)
        if isinstance(plugin, FunctionType):
            return plugin
    return None


def side_by_side(*subjects: Any, title: str = "", **options: Any) -> Scene:
    """Return one scene of several `subjects`, with all their panels; equal elements are marked together.

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
    lettered = list(zip(letters, scenes, strict=True))
    notes = [f"{letter}: {scene.title}. {scene.note}".strip() for letter, scene in lettered]
    return Scene(
        title or "side by side",
        tuple(replace(panel, title=f"{letter}: {panel.title}") for letter, scene in lettered for panel in scene.panels),
        tuple(replace(fact, name=f"{letter}: {fact.name}") for letter, scene in lettered for fact in scene.facts),
        " ".join(notes),
        tuple(accumulate(len(scene.panels) for scene in scenes[:-1])),
    )


_ALPHABET = 26


def _finished_scene(subject: Scene, **options: Any) -> Scene:
    refuse_unknown_options("a finished Scene", options, ())
    return choose_attributes(subject, "this scene", options)  # type: ignore[arg-type]  # which it checks


register_scene(Scene, _finished_scene)
