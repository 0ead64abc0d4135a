// SPDX-License-Identifier: Apache-2.0
//
// Cache blocking: a nest is cut into equal boxes (smaller ones at the far edges) whose source and target are both made
// of runs that are worth fetching, and that fit the first cache levels together with their staging.
#pragma once

#include "copy/nest.h"

namespace tw {

// The most that one box may hold, counted in the larger of its element sizes.
constexpr int64_t box_bytes = 16384;

struct Boxes {
    Nest nest;
    int64_t take[max_modes];    // extent of a box along each mode
    int64_t lead[max_modes];    // extent of the first one, where that is to be shorter; else the same
    int64_t count[max_modes];   // boxes along each mode
    int split[max_modes];       // the modes with more than one box, in the order of the walk, innermost first
    int splits = 0;
    int64_t entries = 1;        // of the table, or 1
    int64_t per_entry = 1;
    int64_t total = 0;          // boxes of the nest

    // Returns the elements of a whole box.
    int64_t volume() const {
        int64_t n = 1;
        for (int i = 0; i < nest.rank; ++i) n *= take[i];
        return n;
    }
};

// Returns the boxes of a nest in normal form whose elements take `unit` bytes of staging.
Boxes make_boxes(const Nest &nest, int64_t unit, int64_t entries);

// Returns boxes that take whole inner modes of a nest, in the order given, up to what is worth handing to a thread.
Boxes make_strips(const Nest &nest, int64_t unit, int64_t entries);

// Returns boxes of the extents given, the first ones along each mode of the extents `lead`.
Boxes make_boxes_of(const Nest &nest, const int64_t *take, const int64_t *lead, int64_t entries);

// A box on the walk: where it is and along which splits it is a smaller one at an edge (bits 2i, 2i + 1: split i, near
// and far).
struct Walk {
    const Boxes &boxes;
    const tw_nest &descriptor;
    int64_t entry = 0;
    int64_t at[max_modes] = {};
    int64_t src = 0, dst = 0, aux = 0;
    uint64_t edge = 0;

    Walk(const Boxes &boxes, const tw_nest &descriptor, int64_t first);
    void next();
    // Returns the extents of the box here as a nest with offsets of 0.
    Nest shape() const;

private:
    void enter();
    int64_t start(int i) const;   // of the box along split i
    int64_t extent(int i) const;
};

}  // namespace tw
