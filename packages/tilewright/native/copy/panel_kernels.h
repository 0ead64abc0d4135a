// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/panels.h"

namespace tw::TW_ISA {

// Copies a panel, or several. `ahead` is the distance in bytes to what will be read next, 0 for nothing to prefetch;
// `staging` holds a panel.
void copy_panel(const Panel &panel, const uint8_t *src, uint8_t *dst, int64_t ahead, uint8_t *staging);

}  // namespace tw::TW_ISA
