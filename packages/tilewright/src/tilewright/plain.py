# SPDX-License-Identifier: Apache-2.0
"""`to_plain`: from an object of a dialect to the object of the core that it stands for.

Objects of a dialect have it as `plain`, and whatever takes objects of the core takes them, too.
"""

from __future__ import annotations

from typing import Any


def to_plain(value: Any) -> Any:
    """Return the object of the core that `value` stands for, or `value` itself if it is not of a dialect.

    >>> from tilewright import ttl
    >>> to_plain(ttl.create_shape(4, 3)), to_plain(5)
    (Layout((3, 4), (4, 1)), 5)
    """
    while hasattr(type(value), "plain"):
        value = value.plain
    return value
