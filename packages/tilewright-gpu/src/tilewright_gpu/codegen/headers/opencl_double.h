// SPDX-License-Identifier: Apache-2.0
// float64, which some OpenCL devices lack.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
INLINE f64 double_of(u64 bits) { return as_double(bits); }
INLINE u64 double_bits(f64 x) { return as_ulong(x); }
