// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nest.h"

namespace tw::TW_ISA {

// Moves a matrix of elements of `size` bytes whose `across` mode is contiguous in the target and whose `along` mode is
// contiguous in the source. `stream` needs a target and a target stride that are multiples of a line.
void transpose(int size, const Mode &across, const Mode &along, const uint8_t *src, uint8_t *dst, bool stream);

}  // namespace tw::TW_ISA
