# SPDX-License-Identifier: Apache-2.0
"""The explorer: a page to type tensors, layouts and kernels into and see where everything goes.

`tilewright explore` serves it on this machine; the playground is the same page with an engine in the browser.
"""

from .form import parse_spec, spell_mesh, spell_spec

__all__ = ["parse_spec", "spell_mesh", "spell_spec"]
