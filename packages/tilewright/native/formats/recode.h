// SPDX-License-Identifier: Apache-2.0
//
// From quantised codes straight to tiles of bfloat8_b.
#pragma once

#include <cstdint>

#include "tilewright.h"

namespace tw {

constexpr int tile_side = 32, tile_bytes = 64 + tile_side * tile_side;

// Thirty-two rows of codes, which become one row of tiles.
struct Band {
    tw_coding coding;
    const uint8_t *codes;
    const float *scales[tile_side];  // of each row, that of its first group
    int64_t columns;
    bool stream;  // the tiles are on lines and are written past the caches
};

// Recodes a band from a column on. Returns the column that it could not go past: the end, or where there are codes or
// scales that it leaves to others.
using RecodeBand = int64_t (*)(const Band &band, int64_t column, uint8_t *tiles);

namespace avx512vbmi {
int64_t recode_band(const Band &band, int64_t column, uint8_t *tiles);
}

// Returns what recodes on this machine, or null.
RecodeBand best_recoder();

}  // namespace tw
