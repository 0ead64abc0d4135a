# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of bfloat8_b and its family in C: four codes at a time, with the bits of `formats.BlockFormat`.

Where the exponents allow it, codes are made by float instructions, which devices have most of: a power of two aligns
a value exactly, truncation drops what the hardware's shift would, and adding 2^23 rounds to even.
"""

from __future__ import annotations

from ...formats import BlockFormat

BLOCK_FLOATS = ("bfloat8_b", "bfloat4_b", "bfloat2_b", "bfloat8_a", "bfloat4_a", "bfloat2_a")

_MAGNITUDE = {
    False: "INLINE u32 magnitude(u32 x) { return x & 0x7fffffffu; }\n",
    True: """\
INLINE u32 magnitude(u32 x) {  // with an exponent of five bits
    const u32 low = 112u << 23, high = (144u << 23) - 1u, a = x & 0x7fffffffu;
    return (a < low ? low : a > high ? high : a) - low;
}
""",
}

_CODE = """\
{word} u32 code(u32 x, u32 shared) {{  // for any exponent
    const u32 a = magnitude(x), shift = shared - (a >> 23);
    const u32 mantissa = (x & 0x7f800000u) ? (a & 0x7fffffu) | 0x800000u : 0u;
    const u32 aligned = shift > 31u ? 0u : mantissa >> shift;
    const u32 rounded = (aligned + {below_half:#x}u + ((aligned >> {cut}u) & 1u)) >> {cut}u;
    const u32 q = rounded < {top}u ? rounded : {top}u;
    return q ? q | (x >> 31) << {m}u : 0u;
}}
"""

_FAST_CODES = """\
INLINE u32 rounded(u32 x, f32 power) {{
    const f32 aligned = smaller(truncated(absolute(float_of(x)) * power), {limit});
    return bits_of(aligned * {step} + 8388608.0f);
}}
INLINE u32 four_codes(u32 a, u32 b, u32 c, u32 d, u32 shared) {{
    if (shared - 24u > 230u) {{
        return low_bytes(code(a, shared), code(b, shared), code(c, shared), code(d, shared));
    }}
    const f32 power = float_of((277u - shared) << 23);  // 2^(150 - shared)
    const u32 q = low_bytes(rounded(a, power), rounded(b, power), rounded(c, power), rounded(d, power));
    const u32 some = q + 0x7f7f7f7fu;  // bit 7 where q is not 0: zero has no sign
    return q | (((top_bytes(a, b, c, d) & some) & 0x80808080u) >> {sign}u);
}}
"""

_SLOW_CODES = """\
INLINE u32 four_codes(u32 a, u32 b, u32 c, u32 d, u32 shared) {
    return low_bytes(code(a, shared), code(b, shared), code(c, shared), code(d, shared));
}
"""

_DENSE = {
    8: "INLINE u32 dense(u32 w) { return w; }\n",
    4: "INLINE u32 dense(u32 w) { w |= w >> 4; return (w & 0xffu) | ((w >> 8) & 0xff00u); }\n",
    2: "INLINE u32 dense(u32 w) { w |= w >> 6; return (w & 0xfu) | ((w >> 12) & 0xf0u); }\n",
}

_SPARSE = {
    8: "INLINE u32 sparse(u32 w) { return w; }\n",
    4: "INLINE u32 sparse(u32 w) { w = (w & 0xffu) | (w & 0xff00u) << 8; return (w | w << 4) & 0x0f0f0f0fu; }\n",
    2: "INLINE u32 sparse(u32 w) { w = (w & 0xfu) | (w & 0xf0u) << 12; return (w | w << 6) & 0x03030303u; }\n",
}

_VALUES = """\
INLINE u32 value(u32 code, u32 shared) {{  // for any exponent
    const u32 q = code & {top}u, sign = (code >> {m}u) << 31;
    if (q == 0u) return sign;
    const u32 k = leading_zeros(q) - {zeros}u;
    if (k > shared) return 0u;
    return sign | (shared - k + {bias}u) << 23 | ((q << k) - {hidden}u) << {fraction}u;
}}
INLINE u32 value_of(u32 codes, u32 k, u32 shared) {{  // of the byte k of four codes
    if (shared - {m}u > {span}u) return value((codes >> 8u * k) & 0xffu, shared);
    // under the exponent of 2^23 an integer is a float, and times a power of two it stays exact
    const f32 q = float_of(byte_under(0x4b000000u, codes & {mask:#x}u, k)) - 8388608.0f;
    const u32 sign = (codes << ({shift}u - 8u * k)) & 0x80000000u;
    return bits_of(q * float_of((shared + {lift}u) << 23)) | sign;
}}
"""


def block_functions(element: BlockFormat, packing: bool) -> str:
    """Return the C functions that make codes of float32 bits, or float32 bits of codes.

    >>> from tilewright.formats import bfloat8_b
    >>> "four_codes" in block_functions(bfloat8_b, packing=True)
    True
    """
    five = element.name.endswith("_a")
    m = element.bits - 1
    cut, top, bias = 24 - m, (1 << m) - 1, 112 if five else 0
    if not packing:
        return _SPARSE[element.bits] + _VALUES.format(
            top=top,
            m=m,
            zeros=32 - m,
            bias=bias,
            hidden=1 << (m - 1),
            fraction=24 - m,
            span=254 - bias - m,
            mask=top * 0x01010101,
            shift=31 - m,
            lift=f"{bias - (m - 1)}" if bias >= m - 1 else f"0x{(bias - (m - 1)) & 0xFFFFFFFF:x}",
        )
    word = "INLINE" if five else "RARE"
    text = _MAGNITUDE[five] + _CODE.format(word=word, below_half=(1 << (cut - 1)) - 1, cut=cut, top=top, m=m)
    text += _SLOW_CODES if five else _FAST_CODES.format(limit=f"{float(top << cut)}f", step=_power(-cut), sign=7 - m)
    return text + _DENSE[element.bits]


def _power(exponent: int) -> str:
    """Return a power of two as a float literal with exact decimal digits."""
    return f"{2.0**exponent!r}f"
