# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `max`: its `gpu` is the one of `std`, module by module."""

from .. import exports  # makes the modules below
