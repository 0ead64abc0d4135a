# SPDX-License-Identifier: Apache-2.0
"""The native engine, driven through its C ABI and compared with models written here."""
