// SPDX-License-Identifier: Apache-2.0
//
// Coders of block types of ggml. Their values are exact in float32, with no bit 23 places or more below the shared exponent;
// so the two steps of the definition, to cut off there and to round to seven bits, are one. Only for recode.cpp.
#pragma once

#include "formats/recode_quads.h"

namespace tw::TW_ISA {
namespace {

// Q8_0. Products of an 11-bit mantissa and an integer are exact.
class CoderQ8_0 {
public:
    static constexpr int64_t step = 64;

    explicit CoderQ8_0(const Band &band) : band_(band) {}

    bool start(int64_t) { return true; }

    TW_INLINE bool make(int r, int64_t column, Quad &made) const {
        __m512i x[4], a[4];
        int64_t low = 0, high = 0;  // the scales of four first blocks, and of four second ones
        for (int i = 0; i < 4; ++i) {
            const uint8_t *p = band_.codes + (r + i) * band_.coding.row_bytes + column / 32 * 34;
            prefetch_near(p + ahead);
            uint16_t d[2];
            std::memcpy(d, p, 2);
            std::memcpy(d + 1, p + 34, 2);
            low |= static_cast<int64_t>(uint64_t{d[0]} << (16 * i));
            high |= static_cast<int64_t>(uint64_t{d[1]} << (16 * i));
            x[i] = _mm512_inserti64x4(_mm512_castsi256_si512(load32(p + 2)), load32(p + 36), 1);
            a[i] = _mm512_abs_epi8(x[i]);
        }
        const __m512 d = _mm512_cvtph_ps(_mm256_set_epi64x(high, high, low, low));
        const __m512i most = largest(a);
        made.exponents = _mm512_srli_epi32(_mm512_castps_si512(_mm512_mul_ps(_mm512_cvtepi32_ps(most), d)), 23);
        const __m512 unit = _mm512_mul_ps(d, steps(made.exponents));
        const __m512 even = _mm512_fnmadd_ps(unit, _mm512_set1_ps(even_offset), _mm512_set1_ps(rounding));
        const __m512 odd = _mm512_fnmadd_ps(unit, _mm512_set1_ps(odd_offset), _mm512_set1_ps(rounding));
        // Units are above a half, so that nothing but 0 becomes 0, and that has no sign.
        const auto row = [&](int i, __m512 own, __m512 rest, __m512 other) {
            made.row[i] = signed_bytes(magnitudes(a[i], own, rest, other), x[i]);
        };
        row(0, spread_word<0>(unit), spread_word<0>(even), spread_word<0>(odd));
        row(1, spread_word<1>(unit), spread_word<1>(even), spread_word<1>(odd));
        row(2, spread_word<2>(unit), spread_word<2>(even), spread_word<2>(odd));
        row(3, spread_word<3>(unit), spread_word<3>(even), spread_word<3>(odd));
        // No infinity, NaN or negative scale, nor a scale of 0 for other codes; and -128 has no place below.
        const __mmask16 zero = _mm512_testn_epi32_mask(made.exponents, made.exponents) & _mm512_test_epi32_mask(most, most);
        return (_mm512_cmpge_epu32_mask(made.exponents, words(255)) | _mm512_cmpeq_epi32_mask(most, words(128)) | zero) == 0;
    }

private:
    // A byte in the lowest place of the bits of a float 2^23, or in the next place of 2^15, is added to that number. Adding
    // `rounding` leaves an integer in the lowest place, rounded.
    static constexpr float rounding = 0x1.8p23f, even_offset = 0x1p23f, odd_offset = 0x1p15f;
    static constexpr uint32_t even_bits = 0x4b000000u, odd_bits = 0x47000000u;

