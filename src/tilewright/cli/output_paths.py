# SPDX-License-Identifier: Apache-2.0
"""Output paths of a verb: checked before the work begins; pictures saved with readable errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import TilewrightError
from .failures import CommandError, ExitCode, describe_error


def check_output_path(path: str | Path, replace: bool = True) -> Path:
    """Return the path of a file to be written, if its folder exists and nothing is overwritten unasked.

    >>> check_output_path("picture.svg").name
    'picture.svg'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise CommandError(f"{target}: the folder {target.parent} does not exist; create it first", ExitCode.OUTPUT)
    if not replace and target.exists():
        raise CommandError(f"{target} exists; choose another target, or --force to replace it", ExitCode.OUTPUT)
    return target


def save_picture(subject: Any, path: str | Path) -> None:
    """Save a picture of `subject`; the suffix of `path` chooses the kind of file.

    >>> import tempfile
    >>> from tilewright import row_major
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_picture(row_major(2, 2), f"{folder}/layout.svg")
    """
    from ..views import save, scene_of

    target = check_output_path(path)
    try:
        save(scene_of(subject), target)
    except OSError as problem:
        raise CommandError(describe_error(problem).line, ExitCode.OUTPUT) from None
    except ValueError as problem:
        if isinstance(problem, TilewrightError):
            raise
        raise CommandError(str(problem)) from None
