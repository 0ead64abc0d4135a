# SPDX-License-Identifier: Apache-2.0
# Makes the tests of a room importable as tests.<room>: without it, tests/copying would clash with Python's own `copy`.
