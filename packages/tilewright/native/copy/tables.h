// SPDX-License-Identifier: Apache-2.0
//
// Copies with places from a table, such as swizzled ones: short pieces at offsets that repeat all over the nest. The
// table is the inner loop here, so that memory is passed over once and not once for each entry.
#pragma once

#include "copy/nest.h"

namespace tw {

struct Job;

struct Table {
    int64_t piece = 0;         // bytes that are contiguous on both sides
    int64_t count = 0;         // pieces
    const int64_t *src = nullptr, *dst = nullptr;  // where they are, in the order of the target
    bool lines = false;        // the pieces make up whole lines of the target
    bool stream = false;
    int rank = 0;
    Mode mode[max_modes];      // loops around the table, innermost first
};

// Makes the table of a job and the boxes around it. Returns false when another route suits it better.
bool make_table(Job &job, const uint8_t *dst, bool stream);

}  // namespace tw
