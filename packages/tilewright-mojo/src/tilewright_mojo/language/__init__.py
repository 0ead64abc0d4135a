# SPDX-License-Identifier: Apache-2.0
"""A front end for Mojo source: programs are parsed, checked, lowered to Python's syntax, and run on the dialect."""
