// SPDX-License-Identifier: Apache-2.0
//
// One vector register of bytes, whatever the instruction set: 64 bytes with AVX-512, 32 with AVX2, 16 elsewhere.
// Only the files compiled once for each instruction set include this. Everything is in an unnamed namespace: a function
// with a shared name could be merged by the linker and then run on a machine that lacks the instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#  include <immintrin.h>
#elif defined(__SSE2__) && !defined(TW_PORTABLE)
#  include <emmintrin.h>
#endif

#if defined(__has_builtin)
#  if __has_builtin(__builtin_shufflevector)
#    define TW_SHUFFLEVECTOR 1
#  endif
#endif

// The vectors that compilers offer for any machine. Without them, plain loops.
#if defined(TW_SHUFFLEVECTOR) && !defined(__AVX2__) && !defined(TW_PORTABLE)
#  define TW_VECTORS 1
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // checks everywhere: inlined, they take minutes to compile
#  define TW_INLINE inline
#  define TW_APART __attribute__((noinline))
#  define TW_RARE __attribute__((noinline, cold))
#  define TW_RESTRICT __restrict__
#elif defined(__GNUC__) || defined(__clang__)
#  if defined(__x86_64__) && !defined(__AVX2__)  // processors of before 2013: not worth the time to compile
#    define TW_INLINE inline
#  else
#    define TW_INLINE inline __attribute__((always_inline))
#  endif
#  define TW_APART __attribute__((noinline))
#  define TW_RARE __attribute__((noinline, cold))
#  define TW_RESTRICT __restrict__
#else
#  define TW_INLINE inline
#  define TW_APART __declspec(noinline)
#  define TW_RARE __declspec(noinline)
#  define TW_RESTRICT __restrict
#endif

namespace tw::TW_ISA {
namespace {

constexpr int64_t line = 64;

TW_INLINE void prefetch(const uint8_t *p) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(p, 0, 3);
#else
    (void)p;
#endif
}

template <int64_t size>
TW_INLINE void copy_both_ends(const uint8_t *src, uint8_t *dst, int64_t n) {
    uint8_t head[size], tail[size];
    std::memcpy(head, src, size);
    std::memcpy(tail, src + n - size, size);
    std::memcpy(dst, head, size);
    std::memcpy(dst + n - size, tail, size);
}

// Copies less than a line in two pieces that may overlap. A masked store to a line that is not in the cache is much
// slower than that.
TW_INLINE void copy_short(const uint8_t *src, uint8_t *dst, int64_t n) {
    if (n >= 32) return copy_both_ends<32>(src, dst, n);
    if (n >= 16) return copy_both_ends<16>(src, dst, n);
    if (n >= 8) return copy_both_ends<8>(src, dst, n);
    if (n >= 4) return copy_both_ends<4>(src, dst, n);
    if (n >= 2) return copy_both_ends<2>(src, dst, n);
    if (n == 1) *dst = *src;
}

// Into the second level only: what is many rows apart would fall onto itself in the first.
TW_INLINE void prefetch_near(const uint8_t *p) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(p, 0, 2);
#else
    (void)p;
#endif
}

#if defined(__AVX2__)
TW_INLINE __m128i load16(const uint8_t *p) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(p)); }
TW_INLINE __m256i load32(const uint8_t *p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)); }
TW_INLINE void store32(uint8_t *p, __m256i a) { _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), a); }
TW_INLINE void store16(uint8_t *p, __m128i a) { _mm_storeu_si128(reinterpret_cast<__m128i *>(p), a); }
#endif

#if defined(__AVX512BW__)

struct Vec {
    __m512i v;
};
TW_INLINE Vec load(const uint8_t *p) { return {_mm512_loadu_si512(p)}; }
TW_INLINE void store(uint8_t *p, Vec a) { _mm512_storeu_si512(p, a.v); }
TW_INLINE void stream(uint8_t *p, Vec a) { _mm512_stream_si512(reinterpret_cast<__m512i *>(p), a.v); }
// In each 16 bytes: the byte of a that `places` says, or 0 where its highest bit is set.
TW_INLINE Vec shuffle_lanes(Vec a, Vec places) { return {_mm512_shuffle_epi8(a.v, places.v)}; }
TW_INLINE Vec either(Vec a, Vec b) { return {_mm512_or_si512(a.v, b.v)}; }

