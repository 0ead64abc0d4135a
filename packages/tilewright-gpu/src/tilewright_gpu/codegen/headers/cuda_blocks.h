// SPDX-License-Identifier: Apache-2.0
// What packing and unpacking of blocks is written in.
INLINE u32 any_thread(u32 x) { return __any_sync(0xffffffffu, x); }
INLINE f32 multiply_add(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
INLINE f32 reciprocal(f32 x) { return __frcp_rn(x); }

// Two bfloat16 in one word.
INLINE u32 low_half(u32 x) { return x << 16; }
INLINE u32 high_half(u32 x) { return x & 0xffff0000u; }
INLINE u32 high_halves(u32 a, u32 b) { return __byte_perm(a, b, 0x7632); }
INLINE u32 even_bytes(u32 a, u32 b) { return __byte_perm(a, b, 0x6420); }
INLINE u32 odd_bytes(u32 a, u32 b) { return __byte_perm(a, b, 0x7531); }
#if __CUDA_ARCH__ >= 900
#define PAIRS  // there is arithmetic with both of them at once
#define PAIRS_INSTRUCTION(name, text) \
    INLINE u32 name(u32 a, u32 b) { u32 y; asm(text " %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b)); return y; }
PAIRS_INSTRUCTION(larger_pairs, "max.u16x2")
PAIRS_INSTRUCTION(smaller_pairs, "min.u16x2")
PAIRS_INSTRUCTION(add_pairs, "add.rn.bf16x2")
PAIRS_INSTRUCTION(multiply_pairs, "mul.rn.bf16x2")
PAIRS_INSTRUCTION(add_halves, "add.rn.f16x2")
INLINE u32 halves(f32 a, f32 b) {  // two float16
    u32 y;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(b), "f"(a));
    return y;
}
INLINE u32 multiply_add_pairs(u32 a, u32 b, u32 c) {
    u32 y;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
    return y;
}
#else
INLINE u32 larger_pairs(u32 a, u32 b) {
    return larger(high_half(a), high_half(b)) | larger(a & 0xffffu, b & 0xffffu);
}
#endif
#if __CUDA_ARCH__ >= 890  // conversions of two float32 to a small float, the first one to the lower byte
#define SMALL_FLOATS(name, text) \
    INLINE u32 name(f32 a, f32 b) { u16 y; asm(text " %0, %1, %2;" : "=h"(y) : "f"(b), "f"(a)); return y; }
SMALL_FLOATS(e4m3_pair, "cvt.rn.satfinite.e4m3x2.f32")
SMALL_FLOATS(e5m2_pair, "cvt.rn.satfinite.e5m2x2.f32")
#define E4M3_PAIR e4m3_pair
#define E5M2_PAIR e5m2_pair
#endif
