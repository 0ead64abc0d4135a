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

// Up to sixteen rows that are equally far apart: as many addresses as fit the registers, from which all others are near.
struct EqualRows {
    const uint8_t *fours[4];
    int64_t step;

    EqualRows(const uint8_t *first, int64_t distance) : step(distance) {
        for (int i = 0; i < 4; ++i) fours[i] = first + 4 * i * distance;
#if defined(__GNUC__)
        __asm__("" : "+r"(fours[0]), "+r"(fours[1]), "+r"(fours[2]), "+r"(fours[3]));
#endif
    }
    TW_INLINE const uint8_t *operator()(int64_t i) const { return fours[i / 4] + i % 4 * step; }
};

// Makes half a line of each of 16 / size columns, of 32 / size rows; row(i) is where row i starts.
template <int size, class Row>
TW_INLINE void half_lines(Row row, HalfLine *out) {
    constexpr int n = 16 / size;
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
    for (int i = 0; i < n; ++i) {
        out[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(row(i))), load16(row(i + n)), 1);
    }
    rotate_lanes<size, n>(out);
}

// Makes a line of each of 64 / size columns, of as many rows: put(k, first half, second half) gets that of column k.
template <int size, class Row, class Put>
TW_INLINE void near_square(Row row, Put put) {
    constexpr int n = 16 / size;
#if defined(__GNUC__)
#  pragma GCC unroll 4
#endif
    for (int j = 0; j < 4; ++j) {
        HalfLine first[n], second[n];
        half_lines<size>([&](int i) { return row(i) + 16 * j; }, first);
        half_lines<size>([&](int i) { return row(2 * n + i) + 16 * j; }, second);
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
        for (int k = 0; k < n; ++k) put(n * j + k, first[k], second[k]);
    }
}

}  // namespace
}  // namespace tw::TW_ISA

#endif
