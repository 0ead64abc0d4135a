// SPDX-License-Identifier: Apache-2.0
//
// tw_decode: float32 from quantised codes.
#include "copy/kernels.h"
#include "formats/coding.h"
#include "tilewright.h"

int32_t tw_decode(const tw_coding *coding, const uint8_t *codes, const float *scales, int64_t rows, int64_t columns,
                  float *out) noexcept {
    if (!tw::is_valid(*coding, rows, columns)) return -1;
    return tw::best_kernels().decode(*coding, codes, scales, rows, columns, out) ? 0 : -1;
}
