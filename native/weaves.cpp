// SPDX-License-Identifier: Apache-2.0
#include "weaves.h"

namespace tw {
namespace {

// What a box holds: little enough to share out evenly.
constexpr int64_t weave_bytes = 128 << 10;
// Channels shorter than this are mostly ends.
constexpr int64_t channel_bytes = 128;

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// Returns the mode with these strides, or -1.
int find(const Nest &nest, int64_t Mode::*one, int64_t a, int64_t Mode::*other, int64_t b) {
    for (int i = 0; i < nest.rank; ++i) {
        if (nest.mode[i].*one == a && (b == 0 || nest.mode[i].*other == b)) return i;
    }
    return -1;
}

// Finds the modes over and along the channels, which are together on the side given.
bool find_channels(const Nest &nest, int size, int64_t Mode::*together, int64_t Mode::*apart, int &over, int &along) {
    over = find(nest, together, size, apart, 0);
    if (over < 0 || nest.mode[over].extent > most_channels) return false;
    along = find(nest, apart, size, together, nest.mode[over].extent * size);
    return along >= 0 && along != over && nest.mode[along].extent * size >= channel_bytes;
}

}  // namespace

bool make_weave(const Nest &nest, int size, int64_t entries, Boxes &boxes, Weave &weave) {
    int over, along;
    weave.size = size;
    weave.join = find_channels(nest, size, &Mode::dst, &Mode::src, over, along);
    if (!weave.join && !find_channels(nest, size, &Mode::src, &Mode::dst, over, along)) return false;
    Nest ordered;
    ordered.src = nest.src;
    ordered.dst = nest.dst;
    ordered.push(nest.mode[over]);
    ordered.push(nest.mode[along]);
    for (int i = 0; i < nest.rank; ++i) {
        if (i != over && i != along) ordered.push(nest.mode[i]);
    }
    int64_t take[max_modes];
    int64_t room = weave_bytes / size;
    for (int i = 0; i < ordered.rank; ++i) {
        take[i] = room < 1 ? 1 : at_most(ordered.mode[i].extent, room);
        if (i == 1 && take[i] < ordered.mode[i].extent) take[i] = take[i] / 64 * 64;  // whole lines of each channel
        room = take[i] < ordered.mode[i].extent ? 0 : room / take[i];
    }
    boxes = make_boxes_of(ordered, take, take, entries);
    return true;
}

Weave weave_of(const Weave &like, const Nest &box, bool stream) {
    Weave weave = like;
    weave.stream = stream;
    weave.rank = box.rank;
    for (int i = 0; i < box.rank; ++i) weave.mode[i] = box.mode[i];
    return weave;
}

}  // namespace tw
