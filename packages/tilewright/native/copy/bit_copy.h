// SPDX-License-Identifier: Apache-2.0
//
// A BitCopy is a small nest of bit-for-bit element copies with its inner kernel chosen. All staging of the engine (collect
// from the source, store to the target) is made of these.
#pragma once

#include "copy/nest.h"

namespace tw {

enum class BitCopyKind {
    runs,       // mode 0 is contiguous on both sides: `run` bytes
    transpose,  // mode 0 is contiguous in the target, mode 1 in the source
    strided,    // anything else, element by element
};

struct BitCopy {
    BitCopyKind kind;
    bool stream;   // store past the caches; only for runs of a line or more
    int size;      // bytes per element (transpose, strided)
    int64_t run;   // bytes (runs)
    int rank;      // modes: without the run for runs, with modes 0 and 1 for transpose
    int64_t src, dst;  // byte offsets
    Mode mode[max_modes];

    BitCopy() {}  // nothing: there are arrays of these, few of which are used
    BitCopy(const BitCopy &other) { *this = other; }
    // Copies the modes that there are, not all that there may be.
    BitCopy &operator=(const BitCopy &other) {
        kind = other.kind;
        stream = other.stream;
        size = other.size;
        run = other.run;
        rank = other.rank;
        src = other.src;
        dst = other.dst;
        for (int i = 0; i < rank; ++i) mode[i] = other.mode[i];
        return *this;
    }
};

// What a line is made of its pieces by. Only conversions with a short way have one.
enum class LineOp { bits, f32_to_bf16, bf16_to_f32, f32_to_f16, f16_to_f32 };

// How lines are written. To shift is to stream to a target that does not lie on lines; it needs the lines in the order
// of the target along each of at most `most_rows` rows; the carries of the modes count them, and are 0 along a row.
enum class Put { store, stream, shift };

constexpr int most_rows = 128;

// A copy that makes 64 bytes of the target at a time, each from a few pieces of the source.
struct Lines {
    LineOp op = LineOp::bits;
    Put put = Put::store;
    int pieces = 1;          // of the source, to a line: 1, 2 or 4
    int64_t piece_step = 0;  // bytes from one to the next
    bool sweep = false;      // the source is used up from end to end: prefetch it that way, not along the pieces
    int64_t ahead = 0;       // bytes from each piece to one that will be read a little later; 0: nothing to prefetch
    int rank = 0;
    Mode mode[max_modes];    // loops over lines, innermost first
};

enum class Order { by_target, by_source };

// Returns the copy of elements of `size` bytes through the nest. `order` says which side's address order the loops
// around the inner kernel follow. `stream` is a wish: it holds only where whole lines are written.
BitCopy make_bit_copy(Nest nest, int size, bool stream, Order order);

}  // namespace tw
