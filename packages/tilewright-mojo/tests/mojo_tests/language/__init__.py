# SPDX-License-Identifier: Apache-2.0
"""Tests of the front end for Mojo source."""
