// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "copy/kernels.h"

namespace tw::TW_ISA {

// Packs blocks.
void pack_blocks(const Packing &packing, const uint8_t *values, uint8_t *codes, uint8_t *scales);

// Returns whether codes go past the caches: all of them start on lines.
inline bool streams_lines(const Packing &packing, const uint8_t *codes) {
    bool on_lines = packing.stream && reinterpret_cast<uintptr_t>(codes) % 64 == 0;
    for (int i = 1; i < packing.rank; ++i) on_lines &= packing.mode[i].dst % 64 == 0;
    return on_lines;
}

// Packs blocks of the MX types and NVFP4.
void pack_scaled(const Packing &packing, const uint8_t *values, uint8_t *codes, uint8_t *scales);

}  // namespace tw::TW_ISA
