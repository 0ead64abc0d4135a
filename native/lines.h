// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "move.h"

namespace tw::TW_ISA {

// Makes whole target lines, each from a few pieces of the source, converting on the way.
void move_lines(const Lines &lines, const uint8_t *src, uint8_t *dst);

}  // namespace tw::TW_ISA
