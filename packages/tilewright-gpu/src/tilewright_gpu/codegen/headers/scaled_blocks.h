// SPDX-License-Identifier: Apache-2.0
// Codes of the formats that round the exact ratio of a value to its scale (OCP Microscaling, nvfp4); ${names} are filled in.

// == scale, power of two
INLINE u32 scale_of(u32 largest) {
    const u32 exponent = (largest < 0x7f800000u ? largest : 0x7f7fffffu) >> 23;
    return ${poison}larger(exponent, ${top}u) - ${top}u;
}
INLINE f32 scale_value(u32 byte) { return float_of(byte == 0u ? 1u << 22 : byte << 23); }
INLINE f32 inverse_scale(u32 byte) { return float_of(byte < 254u ? (254u - byte) << 23 : 1u << 22); }
INLINE f32 ratio(u32 x, f32 scale, f32 inverse) { return float_of(x) * inverse; }

// == scale, small float
// A quotient by a scale of four bits that is rounded once to float32 stays on its side of every tie between two codes.
INLINE f32 scale_value(u32 byte) {
    const f32 value = float_of((byte & 0x7fu) << 20) * float_of(247u << 23);  // times 2^120
    return (byte & 0x80u) ? -value : value;
}
INLINE u32 scale_of(u32 largest) {
    const f32 sixth = float_of(0x3e2aaaabu), x = float_of(largest < 0x7f800000u ? largest : 0x7f7fffffu), q = x * sixth;
    const f32 exact = multiply_add(multiply_add(-6.0f, q, x), sixth, q);
    const u32 exponent = larger(bits_of(exact) & 0x7f800000u, 121u << 23), magic = exponent + (20u << 23);
    const u32 steps = bits_of(exact + float_of(magic)) - magic + ((exponent - (121u << 23)) >> 20);
    const u32 byte = steps < 126u ? steps : 126u;
    return largest > 0x7f800000u ? 127u : byte != 0u ? byte : largest != 0u ? 1u : 0u;
}
INLINE f32 inverse_scale(u32 byte) { return reciprocal(scale_value(larger(byte, 1u))); }  // 0 has only zeros
INLINE f32 ratio(u32 x, f32 scale, f32 inverse) {
    const f32 q = float_of(x) * inverse;
    return multiply_add(multiply_add(-q, scale, float_of(x)), inverse, q);
}

// == counted, nan
INLINE u32 counted(u32 x) { return (x & 0x7fffffffu) > 0x7f800000u ? 0u : x & 0x7fffffffu; }

// == counted, ieee
INLINE u32 counted(u32 x) { return (x & 0x7fffffffu) >= 0x7f800000u ? 0u : x & 0x7fffffffu; }

// == code, small float
INLINE u32 code(f32 x) {  // without its sign, in the lowest bits; the largest number if it is too large
    const f32 a = smaller(absolute(x), ${limit});
    const u32 exponent = larger(bits_of(a) & 0x7f800000u, ${lowest}u << 23);
    // Adding a power of two that is so much larger leaves the steps at the bottom, rounded by the addition. The codes
    // of lower exponents are added with it: they are an even number of steps.
    return bits_of(a + float_of(exponent + (exponent >> ${cut}u) + ${lift}u));
}

// == code, integer
INLINE u32 code(f32 x) {  // in two's complement, in the lowest byte
    return bits_of(-smaller(-smaller(x * 64.0f, 127.0f), 127.0f) + 12582912.0f);  // rounded by the addition
}

// == signed code, nan
INLINE u32 signed_code(f32 x) {
    const u32 a = bits_of(x) & 0x7fffffffu;
    return a > 0x7f800000u ? 0x7fu : (code(x) & 0x7fu) | (bits_of(x) >> 24 & 0x80u);
}

// == signed code, ieee
INLINE u32 signed_code(f32 x) {
    const u32 a = bits_of(x) & 0x7fffffffu;
    return a > 0x7f800000u ? 0x7eu : (a == 0x7f800000u ? 0x7cu : code(x) & 0x7fu) | (bits_of(x) >> 24 & 0x80u);
}

// == four codes
INLINE u32 four_codes(u32 a, u32 b, u32 c, u32 d, u32 shared) {
    const u32 byte = shared & 0xffu;  // above it is whether the block has infinities or NaNs
    const f32 scale = scale_value(byte), inverse = inverse_scale(byte);
${instruction}    if (byte == ${nan}u) return 0u;
    const u32 w = low_bytes(${code}(ratio(a, scale, inverse)), ${code}(ratio(b, scale, inverse)),
                            ${code}(ratio(c, scale, inverse)), ${code}(ratio(d, scale, inverse)));
    return ${codes};
}

