// SPDX-License-Identifier: Apache-2.0
// Codes of block floats and their values, for any number of mantissa bits; ${names} are filled in.

// == magnitude, 8 exponent bits
INLINE u32 magnitude(u32 x) { return x & 0x7fffffffu; }
INLINE u32 scale_of(u32 largest) { return largest >> 23; }

// == magnitude, 5 exponent bits
INLINE u32 magnitude(u32 x) {  // with an exponent of five bits
    const u32 low = 112u << 23, high = (144u << 23) - 1u, a = x & 0x7fffffffu;
    return (a < low ? low : a > high ? high : a) - low;
}
INLINE u32 scale_of(u32 largest) { return magnitude(largest) >> 23; }

// == code
${word} u32 code(u32 x, u32 shared) {  // for any exponent
    const u32 a = magnitude(x), shift = shared - (a >> 23);
    const u32 mantissa = (x & 0x7f800000u) ? (a & 0x7fffffu) | 0x800000u : 0u;
    const u32 aligned = shift > 31u ? 0u : mantissa >> shift;
    const u32 rounded = (aligned + ${below_half}u + ((aligned >> ${cut}u) & 1u)) >> ${cut}u;
    const u32 q = rounded < ${largest}u ? rounded : ${largest}u;
    return q ? q | (x >> 31) << ${mantissa}u : 0u;
}

// == four codes, 8 exponent bits
INLINE u32 rounded(u32 x, f32 power) {
    const f32 aligned = smaller(truncated(absolute(float_of(x)) * power), ${limit});
    return bits_of(aligned * ${step} + 8388608.0f);
}
INLINE u32 four_codes(u32 a, u32 b, u32 c, u32 d, u32 shared) {
    if (shared - 24u > 230u) {
        return low_bytes(code(a, shared), code(b, shared), code(c, shared), code(d, shared));
    }
    const f32 power = float_of((277u - shared) << 23);  // 2^(150 - shared)
    const u32 q = low_bytes(rounded(a, power), rounded(b, power), rounded(c, power), rounded(d, power));
    const u32 some = q + 0x7f7f7f7fu;  // bit 7 where q is not 0: zero has no sign
    return q | (((top_bytes(a, b, c, d) & some) & 0x80808080u) >> ${sign}u);
}

// == four codes, 5 exponent bits
INLINE u32 four_codes(u32 a, u32 b, u32 c, u32 d, u32 shared) {
    return low_bytes(code(a, shared), code(b, shared), code(c, shared), code(d, shared));
}

// == pairs
INLINE u32 pair_codes(u32 x, u32 power) {  // bfloat16 has no bits that the hardware would shift out
    return smaller_pairs(multiply_add_pairs(x & 0x7fff7fffu, power, 0x43004300u), ${top}u);
}
INLINE u32 four_codes_of_pairs(u32 ab, u32 cd, u32 shared) {
    if (shared - 24u > 229u) return four_codes(low_half(ab), high_half(ab), low_half(cd), high_half(cd), shared);
    const u32 power = ((${lift}u - shared) << 7) * 0x10001u;
    const u32 q = even_bytes(pair_codes(ab, power), pair_codes(cd, power)) & ${mask}u;
    const u32 some = q + 0x7f7f7f7fu;  // bit 7 where q is not 0: zero has no sign
    return q | (((odd_bytes(ab, cd) & some) & 0x80808080u) >> ${sign}u);
}

// == dense, 8 bits
INLINE u32 dense(u32 w) { return w; }

// == dense, 4 bits
INLINE u32 dense(u32 w) { w |= w >> 4; return (w & 0xffu) | ((w >> 8) & 0xff00u); }

// == dense, 2 bits
INLINE u32 dense(u32 w) { w |= w >> 6; return (w & 0xfu) | ((w >> 12) & 0xf0u); }

// == sparse, 8 bits
INLINE u32 sparse(u32 w) { return w; }

// == sparse, 4 bits
INLINE u32 sparse(u32 w) { w = (w & 0xffu) | (w & 0xff00u) << 8; return (w | w << 4) & 0x0f0f0f0fu; }

// == sparse, 2 bits
INLINE u32 sparse(u32 w) { w = (w & 0xfu) | (w & 0xf0u) << 12; return (w | w << 6) & 0x03030303u; }

// == value
RARE u32 value(u32 code, u32 shared) {  // for any exponent
    const u32 q = code & ${largest}u, sign = (code >> ${mantissa}u) << 31;
    if (q == 0u) return sign;
    const u32 k = leading_zeros(q) - ${zeros}u;
    if (k > shared) return 0u;
    return sign | (shared - k + ${bias}u) << 23 | ((q << k) - ${hidden}u) << ${fraction}u;
}
INLINE u32 usual_codes(u32 w, u32 shared) { return shared - ${low}u <= ${span}u; }
INLINE u32 usual_value(u32 w, u32 k, u32 shared) {  // of the byte k of four usual codes
    // under the exponent of 2^23 an integer is a float, and times a power of two it stays exact
    const f32 q = float_of(byte_under(0x4b000000u, w & ${mask}u, k)) - 8388608.0f;
    const u32 sign = (w << (${shift}u - 8u * k)) & 0x80000000u;
    return bits_of(q * float_of((shared + ${lift}u) << 23)) | sign;
}
