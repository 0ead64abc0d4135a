# SPDX-License-Identifier: Apache-2.0
"""The explorer: a page on this machine to type a placement into and see where everything goes."""

from .form import parse_spec, spell_mesh, spell_spec
from .server import Explorer

__all__ = ["Explorer", "parse_spec", "spell_mesh", "spell_spec"]
