# SPDX-License-Identifier: Apache-2.0
"""The explorer: a page to type tensors, layouts and kernels into and see where everything goes.

`tilewright explore` serves it on this machine; the playground is the same page with an engine in the browser. A tab of
another distribution is an entry point of the group `tilewright.tabs`, a `Tab`.
"""

from .form import FieldError, FormFields, Tab, parse_spec, render_for_page, spell_mesh, spell_spec

__all__ = ["FieldError", "FormFields", "Tab", "parse_spec", "render_for_page", "spell_mesh", "spell_spec"]
