# SPDX-License-Identifier: Apache-2.0
"""Real ttnn programs on a mock machine: what they would do with the memory of a card, before there is one.

pytest loads the plug-in in here at every start, so the package itself loads nothing.
"""
