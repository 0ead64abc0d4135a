# SPDX-License-Identifier: Apache-2.0
"""What MkDocs is told beyond its configuration: the API pages, the notebooks, and links that leave docs/."""

import inspect
import re
import runpy
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

DOCS = Path(__file__).parents[1]
fenced = runpy.run_path(str(DOCS / "site" / "doctest_fences.py"))["fenced"]
page_of = runpy.run_path(str(DOCS / "site" / "notebook_pages.py"))["page_of"]

# Every room and dialect with public names, as its page in the reference is called.
ROOMS = {
    "errors": ("errors",),
    "layout": ("layout",),
    "formats": ("formats",),
    "copy": ("copy",),
    "memory": ("memory",),
    "tensor": ("tensor",),
    "tiling": ("tiling",),
    "files": ("files",),
    "conversion": ("conversion",),
    "compare": ("compare",),
    "views": ("views",),
    "ttnn": ("ttnn",),
    "ttl": ("ttl",),
    "mojo": (
        "mojo",
        "mojo.layout",
        "mojo.layout.tile_tensor",
        "mojo.layout.tile_layout",
        "mojo.layout.coord",
        "mojo.layout.swizzle",
        "mojo.layout.math",
        "mojo.layout.layout_tensor",
        "mojo.std.gpu.host",
    ),
}


def public_names(module: Any) -> list[str]:
    """Return the public names of a module: its __all__, or what it holds without modules and private names."""
    held = [name for name, value in vars(module).items() if not name.startswith("_") and not inspect.ismodule(value)]
    names = getattr(module, "__all__", None) or [name for name in held if name != "Any"]
    return sorted(names, key=lambda name: (kind_of(getattr(module, name)), name.lower(), name))


def kind_of(value: Any) -> int:
    """Return where a value stands on a page: classes, functions, then all else."""
    return 0 if inspect.isclass(value) else 1 if inspect.isroutine(value) else 2


def is_written_down(module: Any, name: str) -> bool:
    """Return whether a name is a class or function in some source file, not a value or made by a rule on import."""
    value = getattr(module, name)
    home = import_module(value.__module__) if kind_of(value) < 2 else None
    return home is not None and value.__name__ == name and getattr(home, name, None) is value


def told(path: str, value: Any) -> list[str]:
    """Return the lines of a value, or of a function that a rule made: what it says of itself, or what it is."""
    name, words = path.rpartition(".")[2], inspect.getdoc(value)
    own = words if words and words != inspect.getdoc(type(value)) else None
    text = fenced(own) if own else f"```python\n{value!r}\n```"
    return [f"### `{name}` {{ #{path} }}", "", text, ""]


def reference_page(title: str, modules: tuple[str, ...]) -> str:
    """Return the Markdown of one page of the reference."""
    parts = [f"# tilewright.{title}", ""]
    for each in modules:
        module = import_module(f"tilewright.{each}")
        if len(modules) > 1:
            parts += [f"## tilewright.{each}", ""]
        parts += [fenced(inspect.getdoc(module) or ""), ""]
        for name in public_names(module):
            path = f"tilewright.{each}.{name}"
            parts += [f"::: {path}", ""] if is_written_down(module, name) else told(path, getattr(module, name))
    return "\n".join(parts)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the reference and of the notebooks, made from the code as it is now."""
    for notebook in sorted((DOCS / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=page_of(notebook)))
    for title, modules in ROOMS.items():
        files.append(File.generated(config, f"api/{title}.md", content=reference_page(title, modules)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page in which links to files outside docs/ are their text: the site does not carry those files."""
    here = DOCS / Path(page.file.src_uri).parent

    def without(link: re.Match[str]) -> str:
        target = link["target"].split("#")[0]
        leaves = "://" not in target and not (here / target).resolve().is_relative_to(DOCS)
        return link["text"] if target and leaves else link[0]

    return re.sub(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)", without, markdown)
