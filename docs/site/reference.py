# SPDX-License-Identifier: Apache-2.0
"""The pages of the API reference, made from the code as it is: every public name of every package and dialect."""

import ast
import inspect
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

# Every package and dialect with public names, as its page in the reference is called.
PACKAGES = {
    "errors": ("errors",),
    "layout": ("layout",),
    "formats": ("formats",),
    "copying": ("copying",),
    "memory": ("memory",),
    "tensor": ("tensor",),
    "tiling": ("tiling",),
    "analysis": ("analysis",),
    "traffic": ("traffic",),
    "files": ("files",),
    "notation": ("notation",),
    "simt": ("tilewright_mojo.simt",),
    "testing": ("testing",),
    "conversion": ("conversion",),
    "views": ("views",),
    "ttnn": ("ttnn",),
    "ttl": ("ttl",),
    "cute": ("cute",),
    "mojo": (
        "mojo",
        "mojo.layout",
        "tilewright_mojo",
        "tilewright_mojo.layout.tile_tensor",
        "tilewright_mojo.layout.tile_layout",
        "tilewright_mojo.layout.coord",
        "tilewright_mojo.layout.swizzle",
        "tilewright_mojo.layout.math",
        "tilewright_mojo.layout.layout_tensor",
        "tilewright_mojo.std.gpu.host",
    ),
    "audit": ("tilewright_audit",),
    "gpu": ("tilewright_gpu",),
}


def full_name(module: str) -> str:
    """Return the name to import for a module of the library or a companion."""
    return module if module.startswith("tilewright_") else f"tilewright.{module}"


def fenced(text: str) -> str:
    """Return a docstring with every example inside a fence."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.startswith(">>> "):
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


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


def is_of_companion(module: Any, value: Any) -> bool:
    """Return whether a value of a module of the library is defined in a companion."""
    return str(getattr(value, "__module__", "")).partition(".")[0] not in (
        "builtins",
        module.__name__.partition(".")[0],
    )


def source_name(module: Any, name: str) -> str:
    """Return the full name under which the reference lists a public name of a module.

    A name of one of Mojo's modules, which are made from a table, and one that a companion adds, is listed where it is
    defined.
    """
    value = getattr(module, name)
    is_elsewhere = getattr(module, "__file__", None) is None or is_of_companion(module, value)
    return f"{value.__module__}.{name}" if is_elsewhere and kind_of(value) < 2 else f"{module.__name__}.{name}"


def value_lines(path: str, value: Any) -> list[str]:
    """Return the lines of a value, or of a function that a rule made: its docstring, or its repr."""
    name, words = path.rpartition(".")[2], inspect.getdoc(value)
    own = words if words and words != inspect.getdoc(type(value)) else None
    text = fenced(own) if own else f"```python\n{value!r}\n```"
    return [f"### `{name}` {{ #{path} }}", "", text, ""]


def types_page() -> str:
    """Return the Markdown of the page of types: what the names in signatures stand for."""
    parts = ["# Types of arguments", "", "Names that signatures use for what an argument may be.", ""]
    packages = [import_module(full_name(modules[0])) for modules in PACKAGES.values()]
    for front, path in ((package, path) for package in packages for path in module_files(package)):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias" and node.value:
                name, text = ast.unparse(node.target), ast.unparse(node.value).strip("'\"")
                if not name.startswith("_"):
                    parts += [] if name in public_names(front) else [f"[](){{ #{front.__name__}.{name} }}", ""]
                    parts += [f"### `{name}` {{ #{front.__name__}.{path.stem}.{name} }}", ""]
                    parts += [f"```python\n{text}\n```", ""]
    return "\n".join(parts)


def module_files(package: Any) -> list[Path]:
    """Return the sources of a package's modules."""
    return sorted(Path(package.__file__).parent.glob("*.py")) if hasattr(package, "__path__") else []


def reference_page(title: str, modules: tuple[str, ...], drawn: Collection[str] = ()) -> str:
    """Return the Markdown of one page of the reference; functions that are `drawn` have a picture in operations/."""
    parts = [f"# {full_name(modules[0])}", ""]
    for module_name in map(full_name, modules):
        module = import_module(module_name)
        if len(modules) > 1:
            parts += [f"## {module_name}", ""]
        parts += [fenced(inspect.getdoc(module) or ""), ""]
        for name in public_names(module):
            path = source_name(module, name)
            parts += [f"::: {path}", ""] if is_written_down(module, name) else value_lines(path, getattr(module, name))
            if path in drawn:
                parts += [f"![The first example of {name}](operations/{name}.svg){{ .operation }}", ""]
    return "\n".join(parts)
