// SPDX-License-Identifier: Apache-2.0
//
// Sixteen float32 in registers: a line of them, or half a line of a 16-bit type. Only for the files compiled once for
// each instruction set.
#pragma once

#include "formats/scalars.h"

namespace tw::TW_ISA {
namespace {

// A line of the target in registers.
struct Line {
    Vec v[line / width];
};

TW_INLINE Line load_line(const uint8_t *p) {
    Line a;
    for (int64_t i = 0; i < line / width; ++i) a.v[i] = load(p + i * width);
    return a;
}
TW_INLINE void store_line(uint8_t *p, const Line &a) {
    for (int64_t i = 0; i < line / width; ++i) store(p + i * width, a.v[i]);
}
TW_INLINE void stream_line(uint8_t *p, const Line &a) {
    for (int64_t i = 0; i < line / width; ++i) stream(p + i * width, a.v[i]);
}

#if defined(__AVX512BW__)

struct Sixteen {
    __m512i v;
};
using HalfLine = __m256i;

// Returns x with every NaN replaced by the one without sign and payload.
TW_INLINE __m512 plain_nan(__m512 x) {
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_ps(float_of(quiet_nan)));
}

template <class From>
TW_INLINE Sixteen widened(HalfLine a) {
    if constexpr (std::is_same_v<From, Half>) return {_mm512_castps_si512(plain_nan(_mm512_cvtph_ps(a)))};
    return {_mm512_slli_epi32(_mm512_cvtepu16_epi32(a), 16)};
}
template <class From>
TW_INLINE Sixteen load_sixteen(const uint8_t *p) {
    if constexpr (sizeof(From) == 2) return widened<From>(load32(p));
    return {_mm512_loadu_si512(p)};
}

template <class To>
TW_INLINE HalfLine narrowed(Sixteen x) {
    if constexpr (std::is_same_v<To, Half>) {
        return _mm512_cvtps_ph(plain_nan(_mm512_castsi512_ps(x.v)), _MM_FROUND_TO_NEAREST_INT);
    } else {
        __m512i odd = _mm512_and_si512(_mm512_srli_epi32(x.v, 16), _mm512_set1_epi32(1));
        __m512i up = _mm512_add_epi32(_mm512_add_epi32(x.v, _mm512_set1_epi32(0x7fff)), odd);
        const __m512 f = _mm512_castsi512_ps(x.v);
        __mmask16 nan = _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q);
        __m512i r = _mm512_mask_mov_epi32(_mm512_srli_epi32(up, 16), nan, _mm512_set1_epi32(0x7fc0));
        return _mm512_cvtepi32_epi16(r);
    }
}

// Returns the line of two blocks of bfloat16 that float32 holds exactly: the upper halves.
TW_INLINE Line brain_line(Sixteen x, Sixteen y) {
    const __m512i upper = _mm512_setr_epi32(0x030001, 0x070005, 0x0b0009, 0x0f000d, 0x130011, 0x170015, 0x1b0019,
                                            0x1f001d, 0x230021, 0x270025, 0x2b0029, 0x2f002d, 0x330031, 0x370035,
                                            0x3b0039, 0x3f003d);
    return {{{_mm512_permutex2var_epi16(x.v, upper, y.v)}}};
}

TW_INLINE Line line_of(Sixteen x) { return {{{x.v}}}; }
TW_INLINE Line line_of(HalfLine a, HalfLine b) { return {{{_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1)}}}; }
TW_INLINE HalfLine load_half_line(const uint8_t *p) { return load32(p); }
TW_INLINE Line line_of_quarters(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d) {
    __m512i v = _mm512_castsi128_si512(load16(a));
    v = _mm512_inserti32x4(v, load16(b), 1);
    v = _mm512_inserti32x4(v, load16(c), 2);
    return {{{_mm512_inserti32x4(v, load16(d), 3)}}};
}

#elif defined(__AVX2__)

struct Sixteen {
    __m256i v[2];
};
using HalfLine = __m256i;

