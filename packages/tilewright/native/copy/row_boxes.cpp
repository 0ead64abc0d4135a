// SPDX-License-Identifier: Apache-2.0
#include "copy/row_boxes.h"

namespace tw {
namespace {

constexpr int64_t line = 64;
constexpr int64_t page = 4096;
// Shorter element_runs are mostly ends.
constexpr int64_t least_run = 256;
constexpr int64_t good_row = 512;
// Enough for long rows, little enough to share out evenly.
constexpr int64_t most_bytes = 256 << 10;

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// What a box takes of each mode. Modes [0, inside) make up a row: they go on in the target and from far to farther in
// the source, so that the order of the source visits a row from start to end.
struct Cut {
    const Nest &nest;
    int64_t take[max_modes];
    int inside = 0;
    int end = 0;           // modes [0, end) are contiguous in the target
    int64_t run = line;
    int64_t row = line;    // bytes
    int64_t rows = 1;

    explicit Cut(const Nest &n) : nest(n) {
        for (int i = 0; i < n.rank; ++i) take[i] = 1;
        for (; end < n.rank && n.mode[end].dst == run; ++end) run *= n.mode[end].extent;
        while (inside < end && (inside == 0 || !nearer(inside, inside - 1))) ++inside;
    }

    bool nearer(int a, int b) const { return magnitude(nest.mode[a].src) < magnitude(nest.mode[b].src); }

    void lengthen(int64_t bytes) {
        row = line;
        for (int i = 0; i < inside && row < bytes; ++i) {
            take[i] = at_most(nest.mode[i].extent, (bytes + row - 1) / row);
            row *= take[i];
            if (take[i] < nest.mode[i].extent) break;
        }
    }

    // Takes rows that are neighbours in the source, and those that are between them in the target.
    void add_rows() {
        int last = nest.rank;
        while (last > inside && magnitude(nest.mode[last - 1].src) >= page) --last;
        for (int k = inside; k < last; ++k) {
            take[k] = at_most(nest.mode[k].extent, at_most(most_rows / rows, most_bytes / (row * rows)));
            if (take[k] < 1) take[k] = 1;
            rows *= take[k];
        }
    }
};

void insert_by_source(Nest &nest, int from, int64_t *take, const Mode &m, int64_t taken) {
    int at = nest.rank++;
    for (; at > from && magnitude(m.src) < magnitude(nest.mode[at - 1].src); --at) {
        nest.mode[at] = nest.mode[at - 1];
        take[at] = take[at - 1];
    }
    nest.mode[at] = m;
    take[at] = taken;
}

// Returns how many lines from pages of their own to read side by side; see try_lines.
int64_t group_of(const Cut &c, int pieces) {
    const Mode &m = c.nest.mode[0];
    if (c.inside != 1 || magnitude(m.src) < page || c.take[0] < m.extent) return 1;
    int64_t group = 8 / pieces;
    while (m.extent % group != 0) --group;
    return group;
}

}  // namespace

bool make_row_boxes(const Nest &all, int64_t entries, Boxes &boxes, Lines &lines) {
    Nest nest = all;
    nest.rank = 0;
    for (int i = 0; i < all.rank; ++i) {
        if (all.mode[i].extent > 1) nest.push(all.mode[i]);
    }
    Cut c(nest);
    if (c.run < least_run || nest.rank == max_modes) return false;
    c.lengthen(good_row);
    c.add_rows();
    c.lengthen(most_bytes / c.rows);
    const int64_t group = group_of(c, lines.pieces);
    Nest ordered = nest;
    ordered.rank = 0;
    int64_t take[max_modes];
    int64_t row_step = 1;
    for (int k = 0; k < nest.rank; ++k) {
        Mode m = nest.mode[k];
        if (k >= c.inside && c.take[k] > 1) {
            m.row_step = row_step;
            row_step *= c.take[k];
        }
        if (k == 0 && group > 1) {
            insert_by_source(ordered, 0, take, {group, m.src, m.dst, m.aux}, group);
            insert_by_source(ordered, 1, take, {m.extent / group, m.src * group, m.dst * group, m.aux * group},
                             m.extent / group);
        } else {
            insert_by_source(ordered, group > 1 ? 1 : 0, take, m, c.take[k]);
        }
    }
    boxes = make_boxes_of(ordered, take, take, entries);
    lines.put = Put::shift;
    if (group > 1) {  // a box reads on where the one before ended
        lines.sweep = false;
        lines.ahead = 1024;
    } else if (lines.pieces > 1 && !lines.sweep) {
        lines.ahead = 2048;
    }
    return true;
}

}  // namespace tw
