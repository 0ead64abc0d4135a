// SPDX-License-Identifier: Apache-2.0
//
// Quantised codes straight to tiles of bfloat8_b, without float32 in memory between. Compiled once, for AVX-512 with VBMI.
//
// A coder takes four rows of 64 codes at a time. A row is a vector whose lanes of 16 bytes are blocks of bfloat8_b. What
// all 16 blocks need, such as their exponents, is a vector of words: word i of lane k is for block k of row i.
//
// Where a coder says that values are exact, the definition's two steps, cut off 23 bits below the shared exponent and round
// to seven, are one: no bit is so low.
#include "formats/recode.h"

#include <array>

#include "formats/scalars.h"
#include "simd/vectors.h"

namespace tw::TW_ISA {
namespace {

constexpr int64_t ahead = 512;  // bytes of a row that are fetched before they are needed

struct Quad {
    __m512i row[4];
    __m512i exponents;
};

TW_INLINE __m512i bytes(int a) { return _mm512_set1_epi8(static_cast<char>(a)); }
TW_INLINE __m512i words(uint32_t a) { return _mm512_set1_epi32(static_cast<int>(a)); }
TW_INLINE __m512i load_table(const void *p) { return _mm512_loadu_si512(p); }

// Returns four words, in each lane.
TW_INLINE __m512i load_four(const uint32_t *p) {
    return _mm512_broadcast_i32x4(load16(reinterpret_cast<const uint8_t *>(p)));
}

// Returns the byte of each block that `most` finds among its sixteen: the largest or the smallest.
template <class Most>
TW_INLINE __m512i reduce(const __m512i *row, Most most) {
    const auto halves = [&](__m512i a, __m512i b) { return most(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)); };
    const __m512 a = _mm512_castsi512_ps(halves(row[0], row[1])), b = _mm512_castsi512_ps(halves(row[2], row[3]));
    __m512i all = most(_mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)), _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xdd)));
    all = most(all, _mm512_srli_epi32(all, 16));
    return _mm512_and_si512(most(all, _mm512_srli_epi32(all, 8)), words(255));
}
TW_INLINE __m512i largest(const __m512i *row) {
    return reduce(row, [](__m512i a, __m512i b) { return _mm512_max_epu8(a, b); });
}
TW_INLINE __m512i smallest(const __m512i *row) {
    return reduce(row, [](__m512i a, __m512i b) { return _mm512_min_epu8(a, b); });
}

// Returns the lowest byte of word i of each lane, sixteen times.
TW_INLINE __m512i spread_byte(__m512i blocks, int i) { return _mm512_shuffle_epi8(blocks, bytes(4 * i)); }

// Returns word i of each lane, four times.
template <int i>
TW_INLINE __m512 spread_word(__m512 blocks) { return _mm512_permute_ps(blocks, i * 0x55); }

// Returns magnitudes with the signs of x, but zeros without.
TW_INLINE __m512i with_signs(__m512i magnitude, __m512i x) {
    const __m512i sign = _mm512_and_si512(x, bytes(0x80));
    return _mm512_mask_add_epi8(magnitude, _mm512_test_epi8_mask(magnitude, magnitude), magnitude, sign);
}

