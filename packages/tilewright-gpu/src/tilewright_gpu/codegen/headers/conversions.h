// SPDX-License-Identifier: Apache-2.0
// Values of the small float formats, and their codes: each kernel gets those that it calls.

// == half_value
INLINE f32 half_value(u16 x) {
    const u32 sign = (x & 0x8000u) << 16, magnitude = x & 0x7fffu;
    // A subnormal is an integer times 2^-24: put it under the exponent of 2^-14 and take that away again.
    const u32 tiny = bits_of(float_of((magnitude << 13) + (113u << 23)) - float_of(113u << 23));
    const u32 normal = (magnitude << 13) + (112u << 23);
    if (magnitude > 0x7c00u) return float_of(0x7fc00000u);
    return float_of(sign | (magnitude < 0x400u ? tiny : magnitude == 0x7c00u ? 0x7f800000u : normal));
}

// == e4m3_value
INLINE f32 e4m3_value(u8 x) {
    const u32 sign = (x & 0x80u) << 24, magnitude = x & 0x7fu;
    const u32 tiny = bits_of((f32)magnitude * float_of(118u << 23));  // times 2^-9
    if (magnitude == 0x7fu) return float_of(0x7fc00000u);
    return float_of(sign | (magnitude < 8u ? tiny : (magnitude << 20) + (120u << 23)));
}

// == half_code
INLINE u16 half_code(f32 x) {
    const u32 u = bits_of(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    const u32 normal = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
    // Adding 0.5 leaves exactly the bits of a subnormal at the bottom, rounded by the addition.
    const u32 tiny = bits_of(float_of(a < 0x38800000u ? a : 0u) + 0.5f) - 0x3f000000u;
    if (a > 0x7f800000u) return 0x7e00u;
    return (u16)(sign | (a < 0x38800000u ? tiny : a >= 0x47800000u ? 0x7c00u : normal));
}

// == brain_code
INLINE u16 brain_code(f32 x) {
    const u32 u = bits_of(x);
    return (u16)((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// == e4m3_code
INLINE u8 e4m3_code(f32 x) {
    const u32 u = bits_of(x), sign = (u >> 24) & 0x80u, a = u & 0x7fffffffu;
    const u32 clamped = a < 0x43e00000u ? a : 0x43e00000u;
    const u32 rounded = ((clamped + 0x7ffffu + ((clamped >> 20) & 1u)) >> 20) - (120u << 3);
    return (u8)(a > 0x7f800000u ? 0x7fu : sign | (a < 0x3c800000u ? 0u : rounded));
}

// == e5m2_code
INLINE u8 e5m2_code(f32 x) {
    const u32 u = bits_of(x), sign = (u >> 24) & 0x80u, a = u & 0x7fffffffu;
    const u32 clamped = a < 0x47600000u ? a : 0x47600000u;
    const u32 normal = ((clamped + 0xfffffu + ((clamped >> 21) & 1u)) >> 21) - (112u << 2);
    const u32 tiny = bits_of(float_of(a < 0x38800000u ? a : 0u) + 128.0f) - 0x43000000u;
    return (u8)(a > 0x7f800000u ? 0x7eu : sign | (a < 0x38800000u ? tiny : normal));
}