    // Returns integers n below 128 times units, rounded: (offset + n) * unit + rest, where the rest is `rounding` less the
    // offset times the unit. That is exact, since a unit is at least a half and has 11 bits.
    static TW_INLINE __m512i magnitudes(__m512i a, __m512 unit, __m512 even, __m512 odd) {
        const auto product = [&](__m512i n, uint32_t mask, uint32_t offset, __m512 rest) {
            const __m512i x = _mm512_ternarylogic_epi32(n, words(mask), words(offset), 0xea);  // (n & mask) | offset
            return _mm512_castps_si512(_mm512_fmadd_ps(_mm512_castsi512_ps(x), unit, rest));
        };
        const __m512i high = _mm512_srli_epi32(a, 16);
        const __m512i lowest = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
        __m512i all = product(a, 0xff, even_bits, even);
        all = _mm512_mask_shuffle_epi8(all, 0x2222222222222222, product(a, 0xff00, odd_bits, odd), lowest);
        all = _mm512_mask_shuffle_epi8(all, 0x4444444444444444, product(high, 0xff, even_bits, even), lowest);
        all = _mm512_mask_shuffle_epi8(all, 0x8888888888888888, product(high, 0xff00, odd_bits, odd), lowest);
        return _mm512_min_epu8(all, bytes(127));
    }

    const Band &band_;
};

// Q4_K: scale * n - least. Of the 16 values that a group may have, those of the smallest and the largest n in a block show
// its exponent; then each block has a table of 16 codes.
class CoderQ4_K {
public:
    static constexpr int64_t step = 256, block_bytes = 144;

    explicit CoderQ4_K(const Band &band) : band_(band) {}

    bool start(int64_t column) {
        column_ = column;
        for (int r = 0; r < tile_side; r += 4) {
            __m512 numbers[4];
            for (int i = 0; i < 4; ++i) {
                const uint8_t *block = block_at(r + i);
                for (int64_t at = 0; at < block_bytes; at += 64) prefetch_near(block + ahead + at);
                if (!is_exact(block)) return false;
                numbers[i] = scales_and_minima(block);
            }
            // Word i of a lane is row i then; a vector has every fourth group, and every fourth minimum.
            const __m512 a = _mm512_unpacklo_ps(numbers[0], numbers[1]), b = _mm512_unpackhi_ps(numbers[0], numbers[1]);
            const __m512 c = _mm512_unpacklo_ps(numbers[2], numbers[3]), d = _mm512_unpackhi_ps(numbers[2], numbers[3]);
            const __m512 g0 = low_halves(a, c), g1 = high_halves(a, c), g2 = low_halves(b, d), g3 = high_halves(b, d);
            measure(r, 0, _mm512_shuffle_f32x4(g0, g1, 0x00), _mm512_shuffle_f32x4(g0, g1, 0xaa));
            measure(r, 1, _mm512_shuffle_f32x4(g2, g3, 0x00), _mm512_shuffle_f32x4(g2, g3, 0xaa));
            measure(r, 2, _mm512_shuffle_f32x4(g0, g1, 0x55), _mm512_shuffle_f32x4(g0, g1, 0xff));
            measure(r, 3, _mm512_shuffle_f32x4(g2, g3, 0x55), _mm512_shuffle_f32x4(g2, g3, 0xff));
        }
        return true;
    }

    TW_INLINE bool make(int r, int64_t column, Quad &made) const {
        const int64_t part = (column - column_) / 64;
        const Blocks &blocks = blocks_[r / 4][part];
        const __m512 scale = blocks.scale, least = blocks.least;
        made.exponents = blocks.exponents;
        made.row[0] = _mm512_shuffle_epi8(codes(spread_word<0>(scale), spread_word<0>(least)), nibbles(r, part));
        made.row[1] = _mm512_shuffle_epi8(codes(spread_word<1>(scale), spread_word<1>(least)), nibbles(r + 1, part));
        made.row[2] = _mm512_shuffle_epi8(codes(spread_word<2>(scale), spread_word<2>(least)), nibbles(r + 2, part));
        made.row[3] = _mm512_shuffle_epi8(codes(spread_word<3>(scale), spread_word<3>(least)), nibbles(r + 3, part));
        return true;
    }

private:
    struct Blocks {
        __m512i exponents;
        __m512 scale, least;  // in steps of the block
    };

