// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/interleave.h"

namespace tw::TW_ISA {

// Interleaves or separates channels, in one piece or several.
void copy_interleaved(const Interleave &interleave, const uint8_t *src, uint8_t *dst);

}  // namespace tw::TW_ISA
