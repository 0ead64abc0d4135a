# SPDX-License-Identifier: Apache-2.0
"""`tilewright explore`: the explorer page, served on this machine until Ctrl-C."""

from __future__ import annotations

import os
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from .console import Answer, CommandError, Console
from .options import (
    CHIP_OPTIONS,
    FILE_OPTIONS,
    PLACEMENT_OPTIONS,
    SpecOptions,
    device_option,
    spec_options,
)
from .program import follow_links_option, refuse_options, reject_options, verb
from .show import Thing

if TYPE_CHECKING:
    from ..memory import DeviceLike


@verb("explore", speaks=True)
@click.argument("start", required=False, metavar="[SHAPE|FILE|LINK]")
@click.option("--tensor", metavar="NAME", help="Tensor to show, of a FILE that holds several.")
@device_option
@follow_links_option
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on. [8654, or any that is free]")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@spec_options
def command(
    start: str | None,
    tensor: str | None,
    device: DeviceLike | None,
    follow_links: bool,
    port: int | None,
    browser: bool,
    options: SpecOptions,
) -> Answer:
    """Open the explorer: a page where you type a placement and see where everything goes.

    It starts with a SHAPE placed by the options, with a tensor of a FILE and the mesh of devices that shares it, with
    a shared LINK, or with an example. The page is reachable from this machine only, with the key in the printed
    address. Ctrl-C stops it.

    \b
    tilewright explore
    tilewright explore 4x60x90 --dtype bfloat8_b --shard block --grid 8x8
    tilewright explore cache/ --tensor layers.0.attention.wo --device 0,1
    tilewright explore 'http://127.0.0.1:8654/#shape=64x64&dtype=bfloat16'
    """
    from ..explorer.server import PORT, Explorer

    subject = None if start is None else _parse_start(start, options, tensor, device, follow_links)
    if subject is None or subject.stored is None:
        reject_options(FILE_OPTIONS, "needs a file")
    if subject is None:
        refuse_options(PLACEMENT_OPTIONS, "on a link, which states it" if start else "without a SHAPE or FILE")
    fragment = "" if start is None else remove_key(start.rpartition("#")[2])  # empty for the built-in example
    if subject is not None:
        fragment = _initial_fragment(subject, device)
    console = Console.current()
    try:
        server = Explorer(PORT if port is None else port)
    except OSError as problem:
        raise CommandError(
            f"cannot listen on port {port}: {problem.strerror}; choose another, or omit --port"
        ) from None
    with server as explorer:
        link = explorer.link(fragment)
        if console.json:
            console.print_event("serving", url=explorer.url, link=link)
        else:
            click.echo(f"The explorer is at\n\n  {link}\n\nPress Ctrl-C to stop.")
        if browser and not console.json and _has_display():
            webbrowser.open(link)
        with suppress(KeyboardInterrupt):  # that is how it ends
            explorer.serve_forever(poll_interval=0.2)
    return Answer("", {"event": "ended"})


def _has_display() -> bool:
    """Return whether a browser would open a window, rather than take over the terminal."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _parse_start(
    start: str, options: SpecOptions, tensor: str | None, device: DeviceLike | None, follow_links: bool
) -> Thing | None:
    """Return the tensor to start with, None if a link was given."""
    if ("#" in start or "=" in start) and not Path(start).exists():
        return None
    subject = Thing.parse(start, options, tensor, follow_links)
    if device is not None and subject.stored is not None:
        subject.stored.on_device(device)  # which refuses a device that it has not
    return subject


def _initial_fragment(subject: Thing, device: DeviceLike | None) -> str:
    """Return the URL fragment that spells a tensor and the mesh that shares it."""
    from ..explorer import spell_mesh, spell_spec

    stored = subject.stored
    words: dict[str, Any] = spell_spec(subject.spec())
    if stored is not None and stored.mesh is not None and not subject.typed - CHIP_OPTIONS:
        words |= spell_mesh(stored.mesh)
        if device is not None:
            words["device"] = ",".join(map(str, stored.mesh.coordinate_of(device)))
    return urlencode(words)


def remove_key(fragment: str) -> str:
    """Return the fragment of a link without the key of the explorer it came from.

    >>> remove_key("key=abc&shape=4x8")
    'shape=4x8'
    """
    return "&".join(part for part in fragment.split("&") if part and not part.startswith("key="))
