# SPDX-License-Identifier: Apache-2.0
"""Mojo's standard library in Python, a module for each subject; `exports` says which of Mojo's modules has what."""
