// SPDX-License-Identifier: Apache-2.0
//
// Sixteen words of 32 bits and what can be done to all of them, as integers and as the bits of float32. Only for the
// files compiled once for each instruction set.
#pragma once

#include "simd/maxima.h"
#include "simd/sixteen.h"

namespace tw::TW_ISA {
namespace {

#if defined(__AVX512BW__)
#  define TW_WORDS(name) _mm512_##name
using Part = __m512i;
using Floats = __m512;
TW_INLINE Part less_part(Part a, Part b, Part yes, Part no) {
    return _mm512_mask_mov_epi32(no, _mm512_cmplt_epu32_mask(a, b), yes);
}
TW_INLINE Part equal_part(Part a, Part b, Part yes, Part no) {
    return _mm512_mask_mov_epi32(no, _mm512_cmpeq_epi32_mask(a, b), yes);
}
TW_INLINE Part and_part(Part a, Part b) { return _mm512_and_si512(a, b); }
TW_INLINE Part or_part(Part a, Part b) { return _mm512_or_si512(a, b); }
TW_INLINE Floats floats(Part a) { return _mm512_castsi512_ps(a); }
TW_INLINE Part bits(Floats a) { return _mm512_castps_si512(a); }
#elif defined(__AVX2__)
#  define TW_WORDS(name) _mm256_##name
using Part = __m256i;
using Floats = __m256;
TW_INLINE Part less_part(Part a, Part b, Part yes, Part no) {
    return _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi32(b, a));
}
TW_INLINE Part equal_part(Part a, Part b, Part yes, Part no) {
    return _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi32(a, b));
}
TW_INLINE Part and_part(Part a, Part b) { return _mm256_and_si256(a, b); }
TW_INLINE Part or_part(Part a, Part b) { return _mm256_or_si256(a, b); }
TW_INLINE Floats floats(Part a) { return _mm256_castsi256_ps(a); }
TW_INLINE Part bits(Floats a) { return _mm256_castps_si256(a); }
#endif

#if defined(TW_WORDS)

TW_INLINE Part part_of(uint32_t a) { return TW_WORDS(set1_epi32)(static_cast<int>(a)); }
TW_INLINE Part add_part(Part a, Part b) { return TW_WORDS(add_epi32)(a, b); }
TW_INLINE Part sub_part(Part a, Part b) { return TW_WORDS(sub_epi32)(a, b); }
TW_INLINE Part min_part(Part a, Part b) { return TW_WORDS(min_epu32)(a, b); }
TW_INLINE Part max_part(Part a, Part b) { return TW_WORDS(max_epu32)(a, b); }
TW_INLINE Part up_part(Part a, int n) { return TW_WORDS(slli_epi32)(a, n); }
TW_INLINE Part down_part(Part a, int n) { return TW_WORDS(srli_epi32)(a, n); }
TW_INLINE Part plus_part(Part a, Part b) { return bits(TW_WORDS(add_ps)(floats(a), floats(b))); }
TW_INLINE Part times_part(Part a, Part b) { return bits(TW_WORDS(mul_ps)(floats(a), floats(b))); }
TW_INLINE Part over_part(Part a, Part b) { return bits(TW_WORDS(div_ps)(floats(a), floats(b))); }
TW_INLINE Part float_part(Part a) { return bits(TW_WORDS(cvtepi32_ps)(a)); }
#  undef TW_WORDS

#else

using Part = uint32_t;
TW_INLINE Part part_of(uint32_t a) { return a; }
// Written so, compilers make no branch of it, which would keep a loop from becoming vector instructions.
TW_INLINE Part chosen_part(bool first, Part yes, Part no) {
    const uint32_t mask = 0u - static_cast<uint32_t>(first);
    return (yes & mask) | (no & ~mask);
}
TW_INLINE Part less_part(Part a, Part b, Part yes, Part no) {
    return chosen_part(static_cast<int32_t>(a) < static_cast<int32_t>(b), yes, no);
}
TW_INLINE Part equal_part(Part a, Part b, Part yes, Part no) { return chosen_part(a == b, yes, no); }
TW_INLINE Part and_part(Part a, Part b) { return a & b; }
TW_INLINE Part or_part(Part a, Part b) { return a | b; }
TW_INLINE Part add_part(Part a, Part b) { return a + b; }
TW_INLINE Part sub_part(Part a, Part b) { return a - b; }
TW_INLINE Part min_part(Part a, Part b) { return a < b ? a : b; }
TW_INLINE Part max_part(Part a, Part b) { return a > b ? a : b; }
TW_INLINE Part up_part(Part a, int n) { return a << n; }
TW_INLINE Part down_part(Part a, int n) { return a >> n; }
TW_INLINE Part plus_part(Part a, Part b) { return bits_of(float_of(a) + float_of(b)); }
TW_INLINE Part times_part(Part a, Part b) { return bits_of(float_of(a) * float_of(b)); }
TW_INLINE Part over_part(Part a, Part b) { return bits_of(float_of(a) / float_of(b)); }
TW_INLINE Part float_part(Part a) { return bits_of(static_cast<float>(static_cast<int32_t>(a))); }

#endif

