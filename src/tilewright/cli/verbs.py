# SPDX-License-Identifier: Apache-2.0
"""The verbs: where each one lives and what it does, in a table, so that help needs no imports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A verb of the program: the module whose `command` it is, and the line that help shows."""

    module: str
    line: str


VERBS = {
    "convert": Entry("convert", "Convert checkpoints to tiled files, resumably and verified."),
    "verify": Entry("verify", "Check converted files: hashes, and values against the source."),
    "inspect": Entry("inspect", "Say what a file holds: tensors, sizes, padding; print a tile."),
    "diff": Entry("diff", "Compare two files across formats and layouts."),
    "explain": Entry("explain", "Say where an element lives: tile, page, core, address; and back."),
    "fit": Entry("fit", "Say whether tensors fit a chip, and what would if they do not."),
    "show": Entry("show", "Draw layouts, tensors and memory: text, SVG, HTML."),
    "explore": Entry("explore", "Open the explorer: a page to type a placement into."),
    "stream": Entry("stream", "Run a compute over files larger than memory, tile by tile."),
    "bench": Entry("bench", "Measure on this machine, as ratios to memcpy and NumPy."),
    "doctor": Entry("doctor", "Say which engines are found, and what is missing."),
    "completion": Entry("completion", "Print the completion script of a shell."),
}
"""Every verb in the order of help: conversion, questions, motion, housekeeping."""
