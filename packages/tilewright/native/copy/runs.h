// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/bit_copy.h"

namespace tw::TW_ISA {

// Runs a bit copy. `ahead` is the distance in bytes to what will be read next, 0 for nothing to prefetch.
void copy_bits(const BitCopy &copy, const uint8_t *src, uint8_t *dst, int64_t ahead);

// Orders streamed stores before whatever follows.
void fence();

}  // namespace tw::TW_ISA
