// SPDX-License-Identifier: Apache-2.0
// What the kernels of OpenCL are written in, beside UNROLL: the words of the dialect, types and conversions.
#define KERNEL(threads) __kernel __attribute__((reqd_work_group_size(threads, 1, 1))) void
#define GLOBAL __global
#define SHARED __local  // an array of the work-group
#define LOCAL __local   // what a pointer to it points to
#define RESTRICT restrict
#define INLINE static inline
#define RARE static inline  // a function that is seldom called
#define GROUP ((u32)get_group_id(0))
#define THREAD ((u32)get_local_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define LOAD(type, place) (*(__global const type *)(place))
#define ROLLED  // before a loop that seldom runs
#define ADDRESS(place) ((u64)(place))
#define STORE(type, place, value) (*(__global type *)(place) = (value))

typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef float f32;
typedef uint2 v8;
typedef uint4 v16;

INLINE v8 v8_of(u32 a, u32 b) { return (uint2)(a, b); }
INLINE v16 v16_of(u32 a, u32 b, u32 c, u32 d) { return (uint4)(a, b, c, d); }
INLINE f32 float_of(u32 bits) { return as_float(bits); }
INLINE u32 bits_of(f32 x) { return as_uint(x); }
INLINE u32 leading_zeros(u32 x) { return clz(x); }
INLINE f32 truncated(f32 x) { return trunc(x); }
INLINE f32 smaller(f32 x, f32 y) { return fmin(x, y); }
INLINE f32 absolute(f32 x) { return fabs(x); }
INLINE u32 larger(u32 x, u32 y) { return max(x, y); }
INLINE u32 low_bytes(u32 a, u32 b, u32 c, u32 d) { return as_uint((uchar4)((u8)a, (u8)b, (u8)c, (u8)d)); }
INLINE u32 top_bytes(u32 a, u32 b, u32 c, u32 d) { return low_bytes(a >> 24, b >> 24, c >> 24, d >> 24); }
INLINE u32 byte_under(u32 top, u32 x, u32 k) { return top | ((x >> 8u * k) & 0xffu); }
