// SPDX-License-Identifier: Apache-2.0
#include "move.h"

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

Move make_move(Nest nest, int size, bool stream, Order order) {
    for (int i = 0; i < nest.rank; ++i) nest.mode[i].aux = 0;
    normalise(nest);
    Move move;
    move.src = nest.src;
    move.dst = nest.dst;
    int first = 0;
    int64_t run = size;
    if (nest.rank > 0 && nest.mode[0].src == size && nest.mode[0].dst == size) {
        run = nest.mode[0].extent * size;
        first = 1;
    }
    move.rank = nest.rank - first;
    for (int i = 0; i < move.rank; ++i) move.mode[i] = nest.mode[first + i];
    // A short run of a register's width is an element of its own: what is left may be a transpose of those.
    bool element = run == 1 || run == 2 || run == 4 || run == 8;
    if (!element || move.rank == 0) {
        move.kind = MoveKind::runs;
        move.run = run;
        move.stream = stream && run >= 64;
        if (order == Order::by_source) sort_by_source(move.mode, move.rank);
        return move;
    }
    move.size = static_cast<int>(run);
    move.kind = MoveKind::strided;
    if (move.mode[0].dst == run && move.mode[0].src != 0) {
        for (int i = 1; i < move.rank; ++i) {
            if (move.mode[i].src != run) continue;
            Mode along_source = move.mode[i];
            for (int k = i; k > 1; --k) move.mode[k] = move.mode[k - 1];
            move.mode[1] = along_source;
            move.kind = MoveKind::transpose;
            break;
        }
    }
    int fixed = move.kind == MoveKind::transpose ? 2 : 1;
    if (order == Order::by_source && move.rank > fixed) sort_by_source(move.mode + fixed, move.rank - fixed);
    return move;
}

}  // namespace tw
