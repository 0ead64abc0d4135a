// SPDX-License-Identifier: Apache-2.0
//
// Thirty-two numbers of 16 bits, and what can be done to all of them. Only for the files compiled once for each
// instruction set.
#pragma once

#include "simd/words.h"

namespace tw::TW_ISA {
namespace {

#if defined(__AVX512BW__)
#  define TW_SHORTS(name) _mm512_##name
using ShortPart = __m512i;
#elif defined(__AVX2__)
#  define TW_SHORTS(name) _mm256_##name
using ShortPart = __m256i;
#elif defined(TW_VECTORS)
typedef uint16_t ShortPart __attribute__((vector_size(16)));
#else
using ShortPart = uint16_t;
#endif

struct Shorts {
    static constexpr int parts = static_cast<int>(64 / sizeof(ShortPart));
    ShortPart v[parts];

    Shorts() = default;
    TW_INLINE Shorts(uint16_t a) {
        for (ShortPart &each : v) {
#if defined(TW_SHORTS)
            each = TW_SHORTS(set1_epi16)(static_cast<short>(a));
#else
            each = ShortPart{} + a;
#endif
        }
    }
};

template <class Make, class... More>
TW_INLINE Shorts each_short_part(Make make, const Shorts &a, const More &...more) {
    Shorts made;
    for (int i = 0; i < Shorts::parts; ++i) made.v[i] = make(a.v[i], more.v[i]...);
    return made;
}

#if defined(TW_SHORTS)
#  define TW_BOTH(name, intrinsic, operation) \
      TW_INLINE Shorts name(const Shorts &a, const Shorts &b) { \
          return each_short_part([](ShortPart x, ShortPart y) { return TW_SHORTS(intrinsic)(x, y); }, a, b); \
      }
#else
#  define TW_BOTH(name, intrinsic, operation) \
      TW_INLINE Shorts name(const Shorts &a, const Shorts &b) { \
          return each_short_part([](ShortPart x, ShortPart y) { return static_cast<ShortPart>(operation); }, a, b); \
      }
#endif
#if defined(__AVX512BW__)
TW_BOTH(operator&, and_si512, x & y)
TW_BOTH(operator^, xor_si512, x ^ y)
#else
TW_BOTH(operator&, and_si256, x & y)
TW_BOTH(operator^, xor_si256, x ^ y)
#endif
TW_BOTH(operator+, add_epi16, x + y)
TW_BOTH(operator-, sub_epi16, x - y)
TW_BOTH(smaller, min_epu16, x < y ? x : y)
// How much a is above b, or 0.
TW_BOTH(excess, subs_epu16, x > y ? x - y : x - x)
#undef TW_BOTH

TW_INLINE Shorts operator>>(const Shorts &a, int n) {
    return each_short_part(
        [n](ShortPart x) {
#if defined(TW_SHORTS)
            return TW_SHORTS(srli_epi16)(x, n);
#else
            return static_cast<ShortPart>(x >> n);
#endif
        },
        a);
}
#undef TW_SHORTS

template <class From>
TW_INLINE Shorts shorts_of(const From &a) {
    Shorts x;
    static_assert(sizeof(a) == sizeof(x));
    std::memcpy(&x, &a, sizeof(x));
    return x;
}

TW_INLINE Words words_of(const Shorts &a) {
    Words x;
    std::memcpy(x.v, a.v, sizeof(a));
    return x;
}

// Returns the lower bits of a, all but the topmost, and the topmost one of b.
TW_INLINE Shorts with_sign(const Shorts &a, const Shorts &b) { return shorts_of(merge(0x7fff7fffu, words_of(a), words_of(b))); }

// Returns numbers, one more where a bit of them is set.
template <int bit>
TW_INLINE Shorts rounded_by(const Shorts &a) {
#if defined(__AVX512BW__)
    return each_short_part(
        [](ShortPart x) {
            const __mmask32 odd = _mm512_test_epi16_mask(x, _mm512_set1_epi16(static_cast<short>(1 << bit)));
            return _mm512_mask_add_epi16(x, odd, x, _mm512_set1_epi16(1));
        },
        a);
#else
    return a + ((a >> bit) & 1);
#endif
}

// Returns 64 bytes of two times thirty-two numbers below 256.
TW_INLINE Line bytes_of(const Shorts *a) {
#if defined(__AVX512BW__)
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    return {{{_mm512_permutexvar_epi64(order, _mm512_packus_epi16(a[0].v[0], a[1].v[0]))}}};
#elif defined(__AVX2__)
    const auto half = [](const Shorts &x) {
        return Vec{_mm256_permute4x64_epi64(_mm256_packus_epi16(x.v[0], x.v[1]), 0xd8)};
    };
    return {{half(a[0]), half(a[1])}};
#else
    uint8_t made[line];
    for (int i = 0; i < 2; ++i) {
        uint16_t each[32];
        std::memcpy(each, a[i].v, sizeof(each));
        for (int k = 0; k < 32; ++k) made[32 * i + k] = static_cast<uint8_t>(each[k]);
    }
    return load_line(made);
#endif
}

#if defined(__AVX512BW__)
TW_INLINE Shorts operator*(const Shorts &a, const Shorts &b) {
    return each_short_part([](ShortPart x, ShortPart y) { return _mm512_mullo_epi16(x, y); }, a, b);
}

TW_INLINE Shorts operator<<(const Shorts &a, int n) {
    return each_short_part([n](ShortPart x) { return _mm512_slli_epi16(x, n); }, a);
}
TW_INLINE Shorts operator|(const Shorts &a, const Shorts &b) {
    return each_short_part([](ShortPart x, ShortPart y) { return _mm512_or_si512(x, y); }, a, b);
}
// Returns numbers shifted down, each by its own distance.
TW_INLINE Shorts operator>>(const Shorts &a, const Shorts &n) {
    return each_short_part([](ShortPart x, ShortPart y) { return _mm512_srlv_epi16(x, y); }, a, n);
}
// Returns the upper halves of products.
TW_INLINE Shorts upper_product(const Shorts &a, const Shorts &b) {
    return each_short_part([](ShortPart x, ShortPart y) { return _mm512_mulhi_epu16(x, y); }, a, b);
}

// Returns the numbers of a table that the last bits of `index` name.
TW_INLINE Shorts look_up(const std::array<uint16_t, 32> &table, const Shorts &index) {
    const __m512i all = _mm512_loadu_si512(table.data());
    return each_short_part([&](ShortPart x) { return _mm512_permutexvar_epi16(x, all); }, index);
}
#endif

}  // namespace
}  // namespace tw::TW_ISA
