# SPDX-License-Identifier: Apache-2.0
"""What MkDocs is told beyond its configuration: API pages and their pictures, notebooks, and links that leave docs/."""

import html
import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

DOCS = Path(__file__).parents[1]
reference = runpy.run_path(str(DOCS / "site" / "reference.py"))
page_of = runpy.run_path(str(DOCS / "site" / "notebook_pages.py"))["page_of"]
operation_pictures = runpy.run_path(str(DOCS / "site" / "operation_pictures.py"))["operation_pictures"]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the reference and of the notebooks, made from the code as it is now."""
    for notebook in sorted((DOCS / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=page_of(notebook)))
    files.append(File.generated(config, "api/types.md", content=reference["types_page"]()))
    pictures = operation_pictures()
    for name, picture in pictures.items():
        files.append(File.generated(config, f"api/operations/{name}.svg", content=picture))
    for title, modules in reference["PACKAGES"].items():
        page = reference["reference_page"](title, modules, {f"tilewright.layout.{name}" for name in pictures})
        files.append(File.generated(config, f"api/{title}.md", content=page))
    return files


def description_of(markdown: str) -> str:
    """Return the first sentences of a page, for search engines: at most 160 characters, without markup."""
    paragraphs = re.sub(r"^```.*?^```$|^(?:#|<|!\[|    ).*?$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    text = " ".join(next((part for part in re.split(r"\n\s*\n", paragraphs) if part.strip()), "").split())
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)|[`*]", r"\1", text)
    if len(text) > 160:
        sentences = re.match(r".{40,158}[.?](?= )", text)
        text = sentences[0] if sentences else text[:157].rsplit(" ", 1)[0].rstrip(",;:") + "..."
    return html.escape(text)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page in which links to files outside docs/ are their text: the site does not have those files.

    Sessions are marked as such, so that prompts and answers look different; doctest's `<BLANKLINE>` is a blank line.
    """
    if page.file.src_uri.startswith("questions/"):
        page.meta["search"] = {"boost": 4}  # what people search for, first
        page.meta["title"] = markdown.splitlines()[0].removeprefix("# ")
    page.meta.setdefault("description", description_of(markdown))
    markdown = re.sub(r"^```python(?=\n>>> )", "```pycon", markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^<BLANKLINE>$", "", markdown, flags=re.MULTILINE)
    here = DOCS / Path(page.file.src_uri).parent

    def without(link: re.Match[str]) -> str:
        target = link["target"].split("#")[0]
        leaves = "://" not in target and not (here / target).resolve().is_relative_to(DOCS)
        return link["text"] if target and leaves else link[0]

    return re.sub(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)", without, markdown)
