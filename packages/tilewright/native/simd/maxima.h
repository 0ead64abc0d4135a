// SPDX-License-Identifier: Apache-2.0
//
// The largest words of several vectors at once. Only for the files compiled once for each instruction set.
#pragma once

#include "simd/vectors.h"

namespace tw::TW_ISA {
namespace {

#if defined(__AVX512BW__)

// Returns the largest word of each of n vectors, that of vector i in word i: a transpose that takes the maximum as it
// goes. With 8 vectors the upper half is a copy of something, which callers do not look at.
template <int n>
TW_INLINE __m512i maxima(const __m512i *a) {
    __m512i t[n / 2], u[n / 4], w[n / 8];
    for (int i = 0; i < n / 2; ++i) {
        t[i] = _mm512_max_epu32(_mm512_unpacklo_epi32(a[2 * i], a[2 * i + 1]),
                                _mm512_unpackhi_epi32(a[2 * i], a[2 * i + 1]));
    }
    for (int i = 0; i < n / 4; ++i) {
        u[i] = _mm512_max_epu32(_mm512_unpacklo_epi64(t[2 * i], t[2 * i + 1]),
                                _mm512_unpackhi_epi64(t[2 * i], t[2 * i + 1]));
    }
    for (int i = 0; i < n / 8; ++i) {
        w[i] = _mm512_max_epu32(_mm512_shuffle_i32x4(u[2 * i], u[2 * i + 1], 0x88),
                                _mm512_shuffle_i32x4(u[2 * i], u[2 * i + 1], 0xdd));
    }
    const __m512i last = w[n / 8 - 1];
    return _mm512_max_epu32(_mm512_shuffle_i32x4(w[0], last, 0x88), _mm512_shuffle_i32x4(w[0], last, 0xdd));
}

#endif

#if defined(__AVX2__)

// Returns the largest word of each half of each of four vectors: word i of a half is that of vector i. `larger_of` compares
// words, or parts of them.
template <class LargerOf>
TW_INLINE __m256i lane_maxima(const __m256i *a, LargerOf larger_of) {
    const auto pairs = [&](__m256i x, __m256i y) { return larger_of(_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y)); };
    const __m256i t = pairs(a[0], a[1]), u = pairs(a[2], a[3]);
    return larger_of(_mm256_unpacklo_epi64(t, u), _mm256_unpackhi_epi64(t, u));
}

// Returns the largest word of each of four vectors, that of vector i in word i.
TW_INLINE __m128i maxima(const __m256i *a) {
    const __m256i w = lane_maxima(a, [](__m256i x, __m256i y) { return _mm256_max_epu32(x, y); });
    return _mm_max_epu32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
}

#endif

}  // namespace
}  // namespace tw::TW_ISA
