// SPDX-License-Identifier: Apache-2.0
//
// Transposes in registers. A block is as many rows of the source as fill a vector of the target: with AVX-512 a block of
// 64 / size rows by 16 columns (8 of 8 bytes), whose columns become whole lines.
#include "transpose.h"

#include "vectors.h"

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

// Elements of 1 or 2 bytes become elements of 4, each the same column of neighbouring rows, on the way in.
template <int size>
struct Shape {
    static constexpr int columns = size == 8 ? 8 : 16;
    static constexpr int rows = 64 / size;
    static constexpr int vectors = columns;
    static constexpr int unit = size == 8 ? 8 : 4;
};

TW_INLINE __m128i load16(const uint8_t *p) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(p)); }
TW_INLINE __m256i load32(const uint8_t *p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)); }

// Joins 64 bytes of `4 / size` rows column by column.
template <int size>
TW_INLINE Vec join(__m512i rows) {
    if constexpr (size == 2) {
        const __m512i pairs = _mm512_setr_epi32(0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006,
                                                0x170007, 0x180008, 0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d,
                                                0x1e000e, 0x1f000f);
        return {_mm512_permutexvar_epi16(pairs, rows)};
    } else if constexpr (size == 1) {
        const __m512i fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        const __m128i bytes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        return {_mm512_shuffle_epi8(_mm512_permutexvar_epi32(fours, rows), _mm512_broadcast_i32x4(bytes))};
    } else {
        return {rows};
    }
}

template <int size>
TW_INLINE Vec load_joined(const uint8_t *src, int64_t step) {
    if constexpr (size == 2) {
        __m512i two = _mm512_inserti64x4(_mm512_castsi256_si512(load32(src)), load32(src + step), 1);
        return join<2>(two);
    } else if constexpr (size == 1) {
        __m512i four = _mm512_castsi128_si512(load16(src));
        four = _mm512_inserti32x4(four, load16(src + step), 1);
        four = _mm512_inserti32x4(four, load16(src + 2 * step), 2);
        return join<1>(_mm512_inserti32x4(four, load16(src + 3 * step), 3));
    } else {
        return load(src);
    }
}

template <int size>
TW_INLINE Vec load_joined_part(const uint8_t *src, int64_t step, int64_t rows, int64_t columns) {
    // Masks, not copies: a load of what several small stores just wrote would have to wait for them.
    if constexpr (size == 2) {
        const auto mask = static_cast<__mmask16>(first(columns));
        __m512i two = _mm512_castsi256_si512(_mm256_maskz_loadu_epi16(rows > 0 ? mask : 0, src));
        return join<2>(_mm512_inserti64x4(two, _mm256_maskz_loadu_epi16(rows > 1 ? mask : 0, src + step), 1));
    } else if constexpr (size == 1) {
        const auto mask = static_cast<__mmask16>(first(columns));
        __m512i four = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(rows > 0 ? mask : 0, src));
        four = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(rows > 1 ? mask : 0, src + step), 1);
        four = _mm512_inserti32x4(four, _mm_maskz_loadu_epi8(rows > 2 ? mask : 0, src + 2 * step), 2);
        return join<1>(_mm512_inserti32x4(four, _mm_maskz_loadu_epi8(rows > 3 ? mask : 0, src + 3 * step), 3));
    } else {
        return load_part(src, rows > 0 ? columns * size : 0);
    }
}

#else

template <int size>
struct Shape {
    static constexpr int columns = static_cast<int>(width) / size;
    static constexpr int rows = columns;
    static constexpr int vectors = columns;
    static constexpr int unit = size;
};

template <int size>
TW_INLINE Vec load_joined(const uint8_t *src, int64_t) {
    return load(src);
}

template <int size>
TW_INLINE Vec load_joined_part(const uint8_t *src, int64_t, int64_t rows, int64_t columns) {
    return load_part(src, rows > 0 ? columns * size : 0);
}

#endif

template <int size, bool streamed>
void block(const uint8_t *src, int64_t src_step, uint8_t *dst, int64_t dst_step) {
    using S = Shape<size>;
    constexpr int joined = S::rows / S::vectors;
    Vec row[S::vectors];
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
    for (int i = 0; i < S::vectors; ++i) row[i] = load_joined<size>(src + i * joined * src_step, src_step);
    rotate_all<S::unit, S::vectors>(row);
#if defined(__GNUC__)
#  pragma GCC unroll 64
#endif
    for (int i = 0; i < S::columns; ++i) {
        if constexpr (streamed) {
            stream(dst + i * dst_step, row[i]);
        } else {
            store(dst + i * dst_step, row[i]);
        }
    }
}

