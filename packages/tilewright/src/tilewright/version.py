# SPDX-License-Identifier: Apache-2.0
"""The version of tilewright, apart from the package, so that its modules can import it."""

__version__ = "0.3.0"
