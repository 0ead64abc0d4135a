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
