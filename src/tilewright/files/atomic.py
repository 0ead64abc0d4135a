# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole: written to a temporary neighbour, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: Any) -> Iterator[IO[bytes]]:
    """Return a file to write, as a context, that takes the place of path at the end; after an error path is untouched.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "numbers") as file:
    ...         _ = file.write(b"123")
    ...     (Path(folder) / "numbers").read_bytes()
    b'123'
    """
    target = Path(path)
    neighbour = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with neighbour.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # before the rename, or a power cut could leave a whole name with half a content
        neighbour.replace(target)
    except BaseException:
        neighbour.unlink(missing_ok=True)
        raise
