// SPDX-License-Identifier: Apache-2.0
//
// Transposes of small matrices that are in the cache already, for the stages of a box.
#include "copy/transpose.h"

#include "copy/squares.h"

namespace tw::TW_ISA {
namespace {

// The ragged edge: fewer rows or fewer columns than a square has.
template <int size>
void corner(const uint8_t *src, int64_t src_step, uint8_t *dst, int64_t dst_step, int64_t rows, int64_t columns) {
    square_part<size>(
        columns, [&](int64_t i) { return src + (i < rows ? i : 0) * src_step; },
        [&](int64_t k, Vec v) { store_part(dst + k * dst_step, v, rows * size); });
}

template <int size>
void squares(const Mode &across, const Mode &along, const uint8_t *src, uint8_t *dst) {
    using S = Square<size>;
    for (int64_t j = 0; j < along.extent; j += S::columns) {
        int64_t columns = along.extent - j < S::columns ? along.extent - j : S::columns;
        // Down the source first: neighbouring lines of the target are then written one after the other.
        for (int64_t i = 0; i < across.extent; i += S::rows) {
            int64_t rows = across.extent - i < S::rows ? across.extent - i : S::rows;
            const uint8_t *s = src + i * across.src + j * size;
            uint8_t *d = dst + i * size + j * along.dst;
            if (rows == S::rows && columns == S::columns) {
                square<size>([&](int64_t k) { return s + k * across.src; },
                             [&](int64_t k, Vec v) { store(d + k * along.dst, v); });
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

}  // namespace

void transpose(int size, const Mode &across, const Mode &along, const uint8_t *src, uint8_t *dst) {
    switch (size) {
        case 1: return squares<1>(across, along, src, dst);
        case 2: return squares<2>(across, along, src, dst);
        case 4: return squares<4>(across, along, src, dst);
        default: return squares<8>(across, along, src, dst);
    }
}

}  // namespace tw::TW_ISA
