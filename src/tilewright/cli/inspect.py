# SPDX-License-Identifier: Apache-2.0
"""`tilewright inspect`: the tensors of a file, and one tile of one of them."""

from __future__ import annotations

import shutil

import click

from .console import Answer, save_picture
from .options import integer_list
from .program import follow_links_option, verb


@verb("inspect")
@click.argument("file", type=click.Path())
@click.option("--tensor", metavar="NAME", help="Only this tensor.")
@click.option(
    "--tile",
    type=integer_list("tile", "row,column, such as 0,3", 2),
    metavar="R,C",
    help="Print one tile of the tensor.",
)
@click.option("--show", type=click.Path(dir_okay=False), metavar="FILE", help="Save a picture: .svg or .html.")
@follow_links_option
def command(
    file: str, tensor: str | None, tile: tuple[int, ...] | None, show: str | None, follow_links: bool
) -> Answer:
    """List the tensors of a file or directory with their specs, sizes and padding; or print one tile, decoded.

    Files are .safetensors (also sharded, by their index), .npy, .npz, .tensorbin, and directories of these. Only
    headers are read. For block formats a tile is printed with the exponents of its blocks.

    \b
    tilewright inspect model.safetensors
    tilewright inspect converted/ --tensor wte.weight --tile 0,3
    """
    from ..files import inspect

    inspection = inspect(file, follow_links)
    if tile is not None:
        if tensor is None:
            if len(inspection.tensors) != 1:
                raise click.UsageError(f"--tile needs --tensor: {file} holds {len(inspection.tensors)} tensors")
            tensor = inspection.tensors[0].name
        reading = inspection.tile(tensor, tile[0], tile[1])
        width = max(80, shutil.get_terminal_size((80, 24)).columns)
        return Answer(reading.text(width) + _save_if_asked(reading, show), reading.to_json() | {"show": show})
    if tensor is not None:
        facts = inspection.facts(tensor)
        return Answer(str(facts), facts.to_json())
    return Answer(f"{inspection}{_save_if_asked(inspection, show)}", inspection.to_json() | {"show": show})


def _save_if_asked(subject: object, show: str | None) -> str:
    """Save the picture, if a path was given, and return the line that names it."""
    if show is None:
        return ""
    save_picture(subject, show)
    return f"\nwrote {show}"
