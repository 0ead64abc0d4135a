// SPDX-License-Identifier: Apache-2.0
//
// Transposes in registers. A square is as many rows of the source as fill a vector of the target, by a few columns,
// each of which becomes one vector. Only for the files compiled once for each instruction set.
#pragma once

#include "simd/vectors.h"

namespace tw::TW_ISA {
namespace {

// Interleaving rows i and i + n/2 rotates the bits of (row, column) by one place; log2(n) times swaps them.
template <int size, int n, int done = 1>
TW_INLINE void rotate_all(Vec *row) {
    if constexpr (done < n) {
        constexpr int half = n / 2;
        Vec other[n];
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
        for (int i = 0; i < half; ++i) interleave<size>(row[i], row[i + half], other[2 * i], other[2 * i + 1]);
        rotate_all<size, n, done * 2>(other);
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
        for (int i = 0; i < n; ++i) row[i] = other[i];
    }
}

#if defined(__AVX512BW__)

// 64 / size rows by 16 columns (8 of 8 bytes). Elements of 1 or 2 bytes become elements of 4, each the same column of
// neighbouring rows, on the way in.
template <int size>
struct Square {
    static constexpr int columns = size == 8 ? 8 : 16;
    static constexpr int rows = 64 / size;
    static constexpr int unit = size == 8 ? 8 : 4;
};

// Joins 64 bytes of `4 / size` rows column by column.
template <int size>
TW_INLINE Vec join(__m512i rows) {
    if constexpr (size == 2) {
        const __m512i pairs = _mm512_setr_epi32(0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006,
                                                0x170007, 0x180008, 0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d,
                                                0x1e000e, 0x1f000f);
        return {_mm512_permutexvar_epi16(pairs, rows)};
    } else {
        const __m512i fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        const __m128i bytes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        return {_mm512_shuffle_epi8(_mm512_permutexvar_epi32(fours, rows), _mm512_broadcast_i32x4(bytes))};
    }
}

// Returns vector i of a square; row(i) is where row i starts.
template <int size, class Row>
TW_INLINE Vec load_joined(Row row, int i) {
    if constexpr (size == 2) {
        return join<2>(_mm512_inserti64x4(_mm512_castsi256_si512(load32(row(2 * i))), load32(row(2 * i + 1)), 1));
    } else if constexpr (size == 1) {
        __m512i four = _mm512_castsi128_si512(load16(row(4 * i)));
        four = _mm512_inserti32x4(four, load16(row(4 * i + 1)), 1);
        four = _mm512_inserti32x4(four, load16(row(4 * i + 2)), 2);
        return join<1>(_mm512_inserti32x4(four, load16(row(4 * i + 3)), 3));
    } else {
        return load(row(i));
    }
}

// The same where only some columns may be read. Masks, not copies: a load of what several small stores just wrote would
// have to wait for them.
template <int size, class Row>
TW_INLINE Vec load_joined_part(Row row, int i, int64_t columns) {
    const auto mask = static_cast<__mmask16>(first(columns));
    if constexpr (size == 2) {
        __m512i two = _mm512_castsi256_si512(_mm256_maskz_loadu_epi16(mask, row(2 * i)));
        return join<2>(_mm512_inserti64x4(two, _mm256_maskz_loadu_epi16(mask, row(2 * i + 1)), 1));
    } else if constexpr (size == 1) {
        __m512i four = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(mask, row(4 * i)));
        four = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(mask, row(4 * i + 1)), 1);
        four = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(mask, row(4 * i + 2)), 2);
        return join<1>(_mm512_inserti32x4(four, _mm_maskz_loadu_epi8(mask, row(4 * i + 3)), 3));
    } else {
        return load_part(row(i), columns * size);
    }
}

#elif defined(__AVX2__)

// 32 / size rows by 16 / size columns. The halves of a vector stay apart: the upper ones are the later rows.
template <int size>
struct Square {
    static constexpr int columns = 16 / size;
    static constexpr int rows = 2 * columns;
    static constexpr int unit = size;
};

template <int size, class Row>
TW_INLINE Vec load_joined(Row row, int i) {
    return {_mm256_inserti128_si256(_mm256_castsi128_si256(load16(row(i))), load16(row(i + Square<size>::columns)), 1)};
}

template <int size, class Row>
TW_INLINE Vec load_joined_part(Row row, int i, int64_t columns) {
    alignas(32) uint8_t bytes[32] = {};
    std::memcpy(bytes, row(i), static_cast<size_t>(columns * size));
    std::memcpy(bytes + 16, row(i + Square<size>::columns), static_cast<size_t>(columns * size));
    return load(bytes);
}

#else

template <int size>
struct Square {
    static constexpr int columns = static_cast<int>(width) / size;
    static constexpr int rows = columns;
    static constexpr int unit = size;
};

template <int size, class Row>
TW_INLINE Vec load_joined(Row row, int i) {
    return load(row(i));
}

template <int size, class Row>
TW_INLINE Vec load_joined_part(Row row, int i, int64_t columns) {
    return load_part(row(i), columns * size);
}

#endif

// Transposes a square: put(k, vector) gets column k.
template <int size, class Row, class Put>
TW_INLINE void square(Row row, Put put) {
    constexpr int n = Square<size>::columns;
    Vec v[n];
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
    for (int i = 0; i < n; ++i) v[i] = load_joined<size>(row, i);
    rotate_all<Square<size>::unit, n>(v);
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
    for (int i = 0; i < n; ++i) put(i, v[i]);
}

// The same with fewer columns.
template <int size, class Row, class Put>
TW_INLINE void square_part(int64_t columns, Row row, Put put) {
    constexpr int n = Square<size>::columns;
    Vec v[n];
    for (int i = 0; i < n; ++i) v[i] = load_joined_part<size>(row, i, columns);
    rotate_all<Square<size>::unit, n>(v);
    for (int i = 0; i < columns; ++i) put(i, v[i]);
}

}  // namespace
}  // namespace tw::TW_ISA
