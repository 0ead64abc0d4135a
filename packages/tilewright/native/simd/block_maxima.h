// SPDX-License-Identifier: Apache-2.0
//
// The largest magnitudes of several blocks at once. The bits of a magnitude order like the number, in 16 bits as in 32.
// Only for the files compiled once for each instruction set.
#pragma once

#include "simd/words.h"

namespace tw::TW_ISA {
namespace {

// Returns the largest of each of 8 or 16, in order; after eight, they come again.
template <int count>
TW_INLINE Words maxima(const Words *a) {
    Words all;
#if defined(__AVX512BW__)
    __m512i one[count];
    for (int i = 0; i < count; ++i) one[i] = a[i].v[0];
    all.v[0] = maxima<count>(one);
    if constexpr (count == 8) all.v[0] = _mm512_shuffle_i32x4(all.v[0], all.v[0], 0x44);
#elif defined(__AVX2__)
    __m256i one[count];
    for (int i = 0; i < count; ++i) one[i] = _mm256_max_epu32(a[i].v[0], a[i].v[1]);
    const auto eight = [](const __m256i *x) {
        return _mm256_inserti128_si256(_mm256_castsi128_si256(maxima(x)), maxima(x + 4), 1);
    };
    all.v[0] = eight(one);
    all.v[1] = count == 8 ? all.v[0] : eight(one + count - 8);
#else
    uint32_t most[16];
    for (int i = 0; i < 16; ++i) {
        const Words &x = a[i % count];
        Part part = x.v[0];
        for (int k = 1; k < Words::parts; ++k) part = max_part(part, x.v[k]);
        uint32_t each[sizeof(Part) / 4];
        std::memcpy(each, &part, sizeof(part));
        most[i] = each[0];
        for (uint32_t one : each) most[i] = one > most[i] ? one : most[i];
    }
    all = load_words(most);
#endif
    return all;
}

#if defined(__AVX2__)

// Returns the largest of the sixteen 16-bit magnitudes of each of 8 or 16 vectors, as float32.
template <class From, int count>
TW_INLINE Words maxima_of_shorts(const __m256i *a) {
    const auto larger_of = [](__m256i x, __m256i y) { return _mm256_max_epu16(x, y); };
    __m128i eight[2];
    for (int i = 0; i < count / 8; ++i) {
        const __m256i x = lane_maxima(a + 8 * i, larger_of), y = lane_maxima(a + 8 * i + 4, larger_of);
        const __m256i w = larger_of(_mm256_permute2x128_si256(x, y, 0x20), _mm256_permute2x128_si256(x, y, 0x31));
        const __m256i most = _mm256_and_si256(larger_of(w, _mm256_srli_epi32(w, 16)), _mm256_set1_epi32(0xffff));
        eight[i] = _mm_packus_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    }
    if constexpr (count == 8) eight[1] = eight[0];
    return words_of(widened<From>(_mm256_inserti128_si256(_mm256_castsi128_si256(eight[0]), eight[1], 1)));
}

#endif

// Returns the largest magnitudes, as float32, of 8 or 16 blocks of one or two pieces of sixteen values; at(n) is where
// piece n is. After eight, they come again.
template <class From, int count, int per_block, class At>
TW_INLINE Words block_maxima(At at) {
#if defined(__AVX2__)
    if constexpr (sizeof(From) == 2) {
        const auto magnitude = [&](int n) { return _mm256_and_si256(load32(at(n)), _mm256_set1_epi16(0x7fff)); };
        __m256i most[count];
        for (int b = 0; b < count; ++b) {
            most[b] = magnitude(b * per_block);
            if constexpr (per_block > 1) most[b] = _mm256_max_epu16(most[b], magnitude(b * per_block + 1));
        }
        return maxima_of_shorts<From, count>(most);
    }
#endif
    const auto magnitude = [&](int n) { return words_of(load_sixteen<From>(at(n))) & 0x7fffffffu; };
    Words most[count];
    for (int b = 0; b < count; ++b) {
        most[b] = magnitude(b * per_block);
        if constexpr (per_block > 1) most[b] = larger(most[b], magnitude(b * per_block + 1));
    }
    return maxima<count>(most);
}

}  // namespace
}  // namespace tw::TW_ISA
