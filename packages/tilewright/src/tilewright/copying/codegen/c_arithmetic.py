# SPDX-License-Identifier: Apache-2.0
"""Conversions of elements in C, with the same results as `formats.cast`.

A scalar is widened to a type that holds it exactly (f32, f64, a signed or an unsigned integer), which is then narrowed
to the target: one rule per format.
"""

from __future__ import annotations

from ...formats import ScalarFormat
from .c_language import read_sections

_WIDEN = {
    "float64": ("f64", "double_of(x)"),
    "float32": ("f32", "float_of(x)"),
    "float16": ("f32", "half_value(x)"),
    "bfloat16": ("f32", "float_of((u32)x << 16)"),
    "float8_e4m3": ("f32", "e4m3_value(x)"),
    "float8_e5m2": ("f32", "half_value((u16)(x << 8))"),
    "int8": ("i32", "(i8)x"),
    "int16": ("i32", "(i16)x"),
    "int32": ("i32", "(i32)x"),
    "int64": ("i64", "(i64)x"),
    "uint8": ("u32", "x"),
    "uint16": ("u32", "x"),
    "uint32": ("u32", "x"),
    "uint64": ("u64", "x"),
    "bool": ("u32", "x != 0"),
}

_FROM_SINGLE = {
    "float16": "half_code",
    "bfloat16": "brain_code",
    "float8_e4m3": "e4m3_code",
    "float8_e5m2": "e5m2_code",
}


def raw_type(size: int) -> str:
    """Return the unsigned C type of `size` bytes.

    >>> raw_type(2)
    'u16'
    """
    return f"u{8 * size}"


def conversion_function(name: str, source: ScalarFormat, target: ScalarFormat) -> str:
    """Return a C function that converts the bits of one format to those of another.

    >>> from tilewright.formats import format_of
    >>> print(conversion_function("converted", format_of("bfloat16"), format_of("float32")))
    INLINE u32 converted(u16 x) { return bits_of(float_of((u32)x << 16)); }
    <BLANKLINE>
    """
    before, after = raw_type(source.itemsize), raw_type(target.itemsize)
    wide, value = _WIDEN[source.name]
    body = f"return {_narrow_expression(target, wide, value)};"
    if target.kind in ("int", "uint") and wide in ("f32", "f64"):
        body = f"const {wide} wide = {value}; {_truncate_statements(target, wide)}"
    elif target.name in ("float32", "float64") and wide in ("f32", "f64") and _TYPE[target.name] != wide:
        nan = "0x7fc00000u" if target.name == "float32" else "0x7ff8000000000000u"
        body = f"const {wide} wide = {value}; return wide == wide ? {_narrow_expression(target, wide, 'wide')} : {nan};"
    return "".join(_with_helpers(f"INLINE {after} {name}({before} x) {{ {body} }}\n"))


def reader_functions(name: str, element: ScalarFormat) -> tuple[str, list[str]]:
    """Return the C type for computing with a format, and the functions that convert its bits to that type.

    >>> from tilewright.formats import format_of
    >>> reader_functions("value", format_of("bfloat16"))
    ('f32', ['INLINE f32 value(u16 x) { return float_of((u32)x << 16); }\\n'])
    """
    wide, value = _WIDEN[element.name]
    return wide, _with_helpers(f"INLINE {wide} {name}({raw_type(element.itemsize)} x) {{ return {value}; }}\n")


def writer_functions(name: str, element: ScalarFormat) -> tuple[str, list[str]]:
    """Return the C type for computing with a format, and the functions that convert that type to its bits.

    >>> from tilewright.formats import format_of
    >>> writer_functions("code", format_of("int16"))
    ('i32', ['INLINE u16 code(i32 x) { return (u16)(x); }\\n'])
    """
    wide, _ = _WIDEN[element.name]
    body = f"return {_narrow_expression(element, wide, 'x')};"
    return wide, _with_helpers(f"INLINE {raw_type(element.itemsize)} {name}({wide} x) {{ {body} }}\n")


def _with_helpers(text: str) -> list[str]:
    """Return a function after the helper functions that it calls."""
    return [*[helper for name, helper in read_sections("conversions").items() if f"{name}(" in text], text]


def needs_double(*formats: object) -> bool:
    """Return whether one of the formats is float64, which some OpenCL devices lack.

    >>> from tilewright.formats import format_of
    >>> needs_double(format_of("float64"), format_of("int8"))
    True
    """
    return any(getattr(number_format, "name", "") == "float64" for number_format in formats)


_TYPE = {"float32": "f32", "float64": "f64"}


def _narrow_expression(target: ScalarFormat, wide: str, value: str) -> str:
    """Return an expression that converts a value of the C type `wide` to the bits of a format."""
    if target.name in _FROM_SINGLE:
        return f"{_FROM_SINGLE[target.name]}((f32)({value}))"
    if target.name == "float32":
        return f"bits_of((f32)({value}))" if wide != "f32" else f"bits_of({value})"
    if target.name == "float64":
        return f"double_bits((f64)({value}))"
    if target.kind == "bool":
        # bits rather than a comparison, since a device may take subnormals for zero
        if wide == "f32":
            return f"(u8)((bits_of({value}) & 0x7fffffffu) != 0)"
        if wide == "f64":
            return f"(u8)((double_bits({value}) & 0x7fffffffffffffffu) != 0)"
        return f"(u8)(({value}) != 0)"
    return f"({raw_type(target.itemsize)})({value})"


def _truncate_statements(target: ScalarFormat, wide: str) -> str:
    """Return statements that truncate; out of range becomes the nearest limit, NaN becomes 0."""
    low, high = int(target.limits.lowest), int(target.limits.highest)
    raw, bits = raw_type(target.itemsize), 8 * target.itemsize
    own = raw if target.kind == "uint" else f"i{bits}"
    suffix = "f" if wide == "f32" else ""
    lowest, highest = (f"({raw}){value & (2**bits - 1):#x}u" for value in (low, high))
    # one past the highest is a power of two and the lowest one or zero: both exact in any float
    return (
        f"if (!(wide > {float(low)!r}{suffix})) return wide == wide ? {lowest} : ({raw})0; "
        f"if (wide >= {float(high + 1)!r}{suffix}) return {highest}; return ({raw})({own})wide;"
    )
