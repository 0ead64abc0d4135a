// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/bit_copy.h"

namespace tw::TW_ISA {

// Makes whole target lines, each from a few pieces of the source, converting on the way.
void copy_lines(const Lines &lines, const uint8_t *src, uint8_t *dst);

}  // namespace tw::TW_ISA
