# SPDX-License-Identifier: Apache-2.0
"""Mojo's standard library in Python, a module for each subject; `exports` maps Mojo's modules to them."""
