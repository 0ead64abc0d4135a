// SPDX-License-Identifier: Apache-2.0
//
// A few channels that lie apart on one side and together, element by element, on the other: NCHW and NHWC with 3 or 4
// colours. A transpose of so few rows or columns would leave most of a register empty.
#pragma once

#include "copy/boxes.h"

namespace tw {

constexpr int most_channels = 8;

struct Interleave {
    int size = 1;          // bytes of an element: 1, 2, 4 or 8
    bool join = false;     // the channels are together in the target; else in the source
    bool stream = false;   // whole lines go past the caches
    int rank = 0;          // mode 0 runs over the channels, mode 1 along them
    Mode mode[max_modes];
};

// Cuts a nest that is an interleave into boxes of which each is one, or a few. Fills in what is the same for all of them.
// Returns false when it is none.
bool make_interleave(const Nest &nest, int size, int64_t entries, Boxes &boxes, Interleave &interleave);

// Returns the interleave for a box of the shape given.
Interleave interleave_of(const Interleave &like, const Nest &box, bool stream);

}  // namespace tw
