// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/kernels.h"

namespace tw::TW_ISA {

// Unpacks blocks.
void unpack_blocks(const Unpacking &unpacking, const uint8_t *codes, const uint8_t *scales, uint8_t *values);

// Unpacks blocks of the MX types and NVFP4.
void unpack_scaled(const Unpacking &unpacking, const uint8_t *codes, const uint8_t *scales, uint8_t *values);

}  // namespace tw::TW_ISA
