# SPDX-License-Identifier: Apache-2.0
"""The cache of the Hugging Face hub: a directory for each model, whose snapshots are links to its blobs.

models--ORG--NAME/
    blobs/HASH              the files
    refs/main               the name of a snapshot
    snapshots/REVISION/     links to ../../blobs, under the names of the files
"""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import FileFormatError

_MODEL = re.compile(r"(models|datasets|spaces)--.+")
_SNAPSHOTS = "snapshots"
_MOST_BYTES = 1000  # of a reference, which is the name of a snapshot


def own_tree(folder: Path) -> Path:
    """Return the directory that links of a folder may lead into: the folder, or for a snapshot the model's directory.

    >>> own_tree(Path("/hub/models--a--b/snapshots/12ab/sub")).name, own_tree(Path("/hub/models--a--b/other")).name
    ('models--a--b', 'other')
    """
    whole = folder.resolve()
    for parent in whole.parents:
        if _MODEL.fullmatch(parent.name) and whole.relative_to(parent).parts[0] == _SNAPSHOTS:
            return parent
    return whole


def checkpoint_folder(folder: Path) -> Path:
    """Return the folder that holds the files of a checkpoint: for a model's directory of the hub, its snapshot.

    >>> checkpoint_folder(Path("checkpoint"))
    PosixPath('checkpoint')
    """
    if not _MODEL.fullmatch(folder.resolve().name) or not (folder / _SNAPSHOTS).is_dir():
        return folder
    found = sorted([each for each in (folder / _SNAPSHOTS).iterdir() if each.is_dir()])
    main = folder / "refs" / "main"
    if main.is_file() and main.stat().st_size < _MOST_BYTES:
        named = main.read_text(encoding="utf-8", errors="replace").strip()
        found = [each for each in found if each.name == named] or found
    if len(found) != 1:
        raise FileFormatError(
            f"{folder} has {len(found)} snapshots, and refs/main names none of them; name the folder of one:"
            f" {', '.join(each.name for each in found[:8]) or 'there is none, so download the model again'}"
        )
    return found[0]
