# SPDX-License-Identifier: Apache-2.0
"""How words are spelled: case, dashes and spaces do not matter, and a few words have a synonym."""

from __future__ import annotations

_SYNONYMS = {"column_major": "col_major", "tiled": "tile"}


def canonical_word(word: str) -> str:
    """Return a `word` as the library spells it: in lower case, with underscores, and the one synonym it uses.

    >>> [canonical_word(word) for word in ("ROW-MAJOR", "Column Major", "Tiled", "l1")]
    ['row_major', 'col_major', 'tile', 'l1']
    """
    spelled = "_".join(word.lower().replace("-", " ").replace("_", " ").split())
    return _SYNONYMS.get(spelled, spelled)
