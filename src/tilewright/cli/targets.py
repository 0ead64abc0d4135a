# SPDX-License-Identifier: Apache-2.0
"""Files that a verb writes: checked before the work begins, and pictures saved with errors that people understand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import TilewrightError
from . import exit_codes
from .failures import Failure, told


def check_target(path: str | Path, replace: bool = True) -> Path:
    """Return the path of a file to be written, if its folder is there and nothing is lost by writing it.

    >>> check_target("picture.svg").name
    'picture.svg'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise Failure(f"{target}: there is no folder {target.parent}; make it first", exit_codes.OUTPUT)
    if not replace and target.exists():
        raise Failure(f"{target} exists; choose another target, or --force to replace it", exit_codes.OUTPUT)
    return target


def save_picture(thing: Any, path: str | Path) -> None:
    """Save the picture of a thing; the name says what kind of file it becomes.

    >>> import tempfile
    >>> from tilewright import row_major
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_picture(row_major(2, 2), f"{folder}/layout.svg")
    """
    from ..views import save, scene_of

    target = check_target(path)
    try:
        save(scene_of(thing), target)
    except OSError as problem:
        raise Failure(told(problem).line, exit_codes.OUTPUT) from None
    except ValueError as problem:
        if isinstance(problem, TilewrightError):
            raise
        raise Failure(str(problem)) from None
