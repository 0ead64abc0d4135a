# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `std`."""

from .. import exports  # makes the modules below
