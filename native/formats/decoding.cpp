// SPDX-License-Identifier: Apache-2.0
//
// tw_decode: float32 from quantised codes.
#include "copy/kernels.h"
#include "tilewright.h"

namespace tw {
namespace {

bool is_valid(const tw_coding *coding, int64_t rows, int64_t columns) {
    return rows >= 0 && columns >= 0 && coding->group_rows > 0 && coding->group_columns > 0 && coding->first_row >= 0 &&
           coding->first_column >= 0 && coding->first_column < coding->group_columns;
}

}  // namespace
}  // namespace tw

int32_t tw_decode(const tw_coding *coding, const uint8_t *codes, const float *scales, int64_t rows, int64_t columns,
                  float *out) noexcept {
    if (!tw::is_valid(coding, rows, columns)) return -1;
    return tw::best_kernels().decode(*coding, codes, scales, rows, columns, out) ? 0 : -1;
}
