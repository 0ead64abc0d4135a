// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/kernels.h"

namespace tw::TW_ISA {

// Packs blocks.
void pack_blocks(const Packing &packing, const uint8_t *values, uint8_t *codes, uint8_t *scales);

// Packs blocks of the MX types and NVFP4.
void pack_scaled(const Packing &packing, const uint8_t *values, uint8_t *codes, uint8_t *scales);

}  // namespace tw::TW_ISA
