// SPDX-License-Identifier: Apache-2.0
#include "copy/boxes.h"

namespace tw {
namespace {

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// How much of a mode it takes to cover `reach` bytes with its stride.
int64_t cover(int64_t stride, int64_t extent, int64_t reach) {
    stride = magnitude(stride);
    if (stride == 0 || stride >= reach) return 1;
    return at_most(extent, reach / stride);
}

// Enough for long walks, little enough to share out evenly.
constexpr int64_t strip_bytes = 256 << 10;

void count_boxes(Boxes &b, int64_t entries) {
    for (int i = 0; i < b.nest.rank; ++i) {
        b.count[i] = (b.nest.mode[i].extent - b.lead[i] + b.take[i] - 1) / b.take[i] + 1;
        b.per_entry *= b.count[i];
        if (b.count[i] > 1) b.split[b.splits++] = i;
    }
    b.entries = entries;
    b.total = b.nest.empty ? 0 : b.per_entry * entries;
}

}  // namespace

Boxes make_boxes(const Nest &nest, int64_t unit, int64_t entries) {
    Boxes b;
    b.nest = nest;
    const int64_t capacity = box_bytes / unit;
    // Both sides want their near neighbours in the box, as many as fit.
    for (int64_t reach = 4096; reach >= 64; reach /= 2) {
        int64_t volume = 1;
        for (int i = 0; i < nest.rank; ++i) {
            const Mode &m = nest.mode[i];
            int64_t a = cover(m.src, m.extent, reach), c = cover(m.dst, m.extent, reach);
            int64_t take = a > c ? a : c;
            if (volume * take > capacity) take = reach == 64 ? capacity / volume : take;
            b.take[i] = take < 1 ? 1 : take;
            volume = volume > capacity ? volume : volume * b.take[i];
        }
        if (volume <= capacity) break;
    }
    // Capacity that is left lengthens the runs of the target.
    int64_t volume = b.volume();
    for (int i = 0; i < nest.rank && volume < capacity; ++i) {
        volume /= b.take[i];
        b.take[i] = at_most(nest.mode[i].extent, capacity / volume);
        volume *= b.take[i];
    }
    for (int i = 0; i < nest.rank; ++i) b.lead[i] = b.take[i];
    count_boxes(b, entries);
    // Where the source goes on, so does the walk.
    for (int i = 1; i < b.splits; ++i) {
        int k = b.split[i], at = i;
        for (; at > 0 && magnitude(nest.mode[k].src) < magnitude(nest.mode[b.split[at - 1]].src); --at) {
            b.split[at] = b.split[at - 1];
        }
        b.split[at] = k;
    }
    return b;
}

Boxes make_strips(const Nest &nest, int64_t unit, int64_t entries) {
    Boxes b;
    b.nest = nest;
    int64_t capacity = strip_bytes / unit;
    for (int i = 0; i < nest.rank; ++i) {
        b.lead[i] = b.take[i] = capacity < 1 ? 1 : at_most(nest.mode[i].extent, capacity);
        capacity = b.take[i] < nest.mode[i].extent ? 0 : capacity / b.take[i];
    }
    count_boxes(b, entries);
    return b;
}

Boxes make_boxes_of(const Nest &nest, const int64_t *take, const int64_t *lead, int64_t entries) {
    Boxes b;
    b.nest = nest;
    for (int i = 0; i < nest.rank; ++i) {
        b.take[i] = at_most(take[i], nest.mode[i].extent);
        b.lead[i] = at_most(lead[i], b.take[i]);
    }
    count_boxes(b, entries);
    return b;
}

Walk::Walk(const Boxes &b, const tw_nest &p, int64_t first) : boxes(b), descriptor(p) {
    entry = first / boxes.per_entry;
    int64_t rest = first % boxes.per_entry;
    for (int i = 0; i < boxes.splits; ++i) {
        int64_t n = boxes.count[boxes.split[i]];
        at[i] = rest % n;
        rest /= n;
    }
    enter();
}

int64_t Walk::start(int i) const {
    int k = boxes.split[i];
    return at[i] == 0 ? 0 : boxes.lead[k] + (at[i] - 1) * boxes.take[k];
}

int64_t Walk::extent(int i) const {
    int k = boxes.split[i];
    return at[i] == 0 ? boxes.lead[k] : at_most(boxes.nest.mode[k].extent - start(i), boxes.take[k]);
}

void Walk::enter() {
    src = boxes.nest.src;
    dst = boxes.nest.dst;
    aux = boxes.nest.aux;
    edge = 0;
    for (int i = 0; i < boxes.splits; ++i) {
        const Mode &m = boxes.nest.mode[boxes.split[i]];
        int64_t first = start(i);
        src += first * m.src;
        dst += first * m.dst;
        aux += first * m.aux;
        if (extent(i) < boxes.take[boxes.split[i]]) edge |= uint64_t{at[i] == 0 ? 1u : 2u} << (2 * i);
    }
    if (descriptor.table_count > 0) {
        if (descriptor.src_table) src += descriptor.src_table[entry];
        if (descriptor.dst_table) dst += descriptor.dst_table[entry];
        if (descriptor.aux_table) aux += descriptor.aux_table[entry];
    }
}

void Walk::next() {
    int i = 0;
    for (; i < boxes.splits; ++i) {
        if (++at[i] < boxes.count[boxes.split[i]]) break;
        at[i] = 0;
    }
    if (i == boxes.splits) {
        if (entry + 1 == boxes.entries) return;
        ++entry;
    }
    enter();
}

Nest Walk::shape() const {
    Nest n = boxes.nest;
    n.src = n.dst = n.aux = 0;
    for (int i = 0; i < n.rank; ++i) n.mode[i].extent = boxes.take[i];
    for (int i = 0; i < boxes.splits; ++i) n.mode[boxes.split[i]].extent = extent(i);
    return n;
}

}  // namespace tw
