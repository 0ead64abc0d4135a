# SPDX-License-Identifier: Apache-2.0
"""Scenes of layouts, tensors, plans and memory, as text, SVG or one HTML file."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .animation import Animation, PanelSteps, animate
    from .html import to_fragment, to_html
    from .layout_grid import MAX_SIDE
    from .output import notebook_html, save, show, widget
    from .scene import Cell, Entry, Fact, Field, Flow, Grid, Outline, Panel, Scene, Span, Tracks, to_data, to_json
    from .scene_options import SceneOptions, scene_function
    from .scenes import register_scene, scene_of, side_by_side
    from .scenes.layouts import layout_scene, plan_scene, swizzle_scene
    from .scenes.memory_maps import inspection_scene, memory_scene
    from .scenes.meshes import assembly_scene, mesh_scene
    from .scenes.pipelines import schedule_scene, tiler_scene, trace_scene
    from .scenes.placements import page_scene, spec_scene
    from .scenes.reshards import reshard_scene
    from .scenes.tensors import (
        block_scene,
        comparison_scene,
        comparisons_scene,
        difference_scene,
        tensor_scene,
        tile_scene,
        values_scene,
    )
    from .scenes.threads import atom_scene, bank_scene, distribute_scene, linear_scene, thread_value_scene
    from .svg import to_svg
    from .text import to_text

_NAMES = {
    "animation": ("Animation", "PanelSteps", "animate"),
    "html": ("to_fragment", "to_html"),
    "layout_grid": ("MAX_SIDE",),
    "output": ("notebook_html", "save", "show", "widget"),
    "scene": (
        "Cell", "Entry", "Fact", "Field", "Flow", "Grid", "Outline", "Panel", "Scene", "Span", "Tracks", "to_data",
        "to_json",
    ),
    "scene_options": ("SceneOptions", "scene_function"),
    "scenes": ("register_scene", "scene_of", "side_by_side"),
    "scenes.layouts": ("layout_scene", "plan_scene", "swizzle_scene"),
    "scenes.memory_maps": ("inspection_scene", "memory_scene"),
    "scenes.meshes": ("assembly_scene", "mesh_scene"),
    "scenes.pipelines": ("schedule_scene", "tiler_scene", "trace_scene"),
    "scenes.placements": ("page_scene", "spec_scene"),
    "scenes.reshards": ("reshard_scene",),
    "scenes.tensors": (
        "block_scene", "comparison_scene", "comparisons_scene", "difference_scene", "tensor_scene", "tile_scene",
        "values_scene",
    ),
    "scenes.threads": ("atom_scene", "bank_scene", "distribute_scene", "linear_scene", "thread_value_scene"),
    "svg": ("to_svg",),
    "text": ("to_text",),
}  # fmt: skip
if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "Animation", "Cell", "Entry", "Fact", "Field", "Flow", "Grid", "Outline", "Panel", "PanelSteps", "Scene",
    "SceneOptions", "Span", "Tracks", "animate", "assembly_scene", "atom_scene", "bank_scene", "block_scene",
    "comparison_scene", "comparisons_scene", "difference_scene", "distribute_scene", "inspection_scene",
    "layout_scene", "linear_scene", "memory_scene", "mesh_scene", "notebook_html", "page_scene",
    "plan_scene", "register_scene", "reshard_scene", "save", "scene_function", "scene_of", "schedule_scene", "show",
    "side_by_side", "spec_scene", "swizzle_scene", "tensor_scene", "thread_value_scene", "tile_scene", "tiler_scene",
    "to_data", "to_fragment", "to_html", "to_json", "to_svg", "to_text", "trace_scene", "values_scene", "widget",
]  # fmt: skip