// The lanes of 16 bytes of a vector, `step` bytes apart in memory.
TW_INLINE Vec load_lanes(const uint8_t *p, int64_t step) {
    __m512i v = _mm512_castsi128_si512(load16(p));
    v = _mm512_inserti32x4(v, load16(p + step), 1);
    v = _mm512_inserti32x4(v, load16(p + 2 * step), 2);
    return {_mm512_inserti32x4(v, load16(p + 3 * step), 3)};
}
TW_INLINE void store_lanes(uint8_t *p, int64_t step, Vec a) {
    store16(p, _mm512_castsi512_si128(a.v));
    store16(p + step, _mm512_extracti32x4_epi32(a.v, 1));
    store16(p + 2 * step, _mm512_extracti32x4_epi32(a.v, 2));
    store16(p + 3 * step, _mm512_extracti32x4_epi32(a.v, 3));
}

TW_INLINE __mmask64 first(int64_t n) { return _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(n)); }
TW_INLINE Vec load_part(const uint8_t *p, int64_t n) { return {_mm512_maskz_loadu_epi8(first(n), p)}; }
TW_INLINE void store_part(uint8_t *p, Vec a, int64_t n) { _mm512_mask_storeu_epi8(p, first(n), a.v); }

template <int size>
TW_INLINE void interleave(Vec a, Vec b, Vec &lo, Vec &hi) {
    if constexpr (size == 8) {
        lo.v = _mm512_permutex2var_epi64(a.v, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b.v);
        hi.v = _mm512_permutex2var_epi64(a.v, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b.v);
    } else if constexpr (size == 4) {
        const __m512i l = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        lo.v = _mm512_permutex2var_epi32(a.v, l, b.v);
        hi.v = _mm512_permutex2var_epi32(a.v, _mm512_add_epi32(l, _mm512_set1_epi32(8)), b.v);
    } else {
        // In 128-bit lanes first, then the lanes: needs no VBMI and is quick everywhere.
        __m512i l, h;
        if constexpr (size == 2) {
            l = _mm512_unpacklo_epi16(a.v, b.v);
            h = _mm512_unpackhi_epi16(a.v, b.v);
        } else {
            l = _mm512_unpacklo_epi8(a.v, b.v);
            h = _mm512_unpackhi_epi8(a.v, b.v);
        }
        lo.v = _mm512_permutex2var_epi64(l, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), h);
        hi.v = _mm512_permutex2var_epi64(l, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), h);
    }
}

#elif defined(__AVX2__)

struct Vec {
    __m256i v;
};
TW_INLINE Vec load(const uint8_t *p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p))}; }
TW_INLINE void store(uint8_t *p, Vec a) { _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), a.v); }
TW_INLINE void stream(uint8_t *p, Vec a) { _mm256_stream_si256(reinterpret_cast<__m256i *>(p), a.v); }

// In each 16 bytes: the byte of a that `places` says, or 0 where its highest bit is set.
TW_INLINE Vec shuffle_lanes(Vec a, Vec places) { return {_mm256_shuffle_epi8(a.v, places.v)}; }
TW_INLINE Vec either(Vec a, Vec b) { return {_mm256_or_si256(a.v, b.v)}; }

// The lanes of 16 bytes of a vector, `step` bytes apart in memory.
TW_INLINE Vec load_lanes(const uint8_t *p, int64_t step) {
    return {_mm256_inserti128_si256(_mm256_castsi128_si256(load16(p)), load16(p + step), 1)};
}
TW_INLINE void store_lanes(uint8_t *p, int64_t step, Vec a) {
    store16(p, _mm256_castsi256_si128(a.v));
    store16(p + step, _mm256_extracti128_si256(a.v, 1));
}

// Within each half: across the halves it would take twice the instructions.
template <int size>
TW_INLINE void interleave(Vec a, Vec b, Vec &lo, Vec &hi) {
    if constexpr (size == 8) {
        lo.v = _mm256_unpacklo_epi64(a.v, b.v);
        hi.v = _mm256_unpackhi_epi64(a.v, b.v);
    } else if constexpr (size == 4) {
        lo.v = _mm256_unpacklo_epi32(a.v, b.v);
        hi.v = _mm256_unpackhi_epi32(a.v, b.v);
    } else if constexpr (size == 2) {
        lo.v = _mm256_unpacklo_epi16(a.v, b.v);
        hi.v = _mm256_unpackhi_epi16(a.v, b.v);
    } else {
        lo.v = _mm256_unpacklo_epi8(a.v, b.v);
        hi.v = _mm256_unpackhi_epi8(a.v, b.v);
    }
}

