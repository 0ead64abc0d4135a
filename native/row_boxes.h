// SPDX-License-Identifier: Apache-2.0
//
// Boxes for a target that does not lie on lines (Put::shift): a few rows, that is long stretches of the target, so that
// little of it is ends. Several rows where their source lies close together, in the order of the source; else one, in
// the order of the target.
#pragma once

#include "boxes.h"

namespace tw {

// Cuts a nest, innermost mode first in the target, each position of which is 64 contiguous bytes there. Returns false
// when no stretch of the target is long. `rows` becomes the number of rows in a box.
bool make_row_boxes(const Nest &nest, int64_t entries, Boxes &boxes, int64_t &rows);

}  // namespace tw
