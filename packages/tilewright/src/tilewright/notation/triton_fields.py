# SPDX-License-Identifier: Apache-2.0
"""What the fields of Triton's encodings may be, before anything is computed from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LayoutError
from .triton_texts import TritonEncoding


def validate_fields(encoding: TritonEncoding) -> None:
    """Raise if a field of an `encoding`, or of one within it, is unknown, or not of the kind that its name says.

    >>> validate_fields(TritonEncoding("swizzled_shared", {"vec": 8}))
    >>> try:
    ...     validate_fields(TritonEncoding("swizzled_shared", {"vec": [8]}))
    ... except LayoutError as problem:
    ...     print(problem)
    vec of #ttg.swizzled_shared must be an integer of at least 1, got [8]
    """
    known = _FIELDS.get(encoding.name)
    for name, value in [*encoding.fields.items(), *encoding.after.items()]:
        if isinstance(value, TritonEncoding):
            validate_fields(value)
        if known is not None and name not in known:
            raise LayoutError(
                f"#ttg.{encoding.name} has a field {name!r}, which may move elements and is not known; known are"
                f" {', '.join(known)}"
            )
        kind, is_valid = _KINDS.get(name, _ANYTHING)
        if not is_valid(value):
            raise LayoutError(f"{name} of #ttg.{encoding.name} must be {kind}, got {value}")
    instruction = encoding.fields.get("instrShape", [16, 16])[:2]
    if encoding.name == "amd_mfma" and not set(instruction) <= {4, 16, 32, 64}:
        raise LayoutError(f"instrShape of #ttg.amd_mfma begins with two of 4, 16, 32 and 64, got {instruction}")


def _is_integer(value: Any) -> bool:
    return type(value) is int  # a bool is not one


def _is_positive(value: Any) -> bool:
    return _is_integer(value) and value >= 1


def _is_row(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_integer, value))


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_row, value))


_Kind = tuple[str, Callable[[Any], bool]]
_ANYTHING: _Kind = ("", lambda value: True)
_INTEGER: _Kind = ("an integer", _is_integer)
_POSITIVE: _Kind = ("an integer of at least 1", _is_positive)
_BOOLEAN: _Kind = ("true or false", lambda value: isinstance(value, bool))
_ROWS: _Kind = ("a list of lists of integers", _are_rows)
_KINDS: dict[str, _Kind] = {
    **dict.fromkeys(("vec", "perPhase", "maxPhase", "kWidth"), _POSITIVE),
    **dict.fromkeys(("opIdx", "dim", "version", "versionMajor", "versionMinor"), _INTEGER),
    **dict.fromkeys(("transposed", "isTransposed", "isTranspose", "fp4Padded"), _BOOLEAN),
    **dict.fromkeys(("register", "lane", "warp", "block", "offset", "CGALayout"), _ROWS),
    "swizzlingByteWidth": ("0, 32, 64 or 128", lambda value: _is_integer(value) and value in (0, 32, 64, 128)),
    "elementBitWidth": ("4, 8, 16, 32 or 64", lambda value: _is_integer(value) and value in (4, 8, 16, 32, 64)),
    "instrShape": (
        "a list of two or three integers of at least 1",
        lambda value: isinstance(value, list) and len(value) in (2, 3) and all(map(_is_positive, value)),
    ),
    "ctaLayout": (
        "fields with lists of lists of integers",
        lambda value: isinstance(value, dict) and all(map(_are_rows, value.values())),
    ),
}

# The fields that each encoding has had, in the versions of Triton since 3.0.
_BLOCKS = ("CTAsPerCGA", "CTASplitNum", "CTAOrder", "CGALayout")
_FIELDS: dict[str, tuple[str, ...]] = {
    "blocked": ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order", *_BLOCKS),
    "linear": ("register", "lane", "warp", "block"),
    "nvidia_mma": ("versionMajor", "versionMinor", "warpsPerCTA", "instrShape", *_BLOCKS),
    "amd_mfma": (
        *("version", "versionMajor", "versionMinor", "warpsPerCTA", "tilesPerWarp", "instrShape", "isTransposed"),
        *("elementBitWidth", *_BLOCKS),
    ),
    "amd_wmma": ("version", "isTranspose", "isTransposed", "ctaLayout", "instrShape", *_BLOCKS),
    "dot_op": ("opIdx", "parent", "kWidth"),
    "slice": ("dim", "parent"),
    "swizzled_shared": ("vec", "perPhase", "maxPhase", "order", *_BLOCKS),
    "nvmma_shared": ("swizzlingByteWidth", "transposed", "elementBitWidth", "fp4Padded", "rank", *_BLOCKS),
    "shared_linear": ("offset", "block", "alignment"),
    "padded_shared": ("order", "shape", "offset", "block", *_BLOCKS),
}
