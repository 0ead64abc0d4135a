# SPDX-License-Identifier: Apache-2.0
"""`tilewright inspect`: the tensors of a file, and one tile of one of them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from .console import Answer, save_picture, table_width, wrap_lines
from .options import FILE, device_option, integer_list, tensors_option
from .program import follow_links_option, refuse_options, verb

if TYPE_CHECKING:
    from ..memory import DeviceLike


@verb("inspect")
@click.argument("file", type=click.Path())
@tensors_option
@click.option(
    "--tile",
    type=integer_list("tile", "row,column, such as 0,3", 2),
    metavar="R,C",
    help="Print one tile of the tensor.",
)
@click.option("--summary", is_flag=True, help="Leave out the list: parameters, bytes by type, layouts, problems.")
@click.option("--show", type=FILE, help="Save a picture: .svg or .html.")
@device_option
@follow_links_option
def command(
    file: str,
    tensors: tuple[str, ...],
    tile: tuple[int, ...] | None,
    summary: bool,
    show: str | None,
    device: DeviceLike | None,
    follow_links: bool,
) -> Answer:
    """List the tensors of a file or directory with their specs, sizes and padding; or print one tile, decoded.

    Files are .safetensors (also sharded, by their index), .npy, .npz, .gguf, .tensorbin, and directories of these. Only
    headers are read. For block formats a tile is printed with the exponents of its blocks; of a tensor in rows, --tile
    prints a window of 32 x 32. Of a tensor on a mesh of devices, --tensor prints what each device holds, and where it
    is in the file.

    \b
    tilewright inspect model.safetensors --summary
    tilewright inspect converted/ --tensor wte.weight --tile 0,3
    tilewright inspect cache/ --tensor '*.wo*' --device 0,1
    """
    from ..files import inspect

    if tensors and tile is None:
        refuse_options(["show"], "on a list of tensors; draw one with tilewright show, or a tile with --tile")
    if tensors or tile is not None:
        refuse_options(["summary"], "on chosen tensors")
    inspection = inspect(file, follow_links, device=device)
    chosen = inspection.select(tensors) if tensors else inspection.tensors if tile is not None else ()
    if tile is not None:
        if len(chosen) != 1:
            raise click.UsageError(f"--tile needs --tensor with one name: {file} holds {len(chosen)} tensors")
        reading = inspection.tile(chosen[0].name, tile[0], tile[1])
        width = max(80, shutil.get_terminal_size((80, 24)).columns)
        return Answer(reading.text(width) + _save_if_asked(reading, show), reading.to_json() | {"show": show})
    if tensors and len(chosen) == 1:
        return Answer(str(chosen[0]), chosen[0].to_json())
    if tensors:
        return Answer(
            lambda: inspection.table(table_width(), chosen),
            lambda: inspection.to_json() | {"tensors": [tensor.to_json() for tensor in chosen]},
        )
    saved = _save_if_asked(inspection, show)
    columns, left_out = table_width(), ("tensors",) if summary else ()
    return Answer(
        lambda: wrap_lines(inspection.text(columns, not summary), columns) + saved,
        lambda: {k: v for k, v in inspection.to_json().items() if k not in left_out} | {"show": show},
    )


def _save_if_asked(subject: object, show: str | None) -> str:
    """Save the picture, if a path was given, and return the line that names it."""
    if show is None:
        return ""
    save_picture(subject, show)
    return f"\nwrote {show}"