// Returns 2^(6 - exponent), which makes the largest of a block an integer of seven bits; 0 for the exponent of zeros.
TW_INLINE __m512 steps(__m512i exponents) {
    const __mmask16 alive = _mm512_test_epi32_mask(exponents, exponents);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(alive, _mm512_sub_epi32(words(260), exponents), 23));
}

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
            prefetch(p + ahead);
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
        carry_[r] = static_cast<uint32_t>(__builtin_popcount(_mm512_test_epi32_mask(carry, carry) & 0xff));
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

    bool start(int64_t) { return band_.coding.group_columns == 32; }

    TW_INLINE bool make(int r, int64_t column, Quad &made) const {
        __m512i a[4];
        for (int i = 0; i < 4; ++i) {
            const uint8_t *p = band_.codes + (r + i) * band_.coding.row_bytes + column / 2;
            if (column % 128 == 0) prefetch(p + ahead);
            const __m512i pairs = _mm512_cvtepu8_epi16(load32(p));
            made.row[i] = _mm512_ternarylogic_epi32(pairs, _mm512_slli_epi16(pairs, 4), bytes(15), 0xa8);  // (x | y) & z
            a[i] = _mm512_and_si512(made.row[i], bytes(7));
        }
        const __m512i scale = scales(r, column / 32), most = largest(a);
        const __m512i above = _mm512_permutexvar_epi32(most, _mm512_setr_epi32(0, -1, 0, 0, 1, 1, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0));
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
        const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi64(a, b)), _mm_unpackhi_epi64(a, b), 1);
        return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 1, 0, 1, 2, 3, 2, 3), _mm512_castsi256_si512(both));
    }

    const Band &band_;
};

// Q8_0. Products of an 11-bit mantissa and an integer are exact.
class CoderQ8_0 {
public:
    static constexpr int64_t step = 64;

    explicit CoderQ8_0(const Band &band) : band_(band) {}

    bool start(int64_t) { return true; }

