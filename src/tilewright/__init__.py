# SPDX-License-Identifier: Apache-2.0
"""tilewright: where does this element live on a tiled machine, and how does it get there?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import CoordinateError, FormatError, LayoutError, TilewrightError, TransferError
from .layout import *  # noqa: F403  (the whole vocabulary of layouts is public here too)

if TYPE_CHECKING:
    from .copy import Placement, Plan, plan_copy, relayout, tiled_layout, tilize, untilize
    from .formats import BlockFormat, ScalarFormat, cast, format_of, quantization_error
    from .tiling import Pipeline, Tile, TilePlan, Tiler, Trace, plan_tiles, stream, suggest_tile

__version__ = "0.0.1"

# Rooms that need NumPy are opened on first use, so that `import tilewright` stays quick.
_LAZY = {
    **dict.fromkeys(("Placement", "Plan", "plan_copy", "relayout", "tiled_layout", "tilize", "untilize"), "copy"),
    **dict.fromkeys(("BlockFormat", "ScalarFormat", "cast", "format_of", "quantization_error"), "formats"),
    **dict.fromkeys(("Pipeline", "Tile", "TilePlan", "Tiler", "Trace"), "tiling"),
    **dict.fromkeys(("plan_tiles", "stream", "suggest_tile"), "tiling"),
}


def __getattr__(name: str) -> Any:
    room = _LAZY.get(name)
    if room is None:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    value = getattr(import_module(f".{room}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
