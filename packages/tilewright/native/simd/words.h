// SPDX-License-Identifier: Apache-2.0
//
// Sixteen words of 32 bits and what can be done to all of them, as integers and as the bits of float32. Only for the
// files compiled once for each instruction set.
#pragma once

#include <array>

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

#elif defined(TW_VECTORS)

// Four words of a register of 128 bits, whatever the machine: NEON, SSE2 and others, as the compiler knows them.
typedef uint32_t Part __attribute__((vector_size(16)));
typedef int32_t SignedPart __attribute__((vector_size(16)));
typedef float Floats __attribute__((vector_size(16)));
TW_INLINE Floats floats(Part a) { return (Floats)a; }
TW_INLINE Part bits(Floats a) { return (Part)a; }
TW_INLINE Part part_of(uint32_t a) { return Part{a, a, a, a}; }
TW_INLINE Part less_part(Part a, Part b, Part yes, Part no) { return (SignedPart)a < (SignedPart)b ? yes : no; }
TW_INLINE Part equal_part(Part a, Part b, Part yes, Part no) { return a == b ? yes : no; }
TW_INLINE Part float_part(Part a) { return bits(__builtin_convertvector((SignedPart)a, Floats)); }

#else

using Part = uint32_t;
using Floats = float;
TW_INLINE Floats floats(Part a) { return float_of(a); }
TW_INLINE Part bits(Floats a) { return bits_of(a); }
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
TW_INLINE Part float_part(Part a) { return bits_of(static_cast<float>(static_cast<int32_t>(a))); }

#endif

#if !defined(__AVX2__)

TW_INLINE Part and_part(Part a, Part b) { return a & b; }
TW_INLINE Part or_part(Part a, Part b) { return a | b; }
TW_INLINE Part add_part(Part a, Part b) { return a + b; }
TW_INLINE Part sub_part(Part a, Part b) { return a - b; }
TW_INLINE Part min_part(Part a, Part b) { return a < b ? a : b; }
TW_INLINE Part max_part(Part a, Part b) { return a > b ? a : b; }
TW_INLINE Part up_part(Part a, int n) { return a << n; }
TW_INLINE Part down_part(Part a, int n) { return a >> n; }
TW_INLINE Part plus_part(Part a, Part b) { return bits(floats(a) + floats(b)); }
TW_INLINE Part times_part(Part a, Part b) { return bits(floats(a) * floats(b)); }
TW_INLINE Part over_part(Part a, Part b) { return bits(floats(a) / floats(b)); }

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

TW_INLINE Words words_of(const Line &a) {
    Words x;
    static_assert(sizeof(a) == sizeof(x.v));
    std::memcpy(x.v, &a, sizeof(a));
    return x;
}

TW_INLINE Words words_of(const Sixteen &a) {
    Words x;
    std::memcpy(x.v, &a, sizeof(a));
    return x;
}

// Returns the bits of a that a mask has, and those of b that it does not have.
TW_INLINE Words merge(uint32_t mask, const Words &a, const Words &b) {
#if defined(__AVX512BW__)
    return each_part([mask](Part x, Part y) { return _mm512_ternarylogic_epi32(x, y, part_of(mask), 0xe4); }, a, b);
#else
    return (a & mask) | (b & ~mask);
#endif
}

// Returns the magnitudes of float32, or `most` for larger ones; of a NaN, anything.
TW_INLINE Words magnitude_up_to(const Words &a, uint32_t most) {
#if defined(__AVX512BW__)
    constexpr int smaller_magnitude = 2, no_sign = 2 << 2;
    return each_part(
        [most](Part x) { return bits(_mm512_range_ps(floats(x), floats(part_of(most)), smaller_magnitude | no_sign)); },
        a);
#else
    return smaller(a & 0x7fffffffu, most);
#endif
}

