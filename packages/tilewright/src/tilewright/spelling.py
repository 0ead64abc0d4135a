# SPDX-License-Identifier: Apache-2.0
"""How words are spelled: case, dashes and spaces do not matter, and a few words have a synonym."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

_SYNONYMS = {"column_major": "col_major", "tiled": "tile"}


def canonical_word(word: str) -> str:
    """Return a `word` as the library spells it: in lower case, with underscores, and the one synonym it uses.

    >>> [canonical_word(word) for word in ("ROW-MAJOR", "Column Major", "Tiled", "l1")]
    ['row_major', 'col_major', 'tile', 'l1']
    """
    spelled = "_".join(word.lower().replace("-", " ").replace("_", " ").split())
    return _SYNONYMS.get(spelled, spelled)


def suggest_key(key: str, known: Collection[str]) -> str:
    """Return what to write instead of an unknown `key`: the `known` one that is nearest, or else the list of them.

    >>> suggest_key("dtyp", ["dtype", "tile"]), suggest_key("x", ["dtype", "tile"])
    ("did you mean 'dtype'?", 'known keys: dtype, tile')
    """
    near = get_close_matches(key, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
