// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "move.h"

namespace tw::TW_ISA {

// Runs a move. `ahead` is the distance in bytes to what will be read next, 0 for nothing to prefetch.
void move_bits(const Move &move, const uint8_t *src, uint8_t *dst, int64_t ahead);

// Orders streamed stores before whatever follows.
void fence();

}  // namespace tw::TW_ISA
