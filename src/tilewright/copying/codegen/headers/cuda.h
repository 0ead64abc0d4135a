// SPDX-License-Identifier: Apache-2.0
// What the kernels of CUDA are written in, beside UNROLL: the words of the dialect, types and conversions.
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define GLOBAL
#define SHARED __shared__
#define LOCAL
#define RESTRICT __restrict__
#define INLINE static __device__ __forceinline__
#define RARE static __device__ __noinline__  // a function that is seldom called: shorter to compile
#define GROUP blockIdx.x
#define THREAD threadIdx.x
#define BARRIER __syncthreads()
#define LOAD(type, place) __ldg((const type *)(place))
#define ROLLED _Pragma("unroll 1")  // before a loop that seldom runs
#define ADDRESS(place) ((u64)(place))
#define STORE(type, place, value) (*(type *)(place) = (value))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef uint2 v8;
typedef uint4 v16;

INLINE v8 v8_of(u32 a, u32 b) { return make_uint2(a, b); }
INLINE v16 v16_of(u32 a, u32 b, u32 c, u32 d) { return make_uint4(a, b, c, d); }
INLINE f32 float_of(u32 bits) { return __uint_as_float(bits); }
INLINE u32 bits_of(f32 x) { return __float_as_uint(x); }
INLINE u32 leading_zeros(u32 x) { return __clz(x); }
INLINE f32 truncated(f32 x) { return truncf(x); }
INLINE f32 smaller(f32 x, f32 y) { return fminf(x, y); }
INLINE f32 absolute(f32 x) { return fabsf(x); }
INLINE u32 larger(u32 x, u32 y) { return x > y ? x : y; }
INLINE u32 low_bytes(u32 a, u32 b, u32 c, u32 d) {
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}
INLINE u32 top_bytes(u32 a, u32 b, u32 c, u32 d) {
    return __byte_perm(__byte_perm(a, b, 0x0073), __byte_perm(c, d, 0x0073), 0x5410);
}
INLINE u32 byte_under(u32 top, u32 x, u32 k) { return __byte_perm(x, top, 0x7440u | k); }
INLINE u32 across(u32 x, u32 lane) { return __shfl_xor_sync(0xffffffffu, x, lane); }
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

// Asynchronous copies of words from global to shared memory, whose addresses are multiples of their size.
#if __CUDA_ARCH__ >= 800
INLINE u32 shared_place(const void *place) { return (u32)__cvta_generic_to_shared(place); }
INLINE u64 global_place(const void *place) { return (u64)__cvta_generic_to_global(place); }
#define COPY_ASYNC(cache, bytes, to, from) \
    asm volatile("cp.async." cache ".shared.global [%0], [%1], %2;" \
                 :: "r"(shared_place(to)), "l"(global_place(from)), "n"(bytes) : "memory")
#define COPY_ASYNC_4(to, from) COPY_ASYNC("ca", 4, to, from)
#define COPY_ASYNC_8(to, from) COPY_ASYNC("ca", 8, to, from)
#define COPY_ASYNC_16(to, from) COPY_ASYNC("cg", 16, to, from)
#define STARTED asm volatile("cp.async.commit_group;" ::: "memory")
#define ARRIVED(waiting) asm volatile("cp.async.wait_group %0;" :: "n"(waiting) : "memory")
#else  // devices that copy through registers
#define COPY_ASYNC_4(to, from) (*(u32 *)(to) = *(const u32 *)(from))
#define COPY_ASYNC_8(to, from) (*(v8 *)(to) = *(const v8 *)(from))
#define COPY_ASYNC_16(to, from) (*(v16 *)(to) = *(const v16 *)(from))
#define STARTED
#define ARRIVED(waiting)
#endif
