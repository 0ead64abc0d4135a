// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels.h"

namespace tw::TW_ISA {

// Packs blocks.
void pack_blocks(const Packing &packing, const uint8_t *values, uint8_t *codes, uint8_t *scales);

// Unpacks blocks at equal distances, in bytes.
void unpack_blocks(BlockKind kind, const uint8_t *codes, int64_t codes_step, const uint8_t *scales, int64_t scales_step,
                   uint8_t *values, int64_t values_step, int64_t blocks, bool stream);

}  // namespace tw::TW_ISA
