// SPDX-License-Identifier: Apache-2.0
//
// Codes of 8, 6 or 4 bits, joined from bytes: the way back from split_codes.h, whole lines at a time. Only for the files
// compiled once for each instruction set.
#pragma once

#include "simd/sixteen.h"

namespace tw::TW_ISA {
namespace {

// How many lines of bytes it takes to make whole lines of codes, and how many these are.
template <int bits>
constexpr int lines_joined = bits == 8 ? 1 : bits == 6 ? 4 : 2;
template <int bits>
constexpr int lines_made = lines_joined<bits> * bits / 8;

#if defined(__AVX512BW__)

// Neighbours become one number, twice for 6 bits: low + weight * high.
TW_INLINE void join_fours(const Line *bytes, Line *out) {
    const __m512i weights = _mm512_set1_epi16(0x1001);
    const __m512i both = _mm512_packus_epi16(_mm512_maddubs_epi16(bytes[0].v[0].v, weights),
                                             _mm512_maddubs_epi16(bytes[1].v[0].v, weights));
    out[0] = {{{_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), both)}}};
}

TW_INLINE void join_sixes(const Line *bytes, Line *out) {
    // Three bytes in each word, and three words in each lane of 128 bits.
    const auto joined = [&](int i) {
        __m512i w = _mm512_maddubs_epi16(bytes[i].v[0].v, _mm512_set1_epi16(0x4001));
        w = _mm512_madd_epi16(w, _mm512_set1_epi32(0x10000001));
        const __m128i thirds = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
        return _mm512_shuffle_epi8(w, _mm512_broadcast_i32x4(thirds));
    };
    const __m512i a = joined(0), b = joined(1), c = joined(2), d = joined(3);
    const __m512i ab = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 20);
    const __m512i bc = _mm512_setr_epi32(5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 20, 21, 22, 24, 25);
    const __m512i cd = _mm512_setr_epi32(10, 12, 13, 14, 16, 17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30);
    out[0] = {{{_mm512_permutex2var_epi32(a, ab, b)}}};
    out[1] = {{{_mm512_permutex2var_epi32(b, bc, c)}}};
    out[2] = {{{_mm512_permutex2var_epi32(c, cd, d)}}};
}

#elif defined(__AVX2__)

TW_INLINE void join_fours(const Line *bytes, Line *out) {
    const __m256i weights = _mm256_set1_epi16(0x1001);
    for (int i = 0; i < 2; ++i) {
        const __m256i both = _mm256_packus_epi16(_mm256_maddubs_epi16(bytes[i].v[0].v, weights),
                                                 _mm256_maddubs_epi16(bytes[i].v[1].v, weights));
        out[0].v[i] = {_mm256_permute4x64_epi64(both, 0xd8)};
    }
}

TW_INLINE void join_sixes(const Line *bytes, Line *out) {
    const auto joined = [&](int i) {
        __m256i w = _mm256_maddubs_epi16(bytes[i / 2].v[i % 2].v, _mm256_set1_epi16(0x4001));
        w = _mm256_madd_epi16(w, _mm256_set1_epi32(0x10000001));
        const __m128i thirds = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
        return _mm256_shuffle_epi8(w, _mm256_broadcastsi128_si256(thirds));
    };
    const auto words = [](__m256i w, int a, int b, int c, int d, int e, int f, int g, int h) {
        return _mm256_permutevar8x32_epi32(w, _mm256_setr_epi32(a, b, c, d, e, f, g, h));
    };
    for (int i = 0; i < 2; ++i) {
        const __m256i a = joined(4 * i), b = joined(4 * i + 1), c = joined(4 * i + 2), d = joined(4 * i + 3);
        Vec three[3];
        three[0] = {_mm256_blend_epi32(words(a, 0, 1, 2, 4, 5, 6, 0, 0), words(b, 0, 0, 0, 0, 0, 0, 0, 1), 0xc0)};
        three[1] = {_mm256_blend_epi32(words(b, 2, 4, 5, 6, 0, 0, 0, 0), words(c, 0, 0, 0, 0, 0, 1, 2, 4), 0xf0)};
        three[2] = {_mm256_blend_epi32(words(c, 5, 6, 0, 0, 0, 0, 0, 0), words(d, 0, 0, 0, 1, 2, 4, 5, 6), 0xfc)};
        for (int k = 0; k < 3; ++k) out[(3 * i + k) / 2].v[(3 * i + k) % 2] = three[k];
    }
}

#elif defined(TW_VECTORS)

typedef uint8_t Codes __attribute__((vector_size(16)));

TW_INLINE Codes codes_at(const Line *bytes, int i) {
    Codes codes;
    std::memcpy(&codes, &bytes[i / 4].v[i % 4], 16);
    return codes;
}

TW_INLINE void join_fours(const Line *bytes, Line *out) {
    for (int i = 0; i < 4; ++i) {
        const Codes a = codes_at(bytes, 2 * i), b = codes_at(bytes, 2 * i + 1);
        const Codes low = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const Codes high = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const Codes both = low | high << 4;
        std::memcpy(&out[0].v[i], &both, 16);
    }
}

TW_INLINE void join_sixes(const Line *bytes, Line *out) {
    typedef uint32_t Fours __attribute__((vector_size(16)));
    const auto joined = [&](int i) {
        const Fours w = (Fours)codes_at(bytes, i);
        return (Codes)((w & 0x3fu) | (w >> 2 & 0xfc0u) | (w >> 4 & 0x3f000u) | (w >> 6 & 0xfc0000u));
    };
    for (int i = 0; i < 4; ++i) {
        const Codes a = joined(4 * i), b = joined(4 * i + 1), c = joined(4 * i + 2), d = joined(4 * i + 3);
        const Codes three[] = {
            __builtin_shufflevector(a, b, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 20),
            __builtin_shufflevector(b, c, 5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 20, 21, 22, 24, 25),
            __builtin_shufflevector(c, d, 10, 12, 13, 14, 16, 17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30)};
        for (int k = 0; k < 3; ++k) std::memcpy(&out[(3 * i + k) / 4].v[(3 * i + k) % 4], &three[k], 16);
    }
}

#else

TW_INLINE void join_fours(const Line *bytes, Line *out) {
    uint8_t codes[2 * line], made[line];
    for (int i = 0; i < 2; ++i) store_line(codes + i * line, bytes[i]);
    for (int i = 0; i < line; ++i) made[i] = static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
    out[0] = load_line(made);
}

TW_INLINE void join_sixes(const Line *bytes, Line *out) {
    uint8_t codes[4 * line], made[3 * line];
    for (int i = 0; i < 4; ++i) store_line(codes + i * line, bytes[i]);
    for (int i = 0; i < line; ++i) {
        const unsigned a = codes[4 * i], b = codes[4 * i + 1], c = codes[4 * i + 2], d = codes[4 * i + 3];
        made[3 * i] = static_cast<uint8_t>(a | b << 6);
        made[3 * i + 1] = static_cast<uint8_t>(b >> 2 | c << 4);
        made[3 * i + 2] = static_cast<uint8_t>(c >> 4 | d << 2);
    }
    for (int i = 0; i < 3; ++i) out[i] = load_line(made + i * line);
}

#endif

// Joins the codes in lines_joined<bits> lines of bytes into lines_made<bits> lines.
template <int bits>
TW_INLINE void join_codes(const Line *bytes, Line *out) {
    if constexpr (bits == 8) out[0] = bytes[0];
    if constexpr (bits == 6) join_sixes(bytes, out);
    if constexpr (bits == 4) join_fours(bytes, out);
}

}  // namespace
}  // namespace tw::TW_ISA
