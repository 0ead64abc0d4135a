// SPDX-License-Identifier: Apache-2.0
//
// Coders of small floats, which say what becomes of codes by tables. Only for recode.cpp.
#pragma once

#include <array>

#include "formats/recode_quads.h"

namespace tw::TW_ISA {
namespace {

// E4M3. With a scale whose products are all normal, a code that is 8 greater is twice the value; subnormal codes are given
// the numbers that they would have if exponents went on. So what becomes of a code depends on the scale and on how far it
// lies below the shared exponent: a table for each scale.
class CoderE4M3 {
public:
    static constexpr int64_t step = 64;

    explicit CoderE4M3(const Band &band) : band_(band) {}

    bool start(int64_t column) {
        const tw_coding &c = band_.coding;
        const int64_t at = c.first_column + column, group = at / c.group_columns;
        if ((at + step - 1) / c.group_columns != group) return false;
        if (group == group_) return true;
        group_ = -1;
        for (int r = 0; r < tile_side; ++r) {
            const bool same = r > 0 && band_.scales[r] == band_.scales[r - 1];
            if (!same && !make_table(r, bits_of(band_.scales[r][group]))) return false;
            if (same) table_[r] = table_[r - 1], carry_[r] = carry_[r - 1], base_[r] = base_[r - 1];
        }
        group_ = group;
        return true;
    }

    TW_INLINE bool make(int r, int64_t column, Quad &made) const {
        __m512i x[4], number[4];
        for (int i = 0; i < 4; ++i) {
            const uint8_t *p = band_.codes + (r + i) * band_.coding.row_bytes + column;
            prefetch_near(p + ahead);
            x[i] = load_table(p);
            const __m512i a = _mm512_add_epi8(_mm512_and_si512(x[i], bytes(0x7f)), bytes(zero));
            number[i] = _mm512_add_epi8(a, _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load16(subnormal.data())), a));
        }
        const __m512i most = largest(number);
        const __m512i octave = _mm512_srli_epi32(_mm512_add_epi32(most, load_four(carry_ + r)), 3);
        made.exponents = _mm512_maskz_add_epi32(_mm512_test_epi32_mask(most, most), octave, load_four(base_ + r));
        const __m512i low = _mm512_sub_epi32(_mm512_slli_epi32(octave, 3), words(72));
        for (int i = 0; i < 4; ++i) {
            const uint8_t *table = table_[r + i];
            const __m512i at = _mm512_subs_epu8(number[i], spread_byte(low, i));
            made.row[i] = with_signs(_mm512_permutex2var_epi8(load_table(table), at, load_table(table + 64)), x[i]);
        }
        return _mm512_cmpge_epu32_mask(most, words(zero + 127)) == 0;  // no NaN
    }

private:
    static constexpr int zero = 112;  // so that numbers of codes below 16 stay below 128, where shuffles look at them
    // What is added to 112 + code for the number of a code: nothing but for 0, which becomes 0, and the subnormal ones.
    alignas(16) static constexpr std::array<uint8_t, 16> subnormal = [] {
        std::array<uint8_t, 16> table{};
        constexpr int number[8] = {-zero, -16, -8, -4, 0, 2, 4, 6};
        for (int i = 0; i < 8; ++i) table[static_cast<size_t>(i)] = static_cast<uint8_t>(number[i] - i);
        return table;
    }();

    // Makes the table of a scale for row r: byte 72 + n is what becomes of a number n above the one of the shared exponent.
    bool make_table(int r, uint32_t scale) {
        const uint32_t field = scale >> 23;
        if (field < 10 || field > 245) return false;  // products that are subnormal or infinite; a NaN; a sign
        const __m512 eighths = _mm512_castsi512_ps(_mm512_add_epi32(
            words(127u << 23), _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7), 20)));
        const __m512i product = _mm512_castps_si512(_mm512_mul_ps(eighths, _mm512_castsi512_ps(words(scale))));
        const __m512i carry = _mm512_sub_epi32(_mm512_srli_epi32(product, 23), words(field));
        const __m512i mantissa = _mm512_or_si512(_mm512_and_si512(product, words(0x7fffff)), words(1u << 23));
        const __m512i nine = _mm512_setr_epi32(9, 9, 9, 9, 9, 9, 9, 9, 8, 8, 8, 8, 8, 8, 8, 8);
        for (uint32_t i = 0; i < 5; ++i) {
            const __m512i shift = _mm512_sub_epi32(_mm512_sub_epi32(nine, words(2 * i)), carry);
            const __m512i aligned = _mm512_srlv_epi32(mantissa, shift);
            const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(aligned, 17), words(1));
            const __m512i up = _mm512_add_epi32(_mm512_add_epi32(aligned, words(0xffff)), odd);
            const __m512i code = _mm512_min_epu32(_mm512_srli_epi32(up, 17), words(127));
            store16(tables_[r] + 16 * i, _mm512_cvtepi32_epi8(code));
        }
        table_[r] = tables_[r];
        carry_[r] = static_cast<uint32_t>(_mm_popcnt_u32(_mm512_test_epi32_mask(carry, carry) & 0xffu));
        base_[r] = field - 21;
        return true;
    }

    const Band &band_;
    int64_t group_ = -1;                   // that the tables are for
    const uint8_t *table_[tile_side];      // of each row
    uint32_t carry_[tile_side];            // how many of the eight mantissas a product carries over to the next exponent
    uint32_t base_[tile_side];             // what makes an exponent of an octave
    alignas(64) uint8_t tables_[tile_side][128];
};

