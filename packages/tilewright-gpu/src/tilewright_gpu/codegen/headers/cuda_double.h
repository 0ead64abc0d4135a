// SPDX-License-Identifier: Apache-2.0
// float64.
typedef double f64;
INLINE f64 double_of(u64 bits) { return __longlong_as_double((i64)bits); }
INLINE u64 double_bits(f64 x) { return (u64)__double_as_longlong(x); }