struct Words {
    static constexpr int parts = static_cast<int>(64 / sizeof(Part));
    Part v[parts];

    Words() = default;
    TW_INLINE Words(uint32_t a) {
        for (Part &each : v) each = part_of(a);
    }
};

template <class Make, class... More>
TW_INLINE Words each_part(Make make, const Words &a, const More &...more) {
    Words made;
    for (int i = 0; i < Words::parts; ++i) made.v[i] = make(a.v[i], more.v[i]...);
    return made;
}

#define TW_BOTH(name, part) \
    TW_INLINE Words name(const Words &a, const Words &b) { \
        return each_part([](Part x, Part y) { return part(x, y); }, a, b); \
    }
TW_BOTH(operator+, add_part)
TW_BOTH(operator-, sub_part)
TW_BOTH(operator&, and_part)
TW_BOTH(operator|, or_part)
TW_BOTH(smaller, min_part)
TW_BOTH(larger, max_part)
// As float32.
TW_BOTH(plus, plus_part)
TW_BOTH(times, times_part)
TW_BOTH(over, over_part)
#undef TW_BOTH

TW_INLINE Words operator<<(const Words &a, int n) {
    return each_part([n](Part x) { return up_part(x, n); }, a);
}
TW_INLINE Words operator>>(const Words &a, int n) {
    return each_part([n](Part x) { return down_part(x, n); }, a);
}
// Returns integers below 2^31 as float32.
TW_INLINE Words as_floats(const Words &a) {
    return each_part([](Part x) { return float_part(x); }, a);
}
// Returns `yes` where a < b, both below 2^31, and `no` elsewhere.
TW_INLINE Words where_less(const Words &a, const Words &b, const Words &yes, const Words &no) {
    return each_part([](Part x, Part y, Part s, Part t) { return less_part(x, y, s, t); }, a, b, yes, no);
}
TW_INLINE Words where_equal(const Words &a, const Words &b, const Words &yes, const Words &no) {
    return each_part([](Part x, Part y, Part s, Part t) { return equal_part(x, y, s, t); }, a, b, yes, no);
}

TW_INLINE Words load_words(const uint32_t *p) {
    Words a;
    std::memcpy(a.v, p, sizeof(a.v));
    return a;
}
TW_INLINE void store_words(uint32_t *p, const Words &a) { std::memcpy(p, a.v, sizeof(a.v)); }

TW_INLINE Sixteen sixteen_of(const Words &a) {
    Sixteen x;
    static_assert(sizeof(x) == sizeof(a.v));
    std::memcpy(&x, a.v, sizeof(x));
    return x;
}

TW_INLINE Words words_of(const Sixteen &a) {
    Words x;
    std::memcpy(x.v, &a, sizeof(a));
    return x;
}

// Writes sixteen words below 256 as bytes.
TW_INLINE void store_bytes(uint8_t *p, const Words &a) {
#if defined(__AVX512BW__)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(p), _mm512_cvtepi32_epi8(a.v[0]));
#elif defined(__AVX2__)
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(a.v[0], a.v[1]), 0xd8);
    const __m128i low = _mm256_castsi256_si128(both), high = _mm256_extracti128_si256(both, 1);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(p), _mm_packus_epi16(low, high));
#else
    for (int i = 0; i < 16; ++i) p[i] = static_cast<uint8_t>(a.v[i]);
#endif
}

#if defined(__AVX2__)
// Returns sixteen bytes as words.
TW_INLINE Words words_of(__m128i bytes) {
    Words a;
#  if defined(__AVX512BW__)
    a.v[0] = _mm512_cvtepu8_epi32(bytes);
#  else
    a.v[0] = _mm256_cvtepu8_epi32(bytes);
    a.v[1] = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes));
#  endif
    return a;
}
#endif

#if defined(__AVX2__)
// Returns whether one of the first eight is greater than a number, all below 2^31.
TW_INLINE bool any_above(const Words &a, uint32_t number) {
#  if defined(__AVX512BW__)
    return (_mm512_cmpgt_epi32_mask(a.v[0], part_of(number)) & 0xff) != 0;
#  else
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(a.v[0], part_of(number))) != 0;
#  endif
}
#endif

// Returns the largest of each of eight, in order; the other words are of no meaning.
TW_INLINE Words maxima(const Words *a) {
    Words all;
#if defined(__AVX512BW__)
    __m512i one[8];
    for (int i = 0; i < 8; ++i) one[i] = a[i].v[0];
    all.v[0] = maxima<8>(one);
#elif defined(__AVX2__)
    __m256i one[8];
    for (int i = 0; i < 8; ++i) one[i] = _mm256_max_epu32(a[i].v[0], a[i].v[1]);
    all.v[0] = all.v[1] = _mm256_inserti128_si256(_mm256_castsi128_si256(maxima(one)), maxima(one + 4), 1);
#else
    for (int i = 0; i < 16; ++i) {
        uint32_t most = 0;
        for (int k = 0; k < 16; ++k) most = a[i % 8].v[k] > most ? a[i % 8].v[k] : most;
        all.v[i] = most;
    }
#endif
    return all;
}

}  // namespace
}  // namespace tw::TW_ISA