// Returns float32, or `most` with their sign for those of larger magnitude; for a NaN, anything.
TW_INLINE Words within(const Words &a, uint32_t most) {
#if defined(__AVX512BW__)
    constexpr int smaller_magnitude = 2;
    return each_part([most](Part x) { return bits(_mm512_range_ps(floats(x), floats(part_of(most)), smaller_magnitude)); }, a);
#else
    return merge(0x7fffffffu, smaller(a & 0x7fffffffu, most), a);
#endif
}

// Returns float32 as integers, nearest even; those of larger magnitude than 2^23 are of no meaning.
TW_INLINE Words rounded(const Words &a) {
#if defined(__AVX512BW__)
    return each_part([](Part x) { return _mm512_cvtps_epi32(floats(x)); }, a);
#elif defined(__AVX2__)
    return each_part([](Part x) { return _mm256_cvtps_epi32(floats(x)); }, a);
#else
    constexpr uint32_t magic = 0x4b400000u;  // 1.5 * 2^23: the addition rounds
    return plus(a, magic) - magic;
#endif
}

#if defined(__AVX512BW__)
// Returns the words of a table that the last bits of `index` name.
template <size_t size>
TW_INLINE Words look_up(const std::array<uint32_t, size> &table, const Words &index) {
    static_assert(size == 16 || size == 32);
    const __m512i low = _mm512_loadu_si512(table.data());
    if constexpr (size == 16) return each_part([&](Part x) { return _mm512_permutexvar_epi32(x, low); }, index);
    const __m512i high = _mm512_loadu_si512(table.data() + size - 16);
    return each_part([&](Part x) { return _mm512_permutex2var_epi32(low, x, high); }, index);
}
#endif

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
#else
TW_INLINE Words words_of_bytes(const uint8_t *bytes) {
    uint32_t each[16];
    for (int i = 0; i < 16; ++i) each[i] = bytes[i];
    return load_words(each);
}
#endif

// Returns 64 bytes of four times sixteen words below 256.
TW_INLINE Line bytes_of(const Words *a) {
#if defined(__AVX512BW__)
    // The packs work in 128-bit lanes, the permutation reorders.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i all = _mm512_packus_epi16(_mm512_packus_epi32(a[0].v[0], a[1].v[0]),
                                            _mm512_packus_epi32(a[2].v[0], a[3].v[0]));
    return {{{_mm512_permutexvar_epi32(order, all)}}};
#elif defined(__AVX2__)
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const auto half = [&](const Words &x, const Words &y) {
        const __m256i all = _mm256_packus_epi16(_mm256_packus_epi32(x.v[0], x.v[1]), _mm256_packus_epi32(y.v[0], y.v[1]));
        return Vec{_mm256_permutevar8x32_epi32(all, order)};
    };
    return {{half(a[0], a[1]), half(a[2], a[3])}};
#else
    uint8_t made[line];
    for (int i = 0; i < 4; ++i) {
#  if defined(TW_VECTORS)
        typedef uint16_t Shorts __attribute__((vector_size(16)));
        typedef uint8_t Bytes __attribute__((vector_size(16)));
        const auto shorts = [](Part x, Part y) {
            return __builtin_shufflevector((Shorts)x, (Shorts)y, 0, 2, 4, 6, 8, 10, 12, 14);
        };
        const Shorts x = shorts(a[i].v[0], a[i].v[1]), y = shorts(a[i].v[2], a[i].v[3]);
        const Bytes all = __builtin_shufflevector((Bytes)x, (Bytes)y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        std::memcpy(made + 16 * i, &all, 16);
#  else
        for (int k = 0; k < 16; ++k) made[16 * i + k] = static_cast<uint8_t>(a[i].v[k]);
#  endif
    }
    return load_line(made);
#endif
}

