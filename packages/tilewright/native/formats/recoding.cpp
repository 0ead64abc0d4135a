// SPDX-License-Identifier: Apache-2.0
//
// tw_recode: tiles of bfloat8_b from quantised codes. What has no kernel of its own is decoded and packed, a few tiles at a
// time, so that the float32 between the two stay in the caches.
#include "copy/kernels.h"
#include "formats/coding.h"
#include "formats/recode.h"
#include "tilewright.h"

namespace tw {
namespace {

constexpr int64_t most_columns = 256;          // the largest blocks
constexpr double stream_from = 8 << 20;        // bytes: no cache holds much more

// Decodes and packs a few columns.
bool recode_by_floats(const Band &band, int64_t row, const float *scales, int64_t column, int64_t columns, uint8_t *tiles) {
    alignas(64) float values[tile_side * most_columns];
    const Kernels &kernels = best_kernels();
    tw_coding coding = band.coding;
    const int64_t at = coding.first_column + column;
    coding.first_row += row;
    coding.first_column = at % coding.group_columns;
    const uint8_t *codes = band.codes + code_bytes(coding.element, column);
    if (!kernels.decode(coding, codes, scales + at / coding.group_columns, tile_side, columns, values)) return false;
    const int64_t step = columns * 4;
    const Packing packing{{}, TW_F32, piece * 4, band.stream, 4, {
        {16, step, 16, 1},                                          // rows of a face
        {2, 64, 256, 16}, {2, 16 * step, 512, 32},                  // faces of a tile
        {columns / tile_side, 4 * tile_side, tile_bytes, tile_bytes}}};
    kernels.pack(packing, reinterpret_cast<const uint8_t *>(values), tiles + 64, tiles);
    return true;
}

bool recode_row(Band &band, int64_t row, const float *scales, uint8_t *tiles) {
    const int64_t block = block_elements(band.coding.element), wide = block > 64 ? block : 64;
    const RecodeBand recode = best_recoder();
    for (int64_t column = 0; column < band.columns;) {
        if (recode) column = recode(band, column, tiles);
        const int64_t left = band.columns - column, some = recode ? wide : most_columns, next = left < some ? left : some;
        if (next == 0) break;
        if (!recode_by_floats(band, row, scales, column, next, tiles + column / tile_side * tile_bytes)) return false;
        column += next;
    }
    return true;
}

}  // namespace
}  // namespace tw

int32_t tw_recode(const tw_coding *coding, const uint8_t *codes, const float *scales, int64_t rows, int64_t columns,
                  uint8_t *tiles) noexcept {
    using namespace tw;
    if (!is_valid(*coding, rows, columns) || rows % tile_side != 0 || columns % tile_side != 0) return -1;
    if (columns % block_elements(coding->element) != 0) return -1;
    const double size = static_cast<double>(rows) * static_cast<double>(columns);
    Band band{*coding, codes, {}, columns, size >= stream_from && reinterpret_cast<uintptr_t>(tiles) % 64 == 0};
    for (int64_t row = 0; row < rows; row += tile_side) {
        for (int r = 0; r < tile_side; ++r) {
            band.scales[r] = scales + (coding->first_row + row + r) / coding->group_rows * coding->scale_row;
        }
        band.codes = codes + row * coding->row_bytes;
        if (!recode_row(band, row, scales, tiles + row * columns / (tile_side * tile_side) * tile_bytes)) return -1;
    }
    if (band.stream) best_kernels().fence();
    return 0;
}
