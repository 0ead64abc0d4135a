// SPDX-License-Identifier: Apache-2.0
//
// What happens to one box. On the staged route: collect from the source, convert or pack or unpack, store to the target;
// stages that would only copy are left out.
#pragma once

#include "copy/routes.h"

namespace tw {

// Staging memory of one thread.
struct Scratch {
    static constexpr int64_t capacity = 2 * box_bytes;
    alignas(64) uint8_t one[capacity];
    alignas(64) uint8_t two[capacity];
    alignas(64) uint8_t three[capacity];
    alignas(64) uint8_t panel[panel_capacity];
};

// Runs the boxes [first, last) of a job.
void run_boxes(const Job &job, int64_t first, int64_t last, const uint8_t *src, uint8_t *dst, const Kernels &kernels,
               Scratch *scratch);

}  // namespace tw
