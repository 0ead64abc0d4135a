# SPDX-License-Identifier: Apache-2.0
"""The explorer: a page on this machine to type a placement into and see where everything goes."""

from .form import spec_of, words_of
from .server import Explorer

__all__ = ["Explorer", "spec_of", "words_of"]
