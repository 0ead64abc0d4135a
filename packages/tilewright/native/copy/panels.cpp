// SPDX-License-Identifier: Apache-2.0
#include "copy/panels.h"

#include <cstdlib>
#include <initializer_list>

namespace tw {
namespace {

constexpr int64_t line = 64;
// What a panel takes of both sides where it can: runs worth a jump in memory, and rows that need not be many for it.
constexpr int64_t run_wanted = 512;
constexpr int64_t row_wanted = 1024;

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t gcd(int64_t a, int64_t b) { return b == 0 ? a : gcd(b, a % b); }

// One side of a panel while it grows.
struct Side {
    int64_t Mode::*stride;
    int64_t wanted;     // elements
    int64_t count = 1;  // elements
    int modes = 0;
    int mode[max_modes];
    int64_t take[max_modes];
    bool open = true;   // may still grow

    Side(int64_t Mode::*s, int64_t n) : stride(s), wanted(n) {}
};

// Returns how much of a mode of a given extent the side can use.
int64_t share(const Side &side, int64_t extent, int size) {
    if (side.count * extent <= side.wanted) return extent;
    int64_t take = side.wanted / side.count;
    int64_t whole = line / gcd(line, side.count * size);  // of which whole lines are made
    if (take > whole) take = take / whole * whole;
    return take > 1 ? take : 1;
}

// Adds the mode that goes on where the side ends, unless it is the one that is spared for the other side.
void grow(Side &side, const Nest &nest, int size, bool *used, int spared) {
    side.open = false;
    for (int i = 0; i < nest.rank; ++i) {
        const Mode &m = nest.mode[i];
        if (used[i] || i == spared || m.*side.stride != side.count * size) continue;
        int64_t take = share(side, m.extent, size);
        used[i] = true;
        side.mode[side.modes] = i;
        side.take[side.modes++] = take;
        side.count *= take;
        side.open = take == m.extent;
        return;
    }
}

// Returns the mode that is contiguous on a side, or -1.
int first_of(const Nest &nest, int64_t Mode::*stride, int size) {
    for (int i = 0; i < nest.rank; ++i) {
        if (nest.mode[i].*stride == size) return i;
    }
    return -1;
}

// Sorts what is not on a side, and the walk, by source stride.
void sort_by_source(Mode *mode, int count) {
    for (int i = 1; i < count; ++i) {
        Mode m = mode[i];
        int at = i;
        for (; at > 0 && std::abs(m.src) < std::abs(mode[at - 1].src); --at) mode[at] = mode[at - 1];
        mode[at] = m;
    }
}

void walk_by_source(Boxes &boxes) {
    const Mode *mode = boxes.nest.mode;
    for (int i = 1; i < boxes.splits; ++i) {
        int k = boxes.split[i], at = i;
        for (; at > 0 && std::abs(mode[k].src) < std::abs(mode[boxes.split[at - 1]].src); --at) {
            boxes.split[at] = boxes.split[at - 1];
        }
        boxes.split[at] = k;
    }
}

// Returns the extent along the first mode of the box that has least of it.
int64_t fewest_rows(const Boxes &boxes) {
    const int64_t rest = (boxes.nest.mode[0].extent - boxes.lead[0]) % boxes.take[0];
    return rest == 0 ? boxes.lead[0] : at_most(rest, boxes.lead[0]);
}

}  // namespace

bool make_panels(const Nest &nest, int size, int64_t from_past, int64_t to_past, int64_t entries, Boxes &boxes,
                 Panel &panel) {
    const int first_row = first_of(nest, &Mode::dst, size), first_column = first_of(nest, &Mode::src, size);
    if (first_row < 0 || first_column < 0 || first_row == first_column) return false;
    Side rows(&Mode::dst, run_wanted / size), columns(&Mode::src, at_most(row_wanted / size, panel_side));
    bool used[max_modes] = {};
    grow(rows, nest, size, used, first_column);
    grow(columns, nest, size, used, -1);
    while (rows.open || columns.open) {
        const bool row = rows.open && (!columns.open || rows.count <= columns.count);
        grow(row ? rows : columns, nest, size, used, -1);
    }
    int64_t run = rows.count * size;
    if (nest.mode[columns.mode[0]].dst == run) run *= columns.take[0];
    if (run < line || columns.count < 4) return false;  // mostly edges

    Nest ordered;
    ordered.src = nest.src;
    ordered.dst = nest.dst;
    int64_t take[max_modes], lead[max_modes];
    for (const Side *side : {&rows, &columns}) {
        for (int i = 0; i < side->modes; ++i) {
            take[ordered.rank] = side->take[i];
            ordered.push(nest.mode[side->mode[i]]);
        }
    }
    const int sides = ordered.rank;
    for (int i = 0; i < nest.rank; ++i) {
        if (!used[i]) ordered.push(nest.mode[i]);
    }
    sort_by_source(ordered.mode + sides, ordered.rank - sides);
    // Small panels go together, as far as is worth handing to a thread.
    int64_t capacity = panel_bytes / (rows.count * columns.count * size);
    for (int i = sides; i < ordered.rank; ++i) {
        take[i] = capacity < 1 ? 1 : at_most(ordered.mode[i].extent, capacity);
        capacity = take[i] < ordered.mode[i].extent ? 0 : capacity / take[i];
    }
    for (int i = 0; i < ordered.rank; ++i) lead[i] = take[i];
    // The first rows and the first columns only lead up to a line.
    const int c = rows.modes;
    if (to_past > 0 && rows.modes == 1 && take[0] < ordered.mode[0].extent) lead[0] = (line - to_past) / size;
    if (from_past > 0 && columns.modes == 1 && take[c] < ordered.mode[c].extent) lead[c] = (line - from_past) / size;
    boxes = make_boxes_of(ordered, take, lead, entries);
    // Columns that do not start on lines share some with the next rows: those come next, while the lines are at hand.
    if (to_past >= 0) walk_by_source(boxes);
    panel.has_lines = rows.modes == 1 && fewest_rows(boxes) * size >= line;
    panel.size = size;
    panel.row_modes = rows.modes;
    panel.column_modes = columns.modes;
    return true;
}

Panel panel_of(const Panel &like, const Nest &box, bool stream) {
    Panel panel = like;
    panel.stream = stream;
    panel.rank = box.rank;
    for (int i = 0; i < box.rank; ++i) panel.mode[i] = box.mode[i];
    return panel;
}

}  // namespace tw
