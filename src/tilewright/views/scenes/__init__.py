# SPDX-License-Identifier: Apache-2.0
"""What scenes there are: one module for each kind of thing that can be looked at."""
