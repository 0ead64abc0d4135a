// SPDX-License-Identifier: Apache-2.0
//
// Sixteen codes of 8, 6, 4 or 2 bits, taken apart into bytes. Only for the files compiled once for each instruction set.
#pragma once

#include "simd/vectors.h"

namespace tw::TW_ISA {
namespace {

#if defined(__AVX2__)

// Returns sixteen codes, one byte each.
template <int bits>
TW_INLINE __m128i split_codes(const uint8_t *codes) {
    if constexpr (bits == 8) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i *>(codes));
    } else if constexpr (bits == 6) {
        int32_t last;
        std::memcpy(&last, codes + 8, 4);
        __m128i w = _mm_insert_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(codes)), last, 2);
        // Three bytes are four codes: to 32 bits, to twice 12 of them, to four times 6.
        w = _mm_shuffle_epi8(w, _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
        w = _mm_or_si128(_mm_and_si128(w, _mm_set1_epi32(0xfff)),
                         _mm_and_si128(_mm_slli_epi32(w, 4), _mm_set1_epi32(0xfff0000)));
        return _mm_or_si128(_mm_and_si128(w, _mm_set1_epi16(0x3f)),
                            _mm_and_si128(_mm_slli_epi16(w, 2), _mm_set1_epi16(0x3f00)));
    } else if constexpr (bits == 4) {
        __m128i w = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(codes)));
        return _mm_and_si128(_mm_or_si128(w, _mm_slli_epi16(w, 4)), _mm_set1_epi8(15));
    } else {
        int32_t four;
        std::memcpy(&four, codes, 4);
        __m128i w = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
        w = _mm_or_si128(w, _mm_slli_epi32(w, 6));
        return _mm_and_si128(_mm_or_si128(w, _mm_slli_epi32(w, 12)), _mm_set1_epi8(3));
    }
}

#else

// Writes sixteen codes, one byte each.
template <int bits>
TW_INLINE void split_codes(const uint8_t *codes, uint8_t *out) {
    if constexpr (bits == 8) {
        std::memcpy(out, codes, 16);
    } else if constexpr (bits == 6) {
        for (int i = 0; i < 4; ++i) {
            const unsigned a = codes[3 * i], b = codes[3 * i + 1], c = codes[3 * i + 2];
            out[4 * i] = static_cast<uint8_t>(a & 63);
            out[4 * i + 1] = static_cast<uint8_t>((a >> 6 | b << 2) & 63);
            out[4 * i + 2] = static_cast<uint8_t>((b >> 4 | c << 4) & 63);
            out[4 * i + 3] = static_cast<uint8_t>(c >> 2);
        }
    } else {
        constexpr int per_byte = 8 / bits;
        for (int i = 0; i < 16; ++i) {
            out[i] = static_cast<uint8_t>(codes[i / per_byte] >> (i % per_byte * bits) & ((1 << bits) - 1));
        }
    }
}

#endif

}  // namespace
}  // namespace tw::TW_ISA
