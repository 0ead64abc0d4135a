# SPDX-License-Identifier: Apache-2.0
# Makes the tests of a package importable as tests.<package>: their folders have the names of other modules.
