// SPDX-License-Identifier: Apache-2.0
//
// Quantised codes straight to tiles of bfloat8_b, without float32 in memory between. Compiled once, for AVX-512 with VBMI.
//
// A coder makes four rows of 64 codes at a time (see recode_quads.h), and says if there was something that it does not do.
#include "formats/recode.h"

#include <array>

#include "formats/recode_floats.h"
#include "formats/recode_ggml.h"

namespace tw::TW_ISA {
namespace {

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
        const __m512i *row = quad.row;
        const __m512i a = _mm512_shuffle_i32x4(row[0], row[1], 0x44), b = _mm512_shuffle_i32x4(row[0], row[1], 0xee);
        const __m512i c = _mm512_shuffle_i32x4(row[2], row[3], 0x44), d = _mm512_shuffle_i32x4(row[2], row[3], 0xee);
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
