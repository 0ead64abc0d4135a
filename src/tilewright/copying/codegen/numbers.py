# SPDX-License-Identifier: Apache-2.0
"""Scalar conversions in C, with the bits of `formats.cast`.

A raw element is widened to a type that holds it exactly (f32, f64, a signed or an unsigned integer), and that is
narrowed to the target; so the rules are written once for each format.
"""

from __future__ import annotations

from ...formats import ScalarFormat

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

_FUNCTIONS = {
    "half_value": """\
INLINE f32 half_value(u16 x) {
    const u32 sign = (x & 0x8000u) << 16, magnitude = x & 0x7fffu;
    // A subnormal is an integer times 2^-24: put it under the exponent of 2^-14 and take that away again.
    const u32 tiny = bits_of(float_of((magnitude << 13) + (113u << 23)) - float_of(113u << 23));
    const u32 normal = (magnitude << 13) + (112u << 23);
    if (magnitude > 0x7c00u) return float_of(0x7fc00000u);
    return float_of(sign | (magnitude < 0x400u ? tiny : magnitude == 0x7c00u ? 0x7f800000u : normal));
}
""",
    "e4m3_value": """\
INLINE f32 e4m3_value(u8 x) {
    const u32 sign = (x & 0x80u) << 24, magnitude = x & 0x7fu;
    const u32 tiny = bits_of((f32)magnitude * float_of(118u << 23));  // times 2^-9
    if (magnitude == 0x7fu) return float_of(0x7fc00000u);
    return float_of(sign | (magnitude < 8u ? tiny : (magnitude << 20) + (120u << 23)));
}
""",
    "half_code": """\
INLINE u16 half_code(f32 x) {
    const u32 u = bits_of(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    const u32 normal = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
    // Adding 0.5 leaves exactly the bits of a subnormal at the bottom, rounded by the addition.
    const u32 tiny = bits_of(float_of(a < 0x38800000u ? a : 0u) + 0.5f) - 0x3f000000u;
    if (a > 0x7f800000u) return 0x7e00u;
    return (u16)(sign | (a < 0x38800000u ? tiny : a >= 0x47800000u ? 0x7c00u : normal));
}
""",
    "brain_code": """\
INLINE u16 brain_code(f32 x) {
    const u32 u = bits_of(x);
    return (u16)((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
""",
    "e4m3_code": """\
INLINE u8 e4m3_code(f32 x) {
    const u32 u = bits_of(x), sign = (u >> 24) & 0x80u, a = u & 0x7fffffffu;
    const u32 clamped = a < 0x43e00000u ? a : 0x43e00000u;
    const u32 rounded = ((clamped + 0x7ffffu + ((clamped >> 20) & 1u)) >> 20) - (120u << 3);
    return (u8)(a > 0x7f800000u ? 0x7fu : sign | (a < 0x3c800000u ? 0u : rounded));
}
""",
    "e5m2_code": """\
INLINE u8 e5m2_code(f32 x) {
    const u32 u = bits_of(x), sign = (u >> 24) & 0x80u, a = u & 0x7fffffffu;
    const u32 clamped = a < 0x47600000u ? a : 0x47600000u;
    const u32 normal = ((clamped + 0xfffffu + ((clamped >> 21) & 1u)) >> 21) - (112u << 2);
    const u32 tiny = bits_of(float_of(a < 0x38800000u ? a : 0u) + 128.0f) - 0x43000000u;
    return (u8)(a > 0x7f800000u ? 0x7eu : sign | (a < 0x38800000u ? tiny : normal));
}
""",
}


def raw_type(size: int) -> str:
    """Return the unsigned type that holds the bits of an element of so many bytes.

    >>> raw_type(2)
    'u16'
    """
    return f"u{8 * size}"


def converter(name: str, source: ScalarFormat, target: ScalarFormat) -> str:
    """Return the C text of a function from the bits of one format to those of another.

    >>> from tilewright.formats import format_of
    >>> print(converter("converted", format_of("bfloat16"), format_of("float32")))
    INLINE u32 converted(u16 x) { return bits_of(float_of((u32)x << 16)); }
    <BLANKLINE>
    """
    before, after = raw_type(source.itemsize), raw_type(target.itemsize)
    wide, value = _WIDEN[source.name]
    body = f"return {_narrowed(target, wide, value)};"
    if target.kind in ("int", "uint") and wide in ("f32", "f64"):
        body = f"const {wide} wide = {value}; {_truncated(target, wide)}"
    elif target.name in ("float32", "float64") and wide in ("f32", "f64") and _TYPE[target.name] != wide:
        nan = "0x7fc00000u" if target.name == "float32" else "0x7ff8000000000000u"
        body = f"const {wide} wide = {value}; return wide == wide ? {_narrowed(target, wide, 'wide')} : {nan};"
    return "".join(_with_functions(f"INLINE {after} {name}({before} x) {{ {body} }}\n"))


def reader(name: str, element: ScalarFormat) -> tuple[str, list[str]]:
    """Return the type that a program computes elements of a format with, and the functions that read one as such.

    >>> from tilewright.formats import format_of
    >>> reader("value", format_of("bfloat16"))
    ('f32', ['INLINE f32 value(u16 x) { return float_of((u32)x << 16); }\\n'])
    """
    wide, value = _WIDEN[element.name]
    return wide, _with_functions(f"INLINE {wide} {name}({raw_type(element.itemsize)} x) {{ return {value}; }}\n")


def writer(name: str, element: ScalarFormat) -> tuple[str, list[str]]:
    """Return the type that a program computes elements of a format with, and the functions that make bits of it.

    >>> from tilewright.formats import format_of
    >>> writer("code", format_of("int16"))
    ('i32', ['INLINE u16 code(i32 x) { return (u16)(x); }\\n'])
    """
    wide, _ = _WIDEN[element.name]
    body = f"return {_narrowed(element, wide, 'x')};"
    return wide, _with_functions(f"INLINE {raw_type(element.itemsize)} {name}({wide} x) {{ {body} }}\n")


def _with_functions(text: str) -> list[str]:
    return [*[function for key, function in _FUNCTIONS.items() if f"{key}(" in text], text]


def needs_doubles(*formats: object) -> bool:
    """Return whether a format among these is float64, which not every OpenCL device has.

    >>> from tilewright.formats import format_of
    >>> needs_doubles(format_of("float64"), format_of("int8"))
    True
    """
    return any(getattr(each, "name", "") == "float64" for each in formats)


_TYPE = {"float32": "f32", "float64": "f64"}


def _narrowed(target: ScalarFormat, wide: str, value: str) -> str:
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


def _truncated(target: ScalarFormat, wide: str) -> str:
    """Return statements that cut off the fraction; out of range is the nearest limit, NaN is 0."""
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