    TW_INLINE bool make(int r, int64_t column, Quad &made) const {
        __m512i x[4], a[4];
        uint64_t low = 0, high = 0;
        for (int i = 0; i < 4; ++i) {
            const uint8_t *p = band_.codes + (r + i) * band_.coding.row_bytes + column / 32 * 34;
            prefetch(p + ahead);
            uint16_t d[2];
            std::memcpy(d, p, 2);
            std::memcpy(d + 1, p + 34, 2);
            low |= uint64_t{d[0]} << (16 * i);
            high |= uint64_t{d[1]} << (16 * i);
            x[i] = _mm512_inserti64x4(_mm512_castsi256_si512(load32(p + 2)), load32(p + 36), 1);
            a[i] = _mm512_abs_epi8(x[i]);
        }
        const __m128i halves = _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
        const __m512 d = _mm512_cvtph_ps(_mm256_permutexvar_epi64(_mm256_setr_epi64x(0, 0, 1, 1), _mm256_castsi128_si256(halves)));
        const __m512i most = largest(a);
        made.exponents = _mm512_srli_epi32(_mm512_castps_si512(_mm512_mul_ps(_mm512_cvtepi32_ps(most), d)), 23);
        const __m512 unit = _mm512_mul_ps(d, steps(made.exponents));
        const __m512 past = _mm512_mul_ps(unit, _mm512_set1_ps(128.0f));
        made.row[0] = with_signs(magnitudes(a[0], spread_word<0>(unit), spread_word<0>(past)), x[0]);
        made.row[1] = with_signs(magnitudes(a[1], spread_word<1>(unit), spread_word<1>(past)), x[1]);
        made.row[2] = with_signs(magnitudes(a[2], spread_word<2>(unit), spread_word<2>(past)), x[2]);
        made.row[3] = with_signs(magnitudes(a[3], spread_word<3>(unit), spread_word<3>(past)), x[3]);
        // No infinity, NaN or negative scale; and -128 has no place below.
        return (_mm512_cmpge_epu32_mask(made.exponents, words(255)) | _mm512_cmpeq_epi32_mask(most, words(128))) == 0;
    }

private:
    // Returns integers below 128 times units, rounded. The bytes of 128 + n are 0, 0, n, 0x43.
    static TW_INLINE __m512i magnitudes(__m512i a, __m512 unit, __m512 past) {
        const __m512i zero = _mm512_setzero_si512();
        const __m512i low = _mm512_unpacklo_epi8(a, bytes(0x43)), high = _mm512_unpackhi_epi8(a, bytes(0x43));
        const auto times = [&](__m512i x) { return _mm512_cvtps_epi32(_mm512_fmsub_ps(_mm512_castsi512_ps(x), unit, past)); };
        const __m512i first = _mm512_packs_epi32(times(_mm512_unpacklo_epi16(zero, low)), times(_mm512_unpackhi_epi16(zero, low)));
        const __m512i last = _mm512_packs_epi32(times(_mm512_unpacklo_epi16(zero, high)), times(_mm512_unpackhi_epi16(zero, high)));
        return _mm512_packs_epi16(first, last);
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
                for (int64_t at = 0; at < block_bytes; at += 64) prefetch(block + ahead + at);
                if (!is_exact(block)) return false;
                numbers[i] = scales_and_minima(block);
            }
            // Word i of a lane is row i then; a vector has every fourth group, and every fourth minimum.
            const __m512 a = _mm512_unpacklo_ps(numbers[0], numbers[1]), b = _mm512_unpackhi_ps(numbers[0], numbers[1]);
            const __m512 c = _mm512_unpacklo_ps(numbers[2], numbers[3]), d = _mm512_unpackhi_ps(numbers[2], numbers[3]);
            const __m512 g0 = low_halves(a, c), g1 = high_halves(a, c), g2 = low_halves(b, d), g3 = high_halves(b, d);
            Scales *to = scales_[r / 4];
            to[0] = {_mm512_shuffle_f32x4(g0, g1, 0x00), _mm512_shuffle_f32x4(g0, g1, 0xaa)};
            to[1] = {_mm512_shuffle_f32x4(g2, g3, 0x00), _mm512_shuffle_f32x4(g2, g3, 0xaa)};
            to[2] = {_mm512_shuffle_f32x4(g0, g1, 0x55), _mm512_shuffle_f32x4(g0, g1, 0xff)};
            to[3] = {_mm512_shuffle_f32x4(g2, g3, 0x55), _mm512_shuffle_f32x4(g2, g3, 0xff)};
        }
        return true;
    }

    TW_INLINE bool make(int r, int64_t column, Quad &made) const {
        const int64_t part = (column - column_) / 64;
        const __m512i nibble = _mm512_setr_epi64(0, 0, 0, 0, 0x4000400040004, 0x4000400040004, 0x4000400040004, 0x4000400040004);
        __m512i n[4];
        for (int i = 0; i < 4; ++i) {
            const __m512i both = _mm512_broadcast_i64x4(load32(block_at(r + i) + 16 + 32 * part));
            n[i] = _mm512_and_si512(_mm512_srlv_epi16(both, nibble), bytes(15));
        }
        const Scales &s = scales_[r / 4][part];
        const auto magnitude = [&](__m512i code) {
            const __m512 value = _mm512_sub_ps(_mm512_mul_ps(s.scale, _mm512_cvtepi32_ps(code)), s.least);
            return _mm512_and_si512(_mm512_castps_si512(value), words(0x7fffffff));
        };
        const __m512i most = _mm512_max_epu32(magnitude(largest(n)), magnitude(smallest(n)));
        made.exponents = _mm512_srli_epi32(most, 23);
        const __m512 unit = steps(made.exponents);
        const __m512 scale = _mm512_mul_ps(s.scale, unit), least = _mm512_mul_ps(s.least, unit);
        made.row[0] = _mm512_shuffle_epi8(codes(spread_word<0>(scale), spread_word<0>(least)), n[0]);
        made.row[1] = _mm512_shuffle_epi8(codes(spread_word<1>(scale), spread_word<1>(least)), n[1]);
        made.row[2] = _mm512_shuffle_epi8(codes(spread_word<2>(scale), spread_word<2>(least)), n[2]);
        made.row[3] = _mm512_shuffle_epi8(codes(spread_word<3>(scale), spread_word<3>(least)), n[3]);
        return true;
    }

private:
    struct Scales {
        __m512 scale, least;
    };

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
        // From two's complement to sign and magnitude.
        const __m512i magnitude = _mm512_min_epu8(_mm512_abs_epi8(all), bytes(127));
        return _mm512_ternarylogic_epi32(magnitude, all, bytes(0x80), 0xf8);
    }

    const Band &band_;
    int64_t column_ = 0;
    Scales scales_[tile_side / 4][4];
};

