// SPDX-License-Identifier: Apache-2.0
//
// A loop nest and its normal form. Every stage of the engine works on these; none of them knows what a tile is.
#pragma once

#include <cstdint>

#include "tilewright.h"

namespace tw {

// One mode of a nest. Strides are in bytes.
struct Mode {
    int64_t extent;
    int64_t src;
    int64_t dst;
    int64_t aux;
    int64_t row_step;  // from row to row of the target, counted in rows; see Lines

    Mode() {}  // nothing: there are large arrays of these, few of which are used
    Mode(int64_t n, int64_t s, int64_t d, int64_t a, int64_t c = 0) : extent(n), src(s), dst(d), aux(a), row_step(c) {}
};

// Capacity for the modes of a nest, one mode for the halves of a block and one that a mode is cut into.
constexpr int max_modes = TW_MAX_RANK + 2;

// A nest in normal form: no extent of 1, no negative target stride, innermost mode (smallest target stride) FIRST,
// nothing left that could be fused. `empty` means that some extent was 0.
struct Nest {
    Mode mode[max_modes];
    int rank = 0;
    bool empty = false;
    int64_t src = 0, dst = 0, aux = 0;  // byte offsets of the first element

    Nest() = default;
    Nest(const Nest &other) { *this = other; }
    // Copies the modes that there are, not all that there may be.
    Nest &operator=(const Nest &other) {
        rank = other.rank;
        empty = other.empty;
        src = other.src;
        dst = other.dst;
        aux = other.aux;
        for (int i = 0; i < rank; ++i) mode[i] = other.mode[i];
        return *this;
    }

    void push(const Mode &m) { mode[rank++] = m; }
    int64_t count() const {
        int64_t n = 1;
        for (int i = 0; i < rank; ++i) n *= mode[i].extent;
        return n;
    }
};

// Brings a nest into normal form.
void normalise(Nest &nest);

// Drops modes of extent 1 and fuses neighbours, keeping the order of the loops.
void fuse_in_order(Nest &nest);

// Returns the nest of a descriptor, in normal form.
Nest nest_of(const tw_nest &descriptor);

}  // namespace tw