#elif defined(__SSE2__) && !defined(TW_PORTABLE)

struct Vec {
    __m128i v;
};
TW_INLINE Vec load(const uint8_t *p) { return {_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))}; }
TW_INLINE void store(uint8_t *p, Vec a) { _mm_storeu_si128(reinterpret_cast<__m128i *>(p), a.v); }
TW_INLINE void stream(uint8_t *p, Vec a) { _mm_stream_si128(reinterpret_cast<__m128i *>(p), a.v); }

template <int size>
TW_INLINE void interleave(Vec a, Vec b, Vec &lo, Vec &hi) {
    if constexpr (size == 8) {
        lo.v = _mm_unpacklo_epi64(a.v, b.v);
        hi.v = _mm_unpackhi_epi64(a.v, b.v);
    } else if constexpr (size == 4) {
        lo.v = _mm_unpacklo_epi32(a.v, b.v);
        hi.v = _mm_unpackhi_epi32(a.v, b.v);
    } else if constexpr (size == 2) {
        lo.v = _mm_unpacklo_epi16(a.v, b.v);
        hi.v = _mm_unpackhi_epi16(a.v, b.v);
    } else {
        lo.v = _mm_unpacklo_epi8(a.v, b.v);
        hi.v = _mm_unpackhi_epi8(a.v, b.v);
    }
}

#else

struct Vec {
    uint8_t v[16];
};
TW_INLINE Vec load(const uint8_t *p) {
    Vec a;
    std::memcpy(a.v, p, 16);
    return a;
}
TW_INLINE void store(uint8_t *p, Vec a) { std::memcpy(p, a.v, 16); }
TW_INLINE void stream(uint8_t *p, Vec a) { store(p, a); }

template <int size>
TW_INLINE void interleave(Vec a, Vec b, Vec &lo, Vec &hi) {
#  if defined(TW_SHUFFLEVECTOR)
    // Two ZIP instructions on aarch64. The compilers offer no portable streaming store of this width.
    typedef uint8_t Bytes __attribute__((vector_size(16)));
    Bytes x, y, l, h;
    std::memcpy(&x, a.v, 16);
    std::memcpy(&y, b.v, 16);
    if constexpr (size == 8) {
        l = __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
        h = __builtin_shufflevector(x, y, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    } else if constexpr (size == 4) {
        l = __builtin_shufflevector(x, y, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
        h = __builtin_shufflevector(x, y, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    } else if constexpr (size == 2) {
        l = __builtin_shufflevector(x, y, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
        h = __builtin_shufflevector(x, y, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
    } else {
        l = __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        h = __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::memcpy(lo.v, &l, 16);
    std::memcpy(hi.v, &h, 16);
#  else
    Vec l, h;
    for (int i = 0; i < 8 / size; ++i) {
        std::memcpy(l.v + 2 * i * size, a.v + i * size, size);
        std::memcpy(l.v + (2 * i + 1) * size, b.v + i * size, size);
        std::memcpy(h.v + 2 * i * size, a.v + 8 + i * size, size);
        std::memcpy(h.v + (2 * i + 1) * size, b.v + 8 + i * size, size);
    }
    lo = l;
    hi = h;
#  endif
}

#endif

constexpr int64_t width = sizeof(Vec);

#if !defined(__AVX512BW__)
TW_INLINE Vec load_part(const uint8_t *p, int64_t n) {
    alignas(64) uint8_t bytes[width] = {};
    std::memcpy(bytes, p, static_cast<size_t>(n));
    return load(bytes);
}
TW_INLINE void store_part(uint8_t *p, Vec a, int64_t n) {
    alignas(64) uint8_t bytes[width];
    store(bytes, a);
    std::memcpy(p, bytes, static_cast<size_t>(n));
}
#endif

}  // namespace
}  // namespace tw::TW_ISA