// Blocks of small elements side by side, as many as share the lines of the source: those are read once, into a copy that
// cannot fall onto itself in the cache as rows of a matrix do.
template <int size, bool streamed>
void blocks_of_a_line(const uint8_t *src, int64_t src_step, uint8_t *dst, int64_t dst_step) {
    using S = Shape<size>;
    constexpr int64_t pitch = 64;
    alignas(64) uint8_t copy[S::rows * pitch];
    for (int64_t i = 0; i < S::rows; ++i) {
        for (int64_t k = 0; k < 64; k += width) store(copy + i * pitch + k, load(src + i * src_step + k));
    }
    for (int64_t j = 0; j < 64 / size; j += S::columns) {
        block<size, streamed>(copy + j * size, pitch, dst + j * dst_step, dst_step);
    }
}

// The ragged edge: fewer rows or fewer columns than a block has.
template <int size>
void corner(const uint8_t *src, int64_t src_step, uint8_t *dst, int64_t dst_step, int64_t rows, int64_t columns) {
    using S = Shape<size>;
    constexpr int joined = S::rows / S::vectors;
    Vec row[S::vectors];
    for (int i = 0; i < S::vectors; ++i) {
        int64_t left = rows - i * joined;
        row[i] = load_joined_part<size>(left > 0 ? src + i * joined * src_step : src, src_step, left, columns);
    }
    rotate_all<S::unit, S::vectors>(row);
    for (int i = 0; i < columns; ++i) store_part(dst + i * dst_step, row[i], rows * size);
}

template <int size, bool streamed>
void blocks(const Mode &across, const Mode &along, const uint8_t *src, uint8_t *dst) {
    using S = Shape<size>;
    // How many columns share a line.
    constexpr int64_t wide = 64 / size;
    int64_t advance = S::columns;
    for (int64_t j = 0; j < along.extent; j += advance) {
        int64_t columns = along.extent - j < S::columns ? along.extent - j : S::columns;
        const bool whole = wide > S::columns && along.extent - j >= wide;
        advance = whole ? wide : S::columns;
        // Down the source first: neighbouring lines of the target are then written one after the other.
        for (int64_t i = 0; i < across.extent; i += S::rows) {
            int64_t rows = across.extent - i < S::rows ? across.extent - i : S::rows;
            const uint8_t *s = src + i * across.src + j * size;
            uint8_t *d = dst + i * size + j * along.dst;
            if (whole && rows == S::rows) {
                blocks_of_a_line<size, streamed>(s, across.src, d, along.dst);
            } else if (whole) {
                for (int64_t k = 0; k < wide; k += S::columns) {
                    corner<size>(s + k * size, across.src, d + k * along.dst, along.dst, rows, S::columns);
                }
            } else if (rows == S::rows && columns == S::columns) {
                block<size, streamed>(s, across.src, d, along.dst);
            } else if (rows * columns >= 2 * S::columns) {
                corner<size>(s, across.src, d, along.dst, rows, columns);
            } else {
                for (int64_t c = 0; c < columns; ++c) {
                    for (int64_t r = 0; r < rows; ++r) {
                        std::memcpy(d + c * along.dst + r * size, s + r * across.src + c * size, size);
                    }
                }
            }
        }
    }
}

template <int size>
void transpose_of(const Mode &across, const Mode &along, const uint8_t *src, uint8_t *dst, bool stream) {
    // Narrower vectors would stream half lines, which is worse than not streaming.
    if (stream && width == line) return blocks<size, true>(across, along, src, dst);
    return blocks<size, false>(across, along, src, dst);
}

}  // namespace

void transpose(int size, const Mode &across, const Mode &along, const uint8_t *src, uint8_t *dst, bool stream) {
    switch (size) {
        case 1: return transpose_of<1>(across, along, src, dst, stream);
        case 2: return transpose_of<2>(across, along, src, dst, stream);
        case 4: return transpose_of<4>(across, along, src, dst, stream);
        default: return transpose_of<8>(across, along, src, dst, stream);
    }
}

}  // namespace tw::TW_ISA
