// SPDX-License-Identifier: Apache-2.0
//
// Boxes for a target that does not lie on lines (Put::shift). A row is a range of the target that is written from
// start to end while the source is read in its own order; a box has as many rows as can be kept track of, neighbours in
// the target, so that little of it is ends.
#pragma once

#include "copy/boxes.h"
#include "copy/bit_copy.h"

namespace tw {

// Cuts a nest, innermost mode first in the target, each position of which is a line of `lines`. Sets what `lines` needs
// to know. Returns false when no range of the target is long.
bool make_row_boxes(const Nest &all, int64_t entries, Boxes &boxes, Lines &lines);

}  // namespace tw
