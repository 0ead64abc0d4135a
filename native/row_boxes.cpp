// SPDX-License-Identifier: Apache-2.0
#include "row_boxes.h"

#include "move.h"

namespace tw {
namespace {

constexpr int64_t line = 64;
constexpr int64_t page = 4096;
// Shorter stretches are mostly ends.
constexpr int64_t least_row = 256;
constexpr int64_t good_row = 512;
// What a row may write between two reads of neighbouring lines of the source.
constexpr int64_t most_between = 16 << 10;
// Enough for long rows, little enough to share out evenly.
constexpr int64_t most_bytes = 256 << 10;

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// What a box takes of each mode. Modes [0, cut) are taken whole and make up a row with what is taken of mode `cut`.
struct Cut {
    const Nest &nest;
    int64_t take[max_modes];
    int end = 0;           // modes that are contiguous in the target; `cut` goes no further
    int cut = 0;
    int64_t inner = line;  // bytes of the modes before `cut`
    int64_t rows = 1;

    explicit Cut(const Nest &n) : nest(n) {
        for (int i = 0; i < n.rank; ++i) take[i] = 1;
        for (int64_t bytes = line; end < n.rank && n.mode[end].dst == bytes; ++end) bytes *= n.mode[end].extent;
    }

    int64_t row() const { return cut < end ? inner * take[cut] : inner; }
    bool in_row(int k) const { return k < cut || (k == cut && k < end); }

    // Lengthens the row to `bytes`, or as far as it goes.
    void lengthen(int64_t bytes) {
        while (cut < end && row() < bytes) {
            const int64_t extent = nest.mode[cut].extent;
            take[cut] = at_most(extent, (bytes + inner - 1) / inner);
            if (take[cut] < extent) return;
            inner *= extent;
            ++cut;
        }
    }

    // Lengthens the row along mode k, unless too much lies between.
    bool lengthen_along(int k) {
        int64_t between = inner;
        for (int i = cut; i < k; ++i) between *= nest.mode[i].extent;
        if (between > most_between) return false;
        lengthen(at_most(between * nest.mode[k].extent, most_bytes));
        return true;
    }

    // Takes what lies next to each other in the source: more of the row, or more rows.
    void widen() {
        int order[max_modes];
        for (int i = 0; i < nest.rank; ++i) {
            int at = i;
            for (; at > 0 && nearer(i, order[at - 1]); --at) order[at] = order[at - 1];
            order[at] = i;
        }
        for (int i = 0; i < nest.rank && magnitude(nest.mode[order[i]].src) < page; ++i) {
            const int k = order[i];
            if (k < cut || (k == cut && rows > 1)) continue;
            if (rows == 1 && k < end && lengthen_along(k)) continue;
            const int64_t more = at_most(nest.mode[k].extent, at_most(most_bytes / (row() * rows), most_rows / rows));
            if (k == cut || more < 2) continue;
            take[k] = more;
            rows *= more;
            end = k < end ? k : end;
        }
    }

    bool nearer(int a, int b) const { return magnitude(nest.mode[a].src) < magnitude(nest.mode[b].src); }
};

}  // namespace

bool make_row_boxes(const Nest &nest, int64_t entries, Boxes &boxes, int64_t &rows) {
    Cut c(nest);
    c.lengthen(good_row);
    if (c.row() < least_row) return false;
    c.widen();
    c.lengthen(most_bytes / c.rows);
    // Along a row in the order of the target, from row to row in that of the source.
    Nest ordered = nest;
    int64_t take[max_modes];
    int64_t carry = line;
    for (int k = 0; k < nest.rank; ++k) {
        Mode m = nest.mode[k];
        int at = k;
        if (!c.in_row(k) && c.take[k] > 1) {
            m.carry = carry;
            carry *= c.take[k];
            for (; at > 0 && magnitude(m.src) < magnitude(ordered.mode[at - 1].src); --at) {
                ordered.mode[at] = ordered.mode[at - 1];
                take[at] = take[at - 1];
            }
        }
        ordered.mode[at] = m;
        take[at] = c.take[k];
    }
    rows = c.rows;
    boxes = make_boxes_of(ordered, take, take, entries);
    return true;
}

}  // namespace tw