// Returns 64 bytes: the last bits of four times sixteen words, and above these, the signs of as many other words. There are
// `bits` of them with the sign.
template <int bits>
TW_INLINE Line signed_bytes_of(const Words *a, const Words *signs) {
    constexpr uint32_t last = (1u << (bits - 1)) - 1;
#if defined(__AVX2__) && !defined(__AVX512BW__)
    // The packs keep signs, so these need be put in their place only once for four vectors.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7), mask = part_of(last);
    const auto clean = [&](const Words &x, int i) { return _mm256_and_si256(x.v[i], mask); };
    const auto half = [&](int i) {
        const __m256i codes = _mm256_packus_epi16(_mm256_packus_epi32(clean(a[i], 0), clean(a[i], 1)),
                                                  _mm256_packus_epi32(clean(a[i + 1], 0), clean(a[i + 1], 1)));
        const __m256i top = _mm256_packs_epi16(_mm256_packs_epi32(signs[i].v[0], signs[i].v[1]),
                                               _mm256_packs_epi32(signs[i + 1].v[0], signs[i + 1].v[1]));
        const __m256i sign = _mm256_and_si256(bits == 8 ? top : _mm256_srli_epi16(top, 8 - bits),
                                              _mm256_set1_epi8(static_cast<char>(1 << (bits - 1))));
        return Vec{_mm256_permutevar8x32_epi32(_mm256_or_si256(codes, sign), order)};
    };
    return {{half(0), half(2)}};
#else
    Words both[4];
    for (int i = 0; i < 4; ++i) both[i] = merge(last, a[i], signs[i] >> (32 - bits));
    return bytes_of(both);
#endif
}

// Returns shorts: the lower halves of words in turn, those of `even` first. Of `even`, the upper halves may be anything.
TW_INLINE Words shorts_of(const Words &even, const Words &odd) {
#if defined(__AVX2__) && !defined(__AVX512BW__)
    return each_part([](Part x, Part y) { return _mm256_blend_epi16(x, _mm256_slli_epi32(y, 16), 0xaa); }, even, odd);
#else
    return merge(0xffffu, even, odd << 16);
#endif
}

// Returns eight times word n of sixteen, and eight times the next.
TW_INLINE Words halves_of(const uint32_t *a, int n) {
    Words all;
#if defined(__AVX512BW__)
    const __m512i second = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    all.v[0] = _mm512_permutexvar_epi32(_mm512_add_epi32(second, _mm512_set1_epi32(n)), _mm512_load_si512(a));
#else
    for (int i = 0; i < Words::parts; ++i) all.v[i] = part_of(a[i < Words::parts / 2 ? n : n + 1]);
#endif
    return all;
}

// Writes the first `count` words, below 256, as bytes: 8 or 16 of them, the second half of them `second` bytes after the
// first.
template <int count>
TW_INLINE void store_halves(uint8_t *p, int64_t second, const Words &a) {
    uint8_t bytes[16];
#if defined(__AVX512BW__)
    store16(bytes, _mm512_cvtepi32_epi8(a.v[0]));
#elif defined(__AVX2__)
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(a.v[0], a.v[1]), 0xd8);
    store16(bytes, _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1)));
#else
    uint32_t each[16];
    store_words(each, a);
    for (int i = 0; i < 16; ++i) bytes[i] = static_cast<uint8_t>(each[i]);
#endif
    std::memcpy(p, bytes, count / 2);
    std::memcpy(p + second, bytes + count / 2, count / 2);
}

// Returns whether one of the words is greater than a number, all below 2^31.
TW_INLINE bool any_above(const Words &a, uint32_t number) {
#if defined(__AVX512BW__)
    return _mm512_cmpgt_epi32_mask(a.v[0], part_of(number)) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(max_part(a.v[0], a.v[1]), part_of(number))) != 0;
#else
    uint32_t each[16];
    store_words(each, a);
    uint32_t most = 0;
    for (uint32_t one : each) most = one > most ? one : most;
    return most > number;
#endif
}

}  // namespace
}  // namespace tw::TW_ISA
