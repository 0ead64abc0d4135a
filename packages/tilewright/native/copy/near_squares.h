// SPDX-License-Identifier: Apache-2.0
//
// Transposes in registers of half a line, of what is in the caches already: pieces of 16 bytes are joined by loads, which
// leaves half of the shuffles, and these work within lanes. Only for the files compiled once for each instruction set.
#pragma once

#include "simd/sixteen.h"

#if defined(__AVX2__)

namespace tw::TW_ISA {
namespace {

template <int size>
TW_INLINE void interleave_lanes(__m256i a, __m256i b, __m256i &low, __m256i &high) {
    if constexpr (size == 8) {
        low = _mm256_unpacklo_epi64(a, b);
        high = _mm256_unpackhi_epi64(a, b);
    } else if constexpr (size == 4) {
        low = _mm256_unpacklo_epi32(a, b);
        high = _mm256_unpackhi_epi32(a, b);
    } else if constexpr (size == 2) {
        low = _mm256_unpacklo_epi16(a, b);
        high = _mm256_unpackhi_epi16(a, b);
    } else {
        low = _mm256_unpacklo_epi8(a, b);
        high = _mm256_unpackhi_epi8(a, b);
    }
}

// As rotate_all of squares.h, in both lanes.
template <int size, int n, int done = 1>
TW_INLINE void rotate_lanes(__m256i *row) {
    if constexpr (done < n) {
        __m256i other[n];
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
        for (int i = 0; i < n / 2; ++i) interleave_lanes<size>(row[i], row[i + n / 2], other[2 * i], other[2 * i + 1]);
        rotate_lanes<size, n, done * 2>(other);
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
        for (int i = 0; i < n; ++i) row[i] = other[i];
    }
}

// Walks rows that are equally far apart. Compilers would work out the addresses of all rows in advance and run out of
// registers for them.
template <class Byte>
struct EqualRows {
    Byte *at;
    int64_t step;

    TW_INLINE void advance() {
        at += step;
#if defined(__GNUC__)
        if (!__builtin_constant_p(step)) __asm__("" : "+r"(at));
#endif
    }
};

// Makes half a line of each of 16 / size columns, of 32 / size rows, `from` bytes apart.
template <int size>
TW_INLINE void half_lines(const uint8_t *src, int64_t from, HalfLine *out) {
    constexpr int n = 16 / size;
    EqualRows<const uint8_t> first{src, from}, second{src + n * from, from};
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
    for (int i = 0; i < n; ++i) {
        out[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(first.at)), load16(second.at), 1);
        first.advance();
        second.advance();
    }
    rotate_lanes<size, n>(out);
}

// Transposes a line of each of 64 / size rows, `from` bytes apart, to as many lines `to` bytes apart.
template <int size>
TW_INLINE void near_square(const uint8_t *src, int64_t from, uint8_t *dst, int64_t to) {
    constexpr int n = 16 / size;
    EqualRows<uint8_t> column{dst, to};
    for (int j = 0; j < 4; ++j) {
        HalfLine first[n], second[n];
        half_lines<size>(src + 16 * j, from, first);
        half_lines<size>(src + 16 * j + 2 * n * from, from, second);
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
        for (int k = 0; k < n; ++k) {
            store32(column.at, first[k]);
            store32(column.at + 32, second[k]);
            column.advance();
        }
    }
}

}  // namespace
}  // namespace tw::TW_ISA

#endif
