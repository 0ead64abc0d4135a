// SPDX-License-Identifier: Apache-2.0
#include "copy/interleave.h"

namespace tw {
namespace {

// What a box holds: little enough to share out evenly.
constexpr int64_t interleave_bytes = 128 << 10;
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

bool make_interleave(const Nest &nest, int size, int64_t entries, Boxes &boxes, Interleave &interleave) {
    int over, along;
    interleave.size = size;
    interleave.join = find_channels(nest, size, &Mode::dst, &Mode::src, over, along);
    if (!interleave.join && !find_channels(nest, size, &Mode::src, &Mode::dst, over, along)) return false;
    Nest ordered;
    ordered.src = nest.src;
    ordered.dst = nest.dst;
    ordered.push(nest.mode[over]);
    ordered.push(nest.mode[along]);
    for (int i = 0; i < nest.rank; ++i) {
        if (i != over && i != along) ordered.push(nest.mode[i]);
    }
    int64_t take[max_modes];
    int64_t capacity = interleave_bytes / size;
    for (int i = 0; i < ordered.rank; ++i) {
        take[i] = capacity < 1 ? 1 : at_most(ordered.mode[i].extent, capacity);
        if (i == 1 && take[i] < ordered.mode[i].extent) take[i] = take[i] / 64 * 64;  // whole lines of each channel
        capacity = take[i] < ordered.mode[i].extent ? 0 : capacity / take[i];
    }
    boxes = make_boxes_of(ordered, take, take, entries);
    return true;
}

Interleave interleave_of(const Interleave &like, const Nest &box, bool stream) {
    Interleave interleave = like;
    interleave.stream = stream;
    interleave.rank = box.rank;
    for (int i = 0; i < box.rank; ++i) interleave.mode[i] = box.mode[i];
    return interleave;
}

}  // namespace tw
