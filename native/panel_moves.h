// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "panels.h"

namespace tw::TW_ISA {

// Moves a panel, or several. `ahead` is the distance in bytes to what will be read next, 0 for nothing to prefetch;
// `staging` has room for a panel.
void move_panel(const Panel &panel, const uint8_t *src, uint8_t *dst, int64_t ahead, uint8_t *staging);

}  // namespace tw::TW_ISA