// E2M1 in groups of 32 under powers of two. What becomes of a code depends on the largest of its block alone.
class CoderE2M1 {
public:
    static constexpr int64_t step = 64;

    explicit CoderE2M1(const Band &band) : band_(band) {}

    bool start(int64_t) { return band_.coding.group_columns == 32 && band_.coding.first_column == 0; }

    TW_INLINE bool make(int r, int64_t column, Quad &made) const {
        __m512i a[4];
        for (int i = 0; i < 4; ++i) {
            const uint8_t *p = band_.codes + (r + i) * band_.coding.row_bytes + column / 2;
            if (column % 128 == 0) prefetch_near(p + ahead);
            const __m512i pairs = _mm512_cvtepu8_epi16(load32(p));
            made.row[i] = _mm512_ternarylogic_epi32(pairs, _mm512_slli_epi16(pairs, 4), bytes(15), 0xa8);  // (x | y) & z
            a[i] = _mm512_and_si512(made.row[i], bytes(7));
        }
        const __m512i scale = scales(r, column / 32), most = largest(a);
        const __m512i exponent = _mm512_setr_epi32(0, -1, 0, 0, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0);  // of each magnitude
        const __m512i above = _mm512_permutexvar_epi32(most, exponent);
        const __m512i field = _mm512_srli_epi32(scale, 23);
        made.exponents = _mm512_maskz_add_epi32(_mm512_test_epi32_mask(most, most), field, above);
        const __m512i row = _mm512_slli_epi32(most, 4);
        for (int i = 0; i < 4; ++i) {
            const __m512i at = _mm512_or_si512(made.row[i], spread_byte(row, i));
            made.row[i] = _mm512_permutex2var_epi8(load_table(table.data()), at, load_table(table.data() + 64));
        }
        const __mmask16 inexact = _mm512_test_epi32_mask(scale, words(0x007fffff));
        return (inexact | _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(field, words(2)), words(250))) == 0;
    }

private:
    // Byte 16 m + c is what becomes of code c under a largest magnitude m.
    alignas(64) static constexpr std::array<uint8_t, 128> table = [] {
        constexpr int halves[8] = {0, 1, 2, 3, 4, 6, 8, 12}, unit[8] = {0, 64, 32, 32, 16, 16, 8, 8};
        std::array<uint8_t, 128> made{};
        for (int i = 0; i < 128; ++i) {
            const int magnitude = (halves[i & 7] * unit[i >> 4]) & 127;
            made[static_cast<size_t>(i)] = static_cast<uint8_t>(magnitude | (magnitude != 0 ? (i & 8) << 4 : 0));
        }
        return made;
    }();

    // Returns the scales of the blocks, two neighbours of each row.
    TW_INLINE __m512i scales(int r, int64_t group) const {
        const auto two = [&](int i) { return _mm_loadl_epi64(reinterpret_cast<const __m128i *>(band_.scales[r + i] + group)); };
        const __m128i a = _mm_unpacklo_epi32(two(0), two(1)), b = _mm_unpacklo_epi32(two(2), two(3));
        const __m256i first = _mm256_castsi128_si256(_mm_unpacklo_epi64(a, b));
        const __m512i both = _mm512_castsi256_si512(_mm256_inserti128_si256(first, _mm_unpackhi_epi64(a, b), 1));
        return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 1, 0, 1, 2, 3, 2, 3), both);
    }

    const Band &band_;
};

}  // namespace
}  // namespace tw::TW_ISA
