# SPDX-License-Identifier: Apache-2.0
"""Every public name of 0.2 is where it was, or in the tables of the page about the upgrade."""

import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[4] / "docs" / "upgrade.md"
OF_0_2 = Path(__file__).parents[1] / "surface_of_0_2.txt"
COMPANIONS = ("tilewright_audit", "tilewright_mojo")


def exists(path):
    module, _, name = path.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


@pytest.mark.skipif(not all(map(find_spec, COMPANIONS)), reason="names that moved to a companion need it")
def test_every_name_of_0_2_is_found():
    text = PAGE.read_text(encoding="utf-8").partition("## Names that moved")[2]
    moved_text, _, gone_text = text.partition("## Names that are gone")
    moved = dict(re.findall(r"^\| `([\w.*]+)` \| `([\w.*]+)` \|$", moved_text, re.MULTILINE))
    gone = {
        name.rpartition(".")[2]
        for row in gone_text.splitlines()
        for name in re.findall(r"`([\w.]+)`", row.split("|")[1:2][0] if "|" in row else "")
    }
    names = OF_0_2.read_text(encoding="utf-8").split()
    assert len(names) > 1000
    assert len(moved) > 10
    assert len(gone) > 15
    for name in names:
        if exists(name):
            continue
        module, _, last = name.rpartition(".")
        new = moved.get(name) or moved.get(f"{module}.*", "").replace("*", last)
        assert exists(new) if new else last in gone, f"{name}: say in docs/upgrade.md where it is"
