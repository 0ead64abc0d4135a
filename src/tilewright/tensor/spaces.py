# SPDX-License-Identifier: Apache-2.0
"""Address spaces: labels that say which memory of a device a tensor lies in."""

from enum import Enum


class AddressSpace(Enum):
    """The memory that a tensor lies in. On a host it is only a label.

    >>> print(AddressSpace.SHARED)
    AddressSpace.SHARED
    """

    GENERIC = 0
    GLOBAL = 1
    SHARED = 3
    CONSTANT = 4
    LOCAL = 5
