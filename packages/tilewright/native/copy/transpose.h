// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/nest.h"

namespace tw::TW_ISA {

// Copies a matrix of elements of `size` bytes whose `across` mode is contiguous in the target and whose `along` mode is
// contiguous in the source.
void transpose(int size, const Mode &across, const Mode &along, const uint8_t *src, uint8_t *dst);

}  // namespace tw::TW_ISA
