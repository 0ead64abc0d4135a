// SPDX-License-Identifier: Apache-2.0
//
// Four rows of 64 codes at a time, and what coders do to them. A row is a vector whose lanes of 16 bytes are blocks of
// bfloat8_b. What all 16 blocks need, such as their exponents, is a vector of words: word i of lane k is for block k of row i.
// Only for recode.cpp.
#pragma once

#include "formats/recode.h"
#include "formats/scalars.h"
#include "simd/vectors.h"

namespace tw::TW_ISA {
namespace {

constexpr int64_t ahead = 512;  // bytes of a row that are fetched before they are needed

struct Quad {
    __m512i row[4];
    __m512i exponents;
};

TW_INLINE __m512i bytes(int a) { return _mm512_set1_epi8(static_cast<char>(a)); }
TW_INLINE __m512i words(uint32_t a) { return _mm512_set1_epi32(static_cast<int>(a)); }
TW_INLINE __m512i load_table(const void *p) { return _mm512_loadu_si512(p); }

// Returns four words, in each lane.
TW_INLINE __m512i load_four(const uint32_t *p) {
    return _mm512_broadcast_i32x4(load16(reinterpret_cast<const uint8_t *>(p)));
}

// Returns the byte of each block that `most` finds among its sixteen, the largest or the smallest, as the lowest of a word.
template <class Most>
TW_INLINE __m512i reduce(const __m512i *row, Most most) {
    const auto halves = [&](__m512i a, __m512i b) { return most(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)); };
    const __m512 a = _mm512_castsi512_ps(halves(row[0], row[1])), b = _mm512_castsi512_ps(halves(row[2], row[3]));
    const __m512 even = _mm512_shuffle_ps(a, b, 0x88), odd = _mm512_shuffle_ps(a, b, 0xdd);
    __m512i all = most(_mm512_castps_si512(even), _mm512_castps_si512(odd));
    all = most(all, _mm512_srli_epi32(all, 16));
    return most(all, _mm512_srli_epi32(all, 8));
}
TW_INLINE __m512i reduce_to_largest(const __m512i *row) {
    return reduce(row, [](__m512i a, __m512i b) { return _mm512_max_epu8(a, b); });
}
TW_INLINE __m512i reduce_to_smallest(const __m512i *row) {
    return reduce(row, [](__m512i a, __m512i b) { return _mm512_min_epu8(a, b); });
}

// Returns the largest byte of each block.
TW_INLINE __m512i largest(const __m512i *row) { return _mm512_and_si512(reduce_to_largest(row), words(255)); }

// Returns the lowest byte of word i of each lane, sixteen times.
TW_INLINE __m512i spread_byte(__m512i blocks, int i) { return _mm512_shuffle_epi8(blocks, bytes(4 * i)); }

// Returns word i of each lane, four times.
template <int i>
TW_INLINE __m512 spread_word(__m512 blocks) { return _mm512_permute_ps(blocks, i * 0x55); }

// Returns magnitudes with the signs of x.
TW_INLINE __m512i signed_bytes(__m512i magnitude, __m512i x) {
    return _mm512_ternarylogic_epi32(magnitude, x, bytes(0x80), 0xf8);  // magnitude | (x & 0x80)
}

// The same, but zeros without signs.
TW_INLINE __m512i with_signs(__m512i magnitude, __m512i x) {
    const __m512i sign = _mm512_and_si512(x, bytes(0x80));
    return _mm512_mask_add_epi8(magnitude, _mm512_test_epi8_mask(magnitude, magnitude), magnitude, sign);
}

// Returns 2^(6 - exponent), which makes the largest of a block an integer of seven bits; 0 for the exponent of zeros.
TW_INLINE __m512 steps(__m512i exponents) {
    const __mmask16 alive = _mm512_test_epi32_mask(exponents, exponents);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(alive, _mm512_sub_epi32(words(260), exponents), 23));
}

}  // namespace
}  // namespace tw::TW_ISA
