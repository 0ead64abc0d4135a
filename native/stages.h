// SPDX-License-Identifier: Apache-2.0
//
// What happens to one box. On the staged route: collect from the source, convert or pack or unpack, store to the target;
// stages that would only copy are left out.
#pragma once

#include "routes.h"

namespace tw {

// Staging memory of one thread.
struct Scratch {
    static constexpr int64_t room = 2 * box_bytes;
    alignas(64) uint8_t one[room];
    alignas(64) uint8_t two[room];
    alignas(64) uint8_t three[room];
    alignas(64) uint8_t panel[panel_room];
};

// Runs the boxes [first, last) of a job.
void run_boxes(const Job &job, int64_t first, int64_t last, const uint8_t *src, uint8_t *dst, const Kernels &kernels,
               Scratch *scratch);

}  // namespace tw
