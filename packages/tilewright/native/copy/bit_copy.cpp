// SPDX-License-Identifier: Apache-2.0
#include "copy/bit_copy.h"

namespace tw {
namespace {

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

void sort_by_source(Mode *mode, int count) {
    for (int i = 1; i < count; ++i) {
        Mode m = mode[i];
        int at = i;
        for (; at > 0 && magnitude(m.src) < magnitude(mode[at - 1].src); --at) mode[at] = mode[at - 1];
        mode[at] = m;
    }
}

}  // namespace

BitCopy make_bit_copy(Nest nest, int size, bool stream, Order order) {
    for (int i = 0; i < nest.rank; ++i) nest.mode[i].aux = 0;
    normalise(nest);
    BitCopy copy;
    copy.kind = BitCopyKind::runs;
    copy.stream = false;
    copy.size = 1;
    copy.run = 0;
    copy.src = nest.src;
    copy.dst = nest.dst;
    int first = 0;
    int64_t run = size;
    if (nest.rank > 0 && nest.mode[0].src == size && nest.mode[0].dst == size) {
        run = nest.mode[0].extent * size;
        first = 1;
    }
    copy.rank = nest.rank - first;
    for (int i = 0; i < copy.rank; ++i) copy.mode[i] = nest.mode[first + i];
    // A short run of a register's width is an element of its own: what is left may be a transpose of those.
    bool element = run == 1 || run == 2 || run == 4 || run == 8;
    if (!element || copy.rank == 0) {
        copy.kind = BitCopyKind::runs;
        copy.run = run;
        copy.stream = stream && run >= 64;
        if (order == Order::by_source) sort_by_source(copy.mode, copy.rank);
        return copy;
    }
    copy.size = static_cast<int>(run);
    copy.kind = BitCopyKind::strided;
    if (copy.mode[0].dst == run && copy.mode[0].src != 0) {
        for (int i = 1; i < copy.rank; ++i) {
            if (copy.mode[i].src != run) continue;
            Mode along_source = copy.mode[i];
            for (int k = i; k > 1; --k) copy.mode[k] = copy.mode[k - 1];
            copy.mode[1] = along_source;
            copy.kind = BitCopyKind::transpose;
            break;
        }
    }
    int fixed = copy.kind == BitCopyKind::transpose ? 2 : 1;
    if (order == Order::by_source && copy.rank > fixed) sort_by_source(copy.mode + fixed, copy.rank - fixed);
    return copy;
}

}  // namespace tw