TW_INLINE __m256 plain_nan(__m256 x) {
    return _mm256_blendv_ps(x, _mm256_set1_ps(float_of(quiet_nan)), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

template <class From>
TW_INLINE __m256i widened_eight(__m128i a) {
    if constexpr (std::is_same_v<From, Half>) return _mm256_castps_si256(plain_nan(_mm256_cvtph_ps(a)));
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(a), 16);
}
template <class From>
TW_INLINE Sixteen widened(HalfLine a) {
    return {{widened_eight<From>(_mm256_castsi256_si128(a)), widened_eight<From>(_mm256_extracti128_si256(a, 1))}};
}
template <class From>
TW_INLINE Sixteen load_sixteen(const uint8_t *p) {
    if constexpr (sizeof(From) == 2) return {{widened_eight<From>(load16(p)), widened_eight<From>(load16(p + 16))}};
    return {{load32(p), load32(p + 32)}};
}

TW_INLINE __m256i brain_bits(__m256i x) {
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
    __m256i up = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(x, _mm256_set1_epi32(0x7fff)), odd), 16);
    const __m256 f = _mm256_castsi256_ps(x);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(f, f, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(up, _mm256_set1_epi32(0x7fc0), nan);
}
template <class To>
TW_INLINE HalfLine narrowed(Sixteen x) {
    if constexpr (std::is_same_v<To, Half>) {
        __m128i a = _mm256_cvtps_ph(plain_nan(_mm256_castsi256_ps(x.v[0])), _MM_FROUND_TO_NEAREST_INT);
        __m128i b = _mm256_cvtps_ph(plain_nan(_mm256_castsi256_ps(x.v[1])), _MM_FROUND_TO_NEAREST_INT);
        return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    } else {
        // The pack works in 128-bit lanes; the permutation puts them in order.
        return _mm256_permute4x64_epi64(_mm256_packus_epi32(brain_bits(x.v[0]), brain_bits(x.v[1])), 0xd8);
    }
}

TW_INLINE Line brain_line(Sixteen x, Sixteen y) {
    const auto half = [](Sixteen a) {
        const __m256i both = _mm256_packus_epi32(_mm256_srli_epi32(a.v[0], 16), _mm256_srli_epi32(a.v[1], 16));
        return Vec{_mm256_permute4x64_epi64(both, 0xd8)};
    };
    return {{half(x), half(y)}};
}

TW_INLINE Line line_of(Sixteen x) { return {{{x.v[0]}, {x.v[1]}}}; }
TW_INLINE Line line_of(HalfLine a, HalfLine b) { return {{{a}, {b}}}; }
TW_INLINE HalfLine load_half_line(const uint8_t *p) { return load32(p); }
TW_INLINE Line line_of_quarters(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d) {
    return {{{_mm256_inserti128_si256(_mm256_castsi128_si256(load16(a)), load16(b), 1)},
             {_mm256_inserti128_si256(_mm256_castsi128_si256(load16(c)), load16(d), 1)}}};
}

#else

struct Sixteen {
    float v[16];
};
struct HalfLine {
    uint8_t v[32];
};

template <class From>
TW_INLINE Sixteen load_sixteen(const uint8_t *p) {
    Sixteen x;
    for (size_t i = 0; i < 16; ++i) {
        From y;
        std::memcpy(&y, p + i * sizeof(From), sizeof(From));
        x.v[i] = widen(y);
    }
    return x;
}

template <class To>
TW_INLINE HalfLine narrowed(const Sixteen &x) {
    HalfLine a;
    for (size_t i = 0; i < 16; ++i) {
        To y = narrow<To>(x.v[i]);
        std::memcpy(a.v + 2 * i, &y, 2);
    }
    return a;
}

TW_INLINE Line line_of(const Sixteen &x) {
    uint8_t bytes[line];
    std::memcpy(bytes, x.v, line);
    return load_line(bytes);
}
TW_INLINE Line line_of(const HalfLine &a, const HalfLine &b) {
    uint8_t bytes[line];
    std::memcpy(bytes, a.v, 32);
    std::memcpy(bytes + 32, b.v, 32);
    return load_line(bytes);
}
TW_INLINE Line brain_line(const Sixteen &x, const Sixteen &y) {
    return line_of(narrowed<Brain>(x), narrowed<Brain>(y));
}
TW_INLINE Line line_of_quarters(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d) {
    return {{load(a), load(b), load(c), load(d)}};
}
TW_INLINE HalfLine load_half_line(const uint8_t *p) {
    HalfLine a;
    std::memcpy(a.v, p, 32);
    return a;
}

#endif

// Writes 64 bytes for each of `count` pieces of sixteen float16 that start `step` bytes apart: the same as float32.
TW_APART inline void widen_halves(const uint8_t *from, int64_t step, int64_t count, uint8_t *to) {
    for (int64_t i = 0; i < count; ++i) store_line(to + i * line, line_of(load_sixteen<Half>(from + i * step)));
}

}  // namespace
}  // namespace tw::TW_ISA
