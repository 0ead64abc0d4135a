// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weaves.h"

namespace tw::TW_ISA {

// Moves a weave, or several.
void move_weave(const Weave &weave, const uint8_t *src, uint8_t *dst);

}  // namespace tw::TW_ISA
