# SPDX-License-Identifier: Apache-2.0
"""Pictures on pages are made by the pages: a block that shows a thing in x.svg is the source of docs/images/x.svg.

python -m tests.docs.pictures          # from the repository's root: run the pages, and write their pictures
"""

import re
import sys
import tempfile
from pathlib import Path

from .pages import DOCS, page_name, page_paths
from .running import run_page

IMAGES = DOCS / "images"
OWN_SCRIPTS = ("gallery_", "conformance_", "performance_", "where.svg")  # written by tools/pictures


def pictures_on(path: Path) -> set[str]:
    """Return the names of the pictures that a page shows and has to make itself."""
    shown = re.findall(r"!\[[^\]]*\]\([^)]*?([\w-]+\.svg)\)", path.read_text(encoding="utf-8"))
    return {name for name in shown if not name.startswith(OWN_SCRIPTS)}


def differences(path: Path, folder: Path) -> list[str]:
    """Return what is wrong with the pictures of a page that has been run in a folder."""
    found = []
    for name in sorted(pictures_on(path)):
        made, kept = folder / name, IMAGES / name
        if not made.is_file():
            found.append(f"{page_name(path)} shows {name} and does not make it")
        elif not kept.is_file() or made.read_bytes() != kept.read_bytes():
            found.append(f"{name} is out of date")
    return found


def main() -> int:
    """Run the pages that make pictures, and keep the pictures."""
    for path in page_paths():
        names = pictures_on(path)
        if names:
            with tempfile.TemporaryDirectory() as folder:
                run_page(path, Path(folder))
                for name in sorted(names):
                    (IMAGES / name).write_bytes((Path(folder) / name).read_bytes())
                    print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
