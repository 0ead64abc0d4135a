// SPDX-License-Identifier: Apache-2.0
// What packing and unpacking of blocks is written in.
INLINE f32 multiply_add(f32 a, f32 b, f32 c) { return fma(a, b, c); }
INLINE f32 reciprocal(f32 x) {  // rounded once, which OpenCL does not promise of a division
    const f32 y = 1.0f / x;
    return fma(fma(-x, y, 1.0f), y, y);
}

// Two bfloat16 in one word.
INLINE u32 low_half(u32 x) { return x << 16; }
INLINE u32 high_half(u32 x) { return x & 0xffff0000u; }
INLINE u32 high_halves(u32 a, u32 b) { return a >> 16 | high_half(b); }
INLINE u32 even_bytes(u32 a, u32 b) { return low_bytes(a, a >> 16, b, b >> 16); }
INLINE u32 odd_bytes(u32 a, u32 b) { return low_bytes(a >> 8, a >> 24, b >> 8, b >> 24); }
INLINE u32 larger_pairs(u32 a, u32 b) {
    return max(high_half(a), high_half(b)) | max(a & 0xffffu, b & 0xffffu);
}
