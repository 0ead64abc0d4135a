// SPDX-License-Identifier: Apache-2.0
#include "copy/nest.h"

namespace tw {
namespace {

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

// Sorts by target stride; equal ones (all 0 for a scale byte, say) by source stride, so that the order is stable.
bool comes_before(const Mode &a, const Mode &b) {
    if (a.dst != b.dst) return a.dst < b.dst;
    return magnitude(a.src) < magnitude(b.src);
}

bool fuses(const Mode &inner, const Mode &outer) {
    return outer.src == inner.src * inner.extent && outer.dst == inner.dst * inner.extent &&
           outer.aux == inner.aux * inner.extent && outer.row_step == inner.row_step * inner.extent;
}

}  // namespace

void normalise(Nest &nest) {
    int rank = 0;
    for (int i = 0; i < nest.rank; ++i) {
        Mode m = nest.mode[i];
        if (m.extent <= 0) {
            nest.empty = true;
            nest.rank = 0;
            return;
        }
        if (m.extent == 1) continue;
        if (m.dst < 0) {  // walk it from the other end
            int64_t last = m.extent - 1;
            nest.src += last * m.src;
            nest.dst += last * m.dst;
            nest.aux += last * m.aux;
            m.src = -m.src;
            m.dst = -m.dst;
            m.aux = -m.aux;
        }
        int at = rank++;
        for (; at > 0 && comes_before(m, nest.mode[at - 1]); --at) nest.mode[at] = nest.mode[at - 1];
        nest.mode[at] = m;
    }
    nest.rank = rank;
    fuse_in_order(nest);
}

void fuse_in_order(Nest &nest) {
    int count = nest.rank;
    nest.rank = 0;
    for (int i = 0; i < count; ++i) {
        if (nest.mode[i].extent == 1) continue;
        if (nest.rank > 0 && fuses(nest.mode[nest.rank - 1], nest.mode[i])) {
            nest.mode[nest.rank - 1].extent *= nest.mode[i].extent;
        } else {
            nest.mode[nest.rank++] = nest.mode[i];
        }
    }
}

Nest nest_of(const tw_nest &descriptor) {
    Nest nest;
    nest.src = descriptor.src_offset;
    nest.dst = descriptor.dst_offset;
    nest.aux = descriptor.aux_offset;
    for (int i = 0; i < descriptor.rank; ++i) {
        nest.push({descriptor.extent[i], descriptor.src_stride[i], descriptor.dst_stride[i], descriptor.aux_stride[i]});
    }
    // What an op does not use must not keep modes from fusing.
    for (int i = 0; i < nest.rank; ++i) {
        if (descriptor.op == TW_FILL) nest.mode[i].src = nest.mode[i].dst;
        if (descriptor.op == TW_COPY || descriptor.op == TW_FILL) nest.mode[i].aux = 0;
    }
    if (descriptor.op == TW_FILL) nest.src = nest.dst;
    normalise(nest);
    return nest;
}

}  // namespace tw
