# SPDX-License-Identifier: Apache-2.0
"""Modules that the playground brings only after Python has started: a question that needs one is asked again then."""

import gc
import importlib
import sys


class NotHereYet(BaseException):
    """A module is still on its way; no `except Exception` holds it up."""


class LaterModules:
    """The last finder: it knows which modules will come, and lets all others be missing."""

    def __init__(self, names: frozenset[str]) -> None:
        """Expect the modules with these full names."""
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Stop whoever imports a module that will come."""
        if name in self.names:
            raise NotHereYet(name)


def expect(names: frozenset[str]) -> None:
    """Let questions wait for the modules with these names."""
    sys.meta_path.append(LaterModules(names))


def arrived() -> None:
    """Find the modules in the file system from now on."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, LaterModules)]
    importlib.invalidate_caches()


def leave_library() -> None:
    """Forget the archive of Python's library, which will not be there, and what is no longer used."""
    sys.path[:] = [path for path in sys.path if not path.endswith(".zip")]
    sys.path_importer_cache.clear()
    gc.collect()