template <bool streamed>
TW_INLINE void put(uint8_t *p, __m512i v) {
    if constexpr (streamed) {
        stream(p, {v});
    } else {
        store(p, {v});
    }
}

// Where the exponents of tile 0 are, of the two whose exponents were stored four rows at a time.
alignas(64) constexpr std::array<uint8_t, 64> exponent_places = [] {
    std::array<uint8_t, 64> places{};
    for (int i = 0; i < 64; ++i) {
        const int face = i / 16, row = i % 16;
        places[static_cast<size_t>(i)] = static_cast<uint8_t>((face / 2 * 4 + row / 4) * 16 + face % 2 * 4 + row % 4);
    }
    return places;
}();

// Makes two tiles.
template <bool streamed, class Coder>
TW_INLINE bool recode_two(const Coder &coder, int64_t column, uint8_t *tiles) {
    alignas(64) uint8_t exponents[2 * 64];
    bool usual = true;
    for (int r = 0; r < tile_side; r += 4) {
        Quad quad;
        usual &= coder.make(r, column, quad);
        store16(exponents + 4 * r, _mm512_cvtepi32_epi8(quad.exponents));
        // Rows of four blocks become blocks of four rows: a line of each face.
        const __m512i a = _mm512_shuffle_i32x4(quad.row[0], quad.row[1], 0x44), b = _mm512_shuffle_i32x4(quad.row[0], quad.row[1], 0xee);
        const __m512i c = _mm512_shuffle_i32x4(quad.row[2], quad.row[3], 0x44), d = _mm512_shuffle_i32x4(quad.row[2], quad.row[3], 0xee);
        uint8_t *face = tiles + 64 + r / 16 * 512 + r % 16 * 16;
        put<streamed>(face, _mm512_shuffle_i32x4(a, c, 0x88));
        put<streamed>(face + 256, _mm512_shuffle_i32x4(a, c, 0xdd));
        put<streamed>(face + tile_bytes, _mm512_shuffle_i32x4(b, d, 0x88));
        put<streamed>(face + tile_bytes + 256, _mm512_shuffle_i32x4(b, d, 0xdd));
    }
    const __m512i low = load_table(exponents), high = load_table(exponents + 64), places = load_table(exponent_places.data());
    put<streamed>(tiles, _mm512_permutex2var_epi8(low, places, high));
    put<streamed>(tiles + tile_bytes, _mm512_permutex2var_epi8(low, _mm512_add_epi8(places, bytes(8)), high));
    return usual;
}

template <bool streamed, class Coder>
int64_t recode_by(Coder coder, const Band &band, int64_t column, uint8_t *tiles) {
    for (; column + Coder::step <= band.columns; column += Coder::step) {
        if (!coder.start(column)) break;
        bool usual = true;
        for (int64_t i = column; i < column + Coder::step; i += 64) {
            usual &= recode_two<streamed>(coder, i, tiles + i / tile_side * tile_bytes);
        }
        if (!usual) break;
    }
    if constexpr (streamed) _mm_sfence();  // what follows may write the same tiles again
    return column;
}

template <class Coder>
int64_t recode_by(const Band &band, int64_t column, uint8_t *tiles) {
    if (band.stream) return recode_by<true>(Coder(band), band, column, tiles);
    return recode_by<false>(Coder(band), band, column, tiles);
}

}  // namespace

int64_t recode_band(const Band &band, int64_t column, uint8_t *tiles) {
    switch (band.coding.element) {
        case TW_CODE_E2M1: return recode_by<CoderE2M1>(band, column, tiles);
        case TW_CODE_E4M3: return recode_by<CoderE4M3>(band, column, tiles);
        case TW_CODE_Q8_0: return recode_by<CoderQ8_0>(band, column, tiles);
        case TW_CODE_Q4_K: return recode_by<CoderQ4_K>(band, column, tiles);
        default: return column;
    }
}

}  // namespace tw::TW_ISA
