# SPDX-License-Identifier: Apache-2.0
"""A checking SIMT machine: kernels run without a GPU, and the machine says what is wrong with them."""