// == instruction
#ifdef ${name}
    if (${usual}) {
        return ${name}(float_of(a) * inverse, float_of(b) * inverse)
            | ${name}(float_of(c) * inverse, float_of(d) * inverse) << 16;
    }
#endif

// == pairs
INLINE u32 pair_codes(u32 x, u32 inverse) {
    const u32 a = smaller_pairs(multiply_pairs(x & 0x7fff7fffu, inverse), 0x40c040c0u);  // at most 6
    const u32 exponent = larger_pairs(a & 0x7f807f80u, 0x3f803f80u);
    return add_pairs(a, exponent + (exponent >> 6) + 0x02020202u);
}
INLINE u32 four_codes_of_pairs(u32 ab, u32 cd, u32 shared) {
    if (shared - 1u > 252u) return four_codes(low_half(ab), high_half(ab), low_half(cd), high_half(cd), shared);
    const u32 inverse = ((254u - shared) << 7) * 0x10001u;
    const u32 w = even_bytes(pair_codes(ab, inverse), pair_codes(cd, inverse)) & 0x07070707u;
    return w | (odd_bytes(ab, cd) & 0x80808080u) >> 4;
}

// == pairs, small float scale
// A quotient of eight bits by four is a tie or at least 2^-9 of it away, so one that is rounded to float16, with an error of
// 2^-12, is on the same side, and a tie is exact.
INLINE u32 pair_codes(u32 x, f32 inverse) {
    const u32 ratios = halves(float_of(low_half(x)) * inverse, float_of(high_half(x)) * inverse);
    const u32 a = smaller_pairs(ratios & 0x7fff7fffu, 0x46004600u);  // at most 6
    const u32 exponent = larger_pairs(a & 0x7c007c00u, 0x3c003c00u);
    return add_halves(a, exponent + (exponent >> 9) + 0x23e223e2u);
}
INLINE u32 four_codes_of_pairs(u32 ab, u32 cd, u32 shared) {
    if (shared == 127u) return 0u;
    const f32 inverse = inverse_scale(shared);
    const u32 w = even_bytes(pair_codes(ab, inverse), pair_codes(cd, inverse)) & 0x07070707u;
    return w | (odd_bytes(ab, cd) & 0x80808080u) >> 4;
}

// == dense, 6 bits
INLINE u32 dense(u32 w) { w = (w & 0x003f003fu) | (w >> 2 & 0x0fc00fc0u); return (w & 0xfffu) | (w >> 4 & 0xfff000u); }

// == sparse, 6 bits
INLINE u32 sparse(u32 w) { w = (w & 0xfffu) | (w & 0xfff000u) << 4; return (w & 0x003f003fu) | (w & 0x0fc00fc0u) << 2; }

// == value, small float
RARE u32 value(u32 code, u32 shared) {  // for any code and scale
    const u32 sign = code >> ${sign}u << 31, a = code & ${last}u;
    u32 number = bits_of(float_of(a << ${fraction}u) * float_of(${lift}u << 23)) | sign;
    ${specials}
    if (${nan_scale}) return ${nan_value};
    return bits_of(float_of(number) * scale_value(shared));
}
INLINE u32 usual_codes(u32 w, u32 shared) { return shared - ${low}u < ${span}u${finite}; }
INLINE u32 usual_value(u32 w, u32 k, u32 shared) {  // of the byte k of four usual codes
    const u32 spread = (u32)((i32)(w << (${align}u - 8u * k)) >> ${shift}) & ${mask}u;
    return bits_of(float_of(spread) * float_of(${lift}u << 23) * scale_value(shared));
}

// == value, integer
INLINE u32 usual_codes(u32 w, u32 shared) { return shared - ${low}u < ${span}u; }
INLINE u32 usual_value(u32 w, u32 k, u32 shared) {
    const f32 q = float_of(byte_under(0x4b000000u, w ^ 0x80808080u, k)) - 8388736.0f;
    return bits_of(q * 0.015625f * scale_value(shared));
}
RARE u32 value(u32 code, u32 shared) {
    return shared == ${nan}u ? 0x7fc00000u : usual_value(code, 0u, shared);
}
