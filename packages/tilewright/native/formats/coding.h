// SPDX-License-Identifier: Apache-2.0
//
// What can be said of quantised codes without looking at them.
#pragma once

#include "tilewright.h"

namespace tw {

inline bool is_valid(const tw_coding &coding, int64_t rows, int64_t columns) {
    return rows >= 0 && columns >= 0 && coding.element >= TW_CODE_E2M1 && coding.element <= TW_CODE_MXFP4 &&
           coding.group_rows > 0 && coding.group_columns > 0 && coding.first_row >= 0 && coding.first_column >= 0 &&
           coding.first_column < coding.group_columns;
}

// Returns the elements that are coded together: those of a block, or of a byte.
constexpr int64_t block_elements(int element) {
    constexpr int64_t elements[] = {2, 1, 1, 1, 32, 32, 32, 256, 256, 256, 32};
    return elements[element];
}

// Returns the bytes of a number of elements that is a multiple of this.
constexpr int64_t code_bytes(int element, int64_t count) {
    constexpr int64_t bytes[] = {1, 1, 1, 1, 18, 20, 34, 144, 176, 210, 17};
    return count / block_elements(element) * bytes[element];
}

}  // namespace tw
