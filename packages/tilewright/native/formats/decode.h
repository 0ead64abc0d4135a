// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tilewright.h"

#include "copy/kernels.h"

namespace tw::TW_ISA {

// Makes float32 of rows of codes; see tw_decode.
bool decode_rows(const tw_coding &coding, const uint8_t *codes, const float *scales, int64_t rows, int64_t columns,
                 float *out);

}  // namespace tw::TW_ISA