    // Returns codes, a byte each: 32 bytes have those of two groups, low nibbles first.
    TW_INLINE __m512i nibbles(int r, int64_t part) const {
        const __m512i shift = _mm512_maskz_mov_epi64(0xf0, words(0x40004));
        const __m512i both = _mm512_broadcast_i64x4(load32(block_at(r) + 16 + 32 * part));
        return _mm512_and_si512(_mm512_srlv_epi16(both, shift), bytes(15));
    }

    TW_INLINE void measure(int r, int64_t part, __m512 scale, __m512 least) {
        const __m512i n[4] = {nibbles(r, part), nibbles(r + 1, part), nibbles(r + 2, part), nibbles(r + 3, part)};
        const __m512 counts = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const auto magnitude = [&](__m512i code) {  // the four lowest bits of it
            const __m512 value = _mm512_fmsub_ps(scale, _mm512_permutexvar_ps(code, counts), least);
            return _mm512_and_si512(_mm512_castps_si512(value), words(0x7fffffff));
        };
        const __m512i ends[2] = {magnitude(reduce_to_largest(n)), magnitude(reduce_to_smallest(n))};
        const __m512i exponents = _mm512_srli_epi32(_mm512_max_epu32(ends[0], ends[1]), 23);
        const __m512 unit = steps(exponents);
        blocks_[r / 4][part] = {exponents, _mm512_mul_ps(scale, unit), _mm512_mul_ps(least, unit)};
    }

    TW_INLINE const uint8_t *block_at(int r) const {
        return band_.codes + r * band_.coding.row_bytes + column_ / step * block_bytes;
    }

    // Returns whether values need no more bits than a float32 has, and none so low that it would be cut off. With exponents
    // d and m, values are multiples of 2^(d - 10) and 2^(m - 10), and those of a block below 2^(d + 11) or 2^(m + 7).
    static TW_INLINE bool is_exact(const uint8_t *block) {
        uint16_t half[2];
        std::memcpy(half, block, 4);
        if (half[0] >= 0x7c00 || half[1] >= 0x7c00) return false;  // infinity, NaN, a sign
        if (half[0] == 0 || half[1] == 0) return true;
        const int d = half[0] < 0x800 ? 1 : half[0] >> 10, m = half[1] < 0x800 ? 1 : half[1] >> 10;
        return d - m <= 3 && m - d <= 7;
    }

    // Returns the eight scales of a block and its eight minima.
    static TW_INLINE __m512 scales_and_minima(const uint8_t *block) {
        uint32_t half, b[3];
        std::memcpy(&half, block, 4);
        std::memcpy(b, block + 4, 12);
        const auto six = [](uint32_t low) { return low & 0x3f3f3f3f; };
        const auto joined = [](uint32_t low, uint32_t high) { return (low & 0x0f0f0f0f) | (high >> 2 & 0x30303030); };
        const __m128i all = _mm_setr_epi32(static_cast<int>(six(b[0])), static_cast<int>(joined(b[2], b[0])),
                                           static_cast<int>(six(b[1])), static_cast<int>(joined(b[2] >> 4, b[1])));
        const __m512i second = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
        const __m512 units = _mm512_castps128_ps512(_mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(half))));
        return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(all)), _mm512_permutexvar_ps(second, units));
    }

    static TW_INLINE __m512 low_halves(__m512 a, __m512 b) {
        return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
    }
    static TW_INLINE __m512 high_halves(__m512 a, __m512 b) {
        return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
    }

    // Returns what becomes of n = 0 to 15 in each lane.
    static TW_INLINE __m512i codes(__m512 scale, __m512 least) {
        const auto four = [&](float n) {
            const __m512 count = _mm512_broadcast_f32x4(_mm_setr_ps(n, n + 1, n + 2, n + 3));
            return _mm512_cvtps_epi32(_mm512_fmsub_ps(count, scale, least));
        };
        const __m512i all = _mm512_packs_epi16(_mm512_packs_epi32(four(0), four(4)), _mm512_packs_epi32(four(8), four(12)));
        return signed_bytes(_mm512_min_epu8(_mm512_abs_epi8(all), bytes(127)), all);  // from two's complement
    }

    const Band &band_;
    int64_t column_ = 0;
    Blocks blocks_[tile_side / 4][4];
};

}  // namespace
}  // namespace tw::TW_ISA
