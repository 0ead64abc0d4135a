# SPDX-License-Identifier: Apache-2.0
"""The public surface, name by name: a name comes or goes only together with its line in surface.txt.

python -m tests.test_surface     # writes the file anew, where the change is meant
"""

import importlib
from importlib.util import find_spec
from inspect import ismodule
from pathlib import Path

COMPANIONS = tuple(
    package
    for package in ("tilewright_audit", "tilewright_gpu", "tilewright_mojo", "tilewright_mojo.simt")
    if find_spec(package.partition(".")[0]) is not None
)
PACKAGES = (
    "tilewright",
    *[
        f"tilewright.{package}"
        for package in (
            "analysis", "conversion", "copying", "cute", "files", "formats", "layout", "memory",
            "mojo", "notation", "tensor", "testing", "tiling", "traffic", "ttl", "ttnn", "views",
        )
    ],
    *COMPANIONS,
)  # fmt: skip
RECORD = Path(__file__).with_name("surface.txt")


def public_names(package: str) -> list[str]:
    """Return the names that a package offers: those it lists, or all that are neither private nor modules."""
    module = importlib.import_module(package)
    listed = getattr(module, "__all__", None)
    found = [name for name in vars(module) if not name.startswith("_") and not ismodule(getattr(module, name))]
    names = found if listed is None else listed
    return sorted([name for name in names if not name.startswith("TTL_")])  # a rule, which tests/ttl has


def surface() -> str:
    """Return the public names of every package, one a line."""
    return "".join([f"{package}.{name}\n" for package in PACKAGES for name in public_names(package)])


def test_the_public_surface_is_what_was_agreed():
    recorded = RECORD.read_text(encoding="utf-8").split()
    agreed, found = {line for line in recorded if line.rpartition(".")[0] in PACKAGES}, set(surface().split())
    assert not found - agreed, "new names: document them, then run this file to record them"
    assert not agreed - found, "names that users may rely on are gone: keep them, or say so in CHANGELOG.md"


def test_every_public_name_is_there():
    for line in RECORD.read_text(encoding="utf-8").split():
        package, _, name = line.rpartition(".")
        if package not in PACKAGES:
            continue  # of a companion that is not installed
        assert hasattr(importlib.import_module(package), name), line


if __name__ == "__main__":
    RECORD.write_text(surface(), encoding="utf-8")
