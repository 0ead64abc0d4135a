# SPDX-License-Identifier: Apache-2.0
"""The two dialects of C that kernels are written in; they differ in the words of the preludes below."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import TransferError

_OPENCL = """\
#define KERNEL(threads) __kernel __attribute__((reqd_work_group_size(threads, 1, 1))) void
#define GLOBAL __global
#define SHARED __local  // an array of the work-group
#define LOCAL __local   // what a pointer to it points to
#define RESTRICT restrict
#define INLINE static inline
#define RARE static inline  // a function that is seldom called
#define UNROLL {unroll}
#define GROUP ((u32)get_group_id(0))
#define THREAD ((u32)get_local_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define LOAD(type, place) (*(__global const type *)(place))
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

INLINE v8 v8_of(u32 a, u32 b) {{ return (uint2)(a, b); }}
INLINE v16 v16_of(u32 a, u32 b, u32 c, u32 d) {{ return (uint4)(a, b, c, d); }}
INLINE f32 float_of(u32 bits) {{ return as_float(bits); }}
INLINE u32 bits_of(f32 x) {{ return as_uint(x); }}
INLINE u32 leading_zeros(u32 x) {{ return clz(x); }}
INLINE f32 truncated(f32 x) {{ return trunc(x); }}
INLINE f32 smaller(f32 x, f32 y) {{ return fmin(x, y); }}
INLINE f32 absolute(f32 x) {{ return fabs(x); }}
INLINE u32 larger(u32 x, u32 y) {{ return max(x, y); }}
INLINE u32 low_bytes(u32 a, u32 b, u32 c, u32 d) {{ return as_uint((uchar4)((u8)a, (u8)b, (u8)c, (u8)d)); }}
INLINE u32 top_bytes(u32 a, u32 b, u32 c, u32 d) {{ return low_bytes(a >> 24, b >> 24, c >> 24, d >> 24); }}
INLINE u32 byte_under(u32 top, u32 x, u32 k) {{ return top | ((x >> 8u * k) & 0xffu); }}
"""

_OPENCL_DOUBLES = """\
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
INLINE f64 double_of(u64 bits) { return as_double(bits); }
INLINE u64 double_bits(f64 x) { return as_ulong(x); }
"""

_CUDA = """\
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define GLOBAL
#define SHARED __shared__
#define LOCAL
#define RESTRICT __restrict__
#define INLINE static __device__ __forceinline__
#define RARE static __device__ __noinline__  // a function that is seldom called: shorter to compile
#define UNROLL _Pragma("unroll")
#define GROUP blockIdx.x
#define THREAD threadIdx.x
#define BARRIER __syncthreads()
#define LOAD(type, place) {load}((const type *)(place))
#define STORE(type, place, value) {store}

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

INLINE v8 v8_of(u32 a, u32 b) {{ return make_uint2(a, b); }}
INLINE v16 v16_of(u32 a, u32 b, u32 c, u32 d) {{ return make_uint4(a, b, c, d); }}
INLINE f32 float_of(u32 bits) {{ return __uint_as_float(bits); }}
INLINE u32 bits_of(f32 x) {{ return __float_as_uint(x); }}
INLINE u32 leading_zeros(u32 x) {{ return __clz(x); }}
INLINE f32 truncated(f32 x) {{ return truncf(x); }}
INLINE f32 smaller(f32 x, f32 y) {{ return fminf(x, y); }}
INLINE f32 absolute(f32 x) {{ return fabsf(x); }}
INLINE u32 larger(u32 x, u32 y) {{ return x > y ? x : y; }}
INLINE u32 low_bytes(u32 a, u32 b, u32 c, u32 d) {{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}}
INLINE u32 top_bytes(u32 a, u32 b, u32 c, u32 d) {{
    return __byte_perm(__byte_perm(a, b, 0x0073), __byte_perm(c, d, 0x0073), 0x5410);
}}
INLINE u32 byte_under(u32 top, u32 x, u32 k) {{ return __byte_perm(x, top, 0x7440u | k); }}
INLINE u32 across(u32 x, u32 lane) {{ return __shfl_xor_sync(0xffffffffu, x, lane); }}
"""

_CUDA_DOUBLES = """\
typedef double f64;
INLINE f64 double_of(u64 bits) { return __longlong_as_double((i64)bits); }
INLINE u64 double_bits(f64 x) { return (u64)__double_as_longlong(x); }
"""

_STORES = {"stream": "__stcs((type *)(place), (value))", "plain": "(*(type *)(place) = (value))"}
_LOADS = {"cached": "__ldg", "stream": "__ldcs"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """A dialect: its prelude, whether neighbours can exchange registers, and whether memory comes with a start.

    >>> dialect_of("cuda").shuffles, dialect_of("opencl").starts
    (True, True)
    """

    name: str
    prelude: str
    doubles: str
    shuffles: bool
    starts: bool


def dialect_of(name: str, load: str = "cached", store: str = "stream", unroll: bool = True) -> Dialect:
    """Return a dialect by name, with the hints that its loads and stores carry, and its loops unrolled or not.

    >>> dialect_of("opencl").name
    'opencl'
    """
    if name == "opencl":
        prelude = _OPENCL.format(unroll='_Pragma("unroll")' if unroll else "")
        return Dialect(name, prelude, _OPENCL_DOUBLES, shuffles=False, starts=True)
    if name == "cuda":
        prelude = _CUDA.format(load=_LOADS[load], store=_STORES[store])
        return Dialect(name, prelude, _CUDA_DOUBLES, shuffles=True, starts=False)
    raise TransferError(f"there is no dialect {name!r}; choose 'opencl' or 'cuda'")
