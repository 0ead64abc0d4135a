// SPDX-License-Identifier: Apache-2.0
//
// Streams bytes that come in portions as whole lines of the target, wherever the portions end. Only for the files
// compiled once for each instruction set.
#pragma once

#include "simd/vectors.h"

namespace tw::TW_ISA {
namespace {

// Writes a run of staged bytes: whole aligned lines, past the caches if streamed, and ordinary stores at the start.
// Returns how many bytes are written; what is left is less than a line.
template <bool streamed>
int64_t put_lines(const uint8_t *src, uint8_t *dst, int64_t bytes) {
    int64_t i = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dst) & (line - 1));
    if (i > bytes) i = bytes;
    copy_short(src, dst, i);
    for (; i + line <= bytes; i += line) {
        Vec v[line / width];
        for (int64_t k = 0; k < line / width; ++k) v[k] = load(src + i + k * width);
        for (int64_t k = 0; k < line / width; ++k) {
            if constexpr (streamed) {
                stream(dst + i + k * width, v[k]);
            } else {
                store(dst + i + k * width, v[k]);
            }
        }
    }
    return i;
}

// `buffer` holds what is not yet written, less than a line, and has space for a portion and a line behind it.
struct LineStream {
    uint8_t *buffer;
    uint8_t *dst;
    int64_t held;

    uint8_t *end() const { return buffer + held; }

    // Takes the bytes that were put at the end, and streams what is whole lines.
    void put(int64_t bytes) {
        const int64_t all = held + bytes;
        const int64_t done = put_lines<true>(buffer, dst, all);
        dst += done;
        held = all - done;
        for (int64_t k = 0; k < line; k += width) store(buffer + k, load(buffer + done + k));
    }

    void finish() const { copy_short(buffer, dst, held); }
};

}  // namespace
}  // namespace tw::TW_ISA
