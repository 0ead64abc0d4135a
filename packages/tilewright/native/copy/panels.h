// SPDX-License-Identifier: Apache-2.0
//
// A permutation is moved in panels: so many elements that follow each other in the target (the rows) by so many that
// follow each other in the source (the columns). Both may run over several modes of the nest, and the kernel knows them
// only as a list of offsets each; so every permutation with some density on both sides is the same transpose.
#pragma once

#include "copy/boxes.h"

namespace tw {

// The most rows, and the most columns, of a panel.
constexpr int64_t panel_side = 512;
// The most bytes of a panel: a part of the second cache level, beside what is fetched for the next one.
constexpr int64_t panel_bytes = 256 << 10;
// What staging one takes: every column may be followed by a gap, the last by a vector.
constexpr int64_t panel_capacity = panel_bytes + panel_side * 128 + 64;

struct Panel {
    int size = 1;          // bytes of an element: 1, 2, 4 or 8
    bool stream = false;   // whole lines go past the caches
    bool has_lines = false;  // every box has a line of rows at least
    int row_modes = 0;     // modes [0, row_modes) make the rows, innermost first
    int column_modes = 0;  // the next ones the columns
    int rank = 0;          // and the rest are panels one after the other
    Mode mode[max_modes];
};

// Cuts the nest of a transpose into boxes that are panels, or a few of them. `from_past` is how far past a line of the
// source all rows start, or -1 when they differ; `to_past` likewise for the columns in the target. Fills in what is the
// same for all boxes. Returns false when there is too little to follow on one side.
bool make_panels(const Nest &nest, int size, int64_t from_past, int64_t to_past, int64_t entries, Boxes &boxes,
                 Panel &panel);

// Returns the panel for a box of the shape given.
Panel panel_of(const Panel &like, const Nest &box, bool stream);

}  // namespace tw
